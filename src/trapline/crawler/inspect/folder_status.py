"""The status of a crawl, read from its folder alone: for `trapline status` from a second terminal, while it runs or afterwards.

Except for the abandoned sites, only the last rows of each table are read, so that a query every second costs even a large
crawl almost nothing. The progress of a running crawl is that of live/status, so that it fits the sentence why the crawl is not faster,
which follows from the same record. Everything else is committed data: a running crawl is about a second ahead.
"""

import json
import math
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.row_kinds import IS_ERROR, IS_PAGE, KIND
from trapline.crawler.engine.status import MOST_ROWS
from trapline.crawler.engine.tally import signal_counts_of
from trapline.crawler.files.layout import DATABASE
from trapline.crawler.files.lock import holder
from trapline.crawler.files.status_file import free_bytes, read_status
from trapline.crawler.inspect.database_reader import meta, open_database, options
from trapline.crawler.inspect.summary import abandoned_sites_of, rejected_links_of, strategy_name
from trapline.crawler.inspect.why_not_faster import why_not_faster
from trapline.errors import ConfigError

RUNNING, ENDED, BROKEN_OFF = "running", "ended", "broken off"
LATELY_S = 10.0  # the period over which values "now" are averaged
_LATEST_ROWS = 50_000  # enough for this period at 5,000 pages per second


@dataclass(frozen=True, slots=True)
class Failure:
    url: str
    kind: str
    status: int  # 0: no answer
    at: float


@dataclass(frozen=True, slots=True)
class FolderStatus:
    state: str
    process: int | None  # id of the process that crawls; None: the crawl is not running
    stopped_by: str | None
    strategy: str
    connections: int  # r
    at: float  # wall-clock time of the numbers: the last commit, or the last record of live/status if the crawl runs
    age_s: float  # time since then
    seconds: float
    pages: int
    pages_per_second: float
    pages_per_second_now: float
    bytes: int
    bytes_per_second_now: float
    errors: int
    known: int
    waiting: int
    sites: int
    active: int
    quality: float
    quality_source: str
    busiest: list[tuple[str, int]]  # origin, pages in the last seconds
    last_errors: list[Failure]  # the latest first
    abandoned_sites: dict[str, int]  # number of sites by kind
    rejected_links: dict[str, int]  # number of links by reason
    refresh: str | None  # how pages are refetched; None: they are not
    refetches_per_second_now: float  # refetched pages
    signals: int  # signals taken in since the crawl began
    access_counts: int  # access counts taken in, by page and hour
    pace: dict[str, Any] | None  # what limits a running crawl, and the time that the waiting pages take
    why_not_faster: dict[str, Any]  # limit, sentence, shares and help (why_not_faster.py)


def folder_status(folder: Path) -> FolderStatus:
    with closing(open_database(folder)) as database:
        kept, process, settings = meta(database), holder(folder), options(database)
        ended = kept.get("stopped_by")
        record = live_record(folder, process)
        last, before = _progress(database, folder, record)
        passed = max(last.seconds - before.seconds, 1e-9)
        signals = signal_counts_of(database)
        return FolderStatus(
            state=RUNNING if process is not None else ENDED if ended else BROKEN_OFF,
            process=process,
            stopped_by=ended,
            strategy=strategy_name(settings),
            connections=settings.connections,
            at=last.at,
            age_s=max(time.time() - last.at, 0.0) if last.at else 0.0,
            seconds=last.seconds,
            pages=last.pages,
            pages_per_second=last.pages / last.seconds if last.seconds else 0.0,
            pages_per_second_now=(last.pages - before.pages) / passed,
            bytes=last.bytes,
            bytes_per_second_now=(last.bytes - before.bytes) / passed,
            errors=last.errors,
            known=last.known,
            waiting=last.waiting,
            sites=last.sites,
            active=last.active if record is not None else 0,  # a killed crawl has no visits
            quality=last.quality,
            quality_source=settings.quality,
            busiest=_busiest(database, last.at),
            last_errors=_last_errors(database),
            abandoned_sites=abandoned_sites_of(database),
            rejected_links=rejected_links_of(database),
            refresh=refresh_summary(settings.refresh) if settings.refresh else None,
            refetches_per_second_now=_refetched(database, last.at) / LATELY_S if settings.refresh else 0.0,
            signals=signals.signals,
            access_counts=signals.access_counts,
            pace=_pace(kept, record) if process is not None else None,
            why_not_faster=speed_answer(folder, json.loads(kept["options"]), process, ended),
        )


