"""The record of a live crawl: what its page shows, read from the crawl's folder. Bounded, however long the crawl was.

It reads the database, finished or still growing, and knows neither HTML nor options of commands.
"""

import math
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trapline.crawl.audit import Violation, audit
from trapline.crawl.folder import opened, options
from trapline.crawl.options import AGENT, CrawlOptions
from trapline.crawl.robots_kept import robots_kept
from trapline.crawl.store.lock import holder
from trapline.crawl.summary import summary_of
from trapline.crawl.tally import FORBIDDEN, IS_ERROR, KIND, PAGES
from trapline.parallel.manifest import is_parallel, read
from trapline.report.chart import Floats
from trapline.report.refresh_record import RefreshRecord, refresh_record

MOST_MOMENTS = 400
MOST_SITES = 500
MOST_GIVEN_UP = 100
_NUMBERS = "seconds, pages, errors, bytes, known, waiting, active, quality"


class Moments(NamedTuple):
    """How the crawl stood, at moments spread evenly over it."""

    seconds: Floats
    pages: Floats
    errors: Floats
    bytes: Floats
    known: Floats
    waiting: Floats
    active: Floats
    quality: Floats


class SiteRow(NamedTuple):
    origin: str
    known: int
    pages: int
    errors: int
    forbidden: int  # by robots.txt
    bytes: int
    response_s: float | None  # to the first byte, on average; None: no answer
    crawl_delay_s: float | None


class GivenUpSite(NamedTuple):
    origin: str
    why: str


@dataclass(frozen=True, slots=True)
class LiveRecord:
    name: str
    running: bool
    summary: dict[str, Any]
    options: CrawlOptions
    moments: Moments
    sites: list[SiteRow]  # busiest first
    sites_visited: int
    violations: list[Violation]
    given_up: list[GivenUpSite]  # the first ones
    refresh: RefreshRecord | None = None  # None: every page was fetched once
    partitions: int = 1


def live_record(folder: Path) -> LiveRecord:
    with closing(opened(folder)) as database:
        told, audited = options(database), audit(database)
        sites, visited = _sites(database)
        return LiveRecord(
            name=folder.resolve().name,
            running=holder(folder) is not None,
            summary=summary_of(database, audited),
            options=told,
            moments=moments_of(database),
            sites=sites,
            sites_visited=visited,
            violations=audited.examples,
            given_up=_given_up(database),
            refresh=refresh_record(folder, database, told.refresh) if told.refresh else None,
            partitions=len(read(folder).parts) if is_parallel(folder) else 1,
        )


def moments_of(database: sqlite3.Connection) -> Moments:
    (last,) = database.execute("select max(rowid) from progress").fetchone()
    step = max(1, math.ceil((last or 0) / MOST_MOMENTS))
    rows = database.execute(
        f"select {_NUMBERS} from progress where rowid % ? = 0 or rowid = ? order by rowid", (step, last)
    ).fetchall()
    columns = np.array(rows, np.float64).reshape(len(rows), len(Moments._fields)).T
    return _from_the_beginning(Moments(*columns))


def _from_the_beginning(rows: Moments) -> Moments:
    """With a first moment at 0, when nothing was fetched; what waited then is what was first seen to wait."""
    if not len(rows.seconds):
        return Moments(*(np.zeros(1) for _ in rows))
    first = Moments(*(np.zeros(1) for _ in rows))._replace(
        known=rows.known[:1], waiting=rows.waiting[:1], active=rows.active[:1]
    )
    return Moments(*(np.concatenate(pair) for pair in zip(first, rows, strict=True)))


def _sites(database: sqlite3.Connection) -> tuple[list[SiteRow], int]:
    """The busiest, and how many there are. Pages of a site that is not there, which `trapline verify` counts, are left out."""
    known = dict(database.execute("select site, count(*) from page group by site"))
    origins = dict(database.execute("select id, origin from site"))
    delays = _crawl_delays(database)
    found = database.execute(
        f"select page.site, {PAGES}, total({IS_ERROR}), total({KIND} = '{FORBIDDEN}'), total(bytes),"
        " avg(first_byte_s) from fetch join page on page.id = fetch.page join site on site.id = page.site"
        " group by page.site order by 2 desc, 5 desc, 1"
    ).fetchall()
    rows = [
        SiteRow(
            origins[site], known[site], int(pages), int(errors), int(forbidden), int(size), response_s, delays.get(site)
        )
        for site, pages, errors, forbidden, size, response_s in found[:MOST_SITES]
    ]
    return rows, len(found)


def _given_up(database: sqlite3.Connection) -> list[GivenUpSite]:
    rows = database.execute(
        f"select origin, why from given_up join site on site.id = given_up.site order by at, site.id limit {MOST_GIVEN_UP}"
    )
    return [GivenUpSite(*row) for row in rows]


def _crawl_delays(database: sqlite3.Connection) -> dict[int, float]:
    """What each site's last robots.txt asks for."""
    kept = robots_kept(database, AGENT)
    delays = {site: rules.crawl_delay_s for site, rules in zip(kept.site.tolist(), kept.rules, strict=True)}
    return {site: delay for site, delay in delays.items() if delay is not None}
