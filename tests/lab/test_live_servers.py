"""The same crawl simulated and live: results are compared as documented, and a live crawl fetches what the simulator predicts."""

from dataclasses import replace

import numpy as np
import pytest

from tests.effort import slow
from trapline.graph import generate
from trapline.lab.live_servers import (
    CrawlTimes,
    LiveSetting,
    agreement,
    compared,
    live,
    own_seconds,
    protocol_batches,
    protocol_ratios,
    simulated,
)
from trapline.servers.model import MODELS, sped_up
from trapline.simulator import PROTOCOLS

SETTING = LiveSetting(
    generate(60, 6, seed=1), replace(sped_up(MODELS["measured-tcp"], 50.0), stall_share=0.0), delay_s=0.5
)


def times(*ends: float) -> CrawlTimes:
    return CrawlTimes(np.arange(len(ends), dtype=np.int32), np.array(ends), np.ones(len(ends)))


def test_the_throughput_is_that_of_the_first_pages() -> None:
    crawl = times(1.0, 2.0, 3.0, 4.0, 100.0)
    assert crawl.pages_per_second(share=0.8) == 1.0
    assert crawl.pages_per_second(share=1.0) == 0.05


def test_quality_counts_the_pages_that_are_complete() -> None:
    crawl = CrawlTimes(np.array([1, 0], np.int32), np.array([1.0, 3.0]), np.ones(2))
    assert crawl.quality(np.array([2.0, 5.0]), np.array([0.5, 1.0, 2.9, 3.0])).tolist() == [0.0, 5.0, 5.0, 7.0]


def test_a_crawl_agrees_with_itself_and_not_with_a_slower_one() -> None:
    ends, value = np.arange(1.0, 101.0), np.ones(100)
    actual = times(*ends)
    same = agreement(actual, actual, value)
    assert (same.largest_error, same.mean_error, same.same_pages) == (0.0, 0.0, 1.0)
    assert same.live[-1] == pytest.approx(0.99)
    later = agreement(times(*(ends * 1.25)), actual, value)
    assert -0.35 < later.largest_error < -0.15 and later.same_pages == 1.0


def test_the_simulated_batches_of_all_protocols_have_ratios() -> None:
    batches = protocol_batches(SETTING, [1, 4])
    assert [(one.connections, one.protocol) for one in batches] == [(r, name) for r in (1, 4) for name in PROTOCOLS]
    ratios = protocol_ratios(batches, of_live=False)
    assert all(one.persistent > 1.0 and one.pipelining > 1.0 for one in ratios)
    assert protocol_ratios(batches, of_live=True) == []


def test_a_live_crawl_fetches_the_pages_of_the_simulated_one() -> None:
    given = replace(SETTING, delay_s=0.0)
    found = live(given)
    assert sorted(found.page.tolist()) == sorted(simulated(given).page.tolist())
    assert (np.diff(found.end_s) >= 0).all() and found.end_s[0] > 0


def test_both_crawls_end_when_the_last_page_is_complete_and_wait_for_no_other() -> None:
    """A tenth of the pages takes 20 s. Both crawls begin some of them, and fetch 40 others in the meantime."""
    model = replace(MODELS["constant"], think_median_s=0.02, stall_share=0.1, stall_median_s=20.0, stall_spread=0.0)
    given = LiveSetting(generate(60, 20, seed=1), model, delay_s=0.0, all_known=True, max_pages=40)
    assert len(simulated(given).page) == 40 and simulated(given).end_s[-1] < 1.0
    found = live(given)
    assert len(found.page) == 40 and found.end_s[-1] < 10.0
    assert found.taken_s.max() < 10.0


@slow
def test_both_crawls_fetch_the_pages_that_were_made_smaller() -> None:
    """The servers send 10,000 bytes a second; the pages of the graph are larger than what half a second allows."""
    model = replace(MODELS["constant"], think_median_s=0.01, speed_median=10_000.0)
    given = LiveSetting(generate(30, 6, seed=1), model, delay_s=0.0, max_transfer_s=0.5)
    assert given.graph.sizes is not None and given.graph.sizes.max() > 100_000
    assert simulated(given).taken_s.max() < 0.6
    assert live(given).taken_s.max() < 5.0


def test_the_time_of_the_crawler_itself_makes_pages_slower() -> None:
    plain, slower = simulated(SETTING), simulated(replace(SETTING, own_s=0.25))
    assert own_seconds(plain, slower) == pytest.approx(0.25)
    assert own_seconds(plain, plain) == 0.0


@slow
@pytest.mark.parametrize("protocol", ["keep-alive", "http/1.0"])
def test_a_live_crawl_takes_at_least_the_time_of_its_servers(protocol: str) -> None:
    found = compared(replace(SETTING, protocol=protocol))
    assert found.own_s > 0.0 and found.plain.same_pages > 0.5
