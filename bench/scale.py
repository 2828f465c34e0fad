"""Estimates the resources for a crawl of a billion pages a week from Trapline's measured costs.

    python bench/scale.py [--crawl DIR] [--simulate PAGES]

The estimate is arithmetic, except for two parts: the sizes of sites are drawn as for a generated web of that size
(graph/generate.py), and the time of a page is drawn from the model of servers (docs/server-models.md). `--crawl DIR` adds disk
space, as measured in that crawl; for a crawl of several processes, in all its partitions together. `--simulate PAGES` crawls a
web of that many pages in simulated time, with 1, 8 and 64 partitions, and compares the result with the arithmetic of
politeness; 10,000,000 pages with 1 and 8 partitions take ten minutes of processor time and 5 GB.
"""

import argparse
import math
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from trapline.crawler.files.layout import INDEX
from trapline.crawler.inspect.database_reader import open_database
from trapline.crawler.store.outbox import FETCHES, batch_factor
from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.graph import Graph, generate
from trapline.graph.generate import WebModel, site_sizes
from trapline.parallel.folder.merged import parts_of
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.crawl import EXCHANGE, ExchangeRules, ParallelPlan, simulate_parallel
from trapline.parallel.simulated.measures import ParallelRecord, judge
from trapline.parallel.simulated.planning import BYTES_PER_URL
from trapline.servers.sampled import Servers, constant_servers, modelled_servers
from trapline.strategies import strategies

LOOP_S, STORE_S = 204e-6, 130e-6  # processor time per page (docs/how-to/benchmark-live.md)
URL_CODED_S = 8.5e-6  # processor time to encode and decode an exchanged URL (docs/parallel.md)
BYTES_KNOWN = 113.0  # memory per known URL, the maximum of five runs (docs/how-to/benchmark-live.md)
KNOWN_PER_PAGE = 202_851 / 53_779  # uci-ics-crawl: known URLs / fetched pages
PAGE_BYTES = 631e6 / 53_779  # uci-ics-crawl
PAGES_PER_SITE = 40.0  # of the generated webs of docs/reproduce-cho.md
URLS_SENT = 1.4  # per page, an upper bound: every link that leaves a site of a generated web (docs/reproduce-cho.md, experiment 3)
NAME_S = 235e-6  # processor time of a DNS lookup (docs/decisions/015-dns-and-guard.md)
DELAYS = ((15.0, 1), (15.0, 10), (15.0, 50), (1.0, 1), (1.0, 10), (1.0, 50))  # seconds after a visit, pages in a visit


@dataclass(frozen=True)
class Disk:
    """Disk space, as measured in a crawl."""

    archive: float = 0.0
    """bytes of the archive per byte of a page"""
    database: float = 0.0
    """bytes of the database per fetched page"""
    known: float = 0.0
    """bytes of the database per URL that is known and was not fetched"""
    of: str = ""
    """folder of the measured crawl; "" for none"""


def main() -> None:
    args = _arguments()
    try:
        disk = disk_of(args.crawl) if args.crawl else Disk()
    except (ConfigError, OSError, sqlite3.Error) as error:
        print(f"scale.py: error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"{args.pages:,.0f} pages in {args.days:g} days, {args.page_bytes / 1e3:.1f} kB each\n")
    page_s = seconds_a_page()
    for row in needed(args, page_s, disk):
        print("{:<22}{:>16}   {}".format(*row))
    print_politeness(int(args.pages), args.days * 86_400.0, page_s)
    if args.simulate:
        print_simulated(args.simulate, args.partitions)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=float, default=1e9, help="pages to fetch [1e9]")
    parser.add_argument("--days", type=float, default=7.0, help="days to fetch them in [7]")
    parser.add_argument("--page-bytes", type=float, default=PAGE_BYTES, help="mean size of a page")
    parser.add_argument("--known-per-page", type=float, default=KNOWN_PER_PAGE, help="known URLs per fetched page")
    parser.add_argument(
        "--memory", type=float, default=64e9, help="bytes of memory of a machine, half of which is for known URLs"
    )
    parser.add_argument("--crawl", type=Path, help="folder of a finished crawl, to estimate disk space from")
    parser.add_argument("--simulate", type=int, default=0, help="also simulate crawls of this many pages")
    parser.add_argument(
        "--partitions", type=int, nargs="+", default=[1, 8, 64], help="partitions of the simulated crawls [1 8 64]"
    )
    return parser.parse_args()


# ---- the estimate


