"""The quality of an order, against definitions written out and scipy's tau."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.simulator.metrics import (
    average_cumulative_pagerank,
    best_first,
    cumulative,
    curve,
    kendall_tau,
    middle,
    pages_until,
    site_sizes,
    tau_b,
    tau_spread,
)

values = st.lists(st.integers(1, 9), min_size=1, max_size=40)
orders = values.flatmap(lambda v: st.tuples(st.permutations(range(len(v))), st.just([float(x) for x in v])))
Case = tuple[list[int], list[float]]


def given_as(case: Case) -> tuple[np.ndarray, np.ndarray]:
    return np.array(case[0], dtype=np.int32), np.array(case[1])


def slow_area(order: list[int], rank: list[float]) -> float:
    """Trapezoids between (i/N, share after i pages), one by one."""
    total, area, before = sum(rank[page] for page in order), 0.0, 0.0
    for page in order:
        after = before + rank[page] / total
        area += (before + after) / 2 / len(order)
        before = after
    return area


def slow_tau(x: list[float], y: list[float]) -> float:
    signs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i in range(len(x)) for j in range(i)]
    untied_x, untied_y = sum(a != 0 for a, _ in signs), sum(b != 0 for _, b in signs)
    scale = (untied_x * untied_y) ** 0.5
    return float(sum(a * b for a, b in signs) / scale) if scale else 0.0


@given(orders)
def test_the_average_is_the_area_under_the_curve(case: Case) -> None:
    assert average_cumulative_pagerank(*given_as(case)) == pytest.approx(slow_area(*case))


@given(orders)
def test_falling_rank_is_the_best_order_and_rising_rank_the_worst(case: Case) -> None:
    order, rank = given_as(case)
    best, worst = np.argsort(-rank), np.argsort(rank)
    found = average_cumulative_pagerank(order, rank)
    assert average_cumulative_pagerank(worst, rank) - 1e-12 <= found
    assert found <= average_cumulative_pagerank(best, rank) + 1e-12


def test_equal_pages_give_one_half_in_any_order() -> None:
    assert average_cumulative_pagerank(np.array([2, 0, 1]), np.full(5, 0.2)) == pytest.approx(0.5)


def test_pages_not_fetched_do_not_count() -> None:
    rank = np.array([0.1, 0.3, 0.6])
    assert average_cumulative_pagerank(np.array([1, 0]), rank) == pytest.approx((0.75 / 2 + 1.75 / 2) / 2)
    assert cumulative(np.array([1, 0]), rank).tolist() == pytest.approx([0.75, 1])


def test_an_empty_order_is_not_an_error() -> None:
    nothing, rank = np.array([], dtype=np.int32), np.array([1.0])
    assert average_cumulative_pagerank(nothing, rank) == 0
    assert kendall_tau(nothing, rank) == 0
    assert curve(nothing, rank) == [[0, 0]]


@given(orders, st.integers(2, 50))
def test_the_curve_rises_from_zero_to_one_through_true_points(case: Case, points: int) -> None:
    order, rank = given_as(case)
    found = curve(order, rank, points)
    shares = [0.0, *cumulative(order, rank).tolist()]
    assert len(found) <= points
    assert found[0] == [0, 0] and found[-1] == pytest.approx([1, 1])
    assert found == sorted(found)
    for fraction, share in found:
        assert share == pytest.approx(shares[round(fraction * len(order))])


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=40))
def test_tau_b_equals_its_definition_and_scipys(pairs: list[tuple[int, int]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    x, y = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    assert tau_b(x, y) == pytest.approx(slow_tau(x, y))
    theirs = stats.kendalltau(x, y).statistic
    assert tau_b(x, y) == pytest.approx(0.0 if np.isnan(theirs) else theirs)


@pytest.mark.parametrize("different", [3, 300, 10**6])
def test_tau_b_of_a_full_sample_equals_scipys(different: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    x, y = np.random.default_rng(different).integers(0, different, (2, 5_000))
    assert tau_b(x, y) == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-12)


def test_tau_is_one_for_best_first_and_minus_one_for_worst_first() -> None:
    rank = np.array([0.1, 0.4, 0.2, 0.3])
    assert kendall_tau(np.array([1, 3, 2, 0]), rank) == 1
    assert kendall_tau(np.array([0, 2, 3, 1]), rank) == -1
    assert kendall_tau(np.array([0, 1, 2, 3]), np.full(4, 0.25)) == 0


def test_the_sample_is_fixed_and_near_the_full_value() -> None:
    noise = np.random.default_rng(7)
    rank = noise.random(12_000)
    order = np.argsort(-(rank + noise.random(12_000)))
    sampled = kendall_tau(order, rank)
    assert sampled == kendall_tau(order, rank)
    assert sampled == pytest.approx(kendall_tau(order, rank, sample=12_000), abs=0.02)


def test_samples_spread_around_the_full_tau() -> None:
    noise = np.random.default_rng(8)
    rank = noise.random(12_000)
    order = np.argsort(-(rank + noise.random(12_000)))
    lowest, highest = tau_spread(order, rank)
    assert lowest <= kendall_tau(order, rank) <= highest
    assert lowest < kendall_tau(order, rank, sample=12_000) < highest
    assert 0 < highest - lowest < 0.05


@given(orders)
def test_the_best_order_is_by_falling_rank_then_by_page_number(case: Case) -> None:
    order, rank = given_as(case)
    assert best_first(order, rank).tolist() == sorted(order.tolist(), key=lambda page: (-rank[page], page))
    assert order.tolist() == case[0]  # the input is unchanged


@given(orders, st.data())
def test_pages_until_counts_to_the_page_that_completes_the_share(case: Case, data: st.DataObject) -> None:
    order, _ = given_as(case)
    wanted = data.draw(st.lists(st.sampled_from(range(len(case[0]) + 2)), min_size=1, unique=True))
    share = data.draw(st.sampled_from([0.01, 0.5, 0.9, 1.0]))
    needed = next((n for n in range(1, len(wanted) + 1) if n >= share * len(wanted)), len(wanted))
    counts = (sum(page in wanted for page in case[0][:taken]) for taken in range(1, len(case[0]) + 1))
    expected = next((taken for taken, count in enumerate(counts, 1) if count >= needed), None)
    assert pages_until(order, np.array(wanted), (share,)) == [expected]


def test_one_late_page_affects_the_last_value_only() -> None:
    order = np.array([*range(1, 100), 0])
    assert pages_until(order, np.arange(10)) == [9, 100, 100, 100]
    assert pages_until(order[:50], np.arange(10), (0.9, 1.0)) == [9, None]


@given(st.lists(st.integers(0, 8), min_size=1, max_size=60))
def test_site_sizes_account_for_every_page(site: list[int]) -> None:
    found = site_sizes(np.arange(len(site)), np.array(site))
    assert sum(size * sites for size, sites in found) == len(site)
    assert sum(sites for _, sites in found) == len(set(site))
    assert found == sorted(found)


@given(st.integers(0, 40), st.integers(1, 50))
def test_the_middle_batch_has_as_many_pages_before_as_after(pages: int, wanted: int) -> None:
    found = middle(np.arange(pages), wanted).tolist()
    assert len(found) == min(pages, wanted)
    if found:
        assert abs(found[0] - (pages - 1 - found[-1])) <= 1
