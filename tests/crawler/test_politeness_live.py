"""A live crawl is polite by the log of its servers: no overlaps, no early requests, no disallowed paths. Its own audit agrees.

`TRAPLINE_POLITE_SITES` sets the size of the web; `make proof` uses 500 sites.
"""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.crawler.live_web import Crawled, Seen, crawled, crawled_web
from tests.crawler.small_server import NOT_FOUND, SmallServer, name_server, page, small_server
from tests.effort import slow
from tests.fetch.name_server import Name
from tests.testweb.webs import numbered
from trapline.crawler.inspect.audit import audit
from trapline.crawler.robots import site_robots
from trapline.fetch import dns
from trapline.fetch.limits import Limits
from trapline.frontier import Frontier
from trapline.testweb import ATTACKS, REFUSALS, Behaviour, Mix, Promise, RequestLog, ServedWeb, build_web, check
from trapline.testweb.answers.redirects import hrefs
from trapline.testweb.answers.robots_txt import NOTHING_ALLOWED, allowed
from trapline.testweb.web.behaviour import behaviours, draw

SITES = int(os.environ.get("TRAPLINE_POLITE_SITES", "60"))
PAGES = 4  # per site
PROMISE = Promise(delay_s=0.2, per_connection=3, pause_s=0.05)
LIMITS = Limits(first_byte_s=1.5, total_s=1.5, body_bytes=300_000)
QUICK = {"limits": LIMITS, "backoff_s": 0.1, "backoff_most_s": 0.2, "retries": 1, "abandon": 50}

FAULTS = (
    *(("not-found", 0.03), ("error", 0.02), ("too-many", 0.03), ("unavailable-once", 0.04)),
    *(("chunked", 0.05), ("gzip", 0.05), ("no-length", 0.05), ("reset", 0.02), ("empty", 0.02)),
    *((fault, 0.01) for fault in ("silent", "dribble", "short-body", "bad-chunks", "garbage", "endless-headers")),
    *(("long-body", 0.01), ("endless-body", 0.02)),
)
HAD_ALL_THE_SAME = ("unavailable-once", "long-body", "endless-body")
REDIRECTS = (("plain", 0.1), ("chain", 0.05), ("away", 0.1), ("loop", 0.05))
ROBOTS = (
    *(("none", 0.15), ("redirect", 0.1), ("away", 0.1), ("error", 0.04), ("reset", 0.04), ("loop", 0.04)),
    ("huge", 0.04),
)


def mixed_web(sites: int) -> ServedWeb:
    """Return a web with every kind of server, three sites to an address. The Crawl-delays are below w, equal to w and above w."""
    base = Behaviour(latency_s=0.002, robots="rules", disallowed=0.3, redirects=REDIRECTS, faults=FAULTS)
    drawn = behaviours(Mix(base, measured_requests=True, http10=0.1, robots=ROBOTS), sites, seed=1)
    return build_web(numbered(sites, PAGES), list(map(_delayed, drawn, range(sites))), sites_per_address=3, seed=1)


def _delayed(behaviour: Behaviour, site: int) -> Behaviour:
    if behaviour.robots not in ("rules", "huge"):  # after a redirect, a Crawl-delay is not known at once
        return behaviour
    delay_s = (0.1, 0.2, 0.4, 0.0, 0.0, 0.0)[site % 6]
    return replace(behaviour, crawl_delay_s=delay_s, announced=site % 4 != 0)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_robots, "FIRST_WAIT_S", 0.05 if SITES < 100 else 0.2)
        yield crawled_web(tmp_path_factory.mktemp("polite") / "crawl", mixed_web(SITES), PROMISE, **QUICK)


def assert_polite(seen: Seen) -> None:
    found = seen.findings
    assert (found.overlaps, found.early, found.disallowed) == ([], [], [])
    assert seen.crawl.summary["politeness_violations"] == 0
    assert seen.crawl.summary["stopped_by"] == "drained"


def test_every_rule_is_kept(seen: Seen) -> None:
    assert_polite(seen)


def test_the_web_contains_every_kind_of_server(seen: Seen) -> None:
    web = seen.log.web
    kinds = Counter(behaviour.robots for behaviour in web.behaviours)
    assert set(kinds) >= {"none", "rules", "redirect", "away", "error", "loop"}
    assert {behaviour.http10 for behaviour in web.behaviours} == {True, False}
    assert {behaviour.crawl_delay_s for behaviour in web.behaviours} == {0.0, 0.1, 0.2, 0.4}
    assert {200, 404, 429, 500, 503} <= set(seen.log.status.tolist()) and len(web.addresses) * 2 < web.sites
    assert seen.findings.visits > 2 * SITES and seen.crawl.summary["forbidden_by_robots"] > SITES / 3


