"""The compiled half of `generate`: builds the pages of a site as a tree with families, then the links page by page.

Rules of this file
- Every random number is a hash of (key, page or site, draw).
- A page always links to its children in the tree, so every page is reachable from its home page.
- Ids: the pages of a site are consecutive: the home page first, then the other pages of the tree, then the families. A
  parent has a smaller id than its children, so its links are complete when a child copies some of them.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from trapline.compiled.jit import f8, helper, i8, kernel, type_of
from trapline.graph.exact import number_in, stream

# Kernels calculate with single array elements. As Any they pass for plain numbers; their numpy types would not.
Floats = Any
Longs = Any
Ids = Any
Flags = Any

DANGLING, DYNAMIC, FAMILY = 1, 2, 4
"""Bits of a page's flags."""

ORDINARY, FARM, CALENDAR = 0, 1, 2
"""Kinds of sites. Pages of a farm link to random pages of the site; pages of a calendar to the next page and to near ones."""
DENSE_LINKS = 40
"""Number of links within the site that each page of a farm or calendar draws: the length of the longest menu."""

LONGEST_FAMILY = 256
"""The deepest page of the recorded crawls is 255 clicks from its home page."""
LONGEST_MENU = 40
ALIKE = 4
"""Number of pages of a site that are about as popular as its home page: its menu."""
FIRST_DRAW, OUTSIDE_DRAW = 8, 1 << 20
"""A page's draws below FIRST_DRAW decide how many links it has. Draws from FIRST_DRAW on choose the targets within the
site, draws from OUTSIDE_DRAW on those on other sites."""


@kernel("void(int64[::1], int64[::1], uint8[::1], float64[::1], float64[::1], int64, int32[::1], uint8[::1])")
def shape_sites(
    first: Longs, tree: Longs, kind: Flags, dangling: Floats, odds: Floats, key: int, parent: Ids, flags: Flags
) -> None:
    """Write the parent and flags of every page.

    dangling: for each site the chance of a tree page to be dangling. odds: the chances of a family to be dynamic, and of
    a dynamic family to be a chain.
    """
    for site in range(len(tree)):
        home = first[site]
        parent[home] = -1
        if first[site + 1] - home == 1 and number_in(stream(key, home), 0) < dangling[site]:
            flags[home] = DANGLING
        _grow_tree(home, tree[site], dangling[site], key, parent, flags)
        page = home + tree[site]
        if kind[site] == CALENDAR:
            for member in range(page, first[site + 1]):
                parent[member] = member - 1
                flags[member] = FAMILY | DYNAMIC
            continue
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
    """Return a page of the tree before number `below` that has links; half of the draws favour early pages."""
    number = int(below * (2.0 * chance - 1.0)) if chance >= 0.5 else int(below * 4.0 * chance * chance)
    while flags[home + number] & DANGLING and number > 0:
        number -= 1
    return home + number


@helper("int64(int64, int64, int64, int64, float64[::1], int64, int32[::1], uint8[::1])")
def _grow_family(home: int, tree: int, page: int, end: int, odds: Floats, key: int, parent: Ids, flags: Flags) -> int:
    """Build a list with its items, or a chain in which each page links to the next; return its size."""
    draws = stream(key, page)
    # Lengths have a power-law tail: the median is 8, and a quarter is over 16.
    size = min(int(4.0 / (number_in(draws, 0) + 0.001)) + 1, LONGEST_FAMILY, end - page)
    dynamic = number_in(draws, 1) < odds[0]
    chain = not dynamic or number_in(draws, 2) < odds[1]
    parent[page] = _linking_page(home, tree, number_in(draws, 3), flags)
    for member in range(page, page + size):
        if member > page:
            parent[member] = member - 1 if chain else page
        flags[member] = FAMILY | (DYNAMIC if dynamic else 0)
        if (not chain and member > page) or (chain and member == page + size - 1):
            flags[member] |= DANGLING
    return size


class WebPlan(NamedTuple):
    """Everything that is decided before links are drawn."""

    first: Longs
    """[sites + 1] the home page of each site; a site's pages end where those of the next site begin"""
    tree: Longs
    """[sites] pages in the tree of each site"""
    reach: Floats
    """[sites] the total weight of the pages of the tree, by `weights`"""
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
    kind: Flags
    """[sites] ORDINARY, FARM or CALENDAR"""
    richness: Floats
    """[sites] factor of the number of links on a page"""
    outward: Floats
    """[sites] factor of the number of links to other sites on a page"""
    fame: Floats
    """[sites] factor of the number of links from other sites to a page"""
    fame_sum: Floats
    """[sites] the fame of all pages of this site and of the sites before it"""
    odds: Floats
    """chances, at the positions INSIDE, HOME_LINK, ... below"""


