"""Live crawls of small webs on loopback, for the figures of real crawls: the whole crawler with its store, against `testweb`.

What was fetched, and when, is read from the log of the servers. This module does not know what the papers expect.
"""

import math
import signal
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.crawler.engine.run import open_crawl
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.engine.stop_reasons import DRAINED, INTERRUPTED, MAX_PAGES, TERMINATED
from trapline.errors import TraplineError
from trapline.processor import ProcessorTime, processor_clock
from trapline.testweb import RequestLog, ServedWeb, serve

OK = 200


@dataclass(frozen=True, slots=True)
class LiveConditions:
    """What a live crawl is run with. `per_connection` 0: as many pages as the server allows."""

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
    used: ProcessorTime  # of the crawl loop, from its start until the crawl was closed


def crawl_live(web: ServedWeb, crawl: LiveConditions) -> LiveLog:
    """Serve the web, crawl it from the home pages of its sites, and return the servers' log."""
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
        used = run_crawl(options, Path(folder) / "crawl")
        log = server.log()
    return _first_answers(log, used)


def run_crawl(options: CrawlOptions, folder: Path, enough: float = math.inf) -> ProcessorTime:
    """Crawl to the end. Return the processor time of this process since the first status, when the crawl loop begins. Ctrl-C and
    SIGTERM end the study, not only the crawl.

    `enough`: stop the crawl when this many pages are complete, and abort the pages in flight. The crawl fetches some pages
    more, because it looks twice a second. With `max_pages` instead, a crawl that has enough pages complete or in flight
    requests no others and waits for the slowest of them, which a simulated crawl does not.
    """
    clock: Callable[[], ProcessorTime] | None = None
    expected = [DRAINED, MAX_PAGES]

    def show(status: CrawlStatus) -> None:
        nonlocal clock
        clock = clock or processor_clock()
        if status.progress.pages >= enough and status.progress.active:
            expected.append(TERMINATED)
            signal.raise_signal(signal.SIGTERM)  # the second one aborts the pages in flight: crawler/engine/run.py

    stopped_by = open_crawl(options, folder, nullcontext(show))["stopped_by"]
    if stopped_by in (INTERRUPTED, TERMINATED) and stopped_by not in expected:
        raise KeyboardInterrupt
    if stopped_by not in expected:
        raise TraplineError(f"the live crawl was stopped by {stopped_by}; run it again")
    return (clock or processor_clock())()


def _first_answers(log: RequestLog, used: ProcessorTime) -> LiveLog:
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
