"""One visit over one connection. However the connection ends, every page is fetched, failed or returned, and the visit ends once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crawler.live_web import crawled
from tests.crawler.small_server import CLOSE, Part, page, small_server, text
from tests.crawler.stage import A, Stage, Wire, links
from tests.frontier.test_replay import assert_same_state
from trapline.crawler.discovery.site_settings import SiteSettings
from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.files import resume
from trapline.crawler.files.reading import Reading
from trapline.crawler.visits.visit import HANG_UP_S
from trapline.frontier import FAILED, FETCHED, Frontier, Rules
from trapline.frontier.layout import GONE, WAITING
from trapline.frontier.replay import replay
from trapline.strategies import load_strategy

PAGES = [f"{A}/{number}" for number in range(1, 6)]


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch, PAGES)


def is_idle(stage: Stage) -> bool:
    """Return whether nothing is in flight, after a server on which we hung up had time to notice."""
    stage.passes(HANG_UP_S)
    return stage.crawler.active == 0 and stage.crawler.tally.in_flight == 0 and not stage.web._open


def fetched(stage: Stage) -> list[str]:
    return [path for path, error in stage.page_results() if not error]


# ---- a normal visit


def test_a_visit_requests_robots_txt_first_and_then_pages_with_pauses(stage: Stage) -> None:
    wire = stage.wires[0].opens()
    moments = [stage.loop.time()]
    for _ in range(6):
        wire.answers(body=b"")
        stage.passes(0.5)
        assert len(wire.sent) == len(moments)
        stage.passes(0.5)
        moments.append(stage.loop.time())
    assert wire.targets == ["/robots.txt", "/1", "/2", "/3", "/4", "/5"]
    assert fetched(stage) == ["/1", "/2", "/3", "/4", "/5"]
    assert [record.url for record in stage.robots] == [f"{A}/robots.txt"]
    assert stage.over and is_idle(stage) and stage.crawler.stopped_by == "drained"


def test_forbidden_pages_are_never_requested(stage: Stage) -> None:
    wire = stage.opens((200, {}, b"User-agent: *\nDisallow: /2\nDisallow: /5"))
    for _ in range(3):
        wire.answers()
        stage.passes(1.0)
    assert wire.targets == ["/robots.txt", "/1", "/3", "/4"]
    assert stage.page_results() == [("/1", ""), ("/2", "robots"), ("/3", ""), ("/4", ""), ("/5", "robots")]
    assert stage.crawler.tally.failed == 0 and stage.over


def test_a_kept_connection_serves_the_next_visit_without_robots_txt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, PAGES, pause_s=0.0, rules=Rules(delay_s=2.0, per_connection=2))
    wire = stage.opens()
    wire.answers().answers()
    assert stage.site().connection is wire
    stage.passes(2.0)
    assert wire.targets[3:] == ["/3"] and stage.site().connection is None
    assert len(stage.wires) == 1


@pytest.mark.parametrize(
    ("rules", "own_s", "robots", "is_kept"),
    [
        (Rules(delay_s=15.0, ip_delay_s=0.0), 1.0, b"", True),
        (Rules(delay_s=15.0, ip_delay_s=0.0), None, b"", False),
        (Rules(delay_s=1.0), 15.0, b"", False),
        (Rules(delay_s=1.0, ip_delay_s=15.0), None, b"", False),
        (Rules(delay_s=1.0), None, b"User-agent: *\nCrawl-delay: 6", False),
        (Rules(delay_s=1.0), None, b"User-agent: *\nCrawl-delay: 2", True),
    ],
)
def test_a_connection_is_kept_if_the_delays_of_its_own_site_are_short(
    monkeypatch: pytest.MonkeyPatch, rules: Rules, own_s: float | None, robots: bytes, is_kept: bool
) -> None:
    own = {} if own_s is None else {"a.test": SiteSettings(delay_s=own_s)}
    stage = Stage(monkeypatch, [f"{A}/1", f"{A}/2"], rules=rules, sites=own)
    wire = stage.opens((200, {}, robots))
    stage.passes(6.0)  # the longest of the pauses
    wire.answers()
    assert (stage.site().connection is wire) == is_kept


def test_a_connection_is_not_kept_over_a_long_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, PAGES, pause_s=0.0, rules=Rules(delay_s=15.0, per_connection=1))
    stage.opens().answers()
    assert is_idle(stage) and stage.wires[0].is_over
    stage.passes(15.0)
    assert len(stage.wires) == 2


# ---- failures before the connection is open


FAILING: dict[str, Callable[[Wire], object]] = {
    "connect": lambda wire: wire.ends("connect"),
    "timeout": lambda wire: wire.opens().ends("timeout"),  # of robots.txt
    "robots": lambda wire: wire.opens().answers(503),
}


def pages_of(stage: Stage) -> list[object]:
    """Return the properties of each page that a failed try would change."""
    frontier = stage.frontier
    return [
        (int(frontier.page_state(page)), int(record.tries), int(record.serial))
        for page, record in enumerate(frontier.state.page[: frontier.pages])
    ]


@pytest.mark.parametrize("kind", FAILING)
def test_a_failing_site_fails_no_page_and_is_abandoned_in_the_end(stage: Stage, kind: str) -> None:
    before = [(WAITING, tries, serial) for _, tries, serial in pages_of(stage)]  # type: ignore[misc]
    for visit in range(1, 6):
        FAILING[kind](stage.wires[-1])
        assert stage.site_failures() == [kind] * visit and stage.page_results() == [] and is_idle(stage)
        assert pages_of(stage) == before
        stage.passes(60.0 * 2 ** (visit - 1))  # the back-off
    assert len(stage.wires) == 5 and stage.over
    assert stage.crawler.tally.abandoned_sites == {"visits": 1} and stage.crawler.tally.errors == {kind: 5}


@pytest.mark.parametrize("kind", FAILING)
def test_the_only_page_of_a_site_survives_an_outage(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The outage lasts longer than the tries of a page: as long as the site is not abandoned."""
    stage = Stage(monkeypatch, rules=Rules(delay_s=15.0, per_connection=10, retries=0))
    for visit in range(4):
        FAILING[kind](stage.wires[-1])
        assert is_idle(stage)
        stage.passes(60.0 * 2**visit)
    stage.opens().answers()
    stage.passes(15.0)
    assert stage.page_results() == [("/", "")] and stage.over
    assert int(stage.frontier.state.site["failures"][0]) == 0


