"""The pace of a crawl: what limits it, and a time that the waiting pages cannot undercut (docs/decisions/052)."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.crawler.stage import A, Stage
from trapline.crawler.discovery.site_settings import SiteSettings
from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.speed.pace import (
    Pace,
    SiteLoads,
    expected_pace,
    pace_of,
    pace_of_waiting,
    pace_together,
    site_loads,
)
from trapline.frontier import Rules

START = CrawlProgress(0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0)


def loads(*sites: tuple[float, ...]) -> SiteLoads:
    """Sites as (pages, k, w, pause, answer, address), without settings of their own."""
    pages, k, w, pause, answer, address = np.array(sites, np.float64).reshape(-1, 6).T
    zero, none = np.zeros(len(pages)), np.full(len(pages), np.nan)
    many, common = np.full(len(pages), 1_000.0), np.ones(len(pages), bool)
    return SiteLoads(pages, k, w, pause, answer, zero, zero, address, none, none, zero, many, common)


def options(**changes: Any) -> CrawlOptions:
    rules = live_rules(**{name: changes.pop(name) for name in ("delay_s", "ip_delay_s") if name in changes})
    return CrawlOptions(("http://a.test/",), rules=rules, **changes)


def pace(sites: SiteLoads, given: CrawlOptions, progress: CrawlProgress = START) -> Pace:
    found = pace_of(sites, given, progress, progress)
    assert found is not None
    return found


def test_one_polite_site_is_limited_by_its_delay() -> None:
    found = pace(loads((1_170, 10, 15.0, 1.0, 0.0, 0)), options())
    assert found.limit == "delay" and found.seconds == 117 * 9 + 116 * 15
    assert found.text == (
        "one site, 10 pages every 24 s: at least 47 min for 1,170 pages; if the site is yours, use --delay 0"
    )


@pytest.mark.parametrize(
    ("sites", "given", "limit", "text"),
    [
        (loads((50, 1, 60.0, 60.0, 0.0, 0)), options(), "crawl-delay", "one site, 1 page every 60 s (Crawl-delay"),
        (loads((50, 10, 15.0, 10.0, 0.0, 0)), options(), "crawl-delay", "(Crawl-delay of its robots.txt): at least"),
        (
            loads((50, 10, 15.0, 1.0, 0.0, 0), (50, 10, 15.0, 1.0, 0.0, 0)),
            options(),
            "address",
            "2 sites; some share an address",
        ),
        (
            loads((50, 10, 0.0, 0.0, 2.0, 0)),
            options(delay_s=0.0, pause_s=0.0),
            "answers",
            "one site, which answers in 2 s: at",
        ),
        (
            loads(*((10, 10, 0.0, 0.0, 1.0, at) for at in range(100))),
            options(delay_s=0.0, pause_s=0.0, connections=5),
            "connections",
            "100 sites, 5 connections at once (--connections): at least 3.3 min for 1,000 pages",
        ),
    ],
)
def test_what_limits_a_crawl(sites: SiteLoads, given: CrawlOptions, limit: str, text: str) -> None:
    found = pace(sites, given)
    assert found.limit == limit and text in found.text and "--delay 0" not in found.text


OWN_S = SiteSettings(delay_s=40.0, pause_s=2.0)


@pytest.mark.parametrize(
    ("own", "demanded_s", "limit", "text"),
    [
        (OWN_S, 0, "site-delay", "one site, 2 pages every 42 s (its own settings): at least"),
        (OWN_S, 20, "crawl-delay", "(Crawl-delay of its robots.txt)"),
        (SiteSettings(delay_s=2.0, pause_s=1.0), 0, "site-delay", "2 pages every 3 s (its own settings)"),
        (SiteSettings(pause_s=9.0), 0, "site-delay", "2 pages every 24 s (its own settings)"),
        (SiteSettings(headers=("A: b",)), 0, "delay", "use --delay 0"),
        (None, 0, "delay", "use --delay 0"),
        (None, 20, "crawl-delay", "(Crawl-delay of its robots.txt)"),
    ],
)
def test_the_settings_of_a_site_are_no_crawl_delay(
    monkeypatch: pytest.MonkeyPatch, own: SiteSettings | None, demanded_s: int, limit: str, text: str
) -> None:
    rules, tables = Rules(delay_s=15.0, ip_delay_s=0.0, per_connection=2), {"a.test": own} if own else {}
    stage = Stage(monkeypatch, [f"{A}/{number}" for number in range(9)], rules=rules, sites=tables)
    stage.opens((200, {}, b"User-agent: *\nCrawl-delay: %d" % demanded_s if demanded_s else b""))
    found = pace(site_loads(stage.frontier, stage.sites, 1.0, stage.web.now()), stage.options)
    assert found.limit == limit and text in found.text and ("--delay 0" in found.text) == (limit == "delay")


@pytest.mark.parametrize(("pages", "limit"), [(5, "back-off"), (1_000, "delay")])
def test_a_site_that_waits_after_a_failed_visit_is_limited_by_its_back_off(
    monkeypatch: pytest.MonkeyPatch, pages: int, limit: str
) -> None:
    rules = Rules(delay_s=0.5, ip_delay_s=0.0, per_connection=2, backoff_s=60.0)
    stage = Stage(monkeypatch, [f"{A}/{number}" for number in range(pages)], rules=rules)
    stage.refuses()
    found = pace(site_loads(stage.frontier, stage.sites, 0.5, stage.web.now()), stage.options)
    assert found.limit == limit and ("--delay 0" in found.text) == (limit == "delay")
    assert limit == "delay" or found.text.startswith(
        "one site, which is in back-off for 60 s after failed visits (--backoff): at"
    )


@pytest.mark.parametrize(("later_s", "least_s"), [(0.0, 60.0), (45.0, 15.0), (100.0, 0.0)])
def test_waits_pass_while_a_crawl_is_stopped(monkeypatch: pytest.MonkeyPatch, later_s: float, least_s: float) -> None:
    rules = Rules(delay_s=0.0, ip_delay_s=0.0, backoff_s=60.0)
    stage = Stage(monkeypatch, [f"{A}/"], rules=rules)
    stage.refuses()
    now = stage.frontier.now + later_s
    found = pace_of_waiting(stage.frontier, stage.sites, stage.options, now, 0, 0)
    assert (found.seconds if found else 0.0) == pytest.approx(least_s)


def test_bandwidth_and_speed_limit_a_crawl_without_delays() -> None:
    fast, given = loads((1_000, 100, 0.0, 0.0, 0.001, 0)), options(delay_s=0.0, pause_s=0.0, bandwidth=1_000.0)
    progress = START._replace(pages=100, bytes=1_000_000, seconds=10.0)
    assert pace(fast, given, progress).text.startswith("1 kB/s (--bandwidth): at least 2.8 h for 1,000 pages")
    slow = pace(fast, options(delay_s=0.0, pause_s=0.0), progress)
    assert (slow.limit, slow.seconds) == ("speed", 100.0)
    assert slow.text == "10.0 pages/s so far: at least about 100 s for 1,000 pages"
    polite = loads((1_000, 10, 15.0, 1.0, 0.0, 0))
    assert pace(polite, options(), START._replace(pages=1, seconds=100.0)).limit == "delay"  # it has waited so far


def test_a_crawl_faster_than_the_estimated_times_of_its_servers_goes_by_its_speed() -> None:
    slow, given = loads((1_000, 10, 0.0, 0.0, 0.1, 0)), options(delay_s=0.0, pause_s=0.0)
    assert pace(slow, given, START._replace(pages=100, seconds=4.0)).seconds == 100.0
    fast = pace(slow, given, START._replace(pages=10_000, seconds=10.0))
    assert (fast.limit, fast.seconds) == ("speed", 1.0)
    polite = loads((1_000, 10, 15.0, 1.0, 0.0, 0))
    assert pace(polite, options(), START._replace(pages=10_000, seconds=10.0)).limit == "delay"


def test_a_pause_without_a_delay_is_the_limit_by_its_own_name() -> None:
    found = pace(loads((100, 10, 0.0, 0.1, 0.0, 0)), options(delay_s=0.0, pause_s=0.1))
    assert found.limit == "pause" and found.text.endswith("for 100 pages; if the site is yours, use --pause 0")


@pytest.mark.parametrize("delay_s", [0.0, 15.0])
def test_the_times_of_a_server_are_those_that_were_measured(monkeypatch: pytest.MonkeyPatch, delay_s: float) -> None:
    """Without what was assumed before the first measurement, and without a connection for each visit if it is kept."""
    rules = Rules(delay_s=delay_s, ip_delay_s=0.0, per_connection=2)
    stage = Stage(monkeypatch, [f"{A}/{number}" for number in range(9)], rules=rules)
    stage.opens((200, {}, b""))
    records = stage.frontier.site_records
    expected_s = 0.8**3 * rules.first_response_s + (1 - 0.8**3) * 0.002
    for name, value in (("response_s", expected_s), ("responses", 3), ("connection_s", expected_s), ("connections", 3)):
        records[name][0] = value
    found = site_loads(stage.frontier, stage.sites, 0.0, stage.web.now())
    assert found.answer_s.tolist() == pytest.approx([0.002])
    assert found.connection_s.tolist() == pytest.approx([0.002 if delay_s else 0.0])


def test_there_is_no_pace_before_anything_is_known_that_takes_time() -> None:
    """No estimate of a site without a measured answer: it would be 1e-09 s."""
    unmeasured, given = [(1, 10, 0.0, 0.0, 0.0, at) for at in range(752)], options(delay_s=0.0, pause_s=0.0)
    assert pace_of(loads(*unmeasured), given, START, START) is None
    assert pace(loads(*unmeasured, (1, 10, 0.0, 0.0, 0.5, 752)), given).text.startswith(
        "753 sites; the slowest answers in 0.5 s"
    )
    assert pace(loads(*unmeasured), given, START._replace(pages=100, seconds=10.0)).limit == "speed"
    assert pace(loads((9, 1, 1.0, 0.0, 0.0, 0)), given).seconds == 8.0  # the delays are known


def test_a_goal_ends_the_crawl_before_the_waiting_pages_do() -> None:
    sites = loads((1_000, 10, 15.0, 1.0, 0.0, 0), (20, 10, 15.0, 1.0, 0.0, 1))
    found = pace(sites, options(max_pages=110.0), START._replace(pages=50))
    assert found.pages == 60 and not found.at_least and ": about " in found.text
    assert found.seconds == pytest.approx(40 / (1_000 / 2_385.0), rel=0.01)  # 20 pages come from the other site
    assert pace_of(sites, options(max_pages=50.0), START._replace(pages=50), START) is None


SITES = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 5), st.integers(0, 9), st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)),
    min_size=1,
    max_size=6,
)  # fmt: skip


@given(SITES, st.integers(0, 9), st.integers(1, 3))
def test_no_polite_crawl_is_faster_than_the_pace(
    drawn: list[tuple[int, ...]], ip_delay_s: int, connections: int
) -> None:
    """The pages in any order, each visit as early as the delays and connections allow."""
    sites, given = (
        loads(*drawn),
        options(delay_s=5.0, ip_delay_s=float(ip_delay_s), connections=connections, pause_s=0.0),
    )
    left, ready, address_ready = [one[0] for one in drawn], [0.0] * len(drawn), [0.0] * 3
    free, end = [0.0] * connections, 0.0
    while any(left):
        _, x = min((max(ready[x], address_ready[drawn[x][5]]), x) for x in range(len(drawn)) if left[x])
        _, k, w, pause, answer, address = drawn[x]
        at = free.index(min(free))
        pages = min(k, left[x])
        begin = max(free[at], ready[x], address_ready[address])
        end = free[at] = begin + pages * answer + (pages - 1) * pause
        left[x] -= pages
        ready[x], address_ready[address] = end + w, end + ip_delay_s
    found = pace_of(sites, given, START, START)
    assert found is None or found.seconds <= max(free) + 1e-6


def test_no_page_comes_while_all_sites_are_in_back_off() -> None:
    sites = loads((60, 10, 1.0, 0.0, 0.1, 0), (40, 10, 1.0, 0.0, 0.1, 1))._replace(opens_s=np.array([59.0, 55.0]))
    assert pace(sites, options(max_pages=10.0)).seconds == pytest.approx(55.0 + 10 / (40 / 7.0))


@given(SITES, st.lists(st.integers(0, 30), min_size=6, max_size=6), st.floats(0.01, 1.0))
def test_a_goal_is_reached_when_the_sites_have_given_as_many_pages(
    drawn: list[tuple[int, ...]], opens: list[int], share: float
) -> None:
    """Each site has an address of its own, and gives its pages at a constant rate from its first visit to its last page."""
    own = [(*one[:5], number) for number, one in enumerate(drawn)]
    sites = loads(*own)._replace(opens_s=np.array(opens[: len(own)], np.float64))
    goal = max(1, int(share * sites.pages.sum()))
    found = pace_of(sites, options(max_pages=float(goal), connections=1_000_000, ip_delay_s=0.0), START, START)
    if found is not None and found.limit not in ("connections", "bandwidth"):
        spans = np.maximum(sites.seconds - sites.opens_s, 1e-6)
        at = [found.seconds - 1e-5, found.seconds + 1e-5]
        before, after = (float((sites.pages * np.clip((t - sites.opens_s) / spans, 0.0, 1.0)).sum()) for t in at)
        assert before <= goal + 1e-3 and after >= goal - 1e-3


def test_partitions_together_take_as_long_as_the_slowest_or_as_the_goal() -> None:
    one, two = (
        Pace("delay", pages, seconds, True, 1, 10, 24.0, 0.0, 0.0) for pages, seconds in ((100, 50.0), (300, 200.0))
    )
    both = pace_together([one, two], math.inf, 0)
    assert both is not None and (both.pages, both.seconds, both.sites, both.at_least) == (400, 200.0, 2, True)
    cut = pace_together([one, two], 80.0, 10)
    assert cut is not None and (cut.pages, cut.seconds, cut.at_least) == (70, 70 / 3.5, False)
    assert pace_together([], 80.0, 10) is None and Pace(*both) == both


@pytest.mark.parametrize(
    ("given", "sites", "text"),
    [
        (options(), 1, "one site, 10 pages every 24 s (--per-connection, --pause, --delay): at least 40 min for every 1,000 pages;"),
        (options(max_pages=200.0), 2, "2 sites, each 10 pages every 24 s (--per-connection, --pause, --delay): at least 3.8 min"),
        (options(max_pages=1_000.0), 1, "at least 40 min for 1,000 pages; if the site is yours, use --delay 0"),
        (options(max_pages=5_000.0), 1, "at least 40 min for every 1,000 pages; if the site is yours, use --delay 0"),
        (options(max_pages=5.0), 1, "pace: one site, 10 pages every 24 s (--per-connection, --pause, --delay)"),
        (options(), None, "at least 40 min for every 1,000 pages of one site; for sites of your own, use --delay 0"),
        (options(delay_s=0.0, pause_s=1.0), 1, "at least 15 min for every 1,000 pages; if the site is yours, use --pause 0"),
    ],
)  # fmt: skip
def test_the_pace_before_a_crawl_follows_from_its_delays(given: CrawlOptions, sites: int | None, text: str) -> None:
    assert text in expected_pace(given, sites)
