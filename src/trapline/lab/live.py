"""Live crawls of small webs on loopback, for the figures of real crawls: the whole crawler with its store, against `testweb`.

What was fetched, and when, is read from the log of the servers. This module does not know what the papers expect.
"""

import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawl.engine.options import CrawlOptions, live_rules
from trapline.crawl.engine.run import open_crawl
from trapline.crawl.engine.status import INTERRUPTED, CrawlStatus
from trapline.testweb import RequestLog, ServedWeb, serve

OK = 200


@dataclass(frozen=True, slots=True)
class LiveCrawl:
    """The conditions of a live crawl. `per_connection` 0: as many pages as the server allows."""

    strategy: str
    connections: int
    delay_s: float = 0.0
    per_connection: int = 1
    max_pages: float = float("inf")

    @property
    def name(self) -> str:
        k = self.per_connection or "as servers allow"
        end = "" if self.max_pages == float("inf") else f", {self.max_pages:g} pages"
        return f"live {self.strategy}, r = {self.connections}, w = {self.delay_s:g}, k = {k}{end}"


class LiveLog(NamedTuple):
    """The pages that the servers sent, by the end of the answer."""

    page: NDArray[np.int32]
    site: NDArray[np.int32]
    connection: NDArray[np.int32]
    end_s: NDArray[np.float64]  # since the first request
    size: NDArray[np.int64]  # bytes
    requests: int  # for pages, also those that were not answered by a page
    per_connection: NDArray[np.int64]  # [sites] most requests on one connection, also for robots.txt
    used: "UsedTime"


class UsedTime(NamedTuple):
    """The processor time of the crawl loop and the time that passed, from its start until the crawl was closed."""

    user_s: float
    system_s: float
    total_s: float

    @property
    def shares(self) -> tuple[float, float, float]:
        """User, system and idle time as shares of the time that passed.

        >>> UsedTime(1.0, 0.5, 2.0).shares
        (0.5, 0.25, 0.25)
        """
        user, system = self.user_s / self.total_s, self.system_s / self.total_s
        return user, system, max(0.0, 1.0 - user - system)


def crawl_live(web: ServedWeb, crawl: LiveCrawl) -> LiveLog:
    """Serve the web, crawl it from the home pages of its sites, and return the servers' log. Ctrl-C ends the study, not only the crawl."""
    clock = _Clock()
    with serve(web) as server, tempfile.TemporaryDirectory(prefix="trapline-lab-") as folder:
        options = CrawlOptions(
            tuple(server.seed_urls),
            strategy=crawl.strategy,
            connections=crawl.connections,
            rules=live_rules(delay_s=crawl.delay_s, per_connection=crawl.per_connection),
            pause_s=0.0,
            max_pages=crawl.max_pages,
            scope="any",
            allow_private=True,
            hosts={name: (address,) for name, address in server.hosts.items()},
        )
        summary = open_crawl(options, Path(folder) / "crawl", clock.display())
        used = clock.used()
        log = server.log()
    if summary["stopped_by"] == INTERRUPTED:
        raise KeyboardInterrupt
    return _first_answers(log, used)


class _Clock:
    """Measures the time of the crawl loop, which begins at its first status."""

    def __init__(self) -> None:
        self._began: tuple[float, float, float] | None = None

    @contextmanager
    def display(self) -> Iterator[Any]:
        def show(status: CrawlStatus) -> None:
            self._began = self._began or _times()

        yield show

    def used(self) -> UsedTime:
        began = self._began or _times()
        return UsedTime(*(now - before for now, before in zip(_times(), began, strict=True)))


def _times() -> tuple[float, float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime, used.ru_stime, time.monotonic()


def _first_answers(log: RequestLog, used: UsedTime) -> LiveLog:
    """Return the first successful answer for each page, in order of completion."""
    of_pages = log.page >= 0
    sent = np.flatnonzero(of_pages & (log.status == OK) & ~np.isnan(log.end_s))
    sent = sent[np.argsort(log.end_s[sent], kind="stable")]
    first = np.sort(np.unique(log.page[sent], return_index=True)[1])
    rows = sent[first]
    begin = float(log.arrival_s[of_pages].min()) if len(rows) else 0.0
    columns = (log.page[rows], log.site[rows], log.connection[rows], log.end_s[rows] - begin, log.size[rows])
    return LiveLog(*columns, int(np.count_nonzero(of_pages)), _per_connection(log), used)


def _per_connection(log: RequestLog) -> NDArray[np.int64]:
    most = np.zeros(log.web.sites, np.int64)
    pairs, counts = np.unique(np.stack((log.site, log.connection)), axis=1, return_counts=True)
    np.maximum.at(most, pairs[0][pairs[0] >= 0], counts[pairs[0] >= 0])
    return most