@pytest.mark.parametrize("kind", FAILING)
def test_the_log_of_a_failing_site_restores_the_same_frontier(stage: Stage, kind: str) -> None:
    FAILING[kind](stage.wires[-1])
    stage.passes(60.0)
    stage.outbox.flush()
    frontier = Frontier(load_strategy("breadth-first"), stage.options.rules)
    replay(frontier, b"".join(batch.calls for batch in stage.batches))
    assert_same_state(frontier, stage.frontier)


@pytest.mark.parametrize("kind", FAILING)
def test_refetched_pages_do_not_fail_either(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """They are chosen again as soon as the site may be visited. The site is not abandoned, because we have pages of it."""
    stage = Stage(monkeypatch, refresh=RefreshOptions(continuous=True))
    stage.opens((404, {"Cache-Control": "max-age=0"}, b"")).answers()
    stage.passes(3700.0)
    for visit in range(6):
        FAILING[kind](stage.wires[-1])
        stage.passes(3700.0)
        assert len(stage.site_failures()) == visit + 1
    assert stage.page_results() == [("/", "")] and not stage.over
    assert stage.refresher.explain(0, stage.loop.time())["failures"] == 0


def test_a_connection_that_we_closed_returns_its_pages_unchanged(stage: Stage) -> None:
    stage.crawler.stop("interrupted")
    stage.web.abort()
    stage.passes(0.0)
    assert stage.over and stage.page_results() == [] and stage.life("/1") == WAITING


def test_an_address_that_is_now_refused_is_a_failure_of_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, PAGES, rules=Rules(delay_s=0.0, per_connection=1), pause_s=0.0)
    stage.site().addresses = ("10.0.0.1",)
    stage.site_resolver._guard = stage.site_resolver._guard._replace(allow_private=False)
    stage.wires[0].ends("connect")
    stage.passes(100.0)
    assert stage.site_failures() == ["connect", "address"] and stage.page_results() == [] and len(stage.wires) == 1


# ---- failures during the request for robots.txt


def test_a_lost_robots_txt_fails_the_visit(stage: Stage) -> None:
    stage.wires[0].opens().ends("timeout")
    assert stage.site_failures() == ["timeout"] and stage.page_results() == []
    assert [(record.status, record.error) for record in stage.robots] == [(0, "timeout")]
    assert is_idle(stage)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_error_status_of_robots_txt_fails_the_visit(stage: Stage, status: int) -> None:
    wire = stage.wires[0].opens().answers(status)
    assert wire.targets == ["/robots.txt"]
    assert stage.site_failures() == ["robots"] and stage.page_results() == [] and is_idle(stage)
    assert stage.life("/1") == WAITING