def live_record(folder: Path, process: int | None) -> dict[str, Any] | None:
    """Return the last record of live/status, if the process that crawls now has written it. A killed crawl leaves its last record."""
    found = read_status(folder) if process is not None else None
    return found if found and found.get("process") == process else None


def _pace(kept: Mapping[str, str], record: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the pace that belongs to the rest of live/status, or else the last one in the database."""
    return (record or {}).get("pace") or (json.loads(kept["pace"]) if "pace" in kept else None)


def speed_answer(
    folder: Path, options: Mapping[str, Any], process: int | None, stopped_by: str | None
) -> dict[str, Any]:
    """Return why the crawl is not faster, as JSON has it. `process`: that which crawls; None: the crawl is not running."""
    if process is None:
        status, state = {**(read_status(folder) or {}), "stopped_by": stopped_by}, ENDED if stopped_by else BROKEN_OFF
    else:
        status, state = live_record(folder, process) or {}, RUNNING
    age_s = time.time() - status.get("at", 0.0)
    return why_not_faster(status, options, free_bytes(folder), state, age_s).as_json()


def _progress(
    database: sqlite3.Connection, folder: Path, record: Mapping[str, Any] | None
) -> tuple[CrawlProgress, CrawlProgress]:
    """Return the latest progress, and that of some seconds of crawling before. `record`: of live/status, if the crawl runs."""
    rows = database.execute("select * from progress order by rowid desc limit 100").fetchall()
    if not all(isinstance(value, int | float) and math.isfinite(value) for row in rows for value in row):
        problem = "its table progress has values that are not numbers"
        raise ConfigError(
            f"{folder / DATABASE}: is damaged: {problem}; check the folder with: trapline verify {folder}"
        )
    recent = [*map(CrawlProgress._make, rows), CrawlProgress(0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)]
    if record is not None:
        live = CrawlProgress(**record["progress"])
        recent = [live, *(progress for progress in recent if progress.seconds < live.seconds)]
    last, *others = recent
    lately = [progress for progress in others if progress.seconds >= last.seconds - LATELY_S]
    return last, (lately or others or recent)[-1 if lately else 0]


def refresh_summary(refresh: RefreshOptions) -> str:
    """Describe how a crawl refetches pages: policy, share or price, and rate."""
    turns = f"share {refresh.share:g}" if refresh.price is None else f"price {refresh.price:g}"
    return f"{refresh.policy}, {turns}" + (f", at most {refresh.rate:g} a second" if refresh.rate < math.inf else "")


def _refetched(database: sqlite3.Connection, at: float) -> int:
    latest = f"select started, changed from fetch order by seq desc limit {_LATEST_ROWS}"
    sql = f"select count(changed) from ({latest}) where started > ?"
    return int(database.execute(sql, (at - LATELY_S,)).fetchone()[0])


def _busiest(database: sqlite3.Connection, at: float) -> list[tuple[str, int]]:
    return database.execute(
        "select origin, count(*) from"
        f" (select page, started, result, status, marks from fetch order by seq desc limit {_LATEST_ROWS}) as late"
        " join page on page.id = late.page join site on site.id = page.site"
        f" where {IS_PAGE} and started > ? group by site.id order by 2 desc, 1 limit {MOST_ROWS}",
        (at - LATELY_S,),
    ).fetchall()


def _last_errors(database: sqlite3.Connection) -> list[Failure]:
    rows = database.execute(
        f"select url, {KIND}, status, started from (select * from fetch order by seq desc limit {_LATEST_ROWS}) as late"
        f" join page on page.id = late.page where {IS_ERROR} order by seq desc limit {MOST_ROWS}"
    )
    return [Failure(*row) for row in rows]
