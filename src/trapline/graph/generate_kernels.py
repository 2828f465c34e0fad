"""The compiled half of `generate`: pages of a site as a tree with families, then links page by page.

Rules of this file
- Every random number is a hash of (key, page or site, draw).
- A page links to its children in the tree, whatever else is drawn: that makes every page reachable from its home.
- Ids: the pages of a site are neighbours, the home page first, then the other pages of the tree, then families. The
  page above a page has a smaller id, so that its links are there when some of them are copied.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from trapline.graph.exact import number_in, stream
from trapline.jit import f8, helper, i8, kernel, type_of

# Kernels calculate with single values, whose numpy types would only get in the way of reading them as numbers.
Floats = Any
Longs = Any
Ids = Any
Flags = Any

DANGLING, DYNAMIC, FAMILY = 1, 2, 4
"""Bits of a page's flags."""

LONGEST_FAMILY = 256
"""The deepest page of the recorded crawls is 255 clicks from its home page."""
LONGEST_MENU = 40
ALIKE = 4
"""So many pages of a site are about as popular as its home page: its menu."""
FIRST_DRAW, OUTSIDE_DRAW = 8, 1 << 20
"""Draws of a page below the first number decide how many links it has, those from here on which."""


@kernel("void(int64[::1], int64[::1], float64[::1], int64, int32[::1], uint8[::1])")
def shape_sites(first: Longs, tree: Longs, odds: Floats, key: int, parent: Ids, flags: Flags) -> None:
    """Parent and flags of every page. odds: [dangling page of a tree, dynamic family, chain if dynamic]."""
    for site in range(len(tree)):
        home = first[site]
        parent[home] = -1
        if first[site + 1] - home == 1 and number_in(stream(key, home), 0) < odds[0]:
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
        if number_in(draws, 0) < dangling:
            flags[page] = DANGLING
        parent[page] = _linking_page(home, number, number_in(draws, 1), flags)


@helper("int64(int64, int64, float64, uint8[::1])")
def _linking_page(home: int, below: int, chance: float, flags: Flags) -> int:
    """A page of the tree before number `below`, in half of the cases early ones more often."""
    number = int(below * (2.0 * chance - 1.0)) if chance >= 0.5 else int(below * 4.0 * chance * chance)
    while flags[home + number] & DANGLING and number > 0:
        number -= 1
    return home + number


@helper("int64(int64, int64, int64, int64, float64[::1], int64, int32[::1], uint8[::1])")
def _grow_family(home: int, tree: int, page: int, end: int, odds: Floats, key: int, parent: Ids, flags: Flags) -> int:
    """A list with its items, or a chain in which each page leads to the next; returns its size."""
    draws = stream(key, page)
    # Median 8, a quarter over 16: lengths with a power-law tail.
    size = min(int(4.0 / (number_in(draws, 0) + 0.001)) + 1, LONGEST_FAMILY, end - page)
    dynamic = number_in(draws, 1) < odds[1]
    chain = not dynamic or number_in(draws, 2) < odds[2]
    parent[page] = _linking_page(home, tree, number_in(draws, 3), flags)
    for member in range(page, page + size):
        if member > page:
            parent[member] = member - 1 if chain else page
        flags[member] = FAMILY | (DYNAMIC if dynamic else 0)
        if (not chain and member > page) or (chain and member == page + size - 1):
            flags[member] |= DANGLING
    return size


class Plan(NamedTuple):
    """All that is decided before links are drawn."""

    first: Longs
    """[sites + 1] the home page of each site; its pages end where the next one begins"""
    tree: Longs
    """[sites] pages in the tree of each site"""
    reach: Floats
    """[sites] the weight of all pages of the tree, by `weights`"""
    site: Ids
    parent: Ids
    """[pages] -1 for home pages"""
    flags: Flags
    child_offsets: Longs
    children: Ids
    degrees: Floats
    """[steps + 1] quantiles of out-degree"""
    weights: Floats
    """[31] popularity of the first ALIKE pages of a tree, of the next 2 ALIKE, of the next 4 ALIKE, ..."""
    odds: Floats
    """chances by the positions below"""


