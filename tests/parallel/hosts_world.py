"""A crawl on two hosts (namespaces.py), with two partitions on each host, for tests and bench/live/hosts.py.

The coordinator is on the near host. Both hosts see one folder, as on a shared disk.
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
from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.parallel.folder.manifest import Manifest, create, partitioning_for
from trapline.parallel.folder.merged import merge
from trapline.parallel.live.supervisor import Launch, crawl_with, launched
from trapline.parallel.live.worker import WorkerTask
from trapline.testweb import Behaviour, Served, ServedWeb, build_web, serve

GROUPS = ((0, 1), (2, 3))  # on the near host, and on the far host
PATIENCE_S = 300.0
PARTITIONS = sum(map(len, GROUPS))


def chained_web(sites: int, pages_a_site: int) -> ServedWeb:
    """Return a web with one chain per site. Each page of a chain is on another site than the page before. All chains begin at the first
    page. Without the other host's partitions, no chain gets far."""
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
    """Crawl to the end. The database in the folder is the merged one."""
    manifest = create(folder, options, partitioning_for(options.rules, PARTITIONS)).begun(options)
    with hosts.near.entered():
        ended = crawl_with(manifest, lambda _: None, launch_on(hosts), NEAR, PATIENCE_S)
    merge(ended)
    return ended


def launch_on(hosts: Hosts) -> Launch:
    """Return a launch function that starts each partition on its host."""

    async def launch(task: WorkerTask) -> tuple[int, str]:
        is_near = task.partition in GROUPS[0]
        host, address = (hosts.near, NEAR) if is_near else (hosts.far, FAR)
        return await launched(replace(task, listen=address), host.command())

    return launch


@dataclass(slots=True)
class Cut:
    """What a test observed of a cut."""

    pages_before: int = 0
    pages_at_end: int = 0
    passed: int = -1  # packets during the cut; -1: the cut did not end
    first_batch_s: float = 0.0  # from the end of the cut until a batch of one host was on the disk of the other


def cut_off(hosts: Hosts, folder: Path, pages: int, for_s: float, seen: Cut) -> None:
    """Cut the far host off for `for_s` seconds, once there are `pages` pages."""
    wait_for(lambda: pages_in(folder) >= pages)
    seen.pages_before = pages_in(folder)
    hosts.line.cut()
    wait_for(lambda: _counted(hosts, "under_way") == 0)
    passed = _counted(hosts, "packets")
    time.sleep(for_s)
    seen.passed = _counted(hosts, "packets") - passed
    seen.pages_at_end, crossed = pages_in(folder), batches_between(folder)
    hosts.line.join()
    joined_at = time.monotonic()
    wait_for(lambda: batches_between(folder) > crossed)
    seen.first_batch_s = time.monotonic() - joined_at


def _counted(hosts: Hosts, what: str) -> int:
    return sum(way[what] for way in hosts.line.counts())


def pages_in(folder: Path) -> int:
    """Return the number of pages on disk, in all partitions."""
    return sum(_rows(folder, number, "select count(*), 0 from fetch")[0][0] for number in range(PARTITIONS))


def batches_between(folder: Path) -> int:
    """Return the number of message batches between the hosts that are on their receivers' disks."""
    return sum(
        received
        for receivers, senders in (GROUPS, GROUPS[::-1])
        for receiver in receivers
        for sender, received in _rows(folder, receiver, "select id, received from partition")
        if sender in senders
    )


def _rows(folder: Path, partition: int, sql: str) -> list[tuple[int, int]]:
    """Return the rows, or none if there is no database yet."""
    try:
        path = folder / f"partition-{partition}" / "crawl.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return database.execute(sql).fetchall()
    except sqlite3.Error:
        return [(0, 0)]
