"""The numbers of `castillo` are those of the crawls that it names."""

import numpy as np
import pytest

from trapline.frontier import Rules
from trapline.lab.castillo import CONNECTIONS, ORDERS, SPEED_UPS, Castillo, CastilloWebs
from trapline.lab.orders import OrderCrawl, Shelf, WebSource, at_percents, evolved, generated, order_run, sites_run
from trapline.lab.paper import FAILS, HOLDS, IN_PART, UNDECIDED, PaperItem, at_least, every, within
from trapline.lab.study import Result, Study
from trapline.simulate import constant_servers, simulate
from trapline.simulate.log import fetched
from trapline.simulate.metrics import average_cumulative_pagerank
from trapline.strategies import load_strategy

PAGES, SITES = 2_000, 60


@pytest.fixture(scope="module")
def webs() -> CastilloWebs:
    return CastilloWebs(
        [generated(PAGES, SITES, seed) for seed in (1, 2)],
        [evolved(PAGES, SITES, seed, 122.0) for seed in (1, 2)],
        [generated(2 * PAGES, 2 * SITES, seed) for seed in (1, 2)],
    )


@pytest.fixture(scope="module")
def items(webs: CastilloWebs) -> list[PaperItem]:
    experiments = Castillo(webs)
    return experiments.judged(Study(None, "").results(experiments.runs(), lambda *_: None))


def result(run_of_web: WebSource, crawl: OrderCrawl) -> Result:
    return order_run(Shelf(), run_of_web, crawl).compute()


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
    found = sites_run(Shelf(), webs.orders[0]).compute()
    assert sum(found["sites"]) == SITES


def test_every_item_has_verdicts_and_no_number_is_missing(items: list[PaperItem]) -> None:
    assert len(items) == 8
    for item in items:
        assert item.claims and all(claim.verdict in (HOLDS, IN_PART, FAILS) and claim.ours for claim in item.claims)
        for table in item.tables:
            assert {len(row) for row in table.rows} == {len(table.head)}
        for chart in item.charts:
            for x, y in chart.curves.values():
                assert len(x) == len(y) > 1 and np.isfinite(np.array(y)).all()
    orders = next(item for item in items if item.name == "t. table 4.1")
    assert [row[0] for row in orders.tables[0].rows] == list(ORDERS)


def test_the_reference_of_the_speed_up_has_a_speed_up_of_one(items: list[PaperItem]) -> None:
    table = next(item for item in items if item.title == "Speed-up, B per connection").tables[0]
    unlimited = table.rows[-1]  # 20 MB/s is more than any server sends
    assert unlimited[2].startswith("1.00")
    assert len(unlimited) == 1 + 2 * len(CONNECTIONS) and unlimited[5] == f"{SPEED_UPS[256][-1]:g}"


def test_verdicts() -> None:
    assert at_least("", "", [0.1, 0.2, 0.15]).verdict == HOLDS
    assert at_least("", "", [-0.1, -0.2, -0.15]).verdict == FAILS
    assert at_least("", "", [-0.1, 0.2, 0.15]).verdict == IN_PART
    assert at_least("", "", [0.1, 0.2, 0.15], least=0.5).verdict == FAILS
    assert within("", "", [0.01, -0.01], 0.2).verdict == HOLDS
    assert within("", "", [0.5, 0.51], 0.2).verdict == FAILS
    good, bad = at_least("", "", [1.0, 1.1]), at_least("", "", [-1.0, -1.1])
    assert every("", "", {"a": good, "b": good}).verdict == HOLDS
    assert every("", "", {"a": good, "b": bad}).verdict == IN_PART
    assert every("", "", {"a": bad}).verdict == FAILS


def test_shares_at_percents_are_interpolated() -> None:
    assert at_percents(np.array([0.25, 0.5, 0.75, 1.0]))[25::25] == [0.25, 0.5, 0.75, 1.0]


def test_one_web_decides_nothing() -> None:
    one = at_least("", "", [5.0])
    assert one.verdict == within("", "", [0.0], 1.0).verdict == every("", "", {"a": one}).verdict == UNDECIDED
