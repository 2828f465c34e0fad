"""Says which parts of Trapline take the processor time of a live crawl: python bench/live/profile_parts.py [--against COMMAND]

py-spy samples the loop and the store of a crawl of the pages of `make bench-live`, or of a folder of real documents (--tree). A
sample counts for the part that the innermost frame of Trapline belongs to. The shares of the samples are multiplied by the processor
time per page of crawls that are not sampled. --against measures another installation beside this one, in turns, such as an earlier
version in an environment of its own. --processes 2 measures crawls by two processes beside crawls by one: what partitions cost.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from contestants import CONNECTIONS, trapline
from ending import end_in_order
from processor import descendants, processor_s
from run import Web, web_of

_RATE = 400  # samples a second
_STORE = "trapline.crawler.store"
_FROM_S = 0.5  # after the start of its store, a crawl has imported its modules and loaded its kernels
_PARTS = (
    ("fetch/html/", "links of a page: tokenizer and rules"),
    ("fetch/urls", "URLs: joined and canonical"),
    ("fetch/", "requests and responses: connections, heads, bodies"),
    ("crawler/visits/judge", "judging a response"),
    ("crawler/visits/", "visits: pauses, limits, requests"),
    ("parallel/folder/merged", "databases merged at the end"),
    ("parallel/live/supervisor", "start, coordinator and end of several processes"),
    ("parallel/live/worker", "start, coordinator and end of several processes"),
    ("parallel/", "exchange with other processes"),
    ("crawler/discovery/", "links: known ones looked up, new ones registered"),
    ("crawler/robots/", "robots.txt"),
    ("crawler/store/warc", "WARC records and compression"),
    ("crawler/store/archive", "WARC records and compression"),
    ("crawler/store/database", "database"),
    ("crawler/store/filing", "database"),
    ("crawler/store/cdxj", "index"),
    ("crawler/store/", "batches between loop and store"),
    ("crawler/", "the crawl: results, rows, status, checkpoints"),
    ("frontier/", "frontier: reports, links, next visits, log"),
    ("compiled/", "frontier: reports, links, next visits, log"),
)
_OTHER = "event loop and the rest"
_WAITING = "_die_with_the_other_end"  # a thread that waits in a system call, which py-spy takes for work


class Crawled(NamedTuple):
    """Microseconds of processor time per page, with the start of the command."""

    loop: float
    store: float


def part_of(stack: str) -> str:
    """Return the part of a stack of py-spy's raw format: frames from the outermost to the innermost, separated by semicolons."""
    for frame in reversed(stack.split(";")):
        _, found, place = frame.partition("(trapline/")
        if found:
            return next((name for begin, name in _PARTS if place.startswith(begin)), _OTHER)
    return _OTHER


class Contender(NamedTuple):
    """A column of the tables: an installation, and the number of processes that crawl."""

    command: list[str]
    processes: int = 1


def start(one: Contender, web: Web, folder: Path) -> subprocess.Popen[bytes]:
    options = ["--delay", "0", "--connections", str(CONNECTIONS), "--allow-private", "--quiet"]
    options += ["--processes", str(one.processes)] if one.processes > 1 else []
    return subprocess.Popen([*one.command, "crawl", "--seeds", str(web.seeds), "-o", str(folder), *options])


def is_store(process: int) -> bool:
    with suppress(OSError):
        return _STORE in Path(f"/proc/{process}/cmdline").read_text().split("\0")
    return False


def timed(one: Contender, web: Web) -> Crawled:
    """Crawl without sampling."""
    with tempfile.TemporaryDirectory() as scratch:
        crawler = start(one, web, Path(scratch) / "crawl")
        used: dict[bool, dict[int, float]] = {False: {}, True: {}}  # seconds by process: of stores, and of the others
        while crawler.poll() is None:
            for process in (crawler.pid, *descendants(crawler.pid)):
                of = used[is_store(process)]
                of[process] = max(processor_s(process), of.get(process, 0.0))
            time.sleep(0.05)
    return Crawled(*(1e6 * sum(used[kind].values()) / web.pages for kind in (False, True)))


