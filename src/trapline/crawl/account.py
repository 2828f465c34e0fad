"""What a crawl's database tells of one page or one site: who linked to it, when it was asked for, and what its site was doing before.

For `trapline explain`. It reads rows and never asks the frontier: why a page still waits is the frontier's to say. Python and whole
tables: for people, not for the loop.
"""

import sqlite3
from dataclasses import dataclass
from typing import NamedTuple

from trapline.crawl.folder import options, scope
from trapline.crawl.records import GivenUp
from trapline.crawl.summary import LEFT_OUT, span_of
from trapline.crawl.tally import PAGES
from trapline.errors import ConfigError, nearest
from trapline.fetch.urls import canonical, origin
from trapline.frontier import FETCHED

_LEAST_STOP_S = 1.0  # less is a commit that took its time
_MOST_CANDIDATES = 20_000  # for a name that is nearly right


class Target(NamedTuple):
    """What was asked about; `page` None: the whole site."""

    site: int
    page: int | None
    name: str


class Try(NamedTuple):
    """One time that a visit came to a page."""

    number: int  # among all fetches, in order of sending
    visit: int
    place: int  # among those of its visit
    of: int
    started: float
    total_s: float
    result: int
    status: int
    error: str
    bytes: int
    address: str


class Discovery(NamedTuple):
    url: str  # of the page that linked to it
    at: float
    others: int  # that link to it too


@dataclass(frozen=True, slots=True)
class PageAccount:
    url: str
    is_seed: bool
    discovery: Discovery | None
    tries: list[Try]
    site_before: float | None  # when the visit before the first try ended; None: there was none
    fetched_before: int | None  # pages of its site that came before it, once it came
    began: float  # the crawl
    given_up: GivenUp | None  # its site
    stops: list[tuple[float, float]]  # from when to when the crawl did not run, between two runs

    @property
    def fetched(self) -> bool:
        return any(one.result == FETCHED for one in self.tries)


class SiteAccount(NamedTuple):
    origin: str
    known: int
    fetched: int
    visits: int
    first: float | None
    last: float | None
    began: float
    given_up: GivenUp | None


def found(database: sqlite3.Connection, text: str) -> Target:
    """The page or site that a user means; `ConfigError` with the nearest name if the crawl does not know it.

    A site is written without a path: `example.org`, `https://example.org`.
    """
    scheme, separator, rest = text.partition("://")
    if "/" not in (rest if separator else scheme):
        return _site_named(database, text)
    url = canonical(text)
    if url is None:
        raise ConfigError(f"{text}: not a URL of http or https, nor a site")
    row = database.execute("select site, id, url from page where url = ?", (url,)).fetchone()
    if row is None:
        hint = _left_out(database, url) or _nearest_page(database, url)
        raise ConfigError(f"{url}: the crawl does not know this page; {hint}")
    return Target(*row)


def _site_named(database: sqlite3.Connection, text: str) -> Target:
    given = [text] if "://" in text else [f"http://{text}", f"https://{text}"]
    origins = [(canonical(one) or one).removesuffix("/") for one in given]
    marks = ", ".join("?" * len(origins))
    row = database.execute(f"select id, origin from site where origin in ({marks}) order by id", origins).fetchone()
    if row is None:
        known = database.execute(f"select origin from site limit {_MOST_CANDIDATES}").fetchall()
        raise ConfigError(f"{text}: the crawl knows no such site; {_near(origins[0], [one for (one,) in known])}")
    return Target(row[0], None, row[1])


def _left_out(database: sqlite3.Connection, url: str) -> str:
    reason = scope(database).admits(url)
    return f"it leaves out links to it: {LEFT_OUT[reason]}" if reason else ""