@pytest.mark.parametrize("keep", [False, True])
def test_a_connection_that_ends_after_robots_txt_ends_the_visit_and_the_next_visit_has_the_rules(
    stage: Stage, keep: bool
) -> None:
    wire = stage.wires[0].opens().answers(404, keep=keep)
    if keep:
        wire.ends()
    stage.passes(14.0)
    assert len(stage.wires) == 1 and is_idle(stage) and stage.page_results() == []
    stage.passes(1.5)
    assert stage.wires[1].opens().targets == ["/1"]


# ---- failures during the request for a page


@pytest.mark.parametrize("kind", ["timeout", "protocol", "too-large"])
def test_a_lost_page_fails_and_those_behind_it_are_returned(stage: Stage, kind: str) -> None:
    stage.opens().answers()
    stage.passes(1.0)
    stage.wires[0].ends(kind)
    assert stage.page_results() == [("/1", ""), ("/2", kind)] and is_idle(stage)
    assert [stage.life(path) for path in ("/2", "/3", "/4", "/5")] == [WAITING] * 4
    assert [fetch.result for fetch in stage.fetches] == [FETCHED, FAILED]


def test_a_server_that_closes_after_some_pages_fails_no_page(stage: Stage) -> None:
    stage.opens().answers()
    stage.passes(1.0)
    stage.wires[0].ends()
    assert stage.page_results() == [("/1", "")] and is_idle(stage) and stage.life("/2") == WAITING
    assert stage.unanswered() == [("/2", "closed")]  # it was requested


def test_a_page_on_which_the_server_always_closes_fails_in_the_end(stage: Stage) -> None:
    stage.opens().answers()
    stage.passes(1.0)
    stage.wires[0].ends()
    stage.passes(15.0)
    assert stage.wires[1].opens().targets == ["/2"]
    stage.wires[1].ends()
    assert stage.page_results() == [("/1", ""), ("/2", "closed")]


def test_a_page_whose_answer_breaks_off_fails(stage: Stage) -> None:
    stage.opens().answers()
    stage.passes(1.0)
    stage.wires[0].ends(is_answering=True)
    assert stage.page_results() == [("/1", ""), ("/2", "closed")] and not stage.unanswered()


@pytest.mark.parametrize(("kind", "requests"), [("closed", 2), ("timeout", 50), ("protocol", 50)])
def test_only_a_server_that_closes_shows_its_limit_of_requests(stage: Stage, kind: str, requests: int) -> None:
    """A page that is too slow says nothing about the next connection."""
    stage.opens().answers()
    stage.passes(1.0)
    stage.wires[0].ends(kind)
    assert stage.frontier.state.site["requests"][0] == requests


@pytest.mark.parametrize("more", [{"truncated": "length"}, {"truncated": "time"}, {"junk": True}])
def test_a_page_longer_than_we_read_shows_no_limit(stage: Stage, more: dict[str, object]) -> None:
    """We hang up. The visit is over after the server had time to notice, and its limit stays unknown."""
    stage.opens().answers()
    stage.passes(1.0)
    stage.wires[0].answers(**more)
    assert fetched(stage) == ["/1", "/2"] and stage.crawler.active == 1
    assert is_idle(stage) and stage.frontier.state.site["requests"][0] == 50


CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
UNLIMITED = 50  # the frontier's expectation for a server without a known limit


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        ([page()], UNLIMITED),
        ([page() + b"junk"], UNLIMITED),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n" + CHUNKS], UNLIMITED),
        ([page(), CLOSE], 3),
        ([page(fields="Connection: close\r\n") + b"junk"], 3),
    ],
)
def test_over_a_socket_only_the_server_shows_its_limit(tmp_path: Path, answer: list[Part], requests: int) -> None:
    """robots.txt and the first page come first. After this answer either we hang up or the server does."""
    pages = {"/robots.txt": [text("")], "/": [page("/a", "/b", "/c")], "/a": answer}
    with small_server(lambda host, target: pages.get(target, page())) as server:
        seed = f"http://a.test:{server.port}/"
        crawl = crawled(tmp_path / "crawl", [seed], {"a.test": "127.9.0.1"}, per_connection=3)
    assert crawl.fetched() == {seed, *(f"{seed}{name}" for name in "abc")} and crawl.errors() == {}
    assert resume.rebuilt(Reading(crawl.folder))[0].state.site["requests"][0] == requests


def test_a_page_that_we_stopped_is_returned_unchanged(stage: Stage) -> None:
    stage.opens()
    stage.crawler.stop("interrupted")
    stage.web.abort()
    stage.passes(0.0)
    assert stage.over and stage.page_results() == []
    assert stage.life("/1") == WAITING and stage.frontier.state.site["failures"][0] == 0


