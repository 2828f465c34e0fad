"""The crawls that the experiments of `cho` share: what a setting and a seed give, and the measures that the simulator
does not have."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.parallel.webs import links_of, webs
from trapline.graph import Graph, WebModel, build
from trapline.lab.cho.crawled_web import CrawledWeb, Setting, step_pages, with_sites

PAGES = 1500


@cache
def web() -> CrawledWeb:
    return CrawledWeb("small", build(WebModel(PAGES, 60)))


@settings(max_examples=examples(40), deadline=None)
@given(webs(), st.data())
def test_a_subset_of_sites_has_exactly_the_links_between_them(graph: Graph, data: st.DataObject) -> None:
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=graph.sites, max_size=graph.sites)))
    kept[0] = True
    part = with_sites(graph, kept)
    pages = np.flatnonzero(kept[graph.site])
    between = [[target for target in links_of(graph)[page] if kept[graph.site[target]]] for page in pages.tolist()]
    assert [[int(pages[target]) for target in targets] for targets in links_of(part)] == between
    assert part.sites == kept.sum() and (part.site[part.home] == np.arange(part.sites)).all()


def test_another_draw_has_other_seeds() -> None:
    setting = Setting("firewall", 4)
    assert web().crawl(setting, 0).record.coverage != web().crawl(setting, 1).record.coverage


@pytest.mark.parametrize("partitions", [2, 8])
def test_exchange_reaches_the_pages_of_one_process_and_firewall_fewer(partitions: int) -> None:
    exchange, firewall = (web().crawl(Setting(mode, partitions), 0).record for mode in ("exchange", "firewall"))
    alone = web().crawl(Setting("exchange", partitions).alone, 0).record
    assert exchange.pages_distinct == alone.pages_distinct > firewall.pages_distinct
    assert exchange.overlap == firewall.overlap == 0.0 and firewall.urls_exchanged == 0


def test_cross_over_ends_with_the_pages_of_one_process_and_records_when() -> None:
    found = web().crawl(Setting("cross-over", 3), 0)
    alone = web().crawl(Setting("cross-over", 3).alone, 0)
    coverage, overlap = found.course
    assert found.record.pages_distinct == alone.record.pages_distinct and found.record.drained
    assert (coverage[-1], overlap[-1]) == (found.record.coverage_of_graph, pytest.approx(found.record.overlap))
    assert (np.diff(coverage) >= 0).all() and found.record.overlap > 0.5
    firewall = web().crawl(Setting("firewall", 3), 0).record.coverage_of_graph
    assert overlap[np.searchsorted(coverage, 0.5 * firewall)] == 0.0


def test_quality_equals_the_simulators_if_all_requested_pages_were_fetched() -> None:
    found = web().crawl(Setting("exchange", 2, strategy="backlink-count", most=300), 0)
    assert found.record.pages_distinct == 300 and found.quality == pytest.approx(found.record.quality)


def test_quality_counts_pages_that_an_exhausted_crawl_did_not_fetch() -> None:
    found = web().crawl(Setting("firewall", 8, strategy="backlink-count"), 0)
    assert found.record.pages_distinct < PAGES
    assert found.quality <= found.record.pages_distinct / PAGES


def test_replicated_urls_are_not_sent_and_url_hash_sends_its_share_of_all_links() -> None:
    none, some = (web().crawl(Setting("exchange", 4, replicated=m), 0) for m in (0, 100))
    assert some.links_sent_at_once < none.links_sent_at_once
    by_url = web().crawl(Setting("exchange", 4, kind="url-hash"), 0)
    assert by_url.links_sent_at_once == pytest.approx(0.75 * by_url.links_per_page, rel=0.1)


def test_a_step_divides_the_interval_between_two_exchanges() -> None:
    assert step_pages(Setting("exchange", 2, most=800, every_pages=100), PAGES) == 25
    assert step_pages(Setting("exchange", 64, most=64), PAGES) == 1
