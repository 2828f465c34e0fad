"""The scores of the paper: their state, and the effect of each option, against numbers worked out by hand."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refresh.worlds import small_world
from trapline.refresh.core.layout import NORMAL, SMART, SUPER, Sizes, allocate
from trapline.refresh.policies.xu import (
    COUNTED_IN,
    LITERAL_OPTIONS,
    MOST_FUTURE,
    MOST_PAST,
    POLICY,
    RING,
    add_at_place,
    at_place,
    counted,
    on_access,
    on_crawl,
    on_cycle,
    on_signal,
    score,
)
from trapline.refresh.replay.replayer import make_state


def empty() -> SimpleNamespace:
    """A view of one page, for the formulas alone."""
    return SimpleNamespace(**allocate(Sizes(1, len(POLICY.columns), len(POLICY.options), points=4))._asdict())


@given(st.lists(st.tuples(st.integers(0, RING - 1), st.integers(-5, 2**20)), max_size=30))
def test_two_counts_in_one_column_do_not_touch_each_other(added: list[tuple[int, int]]) -> None:
    s, right = empty(), Counter[int]()
    for place, count in added:
        if right[place] + count >= 0:
            right[place] += count
            add_at_place(s, 0, place, float(count))
    assert [at_place(s, 0, place) for place in range(RING)] == [right[place] for place in range(RING)]


def test_cycles_that_are_too_old_do_not_count() -> None:
    s = empty()
    for place in range(RING):
        add_at_place(s, 0, place, place + 1.0)
    s.columns[0, COUNTED_IN] = 8.0  # at place 2
    assert [counted(s, 0, cycle) for cycle in (-1.0, 2.0, 3.0, 5.0, 8.0, 9.0)] == [0.0, 0.0, 4.0, 6.0, 3.0, 0.0]


def test_the_size_of_a_page_does_not_grow() -> None:
    world = small_world()
    state = make_state(world, POLICY, 1.0)
    kept = (state.page, state.columns, state.waiting, state.hot, state.value)
    assert sum(np.asarray(array).nbytes for array in kept) <= 208 * world.trace.pages


class RecordedPage:
    """One page with cycles of 100 s, first crawled at 0. Its events are recorded as in refresh/core/evidence.py, and
    its scores are computed in plain Python."""

    def __init__(self, level: int, **options: float) -> None:
        self.s = empty()
        self.p, self.run = self.s.page[0], self.s.run[0]
        self.p.level, self.run.cycle_s = level, 100.0
        self.s.option[:] = list(POLICY.with_options(**options).options.values())

    def cycle(self, now: float) -> None:
        on_cycle(self.s, -1, now)

    def access(self, *times: float) -> "RecordedPage":
        for now in times:
            on_access(self.s, 0, now)
            self.p.hits += 1
            self.run.accesses += 1
        return self

    def signal(self, now: float) -> "RecordedPage":
        on_signal(self.s, 0, now)
        if self.p.signals == 0:
            self.p.first_signal_s = now
        self.p.signals += 1
        self.p.last_signal_s = now
        return self

    def point(self, now: float, p: float = 1.0) -> "RecordedPage":
        self.s.point[0].at_s, self.s.point[0].p = now, p
        self.p.point = self.p.points = 1
        return self

    def crawl(self, now: float) -> "RecordedPage":
        on_crawl(self.s, 0, now)
        self.p.crawled_s, self.p.signals, self.p.hits = now, 0, 0
        return self

    def score(self, now: float) -> float:
        return float(score(self.s, 0, now))


def two_missed(level: int, **options: float) -> RecordedPage:
    """Updates at 10 and 40, and accesses of the stale copy at 20, 30 and 60."""
    return RecordedPage(level, **options).signal(10).access(20, 30).signal(40).access(60)


@pytest.mark.parametrize(
    ("level", "options", "at_100"),
    [
        (SMART, {}, (40 - 10) * 2 + (100 - 40) * 3),
        (SMART, {"past": 1}, 80 + 70 + 40),
        (SMART, {"past": 2}, (40 - 10) * 2),
        (SMART, {"swapped": 1}, 0.5 * 100 * (3 + 1)),
        (SUPER, {"swapped": 1}, 240),
        (SUPER, {"past_of_super": 1}, 0.8 * 240),
        (SUPER, {"past_of_super": 1, "beta": 0.5}, 0.5 * 240),
        (SMART, {"past_of_super": 1}, 240),
    ],
)
def test_eq_4(level: int, options: dict[str, float], at_100: float) -> None:
    assert two_missed(level, **options).score(100.0) == pytest.approx(at_100, abs=1e-3)


@pytest.mark.parametrize(
    ("options", "at_100"), [({}, 200.0), ({"c": 3}, 300.0), ({"c": 0}, 150.0), ({"swapped": 1}, 1e-4)]
)
def test_eq_5(options: dict[str, float], at_100: float) -> None:
    assert RecordedPage(NORMAL, **options).access(20, 30, 60).score(100.0) == pytest.approx(at_100)


def test_ties_are_broken_by_the_oldest_update_or_by_the_last_crawl() -> None:
    """Page a was crawled earlier, and page b misses an update for longer. Neither has had an access."""

    def scores(**options: float) -> tuple[float, float]:
        pages = RecordedPage(SMART, **options).crawl(10).signal(90), RecordedPage(SMART, **options).crawl(50).signal(60)
        return pages[0].score(100), pages[1].score(100)

    for past in (0.0, 1.0, 2.0):
        a, b = scores(past=past)
        assert 0 < a < b < 1e-3
        a, b = scores(past=past, ties=1.0)
        assert 0 < b < a < 1e-3


def announced(**options: float) -> RecordedPage:
    """Cycles 0 to 4 have 1, 0, 2, 1, 4 accesses and one crawl. A point comes in cycle 5, at 550. No update is missed."""
    page = RecordedPage(SUPER, **options)
    for cycle, accesses in enumerate((1, 0, 2, 1, 4)):
        page.cycle(100.0 * cycle)
        page.access(*(100.0 * cycle + 10.0 * i for i in range(accesses)))
    page.crawl(500)
    page.cycle(500.0)
    page.s.totals[[MOST_PAST, MOST_FUTURE]] = 1_000.0, 2.0
    return page.point(550, 0.5)


# alpha C_4 + (1 - alpha) mean(C_0 .. C_3)
EXPECTED = 0.8 * 4 + 0.2 * (1 + 0 + 2 + 1) / 4


@pytest.mark.parametrize(
    ("options", "at_560"),
    [
        ({}, 0.2 * 0.5 * EXPECTED * 1_000 / 2),
        ({"beta": 0.5}, 0.5 * 0.5 * EXPECTED * 1_000 / 2),
        ({"alpha": 1.0}, 0.2 * 0.5 * 4 * 1_000 / 2),
        ({"future": 1}, 0.2 * 0.5 * (0.8 * 4 + 0.2 * 4) / 8 * 1_000 / 2),
        ({"future": 1, "unified": 1}, 0.2 * 0.5 * (0.8 * 4 + 0.2 * 4) / 8 * 8),
        ({"unified": 1}, 0.2 * 0.5 * 1.0 * 8),  # all accesses are of this page, so its share is 1
        (LITERAL_OPTIONS, 0.2 * 0.5 * 0.5 * 8),
    ],
)
def test_eq_6_and_7_of_a_point_that_has_come(options: dict[str, float], at_560: float) -> None:
    page = announced(**options)
    assert page.score(560) == pytest.approx(at_560, abs=1e-3)
    assert page.score(610) == 0.0  # in the next cycle there is no signal of a change
    assert page.crawl(570).score(580) == 0.0


def test_before_the_fifth_cycle_the_mean_is_over_fewer_cycles() -> None:
    """Cycle 3: C_2 = 2, and the mean of C_1 = 1 and C_0 = 0. Cycles before the first do not count."""
    page = RecordedPage(SUPER).access(150, 210, 220).crawl(300).point(310)
    page.s.totals[[MOST_PAST, MOST_FUTURE]] = 1.0
    assert page.score(320) == pytest.approx(0.2 * (0.8 * 2 + 0.2 * 0.5))


def test_frozen_scores_do_not_see_their_own_cycle() -> None:
    """An update is missed since 110, with accesses at 150 and 250. In the cycle from 200 on the harm is that at 200,
    until a crawl."""

    def at(now: float, frozen: float) -> float:
        return RecordedPage(SMART, frozen=frozen).signal(110).access(150, 250).score(now)

    assert [round(at(now, 1.0)) for now in (260, 290, 300)] == [90, 90, 380]
    assert [round(at(now, 0.0)) for now in (260, 290, 300)] == [300, 360, 380]
    new = RecordedPage(SMART, frozen=1.0).access(210).signal(220)
    assert new.score(290) == 0.0 and new.score(301) > 0.0


def test_the_past_in_eq_7_is_that_at_the_beginning_of_the_cycle() -> None:
    page = RecordedPage(SUPER, beta=0.9).access(110).signal(120).access(150).point(210)
    page.s.totals[[MOST_PAST, MOST_FUTURE]] = 1_000.0, 1.0
    expected = (0.8 * 2) * 1_000  # C_1 = 2, C_0 = 0
    assert page.score(260) == pytest.approx(0.9 * (200 - 120) * 1 + 0.1 * expected, abs=1e-3)
