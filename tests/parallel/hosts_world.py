"""A crawl of two groups of partitions on two hosts (namespaces.py), two partitions on each, for tests and bench/live/hosts.py.

The coordinator is on the near one. Both hosts see one folder, as they would a shared disk.
"""

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.parallel.namespaces import FAR, NEAR, Hosts
from tests.parallel.processes_world import wait_for
from tests.testweb.webs import numbered
from trapline.crawl.engine.options import CrawlOptions, live_rules
from trapline.parallel.live.manifest import Manifest, create
from trapline.parallel.live.merged import merge
from trapline.parallel.live.site_owner import partitioning_for
from trapline.parallel.live.supervisor import Launch, crawl_with, launched
from trapline.parallel.live.worker import WorkerTask
from trapline.testweb import Behaviour, Served, ServedWeb, build_web, serve

GROUPS = ((0, 1), (2, 3))  # on the near host, and on the far one
PATIENCE_S = 300.0
PARTITIONS = sum(map(len, GROUPS))


def woven(sites: int, pages_a_site: int) -> ServedWeb:
    """As many chains as there are sites, each of which goes to another site with every page. All begin at the first page, which leads to
    the homes; without the other group, none of them comes far."""
    chance, links = random.Random(7), []
    nexts = [chance.sample(range(sites), sites) for _ in range(pages_a_site)]
    for page in range(sites * pages_a_site):
        site, place = divmod(page, pages_a_site)
        links.append([nexts[place][site] * pages_a_site + (place + 1) % pages_a_site])
    links[0] += range(0, sites * pages_a_site, pages_a_site)
    return build_web(numbered(sites, pages_a_site, links), Behaviour(latency_s=0.005))


@contextmanager
def served_to(hosts: Hosts, web: ServedWeb) -> Iterator[Served]:
    with hosts.web.entered(), serve(web) as server:
        yield server


def options_for(server: Served, seeds: int, delay_s: float, per_connection: int, connections: int) -> CrawlOptions:
    return CrawlOptions(
        tuple(server.seed_urls[:seeds]),
        rules=live_rules(delay_s=delay_s, per_connection=per_connection),
        pause_s=0.0,
        connections=connections,
        scope="any",
        allow_private=True,
        hosts={name: (address,) for name, address in server.hosts.items()},
    )


def crawl_on(hosts: Hosts, folder: Path, options: CrawlOptions) -> Manifest:
    """To its end; the folder's database is of all."""
    manifest = create(folder, options, partitioning_for(options.rules, PARTITIONS)).begun(options)
    with hosts.near.entered():
        ended = crawl_with(manifest, lambda _: None, launch_on(hosts), NEAR, PATIENCE_S)
    merge(ended)
    return ended


def launch_on(hosts: Hosts) -> Launch:
    """Each partition on the host of its group."""

    async def launch(task: WorkerTask) -> tuple[int, str]:
        is_near = task.partition in GROUPS[0]
        host, address = (hosts.near, NEAR) if is_near else (hosts.far, FAR)
        return await launched(replace(task, listen=address), host.command())

    return launch


@dataclass(slots=True)
class Cut:
    """What was seen of it."""

    pages_before: int = 0
    pages_at_end: int = 0
    passed: int = -1  # packets, while it lasted; -1: it never came to its end
    first_parcel_s: float = 0.0  # from its end until a parcel from one host was on the disk of the other


def cut_off(hosts: Hosts, folder: Path, pages: int, for_s: float, seen: Cut) -> None:
    """The far group, when there are so many pages, for so long."""
    wait_for(lambda: pages_in(folder) >= pages)
    seen.pages_before = pages_in(folder)
    hosts.line.cut()
    wait_for(lambda: _counted(hosts, "under_way") == 0)
    passed = _counted(hosts, "packets")
    time.sleep(for_s)
    seen.passed = _counted(hosts, "packets") - passed
    seen.pages_at_end, crossed = pages_in(folder), parcels_between(folder)
    hosts.line.join()
    joined_at = time.monotonic()
    wait_for(lambda: parcels_between(folder) > crossed)
    seen.first_parcel_s = time.monotonic() - joined_at


def _counted(hosts: Hosts, what: str) -> int:
    return sum(way[what] for way in hosts.line.counts())


def pages_in(folder: Path) -> int:
    """On disk, in all partitions."""
    return sum(_rows(folder, number, "select count(*), 0 from fetch")[0][0] for number in range(PARTITIONS))


def parcels_between(folder: Path) -> int:
    """From one host to the other, on the disks of their receivers."""
    return sum(
        received
        for receivers, senders in (GROUPS, GROUPS[::-1])
        for receiver in receivers
        for sender, received in _rows(folder, receiver, "select id, received from partition")
        if sender in senders
    )


def _rows(folder: Path, partition: int, sql: str) -> list[tuple[int, int]]:
    """None, before there is a database."""
    try:
        path = folder / f"partition-{partition}" / "crawl.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return database.execute(sql).fetchall()
    except sqlite3.Error:
        return [(0, 0)]
