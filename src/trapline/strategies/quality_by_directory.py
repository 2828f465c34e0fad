"""Orders pages by what directories and linking pages say about their quality: the learning order on qualities.

Page rank: g + A a(l) + B a(d) + C a(f)

l  the fetched pages that link to p
d  the fetched pages in the directory of p
f  the fetched pages that were found from the directory of the page that first linked to p; a(f) = 0 for a seed
a  advantage of a group, (S - n g) / (n + K), S = the sum of the qualities of its pages, n = their number (base/advantage.py)
g  (Q + 1) / (N + 1), Q = the sum of all qualities, N = their number
A, B, C  LINK_WEIGHT, OWN_WEIGHT, FOUND_WEIGHT (> 0)
K  SHRINKAGE (pages, > 0)

Only fetched pages whose quality is known (>= 0) count. In a graph without URLs, a directory is a site. Site rank: the rank of the best
page.
Cost: O(1) per link; O(log pages of the site) per link to a waiting page, and for at most 8 pages that are ranked again before a
visit (`learns`).
Source: the groups and the shrunk means of opic_by_directory.py; links as in mean_parent_quality.py. The combination and its constants
are ours: docs/content-quality.md.

A page that a page of quality 0.9 links to, in a directory with one fetched page of quality 0.8, while the mean is 0.5 and f is empty:
0.5 + 1.0 (0.9 - 0.5)/(1 + 3) + 0.5 (0.8 - 0.5)/(1 + 3):

>>> round(value(0.5, 0.9, 1.0, 0.8, 1.0, 0.0, 0.0), 4)
0.6375
"""

from trapline.compiled.jit import shared
from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page
from trapline.strategies.base.advantage import advantage

COLUMNS = (
    "directory_page",
    "fetched_quality",
    "finding_page",  # 1 + the page that keeps the state of the directory that first linked to the page; 0: none
    "link_sum",
    "link_pages",
    # state of a directory, kept by its state page: of its pages, and of the pages that it found
    "own_sum",
    "own_pages",
    "found_sum",
    "found_pages",
    # state of the crawl, kept by page 0
    "all_sum",
    "all_pages",
)
DIRECTORY, QUALITY, FINDER, LINKS, LINK_N, OWN, OWN_N, FOUND, FOUND_N, ALL, ALL_N = range(len(COLUMNS))
LINK_WEIGHT, OWN_WEIGHT, FOUND_WEIGHT = 1.0, 0.5, 0.5  # A, B, C
SHRINKAGE = 3.0  # K, in pages


@shared
def value(common: float, links: float, link_n: float, own: float, own_n: float, found: float, found_n: float) -> float:
    """Return the rank of a page from the mean of all, and from the sums and the sizes of its three groups."""
    return (
        common
        + LINK_WEIGHT * advantage(links, link_n, common, SHRINKAGE)
        + OWN_WEIGHT * advantage(own, own_n, common, SHRINKAGE)
        + FOUND_WEIGHT * advantage(found, found_n, common, SHRINKAGE)
    )


@page_rank
def directory_quality(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    c = s.columns
    is_here = 0 <= source < s.run[0].pages  # a page of another partition has no directory here
    if is_new and is_here:
        c[page, FINDER] = c[source, DIRECTORY] + 1.0
    own, finder = int(c[page, DIRECTORY]), int(c[page, FINDER]) - 1
    if source == page and links == 0:  # the page was fetched, or its quality is known now
        if c[page, QUALITY] >= 0.0:
            c[own, OWN] += c[page, QUALITY]
            c[own, OWN_N] += 1.0
            c[0, ALL] += c[page, QUALITY]
            c[0, ALL_N] += 1.0
            if finder >= 0:
                c[finder, FOUND] += c[page, QUALITY]
                c[finder, FOUND_N] += 1.0
    elif is_here and c[source, QUALITY] >= 0.0:
        c[page, LINKS] += c[source, QUALITY]
        c[page, LINK_N] += 1.0
    common = (c[0, ALL] + 1.0) / (c[0, ALL_N] + 1.0)
    found, found_n = (c[finder, FOUND], c[finder, FOUND_N]) if finder >= 0 else (0.0, 0.0)
    return value(common, c[page, LINKS], c[page, LINK_N], c[own, OWN], c[own, OWN_N], found, found_n)


PAGE = PageRank(
    "quality-by-directory",
    directory_quality,
    columns=COLUMNS,
    inputs=("directory_page", "fetched_quality"),
    learns=True,
)
STRATEGY = Strategy("quality-by-directory", PAGE, top_page.SITE)
