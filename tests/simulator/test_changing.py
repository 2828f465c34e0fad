"""A simulated web that changes. Without refetches the crawl equals that of the compiled driver to the bit. With
refetches it is polite and finds exactly the true changes."""

import math
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.effort import PROOF, examples
from tests.simulator.test_driver import (
    NUMBERS,
    RULES,
    SEED,
    STRATEGIES,
    World,
    crawl_of,
    exact_world,
    inputs_of,
    violations,
)
from trapline.errors import ConfigError
from trapline.frontier import FETCHED, Rules
from trapline.graph import generate
from trapline.refresh import ReplayConditions, all_policies, drawn_trace, policy_named
from trapline.simulator import Network
from trapline.simulator.changing import ChangingCrawl, Refresh, simulate_changing
from trapline.simulator.changing_measures import measured
from trapline.simulator.changing_web import ChangingWeb, changing_web, still_web
from trapline.strategies import Strategy

WEBS = (10 if PROOF else 5) if numba.config.DISABLE_JIT else examples(60)
each_web = settings(max_examples=WEBS, phases=[Phase.generate], deadline=None)
any_strategy = st.sampled_from(STRATEGIES)
any_refresh = st.builds(
    Refresh,
    st.sampled_from(sorted(all_policies())).map(policy_named),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    price=st.sampled_from([None, None, 0.01]),
    rate=st.sampled_from([math.inf, math.inf, 0.2]),
)


def unshared(number: int) -> World:
    """A web whose connections share no link, and whose sites have no robots.txt."""
    world = exact_world(number)
    own_links = world.network.bandwidth < math.inf or world.network.per_connection
    return world._replace(network=replace(world.network, per_connection=own_links, robots=False))


WORLDS = NUMBERS.map(unshared)


def crawl(world: World, web: ChangingWeb, strategy: Strategy, rules: Rules, refresh: Refresh | None) -> ChangingCrawl:
    web = replace(web, servers=world.servers, network=world.network)
    how: dict[str, Any] = {"connections": world.connections, "inputs": inputs_of(strategy, world.graph.pages)}
    return simulate_changing(web, strategy, rules, refresh, seeds=world.seeds, seed=SEED, **how)


def changing(world: World, until_s: float, level: str = "super", precision: float = 0.5) -> ChangingWeb:
    trace = drawn_trace("poisson", world.graph.pages, 5 * world.graph.pages, 100.0 / 86_400.0, SEED)
    conditions = ReplayConditions(levels={level: 1.0}, precision=precision, recall=0.7, schedule_precision=0.8)
    return changing_web(world.graph, trace, until_s, conditions, seed=SEED)


@each_web
@given(world=WORLDS, rules=RULES, strategy=any_strategy)
def test_without_refresh_the_crawl_equals_that_of_the_compiled_driver_to_the_bit(
    world: World, rules: Rules, strategy: Strategy
) -> None:
    expected = crawl_of(world, strategy, rules).log
    until_s = float(expected.end.max(initial=0.0)) + 1.0
    for web in (still_web(world.graph, until_s), changing(world, until_s)):
        done = crawl(world, web, strategy, rules, None)
        for ours, theirs in zip(done.log, expected, strict=True):
            assert ours.tolist() == theirs.tolist()
        assert not done.is_refetch.any()


@each_web
@given(world=WORLDS, rules=RULES, strategy=any_strategy, refresh=any_refresh)
def test_refetches_are_polite_and_find_exactly_the_true_changes(
    world: World, rules: Rules, strategy: Strategy, refresh: Refresh
) -> None:
    web = changing(world, until_s=60.0)
    done = crawl(world, web, strategy, rules, refresh)
    assert violations(world.graph, done.log, rules) == 0
    assert done.log.end.max(initial=0.0) <= web.until_s
    copy: dict[int, float] = {}
    columns = (done.log.page, done.log.first_byte, done.log.result, done.is_refetch, done.changed)
    for page, answered, result, is_refetch, changed in zip(*(column.tolist() for column in columns), strict=True):
        own = web.changes.at_s[web.changes.offsets[page] : web.changes.offsets[page + 1]]
        assert is_refetch == (page in copy)
        assert changed == (is_refetch and result == FETCHED and any(copy[page] < at <= answered for at in own))
        if result == FETCHED:
            copy[page] = answered


