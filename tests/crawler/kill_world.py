"""Crawls that tests kill: a web on loopback, the command as a user runs it, and checks of the folder that a killed process leaves.

The checks for repeated requests read the log of testweb and the database. They never ask the crawler.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.crawler.files.layout import claim_new, connect
from trapline.crawler.store.outbox import FETCHES
from trapline.crawler.store.settings import StoreSettings
from trapline.graph.generate import generate
from trapline.testweb import Behaviour, Mix, RequestLog, Served, build_web, serve

DELAY_S, PAUSE_S, PER_CONNECTION, CONNECTIONS = 0.06, 0.002, 10, 12
FETCHED, REFUSED = 3, 6
TRAPLINE = [sys.executable, "-c", "from trapline.cli import main; main()", "crawl"]
_PATIENCE_S = 60.0
# Fetches that a kill can lose: in flight on a connection, in the outbox, in the store's backlog (`full` arrives one
# batch later).
MOST_IN_FLIGHT = CONNECTIONS + (FETCHES - 1) + FETCHES * (StoreSettings().backlog_batches + 1)


@contextmanager
def served(pages: int, sites: int, seed: int = 1) -> Iterator[Served]:
    """Serve a generated web. Some sites share an address, and a third of the sites forbid some of their paths."""
    graph = generate(pages, sites, seed=seed, sites_per_ip=1.5, links_per_page=6.0)
    mix = Mix(Behaviour(latency_s=0.01, disallowed=0.2), robots=(("rules", 0.3),))
    with serve(build_web(graph, mix, seed=seed)) as server:
        yield server


def options_of(server: Served, **changes: Any) -> CrawlOptions:
    given: dict[str, Any] = {
        "seeds": tuple(server.seed_urls[:3]),
        "scope": "any",
        "connections": CONNECTIONS,
        "rules": live_rules(delay_s=DELAY_S, per_connection=PER_CONNECTION),
        "pause_s": PAUSE_S,
        "allow_private": True,
        "hosts": {name: (address,) for name, address in server.hosts.items()},
        "snapshot_pages": 60,
    }
    return CrawlOptions(**{**given, **changes})


def prepared(folder: Path, options: CrawlOptions) -> Path:
    """Make the folder of a crawl that has not started. `resume` starts it, with options that the command line does not offer."""
    claim_new(folder, asdict(options)).release()
    return folder


class Run:
    """One run of the command, as a context manager. No process of the run is left when the context ends."""

    def __init__(self, *arguments: str | Path) -> None:
        self._process = subprocess.Popen(
            [*TRAPLINE, "--plain", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.store = 0

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self.ended()

    @property
    def loop(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def poll(self) -> bool:
        """Return whether the command runs, and note the store's process as soon as it exists."""
        with suppress(OSError, ValueError):
            children = Path(f"/proc/{self.loop}/task/{self.loop}/children").read_text().split()
            self.store = int(children[0]) if children else self.store
        return self.running

    def wait_for(self, what: Callable[[], bool], look_again_s: float = 0.002) -> bool:
        """Wait until `what` is true. Return False if the run ended before that."""
        give_up_at = time.monotonic() + _PATIENCE_S
        while self.poll():
            if what():
                return True
            assert time.monotonic() < give_up_at, "nothing happens"
            time.sleep(look_again_s)
        return False

    def send(self, number: int, *processes: int) -> None:
        for process in processes:
            with suppress(ProcessLookupError):
                if process:
                    os.kill(process, number)

    def ended(self) -> tuple[int, str]:
        """Wait until the loop and its store have ended. Return the exit code and the output."""
        self.poll()
        said = "".join(self._process.communicate(timeout=_PATIENCE_S))
        give_up_at = time.monotonic() + _PATIENCE_S
        while self.store and Path(f"/proc/{self.store}").exists():
            assert time.monotonic() < give_up_at, f"the store, {self.store}, has outlived its loop"
            time.sleep(0.002)
        return self._process.returncode, said


def finished(*arguments: str | Path) -> str:
    """Return the output of a run that ends normally."""
    with Run(*arguments) as run:
        code, said = run.ended()
    assert code == 0, said
    return said


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = connect(folder)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def settled(folder: Path) -> dict[str, int]:
    """Return each committed URL that is done, with its result."""
    sql = f"select url, result from fetch join page on page.id = page where result in ({FETCHED}, {REFUSED})"
    return dict(rows(folder, sql))


def fetches(folder: Path) -> int:
    return int(rows(folder, "select count(*) from fetch")[0][0])


@dataclass
class Ledger:
    """Records the requests that testweb received in each run, and the durable rows at the end of each run."""

    server: Served
    start: int  # rows of the log
    ends: list[int] = field(default_factory=list)
    committed: list[set[str]] = field(default_factory=list)

    def run_ended(self, folder: Path) -> None:
        time.sleep(0.03)  # the server may still be reading what a dead process sent
        self.ends.append(len(self.server.log()))
        self.committed.append(set(settled(folder)))

    def requested(self, log: RequestLog) -> list[list[str]]:
        """Return the URLs of the requested pages, in order, for each run."""
        urls = [log.web.url(page) if page >= 0 else "" for page in log.page.tolist()]
        starts = [self.start, *self.ends]
        return [list(filter(None, urls[begin:end])) for begin, end in zip(starts, self.ends, strict=False)]

    def lost(self, log: RequestLog) -> list[int]:
        """Return how many requests of each run were lost. Also check that no committed page is requested again, and none twice in a
        run."""
        runs, counts = self.requested(log), []
        done: set[str] = set()
        for requested_urls, committed in zip(runs, self.committed, strict=True):
            assert len(requested_urls) == len(set(requested_urls)), "requested twice in one run"
            assert not done & set(requested_urls), "requested again after it was committed"
            assert done <= committed, "what was committed is there no more"
            done = committed
            counts.append(len(set(requested_urls) - committed))
        return counts
