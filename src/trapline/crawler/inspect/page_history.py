"""The history of one page or one site in a crawl's database: which page linked to it, when it was fetched, what its site did before.

`trapline explain` uses it. This module reads rows and never the frontier, so it does not know why a page still waits.
It is plain Python and scans whole tables: fast enough for people, too slow for the crawl loop.
"""

import json
import sqlite3
from dataclasses import dataclass
from typing import NamedTuple

from trapline.crawler.engine.records import FULL, TOO_MANY, AbandonedSite
from trapline.crawler.engine.row_kinds import EXTRAS, PAGES
from trapline.crawler.inspect.database_reader import options, scope
from trapline.crawler.inspect.summary import REJECTED, span_of
from trapline.errors import ConfigError, nearest
from trapline.fetch.urls import canonical, origin
from trapline.frontier import FETCHED
from trapline.units import counted

_LEAST_STOP_S = 1.0  # a shorter gap is only a slow commit
_MOST_CANDIDATES = 20_000  # names among which the nearest one is looked for


class Target(NamedTuple):
    """The page or site that the user asked about. `page` is None for a whole site."""

    site: int
    page: int | None
    name: str


class Try(NamedTuple):
    """One attempt of a visit to fetch a page."""

    number: int  # its place among all fetches, in order of sending
    visit: int
    place: int  # its place among the fetches of its visit
    of: int  # number of fetches of its visit
    started: float
    total_s: float
    result: int
    status: int
    error: str
    bytes: int
    address: str


class Discovery(NamedTuple):
    url: str  # of the first page that linked to it
    at: float
    others: int  # number of other pages that link to it


@dataclass(frozen=True, slots=True)
class PageHistory:
    url: str
    is_seed: bool
    discovery: Discovery | None
    listed_by: str | None  # URL of a sitemap or feed that lists it
    extra_role: (
        str | None
    )  # what it is besides a page, a sitemap, feed or requisite: what names it, and what became of it
    tries: list[Try]
    site_before: float | None  # when the site's visit before the first try ended; None: there was none
    fetched_before: int | None  # number of pages of its site fetched before it; None: it was not fetched
    began: float  # when the crawl began
    abandoned_sites: AbandonedSite | None  # its site, if it was abandoned
    stops: list[tuple[float, float]]  # begin and end of each time between two runs

    @property
    def fetched(self) -> bool:
        return any(attempt.result == FETCHED for attempt in self.tries)


class SiteHistory(NamedTuple):
    origin: str
    known: int
    fetched: int
    visits: int
    robots_visits: int  # visits among them that requested robots.txt and nothing else
    first: float | None
    last: float | None
    began: float
    abandoned_sites: AbandonedSite | None


def found(database: sqlite3.Connection, text: str) -> Target:
    """Return the page or site that a user named. Raise `ConfigError` with the nearest name if the crawl does not know it.

    A site is written without a path: `example.org`, `https://example.org`.
    """
    scheme, separator, rest = text.partition("://")
    if "/" not in (rest if separator else scheme):
        return _site_named(database, text)
    url = canonical(text)
    if url is None:
        raise ConfigError(
            f"{text}: neither an http or https URL nor a site; give one such as https://example.org/page or example.org"
        )
    row = database.execute("select site, id, url from page where url = ?", (url,)).fetchone()
    if row is None:
        hint = _left_out(database, url) or f"{_nearest_page(database, url)}{_may_be_left_out(database)}"
        raise ConfigError(f"{url}: {hint}")
    return Target(*row)


def _site_named(database: sqlite3.Connection, text: str) -> Target:
    given = [text] if "://" in text else [f"http://{text}", f"https://{text}"]
    origins = [(canonical(url) or url).removesuffix("/") for url in given]
    marks = ", ".join("?" * len(origins))
    row = database.execute(f"select id, origin from site where origin in ({marks}) order by id", origins).fetchone()
    row = row or _site_with_port(database, text)
    if row is None:
        known = database.execute(f"select origin from site limit {_MOST_CANDIDATES}").fetchall()
        raise ConfigError(
            f"{text!r}: the crawl does not know this site; {_near(origins[0], [name for (name,) in known], 'site')}"
        )
    return Target(row[0], None, row[1])


