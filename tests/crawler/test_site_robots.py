"""robots.txt: what each answer means for the visit, and which rules hold afterwards."""

import math
import zlib
from typing import Any

import pytest

from tests.crawler.stage import A, B, Stage, Wire
from tests.frontier.test_replay import assert_same_state
from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.robots import cross_site
from trapline.crawler.robots.site_robots import (
    FIRST_WAIT_S,
    LONGEST_PAUSE_S,
    MOST_WAITS,
    RobotsFile,
    RobotsResponse,
    Step,
)
from trapline.fetch.robots.answer import FIRST_RETRY_S, GIVEN_UP_AFTER_S, LONGEST_S, MOST_REDIRECTS, SHORTEST_S
from trapline.fetch.robots.parser import LIMIT_BYTES, Robots, parse
from trapline.frontier import AS_RULES, Frontier, Rules
from trapline.frontier.journal import Call, read
from trapline.frontier.layout import FETCHED as FETCHED_PAGE
from trapline.frontier.layout import GONE, WAITING
from trapline.frontier.replay import replay
from trapline.strategies import load_strategy

PAGES = [f"{A}/{number}" for number in range(1, 5)]
FORBIDS_1, FORBIDS_2 = (b"User-agent: *\nDisallow: /%d\n" % number for number in (1, 2))


def delayed(seconds: float) -> bytes:
    return f"User-agent: *\nCrawl-delay: {seconds}".encode()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch, PAGES)


def moved(wire: Wire, where: str, status: int = 301) -> None:
    wire.answers(status, {"Location": where}, b"")


# ---- what an answer means


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_missing_file_allows_everything_for_a_day(stage: Stage, status: int) -> None:
    wire = stage.opens((status, {}, FORBIDS_1))
    assert wire.targets[-1] == "/1"
    assert stage.site().robots_until == LONGEST_S


@pytest.mark.parametrize("status", [429, 500, 503, 599])
def test_an_unreachable_file_allows_nothing_and_is_requested_again(stage: Stage, status: int) -> None:
    stage.wires[0].opens().answers(status)
    assert stage.site().robots is None and stage.life("/1") == WAITING
    stage.passes(61.0)
    assert stage.wires[1].opens().targets == ["/robots.txt"]


@pytest.mark.parametrize(
    ("cached", "kept_s"), [("max-age=7200", 7200.0), ("no-cache, max-age=5", SHORTEST_S), ("", LONGEST_S)]
)
def test_rules_hold_as_long_as_the_server_says_within_bounds(stage: Stage, cached: str, kept_s: float) -> None:
    stage.opens((200, {"Cache-Control": cached}, FORBIDS_1))
    assert stage.site().robots_until == kept_s


def test_expired_rules_are_requested_again_even_within_a_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, PAGES, rules=Rules(delay_s=10.0, per_connection=5), pause_s=1.0)
    wire = stage.opens((200, {"Cache-Control": "max-age=1"}, b""))
    stage.site().robots_until = stage.loop.time() + 0.5
    wire.answers()
    stage.passes(1.0)
    assert wire.targets == ["/robots.txt", "/1", "/robots.txt"]


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_compressed_file_is_read(stage: Stage, coding: str) -> None:
    packer = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
    body = packer.compress(FORBIDS_1) + packer.flush()
    wire = stage.opens((200, {"Content-Encoding": coding}, body))
    assert wire.targets[-1] == "/2"


def test_a_file_that_cannot_be_decoded_allows_nothing(stage: Stage) -> None:
    stage.wires[0].opens().answers(200, {"Content-Encoding": "gzip"}, FORBIDS_1)
    assert stage.site_failures() == ["robots"] and [record.error for record in stage.robots] == ["encoding"]


