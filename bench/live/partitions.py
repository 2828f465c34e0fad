"""Compares the processor time per page of one process with that of several: python bench/live/partitions.py

nginx serves the pages of `make bench-live`, three links of which lead to other sites. One process and several crawl them in turn, to the
last page. What they use between a tenth and nine tenths of the pages is compared within a round. In mode firewall, processes exchange no
links, so the difference to mode exchange is what the links cost, and the rest is what several processes cost on this machine. The second
table says who was idle in the crawls in mode exchange, and why: the share of the crawl in which each process used a core, and what its
connections did meanwhile.

Two hyperthreads of one core that both work take longer for the same work, and several processes keep more of them busy. --core runs
everything on one, so that processor times are comparable; pages/s are then not.
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

from contestants import CONNECTIONS, Contestant, Ended, Result, trapline
from ending import end_in_order
from processor import descendants, processor_s
from run import Measured, Web, measure, served

from trapline.crawler.files.layout import connect
from trapline.crawler.files.status_file import read_status
from trapline.parallel import EXCHANGE, FIREWALL

_EVERY_S = 0.1
_SMALL = 30  # pages on each site of the other web, which is not crawled here
_STORE = "trapline.crawler.store"


class Trace:
    """Samples the processes and the status of the partitions of a crawl in a thread, from `follow` to `stop`."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self.seconds: dict[str, float] = {}  # of processor time, by process
        self.connections: Counter[str] = Counter()  # samples by state

    def follow(self, folder: Path) -> None:
        self._thread = threading.Thread(target=self._run, args=(folder,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self, folder: Path) -> None:
        while not self._stopped.wait(_EVERY_S):
            for process in descendants(os.getpid()):
                if part := partition_of_store(process):
                    self.seconds[f"store of {part}"] = processor_s(process)
                    self.seconds[f"loop of {part}"] = processor_s(parent(process))
            for part_folder in folder.glob("partition-*"):
                found = (read_status(part_folder) or {}).get("connections") or {}
                self.connections.update(found.get("lately") or {})


def partition_of_store(process: int) -> str:
    """Return the name of the partition whose store this process is; "": it is no store of a partition."""
    with suppress(OSError):
        words = Path(f"/proc/{process}/cmdline").read_text().split("\0")
        names = [Path(word).name for word in words]
        return next((name for name in names if name.startswith("partition-")), "") if _STORE in words else ""
    return ""


def parent(process: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def contestant(processes: int, mode: str, trace: Trace | None) -> Contestant:
    def command(seeds: Path, folder: Path) -> list[str]:
        if trace is not None:
            trace.follow(folder)
        order = ["--processes", str(processes), *(["--mode", mode] if mode else [])]
        args = f"--connections {CONNECTIONS} --delay 0 --allow-private --quiet"
        return trapline("crawl", "--seeds", str(seeds), "-o", str(folder), *order, *args.split())

    return Contestant(_name(processes, mode), False, command, middle)


def _name(processes: int, mode: str) -> str:
    return f"{processes}, {mode}" if mode else str(processes)


def middle(ended: Ended) -> Result:
    """Return the part of the crawl between a tenth and nine tenths of its pages. Processes do not start and end there."""
    with closing(connect(ended.folder)) as database:
        rows = database.execute("select at, pages from progress order by at").fetchall()
    total = rows[-1][1]
    first = next(row for row in rows if row[1] >= total / 10)
    last = next(row for row in rows if row[1] >= total * 9 / 10)
    return Result(last[1] - first[1], first[0], last[0] - first[0], str(total))


def crawled(web: Web, server: int, processes: int = 1, mode: str = "", trace: Trace | None = None) -> Measured:
    found = measure(contestant(processes, mode, trace), web, server)
    total = int(found.result.remarks) if found else 0
    if found is None or total != web.pages:
        sys.exit(f"the crawl by {processes} processes fetched {total:,} of {web.pages:,} pages")
    return found


def us_per_page(one: Measured) -> float:
    return 1e6 * (one.used.crawler_s + one.used.children_s) / one.result.pages


def show(found: dict[str, list[Measured]]) -> None:
    """Print the medians of each kind of crawl; the first kind is what the others are divided by, within a round."""
    (_, alone), *_ = found.items()
    print(
        "\n| processes | pages/s | us a page, all processes | times that of one | pages/s, times that of one | nginx, us a page |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for name, rounds in found.items():
        speed, used = (statistics.median(map(of, rounds)) for of in (lambda one: one.speed, us_per_page))
        server = statistics.median(1e6 * one.used.server_s / one.result.pages for one in rounds)
        pairs = list(zip(rounds, alone, strict=True))
        ratio = statistics.median(us_per_page(one) / us_per_page(other) for one, other in pairs)
        times = statistics.median(one.speed / other.speed for one, other in pairs)
        print(f"| {name} | {speed:,.0f} | {used:,.0f} | {ratio:.2f} | {times:.2f} | {server:,.0f} |")


def show_idle(traces: list[Trace], together: list[Measured]) -> None:
    seconds = sum(one.result.seconds for one in together)
    print("\n| process | share of a core, with its start |\n|---|---:|")
    for name in sorted({name for trace in traces for name in trace.seconds}):
        print(f"| {name} | {sum(trace.seconds.get(name, 0.0) for trace in traces) / seconds:.0%} |")
    states = sum((trace.connections for trace in traces), Counter())
    shares = ", ".join(f"{name} {count / states.total():.0%}" for name, count in states.most_common() if count)
    print(f"\nconnections: {shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2, help="number of processes to compare with one [2]")
    parser.add_argument("--pages-per-site", type=int, default=300, help="pages on each of the 100 sites [300]")
    parser.add_argument("--repeats", type=int, default=5, help="number of rounds [5]")
    parser.add_argument("--core", type=int, help="run crawls and nginx on this core alone")
    args = parser.parse_args()
    end_in_order()
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    kinds = [(1, ""), (args.processes, FIREWALL), (args.processes, EXCHANGE)]
    found: dict[str, list[Measured]] = {_name(*kind): [] for kind in kinds}
    traces = []
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), args.pages_per_site, _SMALL) as (webs, server):
        crawled(webs[False], server)  # brings the pages into the file system's cache
        for _ in range(args.repeats):
            for processes, mode in kinds:
                trace = Trace() if mode == EXCHANGE else None
                found[_name(processes, mode)].append(crawled(webs[False], server, processes, mode, trace))
                if trace is not None:
                    trace.stop()
                    traces.append(trace)
    show(found)
    show_idle(traces, found[_name(args.processes, EXCHANGE)])


if __name__ == "__main__":
    main()
