"""Confidence intervals, against scipy."""

import numpy as np
import pytest
from scipy import stats

from trapline.confidence import estimate, student_t


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 19, 100])
def test_student_t_equals_scipys(freedom: int) -> None:
    assert student_t(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-6)


def test_the_interval_of_a_mean() -> None:
    values = [0.81, 0.79, 0.84, 0.8, 0.77]
    low, high = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    found = estimate(values)
    assert (found.mean - found.ci, found.mean + found.ci) == pytest.approx((low, high))
    assert estimate([0.5]).ci is None
