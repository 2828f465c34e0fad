"""Measures what a link to a page of another partition costs: python bench/live/foreign_links.py [--older CHECKOUT]

Two partitions in one process, with their databases, but without sockets: one fetches pages whose links lead to pages of the other. The
first links to these pages, and then further links to the same pages, are resolved, sent, written and taken in. The same links in one
partition show what every crawl pays for them. Values are microseconds of processor time for each link, without that of pages without
links.

`--older` measures another checkout of Trapline in turn, and shows its times divided by those of this one.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.scope import Scope
from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.discovery.sites import Sites
from trapline.crawler.discovery.url_store import UrlStore
from trapline.crawler.engine.records import Batch, Fetched, PartitionTraffic
from trapline.crawler.files.layout import DATABASE, claim_new
from trapline.crawler.store.database import Database
from trapline.crawler.store.outbox import FETCHES, Outbox
from trapline.fetch.html.page import Links
from trapline.frontier import FETCHED, Frontier, Rules
from trapline.frontier.journal import Journal
from trapline.parallel.live.exchange import LinkExchange
from trapline.parallel.live.site_owner import SiteOwners, host_of
from trapline.parallel.partition import Partitioning
from trapline.strategies import load_strategy

try:
    from trapline.parallel.live.further_links import FurtherLinkExchange
except ImportError:  # an older checkout
    FurtherLinkExchange = None  # type: ignore[assignment,misc]

_FROM = "http://from.example/"
_PHASES = ("none", "first", "further")
_ROW = (0, "", 0.0, 0.0, 0.0, FETCHED, 200, "", 0, "", b"", 0, 0, "", None, None, None, b"", None, None)
_PARTS = ("resolve", "send", "take in", "store")


class Partition:
    def __init__(self, folder: Path, own: int, owners: Partitioning | None) -> None:
        """`owners`: None: the crawl has one process."""
        claim_new(folder, {}).release()
        self.database, self.sent = Database(folder / DATABASE), list[Batch]()
        self.database.connection.execute("pragma synchronous=off")
        journal = Journal()
        self.frontier = Frontier(load_strategy("opic"), Rules(), journal=journal)
        self.outbox = Outbox(journal, self.sent.append, traffic=lambda: self._traffic())
        site_owners = SiteOwners(owners, {}, own, {}) if owners else None
        seen, store = SeenTable(bytes(range(16))), UrlStore(folder / DATABASE)
        self.resolver = LinkResolver(
            self.frontier, Sites(0.0), seen, store, Scope("any", (_FROM,)), self.outbox, {},
            lambda site: 0, Counter(), site_owners.owns if site_owners else None,
        )  # fmt: skip
        self.resolver.group("192.0.2.1")
        self.exchange = _exchange(self, site_owners) if site_owners else None

    def _traffic(self) -> PartitionTraffic:
        return self.exchange.take() if self.exchange else PartitionTraffic()

    def begin(self, seeds: Sequence[str]) -> list[int]:
        pages = self.resolver.adopt(seeds, 0.0)
        self.frontier.discover(pages, 0.0)
        return pages

    def commit(self) -> list[Batch]:
        done = list(self.sent)
        for batch in done:
            rows = [(fetched.page, *_ROW) for fetched in batch.fetches]
            self.database.commit([batch], rows, [], [], 0)
        self.sent.clear()
        return done


def _exchange(one: Partition, site_owners: SiteOwners) -> LinkExchange:
    if FurtherLinkExchange is None:
        return LinkExchange(one.frontier, one.resolver, site_owners, {})
    return LinkExchange(one.frontier, one.resolver, site_owners, {}, further=FurtherLinkExchange(one.resolver, {}))


class Stopwatch:
    def __init__(self) -> None:
        self.seconds = dict.fromkeys(_PARTS, 0.0)

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.seconds[part] += time.process_time() - began


def fetched(page: int, number: int, found: Any) -> Fetched:
    more = {"further": np.array(list(found.further), "<i8").tobytes()} if hasattr(found, "further") else {}
    about = (page, 0, number, _FROM, "", 0.0, 0.0, 0.0, FETCHED, 200, "", b"")
    return Fetched(*about, elsewhere=found.foreign, **more)


def crawl(one: Partition, other: Partition | None, pages: list[int], links: list[list[str]]) -> dict[str, float]:
    """Return the seconds that each part takes. `links`: those of each page."""
    timed = Stopwatch()
    texts = [Links.of(hrefs) for hrefs in links]
    for number, (page, hrefs) in enumerate(zip(pages, texts, strict=True)):
        with timed("resolve"):
            found = one.resolver.pages_of(f"{_FROM}{number}", "", hrefs, 1.0)
        with timed("send"):
            record = fetched(page, number, found)
            if one.exchange and len(found.pages) and min(found.pages) < 0:
                further = (found.further,) if hasattr(found, "further") else ()
                one.exchange.send_links(page, found.foreign, len(found.pages), *further)
            one.outbox.fetches.append(record)
        if number % FETCHES == FETCHES - 1:
            flush(one, other, timed)
    flush(one, other, timed)
    return timed.seconds


def flush(one: Partition, other: Partition | None, timed: Callable[[str], Any]) -> None:
    with timed("send"):
        one.outbox.flush()
    with timed("store"):
        batches = one.commit()
    if other is not None:
        assert other.exchange
        for message in (message for batch in batches for message in batch.traffic.made):
            with timed("take in"):
                other.exchange.deliver(0, message.number, message.data, 1.0)
                other.outbox.flush()
            with timed("store"):
                other.commit()


def targets(owners: Partitioning, count: int) -> list[str]:
    """Return URLs of the second partition, 300 on each site."""
    hosts = (f"http://site-{number}.example" for number in range(count))
    theirs = [host for host in hosts if owners.owner_of(b"", host_of(host).encode(), b"") == 1]
    return [f"{theirs[at // 300]}/garden/letters-and-music-{at}.html" for at in range(count)]


def measured(links_per_page: int, pages: int) -> dict[str, dict[str, float]]:
    owners = Partitioning("rendezvous", 2)
    urls = targets(owners, links_per_page * pages)
    random.Random(1).shuffle(urls)
    first = [urls[at : at + links_per_page] for at in range(0, len(urls), links_per_page)]
    random.Random(2).shuffle(urls)
    further = [urls[at : at + links_per_page] for at in range(0, len(urls), links_per_page)]
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        alone = Partition(Path(folder) / "alone", 0, None)
        parts = [Partition(Path(folder) / str(own), own, owners) for own in range(2)]
        for name, one, other in (("one process", alone, None), ("two processes", *parts)):
            own = one.begin([f"{_FROM}{number}" for number in range(pages)])
            spent = {
                phase: crawl(one, other, own, links)
                for phase, links in zip(_PHASES, ([[]] * pages, first, further), strict=True)
            }
            for phase in _PHASES[1:]:
                each = {part: 1e6 * (spent[phase][part] - spent["none"][part]) / len(urls) for part in _PARTS}
                found[f"{name}, {phase} link"] = {**each, "all": sum(each.values())}
    return found


def of(checkout: Path, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    words = [sys.executable, __file__, "--json", "--pages", str(args.pages), "--links", str(args.links)]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    found: dict[str, dict[str, float]] = json.loads(subprocess.check_output(words, env=environment, text=True))
    return found


def show(rounds: list[dict[str, dict[str, float]]], older: list[dict[str, dict[str, float]]]) -> None:
    columns = [*_PARTS, "all", *(["older", "older / this"] if older else [])]
    print(f"| us a link | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name in rounds[0]:
        values = [statistics.median(one[name][part] for one in rounds) for part in (*_PARTS, "all")]
        cells = [f"{value:.1f}" for value in values]
        if older:
            ratio = statistics.median(a[name]["all"] / b[name]["all"] for a, b in zip(older, rounds, strict=True))
            cells += [f"{statistics.median(one[name]['all'] for one in older):.1f}", f"{ratio:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=4_800, help="pages with links [4800]")
    parser.add_argument("--links", type=int, default=3, help="links to the other partition on each page [3]")
    parser.add_argument("--repeats", type=int, default=5, help="number of rounds [5]")
    parser.add_argument("--older", type=Path, help="folder of another checkout of Trapline")
    parser.add_argument("--json", action="store_true", help="print one round as JSON")
    args = parser.parse_args()
    measured(args.links, 96)  # loads the kernels
    if args.json:
        print(json.dumps(measured(args.links, args.pages)))
        return
    here = Path(__file__).parents[2]
    rounds, older = [], []
    for _ in range(args.repeats):
        rounds.append(of(here, args))
        if args.older:
            older.append(of(args.older, args))
    show(rounds, older)


if __name__ == "__main__":
    main()
