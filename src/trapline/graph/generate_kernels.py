"""The compiled half of `generate`: pages of a site as a tree with families, then links page by page.

Rules of this file
- Every random number is a hash of (key, page or site, draw): nothing depends on the order of evaluation.
- A page links to its children in the tree, whatever else is drawn: that makes every page reachable from its home.
- Ids: the pages of a site are neighbours, the home page first, then the other pages of the tree, then families.
"""

from typing import Any, NamedTuple

import numpy as np

from trapline.graph.exact import stream, uniform
from trapline.jit import f8, helper, i8, kernel, type_of

# Kernels calculate with single values, whose numpy types would only get in the way of reading them as numbers.
Floats = Any
Longs = Any
Ids = Any
Flags = Any

DANGLING, DYNAMIC = 1, 2
"""Bits of a page's flags."""

LONGEST_FAMILY = 100
ALIKE = 4
"""So many pages of a site are about as popular as its home page: its menu."""
FIRST_DRAW = 8
"""Draws of a page below this number decide how many links it has, those from here on which."""


@kernel("void(int64, float64[::1])")
def uniforms(key: int, out: Floats) -> None:
    """One number for each index."""
    for index in range(len(out)):
        out[index] = uniform(stream(key, index), 0)


@kernel("void(int64[::1], int64[::1], float64[::1], int64, int32[::1], uint8[::1])")
def shape_sites(first: Longs, tree: Longs, odds: Floats, key: int, parent: Ids, flags: Flags) -> None:
    """Parent and flags of every page. odds: [dangling page of a tree, dynamic family, chain if dynamic]."""
    for site in range(len(tree)):
        home = first[site]
        parent[home] = -1
        if first[site + 1] - home == 1 and uniform(stream(key, home), 0) < odds[0]:
            flags[home] = DANGLING
        _grow_tree(home, tree[site], odds[0], key, parent, flags)
        page = home + tree[site]
        while page < first[site + 1]:
            page += _grow_family(home, tree[site], page, first[site + 1], odds, key, parent, flags)


@helper("void(int64, int64, float64, int64, int32[::1], uint8[::1])")
def _grow_tree(home: int, size: int, dangling: float, key: int, parent: Ids, flags: Flags) -> None:
    for number in range(1, size):
        page = home + number
        draws = stream(key, page)
        if uniform(draws, 0) < dangling:
            flags[page] = DANGLING
        parent[page] = _linking_page(home, number, uniform(draws, 1), flags)


@helper("int64(int64, int64, float64, uint8[::1])")
def _linking_page(home: int, below: int, chance: float, flags: Flags) -> int:
    """A page of the tree before number `below`, early ones more often: depth grows as ln(pages)/2."""
    number = int(below * chance * chance)
    while flags[home + number] & DANGLING and number > 0:
        number -= 1
    return home + number


@helper("int64(int64, int64, int64, int64, float64[::1], int64, int32[::1], uint8[::1])")
def _grow_family(home: int, tree: int, page: int, end: int, odds: Floats, key: int, parent: Ids, flags: Flags) -> int:
    """A list with its items, or a chain in which each page leads to the next; returns its size."""
    draws = stream(key, page)
    # Median 8, a quarter over 16: lengths with a power-law tail.
    size = min(int(4.0 / (uniform(draws, 0) + 0.001)) + 1, LONGEST_FAMILY, end - page)
    dynamic = uniform(draws, 1) < odds[1]
    chain = not dynamic or uniform(draws, 2) < odds[2]
    parent[page] = _linking_page(home, tree, uniform(draws, 3), flags)
    for member in range(page, page + size):
        if member > page:
            parent[member] = member - 1 if chain else page
        flags[member] = DYNAMIC if dynamic else 0
        if (not chain and member > page) or (chain and member == page + size - 1):
            flags[member] |= DANGLING
    return size


class Plan(NamedTuple):
    """All that is decided before links are drawn."""

    first: Longs
    """[sites + 1] the home page of each site; its pages end where the next one begins"""
    tree: Longs
    """[sites] pages in the tree of each site"""
    least: Floats
    """[sites] where the popularity of its home page lies in the table: the most popular pages are much alike"""
    site: Ids
    parent: Ids
    """[pages] -1 for home pages"""
    flags: Flags
    child_offsets: Longs
    children: Ids
    tables: Floats
    """[2, steps + 1] quantiles of out-degree and of popularity within a site (as a share of the tree)"""
    odds: Floats
    """chances by the positions below"""


OUTSIDE, HOME_LINK, POPULAR, SIBLING, OUTSIDE_HOME = range(5)

_longs, _ids = np.zeros(1, np.int64), np.zeros(1, np.int32)
_PLAN = type_of(
    Plan(_longs, _longs, np.zeros(1), _ids, _ids, np.zeros(1, np.uint8), _longs, _ids, np.zeros((2, 1)), np.zeros(1))
)
_IDS, _LONGS = type_of(_ids), type_of(_longs)


