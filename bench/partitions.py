"""Measures the speed of simulated parallel crawls: python bench/partitions.py [--pages 100000] [--partitions 1,8,64] [--modes exchange]

Prints pages per second, and their ratio to one ordinary simulated crawl of the same web in the same run. Every partition has one
connection, every page takes a second, and links are sent after every page.
"""

import argparse
import resource

from trapline.cli.warmup import compile_all
from trapline.frontier import Rules
from trapline.graph import Graph, generate
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.crawl import MODES, ParallelPlan, simulate_parallel
from trapline.simulator import constant_servers, simulate
from trapline.strategies import load_strategy

SERVERS = constant_servers(1.0)
RULES = Rules(delay_s=0.0, per_connection=1)


def one_crawl(web: Graph, strategy: str) -> float:
    crawl = simulate(web, load_strategy(strategy), RULES, servers=SERVERS)
    return len(crawl.log.page) / crawl.wall_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--partitions", default="1,8,64", help="numbers of partitions [1,8,64]")
    parser.add_argument("--modes", default="exchange,firewall,cross-over", help=f"of {', '.join(MODES)}")
    parser.add_argument("--strategy", default="backlink-count")
    args = parser.parse_args()
    compile_all()
    web = generate(args.pages, max(64, args.pages // 70), seed=1)
    alone = one_crawl(web, args.strategy)
    print(f"{web.pages:,} pages, {web.links:,} links, {web.sites:,} sites; one crawl: {alone / 1e3:,.0f} k pages/s")
    for mode in args.modes.split(","):
        for partitions in map(int, args.partitions.split(",")):
            plan = ParallelPlan(mode, Partitioning("site-hash", partitions))
            crawl = simulate_parallel(web, load_strategy(args.strategy), RULES, plan, seeds=web.home, servers=SERVERS)
            fetched = sum(len(log.page) for log in crawl.logs)
            rate, memory = fetched / crawl.wall_seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(
                f"{mode:12}{partitions:4} partitions: {fetched:12,} pages in {crawl.wall_seconds:7.2f} s, {rate / 1e3:7.0f} k pages/s,"
                f" {rate / alone:5.2f} of one crawl; {memory:.1f} GB at most so far",
                flush=True,
            )


if __name__ == "__main__":
    main()
