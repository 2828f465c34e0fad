"""Crawl folders for tests of the programs that read such folders. They are made from simulated crawls.

The simulated log gives pages, visits and times. This module adds statuses, failures, types and robots.txt files by a random choice with
a fixed seed. Every page of the graph is known from the start, so that page ids are those of the graph.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.layout import FORMAT, LATER_TABLES
from trapline.frontier import FAILED, FETCHED, REFUSED, Rules
from trapline.graph import Graph, generate, pagerank
from trapline.graph.strings import decoded
from trapline.servers.sampled import modelled_servers
from trapline.simulator import Network, SimulatedCrawl, simulate
from trapline.simulator.log import bytes_of
from trapline.strategies import load_strategy
from trapline.strategies.base.inputs import with_quality

BEGAN = 1_760_000_000.0  # 9 October 2025
RULES = Rules(delay_s=1.0, per_connection=5, retries=1, backoff_s=1.0, lease_s=float("inf"))
FAILURES = ("timeout", "closed", "connect", "protocol")
TYPES = ("text/html", "application/pdf", "text/plain")
MOMENTS = 120  # rows of progress


def simulated(
    pages: int = 400, sites: int = 20, strategy: str = "breadth-first", **given: Any
) -> tuple[Graph, SimulatedCrawl]:
    """Return a small web in which some sites share an address, and a simulated crawl of it in which some fetches fail."""
    graph = generate(pages, sites, seed=3, sites_per_ip=1.5)
    network = Network(failed=0.03, refused=0.05, timeout_s=2.0)
    chosen = {"connections": 8, "network": network, "servers": modelled_servers(graph, seed=1), **given}
    return graph, simulate(graph, with_quality(load_strategy(strategy), "opic"), RULES, **chosen)


def write_crawl(
    folder: Path, graph: Graph, crawl: SimulatedCrawl, robots: Mapping[int, bytes] | None = None, **meta: str
) -> Path:
    """Write the folder. `robots` has the robots.txt files of some sites; the other sites answer 404."""
    folder.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(folder / "crawl.db")
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = off")
    database.executescript(files("trapline.crawler.files").joinpath("schema.sql").read_text())
    for table in LATER_TABLES.values():
        database.execute(table)
    assert graph.urls is not None and graph.site_names is not None
    fetches = list(_fetches(graph, crawl))
    put = database.executemany
    put("insert into meta values (?, ?)", {**_meta(crawl), **meta}.items())
    put("insert into site values (?, ?)", enumerate(decoded(graph.site_names)))
    put("insert into address values (?, ?)", ((one, _address(one)) for one in set(graph.ips.tolist())))
    pages = zip(range(graph.pages), graph.site.tolist(), decoded(graph.urls), strict=True)
    put("insert into page values (?, ?, ?)", pages)
    insert(database, "fetch", fetches)
    insert(database, "robots", _robots(graph, crawl, robots or {}))
    put(f"insert into progress values ({', '.join('?' * 10)})", _progress(graph, crawl, fetches))
    put("insert into warc values (?, ?, ?)", [(1, "a-00001.warc.gz", 1_000_000), (2, "a-00002.warc.gz", 250_000)])
    database.execute("update cdxj set bytes = 80000")
    database.commit()
    database.close()
    return folder


def insert(database: sqlite3.Connection, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        database.execute(f"insert into {table} ({names}) values ({marks})", [*row.values()])


def visit_id(number: int) -> int:
    """Return the visit id that a frontier would give: the number of earlier visits, and the slot of this visit."""
    return number << 20 | number % 8


def _address(group: int) -> str:
    return f"127.0.{group >> 8}.{group & 255}"


def _meta(crawl: SimulatedCrawl) -> dict[str, str]:
    options = CrawlOptions(
        seeds=("http://s000000.example/",),
        strategy=crawl.strategy.name,
        connections=crawl.connections,
        scope="any",
        pause_s=0.0,
        rules=replace(crawl.rules, lease_s=600.0),
    )
    ended = "nothing left" if crawl.drained else "pages"
    return {
        "format": str(FORMAT),
        "options": options.to_json(),
        "created": str(BEGAN),
        "runs": "1",
        "stopped_by": ended,
    }


def _first_rows(graph: Graph, crawl: SimulatedCrawl) -> list[int]:
    """Return the row of the first request to each site."""
    by_start = np.argsort(crawl.log.start, kind="stable")
    _, first = np.unique(graph.site[crawl.log.page[by_start]], return_index=True)
    return by_start[np.sort(first)].tolist()


def _begin(log: Any, row: int, first: bool) -> float:
    """Return when the request of a row begins. The first page of a site waits for robots.txt, which takes the first part of the page's
    time."""
    start, byte = float(log.start[row]), float(log.first_byte[row])
    return start + 0.5 * (byte - start) if first else start


def _fetches(graph: Graph, crawl: SimulatedCrawl) -> Iterator[dict[str, Any]]:
    log, chance = crawl.log, np.random.default_rng(1)
    brought, first = bytes_of(log, crawl.servers.size), set(_first_rows(graph, crawl))
    for row in range(len(log.page)):
        page, result = int(log.page[row]), int(log.result[row])
        begin, luck = _begin(log, row, row in first), float(chance.random())
        status, error = _status_and_error(result, luck)
        address = "" if error == "robots" else _address(int(graph.ips[graph.site[page]]))
        links = graph.targets_of(page).astype("<i4") if result == FETCHED else np.zeros(0, "<i4")
        yield {
            "page": page,
            "visit": visit_id(int(log.visit[row])),
            "address": address,
            "started": BEGAN + begin,
            "first_byte_s": float(log.first_byte[row]) - begin if status else None,
            "total_s": float(log.end[row]) - begin if address else 0.0,
            "result": result,
            "status": status,
            "error": error,
            "bytes": int(brought[row]),
            "mime": TYPES[int(luck * 20) % 17 % 3 if luck < 0.15 else 0] if status else "",
            "digest": bytes(20),
            "marks": 0,
            "found": len(links),
            "truncated": "",
            "links": links.tobytes(),
        }


def _status_and_error(result: int, luck: float) -> tuple[int, str]:
    """Return the status and the kind of failure."""
    if result == FAILED:
        return 0, FAILURES[int(luck * len(FAILURES))]
    if result == REFUSED:
        return (0, "robots") if luck < 0.5 else (404 if luck < 0.8 else 503, "http")
    return 200, ""


def _robots(graph: Graph, crawl: SimulatedCrawl, bodies: Mapping[int, bytes]) -> Iterator[dict[str, Any]]:
    for row in _first_rows(graph, crawl):
        site, start = int(graph.site[crawl.log.page[row]]), float(crawl.log.start[row])
        takes = 0.4 * (float(crawl.log.first_byte[row]) - start)
        yield {
            "site": site,
            "visit": visit_id(int(crawl.log.visit[row])),
            "address": _address(int(graph.ips[site])),
            "started": BEGAN + start,
            "first_byte_s": takes,
            "total_s": takes,
            "status": 200 if site in bodies else 404,
            "error": "",
            "bytes": len(bodies.get(site, b"")),
            "body": bodies.get(site, b""),
        }


def _progress(graph: Graph, crawl: SimulatedCrawl, fetches: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    log, came = crawl.log, crawl.log.result == FETCHED
    pages, known = np.cumsum(came), graph.pages
    errors = np.cumsum([row["error"] not in ("", "robots") for row in fetches])
    received = np.cumsum([row["bytes"] for row in fetches])
    page_quality = np.cumsum(pagerank(graph)[log.page] * came)
    _, first_of_site = np.unique(graph.site[log.page], return_index=True)
    for moment in np.linspace(0.0, crawl.simulated_seconds, MOMENTS).tolist():
        done = int(np.searchsorted(log.end, moment, "right"))
        so_far = [column[done - 1].item() if done else 0 for column in (pages, errors, received, page_quality)]
        sites, active = int((first_of_site < done).sum()), int(((log.start <= moment) & (log.end > moment)).sum())
        yield (BEGAN + moment, moment, *so_far[:3], known, known - so_far[0], sites, active, so_far[3])
