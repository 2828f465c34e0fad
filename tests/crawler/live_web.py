"""Live crawls of webs on loopback, for tests: the whole crawler with its store, and the requests that the servers logged."""

import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.crawler.engine.run import open_crawl
from trapline.crawler.engine.status import CrawlStatus
from trapline.testweb import Findings, Promise, RequestLog, ServedWeb, check, serve

Rows = list[tuple[Any, ...]]


@contextmanager
def silence() -> Iterator[Any]:
    def show(status: CrawlStatus) -> None:
        pass

    yield show


@contextmanager
def until(reached: Callable[[CrawlStatus], bool]) -> Iterator[Any]:
    """Interrupt the crawl, as Ctrl-C would, once `reached` holds: a limit in seconds would be too short on a busy machine."""
    sent = False

    def show(status: CrawlStatus) -> None:
        nonlocal sent
        if not sent and reached(status):
            sent = True
            signal.raise_signal(signal.SIGINT)

    yield show


def refetched(pages: int, refetches: int = 0) -> Callable[[CrawlStatus], bool]:
    """Say whether so many pages were fetched, and so many times one of them again."""

    def reached(status: CrawlStatus) -> bool:
        again = status.refetches
        return status.progress.pages >= pages and (again is None or again.fetched >= refetches)

    return reached


@dataclass(frozen=True)
class Crawled:
    folder: Path
    summary: dict[str, Any]

    def rows(self, sql: str) -> Rows:
        with closing(sqlite3.connect(self.folder / "crawl.db")) as database:
            return database.execute(sql).fetchall()

    def fetched(self) -> set[str]:
        """Return the URLs of the fetched pages, redirects included."""
        return {url for (url,) in self.rows("select url from page join fetch on page = page.id where result = 3")}

    def last(self) -> dict[str, tuple[int, int, str]]:
        """Return result, status and error of the last try of each page."""
        sql = "select url, result, status, error from fetch join page on page.id = page order by seq"
        return {url: tuple(rest) for url, *rest in self.rows(sql)}

    def errors(self) -> Counter[str]:
        return Counter(self.summary["errors_by_kind"])


def crawled(
    folder: Path,
    seeds: Sequence[str],
    hosts: Mapping[str, str | tuple[str, ...]],
    display: AbstractContextManager[Any] | None = None,
    **options: Any,
) -> Crawled:
    """Crawl to the end. `options` takes rules (delay_s, ...) and options alike."""
    fields = CrawlOptions.__dataclass_fields__
    rules = {name: options.pop(name) for name in list(options) if name not in fields}
    addresses = {name: (where,) if isinstance(where, str) else where for name, where in hosts.items()}
    options = {"allow_private": True, "pause_s": 0.0, "connections": 64, **options}
    options.setdefault("scope", "any")
    crawl_options = CrawlOptions(
        tuple(seeds), rules=live_rules(**{"delay_s": 0.0, **rules}), hosts=addresses, **options
    )
    return Crawled(folder, open_crawl(crawl_options, folder, display or silence()))


@dataclass(frozen=True)
class Seen:
    """A crawl, and the requests to its testweb."""

    crawl: Crawled
    log: RequestLog
    findings: Findings


def crawled_web(folder: Path, web: ServedWeb, promise: Promise, **options: Any) -> Seen:
    """Crawl all sites of a web and check the requests against `promise`."""
    with serve(web) as server:
        crawl = crawled(
            folder,
            server.seed_urls,
            server.hosts,
            **{
                "delay_s": promise.delay_s,
                "pause_s": promise.pause_s,
                "per_connection": promise.per_connection,
                **options,
            },
        )
        log = server.log()
    return Seen(crawl, log, check(log, promise))
