"""The outbox: what happened since the last batch, on its way to the store. It decides when a batch is full, and nothing else.

Who fills it: known.py (sites, pages, what counts as a seed), crawler.py (fetches, sites given up), robots_file.py (robots.txt),
hearing.py (signals, what lists tell), snapshots.py (what may be forgotten), upkeep.py (copies that others had). Who empties it: `flush`,
to the store. How the crawl stands and the logs of the frontier and of the refresher go with it: a batch is what happened between two
moments, all of it.
"""

from collections.abc import Callable, Sequence

from trapline.crawl.records import (
    Batch,
    Between,
    Fetched,
    GivenUp,
    KeptCopy,
    Progress,
    RobotsFetched,
    SignalNoted,
    Told,
)
from trapline.frontier.journal import Journal

# A commit costs the store about a millisecond, so a page's share of it is small from some dozens on; more only delays the
# moment from which a page counts as fetched.
FETCHES = 48
BYTES = 1 << 20

Stands = tuple[Progress | None, Sequence[tuple[str, int]]]  # and links left out so far, by reason


class Outbox:
    def __init__(
        self,
        journal: Journal,
        put: Callable[[Batch], None],
        last_batch: int = 0,
        refresh_log: Callable[[], bytes] = bytes,
        between: Callable[[], Between] = Between,
    ) -> None:
        """`refresh_log`, `between`: what there is since they were last asked."""
        self._journal, self._put, self._refresh_log, self._between = journal, put, refresh_log, between
        self.number = last_batch  # of the last batch that was sent
        self.log_bytes = 0  # of both logs, sent so far
        self.stands: Callable[[], Stands] = lambda: (None, ())  # how the crawl stands; whoever runs it says so
        self._bytes = 0
        self._empty()

    def _empty(self) -> None:
        self.sites: list[tuple[int, str]] = []
        self.addresses: list[tuple[int, str]] = []
        self.pages: list[tuple[int, int, str]] = []
        self.fetches: list[Fetched] = []
        self.robots: list[RobotsFetched] = []
        self.given_up: list[GivenUp] = []
        self.signals: list[SignalNoted] = []
        self.told: list[Told] = []
        self.whole: set[int] | None = None
        self.inbox: tuple[str, int] | None = None
        self.forget = 0
        self.copies: list[tuple[int, KeptCopy]] = []
        self.seeds: list[tuple[str, int]] = []
        self._bytes = 0

    @property
    def has_news(self) -> bool:
        """Whether anything happened that is more than a look at the clock: the logs alone can wait."""
        return bool(
            self.fetches
            or self.pages
            or self.signals
            or self.robots
            or self.sites
            or self.addresses
            or self.given_up
            or self.told
            or self.whole is not None
            or self.inbox is not None
            or self.copies
            or self.seeds
        )

    def fetched(self, record: Fetched) -> None:
        self.fetches.append(record)
        self._bytes += len(record.wire)
        if len(self.fetches) >= FETCHES or self._bytes >= BYTES:
            self.flush()

    def flush(self, is_due: bool = False) -> None:
        """Send what there is, if there is anything. `is_due`: how the crawl stands is reason enough.

        Every batch says how the crawl stands after it: what a kill leaves behind is then counted to the last committed page.
        """
        between = self._between()  # first: links that go out are those of pages in this batch
        calls, refresh = self._journal.take(), self._refresh_log()
        if not (calls or refresh or is_due or self.has_news or any(between)):
            return
        progress, left_out = self.stands()
        self.log_bytes += len(calls) + len(refresh)
        self.number += 1
        batch = Batch(
            self.number,
            self.sites,
            self.addresses,
            self.pages,
            self.fetches,
            self.robots,
            calls,
            progress,
            self.given_up,
            left_out,
            refresh,
            self.signals,
            self.told,
            None if self.whole is None else sorted(self.whole),
            self.inbox,
            between,
            self.forget,
            self.copies,
            self.seeds,
        )
        self._empty()
        self._put(batch)
