"""The views of a crawl besides its overview: its progress over time, its partitions, and one site.

Each is read from the databases when a browser requests it (app.py).
"""

import math
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trapline.crawler.discovery.site_settings import settings_of
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.row_kinds import RESULTS
from trapline.crawler.files.layout import DATABASE
from trapline.crawler.files.status_file import read_status
from trapline.dashboard.folder_reader import (
    NOTHING,
    FolderReading,
    finite,
    parts_of,
    read_folder,
    read_manifest,
    reading,
    state_of,
)
from trapline.dashboard.overview import CrawlReading, live_status
from trapline.dashboard.site_index import SiteReader
from trapline.fetch.robots.parser import parse
from trapline.fetch.urls import host_port

# ---- The progress over time, as curves of at most some hundred points

NAMES = ("seconds", "pages", "errors", "bytes", "known", "waiting", "active", "quality")
_AT = NAMES.index("seconds")
MOST_POINTS = 2_000

Row = tuple[float, ...]


def history(parts: Sequence[Path], points: int, live: CrawlProgress | None) -> dict[str, list[Any]]:
    """Return the curves by name. `live`: the progress after the last commit, if the loop reports it."""
    every = [_rows(part, points) for part in parts if (part / DATABASE).exists()]
    rows = every[0] if len(every) == 1 else _together([rows for rows in every if rows], points)
    if live is not None and (not rows or live.seconds > rows[-1][_AT]):
        rows = [*rows, tuple(float(getattr(live, name)) for name in NAMES)]
    columns = list(zip(*_from_the_beginning(rows), strict=True))
    return {name: finite(list(column)) for name, column in zip(NAMES, columns, strict=True)}


def _from_the_beginning(rows: list[Row]) -> list[Row]:
    """Add a first moment at 0, when nothing was fetched. Its pages known and waiting and its visits are those of the first row."""
    first = dict(zip(NAMES, rows[0] if rows else [0.0] * len(NAMES), strict=True))
    kept = ("known", "waiting", "active")
    return [tuple(first[name] if name in kept else 0.0 for name in NAMES), *rows]


def _rows(part: Path, points: int) -> list[Row]:
    with reading(part) as database:
        return _spaced(database, points)


def _spaced(database: sqlite3.Connection, points: int) -> list[Row]:
    (last,) = database.execute("select max(rowid) from progress").fetchone()
    step = max(1, math.ceil((last or 0) / points))
    sql = f"select {', '.join(NAMES)} from progress where rowid % ? = 0 or rowid = ? order by rowid"
    return database.execute(sql, (step, last)).fetchall()


def _together(every: list[list[Row]], points: int) -> list[Row]:
    """Return the sums of several partitions at common moments. A partition stands at its last row before each moment."""
    if not every:
        return []
    end = max(rows[-1][_AT] for rows in every)
    moments = [end * number / points for number in range(1, points + 1)]
    return [(moment, *_sums(every, moment)) for moment in moments]


def _sums(every: list[list[Row]], moment: float) -> list[float]:
    stands = [rows[at - 1] for rows in every if (at := bisect_right(rows, moment, key=lambda row: row[_AT]))]
    return [sum(row[column] for row in stands) for column in range(1, len(NAMES))]


# ---- The partitions: what each has fetched, its share, what it exchanged with the others, and how often it was restarted

_EXCHANGE = "select total(urls), total(made), total(received) from partition"


def partitions(crawl: CrawlReading) -> dict[str, Any]:
    """Return one row for each partition. A crawl of one process has one row, and no mode."""
    manifest = read_manifest(crawl.folder)
    live = live_status(crawl) or {}
    given = live.get("partitions")
    reported = {str(row.get("partition")): row for row in (given if isinstance(given, list) else ())}
    rows = [
        _row(number, folder, reported.get(str(number), {}), crawl.at)
        for number, folder in enumerate(parts_of(crawl.folder))
    ]
    pages = sum(row["pages"] for row in rows)
    shared = [{**row, "share": row["pages"] / pages if pages else None} for row in rows]
    cleaned: dict[str, Any] = finite({"mode": manifest.mode if manifest else "", "partitions": shared})
    return cleaned


def _row(number: int, folder: Path, reported: Mapping[str, Any], now: float) -> dict[str, Any]:
    """`reported`: what the coordinator says about the partition."""
    found, status = read_folder(folder), read_status(folder) or {}
    connections = status.get("connections")
    empty = {"urls_sent": 0, "batches_sent": 0, "batches_received": 0}
    return {
        "partition": number,
        "state": state_of(folder, found is not None, found.stopped_by if found else None),
        **_numbers(found, now),
        **(empty if found is None else _exchange(folder)),
        "restarts": reported.get("restarts"),
        "machine": reported.get("host", ""),
        "connections": connections.get("now") if isinstance(connections, dict) else None,
    }


