"""OPIC that learns from directories: the cash of fetched pages says what waiting pages of their directory, and waiting pages found from the
same directory, are worth. Pages of directories that were hardly tried get a bonus.

Page rank: cash(p) - 1 + A a(d) + B a(f) + e (C / (1 + n(d)) + D / (1 + n(f)))

d        the fetched pages in the directory of p
f        the fetched pages that were found from the directory of the page that first linked to p. A seed has no f: both of its terms are 0
cash(p)  the cash of opic.py. A fetched page keeps its cash, and later links add to it. The 1 with which every page begins is subtracted,
         because it says nothing about the page. The order of pages does not need that. A site rank that adds up pages (crawl-ability)
         does: ten pages of which nothing is known would count more than one good page.
n        number of pages of a group, d or f
a        advantage of a group, (S - n g) / (n + K), S = the cash of its pages now (base/advantage.py)
g        (G + 1) / (N + 1), G = the cash of all fetched pages, N = their number: their mean, and 1 before the first fetch
e        max(0, g - 1), about the mean cash that links have brought: so the bonus has the scale of the web
A, B     OWN_WEIGHT, FOUND_WEIGHT (> 0)
C, D     OWN_BONUS, FOUND_BONUS (> 0)
K        SHRINKAGE (pages, > 0)

In a graph without URLs, a directory is a site. Site rank: the rank of the best page.
Cost: O(1) per link; O(log pages of the site) per link to a waiting page, and for at most 8 pages that are ranked again before a
visit (`learns`).
Source: OPIC as in opic.py; means shrunk towards a common one after Robbins 1956 (empirical Bayes); a bonus for what was hardly
tried after Auer, Cesa-Bianchi, Fischer 2002. The combination and its constants are ours: docs/learning-order.md.
Differs from the papers: K is fixed and not estimated, and the bonus falls with 1/n and not with the root of log(t)/n.

A page with cash 1.25, in a directory of which one page was fetched, with cash 3, and found from a directory new to the crawl,
while all fetched pages have 1.5 on average: 0.25 + 0.1 (3 - 1.5)/(1 + 3) + 0.3 * 0 + 0.5 (0.3/2 + 0.1/1):

>>> round(value(1.25, 3.0, 1.0, 0.0, 0.0, 1.5), 4)
0.4125
"""

from trapline.compiled.jit import shared
from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, top_page
from trapline.strategies.base.advantage import advantage

COLUMNS = (
    "directory_page",
    "cash",
    "finding_page",  # 1 + the page that keeps the state of the directory that first linked to the page; 0: none
    "was_fetched",
    # state of a directory, kept by its state page: of its pages, and of the pages that it found
    "own_fetched",
    "own_cash",
    "found_fetched",
    "found_cash",
    # state of the crawl, kept by page 0
    "all_fetched",
    "all_cash",
)
DIRECTORY, CASH, FINDER, WAS_FETCHED, OWN_N, OWN_CASH, FOUND_N, FOUND_CASH, ALL_N, ALL_CASH = range(len(COLUMNS))
OWN_WEIGHT, FOUND_WEIGHT = 0.1, 0.3  # A, B
OWN_BONUS, FOUND_BONUS = 0.3, 0.1  # C, D
SHRINKAGE = 3.0  # K, in pages
SEED_N = 1e12  # n(f) of a seed: no bonus


@shared
def value(cash: float, own: float, own_n: float, found: float, found_n: float, common: float) -> float:
    """Return the rank of a page from its cash, the cash and the sizes of its two groups, and the mean cash of all."""
    bonus = OWN_BONUS / (1.0 + own_n) + FOUND_BONUS / (1.0 + found_n)
    of_own, of_found = advantage(own, own_n, common, SHRINKAGE), advantage(found, found_n, common, SHRINKAGE)
    learned = OWN_WEIGHT * of_own + FOUND_WEIGHT * of_found
    return cash - 1.0 + learned + max(0.0, common - 1.0) * bonus


@shared
def learned_cash(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    """Take a link, or the news that the page was fetched, into account. Return the rank of the page."""
    c = s.columns
    if is_new:
        c[page, CASH] = 1.0
        if source >= 0 and c[source, WAS_FETCHED] > 0.0:  # not a page of another partition, whose directory is unknown
            c[page, FINDER] = c[source, DIRECTORY] + 1.0
    own, finder = int(c[page, DIRECTORY]), int(c[page, FINDER]) - 1
    arrived = 0.0
    if source == page and links == 0:  # the page was fetched
        c[page, WAS_FETCHED] = 1.0
        arrived = c[page, CASH]
        c[own, OWN_N] += 1.0
        c[0, ALL_N] += 1.0
        if finder >= 0:
            c[finder, FOUND_N] += 1.0
    elif source >= 0:
        share = c[source, CASH] / links
        c[page, CASH] += share
        arrived = share if c[page, WAS_FETCHED] > 0.0 else 0.0
    if arrived > 0.0:
        c[own, OWN_CASH] += arrived
        c[0, ALL_CASH] += arrived
        if finder >= 0:
            c[finder, FOUND_CASH] += arrived
    common = (c[0, ALL_CASH] + 1.0) / (c[0, ALL_N] + 1.0)
    found_cash, found_n = (c[finder, FOUND_CASH], c[finder, FOUND_N]) if finder >= 0 else (SEED_N * common, SEED_N)
    return value(c[page, CASH], c[own, OWN_CASH], c[own, OWN_N], found_cash, found_n, common)


@page_rank
def directory_cash(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    return learned_cash(s, page, source, links, is_new)


PAGE = PageRank(
    "opic-by-directory",
    directory_cash,
    columns=COLUMNS,
    inputs=("directory_page",),
    hands_on="cash",
    learns=True,
)
STRATEGY = Strategy("opic-by-directory", PAGE, top_page.SITE)