def needed(args: argparse.Namespace, page_s: float, disk: Disk) -> list[tuple[str, str, str]]:
    """Return rows of resource, amount and explanation."""
    seconds, size = args.days * 86_400.0, args.page_bytes
    rate, known = args.pages / seconds, args.pages * args.known_per_page
    machines = max(1, math.ceil(known * BYTES_KNOWN / (args.memory / 2)))
    sent, sites = rate * URLS_SENT * (1 - 1 / machines), args.pages / PAGES_PER_SITE
    cores, link = rate * (LOOP_S + STORE_S) + sent * URL_CODED_S, rate * size * 8e-6
    lookups = sites / seconds, rate / 10
    rows = [
        ("pages", f"{rate:,.0f} /s", f"{rate / machines:,.0f} a machine"),
        ("link", f"{link:,.0f} Mbit/s", f"{link / machines:,.0f} a machine"),
        ("processor", f"{cores:.2f} cores", f"{LOOP_S * 1e6:.0f} us the loop, {STORE_S * 1e6:.0f} its store, a page"),
        ("known URLs", f"{known:,.0f}", f"{args.known_per_page:.2f} a page fetched"),
        ("memory", f"{known * BYTES_KNOWN / 1e9:,.0f} GB", f"{BYTES_KNOWN:.0f} bytes a known URL"),
        ("machines", f"{machines}", f"of {args.memory / 1e9:.0f} GB, half of it for known URLs"),
        ("connections", f"{rate * page_s:,.0f}", f"at the same time: a page takes {page_s:.2f} s"),
        ("exchange", f"{sent * BYTES_PER_URL * 8e-3:,.0f} kbit/s", f"{sent:,.0f} URLs/s"),
        ("", f"{sent * BYTES_PER_URL / rate / size:.2%}", "of the page bytes"),
        ("sites", f"{sites:,.0f}", f"{PAGES_PER_SITE:.0f} pages each in the mean"),
        ("DNS lookups", "{:,.0f} to {:,.0f} /s".format(*lookups), "one per site, or one per visit of ten pages"),
        ("", "{:.2f} to {:.2f}".format(*(NAME_S * lookup for lookup in lookups)), "cores"),
    ]
    return rows + (_on_disk(args, disk, known) if disk.of else [])


def _on_disk(args: argparse.Namespace, disk: Disk, known: float) -> list[tuple[str, str, str]]:
    archives = args.pages * args.page_bytes * disk.archive
    databases = args.pages * disk.database + (known - args.pages) * disk.known
    each = f"{disk.database:,.0f} bytes a page, {disk.known:,.0f} a URL that was not fetched"
    return [
        ("archives", f"{archives / 1e12:,.1f} TB", f"{disk.archive:.2f} of the bytes of a page in {disk.of}"),
        ("databases", f"{databases / 1e12:,.2f} TB", each),
    ]


@dataclass(frozen=True)
class Taken:
    """Disk space of one crawl, or of one partition of it, in bytes."""

    pages: int  # that were fetched
    received: float  # bytes
    known: int  # URLs
    archive: float
    database: float  # with the index file
    of_known: float  # part of the database that all known URLs take


def disk_of(folder: Path) -> Disk:
    """Measure the tables of a crawl that has ended.

    For a crawl in partitions, the merged database of all partitions is not counted, because a crawl does not need it.
    """
    parts = [taken(part) for part in parts_of(folder) or [folder]]
    pages, received, known, archive, database, of_known = (
        sum(column) for column in zip(*map(astuple, parts), strict=True)
    )
    if not pages or not received:
        raise ConfigError(f"{folder}: no page was fetched")
    each = of_known / known
    return Disk(archive / received, (database - (known - pages) * each) / pages, each, str(folder))


def taken(folder: Path) -> Taken:
    """Measure one folder. A known URL takes a row of the table `page` and of its indexes."""
    of_page = "select total(pgsize) from dbstat where name in (select name from sqlite_master where tbl_name = 'page')"
    with closing(open_database(folder)) as database:
        pages, received = database.execute("select count(distinct page), total(bytes) from fetch").fetchone()
        (known,) = database.execute("select count(*) from page").fetchone()
        (archive,) = database.execute("select total(bytes) from warc").fetchone()
        (of_all,) = database.execute("select total(pgsize) from dbstat").fetchone()
        (of_known,) = database.execute(of_page).fetchone()
    return Taken(pages, received, known, archive, of_all + (folder / INDEX).stat().st_size, of_known)


def seconds_a_page() -> float:
    """Return the mean time of a page, on a persistent connection for ten pages."""
    web = generate(200_000, 5_000)
    servers = modelled_servers(web)
    of_page = servers.latency_s + servers.size / servers.speed[web.site] + servers.connection_s[web.site] / 10
    return float(of_page.mean())


