"""A record agrees with the log: counts, shares and times, each by its definition."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from tests.report.records import GRAPH, RANK, SIZE, crawl_of, log_in_order, made_up_record
from trapline.report import record_of
from trapline.simulate.log import fetched, log_of
from trapline.simulate.servers import Network


def test_every_fetch_is_counted_once() -> None:
    log = log_in_order(1, spoiled=0.3)
    record = record_of(crawl_of(log), GRAPH, RANK)
    assert record.pages_fetched + record.failed + record.refused == record.fetches == GRAPH.pages
    assert record.failed > 0 and record.refused > 0
    assert record.bytes == int(SIZE[fetched(log).page].sum()) == sum(record.load.bytes)
    assert record.visits == GRAPH.pages // 2


def test_the_last_point_is_the_end() -> None:
    record = made_up_record(2, pages=150)
    assert record.progress.pages[-1] == record.pages_fetched == 150
    assert record.progress.time_s[-1] == record.load.edges_s[-1] == record.simulated_seconds
    assert record.progress.quality[-1] == pytest.approx(record.quality_fetched)
    assert record.rate == pytest.approx(150 / record.simulated_seconds)


def test_bins_of_connections_have_the_overall_mean() -> None:
    record = made_up_record(3)
    worked = math.fsum(np.array(record.load.active_connections) * np.diff(record.load.edges_s))
    assert worked / record.simulated_seconds == pytest.approx(record.active_connections)
    assert 0 < record.active_connections <= 3


def test_closeness_is_one_minus_the_waste() -> None:
    """T*/T and the waste over all bins are two views of the same bytes."""
    record = made_up_record(4, network=Network(bandwidth=50_000.0))
    assert record.optimal_seconds == pytest.approx(record.bytes / 50_000.0)
    assert record.closeness is not None and record.load.wasted_bandwidth is not None
    wasted = math.fsum(np.array(record.load.wasted_bandwidth) * np.diff(record.load.edges_s))
    assert record.closeness == pytest.approx(1 - wasted / record.simulated_seconds)


def test_an_unlimited_link_has_no_optimal_time() -> None:
    record = made_up_record(5)
    assert record.bandwidth is None and record.optimal_seconds is None
    assert record.closeness is None and record.load.wasted_bandwidth is None


def test_pagerank_and_another_quality_are_measured_separately() -> None:
    zipf = 1.0 / (1.0 + np.random.default_rng(1).permutation(GRAPH.pages))
    crawl = crawl_of(log_in_order(6))
    by_rank, by_zipf = record_of(crawl, GRAPH, RANK), record_of(crawl, GRAPH, RANK, zipf, "zipf")
    assert by_zipf.average_cumulative_pagerank == by_rank.average_cumulative_pagerank
    assert by_zipf.average_cumulative_quality != by_rank.average_cumulative_quality
    assert by_rank.average_cumulative_quality == by_rank.average_cumulative_pagerank
    assert (by_rank.quality, by_zipf.quality) == ("PageRank", "zipf")
    assert by_zipf.kendall_tau == by_rank.kendall_tau


def test_the_top_tenth_of_a_stopped_crawl_is_that_of_the_web() -> None:
    """All good pages come first: the crawl has its own top tenth at once, and all of the web's top tenth."""
    best = np.argsort(-RANK)[:50].astype(np.int32)
    log = log_of(*((page, at, at, at, at + 1.0) for at, page in enumerate(best.tolist())))
    drained, stopped = (record_of(crawl_of(log, drained=whole), GRAPH, RANK) for whole in (True, False))
    assert drained.top_tenth == {"90%": 5, "95%": 5, "99%": 5, "100%": 5}
    assert stopped.top_tenth == {"90%": 18, "95%": 19, "99%": 20, "100%": 20}
    worst = log._replace(page=np.argsort(RANK)[:50].astype(np.int32))
    assert set(record_of(crawl_of(worst, drained=False), GRAPH, RANK).top_tenth.values()) == {None}


def test_the_batch_in_the_middle_has_a_thirty_fifth_of_the_pages_or_fifty() -> None:
    record = made_up_record(7)
    assert sum(pages * sites for pages, sites in record.batch_sites) == 50


def test_a_crawl_without_pages_has_a_record() -> None:
    record = record_of(crawl_of(log_of(), drained=False, network=Network(bandwidth=1.0)), GRAPH, RANK)
    assert record.pages_fetched == record.bytes == 0
    assert record.simulated_seconds == record.rate == record.active_connections == 0
    assert record.closeness is None


def test_a_record_is_json() -> None:
    found = json.loads(json.dumps(asdict(made_up_record(8)), allow_nan=False))
    assert found["strategy"] == "made-up" and len(found["load"]["edges_s"]) == len(found["load"]["bytes"]) + 1
