"""The outbox collects everything that happened since the last batch, for the store. It decides only when a batch is full.

These modules add to it: crawler/discovery/link_resolver.py (sites, pages, seeds), crawler/engine/fetch_results.py (fetches),
crawler/engine/crawler.py (abandoned sites), crawler/robots/site_robots.py (robots.txt), crawler/recrawl/signal_recorder.py (signals),
crawler/recrawl/signal_recorder.py (listed pages), crawler/recrawl/list_queue.py (published lists),
crawler/requisites/requisite_queue.py (requisites), crawler/engine/content_quality.py (scores),
crawler/files/checkpoint.py (which logs may be deleted),
crawler/recrawl/conditional_refetch.py (copies from other partitions), crawler/engine/status_reporter.py (the pace). `flush` sends it to
the store and empties it. The progress of the crawl and the logs of the frontier and of the refresher are part of a batch: a
batch is all that happened between two moments.
"""

from collections.abc import Callable, Sequence

from trapline.crawler.engine.records import (
    AbandonedSite,
    Batch,
    CrawlProgress,
    Fetched,
    KeptCopy,
    ListedPage,
    PageRequisite,
    PartitionTraffic,
    PublishedList,
    RobotsFetched,
    SignalNoted,
)
from trapline.frontier.journal import Journal
from trapline.processor import ProcessorTime

# A commit costs the store about a millisecond, so from some dozens of pages on the share of each page is small. A
# larger batch would only delay the moment from which its pages count as fetched.
FETCHES = 48
BYTES = 1 << 20
_LARGEST = 8  # batches of a crawl with many partitions are at most so many times as large


def batch_factor(partitions: int) -> int:
    """Return how many times as large batches are in a crawl of several partitions. Each batch may have a message to each other partition.
    A message takes about a millisecond of processor time, however few links it has.

    >>> [batch_factor(partitions) for partitions in (1, 4, 8, 16, 64)]
    [1, 1, 2, 4, 8]
    """
    return min(max(partitions // 4, 1), _LARGEST)


Stands = tuple[CrawlProgress | None, Sequence[tuple[str, int]]]  # progress; links rejected so far, by reason


class Outbox:
    def __init__(
        self,
        journal: Journal,
        put: Callable[[Batch], None],
        last_batch: int = 0,
        refresh_log: Callable[[], bytes] = bytes,
        traffic: Callable[[], PartitionTraffic] = PartitionTraffic,
        partitions: int = 1,
    ) -> None:
        """`refresh_log`, `traffic`: return the log and the traffic with other partitions since they were last called. `partitions`:
        their number, this one included."""
        self._journal, self._put, self._refresh_log, self._traffic = journal, put, refresh_log, traffic
        self.number = last_batch  # number of the last batch that was sent
        self.last_fetch = (
            0  # number of the last fetch that was sent, as in crawl.db; set by its owner, if it uses numbers
        )
        self.log_bytes = 0  # bytes of both logs sent so far
        self.stands: Callable[[], Stands] = lambda: (None, ())  # returns the status of the crawl; set by its owner
        self.before_flush: Callable[[], None] = lambda: None  # adds what a batch has to have; set by the link resolver
        # Returns the loop's processor time; set by its owner.
        self.processor: Callable[[], ProcessorTime | None] = lambda: None
        # Returns an entry of `Batch.origins` for a page; set by its owner, if the log needs them.
        self.origin_of: Callable[[int], tuple[int, int]] | None = None
        factor = batch_factor(partitions)
        self._most_fetches, self._most_bytes = factor * FETCHES, factor * BYTES
        self._bytes = 0
        self._empty()

    def _empty(self) -> None:
        self.sites: list[tuple[int, str]] = []
        self.addresses: list[tuple[int, str]] = []
        self.pages: list[tuple[int, int, str]] = []
        self.fetches: list[Fetched] = []
        self.origins: list[tuple[int, int]] = []
        self.robots: list[RobotsFetched] = []
        self.abandoned_sites: list[AbandonedSite] = []
        self.signals: list[SignalNoted] = []
        self.listed_pages: list[ListedPage] = []
        self.whole: set[int] | None = None
        self.inbox: tuple[str, int] | None = None
        self.forget = 0
        self.copies: list[tuple[int, KeptCopy]] = []
        self.seeds: list[tuple[str, int]] = []
        self.published_lists: list[PublishedList] = []
        self.meta: dict[str, str | None] = {}
        self.requisites: list[PageRequisite] = []
        self.qualities: list[tuple[int, int, float]] = []
        self._bytes = 0

    @property
    def has_news(self) -> bool:
        """Whether there is anything besides the logs, which can wait: they also record mere looks at the clock."""
        return bool(
            self.fetches
            or self.pages
            or self.signals
            or self.robots
            or self.sites
            or self.addresses
            or self.abandoned_sites
            or self.listed_pages
            or self.whole is not None
            or self.inbox is not None
            or self.copies
            or self.seeds
            or self.published_lists
            or self.requisites
            or self.qualities
        )

    @property
    def next_fetch(self) -> int:
        """The number in crawl.db of the fetch that comes next."""
        return self.last_fetch + len(self.fetches) + 1

    def fetched(self, record: Fetched) -> None:
        self.fetches.append(record)
        if self.origin_of is not None:
            self.origins.append(self.origin_of(record.page))
        self._bytes += len(record.wire)
        if len(self.fetches) >= self._most_fetches or self._bytes >= self._most_bytes:
            self.flush()

    def flush(self, is_due: bool = False) -> None:
        """Send the contents as a batch, if there are any. `is_due`: send a batch even if it has only the crawl's progress.

        Every batch includes the progress of the crawl after it, so that after a kill the counts match the last committed page.
        """
        self.before_flush()
        traffic = self._traffic()  # before the logs, because outgoing links are those of pages in this batch
        calls, refresh = self._journal.take(), self._refresh_log()
        if not (calls or refresh or is_due or self.has_news or any(traffic)):
            return
        progress, rejected_links = self.stands()
        self.log_bytes += len(calls) + len(refresh)
        self.number += 1
        self.last_fetch += len(self.fetches)
        batch = Batch(
            self.number,
            self.sites,
            self.addresses,
            self.pages,
            self.fetches,
            self.robots,
            calls,
            progress,
            self.abandoned_sites,
            rejected_links,
            refresh,
            self.signals,
            self.listed_pages,
            None if self.whole is None else sorted(self.whole),
            self.inbox,
            traffic,
            self.forget,
            self.copies,
            self.seeds,
            self.processor(),
            self.published_lists,
            self.meta,
            self.requisites,
            self.origins,
            self.qualities,
        )
        self._empty()
        self._put(batch)
