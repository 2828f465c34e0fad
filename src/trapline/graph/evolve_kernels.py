"""The compiled half of `evolve`: lifetimes, changes, and the links of the next snapshot.

Rules of this file
- Every random number is a hash of (key, page, draw), where the page is identified by a number that it keeps for life.
- Changes are drawn in stretches of STRETCH_DAYS, each from its own hash. So callers can query any interval of time, in
  any order, and always get the same changes.
"""

from typing import Any

import numpy as np

from trapline.compiled.jit import f8, helper, i8, kernel, type_of
from trapline.graph.exact import exponential, number_in, stream
from trapline.graph.generate_kernels import (
    DANGLING,
    DENSE_LINKS,
    FIRST_DRAW,
    INSIDE,
    PLAN,
    ROWS,
    LinkRows,
    WebPlan,
    add_link,
    link_inside,
    link_outside,
    outside_links,
    pick_inside,
    pick_outside,
    wanted_links,
)

Floats = Any
Longs = Any
Ids = Any
Flags = Any

STRETCH_DAYS = 32.0
MOST_PER_STRETCH = 1 << 20


@kernel("void(int64, int64, float64[::1])")
def exponentials(key: int, first: int, out: Floats) -> None:
    """Fill `out` with exponential numbers of mean 1 for the pages `first`, `first` + 1, ..."""
    for index in range(len(out)):
        out[index] = exponential(stream(key, first + index))


@kernel("void(int32[::1], uint8[::1], int32[::1])")
def adopt(parent: Ids, alive: Flags, above: Ids) -> None:
    """Write the nearest living ancestor of each page to `above`; -1 for home pages, which never die."""
    for page in range(len(parent)):
        up = parent[page]
        above[page] = up if up < 0 or alive[up] else above[up]


_LONGS, _FLOATS = type_of(np.zeros(1, np.int64)), type_of(np.zeros(1))
_IDS, _FLAGS = type_of(np.zeros(1, np.int32)), type_of(np.zeros(1, np.uint8))


@kernel(i8(i8, _LONGS, _FLOATS, _FLOATS, f8, f8, _LONGS, _FLOATS))
def change_days(
    key: int, name: Longs, rate: Floats, since: Floats, start: float, end: float, counts: Longs, days: Floats
) -> int:
    """Count the changes of each page in [start, end), leaving out those before `since`; return their total.

    Write their days to `days`, page by page, as far as it has room.
    """
    made = 0
    for page in range(len(name)):
        counts[page] = 0
        first = max(start, since[page])
        stretch = int(first / STRETCH_DAYS)
        while stretch * STRETCH_DAYS < end and rate[page] > 0.0:
            day, number = stretch * STRETCH_DAYS, 0
            while True:
                draws = stream(stream(key, name[page]), stretch * MOST_PER_STRETCH + number)
                day += exponential(draws) / rate[page]
                number += 1
                if day >= min(end, (stretch + 1) * STRETCH_DAYS):
                    break
                if day >= first:
                    counts[page] += 1
                    if made < len(days):
                        days[made] = day
                    made += 1
            stretch += 1
    return made


@kernel(i8(PLAN, i8, _LONGS, _LONGS, _IDS, _IDS, _IDS, _FLOATS, ROWS))
def relink(
    plan: WebPlan,
    key: int,
    name: Longs,
    offsets: Longs,
    targets: Ids,
    now: Ids,
    before: Ids,
    redrawn: Floats,
    rows: LinkRows,
) -> int:
    """Write the links of the next snapshot to `rows`; return their number, -1 if they do not fit.

    offsets, targets: the links of the last snapshot. now: for each page of the last snapshot its index in the next, -1 -
    site if it died. before: the reverse, -1 for new pages. redrawn: for each page the probability that a link of it was
    replaced.
    """
    made = 0
    for page in range(len(plan.flags)):
        rows.offsets[page] = made
        if plan.flags[page] & DANGLING:
            continue
        draws, old = stream(key, name[page]), int(before[page])
        children = plan.child_offsets[page + 1] - plan.child_offsets[page]
        wanted = wanted_links(plan, draws, page) if old < 0 else offsets[old + 1] - offsets[old]
        if made + children + 4 * wanted + DENSE_LINKS + 16 > len(rows.targets):
            return -1
        if old < 0:
            inside = int(wanted * plan.odds[INSIDE] + number_in(draws, 3))
            made = link_inside(plan, draws, page, inside, rows, made)
            made = link_outside(plan, draws, page, outside_links(plan, draws, page, wanted), rows, made)
        else:
            made = _keep_links(
                plan, draws, page, targets[offsets[old] : offsets[old + 1]], now, redrawn[page], rows, made
            )
            for child in range(plan.child_offsets[page], plan.child_offsets[page + 1]):
                made = add_link(plan.children[child], page, rows, made)
    rows.offsets[len(plan.flags)] = made
    return made


@helper(i8(PLAN, i8, i8, _IDS, _IDS, f8, ROWS, i8))
def _keep_links(
    plan: WebPlan, draws: int, page: int, targets: Ids, now: Ids, redrawn: float, rows: LinkRows, made: int
) -> int:
    """Copy a page's links, replacing those to dead pages and, with probability `redrawn`, others except to its children."""
    draw = FIRST_DRAW
    for link in range(len(targets)):
        target = int(now[targets[link]])
        site = plan.site[target] if target >= 0 else -1 - target
        draw += 5
        if target < 0 or (plan.parent[target] != page and number_in(draws, draw) < redrawn):
            if site == plan.site[page]:
                target = pick_inside(plan, draws, draw + 1, page)
            else:
                target = pick_outside(plan, draws, draw + 1, page, rows)
            if target == page:
                continue
        made = add_link(target, page, rows, made)
    return made
