"""Live refresh crawls the same pages as a replay of the same events. Only a live crawl has growth, politeness and
failures, which are tested here too."""

import math

import numpy as np
import pytest

from tests.effort import slow
from tests.refresh.live_refresher import STARTED, crawled_live, live_world, open_frontier, values
from tests.refresh.worlds import small_trace
from trapline.compiled.jit import DISABLED
from trapline.errors import InvariantError
from trapline.frontier import FETCHED, Outcome, Result
from trapline.refresh import Policy, Refresher, RefreshRules, ReplayConditions, all_policies, policy_named, replay_world
from trapline.refresh.core import kernels

POLICIES = sorted(all_policies().values(), key=lambda policy: policy.name)
EVERY = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
MIXED = {"normal": 0.4, "smart": 0.3, "super": 0.3}
DAY_S = 86_400.0


@EVERY
@pytest.mark.parametrize("levels", [{"normal": 1.0}, {"smart": 1.0}, {"super": 1.0}, MIXED], ids=str)
def test_live_and_replay_agree(policy: Policy, levels: dict[str, float]) -> None:
    """If no site is delayed."""
    for seed in range(1 if DISABLED else 10):
        conditions = ReplayConditions(levels=levels, accesses=60, precision=0.7, recall=0.8, schedule_precision=0.8)
        world = live_world(small_trace(pages=10, updates=80, seed=seed), conditions, seed)
        found = replay_world(world, policy, 40 / world.trace.updates, keep_chosen=True)
        assert crawled_live(world, policy, 40) == found.chosen.tolist()


# ---- politeness


def polite_crawl(
    policy: Policy, pages: int, sites: int, delay_s: float, slots: int
) -> list[tuple[float, int, list[int]]]:
    """Every visit ends at once, and then its site is delayed. Each decision is compared with a search over all pages."""
    rng = np.random.default_rng(1)
    refresher, frontier = Refresher(policy, STARTED), open_frontier(sites, delay_s=delay_s, per_connection=3)
    site_of, ready = rng.integers(0, sites, pages) ** 2 // sites, np.zeros(sites)
    for page in range(pages):
        refresher.join(page, int(site_of[page]), STARTED, quality=float(rng.random()))
    visits = []
    for now in STARTED + 100.0 + np.arange(slots):
        value_of = values(refresher, now)
        choice = refresher.choose(frontier, now, -math.inf)
        best = max((value for page, value in value_of.items() if ready[site_of[page]] <= now), default=None)
        assert (choice is None) == (best is None)
        if choice is None or best is None:
            continue
        assert choice.value == pytest.approx(best) and value_of[choice.pages[0]] == pytest.approx(best)
        assert {int(site_of[page]) for page in choice.pages} == {choice.site}
        visits.append((now, choice.site, choice.pages))
        for page in choice.pages:
            refresher.crawled(page, now, bool(rng.random() < 0.3))
        ready[choice.site] = now + delay_s
        frontier.set_site(choice.site, now, not_before=now + delay_s)
    return visits


@EVERY
def test_the_best_page_that_may_be_visited_is_chosen(policy: Policy) -> None:
    visits = polite_crawl(policy, pages=60, sites=8, delay_s=5.0, slots=20 if DISABLED else 60)
    times: dict[int, float] = {}
    for now, site, pages in visits:
        assert now - times.get(site, 0.0) >= 5.0
        assert 1 <= len(pages) == len(set(pages)) <= 3
        times[site] = now
    assert len(times) > 4 and max(len(pages) for _, _, pages in visits) > 1


@slow
def test_among_many_pages_a_nearly_best_one_is_found() -> None:
    """Two thousand pages, most of which may not be visited. The refresher does not look at all of them."""
    policy, pages, sites = policy_named("cgm"), 300 if DISABLED else 2_000, 30
    rng = np.random.default_rng(2)
    refresher, frontier = Refresher(policy, STARTED), open_frontier(sites, delay_s=15.0)
    site_of = np.minimum(sites - 1, rng.pareto(0.7, pages).astype(int))
    for page in range(pages):
        refresher.join(page, int(site_of[page]), STARTED, quality=float(rng.random()))
    shares, ready = [], np.zeros(sites)
    for step in range(40 if DISABLED else 400):
        now = STARTED + 1_000.0 + step
        value_of = values(refresher, now) if step % 8 == 0 else {}
        best = max((value for page, value in value_of.items() if ready[site_of[page]] <= now), default=None)
        choice = refresher.choose(frontier, now)
        if best is not None:
            shares.append(choice.value / best if choice else 0.0)
        if choice is not None:
            refresher.crawled(choice.pages[0], now, bool(rng.random() < 0.5))
            ready[choice.site] = now + 15.0
            frontier.set_site(choice.site, now, not_before=now + 15.0)
    assert len(shares) > 3 and np.mean(shares) > 0.97


