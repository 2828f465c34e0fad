"""The picture of crawl orders, and the record that it is drawn from."""

import math
from dataclasses import replace

import pytest

from tests.effort import PROOF, sample
from tests.report.records import made_up_record
from trapline.frontier import Rules
from trapline.graph import Graph, generate, pagerank
from trapline.report import CrawlRecord, orders_png, plots_png, record_of
from trapline.report.chart import charts, quality_by_pages
from trapline.report.plot import chart_figure
from trapline.simulator import simulate
from trapline.simulator.network import Network
from trapline.strategies import load_strategy

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return generate(200, 8, seed=2)


def crawl_record(graph: Graph, strategy: str, most: int | None = None) -> CrawlRecord:
    rank = pagerank(graph)
    rules = Rules(lease_s=math.inf)
    return record_of(simulate(graph, load_strategy(strategy), rules, most=most), graph, rank)


def test_no_order_is_better_than_the_optimum(graph: Graph) -> None:
    record = crawl_record(graph, "breadth-first")
    assert record.average_cumulative_pagerank < record.optimal_average_cumulative_pagerank
    for (x, share), (best_x, best) in zip(record.curve, record.optimal_curve, strict=True):
        assert x == best_x and share <= best + 1e-12


def test_a_crawl_of_all_pages_is_drained_and_one_that_stopped_is_not(graph: Graph) -> None:
    assert crawl_record(graph, "opic").drained
    assert not crawl_record(graph, "opic", most=20).drained


def test_one_picture_shows_many_crawls_of_different_length(graph: Graph) -> None:
    records = [crawl_record(graph, "opic", most) for most in (1, 2, 10, 50, 100, 150, 200)]
    assert orders_png(records, "Seven crawls").startswith(PNG)


def test_equal_records_give_equal_pictures_and_others_do_not(graph: Graph) -> None:
    record = crawl_record(graph, "opic")
    assert orders_png([record], "a", "b") == orders_png([record], "a", "b")
    assert orders_png([record], "a", "b") != orders_png([crawl_record(graph, "breadth-first")], "a", "b")


def test_names_are_not_read_as_formulas(graph: Graph) -> None:
    record = replace(crawl_record(graph, "opic"), strategy="$\\nonsense{$")
    assert orders_png([record], "$\\nonsense{$", "100 $ a page, $ \\nonsense").startswith(PNG)


def test_each_chart_has_a_picture_and_a_name_for_its_file() -> None:
    records = [
        made_up_record(seed, f"$ {seed} $", network=Network(bandwidth=1e5)) for seed in range(16 if PROOF else 3)
    ]
    found = plots_png(records, "more crawls than colours")
    names = ["quality-pages", "quality-time", "pages-time", "connections-time", "waste-time"]
    assert list(found) == [*names, "pagerank-depth", "pagerank-time", "batch-connections"]
    assert all(png.startswith(PNG) for png in found.values())


@pytest.mark.parametrize("crawls", sample([17, 1, 40], 3))
def test_the_picture_contains_the_whole_legend(crawls: int) -> None:
    records = [made_up_record(seed % 3, f"strategy number {seed}") for seed in range(crawls)]
    for chart in charts(records):
        figure = chart_figure(chart, "title", "two\nlines")
        figure.canvas.draw()
        box = figure.legends[0].get_window_extent()
        assert len(figure.legends[0].get_texts()) == len(chart.lines)
        assert box.y0 >= 0 and box.y1 <= figure.bbox.height and box.x1 <= figure.bbox.width
        assert figure.axes[0].get_window_extent().x1 <= box.x0


def test_crawls_on_one_curve_share_a_letter() -> None:
    chart = quality_by_pages([made_up_record(1, "one"), made_up_record(2, "other"), made_up_record(1, "same")])
    texts = [text.get_text() for text in chart_figure(chart, "title").legends[0].get_texts()]
    assert [text.split("  ")[1] for text in texts[:3]] == ["one (A)", "other", "same (A)"]


def test_a_crawl_without_pages_has_pictures() -> None:
    assert all(png.startswith(PNG) for png in plots_png([made_up_record(1, pages=0)]).values())