def _site_with_port(database: sqlite3.Connection, host: str) -> tuple[int, str] | None:
    """Return the site of a host that was named without its port. None: there is none, or more than one."""
    sites = database.execute("select id, origin from site where instr(origin, ?)", (f"://{host}:",)).fetchmany(2)
    return sites[0] if len(sites) == 1 else None


def _left_out(database: sqlite3.Connection, url: str) -> str:
    reason = scope(database).admits(url)
    return (
        f"the crawl does not know this page, because its rules reject the URL (reason: {REJECTED[reason]})"
        if reason
        else ""
    )


def _may_be_left_out(database: sqlite3.Connection) -> str:
    """Return a hint at links that were rejected whatever their URLs are, if there were any."""
    sql = "select links, reason from rejected_link where reason in (?, ?) and links > 0"
    left_out = [f"{links:,} ({REJECTED[reason]})" for links, reason in database.execute(sql, (TOO_MANY, FULL))]
    return f"; it may be one of the rejected links: {', '.join(left_out)}" if left_out else ""


def _nearest_page(database: sqlite3.Connection, url: str) -> str:
    name = origin(url)
    site = database.execute("select id from site where origin = ?", (name,)).fetchone()
    if site is None:
        known = database.execute(f"select origin from site limit {_MOST_CANDIDATES}").fetchall()
        return f"the crawl knows neither this page nor its site; {_near(name, [known_name for (known_name,) in known], 'site')}"
    known = database.execute(f"select url from page where site = ? limit {_MOST_CANDIDATES}", site).fetchall()
    return f"the crawl does not know this page; {_near(url, [known_url for (known_url,) in known], 'page')}"


def _near(name: str, known: list[str], what: str) -> str:
    hint = nearest(name, known)
    if hint.startswith("did you mean"):
        return hint
    return f"a {what} that it knows: {known[0]}" if known else f"it knows no {what} yet"


def page_account(database: sqlite3.Connection, target: Target) -> PageHistory:
    assert target.page is not None
    tries = _tries(database, target.page)
    first = next((one for one in tries if one.result == FETCHED), None)
    return PageHistory(
        url=target.name,
        is_seed=target.name in options(database).seeds,
        discovery=_discovery(database, target.page),
        listed_by=_listed_by(database, target.page),
        extra_role=_list_role(database, target.page) or _requisite_role(database, target.page),
        tries=tries,
        site_before=_end_of_visit_before(database, target.site, tries[0]) if tries else None,
        fetched_before=_fetched_before(database, target.site, first) if first else None,
        began=span_of(database).began,
        abandoned_sites=_abandoned_sites(database, target.site),
        stops=_stops(database),
    )


def _tries(database: sqlite3.Connection, page: int) -> list[Try]:
    rows = database.execute(
        "select visit, started, total_s, result, status, error, bytes, address from fetch where page = ? order by started",
        (page,),
    ).fetchall()
    found = []
    for visit, started, *rest in rows:
        (number,) = database.execute("select count(*) from fetch where started < ?", (started,)).fetchone()
        of_visit = "select count(*), total(started < ?) from fetch where visit = ?"
        together, before = database.execute(of_visit, (started, visit)).fetchone()
        found.append(Try(number + 1, visit, int(before) + 1, together, started, *rest))
    return found


def _discovery(database: sqlite3.Connection, page: int) -> Discovery | None:
    """Return the first fetched page that links to this page.

    SQLite finds the bytes of the id anywhere in the links; whether they are one id, at a multiple of four bytes, is checked here.
    """
    wanted = page.to_bytes(4, "little")
    rows = database.execute(
        "select fetch.page, started + total_s, links from fetch where instr(links, ?) > 0 order by 2", (wanted,)
    )
    linking: dict[int, float] = {}
    for source, at, links in rows:
        if _has(bytes(links), wanted) and source != page:
            linking.setdefault(source, at)  # the first fetch counts; the page may have been refetched since
    if not linking:
        return None
    source = min(linking, key=linking.__getitem__)
    (url,) = database.execute("select url from page where id = ?", (source,)).fetchone()
    return Discovery(url, linking[source], len(linking) - 1)


def _listed_by(database: sqlite3.Connection, page: int) -> str | None:
    sql = "select url from listed_page join page on page.id = listed_page.by where listed_page.page = ?"
    row = database.execute(sql, (page,)).fetchone()
    return row[0] if row else None