# ---- politeness


def polite_share(sizes: np.ndarray, seconds: float, delay_s: float, visit_pages: int, page_s: float) -> float:
    """Return the share of all pages that can be fetched politely, when each visit is followed by a delay of `delay_s`."""
    most = visit_pages * seconds / (delay_s + visit_pages * page_s)
    return float(np.minimum(sizes, most).sum() / sizes.sum())


def largest_site(pages: int) -> int:
    """Return the limit of a site, 17 % of the pages: the estimate is for a web whose sites are not cut by a crawl."""
    return 1 + int(0.17 * (pages - int(pages / PAGES_PER_SITE)))


def print_politeness(pages: int, seconds: float, page_s: float) -> None:
    sizes = site_sizes(WebModel(pages, int(pages / PAGES_PER_SITE), max_site_pages=largest_site(pages)))
    print(f"\nWhat politeness allows: {len(sizes):,} sites, the largest has {sizes.max():,} pages")
    print("delay   pages a visit    most per site   share of the pages   whole sites")
    for delay_s, visit_pages in DELAYS:
        most = visit_pages * seconds / (delay_s + visit_pages * page_s)
        share = polite_share(sizes, seconds, delay_s, visit_pages, page_s)
        print(f"{delay_s:>3.0f} s{visit_pages:>16}{most:>17,.0f}{share:>21.3f}{float((sizes <= most).mean()):>14.6f}")


# ---- simulated


def print_simulated(pages: int, partitions_tried: list[int]) -> None:
    web = generate(pages, int(pages / PAGES_PER_SITE), max_site_pages=largest_site(pages))
    print(f"\nSimulated: {web.pages:,} pages, {web.sites:,} sites, {len(web.targets):,} links; larger-sites-first")
    print(
        "partitions   coverage   overlap   URLs sent a page   in messages   most pages of one against the mean   wall time, s"
    )
    for partitions in partitions_tried:
        began = time.perf_counter()
        found = exchanged(web, partitions)
        print(
            f"{partitions:>10}{found.coverage:>11.4f}{found.overlap:>10.4f}{found.urls_exchanged_per_page:>19.3f}"
            f"{found.messages / max(1, found.pages_downloaded):>14.3f}{found.imbalance_pages:>37.2f}{time.perf_counter() - began:>15.0f}",
            flush=True,
        )
    print_delays(web)


def exchanged(web: Graph, partitions: int) -> ParallelRecord:
    """Simulate a crawl that exchanges URLs after as many pages as a live crawl; without delay, so that no partition idles."""
    plan = ParallelPlan(
        EXCHANGE, Partitioning("rendezvous", partitions), ExchangeRules(FETCHES * batch_factor(partitions))
    )
    rules, servers = Rules(delay_s=0.0, ip_delay_s=0.0, per_connection=10), constant_servers(1.0)
    strategy, connections = strategies()["larger-sites-first"], max(1024 // partitions, 1)
    crawl = simulate_parallel(web, strategy, rules, plan, seeds=web.home, servers=servers, connections=connections)
    return judge(crawl, web, rules, servers, np.bincount(web.targets, minlength=web.pages).astype(float))


def print_delays(web: Graph) -> None:
    """Print the share of pages fetched after some hours, simulated and by the arithmetic; with a connection for every site."""
    sizes, servers = np.bincount(web.site), constant_servers(1.0)
    rules = Rules(delay_s=15.0, ip_delay_s=15.0, per_connection=10)
    most = 3600.0 * 6
    print("hours     fetched, simulated   by the arithmetic   (delay 15 s, 10 pages a visit, 1 s a page)")
    ends = fetch_times(web, rules, servers, most)
    for hours in (0.25, 0.5, 1, 2, 4, 6):
        share = polite_share(sizes, hours * 3600.0, 15.0, 10, 1.0)
        print(f"{hours:>5}{np.count_nonzero(ends <= hours * 3600.0) / web.pages:>23.4f}{share:>20.4f}")


def fetch_times(web: Graph, rules: Rules, servers: Servers, most_s: float) -> np.ndarray:
    """Return the times at which pages were fetched, up to `most_s`."""
    plan = ParallelPlan(EXCHANGE, Partitioning("rendezvous", 1), ExchangeRules(48))
    strategy = strategies()["larger-sites-first"]
    crawl = simulate_parallel(web, strategy, rules, plan, seeds=web.home, servers=servers, connections=web.sites)
    ends: np.ndarray = crawl.logs[0].end
    return ends[ends <= most_s]


if __name__ == "__main__":
    main()
