"""The numbers of `castillo` are those of the crawls that it names."""

from dataclasses import replace

import numpy as np
import pytest

from tests.lab.made_up_crawls import made_up_crawl, no_live_crawls
from trapline.frontier import Rules
from trapline.lab.castillo import real_crawls
from trapline.lab.castillo.orders import THESIS, agreement
from trapline.lab.castillo.plan import CastilloWebs, castillo, thesis
from trapline.lab.castillo.speed import CONNECTIONS, SPEED_UPS
from trapline.lab.live import LiveConditions, LiveLog
from trapline.lab.paper import FAILS, HOLDS, IN_PART, UNDECIDED, Paper, at_least, every, within
from trapline.lab.simulated import (
    BINS,
    TIMES_S,
    OrderCrawl,
    at_percents,
    batch_run,
    crawled,
    history_run,
    order_run,
    page_time_run,
    sites_run,
)
from trapline.lab.study import Result, Study
from trapline.lab.webs import WebCache, WebSource, evolved, generated
from trapline.servers.sampled import modelled_servers, page_seconds
from trapline.simulator import constant_servers, simulate
from trapline.simulator.log import fetched
from trapline.simulator.metrics import average_cumulative_pagerank
from trapline.strategies import load_strategy
from trapline.testweb import ServedWeb

PAGES, SITES = 2_000, 60


@pytest.fixture(scope="module")
def webs() -> CastilloWebs:
    return CastilloWebs(
        [generated(PAGES, SITES, seed) for seed in (1, 2)],
        [evolved(PAGES, SITES, seed, 122.0) for seed in (1, 2)],
        [generated(2 * PAGES, 2 * SITES, seed) for seed in (1, 2)],
        [generated(100, 10, seed) for seed in (1, 2)],
        [generated(80, 20, seed) for seed in (1, 2)],
    )


@pytest.fixture(scope="module")
def papers(webs: CastilloWebs) -> dict[str, Paper]:
    study, plans = Study(None, ""), (castillo(webs), thesis(webs))
    with pytest.MonkeyPatch.context() as changes:
        no_live_crawls(changes)
        results = study.results([run for plan in plans for run in plan.runs()], lambda *_: None)
    return {plan.name: plan.paper(results) for plan in plans}


def result(run_of_web: WebSource, crawl: OrderCrawl) -> Result:
    return order_run(WebCache(), run_of_web, crawl).compute()


