"""The belief about a page's change rate, against sums over a grid of rates (tests/naive/rate_belief.py)."""

import math
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive import rate_belief as naive
from trapline.refresh.core.layout import NORMAL, SMART, Sizes, allocate
from trapline.refresh.policies.belief import CHANGES, MEAN_RATE, WATCHED_S, begin_anew
from trapline.refresh.policies.estimators import lost, rate_of
from trapline.refresh.policies.rate_belief import (
    ENOUGH_PAGES,
    SHAPE,
    change_probability,
    changes_of,
    expected_gain_s,
    growth_after_change,
    learn_prior_mean,
    learn_rate,
    prior_mean,
    seconds_of,
)

A_DAY_S = 86_400.0
SHAPES = st.floats(0.3, 30.0)
RATIOS = st.floats(-4.0, 4.0).map(lambda power: 10.0**power)  # of the time since the last crawl to b
CRAWLS = st.lists(st.tuples(st.floats(60.0, 30 * A_DAY_S), st.booleans()), min_size=1, max_size=12)


def new_pages(pages: int = 1, mean_rate: float = 1.0 / A_DAY_S) -> SimpleNamespace:
    s = SimpleNamespace(**allocate(Sizes(pages, 5, 2))._asdict())
    s.run[0].slots_per_s, s.totals[MEAN_RATE] = pages / A_DAY_S, mean_rate
    for page in range(pages):
        begin_anew(s, page)
    return s


def crawl(s: SimpleNamespace, seconds: float, changed: bool, page: int = 0, age: float = 1.0) -> None:
    """Crawl the page so long after its last crawl."""
    p = s.page[page]
    s.run[0].changed = changed
    learn_rate(s, page, float(p.crawled_s) + seconds, age)
    p.crawled_s, p.crawls = p.crawled_s + seconds, p.crawls + 1


def belief(s: SimpleNamespace, page: int = 0) -> tuple[float, float]:
    return changes_of(s, page), seconds_of(s, page)


def after(crawls: list[tuple[float, bool]], mean_rate: float = 1.0 / A_DAY_S) -> tuple[float, float]:
    s = new_pages(mean_rate=mean_rate)
    for seconds, changed in crawls:
        crawl(s, seconds, changed)
    return belief(s)


@settings(max_examples=40)
@given(st.floats(-7.0, -2.0), st.floats(60.0, 30 * A_DAY_S), st.booleans())
def test_the_first_crawl_gives_the_mean_and_variance_of_bayes_rule(power: float, seconds: float, changed: bool) -> None:
    rate = 10.0**power
    a, b = after([(seconds, changed)], rate)
    mean, variance = naive.mean_and_variance(SHAPE, SHAPE / rate, [(seconds, changed)])
    assert a / b == pytest.approx(mean, rel=1e-3)
    assert a / b**2 == pytest.approx(variance, rel=2e-3)


def test_after_several_crawls_the_mean_is_near_that_of_bayes_rule() -> None:
    """Each crawl with something new is replaced by a Gamma distribution, so the mean is not exact. On pages that change as the prior says,
    it is off by a ninth of a standard deviation; on results that no such page is likely to have, by up to 2.3."""
    chance = np.random.default_rng(1)
    errors = []
    for _ in range(200):
        crawls = likely_crawls(chance)
        a, b = after(crawls)
        mean, variance = naive.mean_and_variance(SHAPE, SHAPE * A_DAY_S, crawls)
        errors.append((a / b - mean) / math.sqrt(variance))
    assert abs(np.mean(errors)) < 0.05
    assert np.sqrt(np.mean(np.square(errors))) < 0.2


def likely_crawls(chance: np.random.Generator) -> list[tuple[float, bool]]:
    """Return intervals between crawls, from an hour to a month, and what they find on a page whose rate is drawn from the prior."""
    rate = chance.gamma(SHAPE, 1.0 / (SHAPE * A_DAY_S))
    intervals = np.exp(chance.uniform(math.log(3600.0), math.log(30 * A_DAY_S), chance.integers(1, 13))).tolist()
    return [(seconds, bool(chance.random() < -math.expm1(-rate * seconds))) for seconds in intervals]


@settings(max_examples=40)
@given(SHAPES, RATIOS)
def test_the_gain_is_the_mean_over_the_belief(a: float, ratio: float) -> None:
    b = 5_000.0
    assert expected_gain_s(a, b, ratio * b) == pytest.approx(naive.gain_s(a, b, ratio * b), rel=2e-3)


@given(st.floats(-15.0, -3.0), RATIOS)
@example(power=-5.0, ratio=1e-4)
def test_the_gain_has_no_jump_at_shape_1(power: float, ratio: float) -> None:
    b = 5_000.0
    at_1 = expected_gain_s(1.0, b, ratio * b)
    for a in (1.0 - 10.0**power, 1.0 + 10.0**power):
        assert expected_gain_s(a, b, ratio * b) == pytest.approx(at_1, rel=1e-4 + 10.0 ** (power + 1))


@given(RATIOS)
def test_a_belief_without_doubt_gains_what_cgm_gains(ratio: float) -> None:
    many, b = 1e7, 1e7 * 5_000.0
    t = ratio * 5_000.0
    assert expected_gain_s(many, b, t) == pytest.approx(lost(many / b, t), rel=1e-3)


