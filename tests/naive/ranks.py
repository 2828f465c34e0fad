"""The page ranks and site ranks that the oracle knows, written from their formulas.

A page rank keeps what it learns in the page's `columns`, so that a page that moves takes it along. A site rank is a
function of the site's estimates and of what it sees of the site's queue; `reads` names the values whose change calls
for a new evaluation.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Queue(NamedTuple):
    """What a site rank sees of the pages that wait at a site."""

    waiting: int
    best_key: float
    best_serial: int
    planned: int
    quality_sum: float

    def read(self, names: tuple[str, ...]) -> tuple[object, ...]:
        """The values that `names` declare; `best` is a pair."""
        return tuple((self.best_key, self.best_serial) if name == "best" else getattr(self, name) for name in names)


class PageRank(NamedTuple):
    constant: bool
    rank: Callable[..., float]
    inputs: tuple[str, ...] = ()  # columns that the caller gives


class SiteRank(NamedTuple):
    reads: tuple[str, ...]
    rank: Callable[[Any, int, Queue], float]


def fifo_page(pages: Any, page: int, source: int, links: int, is_new: bool) -> float:
    return 0.0


def opic(pages: Any, page: int, source: int, links: int, is_new: bool) -> float:
    """Cash: 1 when new; a fetched page gives each of its links an equal share of its own."""
    columns = pages[page].columns
    if is_new:
        columns["cash"] = 1.0
    if source >= 0:
        columns["cash"] += pages[source].columns["cash"] / links
    return float(columns["cash"])


def quality(pages: Any, page: int, source: int, links: int, is_new: bool) -> float:
    return float(pages[page].columns["quality"])


def fifo_site(frontier: Any, site: int, queue: Queue) -> float:
    return -float(queue.best_serial)


def top_page(frontier: Any, site: int, queue: Queue) -> float:
    return queue.best_key


def larger_sites_first(frontier: Any, site: int, queue: Queue) -> float:
    return float(queue.waiting)


def crawl_ability(frontier: Any, site: int, queue: Queue) -> float:
    """C = AQ / T, T = 2 * connection + planned * response / p (cao 4.2, 4.4)."""
    p = 1.2 if frontier.rules.pipelining else 1.0
    seconds = 2.0 * frontier.connection_s(site) + queue.planned * frontier.response_s(site) / p
    return float(queue.quality_sum / seconds)


PAGE_RANKS = {
    "fifo": PageRank(constant=True, rank=fifo_page),
    "opic": PageRank(constant=False, rank=opic),
    "quality": PageRank(constant=True, rank=quality, inputs=("quality",)),
}

SITE_RANKS = {
    "fifo": SiteRank(("best",), fifo_site),
    "top-page": SiteRank(("best",), top_page),
    "larger-sites-first": SiteRank(("waiting",), larger_sites_first),
    "crawl-ability": SiteRank(("planned", "quality_sum"), crawl_ability),
}