INSIDE, HOME_LINK, MENU, SECTION, POPULAR, LINKS_OUT, OUTSIDE_FRESH, OUTSIDE_HOME = range(8)

_longs, _ids = np.zeros(1, np.int64), np.zeros(1, np.int32)
_floats, _flags = np.zeros(1), np.zeros(1, np.uint8)
PLAN = type_of(
    WebPlan(
        first=_longs,
        tree=_longs,
        reach=_floats,
        site=_ids,
        parent=_ids,
        flags=_flags,
        child_offsets=_longs,
        children=_ids,
        degrees=_floats,
        weights=_floats,
        kind=_flags,
        richness=_floats,
        outward=_floats,
        fame=_floats,
        fame_sum=_floats,
        odds=_floats,
    )
)
IDS, LONGS, _FLOATS = type_of(_ids), type_of(_longs), type_of(_floats)


class LinkRows(NamedTuple):
    """Links under construction; the rows of all pages with smaller ids are complete."""

    offsets: Longs
    targets: Ids
    last_row: Ids
    """[pages] the last page that a link to this one was added to; detects parallel links"""


ROWS = type_of(LinkRows(_longs, _ids, _ids))


@kernel(i8(PLAN, i8, ROWS))
def link_pages(plan: WebPlan, key: int, rows: LinkRows) -> int:
    """Write offsets and targets; return the number of links, -1 if they do not fit."""
    made = owed = owed_outside = 0
    for page in range(len(plan.flags)):
        rows.offsets[page] = made
        if plan.flags[page] & DANGLING:
            continue
        draws = stream(key, page)
        wanted = wanted_links(plan, draws, page)
        # Small sites have no room for all their links. Larger sites make up for them.
        inside = int(wanted * plan.odds[INSIDE] + number_in(draws, 3))
        room = inside + min(max(owed, -inside), 3 * inside)
        outside = outside_links(plan, draws, page, wanted)
        children = plan.child_offsets[page + 1] - plan.child_offsets[page]
        if made + max(room, DENSE_LINKS) + children + 2 * outside + 8 > len(rows.targets):
            return -1
        end = link_inside(plan, draws, page, room, rows, made)
        if plan.kind[plan.site[page]] == ORDINARY:
            owed += inside - (end - made)
        made = link_outside(plan, draws, page, outside + min(owed_outside, outside), rows, end)
        owed_outside += outside - (made - end)
    rows.offsets[len(plan.flags)] = made
    return made


@helper(i8(PLAN, i8, i8))
def wanted_links(plan: WebPlan, draws: int, page: int) -> int:
    more = (_quantile(plan.degrees, number_in(draws, 0)) - 1.0) * plan.richness[plan.site[page]]
    return min(int(1.0 + more + number_in(draws, 1)), len(plan.flags))


@helper(i8(PLAN, i8, i8, i8, ROWS, i8))
def link_inside(plan: WebPlan, draws: int, page: int, room: int, rows: LinkRows, made: int) -> int:
    """Add the links within the site: home page, menus, popular and near pages, then the page's children."""
    first_child, last_child = plan.child_offsets[page], plan.child_offsets[page + 1]
    home, tree = plan.first[plan.site[page]], plan.tree[plan.site[page]]
    if plan.kind[plan.site[page]] != ORDINARY:
        return _link_densely(plan, draws, page, rows, made)
    # The 90th percentile of links per page on the recorded sites is 13 where there are 11 pages, 25 of 45, 50 of 220.
    most = 3.5 * math.sqrt(tree) * max(1.0, plan.richness[plan.site[page]])
    end = made + min(room, int(most)) - (last_child - first_child)
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
def _link_densely(plan: WebPlan, draws: int, page: int, rows: LinkRows, made: int) -> int:
    """Add the links within a farm or a calendar: the page's children, then DENSE_LINKS draws of `pick_inside`."""
    for child in range(plan.child_offsets[page], plan.child_offsets[page + 1]):
        made = add_link(plan.children[child], page, rows, made)
    draw = FIRST_DRAW
    for _ in range(DENSE_LINKS):
        target = pick_inside(plan, draws, draw, page)
        if target != page:
            made = add_link(target, page, rows, made)
        draw += 2
    return made


