"""Measures the effect of forged and replayed pings on a crawl: on its data (`forged`), on its speed and freshness (`beside`).

A changing web of testweb, a crawl of it and its endpoint run in their own processes on loopback, with the users' limits; this
process sends the pings. `bench/endpoint.py --forged N` and `--beside SECONDS` call this module.

forged: the crawl has fetched all pages and refetches none (its refresh rate is almost 0), so that only pings can change its
data. Every site sends one honest ping. When the crawl has processed these, its data is recorded. Then copies of the honest
pings are sent, a fifth of N. 65 seconds later, when the endpoint has passed on the repeated signals once more, the data is
compared. Then pings with forged keys, with forged key locations, for sites outside the crawl, and malformed pings are sent, and
the data is compared again.

beside: the crawl keeps its pages fresh by honest pings. Of four equal periods, the second and the fourth are under a flood of
the same forgeries. Pages per second come from crawl.db, freshness comes from testweb's own log.
"""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from xxhash import xxh3_128_hexdigest

TOKEN = "a-token-that-nobody-guesses"
TRAPLINE = [sys.executable, "-c", "from trapline.cli import main; main()"]
SENDERS = 64
LATE_S = 65.0  # the intake of the endpoint passes repeated signals on once more after 60 s
KEPT = ("site", "page", "fetch", "copy", "robots", "abandoned_site", "rejected_link", "signal")
SEED = 0
WARM_UP_S = 20.0


Answers = Counter[tuple[str, int]]
Make = Callable[[int], tuple[str, bytes]]


@dataclass(frozen=True)
class World:
    crawl: Path
    port: int  # of the endpoint
    seeds: list[str]  # the home page of each site
    began: float  # wall clock

    def key(self, site: int) -> str:
        """Return the key of a site, as testweb makes it (testweb/answers/published.py)."""
        return xxh3_128_hexdigest(f"{SEED} key {site}".encode())

    def ping(self, url: str, key: str, **more: str) -> bytes:
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in {"url": url, "key": key, **more}.items())
        return f"GET /indexnow?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode()

    def honest(self) -> list[bytes]:
        return [self.ping(url, self.key(site)) for site, url in enumerate(self.seeds)]

    def replayed(self, number: int) -> tuple[str, bytes]:
        site = number % len(self.seeds)
        return "replayed", self.ping(self.seeds[site], self.key(site))

    def forged(self, number: int) -> tuple[str, bytes]:
        url = self.seeds[number % len(self.seeds)]
        key = xxh3_128_hexdigest(f"forged {number}".encode())
        match number // len(self.seeds) % 4:
            case 0:
                return "forged key", self.ping(url, key)
            case 1:
                return "forged place", self.ping(url, key, keyLocation=f"{url}{key}.txt")
            case 2:
                return "unknown site", self.ping(f"http://x{number}.test/", key)
            case _:
                return "malformed", b"GET /indexnow?url=%00&key=! HTTP/1.1\r\nHost: x\r\n\r\n"

    def any(self, number: int) -> tuple[str, bytes]:
        return self.replayed(number) if number % 5 == 4 else self.forged(number)


# ---- senders


async def send(world: World, make: Make, numbers: Iterator[int], goes_on: Callable[[], bool]) -> Answers:
    """Send pings by many senders, as fast as they are answered; return their number by kind and status.

    Status 0 means that the connection failed.
    """
    found: Answers = Counter()

    async def run_sender(sender: int) -> None:
        reader = writer = None
        for number in numbers:
            kind, request = make(number)
            try:
                if writer is None:
                    source = (f"127.8.{1 + sender // 200}.{1 + sender % 200}", 0)
                    reader, writer = await asyncio.open_connection("127.0.0.1", world.port, local_addr=source)
                writer.write(request)
                found[kind, await _status(reader)] += 1
            except (OSError, asyncio.IncompleteReadError):
                found[kind, 0] += 1
                writer = None
                await asyncio.sleep(0.05)
            if not goes_on():
                break
        if writer is not None:
            writer.close()

    await asyncio.gather(*map(run_sender, range(SENDERS)))
    return found


async def _status(reader: Any) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0))
    return int(head[9:12])


