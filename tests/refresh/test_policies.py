"""Laws that hold for every policy. Policies are found by folder, so a new file is checked without being named here."""

from dataclasses import replace

import numpy as np
import pytest

from tests.refresh.worlds import small_trace, small_world
from trapline.errors import ConfigError
from trapline.refresh import Policy, ReplayConditions, ReplayWorld, all_policies, draw_world, policy_named, replay_world
from trapline.refresh.policy import Way
from trapline.refresh.replay.replayer import make_state

POLICIES = sorted(all_policies().values(), key=lambda policy: policy.name)
EVERY = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
LEVELS = pytest.mark.parametrize("level", ["normal", "smart", "super"])


def test_all_documented_policies_exist() -> None:
    promised = "uniform proportional nutch cgm azar lambda-crawl ncis xu residual-life"
    assert set(promised.split()) <= set(all_policies())


@EVERY
@LEVELS
def test_the_same_world_gives_the_same_crawls(policy: Policy, level: str) -> None:
    one, other = (replay_world(small_world(level), policy, 0.5, keep_chosen=True) for _ in range(2))
    assert one.chosen.tolist() == other.chosen.tolist()
    assert 0.0 <= one.binary <= one.eq3 <= 1.0
    assert 0.0 <= one.binary_time <= one.eq3_time <= 1.0


def without_the_end(world: ReplayWorld, end_s: float) -> ReplayWorld:
    """The same world without any change after `end_s`. Published points stay published."""
    cut = {name: getattr(world, name)[getattr(world, name)["at_s"] <= end_s] for name in ("update", "signal")}
    return replace(world, **cut)


@EVERY
@LEVELS
def test_no_policy_sees_the_future(policy: Policy, level: str) -> None:
    """Crawls up to a moment are the same whatever happens afterwards."""
    for seed in range(3):
        world = small_world(level, seed, small_trace(pages=30, updates=300, seed=seed))
        end_s = 0.6 * world.trace.horizon_s
        whole, cut = (
            replay_world(w, policy, 0.4, keep_chosen=True).chosen for w in (world, without_the_end(world, end_s))
        )
        before = int(0.6 * len(whole))
        assert whole[:before].tolist() == cut[:before].tolist()


@EVERY
def test_without_signals_it_does_not_matter_when_pages_changed(policy: Policy) -> None:
    """At level normal two worlds look the same if every crawl has the same outcome: updates may move within a gap
    between crawls."""
    world = small_world("normal")
    found = replay_world(world, policy, 0.5, keep_chosen=True)
    slot_s = world.trace.horizon_s / found.crawls
    moved = world.update.copy()
    # Slots are at (k + 1/2) steps: up to the end of the half step before the next slot, or of the one behind the last slot.
    moved["at_s"] = np.floor(moved["at_s"] / slot_s + 0.5) * slot_s + 0.49 * slot_s
    moved["at_s"] = np.minimum(moved["at_s"], world.trace.horizon_s)
    again = replay_world(replace(world, update=moved), policy, 0.5, keep_chosen=True)
    assert found.chosen.tolist() == again.chosen.tolist()


@EVERY
@LEVELS
def test_enough_crawls_keep_everything_fresh(policy: Policy, level: str) -> None:
    little, much = (replay_world(small_world(level), policy, capacity).binary_time for capacity in (0.3, 30.0))
    assert much > little
    assert much > 0.85


def test_signals_that_are_always_right_are_followed() -> None:
    trace = small_trace(pages=200, updates=3_000)
    fresh = {
        level: replay_world(
            small_world(level, trace=trace, accesses=4_000), policy_named("residual-life"), 0.2
        ).binary_time
        for level in ("normal", "smart", "super")
    }
    assert fresh["normal"] < fresh["smart"] < fresh["super"]


def test_a_provider_that_lies_loses_influence() -> None:
    """False signals cost less than believing them would. With one true signal in ten the result is no worse than
    without signals."""
    trace = small_trace("poisson", pages=100, updates=2_000)
    conditions = {"accesses": 2_000, "trace": trace}
    lied_to = replay_world(
        small_world("smart", precision=0.1, **conditions), policy_named("residual-life"), 0.3
    ).binary_time
    alone = replay_world(small_world("normal", **conditions), policy_named("residual-life"), 0.3).binary_time
    assert lied_to > alone - 0.02


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_levels_can_be_mixed(share: float) -> None:
    world = draw_world(small_trace(), ReplayConditions(levels={"normal": 1 - share, "super": share}, accesses=50), 0)
    for policy in POLICIES:
        assert replay_world(world, policy, 0.5).crawls == 40


def test_a_wrong_name_or_option_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'residual-life'"):
        policy_named("residual-live")
    with pytest.raises(ConfigError, match="did you mean 'kappa'"):
        policy_named("residual-life").with_options(kapa=1.0)


WITHOUT_SIGNALS = [policy for policy in POLICIES if not policy.uses_signals]


@pytest.mark.parametrize("policy", WITHOUT_SIGNALS, ids=lambda policy: policy.name)
def test_a_policy_that_ignores_signals_crawls_the_same_at_all_levels(policy: Policy) -> None:
    """Equal to the bit, with more pages than can be hot. No evaluation of a page may depend on signals."""
    trace = small_trace(pages=400, updates=4_000)
    normal, smart, super_ = (
        replay_world(small_world(level, trace=trace, accesses=1_000, precision=0.7), policy, 0.3, keep_chosen=True)
        for level in ("normal", "smart", "super")
    )
    assert normal.chosen.tolist() == smart.chosen.tolist() == super_.chosen.tolist()
    assert normal.binary_time == smart.binary_time == super_.binary_time


def test_the_policies_that_ignore_signals() -> None:
    assert {policy.name for policy in WITHOUT_SIGNALS} == {"uniform", "proportional", "nutch", "cgm", "azar"}


@EVERY
def test_a_page_takes_200_bytes_or_less(policy: Policy) -> None:
    """Evidence, columns and queue, with every estimator."""
    pages = 1_000
    world = small_world(trace=small_trace(pages=pages, updates=2 * pages))
    for way in policy.ways.get("estimator", (Way("none"),)):
        chosen = policy.with_options(estimator=way.name) if policy.ways else policy
        s = make_state(world, chosen, 1.0)
        arrays = [array for array in (s.page, s.columns, s.waiting, s.hot, s.value) if len(array) >= pages]
        assert sum(array.nbytes for array in arrays) / pages <= 200.0