def test_a_site_under_visit_is_tried_again_later() -> None:
    refresher, frontier = Refresher(policy_named("uniform"), STARTED), open_frontier(2, delay_s=10.0)
    first = frontier.add_pages([0, 1])
    frontier.discover([first, first + 1], STARTED)
    visits = [frontier.next(STARTED), frontier.next(STARTED)]
    for page in range(2):
        refresher.join(page, page, STARTED)
    assert refresher.choose(frontier, STARTED + 1.0) is None
    assert STARTED + 1.0 < refresher.next_moment() <= STARTED + 11.0
    for visit in visits:
        frontier.finish(visit, now=STARTED + 2.0, outcome=fetched(visit.pages))
    assert refresher.choose(frontier, STARTED + 11.5) is None
    choice = refresher.choose(frontier, max(refresher.next_moment(), STARTED + 12.0))
    assert choice is not None


def fetched(pages: list[int]) -> Outcome:
    return Outcome([Result(page, FETCHED) for page in pages])


def test_pages_below_the_price_are_not_chosen() -> None:
    refresher, frontier = Refresher(policy_named("cgm"), STARTED), open_frontier(1)
    refresher.join(0, 0, STARTED)
    assert refresher.choose(frontier, STARTED + 100.0, least=math.inf) is None
    choice = refresher.choose(frontier, STARTED + 100.0)
    assert choice is not None and choice.pages == [0] and refresher.price == choice.value
    assert refresher.choose(frontier, STARTED + 100.0) is None and refresher.chosen() == [0]
    refresher.return_all(STARTED + 101.0)
    assert refresher.chosen() == [] and refresher.choose(frontier, STARTED + 101.0) is not None


def test_a_policy_with_due_times_chooses_nothing_before_it_is_due() -> None:
    rules = RefreshRules(slots_per_s=0.01)  # two pages in turn: an interval of 200 s at first
    refresher, frontier = Refresher(policy_named("nutch"), STARTED, rules), open_frontier(1)
    for page in range(2):
        refresher.join(page, 0, STARTED + 50.0 * page)
    assert refresher.choose(frontier, STARTED + 199.0) is None
    assert refresher.next_moment() == STARTED + 200.0
    choice = refresher.choose(frontier, STARTED + 203.0)
    assert choice is not None and (choice.pages, choice.value) == ([0], 3.0)


@EVERY
def test_due_pages_are_those_with_the_best_values(policy: Policy) -> None:
    """The queues are settled, as after a resume: then they have the values of this moment, and a search over all pages finds the same."""
    rng = np.random.default_rng(2)
    refresher, frontier = Refresher(policy, STARTED), open_frontier(5, per_connection=2)
    for page in range(40):
        refresher.join(page, int(rng.integers(5)), STARTED + float(page), quality=float(rng.random()))
    for page in (3, 4, 5):
        refresher.signalled(page, 0, STARTED + 900.0, STARTED + 900.0)
    chosen = [choice.pages for _ in range(4) if (choice := refresher.choose(frontier, STARTED + 1000.0, -math.inf))]
    refresher.failed(chosen[0][0], STARTED + 1000.0)
    kernels.settle_all(refresher.memory.handle)
    value_of, due = values(refresher, refresher.now), refresher.due(7)
    assert due.values == pytest.approx(sorted(value_of.values(), reverse=True)[:7])
    assert [value_of[page] for page in due.best] == pytest.approx(due.values)
    assert due.due == sum(value >= (0.0 if policy.still else refresher.price) for value in value_of.values())
    signalled = sum(refresher.explain(page, refresher.now)["signals"] > 0 for page in range(40))
    assert (due.pages, due.signalled, due.failed) == (40, signalled, 1)


# ---- failures, growth


def test_a_failed_page_is_retried_later_and_the_wait_doubles() -> None:
    refresher, frontier, now = Refresher(policy_named("uniform"), STARTED), open_frontier(1), STARTED + 10.0
    refresher.join(0, 0, STARTED)
    waits = []
    for _ in range(4):
        assert refresher.choose(frontier, now) is not None
        refresher.failed(0, now)
        assert refresher.choose(frontier, now + 1.0) is None
        again = refresher.next_moment()
        waits.append(again - now)
        now = again
    assert waits == [600.0, 1200.0, 2400.0, 4800.0]
    assert refresher.choose(frontier, now) is not None
    refresher.crawled(0, now, False)
    assert refresher.explain(0, now)["failures"] == 0 and refresher.choose(frontier, now) is not None


@EVERY
def test_exactly_the_pages_that_have_joined_are_chosen(policy: Policy) -> None:
    """Every page that has joined and not left is chosen sooner or later, and no other page is."""
    rng = np.random.default_rng(3)
    refresher, frontier, now = Refresher(policy, STARTED), open_frontier(50), STARTED
    here: set[int] = set()
    for step in range(60 if DISABLED else 600):
        now += float(rng.exponential(30.0))
        page = int(rng.integers(0, 1_500))
        if page not in here:
            refresher.join(page, page % 50, now)
            here.add(page)
        elif rng.random() < 0.7:
            refresher.leave(page, now)
            here.remove(page)
        if step % 3 == 0 and (choice := refresher.choose(frontier, now, -math.inf)) is not None:
            for chosen in choice.pages:
                assert chosen in here and chosen % 50 == choice.site
                if rng.random() < 0.3:
                    refresher.leave(chosen, now)
                    here.remove(chosen)
                else:
                    refresher.crawled(chosen, now, True)
    assert refresher.pages == len(here) == len({refresher.memory.slot(page) for page in here})
    crawled = set()
    for _ in range(len(here)):
        choice = refresher.choose(frontier, now + 1_000.0, -math.inf)
        assert choice is not None
        crawled |= set(choice.pages)
    assert crawled == here and refresher.choose(frontier, now + 1_000.0, -math.inf) is None