def test_a_server_that_closes_after_an_answer_ends_the_visit_and_shows_its_limit(stage: Stage) -> None:
    stage.opens().answers()
    stage.passes(1.0)
    stage.wires[0].answers(keep=False)
    assert fetched(stage) == ["/1", "/2"] and is_idle(stage)
    assert stage.frontier.state.site["requests"][0] == 3  # robots.txt counts
    stage.passes(20.0)
    assert stage.wires[1].opens().targets == ["/3"]


def test_a_limit_that_the_server_announces_is_used(stage: Stage) -> None:
    wire = stage.opens().answers(headers={"Keep-Alive": "timeout=5, max=7"})
    for _ in range(4):
        stage.passes(1.0)
        wire.answers()
    assert stage.frontier.state.site["requests"][0] == 2 + 7  # robots.txt and the first page came before


def test_a_connection_lost_in_a_pause_ends_the_visit_without_a_failure(stage: Stage) -> None:
    stage.opens().answers().ends()
    stage.passes(1.0)
    assert stage.page_results() == [("/1", "")] and is_idle(stage) and stage.life("/2") == WAITING


def test_an_error_of_the_server_ends_the_visit_and_the_server_gets_the_delay_that_it_asks_for(stage: Stage) -> None:
    wire = stage.opens().answers(503, {"Retry-After": "1000"})
    stage.passes(900.0)
    assert wire.targets == ["/robots.txt", "/1"] and len(stage.wires) == 1
    stage.passes(101.0)
    assert stage.wires[1].opens().targets == ["/2"]  # the failed page has a lower key now


def test_a_missing_page_does_not_end_the_visit(stage: Stage) -> None:
    wire = stage.opens().answers(404)
    stage.passes(1.0)
    assert wire.targets[-1] == "/2" and stage.life("/1") == GONE


# ---- a kept connection that the server closes


def kept_connection(monkeypatch: pytest.MonkeyPatch, http: str = "1.1") -> Stage:
    """Return a stage whose second visit has just written to the connection of the first."""
    rules = Rules(delay_s=2.0, per_connection=2)
    stage = Stage(monkeypatch, PAGES, pause_s=0.0, rules=rules, http=http)
    stage.opens().answers().answers()
    stage.passes(2.0)
    assert stage.wires[0].targets[3] == "/3"
    return stage


@pytest.mark.parametrize("http", ["1.1", "pipelining"])
def test_a_kept_connection_that_the_server_closed_is_no_failure(monkeypatch: pytest.MonkeyPatch, http: str) -> None:
    stage = kept_connection(monkeypatch, http)
    stage.wires[0].ends()
    assert is_idle(stage)
    stage.passes(2.0)
    assert stage.wires[1].opens().targets[0] == "/3"
    stage.wires[1].answers()
    assert fetched(stage) == ["/1", "/2", "/3"] and stage.crawler.tally.failed == 0


def test_a_kept_connection_that_closes_between_visits_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, PAGES, pause_s=0.0, rules=Rules(delay_s=2.0, per_connection=2))
    stage.opens().answers().answers().ends()
    assert stage.site().connection is None and not stage.web._kept
    stage.passes(2.0)
    assert stage.wires[1].opens().targets == ["/3"]


def test_a_kept_connection_is_like_a_new_one_after_its_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = kept_connection(monkeypatch)
    stage.wires[0].answers().ends("timeout")
    assert stage.page_results()[-1] == ("/4", "timeout") and is_idle(stage)


# ---- pipelining


def pipelined(monkeypatch: pytest.MonkeyPatch, robots: bytes = b"", **options: object) -> Stage:
    stage = Stage(monkeypatch, PAGES, http="pipelining", pause_s=0.0, **options)
    stage.opens((200, {}, robots))
    return stage


def test_pipelined_requests_go_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = pipelined(monkeypatch)
    assert stage.wires[0].targets[1:] == ["/1", "/2", "/3", "/4", "/5"]
    for _ in range(5):
        stage.wires[0].answers()
    stage.passes(0.0)
    assert stage.over and len(fetched(stage)) == 5


def test_a_server_that_breaks_pipelining_gets_single_requests_and_no_page_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = pipelined(monkeypatch)
    stage.wires[0].answers().ends()
    assert stage.page_results() == [("/1", "")] and not stage.site().pipelining and is_idle(stage)
    stage.passes(20.0)
    assert stage.wires[1].opens().targets == ["/2"]


def test_a_pipelined_connection_that_never_answers_fails_only_its_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = pipelined(monkeypatch)
    stage.wires[0].ends("timeout")
    assert stage.page_results() == [("/1", "timeout")] and is_idle(stage) and not stage.site().pipelining


