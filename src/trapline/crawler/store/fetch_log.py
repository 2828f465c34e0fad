"""One line of crawl.log per fetch and per robots.txt: with --log-level debug in JSON, with --log-format heritrix always.

The store writes the lines after each commit, with one write, from the rows that the commit has filed. Otherwise nothing is made.
"""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from trapline.crawler.engine.records import BLOCKED, Batch, Fetched, RobotsFetched
from trapline.crawler.engine.row_kinds import REFUSED
from trapline.crawler.files.event_log import HERITRIX, LOG, LogFile, event_line, utc
from trapline.crawler.store import warc
from trapline.crawler.store.filing import ROBOTS_MIME, Row
from trapline.crawler.store.settings import StoreSettings
from trapline.fetch import failure

# ---- Lines in the format of Heritrix' crawl.log, which existing tools read: twelve fields, separated by spaces.
#
# Time of logging; status, at least 5 wide; size of the body, at least 10 wide; URI; discovery path; via; media type; #thread; begin of
# the request and milliseconds; digest; source tag; annotations. A field that is not known is "-", and no field contains a space.
#
# Differences: every hop of a path is L (a link), also that of a redirect; the thread is the number of the visit, modulo 1000.

NOTHING = "-"
_MOST_HOPS = 50  # of a path; earlier ones are counted only
_FORBIDDEN, _NO_ROBOTS, _BLOCKED, _NO_ADDRESS, _KILLED = -9998, -61, -5001, -1, -7000
_NO_ANSWER, _UNEXPECTED = -4, -5
_STATUS = {
    failure.DNS: _NO_ADDRESS,
    failure.ADDRESS: _BLOCKED,
    failure.CONNECT: -2,
    failure.TLS: -2,
    failure.CLOSED: -3,
    failure.TIMEOUT: _NO_ANSWER,
    failure.ROBOTS: _NO_ROBOTS,
    failure.STOPPED: _KILLED,
}
_TRUNCATED = {"length": "lenTrunc", "time": "timeTrunc"}
_REVISIT = {warc.IDENTICAL: "warcRevisit:digest", warc.NOT_MODIFIED: "warcRevisit:notModified"}
_NOT_IN_A_FIELD = re.compile(r"[^\x21-\x7e]")


class LoggedFetch(NamedTuple):
    at: float  # wall clock: when the line is written
    status: int  # as Heritrix numbers it
    size: int | None  # of the body; None: there was no answer
    url: str
    path: str = NOTHING
    via: str = NOTHING
    mime: str = ""
    visit: int = 0
    began: float | None = None  # wall clock; None: no request was sent
    took_s: float = 0.0
    digest: bytes | None = None
    annotations: tuple[str, ...] = ()

    def line(self) -> bytes:
        size = NOTHING if self.size is None else str(self.size)
        timing = NOTHING if self.began is None else f"{_digits(self.began)}+{round(self.took_s * 1000)}"
        digest = NOTHING if self.digest is None else f"sha1:{warc.base32(self.digest)}"
        mime = self.mime or ("no-type" if self.size is not None else "unknown")
        fields = (
            *(utc(self.at), f"{self.status:5d}", f"{size:>10}", _field(self.url), self.path, _field(self.via)),
            *(_field(mime), f"#{self.visit % 1000:03d}", timing, digest, NOTHING),
        )
        return f"{' '.join(fields)} {','.join(self.annotations) or NOTHING}\n".encode("ascii")


def status_of(status: int, error: str, result: int) -> int:
    """Return the status of HTTP, or the negative number that Heritrix has for the failure.

    >>> status_of(404, "http", 6), status_of(0, "timeout", 5), status_of(0, "robots", 6), status_of(0, "robots", -2)
    (404, -4, -9998, -61)
    """
    if status:
        return status
    if error == failure.ROBOTS and result == REFUSED:
        return _FORBIDDEN
    return _STATUS.get(error, _UNEXPECTED)


def status_of_abandoned(kind: str) -> int | None:
    """Return the status of a site that was abandoned without a request. None: its requests have lines of their own."""
    return {failure.DNS: _NO_ADDRESS, failure.ADDRESS: _BLOCKED, BLOCKED: _BLOCKED}.get(kind)


def path_of(depth: int, last: str = "") -> str:
    """Return the discovery path of a page.

    >>> path_of(0), path_of(3), path_of(1, "P"), path_of(51)[:5], len(path_of(51))
    ('-', 'LLL', 'LP', '1+LLL', 52)
    """
    hops = "L" * depth + last
    more = len(hops) - _MOST_HOPS
    return (f"{more}+{hops[-_MOST_HOPS:]}" if more > 0 else hops) or NOTHING


def annotations_of(truncated: str, profile: str) -> tuple[str, ...]:
    return tuple(word for word in (_TRUNCATED.get(truncated, ""), _REVISIT.get(profile, "")) if word)


def _digits(at: float) -> str:
    """Return a time in 17 digits.

    >>> _digits(1.5)
    '19700101000001500'
    """
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def _field(text: str) -> str:
    """Return the text as one field of printing characters: others are percent-encoded."""
    return _NOT_IN_A_FIELD.sub(lambda found: "".join(f"%{byte:02X}" for byte in _bytes(found[0])), text)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# ---- The writer

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
            yield _event("fetch", fetched, mime=fetched.mime, digest=f"sha1:{warc.base32(digest)}" if digest else "")


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
