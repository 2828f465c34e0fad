"""Compares all strategies on several graphs, as tables in Markdown: python bench/strategies.py [--orders] [GRAPH ...] > tables.md

GRAPH is any graph that `trapline graph info` reads, or generated:PAGES:SITES:SEED; without one, the sample python-docs and a
generated web are used. The first tables compare orders: one connection, w = 15 s, a page takes a second; a strategy in which
chance plays a part has the mean of ten seeds, with its interval of 95 %. Then come the processor time per page as a multiple of
OPIC's, and, without --orders, a table that shows, on servers as measured and with 4 connections, whether it matters that the
site ranks of cao do not count the delay after a visit.

Only one recorded graph has an older crawl of its web, with 5 % of its URLs (ku-crawl-2016 and ku-crawl-2021b). So
historical PageRank uses an artificial old crawl: 55 % of the pages, drawn by a hash, and the links among them (castillo-
thesis 4.3.2: 45 % of the pages were new).
"""

import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyarrow import compute

import trapline
from trapline.cli.warmup import compile_all
from trapline.confidence import estimate
from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.frontier.layout import FETCHED
from trapline.graph import Graph, LoadOptions, generate, load_graph, pagerank
from trapline.graph.exact import drawn
from trapline.graph.graph import csr_from_edges
from trapline.lab.castillo.orders import HISTORICAL, PUBLISHED
from trapline.samples import GRAPHS
from trapline.servers.sampled import modelled_servers
from trapline.simulator import SimulatedCrawl, constant_servers, politeness_violations, simulate
from trapline.simulator.metrics import average_cumulative_pagerank, best_first, kendall_tau
from trapline.simulator.timing import seconds_until
from trapline.strategies import Strategy, strategies
from trapline.strategies.base.inputs import CrawlHistory, default_rules, inputs_for

Floats = NDArray[np.float64]

_PAGES_PER_SITE = 1_000  # for graphs without URLs
OLD_SHARE = 0.55  # share of pages in the artificial old crawl
_THESIS = PUBLISHED | HISTORICAL
_REFERENCE = {
    "breadth-first": 0.635,
    "larger-sites-first": 0.623,
    "backlink-count": 0.645,
    "partial-pagerank": 0.644,
    "batch-pagerank": 0.62,
    "opic": 0.650,
    "random": 0.584,
    "omniscient": 0.694,
}
"""An independent, slow reference on the recorded crawl ku-crawl-2021b."""
_SEEDS = 20
_ORDER_SEEDS = 10
_GENERATED = "generated:"
_WEB = f"{_GENERATED}50000:1000:1"


class Ground(NamedTuple):
    """A graph to crawl, and the data that strategies may have about it in advance."""

    name: str
    graph: Graph
    rank: Floats
    history: CrawlHistory

    def inputs(self, strategy: Strategy) -> dict[str, Floats]:
        return inputs_for(strategy, self.graph, self.rank, self.rank, self.history, 0)


def grounds(names: Iterable[str]) -> Iterator[Ground]:
    """Yield the graphs of these names: generated:PAGES:SITES:SEED, a file or folder in TRAPLINE_DATA, or what `load_graph` reads."""
    data = Path(os.environ.get("TRAPLINE_DATA", "."))
    for name in names:
        if name.startswith(_GENERATED):
            pages, sites, seed = map(int, name.split(":")[1:])
            yield _ground(f"generated, {pages // 1000}k, {seed}", generate(pages, sites, seed=seed))
            continue
        path = data / name
        try:
            yield _ground(path.name, _loaded(path if path.exists() else Path(name)))
        except ConfigError as error:
            print(f"skipped: {error}", file=sys.stderr)


def _loaded(path: Path) -> Graph:
    try:
        return load_graph(path, LoadOptions(ids_per_site=_PAGES_PER_SITE))
    except ConfigError:
        return load_graph(path)


def _ground(name: str, graph: Graph) -> Ground:
    rank = pagerank(graph)
    return Ground(name, graph, rank, _history(graph))


def _history(graph: Graph) -> CrawlHistory:
    return older_crawl(graph, drawn(1, "old crawl", graph.pages) < OLD_SHARE)


