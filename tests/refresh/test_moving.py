"""Pages move from one refresher to another with the same start. The new refresher knows all that the old one knew, and
the log records it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.refresh.live_refresher import STARTED, open_frontier
from tests.refresh.test_snapshot import CALLS, EVERY, SITES, assert_same, new_refresher, random_calls
from trapline.errors import ConfigError, InvariantError
from trapline.refresh import Policy, Refresher, policy_named
from trapline.refresh.core import kernels
from trapline.refresh.core.layout import ACCESS_CLASSES

OFFSET = 100  # pages and sites have other numbers in the new refresher


def with_history(policy: Policy, seed: int, calls: int = CALLS) -> tuple[Refresher, float]:
    refresher, frontier = new_refresher(policy)
    now = random_calls(refresher, frontier, calls, seed)
    refresher.return_all(now)
    return refresher, now


def pages_of(refresher: Refresher, sites: range = range(SITES)) -> list[int]:
    page = refresher.memory.state.page
    return sorted(page["id"][np.isin(page["site"], list(sites))].tolist())


def move(one: Refresher, other: Refresher, now: float, sites: range = range(SITES), offset: int = 0) -> None:
    other.learn(one.learned(), now)
    for site in sites:
        other.trust(new_site(site, offset), one.outcomes(site), now)
    for page in pages_of(one, sites):
        site = new_site(int(one.explain(page, now)["site"]), offset)
        other.adopt(page + offset, site, one.evidence(page), now)
        one.moved(page, now)


def new_site(site: int, offset: int) -> int:
    return site + SITES if offset else site


def settled(refresher: Refresher, now: float) -> list[dict[str, Any]]:
    """What is known of each page after every page is at its place."""
    kernels.settle_all(refresher.memory.handle)
    return [refresher.explain(page, now) for page in pages_of(refresher)]


def is_alike(one: Any, other: Any) -> bool:
    """Equal except for the last bits, because sums of floats depend on their order."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_alike(one[name], other[name]) for name in one)
    return one == other if not isinstance(one, float) else bool(one == pytest.approx(other, rel=1e-9, nan_ok=True))


@EVERY
@pytest.mark.parametrize("seed", [1, 2])
def test_moved_pages_keep_their_values(policy: Policy, seed: int, tmp_path: Path) -> None:
    one, now = with_history(policy, seed)
    one.memory.whole.run[0].signals = one.memory.state.page["all_signals"].sum()  # except for pages that have left
    one.save(tmp_path / "refresh")
    was = Refresher.load(tmp_path / "refresh", policy)  # its queues are rebuilt too
    other, _ = new_refresher(policy)
    move(one, other, now)
    here, there = settled(was, now), settled(other, now)
    assert len(here) > 30 and [both for both in zip(here, there, strict=True) if not is_alike(*both)] == []
    assert other.next_moment() == pytest.approx(was.next_moment(), rel=1e-12)
    assert one.pages == 0 and one.memory.whole.run[0].signals == 0


@EVERY
def test_the_logs_of_both_refreshers_restore_everything(policy: Policy) -> None:
    one, now = with_history(policy, 3)
    (other, _), frontier = new_refresher(policy), open_frontier(2 * SITES, delay_s=100.0, per_connection=2)
    random_calls(other, frontier, 40, 4)
    move(one, other, now, range(3, 6), OFFSET)
    for refresher in (one, other):
        random_calls(refresher, frontier, 40, 5)
        again, _ = new_refresher(policy)
        again.replay(refresher.take())
        assert_same(refresher, again)


