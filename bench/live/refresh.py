"""Freshness of a live crawl by what providers tell, measured by the web and not by the crawler.

A web of real sites on loopback changes, as drawn by one seed. It is crawled once for each level of its providers: none of them tells
anything (normal), they ping the endpoint at each update (smart), they also publish what will come (super); and once with half of the smart
ones lying. The crawl's rate is the same each time. Freshness comes from testweb's own log. Run it on a quiet machine:

    python bench/live/refresh.py [--seconds 240] [--levels normal,smart,super,liar]

It also says what became of the pings, which share of the crawls in the last half went to pages of liars, which have half of all pages,
and how far the pings of each level were believed as time went on: a liar loses influence.
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
    from trapline.report.trust import Trust

TRAPLINE = [sys.executable, "-c", "from trapline.cli import main; main()"]
MIXES = {
    "normal": "normal=1",
    "smart": "smart=1",
    "super": "super=1",
    "liar": "smart=0.5,liar=0.5",
}
Course = list[tuple[float, list["Trust"]]]  # seconds since the crawl began, and who was believed then
_MOMENTS = 6  # at which trust is looked at


def main() -> None:
    told = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _run("graph", "generate", "--pages", str(told.pages), "--sites", str(told.sites), "--seed", "1", "-o", "web")
        found = {level: _crawl(level, told) for level in told.levels.split(",")}
    print(
        f"{told.pages} pages, an update every {told.gap} s each, {told.rate:g} pages a second fetched again, {told.seconds} s"
    )
    for level, one in found.items():
        print(f"{level:8} fresh {one['fresh']:.3f}; {one['again']:,} crawls, {one['useful']:.0%} useful; {one['told']}")
        for who, course in one["trust"].items():
            print(f"         pings of {who} sites believed: {', '.join(f'{p:.0%} at {at:.0f} s' for at, p in course)}")
        for who, share in one["late"].items():
            print(f"         {who}: {share:.0%} of the crawls in the last half, fresh {one['by'][who]:.3f}")
    if told.json:
        Path(told.json).write_text(json.dumps(found, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--gap", type=float, default=240.0, help="seconds between two updates of a page, on average")
    parser.add_argument("--rate", type=float, default=1.0, help="pages fetched again per second")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--levels", default="normal,smart,super,liar")
    parser.add_argument("--json")
    return parser.parse_args()


def _crawl(level: str, told: argparse.Namespace) -> dict[str, Any]:
    port, crawl = _free_port(), f"crawl-{level}"
    log, history = f"log-{level}.parquet", f"history-{level}.parquet"
    for name in ("hosts", "seeds"):
        Path(name).unlink(missing_ok=True)
    web = ["testweb", "web", "--changes", f"bursty:{told.gap}s:1h", "--noise", "--providers", MIXES[level]]
    web += ["--ping", f"http://127.0.0.1:{port}/indexnow", "--log", log, "--history", history]
    with _running(*web, "--hosts-file", "hosts", "--urls-file", "seeds"):
        _wait(lambda: Path("seeds").exists())
        time.sleep(0.5)
        again = ["--continuous", "--refresh-rate", str(told.rate), "--max-time", str(told.seconds)]
        polite = ["--delay", "0.5", "--pause", "0", "--allow-private", "--hosts", "hosts"]
        with _running("crawl", "--seeds", "seeds", *polite, *again, "-o", crawl, "--quiet", "--json") as crawling:
            _wait(lambda: Path(crawl, "crawl.db").exists())
            with _running(
                "refresh", "serve", crawl, "--listen", f"127.0.0.1:{port}", "--allow-private", "--hosts", "hosts"
            ):
                course = _course(Path(crawl), crawling, told.seconds)
                crawling.wait()
    return _found(crawl, log, history, told.seconds, course)


def _course(crawl: Path, crawling: subprocess.Popen[bytes], seconds: int) -> Course:
    """Looked at while the crawl runs: what its log said of long ago is not kept."""
    from trapline.crawl.options import CrawlOptions, RefreshOptions
    from trapline.report.trust import trust_now

    with closing(sqlite3.connect(crawl / "crawl.db")) as database:
        (options,) = database.execute("select value from meta where key = 'options'").fetchone()
    told = CrawlOptions.from_json(options).refresh or RefreshOptions()
    began, found = time.monotonic(), []
    for number in range(1, _MOMENTS + 1):
        with suppress(subprocess.TimeoutExpired):
            crawling.wait(began + seconds * number / _MOMENTS - time.monotonic())
        found.append((time.monotonic() - began, trust_now(crawl, told)))
    return found


def _found(crawl: str, log: str, history: str, seconds: int, course: Course) -> dict[str, Any]:
    """Every page counts alike: the crawl was told of no accesses."""
    by, late = (_measured(log, history, begin) for begin in (seconds // 3, seconds // 2))
    with closing(sqlite3.connect(Path(crawl, "crawl.db"))) as database:
        again, changed = database.execute("select count(changed), total(changed) from fetch").fetchone()
        outcomes = database.execute("select outcome, count(*) from signal group by outcome order by 2 desc").fetchall()
    return {
        "fresh": by.pop("all")["binary"],
        "again": again,
        "useful": changed / max(again, 1),
        "told": ", ".join(f"{number:,} {outcome}" for outcome, number in outcomes) or "nothing was told",
        "by": {who: one["binary"] for who, one in by.items()},
        "trust": _trust(crawl, history, course),
        "late": {who: late[who]["fetches"] / max(late["all"]["fetches"], 1) for who in by},
    }


def _trust(crawl: str, history: str, course: Course) -> dict[str, list[tuple[float, float]]]:
    """How far pings were believed over time: the mean over the sites of each level, of which pings were heard."""
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
            raise TimeoutError("what was started did not begin")
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
