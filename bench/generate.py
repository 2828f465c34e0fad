"""Time and memory of the graph package at full size: python bench/generate.py [pages sites]."""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from trapline.graph import generate, load_graph, measure, pagerank, save
from trapline.graph.csr import transposed
from trapline.jit import ready

Result = TypeVar("Result")


def timed(what: str, action: Callable[[], Result]) -> Result:
    started = time.perf_counter()
    result = action()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:32} {time.perf_counter() - started:8.2f} s   peak {peak_mb:6.0f} MB", flush=True)
    return result


def main(pages: int, sites: int) -> None:
    timed("load kernels", ready)
    web = timed("generate", lambda: generate(pages, sites, seed=1))
    print(f"{web.pages:,} pages, {web.links:,} links, {web.sites:,} sites")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "web"
        timed("save", lambda: save(web, folder))
        timed("load and check", lambda: load_graph(folder))
    timed("measure", lambda: measure(web))
    timed("transpose", lambda: transposed(web.offsets, web.targets))
    ranks = timed("pagerank to 1e-9", lambda: pagerank(web))
    timed("pagerank, warm, 1e-6", lambda: pagerank(web, tolerance=1e-6, start=ranks))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3])) if len(sys.argv) > 2 else main(3_500_000, 50_000)
