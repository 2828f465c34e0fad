"""The web of a comparison with everything on it: the same pages, servers, seeds and values for every strategy.

It loads and draws what the conditions ask for, and runs one crawl after the other on it. It shows and writes nothing
but progress.
"""

from dataclasses import dataclass
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
                robots=min(given.connections, self.web.sites),
                servers=self.servers,
                network=self.network,
                seeds=self.seeds,
                most=given.max_pages,
                inputs=inputs_for(strategy, self.web, self.pagerank, self.quality, self.history, given.seed),
                seed=given.seed,
                progress=progress.update,
            )

    def judge(self, crawl: "Crawl") -> "CrawlRecord":
        from trapline.report import record_of

        with step("judging", len(crawl.log.page)):
            if self.conditions.quality == "pagerank":
                return record_of(crawl, self.web, self.pagerank)
            return record_of(crawl, self.web, self.pagerank, self.quality, self._quality_name())

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
