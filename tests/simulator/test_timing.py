"""The use of time by a crawl: bins lose nothing, and every curve goes through true points."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulator.logs import plausible_log
from trapline.frontier import FAILED, FETCHED
from trapline.simulator import timing
from trapline.simulator.log import FetchLog, bytes_of, log_of
from trapline.simulator.network import Network

NOTHING = log_of()
moments = st.floats(0, 1e7, allow_nan=False)
spans = st.tuples(moments, moments, st.integers(0, 10**9)).map(lambda t: (min(t[:2]), max(t[:2]), t[2]))
edge_lists = st.lists(moments, min_size=2, max_size=12, unique=True).map(sorted)
logs = st.builds(
    lambda pages, connections, k, seed, spoiled: plausible_log(
        np.arange(pages, dtype=np.int32), connections, k, seed, spoiled
    ),
    st.integers(1, 60),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 99),
    st.sampled_from([0.0, 0.3]),
)


def slow_share(span: tuple[float, float, int], left: float, right: float) -> Fraction:
    """The exact share of an amount, spread evenly from begin to end, that lies between two edges."""
    begin, end, amount = Fraction(span[0]), Fraction(span[1]), span[2]
    overlap = min(end, Fraction(right)) - max(begin, Fraction(left))
    return amount * max(overlap, Fraction(0)) / (end - begin)


@given(st.lists(spans, max_size=12), edge_lists)
def test_the_bins_add_up_exactly_to_the_total(found: list[tuple[float, float, int]], edges: list[float]) -> None:
    begin, end, amount = (np.array(column) for column in zip(*found, strict=True)) if found else [np.zeros(0)] * 3
    parts = timing.in_bins(begin, end, amount.astype(np.int64), np.array(edges))
    assert len(parts) == len(edges) - 1 and (parts >= 0).all()
    assert int(parts.sum()) == sum(span[2] for span in found)


def test_an_interval_of_no_length_leaves_other_bins_alone() -> None:
    begin, end, edges = np.array([0.0, 2.0]), np.array([1e-310, 3.0]), np.array([0.0, 5e-311, 2.5, 3.0])
    assert timing.in_bins(begin, end, np.array([7, 10]), edges).tolist() == [7, 5, 5]


@given(st.lists(spans.filter(lambda span: span[1] - span[0] > 1e-3), min_size=1, max_size=8), edge_lists)
def test_a_bin_has_the_amount_between_its_edges(found: list[tuple[float, float, int]], edges: list[float]) -> None:
    within = [-1.0, *edges, 2e7]  # everything lies inside
    begin, end, amount = (np.array(column) for column in zip(*found, strict=True))
    parts = timing.in_bins(begin, end, amount, np.array(within))
    for part, left, right in zip(parts.tolist(), within[:-1], within[1:], strict=True):
        expected = float(sum(slow_share(span, left, right) for span in found))
        assert part == pytest.approx(expected, rel=1e-6, abs=1.0 + 1e-6 * float(amount.sum()))


@given(logs)
def test_bytes_and_connections_are_conserved_over_the_bins(log: FetchLog) -> None:
    size = 1000.0 + np.arange(60)
    edges = timing.bin_edges(log)
    assert int(timing.bytes_received(log, bytes_of(log, size), edges).sum()) == int(bytes_of(log, size).sum())
    begun, ended = timing.visits(log)
    worked = np.rint((ended - begun) * timing.MICROSECONDS).astype(np.int64)
    assert int(timing.connection_time((begun, ended), edges).sum()) == int(worked.sum())
    mean = timing.active_connections((begun, ended), edges)
    assert math.fsum(mean * np.diff(edges)) == pytest.approx(float((ended - begun).sum()), abs=1e-5)


@given(logs)
def test_a_visit_lasts_from_its_first_row_to_its_last(log: FetchLog) -> None:
    begun, ended = timing.visits(log)
    numbers = sorted(set(log.visit.tolist()))
    assert begun.tolist() == [log.start[log.visit == number].min() for number in numbers]
    assert ended.tolist() == [log.end[log.visit == number].max() for number in numbers]


def test_a_visit_number_without_rows_is_not_a_visit() -> None:
    begun, ended = timing.visits(log_of((0, 0, 0.0, 1.0, 2.0), (1, 4, 1.0, 2.0, 3.0)))
    assert begun.tolist() == [0.0, 1.0] and ended.tolist() == [2.0, 3.0]


@given(logs, st.integers(2, 30))
def test_progress_goes_from_nothing_to_all_through_true_points(log: FetchLog, points: int) -> None:
    value = 1.0 + np.arange(60) % 7
    found = timing.progress(log, value, 100.0, points)
    rows = log.result == FETCHED
    ends, qualities = log.end[rows], value[log.page[rows]]
    assert found.pages[0] == 0 and found.pages[-1] == len(ends)
    assert len(found.pages) <= points + 1
    assert (np.diff(found.pages) > 0).all() and (np.diff(found.time_s) >= 0).all()
    for time_s, pages, quality in zip(*found, strict=True):
        assert time_s == (ends[pages - 1] if pages else 0.0)
        assert quality == pytest.approx(qualities[:pages].sum() / 100.0)


def test_edges_are_dense_where_much_happens_and_reach_to_the_end() -> None:
    """99 pages in the first of 100 seconds, and one at the end."""
    log = log_of(*((page, page, 0.0, 0.0, (page + 1) / 99) for page in range(99)), (99, 99, 0.0, 0.0, 100.0))
    edges = timing.bin_edges(log, bins=100)
    assert edges[0] == 0 and edges[-1] == 100
    assert np.count_nonzero(edges < 1) in range(45, 56)


def test_the_link_is_wasted_while_nothing_arrives() -> None:
    """One second of transfer at full speed, and one second of silence."""
    log = log_of((0, 0, 0.0, 0.0, 1.0), (1, 1, 1.0, 2.0, 2.0, FAILED))
    edges = np.array([0.0, 1.0, 2.0])
    received = timing.bytes_received(log, np.array([500, 0]), edges)
    assert timing.wasted_bandwidth(received, edges, 500.0).tolist() == [0.0, 1.0]
    assert timing.optimal_seconds(500, 500.0) == 1.0
    assert timing.optimal_seconds(500, math.inf) is None


def test_separate_links_carry_the_bandwidth_times_the_connections() -> None:
    assert timing.capacity(Network(bandwidth=10.0), connections=5) == 10
    assert timing.capacity(Network(bandwidth=10.0, per_connection=True), connections=5) == 50


def test_an_empty_log_takes_no_time_and_has_no_quality() -> None:
    edges = timing.bin_edges(NOTHING)
    assert edges.tolist() == [0.0]
    assert len(timing.active_connections(timing.visits(NOTHING), edges)) == 0
    assert len(timing.bytes_received(NOTHING, bytes_of(NOTHING, np.ones(1)), edges)) == 0
    assert [column.tolist() for column in timing.progress(NOTHING, np.ones(1), 1.0)] == [[0.0], [0], [0.0]]
    assert timing.seconds_until(NOTHING, np.ones(1), (0.5, 1.0)) == [0.0, 0.0]


@given(logs)
def test_all_quality_is_fetched_with_the_last_page(log: FetchLog) -> None:
    rows = log.result == FETCHED
    early, late = timing.seconds_until(log, np.ones(60), (0.5, 1.0))
    assert early <= late == (log.end[rows][-1] if rows.any() else 0.0)
