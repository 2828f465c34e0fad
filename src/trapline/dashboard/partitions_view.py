"""The partitions of a crawl: what each has fetched, its share, what it exchanged with the others, and how often it was restarted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