def test_only_the_beginning_of_a_long_compressed_file_counts(stage: Stage) -> None:
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(FORBIDS_1 + b"# filler\n" * (LIMIT_BYTES // 4)) + packer.flush()
    wire = stage.opens((200, {"Content-Encoding": "gzip"}, body))
    assert wire.targets[-1] == "/2"
    assert len(stage.robots[0].body) == LIMIT_BYTES


# ---- redirects


def test_redirects_within_the_site_are_followed_with_a_pause(stage: Stage) -> None:
    wire = stage.wires[0].opens()
    moved(wire, "/other.txt")
    stage.passes(0.5)
    assert len(wire.sent) == 1
    stage.passes(0.5)
    assert wire.targets == ["/robots.txt", "/other.txt"]
    wire.answers(200, {}, FORBIDS_1)
    stage.passes(1.0)
    assert wire.targets[-1] == "/2"
    assert [record.url for record in stage.robots] == [f"{A}/robots.txt", f"{A}/other.txt"]


def test_too_many_redirects_count_as_no_file(stage: Stage) -> None:
    wire = stage.wires[0].opens()
    for hop in range(MOST_REDIRECTS + 1):
        moved(wire, f"/{hop}.txt")
        stage.passes(1.0)
    assert wire.targets[-1] == "/1" and len(wire.sent) == MOST_REDIRECTS + 2


@pytest.mark.parametrize(
    "where", ["mailto:a@b.test", "http://[", "ftp://a.test/robots.txt", "http://b.test:25/robots.txt"]
)
def test_a_redirect_to_an_invalid_target_counts_as_no_file(stage: Stage, where: str) -> None:
    moved(stage.wires[0].opens(), where)
    stage.passes(1.0)
    assert stage.wires[0].targets[-1] == "/1"


def test_a_redirect_without_a_target_counts_as_no_file(stage: Stage) -> None:
    stage.wires[0].opens().answers(304, {}, b"")
    stage.passes(1.0)
    assert stage.wires[0].targets[-1] == "/1"


def test_a_redirect_before_a_closed_connection_is_followed_after_the_delay(stage: Stage) -> None:
    stage.wires[0].opens().answers(302, {"Location": "/x"}, b"", keep=False)
    stage.passes(14.5)
    assert len(stage.wires) == 1
    stage.passes(0.5)
    assert stage.wires[1].opens().targets == ["/x"]


def test_a_redirect_to_another_site_waits_for_that_file_and_takes_its_rules(stage: Stage) -> None:
    moved(stage.wires[0].opens(), f"{B}/robots.txt")
    stage.passes(0.0)
    assert stage.crawler.active == 1 and stage.page_results() == []  # the site is delayed; nothing failed
    other = stage.wires[1]
    assert other.address == "127.0.0.2" and other.opens().targets == ["/robots.txt"]
    other.answers(200, {}, b"")
    stage.passes(1.0)
    other.answers(200, {"Content-Type": "text/plain"}, FORBIDS_1)
    stage.passes(15.0)
    assert stage.wires[2].opens().targets == ["/2"]
    assert stage.site(B).robots is not stage.site().robots
    assert stage.crawler.tally.fetched == 0  # a robots.txt is no page, also if it is fetched like one


def test_known_rules_of_another_site_are_taken_at_once_until_they_expire_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, (f"{A}/1", f"{A}/2", f"{B}/"))
    a, b = stage.wires
    b.opens().answers(200, {"Cache-Control": "max-age=7200"}, FORBIDS_1)
    stage.passes(1.0)
    moved(a.opens(), f"{B}/robots.txt")
    stage.passes(1.0)
    assert a.targets == ["/robots.txt", "/2"] and stage.site().robots is stage.site(B).robots
    assert stage.site().robots_until == stage.site(B).robots_until == 7200.0


def test_expired_rules_of_another_site_are_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules are not just renewed: the other site now forbids /2 in place of /1."""
    stage = Stage(monkeypatch, (f"{A}/1", f"{A}/2", f"{B}/"))
    a, b = stage.wires
    b.opens().answers(200, {}, FORBIDS_1)
    stage.passes(1.0)
    b.answers()
    stage.site(B).robots_until = stage.loop.time()
    moved(a.opens(), f"{B}/robots.txt")
    assert stage.site().robots is None
    stage.passes(15.0)
    newest = next(wire for wire in reversed(stage.wires) if wire.address == "127.0.0.2")
    assert newest.opens().targets == ["/robots.txt"]
    newest.answers(200, {}, FORBIDS_2)
    again = at_a(stage)
    moved(again.opens(), f"{B}/robots.txt")
    stage.passes(1.0)
    assert again.targets[-1] == "/1" and stage.site().robots is stage.site(B).robots


# ---- how long a file on another site holds


def at_a(stage: Stage) -> Wire:
    """Return the newest connection to a.test."""
    return next(wire for wire in reversed(stage.wires) if wire.address == "127.0.0.1")


def answered_by_b(monkeypatch: pytest.MonkeyPatch, *answer: Any) -> Stage:
    """Redirect the robots.txt of a.test to x.txt of b.test, and answer that request at time 1."""
    stage = Stage(monkeypatch, (f"{A}/1", f"{A}/2"), abandon=99)
    moved(stage.wires[0].opens(), f"{B}/x.txt")
    stage.passes(0.0)
    b = stage.wires[1].opens().answers(404)
    stage.passes(1.0)
    b.answers(*answer)
    return stage


@pytest.mark.parametrize(("cached", "kept_s"), [({}, LONGEST_S), ({"Cache-Control": "max-age=7200"}, 7200.0)])
@pytest.mark.parametrize("status", [200, 404])
def test_a_site_that_is_redirected_later_has_the_rest_of_the_time(
    monkeypatch: pytest.MonkeyPatch, status: int, cached: dict[str, str], kept_s: float
) -> None:
    """After that time the file is fetched again."""
    stage = answered_by_b(monkeypatch, status, cached, FORBIDS_1)
    assert stage.site().robots_until == 1.0 + kept_s
    late_site = LateSite(stage)
    stage.passes(kept_s - 3.0)
    assert late_site.is_redirected() and late_site.site.robots_until == 1.0 + kept_s
    stage.passes(3.0)
    assert not late_site.is_redirected() and stage.web.elsewhere.awaits(f"{B}/x.txt")


class LateSite:
    """c.test, whose robots.txt redirects to x.txt of b.test too."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        stage.link_resolver.seed_pages(["http://c.test/"], stage.loop.time())
        self.site = stage.site("http://c.test")

    def is_redirected(self) -> bool:
        """Return whether the site has rules at once."""
        robots = RobotsFile(self.site)
        return robots._elsewhere(self._stage.web, 0, f"{B}/x.txt") is Step.GO


@pytest.mark.parametrize(
    ("status", "headers", "kept_s"),
    [(503, {}, FIRST_RETRY_S), (429, {}, FIRST_RETRY_S), (503, {"Retry-After": "900"}, 900.0)],
)
def test_an_unreachable_file_on_another_site_is_requested_again(
    monkeypatch: pytest.MonkeyPatch, status: int, headers: dict[str, str], kept_s: float
) -> None:
    """The request waits until the other site allows it, and not every site that redirects there sends one."""
    stage = answered_by_b(monkeypatch, status, headers, b"")
    came_at = stage.loop.time()
    stage.passes(15.0)
    moved(at_a(stage).opens(), f"{B}/x.txt")
    assert stage.site_failures() == ["robots"] and stage.site().robots is None
    assert stage.frontier.open_at(stage.site().id) == came_at + kept_s
    stage.passes(came_at + kept_s - stage.loop.time())
    moved(at_a(stage).opens(), f"{B}/x.txt")
    stage.passes(60.0)
    b = next(wire for wire in reversed(stage.wires) if wire.address == "127.0.0.2")
    assert b.opens().targets == ["/x.txt"]
    b.answers(200, {"Content-Type": "text/plain"}, FORBIDS_1)
    stage.passes(60.0)
    assert at_a(stage).opens().targets[-1] == "/2" and stage.site_failures() == ["robots"]


def test_a_file_that_arrives_as_a_page_replaces_the_earlier_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the page has failed and is retried."""
    stage = answered_by_b(monkeypatch, 503, {}, b"")
    stage.passes(15.0)
    moved(at_a(stage).opens(), f"{B}/x.txt")
    stage.passes(60.0)
    assert stage.wires[-1].address == "127.0.0.2" and stage.wires[-1].opens().targets == ["/x.txt"]
    stage.wires[-1].answers(200, {}, FORBIDS_1)
    stage.passes(FIRST_RETRY_S)
    a = at_a(stage)
    moved(a.opens(), f"{B}/x.txt")
    stage.passes(1.0)
    assert a.targets == ["/robots.txt", "/2"]


def test_a_waiting_site_gets_one_answer_however_many_requests_it_made(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, (f"{A}/1", f"{A}/2"), abandon=99)
    for wait in range(3):
        moved(at_a(stage).opens(), f"{B}/x.txt")
        stage.passes(max(15.0, FIRST_WAIT_S * 2.0**wait))
    b = stage.wires[1].opens().answers(404)
    stage.passes(1.0)
    b.answers(200, {}, FORBIDS_1)
    assert [record.url for record in stage.robots if record.address == ""] == [f"{B}/x.txt"]


# ---- files that stay unreachable


def test_a_file_that_is_unreachable_for_thirty_days_counts_as_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9309, 2.3.1.4. The file is requested every hour, and later once a day."""
    rules = Rules(delay_s=15.0, per_connection=10, backoff_s=3600.0)
    stage = Stage(monkeypatch, PAGES, abandon=10_000, rules=rules)
    while stage.loop.time() < GIVEN_UP_AFTER_S:
        stage.wires[-1].opens().answers(503)
        assert stage.site().robots is None
        stage.passes(3601.0)
    assert stage.page_results() == []
    for page, answer in enumerate(((503, {}, b""), (500, {}, b""), (200, {}, b"User-agent: *\nDisallow: /9")), 1):
        wire = stage.opens(answer)
        assert wire.targets[-1] == f"/{page}" and stage.site().robots_until == stage.loop.time() - 1.0 + LONGEST_S
        stage.site().robots_until = 0.0
        wire.answers(keep=False)
        stage.passes(15.0)
    stage.wires[-1].opens().answers(503)  # the file was reached, so this is the first day again
    assert stage.wires[-1].targets == ["/robots.txt"] and stage.site_failures()[-1] == "robots"


@pytest.mark.parametrize("status", [200, 404])
def test_an_answer_ends_the_time_that_a_file_was_unreachable(stage: Stage, status: int) -> None:
    stage.wires[0].opens().ends("timeout")
    assert stage.site().robots_unreachable_since == 0.0
    stage.passes(61.0)
    moved(stage.wires[1].opens(), "/other.txt")
    assert stage.site().robots_unreachable_since == 0.0
    stage.passes(1.0)
    stage.wires[1].answers(status, {}, b"")
    assert stage.site().robots_unreachable_since == math.inf


def test_the_known_rules_of_another_site_end_the_time_that_a_file_was_unreachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a failure thirty days after the first one allows nothing."""
    stage = Stage(monkeypatch, (f"{A}/1", f"{A}/2", f"{B}/"), abandon=99)
    a, b = stage.wires
    a.opens().answers(503)
    b.opens().answers(200, {}, FORBIDS_1)
    assert stage.site().robots_unreachable_since == 0.0
    stage.passes(61.0)
    moved(at_a(stage).opens(), f"{B}/robots.txt")
    assert stage.site().robots is stage.site(B).robots and stage.site().robots_unreachable_since == math.inf
    stage.passes(GIVEN_UP_AFTER_S)
    robots = RobotsFile(stage.site())
    assert robots._apply_answer(stage.web, 0, RobotsResponse(503, "", None, b"", None, None)) is Step.FAILED


@pytest.mark.parametrize("hops", [1, MOST_REDIRECTS + 1])
def test_redirects_without_a_file_end_the_time_that_a_file_was_unreachable(stage: Stage, hops: int) -> None:
    stage.wires[0].opens().answers(503)
    stage.passes(61.0)
    wire = stage.wires[1].opens()
    for hop in range(hops):
        assert stage.site().robots_unreachable_since == 0.0
        moved(wire, "mailto:a@b.test" if hops == 1 else f"/{hop}.txt")
        stage.passes(1.0)
    assert stage.site().robots_unreachable_since == math.inf


def test_a_file_on_another_site_that_never_arrives_fails_the_visit_in_the_end(stage: Stage) -> None:
    for attempt in range(MOST_WAITS + 1):
        wire = next(wire for wire in reversed(stage.wires) if wire.address == "127.0.0.1")
        moved(wire.opens(), f"{B}/robots.txt")
        assert stage.site_failures() == (["robots"] if attempt == MOST_WAITS else []) and stage.page_results() == []
        stage.passes(max(15.0, FIRST_WAIT_S * 2.0**attempt))


# ---- out-of-band fetches


def fetched_as_page(monkeypatch: pytest.MonkeyPatch, status: int = 200, **options: Any) -> Stage:
    """Fetch x.txt of b.test as a page. a.test has not been visited yet."""
    stage = Stage(monkeypatch, (f"{A}/1", f"{A}/2", f"{B}/x.txt"), **options)
    b = stage.wires[1].opens().answers(404)
    stage.passes(1.0)
    b.answers(status, {"Content-Type": "text/plain"}, FORBIDS_1)
    assert stage.life("/x.txt", B) == (FETCHED_PAGE if status == 200 else GONE)
    return stage


@pytest.mark.parametrize(("status", "allowed"), [(200, "/2"), (404, "/1")])
def test_a_file_that_was_fetched_as_a_page_is_fetched_out_of_band(
    monkeypatch: pytest.MonkeyPatch, status: int, allowed: str
) -> None:
    """The fetch keeps the delay of its site, and the page is not counted again."""
    stage = fetched_as_page(monkeypatch, status)
    before, results, life = stage.crawler.tally.fetched, stage.page_results(), stage.life("/x.txt", B)
    moved(stage.wires[0].opens(), f"{B}/x.txt")
    stage.passes(14.9)
    assert len(stage.wires) == 2
    stage.passes(0.1)
    a, b = sorted(stage.wires[2:], key=lambda wire: wire.address)
    assert b.address == "127.0.0.2" and b.opens().targets == ["/x.txt"]
    b.answers(status, {"Content-Type": "text/plain"}, FORBIDS_1)
    assert (stage.crawler.tally.fetched, stage.page_results(), stage.life("/x.txt", B)) == (before, results, life)
    assert [url for url, _ in stage.out_of_band()] == ["/x.txt"] and stage.unanswered() == []
    assert stage.frontier.open_at(stage.site(B).id) == stage.loop.time() + 15.0
    assert a.opens().targets == [allowed]


def test_the_log_of_an_out_of_band_visit_restores_the_same_frontier(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = fetched_as_page(monkeypatch)
    moved(stage.wires[0].opens(), f"{B}/x.txt")
    stage.passes(15.0)
    b = next(wire for wire in stage.wires[2:] if wire.address == "127.0.0.2")
    b.opens().answers(200, {}, FORBIDS_1)
    frontier = Frontier(load_strategy("breadth-first"), stage.options.rules)
    assert stage.out_of_band() == [("/x.txt", "")]
    replay(frontier, b"".join(batch.calls for batch in stage.batches))
    assert_same_state(frontier, stage.frontier)


def test_a_failed_out_of_band_visit_is_repeated_at_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = fetched_as_page(monkeypatch)
    for attempt in range(2):
        a = next(wire for wire in reversed(stage.wires) if wire.address == "127.0.0.1")
        moved(a.opens(), f"{B}/x.txt")
        stage.passes(16.0)
        b = next(wire for wire in reversed(stage.wires) if wire.address == "127.0.0.2")
        assert b.opens().targets == ["/x.txt"]
        b.ends("timeout")
        assert stage.out_of_band() == [("/x.txt", "timeout")] * (attempt + 1)
    assert stage.crawler.tally.failed == 0 and stage.life("/x.txt", B) == FETCHED_PAGE


def test_a_file_in_flight_is_not_requested_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waiting site comes back while the answer is in flight."""
    stage = fetched_as_page(monkeypatch)
    moved(stage.wires[0].opens(), f"{B}/x.txt")
    stage.passes(15.0)
    a, b = sorted(stage.wires[2:], key=lambda wire: wire.address)
    assert b.opens().targets == ["/x.txt"]
    moved(a.opens(), f"{B}/x.txt")
    b.answers(200, {"Content-Type": "text/plain"}, FORBIDS_1)
    stage.passes(60.0)
    assert [wire.address for wire in stage.wires[4:]].count("127.0.0.2") == 0
    assert stage.out_of_band() == [("/x.txt", "")]


def test_a_forbidden_file_is_not_fetched_out_of_band(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, (f"{A}/1", f"{B}/1"))
    stage.wires[1].opens().answers(200, {}, FORBIDS_1)
    stage.passes(1.0)
    assert stage.life("/1", B) == GONE
    moved(stage.wires[0].opens(), f"{B}/1")
    stage.passes(100.0)
    assert {wire.address for wire in stage.wires[2:]} == {"127.0.0.1"}


def test_an_out_of_band_fetch_does_not_use_the_goal_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = fetched_as_page(monkeypatch, max_pages=2)
    moved(stage.wires[0].opens(), f"{B}/x.txt")
    stage.passes(15.0)
    a, b = sorted(stage.wires[2:], key=lambda wire: wire.address)
    assert b.opens().targets == ["/x.txt"]
    assert stage.crawler.used == stage.crawler.tally.fetched == 1
    a.opens().answers(404)
    stage.passes(1.0)
    assert a.targets[-1] == "/1"


def test_several_files_of_a_site_are_fetched_in_one_visit_up_to_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    urls = [f"{B}/{number}.txt" for number in range(3)]
    stage = Stage(monkeypatch, urls, rules=Rules(delay_s=15.0, per_connection=2))
    wire = stage.opens()
    for _ in range(2):
        wire.answers()
        stage.passes(1.0)
    stage.passes(15.0)
    stage.wires[-1].opens().answers()
    for url in urls:
        stage.web.discover(url)
    stage.passes(15.0)
    assert stage.wires[-1].opens().answers().responses_received == 1
    stage.passes(1.0)
    stage.wires[-1].answers()
    stage.passes(15.0)
    assert stage.wires[-1].opens().targets == ["/2.txt"] and stage.wires[-2].targets == ["/0.txt", "/1.txt"]


def test_the_page_limit_of_a_site_does_not_stop_an_out_of_band_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, (f"{A}/1", f"{B}/"), rules=Rules(delay_s=15.0, per_connection=2, pages_per_site=1))
    stage.opens().answers()
    moved(stage.wires[0].opens(), f"{B}/x.txt")
    stage.passes(15.0)
    b = next(wire for wire in stage.wires[2:] if wire.address == "127.0.0.2")
    assert b.opens().targets == ["/x.txt"]


