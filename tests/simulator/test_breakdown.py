"""A crawl broken down: every group is counted as a plain loop over the log counts it, and the groups add up to the crawl."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulator.logs import plausible_log
from trapline.simulator.breakdown import (
    MOST_DEPTHS,
    MOST_PERIODS,
    batch_connections,
    batch_edges,
    batch_of_row,
    middle_rows,
    pagerank_by_depth,
    pagerank_by_period,
    pages_per_site,
    period_of,
    server_locality,
)
from trapline.simulator.log import FetchLog, fetched, log_of
from trapline.simulator.timing import visits

PAGES = 120
seeds = st.integers(0, 1_000)


def made_up(seed: int, **given: float) -> tuple[FetchLog, np.random.Generator]:
    chance = np.random.default_rng(seed)
    order = chance.permutation(PAGES).astype(np.int32)
    return plausible_log(order, seed=seed, **given), chance  # type: ignore[arg-type]


@given(seeds)
def test_pages_by_depth_are_those_of_a_plain_count(seed: int) -> None:
    log, chance = made_up(seed, spoiled=0.2)
    rank, depth = chance.random(PAGES), chance.integers(-1, 60, PAGES)
    pages = fetched(log).page
    found = pagerank_by_depth(pages, rank, depth)
    counts = Counter(min(int(depth[page]), MOST_DEPTHS - 1) for page in pages if depth[page] >= 0)
    assert dict(zip(found.depth, found.pages, strict=True)) == {at: counts[at] for at in range(max(counts) + 1)}
    for at, share, average in zip(found.depth, found.pagerank, found.average_pagerank, strict=True):
        own = [rank[page] for page in pages if depth[page] >= 0 and min(depth[page], MOST_DEPTHS - 1) == at]
        assert share == pytest.approx(sum(own) / rank.sum())
        assert average == (pytest.approx(np.mean(own) / rank.mean()) if own else None)


@given(seeds, st.sampled_from([0.01, 1.0, 3_000.0, 1e6]))
def test_pages_by_period_are_those_of_a_plain_count(seed: int, scale: float) -> None:
    log, chance = made_up(seed)
    log = log._replace(start=log.start * scale, first_byte=log.first_byte * scale, end=log.end * scale)
    rank = chance.random(PAGES)
    found = pagerank_by_period(log, rank)
    assert len(found.pages) == len(found.begin_s) <= MOST_PERIODS and sum(found.pages) == PAGES
    for begin_s, pages, share in zip(found.begin_s, found.pages, found.pagerank, strict=True):
        own = log.page[(log.end >= begin_s) & (log.end < begin_s + found.period_s)]
        assert pages == len(own) and share == pytest.approx(rank[own].sum() / rank.sum())


@given(st.floats(0.0, 1e12))
def test_a_period_is_the_shortest_with_few_of_them(seconds: float) -> None:
    period_s = period_of(seconds)
    assert seconds < MOST_PERIODS * period_s
    shorter = [one for one in (1.0, 60.0, 3_600.0, 86_400.0, 604_800.0) if one < period_s]
    assert all(seconds >= MOST_PERIODS * one for one in shorter)


@given(seeds)
def test_sites_are_counted_in_classes_of_powers_of_two(seed: int) -> None:
    log, chance = made_up(seed)
    site = chance.integers(0, 12, PAGES) ** 2 // 12
    sizes = Counter(site[log.page].tolist()).values()
    found = pages_per_site(log.page, site)
    for size, sites, pages in zip(found.at_least, found.sites, found.pages, strict=True):
        own = [one for one in sizes if size <= one < 2 * size]
        assert (sites, pages) == (len(own), sum(own))
    assert sum(found.sites) == len(sizes) and sum(found.pages) == PAGES
    assert (found.average, found.median, found.largest) == (PAGES / len(sizes), np.median(list(sizes)), max(sizes))


@given(seeds)
def test_locality_counts_each_fetch_after_another_of_the_same_server(seed: int) -> None:
    log, chance = made_up(seed, spoiled=0.3)
    site = chance.integers(0, 4, PAGES)
    address = site // 2
    visited: set[int] = set()
    again = same_site = same_address = 0
    for row in range(PAGES):
        again += int(log.visit[row]) in visited
        visited.add(int(log.visit[row]))
        same_site += row > 0 and site[row] == site[row - 1]
        same_address += row > 0 and address[row] == address[row - 1]
    found = server_locality(log, site, address)
    assert found.visit == pytest.approx(again / PAGES)
    assert (found.site, found.address) == (same_site / PAGES, same_address / PAGES)


@given(seeds, st.integers(0, PAGES - 1))
def test_a_batch_has_the_pages_of_all_its_visits_and_no_others(seed: int, row: int) -> None:
    log, chance = made_up(seed)
    begins = np.unique([0, *chance.integers(0, int(log.visit.max()) + 3, 6)]).astype(np.int32)

    def number(visit: int) -> int:
        return sum(begin <= visit for begin in begins.tolist())

    pages = [
        int(page) for page, visit in zip(log.page, log.visit, strict=True) if number(visit) == number(log.visit[row])
    ]
    assert batch_of_row(log, begins, row).page.tolist() == pages


@given(seeds, st.integers(1, 2 * PAGES))
def test_rows_in_the_middle_have_as_many_before_as_after(seed: int, pages: int) -> None:
    log, _ = made_up(seed)
    found = middle_rows(log, pages)
    first = int(np.flatnonzero(log.page == found.page[0])[0])
    assert len(found.page) == min(pages, PAGES)
    assert 0 <= PAGES - first - len(found.page) - first <= 1


@given(seeds)
def test_the_connections_of_a_batch_are_those_that_a_plain_count_of_visits_finds(seed: int) -> None:
    log, _ = made_up(seed)
    spans = visits(log)
    edges = batch_edges(middle_rows(log, 30))
    found = batch_connections(spans, edges)
    assert found.edges_s == edges.tolist()
    for begin, end, active in zip(edges, edges[1:], found.active_connections, strict=False):
        inside = sum(max(0.0, min(b, end) - max(a, begin)) for a, b in zip(*spans, strict=True))
        # Connection time is counted in whole microseconds.
        assert active == pytest.approx(inside / (end - begin), abs=len(spans[0]) * 1e-6 / (end - begin))


def test_an_empty_crawl_has_no_groups() -> None:
    log, none = log_of(), np.zeros(0, np.int32)
    assert pagerank_by_depth(none, np.ones(3), np.zeros(3, np.int32)).depth == []
    assert pagerank_by_period(log, np.ones(3)).pages == []
    assert pages_per_site(none, np.zeros(3, np.int32)).largest == 0
    assert server_locality(log, none, none).site is None
    assert batch_connections(visits(log), batch_edges(middle_rows(log, 50))).active_connections == []
