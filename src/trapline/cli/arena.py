"""The web of a comparison with everything on it: the same pages, servers, seeds and values for every strategy.

It loads and draws what the conditions ask for, and runs one crawl after the other on it. It shows and writes nothing
but progress.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.cli.compiling import step
from trapline.cli.conditions import Conditions
from trapline.cli.progress import Progress
from trapline.cli.seeds import seed_pages
from trapline.cli.strategy import Chosen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trapline.graph import Graph
    from trapline.report import CrawlRecord
    from trapline.simulate import Crawl
    from trapline.simulate.servers import Network, Servers
    from trapline.strategies.inputs import History


@dataclass(frozen=True, slots=True)
class Arena:
    conditions: Conditions
    web: "Graph"
    pagerank: "NDArray[np.float64]"
    quality: "NDArray[np.float64] | None"
    history: "History | None"
    servers: "Servers"
    network: "Network"
    seeds: "NDArray[np.int32] | None"

    def crawl(self, chosen: Chosen, label: str = "crawling") -> "Crawl":
        return self._crawl(chosen, label, self.conditions.connections, self.network)

    def reference_rate(self, chosen: Chosen, label: str = "crawling") -> float | None:
        """Pages per second with one robot on a link without limit, which speed-up is measured by; None: nobody asked."""
        from trapline.simulate import timing

        if not self.conditions.speed_up:
            return None
        unlimited = replace(self.network, bandwidth=math.inf)
        return timing.rate(self._crawl(chosen, f"{label}, one robot", 1, unlimited).log)

    def _crawl(self, chosen: Chosen, label: str, robots: int, network: "Network") -> "Crawl":
        """One crawl; what a user's own strategy does wrong in it is that file's fault."""
        from trapline.simulate import simulate
        from trapline.strategies.inputs import default_rules, inputs_for

        given, strategy = self.conditions, chosen.strategy
        with Progress(label, unit="pages") as progress, chosen.blamed():
            return simulate(
                self.web,
                strategy,
                default_rules(strategy, given.rules, self.web.pages),
                # No site has two robots; a slot for each of 10^9 would fill the memory.
                robots=min(robots, self.web.sites),
                servers=self.servers,
                network=network,
                seeds=self.seeds,
                most=given.max_pages,
                inputs=inputs_for(strategy, self.web, self.pagerank, self.quality, self.history, given.seed),
                seed=given.seed,
                progress=progress.update,
            )

    def judge(self, crawl: "Crawl", reference_rate: float | None = None) -> "CrawlRecord":
        from trapline.report import record_of

        by_quality = self.conditions.quality != "pagerank"
        quality, name = (self.quality, self._quality_name()) if by_quality else (None, None)
        with step("judging", len(crawl.log.page)):
            return record_of(crawl, self.web, self.pagerank, quality, name, reference_rate)

    def _quality_name(self) -> str | None:
        return self.conditions.quality if self.quality is not None else None  # opic's is not known beforehand

    def write_log(self, crawl: "Crawl", file: Path) -> None:
        from trapline.simulate.log import write_parquet

        with step("writing the log", len(crawl.log.page)):
            rules = crawl.rules
            made_by = {"strategy": crawl.strategy.name, "parameters": self.conditions.parameters(rules)}
            write_parquet(crawl.log, self.web, self.servers.size, file, made_by)


def opened(graph: Path, conditions: Conditions) -> Arena:
    """The arena of a graph on disk."""
    from trapline.graph import load_graph

    with Progress("loading", plain_every_s=2.0) as progress:
        progress.update(0, 1, str(graph))
        web = load_graph(graph)
    return prepared(web, conditions)


def prepared(web: "Graph", conditions: Conditions) -> Arena:
    """The arena of a graph in memory. What a user can have got wrong (seeds, values) comes before the long parts."""
    from trapline.graph import pagerank
    from trapline.strategies.inputs import history_values, quality_values

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
    )
