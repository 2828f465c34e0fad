"""A goal of pages shared by partitions: never more than it in all, and all of it if there are pages enough."""

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crawl.virtual import VirtualWorld, crawl_of
from tests.effort import examples
from trapline.frontier import Rules
from trapline.graph import generate
from trapline.parallel.live.page_budget import Holding, PageBudget, shared_out
from trapline.strategies import load_strategy

IDLE, LATER, NOW = (False, False), (True, False), (True, True)  # has pages, is ready


@dataclass
class Partition:
    """A model of one: pages that may not be fetched now, requests that fail; when it dies, it goes on from its disk."""

    there: int  # pages never fetched, those requested not among them
    held_up: bool = False  # no site may be visited now
    fetched: int = 0
    in_flight: int = 0
    on_disk: int = 0
    quota: int = 0
    inbox: deque[int | None] = field(default_factory=deque)  # quotas; None: how do you stand?
    answer: Holding | None = None

    @property
    def used(self) -> int:
        return self.fetched + self.in_flight

    @property
    def holding(self) -> Holding:
        has_pages = self.there > 0 or self.in_flight > 0
        return Holding(self.used, self.quota, has_pages, self.there > 0 and not self.held_up)

    def request(self, most: int) -> None:
        more = max(min(most, 0 if self.held_up else self.there, self.quota - self.used), 0)
        self.there, self.in_flight = self.there - more, self.in_flight + more

    def receive(self, fails: bool) -> None:
        """One that was requested comes in, or fails and waits again."""
        if self.in_flight:
            self.in_flight -= 1
            self.fetched, self.there = self.fetched + (not fails), self.there + fails

    def obey(self) -> None:
        """The oldest message."""
        if not self.inbox:
            return
        quota = self.inbox.popleft()
        if quota is None:
            self.answer = self.holding
        else:
            self.quota = max(quota, self.used)

    def die(self) -> None:
        """It is started again, from its disk; nobody sends it what was sent to the dead one, and it is asked anew."""
        self.there += self.used - self.on_disk
        self.fetched, self.in_flight, self.quota, self.answer = self.on_disk, 0, self.on_disk, None
        self.inbox = deque([None])


class Crawl:
    """Partitions and their coordinator, who asks, waits for answers or not, and orders."""

    def __init__(self, goal: int, there: list[int]) -> None:
        self.goal, self.budget = goal, PageBudget(goal)
        self.partitions = [Partition(pages) for pages in there]
        self.held: dict[int, Holding] = {}
        self.ask()

    def ask(self) -> None:
        for one in self.partitions:
            one.answer = None
            one.inbox.append(None)

    def decide(self) -> None:
        """With those who have answered; the others count as having used all that they may."""
        answered = {at: one.answer for at, one in enumerate(self.partitions) if one.answer is not None}
        self.held |= answered
        if len(self.held) < len(self.partitions):
            return
        silent = frozenset(range(len(self.partitions))) - answered.keys()
        for at, quota in self.budget.orders(self.held, silent).items():
            self.partitions[at].inbox.append(quota)
        self.ask()

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
        assert all(one.used <= one.quota for one in self.partitions)
        assert sum(one.quota for one in self.partitions) <= self.goal

    def settle(self, rounds: int) -> None:
        """Nobody fails or dies any more; who is held up stays so."""
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
def test_whatever_happens_the_goal_holds_and_all_of_it_is_used_in_the_end(
    goal: int, there: list[int], events: list[tuple[str, int, int]]
) -> None:
    crawl = Crawl(goal, there)
    for event in events:
        crawl.act(*event)
    crawl.settle(rounds=60)
    left = sum(one.there for one in crawl.partitions if not one.held_up)
    assert sum(one.fetched for one in crawl.partitions) == goal or left == 0


