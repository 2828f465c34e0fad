"""The status of a parallel crawl, read from its folder alone: what `trapline status` shows, for all partitions together."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from trapline.crawler.engine.status import MOST_ROWS
from trapline.crawler.files.lock import holder
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.inspect.folder_status import (
    BROKEN_OFF,
    ENDED,
    RUNNING,
    FolderStatus,
    folder_status,
    refresh_summary,
    speed_answer,
)
from trapline.crawler.inspect.summary import abandoned_sites_of
from trapline.crawler.speed.pace import Pace, pace_together
from trapline.errors import ConfigError
from trapline.parallel.folder.manifest import Manifest, is_parallel, read
from trapline.parallel.folder.merged import begun, is_current, shares_sites

_SUMS = (
    "connections",
    "pages",
    "pages_per_second_now",
    "bytes",
    "bytes_per_second_now",
    "errors",
    "known",
    "waiting",
    "sites",
    "active",
    "quality",
    "refetches_per_second_now",
    "signals",
    "access_counts",
)


def status_of_folder(folder: Path) -> FolderStatus:
    """Return the status of a crawl of one or several processes."""
    if not is_parallel(folder):
        return folder_status(folder)
    manifest = read(folder)
    parts = [folder_status(part) for part in begun(manifest)]
    if not parts:
        raise ConfigError(f"{folder}: the crawl has not begun")
    return _together(manifest, parts)


def _together(manifest: Manifest, parts: list[FolderStatus]) -> FolderStatus:
    process, stopped_by = holder(manifest.folder), manifest.stopped_by or None
    sums = {name: sum(getattr(part, name) for part in parts) for name in _SUMS}
    sums["connections"] += manifest.options.connections * (
        manifest.sizes[-1] - len(parts)
    )  # of those that have not begun
    seconds = max(part.seconds for part in parts)
    errors = sorted((error for part in parts for error in part.last_errors), key=lambda error: -error.at)
    return replace(
        parts[0],
        state=RUNNING if process is not None else ENDED if stopped_by else BROKEN_OFF,
        process=process,
        stopped_by=stopped_by,
        at=max(part.at for part in parts),
        age_s=min(part.age_s for part in parts),
        seconds=seconds,
        pages_per_second=sums["pages"] / seconds if seconds else 0.0,
        busiest=list(_added(dict(part.busiest) for part in parts).items())[:MOST_ROWS],
        last_errors=errors[:MOST_ROWS],
        abandoned_sites=_abandoned_sites(manifest, parts),
        rejected_links=_added(part.rejected_links for part in parts),
        refresh=refresh_summary(manifest.options.refresh) if manifest.options.refresh else None,
        pace=_pace(manifest, parts) if process is not None else None,
        why_not_faster=speed_answer(manifest.folder, asdict(manifest.options), process, stopped_by),
        **sums,
    )


def _pace(manifest: Manifest, parts: list[FolderStatus]) -> dict[str, Any] | None:
    paces = [Pace.from_json(json.dumps(part.pace)) for part in parts if part.pace is not None]
    pace = pace_together(paces, manifest.options.max_pages, sum(part.pages for part in parts))
    return None if pace is None else pace.as_json()


def _abandoned_sites(manifest: Manifest, parts: list[FolderStatus]) -> dict[str, int]:
    """Return the number of abandoned sites by kind. If partitions share sites, only the merged database says which of them
    the whole crawl has abandoned; while there is none, or if it is damaged, a site counts for each partition that has abandoned it."""
    if shares_sites(manifest) and is_current(manifest):
        with suppress(ConfigError, sqlite3.Error), closing(open_database(manifest.folder)) as database:
            return abandoned_sites_of(database)
    return _added(part.abandoned_sites for part in parts)


def _added(tables: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for table in tables:
        total.update(table)
    return dict(total.most_common())