INSIDE, HOME_LINK, MENU, SECTION, POPULAR, LINKS_OUT, OUTSIDE_FRESH, OUTSIDE_HOME = range(8)

_longs, _ids = np.zeros(1, np.int64), np.zeros(1, np.int32)
_floats, _flags = np.zeros(1), np.zeros(1, np.uint8)
PLAN = type_of(Plan(_longs, _longs, _floats, _ids, _ids, _flags, _longs, _ids, _floats, _floats, _floats))
IDS, LONGS = type_of(_ids), type_of(_longs)


class Rows(NamedTuple):
    """The links under construction: rows of smaller pages are complete."""

    offsets: Longs
    targets: Ids
    last_row: Ids
    """[pages] the last page that got a link to this one"""


ROWS = type_of(Rows(_longs, _ids, _ids))


@kernel(i8(PLAN, i8, ROWS))
def link_pages(plan: Plan, key: int, rows: Rows) -> int:
    """Writes offsets and targets; returns the number of links, -1 if they do not fit."""
    made = owed = owed_outside = 0
    for page in range(len(plan.flags)):
        rows.offsets[page] = made
        if plan.flags[page] & DANGLING:
            continue
        draws = stream(key, page)
        wanted = wanted_links(plan, draws)
        # What small sites have no room for, larger ones make up for.
        inside = int(wanted * plan.odds[INSIDE] + number_in(draws, 3))
        room = inside + min(max(owed, -inside), inside)
        outside = outside_links(plan, draws, wanted)
        children = plan.child_offsets[page + 1] - plan.child_offsets[page]
        if made + room + children + 2 * outside + 8 > len(rows.targets):
            return -1
        end = link_inside(plan, draws, page, room, rows, made)
        owed += inside - (end - made)
        made = link_outside(plan, draws, page, outside + min(owed_outside, outside), rows, end)
        owed_outside += outside - (made - end)
    rows.offsets[len(plan.flags)] = made
    return made


@helper(i8(PLAN, i8))
def wanted_links(plan: Plan, draws: int) -> int:
    return min(int(_quantile(plan.degrees, number_in(draws, 0)) + number_in(draws, 1)), len(plan.flags))


@helper(i8(PLAN, i8, i8, i8, ROWS, i8))
def link_inside(plan: Plan, draws: int, page: int, room: int, rows: Rows, made: int) -> int:
    """The home page, the menus, then popular pages and what stands near; at last the page's children."""
    first_child, last_child = plan.child_offsets[page], plan.child_offsets[page + 1]
    home, tree = plan.first[plan.site[page]], plan.tree[plan.site[page]]
    # On the recorded sites the most of all pages but a tenth is 13 links where there are 11 pages, 25 of 45, 50 of 220.
    end = made + min(room, int(3.5 * math.sqrt(tree))) - (last_child - first_child)
    if number_in(draws, 4) < plan.odds[HOME_LINK] and page != home:
        made = add_link(home, page, rows, made)
    made = _link_menus(plan, page, end - made, rows, made)
    draw, tries = FIRST_DRAW, 3 * room
    while made < end and tries > 0:
        target = pick_inside(plan, draws, draw, page)
        if target != page:
            made = add_link(target, page, rows, made)
        draw += 2
        tries -= 1
    for child in range(first_child, last_child):
        made = add_link(plan.children[child], page, rows, made)
    return made


@helper(i8(PLAN, i8, i8, ROWS, i8))
def _link_menus(plan: Plan, page: int, room: int, rows: Rows, made: int) -> int:
    """The first pages of the site, which every page with that many links has, and the first among its siblings."""
    home, tree = plan.first[plan.site[page]], plan.tree[plan.site[page]]
    for target in range(home + 1, home + min(1 + min(int(room * plan.odds[MENU]), LONGEST_MENU), tree)):
        if target != page:
            made = add_link(target, page, rows, made)
    above = plan.parent[page]
    if above >= 0:
        start, end = plan.child_offsets[above], plan.child_offsets[above + 1]
        for child in range(start, min(start + int(room * plan.odds[SECTION]), end)):
            if plan.children[child] != page:
                made = add_link(plan.children[child], page, rows, made)
    return made


