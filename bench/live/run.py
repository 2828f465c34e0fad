"""Compares Trapline with other crawlers and a bare loop on the same static pages: make bench-live, or python bench/live/run.py

nginx serves 100 sites, each on its own address; with --tree, a folder of real documents as 20 sites. The crawlers run one after the
other, each in its own process, in rounds. Crawlers are compared within a round, because the speed of a machine varies over time. The
table shows medians over the rounds.
docs/how-to/benchmark-live.md explains what is measured, and what is not.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import nginx
import pages
from contestants import CONNECTIONS, PEERS, Contestant, Ended, Result, contestants
from ending import end_in_order
from processor import Used, Watch

SITES = CONNECTIONS
_SECONDS_AT_MOST = 1_800


class Web(NamedTuple):
    seeds: Path
    pages: int


class Measured(NamedTuple):
    result: Result
    used: Used

    @property
    def speed(self) -> float:
        return self.result.pages / self.result.seconds

    @property
    def pages_per_processor_second(self) -> float:
        """Pages per second of the crawler's own processor time: its speed on a whole core, less affected by other load."""
        return self.result.pages / max(self.used.crawler_s, 0.01)


Rounds = list[dict[str, Measured]]


@contextmanager
def served(scratch: Path, large: int, small: int) -> Iterator[tuple[dict[bool, Web], int]]:
    """Serve both webs; yield them by whether they are the small one, and the process id of nginx."""
    webs, listeners = {}, []
    addresses = [pages.address(site) for site in range(SITES)]
    ports = nginx.free_ports(addresses, 2)
    for is_small, per_site, at in ((False, large, ports[0]), (True, small, ports[1])):
        folder = scratch / f"web-{per_site}-{at}"
        pages.write(folder, SITES, per_site, at)
        seeds = scratch / f"seeds-{at}"
        seeds.write_text("".join(f"{pages.origin(site, at)}/\n" for site in range(SITES)))
        webs[is_small] = Web(seeds, SITES * per_site)
        listeners.append(nginx.Listener(addresses, at, f"{folder}/$server_addr"))
    with nginx.serving(listeners, scratch / "nginx") as server:
        yield webs, server.pid


@contextmanager
def served_tree(scratch: Path, tree: Path, sites: int) -> Iterator[tuple[dict[bool, Web], int]]:
    """Serve a folder of documents as this many sites; yield as `served` does, with one web for all crawlers."""
    addresses = [pages.address(site) for site in range(sites)]
    [port] = nginx.free_ports(addresses, 1)
    seeds = scratch / "seeds"
    seeds.write_text("".join(f"{pages.origin(site, port)}/\n" for site in range(sites)))
    web = Web(seeds, sites * sum(1 for _ in tree.rglob("*.html")))
    with nginx.serving([nginx.Listener(addresses, port, str(tree))], scratch / "nginx") as server:
        yield {False: web, True: web}, server.pid