_NAMED_BY = {
    "robots.txt": "named by robots.txt",
    "guess": "requested because robots.txt names no sitemap",
    "link": "linked by a page",
    "index": "listed by another sitemap",
    "redirect": "the target of a redirect",
    "seed": "a seed",
}


def _list_role(database: sqlite3.Connection, page: int) -> str | None:
    row = database.execute(
        "select named_by, requests, state, entries, rejected from published_list where page = ?", (page,)
    ).fetchone()
    if row is None:
        return None
    named_by, requests, state, entries, rejected = row
    outcome = f"{state}, {entries:,} entries admitted" if state == "read" else state
    others = ", ".join(f"{number:,} ({reason})" for reason, number in json.loads(rejected).items())
    times = f"; requested {counted(requests, 'time')} besides the pages" if requests else ""
    return f"sitemap or feed, {_NAMED_BY.get(named_by, named_by)}: {outcome}{f', rejected: {others}' if others else ''}{times}"


def _requisite_role(database: sqlite3.Connection, page: int) -> str | None:
    row = database.execute(
        "select role, state, url from requisite left join page on page.id = needed_by where page = ?", (page,)
    ).fetchone()
    if row is None:
        return None
    role, state, url = row
    outcome = {"with links": "fetched", "page": "fetched as a page", "missing": "refused by the server"}.get(
        state, state
    )
    return f"requisite{f' ({role})' if role else ''} of {url or 'a page of another partition'}: {outcome}"


def _has(links: bytes, wanted: bytes) -> bool:
    return any(links[at : at + 4] == wanted for at in range(0, len(links), 4))


# A server that allows one request per connection has visits that are in the table `robots` alone.
_REQUESTS = """select visit, started, started + total_s as ended, visit as page_visit
    from fetch join page on page.id = fetch.page where page.site = :site and fetch.address != ''
    union all select visit, started, started + total_s, null from robots where site = :site and address != ''"""
"""The requests that were sent to a site. `page_visit` is null for robots.txt."""


def _end_of_visit_before(database: sqlite3.Connection, site: int, attempt: Try) -> float | None:
    (end,) = database.execute(
        f"select max(ended) from ({_REQUESTS}) where started < :started and visit != :visit",
        {"site": site, "started": attempt.started, "visit": attempt.visit},
    ).fetchone()
    return end


def _stops(database: sqlite3.Connection) -> list[tuple[float, float]]:
    """Return begin and end of each time between two runs, in which the clock goes on and the seconds of crawling do not.

    The last row of progress of a run is its end.
    """
    return database.execute(
        "select before, before + stopped from (select lag(at) over moment as before,"
        " (at - lag(at) over moment) - (seconds - lag(seconds) over moment) as stopped"
        f" from progress window moment as (order by rowid)) where stopped > {_LEAST_STOP_S}"
    ).fetchall()


def _fetched_before(database: sqlite3.Connection, site: int, attempt: Try) -> int:
    (number,) = database.execute(
        f"select {PAGES} from fetch join page on page.id = fetch.page where page.site = ? and started < ?",
        (site, attempt.started),
    ).fetchone()
    return int(number)


_KNOWN = f"select count(*) from page where site = ? and id not in ({EXTRAS})"


def site_account(database: sqlite3.Connection, target: Target) -> SiteHistory:
    (known,) = database.execute(_KNOWN, (target.site,)).fetchone()
    (fetched,) = database.execute(
        f"select {PAGES} from fetch join page on page.id = fetch.page where page.site = ? and fetch.address != ''",
        (target.site,),
    ).fetchone()
    visits, page_visits, first, last = database.execute(
        f"select count(distinct visit), count(distinct page_visit), min(started), max(ended) from ({_REQUESTS})",
        {"site": target.site},
    ).fetchone()
    began, abandoned_sites = span_of(database).began, _abandoned_sites(database, target.site)
    return SiteHistory(target.name, known, fetched, visits, visits - page_visits, first, last, began, abandoned_sites)


def _abandoned_sites(database: sqlite3.Connection, site: int) -> AbandonedSite | None:
    row = database.execute("select * from abandoned_site where site = ?", (site,)).fetchone()
    return None if row is None else AbandonedSite(*row)
