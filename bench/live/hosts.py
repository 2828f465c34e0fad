"""Measures one crawl on two hosts, over lines of different quality: PYTHONPATH=. python bench/live/hosts.py. Needs root and Linux.

There are four partitions, two in each of two network namespaces; the coordinator runs with the first two. A third namespace has
the web, at the same distance from both. There are two webs: a generated one, where the largest site determines the time on any
line; and one of chains that go to another site with every page, so that half of all pages wait for the line. Each row is a crawl
of a whole web. "Missing" and "twice" compare the requests that testweb received with those of a crawl by one process. The traffic
between the hosts is counted on the line: every byte of every packet, including retransmissions.
"""

import argparse
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from ending import end_in_order

from tests.parallel.hosts_world import Cut, batches_between, chained_web, crawl_on, cut_off, options_for, served_to
from tests.parallel.namespaces import Hosts, missing, two_hosts
from tests.parallel.processes_world import meanwhile, requests_of_pages
from trapline.cli import run
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.run import run_crawl
from trapline.crawler.files.opening import Prepared, opened
from trapline.crawler.files.resume import strategy_of
from trapline.crawler.inspect.summary import write_summary
from trapline.graph.generate import generate
from trapline.testweb import Behaviour, Promise, ServedWeb, build_web, check

_CONNECTIONS = 20  # of each partition


class Case(NamedTuple):
    name: str
    hosts: int
    delay_s: float = 0.0
    loss: float = 0.0
    cut_s: float = 0.0


class Measured(NamedTuple):
    summary: dict[str, Any]
    requests: Counter[int]  # number of requests for each page
    violations: int
    message_batches: int
    line_bytes: int
    lost: int  # packets
    first_batch_s: float


def measure(case: Case, web: ServedWeb, promise: Promise, folder: Path) -> Measured:
    cut = Cut()
    with two_hosts(case.delay_s, case.loss) as hosts, served_to(hosts, web) as server:
        options = options_for(server, web.sites, promise.delay_s, promise.per_connection, _CONNECTIONS)
        cutting = meanwhile(lambda: cut_off(hosts, folder, web.pages // 4, case.cut_s, cut))
        with cutting if case.cut_s else nullcontext():
            crawl(case, hosts, folder, options)
        requests, found, ways = requests_of_pages(server), check(server.log(), promise), hosts.line.counts()
    message_batches = batches_between(folder) if case.hosts == 2 else 0
    line_bytes, lost = (sum(way[name] for way in ways) for name in ("bytes", "lost"))
    return Measured(
        write_summary(folder), requests, found.violations, message_batches, line_bytes, lost, cut.first_batch_s
    )


def crawl(case: Case, hosts: Hosts, folder: Path, options: CrawlOptions) -> None:
    if case.hosts == 2:
        crawl_on(hosts, folder, options)
        return
    with hosts.near.entered():
        run_crawl(opened(Prepared(folder, options, strategy_of(options), new=True)), nullcontext(lambda _: None))


def row(case: Case, found: Measured, alone: Measured) -> str:
    lacking = len(alone.requests.keys() - found.requests.keys())
    twice = sum(found.requests.values()) - len(found.requests)
    share = found.line_bytes / found.summary["bytes"]
    first = f"{found.first_batch_s:.1f}" if case.cut_s else ""
    return (
        f"| {case.name} | {found.summary['seconds']:.1f} | {len(found.requests):,} | {lacking} | {twice} | {found.violations} "
        f"| {found.message_batches:,} | {found.line_bytes / 1e3:,.0f} | {share:.2%} | {found.lost} | {first} |"
    )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=3_000, help="pages of each web [3000]")
    parser.add_argument("--sites", type=int, default=100, help="sites of each web [100]")
    parser.add_argument("--delay", type=float, default=0.1, help="w, in seconds [0.1]")
    parser.add_argument("--line-delay", type=float, default=0.1, help="delay of a packet, each way, in seconds [0.1]")
    parser.add_argument("--loss", type=float, default=0.01, help="share of lost packets [0.01]")
    parser.add_argument("--cut", type=float, default=20.0, help="seconds for which the line is cut [20]")
    return parser.parse_args()


def main() -> None:
    args = options()
    end_in_order()
    if why := missing():
        sys.exit(why)
    run(["warmup"])
    webs = {
        "generated": build_web(generate(args.pages, args.sites), Behaviour(latency_s=0.02)),
        "chains": chained_web(args.sites, args.pages // args.sites),
    }
    print(
        "| web | line | s | pages | missing | twice | violations "
        "| batches | KB on the line | of page bytes | lost | first batch, s |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, web in webs.items():
        compare(name, web, args)


def compare(name: str, web: ServedWeb, args: argparse.Namespace) -> None:
    line = (args.line_delay, args.loss)
    bad = f"{1e3 * args.line_delay:g} ms, {args.loss:.0%} lost"
    cases = (
        Case("one process", 1),
        Case("two hosts, perfect line", 2),
        Case(bad, 2, *line),
        Case(f"{bad}, cut for {args.cut:g} s", 2, *line, args.cut),
    )
    alone = None
    with tempfile.TemporaryDirectory() as scratch:
        for number, case in enumerate(cases):
            found = measure(case, web, Promise(args.delay, 4), Path(scratch) / str(number))
            alone = alone or found
            print(f"| {name} {row(case, found, alone)}", flush=True)


if __name__ == "__main__":
    main()
