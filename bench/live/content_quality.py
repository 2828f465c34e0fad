"""Measures orders by the quality of content, and what scoring costs: python bench/live/content_quality.py [--trees | --rates]

--trees: nginx serves document trees, one after the other. Each is crawled whole with --quality content:text; `trapline graph convert`
keeps the scores; the simulator then crawls the graph by several orders, with one connection and one page per visit. The tables have the
harvest rate: the share of pages with at least the given score among the first 10, 25 and 50 % of the pages fetched.

The random order is the mean of ten seeds. Rows with a constant are quality-by-directory with one thing changed.

--rates: pages per second of a crawl of a generated web on loopback, without a scorer, with content:text, and with a function that sleeps 5
ms for each page, in one process and in several. A scorer that sleeps stands for one that computes elsewhere, on another core or another
machine.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import nginx
import numpy as np
from contestants import trapline

from trapline import compare
from trapline.graph import Graph, generate, load_graph
from trapline.strategies import Strategy, load_strategy, quality_by_directory
from trapline.testweb import build_web, serve

_ADDRESS = "127.31.0.7"
_ORDERS = (
    "random",
    "breadth-first",
    "opic",
    "opic-by-directory",
    "parent-quality",
    "mean-parent-quality",
    "quality-by-directory",
    "quality",
)
_VARIANTS = {
    "without links": {"LINK_WEIGHT": 0.0},
    "without own directory": {"OWN_WEIGHT": 0.0},
    "without found from": {"FOUND_WEIGHT": 0.0},
    "K = 1": {"SHRINKAGE": 1.0},
    "K = 10": {"SHRINKAGE": 10.0},
}
_RANDOM_SEEDS = 10
_RANKED = ("--strategy", "mean-parent-quality")
_CASES = {
    "no scorer": ("--strategy", "breadth-first"),
    "content:text": (*_RANKED, "--quality", "content:text"),
    "5 ms, 1 process": (*_RANKED, "--quality", "content:scorers:slow"),
    "5 ms, 4 processes": (*_RANKED, "--quality", "content:scorers:slow", "--quality-processes", "4"),
    "5 ms, 16 processes": (*_RANKED, "--quality", "content:scorers:slow", "--quality-processes", "16"),
}
_ONE_BY_ONE = {"connections": 1, "per_connection": 1, "delay": 0.0, "pause": 0.0, "page_seconds": 1.0}
_SLEEP_S = 0.005
_SCORERS = f"import time\n\ndef slow(pages):\n    time.sleep({_SLEEP_S} * len(pages))\n    return [0.5] * len(pages)\n"


class Tree(NamedTuple):
    package: str
    folder: Path
    home: str = ""


TREES = (
    Tree("python3-doc", Path("/usr/share/doc/python3-doc/html")),
    Tree("postgresql-doc", Path("/usr/share/doc/postgresql-doc-15/html")),
)


# ---- trees


def crawled(tree: Tree, scratch: Path) -> Path:
    """Crawl the whole tree, and return the graph of the crawl."""
    [port] = nginx.free_ports([_ADDRESS], 1)
    folder, graph = scratch / "crawl", scratch / "graph"
    options = ["--scope", "host", "--delay", "0", "--allow-private", "--no-sitemaps", "--quality", "content:text"]
    command = trapline("crawl", f"http://{_ADDRESS}:{port}/{tree.home}", *options, "--quiet", "-o", str(folder))
    with nginx.serving([nginx.Listener([_ADDRESS], port, str(tree.folder.resolve()))], scratch / "nginx"):
        subprocess.run(command, check=True)
    subprocess.run(trapline("graph", "convert", str(folder), "-o", str(graph)), check=True, stdout=subprocess.DEVNULL)
    return graph


def harvests(graph: Path, least: float, scratch: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the harvest rates of each order; of the random one, the mean over some seeds."""
    (scratch / "seeds").write_text("0\n")  # the page where the crawl began
    options: dict[str, Any] = _ONE_BY_ONE | {"quality": "content", "harvest_quality": least, "seeds": scratch / "seeds"}
    for name in _ORDERS:
        seeds = range(1, _RANDOM_SEEDS + 1) if name == "random" else (1,)
        found = [compare(str(graph), [name], seed=seed, **options).records[0].harvest_rate for seed in seeds]
        yield name, {share: sum(one[share] for one in found) / len(found) for share in found[0]}
    for name, constants in _VARIANTS.items():
        strategy = changed(constants, scratch / f"{name.replace(' ', '_')}.py")
        yield (
            f"quality-by-directory, {name}",
            compare(str(graph), [strategy], seed=1, **options).records[0].harvest_rate,
        )


