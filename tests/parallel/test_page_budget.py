"""Partitions share a goal of pages: together they never fetch more, and they fetch all of it if there are enough pages."""

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.crawler.virtual import VirtualWorld, crawl_of
from tests.effort import examples
from trapline.frontier import Rules
from trapline.graph import generate
from trapline.parallel.live.page_budget import Holding, PageBudget, shared_out
from trapline.strategies import load_strategy

IDLE, LATER, NOW = (False, False), (True, False), (True, True)  # has pages, is ready


@dataclass
class Partition:
    """A model of a partition. Some of its pages cannot be fetched now, and requests may fail. After a death it continues from its disk."""

    there: int  # pages that were never fetched or requested
    held_up: bool = False  # no site may be visited now
    fetched: int = 0
    in_flight: int = 0
    on_disk: int = 0
    page_limit: int = 0
    inbox: deque[int | None] = field(default_factory=deque)  # budgets; None: a request for a report
    answer: Holding | None = None

    @property
    def used(self) -> int:
        return self.fetched + self.in_flight

    @property
    def holding(self) -> Holding:
        has_pages = self.there > 0 or self.in_flight > 0
        return Holding(self.used, self.page_limit, has_pages, self.there > 0 and not self.held_up)

    def request(self, most: int) -> None:
        more = max(min(most, 0 if self.held_up else self.there, self.page_limit - self.used), 0)
        self.there, self.in_flight = self.there - more, self.in_flight + more

    def receive(self, fails: bool) -> None:
        """Let one request succeed, or fail and wait again."""
        if self.in_flight:
            self.in_flight -= 1
            self.fetched, self.there = self.fetched + (not fails), self.there + fails

    def obey(self) -> None:
        """Process the oldest message."""
        if not self.inbox:
            return
        page_limit = self.inbox.popleft()
        if page_limit is None:
            self.answer = self.holding
        else:
            self.page_limit = max(page_limit, self.used)

    def die(self) -> None:
        """Restart from the disk. Messages to the dead process are lost, and the new one is asked for a report."""
        self.there += self.used - self.on_disk
        self.fetched, self.in_flight, self.page_limit, self.answer = self.on_disk, 0, self.on_disk, None
        self.inbox = deque([None])


class Crawl:
    """Partitions and their coordinator, which asks for reports, may or may not wait for them, and sends budgets."""

    def __init__(self, goal: int, there: list[int]) -> None:
        self.goal, self.budget = goal, PageBudget(goal)
        self.partitions = [Partition(pages) for pages in there]
        self.held: dict[int, Holding] = {}
        self.request_reports()

    def request_reports(self) -> None:
        for one in self.partitions:
            one.answer = None
            one.inbox.append(None)

    def decide(self) -> None:
        """Decide by the reports so far. A partition without a report counts as if it had used its whole budget."""
        answered = {at: one.answer for at, one in enumerate(self.partitions) if one.answer is not None}
        self.held |= answered
        if len(self.held) < len(self.partitions):
            return
        silent = frozenset(range(len(self.partitions))) - answered.keys()
        for at, page_limit in self.budget.orders(self.held, silent).items():
            self.partitions[at].inbox.append(page_limit)
        self.request_reports()

    def act(self, what: str, at: int, amount: int) -> None:
        one = self.partitions[at % len(self.partitions)]
        if what == "decide":
            self.decide()
        elif what == "obey":
            one.obey()
        elif what == "request":
            one.request(amount)
        elif what in ("fetch", "fail"):
            one.receive(what == "fail")
        elif what == "commit":
            one.on_disk = one.fetched
        elif what == "hold up":
            one.held_up = amount % 2 == 0
        elif what == "die":
            one.die()
        assert sum(one.used for one in self.partitions) <= self.goal
        assert all(one.used <= one.page_limit for one in self.partitions)
        assert sum(one.page_limit for one in self.partitions) <= self.goal

    def settle(self, rounds: int) -> None:
        """From now on nothing fails or dies. Partitions that are blocked stay blocked."""
        for _ in range(rounds):
            for one in self.partitions:
                while one.inbox:
                    one.obey()
                one.request(50)
                while one.in_flight:
                    one.receive(fails=False)
            self.decide()


WHAT = ["decide", "obey", "obey", "request", "fetch", "fail", "commit", "hold up", "die"]
EVENTS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 7), st.integers(0, 30)), max_size=150)


@given(st.integers(1, 300), st.lists(st.integers(0, 100), min_size=1, max_size=8), EVENTS)
@example(60, [1, 1, 59], [("hold up", 0, 0)])  # all 60 pages are with two of three partitions
def test_the_goal_is_never_exceeded_and_is_used_up_in_the_end(
    goal: int, there: list[int], events: list[tuple[str, int, int]]
) -> None:
    crawl = Crawl(goal, there)
    for event in events:
        crawl.act(*event)
    crawl.settle(rounds=200)
    left = sum(one.there for one in crawl.partitions if not one.held_up)
    assert sum(one.fetched for one in crawl.partitions) == goal or left == 0