def test_the_last_page_goes_to_who_can_fetch_it_now() -> None:
    assert shared_out(10, {0: Holding(4, 4, *LATER), 1: Holding(5, 5, *NOW)}) == {1: 6}
    assert shared_out(10, {0: Holding(4, 5, *LATER), 1: Holding(5, 5, *NOW)}) == {0: 4}
    assert shared_out(10, {0: Holding(4, 5, *IDLE), 1: Holding(5, 5, *LATER)}) == {0: 4}


def test_a_page_is_not_passed_to_and_fro_among_those_that_must_wait() -> None:
    assert shared_out(10, {0: Holding(4, 5, *LATER), 1: Holding(5, 5, *LATER)}) == {}


def test_who_only_fetches_again_gets_pages_that_nobody_needs_now_and_gives_them_up_to_who_does() -> None:
    assert shared_out(1000, {0: Holding(300, 400, *LATER), 1: Holding(200, 200, *LATER)}) == {1: 300}
    assert shared_out(600, {0: Holding(300, 400, *LATER), 1: Holding(200, 200, *LATER)}) == {0: 350}
    assert shared_out(501, {0: Holding(300, 301, *LATER), 1: Holding(200, 200, *LATER)}) == {}
    assert shared_out(501, {0: Holding(300, 301, *LATER), 1: Holding(200, 200, *NOW)}) == {0: 300}


def test_who_has_nothing_to_fetch_gets_nothing() -> None:
    assert shared_out(10, {0: Holding(0, 0, *IDLE), 1: Holding(0, 0, *NOW)}) == {1: 5}


# ---- real crawlers, in virtual time


class Alone:
    """Other partitions that never send anything."""

    def rest(self) -> None: ...


def crawlers(partitions: int, chance: random.Random, failed: float) -> list[VirtualWorld]:
    """Each crawls a web of its own, of another size."""
    worlds = []
    for number in range(partitions):
        web = generate(chance.randrange(5, 60), chance.randrange(2, 5), seed=chance.randrange(1000))
        latency_s = np.linspace(0.05, chance.uniform(0.1, 1.0), web.pages)
        world = VirtualWorld(web, np.full(web.sites, 0.1), latency_s, failed=failed, timeout_s=2.0, seed=number)
        rules = Rules(delay_s=chance.choice([0.0, 1.0, 20.0]), per_connection=5, lease_s=1e6, retries=2, backoff_s=1.0)
        crawler, _ = crawl_of(world, load_strategy("breadth-first"), rules, 4)
        crawler.others = Alone()  # type: ignore[assignment]
        crawler.most_pages = 0
        world.begin(crawler, [world.urls[page] for page in web.home.tolist()])
        worlds.append(world)
    return worlds


def led(worlds: list[VirtualWorld], goal: int, rounds: int) -> int:
    """Rounds of half a second; how many pages all have in the end."""
    budget = PageBudget(goal)
    for turn in range(rounds):
        for world in worlds:
            world.run_until(turn * 0.5)
        held = {}
        for number, world in enumerate(worlds):
            one = world.crawler
            held[number] = Holding(int(one.used), int(one.most_pages), one.has_pages, one.is_ready)
        for number, quota in budget.orders(held, frozenset()).items():
            one = worlds[number].crawler
            one.most_pages = max(quota, one.used)
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
    there = led(crawlers(partitions, chance, failed), 10**6, 10_000)
    chance.setstate(state)
    goal = max(there - left, 1)
    assert led(crawlers(partitions, chance, failed), goal, 10_000) == goal


@pytest.mark.parametrize("quota", [0, 5, 1000])
def test_whether_a_crawl_has_something_to_do_does_not_depend_on_its_quota(quota: int) -> None:
    (world,) = crawlers(1, random.Random(1), failed=0.0)
    led([world], 10**6, 10_000)
    crawler = world.crawler
    assert crawler.is_idle and not crawler.frontier.has_new
    crawler.most_pages = crawler.tally.fetched + quota
    crawler.soon()
    world.run_until(world.now() + 100.0)
    assert crawler.is_idle and not crawler.is_ready
