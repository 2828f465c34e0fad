"""`xu` compares lengths of a cycle with capacity and T0 held fixed, and shows what updates on the boundary of a cycle cost."""

import numpy as np
import pytest

from trapline.lab.paper import PaperItem
from trapline.lab.study import Result, Study
from trapline.lab.xu.plan import FROZEN, READINGS, Xu, XuTrace, policies
from trapline.refresh import ReplayConditions, draw_world, drawn_trace, in_steps, replay_world

POLL_S, CYCLES, SEEDS = 1800.0, (1, 24), 2
TRACE = in_steps(drawn_trace("bursty", 20, 600, 6.0, seed=1), POLL_S)


@pytest.fixture(scope="module")
def trace() -> XuTrace:
    return XuTrace(TRACE, POLL_S, 0.0, SEEDS, ReplayConditions(accesses=400))


@pytest.fixture(scope="module")
def results(trace: XuTrace) -> dict[str, Result]:
    return Study(None, "").results(Xu([trace], CYCLES, ["2", "5"]).runs(), lambda *_: None)


@pytest.fixture(scope="module")
def items(trace: XuTrace, results: dict[str, Result]) -> list[PaperItem]:
    return Xu([trace], CYCLES, ["2", "5"]).judged(results)


def test_only_the_length_of_a_cycle_differs_between_lengths(trace: XuTrace) -> None:
    short, long = (trace.conditions(polls) for polls in CYCLES)
    assert (short.cycle_s, long.cycle_s) == (POLL_S, 24 * POLL_S)
    assert short.measure == long.measure and short.measure.t0_s == POLL_S


def test_the_calibrated_capacity_gives_the_published_freshness(trace: XuTrace, results: dict[str, Result]) -> None:
    found = results[f"{trace.name}; capacity, 400 accesses"]
    assert found["capacity"] == trace.capacity and found["smart"] == pytest.approx(0.86, abs=0.02)


def test_a_number_is_that_of_the_replay_that_it_names(trace: XuTrace, results: dict[str, Result]) -> None:
    [key] = [
        key
        for key in results
        if f"; {FROZEN}; cycle 24; 1 super; 50000 accesses" in key and key.endswith("updates at polls")
    ]
    given = ReplayConditions(
        levels={"super": 1.0}, accesses=50_000, cycle_s=24 * POLL_S, measure=trace.conditions(1).measure
    )
    worlds = [draw_world(TRACE, given, seed) for seed in range(SEEDS)]
    found = [replay_world(world, policies()[FROZEN], trace.capacity) for world in worlds]
    assert results[key] == {"eq3": [one.eq3 for one in found], "binary": [one.binary for one in found]}


def test_every_claim_counts_the_settings_of_each_reading(items: list[PaperItem]) -> None:
    settings = 2 * len(CYCLES)  # measures and lengths
    for claim in items[0].claims:
        assert all(f"{reading}: holds in " in claim.ours for reading in READINGS)
        assert claim.ours.count(f" of {settings} settings") == len(READINGS)
    assert [item.name for item in items] == ["fig. 2", "fig. 5", "boundary"]


def test_tables_and_charts_have_all_lengths(items: list[PaperItem]) -> None:
    leads, *_ = items[0].tables
    assert list(leads.head) == ["claim", "1", "24"] and len(leads.rows) == 3 * 2
    [by_cycle] = items[0].charts
    assert list(by_cycle.curves) == ["normal", "smart", "super"]
    assert all(x == [1.0, 24.0] for x, _ in by_cycle.curves.values())


def test_a_second_earlier_no_update_lies_on_the_boundary_of_a_cycle(trace: XuTrace, items: list[PaperItem]) -> None:
    """The updates are the same otherwise, and the table shows both."""
    early = trace._early.trace
    assert np.all(np.where(TRACE.at_s > 0, TRACE.at_s - early.at_s == 1.0, early.at_s == 0.0))
    assert np.all(TRACE.at_s % POLL_S == 0) and not np.any(early.at_s[TRACE.at_s > 0] % POLL_S == 0)
    at_polls, before = items[-1].tables[0].rows
    assert at_polls[0].endswith("at polls") and before[0].endswith("a second before polls") and at_polls[1] != before[1]
