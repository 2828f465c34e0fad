"""Estimators of change rates, against Poisson processes of known rate. The bounds follow from the number of crawls."""

import math
from itertools import pairwise

import numpy as np
import pytest

from tests.naive.rates import likeliest_rate
from tests.refresh.worlds import small_trace, small_world
from trapline.errors import ConfigError
from trapline.refresh import Policy, policy_named, replay_world
from trapline.refresh.core.layout import SMART, PolicyView, Sizes, allocate
from trapline.refresh.policies import estimators
from trapline.refresh.policies.estimators import ESTIMATORS, learned_rate, note_outcome

NAMES = [way.name for way in ESTIMATORS]
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
POLICIES = ["cgm", "azar", "lambda-crawl", "proportional", "ncis"]


class Watched:
    """One page and its estimator, updated by crawls as in refresh/core/evidence.py."""

    def __init__(self, name: str, turn_s: float = 1.0, pages: int = 1) -> None:
        policy = policy_named("cgm").with_options(estimator=name)
        self.s = PolicyView(*allocate(Sizes(pages, max(1, len(policy.kept)), 1))[:9])
        self.s.option[:] = list(policy.options.values())
        self.s.run[0].slots_per_s = pages / turn_s

    def crawl(self, now: float, changed: bool, age_s: float = math.inf) -> None:
        run, p = self.s.run[0], self.s.page[0]
        run.changed, run.age_s = changed, age_s
        note_outcome(self.s, 0, now, 0)
        p.crawls, p.changes, p.crawled_s = p.crawls + 1, p.changes + changed, now
        run.crawls, run.changes = run.crawls + 1, run.changes + changed

    def rate(self) -> float:
        return float(learned_rate(self.s, 0, float(self.s.page[0].crawled_s), 0))


def watch(name: str, rate: float, intervals: np.ndarray, seed: int = 0, dated: bool = True) -> float:
    """The estimate for a Poisson process after these intervals, in random order. The ages at the ends of the intervals
    are spread evenly over their distribution, so that the expected number of crawls finds a change and few crawls show
    a bias."""
    even = np.arange(1, len(intervals) + 1) * GOLDEN % 1.0
    ages = -np.log(1.0 - even) / rate  # since the last event of a process without a beginning
    page, now = Watched(name, float(np.mean(intervals))), 0.0
    for i in np.random.default_rng(seed).permutation(len(intervals)):
        now += float(intervals[i])
        page.crawl(now, bool(ages[i] < intervals[i]), float(ages[i]) if dated else math.inf)
    return page.rate()


def regular(crawls: int) -> np.ndarray:
    return np.ones(crawls) * 1_000.0


def irregular(crawls: int) -> np.ndarray:
    """As of a Poisson process."""
    return -np.log((np.arange(crawls) + 0.5) / crawls) * 1_000.0