def test_both_checkers_saw_the_same_requests(seen: Seen) -> None:
    """The audit reads the crawl's database, and the checker reads the log of testweb. They share nothing."""
    log = seen.log
    faults = [log.web.fault(page) if page >= 0 else "" for page in log.page.tolist()]
    cut_off = sum(fault in ATTACKS for fault in faults)
    assert 0 <= seen.findings.requests - seen.crawl.summary["requests"] <= cut_off


def test_every_reachable_page_was_fetched(seen: Seen) -> None:
    web = seen.log.web
    fetched_urls = seen.crawl.fetched()
    assert {page for page in range(web.pages) if web.url(page) in fetched_urls} == reachable(web)


def reachable(web: ServedWeb) -> set[int]:
    """Return the pages that a crawl can reach from the home pages: allowed, not refused, and linked directly or through a site that
    answers."""
    found: set[int] = set()
    ahead = [page for page in web.home if _can_be_fetched(web, page)]
    while ahead:
        source = ahead.pop()
        if source not in found:
            found.add(source)
            targets = web.targets[web.offsets[source] : web.offsets[source + 1]].tolist()
            ahead += [target for target in targets if _can_be_fetched(web, target) and _linked(web, target)]
    return found


def _can_be_fetched(web: ServedWeb, page: int) -> bool:
    never = {*REFUSALS, *ATTACKS} - {*HAD_ALL_THE_SAME}
    site = web.site[page]
    return web.fault(page) not in never and allowed(web, site, web.paths[page]) and _robots_can_be_fetched(web, site)


def _robots_can_be_fetched(web: ServedWeb, site: int) -> bool:
    """Return whether the rules of a site can be fetched. A robots.txt on another site is fetched as a page of that site, if that site
    answers."""
    elsewhere = int(draw(web.seed, "robots away", site) * web.sites)
    return web.behaviours[site].robots != "away" or web.behaviours[elsewhere].robots not in NOTHING_ALLOWED


def _linked(web: ServedWeb, page: int) -> bool:
    if web.redirect(page) != "away":
        return True
    by_way_of = int(draw(web.seed, "away", page) * web.sites)
    assert hrefs(web, page, by_way_of)[0].startswith("/-/to/")
    return web.behaviours[by_way_of].robots not in NOTHING_ALLOWED and _robots_can_be_fetched(web, by_way_of)


def test_a_site_with_retry_after_is_not_visited_before(seen: Seen) -> None:
    log, delayed_sites = seen.log, 0
    for row in np.flatnonzero(np.isin(log.status, (429, 503)) & (log.page >= 0)).tolist():
        later = log.arrival_s[(log.site == log.site[row]) & (log.arrival_s > log.arrival_s[row])]
        delayed_sites += len(later) > 0
        assert not len(later) or later.min() - log.end_s[row] >= log.web.behaviours[log.site[row]].retry_after_s
    assert delayed_sites > 3


@slow
@pytest.mark.skipif(SITES > 100, reason="the proof is the one above; these show the same of other protocols")
@pytest.mark.parametrize(("http", "pause_s"), [("1.0", 0.05), ("pipelining", 0.0)])
def test_every_rule_is_kept_with_other_protocols(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, http: str, pause_s: float
) -> None:
    monkeypatch.setattr(site_robots, "FIRST_WAIT_S", 0.05)
    promise = replace(PROMISE, delay_s=0.05, pause_s=pause_s)
    assert_polite(crawled_web(tmp_path / "crawl", mixed_web(15), promise, http=http, **QUICK))


def test_pipelined_pages_are_recorded_with_the_time_that_each_took(tmp_path: Path) -> None:
    """A visit has more pages than are in flight at once. Some requests are sent while earlier answers are read."""
    web = build_web(numbered(4, 40), Behaviour(latency_s=0.01))
    seen = crawled_web(tmp_path / "crawl", web, Promise(delay_s=0.02, per_connection=20), http="pipelining")
    assert_polite(seen)
    quickest = seen.crawl.rows(
        "select min(first_byte_s), min(total_s), max(first_byte_s - total_s), count(*) from fetch"
    )
    assert quickest[0][0] >= 0.01 and quickest[0][1] >= 0.01 and quickest[0][2:] == (0.0, web.pages)