def test_invalid_calls_are_refused() -> None:
    refresher = Refresher(policy_named("cgm"), STARTED)
    refresher.join(3, 0, STARTED)
    with pytest.raises(InvariantError, match="has joined already"):
        refresher.join(3, 0, STARTED)
    with pytest.raises(InvariantError, match="page 4 has not joined"):
        refresher.crawled(4, STARTED, True)
    with pytest.raises(InvariantError, match="now is nan"):
        refresher.crawled(3, math.nan, True)
    assert not refresher.accessed(4, STARTED) and not refresher.signalled(4, 0, STARTED, STARTED)
    assert not refresher.publish(4, 0, [(STARTED + 1.0, 1.0)], STARTED)
    with pytest.raises(InvariantError, match="channel 128"):
        refresher.publish(3, 128, [], STARTED)


def test_the_last_modified_date_reaches_the_estimator() -> None:
    refresher = Refresher(policy_named("cgm").with_options(estimator="last-modified"), STARTED)
    refresher.join(0, 0, STARTED)
    refresher.crawled(0, STARTED + 1_000.0, True, age_s=300.0)
    refresher.crawled(0, STARTED + 2_000.0, True)  # the server gives no date: the middle of the interval
    refresher.crawled(0, STARTED + 3_000.0, False, age_s=1_300.0)
    assert refresher.memory.state.columns[0, 0] == 300.0 + 500.0 + 1_000.0


# ---- accesses


def test_quality_counts_if_there_are_no_accesses() -> None:
    refresher, frontier = Refresher(policy_named("cgm"), STARTED), open_frontier(3)
    for page, quality in enumerate((1.0, 5.0, 2.0)):
        refresher.join(page, page, STARTED, quality)
    assert refresher.by_quality
    rates = [refresher.explain(page, STARTED + 9.0)["accesses_per_day"] for page in range(3)]
    assert rates == pytest.approx([1 / (8 / 3), 5 / (8 / 3), 2 / (8 / 3)])
    choice = refresher.choose(frontier, STARTED + 100.0)
    assert choice is not None and choice.pages == [1]
    refresher.accessed(0, STARTED + 200.0)
    assert not refresher.by_quality


def test_old_accesses_count_less() -> None:
    refresher = Refresher(policy_named("cgm"), STARTED, RefreshRules(half_life_s=DAY_S))
    refresher.join(0, 0, STARTED)
    refresher.accessed(0, STARTED + 0.5 * DAY_S, 1_000.0)
    refresher.accessed(0, STARTED + DAY_S, 0.0)
    assert refresher.explain(0, STARTED + DAY_S)["accesses"] == 500
    assert refresher.explain(0, STARTED + DAY_S)["accesses_per_day"] == pytest.approx(1_000.0)
    refresher.accessed(0, STARTED + 20 * DAY_S, 0.0)
    assert refresher.explain(0, STARTED + 20 * DAY_S)["accesses"] <= 1
    for day in range(20, 40):
        refresher.accessed(0, STARTED + (day + 0.5) * DAY_S, 100.0)
    assert refresher.explain(0, STARTED + 39.99 * DAY_S)["accesses_per_day"] == pytest.approx(100.0, rel=0.05)


def test_fractions_of_an_access_are_counted_with_their_probability() -> None:
    refresher = Refresher(policy_named("cgm"), STARTED)
    for page in range(400):
        refresher.join(page, 0, STARTED)
        refresher.accessed(page, STARTED + 1.0, 0.25)
    counts = [refresher.explain(page, STARTED + 1.0)["accesses"] for page in range(400)]
    assert set(counts) == {0, 1} and 60 <= sum(counts) <= 140


def test_the_crawls_own_slots_are_the_bandwidth() -> None:
    refresher, frontier = Refresher(policy_named("azar"), STARTED), open_frontier(1)
    refresher.join(0, 0, STARTED)
    for step in range(1, 2_000):
        assert refresher.choose(frontier, STARTED + 10.0 * step, -math.inf) is not None
        refresher.crawled(0, STARTED + 10.0 * step, False)
    assert refresher.memory.whole.run[0].slots_per_s == pytest.approx(0.1, rel=0.02)


def test_memory_is_near_what_the_policy_needs() -> None:
    """A page of residual-life takes 172 bytes in the queue and evidence of a replay without politeness."""
    pages, memory = 20_000, Refresher(policy_named("residual-life"), STARTED)
    for page in range(pages):
        memory.join(page, page % 100, STARTED)
    used = memory.memory.state
    entries = (used.page, used.columns[:pages], used.waiting[:pages], used.hot[:pages], used.value[: used.run[0].pool])
    assert sum(array.nbytes for array in entries) / pages < 230.0
