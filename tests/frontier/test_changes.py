"""Other rules, another strategy, pages that leave the scope and return: every change is a call in the log, and its replay gives the
same state (docs/frontier.md, X1 to X4)."""

import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.frontier.test_replay import assert_same_state
from trapline.errors import ConfigError, InvariantError
from trapline.frontier import (
    FAILED,
    FETCHED,
    REFUSED,
    Frontier,
    Outcome,
    Rescore,
    Result,
    Rules,
    Visit,
    WaitUntil,
    snapshot,
)
from trapline.frontier.changes import StrategyChange, rules_as_numbers, rules_from_numbers
from trapline.frontier.journal import Journal
from trapline.frontier.layout import GONE, UNKNOWN, WAITING
from trapline.frontier.replay import replay
from trapline.strategies import Strategy, pair

PAGES, SITES = 60, 6
STRATEGIES = [
    pair("fifo", "fifo"),
    pair("opic", "crawl-ability"),
    pair("backlink-count", "top-page"),
    pair("quality", "larger-sites-first"),
    pair("partial-pagerank", "top-page"),
    pair("depth", "fifo"),
]
RULES = [
    Rules(delay_s=1.0, per_connection=2),
    Rules(delay_s=0.0, per_connection=0, retries=0),
    Rules(delay_s=7.0, ip_delay_s=0.5, per_connection=1, pages_per_site=8, rescore=3),
    Rules(
        delay_s=3.0, small_site_pages=5, small_site_delay_s=9.0, per_connection=3, estimator="median", depth_static=2
    ),
]


class Driver:
    """A crawl of a random web. Its history is all that a change of strategy needs: the links of each fetch."""

    def __init__(self, strategy: int, rules: Rules, seed: int) -> None:
        chance = self.chance = random.Random(seed)
        self.links = [chance.sample(range(PAGES), chance.randrange(6)) for _ in range(PAGES)]
        self.quality = [chance.random() for _ in range(PAGES)]
        self.history: list[tuple[int, list[int]]] = []
        self.journal, self.now, self.first = Journal(), 0.0, (strategy, rules)
        self.frontier = Frontier(STRATEGIES[strategy], rules, seed=3, journal=self.journal)
        self.frontier.add_sites(SITES, 0.0, groups=[0, 0, 1, 1, 2, 3])
        self.frontier.add_pages([page % SITES for page in range(PAGES)])
        if "quality" in STRATEGIES[strategy].page.inputs:
            self.frontier.set_column("quality", self.quality)
        self.frontier.discover([0, 1, 2], 0.0)

    def crawl(self, visits: int) -> None:
        """Make visits, and end all of them."""
        for _ in range(visits):
            answer = self.frontier.next(self.now)
            if isinstance(answer, WaitUntil) and answer.time < math.inf:
                self.now = answer.time
            elif isinstance(answer, Rescore):
                self.frontier.rescore([self.chance.random() for _ in range(PAGES)], self.now)
            elif isinstance(answer, Visit):
                self.now += 0.25
                results = [self._result(page) for page in answer.pages]
                self.frontier.finish(answer, Outcome(results, connection_s=0.25), self.now)

    def _result(self, page: int) -> Result:
        result = self.chance.choice([FETCHED, FETCHED, FETCHED, FAILED, REFUSED])
        if result == FETCHED:
            self.history.append((page, self.links[page]))
        return Result(page, result, self.links[page] if result == FETCHED else [], response_s=0.5)

    def change(self, number: int, fetches: int) -> StrategyChange:
        strategy = STRATEGIES[number]
        inputs = {"quality": np.array(self.quality)} if "quality" in strategy.page.inputs else {}
        return StrategyChange(strategy, inputs, ((page, np.array(links)) for page, links in self.history[:fetches]))

    def pages(self, state: int) -> list[int]:
        """Some of the pages in a state."""
        pages = np.flatnonzero(self.frontier.page_states == state).tolist()
        return self.chance.sample(pages, self.chance.randrange(len(pages) + 1))

    def does(self, step: int) -> None:
        kind, number = step % 5, step // 5
        if kind == 0:
            self.crawl(1 + number % 12)
        elif kind == 1:
            self.frontier.change_rules(RULES[number % len(RULES)], self.now)
        elif kind == 2:
            chosen, fetches = number % len(STRATEGIES), len(self.history)
            self.frontier.change_strategy(self.change(chosen, fetches), chosen, fetches, self.now)
        elif kind == 3:
            self.frontier.withdraw(self.pages(WAITING), self.now)
        else:
            pages = self.pages(GONE)
            self.frontier.readmit(pages, self.now)
            self.frontier.discover(pages, self.now)


def restored(driver: Driver) -> Frontier:
    strategy, rules = driver.first
    return Frontier(STRATEGIES[strategy], rules, seed=3)


STEPS = st.lists(st.integers(0, 10_000), max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, len(STRATEGIES) - 1), st.integers(0, len(RULES) - 1), st.integers(0, 999), STEPS, st.integers(0, 12)
)
def test_a_log_with_changes_gives_the_same_state_again(
    strategy: int, rules: int, seed: int, steps: list[int], saved_at: int
) -> None:
    driver = Driver(strategy, RULES[rules], seed)
    again = restored(driver)
    for at, step in enumerate(steps):
        if at == saved_at:
            replay(again, driver.journal.take(), driver.change)
        driver.does(step)
    driver.crawl(3)
    replay(again, driver.journal.take(), driver.change)
    assert again.strategy_number == driver.frontier.strategy_number
    assert again.rules == driver.frontier.rules
    assert_same_state(again, driver.frontier)


