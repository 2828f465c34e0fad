"""A record agrees with the log: counts, shares and times, each by its definition."""

import json
import math
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest

from tests.report.records import GRAPH, RANK, SIZE, crawl_of, log_in_order, made_up_record
from trapline.frontier import Rules
from trapline.graph import depths
from trapline.report import record_of
from trapline.simulator import simulate
from trapline.simulator.breakdown import BATCH_BINS, MOST_DEPTHS
from trapline.simulator.log import fetched, log_of
from trapline.simulator.network import Network
from trapline.strategies import load_strategy


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


def test_groups_of_pages_add_up_to_the_crawl() -> None:
    record = record_of(crawl_of(log_in_order(9, spoiled=0.2)), GRAPH, RANK)
    by_depth, by_period, sizes = record.pagerank_by_depth, record.pagerank_by_period, record.pages_per_site
    assert sum(by_depth.pages) == sum(by_period.pages) == sum(sizes.pages) == record.pages_fetched
    assert sum(by_depth.pagerank) == pytest.approx(sum(by_period.pagerank)) == pytest.approx(record.quality_fetched)
    assert record.server_locality.visit == 1 - record.visits / record.fetches


def test_depth_is_counted_from_the_given_pages() -> None:
    far = depths(GRAPH, np.array([7], np.int32))
    record = record_of(crawl_of(log_in_order(9)), GRAPH, RANK, depth=far)
    assert record.pagerank_by_depth.pages == np.bincount(np.minimum(far[far >= 0], MOST_DEPTHS - 1)).tolist()


def test_batches_that_were_chosen_are_measured_from_their_begin() -> None:
    """One page a second and site by site: batches of 3, 10, 10 and so on, with a minute before each of them."""
    log = log_of(*((page, page, at := page + (page + 7) // 10 * 60.0, at, at + 1.0) for page in range(53)))
    batches = np.array([0, *range(3, 53, 10)])
    record = record_of(crawl_of(log, rules=Rules(delay_s=0.0, batch=10), batch_visits=batches), GRAPH, RANK)
    assert (record.batch_connections.edges_s[0], record.batch_connections.edges_s[-1]) == (203.0, 213.0)
    assert record.batch_connections.active_connections == pytest.approx([1.0] * BATCH_BINS, abs=1e-5)
    assert sum(pages * sites for pages, sites in record.batch_sites) == 10


def test_the_batch_in_the_middle_is_one_that_the_simulated_crawl_chose() -> None:
    """Without delays, pages of a batch are fetched in turn: the batch ends when all of its pages are fetched. The first batches are
    smaller than K, because a batch has at most the pages that are known when it is chosen."""
    size = 30
    crawl = simulate(GRAPH, load_strategy("breadth-first"), Rules(delay_s=0.0, lease_s=math.inf, batch=size))
    order = crawl.log.page.tolist()
    known, first, batches = set(GRAPH.home.tolist()), 0, []
    while first < len(order):
        batches.append(order[first : first + min(size, len(known) - first)])
        known |= {int(target) for page in batches[-1] for target in GRAPH.targets_of(page)}
        first += len(batches[-1])
    assert len(batches[0]) == GRAPH.sites < size and sum(map(len, batches)) == len(order)
    (middle,) = [batch for batch in batches if order[len(order) // 2] in batch]
    record = record_of(crawl, GRAPH, RANK)
    sizes = Counter(GRAPH.site[middle].tolist())
    assert dict(record.batch_sites) == Counter(sizes.values())
    assert record.batch_connections.edges_s[0] == crawl.log.start[order.index(middle[0])]
    assert record.batch_connections.edges_s[-1] == crawl.log.end[order.index(middle[-1])]


def test_a_simulated_crawl_has_the_processor_time_of_its_loop() -> None:
    crawl = simulate(GRAPH, load_strategy("breadth-first"), Rules(delay_s=0.0, lease_s=math.inf))
    record = record_of(crawl, GRAPH, RANK)
    assert record.processor is not None and record.processor.store is None
    loop = record.processor.loop
    assert loop.user_s + loop.system_s + loop.idle_s >= crawl.wall_seconds
    assert made_up_record(1).processor is None


def test_a_crawl_without_pages_has_a_record() -> None:
    record = record_of(crawl_of(log_of(), drained=False, network=Network(bandwidth=1.0)), GRAPH, RANK)
    assert record.pages_fetched == record.bytes == 0
    assert record.simulated_seconds == record.rate == record.active_connections == 0
    assert record.closeness is None


def test_a_record_is_json() -> None:
    found = json.loads(json.dumps(asdict(made_up_record(8)), allow_nan=False))
    assert found["strategy"] == "made-up" and len(found["load"]["edges_s"]) == len(found["load"]["bytes"]) + 1