@kernel(i8(_PLAN, i8, _IDS, _LONGS, _IDS))
def link_pages(plan: Plan, key: int, last_row: Ids, offsets: Longs, targets: Ids) -> int:
    """All links, page by page; returns how many, or -1 if `targets` is too small.

    Links that could not be made (a small site has few targets) are owed, and made by later pages.
    """
    made, owed = 0, 0
    for page in range(len(plan.flags)):
        offsets[page] = made
        if plan.flags[page] & DANGLING:
            continue
        draws = stream(key, page)
        wanted = min(int(_quantile(plan.tables, 0, uniform(draws, 0)) + uniform(draws, 1)), len(plan.flags))
        room = wanted + min(max(owed, -wanted), wanted)
        children = plan.child_offsets[page + 1] - plan.child_offsets[page]
        if made + room + children + 2 > len(targets):
            return -1
        end = _link_inside(plan, draws, page, room, last_row, targets, made)
        end = _link_outside(plan, draws, page, room, last_row, targets, end)
        owed += wanted - (end - made)
        made = end
    offsets[len(plan.flags)] = made
    return made


@helper(i8(_PLAN, i8, i8, i8, _IDS, _IDS, i8))
def _link_inside(plan: Plan, draws: int, page: int, room: int, last_row: Ids, targets: Ids, made: int) -> int:
    """The home page, what the site offers everywhere, what stands near; then the page's children."""
    first_child, last_child = plan.child_offsets[page], plan.child_offsets[page + 1]
    end = made + room - _outside_count(plan, draws, room) - (last_child - first_child)
    if uniform(draws, 3) < plan.odds[HOME_LINK]:
        made = _add(plan.first[plan.site[page]], page, last_row, targets, made)
    draw, tries = FIRST_DRAW, 2 * room
    while made < end and tries > 0:
        made = _add(_pick_inside(plan, draws, draw, page), page, last_row, targets, made)
        draw += 2
        tries -= 1
    for child in range(first_child, last_child):
        made = _add(plan.children[child], page, last_row, targets, made)
    return made


@helper(i8(_PLAN, i8, i8, i8, _IDS, _IDS, i8))
def _link_outside(plan: Plan, draws: int, page: int, room: int, last_row: Ids, targets: Ids, made: int) -> int:
    draw = FIRST_DRAW + 4 * room
    for _ in range(_outside_count(plan, draws, room)):
        made = _add(_pick_outside(plan, draws, draw), page, last_row, targets, made)
        draw += 3
    return made


@helper(i8(_PLAN, i8, i8))
def _outside_count(plan: Plan, draws: int, room: int) -> int:
    return int(room * plan.odds[OUTSIDE] + uniform(draws, 2))


@helper(i8(_PLAN, i8, i8, i8))
def _pick_inside(plan: Plan, draws: int, draw: int, page: int) -> int:
    """A popular page, a sibling or the page above. Siblings and pages above leave the depth of a site as it is."""
    kind, which = uniform(draws, draw), uniform(draws, draw + 1)
    above = int(plan.parent[page])
    if kind < plan.odds[POPULAR] or above < 0:
        return _popular(plan, plan.site[page], which)
    if kind < plan.odds[SIBLING]:
        start = plan.child_offsets[above]
        # Cubed: the first of a list have most links.
        return int(plan.children[start + int(which * which * which * (plan.child_offsets[above + 1] - start))])
    if which < 0.5 and plan.parent[above] >= 0:
        return int(plan.parent[above])
    return above


@helper(i8(_PLAN, i8, i8))
def _pick_outside(plan: Plan, draws: int, draw: int) -> int:
    """The home page or a popular page of another site, large sites more often."""
    site = plan.site[int(uniform(draws, draw) * len(plan.site))]
    if uniform(draws, draw + 1) < plan.odds[OUTSIDE_HOME]:
        return int(plan.first[site])
    return _popular(plan, site, uniform(draws, draw + 2))


@helper(i8(_PLAN, i8, f8))
def _popular(plan: Plan, site: int, chance: float) -> int:
    least, tree = plan.least[site], plan.tree[site]
    place = (tree + ALIKE) * _quantile(plan.tables, 1, least + chance * (1.0 - least)) - ALIKE
    # Interpolation may miss either end by a little.
    return int(plan.first[site] + min(max(int(place), 0), tree - 1))


@helper(f8(type_of(np.zeros((2, 1))), i8, f8))
def _quantile(tables: Floats, row: int, chance: float) -> float:
    """Linear between the steps of the table."""
    place = chance * (tables.shape[1] - 1)
    step = int(place)
    low, high = tables[row, step], tables[row, step + 1]
    return float(low + (high - low) * (place - step))


@helper(i8(i8, i8, _IDS, _IDS, i8))
def _add(target: int, page: int, last_row: Ids, targets: Ids, made: int) -> int:
    """Appends the link unless the page has it already."""
    if last_row[target] == page:
        return made
    last_row[target] = page
    targets[made] = target
    return made + 1
