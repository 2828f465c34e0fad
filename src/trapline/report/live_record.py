"""The record of a live crawl: the contents of its page, read from the crawl's folder. Its size is bounded, however long the crawl was.

This module reads the database of a finished or running crawl, and knows neither HTML nor the options of commands.
"""

import math
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.row_kinds import EXTRAS, FORBIDDEN, IS_ERROR, KIND, PAGES
from trapline.crawler.files.lock import holder
from trapline.crawler.inspect.audit import Violation, audit
from trapline.crawler.inspect.broken_links import NONE_BROKEN, BrokenLinks, broken_links
from trapline.crawler.inspect.database_reader import open_database, options
from trapline.crawler.inspect.requests import robots_kept
from trapline.crawler.inspect.summary import ABANDONED, REJECTED, summary_of
from trapline.fetch import failure
from trapline.parallel.folder.manifest import is_parallel, read
from trapline.report.chart import Floats
from trapline.report.html import CountTile, Headline
from trapline.report.refresh_record import RefreshRecord, refresh_record
from trapline.report.table import Column
from trapline.units import byte_rate, bytes_shown, counted, duration, number, three_digits

MOST_MOMENTS = 400
MOST_SITES = 500
MOST_ABANDONED = 100
_NUMBERS = "seconds, pages, errors, bytes, known, waiting, active, quality"


class Moments(NamedTuple):
    """The progress of the crawl at evenly spaced moments."""

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
    forbidden: int  # pages that robots.txt forbids
    bytes: int
    response_s: float | None  # average time to the first byte; None: no answer
    crawl_delay_s: float | None


class AbandonedSiteRow(NamedTuple):
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
    abandoned_sites: list[AbandonedSiteRow]  # the first ones
    refresh: RefreshRecord | None = None  # None: every page was fetched once
    partitions: int = 1
    broken: BrokenLinks = NONE_BROKEN