async def send_honest(world: World) -> Counter[int]:
    reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
    statuses: Counter[int] = Counter()
    for request in world.honest():
        writer.write(request)
        statuses[await _status(reader)] += 1
    writer.close()
    return statuses


@contextmanager
def _new_folder() -> Iterator[None]:
    """Work in a temporary folder, which is deleted at the end."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


# ---- forged: pings must change nothing but counters


@_new_folder()
def forged(pings: int, pages: int = 300, sites: int = 12) -> dict[str, Any]:
    with _world(
        pages, sites, ["--refresh-rate", "0.000001"], ["--changes", "poisson:1h", "--providers", "smart=1"]
    ) as world:
        _wait(lambda: _quiet(world))
        asyncio.run(send_honest(world))
        _wait(lambda: len(_rows(world.crawl / "crawl.db", "signal")) >= sites)
        time.sleep(3.0)
        known = [_known(world)]
        sent: Answers = Counter()
        for make, number in ((world.replayed, pings // 5), (world.forged, pings - pings // 5)):
            sent += asyncio.run(send(world, make, iter(range(number)), lambda: True))
            time.sleep(LATE_S)
            known.append(_known(world))
        counters = _status_of(world)
    first, replayed, last = known
    return {
        "pings": pings,
        "answers": _by_name(sent),
        "counters": counters["signals"],
        "compared": {name: len(rows) for name, rows in first.items()},
        "differs_after_replayed": _differences(first, replayed),
        "differs_after_forged": _differences(replayed, last),
    }


def _by_name(answers: Answers) -> dict[str, int]:
    return {f"{kind}: {status}": number for (kind, status), number in sorted(answers.items())}


def _differences(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: _difference(before[name], after[name]) for name in before if before[name] != after[name]}


def _known(world: World) -> dict[str, list[Any]]:
    """Return the data of the crawl and of the endpoint's inbox: rows, and each page's evidence at one fixed time."""
    from trapline.crawler.engine.options import CrawlOptions
    from trapline.crawler.files.reading import Reading
    from trapline.crawler.files.resume import refresher_of
    from trapline.report.refresh_record import trust_of

    reading = Reading(world.crawl)
    options = CrawlOptions.from_json(reading.meta()["options"]).refresh
    assert options is not None
    refresher = refresher_of(reading, options)
    reading.close()
    moment = world.began + 86_400.0
    pages = [page for page in range(len(_rows(world.crawl / "crawl.db", "page"))) if page in refresher]
    # The refresher's queue is as of the last time in the log, which differs between two readings without being evidence. An access
    # of weight 0, a day later, brings the queue of both readings to the same time.
    refresher.accessed(pages[0], moment, 0.0)
    refresher.replay(b"")
    return {
        **{table: _rows(world.crawl / "crawl.db", table) for table in KEPT},
        "inbox": _rows(world.crawl / "signals.db", "signal"),
        "evidence": [refresher.explain(page, moment) for page in pages],
        "trust": list(trust_of(refresher)),
    }


def _difference(before: list[Any], after: list[Any]) -> dict[str, Any]:
    new = [row for row in after if row not in before]
    return {"before": len(before), "after": len(after), "rows_that_differ": len(new), "such_as": repr(new[:1])[:300]}


def _quiet(world: World) -> bool:
    """Return whether the crawl is idle: all known pages have been fetched or refused for two seconds."""
    rows = _rows(world.crawl / "crawl.db", "progress")
    return len(rows) > 6 and rows[-1][2] > 0 and rows[-1][6] == 0 and rows[-1][2] == rows[-5][2] and not rows[-1][8]


# ---- beside: speed and freshness


@_new_folder()
def beside(seconds: float, rate: float = 20.0, pages: int = 600, sites: int = 20) -> dict[str, Any]:
    stretch_s = seconds / 4
    web = [
        "--changes",
        "bursty:120s:1h",
        "--providers",
        "smart=1",
        "--log",
        "log.parquet",
        "--history",
        "history.parquet",
    ]
    with _world(pages, sites, ["--refresh-rate", str(rate)], web, pings=True) as world:
        time.sleep(WARM_UP_S)
        stretches, sent = [], Answers()
        for number in range(4):
            begin = time.time()
            if number % 2:
                sent += asyncio.run(
                    send(world, world.any, iter(range(10**9)), lambda end=begin + stretch_s: time.time() < end)
                )
            time.sleep(max(0.0, begin + stretch_s - time.time()))
            stretches.append((begin, time.time()))
    found = [_stretch(world.crawl / "crawl.db", *stretch) for stretch in stretches]
    return {
        "rate": rate,
        "quiet": [found[0], found[2]],
        "flooded": [found[1], found[3]],
        "forged_per_second": round(sent.total() / (2 * stretch_s), 1),
        "answers": _by_name(sent),
    }


def _stretch(database: Path, begin: float, end: float) -> dict[str, float]:
    with closing(sqlite3.connect(database)) as opened:
        sql = "select count(*), total(changed) from fetch where result = 3 and started >= ? and started < ?"
        fetches, changed = opened.execute(sql, (begin, end)).fetchone()
    began = _web_began()
    times = ["--from", f"{begin - began:.3f}s", "--until", f"{end - began:.3f}s", "--zipf", "0", "--json"]
    printed = json.loads(_run("testweb", "freshness", "log.parquet", "history.parquet", *times))
    return {
        "seconds": round(end - begin, 1),
        "pages_per_second": round(fetches / (end - begin), 2),
        "changed": int(changed),
        "freshness": round(printed["freshness"]["all"]["binary"], 4),
    }


def _web_began() -> float:
    import pyarrow.parquet

    moments = pyarrow.parquet.read_table("history.parquet", columns=["at"])["at"].to_pylist()
    return float(min(moments))


# ---- the processes


@contextmanager
def _world(pages: int, sites: int, refresh_options: list[str], web: list[str], pings: bool = False) -> Iterator[World]:
    _run("graph", "generate", "--pages", str(pages), "--sites", str(sites), "--seed", "1", "-o", "web")
    port = _free_port()
    ping = ["--ping", f"http://127.0.0.1:{port}/indexnow"] if pings else []
    with _running("testweb", "web", *web, *ping, "--hosts-file", "hosts", "--urls-file", "seeds"):
        _wait(lambda: Path("seeds").exists())
        time.sleep(1.0)
        with _crawl_and_endpoint(port, refresh_options) as world:
            yield world


@contextmanager
def _crawl_and_endpoint(port: int, refresh_options: list[str]) -> Iterator[World]:
    here = ["--allow-private", "--hosts", "hosts"]
    crawl = [
        "crawl",
        "--seeds",
        "seeds",
        *here,
        "--delay",
        "0.2",
        "--pause",
        "0",
        "--continuous",
        *refresh_options,
        "-o",
        "crawl",
    ]
    with _running(*crawl, "--quiet"):
        _wait(lambda: Path("crawl/crawl.db").exists())
        Path("token.txt").write_text(TOKEN)
        with _running("refresh", "serve", "crawl", "--listen", f"127.0.0.1:{port}", "--token", "token.txt", *here):
            world = World(Path("crawl").absolute(), port, Path("seeds").read_text().split(), time.time())
            _wait(lambda: _status_of(world)["sites_known"] == len(world.seeds))
            yield world


@contextmanager
def _running(*arguments: str) -> Iterator[None]:
    process = subprocess.Popen([*TRAPLINE, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)


def _run(*arguments: str) -> str:
    return subprocess.run([*TRAPLINE, *arguments], check=True, capture_output=True, text=True).stdout


def _wait(until: Callable[[], bool], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise TimeoutError(f"the crawl, its endpoint or testweb was not ready after {seconds:g} s")
        time.sleep(0.2)


def _status_of(world: World) -> dict[str, Any]:
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{world.port}/status")
        request.add_header("Authorization", f"Bearer {TOKEN}")
        with urllib.request.urlopen(request, timeout=20) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
    except OSError:  # the endpoint does not listen yet
        return {"sites_known": -1}


def _rows(file: Path, table: str) -> list[Any]:
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=30.0)) as database:
        return database.execute(f"select * from {table} order by 1").fetchall()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
