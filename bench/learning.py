"""Compares opic-by-directory with the orders of the papers, as tables in Markdown: python bench/learning.py [GRAPH ...] > tables.md

GRAPH is any graph that `trapline graph info` reads; without one, the recorded graphs in TRAPLINE_DATA, the sample python-docs
and generated webs of 20,000 and 100,000 pages with three seeds each are used. One connection, w = 15 s, a page takes a second.
Tables: average cumulative PageRank; hours until half of the PageRank is fetched, since an order can also be good because it
waits; and opic-by-directory with each of its terms left out.

`--curves FILE.png` draws the share of PageRank against the share of pages instead. `--by-time` prints other tables: what
the crawls fetch in time, under the conditions of `trapline crawl` (servers as measured, k = 10), as means of three seeds.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import strategies
from strategies import Ground, crawl, half_s, shares_at, shares_over_time

from trapline.report.plot import dress, new_figure, plain, png_of
from trapline.report.svg import COLOURS, look
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
_BY_TIME_SEEDS = 3
_WEBS = (
    "uci-ics-crawl", "ku-crawl-2016", "ku-crawl-2021b", "cs-stanford", "hollins", "gr0.California", "cnr-2000", "python-docs",
    *(f"generated:{pages}:{pages // 50}:{seed}" for pages in (20_000, 100_000) for seed in (1, 2, 3)),
)  # fmt: skip
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


def grounds(names: list[str]) -> Iterator[Ground]:
    return strategies.grounds(names or _WEBS)


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


_BY_TIME = ("breadth-first", "opic", "opic+crawl-ability", "opic-by-directory", "opic-by-directory+crawl-ability")
_CONDITIONS = ((10, 15.0), (100, 15.0), (100, 1.0))  # connections; delay in seconds


def measures_in_time(ground: Ground, connections: int, delay_s: float) -> dict[str, list[float]]:
    """Return for each strategy the share of the PageRank that it fetches in a third and in half of the time of breadth-first, and the
    minutes until half of the PageRank is fetched; means over seeds."""
    found: dict[str, list[list[float]]] = {name: [] for name in _BY_TIME}
    for seed in range(_BY_TIME_SEEDS):
        crawls = {name: shares_over_time(ground, name, connections, delay_s, seed) for name in _BY_TIME}
        end_s, _ = crawls["breadth-first"]
        until_s = float(end_s[-1])
        for name, (end_s, share) in crawls.items():
            found[name].append([*shares_at(end_s, share, (until_s / 3, until_s / 2)), half_s(end_s, share) / 60])
    return {name: np.mean(rows, axis=0).tolist() for name, rows in found.items()}


def by_time(every: list[Ground]) -> None:
    for connections, delay_s in _CONDITIONS:
        found = {ground.name: measures_in_time(ground, connections, delay_s) for ground in every}
        under = f"{connections} connections, w = {delay_s:g} s"
        titles = [f"PageRank at {part} of the time of breadth-first: {under}" for part in ("1/3", "1/2")]
        for at, title in enumerate((*titles, f"Minutes until half of the PageRank: {under}")):
            values = {(name, web): measures[name][at] for web, measures in found.items() for name in _BY_TIME}
            table(title, list(_BY_TIME), every, values, 3 if at < len(titles) else 1)


_CURVES = ("breadth-first", "opic", "partial-pagerank", "opic-by-directory", "omniscient")
_COLUMNS = 4


def curves(every: list[Ground], file: Path) -> None:
    """Draw a panel for each graph: the share of PageRank against the share of pages fetched, less the share of a random order."""
    rows = math.ceil(len(every) / _COLUMNS)
    figure = new_figure(3.4 * _COLUMNS, 2.7 * rows + 0.4, 80)
    for number, ground in enumerate(every):
        axes: Any = figure.add_subplot(rows, _COLUMNS, number + 1)
        for index, name in enumerate(_CURVES):
            order = crawl(ground, load_strategy(name)).log.page
            gained = np.cumsum(ground.rank[order]) / ground.rank[order].sum()
            pages = np.arange(1, len(order) + 1) / len(order)
            axes.plot(pages, gained - pages, label=name, linewidth=1.4, color=COLOURS[look(index)[0]])
        axes.set_title(plain(ground.name), fontsize=10)
        axes.set_xlim(0.0, 1.0)
        axes.axhline(0.0, color="#707070", linewidth=0.8)
        dress(axes)
        if number == 0:
            handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
    figure.supxlabel("share of the pages fetched", fontsize=10)
    figure.supylabel("share of PageRank, less that of a random order", fontsize=10)
    file.write_bytes(png_of(figure))


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
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("graphs", nargs="*")
    options.add_argument("--by-time", action="store_true")
    options.add_argument("--curves", type=Path, metavar="FILE.png")
    args = options.parse_args()
    if args.curves:
        curves(list(grounds(args.graphs)), args.curves)
    elif args.by_time:
        by_time(list(grounds(args.graphs)))
    else:
        main(args.graphs)