def _nearest_page(database: sqlite3.Connection, url: str) -> str:
    name = origin(url)
    site = database.execute("select id from site where origin = ?", (name,)).fetchone()
    if site is None:
        known = database.execute(f"select origin from site limit {_MOST_CANDIDATES}").fetchall()
        return f"nor its site; {_near(name, [one for (one,) in known])}"
    known = database.execute(f"select url from page where site = ? limit {_MOST_CANDIDATES}", site).fetchall()
    return _near(url, [one for (one,) in known])


def _near(name: str, known: list[str]) -> str:
    hint = nearest(name, known)
    return (
        hint
        if hint.startswith("did you mean")
        else f"it knows {len(known):,} others, such as {known[0]}"
        if known
        else "it knows none"
    )


def page_account(database: sqlite3.Connection, target: Target) -> PageAccount:
    assert target.page is not None
    tries = _tries(database, target.page)
    first = next((one for one in tries if one.result == FETCHED), None)
    return PageAccount(
        url=target.name,
        is_seed=target.name in options(database).seeds,
        discovery=_discovery(database, target.page),
        tries=tries,
        site_before=_end_of_visit_before(database, target.site, tries[0]) if tries else None,
        fetched_before=_fetched_before(database, target.site, first) if first else None,
        began=span_of(database).began,
        given_up=_given_up(database, target.site),
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
    """The first of the fetched pages that link to it. SQLite finds the bytes; that they are those of one id is seen here."""
    wanted = page.to_bytes(4, "little")
    rows = database.execute(
        "select fetch.page, started + total_s, links from fetch where instr(links, ?) > 0 order by 2", (wanted,)
    )
    linking: dict[int, float] = {}
    for source, at, links in rows:
        if _has(bytes(links), wanted) and source != page:
            linking.setdefault(source, at)  # it may have been fetched again since
    if not linking:
        return None
    source = min(linking, key=linking.__getitem__)
    (url,) = database.execute("select url from page where id = ?", (source,)).fetchone()
    return Discovery(url, linking[source], len(linking) - 1)


def _has(links: bytes, wanted: bytes) -> bool:
    return any(links[at : at + 4] == wanted for at in range(0, len(links), 4))


def _end_of_visit_before(database: sqlite3.Connection, site: int, one: Try) -> float | None:
    (end,) = database.execute(
        "select max(started + total_s) from fetch join page on page.id = fetch.page"
        " where page.site = ? and fetch.started < ? and fetch.visit != ? and fetch.address != ''",
        (site, one.started, one.visit),
    ).fetchone()
    return end


def _stops(database: sqlite3.Connection) -> list[tuple[float, float]]:
    """Between two runs the clock goes on and the seconds of crawling do not. The last that a run notes is its end."""
    return database.execute(
        "select before, before + stopped from (select lag(at) over moment as before,"
        " (at - lag(at) over moment) - (seconds - lag(seconds) over moment) as stopped"
        f" from progress window moment as (order by rowid)) where stopped > {_LEAST_STOP_S}"
    ).fetchall()


def _fetched_before(database: sqlite3.Connection, site: int, one: Try) -> int:
    (number,) = database.execute(
        f"select {PAGES} from fetch join page on page.id = fetch.page where page.site = ? and started < ?",
        (site, one.started),
    ).fetchone()
    return int(number)


def site_account(database: sqlite3.Connection, target: Target) -> SiteAccount:
    (known,) = database.execute("select count(*) from page where site = ?", (target.site,)).fetchone()
    fetched, visits, first, last = database.execute(
        f"select {PAGES}, count(distinct visit), min(started), max(started + total_s)"
        " from fetch join page on page.id = fetch.page where page.site = ? and fetch.address != ''",
        (target.site,),
    ).fetchone()
    began, given_up = span_of(database).began, _given_up(database, target.site)
    return SiteAccount(target.name, known, fetched, visits, first, last, began, given_up)


def _given_up(database: sqlite3.Connection, site: int) -> GivenUp | None:
    row = database.execute("select * from given_up where site = ?", (site,)).fetchone()
    return None if row is None else GivenUp(*row)
