"""Compares a crawl by one process with one by several, on one machine: python bench/live/processes.py

`trapline testweb` serves a generated web, each site on its own address. There are two cases. In one, answers take 20 ms, and each
process has so few connections that they wait most of the time. In the other, the server answers at once, and the processor is the
bottleneck, which crawler and server share. Crawls are compared within a round; the table shows medians over the rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from contestants import trapline
from ending import end_in_order
from processor import Used, Watch

_PAGES, _SITES = 100_000, 1_000
_STARTS_AND_ENDS_S = 180.0  # time for compiling in the first run, and for the last visits


class Case(NamedTuple):
    name: str
    latency: str
    connections: int  # of each process


class Served(NamedTuple):
    process: int
    options: list[str]  # by which a crawl finds this web


class Measured(NamedTuple):
    summary: dict[str, Any]
    used: Used

    @property
    def speed(self) -> float:
        return float(self.summary["pages_per_second"])

    @property
    def crawler_s(self) -> float:
        return self.used.crawler_s + self.used.children_s


@contextmanager
def served(scratch: Path, graph: Path, latency: str) -> Iterator[Served]:
    hosts, urls = scratch / f"hosts-{latency}", scratch / f"urls-{latency}"
    files = ["--hosts-file", str(hosts), "--urls-file", str(urls)]
    slow = ["--latency", latency, "--connection-latency", latency]
    server = subprocess.Popen(
        trapline("testweb", str(graph), *slow, *files, "--json"), stdout=subprocess.PIPE, text=True
    )
    assert server.stdout
    try:
        if not server.stdout.readline():  # it prints a line once it serves
            sys.exit("testweb did not start")
        yield Served(server.pid, ["--seeds", str(urls), "--hosts", str(hosts), "--allow-private"])
    finally:
        server.terminate()
        server.communicate()


def crawl(web: Served, connections: int, processes: int, seconds: float) -> Measured:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "crawl"
        args = ["--connections", str(connections), "--processes", str(processes), "--max-time", str(seconds)]
        command = trapline("crawl", *web.options, *args, "--delay", "0", "--quiet", "-o", str(folder))
        crawler = subprocess.Popen(command)
        watch = Watch(crawler.pid, web.process)
        try:
            if crawler.wait(seconds + _STARTS_AND_ENDS_S):
                sys.exit(f"the crawl by {processes} processes failed; its messages are above")
        finally:
            crawler.kill()
            watch.stop()
        summary = json.loads((folder / "summary.json").read_text())
        complain(f"{processes} processes", summary)
        return Measured(summary, watch.traffic(summary["began"], summary["began"] + summary["seconds"]))


def complain(which: str, summary: dict[str, Any]) -> None:
    """Print errors and politeness violations, which must not occur on this web."""
    for name in ("errors", "politeness_violations"):
        if summary[name]:
            print(f"{which}: {name}: {summary[name]:,}", file=sys.stderr)


def row(name: str, processes: int, found: list[Measured], alone: list[Measured]) -> str:
    def median(values: Iterator[float]) -> float:
        return statistics.median(list(values))

    pace = median(one.speed for one in found)
    times = median(one.speed / other.speed for one, other in zip(found, alone, strict=True))
    per_page = median(1e6 * one.crawler_s / one.summary["pages_fetched"] for one in found)
    cores = os.cpu_count() or 1
    server = median(one.used.server_s / (one.summary["seconds"] * cores) for one in found)
    return f"| {name} | {processes} | {pace:,.0f} | {times:.2f} | {per_page:,.0f} | {server:.0%} |"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2, help="number of processes to compare with one [2]")
    parser.add_argument("--latency", default="20ms", help="latency of an answer, and of a connection [20ms]")
    parser.add_argument(
        "--connections", type=int, default=16, help="connections of each process in the case of latency [16]"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each crawl [10]")
    parser.add_argument("--repeats", type=int, default=3, help="number of rounds [3]")
    return parser.parse_args()


def main() -> None:
    args = options()
    end_in_order()
    cases = (Case("latency", args.latency, args.connections), Case("processor", "0", 100))
    with tempfile.TemporaryDirectory() as folder:
        scratch, graph = Path(folder), Path(folder) / "graph"
        size = ["--pages", str(_PAGES), "--sites", str(_SITES), "--seed", "1"]
        subprocess.run(trapline("graph", "generate", *size, "-o", str(graph)), check=True, stdout=subprocess.DEVNULL)
        print("| bound by | processes | pages/s | times one | crawler us/page | server's share of the processor |")
        print("|---|---:|---:|---:|---:|---:|")
        for case in cases:
            with served(scratch, graph, case.latency) as web:
                compare(case, web, args)


def compare(case: Case, web: Served, args: argparse.Namespace) -> None:
    found: dict[int, list[Measured]] = {1: [], args.processes: []}
    for _ in range(args.repeats):
        for processes, measured in found.items():
            measured.append(crawl(web, case.connections, processes, args.seconds))
    for processes, measured in found.items():
        print(row(case.name, processes, measured, found[1]), flush=True)


if __name__ == "__main__":
    main()
