"""Measures the speed of the full simulator, on one core, after compilation: python bench/simulate.py [pages sites]

Prints pages per second with r = 256 connections on servers as measured, with and without a shared link, and the ratio to
order-only mode in the same run. Then prints the cost of PageRank for batch-pagerank and partial-pagerank with 35 runs in a
crawl, and memory per page.
"""

import math
import resource
import sys
from pathlib import Path

from trapline.cli.warmup import compile_all
from trapline.frontier import Rules
from trapline.graph import Graph, generate
from trapline.servers.sampled import modelled_servers
from trapline.simulator import Network, Servers, SimulatedCrawl, constant_servers, simulate
from trapline.strategies import Strategy, strategies
from trapline.strategies.base.inputs import default_rules

CONNECTIONS = 256


def crawl(
    web: Graph, strategy: Strategy, servers: Servers, network: Network, connections: int, delay_s: float
) -> SimulatedCrawl:
    rules = Rules(delay_s=delay_s, lease_s=math.inf, first_connection_s=0.0, first_response_s=1.0)
    rules = default_rules(strategy, rules, web.pages)
    return simulate(web, strategy, rules, connections=connections, servers=servers, network=network)


def rate(done: SimulatedCrawl) -> float:
    return len(done.log.page) / done.wall_seconds


def line(what: str, done: SimulatedCrawl, limit: float) -> None:
    print(f"{what:52} {rate(done) / 1e3:8.0f} k pages/s   {rate(done) / limit:5.2f} of order only", flush=True)


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def resident_gb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e9


def main(pages: int, sites: int) -> None:
    compile_all()
    web = generate(pages, sites, seed=1)
    held = resident_gb()
    print(f"{web.pages:,} pages, {web.links:,} links, {web.sites:,} sites; {held:.2f} GB")
    larger, free, constant = strategies()["larger-sites-first"], Network(), constant_servers(1.0)
    order = crawl(web, larger, constant, free, 1, 0.0)
    limit = rate(order)
    line("larger-sites-first, order only", order, limit)
    print(
        f"{'memory of that crawl':52} {(resident_gb() - held) * 1e9 / web.pages:8.0f} bytes a page, including its log"
    )
    servers = modelled_servers(web)
    line(
        f"  r = {CONNECTIONS}, w = 15 s, a second a page", crawl(web, larger, constant, free, CONNECTIONS, 15.0), limit
    )
    line(
        f"  r = {CONNECTIONS}, w = 15 s, measured servers", crawl(web, larger, servers, free, CONNECTIONS, 15.0), limit
    )
    for bandwidth in (200e3, 2e6, 20e6):
        done = crawl(web, larger, servers, Network(bandwidth), CONNECTIONS, 15.0)
        line(f"  r = {CONNECTIONS}, w = 15 s, {bandwidth / 1e6:g} MB/s shared", done, limit)
    for name in ("batch-pagerank", "partial-pagerank"):
        done = crawl(web, strategies()[name], constant, free, 1, 0.0)
        whole = done.wall_seconds + done.score_seconds
        share = f"{done.scorings} runs of PageRank: {done.score_seconds:.1f} s, {done.score_seconds / whole:.0%}"
        print(f"{name:52} {whole:8.1f} s, of which {share}", flush=True)
    print(f"peak memory {peak_gb():.2f} GB")


if __name__ == "__main__":
    chosen = [int(size) for size in sys.argv[1:3]] or [3_500_000, 50_000]
    main(*chosen)