@pytest.mark.parametrize("name", ["residual-life", "ncis", "xu"])
def test_knowledge_of_a_moved_page_does_not_depend_on_the_pages_already_there(name: str) -> None:
    one, now = with_history(policy_named(name), 6)
    other, frontier = new_refresher(policy_named(name))
    random_calls(other, frontier, CALLS // 2, 7)  # of earlier moments
    sites = range(2, 5)
    was = {page: one.evidence(page) for page in pages_of(one, sites)}
    outcomes = {site: one.outcomes(site) for site in sites}
    move(one, other, now, sites, OFFSET)
    assert was and {page - OFFSET: other.evidence(page) for page in was_moved(was)} == was
    assert {site: other.outcomes(new_site(site, OFFSET)) for site in sites} == outcomes
    page = other.memory.state.page
    counted = np.bincount(np.minimum(page["accesses"], ACCESS_CLASSES - 1), minlength=ACCESS_CLASSES)
    assert other.memory.whole.popular[0].tolist() == counted.tolist()
    assert other.memory.whole.run[0].quality == pytest.approx(float(page["quality"].sum()), rel=1e-6)


def was_moved(pages: dict[int, Any]) -> list[int]:
    return [page + OFFSET for page in pages]


def test_a_new_refresher_learns_from_the_first_one_that_has_learned_something() -> None:
    elder, now = with_history(policy_named("residual-life"), 8, 400)  # with all channels
    idle, newcomer = (new_refresher(policy_named("residual-life"))[0] for _ in range(2))
    newcomer.learn(idle.learned(), now)
    assert newcomer.by_quality and newcomer.price == 0.0
    newcomer.learn(elder.learned(), now)
    assert (newcomer.by_quality, newcomer.price) == (False, elder.price) and newcomer.learned() == elder.learned()
    second, _ = with_history(policy_named("residual-life"), 9)
    newcomer.learn(second.learned(), now)
    assert newcomer.learned() == elder.learned()


def test_a_page_from_a_refresher_whose_clock_is_ahead_does_not_lie_in_the_future() -> None:
    one, other = (Refresher(policy_named("uniform"), STARTED) for _ in range(2))
    one.join(0, 0, STARTED + 500.0)
    other.adopt(7, 3, one.evidence(0), STARTED + 100.0)
    assert (other.now, other.seen_at(7)) == (STARTED + 100.0, STARTED + 100.0)
    with pytest.raises(InvariantError, match="page 7 has joined already"):
        other.adopt(7, 3, one.evidence(0), STARTED + 100.0)


def test_points_that_pass_during_the_move_count_as_passed() -> None:
    one, other = (Refresher(policy_named("residual-life"), STARTED) for _ in range(2))
    one.join(0, 0, STARTED)
    one.publish(0, 4, [(STARTED + 100.0, 0.9), (STARTED + 900.0, 0.9)], STARTED)
    evidence = one.evidence(0)
    other.trust(0, one.outcomes(0), STARTED + 500.0)
    other.adopt(0, 0, evidence, STARTED + 500.0)
    other.accessed(0, STARTED + 501.0)
    assert other.explain(0, STARTED + 501.0)["next_point"]["at"] == STARTED + 900.0
    assert other.memory.whole.page[0].points == 1


def test_invalid_evidence_is_refused_and_changes_nothing() -> None:
    one, now = with_history(policy_named("cgm"), 10, 60)
    other, _ = new_refresher(policy_named("cgm"))
    good, page = one.evidence(pages_of(one)[0]), 0
    wrong: list[Any] = [[], good[:-1], [*good, 1.0], [math.nan, *good[1:]], [*good[:4], -1.0, *good[5:]], [good]]
    for evidence in wrong:
        with pytest.raises(ConfigError, match="the evidence of moved pages is invalid"):
            other.adopt(page, 0, evidence, now)
    for outcomes in ([], [5.0], [-1.0, 3.0], [-1.0, 300.0, *[0.0] * 11], [-1.0, 3.0, *[-2.0] * 11]):
        with pytest.raises(ConfigError, match="the evidence of moved pages is invalid"):
            other.trust(0, outcomes, now)
    for learned in ([], one.learned()[:-1], [*one.learned(), 1.0]):
        with pytest.raises(ConfigError, match="the evidence of moved pages is invalid"):
            other.learn(learned, now)
    assert (other.pages, other.take()) == (0, b"")
