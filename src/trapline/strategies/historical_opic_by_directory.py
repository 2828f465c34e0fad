"""opic-by-directory with an older crawl of the same web: a page begins with what it, or its directory, was worth then.

Page rank: R(p) + H g (h(p) - 1)

R(p), g  the page rank and the mean cash of opic_by_directory.py
h(p)     the PageRank of p in the older crawl, as a multiple of the mean PageRank there. For a page that is new since then:
         (K + sum of h(q)) / (K + n), over the n pages q that were in the older crawl, are in the directory of p and were discovered so far
H        HISTORY_WEIGHT (> 0)
K        HISTORY_SHRINKAGE (pages, > 0)

Site rank: the rank of the best page. Cost: as opic_by_directory.py.
Source: the older crawl as in "historical-pagerank" of Castillo's thesis 4.3.2. How new pages are judged, and the combination, are
ours: docs/learning-order.md.
Differs from the thesis: what the crawl finds changes the rank of an old page too.

A page with three times the mean PageRank of the older crawl, and a new page in a directory with one such page, when the mean cash is 2:

>>> round(prior(3.0, 2.0), 4), round(prior(expected_history(3.0, 1.0), 2.0), 4)
(1.2, 0.3)
"""

from trapline.compiled.jit import shared
from trapline.frontier.layout import RankView
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank, Strategy, opic_by_directory, top_page
from trapline.strategies.opic_by_directory import ALL_CASH, ALL_N, DIRECTORY, learned_cash

COLUMNS = (
    *opic_by_directory.COLUMNS,
    "history_relative",
    # state of a directory, kept by its state page: of its pages that were in the older crawl
    "old_pages",
    "old_history",
)
HISTORY, OLD_N, OLD_HISTORY = range(len(opic_by_directory.COLUMNS), len(COLUMNS))
HISTORY_WEIGHT = 0.3  # H
HISTORY_SHRINKAGE = 3.0  # K, in pages


@shared
def expected_history(total: float, pages: float) -> float:
    """Return h of a new page, from the pages of its directory that are not new: their sum and their number."""
    return (total + HISTORY_SHRINKAGE) / (pages + HISTORY_SHRINKAGE)


@shared
def prior(history: float, common: float) -> float:
    """Return what the older crawl adds to the rank of a page, from h and the mean cash."""
    return HISTORY_WEIGHT * common * (history - 1.0)


@page_rank
def directory_cash_and_history(s: RankView, page: int, source: int, links: int, is_new: bool) -> float:
    c = s.columns
    directory, history = int(c[page, DIRECTORY]), c[page, HISTORY]
    if is_new and history >= 0.0:
        c[directory, OLD_N] += 1.0
        c[directory, OLD_HISTORY] += history
    rank = learned_cash(s, page, source, links, is_new)
    if history < 0.0:
        history = expected_history(c[directory, OLD_HISTORY], c[directory, OLD_N])
    common = (c[0, ALL_CASH] + 1.0) / (c[0, ALL_N] + 1.0)
    return rank + prior(history, common)


PAGE = PageRank(
    "historical-opic-by-directory",
    directory_cash_and_history,
    columns=COLUMNS,
    inputs=("directory_page", "history_relative"),
    hands_on="cash",
    learns=True,
)
STRATEGY = Strategy("historical-opic-by-directory", PAGE, top_page.SITE)
