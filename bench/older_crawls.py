"""Compares orders that know an older crawl of the web, as a table in Markdown: python bench/older_crawls.py [GRAPH ...] > table.md

GRAPH and the setting are those of bench/learning.py. There are three kinds of older crawl, because none is recorded with these graphs:

pages        55 % of the pages, drawn by a hash, and the links among them (castillo-thesis 4.3.2: 45 % of the pages were new)
directories  the pages of 55 % of the directories, and three in five of the links among them: whole parts are new, and pages changed
half         the half of the pages that a breadth-first crawl fetches first, and the links among them: the older crawl was cut off
"""

import sys

import numpy as np
from learning import grounds
from numpy.typing import NDArray
from strategies import OLD_SHARE, Ground, crawl, older_crawl

from trapline.graph.exact import drawn
from trapline.simulator.metrics import average_cumulative_pagerank
from trapline.strategies import load_strategy
from trapline.strategies.base.inputs import CrawlHistory

_ORDERS = (
    "opic-by-directory",
    "historical-pagerank-zero",
    "historical-pagerank-parent",
    "historical-pagerank-random",
    "historical-opic-by-directory",
    "historical-pagerank-omniscient",
    "omniscient",
)
_LINKS_KEPT = 0.6
_WEBS = ("generated, 100k", "generated, 20k, 3")  # left out: they take long, or are like another


def by_directories(ground: Ground) -> CrawlHistory:
    directory = ground.inputs(load_strategy("opic-by-directory"))["directory_page"].astype(np.int64)
    was = drawn(1, "old directories", ground.graph.pages)[directory] < OLD_SHARE
    return older_crawl(ground.graph, was, drawn(1, "old links", len(ground.graph.targets)) < _LINKS_KEPT)


def first_half(ground: Ground) -> CrawlHistory:
    order = crawl(ground, load_strategy("breadth-first")).log.page
    was: NDArray[np.bool_] = np.zeros(ground.graph.pages, bool)
    was[order[: len(order) // 2]] = True
    return older_crawl(ground.graph, was)


def main(paths: list[str]) -> None:
    every = [ground for ground in grounds(paths) if not ground.name.startswith(_WEBS)]
    kinds = {"pages": lambda ground: ground.history, "directories": by_directories, "half": first_half}
    for kind, history in kinds.items():
        known = [ground._replace(history=history(ground)) for ground in every]
        print(f"\n| {kind} | {' | '.join(ground.name for ground in every)} | mean |\n{'|---' * (len(every) + 2)}|")
        for name in _ORDERS:
            strategy = load_strategy(name)
            found = [average_cumulative_pagerank(crawl(ground, strategy).log.page, ground.rank) for ground in known]
            print(f"| {name} | {' | '.join(f'{value:.3f}' for value in [*found, np.mean(found)])} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
