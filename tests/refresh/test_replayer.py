"""The compiled replay loop, against its slow twin: both measures follow from their definitions, and the best page is crawled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.refresh import Copies, XuScores, slots
from tests.refresh.worlds import small_trace, small_world, traces
from trapline.errors import ConfigError
from trapline.refresh import Measure, ReplayConditions, Trace, all_policies, draw_world, policy_named, replay_world

LEVELS = st.sampled_from([{"normal": 1.0}, {"smart": 1.0}, {"super": 1.0}, {"normal": 0.4, "smart": 0.3, "super": 0.3}])


MEASURES = st.builds(
    Measure,
    st.sampled_from(["repaired", "literal"]),
    st.sampled_from(["index", "count"]),
    st.sampled_from([0.0, 3600.0]),
)


@given(traces(), st.sampled_from(sorted(all_policies())), LEVELS, st.integers(1, 40), st.integers(0, 3), MEASURES)
def test_freshness_follows_from_its_definition(
    trace: Trace, name: str, levels: dict[str, float], crawls: int, seed: int, measure: Measure
) -> None:
    world = draw_world(trace, ReplayConditions(levels=levels, accesses=30, cycle_s=600.0, measure=measure), seed)
    found = replay_world(world, policy_named(name), crawls / trace.updates, keep_chosen=True)
    assert found.crawls == len(found.chosen) == crawls
    copies = Copies(world, found.chosen.tolist())
    assert (found.binary, found.eq3) == pytest.approx(copies.by_access())
    assert (found.binary_time, found.eq3_time) == pytest.approx(copies.by_time())


@given(traces(), LEVELS, st.integers(1, 40), st.integers(0, 3), st.sampled_from([0, 1, 2]))
def test_xu_crawls_the_page_with_the_largest_score(
    trace: Trace, levels: dict[str, float], crawls: int, seed: int, past: int
) -> None:
    """Levels without published points, because those have their own score in their cycle."""
    levels = {"normal": levels.get("normal", 0.0), "smart": 1.0 - levels.get("normal", 0.0)}
    world = draw_world(trace, ReplayConditions(levels=levels, accesses=30), seed)
    found = replay_world(
        world, policy_named("xu").with_options(past=float(past)), crawls / trace.updates, keep_chosen=True
    )
    scores, crawled = XuScores(world), np.zeros(trace.pages)
    for now, page in zip(slots(world, crawls), found.chosen, strict=True):
        every = [scores.score(other, crawled[other], now, past) for other in range(trace.pages)]
        assert every[page] == pytest.approx(max(every), rel=1e-9, abs=1e-9)
        crawled[page] = now


def test_uniform_takes_pages_in_turn() -> None:
    found = replay_world(small_world(), policy_named("uniform"), 0.5, keep_chosen=True)
    assert found.chosen.tolist() == [k % 12 for k in range(40)]


def test_among_many_pages_the_best_are_found_without_looking_at_all() -> None:
    """Three hundred pages are too many to be hot. The crawled page nearly always has nearly the largest score."""
    trace = small_trace(pages=300, updates=1_500)
    world = small_world(trace=trace, accesses=1_500)
    found = replay_world(world, policy_named("xu"), 0.2, keep_chosen=True)
    scores, crawled, shares = XuScores(world), np.zeros(trace.pages), []
    for now, page in zip(slots(world, found.crawls), found.chosen, strict=True):
        most = max(scores.score(other, crawled[other], now, 0) for other in range(trace.pages))
        shares.append(scores.score(page, crawled[page], now, 0) / most if most > 0 else 1.0)
        crawled[page] = now
    assert np.mean(np.array(shares) > 0.95) > 0.95


def test_less_than_one_crawl_is_refused() -> None:
    with pytest.raises(ConfigError, match="less than one fetch"):
        replay_world(small_world(), policy_named("uniform"), 1e-6)