def sampled(one: Contender, web: Web, spy: str) -> tuple[Counter[str], Counter[str]]:
    """Return the samples of loops and stores."""
    with tempfile.TemporaryDirectory() as scratch:
        crawler = start(one, web, Path(scratch) / "crawl")
        while crawler.poll() is None and sum(map(is_store, descendants(crawler.pid))) < one.processes:
            time.sleep(0.05)
        time.sleep(_FROM_S)
        every = [crawler.pid, *descendants(crawler.pid)]
        stores = [process for process in every if is_store(process)]
        loops = [process for process in every if process not in stores]
        files = {process: Path(scratch) / f"{process}.txt" for process in every}
        spies = [
            subprocess.Popen(
                [spy, "record", "-p", str(process), "-r", str(_RATE), "-d", "600", "-f", "raw", "-o", str(file)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for process, file in files.items()
        ]
        crawler.wait()
        for spying in spies:
            spying.wait(60)
        found = {process: counted(file) for process, file in files.items() if file.exists()}
    of = {process: found.get(process, Counter()) for process in every}
    return sum((of[process] for process in loops), Counter()), sum((of[process] for process in stores), Counter())


def counted(file: Path) -> Counter[str]:
    samples: Counter[str] = Counter()
    for line in file.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        if _WAITING not in stack:
            samples[part_of(stack)] += int(count)
    return samples


def print_table(title: str, names: list[str], columns: list[tuple[float, Counter[str]]]) -> None:
    """Print microseconds per page by part, a column for each installation."""
    per_page = [
        {part: us * count / samples.total() for part, count in samples.items()} if samples else {}
        for us, samples in columns
    ]
    every = sorted({part for column in per_page for part in column}, key=lambda part: -per_page[-1].get(part, 0.0))
    print(f"\n| {title}, us a page | {' | '.join(names)} |\n|---|{'---:|' * len(names)}")
    for part in every:
        print(f"| {part} | {' | '.join(f'{column.get(part, 0.0):.0f}' for column in per_page)} |")
    print(f"| together | {' | '.join(f'{us:.0f}' for us, _ in columns)} |", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--against", help="the command of another installation, such as old/.venv/bin/trapline")
    options.add_argument("--processes", type=int, default=1, help="also crawl with this number of processes")
    options.add_argument("--spy", default="py-spy", help="the command of py-spy [py-spy]")
    options.add_argument("--repeats", type=int, default=3, help="number of rounds [3]")
    options.add_argument("--tree", type=Path, help="crawl the documents of this folder")
    options.add_argument("--sites", type=int, default=20, help="number of sites that --tree is served as [20]")
    args = options.parse_args()
    end_in_order()
    commands = {"before": Contender([args.against])} if args.against else {}
    commands["one process" if args.processes > 1 else "now"] = Contender(trapline())
    if args.processes > 1:
        commands[f"{args.processes} processes"] = Contender(trapline(), args.processes)
    web_options = SimpleNamespace(tree=args.tree, sites=args.sites, pages_per_site=300, small=30)
    with tempfile.TemporaryDirectory() as scratch, web_of(web_options, Path(scratch)) as (webs, _):
        for command in commands.values():
            timed(command, webs[False])  # brings pages and kernels into the caches
        times: dict[str, list[Crawled]] = {name: [] for name in commands}
        profiles: dict[str, list[tuple[Counter[str], Counter[str]]]] = {name: [] for name in commands}
        for number in range(args.repeats):
            for name, command in commands.items():
                times[name].append(timed(command, webs[False]))
                profiles[name].append(sampled(command, webs[False], args.spy))
                print(f"round {number + 1}: {name}: {times[name][-1]}", file=sys.stderr)
    for at, title in enumerate(("loop", "store")):
        columns = [
            (statistics.median(one[at] for one in times[name]), sum((pair[at] for pair in profiles[name]), Counter()))
            for name in commands
        ]
        print_table(title, list(commands), columns)


if __name__ == "__main__":
    main()
