"""The same Scrapy spider with Scrapy's scheduler and with ours: python bench/scrapy_orders.py [options]

A generated web is served over loopback by servers as measured (`--servers`). The spider follows all links for a fixed time, first with
Scrapy's scheduler, then with ours and each strategy. Pages, PageRank and violations of the delay are read from the log of the servers,
which shares no code with Scrapy or with the scheduler.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trapline.graph import Graph, generate, pagerank
from trapline.servers.model import model_named, sped_up
from trapline.servers.sampled import modelled_servers
from trapline.testweb import Promise, RequestLog, build_web, check, serve

_ENDS_WITHIN_S = 60.0
SPIDER = """
import json, sys
import scrapy
from scrapy.crawler import CrawlerProcess

class Pages(scrapy.Spider):
    name = "pages"

    def parse(self, response):
        yield from response.follow_all(css="a")

settings = json.loads(sys.argv[1])
process = CrawlerProcess(settings)
process.crawl(Pages, start_urls=json.load(open(sys.argv[2])))
process.start()
"""


class Measured(NamedTuple):
    name: str
    pages: int
    half: float  # share of the PageRank that was fetched in half of the time
    whole: float
    requests: int
    violations: int


def crawled(name: str, graph: Graph, value: Any, args: argparse.Namespace) -> Measured:
    """Serve the web, let the spider crawl it, and read the log. `name`: Scrapy, or a strategy of ours."""
    servers = modelled_servers(graph, sped_up(model_named(args.servers), args.times), seed=1)
    web = build_web(graph, names="address", sites_per_address=1, seed=1, servers=servers)
    with serve(web) as server, tempfile.TemporaryDirectory() as scratch:
        seeds = Path(scratch) / "seeds.json"
        seeds.write_text(json.dumps(server.seed_urls))
        log = run(
            [sys.executable, "-c", SPIDER, json.dumps(settings(name, args, scratch)), str(seeds)], server, args.seconds
        )
    return measured(name, log, value, args)


def settings(name: str, args: argparse.Namespace, scratch: str) -> dict[str, Any]:
    common = {
        "CONCURRENT_REQUESTS": args.connections,
        "DOWNLOAD_DELAY": args.delay,
        "DOWNLOAD_TIMEOUT": 60,
        "DOWNLOAD_MAXSIZE": 1 << 26,
        "ROBOTSTXT_OBEY": False,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "JOBDIR": f"{scratch}/job",
    }
    if name == "Scrapy":
        return common
    return {**common, "SCHEDULER": "trapline.scrapy.Scheduler", "TRAPLINE_STRATEGY": name}


def run(command: list[str], server: Any, seconds: float) -> RequestLog:
    """Run the spider for this time, counted from its first request, and return the log of that time."""
    spider = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while spider.poll() is None and not len(server.log()):
            time.sleep(0.1)
        began = time.monotonic()
        while spider.poll() is None and time.monotonic() - began < seconds:
            time.sleep(0.1)
        log: RequestLog = server.log()
    finally:
        spider.send_signal(signal.SIGINT)
        try:
            spider.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            spider.kill()
            spider.wait()
    return log


def measured(name: str, log: RequestLog, value: Any, args: argparse.Namespace) -> Measured:
    is_page = (log.page >= 0) & ~np.isnan(log.end_s)
    page, end_s = log.page[is_page], log.end_s[is_page] - log.arrival_s.min()
    first = np.unique(page, return_index=True)[1]
    page, end_s = page[first], end_s[first]
    half, whole = (float(value[page[end_s <= share * args.seconds]].sum()) for share in (0.5, 1.0))
    found = check(log, Promise(delay_s=args.delay, per_connection=1))
    return Measured(name, int((end_s <= args.seconds).sum()), half, whole, len(log), found.violations)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--sites", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=300.0, help="time of each crawl [300]")
    parser.add_argument("--delay", type=float, default=1.0, help="DOWNLOAD_DELAY [1]")
    parser.add_argument("--connections", type=int, default=64, help="CONCURRENT_REQUESTS [64]")
    parser.add_argument("--servers", default="measured-tcp", help="model of servers, or its file [measured-tcp]")
    parser.add_argument("--times", type=float, default=1.0, help="how many times as fast servers are [1]")
    parser.add_argument("--strategies", default="larger-sites-first,opic,crawl-ability")
    parser.add_argument("--json", type=Path, help="file for all numbers")
    return parser.parse_args()


def main() -> None:
    args = options()
    graph = generate(args.pages, args.sites, seed=1)
    value = pagerank(graph)
    found = []
    print(
        "| scheduler | pages | PageRank at half the time | at the end | times Scrapy's at half | requests | violations |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in ("Scrapy", *args.strategies.split(",")):
        one = crawled(name, graph, value, args)
        found.append(one)
        ratio = f"{one.half / found[0].half:.2f}" if found[0].half else "-"
        print(
            f"| {name} | {one.pages:,} | {one.half:.3f} | {one.whole:.3f} | {ratio} | {one.requests:,} | {one.violations:,} |",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps([one._asdict() for one in found], indent=1) + os.linesep)


if __name__ == "__main__":
    main()
