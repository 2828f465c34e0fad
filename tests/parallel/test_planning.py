"""Plans of parallel crawls: the paper's three examples, and laws of the arithmetic."""

import json
import math
from pathlib import Path

import numba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.errors import ConfigError
from trapline.graph import WebModel, build
from trapline.parallel.simulated.planning import (
    BYTES_PER_URL,
    EXCHANGES,
    FIREWALL_COVERAGE,
    ONE,
    PAGES_PER_SECOND,
    PLANNED_EXCHANGE,
    PLANNED_FIREWALL,
    URLS_PER_PAGE,
    CrawlTask,
    Expected,
    affordable,
    assumed,
    between,
    mode_for,
    plan,
    rehearse,
)

MONTH, WEEK = 30 * 86_400.0, 7 * 86_400.0
MBIT = 1e6 / 8
PAGE = 10_000.0
TASKS = st.builds(
    CrawlTask, st.integers(1, 10**10), st.floats(60.0, 1e8), st.floats(1e3, 1e9), st.floats(100.0, 1e6)
)  # fmt: skip


def planned(task: CrawlTask, most: int | None = None):  # type: ignore[no-untyped-def]
    processes = affordable(task, most)
    return plan(task, processes, assumed(processes))


def test_the_generic_engine_needs_four_processes_and_firewall_suffices() -> None:
    found = planned(CrawlTask(10**9, MONTH, 10 * MBIT, PAGE))
    assert (found.processes, found.mode, found.exchanges) == (4, PLANNED_FIREWALL, 0)
    assert found.coverage == FIREWALL_COVERAGE[4] and found.exchange_share == 0.0


def test_high_freshness_needs_more_processes_than_firewall_allows() -> None:
    found = planned(CrawlTask(10**9, WEEK, 10 * MBIT, PAGE))
    assert (found.processes, found.mode) == (14, PLANNED_EXCHANGE)
    assert found.coverage == FIREWALL_COVERAGE[1] and 0.0 < found.exchange_share < 0.01


def test_the_medium_scale_engine_needs_four_slow_links() -> None:
    """The crawl covers a tenth of the web, so the choice of pages matters: exchange."""
    found = planned(CrawlTask(10**8, MONTH, MBIT, PAGE, web_pages=10**9))
    assert (found.processes, found.mode, found.exchanges) == (4, PLANNED_EXCHANGE, EXCHANGES)
    assert found.exchange_every_s == pytest.approx(MONTH / EXCHANGES) and found.exchange_share < 0.01
    assert planned(CrawlTask(10**8, MONTH, MBIT, PAGE)).mode == PLANNED_FIREWALL


@given(TASKS)
def test_the_planned_processes_are_enough_and_one_less_is_not(task: CrawlTask) -> None:
    n = task.processes
    assert n * task.link_bytes_per_s >= task.bytes_per_s * (1 - 1e-12)
    by_processor = math.ceil(task.pages / task.every_s / PAGES_PER_SECOND)
    assert n <= max(1, by_processor) or (n - 1) * task.link_bytes_per_s < task.bytes_per_s


@given(TASKS, st.integers(1, 64))
def test_too_few_processes_take_longer_and_enough_do_not(task: CrawlTask, most: int) -> None:
    found = planned(task, most)
    assert found.processes == min(most, task.processes)
    if found.processes == found.needed:
        assert found.round_s == pytest.approx(task.every_s, rel=1e-9)
    else:
        assert found.round_s > task.every_s


@given(st.integers(1, 200))
def test_assumed_costs_lie_between_measured_ones(processes: int) -> None:
    for table in (FIREWALL_COVERAGE, URLS_PER_PAGE):
        assert min(table.values()) <= between(table, processes) <= max(table.values())
    assert all(between(FIREWALL_COVERAGE, n) == value for n, value in FIREWALL_COVERAGE.items())


ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "docs" / "results" / "cho.json").read_text(encoding="utf-8"))


def means(name: str) -> dict[str, list[float]]:
    """Return a table of the generated web on docs/reproduce-cho.md: the label of each row, and its means from left to right."""
    tables = [one for item in RESULTS["items"] for one in item["tables"]]
    (rows,) = (one["rows"] for one in tables if one["title"].startswith(f"{name}. "))
    return {label: [float(cell.split()[0]) for cell in cells] for label, *cells in rows}


def test_every_cost_is_the_measured_one_that_it_cites() -> None:
    assert {int(n): row[0] for n, row in means("1a").items()} == FIREWALL_COVERAGE
    assert dict(zip((2, 8, 64), means("4d")[str(EXCHANGES)], strict=True)) | {1: 0.0} == URLS_PER_PAGE
    for name in ("4a", "4b", "4c"):
        enough, more = means(name)[str(EXCHANGES)], means(name)[str(4 * EXCHANGES)]
        assert all(parts >= 0.9 * one for parts, one in zip(enough[::2], enough[1::2], strict=True))
        assert all(b - a < 0.02 for a, b in zip(enough, more, strict=True))
    assert f"sent every 100 pages: {BYTES_PER_URL:.0f} bytes a URL" in (ROOT / "docs" / "parallel.md").read_text()
    assert f"| `make bench-live` | {PAGES_PER_SECOND:,.0f} pages/s" in (ROOT / "README.md").read_text()


def test_firewall_is_chosen_for_few_processes_that_reach_enough_pages() -> None:
    assert mode_for(1, Expected(1.0, 1.0, 0.0)) == ONE
    assert mode_for(4, Expected(0.95, 1.0, 0.5)) == PLANNED_FIREWALL
    assert mode_for(4, Expected(0.5, 1.0, 0.5)) == PLANNED_EXCHANGE
    assert mode_for(5, Expected(1.0, 1.0, 0.5)) == PLANNED_EXCHANGE


def test_too_many_processes_are_refused() -> None:
    with pytest.raises(ConfigError, match="faster --link or a longer --every"):
        affordable(CrawlTask(10**10, 60.0, 1e3, 1e6), None)


def test_no_more_pages_are_fetched_than_exist() -> None:
    assert CrawlTask(100, MONTH, MBIT, PAGE, web_pages=100).share == 1.0
    with pytest.raises(ConfigError, match="is more than --web-pages"):
        CrawlTask(101, MONTH, MBIT, PAGE, web_pages=100)


@settings(max_examples=3 if numba.config.DISABLE_JIT else examples(10), deadline=None)
@given(st.integers(2, 8), st.integers(0, 100))
def test_a_rehearsal_covers_more_with_exchange(processes: int, seed: int) -> None:
    found = rehearse(build(WebModel(600, 40)), processes, 5, lambda done, total: None, seed)
    assert found.simulated and found.firewall_coverage <= found.exchange_coverage <= 1.0
    assert found.urls_per_page > 0.0 and EXCHANGES > 0
