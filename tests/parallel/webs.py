"""Small random webs: pages on sites, with links to any page. The first pages are the home pages of the sites."""

import numpy as np
from hypothesis import strategies as st

from trapline.graph import Graph

MOST_SITES, MOST_PAGES = 7, 30


def web_of(sites: int, site_of: list[int], links: list[list[int]], groups: list[int] | None = None) -> Graph:
    """Return a graph of these pages, the first of which are the home pages."""
    assert site_of[:sites] == list(range(sites))
    rows = [list(dict.fromkeys(targets)) for targets in links]
    offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    targets = np.array([target for row in rows for target in row], np.int32)
    site, home = np.array(site_of, np.int32), np.arange(sites, dtype=np.int32)
    ips = np.array(range(sites) if groups is None else groups, np.int32)
    return Graph(offsets, targets, site, home, np.zeros(len(site), np.uint8), ips)


def links_of(web: Graph) -> list[list[int]]:
    return [web.targets_of(page).tolist() for page in range(web.pages)]


@st.composite
def webs(draw: st.DrawFn) -> Graph:
    sites = draw(st.integers(1, MOST_SITES))
    pages = draw(st.integers(sites, MOST_PAGES))
    others = draw(st.lists(st.integers(0, sites - 1), min_size=pages - sites, max_size=pages - sites))
    some = st.lists(st.integers(0, pages - 1), max_size=6)
    links = draw(st.lists(some, min_size=pages, max_size=pages))
    groups = draw(st.lists(st.integers(0, 2), min_size=sites, max_size=sites))
    dense = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    return web_of(sites, [*range(sites), *others], links, [dense[group] for group in groups])