@helper(i8(PLAN, i8, i8))
def outside_links(plan: Plan, draws: int, wanted: int) -> int:
    """None on most pages, so many on the others that the share of all links is met."""
    if number_in(draws, 2) >= plan.odds[LINKS_OUT]:
        return 0
    return int(wanted * (1.0 - plan.odds[INSIDE]) / plan.odds[LINKS_OUT] + number_in(draws, 5))


@helper(i8(PLAN, i8, i8, i8, ROWS, i8))
def link_outside(plan: Plan, draws: int, page: int, count: int, rows: Rows, made: int) -> int:
    draw = OUTSIDE_DRAW
    for _ in range(count):
        made = add_link(pick_outside(plan, draws, draw, page, rows), page, rows, made)
        draw += 4
    return made


@helper(i8(PLAN, i8, i8, i8))
def pick_inside(plan: Plan, draws: int, draw: int, page: int) -> int:
    """A popular page of the site, else one that stands near: a sibling or the page above that."""
    kind, which = number_in(draws, draw), number_in(draws, draw + 1)
    above = int(plan.parent[page])
    if kind < plan.odds[POPULAR] or above < 0:
        return popular(plan, plan.site[page], which)
    if which < 0.25 and plan.parent[above] >= 0:
        return int(plan.parent[above])
    start = plan.child_offsets[above]
    return int(plan.children[start + int(which * (plan.child_offsets[above + 1] - start))])


@helper(i8(PLAN, i8, i8, i8, ROWS))
def pick_outside(plan: Plan, draws: int, draw: int, page: int, rows: Rows) -> int:
    """What the page above links to, else the home page or a popular page of another site, large sites more often."""
    above = int(plan.parent[page])
    which = number_in(draws, draw)
    if above >= 0 and number_in(draws, draw + 1) >= plan.odds[OUTSIDE_FRESH]:
        start, end = rows.offsets[above], rows.offsets[above + 1]
        # Links to other sites are the last in a row.
        target = int(rows.targets[end - 1 - int(which * min(8, end - start))])
        if plan.site[target] != plan.site[page]:
            return target
    site = plan.site[int(which * len(plan.site))]
    if number_in(draws, draw + 2) < plan.odds[OUTSIDE_HOME]:
        return int(plan.first[site])
    chance = number_in(draws, draw + 3)
    # Squared: others know the most popular pages of a site only.
    return popular(plan, site, chance * chance)


@helper(i8(PLAN, i8, f8))
def popular(plan: Plan, site: int, chance: float) -> int:
    """A page of the tree of a site, its weight falling with its number as a power law, in steps of a factor 2."""
    left, tree = chance * plan.reach[site], plan.tree[site]
    start, span, step = 0, ALIKE, 0
    while left >= plan.weights[step] and start + span < tree:
        left -= plan.weights[step]
        start += span
        span *= 2
        step += 1
    return int(plan.first[site] + min(start + int(span * (left / plan.weights[step])), tree - 1))


@helper(f8(type_of(np.zeros(1)), f8))
def _quantile(table: Floats, chance: float) -> float:
    """Linear between the steps of the table."""
    place = chance * (len(table) - 1)
    step = int(place)
    return float(table[step] + (table[step + 1] - table[step]) * (place - step))


@helper(i8(i8, i8, ROWS, i8))
def add_link(target: int, page: int, rows: Rows, made: int) -> int:
    """Appends the link unless the page has it already."""
    if rows.last_row[target] == page:
        return made
    rows.last_row[target] = page
    rows.targets[made] = target
    return made + 1
