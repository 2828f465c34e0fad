"""One site of a crawl: its address, its own settings, its robots.txt, and its last fetches."""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from typing import Any

from trapline.crawler.discovery.site_settings import settings_of
from trapline.crawler.engine.row_kinds import RESULTS
from trapline.dashboard.folder_reader import finite, reading
from trapline.dashboard.site_index import SiteReader
from trapline.fetch.robots.parser import parse
from trapline.fetch.urls import host_port

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
