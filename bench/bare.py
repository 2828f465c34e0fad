"""Bare compiled loops that only order pages: the upper limit of speed for the frontier, used by order.py.

They have no politeness, no addresses, no retries, no pluggable strategy, and no state to resume from. They use numba
directly and nothing of Trapline, so that both can be compared in one run.
"""

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(_nrt=False, error_model="numpy")
def _up(heap, pos, key, i):  # type: ignore[no-untyped-def]
    item = heap[i]
    while i > 0:
        parent = (i - 1) >> 2
        if key[heap[parent]] >= key[item]:
            break
        heap[i] = heap[parent]
        pos[heap[i]] = i
        i = parent
    heap[i] = item
    pos[item] = i


@numba.njit(_nrt=False, error_model="numpy")
def _down(heap, pos, key, n, i):  # type: ignore[no-untyped-def]
    item = heap[i]
    while True:
        child = 4 * i + 1
        if child >= n:
            break
        best = child
        for other in range(child + 1, min(child + 4, n)):
            if key[heap[other]] > key[heap[best]]:
                best = other
        if key[item] >= key[heap[best]]:
            break
        heap[i] = heap[best]
        pos[heap[i]] = i
        i = best
    heap[i] = item
    pos[item] = i


@numba.njit(_nrt=False, error_model="numpy")
def _larger_sites_first(offsets, targets, site, seeds, seen, after, head, tail, key, heap, pos, order):  # type: ignore[no-untyped-def]
    n = done = 0
    for page in seeds:
        seen[page] = 1
        x = site[page]
        head[x] = tail[x] = page
        key[x] = 1.0
        heap[n] = x
        pos[x] = n
        n += 1
    while n > 0:
        x = heap[0]
        page = head[x]
        head[x] = after[page]
        key[x] -= 1.0
        if key[x] == 0.0:
            n -= 1
            heap[0] = heap[n]
            pos[x] = -1
        if n > 0:
            _down(heap, pos, key, n, 0)
        order[done] = page
        done += 1
        for e in range(offsets[page], offsets[page + 1]):
            target = targets[e]
            if seen[target]:
                continue
            seen[target] = 1
            y = site[target]
            if key[y] == 0.0:
                head[y] = target
            else:
                after[tail[y]] = target
            tail[y] = target
            key[y] += 1.0
            if pos[y] < 0:
                heap[n] = y
                pos[y] = n
                n += 1
            _up(heap, pos, key, pos[y])
    return done


@numba.njit(_nrt=False, error_model="numpy")
def _opic(offsets, targets, seeds, state, cash, heap, pos, order):  # type: ignore[no-untyped-def]
    n = done = 0
    for page in seeds:
        state[page] = 1
        cash[page] = 1.0
        heap[n] = page
        pos[page] = n
        n += 1
    while n > 0:
        page = heap[0]
        n -= 1
        heap[0] = heap[n]
        if n > 0:
            _down(heap, pos, cash, n, 0)
        state[page] = 2
        order[done] = page
        done += 1
        first, last = offsets[page], offsets[page + 1]
        for e in range(first, last):
            target = targets[e]
            if state[target] == 2:
                continue
            if state[target] == 0:
                state[target] = 1
                cash[target] = 1.0
                heap[n] = target
                pos[target] = n
                n += 1
            cash[target] += cash[page] / (last - first)
            _up(heap, pos, cash, pos[target])
    return done


def larger_sites_first(web) -> NDArray[np.int32]:  # type: ignore[no-untyped-def]
    """Return the order of pages by larger-sites-first; the seeds are the home pages."""
    order = np.zeros(web.pages, np.int32)
    done = _larger_sites_first(
        web.offsets,
        web.targets,
        web.site,
        web.home,
        np.zeros(web.pages, np.uint8),
        np.zeros(web.pages, np.int32),
        np.zeros(web.sites, np.int32),
        np.zeros(web.sites, np.int32),
        np.zeros(web.sites),
        np.zeros(web.sites, np.int32),
        np.full(web.sites, -1, np.int32),
        order,
    )
    return order[:done]


def opic(web) -> NDArray[np.int32]:  # type: ignore[no-untyped-def]
    """Return the order of pages by OPIC cash, in one heap over the whole web."""
    order, state = np.zeros(web.pages, np.int32), np.zeros(web.pages, np.uint8)
    heap, pos = np.zeros(web.pages, np.int32), np.zeros(web.pages, np.int32)
    done = _opic(web.offsets, web.targets, web.home, state, np.zeros(web.pages), heap, pos, order)
    return order[:done]
