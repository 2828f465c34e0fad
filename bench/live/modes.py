"""Compares live crawls in every mode with simulated ones of the same web: python bench/live/modes.py

`testweb` serves a generated web. Each case is crawled by real processes, and in simulated time with the same owners of pages, seeds,
strategy, connections, delays and response time. A case with a limit stops when so many pages were downloaded, by all processes
together. Coverage and overlap of the other cases do not depend on time, so that both crawls must agree exactly.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ending import end_in_order
from numpy.typing import NDArray

from trapline.cli import run
from trapline.fetch.dns import hosts_text
from trapline.frontier import Rules
from trapline.graph import Graph, generate, save
from trapline.graph.strings import StoredStrings
from trapline.parallel import CROSS_OVER, EXCHANGE, FIREWALL
from trapline.parallel.partition import Partitioning, most_linked
from trapline.parallel.simulated.crawl import ExchangeRules, ParallelPlan, simulate_parallel
from trapline.parallel.simulated.measures import judge, random_seeds
from trapline.servers.sampled import constant_servers
from trapline.strategies import load_strategy
from trapline.testweb import Behaviour, Served, build_web, serve

_STRATEGY = "backlink-count"
_LATENCY_S, _STEP_S = 0.02, 0.1
_OWN = ("--own-hosts", "example")  # the names of the hosts of a generated web end with it


class Case(NamedTuple):
    mode: str
    kind: str = "site-hash"
    every: int = 0  # pages between two exchanges
    replicate: float = 0.0  # share of all pages
    downloads: float = 0.0  # share of all pages after which the crawl stops; 0: it goes on to its end

    @property
    def name(self) -> str:
        every = f", every {self.every:,} pages" if self.every else ""
        known = f", {self.replicate:.0%} replicated" if self.replicate else ""
        limit = f", after {self.downloads:.0%} of the pages" if self.downloads else ""
        return f"{self.mode}, {self.kind}{every}{known}{limit}"


class Measured(NamedTuple):
    downloaded: int
    distinct: int
    reachable: int
    urls: int

    def cells(self) -> tuple[str, str, str]:
        overlap = (self.downloaded - self.distinct) / self.distinct if self.distinct else nan
        return f"{self.distinct / self.reachable:.3f}", f"{overlap:.3f}", f"{self.urls / max(1, self.downloaded):.3f}"


CASES = (
    Case(FIREWALL),
    Case(CROSS_OVER, downloads=0.5),
    Case(CROSS_OVER, downloads=1.0),
    Case(CROSS_OVER, downloads=1.5),
    Case(CROSS_OVER),
    Case(EXCHANGE, every=50),
    Case(EXCHANGE, every=200),
    Case(EXCHANGE, every=10_000),
    Case(EXCHANGE, every=50, replicate=0.01),
    Case(EXCHANGE, "url-hash", every=50),
)


class World(NamedTuple):
    server: Served
    web: Graph  # with the names that the server gives to pages and sites
    hosts: Path
    saved: Path  # the graph, as an older crawl for --in-links
    processes: int
    seeds: int  # for each process
    connections: int
    rules: Rules

    def seeds_of(self, partitioning: Partitioning) -> NDArray[np.int32]:
        return random_seeds(partitioning.owners(self.web), self.processes, self.seeds, seed=1)


def simulated(case: Case, world: World) -> Measured:
    web, partitioning = world.web, Partitioning(case.kind, world.processes)
    popular = most_linked(web, round(case.replicate * web.pages)) if case.replicate else None
    rules = ExchangeRules(case.every or 1, replicated=popular)
    most = round(case.downloads * web.pages) or None
    servers = constant_servers(_LATENCY_S)
    crawl = simulate_parallel(
        web,
        load_strategy(_STRATEGY),
        world.rules,
        ParallelPlan(case.mode, partitioning, rules, step_s=_STEP_S),
        seeds=world.seeds_of(partitioning),
        servers=servers,
        connections=world.connections,
        most=most,
    )
    found = judge(crawl, web, world.rules, servers, np.ones(web.pages), most)
    return Measured(found.pages_downloaded, found.pages_distinct, found.pages_reachable, found.urls_exchanged)


def live(case: Case, world: World, folder: Path, reachable: int) -> Measured:
    partitioning = Partitioning(case.kind, world.processes)
    seeds = [world.server.web.url(page) for page in world.seeds_of(partitioning).tolist()]
    command = ["crawl", *seeds, "-o", folder, *options(world), *typed(case, world)]
    if run(list(map(str, command))):
        raise SystemExit(f"the crawl in mode {case.name} failed; its message is above")
    found = json.loads((folder / "summary.json").read_text())
    downloaded = found["pages_fetched"] + found["pages_refetched"]
    return Measured(downloaded, found["pages_fetched"], reachable, found["urls_exchanged"])


def options(world: World) -> Sequence[object]:
    rules = ("--delay", world.rules.delay_s, "--per-connection", world.rules.per_connection, "--pause", 0)
    network = ("--hosts", world.hosts, "--allow-private", "--scope", "any", "--connections", world.connections)
    return "--processes", world.processes, "--strategy", _STRATEGY, *rules, *network, *_OWN, "--quiet"


def typed(case: Case, world: World) -> Sequence[object]:
    known = round(case.replicate * world.web.pages)
    return (
        *("--mode", case.mode, "--partition", case.kind),
        *(("--exchange-every", case.every) if case.every else ()),
        *(("--replicate", known, "--in-links", world.saved) if known else ()),
        *(("--max-pages", round(case.downloads * world.web.pages)) if case.downloads else ()),
    )


def named(graph: Graph, server: Served) -> Graph:
    urls = StoredStrings.of(server.web.url(page) for page in range(graph.pages))
    return replace(graph, urls=urls, site_names=StoredStrings.of(server.web.names))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2_000, help="pages of the web [2000]")
    parser.add_argument("--sites", type=int, default=60, help="sites of the web [60]")
    parser.add_argument("--processes", type=int, default=4, help="number of processes [4]")
    parser.add_argument("--seeds", type=int, default=5, help="random seeds of each process [5]")
    parser.add_argument("--connections", type=int, default=10, help="connections of each process [10]")
    parser.add_argument("--delay", type=float, default=0.5, help="w, in seconds [0.5]")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    end_in_order()
    graph = generate(args.pages, args.sites, max_site_pages=4 * args.pages // args.sites)
    with tempfile.TemporaryDirectory() as scratch, serve(build_web(graph, Behaviour(latency_s=_LATENCY_S))) as server:
        hosts, saved = Path(scratch) / "hosts", Path(scratch) / "graph"
        hosts.write_text(hosts_text({name: [address] for name, address in server.hosts.items()}))
        web = named(graph, server)
        save(web, saved)
        rules = Rules(delay_s=args.delay, per_connection=10)
        world = World(server, web, hosts, saved, args.processes, args.seeds, args.connections, rules)
        print(f"{web.pages:,} pages, {web.links:,} links, {web.sites} sites, {args.processes} processes\n")
        print("| crawl | coverage | live | overlap | live | URLs exchanged per page | live |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for number, case in enumerate(CASES):
            there = simulated(case, world)
            here = live(case, world, Path(scratch) / str(number), there.reachable)
            pairs = zip(there.cells(), here.cells(), strict=True)
            print(f"| {case.name} | {' | '.join(f'{one} | {other}' for one, other in pairs)} |", flush=True)


if __name__ == "__main__":
    main()
