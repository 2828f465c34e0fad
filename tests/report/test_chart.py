"""Charts: no crawl crosses the reference lines, the axes contain all lines, and lines look different."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.records import GRAPH, RANK, crawl_of, log_in_order, made_up_record
from tests.simulator.logs import plausible_log
from trapline.graph import generate
from trapline.report import record_of
from trapline.report.chart import (
    MOST_STEPS,
    OPTIMUM,
    RANDOM,
    averages,
    axis,
    charts,
    quality_by_pages,
    quality_by_time,
    waste_by_time,
    whole_of,
)
from trapline.report.svg import _SHAPES, COLOURS, COLOURS_ON_DARK, MARKERS, STROKES, look
from trapline.simulator.network import Network
from trapline.units import time_unit

LINK = Network(bandwidth=50_000.0)
SEVERAL = [made_up_record(seed, f"number {seed}", network=LINK) for seed in range(4)]
STOPPED = [made_up_record(seed, f"number {seed}", pages=30 * (seed + 1), network=LINK) for seed in range(4)]


@pytest.mark.parametrize("records", [SEVERAL, STOPPED, SEVERAL[:1], [*STOPPED, SEVERAL[0]]])
def test_every_line_lies_within_its_axes(records: list) -> None:  # type: ignore[type-arg]
    found = charts(records)
    assert [chart.name for chart in found] == [
        "quality-pages",
        "quality-time",
        "pages-time",
        "connections-time",
        "waste-time",
    ]
    for chart in found:
        for line in chart.lines:
            assert line.x.min() >= 0 and line.x.max() <= chart.x.top * (1 + 1e-9)
            assert line.y.min() >= 0 and line.y.max() <= chart.y.top * (1 + 1e-9)
            assert (np.diff(line.x) >= 0).all()


@pytest.mark.parametrize("chart_of", [quality_by_pages, quality_by_time])
@pytest.mark.parametrize("records", [SEVERAL, STOPPED, [*STOPPED, SEVERAL[0]]])
def test_no_crawl_is_above_the_optimum_and_random_lies_below_it(chart_of, records) -> None:  # type: ignore[no-untyped-def]
    chart = chart_of(records)
    best = next(line for line in chart.lines if line.index == OPTIMUM)
    chance = next(line for line in chart.lines if line.index == RANDOM)
    assert (chance.y <= best.y + 1e-9).all()
    for line in chart.lines:
        assert (line.y <= np.interp(line.x, best.x, best.y) + 1e-9).all()


@pytest.mark.parametrize("chart_of", [quality_by_pages, quality_by_time])
@pytest.mark.parametrize("pages", [40, 2_000, 20_000])
def test_not_even_the_best_order_is_drawn_above_the_optimum(chart_of, pages) -> None:  # type: ignore[no-untyped-def]
    """With many more pages than points, and a few pages that hold nearly all quality."""
    graph = generate(20_000, 8, seed=2)
    rank = 1.0 / np.arange(1, graph.pages + 1) ** 1.5
    orders = [np.arange(graph.pages), np.roll(np.arange(graph.pages), 1)]
    servers, records = SimpleNamespace(size=np.ones(graph.pages)), []
    for seed, order in enumerate(orders):
        log = plausible_log(order[:pages].astype(np.int32), seed=seed)
        records.append(record_of(crawl_of(log, servers=servers, drained=pages == graph.pages), graph, rank))
    chart = chart_of(records)
    best = next(line for line in chart.lines if line.index == OPTIMUM)
    for line in chart.lines:
        assert (line.y <= np.interp(line.x, best.x, best.y) + 1e-9).all()


def test_the_total_is_the_reachable_part_if_a_crawl_fetched_it_and_otherwise_the_web() -> None:
    assert whole_of([*STOPPED, SEVERAL[0]]).name == "the 200 pages that can be reached"
    assert whole_of(STOPPED).name == "all 200 pages"
    limited = [record_of(crawl_of(log_in_order(seed, 100), drained=True), GRAPH, RANK) for seed in (1, 2)]
    assert whole_of(limited).name == "all 200 pages"
    assert whole_of(limited[:1]).pages == 100


def test_lines_that_cannot_be_distinguished_are_grouped() -> None:
    records = [made_up_record(seed, name) for seed, name in ((1, "a"), (2, "b"), (1, "c"), (3, "d"), (2, "e"))]
    for chart in charts(records):
        assert {"a", "c"} in [{line.name for line in group} for group in chart.together]
    pages = [[line.name for line in group] for group in quality_by_pages(records).together]
    assert pages == [["a", "c"], ["b", "e"]]
    chart = quality_by_pages(records)
    moved = [replace(line, y=line.y + 0.02 * chart.y.top) if line.name == "c" else line for line in chart.lines]
    assert [line.name for line in replace(chart, lines=moved).together[0]] == ["b", "e"]


@given(st.lists(st.floats(0, 64), min_size=1, max_size=300), st.integers(0, 2**32 - 1))
def test_wide_bins_keep_the_average(values: list[float], seed: int) -> None:
    width = np.random.default_rng(seed).random(len(values)) + 0.01
    edges = np.concatenate(([0.0], np.cumsum(width)))
    x, y = averages(edges.tolist(), values)
    assert len(x) <= 42 and x[0] == 0 and x[-1] == edges[-1] and (np.diff(x) > 0).all()
    kept = [0.0]  # the edges, computed from the middles
    for middle in x[1:-1]:
        kept.append(2 * middle - kept[-1])
    assert min(values) - 1e-9 <= y.min() and y.max() <= max(values) + 1e-9
    assert np.sum(y[1:-1] * np.diff(kept)) == pytest.approx(np.sum(values * width), abs=1e-6)


def test_the_final_waste_is_one_minus_closeness() -> None:
    for line, record in zip(waste_by_time(SEVERAL).lines, SEVERAL, strict=True):
        assert line.y[-1] == pytest.approx(100 * (1 - (record.closeness or 0.0)))


def test_an_unlimited_link_has_no_chart_of_waste() -> None:
    assert len(charts([made_up_record(1)])) == 4


@given(st.floats(1e-6, 1e12))
def test_ticks_are_few_and_round_and_reach_the_top(largest: float) -> None:
    found = axis("", largest)
    assert 2 <= len(found.ticks) <= MOST_STEPS + 1
    assert found.ticks[0] == 0 and found.ticks[-1] == pytest.approx(found.top)
    assert largest <= found.top * (1 + 1e-9)
    assert f"{found.step:.1e}"[:3] in {"1.0", "2.0", "2.5", "5.0"}
    assert axis("", largest, tight=True).top == largest


@given(st.floats(0, 1e9))
def test_a_time_is_at_least_two_units_or_in_seconds(seconds: float) -> None:
    size, name, _ = time_unit(seconds)
    assert seconds >= 2 * size or name == "seconds"


def test_lines_differ_in_colour_or_stroke_and_have_markers() -> None:
    assert len({look(index)[:2] for index in range(28)}) == 28
    assert len({look(index) for index in range(56)}) == 56
    assert len(COLOURS) == len(COLOURS_ON_DARK) == len(set(COLOURS)) and len(_SHAPES) == len(MARKERS)
    assert {look(index).stroke for index in range(28)} == set(range(len(STROKES)))