def test_the_last_page_goes_to_a_partition_that_can_fetch_it_now() -> None:
    assert shared_out(10, {0: Holding(4, 4, *LATER), 1: Holding(5, 5, *NOW)}) == {1: 6}
    assert shared_out(10, {0: Holding(4, 5, *LATER), 1: Holding(5, 5, *NOW)}) == {0: 4}
    assert shared_out(10, {0: Holding(4, 5, *IDLE), 1: Holding(5, 5, *LATER)}) == {0: 4}


def test_a_page_is_not_passed_back_and_forth_between_waiting_partitions() -> None:
    assert shared_out(10, {0: Holding(4, 5, *LATER), 1: Holding(5, 5, *LATER)}) == {}


def test_a_partition_that_only_refetches_gets_spare_pages_and_returns_them_when_needed() -> None:
    assert shared_out(1000, {0: Holding(300, 400, *LATER), 1: Holding(200, 200, *LATER)}) == {1: 300}
    assert shared_out(600, {0: Holding(300, 400, *LATER), 1: Holding(200, 200, *LATER)}) == {0: 350}
    assert shared_out(501, {0: Holding(300, 301, *LATER), 1: Holding(200, 200, *LATER)}) == {}
    assert shared_out(501, {0: Holding(300, 301, *LATER), 1: Holding(200, 200, *NOW)}) == {0: 300}


def test_a_partition_without_pages_gets_nothing() -> None:
    assert shared_out(10, {0: Holding(0, 0, *IDLE), 1: Holding(0, 0, *NOW)}) == {1: 5}


# ---- real crawlers in virtual time


class SilentPartitions:
    """Other partitions that never send anything."""

    def flush(self) -> None: ...


def crawlers(partitions: int, chance: random.Random, failed: float) -> list[VirtualWorld]:
    """Return crawlers that each crawl a web of another size."""
    worlds = []
    for number in range(partitions):
        web = generate(chance.randrange(5, 60), chance.randrange(2, 5), seed=chance.randrange(1000))
        latency_s = np.linspace(0.05, chance.uniform(0.1, 1.0), web.pages)
        world = VirtualWorld(web, np.full(web.sites, 0.1), latency_s, failed=failed, timeout_s=2.0, seed=number)
        rules = Rules(delay_s=chance.choice([0.0, 1.0, 20.0]), per_connection=5, lease_s=1e6, retries=2, backoff_s=1.0)
        crawler, _ = crawl_of(world, load_strategy("breadth-first"), rules, 4)
        crawler.features.others = SilentPartitions()  # type: ignore[assignment]
        crawler.most_pages = 0
        world.begin(crawler, [world.urls[page] for page in web.home.tolist()])
        worlds.append(world)
    return worlds


def run_with_budget(worlds: list[VirtualWorld], goal: int, rounds: int) -> int:
    """Run in rounds of half a second. Return the number of pages of all crawlers together."""
    budget = PageBudget(goal)
    for turn in range(rounds):
        for world in worlds:
            world.run_until(turn * 0.5)
        held = {}
        for number, world in enumerate(worlds):
            one = world.crawler
            held[number] = Holding(int(one.used), int(one.most_pages), one.has_pages, one.is_ready)
        for number, page_limit in budget.orders(held, frozenset()).items():
            one = worlds[number].crawler
            one.most_pages = max(page_limit, one.used)
            one.soon()
        pages = sum(world.crawler.tally.fetched for world in worlds)
        if pages >= goal or all(world.crawler.is_idle for world in worlds):
            break
    return pages


@settings(max_examples=examples(15))
@given(st.integers(2, 8), st.sampled_from([0.0, 0.2]), st.integers(0, 3), st.integers(0, 10**6))
def test_crawls_end_at_their_goal_near_the_end_of_the_web(partitions: int, failed: float, left: int, seed: int) -> None:
    chance = random.Random(seed)
    state = chance.getstate()
    there = run_with_budget(crawlers(partitions, chance, failed), 10**6, 10_000)
    chance.setstate(state)
    goal = max(there - left, 1)
    assert run_with_budget(crawlers(partitions, chance, failed), goal, 10_000) == goal


@pytest.mark.parametrize("page_limit", [0, 5, 1000])
def test_whether_a_crawl_is_idle_does_not_depend_on_its_page_limit(page_limit: int) -> None:
    (world,) = crawlers(1, random.Random(1), failed=0.0)
    run_with_budget([world], 10**6, 10_000)
    crawler = world.crawler
    assert crawler.is_idle and not crawler.frontier.has_new
    crawler.most_pages = crawler.tally.fetched + page_limit
    crawler.soon()
    world.run_until(world.now() + 100.0)
    assert crawler.is_idle and not crawler.is_ready
