"""The index for noisy signals: its sums against simulated cycles, its limits, and the approximate form beside it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.rates import noisy_gain
from tests.refresh.worlds import small_trace, small_world
from trapline.refresh import policy_named, replay_world
from trapline.refresh.policies.estimators import lost
from trapline.refresh.policies.ncis import MOST_TERMS, cheap_s, exact_s, more_than, weak_s

RATES = st.floats(0.01, 2.0)


@pytest.mark.parametrize(
    ("n", "t", "recall", "nu"),
    [
        (0, 1.0, 0.5, 0.3),
        (0, 4.0, 0.3, 1.5),
        (1, 0.5, 0.5, 0.3),
        (1, 1.0, 0.8, 0.2),
        (2, 0.7, 0.3, 1.0),
        (4, 1.5, 0.5, 2.0),
    ],
)
def test_the_sums_equal_the_means_of_simulated_cycles(n: int, t: float, recall: float, nu: float) -> None:
    """One change per unit of time. With 30,000 cycles three standard errors are below 2 % of the value or 0.01."""
    alpha, true = 1.0 - recall, recall
    drawn = noisy_gain(n, t, alpha, true, nu, 30_000, seed=n)
    assert exact_s(n, t, alpha, nu, true + nu) == pytest.approx(drawn, rel=0.02, abs=0.01)


@given(st.integers(1, 5), st.floats(0.0, 20.0), RATES)
def test_with_signals_that_are_never_false_the_value_is_one_over_the_rate(n: int, t: float, rate: float) -> None:
    """nu = 0 with n >= 1: the copy is stale, and a new copy is fresh for 1 / D."""
    assert exact_s(n, t, 0.3 * rate, 1e-15 * rate, 0.7 * rate) == pytest.approx(1.0 / rate, rel=1e-6)


@given(st.floats(1e-3, 30.0), RATES)
def test_at_recall_0_the_index_is_that_of_cgm(t: float, rate: float) -> None:
    """Recall 0: signals say nothing, however many there are."""
    few = 1e-9
    assert exact_s(0, t, rate, few * (1.0 - 1e-6), few) == pytest.approx(lost(rate, t), rel=1e-3, abs=1e-9)


@given(st.floats(1e-3, 5.0), RATES, RATES, RATES)
def test_both_forms_agree_before_one_signal_weighs_as_much_as_the_time(
    t: float, alpha: float, true: float, nu: float
) -> None:
    beta = math.log((true + nu) / nu) / alpha
    if t < beta:
        assert exact_s(0, t, alpha, nu, true + nu) == pytest.approx(cheap_s(0, t, alpha, nu, true + nu), abs=1e-12)


@given(st.integers(0, 6), st.floats(0.0, 10.0), RATES, RATES, RATES)
def test_more_evidence_raises_the_value_up_to_that_of_a_page_known_to_be_stale(
    n: int, t: float, alpha: float, true: float, nu: float
) -> None:
    gamma, most = true + nu, 1.0 / (alpha + true)
    now = exact_s(n, t, alpha, nu, gamma)
    assert -1e-12 <= now <= most + 1e-9
    for more, later in ((n, t + 0.5), (n + 1, t)):
        is_one_form = (_terms(n, t, alpha, nu, gamma) > MOST_TERMS) == (
            _terms(more, later, alpha, nu, gamma) > MOST_TERMS
        )
        assert exact_s(more, later, alpha, nu, gamma) >= now - (1e-9 if is_one_form else 5e-3 * most)


@given(st.integers(0, 6), st.floats(MOST_TERMS - 4.0, MOST_TERMS - 0.1), RATES, RATES, RATES)
def test_the_form_for_weak_signals_is_near_the_sums_where_they_have_many_terms(
    n: int, terms: float, alpha: float, true: float, nu: float
) -> None:
    t = (terms - n) * math.log((true + nu) / nu) / alpha
    sums, weak = exact_s(n, t, alpha, nu, true + nu), weak_s(n, t, alpha, nu, true + nu)
    assert weak == pytest.approx(sums, abs=5e-3 / (alpha + true))


def _terms(n: int, t: float, alpha: float, nu: float, gamma: float) -> int:
    """Return how many terms the sums have."""
    return int(n + t * alpha / math.log(gamma / nu)) + 1


@given(st.integers(1, 8), st.floats(0.0, 5.0), st.floats(0.3, 0.95), st.floats(0.05, 3.0))
def test_the_approximate_form_is_near(n: int, t: float, recall: float, nu: float) -> None:
    """For a recall of 0.3 or more. The largest ratio, 1.57, is at a recall of 0.3 and nu = 3, right after a crawl."""
    exact, cheap = (form(n, t, 1.0 - recall, nu, recall + nu) for form in (exact_s, cheap_s))
    assert 0.84 * exact - 1e-9 <= cheap <= 1.6 * exact + 1e-9


def test_small_times_are_not_lost_to_rounding() -> None:
    for t in (1e-7, 1e-5, 2e-5, 1e-4):
        assert exact_s(0, t, 0.5, 0.2, 0.7) == pytest.approx(0.25 * t * t, rel=1e-3)


def test_with_too_many_terms_the_approximate_form_is_used() -> None:
    assert exact_s(MOST_TERMS, 1.0, 0.5, 1.0, 1.5) == cheap_s(MOST_TERMS, 1.0, 0.5, 1.0, 1.5)


@given(st.integers(0, 60), st.floats(0.0, 300.0))
def test_the_gamma_function_is_a_rising_probability(k: int, x: float) -> None:
    assert 0.0 <= more_than(k, x) <= more_than(k, x + 1.0) + 1e-12 <= 1.0 + 2e-12
    assert more_than(k + 1, x) <= more_than(k, x) + 1e-12


@pytest.mark.parametrize("form", ["exact", "cheap"])
def test_signals_help_by_both_forms(form: str) -> None:
    trace = small_trace("poisson", pages=60, updates=1_500)
    policy = policy_named("ncis").with_options(form=form)
    with_signals, without_signals = (
        replay_world(
            small_world(level, trace=trace, accesses=2_000, precision=0.8, recall=0.8), policy, 0.3
        ).binary_time
        for level in ("smart", "normal")
    )
    assert with_signals > without_signals
