"""Many URLs on one machine: the cost of each in memory, on disk and in time."""

import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.proof.goals import COMMAND
from tests.proof.section import ROOT, Finding, Section, say
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.resume import rebuilt, settle
from trapline.frontier import Outcome, Visit

_METHOD = """
A broad crawl of 10^5 sites on loopback starts from their home pages. Each page has 100 links within its site, so that 10^5 fetches
discover 10^7 URLs. Memory is the resident memory of the crawl's process. Its store is a second process, which is shown separately. The
crawl is stopped and then continued with `--resume`; "resume" is the time until the first page is fetched. `next` is timed on the
frontier that is read back from the folder, while all sites wait. The same is measured for a crawl that knows 10^5 URLs on 10^3 sites.
"""
LINKS = 100
ADDRESSES = [f"127.9.0.{number}" for number in range(1, 201)]


class Sample(NamedTuple):
    loop_bytes: int
    store_bytes: int


class Measured(NamedTuple):
    urls: int
    sites: int
    pages_per_s: float
    loop_bytes: int
    start_bytes: int  # of the loop, before it knew any URL
    store_bytes: int
    disk_bytes: int
    resume_s: float
    next_us: float


@contextmanager
def link_server() -> Iterator[int]:
    command = [sys.executable, "-m", "tests.proof.link_server", str(LINKS), *ADDRESSES]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(10)


def options(place: Path, sites: int, port: int) -> list[str]:
    hosts, seeds = place / "hosts", place / "seeds"
    hosts.write_text("".join(f"{ADDRESSES[site % len(ADDRESSES)]} s{site}.test\n" for site in range(sites)))
    seeds.write_text("".join(f"http://s{site}.test:{port}/\n" for site in range(sites)))
    arguments = ["--seeds", str(seeds), "--hosts", str(hosts), "--delay", "0", "--pause", "0", "--connections", "100"]
    return [*arguments, "--strategy", "breadth-first", "--scope", "any", "--allow-private", "--quiet"]


def crawled(place: Path, sites: int, port: int) -> tuple[float, list[Sample]]:
    """Crawl every home page. Return the seconds, and the memory over time."""
    command = [*COMMAND, "crawl", "-o", str(place / "crawl"), *options(place, sites, port), "--max-pages", str(sites)]
    began, samples = time.monotonic(), list[Sample]()
    process = subprocess.Popen(command)
    while process.poll() is None:
        samples.append(Sample(resident(process.pid), sum(map(resident, children(process.pid)))))
        time.sleep(0.2)
    if process.returncode:
        raise RuntimeError(f"the crawl ended with code {process.returncode}")
    return time.monotonic() - began, samples


def resident(process: int) -> int:
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def children(process: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def resume_s(folder: Path, sites: int) -> float:
    """Return the seconds from the command to the first fetched page."""
    with closing(sqlite3.connect(f"file:{folder / 'crawl.db'}?mode=ro", uri=True)) as database:
        (before,) = database.execute("select max(rowid) from fetch").fetchone()
        began = time.monotonic()
        process = subprocess.Popen(
            [*COMMAND, "crawl", "--resume", str(folder), "--max-pages", str(sites + 50), "--quiet"]
        )
        while database.execute("select max(rowid) from fetch").fetchone()[0] == before and process.poll() is None:
            time.sleep(0.05)
        passed = time.monotonic() - began
    if process.wait():
        raise RuntimeError(f"the resumed crawl ended with code {process.returncode}")
    return passed


def next_us(folder: Path) -> float:
    """Return the median of 2,000 calls. The leased pages are returned outside of the measured time."""
    with closing(Reading(folder)) as reading:
        frontier, now = rebuilt(reading)
    later = now + 1e6  # no site is delayed any more
    settle(frontier, now)
    taken = []
    for _ in range(2_000):
        began = time.perf_counter()
        visit = frontier.next(later)
        taken.append(time.perf_counter() - began)
        assert isinstance(visit, Visit), visit
        frontier.finish(visit, Outcome(), later)
    return median(taken) * 1e6


def measured(sites: int) -> Measured:
    with tempfile.TemporaryDirectory() as scratch, link_server() as port:
        place = Path(scratch)
        seconds, samples = crawled(place, sites, port)
        folder = place / "crawl"
        with closing(sqlite3.connect(folder / "crawl.db")) as database:
            (urls,) = database.execute("select count(*) from page").fetchone()
            (pages,) = database.execute("select count(distinct page) from fetch where result = 3").fetchone()
        if pages != sites:
            raise RuntimeError(f"the crawl fetched {pages} of {sites} pages")
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        start = next(sample.loop_bytes for sample in samples if sample.store_bytes)  # the store has just started
        loop, store = (max(column) for column in zip(*samples, strict=True))
        found = Measured(
            urls, sites, sites / seconds, loop, start, store, disk, resume_s(folder, sites), next_us(folder)
        )
        say(str(found))
        return found


def run(full: bool) -> Iterator[Finding]:
    small = measured(1_000 if full else 50)
    yield finding(small)
    if not full:
        return
    large = measured(100_000)
    yield finding(large)
    yield Finding("The crawl knows 10^7 URLs on 10^5 sites.", f"{large.urls:,} on {large.sites:,}", large.urls >= 10**7)
    each = (large.loop_bytes - small.loop_bytes) / (large.urls - small.urls)
    yield Finding("A known URL costs at most 150 bytes of memory.", f"{each:.0f} bytes", each <= 150)
    ratio = large.next_us / small.next_us
    yield Finding(
        "`next` takes at most twice as long with a hundred times as many sites.", f"{ratio:.2f} times", ratio <= 2
    )


def finding(one: Measured) -> Finding:
    measured = (
        f"{one.pages_per_s:,.0f} pages/s; memory {one.loop_bytes / 1e6:,.0f} MB (store {one.store_bytes / 1e6:,.0f} MB);"
        f" disk {one.disk_bytes / one.urls:.0f} bytes per URL; next {one.next_us:.1f} us; resume {one.resume_s:.1f} s"
    )
    return Finding(
        f"A crawl that knows {one.urls:,} URLs on {one.sites:,} sites ends normally and can be resumed.", measured, True
    )


SECTION = Section("Scale on one machine", _METHOD, run)