def measure(contestant: Contestant, web: Web, server: int) -> Measured | None:
    """Run one crawler; return None if it failed, after printing the reason."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "crawl"
        command, started = contestant.command(web.seeds, folder), time.time()
        try:
            crawler = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            print(f"{contestant.name}: not measured: {error}", file=sys.stderr)
            return None
        watch = Watch(crawler.pid, server)
        try:
            output, complaints = crawler.communicate(timeout=_SECONDS_AT_MOST)
            ended = Ended(output, folder, started, time.time() - started)
        finally:
            crawler.kill()
            watch.stop()
        if crawler.returncode not in contestant.exits:
            reason = (complaints or output).strip().splitlines()[-1:] or ["it printed nothing"]
            print(f"{contestant.name}: not measured: {reason[0]}", file=sys.stderr)
            return None
        result = contestant.result(ended)
        return Measured(result, watch.traffic(result.started, result.started + result.seconds))


def rounds(chosen: list[Contestant], webs: dict[bool, Web], server: int, repeats: int) -> Rounds:
    found: Rounds = [{} for _ in range(repeats)]
    for number, row in enumerate(found, 1):
        for contestant in chosen:
            measured = measure(contestant, webs[contestant.small], server)
            if measured is not None:
                row[contestant.name] = measured
                short = webs[contestant.small].pages - measured.result.pages
                note = f"; {short:,} PAGES SHORT" if short else ""
                print(
                    f"round {number}: {contestant.name:32} {measured.speed:8,.0f} pages/s {measured.result.remarks}{note}"
                )
                sys.stdout.flush()
    return found


def median_ratio(found: Rounds, name: str, other: str, what: str = "speed") -> float | None:
    """Return the median ratio of two crawlers in the same round; None if no round has both."""
    ratios = [getattr(row[name], what) / getattr(row[other], what) for row in found if name in row and other in row]
    return statistics.median(ratios) if ratios else None


def record(found: Rounds, name: str) -> dict[str, float] | None:
    """Return the medians of a crawler. Processor time is in microseconds per page."""
    measured = [row[name] for row in found if name in row]
    if not measured:
        return None

    def per_page(field: str) -> float:
        return statistics.median(1e6 * getattr(m.used, field) / m.result.pages for m in measured)

    return {
        "pages": measured[0].result.pages,
        "pages_per_second": statistics.median(m.speed for m in measured),
        "best": max(m.speed for m in measured),
        "crawler_us": per_page("crawler_s"),
        "children_us": per_page("children_s"),
        "nginx_us": per_page("server_s"),
    }


def table(found: Rounds, names: list[str]) -> str:
    rows = ["|  | pages | pages/s | best | times Scrapy | crawler us/page | its store | nginx |", "|---|" + "---:|" * 7]
    for name in names:
        values = record(found, name)
        if values is not None:
            ratio = median_ratio(found, name, "Scrapy")
            cells = [f"{values['pages']:,.0f}", f"{values['pages_per_second']:,.0f}", f"{values['best']:,.0f}"]
            cells += ["-" if ratio is None else f"{ratio:.1f}"]
            cells += [f"{values[part]:,.0f}" for part in ("crawler_us", "children_us", "nginx_us")]
            rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


_COMPARED = (
    ("Trapline", "Scrapy", "at least 30, 40 is the aim"),
    ("Trapline", "Scrapy, tuned", ""),
    ("Crawlee", "Scrapy", ""),
    ("Trapline", "Crawlee", ""),
    ("Trapline", "spider-rs", "1.5 is the aim"),
    ("Trapline", "wget2", "1.5 is the aim"),
    ("Trapline, watched", "Trapline", "0.97 is the aim"),
    ("Trapline from Python", "Trapline", "0.8 is the aim"),
    ("Trapline from Python, no folder", "Trapline", ""),
    ("Trapline", "bare loop, known by href", "0.67 is the aim"),
    ("Trapline", "bare loop, known by URL", ""),
)


def ratios(found: Rounds, what: str) -> dict[str, float]:
    known = {f"{a} / {b}": median_ratio(found, a, b, what) for a, b, _ in _COMPARED}
    return {name: ratio for name, ratio in known.items() if ratio is not None}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="number of rounds [3]")
    parser.add_argument("--pages-per-site", type=int, default=300, help="pages per site of the large web [300]")
    parser.add_argument("--small", type=int, default=30, help="pages per site of the small web [30]")
    parser.add_argument(
        "--tree", type=Path, help="serve the documents of this folder, such as /usr/share/doc/python3-doc/html"
    )
    parser.add_argument("--sites", type=int, default=20, help="number of sites that --tree is served as [20]")
    parser.add_argument("--only", action="append", help="run crawlers whose name begins with this; may be repeated")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    return parser.parse_args()


def web_of(args: argparse.Namespace, scratch: Path) -> AbstractContextManager[tuple[dict[bool, Web], int]]:
    if args.tree:
        return served_tree(scratch, args.tree.resolve(), args.sites)
    print(f"writing {SITES * (args.pages_per_site + args.small):,} pages", flush=True)
    return served(scratch, args.pages_per_site, args.small)


def main() -> None:
    args = options()
    end_in_order()
    chosen = [c for c in contestants() if not args.only or c.name.startswith(tuple(args.only))]
    with tempfile.TemporaryDirectory() as folder, web_of(args, Path(folder)) as (webs, server):
        # The first crawl is not measured: it brings every page into the file system's cache.
        measure(contestants()[0], webs[False], server)
        found = rounds(chosen, webs, server, args.repeats)
    show(found, [contestant.name for contestant in chosen])
    if args.json:
        medians = {contestant.name: record(found, contestant.name) for contestant in chosen}
        compared = {what: ratios(found, what) for what in ("speed", "pages_per_processor_second")}
        args.json.write_text(json.dumps({"medians": medians, "ratios": compared}, indent=1))


def show(found: Rounds, names: list[str]) -> None:
    print("\n" + table(found, names))
    wanted = {f"{a} / {b}": text for a, b, text in _COMPARED}
    by_processor = ratios(found, "pages_per_processor_second")
    print(f"\n{'ratios':36} pages/s  per core")
    for name, ratio in ratios(found, "speed").items():
        print(f"{name:36} {ratio:7.2f}  {by_processor[name]:8.2f}  {wanted[name]}".rstrip())
    print("\n" + standing(found))


def standing(found: Rounds) -> str:
    """Return the sentence that says whether Trapline is first among the crawlers, and which ones are faster."""
    ratios = {name: median_ratio(found, "Trapline", name) for name in PEERS}
    measured = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    faster = [f"{name} ({1 / ratio:.2f} times as fast)" for name, ratio in measured.items() if ratio < 1]
    if not measured:
        return "No other crawler was measured."
    return (
        f"Trapline is not first: {', '.join(faster)}" if faster else f"Trapline is faster than {', '.join(measured)}."
    )


if __name__ == "__main__":
    main()
