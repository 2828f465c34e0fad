"""Measures the speed of the frontier in order-only mode, on one core, after compilation: python bench/order.py [pages sites]

Prints pages per second of some strategies, of a bare compiled loop in the same run, and their ratio. Machines differ and
are shared with other work; ratios can be compared between machines.
"""

import resource
import sys
import time
from collections.abc import Callable

import bare

from trapline.cli.warmup import compile_all
from trapline.frontier import Rules
from trapline.graph import Graph, generate
from trapline.simulator import simulate
from trapline.strategies import pair

ORDER_ONLY = {"delay_s": 0.0, "lease_s": float("inf"), "first_connection_s": 0.0, "first_response_s": 1.0}


def bare_rate(web: Graph, loop: Callable[[Graph], object]) -> float:
    started = time.perf_counter()
    loop(web)
    return web.pages / (time.perf_counter() - started)


def frontier_rate(web: Graph, page: str, site: str, **rules: float) -> float:
    crawl = simulate(web, pair(page, site), Rules(**{**ORDER_ONLY, **rules}))  # type: ignore[arg-type]
    return len(crawl.log.page) / crawl.wall_seconds


def line(what: str, rate: float, limit: float | None = None) -> None:
    beside = "" if limit is None else f"   {rate / limit:5.2f} of the bare loop"
    print(f"{what:44} {rate / 1e3:8.0f} k pages/s{beside}", flush=True)


def main(pages: int, sites: int) -> None:
    print(f"kernels ready after {compile_all():.1f} s")
    tiny = generate(2000, 50, seed=1)
    for loop in (bare.larger_sites_first, bare.opic):
        loop(tiny)
    web = generate(pages, sites, seed=1)
    print(f"{web.pages:,} pages, {web.links:,} links, {web.sites:,} sites")
    limit = bare_rate(web, bare.larger_sites_first)
    line("bare loop, larger-sites-first", limit)
    line("larger-sites-first", frontier_rate(web, "fifo", "larger-sites-first"), limit)
    limit = bare_rate(web, bare.opic)
    line("bare loop, opic in one heap", limit)
    line("opic", frontier_rate(web, "opic", "top-page"), limit)
    line("opic, w = 15, k = 50", frontier_rate(web, "opic", "top-page", delay_s=15.0, per_connection=50), limit)
    line("opic x crawl-ability, k = 50", frontier_rate(web, "opic", "crawl-ability", per_connection=50), limit)
    line("breadth-first", frontier_rate(web, "fifo", "fifo"))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    sizes = [int(size) for size in sys.argv[1:3]] or [3_500_000, 50_000]
    main(*sizes)
