"""Records of made-up crawls, for tests of reports."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.simulator.logs import plausible_log
from trapline.frontier import Rules
from trapline.graph import generate
from trapline.report import CrawlRecord, record_of
from trapline.simulator import SimulatedCrawl
from trapline.simulator.log import FetchLog, fetched
from trapline.simulator.network import Network

GRAPH = generate(200, 8, seed=2)
RANK = np.random.default_rng(5).pareto(1.5, GRAPH.pages) + 0.1
RANK /= RANK.sum()
SIZE = np.rint(np.random.default_rng(6).lognormal(9.0, 1.0, GRAPH.pages))


def crawl_of(log: FetchLog, strategy: str = "made-up", **given: Any) -> Any:
    """The result of a driver, as far as records use it."""
    named = SimpleNamespace(name=strategy, page=SimpleNamespace(name="page"), site=SimpleNamespace(name="site"))
    left: dict[str, Any] = {
        "log": log,
        "strategy": named,
        "rules": Rules(delay_s=0.0),
        "frontier": None,
        "drained": True,
        "wall_seconds": 0.5,
        "score_seconds": 0.0,
        "scorings": 0,
        "servers": SimpleNamespace(size=SIZE),
        "network": Network(),
        "connections": 3,
    }
    return SimulatedCrawl(**{**left, **given})


def log_in_order(seed: int, pages: int = GRAPH.pages, spoiled: float = 0.0) -> FetchLog:
    order = np.random.default_rng(seed).permutation(GRAPH.pages)[:pages].astype(np.int32)
    return plausible_log(order, seed=seed, spoiled=spoiled)


def made_up_record(seed: int = 0, strategy: str = "made-up", pages: int = GRAPH.pages, **given: Any) -> CrawlRecord:
    """A crawl in random order. It was stopped if it has fewer pages than the web."""
    log = log_in_order(seed, pages)
    given.setdefault("drained", len(fetched(log).page) == GRAPH.pages)
    return record_of(crawl_of(log, strategy, **given), GRAPH, RANK)