def test_an_abandoned_site_gets_no_out_of_band_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = fetched_as_page(monkeypatch)
    moved(stage.wires[0].opens(), f"{B}/x.txt")
    stage.crawler.abandon(stage.site(B), "visits", "")
    stage.passes(100.0)
    assert {wire.address for wire in stage.wires[2:]} == {"127.0.0.1"}


def test_an_unchanged_page_does_not_answer_a_waiting_site(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, (f"{B}/x.txt",), refresh=RefreshOptions(continuous=True))
    stage.opens().answers(200, {"Content-Type": "text/html", "ETag": '"1"'}, b"<p>a")
    while len(stage.wires) < 2:
        stage.passes(15.0)
    b = stage.wires[1].opens()
    assert b.targets == ["/x.txt"] and b"If-None-Match" in b.sent[0]
    others = OtherPartitions(stage)
    stage.web.robots_requested(f"{B}/x.txt", 2)
    b.answers(304, {"ETag": '"1"'}, b"")
    assert others.replies == []


# ---- requests of other partitions


class OtherPartitions:
    """Records the answers and requests that the crawl sends to other partitions."""

    def __init__(self, stage: Stage) -> None:
        self.replies: list[tuple[int, str, RobotsResponse]] = []
        self.requested: list[str] = []
        self.reply = lambda *reply: self.replies.append(reply)
        self.ask = self.requested.append
        self._stage = stage
        stage.crawler.features.others = self  # type: ignore[assignment]

    def rest(self) -> None: ...

    def rules(self) -> Robots:
        """Return the rules of the last answer."""
        _, _, answer = self.replies[-1]
        assert (answer.status, answer.error, answer.location) == (200, "", None)
        return parse(answer.body, self._stage.web.agent)


