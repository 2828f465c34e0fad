"""The learned distribution of gaps, against the distribution that was sampled. Ages are in mean gaps."""

from types import SimpleNamespace

import numpy as np
import pytest

from trapline.refresh.core.layout import Sizes, allocate
from trapline.refresh.policies.gaps import break_even, expected_signals, hazard_at, learn_gaps, mean_residual, note_gap

AGES = (0.01, 0.1, 0.5, 1.0, 2.0)


def learned(gaps_s: np.ndarray) -> SimpleNamespace:
    """One page whose signals came with these gaps, as of the last signal."""
    s = SimpleNamespace(**allocate(Sizes(1, 1, 1))._asdict())
    ends_s = np.cumsum(gaps_s)
    # The inputs of signal_rate are those of the end, so that the unit of age is always the true mean gap.
    s.page[0].all_signals = s.run[0].signals = len(gaps_s)
    horizon_s = float(ends_s[-1])
    for gap_s in gaps_s:
        s.page[0].last_signal_s = horizon_s - gap_s
        note_gap(s, 0, horizon_s)
    s.page[0].last_signal_s = horizon_s
    learn_gaps(s, horizon_s)
    return s


def test_gaps_are_poisson_before_anything_is_learned() -> None:
    s = SimpleNamespace(**allocate(Sizes(1, 1, 1))._asdict())
    for age in AGES:
        assert (break_even(s, age), mean_residual(s, age), hazard_at(s, age)) == (1.0, 1.0, 1.0)
        assert expected_signals(s, age) == pytest.approx(age)


@pytest.mark.parametrize("mean_s", [60.0, 86_400.0])
def test_constant_hazard_breaks_even_at_the_mean_gap(mean_s: float) -> None:
    s = learned(np.random.default_rng(1).exponential(mean_s, 20_000))
    for age in AGES:
        assert break_even(s, age) == pytest.approx(1.0, rel=0.12)
        assert mean_residual(s, age) == pytest.approx(1.0, rel=0.12)
        assert expected_signals(s, age) == pytest.approx(age, rel=0.12, abs=0.01)


def test_the_law_does_not_depend_on_the_unit_of_time() -> None:
    gaps_s = np.random.default_rng(1).weibull(0.5, 2_000) * 100.0
    minutes, hours = learned(gaps_s), learned(60.0 * gaps_s)
    for age in AGES:
        assert break_even(minutes, age) == pytest.approx(break_even(hours, age))


def test_after_a_burst_the_value_of_waiting_falls() -> None:
    rng = np.random.default_rng(1)
    gaps_s = np.where(rng.random(20_000) < 0.8, rng.exponential(60.0, 20_000), rng.exponential(86_400.0, 20_000))
    s = learned(gaps_s)
    day = 86_400.0 / gaps_s.mean()
    gains = [break_even(s, age) for age in (5.0 / gaps_s.mean(), 0.01, 0.1, 0.5)]
    assert gains == sorted(gains) and gains[0] < 200.0 / gaps_s.mean() and gains[-1] == pytest.approx(day, rel=0.15)


def test_waiting_pays_just_before_a_regular_update() -> None:
    """Updates every hour: just before the next update a crawl is worth only the little time that is left."""
    s = learned(np.random.default_rng(1).normal(3_600.0, 100.0, 5_000))
    assert break_even(s, 0.05) > 0.6
    assert break_even(s, 0.95) < 0.4