@pytest.mark.parametrize("x", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(
    ("name", "intervals", "bound"),
    [
        ("closed", regular, 0.05),
        ("mle", regular, 0.05),
        ("mle", irregular, 0.1),
        ("last-modified", regular, 0.05),
        ("last-modified", irregular, 0.05),
        ("online", irregular, 0.4),  # its steps are (k + 2)^-0.75, so it forgets and therefore varies
    ],
)
def test_the_rate_of_a_poisson_process_is_found(name: str, intervals: object, bound: float, x: float) -> None:
    """x: changes per mean interval, with 200 crawls per page. The prior that gives every page a rate is included."""
    rate = x / 1_000.0
    found = np.mean([watch(name, rate, intervals(200), seed) for seed in range(3)])  # type: ignore[operator]
    assert found == pytest.approx(rate, rel=bound)


def test_ages_are_unbiased_and_the_remainder_of_the_interval_is_not() -> None:
    """At three changes per interval, X / sum of min(a, t) is right to 3 %, while the reading t - a falls short by more
    than half."""
    rng, rate, t = np.random.default_rng(1), 3.0, 1.0
    ages = rng.exponential(1.0 / rate, 40_000)
    changed = int((ages < t).sum())
    wrong = changed / (np.where(ages < t, t - ages, t).sum())
    assert changed / np.minimum(ages, t).sum() == pytest.approx(rate, rel=0.03)
    assert wrong / rate - 1.0 == pytest.approx(-0.57, abs=0.03)
    assert watch("last-modified", rate / 1_000.0, regular(500)) == pytest.approx(rate / 1_000.0, rel=0.03)


def test_the_closed_form_falls_short_where_intervals_differ_and_the_likeliest_rate_does_not() -> None:
    rate = 1.0 / 1_000.0
    closed, mle = (watch(name, rate, irregular(400)) for name in ("closed", "mle"))
    assert closed < 0.8 * rate
    assert mle == pytest.approx(rate, rel=0.08)


def test_the_bias_of_steps_at_regular_intervals_is_the_expected_one() -> None:
    """Their fixed point: I (y + r) = y, I = 1 - exp(-x), r t = 1: y t = exp(x) - 1."""
    found = np.mean([watch("online", 1.0 / 1_000.0, regular(500), seed) for seed in range(4)])
    assert found == pytest.approx(math.expm1(1.0) / 1_000.0, rel=0.2)


def test_a_change_without_a_date_counts_as_in_the_middle_of_its_interval() -> None:
    assert watch("last-modified", 0.2 / 1_000.0, regular(400), dated=False) == pytest.approx(0.2 / 1_000.0, rel=0.05)
    page = Watched("last-modified")
    page.crawl(10.0, True)
    page.crawl(20.0, True, age_s=15.0)  # older than the last crawl, which is impossible
    assert page.s.columns[0, 0] == 10.0


@pytest.mark.parametrize("seed", range(3))
def test_groups_lose_little_of_the_likeliest_rate(seed: int) -> None:
    """Compared with keeping all intervals, which here spread over three orders of magnitude."""
    rng, page, now = np.random.default_rng(seed), Watched("mle", turn_s=1_000.0), 0.0
    changed, unchanged = [1_000.0], [1_000.0]  # one of each at the beginning
    for interval in np.round(10.0 ** rng.uniform(1.5, 4.5, 30)):
        now += interval
        is_new = bool(rng.random() < -math.expm1(-interval / 2_000.0))
        page.crawl(now, is_new)
        (changed if is_new else unchanged).append(float(interval))
        assert page.rate() == pytest.approx(likeliest_rate(changed, unchanged), rel=0.06)


def test_a_group_that_is_full_forgets_half() -> None:
    page = Watched("mle", turn_s=100.0)
    page.s.columns[0, 2] = estimators.NUMBER * estimators.MOST_IN_GROUP + 100.0 * estimators.MOST_IN_GROUP
    page.crawl(100.0, True)
    number, seconds = divmod(float(page.s.columns[0, 2]), estimators.NUMBER)
    assert (number, seconds) == (estimators.MOST_IN_GROUP / 2 + 1, 100.0 * (estimators.MOST_IN_GROUP / 2 + 1))
    assert page.s.columns[0].max() < 2.0**53


def test_signals_are_used_where_there_are_any() -> None:
    page = Watched("complete")
    assert page.rate() == Watched("closed").rate()
    page.s.page[0].level, page.s.page[0].all_signals, page.s.page[0].crawled_s = SMART, 3, 43_200.0
    assert page.rate() == pytest.approx(3.5 / 86_400.0)


@pytest.mark.parametrize("name", ["mle", "online", "last-modified", "closed"])
def test_more_changes_give_a_higher_rate(name: str) -> None:
    found = []
    for changed in range(0, 21, 4):
        page = Watched(name)
        for crawl in range(20):
            page.crawl(float(crawl + 1), crawl < changed, 0.5)
        found.append(page.rate())
    assert all(0.0 < one < other for one, other in pairwise(found))


# ---- as options of policies


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", NAMES)
def test_every_policy_with_a_rate_runs_with_every_estimator(policy: str, name: str) -> None:
    chosen = policy_named(policy).with_options(estimator=name)
    world = small_world("smart", last_modified=True)
    one, other = (replay_world(world, chosen, 0.5, keep_chosen=True) for _ in range(2))
    assert one.chosen.tolist() == other.chosen.tolist()
    assert replay_world(world, chosen, 30.0).binary_time > max(0.85, one.binary_time)


def crawls(policy: Policy, dated: bool) -> list[int]:
    return replay_world(small_world("normal", last_modified=dated), policy, 0.5, keep_chosen=True).chosen.tolist()


def test_only_a_policy_that_uses_ages_gets_them() -> None:
    asks, asks_not = (policy_named("cgm").with_options(estimator=name) for name in ("last-modified", "closed"))
    assert crawls(asks_not, True) == crawls(asks_not, False)
    assert crawls(asks, True) != crawls(asks, False)


def test_ages_improve_freshness_of_pages_that_change_at_random() -> None:
    trace = small_trace("poisson", pages=60, updates=3_000)
    world = small_world("normal", trace=trace, accesses=2_000, last_modified=True)
    by_age, by_bits = (
        replay_world(world, policy_named("azar").with_options(estimator=name), 0.5).binary_time
        for name in ("last-modified", "closed")
    )
    assert by_age > by_bits - 0.01


def test_names_of_options_are_read_and_wrong_ones_are_named() -> None:
    cgm = policy_named("cgm")
    assert cgm.with_options(estimator="mle") == cgm.with_options(estimator=1.0) == cgm.with_options(estimator="1")
    assert cgm.kept == () and len(cgm.with_options(estimator="mle").kept) == 7
    with pytest.raises(ConfigError, match="did you mean 'online'"):
        cgm.with_options(estimator="onlin")
    with pytest.raises(ConfigError, match="no estimator 7"):
        cgm.with_options(estimator=7.0)
    with pytest.raises(ConfigError, match="'much' is not a number"):
        policy_named("xu").with_options(c="much")