def test_the_estimate_of_a_pipelining_site_counts_each_wait_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight answers were in flight together for 10 ms. Each took more than nothing and less than 10 ms."""
    reported: list[float] = []
    report = Frontier.report

    def noted(frontier: Frontier, *given: object) -> bool:
        reported.append(given[5])  # type: ignore[arg-type]
        return report(frontier, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Frontier, "report", noted)
    web = build_web(numbered(4, 40), Behaviour(latency_s=0.01))
    seen = crawled_web(tmp_path / "crawl", web, Promise(delay_s=0.0, per_connection=20), http="pipelining")
    [(taken,)] = seen.crawl.rows("select sum(total_s) from fetch")
    # This sum counts a wait once for each answer that waits
    assert len(reported) == web.pages and min(reported) > 0.0 and sum(reported) < 0.99 * taken


# ---- the two checkers


def test_both_checkers_find_violations_of_a_stricter_promise(seen: Seen) -> None:
    """The same crawl breaks the promise of twice the delay, and of twice the pause."""
    for changes in ({"delay_s": 0.4}, {"pause_s": 0.1}):
        assert len(check(seen.log, replace(PROMISE, **changes)).early) > SITES / 3
        assert audited(seen.crawl, **changes).violations > SITES / 3


def audited(crawl: Crawled, **changes: float):  # type: ignore[no-untyped-def]
    """Audit the crawl as if it had promised other rules."""
    with closing(sqlite3.connect(":memory:")) as database, closing(sqlite3.connect(crawl.folder / "crawl.db")) as own:
        own.backup(database)
        (text,) = database.execute("select value from meta where key = 'options'").fetchone()
        options = json.loads(text)
        for name, value in changes.items():
            (options if name in options else options["rules"])[name] = value
        database.execute("update meta set value = ? where key = 'options'", (json.dumps(options),))
        return audit(database)


def forged(log: RequestLog, row: int, **values: float) -> RequestLog:
    rows = log._rows.copy()
    for column, value in values.items():
        rows[column][row] = value
    return RequestLog(log.web, log.columns._replace(rows=rows.tobytes()))


def test_a_forged_request_is_found(seen: Seen) -> None:
    """Forge the last visit: it begins too early, or during the visit before it, or it fetches a forbidden page."""
    log = seen.log
    row = len(log) - 1
    others = (log.address == log.address[row]) & (log.connection != log.connection[row])
    end_s = log.end_s[others].max()
    web, site = log.web, int(log.site[row])
    early = forged(log, row, arrival_s=end_s + 0.1, connection=10**6)
    overlapping = forged(log, row, arrival_s=end_s - 0.0001, connection=10**6)
    assert check(early, PROMISE).early == [row]
    assert row in check(overlapping, PROMISE).overlaps
    secret = next(page for page in range(web.pages) if not allowed(web, web.site[page], web.paths[page]))
    moved = forged(log, row, page=secret, site=web.site[secret], address=web.address_of[web.site[secret]])
    assert check(moved, PROMISE).disallowed == [row] and site >= 0


# ---- sites that move


class RotatingNames(dict[str, Name]):
    """Names with another address at each lookup."""

    def __init__(self, addresses: list[str]) -> None:
        super().__init__()
        self._addresses, self._lookups = addresses, Counter[str]()

    def get(self, name: str, default: Name | None = None) -> Name:  # type: ignore[override]
        self._lookups[name] += 1
        return Name((self._addresses[self._lookups[name] % len(self._addresses)],), ttl_s=0)


def test_sites_that_move_keep_the_delay_at_both_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight sites, two addresses, and a name server with another answer each time. By the log of the servers, each address has its
    delay between any two visits, to whatever sites."""
    monkeypatch.setattr(dns, "LEAST_TTL_S", 0.0)
    sites, w = [f"s{number}.test" for number in range(8)], 0.1

    def answers(host: str, target: str) -> bytes:
        return NOT_FOUND if target == "/robots.txt" else page(*(f"/{number}" for number in range(6)))

    with (
        small_server(answers, ("127.9.0.1", "127.9.0.2")) as server,
        name_server(RotatingNames(["127.9.0.1", "127.9.0.2"])) as dns_at,
    ):
        seeds = [f"http://{site}:{server.port}/" for site in sites]
        crawl = crawled(tmp_path / "crawl", seeds, {}, delay_s=w, per_connection=2, nameservers=(dns_at,))
    assert crawl.summary["pages_fetched"] == len(sites) * 7
    assert len({(one.address, one.host) for one in server.log}) > 1.5 * len(sites)
    assert gaps(server, w) == []
    assert crawl.summary["politeness_violations"] == 0


def gaps(server: SmallServer, w: float) -> list[float]:
    """Return the gaps under w between requests to different sites at one address."""
    found = []
    for address in {one.address for one in server.log}:
        there = sorted(one for one in server.log if one.address == address)
        for before, after in pairwise(there):
            if after.host != before.host and after.arrival_s - before.end_s < w:
                found.append(after.arrival_s - before.end_s)
    return found