def test_an_order_is_that_of_the_simulator(webs: CastilloWebs) -> None:
    web = webs.orders[0].load()
    crawl = simulate(
        web.graph,
        load_strategy("opic"),
        Rules(delay_s=15.0, per_connection=1, lease_s=float("inf")),
        servers=constant_servers(1.0),
    )
    order = fetched(crawl.log).page
    found = result(webs.orders[0], OrderCrawl("opic"))
    assert found["average"] == average_cumulative_pagerank(order, web.pagerank)
    half = web.pagerank[order[: len(order) // 2]].sum() / web.pagerank[order].sum()
    assert found["curve"][50] == pytest.approx(half, abs=1e-6)
    assert found["curve"][0] == 0.0 and found["curve"][100] == 1.0


def test_the_history_of_an_evolved_web_is_the_old_pagerank(webs: CastilloWebs) -> None:
    web = webs.histories[0].load()
    assert web.history is not None
    old = web.history.page >= 0
    assert 0.4 < old.mean() < 0.7  # the thesis: 55 % of the pages were old
    assert set(web.history.page[old].tolist()) <= set(web.history.old.tolist())


def test_every_site_is_counted_once(webs: CastilloWebs) -> None:
    found = sites_run(WebCache(), webs.orders[0]).compute()
    assert sum(found["sites"]) == SITES


def test_the_pages_of_an_evolved_web_are_old_or_new(webs: CastilloWebs) -> None:
    found = history_run(WebCache(), webs.histories[0]).compute()
    web = webs.histories[0].load()
    assert web.history is not None
    new = web.history.page < 0
    assert found["new"] == pytest.approx(new.mean())
    assert found["old_pagerank"] == pytest.approx(1 - web.pagerank[new].sum() / web.pagerank.sum())


def test_the_time_of_a_page_is_that_of_its_server(webs: CastilloWebs) -> None:
    found = page_time_run(WebCache(), webs.speeds[0]).compute()
    graph = webs.speeds[0].load().graph
    seconds = page_seconds(modelled_servers(graph), graph).total
    assert found["shares"][TIMES_S.index(1.5)] == pytest.approx((seconds < 1.5).mean(), abs=1e-6)
    assert found["shares"] == sorted(found["shares"])


def test_the_batch_in_the_middle_has_its_pages_and_its_time(webs: CastilloWebs) -> None:
    """One connection, a page a second and no delay: a batch takes as many seconds as it has pages."""
    found = batch_run(WebCache(), webs.orders[0], OrderCrawl("larger-sites-first", delay_s=0.0, batches=5)).compute()
    assert 0 < found["pages"] <= PAGES / 5
    assert found["hours"] == pytest.approx(found["pages"] / 3600)
    assert found["active"] == pytest.approx([1.0] * BINS)
    assert sum(2**power * sites for power, sites in enumerate(found["sites"])) <= found["pages"]


def test_batches_are_those_of_the_frontier(webs: CastilloWebs) -> None:
    """A batch begins when all visits of the one before are over, so no fetch spans the end of a batch."""
    web = webs.orders[0].load()
    crawl = OrderCrawl("larger-sites-first", SITES, 1.0, batches=20)
    done = crawled(web, crawl)
    log, begins = fetched(done.log), done.batch_visits
    assert begins is not None
    sizes = np.diff([*(int(np.argmax(log.visit >= begin)) for begin in begins), len(log.page)])
    assert sizes[0] == SITES  # the home pages, which are fewer than a batch
    assert sizes.max() == crawl.batch(PAGES) and sizes.sum() == len(log.page)
    for end in np.cumsum(sizes)[:-1]:
        assert log.start[end:].min() >= log.end[:end].max()


def test_pagerank_by_day_and_by_depth_is_relative_to_all_pages_of_the_web(
    webs: CastilloWebs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crawl ends after half of the pages. A page counts as a multiple of the average page of the web, as in every record."""

    def half(served: ServedWeb, crawl: LiveConditions) -> LiveLog:
        return made_up_crawl(served, replace(crawl, max_pages=served.pages // 2))

    monkeypatch.setattr(real_crawls, "crawl_live", half)
    found = real_crawls.live_run(WebCache(), webs.live[0], "breadth-first", 1).compute()
    web = webs.live[0].load()
    pages = np.arange(50)
    first = pages[: 50 // real_crawls.DAYS]  # the crawl fetches pages in the order of their numbers, at equal intervals
    assert found["average"][0] == pytest.approx(web.pagerank[first].mean() / web.pagerank.mean())
    homes = np.intersect1d(web.graph.home, pages)
    assert found["by_depth"][0] == pytest.approx(web.pagerank[homes].mean() / web.pagerank.mean())
    assert found["pagerank"][-1] == pytest.approx(1.0)  # of what was fetched


@pytest.mark.parametrize(("name", "items"), [("castillo", 9), ("thesis", 14)])
def test_every_item_has_verdicts_and_no_number_is_missing(papers: dict[str, Paper], name: str, items: int) -> None:
    assert len(papers[name].items) == items
    for item in papers[name].items:
        assert item.claims and all(
            claim.verdict in (HOLDS, IN_PART, FAILS, UNDECIDED) and claim.ours for claim in item.claims
        )
        for table in item.tables:
            assert {len(row) for row in table.rows} == {len(table.head)}
        for chart in item.charts:
            for x, y in chart.curves.values():
                assert len(x) == len(y) > 0 and np.isfinite(np.array(y)).all()


def test_the_table_of_strategies_has_a_row_for_each(papers: dict[str, Paper]) -> None:
    (table,) = next(item for item in papers["thesis"].items if item.name == "table 4.1").tables
    assert [row[0] for row in table.rows] == list(THESIS)
    assert table.rows[0][1] == "0.4952" and table.rows[-1][1] == "-"


def test_both_papers_make_the_same_runs_once(webs: CastilloWebs) -> None:
    keys = [{run.key for run in plan.runs()} for plan in (castillo(webs), thesis(webs))]
    assert len(keys[0] & keys[1]) > len(keys[0]) / 2


def test_the_reference_of_the_speed_up_has_a_speed_up_of_one(papers: dict[str, Paper]) -> None:
    (table,) = next(item for item in papers["castillo"].items if item.title == "Speed-up, B per connection").tables
    unlimited = table.rows[-1]  # 20 MB/s is more than any server sends
    assert unlimited[2].startswith("1.00")
    assert len(unlimited) == 1 + 2 * len(CONNECTIONS) and unlimited[5] == f"{SPEED_UPS[256][-1]:g}"


def test_agreement_counts_pairs_that_ascend() -> None:
    assert agreement([1.0, 2.0, 3.0]) == 1.0 and agreement([3.0, 2.0, 1.0]) == 0.0


def test_verdicts() -> None:
    assert at_least("", "", [0.1, 0.2, 0.15]).verdict == HOLDS
    assert at_least("", "", [-0.1, -0.2, -0.15]).verdict == FAILS
    open_ = at_least("", "", [-0.1, 0.2, 0.15])
    assert open_.verdict == UNDECIDED
    assert at_least("", "", [0.1, 0.2, 0.15], least=0.5).verdict == FAILS
    assert within("", "", [0.01, -0.01], 0.2).verdict == HOLDS
    assert within("", "", [0.5, 0.51], 0.2).verdict == FAILS
    good, bad = at_least("", "", [1.0, 1.1]), at_least("", "", [-1.0, -1.1])
    assert every("", "", {"a": good, "b": good}).verdict == HOLDS
    assert every("", "", {"a": good, "b": bad}).verdict == IN_PART
    assert every("", "", {"a": good, "b": open_}).verdict == IN_PART
    assert every("", "", {"a": bad, "b": open_}).verdict == every("", "", {"a": bad}).verdict == FAILS


def test_shares_at_percents_are_interpolated() -> None:
    assert at_percents(np.array([0.25, 0.5, 0.75, 1.0]))[25::25] == [0.25, 0.5, 0.75, 1.0]


def test_one_web_decides_nothing() -> None:
    one = at_least("", "", [5.0])
    assert one.verdict == within("", "", [0.0], 1.0).verdict == every("", "", {"a": one}).verdict == UNDECIDED
