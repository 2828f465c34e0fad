"""Samples processor time and memory of a crawler and a server from /proc, several times a second. Linux only.

A crawler has one or more processes: itself and its children (Trapline's store is one).
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

_EVERY_S = 0.05
_CRAWL_EVERY_S = 0.1  # for crawls of many minutes
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Sample(NamedTuple):
    at: float  # wall clock
    crawler_s: float
    children_s: float
    server_s: float


class Used(NamedTuple):
    """Seconds of processor time between two moments."""

    crawler_s: float
    children_s: float
    server_s: float


class Watch:
    """Samples the processor time of a crawler and of the server in a thread, until `stop`."""

    def __init__(self, crawler: int, server: int) -> None:
        self._crawler, self._server = crawler, server
        self._samples: list[Sample] = []
        self._children: set[int] = set()
        self._last: dict[int, float] = {}  # seconds of each process, also after it has ended
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def traffic(self, started: float, ended: float) -> Used:
        first, last = self._at(started), self._at(ended)
        spent = [max(0.0, b - a) for a, b in zip(first[1:], last[1:], strict=True)]
        return Used(*spent)

    def _at(self, moment: float) -> Sample:
        return min(self._samples, key=lambda sample: abs(sample.at - moment))

    def _run(self) -> None:
        while True:
            self._children.update(descendants(self._crawler))
            server = {self._server, *descendants(self._server)}
            used = [self._seconds(who) for who in ({self._crawler}, self._children, server)]
            self._samples.append(Sample(time.time(), *used))
            if self._stopped.wait(_EVERY_S):
                return

    def _seconds(self, processes: set[int]) -> float:
        for process in processes:
            self._last[process] = max(processor_s(process), self._last.get(process, 0.0))
        return sum(self._last[process] for process in processes)


class CrawlSample(NamedTuple):
    """What a crawl in a process with a store has used until a moment."""

    at: float  # wall clock
    loop_s: float
    store_s: float
    loop_bytes: int
    store_bytes: int


def sampled_crawl(words: list[str]) -> list[CrawlSample]:
    """Run a crawl by this command, and sample what it uses until it ends."""
    crawler = subprocess.Popen(words)
    samples: list[CrawlSample] = []
    ended = threading.Event()
    sampling = threading.Thread(target=_sample, args=(crawler.pid, samples, ended))
    sampling.start()
    try:
        code = crawler.wait()
    finally:
        ended.set()
        sampling.join()
    if code:
        sys.exit(f"the crawl failed with exit code {code}")
    return samples


def _sample(crawler: int, samples: list[CrawlSample], ended: threading.Event) -> None:
    while not ended.wait(_CRAWL_EVERY_S):
        stores = descendants(crawler)
        used = processor_s(crawler), sum(map(processor_s, stores))
        samples.append(CrawlSample(time.time(), *used, resident_bytes(crawler), sum(map(resident_bytes, stores))))


def processor_s(process: int) -> float:
    """Return user and system time of one process so far; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_bytes(process: int) -> int:
    """Return the resident memory of one process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def descendants(process: int) -> list[int]:
    """Return the children of a process, their children, and so on."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found
