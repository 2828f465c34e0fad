"""What a crawl of a billion pages a week needs, from what Trapline was measured to cost.

    python bench/scale.py [--crawl DIR] [--simulate PAGES]

Arithmetic, but for two parts that it runs: the sizes of sites are drawn as for a generated web of that size (graph/generate.py), and how
long a page takes is drawn from the model of servers (docs/server-models.md). `--crawl DIR` says what it takes on disk, as in that crawl; of
one with several processes, in all its partitions together.
`--simulate PAGES` crawls a web of so many pages in simulated time, by 1, 8 and 64 partitions, and holds the arithmetic of politeness
against it; 10,000,000 pages by 1 and 8 take ten minutes of processor time and 5 GB.
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

from trapline.crawl.folder import opened
from trapline.crawl.store.folder import INDEX
from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.graph import Graph, generate
from trapline.graph.generate import WebModel, site_sizes
from trapline.parallel.costs import BYTES_PER_URL
from trapline.parallel.in_process import EXCHANGE, Exchange, Plan, simulate_parallel
from trapline.parallel.measures import ParallelRecord, judge
from trapline.parallel.merged import parts_of
from trapline.parallel.partition import Partitioning
from trapline.simulate.modelled import modelled_servers
from trapline.simulate.servers import Servers, constant_servers
from trapline.strategies import strategies

LOOP_S, STORE_S = 204e-6, 130e-6  # of processor time a page (docs/how-to/benchmark-live.md)
URL_CODED_S = 8.5e-6  # of processor time, to code and decode an exchanged URL (docs/parallel.md)
BYTES_KNOWN = 113.0  # of memory a known URL, the most of five runs (docs/how-to/benchmark-live.md)
KNOWN_PER_PAGE = 202_851 / 53_779  # uci-ics-crawl: known, of which so many were fetched
PAGE_BYTES = 631e6 / 53_779  # uci-ics-crawl
PAGES_PER_SITE = 40.0  # of the generated webs of docs/reproduce-cho.md
URLS_SENT = (
    1.4  # per page, the most: every link that leaves a site of a generated web (docs/reproduce-cho.md, experiment 3)
)
NAME_S = 235e-6  # of processor time, to look a name up (docs/decisions/015-dns-and-guard.md)
RESTS = ((15.0, 1), (15.0, 10), (15.0, 50), (1.0, 1), (1.0, 10), (1.0, 50))  # s after a visit, pages of a visit


@dataclass(frozen=True)
class Disk:
    """Of a byte of a page, what it takes in the archive; bytes of the database a page that was fetched, and a URL that was not."""

    archive: float = 0.0
    database: float = 0.0
    known: float = 0.0
    of: str = ""


def main() -> None:
    asked = _asked()
    try:
        disk = disk_of(asked.crawl) if asked.crawl else Disk()
    except (ConfigError, OSError, sqlite3.Error) as error:
        print(f"scale.py: error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"{asked.pages:,.0f} pages in {asked.days:g} days, {asked.page_bytes / 1e3:.1f} kB each\n")
    page_s = seconds_a_page()
    for row in needed(asked, page_s, disk):
        print("{:<22}{:>16}   {}".format(*row))
    print_politeness(int(asked.pages), asked.days * 86_400.0, page_s)
    if asked.simulate:
        print_simulated(asked.simulate, asked.partitions)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=float, default=1e9)
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--page-bytes", type=float, default=PAGE_BYTES)
    parser.add_argument("--known-per-page", type=float, default=KNOWN_PER_PAGE)
    parser.add_argument("--memory", type=float, default=64e9, help="of a machine; half of it is for what is known")
    parser.add_argument("--crawl", type=Path)
    parser.add_argument("--simulate", type=int, default=0)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 8, 64])
    return parser.parse_args()


# ---- from costs


def needed(asked: argparse.Namespace, page_s: float, disk: Disk) -> list[tuple[str, str, str]]:
    """Rows of what, how much, and why."""
    seconds, size = asked.days * 86_400.0, asked.page_bytes
    rate, known = asked.pages / seconds, asked.pages * asked.known_per_page
    machines = max(1, math.ceil(known * BYTES_KNOWN / (asked.memory / 2)))
    sent, sites = rate * URLS_SENT * (1 - 1 / machines), asked.pages / PAGES_PER_SITE
    cores, link = rate * (LOOP_S + STORE_S) + sent * URL_CODED_S, rate * size * 8e-6
    asks = sites / seconds, rate / 10
    rows = [
        ("pages", f"{rate:,.0f} /s", f"{rate / machines:,.0f} a machine"),
        ("link", f"{link:,.0f} Mbit/s", f"{link / machines:,.0f} a machine"),
        ("processor", f"{cores:.2f} cores", f"{LOOP_S * 1e6:.0f} us the loop, {STORE_S * 1e6:.0f} its store, a page"),
        ("known URLs", f"{known:,.0f}", f"{asked.known_per_page:.2f} a page fetched"),
        ("memory", f"{known * BYTES_KNOWN / 1e9:,.0f} GB", f"{BYTES_KNOWN:.0f} bytes a known URL"),
        ("machines", f"{machines}", f"of {asked.memory / 1e9:.0f} GB, half of it for what is known"),
        ("robots", f"{rate * page_s:,.0f}", f"connections at once: a page takes {page_s:.2f} s"),
        ("exchange", f"{sent * BYTES_PER_URL * 8e-3:,.0f} kbit/s", f"{sent:,.0f} URLs/s"),
        ("", f"{sent * BYTES_PER_URL / rate / size:.2%}", "of the page bytes"),
        ("sites", f"{sites:,.0f}", f"{PAGES_PER_SITE:.0f} pages each in the mean"),
        ("names asked for", "{:,.0f} to {:,.0f} /s".format(*asks), "each site once, or at every visit of ten pages"),
        ("", "{:.2f} to {:.2f}".format(*(NAME_S * one for one in asks)), "cores"),
    ]
    return rows + (_on_disk(asked, disk, known) if disk.of else [])


def _on_disk(asked: argparse.Namespace, disk: Disk, known: float) -> list[tuple[str, str, str]]:
    archives = asked.pages * asked.page_bytes * disk.archive
    databases = asked.pages * disk.database + (known - asked.pages) * disk.known
    each = f"{disk.database:,.0f} bytes a page, {disk.known:,.0f} a URL that is only known"
    return [
        ("archives", f"{archives / 1e12:,.1f} TB", f"{disk.archive:.2f} of the bytes of a page in {disk.of}"),
        ("databases", f"{databases / 1e12:,.2f} TB", each),
    ]


@dataclass(frozen=True)
class Taken:
    """By one crawl, or by one partition of it."""

    pages: int
    received: float
    known: int
    archive: float
    database: float  # and its index
    of_known: float  # what all known URLs take of that


def disk_of(folder: Path) -> Disk:
    """Of a crawl that has ended: what its tables take. Of one in partitions the database of them all is not in it: it can be left out."""
    parts = [taken(part) for part in parts_of(folder) or [folder]]
    pages, received, known, archive, database, of_known = (
        sum(column) for column in zip(*map(astuple, parts), strict=True)
    )
    if not pages or not received:
        raise ConfigError(f"{folder}: no page was fetched")
    each = of_known / known
    return Disk(archive / received, (database - (known - pages) * each) / pages, each, str(folder))


def taken(folder: Path) -> Taken:
    """A URL that is only known is a row of `page`, and of its indexes."""
    of_page = "select total(pgsize) from dbstat where name in (select name from sqlite_master where tbl_name = 'page')"
    with closing(opened(folder)) as database:
        pages, received = database.execute("select count(distinct page), total(bytes) from fetch").fetchone()
        (known,) = database.execute("select count(*) from page").fetchone()
        (archive,) = database.execute("select total(bytes) from warc").fetchone()
        (of_all,) = database.execute("select total(pgsize) from dbstat").fetchone()
        (of_known,) = database.execute(of_page).fetchone()
    return Taken(pages, received, known, archive, of_all + (folder / INDEX).stat().st_size, of_known)


def seconds_a_page() -> float:
    """Mean, on a kept connection of ten pages."""
    web = generate(200_000, 5_000)
    servers = modelled_servers(web)
    of_page = servers.latency_s + servers.size / servers.speed[web.site] + servers.connection_s[web.site] / 10
    return float(of_page.mean())


# ---- politeness


def polite_share(sizes: np.ndarray, seconds: float, rest_s: float, visit_pages: int, page_s: float) -> float:
    """Of all pages: a site gives so many in a visit, and rests."""
    most = visit_pages * seconds / (rest_s + visit_pages * page_s)
    return float(np.minimum(sizes, most).sum() / sizes.sum())


def print_politeness(pages: int, seconds: float, page_s: float) -> None:
    sizes = site_sizes(WebModel(pages, int(pages / PAGES_PER_SITE)))
    print(f"\nWhat politeness leaves of it: {len(sizes):,} sites, the largest {sizes.max():,} pages")
    print("rest   pages a visit   most of a site   share of the pages   whole sites")
    for rest_s, visit_pages in RESTS:
        most = visit_pages * seconds / (rest_s + visit_pages * page_s)
        share = polite_share(sizes, seconds, rest_s, visit_pages, page_s)
        print(f"{rest_s:>3.0f} s{visit_pages:>16}{most:>17,.0f}{share:>21.3f}{float((sizes <= most).mean()):>14.6f}")


# ---- simulated


def print_simulated(pages: int, partitions_tried: list[int]) -> None:
    web = generate(pages, int(pages / PAGES_PER_SITE))
    print(f"\nSimulated: {web.pages:,} pages, {web.sites:,} sites, {len(web.targets):,} links; larger-sites-first")
    print("partitions   coverage   overlap   URLs sent a page   most pages of one against the mean   wall time, s")
    for partitions in partitions_tried:
        began = time.perf_counter()
        found = exchanged(web, partitions)
        print(
            f"{partitions:>10}{found.coverage:>11.4f}{found.overlap:>10.4f}{found.urls_exchanged_per_page:>19.3f}"
            f"{found.imbalance_pages:>37.2f}{time.perf_counter() - began:>15.0f}",
            flush=True,
        )
    print_rests(web)


def exchanged(web: Graph, partitions: int) -> ParallelRecord:
    """Every URL sent after each 48 pages, as live; no rest, so that all partitions are at work to their end."""
    plan = Plan(EXCHANGE, Partitioning("rendezvous", partitions), Exchange(48))
    rules, servers = Rules(delay_s=0.0, ip_delay_s=0.0, per_connection=10), constant_servers(1.0)
    strategy, robots = strategies()["larger-sites-first"], max(1024 // partitions, 1)
    crawl = simulate_parallel(web, strategy, rules, plan, seeds=web.home, servers=servers, robots=robots)
    return judge(crawl, web, rules, servers, np.bincount(web.targets, minlength=web.pages).astype(float))


def print_rests(web: Graph) -> None:
    """Pages had after a time, against the arithmetic; robots enough that sites are the limit."""
    sizes, servers = np.bincount(web.site), constant_servers(1.0)
    rules = Rules(delay_s=15.0, ip_delay_s=15.0, per_connection=10)
    most = 3600.0 * 6
    print("hours   pages had, simulated   by the arithmetic   (rest 15 s, 10 pages a visit, 1 s a page)")
    ends = had(web, rules, servers, most)
    for hours in (0.25, 0.5, 1, 2, 4, 6):
        share = polite_share(sizes, hours * 3600.0, 15.0, 10, 1.0)
        print(f"{hours:>5}{np.count_nonzero(ends <= hours * 3600.0) / web.pages:>23.4f}{share:>20.4f}")


def had(web: Graph, rules: Rules, servers: Servers, most_s: float) -> np.ndarray:
    """When each page came in that did within the time."""
    plan = Plan(EXCHANGE, Partitioning("rendezvous", 1), Exchange(48))
    strategy = strategies()["larger-sites-first"]
    crawl = simulate_parallel(web, strategy, rules, plan, seeds=web.home, servers=servers, robots=web.sites)
    ends: np.ndarray = crawl.logs[0].end
    return ends[ends <= most_s]


if __name__ == "__main__":
    main()