def older_crawl(graph: Graph, was: NDArray[np.bool_], was_link: NDArray[np.bool_] | None = None) -> CrawlHistory:
    """Return the PageRank of the pages that were there, computed from the links among them that were there."""
    source = np.repeat(np.arange(graph.pages, dtype=np.int32), np.diff(graph.offsets))
    kept = was[source] & was[graph.targets]
    if was_link is not None:
        kept &= was_link
    number = (np.cumsum(was) - 1).astype(np.int32)
    pages = int(was.sum())
    offsets, targets = csr_from_edges(number[source[kept]], number[graph.targets[kept]], pages)
    one = np.zeros(pages, np.int32)
    old = pagerank(Graph(offsets, targets, one, one[:1], one.astype(np.uint8), one[:1]))
    page = np.full(graph.pages, -1.0)
    page[was] = old
    return CrawlHistory(page, np.sort(old))


def crawl(ground: Ground, strategy: Strategy, seed: int = 0, inputs: dict[str, Floats] | None = None) -> SimulatedCrawl:
    rules = Rules(delay_s=15.0, lease_s=math.inf, first_connection_s=0.0, first_response_s=1.0)
    rules = default_rules(strategy, rules, ground.graph.pages)
    inputs = ground.inputs(strategy) if inputs is None else inputs
    done = simulate(ground.graph, strategy, rules, servers=constant_servers(1.0), inputs=inputs, seed=seed)
    broken = politeness_violations(done.log, ground.graph.site, ground.graph.ips, rules)
    assert broken == 0, f"{strategy.name} on {ground.name}: {broken} politeness violations"
    return done


def shares_over_time(
    ground: Ground, strategy: str, connections: int, delay_s: float, seed: int, **settings: Any
) -> tuple[Floats, Floats]:
    """Return the end of every fetch (s), and the share of the PageRank that is fetched by then, of a crawl under the conditions of
    `trapline crawl`: servers as measured, k = 10. `settings`: others than the defaults, by their names in `trapline.simulate`."""
    done = trapline.simulate(ground.graph, strategy, connections=connections, delay=delay_s, seed=seed, **settings)
    fetches = done.fetches.filter(compute.equal(done.fetches["result"], "fetched"))
    share = np.cumsum(ground.rank[fetches["page"].to_numpy()]) / ground.rank.sum()
    return fetches["end_s"].to_numpy(), share


def shares_at(end_s: Floats, share: Floats, times_s: Sequence[float] | Floats) -> Floats:
    """Return the share that is fetched at each of these times, from what `shares_over_time` returns.

    >>> shares_at(np.array([1.0, 3.0]), np.array([0.4, 1.0]), [0.9, 1.0, 2.9, 4.0]).tolist()
    [0.0, 0.4, 0.4, 1.0]
    """
    ended = np.searchsorted(end_s, np.asarray(times_s), side="right")
    return np.concatenate([[0.0], share])[ended]


def half_s(end_s: Floats, share: Floats) -> float:
    """Return the time at which half of the PageRank is fetched; infinity: it is not."""
    at = int(np.searchsorted(share, 0.5))
    return float(end_s[at]) if at < len(end_s) else math.inf


def reference_table(ground: Ground) -> None:
    """Print our results and those of an independent reference; for random, mean and range over seeds."""
    print("| strategy | ours | reference | difference |\n|---|---|---|---|")
    for name, theirs in _REFERENCE.items():
        seeds = range(_SEEDS if name == "random" else 1)
        logs = [crawl(ground, strategies()[name], seed).log for seed in seeds]
        found = [average_cumulative_pagerank(log.page, ground.rank) for log in logs]
        ours = np.mean(found)
        spread = f" ({min(found):.3f} to {max(found):.3f}, {_SEEDS} seeds)" if len(found) > 1 else ""
        print(f"| {name} | {ours:.4f}{spread} | {theirs} | {ours - theirs:+.4f} |")


class Measured(NamedTuple):
    """Values of one strategy on one graph: of each seed, or of one if chance plays no part."""

    average: list[float]  # average cumulative PageRank
    tau: list[float]
    seconds: float  # processor time of one crawl, without what is read from URLs beforehand

    def of(self, number: int) -> str:
        return str(estimate(self[number]))


