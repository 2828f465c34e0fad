"""Replay worlds have the requested shares, and each random choice is independent of other options."""

import numpy as np
import pytest

from tests.refresh.worlds import small_trace, small_world
from trapline.errors import ConfigError
from trapline.refresh import ReplayConditions, draw_world, drawn_trace

TRACE = drawn_trace("poisson", 200, 20_000, 10.0, seed=1)


def test_signals_have_the_requested_precision_and_recall() -> None:
    world = small_world("smart", trace=TRACE, precision=0.7, recall=0.6)
    true = np.isin(world.signal["at_s"], TRACE.at_s)
    assert true.mean() == pytest.approx(0.7, abs=0.02)
    assert true.sum() / TRACE.updates == pytest.approx(0.6, abs=0.02)
    assert np.all(np.diff(world.signal["at_s"]) >= 0)


def test_published_points_have_the_requested_precision_and_keep_their_number() -> None:
    world = small_world("super", trace=TRACE, schedule_precision=0.75)
    assert len(world.point) == TRACE.updates
    assert np.isin(world.point["at_s"], TRACE.at_s).mean() == pytest.approx(0.75, abs=0.02)
    for page in range(TRACE.pages):
        mine = world.published[world.point_offsets[page] : world.point_offsets[page + 1]]["at_s"]
        assert np.all(np.diff(mine) >= 0)
        assert sorted(world.point["at_s"][world.point["page"] == page]) == mine.tolist()


def test_all_updates_can_be_published_together_with_false_points() -> None:
    world = small_world("super", trace=TRACE, schedule_precision=0.25, schedule_errors="added")
    true = np.isin(world.point["at_s"], TRACE.at_s)
    assert true.sum() == TRACE.updates and true.mean() == pytest.approx(0.25, abs=0.01)
    assert small_world("super", trace=TRACE, schedule_errors="added").point.tolist() == world.point[true].tolist()


def test_points_are_published_as_certain_or_with_the_schedules_precision() -> None:
    conditions = {"trace": TRACE, "schedule_precision": 0.75}
    assert set(small_world("super", **conditions).published["p"]) == {1.0}
    assert set(small_world("super", **conditions, calibrated=True).published["p"]) == {0.75}


def test_the_weight_of_a_page_is_its_share_of_measured_accesses() -> None:
    world = small_world(warm_up=0.5)
    late = world.access["page"][world.access["at_s"] >= 0.5 * world.trace.horizon_s]
    assert world.shares.tolist() == [np.mean(late == page) for page in range(world.trace.pages)]


def test_a_normal_provider_sends_no_signal() -> None:
    world = small_world("normal", trace=TRACE)
    assert len(world.signal) == len(world.point) == 0
    mixed = draw_world(TRACE, ReplayConditions(levels={"normal": 0.35, "smart": 0.35, "super": 0.3}), 0)
    assert np.bincount(mixed.level).tolist() == [70, 70, 60]
    assert set(mixed.level[mixed.signal["page"]]) == {1, 2}
    assert set(mixed.level[mixed.point["page"]]) == {2}


def test_accesses_are_the_same_whatever_the_signals_are() -> None:
    one, other = small_world("smart", seed=5), small_world("super", seed=5, precision=0.5, recall=0.5)
    assert np.array_equal(one.access, other.access)
    assert not np.array_equal(one.access, small_world("smart", seed=6, trace=small_trace(seed=5)).access)


def test_accesses_over_pages_follow_zipf() -> None:
    world = small_world(trace=TRACE, accesses=200_000, zipf=0.85)
    counts = np.sort(np.bincount(world.access["page"]))[::-1]
    assert counts[0] / counts[9] == pytest.approx(10**0.85, rel=0.05)
    assert world.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"levels": {"smrt": 1.0}}, "did you mean 'smart'"),
        ({"levels": {"smart": 0.5}}, "add up to 0.5"),
        ({"precision": 0.0}, "must be above 0"),
        ({"schedule_errors": "movd"}, "did you mean 'moved'"),
        ({"schedule_errors": "added", "schedule_precision": 0.0}, "infinitely many points"),
        ({"warm_up": 1.0}, "leaves nothing to measure"),
    ],
)
def test_invalid_conditions_are_refused(given: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ReplayConditions(**given)
