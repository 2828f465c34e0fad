"""The types of a strategy: a page rank and a site rank, each a compiled function with a record of what it needs."""

from dataclasses import dataclass

from trapline.compiled.jit import Rank
from trapline.errors import ConfigError
from trapline.frontier.layout import (
    FIFO,
    HEAP,
    NEXT_VISIT,
    READS_BEST,
    READS_OLDEST,
    READS_PLANNED,
    READS_SUM,
    READS_WAITING,
    Array,
)
from trapline.frontier.ranking import PAGE_RANK, SITE_RANK

READS = {
    "waiting": READS_WAITING,
    "best": READS_BEST,
    "oldest": READS_OLDEST,
    "planned": READS_PLANNED,
    "quality_sum": READS_SUM,
}


def _check_function(name: str, function: object, signature: object, decorator: str) -> None:
    if not isinstance(function, Rank) or function.signature != signature:
        raise ConfigError(f"rank {name!r}: its function is not decorated with @{decorator}; add the decorator")


@dataclass(frozen=True, slots=True)
class PageRank:
    """The order of the pages of a site.

    `columns`: names of the numbers that the rank keeps for each page, in `s.columns[page, 0]` and so on. `inputs`: those
    columns that the caller must set. `constant`: a further link to a page does not change its rank. `fifo`: all pages have
    the same rank (0), so that a list can be the queue. `scores`: the column for the scores of all pages; the caller
    computes them from the pages fetched so far, whenever they are due. `batched`: scores are due before every batch is
    chosen. `hands_on`: the column that a page splits among its links, so that links from another partition can carry
    their shares. `learns`: the rank is also called when a page was fetched (`source` is the page itself, `links` 0), and
    at links to fetched pages; what it learns there may change the ranks of other pages (frontier/core/learning.py).
    """

    name: str
    function: Rank
    columns: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    constant: bool = False
    fifo: bool = False
    scores: str = ""
    batched: bool = False
    hands_on: str = ""
    learns: bool = False

    def __post_init__(self) -> None:
        _check_function(self.name, self.function, PAGE_RANK, "page_rank")
        if self.hands_on and self.hands_on not in self.columns:
            raise ConfigError(
                f"page rank {self.name!r}: hands_on {self.hands_on!r} is not one of its columns; add it to columns"
            )
        for name in self.inputs:
            if name not in self.columns:
                raise ConfigError(
                    f"page rank {self.name!r}: the input {name!r} is not one of its columns; add it to columns"
                )
        if self.scores and (self.scores not in self.columns or self.scores in self.inputs):
            raise ConfigError(f"page rank {self.name!r}: its scores {self.scores!r} must be a column and not an input")

    @property
    def page_columns(self) -> tuple[int, ...]:
        """Indices of the columns that hold page numbers, which are valid in one frontier only: their names end in `_page`."""
        return tuple(at for at, name in enumerate(self.columns) if name.endswith("_page"))

    @property
    def handed_on(self) -> int:
        """Index of the column that pages hand on; -1: none."""
        return self.columns.index(self.hands_on) if self.hands_on else -1


@dataclass(frozen=True, slots=True)
class SiteRank:
    """The order of sites. `reads`: the values of the queue that the rank depends on (READS)."""

    name: str
    function: Rank
    reads: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_function(self.name, self.function, SITE_RANK, "site_rank")
        for name in self.reads:
            if name not in READS:
                raise ConfigError(f"site rank {self.name!r} reads {name!r}; it can read {', '.join(READS)}")


@dataclass(frozen=True, slots=True)
class Strategy:
    """A named pair of a page rank and a site rank."""

    name: str
    page: PageRank
    site: SiteRank

    @property
    def queue(self) -> int:
        """Kind of site queue that the two ranks need, without batches."""
        if "quality_sum" in self.site.reads:
            return NEXT_VISIT
        return FIFO if self.page.fifo else HEAP

    def bind(self, run: Array) -> None:
        """Write into the frontier's state what its kernels need of the strategy. Addresses are valid in this process only."""
        run[0].page_rank = self.page.function.address
        run[0].site_rank = self.site.function.address
        # Chosen pages join a batch out of order, so a fifo list cannot hold them.
        run[0].queue = HEAP if self.queue == FIFO and run[0].batch > 0 else self.queue
        run[0].reads = sum(READS[name] for name in self.site.reads)
        run[0].constant = int(self.page.constant or self.page.fifo)
        run[0].scores = bool(self.page.scores)
        run[0].batched = self.page.batched
        run[0].learns = self.page.learns
        # Among pages of equal rank the best page is the oldest one, so its serial is enough and no heap by age is needed.
        run[0].ages = "oldest" in self.site.reads and not self.page.fifo
        if "oldest" in self.site.reads and self.page.fifo:
            run[0].reads |= READS_BEST