def live_record(folder: Path) -> LiveRecord:
    with closing(open_database(folder)) as database:
        crawl_options, audited = options(database), audit(database)
        sites, visited = _sites(database)
        return LiveRecord(
            name=folder.resolve().name,
            running=holder(folder) is not None,
            summary=summary_of(database, audited),
            options=crawl_options,
            moments=moments_of(database),
            sites=sites,
            sites_visited=visited,
            violations=audited.examples,
            abandoned_sites=_abandoned_sites(database),
            refresh=refresh_record(folder, database, crawl_options.refresh) if crawl_options.refresh else None,
            partitions=len(read(folder).parts) if is_parallel(folder) else 1,
            broken=broken_links(database),
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
    """Add a first moment at 0, when nothing was fetched. Its pages known and waiting and its visits are those of the first row."""
    if not len(rows.seconds):
        return Moments(*(np.zeros(1) for _ in rows))
    first = Moments(*(np.zeros(1) for _ in rows))._replace(
        known=rows.known[:1], waiting=rows.waiting[:1], active=rows.active[:1]
    )
    return Moments(*(np.concatenate(pair) for pair in zip(first, rows, strict=True)))


def _sites(database: sqlite3.Connection) -> tuple[list[SiteRow], int]:
    """Return the busiest sites, and the number of all. Pages of a missing site, which `trapline verify` reports, are ignored."""
    known = dict(database.execute(f"select site, count(*) from page where id not in ({EXTRAS}) group by site"))
    origins = dict(database.execute("select id, origin from site"))
    delays = _crawl_delays(database)
    found = database.execute(
        f"select page.site, {PAGES}, total({IS_ERROR}), total({KIND} = '{FORBIDDEN}'), total(bytes),"
        " avg(first_byte_s) from fetch join page on page.id = fetch.page join site on site.id = page.site"
        " group by page.site order by 2 desc, 5 desc, 1"
    ).fetchall()
    rows = [
        SiteRow(
            origins[site],
            known.get(site, 0),
            int(pages),
            int(errors),
            int(forbidden),
            int(size),
            response_s,
            delays.get(site),
        )
        for site, pages, errors, forbidden, size, response_s in found[:MOST_SITES]
    ]
    return rows, len(found)


def _abandoned_sites(database: sqlite3.Connection) -> list[AbandonedSiteRow]:
    rows = database.execute(
        f"select origin, why from abandoned_site join site on site.id = abandoned_site.site order by at, site.id limit {MOST_ABANDONED}"
    )
    return [AbandonedSiteRow(*row) for row in rows]


def _crawl_delays(database: sqlite3.Connection) -> dict[int, float]:
    """Return the Crawl-delay in the last robots.txt of each site that has one."""
    kept = robots_kept(database, options(database).robots_token)
    delays = {site: rules.crawl_delay_s for site, rules in zip(kept.site.tolist(), kept.rules, strict=True)}
    return {site: delay for site, delay in delays.items() if delay is not None}


# ---- The numbers of one live crawl with their texts: headlines, columns of sites, counts of results. Nothing here knows HTML.

KINDS = {
    failure.ADDRESS: "its address is not a public one",
    failure.CONNECT: "no connection",
    failure.TLS: "no secure connection",
    failure.CLOSED: "the connection ended before the answer did",
    failure.TIMEOUT: "too slow",
    failure.PROTOCOL: "not HTTP",
    failure.TOO_LARGE: "headers too large",
    failure.ENCODING: "a coding that cannot be read",
    failure.MIME: "bodies not read, because of their media type",
    failure.HTTP: "answers of 400 and above",
    failure.ROBOTS: "robots.txt could not be fetched",
    FORBIDDEN: "not requested, because of robots.txt",
}
RULES = {
    "apart": "overlapped an earlier visit to the same site or address",
    "delay": "began before the delay of the site or address had passed",
    "pause": "sent a request before the previous answer, or too soon after it",
    "robots": "requested a page that robots.txt forbids",
}


def headlines(record: LiveRecord) -> list[Headline]:
    found = record.summary
    seconds, broken = found["seconds"], found["politeness_violations"]
    visited = "site visited" if record.sites_visited == 1 else "sites visited"
    return [
        Headline(f"{found['pages_fetched']:,}", "pages", f"of {found['urls_known']:,} known"),
        Headline(number(found["pages_per_second"]), "pages a second", f"in {duration(seconds)}"),
        Headline(bytes_shown(found["bytes"]), "received", byte_rate(found["bytes"] / seconds if seconds else 0.0)),
        Headline(f"{record.sites_visited:,}", visited, _of_sites(found["sites"], found["abandoned_sites"])),
        Headline(f"{found['errors']:,}", "errors", _share(found["errors"], found["fetches"], "fetches")),
        Headline(f"{broken:,}", "broken rules", f"in {counted(found['visits'], 'visit')}", bad=broken > 0),
    ]


def _of_sites(known: int, abandoned_sites: int) -> str:
    return f"of {known:,} known{f', {abandoned_sites:,} abandoned' if abandoned_sites else ''}"


def _share(part: int, whole: int, what: str) -> str:
    return f"{three_digits(part / whole * 100)} % of {whole:,} {what}" if whole else ""


def site_columns(sites: Sequence[SiteRow]) -> list[Column]:
    def column(name: str, about: str, values: Sequence[float | None], text: Callable[[float], str]) -> Column:
        return Column("", name, about, list(values), ["–" if value is None else text(value) for value in values])

    found = [
        column("pages", "Pages fetched.", [site.pages for site in sites], "{:,}".format),
        column("known", "Pages discovered, fetched or not.", [site.known for site in sites], "{:,}".format),
        column(
            "MB",
            "Megabytes (10^6 bytes) of page bodies, as received.",
            [site.bytes / 1e6 for site in sites],
            three_digits,
        ),
        column(
            "response (s)", "Seconds to the first byte, on average.", [s.response_s for s in sites], "{:.3f}".format
        ),
        column(
            "errors",
            "Failed requests, answers of 400 and above, bodies that cannot be decoded.",
            [site.errors for site in sites],
            "{:,}".format,
        ),
        column("forbidden", "Pages that robots.txt forbids.", [site.forbidden for site in sites], "{:,}".format),
        column("Crawl-delay (s)", "Crawl-delay in robots.txt.", [s.crawl_delay_s for s in sites], "{:g}".format),
    ]
    return [numbers for numbers in found if numbers.name not in ("forbidden", "Crawl-delay (s)") or any(numbers.values)]


def statuses(record: LiveRecord) -> list[CountTile]:
    return [CountTile(status, phrase(status), number) for status, number in record.summary["statuses"].items()]


def phrase(status: str) -> str:
    """Return the standard phrase of an HTTP status; empty for an unknown one.

    >>> phrase("404"), phrase("999")
    ('Not Found', '')
    """
    return HTTPStatus(int(status)).phrase if status in {str(one.value) for one in HTTPStatus} else ""


def failures(record: LiveRecord) -> list[CountTile]:
    found: dict[str, int] = dict(record.summary["errors_by_kind"])
    if record.summary["forbidden_by_robots"]:
        found[FORBIDDEN] = record.summary["forbidden_by_robots"]
    return [CountTile(kind, KINDS.get(kind, ""), number) for kind, number in found.items()]


def abandoned_sites(record: LiveRecord) -> list[CountTile]:
    return [
        CountTile(kind, ABANDONED.get(kind, ""), number)
        for kind, number in record.summary["abandoned_sites_by_kind"].items()
    ]


def rejected_links(record: LiveRecord) -> list[CountTile]:
    return [
        CountTile(reason, REJECTED.get(reason, ""), number)
        for reason, number in record.summary["rejected_links"].items()
    ]


def types(record: LiveRecord) -> list[CountTile]:
    return [CountTile(mime or "(none)", "", number) for mime, number in record.summary["types"].items()]