def changed(constants: Mapping[str, float], file: Path) -> Strategy:
    """Return quality-by-directory with other constants, as a user's file: compiled code keeps the constants of its source."""
    rows = Path(quality_by_directory.__file__).read_text().splitlines()
    row = next(number for number, text in enumerate(rows) if text.startswith("SHRINKAGE")) + 1
    rows[row:row] = [f"{name} = {value}" for name, value in constants.items()]
    file.write_text("\n".join(rows))
    return load_strategy(str(file))


def tree_tables(path: Path, name: str, scratch: Path) -> None:
    graph = load_graph(path)
    scores = graph.quality
    assert scores is not None
    known = scores[scores >= 0.0]
    quantiles = ", ".join(f"{value:.3g}" for value in np.quantile(known, (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)))
    print(
        f"\n{name}: {graph.pages:,} pages, {graph.links:,} links; scores at 0, 10, 25, 50, 75, 90, 100 %: {quantiles}"
    )
    print(
        f"correlation of the score of a page with the mean score of the pages that link to it: {correlation(graph):.2f}"
    )
    for least in sorted({float(np.median(known)), float(np.quantile(known, 0.75))}):
        print(
            f"\nat least {least:.3g}: {(scores >= least).mean():.1%} of all pages\n\n| | 10 % | 25 % | 50 % |\n|---|---|---|---|"
        )
        for order, rates in harvests(path, least, scratch):
            print(f"| {order} | {' | '.join(f'{rate:.1%}' for rate in rates.values())} |", flush=True)


def correlation(graph: Graph) -> float:
    """Return the correlation of the scores of pages with the mean scores of the pages that link to them."""
    scores = graph.quality
    assert scores is not None
    sources = np.repeat(np.arange(graph.pages), np.diff(graph.offsets))
    inside = (scores[sources] >= 0) & (scores[graph.targets] >= 0) & (sources != graph.targets)
    sums = np.bincount(graph.targets[inside], scores[sources[inside]], graph.pages)
    counts = np.bincount(graph.targets[inside], minlength=graph.pages)
    has = (counts > 0) & (scores >= 0)
    return float(np.corrcoef(scores[has], sums[has] / counts[has])[0, 1])


def trees(keep: Path | None) -> None:
    for tree in TREES:
        if not tree.folder.is_dir():
            sys.exit(f"install what is missing with: sudo apt-get install {tree.package}")
    with tempfile.TemporaryDirectory() as name:
        for tree in TREES:
            scratch = (keep or Path(name)) / tree.package
            path = scratch / "graph"
            if not path.is_dir():
                scratch.mkdir(parents=True)
                crawled(tree, scratch)
            tree_tables(path, tree.package, scratch)


# ---- rates


def rates(pages: int, repeats: int) -> None:
    """Print the rates of all cases, which take turns, because the machine may be busy for a while."""
    found: dict[str, list[float]] = {case: [] for case in _CASES}
    with tempfile.TemporaryDirectory() as name, serve(build_web(generate(pages, 100, seed=1))) as server:
        scratch = Path(name)
        (scratch / "scorers.py").write_text(_SCORERS)
        (scratch / "hosts").write_text("".join(f"{address} {host}\n" for host, address in server.hosts.items()))
        (scratch / "seeds").write_text("\n".join(server.seed_urls))
        args = ["--seeds", "seeds", "--hosts", "hosts", "--scope", "any", "--delay", "0", "--allow-private"]
        for run in range(repeats):
            for number, (case, more) in enumerate(_CASES.items()):
                folder = scratch / f"{number}-{run}"
                command = trapline("crawl", *args, *more, "--quiet", "-o", str(folder))
                subprocess.run(command, check=True, cwd=scratch)
                found[case].append(json.loads((folder / "summary.json").read_text())["pages_per_second"])
    for case, every in found.items():
        print(f"{case:20} {np.median(every):6,.0f} pages/s; {', '.join(f'{one:,.0f}' for one in every)}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trees", action="store_true", help="only the trees")
    options.add_argument("--rates", action="store_true", help="only the rates")
    options.add_argument("--keep", type=Path, help="keep crawls and graphs here, and use those that are there")
    options.add_argument("--pages", type=int, default=6_000, help="of the web for the rates")
    options.add_argument("--repeats", type=int, default=3)
    chosen = options.parse_args()
    if chosen.trees or not chosen.rates:
        trees(chosen.keep)
    if chosen.rates or not chosen.trees:
        rates(chosen.pages, chosen.repeats)


if __name__ == "__main__":
    main()
