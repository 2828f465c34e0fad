"""Crawls in an order of your own: python examples/own_strategy.py https://example.org/

Of the known pages, the one with the most links per level of depth comes first. Commands accept the file as a strategy too:
trapline compare python-docs breadth-first examples/own_strategy.py. More on ranks: docs/how-to/add-a-strategy.md.
"""

import sys

import trapline
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, site_rank_named


@page_rank
def links_per_level(s, page, source, links, is_new):
    """Called when the page is found, and for each further link to it. `columns` keeps one number per page."""
    s.columns[page, 0] = 1.0 if is_new else s.columns[page, 0] + 1.0
    return s.columns[page, 0] / (1.0 + s.page[page].depth)


STRATEGY = Strategy(
    "links-per-level",
    PageRank("links-per-level", links_per_level, columns=("links",)),
    site_rank_named("larger-sites-first"),
)

if __name__ == "__main__":
    for page in trapline.crawl(sys.argv[1], strategy=__file__, max_pages=1_000):
        print(page.depth, page.url)
