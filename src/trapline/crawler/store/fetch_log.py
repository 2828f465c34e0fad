"""One line of crawl.log per fetch and per robots.txt: with --log-level debug in JSON, with --log-format heritrix always.

The store writes the lines after each commit, with one write, from the rows that the commit has filed. Otherwise nothing is made.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from trapline.crawler.engine.records import Batch, Fetched, RobotsFetched
from trapline.crawler.files.event_log import HERITRIX, LOG, LogFile, event_line
from trapline.crawler.store.filing import ROBOTS_MIME, Row
from trapline.crawler.store.heritrix_line import (
    NOTHING,
    LoggedFetch,
    annotations_of,
    path_of,
    status_of,
    status_of_abandoned,
)
from trapline.crawler.store.settings import StoreSettings
from trapline.crawler.store.warc import base32
from trapline.fetch import failure

_DIGEST = 11  # in a row of `fetch`, as Filing.page makes it
_MOST_KNOWN = 4096  # URLs of referrers that are kept for the next lines
_NO_ORIGIN = (0, -1)
_Lines = Callable[[Sequence[Batch], Sequence[Row], Sequence[str]], Iterator[bytes]]


class FetchLogWriter:
    def __init__(self, folder: Path, settings: StoreSettings, database: sqlite3.Connection) -> None:
        """`database`: that of the crawl, which knows the URLs of referrers."""
        self._file = LogFile(folder / LOG, settings.log_bytes)
        self._lines: _Lines | None = None
        if settings.log_format == HERITRIX:
            self._lines = _HeritrixLines(database).lines
        elif settings.log_level == "debug":
            self._lines = _json_lines

    def committed(self, batches: Sequence[Batch], rows: Sequence[Row], profiles: Sequence[str]) -> None:
        """Write the lines of these batches, which are in the database. `rows`: of the table `fetch`, one for each of their fetches.
        `profiles`: of their revisit records, "": there is none."""
        if self._lines is not None and (lines := b"".join(self._lines(batches, rows, profiles))):
            self._file.append(lines)


def _json_lines(batches: Sequence[Batch], rows: Sequence[Row], profiles: Sequence[str]) -> Iterator[bytes]:
    row = iter(rows)
    for batch in batches:
        for robots in batch.robots:
            yield _event("robots", robots)
        for fetched in batch.fetches:
            digest = next(row)[_DIGEST]
            yield _event("fetch", fetched, mime=fetched.mime, digest=f"sha1:{base32(digest)}" if digest else "")


def _event(event: str, f: Fetched | RobotsFetched, **fields: str) -> bytes:
    size, seconds = len(f.wire), round(f.total_s, 6)
    about = {"url": f.url, "status": f.status, "bytes": size, "seconds": seconds, "error": f.error, **fields}
    return event_line("debug", event, f"{f.status or f.error} {f.url}", about, f.started + f.total_s)


class _HeritrixLines:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._urls: dict[int, str] = {}

    def lines(self, batches: Sequence[Batch], rows: Sequence[Row], profiles: Sequence[str]) -> Iterator[bytes]:
        now, filed = time.time(), iter(zip(rows, profiles, strict=True))
        for batch in batches:
            for site, _, kind, _ in batch.abandoned_sites:
                if (status := status_of_abandoned(kind)) is not None:
                    yield LoggedFetch(now, status, None, self._abandoned_url(site, kind), path_of(0, "P")).line()
            for robots in batch.robots:
                yield _robots(robots, now).line()
            origins = batch.origins or [_NO_ORIGIN] * len(batch.fetches)
            for fetched, (depth, via) in zip(batch.fetches, origins, strict=True):
                row, profile = next(filed)
                page = _logged(fetched, now, row[_DIGEST], path_of(depth))
                annotations = annotations_of(fetched.truncated, profile)
                yield page._replace(via=self._url(via if depth else -1), annotations=annotations).line()

    def _url(self, page: int) -> str:
        if page < 0:
            return NOTHING
        if page not in self._urls:
            if len(self._urls) >= _MOST_KNOWN:
                self._urls.clear()
            found = self._database.execute("select url from page where id = ?", (page,)).fetchone()
            self._urls[page] = found[0] if found else NOTHING
        return self._urls[page]

    def _abandoned_url(self, site: int, kind: str) -> str:
        (origin,) = self._database.execute("select origin from site where id = ?", (site,)).fetchone()
        return f"dns:{urlsplit(origin).hostname}" if kind == failure.DNS else f"{origin}/"


def _logged(f: Fetched, now: float, digest: bytes | None, path: str) -> LoggedFetch:
    size = len(f.wire) if f.status else None
    began = f.started if f.address else None
    status = status_of(f.status, f.error, f.result)
    return LoggedFetch(now, status, size, f.url, path, NOTHING, f.mime, f.visit, began, f.total_s, digest)


def _robots(r: RobotsFetched, now: float) -> LoggedFetch:
    size = len(r.wire) if r.status else None
    began = r.started if r.address else None
    status = status_of(r.status, r.error, 0)
    mime = ROBOTS_MIME if r.status else ""
    return LoggedFetch(now, status, size, r.url, path_of(0, "P"), NOTHING, mime, r.visit, began, r.total_s)
