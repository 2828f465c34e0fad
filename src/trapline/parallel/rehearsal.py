"""A plan tried on a graph: what n partitions cover with firewall and with exchange, and what they send. In simulated time, every page a
second, one robot each; all that comes of it are shares."""

from collections.abc import Callable

from trapline.frontier import Rules
from trapline.graph import Graph
from trapline.parallel.costs import EXCHANGES
from trapline.parallel.in_process import EXCHANGE, FIREWALL, Exchange, ParallelCrawl, Plan, simulate_parallel
from trapline.parallel.partition import Partitioning
from trapline.parallel.planning import Expected
from trapline.parallel.seeds import random_seeds
from trapline.simulate.servers import constant_servers
from trapline.strategies import load_strategy

Told = Callable[[int, int], None]


def rehearse(graph: Graph, processes: int, seeds: int, told: Told, seed: int = 0) -> Expected:
    """From so many random pages a process. Coverage is of all pages of the graph."""
    partitioning = Partitioning("site-hash", processes)
    drawn = random_seeds(partitioning.owners(graph), processes, seeds, seed)
    every = max(1, graph.pages // (processes * EXCHANGES))

    def crawl(mode: str) -> ParallelCrawl:
        plan = Plan(mode, partitioning, Exchange(every_pages=every), step_s=float(max(1, every // 4)))
        return simulate_parallel(
            graph, load_strategy("backlink-count"), Rules(delay_s=0.0), plan,
            seeds=drawn, servers=constant_servers(1.0), progress=told,
        )  # fmt: skip

    firewall, exchange = crawl(FIREWALL), crawl(EXCHANGE)
    pages = fetched(exchange)
    sent = exchange.traffic.urls / max(1, pages)
    return Expected(fetched(firewall) / graph.pages, pages / graph.pages, sent, simulated=True)


def fetched(crawl: ParallelCrawl) -> int:
    """Pages that came in; neither mode fetches one twice, and in this world none fails."""
    return sum(len(log.page) for log in crawl.logs)
