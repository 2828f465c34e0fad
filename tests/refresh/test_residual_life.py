"""The limits of residual-life: the values of R, pi and o where the answer is known. Gaps are Poisson, as before
anything is learned."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refresh.worlds import small_trace, small_world
from trapline.compiled import jit
from trapline.refresh import policy_named, replay_world
from trapline.refresh.core.layout import AUDITED, NORMAL, SMART, SUPER, Sizes, allocate
from trapline.refresh.policies.belief import (
    begin_anew,
    is_begun,
    learn_from_crawl,
    true_share,
    unsignalled_odds,
)
from trapline.refresh.policies.gaps import by_gaps_s, by_points_s, chance_of, has_points
from trapline.refresh.policies.residual_life import gained_s
from trapline.refresh.policies.trust import PRECISION, signal_rate

NOW = 1_000.0
MANY = 1e9  # so many outcomes that the prior has no effect


def page_with(
    points: list[tuple[float, float]], level: int = SUPER, kept: float = 1.0, announced: float = 1.0
) -> SimpleNamespace:
    """One page, updated at 1, 2, ..., 1000 s, with a slot each second. `kept` and `announced` describe the earlier
    points of its provider."""
    s = SimpleNamespace(**allocate(Sizes(1, 5, 2, rows=2, points=max(1, len(points))))._asdict())
    s.run[0].signals, s.run[0].slots_per_s = 1_000, 1.0
    p = s.page[0]
    p.level, p.trust, p.all_signals, p.last_signal_s, p.crawled_s = level, 1, 1_000, NOW, NOW - 10.0
    p.point_end = len(points)
    for i, (at_s, probability) in enumerate(points):
        s.point[i].at_s, s.point[i].p = at_s, probability
    for row in s.trust:
        row.promised, row.kept = MANY, kept * MANY
        row.signals, row.announced = MANY, announced * MANY
    return s


def lasting(s: SimpleNamespace, load: float = 1.0) -> float:
    rate = signal_rate(s, 0, NOW)
    by_gaps = by_gaps_s(s, 0, NOW, rate, load)
    return by_points_s(s, 0, NOW, rate, load, by_gaps) if has_points(s, 0) else by_gaps


POINTS = st.lists(st.tuples(st.floats(NOW, NOW + 50.0), st.floats(0.0, 1.0)), min_size=1, max_size=40).map(sorted)


def test_without_points_the_copy_of_a_poisson_page_lasts_a_mean_gap() -> None:
    assert lasting(page_with([], SMART)) == pytest.approx(1.0, rel=1e-3)
    assert lasting(page_with([], SMART), load=0.5) == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("ahead_s", [1.0, 3.0, 30.0])
def test_before_a_certain_update_a_copy_lasts_until_then(ahead_s: float) -> None:
    assert lasting(page_with([(NOW + ahead_s, 1.0)])) == pytest.approx(ahead_s, rel=1e-3)


@given(POINTS)
def test_points_of_a_provider_that_never_kept_any_change_nothing(points: list[tuple[float, float]]) -> None:
    without = lasting(page_with([], SMART))
    assert lasting(page_with(points, kept=0.0, announced=0.0)) == pytest.approx(without, rel=1e-6)


@given(POINTS)
def test_points_of_probability_0_change_nothing(points: list[tuple[float, float]]) -> None:
    nothing = [(at_s, 0.0) for at_s, _ in points]
    without = lasting(page_with([], SMART))
    assert lasting(page_with(nothing, announced=0.0)) == pytest.approx(without, rel=1e-6)


@given(POINTS, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_the_lifetime_of_a_copy_is_positive_and_finite(
    points: list[tuple[float, float]], kept: float, announced_share: float
) -> None:
    assert 0.0 < lasting(page_with(points, kept=kept, announced=announced_share)) < math.inf


def test_a_doubtful_point_just_ahead_leaves_some_value() -> None:
    """No crawl can wait for less than a slot. With a probability of a tenth that an update is near, at least half the
    value of the slot is left."""
    near = lasting(page_with([(NOW + 0.01, 0.1), (NOW + 40.0, 0.1)]))
    assert near >= 0.5


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_more_trusted_point_has_a_higher_probability(one: float, other: float) -> None:
    s = page_with([])
    less, more = sorted((one, other))
    assert 0.0 <= chance_of(s, less, 0.5) <= chance_of(s, more, 0.5) <= 1.0
    assert chance_of(s, 0.0, 0.5) == 0.0


@given(st.floats(1e-3, 1e9), st.floats(1e-6, 1e3))
def test_the_gain_of_a_crawl_is_bounded_by_the_lifetime_of_its_copy_and_by_the_next_turn(
    lasting_s: float, slots_per_s: float
) -> None:
    s = page_with([])
    s.run[0].slots_per_s = slots_per_s
    turn_s = 0.5 / slots_per_s  # one page
    assert 0.5 * min(lasting_s, turn_s) <= gained_s(s, lasting_s, 1.0) * (1.0 + 1e-9)
    assert gained_s(s, lasting_s, 1.0) <= min(lasting_s, turn_s) * (1.0 + 1e-9)
    assert gained_s(s, lasting_s, 0.0) == pytest.approx(lasting_s)


def crawled(s: SimpleNamespace, changed: list[bool], signals: int) -> SimpleNamespace:
    for found in changed:
        s.page[0].signals, s.run[0].changed = signals, found
        learn_from_crawl(s, 0, NOW, 0.95)
    return s


def test_signals_that_are_always_true_are_believed_and_others_are_not() -> None:
    liar, honest = page_with([], SMART), page_with([], SMART)
    assert true_share(crawled(honest, [True] * 100, 1), 0) > 0.95
    assert true_share(crawled(liar, [False] * 100, 1), 0) < 0.05


def test_a_precision_of_one_half_is_learned() -> None:
    s = crawled(page_with([], SMART), [True, False] * 200, 1)
    assert 0.3 < true_share(s, 0) < 0.7


def test_the_share_of_unsignalled_updates_is_learned() -> None:
    """Crawled after ten mean gaps without a signal: never anything new, or always."""
    all_signalled, misses = page_with([], SMART), page_with([], SMART)
    for s, found in ((all_signalled, False), (misses, True)):
        s.page[0].last_signal_s = NOW - 10.0
        crawled(s, [found] * 100, 0)
    assert unsignalled_odds(all_signalled, 0) < 0.02
    assert unsignalled_odds(misses, 0) > 1.0


def test_an_audited_page_is_trusted_whatever_was_learned() -> None:
    s = crawled(page_with([], SMART), [False] * 100, 1)
    s.page[0].marks |= AUDITED
    assert true_share(s, 0) == PRECISION


def test_a_page_whose_provider_starts_to_signal_is_learned_anew() -> None:
    """Seconds between crawls must not count as signalled updates."""
    s = page_with([], NORMAL)
    begin_anew(s, 0)
    s.columns[0, 1:] = 5_000.0
    assert is_begun(s, 0)
    s.page[0].level = SMART
    fresh = page_with([], SMART)
    assert not is_begun(s, 0)
    assert (true_share(s, 0), unsignalled_odds(s, 0)) == (true_share(fresh, 0), unsignalled_odds(fresh, 0))
    begin_anew(s, 0)
    assert is_begun(s, 0) and not s.columns[0].any()


@pytest.mark.skipif(jit.DISABLED, reason="six replays take minutes uncompiled")
@pytest.mark.parametrize("errors", ["moved", "added"])
def test_wrong_points_cost_hardly_anything(errors: str) -> None:
    trace = small_trace("poisson", pages=100, updates=2_000)
    conditions = {"accesses": 2_000, "trace": trace}
    ours = policy_named("residual-life")
    signals = replay_world(small_world("smart", **conditions), ours, 0.3).binary_time
    wrong = small_world("super", schedule_precision=0.1, schedule_errors=errors, **conditions)
    right = replay_world(small_world("super", **conditions), ours, 0.3).binary_time
    assert replay_world(wrong, ours, 0.3).binary_time > signals - 0.01
    assert right > signals
