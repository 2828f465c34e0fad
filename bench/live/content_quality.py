"""Measures orders by the quality of content, and what scoring costs: python bench/live/content_quality.py [--trees | --rates]

--trees: nginx serves document trees, one after the other. Each is crawled whole with --quality content:text; `trapline graph convert`
keeps the scores; the simulator then crawls the graph by several orders, with one connection and one page per visit. The tables have the
harvest rate: the share of pages with at least the given score among the first 10, 25 and 50 % of the pages fetched.

--rates: pages per second of a crawl of a generated web on loopback, without a scorer, with content:text, and with a function that sleeps 5
ms for each page, in one process and in several. A scorer that sleeps stands for one that computes elsewhere, on another core or another
machine.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import nginx
import numpy as np
from contestants import trapline

from trapline import compare
from trapline.graph import Graph, generate, load_graph
from trapline.report.record import CrawlRecord
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


def harvests(graph: Path, least: float | None, seeds: Path) -> Iterator[tuple[str, CrawlRecord]]:
    for name in _ORDERS:
        options = _ONE_BY_ONE | {"quality": "content", "harvest_quality": least, "seeds": seeds}
        yield name, compare(str(graph), [name], seed=1, **options).records[0]


def tree_tables(path: Path, name: str, seeds: Path) -> None:
    graph = load_graph(path)
    scores = graph.quality
    assert scores is not None
    known = scores[scores >= 0.0]
    quantiles = ", ".join(f"{value:.3g}" for value in np.quantile(known, (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)))
    print(
        f"\n{name}: {graph.pages:,} pages, {graph.links:,} links, {len(known):,} with a score; quantiles 0, 10, 25, 50, 75, 90, 100 %:"
    )
    print(f"{quantiles}; correlation of a page's score with the mean of its parents' scores: {correlation(graph):.2f}")
    for least in (float(np.median(known)), float(np.quantile(known, 0.75))):
        rows = list(harvests(path, least, seeds))
        harvest = rows[0][1].harvest
        assert harvest is not None
        print(
            f"\nat least {least:.3g}, as {harvest.of_all:.1%} of all pages\n\n| | 10 % | 25 % | 50 % |\n|---|---|---|---|"
        )
        for order, record in rows:
            print(f"| {order} | {' | '.join(f'{share:.1%}' for share in record.harvest_rate.values())} |")


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
            path, seeds = scratch / "graph", scratch / "seeds"
            if not path.is_dir():
                scratch.mkdir(parents=True)
                crawled(tree, scratch)
            seeds.write_text("0\n")  # the page where the crawl began
            tree_tables(path, tree.package, seeds)


# ---- rates


def rate(server_args: Sequence[str], folder: Path, modules: Path, *quality: str) -> tuple[float, int]:
    """Crawl, and return pages per second and the number of scores."""
    command = trapline("crawl", *server_args, *quality, "--quiet", "-o", str(folder))
    subprocess.run(command, check=True, cwd=modules)
    summary = json.loads((folder / "summary.json").read_text())
    return summary["pages_per_second"], summary["pages_fetched"]


def rates(pages: int, repeats: int) -> None:
    cases = {
        "no scorer": (),
        "content:text": ("--quality", "content:text"),
        "5 ms, 1 process": ("--quality", "content:scorers:slow"),
        "5 ms, 4 processes": ("--quality", "content:scorers:slow", "--quality-processes", "4"),
        "5 ms, 16 processes": ("--quality", "content:scorers:slow", "--quality-processes", "16"),
    }
    with tempfile.TemporaryDirectory() as name, serve(build_web(generate(pages, 100, seed=1))) as server:
        scratch = Path(name)
        (scratch / "scorers.py").write_text(_SCORERS)
        (scratch / "hosts").write_text("".join(f"{address} {host}\n" for host, address in server.hosts.items()))
        (scratch / "seeds").write_text("\n".join(server.seed_urls))
        args = ["--seeds", "seeds", "--hosts", "hosts", "--scope", "any", "--delay", "0", "--allow-private"]
        args += ["--strategy", "mean-parent-quality"]
        for case, quality in cases.items():
            own = args if quality else [*args[:-1], "breadth-first"]
            found = [rate(own, scratch / f"{case}{run}", scratch, *quality) for run in range(repeats)]
            print(f"{case:20} {', '.join(f'{each:,.0f}' for each, _ in found)} pages/s, {found[0][1]:,} pages")


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
