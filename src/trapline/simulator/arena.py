"""The web of a comparison: the same pages, servers, seeds and values for every strategy.

This module samples what the conditions require, and runs crawls on it. `Arena` has them all; `seed_pages` finds
the seeds that a user's file or a program names. The module does not read the file of the graph, and shows nothing: it reports its progress.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph import Graph, depths, pagerank
from trapline.graph.formats.textfile import named_rows
from trapline.graph.strings import decoded
from trapline.progress import CalledSteps, ProgressSteps
from trapline.servers.sampled import Servers
from trapline.simulator import timing
from trapline.simulator.conditions import CrawlConditions
from trapline.simulator.driver import SimulatedCrawl, simulate
from trapline.simulator.log import write_parquet
from trapline.simulator.network import Network
from trapline.strategies.base.chosen import Chosen
from trapline.strategies.base.inputs import (
    CrawlHistory,
    default_rules,
    history_values,
    inputs_for,
    quality_values,
)


@dataclass(frozen=True, slots=True)
class Arena:
    conditions: CrawlConditions
    web: Graph
    pagerank: NDArray[np.float64]
    quality: NDArray[np.float64] | None
    history: CrawlHistory | None
    servers: Servers
    network: Network
    seeds: NDArray[np.int32] | None
    depth: NDArray[np.int32]  # clicks from the nearest seed
    steps: ProgressSteps

    def under(self, conditions: CrawlConditions) -> "Arena":
        """Return the arena with other connections, rules or network, and the same web, servers and values."""
        return replace(self, conditions=conditions, network=conditions.world.network(conditions.rules.delay_s))

    def sampled(self, seed: int) -> "Arena":
        """Return the arena with servers of another seed, which is also the seed of strategies and failures."""
        servers = self.conditions.world.servers_of(self.web, seed)
        return replace(self, conditions=replace(self.conditions, seed=seed), servers=servers)

    @property
    def measure(self) -> tuple[NDArray[np.float64] | None, str | None]:
        """Values that crawls are judged by besides PageRank, and their name; None: PageRank alone. A page without a score has 0."""
        if self.conditions.quality == "pagerank" or self.quality is None:  # what links say is not known beforehand
            return None, None
        return np.maximum(self.quality, 0.0), self.conditions.quality

    def crawl(self, chosen: Chosen, label: str = "crawling") -> SimulatedCrawl:
        return self._crawl(chosen, label, self.conditions.connections, self.network)

    def reference_rate(self, chosen: Chosen, label: str = "crawling") -> float | None:
        """Return the pages per second of one connection with unlimited bandwidth, the reference of the speed-up.

        Return None if the speed-up was not requested.
        """
        if not self.conditions.speed_up:
            return None
        unlimited = replace(self.network, bandwidth=math.inf)
        return timing.rate(self._crawl(chosen, f"{label}, one connection", 1, unlimited).log)

    def _crawl(self, chosen: Chosen, label: str, connections: int, network: Network) -> SimulatedCrawl:
        """Run one crawl. Errors in a strategy from a user's file are reported as errors of that file."""
        given, strategy = self.conditions, chosen.strategy
        with self.steps.counted(label, "pages") as progress, chosen.blamed():
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
                until_s=math.inf if given.max_seconds is None else given.max_seconds,
                inputs=inputs_for(strategy, self.web, self.pagerank, self.quality, self.history, given.seed),
                seed=given.seed,
                progress=progress,
            )

    def write_log(self, crawl: SimulatedCrawl, file: Path) -> None:
        with self.steps.single("writing the log", len(crawl.log.page), "pages"):
            write_parquet(crawl.log, self.web, self.servers.size, file, self.made_by(crawl))

    def made_by(self, crawl: SimulatedCrawl) -> dict[str, object]:
        """Return what a log says about its crawl."""
        return {"strategy": crawl.strategy.name, "parameters": self.conditions.parameters(crawl.rules)}


def arena_of(web: Graph, conditions: CrawlConditions, steps: ProgressSteps | None = None) -> Arena:
    """Return the arena of a graph. Seeds and values, where users make errors, are read before the long parts."""
    steps = steps or CalledSteps()
    seeds = None if conditions.seeds is None else seed_pages(conditions.seeds, web)
    history = history_values(conditions.history, web, pagerank) if conditions.history else None
    with steps.single("PageRank", web.pages, "pages"):
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
        steps=steps,
    )


# ---- The seeds: page numbers and URLs, from a user's file or from a program. URLs are only text here.


def seed_pages(seeds: Path | Sequence[int | str], graph: Graph) -> NDArray[np.int32]:
    """Return the pages that the file or the sequence names, in its order and without repetition."""
    if isinstance(seeds, Path):
        named = [(name, f"{seeds}, row {row}: ") for row, name in named_rows(seeds)]
        if not named:
            raise ConfigError(f"{seeds}: contains no seeds; write one URL or page number per row")
    else:
        named = [(str(name), "seeds: ") for name in seeds]
        if not named:
            raise ConfigError("seeds: there are none; give at least one URL or page number")
    page_of = _pages_of({name for name, _ in named if not name.isdecimal()}, graph)
    pages = dict.fromkeys(_page(name, where, page_of, graph) for name, where in named)
    return np.fromiter(pages, np.int32, len(pages))


def _pages_of(urls: set[str], graph: Graph) -> dict[str, int]:
    """Return the pages of these URLs, in one pass over the graph: a table of all URLs would take more memory than the graph."""
    if not urls or graph.urls is None:
        return {}
    return {url: page for page, url in enumerate(decoded(graph.urls)) if url in urls}


def _page(name: str, where: str, page_of: dict[str, int], graph: Graph) -> int:
    if name in page_of:
        return page_of[name]
    if not name.isdecimal():
        no_urls = graph.urls is None
        why = (
            "the graph has no URLs; give page numbers"
            if no_urls
            else "not a page of the graph; give its URLs or numbers"
        )
        raise ConfigError(f"{where}{name[:80]!r}: {why}")
    if len(name) > 18 or int(name) >= graph.pages:
        raise ConfigError(f"{where}page {name[:40]} is not between 0 and {graph.pages - 1}; give a page of the graph")
    return int(name)