def measured(ground: Ground, strategy: Strategy) -> Measured:
    first = crawl(ground, strategy).log.page
    inputs = ground.inputs(strategy)
    began = time.process_time()
    orders = [first, crawl(ground, strategy, 1, inputs).log.page]
    seconds = time.process_time() - began
    if np.array_equal(*orders):
        orders = orders[:1]
    else:
        orders += [crawl(ground, strategy, seed).log.page for seed in range(2, _ORDER_SEEDS)]
    return Measured(
        [average_cumulative_pagerank(order, ground.rank) for order in orders],
        [kendall_tau(order, ground.rank) for order in orders],
        seconds,
    )


def order_tables(every: list[Ground]) -> None:
    """Print average cumulative PageRank, then tau, then the cost: a row for each strategy, a column for each graph."""
    found = {}
    for ground in every:
        for strategy in strategies().values():
            print(f"{ground.name}: {strategy.name}", file=sys.stderr)
            found[strategy.name, ground.name] = measured(ground, strategy)
    for number, title in enumerate(("Average cumulative PageRank", "Kendall's tau")):
        print(f"\n{title}\n\n| strategy | {' | '.join(g.name for g in every)} | mean | thesis |")
        print("|---" * (len(every) + 3) + "|")
        mean = {name: float(np.mean([np.mean(found[name, g.name][number]) for g in every])) for name in strategies()}
        for name in sorted(strategies(), key=lambda name: -mean[name]):
            thesis = f"{_THESIS[name][number]:.3f}" if name in _THESIS else ""
            cells = " | ".join(found[name, ground.name].of(number) for ground in every)
            print(f"| {name} | {cells} | {mean[name]:.3f} | {thesis} |")
        if number == 0:
            _bounds(every)
    print(f"\nProcessor time, times OPIC's\n\n| strategy | {' | '.join(g.name for g in every)} |")
    print("|---" * (len(every) + 1) + "|")
    for name in strategies():
        times = (found[name, ground.name].seconds / found["opic", ground.name].seconds for ground in every)
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in times)} |")


def _bounds(every: list[Ground]) -> None:
    best = [average_cumulative_pagerank(best_first(_reached(g), g.rank), g.rank) for g in every]
    print(f"| *upper bound* | {' | '.join(f'{v:.3f}' for v in best)} | {np.mean(best):.3f} | |")


def _reached(ground: Ground) -> NDArray[np.int32]:
    return crawl(ground, strategies()["breadth-first"]).log.page


def delay_table(every: list[Ground]) -> None:
    """Print the hours until half and 80 % of the PageRank are fetched, for site ranks that count T and that count T + w."""
    names = [name for pair in ("performance", "crawl-ability") for name in (pair, f"{pair}-and-delay")]
    print(f"\nHours until 50 % / 80 % of the PageRank\n\n| graph | w, s | {' | '.join(names)} |")
    print("|---" * (len(names) + 2) + "|")
    for ground in every:
        servers = modelled_servers(ground.graph)
        for delay_s in (0.0, 15.0):
            cells = []
            for name in names:
                strategy = strategies()[name]
                rules = Rules(delay_s=delay_s, per_connection=0, lease_s=math.inf)
                inputs = ground.inputs(strategy)
                log = simulate(ground.graph, strategy, rules, connections=4, servers=servers, inputs=inputs).log
                assert (log.result == FETCHED).all()
                cells.append(" / ".join(f"{s / 3600:.2f}" for s in seconds_until(log, ground.rank, (0.5, 0.8))))
            print(f"| {ground.name} | {delay_s:.0f} | {' | '.join(cells)} |", flush=True)


def main(arguments: list[str]) -> None:
    compile_all()
    names = [argument for argument in arguments if argument != "--orders"]
    every = list(grounds(names or [*GRAPHS, _WEB]))
    if not every:
        print("no graph can be read; name one", file=sys.stderr)
        return
    for ground in every:
        if ground.name == "ku-crawl-2021b":
            reference_table(ground)
    order_tables(every)
    if "--orders" in arguments:
        return
    delay_table([ground for ground in every if ground.graph.pages <= 60_000])


if __name__ == "__main__":
    main(sys.argv[1:])