def test_a_snapshot_has_the_rules_and_the_strategy_in_force(tmp_path: Path) -> None:
    driver = Driver(0, RULES[0], 5)
    for step in (5 * 8, 5 * 2 + 1, 5 * 1 + 2, 5 * 8):
        driver.does(step)
    snapshot.save(driver.frontier, tmp_path / "s")
    driver.journal.take()
    again = snapshot.load(tmp_path / "s", STRATEGIES.__getitem__)
    assert (again.strategy.name, again.rules, again.strategy_number) == ("opic x crawl-ability", RULES[2], 1)
    driver.crawl(5)
    replay(again, driver.journal.take(), driver.change)
    assert_same_state(again, driver.frontier)


def test_a_log_that_changes_the_strategy_is_not_replayed_without_the_strategies() -> None:
    driver = Driver(0, RULES[0], 5)
    driver.does(5 * 1 + 2)
    with pytest.raises(InvariantError, match="give `strategies`"):
        replay(restored(driver), driver.journal.take())


@pytest.mark.parametrize("rules", RULES)
def test_rules_are_read_back_from_the_log(rules: Rules) -> None:
    assert rules_from_numbers(rules_as_numbers(rules)) == rules


# ---- what a change does


def ranks(frontier: Frontier) -> dict[int, float]:
    found = {}
    for site in range(frontier.sites):
        pages, keys = frontier.waiting_pages(site)
        found.update(zip(pages.tolist(), keys.tolist(), strict=True))
    return found


def opic(history: list[tuple[int, list[int]]]) -> Callable[[int], float]:
    """The cash of pages after these fetches, computed from its definition."""
    cash: dict[int, float] = {}
    fetched = set()
    for page, links in history:
        cash.setdefault(page, 1.0)
        fetched.add(page)
        for link in links:
            if link not in fetched:
                cash[link] = cash.get(link, 1.0) + cash[page] / len(links)
    return lambda page: cash.get(page, 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_new_strategy_ranks_the_waiting_pages_by_all_links_so_far(seed: int) -> None:
    driver = Driver(0, Rules(delay_s=0.0, retries=0), seed)
    driver.frontier.discover(range(0, PAGES, 2), 0.0)
    driver.crawl(15)
    waiting = driver.frontier.waiting
    driver.does(5 * 1 + 2)  # opic
    cash, found = opic(driver.history), ranks(driver.frontier)
    assert waiting > 5 and len(found) == waiting
    assert found == pytest.approx({page: cash(page) for page in found})


def test_new_rules_hold_at_once() -> None:
    driver = Driver(0, Rules(delay_s=100.0, per_connection=5), 1)
    driver.frontier.discover(range(PAGES), 0.0)
    driver.crawl(4)
    driver.frontier.change_rules(Rules(delay_s=1.0, per_connection=1), driver.now)
    answer = driver.frontier.next(driver.now)
    assert answer == WaitUntil(driver.now + 1.0)  # the delay of the new rules, and not the rest of the old one
    visit = driver.frontier.next(driver.now + 1.0)
    assert isinstance(visit, Visit) and len(visit.pages) == 1


def test_a_back_off_outlasts_new_rules() -> None:
    driver = Driver(0, Rules(delay_s=0.0, backoff_s=50.0), 1)
    visit = driver.frontier.next(0.0)
    assert isinstance(visit, Visit)
    driver.frontier.finish(visit, Outcome(failed=True), 0.0)
    driver.frontier.change_rules(Rules(delay_s=1.0), 1.0)
    assert driver.frontier.open_at(visit.site) == 50.0


def test_withdrawn_pages_are_not_fetched_until_they_are_readmitted() -> None:
    driver = Driver(1, Rules(delay_s=0.0, retries=0), 2)
    driver.frontier.discover(range(0, PAGES, 2), 0.0)
    driver.crawl(10)
    gone = np.flatnonzero(driver.frontier.page_states == WAITING)[::2].tolist()
    unknown = np.flatnonzero(driver.frontier.page_states == UNKNOWN)[:3].tolist()
    assert len(gone) > 5 and len(unknown) == 3
    gone += unknown
    driver.frontier.withdraw(gone, driver.now)
    driver.crawl(60)
    assert not {page for page, _ in driver.history} & set(gone)
    assert (driver.frontier.page_states[gone] == GONE).all()
    driver.frontier.readmit(gone, driver.now)
    assert (driver.frontier.page_states[gone] == UNKNOWN).all()
    driver.frontier.discover(gone, driver.now)
    assert (driver.frontier.page_states[gone] == WAITING).all()


def batched() -> Strategy:
    return pair("batch-pagerank", "top-page")


def test_impossible_changes_are_refused_and_change_nothing() -> None:
    driver = Driver(0, RULES[0], 5)
    visit = driver.frontier.next(0.0)
    assert isinstance(visit, Visit)
    driver.journal.take()
    refused: list[Callable[[], None]] = [
        lambda: driver.frontier.change_rules(RULES[1], 1.0),
        lambda: driver.frontier.change_strategy(driver.change(1, 0), 1, 0, 1.0),
        lambda: driver.frontier.withdraw([59], 1.0),
        lambda: driver.frontier.readmit([0, 99], 1.0),
    ]
    for call in refused:
        with pytest.raises(InvariantError):
            call()
    driver.frontier.finish(visit, Outcome(), 1.0)
    driver.journal.take()
    with pytest.raises(ConfigError, match="begin a new crawl"):
        driver.frontier.change_rules(Rules(batch=5), 1.0)
    with pytest.raises(ConfigError, match="begin a new crawl"):
        driver.frontier.change_strategy(StrategyChange(batched(), {}, ()), 1, 0, 1.0)
    assert driver.journal.take() == b""
