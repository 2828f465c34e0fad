"""Compares strategies on webs with and without link farms and calendars: python bench/traps.py [PAGES SITES] > table.md

The setting is that of the tables in docs/strategies.md: one connection, w = 15 s, a page takes a second. Every number is
the mean over SEEDS webs, with the lowest and the highest value.
"""

import math
import sys

import numpy as np
from numpy.typing import NDArray

from trapline.frontier import Rules
from trapline.graph import Graph, WebModel, build, pagerank
from trapline.graph.generate import plan_of
from trapline.graph.generate_kernels import ORDINARY
from trapline.simulator import constant_servers, simulate
from trapline.simulator.metrics import average_cumulative_pagerank
from trapline.strategies import strategies
from trapline.strategies.base.inputs import CrawlHistory, default_rules, inputs_for

SEEDS = 5
NO_LIMIT = "largest site: a sixth"
STRATEGIES = ("backlink-count", "partial-pagerank", "breadth-first", "random", "larger-sites-first", "opic")
WEBS: dict[str, dict[str, float]] = {
    NO_LIMIT: {},
    "default": {},
    "5 % in farms": {"link_farms": 0.05},
    "20 % in farms": {"link_farms": 0.2},
    "5 % in calendars": {"calendars": 0.05},
    "20 % in calendars": {"calendars": 0.2},
    "20 % in each": {"link_farms": 0.2, "calendars": 0.2},
}


def fetched(graph: Graph, rank: NDArray[np.float64], name: str, seed: int) -> NDArray[np.int32]:
    """Return the pages in the order in which the strategy fetches them."""
    strategy = strategies()[name]
    rules = Rules(delay_s=15.0, lease_s=math.inf, first_connection_s=0.0, first_response_s=1.0)
    inputs = inputs_for(strategy, graph, rank, rank, CrawlHistory(np.full(graph.pages, -1.0), np.zeros(1)), seed)
    rules = default_rules(strategy, rules, graph.pages)
    return simulate(graph, strategy, rules, servers=constant_servers(1.0), inputs=inputs, seed=seed).log.page


def main(pages: int, sites: int) -> None:
    quality, early = Table(), Table()
    for title, shape in WEBS.items():
        for seed in range(1, SEEDS + 1):
            model = WebModel(pages, sites, seed, max_site_pages=pages // 6 if title == NO_LIMIT else None, **shape)
            graph = build(model)
            rank, dense = pagerank(graph), plan_of(model).kind[graph.site] != ORDINARY
            for name in STRATEGIES:
                order = fetched(graph, rank, name, seed)
                quality.add(name, title, average_cumulative_pagerank(order, rank))
                if shape:
                    early.add(name, title, float(dense[order[: len(order) // 5]].mean()))
            if shape:
                early.add("*share of all pages*", title, float(dense.mean()))
                early.add("*mean PageRank; of all pages: 1*", title, float(rank[dense].mean() * graph.pages))
            print(f"{title}, seed {seed}", file=sys.stderr, flush=True)
    print("Average cumulative PageRank\n")
    quality.print()
    print("\nShare of farms and calendars in the first fifth of the fetched pages\n")
    early.print()


class Table:
    """Values by strategy and web; each cell has a value for each seed."""

    def __init__(self) -> None:
        self._cells: dict[str, dict[str, list[float]]] = {}

    def add(self, row: str, column: str, value: float) -> None:
        self._cells.setdefault(row, {}).setdefault(column, []).append(value)

    def print(self) -> None:
        columns = next(iter(self._cells.values()))
        print(f"| strategy | {' | '.join(columns)} |\n|---" + "|---" * len(columns) + "|")
        for row, cells in self._cells.items():
            shown = (f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})" for values in cells.values())
            print(f"| {row} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3])) if len(sys.argv) > 2 else main(100_000, 2_000)
