"""Measures time and memory of the graph package at full size: python bench/generate.py [pages sites]

Generating is compared with a bare compiled loop that only writes as many random numbers as there are links.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numba
import numpy as np

from trapline.compiled.jit import ready
from trapline.graph import WebModel, evolve, generate, load_graph, measure, pagerank, save

Result = TypeVar("Result")


@numba.njit
def random_numbers(out):  # type: ignore[no-untyped-def]
    """Fill `out` with numbers of a xorshift generator."""
    state = np.uint64(88172645463325252)
    for index in range(len(out)):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        out[index] = state & np.uint64(0x7FFFFFFF)


def bare_s(links: int) -> float:
    random_numbers(np.empty(1, np.int32))
    started = time.perf_counter()
    random_numbers(np.empty(links, np.int32))
    return time.perf_counter() - started


def timed(what: str, action: Callable[[], Result]) -> Result:
    started = time.perf_counter()
    result = action()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:32} {time.perf_counter() - started:8.2f} s   peak {peak_mb:6.0f} MB", flush=True)
    return result


def main(pages: int, sites: int) -> None:
    timed("load kernels", ready)
    started = time.perf_counter()
    web = timed("generate", lambda: generate(pages, sites, seed=1))
    took_s, limit_s = time.perf_counter() - started, bare_s(web.links)
    print(f"{web.pages:,} pages, {web.links:,} links, {web.sites:,} sites")
    print(f"as many random numbers: {limit_s:.2f} s; generating takes {took_s / limit_s:.0f} times that")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "web"
        timed("save", lambda: save(web, folder))
        timed("load and check", lambda: load_graph(folder))
    timed("measure", lambda: measure(web))
    timed("two snapshots, 122 days apart", lambda: list(evolve(WebModel(pages, sites), [0, 122]))[1])
    ranks = timed("pagerank to 1e-9", lambda: pagerank(web))
    timed("pagerank, warm, 1e-6", lambda: pagerank(web, tolerance=1e-6, start=ranks))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3])) if len(sys.argv) > 2 else main(3_500_000, 50_000)
