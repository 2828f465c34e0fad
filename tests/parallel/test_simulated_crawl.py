"""Laws of simulated parallel crawls: which partition fetches which page, which links are sent, and that one partition is an ordinary
crawl."""

from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.naive.partitions import Partitions
from tests.parallel.webs import links_of, web_of, webs
from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.graph import Graph, depths
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.crawl import (
    DYNAMIC,
    EXCHANGE,
    INDEPENDENT,
    MODES,
    ExchangeRules,
    ParallelCrawl,
    ParallelPlan,
    simulate_parallel,
)
from trapline.parallel.simulated.measures import judge, random_seeds
from trapline.parallel.simulated.url_exchange import NOBODY
from trapline.simulator import Network, constant_servers, simulate
from trapline.strategies import pair, strategies

EXAMPLES = settings(max_examples=8 if numba.config.DISABLE_JIT else examples(60), deadline=None)
SERVERS = constant_servers(1.0)
RULES = Rules(delay_s=2.0, per_connection=2)
NAMES = st.sampled_from(["backlink-count", "opic", "larger-sites-first", "breadth-first", "crawl-ability"])
PARTITIONS = st.integers(1, 6)


def crawl(
    web: Graph, mode: str, partitions: int, strategy: str = "backlink-count", **settings: object
) -> ParallelCrawl:
    kind = str(settings.pop("kind", "site-hash"))
    connections = int(str(settings.pop("connections", 2)))
    grain = str(settings.pop("grain", "site"))
    most = settings.pop("most", None)
    progress = settings.pop("progress", None)
    plan = ParallelPlan(mode, Partitioning(kind, partitions), ExchangeRules(**settings), grain)  # type: ignore[arg-type]
    chosen = strategies()[strategy] if strategy != "crawl-ability" else pair("opic", "crawl-ability")
    return simulate_parallel(
        web, chosen, RULES, plan, seeds=web.home, servers=SERVERS, connections=connections, most=most,  # type: ignore[arg-type]
        progress=progress,  # type: ignore[arg-type]
    )  # fmt: skip


@EXAMPLES
@given(
    webs(),
    st.sampled_from(MODES),
    PARTITIONS,
    NAMES,
    st.sampled_from(["site-hash", "url-hash"]),
    st.builds(
        ExchangeRules,
        every_pages=st.sampled_from([1, 3, 1000]),
        filter_size=st.sampled_from([0, 8, 16]),
        filter_policy=st.sampled_from(["lru", "popular"]),
        replicated=st.none() | st.lists(st.integers(0, 3), max_size=2).map(lambda pages: np.array(pages, np.int32)),
    ),
    st.sampled_from(["site", "page"]),
    st.sampled_from([0.0, 0.3]),
    st.none() | st.integers(1, 40),
)
def test_the_compiled_loop_is_the_loop_in_plain_python(
    web: Graph,
    mode: str,
    partitions: int,
    strategy: str,
    kind: str,
    exchange: ExchangeRules,
    grain: str,
    failed: float,
    most: int | None,
) -> None:
    if exchange.replicated is not None:
        exchange = replace(exchange, replicated=exchange.replicated[exchange.replicated < web.pages])
    plan = ParallelPlan(mode, Partitioning(kind, partitions), exchange, grain)
    chosen = strategies()[strategy] if strategy != "crawl-ability" else pair("opic", "crawl-ability")
    network = Network(failed=failed, timeout_s=3.0)
    ours = simulate_parallel(
        web, chosen, RULES, plan, seeds=web.home, servers=SERVERS, connections=2, network=network, most=most
    )
    twin = Partitions(web, chosen, RULES, plan, web.home.tolist(), SERVERS, 2, network)
    assert twin.run(most) == ours.drained
    for our_log, their_log in zip(ours.logs, twin.logs, strict=True):
        for our_column, their_column in zip(our_log, their_log, strict=True):
            np.testing.assert_array_equal(our_column, their_column)
    assert ours.traffic == twin.counted()


def fetched(crawl: ParallelCrawl) -> list[int]:
    return sorted(int(page) for log in crawl.logs for page in log.page)


def reachable(web: Graph) -> list[int]:
    return np.flatnonzero(depths(web) >= 0).tolist()


