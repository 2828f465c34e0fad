"""Crawl folders made without a crawl, and a running dashboard on loopback, with real sockets."""

import asyncio
import http.client
import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.files.layout import DATABASE, FORMAT, new_database
from trapline.dashboard.server import DashboardServer
from trapline.dashboard.settings import DashboardSettings

BEGAN = 1_760_000_000.0
OPTIONS = {
    "seeds": ["http://a.example/"],
    "strategy": "crawl-ability",
    "page_rank": None,
    "site_rank": None,
    "connections": 100,
    "max_pages": float("inf"),
    "max_seconds": float("inf"),
    "max_bytes": float("inf"),
    "robots_token": "trapline",
    "refresh": None,
    "sites": {"a.example": {"delay_s": 3.0, "pause_s": None, "headers": []}},
    "rules": {"delay_s": 15.0, "per_connection": 10},
}
PAGES = 60


def made_folder(
    folder: Path, origins: Sequence[str] = ("http://a.example", "http://b.example"), stopped_by: str = "drained"
) -> Path:
    """Make the folder of a crawl that fetched PAGES pages of these sites, one a second; every tenth failed. `stopped_by` "": it was
    broken off."""
    folder.mkdir(parents=True, exist_ok=True)
    with new_database(folder) as database:
        meta = {"format": str(FORMAT), "created": repr(BEGAN), "options": json.dumps(OPTIONS), "runs": "1"}
        meta |= {"stopped_by": stopped_by} if stopped_by else {}
        times = {"user_s": 20.0, "system_s": 4.0, "idle_s": 36.0}
        meta["processor 1"] = json.dumps({"loop": times, "store": {**times, "user_s": 2.0}})
        database.executemany("insert into meta values (?, ?)", meta.items())
        database.executemany("insert into site values (?, ?)", enumerate(origins))
        pages = [(page, page % len(origins), f"{origins[page % len(origins)]}/{page}") for page in range(PAGES)]
        database.executemany("insert into page values (?, ?, ?)", pages)
        for page in range(PAGES):
            _add_fetch(database, page, BEGAN + page, failed=page % 10 == 9)
        rows = (
            (BEGAN + s, s, s, s // 10, 1000 * s, PAGES, PAGES - s, len(origins), 1, s / PAGES)
            for s in range(1, PAGES + 1)
        )
        database.executemany("insert into progress values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        body = b"User-agent: *\nCrawl-delay: 7\n"
        robots = [(site, BEGAN, 200 if site else 0, "" if site else "timeout", body) for site in range(len(origins))]
        sql = "insert into robots (site, visit, address, started, total_s, status, error, bytes, body) values (?, 0, '', ?, 1, ?, ?, 1, ?)"
        database.executemany(sql, robots)
        database.execute("insert into warc values (1, 'a-00001.warc.gz', 1234)")
        database.execute("insert into rejected_link values ('host', 5)")
    return folder


def _add_fetch(database: sqlite3.Connection, page: int, started: float, failed: bool) -> None:
    database.execute(
        "insert into fetch (page, visit, address, started, first_byte_s, total_s, result, status, error, bytes, mime, marks, found,"
        " truncated) values (?, ?, '127.0.0.1', ?, 0.05, 0.1, ?, ?, ?, 1000, 'text/html', 0, 0, '')",
        (page, page, started, 5 if failed else 3, 429 if failed else 200, "http" if failed else ""),
    )


def made_partitions(folder: Path, count: int = 2) -> Path:
    """Make the folder of a crawl of several partitions, each of which has begun except the last."""
    folder.mkdir(parents=True)
    manifest = {"sizes": [count + 1], "stopped_by": "", "options": OPTIONS, "policy": {"mode": "exchange"}}
    (folder / "parallel.json").write_text(json.dumps(manifest))
    for number in range(count):
        made_folder(folder / f"partition-{number}", [f"http://{number}-{site}.example" for site in range(3)], "")
    return folder


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class World:
    def __init__(self, server: DashboardServer, port: int) -> None:
        self.server, self.port = server, port

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())

    def get(self, path: str) -> Any:
        reply = self.ask(path)
        assert reply.status == 200, reply
        return reply.json

    def post(self, path: str, value: Any, **headers: str) -> Reply:
        own = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/json"}
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return self.ask(path, "POST", json.dumps(value).encode(), {**own, **named})

    def until(self, path: str) -> Any:
        """Ask until the answer of a job is there."""
        give_up_at = time.monotonic() + 60.0
        while (reply := self.ask(path)).status == 202 and time.monotonic() < give_up_at:
            time.sleep(0.1)
        return reply


@contextmanager
def served(*folders: Path, **settings: Any) -> Iterator[World]:
    """Serve the dashboard of these folders in a thread, until the block ends."""
    given = {"listen": ("127.0.0.1", 0), **settings}
    server = DashboardServer(DashboardSettings(tuple(map(str, folders)), **given))
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.run(stop)))
    thread.start()
    try:
        yield World(server, int(server.page_url.partition("#")[0].rstrip("/").rpartition(":")[2]))
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def write(folder: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        database.execute(sql, values)