def some_web(level: str = "normal", **conditions: Any) -> ChangingWeb:
    graph = generate(300, 12, seed=3)
    trace = drawn_trace("poisson", 100, 1_000, 2_000.0 / 86_400.0, 1)
    return changing_web(graph, trace, 5_000.0, ReplayConditions(levels={level: 1.0}, **conditions), speed=2.0, seed=4)


def test_the_changes_equal_those_that_testweb_serves() -> None:
    from trapline.testweb import changes_of

    web = some_web()
    trace = drawn_trace("poisson", 100, 1_000, 2_000.0 / 86_400.0, 1)
    offsets, at_s = changes_of(web.graph, trace, speed=2.0, seed=4).until(5_000.0)
    assert web.changes.offsets.tolist() == offsets.tolist()
    np.testing.assert_allclose(web.changes.at_s, at_s, rtol=1e-12)


def test_sites_send_signals_and_points_by_their_level() -> None:
    assert some_web("normal").signals == ([], []) and not some_web("normal").points
    smart = some_web("smart")
    assert len(smart.signals[0]) == smart.changes.updates and not smart.points
    published = some_web("super").points
    page = next(page for page, points in published.items() if points)
    own = smart.changes.at_s[smart.changes.offsets[page] : smart.changes.offsets[page + 1]]
    assert [at for at, _ in published[page]] == own.tolist()
    assert some_web("super").points_after(page, float(own[0])) == published[page][1:]


def test_all_pages_of_a_site_have_its_level() -> None:
    graph = generate(300, 12, seed=3)
    trace = drawn_trace("poisson", 300, 3_000, 0.1, 1)
    web = changing_web(graph, trace, 5_000.0, ReplayConditions(levels={"normal": 0.5, "smart": 0.5}), seed=4)
    assert np.bincount(web.level).tolist() == [6, 6]
    assert {int(web.level[graph.site[page]]) for page in web.signals[1]} == {1}


def test_a_shared_link_is_refused() -> None:
    web = replace(some_web(), network=Network(bandwidth=1_000.0))
    with pytest.raises(ConfigError, match="that connections share"):
        simulate_changing(web, STRATEGIES[0], Rules(), None)


def test_robots_txt_is_refused() -> None:
    web = replace(some_web(), network=Network(robots=True))
    with pytest.raises(ConfigError, match="robots"):
        simulate_changing(web, STRATEGIES[0], Rules(), None)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT=1: no law, and it takes long")
def test_signals_improve_freshness() -> None:
    """Not a law, but a failure would mean that signals are ignored."""
    graph, trace = generate(30, 6, seed=3), drawn_trace("poisson", 30, 150, 500.0 / 86_400.0, 1)
    strategy = next(one for one in STRATEGIES if not one.page.inputs)

    def fresh(level: str) -> float:
        web = changing_web(graph, trace, 500.0, ReplayConditions(levels={level: 1.0}), seed=4)
        refresh = Refresh(policy_named("residual-life"), 0.5)
        done = simulate_changing(web, strategy, Rules(delay_s=15.0, lease_s=math.inf), refresh, connections=4)
        return measured(done.log, web.changes, np.ones(30), web.until_s).fresh.average

    assert fresh("normal") < fresh("smart")


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT=1: it takes long")
@pytest.mark.parametrize("name", ["azar", "lambda-crawl"])
def test_a_policy_that_solves_for_the_capacity_uses_all_of_it(name: str) -> None:
    """Such a policy learns the capacity from its own refetches. If it used less, it would learn less, and so on."""
    graph, trace = generate(60, 6, seed=3), drawn_trace("poisson", 60, 600, 3_000.0 / 86_400.0, 1)
    strategy = next(one for one in STRATEGIES if not one.page.inputs)

    def refetches(policy: str) -> int:
        web = changing_web(graph, trace, 3_000.0, ReplayConditions(levels={"normal": 1.0}), seed=4)
        done = simulate_changing(
            web, strategy, Rules(delay_s=5.0, lease_s=math.inf), Refresh(policy_named(policy), 0.5), connections=4
        )
        return int(done.is_refetch.sum())

    assert refetches(name) > 0.9 * refetches("cgm")
