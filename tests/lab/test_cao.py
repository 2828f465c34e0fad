"""The numbers of `cao` are those of the crawls that it names."""

import numpy as np
import pytest

from trapline.frontier import Rules
from trapline.lab.cao import CONNECTIONS, Cao, CaoCrawl, crawl_run
from trapline.lab.orders import Shelf, generated
from trapline.lab.paper import FAILS, HOLDS, IN_PART
from trapline.lab.study import Result, Study
from trapline.simulate import simulate
from trapline.simulate.modelled import modelled_servers
from trapline.strategies import load_strategy

WEBS = [generated(2_000, 60, seed) for seed in (1, 2)]


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
    found = crawl_run(Shelf(), WEBS[0], CaoCrawl("quality", "pagerank"), 1).compute()
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

    experiments = Cao(WEBS)
    speeds = {"breadth-first": 1.0, "performance": 2.0, "quality": 1.0, "crawl-ability": 1.0}
    results = {
        run.key: made_up(next(v for name, v in speeds.items() if f"; {name}, " in run.key))
        for run in experiments.runs()
    }
    six, seven = experiments.judged(results)
    assert [row[1] for row in six.tables[0].rows] == [
        "0.450 ± 0.000",
        "0.900 ± 0.000",
        "0.450 ± 0.000",
        "0.450 ± 0.000",
    ]
    assert [claim.verdict for claim in six.claims] == [HOLDS, HOLDS, FAILS, FAILS, FAILS, HOLDS]
    assert six.claims[0].ours.startswith("+1.000")
    assert seven.claims[-1].verdict == HOLDS


def test_every_claim_has_a_verdict() -> None:
    experiments = Cao(WEBS)
    items = experiments.judged(Study(None, "").results(experiments.runs(), lambda *_: None))
    assert sum(len(item.claims) for item in items) == 10
    assert all(claim.verdict in (HOLDS, IN_PART, FAILS) for item in items for claim in item.claims)
