"""The audit of a crawl's database finds what its definition says, in forged databases too: each request is compared with all earlier
ones."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.crawler.crawl_folder import RULES, insert, simulated, write_crawl
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.inspect.audit import audit, politeness_violations
from trapline.crawler.inspect.database_reader import open_database
from trapline.frontier import Rules

# Pages 0 and 1 belong to site 0. Page 2 belongs to site 1 on the same address. Page 3 belongs to site 2 on another
# address.
SITE, ADDRESS = [0, 0, 1, 2], ["10.0.0.5", "10.0.0.5", "2001:db8::6"]
W, IP_W = 2.0, 1.0
TWO_DELAYS = Rules(delay_s=W, ip_delay_s=IP_W)
SCHEMA = files("trapline.crawler.files").joinpath("schema.sql").read_text()

Row = tuple[int, int, float, float]  # page, visit, start, seconds
rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 12), st.integers(0, 3)), max_size=8).map(
    lambda drawn: _one_site_each([(page, visit, float(at), float(took)) for page, visit, at, took in drawn])
)


def _one_site_each(drawn: list[Row]) -> list[Row]:
    page = {visit: page for page, visit, *_ in drawn}
    return [(page[visit], visit, start, took) for _, visit, start, took in drawn]


def forged(
    fetches: list[Row],
    robots: Sequence[tuple[int, int, float, int, bytes]] = (),  # site, visit, start, status, body
    rules: Rules = TWO_DELAYS,
    **options: Any,
) -> sqlite3.Connection:
    """Return a database with these requests. A robots.txt takes no time. Without `robots`, all sites answered 404 long ago."""
    database = sqlite3.connect(":memory:")
    database.executescript(SCHEMA)
    crawl_options = CrawlOptions((), rules=rules, **{"pause_s": 0.0, **options})
    database.execute("insert into meta values ('options', ?)", (crawl_options.to_json(),))
    database.executemany("insert into site values (?, ?)", enumerate(f"http://{name}.org" for name in "abc"))
    urls = ("http://a.org/", "http://a.org/secret/x?y", "http://b.org/", "http://c.org/")
    database.executemany("insert into page values (?, ?, ?)", zip(range(4), SITE, urls, strict=True))
    nothing = {"error": "", "bytes": 0}
    for page, visit, start, took in fetches:
        when = {"page": page, "visit": visit, "address": ADDRESS[SITE[page]], "started": start, "total_s": took}
        came = {"result": 3, "status": 200, "mime": "", "marks": 0, "found": 0, "truncated": ""}
        insert(database, "fetch", [{**nothing, **when, **came}])
    for site, visit, start, status, body in robots or [
        (site, 100 + site, -1e6 * (1 + site), 404, b"") for site in range(3)
    ]:
        when = {"site": site, "visit": visit, "address": ADDRESS[site], "started": start, "total_s": 0.0}
        came = {"status": status, "body": body, "error": "" if status else "timeout"}
        insert(database, "robots", [{**nothing, **when, **came}])
    return database


def too_early(spans: list[tuple[int, int, float, float]], delay: float) -> set[int]:
    """Return the visits that begin before an earlier visit of the same owner ended its delay. `spans`: (visit, owner, begin, end) in
    order of begin."""
    return {
        visit
        for at, (visit, owner, begin, _) in enumerate(spans)
        if any(before[1] == owner and begin < before[3] + delay for before in spans[:at])
    }


def slow_violations(fetches: list[Row]) -> int:
    of_visit: dict[int, list[Row]] = {}
    for row in fetches:
        of_visit.setdefault(row[1], []).append(row)
    visits = sorted(
        (min(row[2] for row in own), visit, max(row[2] + row[3] for row in own), SITE[own[0][0]])
        for visit, own in of_visit.items()
    )
    inside = [(visit, visit, start, start + took) for _, visit, start, took in sorted(fetches, key=lambda row: row[2:])]
    return len(
        too_early(inside, 0.0)
        | too_early([(visit, site, begin, end) for begin, visit, end, site in visits], W)
        | too_early([(visit, ADDRESS[site], begin, end) for begin, visit, end, site in visits], IP_W)
    )


@given(rows)
def test_the_audit_finds_the_same_violations_as_the_slow_definition(fetches: list[Row]) -> None:
    # If two requests begin at the same time, the one that ends first is the earlier one.
    assert politeness_violations(forged(fetches)) == slow_violations(fetches)


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(fetches: list[Row], random: Any) -> None:
    shuffled = fetches.copy()
    random.shuffle(shuffled)
    assert bool(politeness_violations(forged(shuffled))) == bool(slow_violations(fetches))


def test_each_rule_is_reported_by_name_with_an_example() -> None:
    found = audit(forged([(0, 0, 0.0, 5.0), (2, 1, 1.0, 1.0), (3, 2, 0.0, 1.0), (3, 3, 2.5, 1.0), (3, 3, 3.0, 1.0)]))
    assert (found.requests, found.visits, found.violations) == (5 + 3, 4 + 3, 2)
    assert found.by_rule == {"apart": 1, "delay": 1, "pause": 1, "robots": 0}
    assert [(one.visit, one.site, one.rules) for one in found.examples] == [
        (1, "http://b.org", ("apart",)),
        (3, "http://c.org", ("delay", "pause")),
    ]


def test_delays_are_compared_with_the_precision_of_floats() -> None:
    """At today's dates the audit accepts w to the microsecond, and reports a delay that is three microseconds shorter."""
    today = 1_760_000_000.123456
    for short, broken in ((0.0, 0), (1e-6, 0), (4e-6, 1)):
        fetches = [(3, 0, today, 1.1), (3, 1, today + 1.1 + W - short, 1.0)]
        assert politeness_violations(forged(fetches)) == broken