@helper(i8(PLAN, i8, i8, ROWS, i8))
def _link_menus(plan: WebPlan, page: int, room: int, rows: LinkRows, made: int) -> int:
    """Add links to the first pages of the site (its menu, as far as there is room) and to the page's first siblings."""
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


@helper(i8(PLAN, i8, i8, i8))
def outside_links(plan: WebPlan, draws: int, page: int, wanted: int) -> int:
    """Return the number of links to other sites: 0 on most pages; the others make up the wanted share of all links."""
    if number_in(draws, 2) >= plan.odds[LINKS_OUT]:
        return 0
    share = (1.0 - plan.odds[INSIDE]) / plan.odds[LINKS_OUT] * plan.outward[plan.site[page]]
    return int(wanted * share + number_in(draws, 5))


@helper(i8(PLAN, i8, i8, i8, ROWS, i8))
def link_outside(plan: WebPlan, draws: int, page: int, count: int, rows: LinkRows, made: int) -> int:
    draw = OUTSIDE_DRAW
    for _ in range(count):
        made = add_link(pick_outside(plan, draws, draw, page, rows), page, rows, made)
        draw += 4
    return made


@helper(i8(PLAN, i8, i8, i8))
def pick_inside(plan: WebPlan, draws: int, draw: int, page: int) -> int:
    """Draw a popular page of the site, or a near one: a sibling or the parent of the parent.

    On a farm any page of the site is drawn, on a calendar one of the DENSE_LINKS pages before or after.
    """
    site = plan.site[page]
    kind, which = number_in(draws, draw), number_in(draws, draw + 1)
    if plan.kind[site] != ORDINARY:
        start, end = plan.first[site], plan.first[site + 1]
        if plan.kind[site] == CALENDAR:
            start, end = max(start, page - DENSE_LINKS), min(page + DENSE_LINKS + 1, end)
        return int(start + int(which * (end - start)))
    above = int(plan.parent[page])
    if kind < plan.odds[POPULAR] or above < 0:
        return popular(plan, site, which)
    if which < 0.25 and plan.parent[above] >= 0:
        return int(plan.parent[above])
    start = plan.child_offsets[above]
    return int(plan.children[start + int(which * (plan.child_offsets[above + 1] - start))])


@helper(i8(PLAN, i8, i8, i8, ROWS))
def pick_outside(plan: WebPlan, draws: int, draw: int, page: int, rows: LinkRows) -> int:
    """Draw the target of a link to another site.

    It is a page that the parent links to, or else the home page or a popular page of a drawn site. Large sites are drawn
    more often, and the drawn site may be the page's own.
    """
    above = int(plan.parent[page])
    which = number_in(draws, draw)
    if above >= 0 and number_in(draws, draw + 1) >= plan.odds[OUTSIDE_FRESH]:
        start, end = rows.offsets[above], rows.offsets[above + 1]
        # The links to other sites are the last of a row.
        target = int(rows.targets[end - 1 - int(which * min(8, end - start))])
        if plan.site[target] != plan.site[page]:
            return target
    site = _famous_site(plan.fame_sum, which)
    if number_in(draws, draw + 2) < plan.odds[OUTSIDE_HOME]:
        return int(plan.first[site])
    chance = number_in(draws, draw + 3)
    # Squared, because other sites link mostly to the most popular pages of a site.
    return popular(plan, site, chance * chance)


@helper(i8(_FLOATS, f8))
def _famous_site(fame_sum: Floats, chance: float) -> int:
    """Draw a site by the fame of all its pages: the first site whose sum exceeds the drawn one, by bisection."""
    low, high = 0, len(fame_sum) - 1
    wanted = chance * fame_sum[high]
    while low < high:
        middle = (low + high) // 2
        if fame_sum[middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@helper(i8(PLAN, i8, f8))
def popular(plan: WebPlan, site: int, chance: float) -> int:
    """Draw a page of a site's tree by weight. The weight falls with the page's number as a power law, in steps of a factor 2."""
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
    """Interpolate linearly between the steps of the table."""
    place = chance * (len(table) - 1)
    step = int(place)
    return float(table[step] + (table[step + 1] - table[step]) * (place - step))


@helper(i8(i8, i8, ROWS, i8))
def add_link(target: int, page: int, rows: LinkRows, made: int) -> int:
    """Append the link unless the page already has it."""
    if rows.last_row[target] == page:
        return made
    rows.last_row[target] = page
    rows.targets[made] = target
    return made + 1
