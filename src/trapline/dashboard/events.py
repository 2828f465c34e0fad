"""Events of a crawl: lines of its log (crawl.log), and failed fetches from its database. The newest come first.

A page of events is found by its time: the log is read backwards from its end, and the database from its last rows, so that the newest
events cost the same however long the crawl is.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.engine.row_kinds import IS_ERROR, KIND
from trapline.crawler.files.event_log import LEVELS, event_files
from trapline.crawler.files.layout import DATABASE
from trapline.dashboard.folder_reader import finite, reading

FETCH_FAILED, SITE_ABANDONED, TOO_MANY_REQUESTS = "fetch_failed", "site_abandoned", "too_many_requests"
_BLOCK_BYTES = 1 << 16
_MOST_BYTES = 64 << 20  # read for one page of events
_MOST_ROWS = 50_000  # of the table `fetch`, the last ones
_MOST_FAILED = 2_000
_NOT_FOUND = (404, 410)  # most crawls meet many of them, which would hide other failures: events of the level debug
_MOST_LINE = 1 << 20
_MOST_NEW = 50  # lines sent at once to a browser

Event = dict[str, Any]


class EventFilter(NamedTuple):
    level: str = "info"  # this level and those above
    kind: str = ""  # an event word; "": all
    site: str = ""  # part of a URL or of the text; "": all
    before: float | None = None  # seconds since 1970; None: the newest

    def admits(self, event: Mapping[str, Any]) -> bool:
        if event.get("level") not in LEVELS[LEVELS.index(self.level) :] or (self.kind and event["event"] != self.kind):
            return False
        return not self.site or any(self.site in value.lower() for value in event.values() if isinstance(value, str))


def events(folder: Path, parts: Sequence[Path], wanted: EventFilter, count: int) -> dict[str, Any]:
    """Return a page of events of a crawl, and all kinds that were met. `next`: the value of `before` for the following page."""
    kinds: set[str] = set()
    logs = [log_events(place, wanted, kinds) for place in dict.fromkeys((folder, *parts))]
    has_log = any(event_files(place) for place in (folder, *parts))
    rows = [iter(_database_events(part, wanted, has_log)) for part in parts if (part / DATABASE).exists()]
    newest_first = merge(*logs, *rows, key=lambda event: -event["at"])
    found = list(islice(newest_first, count))
    last = found[-1]["at"] if len(found) == count else None
    # Events of the same moment stay on one page: the next page begins strictly before it.
    found += takewhile(lambda event: event["at"] == last, newest_first)
    kinds |= {event["event"] for event in found}
    return {"events": _once(found), "next": last, "kinds": sorted(kinds)}


def _once(found: Sequence[Event]) -> list[Event]:
    """Return the events without failed fetches that the log names as too many requests."""
    logged = {(event.get("url"), event.get("status")) for event in found if event["event"] == TOO_MANY_REQUESTS}
    return [event for event in found if event["event"] != FETCH_FAILED or (event["url"], event["status"]) not in logged]


# ---- The log.


def log_events(folder: Path, wanted: EventFilter, kinds: set[str]) -> Iterator[Event]:
    """Yield the events of the log that the filter admits, the newest first. Add all kinds that are met to `kinds`."""
    left = _MOST_BYTES
    for path in event_files(folder):
        for line in _lines_backwards(path):
            left -= len(line) + 1
            if left < 0:
                return
            event = _parsed(line)
            if event is None or not _is_before(event, wanted.before):
                continue
            kinds.add(event["event"])
            if wanted.admits(event):
                yield event


def _lines_backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, the last one first, without an incomplete last line."""
    try:
        file = path.open("rb")
    except OSError:
        return
    with file:
        at, rest = file.seek(0, os.SEEK_END), b""
        is_end = True
        while at > 0:
            begin = max(at - _BLOCK_BYTES, 0)
            file.seek(begin)
            first, *lines = (file.read(at - begin) + rest).split(b"\n")
            if is_end and lines:
                lines, is_end = lines[:-1], False  # what follows the last line break
            yield from reversed(lines)
            at, rest = begin, first[-_MOST_LINE:]
        if rest and not is_end:
            yield rest


def _parsed(line: bytes) -> Event | None:
    """Return the event of a line, with its time in seconds; None: the line is no event of ours."""
    try:
        found = json.loads(line)
        at = datetime.fromisoformat(found["at"]).timestamp()
        if not (isinstance(found["event"], str) and isinstance(found["text"], str) and found["level"] in LEVELS):
            return None
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
    plain = {key: value for key, value in found.items() if isinstance(value, str | int | float | bool)}
    shown: Event = finite({**plain, "at": at})
    return shown


def _is_before(event: Event, before: float | None) -> bool:
    return before is None or event["at"] < before


class LogTail:
    """The lines that were added to the log since the last look."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = -1, -1  # inode and length at the last look

    def __call__(self) -> list[Event]:
        """Return the new events, the oldest first. The first call only remembers the end of the log."""
        path = next(iter(event_files(self._folder)), None)
        if path is None:
            self._file = 0, 0
            return []
        try:
            with path.open("rb") as file:
                about = os.fstat(file.fileno())
                inode, length = self._file
                self._file = about.st_ino, about.st_size
                if inode == -1:
                    return []
                file.seek(length if inode == about.st_ino else 0)
                lines = file.read(_MOST_LINE).split(b"\n")
        except OSError:
            return []
        self._file = about.st_ino, self._file[1] - len(lines[-1])  # an incomplete line is read again
        found = [event for line in lines[:-1] if (event := _parsed(line)) is not None]
        return [event for event in found if event["level"] != "debug"][-_MOST_NEW:]


# ---- The database.


def _database_events(part: Path, wanted: EventFilter, has_log: bool) -> list[Event]:
    """Return failed fetches, and abandoned sites if the crawl has no log that names them; the newest first."""
    with reading(part) as database:
        found = list(_failed_fetches(database, wanted))
        if not has_log:
            found += _abandoned(database)
    found = [event for event in found if _is_before(event, wanted.before) and wanted.admits(event)]
    return sorted(found, key=lambda event: -event["at"])


def _failed_fetches(database: sqlite3.Connection, wanted: EventFilter) -> Iterator[Event]:
    if wanted.kind not in ("", FETCH_FAILED) or wanted.level == "error":
        return
    all_levels = wanted.level == "debug"
    rows = database.execute(
        f"select started + total_s, {KIND}, status, url from fetch cross join page on page.id = fetch.page"
        f" where seq > (select max(seq) from fetch) - {_MOST_ROWS} and {IS_ERROR} and started < ?"
        f" and ({int(all_levels)} or coalesce(status, 0) not in {_NOT_FOUND})"
        f" order by seq desc limit {_MOST_FAILED}",
        (1e12 if wanted.before is None else wanted.before,),
    )
    for at, kind, status, url in rows:
        text = f"{kind} {status}: {url}" if status else f"{kind}: {url}"
        yield {
            "at": at,
            "level": "debug" if status in _NOT_FOUND else "warning",
            "event": FETCH_FAILED,
            "text": text,
            "url": url,
            "status": status,
            "error": kind,
        }


def _abandoned(database: sqlite3.Connection) -> Iterator[Event]:
    rows = database.execute(
        "select at, origin, kind, why from abandoned_site join site on site.id = abandoned_site.site order by at desc limit 2000"
    )
    for at, origin, kind, why in rows:
        text = f"{origin} was abandoned: {why}"
        yield {"at": at, "level": "warning", "event": SITE_ABANDONED, "text": text, "site": origin, "kind": kind}
