"""Crawls by several real processes of a web on loopback, for tests."""

import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.testweb.webs import numbered
from trapline.cli import run
from trapline.fetch.dns import hosts_text
from trapline.graph import Graph
from trapline.testweb import Behaviour, Promise, Served, ServedWeb, build_web, serve

SITES, PAGES_A_SITE = 12, 12
PAGES = SITES * PAGES_A_SITE
DELAY_S, PER_CONNECTION = 0.1, 4
PROMISE = Promise(DELAY_S, PER_CONNECTION, 0.0)


def graph() -> Graph:
    """Return a graph whose pages link to the next page of their site and to two random pages."""
    chance = random.Random(5)
    links = [
        [page - page % PAGES_A_SITE + (page + 1) % PAGES_A_SITE, chance.randrange(PAGES), chance.randrange(PAGES)]
        for page in range(PAGES)
    ]
    return numbered(SITES, PAGES_A_SITE, links)


def web(latency_s: float = 0.005) -> ServedWeb:
    """Return the graph as a web. Each address has two sites."""
    return build_web(graph(), Behaviour(latency_s=latency_s), sites_per_address=2)


@contextmanager
def served(folder: Path, latency_s: float = 0.005) -> Iterator[tuple[Served, list[str]]]:
    """Serve a web. Yield the server and the command-line arguments for a crawl of it."""
    with serve(web(latency_s)) as server:
        hosts = folder / "hosts"
        hosts.write_text(hosts_text({name: [address] for name, address in server.hosts.items()}))
        options = ["--scope", "any", "--allow-private", "--hosts", hosts, "--delay", DELAY_S, "--pause", 0]
        yield (
            server,
            [server.seed_urls[0], *map(str, options), "--per-connection", str(PER_CONNECTION), "--backoff", "0"],
        )


def crawl(*args: object) -> int:
    return run(["crawl", "--quiet", *map(str, args)])


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{folder / 'crawl.db'}?mode=ro", uri=True)) as database:
        return database.execute(sql).fetchall()


def fetched(folder: Path) -> Counter[str]:
    """Return how often each page was fetched."""
    sql = "select url from fetch join page on page.id = fetch.page where result = 3"
    return Counter(url for (url,) in rows(folder, sql))


def requests_of_pages(server: Served) -> Counter[int]:
    """Return how often each page was requested, by testweb's own log."""
    return Counter(page for page in server.log().page.tolist() if page >= 0)


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Run `act` in a thread beside the block. The thread must end without an error."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            act()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    yield
    thread.join(120.0)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


def wait_for(holds: Callable[[], bool], within_s: float = 120.0) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def has(folder: Path, pages: int) -> bool:
    """Return whether the crawl in the folder has this many rows of fetches."""
    try:
        return bool(rows(folder, "select count(*) from fetch")[0][0] >= pages)
    except sqlite3.Error:
        return False
