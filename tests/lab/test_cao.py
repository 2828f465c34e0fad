"""The numbers of `cao` are those of the crawls that it names."""

import numpy as np
import pytest

from tests.lab.made_up_crawls import no_live_crawls
from trapline.frontier import Rules
from trapline.lab.cao.plan import CONNECTIONS, CaoCrawl, CaoWebs, cao, crawl_run
from trapline.lab.cao.protocols import simulated_protocols
from trapline.lab.cao.throughput import requests_per_connection
from trapline.lab.paper import FAILS, HOLDS, IN_PART, UNDECIDED
from trapline.lab.study import Result, Study
from trapline.lab.webs import WebCache, equal_sites, generated
from trapline.servers.sampled import modelled_servers
from trapline.simulator import simulate
from trapline.strategies import load_strategy
from trapline.testweb import Mix
from trapline.testweb.web.behaviour import behaviours

WEBS = [generated(2_000, 60, seed) for seed in (1, 2)]
CAO = CaoWebs(WEBS, [generated(60, 6, seed) for seed in (1, 2)], equal_sites(4, 220), equal_sites(20, 30), 100, (1, 2))


def test_times_and_qualities_are_those_of_the_simulated_crawl() -> None:
    web = WEBS[0].load()
    crawl = simulate(
        web.graph,
        load_strategy("quality"),
        Rules(delay_s=0.0, per_connection=0, lease_s=float("inf")),
        connections=min(CONNECTIONS, web.graph.sites),
        servers=modelled_servers(web.graph, seed=1),
        inputs={"quality": web.pagerank},
        seed=1,
    )
    found = crawl_run(WebCache(), WEBS[0], CaoCrawl("quality", "pagerank"), 1).compute()
    half = len(crawl.log.page) // 2
    assert found["seconds"][50] == pytest.approx(crawl.log.end[half - 1], abs=1e-3)
    assert found["seconds"][100] == pytest.approx(crawl.simulated_seconds, abs=1e-3)
    shares = np.cumsum(web.pagerank[crawl.log.page]) / web.pagerank[crawl.log.page].sum()
    assert found["quality"][50] == pytest.approx(shares[half - 1], abs=1e-6)


def test_moments_are_fractions_of_the_time_of_breadth_first() -> None:
    """Made-up crawls: breadth-first fetches a percent in a second; performance is twice as fast."""

    def made_up(speed: float) -> Result:
        seconds = [percent / speed for percent in range(101)]
        return {"seconds": seconds, "quality": [percent / 100 for percent in range(101)], "average": 0.5}

    figures = cao(CAO).parts[-2:]
    speeds = {"breadth-first": 1.0, "performance": 2.0, "quality": 1.0, "crawl-ability": 1.0}
    results = {
        run.key: made_up(next(v for name, v in speeds.items() if f"; {name}, " in run.key))
        for figure in figures
        for run in figure.runs
    }
    six, seven = (figure.items(results)[0] for figure in figures)
    assert [row[1] for row in six.tables[0].rows] == [
        "0.450 ± 0.000",
        "0.900 ± 0.000",
        "0.450 ± 0.000",
        "0.450 ± 0.000",
    ]
    assert [claim.verdict for claim in six.claims] == [HOLDS, HOLDS, FAILS, FAILS, FAILS, HOLDS]
    assert six.claims[0].ours.startswith("+1.000")
    assert seven.claims[-1].verdict == HOLDS


def test_every_claim_has_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    no_live_crawls(monkeypatch)
    plan = cao(CAO)
    paper = plan.paper(Study(None, "").results(plan.runs(), lambda *_: None))
    assert len(paper.claims) == 24
    assert all(claim.verdict in (HOLDS, IN_PART, FAILS, UNDECIDED) for _, claim in paper.claims)
    predicted = next(item for item in paper.items if item.name == "fig. 4, live").claims[-2:]
    assert [claim.verdict for claim in predicted] == [HOLDS, HOLDS]  # the made-up live crawls are simulated
    fast = next(item for item in paper.items if item.name == "fig. 5")
    assert fast.tables[0].rows[1][1] == "60.0 ± 0.0" and fast.tables[0].rows[1][-1] == "60.0 ± 0.0"


def test_the_crawler_finds_out_how_many_requests_servers_allow() -> None:
    """A real crawl; the servers allow one request, a hundred, or a number in between."""
    web = equal_sites(6, 220)
    (run,) = requests_per_connection("", WebCache(), web, [1]).runs
    allowed = behaviours(Mix(measured_requests=True), 6, 1)
    assert run.compute()["requests"] == [one.requests_per_connection for one in allowed]


def test_http_1_1_saves_connections() -> None:
    rates = [
        next(
            run.compute()["pages_per_second"]
            for run in simulated_protocols("", WebCache(), WEBS[:1]).runs
            if f"throughput of {name}, r = 8," in run.key
        )
        for name in ("http/1.0", "keep-alive", "pipelining")
    ]
    assert rates == sorted(rates)
