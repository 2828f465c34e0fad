"""The same Scrapy spider with Scrapy's scheduler and with ours: python bench/live/scrapy_orders.py [--web nginx] [options]

The spider follows all links for a fixed time, first with Scrapy's scheduler, then with ours and each strategy. There are two webs:

testweb  a generated web on servers as measured (`--servers`), crawled with a delay
nginx    the static pages of `make bench-live`: 100 sites on nginx, crawled without delay, one request per site at a time

Pages, PageRank and violations are read from the log of the servers, which shares no code with Scrapy or with the scheduler. A violation
is a request that arrives before the last answer of its site has ended and the delay has passed since then. Scrapy counts its delay from
the beginning of a request, so it breaks this rule by design; it waits the whole delay here, not .5 to 1.5 times the delay as by default.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

import nginx
import numpy as np
import pages

from trapline.graph import Graph, generate, graph_from_edges, pagerank
from trapline.servers.model import model_named, sped_up
from trapline.servers.sampled import modelled_servers
from trapline.testweb import Promise, build_web, check, serve

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


class Requests(NamedTuple):
    """The answered requests for pages of one crawl, in the order of their end, and what else its servers saw."""

    page: np.ndarray
    end_s: np.ndarray  # from the first request
    number: int
    violations: int


class Web(NamedTuple):
    """A web that is being served."""

    graph: Graph
    seeds: list[str]
    seen: Callable[[], int]
    """how many requests have arrived so far"""
    requests: Callable[[], Requests]


class Measured(NamedTuple):
    name: str
    pages: int
    per_second: float  # until the time was over, or the last page was fetched
    half: float  # share of the PageRank that was fetched in half of the time
    whole: float
    requests: int
    violations: int


# ---- testweb: servers as measured


@contextmanager
def served_by_testweb(args: argparse.Namespace) -> Iterator[Web]:
    graph = generate(args.pages, args.sites, seed=1)
    servers = modelled_servers(graph, sped_up(model_named(args.servers), args.times), seed=1)
    web = build_web(graph, names="address", sites_per_address=1, seed=1, servers=servers)
    with serve(web) as server:
        yield Web(
            graph, server.seed_urls, lambda: len(server.log()), lambda: _logged_by_testweb(server.log(), args.delay)
        )


def _logged_by_testweb(log: Any, delay_s: float) -> Requests:
    is_page = (log.page >= 0) & ~np.isnan(log.end_s)
    found = check(log, Promise(delay_s=delay_s, per_connection=1))
    return Requests(log.page[is_page], log.end_s[is_page] - log.arrival_s.min(), len(log), found.violations)


# ---- nginx: the pages of `make bench-live`

_NGINX_SITES = 100
_HREF = re.compile(r'<a [^>]*href="([^"]+)"')
_LINE = re.compile(r"(\d+) http://([\d.]+):\d+(\S+) ([\d.]+) ([\d.]+)")
_CLOCK_S = 0.002  # both times of a line of nginx are rounded to milliseconds


@contextmanager
def served_by_nginx(args: argparse.Namespace) -> Iterator[Web]:
    per_site = args.nginx_pages // _NGINX_SITES
    addresses = [pages.address(site) for site in range(_NGINX_SITES)]
    [port] = nginx.free_ports(addresses, 1)
    with tempfile.TemporaryDirectory() as scratch:
        folder, log = Path(scratch) / "web", Path(scratch) / "nginx" / "access.log"
        pages.write(folder, _NGINX_SITES, per_site, port)
        numbers, graph = _linked(folder, per_site, port)
        listener = nginx.Listener(addresses, port, f"{folder}/$server_addr")
        with nginx.serving([listener], log.parent, log=True):
            seeds = [pages.origin(site, port) + "/" for site in range(_NGINX_SITES)]
            yield Web(
                graph, seeds, lambda: log.stat().st_size, lambda: _logged_by_nginx(log, numbers, port, args.delay)
            )


def _linked(folder: Path, per_site: int, port: int) -> tuple[dict[str, int], Graph]:
    """Return the number of each URL, and the graph of the links in the written pages."""
    urls = [(site, place) for site in range(_NGINX_SITES) for place in pages.places(per_site)]
    numbers = {pages.origin(site, port) + place.path: number for number, (site, place) in enumerate(urls)}
    ends = [
        (number, numbers[urljoin(pages.origin(site, port) + place.path, href)])
        for number, (site, place) in enumerate(urls)
        for href in _HREF.findall((folder / pages.address(site) / place.file).read_text())
    ]
    return numbers, graph_from_edges(np.array(ends), ids_per_site=per_site)


def _logged_by_nginx(log: Path, numbers: dict[str, int], port: int, delay_s: float) -> Requests:
    """Read the log."""
    found, last_end, violations = [], dict[str, float](), 0
    for line in sorted(_LINE.findall(log.read_text()), key=lambda line: float(line[3]) - float(line[4])):
        status, host, path, end_s, took_s = line
        begin_s = float(end_s) - float(took_s)
        violations += begin_s + _CLOCK_S < last_end.get(host, 0.0) + delay_s
        last_end[host] = max(float(end_s), last_end.get(host, 0.0))
        found.append((begin_s, float(end_s), numbers.get(f"http://{host}:{port}{path}", -1) if status == "200" else -1))
    begin, end, page = (np.array(column) for column in zip(*sorted(found, key=lambda row: row[1]), strict=True))
    return Requests(page[page >= 0].astype(int), (end - begin.min())[page >= 0], len(found), violations)


# ---- one crawl


def crawled(name: str, web: Web, value: np.ndarray, args: argparse.Namespace) -> Measured:
    """Let the spider crawl the web, and read the log. `name`: Scrapy, or a strategy of ours."""
    with tempfile.TemporaryDirectory() as scratch:
        seeds = Path(scratch) / "seeds.json"
        seeds.write_text(json.dumps(web.seeds))
        requests = run(
            [sys.executable, "-c", SPIDER, json.dumps(settings(name, args, scratch)), str(seeds)], web, args.seconds
        )
    first = np.unique(requests.page, return_index=True)[1]
    page, end_s = requests.page[first], requests.end_s[first]
    half, whole = (float(value[page[end_s <= share * args.seconds]].sum()) for share in (0.5, 1.0))
    fetched = int((end_s <= args.seconds).sum())
    per_second = fetched / min(args.seconds, float(end_s.max()))
    return Measured(name, fetched, per_second, half, whole, requests.number, requests.violations)


def settings(name: str, args: argparse.Namespace, scratch: str) -> dict[str, Any]:
    common = {
        "CONCURRENT_REQUESTS": args.connections,
        "DOWNLOAD_DELAY": args.delay,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "DOWNLOAD_TIMEOUT": 60,
        "DOWNLOAD_MAXSIZE": 1 << 26,
        "ROBOTSTXT_OBEY": False,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "JOBDIR": f"{scratch}/job",
    }
    if not args.delay:
        common["CONCURRENT_REQUESTS_PER_DOMAIN"] = 1
    if name == "Scrapy":
        return common
    return {**common, "SCHEDULER": "trapline.scrapy.Scheduler", "TRAPLINE_STRATEGY": name}


def run(command: list[str], web: Web, seconds: float) -> Requests:
    """Run the spider for this time, counted from its first request, and return the requests of that time."""
    spider = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while spider.poll() is None and not web.seen():
            time.sleep(0.1)
        if not web.seen():
            sys.exit("the spider ended before its first request; its messages are above")
        began = time.monotonic()
        while spider.poll() is None and time.monotonic() - began < seconds:
            time.sleep(0.1)
        return web.requests()
    finally:
        spider.send_signal(signal.SIGINT)
        try:
            spider.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            spider.kill()
            spider.wait()


_COLUMNS = (
    "scheduler",
    "pages",
    "pages/s",
    "PageRank at half the time",
    "at the end",
    "times Scrapy's at half",
    "requests",
    "violations",
)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--web", choices=("testweb", "nginx"), default="testweb")
    parser.add_argument("--pages", type=int, default=20_000, help="pages of testweb [20000]")
    parser.add_argument("--sites", type=int, default=1_000, help="sites of testweb [1000]")
    parser.add_argument("--nginx-pages", type=int, default=30_000, help="pages on nginx [30000]")
    parser.add_argument("--seconds", type=float, default=300.0, help="time of each crawl [300]")
    parser.add_argument("--delay", type=float, help="DOWNLOAD_DELAY [1; nginx: 0]")
    parser.add_argument("--connections", type=int, help="CONCURRENT_REQUESTS [64; nginx: 100]")
    parser.add_argument("--servers", default="measured-tcp", help="model of servers, or its file [measured-tcp]")
    parser.add_argument("--times", type=float, default=1.0, help="how many times as fast servers are [1]")
    parser.add_argument("--strategies", default="larger-sites-first,opic,crawl-ability")
    parser.add_argument("--json", type=Path, help="file for all numbers")
    args = parser.parse_args()
    by_web = {"testweb": (1.0, 64), "nginx": (0.0, 100)}[args.web]
    args.delay = by_web[0] if args.delay is None else args.delay
    args.connections = args.connections or by_web[1]
    return args


def main() -> None:
    args = options()
    found: list[Measured] = []
    print(f"| {' | '.join(_COLUMNS)} |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in ("Scrapy", *args.strategies.split(",")):
        # Each crawl has servers, and a log, of its own.
        with served_by_nginx(args) if args.web == "nginx" else served_by_testweb(args) as web:
            found.append(crawled(name, web, pagerank(web.graph), args))
        one, base = found[-1], found[0].half
        times = f"{one.half / base:.2f}" if base else "-"
        cells = [name, f"{one.pages:,}", f"{one.per_second:.1f}", f"{one.half:.3f}", f"{one.whole:.3f}", times]
        print(f"| {' | '.join(cells)} | {one.requests:,} | {one.violations:,} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps([one._asdict() for one in found], indent=1) + os.linesep)


if __name__ == "__main__":
    main()
