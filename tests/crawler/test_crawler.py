"""The crawler: how many pages it fetches, when it stops, and when it wakes waiting connections. In virtual time."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.crawler.stage import A, B, Stage, links
from tests.crawler.virtual import VirtualWorld, crawl_of, crawled
from trapline.crawler.engine.options import Goals
from trapline.crawler.engine.tally import CrawlTally
from trapline.frontier import FETCHED, Rules
from trapline.frontier.layout import WAITING
from trapline.graph import Graph, generate
from trapline.strategies import load_strategy

RULES = Rules(delay_s=1.0, per_connection=5, lease_s=1e6, retries=1, backoff_s=2.0)


@pytest.fixture(scope="module")
def web() -> Graph:
    return generate(200, 12, seed=4)


def world_of(web: Graph, **given: Any) -> VirtualWorld:
    return VirtualWorld(web, np.full(web.sites, 0.1), np.linspace(0.1, 2.0, web.pages), **given)


def seeds(world: VirtualWorld, web: Graph) -> list[str]:
    return [world.urls[page] for page in web.home.tolist()]


# ---- goals


@pytest.mark.parametrize("connections", [1, 7, 40])
@pytest.mark.parametrize("most", [1, 10, 63])
def test_a_crawl_fetches_exactly_the_number_of_pages_in_its_goal(web: Graph, connections: int, most: int) -> None:
    """Several connections may be busy when the last page arrives, and some pages fail or are refused."""
    world = world_of(web, failed=0.2, refused=0.2)
    fetches = crawled(world, load_strategy("breadth-first"), RULES, seeds(world, web), connections, most)
    assert sum(fetch.result == FETCHED for fetch in fetches) == most
    assert world.crawler.stopped_by == "max-pages" and world.crawler.active == 0
    assert world.crawler.tally.in_flight == 0


def test_a_crawl_without_a_goal_ends_when_no_page_is_left(web: Graph) -> None:
    world = world_of(web, failed=0.2)
    crawled(world, load_strategy("breadth-first"), RULES, seeds(world, web), 8)
    assert world.crawler.stopped_by == "drained" and world.crawler.frontier.waiting == 0


def test_a_goal_of_bytes_ends_the_running_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/{n}" for n in range(9)], goals=Goals(bytes=500.0), pause_s=0.0)
    wire = stage.opens()
    while not stage.over:
        wire.answers(body=b" " * 100)
        stage.passes(0.0)
    assert stage.crawler.stopped_by == "max-bytes"
    assert len(stage.fetches) == 5  # bodies of pages count; heads and robots.txt do not


@pytest.mark.parametrize(
    ("goals", "tally"),
    [
        (Goals(pages=10), CrawlTally(fetched=10)),
        (Goals(bytes=99), CrawlTally(body_bytes=100)),
        (Goals(pages=0), CrawlTally()),
    ],
)
def test_a_resumed_crawl_whose_goal_is_reached_ends_at_once(web: Graph, goals: Goals, tally: CrawlTally) -> None:
    world = world_of(web)
    crawler, batches = crawl_of(world, load_strategy("breadth-first"), RULES, 4, goals=goals, tally=tally)
    world.run(crawler, seeds(world, web))
    crawler.outbox.flush()
    assert not any(batch.fetches for batch in batches) and crawler.stopped_by.startswith("max-")


# ---- stopping


def test_stop_waits_for_pages_in_flight_and_sends_no_more_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, (f"{A}/", f"{B}/", f"{A}/2"), pause_s=0.0)
    for wire in stage.wires:
        wire.opens().answers(404)
    stage.passes(0.0)
    stage.crawler.stop("interrupted")
    stage.crawler.stop("max-pages")
    for wire in stage.wires:
        wire.answers(body=links("/x", "http://c.test/"))
    stage.passes(100.0)
    assert stage.over and stage.crawler.stopped_by == "interrupted" and len(stage.wires) == 2
    assert [path for path, _ in stage.page_results()] == ["/", "/"] and stage.life("/2") == WAITING


def test_stop_without_pages_in_flight_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, hosts={}, resolver=NeverResolves())
    stage.crawler.stop("interrupted")
    stage.passes(0.0)
    assert stage.over


class NeverResolves:
    """A resolver that does not answer."""

    def known(self, host: str) -> None:
        return None

    async def addresses(self, host: str) -> None:
        import asyncio

        await asyncio.sleep(math.inf)


# ---- back-pressure


def test_no_connection_starts_a_visit_while_the_store_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch)
    wire = stage.opens()
    stage.crawler.full = lambda: True
    wire.answers(body=links(f"{B}/"))
    stage.passes(10.0)
    assert len(stage.wires) == 1
    stage.crawler.full = lambda: False
    stage.crawler.go_on()
    stage.passes(0.0)
    assert stage.wires[1].address == "127.0.0.2"


# ---- timers


class Timers:
    """Counts the timers that are set and cancelled."""

    def __init__(self, stage: Stage, patch: pytest.MonkeyPatch) -> None:
        self.set: list[float] = []
        inner = stage.web.call_at

        def call_at(when: float, callback: Callable[[], None]) -> Any:
            self.set.append(when)
            return inner(when, callback)

        patch.setattr(stage.web, "call_at", call_at)


def test_one_timer_wakes_all_waiting_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/{n}" for n in range(3)], pause_s=0.0, rules=Rules(delay_s=10.0, per_connection=1))
    timers = Timers(stage, monkeypatch)
    stage.opens().answers(keep=False)  # the pause after robots.txt is a timer too
    ready_at = stage.loop.time() + 10.0
    for _ in range(5):
        stage.crawler.soon()
        stage.passes(0.0)
    assert timers.set[1:] == [ready_at]
    stage.passes(9.5)
    assert len(stage.wires) == 1
    stage.passes(0.5)
    assert len(stage.wires) == 2


def test_a_page_found_at_a_smaller_depth_wakes_a_free_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page was known before, but its depth was over the limit."""
    rules = Rules(delay_s=0.0, per_connection=2, depth_static=1)
    stage = Stage(monkeypatch, (f"{A}/", "http://c.test/", "http://c.test/2"), pause_s=0.0, rules=rules, hosts=APART)
    wires = {wire.address: wire for wire in stage.wires}
    for wire in wires.values():
        wire.opens().answers(404)
    stage.passes(0.0)
    wires["127.0.0.1"].answers(body=links("/deep"))
    stage.passes(0.0)
    wires["127.0.0.1"].answers(body=links(f"{B}/x"))  # at depth 2
    stage.passes(0.0)
    assert stage.crawler.active == 1 and len(stage.wires) == 2
    wires["127.0.0.3"].answers(body=links(f"{B}/x"))
    stage.passes(0.0)
    assert stage.wires[-1].address == "127.0.0.2"


APART = {"a.test": ("127.0.0.1",), "b.test": ("127.0.0.2",), "c.test": ("127.0.0.3",)}
