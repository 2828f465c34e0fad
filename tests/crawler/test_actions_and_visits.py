"""Actions meet visits in every state: in virtual time, with a server that the test plays."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.crawler.stage import NO_ROBOTS, A, B, Stage, Wire, links
from trapline.crawler.control.crawl_control import CrawlControl
from trapline.crawler.discovery.site_settings import SiteSettings
from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.files.control_mailbox import Action
from trapline.errors import ConfigError
from trapline.frontier import Rules

PAGES = [f"{A}/{number}" for number in range(1, 7)]
DELAY_S, PAUSE_S = 15.0, 1.0


def control_of(stage: Stage) -> CrawlControl:
    state = SimpleNamespace(frontier=stage.frontier, sites=stage.sites)
    crawl: Any = SimpleNamespace(options=stage.options, folder=None, state=state)
    parts: Any = SimpleNamespace(
        crawler=stage.crawler, outbox=stage.outbox, web=stage.web, link_resolver=stage.link_resolver
    )
    return CrawlControl(crawl, parts, lambda: stage.crawler.stop("terminated"))


def action(stage: Stage, name: str, **values: Any) -> dict[str, int]:
    counts = dict(control_of(stage).execute(Action(name, "me", values)))
    stage.passes(0.0)
    return counts


# ---- a visit in each state, with the number of requests sent so far


def connecting(stage: Stage) -> Wire:
    return stage.wires[0]


def in_robots(stage: Stage) -> Wire:
    return stage.wires[0].opens()


def in_pause(stage: Stage) -> Wire:
    wire = stage.wires[0].opens()
    return wire.answers(*NO_ROBOTS)


def in_page(stage: Stage) -> Wire:
    return stage.opens()


def goes_on(stage: Stage, wire: Wire) -> None:
    """Let the server do what is its part, for a long time."""
    if not wire.sent:
        wire.opens()
    for _ in range(6):
        if len(wire.sent) > wire.responses_received and not wire.is_over:
            wire.answers()
        stage.passes(PAUSE_S)


STATES = (connecting, in_robots, in_pause, in_page)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch, PAGES, rules=Rules(delay_s=DELAY_S, per_connection=10), pause_s=PAUSE_S)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", ["block", "pause"])
def test_no_request_follows_in_any_state_of_a_visit(stage: Stage, state: Callable[[Stage], Wire], name: str) -> None:
    wire = state(stage)
    sent = list(wire.targets)
    action(stage, name, **({"site": "a.test"} if name == "block" else {}))
    goes_on(stage, wire)
    assert wire.targets == sent
    assert len(stage.wires) == 1
    assert stage.crawler.active == 0


@pytest.mark.parametrize("state", STATES)
def test_a_continued_crawl_fetches_the_rest_after_the_delay(stage: Stage, state: Callable[[Stage], Wire]) -> None:
    wire = state(stage)
    action(stage, "pause")
    assert stage.crawler.waits_for.startswith("paused")
    goes_on(stage, wire)
    ended_at = stage.loop.time()
    assert not stage.over
    action(stage, "continue")
    stage.passes(DELAY_S)
    assert len(stage.wires) == 2
    assert stage.loop.time() >= ended_at
    last = stage.wires[1].opens()
    while not stage.over:
        last.answers(*(NO_ROBOTS if last.targets[-1] == "/robots.txt" else ()))
        stage.passes(PAUSE_S)
    assert sorted(path for path, _ in stage.page_results()) == [f"/{number}" for number in range(1, 7)]


def test_a_blocked_site_is_visited_again_after_unblock_and_its_delay(stage: Stage) -> None:
    wire = stage.opens()
    action(stage, "add_seeds", urls=[f"{B}/"])  # else nothing would be left to fetch
    assert action(stage, "block", sites=["a.test"]) == {"sites": 1}
    assert action(stage, "block", site="a.test") == {"sites": 0}
    assert stage.crawler.tally.abandoned_sites == {"blocked": 1}
    goes_on(stage, wire)
    assert action(stage, "unblock", site="http://a.test/1") == {"sites": 1}
    assert not stage.crawler.tally.abandoned_sites
    stage.passes(DELAY_S)
    assert [wire.address for wire in stage.wires] == ["127.0.0.1", "127.0.0.2", "127.0.0.1"]


def test_a_host_below_a_blocked_domain_is_blocked_when_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/"])
    wire = stage.opens()
    assert action(stage, "block", site="*.example.test") == {"sites": 0}
    wire.answers(body=links("http://x.example.test/", f"{B}/"))
    stage.passes(0.0)
    found = stage.site("http://x.example.test")
    assert stage.frontier.site_budgets[found.id] == 0
    assert stage.crawler.abandoned == {found.id: "blocked"}
    assert not stage.site_resolver._queue and stage.frontier.site_groups[found.id] < 0  # its name is not looked up
    assert [wire.address for wire in stage.wires] == ["127.0.0.1", "127.0.0.2"]


@pytest.mark.parametrize("state", STATES)
def test_a_longer_delay_holds_from_the_end_of_the_visit_under_way(
    monkeypatch: pytest.MonkeyPatch, state: Callable[[Stage], Wire]
) -> None:
    stage = Stage(monkeypatch, PAGES, rules=Rules(delay_s=DELAY_S, per_connection=2), pause_s=PAUSE_S)
    wire = state(stage)
    assert action(stage, "delay", site="a.test", delay_s=40.0) == {"crawl_delays": 0}
    goes_on(stage, wire)
    ended_at = stage.loop.time()
    stage.passes(40.0 - 7.0 * PAUSE_S)
    assert len(stage.wires) == 1
    stage.passes(ended_at + 40.0 - stage.loop.time())
    assert len(stage.wires) == 2


def test_a_longer_delay_counts_from_the_end_of_the_last_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, PAGES, rules=Rules(delay_s=DELAY_S, per_connection=1), pause_s=PAUSE_S)
    stage.opens().answers()
    stage.passes(10.0)
    assert stage.crawler.active == 0
    action(stage, "delay", site="a.test", delay_s=40.0)
    stage.passes(29.5)
    assert len(stage.wires) == 1
    stage.passes(1.0)
    assert len(stage.wires) == 2


def test_a_longer_crawl_delay_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Rules(delay_s=DELAY_S, per_connection=1, ip_delay_s=1.0)
    stage = Stage(monkeypatch, PAGES, rules=rules, pause_s=PAUSE_S)
    wire = stage.wires[0].opens()
    wire.answers(200, {"Content-Type": "text/plain"}, b"User-agent: *\nCrawl-delay: 20")
    stage.passes(20.0)
    wire.answers()
    assert action(stage, "delay", site="a.test", delay_s=5.0) == {"crawl_delays": 1}
    assert action(stage, "delay", site="a.test", delay_s=25.0) == {"crawl_delays": 0}


def test_a_delay_below_that_of_the_address_is_refused(stage: Stage) -> None:
    with pytest.raises(ConfigError, match="--ip-delay 5"):
        action(stage, "delay", site="a.test", delay_s=5)
    assert stage.options.sites == {}


def test_seeds_that_cannot_be_fetched_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = {"b.test": SiteSettings(blocked=True)}
    stage = Stage(monkeypatch, PAGES, sites=blocked, own_hosts=("a.test", "b.test"))
    for url, reason in ((f"{B}/", "blocked"), ("http://c.test/", "--own-hosts"), ("mailto:x", "mailto")):
        with pytest.raises(ConfigError, match=reason):
            action(stage, "add_seeds", urls=[f"{A}/new", url])
    assert stage.link_resolver.find([f"{A}/new"]) == [-1]
    assert action(stage, "add_seeds", urls=[f"{A}/new", PAGES[0]]) == {"new": 1, "known": 1}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("block", {}),
        ("block", {"site": "a b"}),
        ("block", {"sites": [7]}),
        ("delay", {"site": "a.test"}),
        ("delay", {"site": "a.test", "delay_s": True}),
        ("delay", {"site": "a.test", "delay_s": float("nan")}),
        ("add_seeds", {"urls": "http://a.test/"}),
        ("add_seeds", {"urls": []}),
        ("explode", {}),
    ],
)
def test_an_action_with_invalid_values_changes_nothing(stage: Stage, name: str, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        action(stage, name, **values)
    assert stage.outbox.meta == {}


def test_pages_of_a_blocked_site_are_not_refetched_until_it_is_unblocked(monkeypatch: pytest.MonkeyPatch) -> None:
    refresh = RefreshOptions(policy="uniform", continuous=True)
    rules = Rules(delay_s=2.0, per_connection=2)
    stage = Stage(monkeypatch, PAGES[:2], rules=rules, pause_s=0.0, refresh=refresh)

    def play(seconds: float) -> int:
        """Answer all requests for some time. Return their number."""
        before = sum(len(wire.sent) for wire in stage.wires)
        for _ in range(round(seconds)):
            for wire in stage.wires:
                if not wire.sent and not wire.is_over:
                    wire.opens()
                while len(wire.sent) > wire.responses_received and not wire.is_over:
                    wire.answers(*(NO_ROBOTS if wire.targets[wire.responses_received] == "/robots.txt" else ()))
            stage.passes(1.0)
        return sum(len(wire.sent) for wire in stage.wires) - before

    assert play(30.0) > 10
    action(stage, "block", site="a.test")
    assert play(30.0) <= 1
    assert play(600.0) == 0
    action(stage, "unblock", site="a.test")
    assert play(30.0) > 10
