"""Helpers that run `trapline crawl` in this process against webs on loopback, and read the folder that it writes."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fetch.name_server import Name, NameServer
from trapline.cli import run
from trapline.fetch.dns import hosts_text
from trapline.testweb import Served

Captured = pytest.CaptureFixture[str]
# Links alone: the tests count requests. tests/crawler/test_sitemaps.py has those with sitemaps.
FAST = ("--allow-private", "--delay", "0", "--backoff", "0", "--no-sitemaps", "--quiet")


@dataclass(frozen=True)
class CrawlResult:
    """The folder of a finished crawl."""

    folder: Path

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return found

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "crawl.db")) as database:
            return database.execute(sql).fetchall()

    def targets(self) -> list[str]:
        """Path and query of the pages fetched, in order."""
        sql = "select url from fetch join page on page.id = page where result = 3 order by seq"
        return ["/" + url.split("/", 3)[3] for (url,) in self.rows(sql)]

    def hosts(self) -> set[str]:
        return {origin.split("/")[2].split(":")[0] for (origin,) in self.rows(
            "select distinct origin from fetch join page on page.id = page join site on site.id = page.site where result = 3"
        )}  # fmt: skip


def crawl(folder: Path, *args: object, exit_code: int = 0) -> CrawlResult:
    """Run a crawl to its end."""
    assert run(["crawl", *map(str, args), *FAST, "-o", str(folder)]) == exit_code
    return CrawlResult(folder)


def hosts_of(server: Served, folder: Path) -> Path:
    file = folder / "hosts"
    file.write_text(hosts_text({name: [address] for name, address in server.hosts.items()}))
    return file


@contextmanager
def name_server(names: Mapping[str, Name]) -> Iterator[str]:
    """Run a DNS server that knows exactly these names, and yield its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = NameServer(names)
    try:
        yield asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    finally:
        loop.call_soon_threadsafe(server.transport.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
