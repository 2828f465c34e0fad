"""The web of a comparison: the same pages, servers, seeds and values for every strategy.

This module loads or samples what the conditions require, and runs crawls on it. Its only output is progress and, on request, the log of
a crawl.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.cli.options.scheduling import Chosen
from trapline.cli.options.simulated import CrawlConditions
from trapline.cli.options.values import seed_pages
from trapline.cli.terminal.progress import Progress, step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trapline.graph import Graph
    from trapline.report import CrawlRecord
    from trapline.servers.sampled import Servers
    from trapline.simulator import SimulatedCrawl
    from trapline.simulator.network import Network
    from trapline.strategies.base.inputs import CrawlHistory


@dataclass(frozen=True, slots=True)
class Arena:
    conditions: CrawlConditions
    web: "Graph"
    pagerank: "NDArray[np.float64]"
    quality: "NDArray[np.float64] | None"
    history: "CrawlHistory | None"
    servers: "Servers"
    network: "Network"
    seeds: "NDArray[np.int32] | None"
    depth: "NDArray[np.int32]"  # clicks from the nearest seed

    def under(self, conditions: CrawlConditions) -> "Arena":
        """Return the arena with other connections, rules or network, and the same web, servers and values."""
        return replace(self, conditions=conditions, network=conditions.world.network(conditions.rules.delay_s))

    def crawl(self, chosen: Chosen, label: str = "crawling") -> "SimulatedCrawl":
        return self._crawl(chosen, label, self.conditions.connections, self.network)

    def reference_rate(self, chosen: Chosen, label: str = "crawling") -> float | None:
        """Return the pages per second of one connection with unlimited bandwidth, the reference of the speed-up.

        Return None if the speed-up was not requested.
        """
        from trapline.simulator import timing

        if not self.conditions.speed_up:
            return None
        unlimited = replace(self.network, bandwidth=math.inf)
        return timing.rate(self._crawl(chosen, f"{label}, one connection", 1, unlimited).log)

    def _crawl(self, chosen: Chosen, label: str, connections: int, network: "Network") -> "SimulatedCrawl":
        """Run one crawl. Errors in a strategy from a user's file are reported as errors of that file."""
        from trapline.simulator import simulate
        from trapline.strategies.base.inputs import default_rules, inputs_for

        given, strategy = self.conditions, chosen.strategy
        with Progress(label, unit="pages") as progress, chosen.blamed():
            return simulate(
                self.web,
                strategy,
                default_rules(strategy, given.rules, self.web.pages),
                # No site has two connections, so more connections than sites are useless; slots for 10^9 would fill the memory.
                connections=min(connections, self.web.sites),
                servers=self.servers,
                network=network,
                seeds=self.seeds,
                most=given.max_pages,
                inputs=inputs_for(strategy, self.web, self.pagerank, self.quality, self.history, given.seed),
                seed=given.seed,
                progress=progress.update,
            )

    def judge(self, crawl: "SimulatedCrawl", reference_rate: float | None = None) -> "CrawlRecord":
        from trapline.report import record_of

        by_quality = self.conditions.quality != "pagerank"
        quality, name = (self.quality, self._quality_name()) if by_quality else (None, None)
        with step("judging", len(crawl.log.page)):
            return record_of(crawl, self.web, self.pagerank, quality, name, reference_rate, self.depth)

    def _quality_name(self) -> str | None:
        return self.conditions.quality if self.quality is not None else None  # OPIC's values are not known beforehand

    def write_log(self, crawl: "SimulatedCrawl", file: Path) -> None:
        from trapline.simulator.log import write_parquet

        with step("writing the log", len(crawl.log.page)):
            rules = crawl.rules
            made_by = {"strategy": crawl.strategy.name, "parameters": self.conditions.parameters(rules)}
            write_parquet(crawl.log, self.web, self.servers.size, file, made_by)


def opened(graph: Path, conditions: CrawlConditions) -> Arena:
    """Return the arena of a graph on disk."""
    from trapline.graph import load_graph

    with Progress("loading", plain_every_s=2.0) as progress:
        progress.update(0, 1, str(graph))
        web = load_graph(graph)
    return prepared(web, conditions)


def prepared(web: "Graph", conditions: CrawlConditions) -> Arena:
    """Return the arena of a graph in memory. Seeds and values, where users make errors, are read before the long parts."""
    from trapline.graph import depths, pagerank
    from trapline.strategies.base.inputs import history_values, quality_values

    seeds = seed_pages(conditions.seeds, web) if conditions.seeds else None
    history = history_values(conditions.history, web, pagerank) if conditions.history else None
    with step("PageRank", web.pages):
        rank = pagerank(web)
    return Arena(
        conditions,
        web,
        rank,
        quality=quality_values(conditions.quality, web, rank, conditions.seed),
        history=history,
        servers=conditions.world.servers_of(web, conditions.seed),
        network=conditions.world.network(conditions.rules.delay_s),
        seeds=seeds,
        depth=depths(web, seeds),
    )
