"""Compares opic-by-directory with the orders of the papers, as tables in Markdown: python bench/learning.py [GRAPH ...] > tables.md

GRAPH is any graph that `trapline graph info` reads; without one, the recorded graphs in TRAPLINE_DATA, the sample python-docs
and generated webs of 20,000 and 100,000 pages with three seeds each are used. One connection, w = 15 s, a page takes a second.
Tables: average cumulative PageRank; hours until half of the PageRank is fetched, since an order can also be good because it
waits; and opic-by-directory with each of its terms left out.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from strategies import Ground, _ground, _loaded, crawl

from trapline.errors import ConfigError
from trapline.graph import generate
from trapline.simulator.metrics import average_cumulative_pagerank
from trapline.simulator.timing import seconds_until
from trapline.strategies import Strategy, load_strategy, opic_by_directory

_ORDERS = (
    "breadth-first",
    "larger-sites-first",
    "opic",
    "batch-pagerank",
    "partial-pagerank",
    "opic-by-directory",
    "omniscient",
)
_PAPERS = _ORDERS[:5]
_RECORDED = (
    "uci-ics-crawl", "ku-crawl-2016", "ku-crawl-2021b", "cs-stanford", "hollins", "gr0.California", "cnr-2000",
)  # fmt: skip
_WEBS = [(pages, pages // 50, seed) for pages in (20_000, 100_000) for seed in (1, 2, 3)]
_TERMS = {
    "without a(d)": {"OWN_WEIGHT": 0.0},
    "without a(f)": {"FOUND_WEIGHT": 0.0},
    "without C": {"OWN_BONUS": 0.0},
    "without D": {"FOUND_BONUS": 0.0},
    "without C and D": {"OWN_BONUS": 0.0, "FOUND_BONUS": 0.0},
    "C and D three times": {"OWN_BONUS": 0.9, "FOUND_BONUS": 0.3},
    "A and B three times": {"OWN_WEIGHT": 0.3, "FOUND_WEIGHT": 0.9},
    "K = 1": {"SHRINKAGE": 1.0},
    "K = 10": {"SHRINKAGE": 10.0},
}


def grounds(paths: list[str]) -> Iterator[Ground]:
    folder = Path(os.environ.get("TRAPLINE_DATA", "."))
    for path in paths or [*(str(folder / name) for name in _RECORDED), "python-docs"]:
        try:
            yield _ground(Path(path).name, _loaded(Path(path)))
        except ConfigError as error:
            print(f"skipped: {error}", file=sys.stderr)
    for pages, sites, seed in [] if paths else _WEBS:
        yield _ground(f"generated, {pages // 1000}k, {seed}", generate(pages, sites, seed=seed))


def changed(constants: dict[str, float], folder: Path) -> Strategy:
    """Return opic-by-directory with other constants, as a user's file: compiled code keeps the constants of its source."""
    rows = Path(opic_by_directory.__file__).read_text().splitlines()
    row = next(number for number, text in enumerate(rows) if text.startswith("SEED_N"))
    rows[row:row] = [f"{name} = {value}" for name, value in constants.items()]
    file = folder / f"changed{len(list(folder.iterdir()))}.py"
    file.write_text("\n".join(rows))
    return load_strategy(str(file))


def quality(ground: Ground, strategy: Strategy) -> tuple[float, float]:
    """Return average cumulative PageRank, and the hours until half of the PageRank is fetched."""
    log = crawl(ground, strategy).log
    return average_cumulative_pagerank(log.page, ground.rank), seconds_until(log, ground.rank, (0.5,))[0] / 3600


def table(title: str, names: list[str], every: list[Ground], values: dict[tuple[str, str], float], digits: int) -> None:
    print(f"\n{title}\n\n| | {' | '.join(ground.name for ground in every)} | mean |\n{'|---' * (len(every) + 2)}|")
    for name in names:
        row = [values[name, ground.name] for ground in every]
        print(f"| {name} | {' | '.join(f'{value:.{digits}f}' for value in [*row, np.mean(row)])} |", flush=True)


def main(paths: list[str]) -> None:
    from tempfile import TemporaryDirectory

    every = list(grounds(paths))
    found = {(name, ground.name): quality(ground, load_strategy(name)) for name in _ORDERS for ground in every}
    average, hours = ({key: value[at] for key, value in found.items()} for at in (0, 1))
    for ground in every:
        average["best paper", ground.name] = max(average[name, ground.name] for name in _PAPERS)
    table("Average cumulative PageRank", [*_ORDERS, "best paper"], every, average, 3)
    table("Hours until half of the PageRank", list(_ORDERS), every, hours, 2)
    with TemporaryDirectory() as folder:
        for name, constants in _TERMS.items():
            strategy = changed(constants, Path(folder))
            average |= {(name, ground.name): quality(ground, strategy)[0] for ground in every}
    table("Ablation: average cumulative PageRank", ["opic-by-directory", *_TERMS], every, average, 3)


if __name__ == "__main__":
    main(sys.argv[1:])
