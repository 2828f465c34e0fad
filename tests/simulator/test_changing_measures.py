"""Freshness-weighted quality over time equals what a look at every page at every moment finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.changing import Fetch, fresh_quality, mean_fresh_quality
from trapline.refresh import Trace
from trapline.simulator.changing_measures import LAST, measured
from trapline.simulator.log import log_of

PAGES, UNTIL = 4, 16.0
moment = st.integers(0, 64).map(lambda quarter: quarter / 4)
fetch = st.tuples(st.integers(0, PAGES - 1), moment, st.integers(0, 4).map(lambda quarter: quarter / 4))
own_updates = st.lists(moment, max_size=6, unique=True).map(sorted)


def fetches_of(drawn: list[tuple[int, float, float]]) -> list[Fetch]:
    """Fetches in order of completion. A page is fetched again only after its previous fetch has ended."""
    accepted: list[Fetch] = []
    for page, first_byte, lasts in sorted(drawn, key=lambda one: one[1] + one[2]):
        before = [one.end for one in accepted if one.page == page]
        if first_byte + lasts <= UNTIL and all(end < first_byte for end in before):
            accepted.append(Fetch(page, first_byte, first_byte + lasts))
    return accepted


@settings(deadline=None)
@given(
    st.lists(fetch, max_size=14),
    st.lists(own_updates, min_size=PAGES, max_size=PAGES),
    st.lists(st.integers(1, 9).map(float), min_size=PAGES, max_size=PAGES),
)
def test_averages_and_curve_equal_those_of_a_look_at_every_page(
    drawn: list[tuple[int, float, float]], updates: list[list[float]], quality: list[float]
) -> None:
    fetches = fetches_of(drawn)
    log = log_of(*((one.page, at, one.first_byte, one.first_byte, one.end) for at, one in enumerate(fetches)))
    offsets = np.cumsum([0, *map(len, updates)]).astype(np.int64)
    at_s = np.array([at for own in updates for at in own])
    changes = Trace("drawn", offsets, at_s, np.zeros(PAGES, np.int32), UNTIL)
    found = measured(log, changes, np.array(quality), UNTIL, points=17)
    for weights, course in ((quality, found.fresh), ([1.0] * PAGES, found.fresh_pages)):
        assert course.average == pytest.approx(mean_fresh_quality(0.0, UNTIL, fetches, updates, weights))
        end = mean_fresh_quality((1 - LAST) * UNTIL, UNTIL, fetches, updates, weights)
        assert course.end == pytest.approx(end, abs=1e-12)
        looked = [fresh_quality(now, fetches, updates, weights) for now in found.time_s.tolist()]
        assert course.curve.tolist() == pytest.approx(looked, abs=1e-12)
    still = [[] for _ in range(PAGES)]
    for weights, course in ((quality, found.quality), ([1.0] * PAGES, found.coverage)):
        assert course.average == pytest.approx(mean_fresh_quality(0.0, UNTIL, fetches, still, weights))
