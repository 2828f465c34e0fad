"""What is learned about gaps and popularity, against what it was drawn from."""

from types import SimpleNamespace

import numpy as np
import pytest

from trapline.refresh.layout import Sizes, allocate
from trapline.refresh.policies import gaps
from trapline.refresh.policies.gaps import POOL, break_even_s, learn, note_gap


def learned(gaps_s: np.ndarray) -> SimpleNamespace:
    state = allocate(Sizes(1, 1, 1))
    s = SimpleNamespace(**state._asdict())
    s.gaps[: gaps.HAZARD] = 0.0
    for gap_s in gaps_s:
        note_gap(s, 0, float(gap_s))
    learn(s, 0.0)
    return s


def test_constant_hazard_breaks_even_at_the_mean_gap() -> None:
    s = learned(np.random.default_rng(1).exponential(3_600.0, 20_000))
    for age_s in (60.0, 600.0, 3_600.0, 7_200.0):
        assert break_even_s(s, POOL, age_s) == pytest.approx(3_600.0, rel=0.1)


def test_after_a_burst_waiting_pays_less_and_less() -> None:
    rng = np.random.default_rng(1)
    bursts = np.where(rng.random(20_000) < 0.8, rng.exponential(60.0, 20_000), rng.exponential(86_400.0, 20_000))
    s = learned(bursts)
    worth = [break_even_s(s, POOL, age_s) for age_s in (5.0, 100.0, 1_000.0, 10_000.0)]
    assert worth == sorted(worth) and worth[0] < 200.0 and worth[-1] == pytest.approx(86_400.0, rel=0.15)


def test_before_a_regular_update_waiting_pays() -> None:
    """Updates every hour: just before the next one a crawl is worth the little time that is left."""
    s = learned(np.random.default_rng(1).normal(3_600.0, 100.0, 5_000))
    assert break_even_s(s, POOL, 100.0) > 2_000.0
    assert break_even_s(s, POOL, 3_300.0) < 1_500.0