@EXAMPLES
@given(
    webs(),
    PARTITIONS,
    NAMES,
    st.sampled_from(["site-hash", "url-hash"]),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([0, 8]),
)
def test_with_exchange_every_page_is_fetched_once(
    web: Graph, partitions: int, strategy: str, kind: str, every_pages: int, filter_size: int
) -> None:
    done = crawl(web, EXCHANGE, partitions, strategy, kind=kind, every_pages=every_pages, filter_size=filter_size)
    assert fetched(done) == reachable(web)
    assert done.drained


@EXAMPLES
@given(webs(), PARTITIONS, st.sampled_from(["site", "page"]))
def test_a_coordinator_loses_no_page_either(web: Graph, partitions: int, grain: str) -> None:
    done = crawl(web, DYNAMIC, partitions, grain=grain)
    assert fetched(done) == reachable(web)
    for number, log in enumerate(done.logs):
        assert set(done.owner[log.page].tolist()) <= {number}


@EXAMPLES
@given(webs(), PARTITIONS)
def test_with_firewalls_no_page_is_fetched_twice_and_foreign_links_are_dropped(web: Graph, partitions: int) -> None:
    done = crawl(web, "firewall", partitions)
    assert len(fetched(done)) == len(set(fetched(done)))
    for number, log in enumerate(done.logs):
        inside = done.owner == number
        own = [[t for t in web.targets_of(p).tolist() if inside[p] and inside[t]] for p in range(web.pages)]
        kept = web_of(web.sites, web.site.tolist(), own)
        expected = np.flatnonzero(depths(kept, web.home[inside[web.home]]) >= 0) if inside[web.home].any() else []
        assert sorted(log.page.tolist()) == list(expected)


@EXAMPLES
@given(webs(), PARTITIONS)
def test_crossover_covers_what_one_process_covers(web: Graph, partitions: int) -> None:
    done = crawl(web, "cross-over", partitions)
    assert sorted(set(fetched(done))) == reachable(web)
    for log in done.logs:
        assert len(set(log.page.tolist())) == len(log.page)