def test_another_partition_gets_the_rules_when_they_are_known(stage: Stage) -> None:
    others = OtherPartitions(stage)
    stage.web.robots_requested(f"{B}/robots.txt", 2)
    stage.passes(0.0)
    stage.web.robots_requested(f"{B}/robots.txt", 3)
    other = stage.wires[1]
    assert other.address == "127.0.0.2" and other.opens().targets == ["/robots.txt"] and others.replies == []
    other.answers(200, {"Cache-Control": "max-age=7200"}, FORBIDS_1 + delayed(3))
    assert [(to, url) for to, url, _ in others.replies] == [(2, f"{B}/robots.txt"), (3, f"{B}/robots.txt")]
    rules = others.rules()
    assert (rules.allows("/1"), rules.allows("/2"), rules.crawl_delay_s) == (False, True, 3.0)
    stage.passes(3000.0)
    stage.web.robots_requested(f"{B}/robots.txt", 4)
    assert others.replies[-1][:2] == (4, f"{B}/robots.txt") and not others.rules().allows("/1")
    assert [answer.max_age_s for _, _, answer in others.replies] == [7200.0, 7200.0, 4200.0]


def test_another_partition_gets_the_answer_of_a_page(stage: Stage) -> None:
    others = OtherPartitions(stage)
    stage.web.robots_requested(f"{B}/x.txt", 2)
    stage.passes(0.0)
    other = stage.wires[1].opens().answers(404)
    stage.passes(1.0)
    moved(other, f"{A}/y.txt")
    ((to, url, answer),) = others.replies
    assert (to, url, answer.status, answer.location) == (2, f"{B}/x.txt", 301, f"{A}/y.txt")