@given(SHAPES, RATIOS, RATIOS)
def test_the_gain_rises_with_time_and_is_less_than_the_time(a: float, one: float, other: float) -> None:
    b = 5_000.0
    short, long = sorted((one * b, other * b))
    assert 0.0 < expected_gain_s(a, b, short) <= expected_gain_s(a, b, long) * (1.0 + 1e-6)
    assert expected_gain_s(a, b, long) < long


@given(SHAPES, st.floats(-9.0, 9.0))
def test_a_change_adds_between_nothing_and_one_change(a: float, power: float) -> None:
    b, t = 5_000.0, 5_000.0 * 10.0**power
    growth = growth_after_change(a, b, t)
    mean_b = a * change_probability(a + 1.0, b, t) / change_probability(a, b, t)
    assert 1.0 <= growth <= 1.0 + 1.0 / min(a, 1.0)
    assert a * (1.0 - 1e-6) <= mean_b * growth <= (a + 1.0) * (1.0 + 1e-6)


@given(CRAWLS)
def test_the_evidence_is_never_negative_and_the_rate_is_finite(crawls: list[tuple[float, bool]]) -> None:
    """Also when the mean of the prior changes afterwards."""
    s = new_pages()
    for i, (seconds, changed) in enumerate(crawls):
        crawl(s, seconds, changed, age=0.95)
        s.totals[MEAN_RATE] = 10.0 ** (-9.0 + i)
        a, b = belief(s)
        assert s.columns[0, CHANGES] >= 0.0 and s.columns[0, WATCHED_S] >= 0.0
        assert 0.0 < a / b < math.inf


def test_the_order_of_crawls_without_a_change_does_not_matter() -> None:
    gaps = [600.0, 7_200.0, 90_000.0]
    found = [after([(gap, False) for gap in order]) for order in permutations(gaps)]
    assert all(belief == pytest.approx(found[0], rel=1e-12) for belief in found)
    assert found[0][1] == pytest.approx(SHAPE * A_DAY_S + sum(gaps))


def test_what_other_pages_show_does_not_depend_on_the_order_of_the_pages() -> None:
    rng = np.random.default_rng(1)
    crawls = [(page, float(rng.exponential(A_DAY_S)), bool(rng.random() < 0.4)) for page in range(20) for _ in range(5)]
    means = []
    for order in (crawls, sorted(crawls, key=lambda one: -one[0])):
        s = new_pages(20)
        for page, seconds, changed in order:
            crawl(s, seconds, changed, page)
        learn_prior_mean(s)
        means.append(prior_mean(s))
    assert means[0] == pytest.approx(means[1], rel=1e-12)


@pytest.mark.parametrize("per_day", [0.05, 1.0, 20.0])
def test_the_rate_of_a_poisson_page_is_learned(per_day: float) -> None:
    """300 crawls, one a day: a change is found in a share of 1 - exp(-rate); `age` is 1. At 20 a day, every crawl finds one."""
    rng = np.random.default_rng(7)
    a, b = after([(A_DAY_S, bool(rng.random() < -math.expm1(-per_day))) for _ in range(300)])
    if per_day == 20.0:
        assert a / b * A_DAY_S > 3.0
    else:
        assert a / b * A_DAY_S == pytest.approx(per_day, rel=0.3)


def test_old_crawls_count_less() -> None:
    busy_then_quiet = [(3_600.0, True)] * 30 + [(3_600.0, False)] * 30
    rates = []
    for age in (1.0, 0.95, 0.8):
        s = new_pages()
        for seconds, changed in busy_then_quiet:
            crawl(s, seconds, changed, age=age)
        a, b = belief(s)
        rates.append(a / b)
    assert rates[0] > 2.0 * rates[1] > 4.0 * rates[2]


def test_the_mean_of_the_prior_is_learned_from_the_pages_that_were_crawled() -> None:
    """Half of the pages change ten times as often as the first guess; those without a crawl, or with signals, do not count."""
    s = new_pages(4 * ENOUGH_PAGES, mean_rate=0.0)
    s.run[0].crawls, s.run[0].changes = 100, 63
    guess = rate_of(s, 0.0, 0.0, 0.0)
    assert prior_mean(s) == guess
    for page in range(ENOUGH_PAGES - 1):
        crawl(s, 0.1 / guess, True, page)
    learn_prior_mean(s)
    assert prior_mean(s) == guess  # too few
    for page in range(ENOUGH_PAGES - 1, 2 * ENOUGH_PAGES):
        crawl(s, 0.1 / guess, True, page)
    for page in range(3 * ENOUGH_PAGES, 4 * ENOUGH_PAGES):
        s.page[page].level, s.page[page].crawls = SMART, 50
    learn_prior_mean(s)
    beliefs = [belief(s, page) for page in range(2 * ENOUGH_PAGES)]
    assert prior_mean(s) > 1.5 * guess
    s.totals[MEAN_RATE] = 0.0
    beliefs = [belief(s, page) for page in range(2 * ENOUGH_PAGES)]
    learn_prior_mean(s)
    assert prior_mean(s) == pytest.approx(np.mean([a / b for a, b in beliefs]))


def test_a_page_whose_provider_stopped_to_signal_has_the_prior() -> None:
    """Its columns hold numbers of signals until its next crawl."""
    s = new_pages()
    s.page[0].level = SMART
    begin_anew(s, 0)
    s.columns[0] = 5_000.0
    s.page[0].level = NORMAL
    assert belief(s) == (SHAPE, SHAPE / prior_mean(s))


def test_two_crawls_at_the_same_second_are_no_error() -> None:
    for changed in (True, False):
        a, b = after([(0.0, changed), (0.0, changed)])
        assert 0.0 < a / b < math.inf
