"""`TraceStudy` replays many stretches of one trace. Every policy gets the same world, and a capacity can be searched for."""

import numpy as np
import pytest

from trapline.lab.trace_study import TraceStudy, capacity_for
from trapline.refresh import ReplayConditions, drawn_trace, policy_named, stretches, trace_of_pages

TRACE = drawn_trace("poisson", 20, 600, 6.0, seed=1)
ASKED = ReplayConditions(accesses=400)


def test_stretches_have_every_update_once() -> None:
    pieces = stretches(TRACE, 86_400.0)
    assert len(pieces) == 6 and sum(piece.updates for piece in pieces) == TRACE.updates
    for piece in pieces:
        assert piece.pages == TRACE.pages and piece.horizon_s == 86_400.0
        assert piece.at_s.min() >= 0.0 and piece.at_s.max() < 86_400.0
    again = np.concatenate([piece.at_s + piece.origin["begin_s"] for piece in pieces])
    assert np.sort(again) == pytest.approx(np.sort(TRACE.at_s))


def test_a_stretch_by_hand() -> None:
    trace = trace_of_pages("t", [np.array([0.0, 15.0, 24.0]), np.array([12.0])], ["a", "b"])
    assert [piece.at_s.tolist() for piece in stretches(trace, 10.0)] == [[0.0], [5.0, 2.0]]


def test_the_found_capacity_gives_the_requested_freshness() -> None:
    study, policy = TraceStudy(TRACE, seeds=4), policy_named("xu")
    capacity = capacity_for(0.86, study, ASKED, policy)
    assert np.mean(study.samples(ASKED, policy, capacity)["eq3"]) == pytest.approx(0.86, abs=0.005)
    assert capacity_for(0.95, study, ASKED, policy) > capacity


def test_each_seed_has_its_own_stretch_and_a_setting_is_replayed_once() -> None:
    cut, whole = TraceStudy(TRACE, 3, stretch_s=86_400.0), TraceStudy(TRACE, 3)
    policy = policy_named("uniform")
    assert cut.samples(ASKED, policy, 0.5) is cut.samples(ASKED, policy, 0.5)
    assert cut.samples(ASKED, policy, 0.5) != whole.samples(ASKED, policy, 0.5)
    assert set(map(len, cut.samples(ASKED, policy, 0.5).values())) == {3}
