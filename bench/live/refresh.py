"""Measures the freshness of a live crawl by the level of its providers; the web measures it, not the crawler.

A web of real sites on loopback changes, as drawn by one seed. It is crawled once for each level of its providers: they send no
signals (normal), they ping the endpoint at each update (smart), they also publish future updates (super); and once half of the
sites are smart and half are liars. The refresh rate of the crawl is the same each time. Freshness comes from testweb's own log.
Run it on a quiet machine:

    python bench/live/refresh.py [--seconds 240] [--levels normal,smart,super,liar]

It also prints the results of the pings, the share of the fetches in the second half that went to pages of each level (liars have
half of all pages), and how much the pings of each level were trusted over time: a liar loses influence.
"""

import argparse
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from trapline.report.refresh_record import Trust

TRAPLINE = [sys.executable, "-c", "from trapline.cli import main; main()"]
MIXES = {
    "normal": "normal=1",
    "smart": "smart=1",
    "super": "super=1",
    "liar": "smart=0.5,liar=0.5",
}
Course = list[tuple[float, list["Trust"]]]  # seconds since the start of the crawl, and the trust in each channel then
_MOMENTS = 6  # number of samples of trust


def main() -> None:
    args = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _run("graph", "generate", "--pages", str(args.pages), "--sites", str(args.sites), "--seed", "1", "-o", "web")
        found = {level: _crawl(level, args) for level in args.levels.split(",")}
    print(f"{args.pages} pages, an update every {args.gap} s each, {args.rate:g} refetches a second, {args.seconds} s")
    for level, one in found.items():
        print(
            f"{level:8} fresh {one['fresh']:.3f}; {one['refetches']:,} refetches, {one['useful']:.0%} useful; {one['outcomes']}"
        )
        for who, course in one["trust"].items():
            print(f"         trust in pings of {who} sites: {', '.join(f'{p:.0%} at {at:.0f} s' for at, p in course)}")
        for who, share in one["late"].items():
            print(f"         {who}: {share:.0%} of the fetches in the second half, fresh {one['by'][who]:.3f}")
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=600, help="pages of the web [600]")
    parser.add_argument("--sites", type=int, default=20, help="sites of the web [20]")
    parser.add_argument("--gap", type=float, default=240.0, help="mean seconds between two updates of a page [240]")
    parser.add_argument("--rate", type=float, default=1.0, help="refetches per second [1]")
    parser.add_argument("--seconds", type=int, default=300, help="length of each crawl [300]")
    parser.add_argument(
        "--levels", default="normal,smart,super,liar", help="levels to crawl, separated by commas [all]"
    )
    parser.add_argument("--json", help="write the results to this file")
    return parser.parse_args()


def _crawl(level: str, args: argparse.Namespace) -> dict[str, Any]:
    port, crawl = _free_port(), f"crawl-{level}"
    log, history = f"log-{level}.parquet", f"history-{level}.parquet"
    for name in ("hosts", "seeds"):
        Path(name).unlink(missing_ok=True)
    web = ["testweb", "web", "--changes", f"bursty:{args.gap}s:1h", "--noise", "--providers", MIXES[level]]
    web += ["--ping", f"http://127.0.0.1:{port}/indexnow", "--log", log, "--history", history]
    with _running(*web, "--hosts-file", "hosts", "--urls-file", "seeds"):
        _wait(lambda: Path("seeds").exists())
        time.sleep(0.5)
        refresh = ["--continuous", "--refresh-rate", str(args.rate), "--max-time", str(args.seconds)]
        polite = ["--delay", "0.5", "--pause", "0", "--allow-private", "--hosts", "hosts"]
        with _running("crawl", "--seeds", "seeds", *polite, *refresh, "-o", crawl, "--quiet", "--json") as crawling:
            _wait(lambda: Path(crawl, "crawl.db").exists())
            with _running(
                "refresh", "serve", crawl, "--listen", f"127.0.0.1:{port}", "--allow-private", "--hosts", "hosts"
            ):
                course = _course(Path(crawl), crawling, args.seconds)
                crawling.wait()
    return _found(crawl, log, history, args.seconds, course)


def _course(crawl: Path, crawling: subprocess.Popen[bytes], seconds: int) -> Course:
    """Sample trust while the crawl runs, because the crawl does not keep the old part of its log."""
    from trapline.crawler.engine.options import CrawlOptions, RefreshOptions
    from trapline.report.refresh_record import trust_now

    with closing(sqlite3.connect(crawl / "crawl.db")) as database:
        (options,) = database.execute("select value from meta where key = 'options'").fetchone()
    refresh = CrawlOptions.from_json(options).refresh or RefreshOptions()
    began, found = time.monotonic(), []
    for number in range(1, _MOMENTS + 1):
        with suppress(subprocess.TimeoutExpired):
            crawling.wait(began + seconds * number / _MOMENTS - time.monotonic())
        found.append((time.monotonic() - began, trust_now(crawl, refresh)))
    return found


def _found(crawl: str, log: str, history: str, seconds: int, course: Course) -> dict[str, Any]:
    """Collect the results. All pages weigh the same, because the crawl knows no accesses."""
    by, late = (_measured(log, history, begin) for begin in (seconds // 3, seconds // 2))
    with closing(sqlite3.connect(Path(crawl, "crawl.db"))) as database:
        refetches, changed = database.execute("select count(changed), total(changed) from fetch").fetchone()
        outcomes = database.execute("select outcome, count(*) from signal group by outcome order by 2 desc").fetchall()
    return {
        "fresh": by.pop("all")["binary"],
        "refetches": refetches,
        "useful": changed / max(refetches, 1),
        "outcomes": ", ".join(f"{number:,} {outcome}" for outcome, number in outcomes) or "no signals",
        "by": {who: one["binary"] for who, one in by.items()},
        "trust": _trust(crawl, history, course),
        "late": {who: late[who]["fetches"] / max(late["all"]["fetches"], 1) for who in by},
    }


def _trust(crawl: str, history: str, course: Course) -> dict[str, list[tuple[float, float]]]:
    """Return the trust in pings over time: for each level the mean over the sites whose pings were received."""
    import pyarrow.parquet

    columns = pyarrow.parquet.read_table(history, columns=["host", "level"]).to_pydict()
    level = dict(zip(columns["host"], columns["level"], strict=True))
    with closing(sqlite3.connect(Path(crawl, "crawl.db"))) as database:
        hosts = {
            site: str(urlsplit(origin).hostname) for site, origin in database.execute("select id, origin from site")
        }
    found: dict[str, list[tuple[float, float]]] = {}
    for at_s, rows in course:
        believed: dict[str, list[float]] = {}
        for one in rows:
            if one.channel == "indexnow" and one.verified:
                believed.setdefault(level[hosts[one.site]], []).append(one.precision)
        for who, shares in believed.items():
            found.setdefault(who, []).append((at_s, sum(shares) / len(shares)))
    return found


def _measured(log: str, history: str, begin: int) -> dict[str, Any]:
    printed = _run("testweb", "freshness", log, history, "--from", f"{begin}s", "--zipf", "0", "--json")
    found: dict[str, Any] = json.loads(printed)["freshness"]
    return found


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _run(*arguments: str) -> str:
    return subprocess.run([*TRAPLINE, *arguments], check=True, capture_output=True, text=True).stdout


def _wait(until: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise TimeoutError(f"the crawl or testweb was not ready after {seconds:g} s")
        time.sleep(0.1)


@contextmanager
def _running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([*TRAPLINE, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(60)


if __name__ == "__main__":
    main()