def _numbers(found: FolderReading | None, now: float) -> dict[str, Any]:
    last = found.progress if found else NOTHING
    before = found.before if found else last
    passed = max(last.seconds - before.seconds, 1e-9)
    names = ("pages", "waiting", "known", "sites", "errors", "bytes", "active")
    return {
        **{name: getattr(last, name) for name in names},
        "pages_per_s": (last.pages - before.pages) / passed,
        "age_s": max(now - last.at, 0.0) if last.at else None,
    }


def _exchange(folder: Path) -> dict[str, int]:
    with reading(folder) as database:
        urls, made, received = database.execute(_EXCHANGE).fetchone()
    return {"urls_sent": int(urls), "batches_sent": int(made), "batches_received": int(received)}


# ---- One site: its address, its own settings, its robots.txt, and its last fetches

_MOST_ROWS = 50_000  # of the table `fetch`, the last ones
_MOST_SHOWN = 100
_MOST_BODY = 64_000  # characters of a robots.txt
_FIELDS = ("at", "url", "status", "error", "bytes", "mime", "first_byte_s", "total_s", "result")


def site_page(reader: SiteReader, site: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page of a site shows besides its row in the table."""
    abandoned = reader.abandoned.get(site)
    with reading(reader.folder) as database:
        rows = _fetches(database, site)
        found = {
            "address": _address(database, reader, site),
            "settings": _settings(options, reader.origins[site]),
            "robots_file": _robots(database, int(reader.robots.row[site]), str(options.get("robots_token", ""))),
            "abandoned": None if abandoned is None else abandoned._asdict(),
            "by_status": Counter(str(row["status"]) if row["status"] else row["error"] or "none" for row in rows),
            "recent": rows[:_MOST_SHOWN],
            **_span(database),
        }
    cleaned: dict[str, Any] = finite(found)
    return cleaned


def _fetches(database: sqlite3.Connection, site: int) -> list[dict[str, Any]]:
    """Return the last fetches of a site, the newest first."""
    rows = database.execute(
        # `cross join` fixes the order of the tables: the last rows of `fetch` are read, and nothing else.
        "select started, url, status, error, bytes, mime, first_byte_s, total_s, result from fetch"
        " cross join page on page.id = fetch.page"
        f" where seq > (select max(seq) from fetch) - {_MOST_ROWS} and page.site = ? order by seq desc",
        (site,),
    )
    named = (dict(zip(_FIELDS, row, strict=True)) for row in rows)
    return [{**row, "result": RESULTS.get(row["result"], str(row["result"]))} for row in named]


def _span(database: sqlite3.Connection) -> dict[str, Any]:
    """Return since when fetches were looked at, and whether that is the whole crawl."""
    first, last = database.execute("select min(seq), max(seq) from fetch").fetchone()
    if last is None:
        return {"since": None, "is_complete": True}
    oldest = max(first, last - _MOST_ROWS + 1)
    (since,) = database.execute("select started from fetch where seq >= ? order by seq limit 1", (oldest,)).fetchone()
    return {"since": since, "is_complete": oldest == first}


def _address(database: sqlite3.Connection, reader: SiteReader, site: int) -> str:
    group = int(reader.table.rows["group"][site]) if site < len(reader.table.rows) else -1
    row = database.execute("select address from address where id = ?", (group,)).fetchone()
    return row[0] if row else ""


def _settings(options: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Return the settings that the user gave for this site alone, or for a domain above it."""
    tables: Any = options.get("sites") or {}  # JSON of the tables
    table: Any = settings_of(tables, host_port(origin)[1])
    return {name: value for name, value in (table or {}).items() if value not in (None, "", [], False)}


def _robots(database: sqlite3.Connection, row: int, token: str) -> dict[str, Any] | None:
    """Return the last robots.txt of a site; None: none was requested."""
    sql = "select status, error, started, body from robots where seq = ?"
    found = database.execute(sql, (row,)).fetchone()
    if found is None:
        return None
    status, error, at, body = found
    text = body.decode("utf-8", "replace")
    delay = parse(body, token).crawl_delay_s if 200 <= status < 300 else None
    return {
        "status": status,
        "error": error,
        "at": at,
        "crawl_delay_s": delay,
        "body": text[:_MOST_BODY],
        "is_cut": len(text) > _MOST_BODY,
    }