@EXAMPLES
@given(webs(), st.sampled_from(MODES), NAMES)
def test_one_partition_is_an_ordinary_crawl(web: Graph, mode: str, strategy: str) -> None:
    if mode == DYNAMIC:
        return  # the links of a page arrive at the end of its step there
    chosen = strategies()[strategy] if strategy != "crawl-ability" else pair("opic", "crawl-ability")
    alone = simulate(web, chosen, RULES, connections=2, servers=SERVERS, seeds=web.home)
    (log,) = crawl(web, mode, 1, strategy).logs
    for ours, theirs in zip(log, alone.log, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@EXAMPLES
@given(webs(), PARTITIONS)
def test_with_a_large_filter_each_partition_sends_a_url_once(web: Graph, partitions: int) -> None:
    done = crawl(web, EXCHANGE, partitions, filter_size=1 << 12)
    expected = sum(
        len({t for page in log.page.tolist() for t in web.targets_of(page).tolist() if done.owner[t] != number})
        for number, log in enumerate(done.logs)
    )
    assert done.traffic.urls == expected


@EXAMPLES
@given(webs(), PARTITIONS, st.sampled_from(MODES), st.integers(1, 12))
def test_the_links_between_partitions_are_those_on_the_counted_pages(
    web: Graph, partitions: int, mode: str, most: int
) -> None:
    done = crawl(web, mode, partitions, most=most)
    rows = sorted(
        (end, number, page) for number, log in enumerate(done.logs) for end, page in zip(log.end, log.page, strict=True)
    )
    traffic = sum(
        int(((done.owner[web.targets_of(page)] != number) & (done.owner[web.targets_of(page)] != NOBODY)).sum())
        for _, number, page in rows[:most]
    )
    assert judge(done, web, RULES, SERVERS, np.ones(web.pages), most).links_between_partitions == traffic
    assert mode != INDEPENDENT or traffic == 0


@EXAMPLES
@given(webs(), PARTITIONS, st.sampled_from(["site-hash", "rendezvous", "address"]))
def test_whole_sites_are_crawled_politely(web: Graph, partitions: int, kind: str) -> None:
    if kind != "address":  # here sites on one address may have two owners
        web = web_of(web.sites, web.site.tolist(), links_of(web))
    done = crawl(web, EXCHANGE, partitions, kind=kind)
    assert judge(done, web, RULES, SERVERS, np.ones(web.pages)).politeness_violations == 0


def test_pages_known_everywhere_are_fetched_and_never_sent() -> None:
    web = web_of(2, [0, 1, 1], [[1, 2], [0], [0, 1]])
    assert crawl(web, EXCHANGE, 2, kind="url-hash").traffic.urls > 0
    done = crawl(web, EXCHANGE, 2, kind="url-hash", replicated=np.array([0, 1, 2], np.int32))
    assert done.traffic.urls == 0
    record = judge(done, web, RULES, SERVERS, np.ones(web.pages))
    assert record.links_replicated == record.links_between_partitions > 0
    assert fetched(done) == [0, 1, 2]


def test_links_from_other_partitions_count() -> None:
    """Three sites. The owner of page 3 discovers it first. Both other sites link to page 4, so page 4 comes before page 3."""
    web = web_of(3, [0, 1, 2, 0, 0], [[3], [4], [4], [], []])
    partitioning = Partitioning("suffix", 3, {"0": 0, "1": 1, "2": 2})  # a web without names uses numbers
    plan = ParallelPlan(EXCHANGE, partitioning)
    rules = Rules(delay_s=9.0, per_connection=1)
    done = simulate_parallel(
        web, strategies()["backlink-count"], rules, plan, seeds=web.home, servers=SERVERS, connections=1
    )
    assert done.logs[0].page.tolist() == [0, 4, 3]
    alone = simulate_parallel(
        web,
        strategies()["backlink-count"],
        rules,
        ParallelPlan("firewall", partitioning),
        seeds=web.home,
        servers=SERVERS,
    )
    assert alone.logs[0].page.tolist() == [0, 3]


def test_a_goal_of_pages_ends_the_crawl() -> None:
    web = web_of(3, [0, 1, 2, 0, 1, 2], [[3], [4], [5], [], [], []])
    done = crawl(web, EXCHANGE, 3, most=4)
    record = judge(done, web, RULES, SERVERS, np.ones(web.pages), most=4)
    assert record.pages_downloaded == 4
    assert not record.drained


def test_the_batches_that_were_sent_can_be_kept() -> None:
    """Three sites, one partition each; the first two send links to the others, the third has none."""
    web = web_of(3, [0, 1, 2], [[1, 2], [2], []])
    partitioning = Partitioning("suffix", 3, {"0": 0, "1": 1, "2": 2})
    plan = ParallelPlan(EXCHANGE, partitioning, keep_batches=True)
    done = simulate_parallel(
        web, strategies()["breadth-first"], RULES, plan, seeds=web.home, servers=SERVERS, connections=1
    )
    sent = sorted((sender, receiver, entries["key"].tolist()) for sender, receiver, entries in done.batches)
    assert sent == [(0, 1, [1]), (0, 2, [2]), (1, 2, [2])]
    assert done.traffic.messages == done.traffic.urls == 3


def test_a_strategy_with_scores_is_refused() -> None:
    web = web_of(1, [0], [[]])
    with pytest.raises(ConfigError, match="at one place"):
        crawl(web, EXCHANGE, 2, "partial-pagerank")


def test_each_partition_gets_random_seeds() -> None:
    owner = np.repeat(np.arange(4, dtype=np.int32), [100, 3, 0, 50])
    seeds = random_seeds(owner, 4, 5, seed=1)
    assert np.bincount(owner[seeds], minlength=4).tolist() == [5, 3, 0, 5]
    assert len(set(seeds.tolist())) == 13
    assert seeds.tolist() == random_seeds(owner, 4, 5, seed=1).tolist() != random_seeds(owner, 4, 5, seed=2).tolist()


@EXAMPLES
@given(webs(), st.sampled_from(MODES), PARTITIONS, st.none() | st.integers(1, 40))
def test_progress_never_passes_its_total(web: Graph, mode: str, partitions: int, most: int | None) -> None:
    reported: list[tuple[int, int]] = []
    found = crawl(web, mode, partitions, most=most, progress=lambda *both: reported.append(both))
    done = [one for one, _ in reported]
    assert done == sorted(done) and len({total for _, total in reported}) <= 1
    assert all(one <= total for one, total in reported)
    if reported and not found.drained:
        assert reported[-1] == (most, most)