def test_another_partition_gets_the_current_answer_of_a_page_that_was_fetched_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = fetched_as_page(monkeypatch)
    others = OtherPartitions(stage)
    stage.web.robots_requested(f"{B}/x.txt", 2)
    stage.passes(15.0)
    stage.wires[-1].opens().answers(200, {}, FORBIDS_1)
    assert not others.rules().allows("/1") and others.replies[-1][:2] == (2, f"{B}/x.txt")


def test_the_oldest_of_the_files_that_never_arrive_is_forgotten(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_site, "MOST_REQUESTED", 2)
    others = OtherPartitions(stage)
    for path in ("/x.txt", "/y.txt", "/y.txt", "/z.txt"):
        stage.web.robots_requested(B + path, 2)
    assert [stage.web.elsewhere.awaits(B + path) for path in ("/x.txt", "/y.txt", "/z.txt")] == [False, True, True]
    assert others.replies == []


def test_the_rules_of_another_partition_are_requested_and_taken(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    others = OtherPartitions(stage)
    monkeypatch.setattr(stage.link_resolver, "is_ours", lambda url: not url.startswith(B))
    moved(stage.wires[0].opens(), f"{B}/robots.txt")
    stage.passes(0.0)
    assert others.requested == [f"{B}/robots.txt"] and len(stage.wires) == 1
    stage.passes(15.0)
    moved(stage.wires[1].opens(), f"{B}/robots.txt")  # no answer yet: the file is requested again
    assert others.requested == [f"{B}/robots.txt"] * 2
    stage.web.robots_received(f"{B}/robots.txt", RobotsResponse(200, "", None, FORBIDS_1, 4000.0, None))
    stage.passes(15.0)
    assert stage.wires[2].opens().targets == ["/2"]
    assert [record.url for record in stage.robots][-1] == f"{B}/robots.txt"


# ---- Crawl-delay


def requests_at(stage: Stage, wire: Wire, count: int) -> list[float]:
    """Answer the next requests of this connection at once. Return their times."""
    moments, requested = [], len(wire.sent)
    while len(moments) < count:
        stage.passes(0.25)
        if len(wire.sent) > requested:
            requested += 1
            moments.append(stage.loop.time())
            wire.answers()
    return moments


def test_a_crawl_delay_is_the_pause_inside_a_visit(stage: Stage) -> None:
    wire = stage.wires[0].opens().answers(200, {}, delayed(3))
    began = stage.loop.time()
    assert [moment - began for moment in requests_at(stage, wire, 3)] == [3.0, 6.0, 9.0]


def test_a_shorter_crawl_delay_does_not_shorten_the_pause(stage: Stage) -> None:
    wire = stage.wires[0].opens().answers(200, {}, delayed(0.25))
    assert requests_at(stage, wire, 3) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("delay_s", [0.0, 2.0, 5.0])
def test_a_crawl_delay_holds_between_visits_too(monkeypatch: pytest.MonkeyPatch, delay_s: float) -> None:
    rules = Rules(delay_s=delay_s, per_connection=1)
    stage = Stage(monkeypatch, PAGES, rules=rules, pause_s=0.0)
    wire = stage.wires[0].opens().answers(200, {}, delayed(5))
    assert requests_at(stage, wire, 3) == [5.0, 10.0, 15.0]
    assert len({fetch.visit for fetch in stage.fetches}) == 3


@pytest.mark.parametrize(("delay_s", "headers"), [(86_400, {}), (3_600, {"Cache-Control": "max-age=0"}), (3_500, {})])
def test_rules_outlive_the_crawl_delay_that_they_ask_for(
    monkeypatch: pytest.MonkeyPatch, delay_s: int, headers: dict[str, str]
) -> None:
    stage = Stage(monkeypatch, [f"{A}/1", f"{A}/2"])
    stage.wires[0].opens().answers(200, headers, f"User-agent: *\nCrawl-delay: {delay_s}\n".encode())
    stage.passes(delay_s + 1.0)
    assert stage.wires[1].opens().targets == ["/1"]


def test_a_long_crawl_delay_ends_the_visit_at_once(stage: Stage) -> None:
    seconds = LONGEST_PAUSE_S + 10
    stage.wires[0].opens().answers(200, {}, delayed(seconds))
    assert stage.crawler.active == 0 and stage.page_results() == []
    stage.passes(seconds - 1)
    assert len(stage.wires) == 1
    stage.passes(1.0)
    assert stage.wires[1].opens().targets == ["/1"]
    stage.wires[1].answers()
    stage.passes(seconds - 1)
    assert len(stage.wires) == 2
    stage.passes(1.0)
    assert stage.wires[2].opens().targets == ["/2"]


# ---- a Crawl-delay that is removed


def pace(stage: Stage) -> tuple[float, int, float]:
    """Return the site's own w and k in the frontier, and its pause. NaN and AS_RULES mean none."""
    record = stage.frontier.state.site[stage.site().id]
    return float(record.delay_s), int(record.per_connection), stage.site().pause_s


def slowed(monkeypatch: pytest.MonkeyPatch, rules: Rules | None = None) -> Stage:
    """Return a site whose robots.txt asked for 60 s, just before that file is requested again."""
    stage = Stage(monkeypatch, PAGES, rules=rules or Rules(delay_s=15.0, per_connection=10))
    stage.wires[0].opens().answers(200, {}, delayed(60.0))
    assert pace(stage) == (60.0, 1, 60.0)
    stage.site().robots_until = 0.0
    stage.passes(60.0)
    return stage


@pytest.mark.parametrize("later", [(200, {}, b"User-agent: *\nDisallow: /x"), (404, {}, b""), (200, {}, delayed(2.0))])
def test_a_crawl_delay_ends_when_a_later_file_does_not_have_it(monkeypatch: pytest.MonkeyPatch, later: Any) -> None:
    stage = slowed(monkeypatch)
    wire = stage.wires[-1].opens().answers(*later)
    delay_s, k, pause_s = pace(stage)
    assert math.isnan(delay_s) and k == AS_RULES and pause_s == (2.0 if b"delay" in later[2] else 1.0)
    stage.passes(pause_s)
    assert wire.targets == ["/robots.txt", "/1"]
    assert stage.frontier.connection_limit(stage.site().id) == 10


def test_a_shorter_crawl_delay_replaces_a_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = slowed(monkeypatch)
    stage.wires[-1].opens().answers(200, {}, delayed(20.0))
    assert pace(stage) == (20.0, AS_RULES, 20.0)


def test_a_small_site_gets_the_delay_of_small_sites_back(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"small_site_pages": 100, "small_site_delay_s": 25.0}
    stage = slowed(monkeypatch, Rules(delay_s=15.0, per_connection=1, **small))  # type: ignore[arg-type]
    stage.opens().answers()
    assert stage.frontier.open_at(stage.site().id) == stage.loop.time() + 25.0


def test_an_unreachable_file_does_not_remove_a_crawl_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = slowed(monkeypatch)
    stage.wires[-1].opens().answers(503)
    assert pace(stage) == (60.0, 1, 60.0)


@pytest.mark.parametrize(("later", "changes"), [(delayed(60.0), 1), (b"", 2)])
def test_the_frontier_gets_only_changed_delays_and_its_log_restores_them(
    monkeypatch: pytest.MonkeyPatch, later: bytes, changes: int
) -> None:
    stage = slowed(monkeypatch)
    stage.wires[-1].opens().answers(200, {}, later)
    stage.outbox.flush()
    log = b"".join(batch.calls for batch in stage.batches)
    assert [frame.call for frame in read(log)].count(Call.SET_SITE) == changes
    frontier = Frontier(load_strategy("breadth-first"), stage.options.rules)
    replay(frontier, log)
    assert_same_state(frontier, stage.frontier)
