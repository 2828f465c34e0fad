"""How a crawl stands, from its folder alone: for `trapline status`, from a second terminal, while it runs or afterwards.

It looks at the last rows and, but for sites given up, never at all of them, so that asking every second costs the crawl next to
nothing, however large it is. What is committed is what it sees: a crawl that runs is about a second further.
"""

import math
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from trapline.crawl.folder import meta, opened, options
from trapline.crawl.options import RefreshOptions
from trapline.crawl.records import Progress
from trapline.crawl.standing import MOST_ROWS
from trapline.crawl.store.folder import DATABASE
from trapline.crawl.store.lock import holder
from trapline.crawl.summary import given_up_of, left_out_of, strategy_name
from trapline.crawl.tally import IS_ERROR, IS_PAGE, KIND, heard_of
from trapline.errors import ConfigError

RUNNING, ENDED, BROKEN_OFF = "running", "ended", "broken off"
LATELY_S = 10.0  # what "now" means
_LATEST_ROWS = 50_000  # a crawl of 5,000 pages a second, lately


@dataclass(frozen=True, slots=True)
class Failure:
    url: str
    kind: str
    status: int  # 0: no answer
    at: float


@dataclass(frozen=True, slots=True)
class Glance:
    state: str
    process: int | None  # that crawls
    stopped_by: str | None
    strategy: str
    connections: int  # r
    at: float  # of the last commit, wall clock
    age_s: float  # since then
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
    busiest: list[tuple[str, int]]  # origin, pages lately
    last_errors: list[Failure]  # the last first
    given_up: dict[str, int]  # sites, by kind
    left_out: dict[str, int]  # links, by reason
    refresh: str | None  # how pages are fetched again; None: they are not
    again_per_second_now: float
    signals: int  # heard since the crawl began
    access_counts: int  # and accesses, by page and hour


def glance(folder: Path) -> Glance:
    with closing(opened(folder)) as database:
        process, ended, told = holder(folder), meta(database).get("stopped_by"), options(database)
        last, before = _progress(database, folder)
        passed = max(last.seconds - before.seconds, 1e-9)
        heard = heard_of(database)
        return Glance(
            state=RUNNING if process is not None else ENDED if ended else BROKEN_OFF,
            process=process,
            stopped_by=ended,
            strategy=strategy_name(told),
            connections=told.connections,
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
            active=last.active,
            quality=last.quality,
            busiest=_busiest(database, last.at),
            last_errors=_last_errors(database),
            given_up=given_up_of(database),
            left_out=left_out_of(database),
            refresh=how_again(told.refresh) if told.refresh else None,
            again_per_second_now=_again(database, last.at) / LATELY_S if told.refresh else 0.0,
            signals=heard.signals,
            access_counts=heard.access_counts,
        )


def _progress(database: sqlite3.Connection, folder: Path) -> tuple[Progress, Progress]:
    """The last one, and the one some seconds of crawling before."""
    rows = database.execute("select * from progress order by rowid desc limit 100").fetchall()
    if not all(isinstance(value, int | float) for row in rows for value in row):
        what = "its table progress has values that are no numbers"
        raise ConfigError(f"{folder / DATABASE}: is damaged: {what}; trapline verify {folder} checks all of it")
    recent = [*map(Progress._make, rows), Progress(0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)]
    last, *others = recent
    lately = [one for one in others if one.seconds >= last.seconds - LATELY_S]
    return last, (lately or others or recent)[-1 if lately else 0]


def how_again(told: RefreshOptions) -> str:
    turns = f"share {told.share:g}" if told.price is None else f"price {told.price:g}"
    return f"{told.policy}, {turns}" + (f", at most {told.rate:g} a second" if told.rate < math.inf else "")


def _again(database: sqlite3.Connection, at: float) -> int:
    latest = f"select started, changed from fetch order by seq desc limit {_LATEST_ROWS}"
    sql = f"select count(changed) from ({latest}) where started > ?"
    return int(database.execute(sql, (at - LATELY_S,)).fetchone()[0])


def _busiest(database: sqlite3.Connection, at: float) -> list[tuple[str, int]]:
    return database.execute(
        f"select origin, count(*) from (select page, started, result from fetch order by seq desc limit {_LATEST_ROWS}) as late"
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