def test_requests_of_one_visit_may_overlap_unless_a_pause_is_set() -> None:
    fetches = [(3, 0, 0.0, 1.0), (3, 0, 0.1, 1.0)]
    assert politeness_violations(forged(fetches)) == 1
    assert politeness_violations(forged(fetches, http="pipelining")) == 0
    assert politeness_violations(forged(fetches, http="pipelining", pause_s=0.5)) == 1


def test_a_pause_begins_when_the_previous_answer_ends() -> None:
    fetches = [(3, 0, 0.0, 1.0), (3, 0, 1.4, 1.0)]
    assert politeness_violations(forged(fetches, pause_s=0.4)) == 0
    assert politeness_violations(forged(fetches, pause_s=0.5)) == 1


DELAY = b"User-agent: *\nCrawl-delay: 4\n"


def test_a_crawl_delay_holds_for_its_site_from_the_moment_it_is_read() -> None:
    """The delay holds between visits and within a visit, and robots.txt counts as a request. It does not hold for another site on the
    address."""
    robots = [(0, 0, 0.0, 200, DELAY), (1, 9, 8.5, 404, b"")]
    assert politeness_violations(forged([(0, 0, 4.0, 1.0), (0, 1, 9.0, 1.0)], robots[:1])) == 0
    assert audit(forged([(0, 0, 3.9, 1.0)], robots[:1])).by_rule["pause"] == 1
    assert audit(forged([(0, 0, 4.0, 1.0), (0, 1, 8.9, 1.0)], robots[:1])).by_rule["delay"] == 1
    assert politeness_violations(forged([(0, 0, 4.0, 1.0), (2, 9, 8.5, 1.0)], robots)) == 0


def test_a_shorter_crawl_delay_does_not_shorten_the_delay() -> None:
    robots = [(2, 0, 0.0, 200, b"User-agent: *\nCrawl-delay: 1\n")]
    assert politeness_violations(forged([(3, 0, 1.0, 1.0), (3, 1, 3.0, 1.0)], robots)) == 1
    assert politeness_violations(forged([(3, 0, 1.0, 1.0), (3, 1, 4.0, 1.0)], robots)) == 0


MONTH_S = 30 * 86_400.0
SECRET = b"User-agent: *\nDisallow: /secret\n"


@pytest.mark.parametrize(
    ("robots", "page", "broken"),
    [
        ([(0, 0, 0.0, 200, SECRET)], 0, 0),
        ([(0, 0, 0.0, 200, SECRET)], 1, 1),
        ([(0, 0, 5.0, 200, SECRET)], 1, 1),  # requested after the page, so it does not count
        ([(0, 0, 0.0, 404, b"")], 1, 0),
        ([(0, 0, 0.0, 301, b"")], 1, 0),
        ([(0, 0, 0.0, 503, b"")], 0, 1),
        ([(0, 0, 0.0, 0, b"")], 0, 1),
        ([(0, 0, 0.0, 503, b""), (0, 0, 0.5, 200, SECRET)], 0, 0),  # the later answer counts
        ([(0, 0, 0.0, 200, SECRET), (0, 0, 0.5, 404, b"")], 1, 0),
        ([(1, 9, 0.0, 200, b"")], 0, 1),  # the file of another site
        ([(0, 0, -MONTH_S, 503, b""), (0, 0, 0.0, 503, b"")], 1, 0),  # unreachable for 30 days
        ([(0, 0, -MONTH_S, 503, b""), (0, 0, -9.0, 301, b""), (0, 0, 0.0, 0, b"")], 1, 0),
        ([(0, 0, 1.0 - MONTH_S, 503, b""), (0, 0, 0.0, 503, b"")], 0, 1),
        ([(0, 0, -MONTH_S, 503, b""), (0, 0, -9.0, 404, b""), (0, 0, 0.0, 503, b"")], 0, 1),  # reached in between
        ([(1, 9, -MONTH_S, 503, b""), (0, 0, 0.0, 503, b"")], 0, 1),
    ],
)
def test_the_last_robots_txt_before_a_request_must_allow_its_path(robots: Any, page: int, broken: int) -> None:
    rules = Rules(delay_s=0.0)
    assert audit(forged([(page, 0, 1.0, 1.0)], robots, rules)).by_rule["robots"] == broken


@pytest.mark.parametrize("change", ["address = ''", "error = 'robots'"])
def test_pages_without_a_request_are_not_audited(change: str) -> None:
    database = forged([(3, 0, 0.0, 1.0), (3, 1, 0.5, 1.0)])
    database.execute(f"update fetch set {change} where visit = 1")
    assert politeness_violations(database) == 0


def test_an_empty_crawl_is_polite() -> None:
    assert audit(forged([])) == (3, 3, {"apart": 0, "delay": 0, "pause": 0, "robots": 0}, 0, [])


@pytest.mark.parametrize("strategy", ["breadth-first", "crawl-ability"])
def test_a_simulated_crawl_is_as_polite_in_a_live_folder(tmp_path: Path, strategy: str) -> None:
    graph, crawl = simulated(300, 12, strategy)
    folder = write_crawl(tmp_path / "crawl", graph, crawl)
    found = audit(open_database(folder))
    assert found.violations == 0 and found.visits > 50
    with sqlite3.connect(folder / "crawl.db") as database:
        crawl_options = CrawlOptions((), rules=replace(RULES, delay_s=2.5), pause_s=0.0)
        database.execute("update meta set value = ? where key = 'options'", (crawl_options.to_json(),))
    assert audit(open_database(folder)).by_rule["delay"] > 10