def test_a_server_that_closes_amid_pipelined_requests_returns_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = pipelined(monkeypatch)
    stage.wires[0].answers().answers(keep=False)
    stage.passes(0.0)
    assert stage.page_results() == [("/1", ""), ("/2", "")] and is_idle(stage) and stage.life("/3") == WAITING


def test_a_crawl_delay_ends_pipelining_from_the_first_visit_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = pipelined(monkeypatch, b"User-agent: *\nCrawl-delay: 3")
    stage.passes(2.0)
    assert stage.wires[0].targets[1:] == ["/1"]


# ---- a slow store


def full(stage: Stage, is_full: bool) -> None:
    stage.crawler.full = lambda: is_full
    if not is_full:
        stage.crawler.go_on()


def test_a_visit_waits_for_the_store_and_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, PAGES, pause_s=0.0)
    wire = stage.opens()
    full(stage, True)
    wire.answers()
    stage.passes(10.0)
    assert wire.targets[1:] == ["/1"]
    full(stage, False)
    assert wire.targets[1:] == ["/1", "/2"]


@pytest.mark.parametrize("kind", ["", "timeout"])
def test_a_connection_lost_while_it_waits_for_the_store_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    stage = Stage(monkeypatch, PAGES, pause_s=0.0)
    wire = stage.opens()
    full(stage, True)
    wire.answers().ends(kind)
    full(stage, False)
    assert stage.page_results() == [("/1", "")] and is_idle(stage) and stage.life("/2") == WAITING
    assert stage.frontier.state.site["requests"][0] == 50  # no limit is shown, because we kept the server waiting


def test_a_connection_lost_before_any_page_while_it_waits_for_the_store_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, PAGES, pause_s=0.0)
    full(stage, True)
    stage.opens().ends()
    full(stage, False)
    assert stage.page_results() == [] and is_idle(stage)


@pytest.mark.parametrize("stops", [False, True])
def test_a_pipelined_visit_waits_for_the_store_once(monkeypatch: pytest.MonkeyPatch, stops: bool) -> None:
    stage = Stage(monkeypatch, [f"{A}/{n}" for n in range(12)], http="pipelining", pause_s=0.0)
    stage.frontier.set_site(0, 0.0, per_connection=0)
    wire = stage.opens()
    requests = len(wire.sent) - 1
    full(stage, True)
    for _ in range(requests):
        wire.answers()
    if stops:
        stage.crawler.stop("interrupted")
    full(stage, False)
    stage.passes(0.0)
    assert len(fetched(stage)) == requests
    assert stage.crawler.active == (0 if stops else 1)


def test_pipelined_pages_lost_while_the_visit_waits_for_the_store_end_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/{n}" for n in range(10)], http="pipelining", pause_s=0.0)
    wire = stage.opens()
    full(stage, True)
    wire.answers().ends()
    full(stage, False)
    stage.passes(0.0)
    assert is_idle(stage) and stage.page_results() == [("/0", "")]


# ---- the crawl stops


def test_a_visit_in_its_pause_ends_when_the_crawl_stops(stage: Stage) -> None:
    wire = stage.opens((200, {}, b"User-agent: *\nCrawl-delay: 10"))
    stage.passes(9.0)
    wire.answers()
    before = stage.loop.time()
    stage.crawler.stop("interrupted")
    stage.passes(0.0)
    assert stage.over and stage.loop.time() - before < 1.0


@pytest.mark.parametrize("lost", [False, True])
def test_a_visit_in_its_pause_after_robots_txt_opens_nothing_when_the_crawl_stops(stage: Stage, lost: bool) -> None:
    stage.wires[0].opens().answers(404, keep=not lost)
    stage.crawler.stop("interrupted")
    stage.passes(0.0)
    assert stage.over and len(stage.wires) == 1 and stage.page_results() == []


def test_a_visit_with_a_page_in_flight_ends_after_that_page(stage: Stage) -> None:
    stage.opens()
    stage.crawler.stop("interrupted")
    stage.passes(5.0)
    assert not stage.over
    stage.wires[0].answers()
    stage.passes(0.0)
    assert stage.over and fetched(stage) == ["/1"]


def test_links_lead_to_other_sites_with_their_own_connections(stage: Stage) -> None:
    wire: Wire = stage.opens().answers(body=links("http://b.test/x", "/1", "/6"))
    stage.passes(0.0)
    assert stage.wires[1].address == "127.0.0.2" and stage.wires[1].opens().targets == ["/robots.txt"]
    assert wire.targets == ["/robots.txt", "/1"]
