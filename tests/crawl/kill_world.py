"""A crawl to be killed: a web on loopback, the command as a user runs it, and what is left behind by whoever dies.

Whoever looks for what was asked for twice reads testweb's own log and the database, never the crawler.
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

from trapline.crawl.engine.options import CrawlOptions, live_rules
from trapline.crawl.files.layout import claim_new, connect
from trapline.crawl.store.outbox import FETCHES
from trapline.crawl.store.settings import StoreSettings
from trapline.graph.generate import generate
from trapline.testweb import Behaviour, Mix, RequestLog, Served, build_web, serve

DELAY_S, PAUSE_S, PER_CONNECTION, CONNECTIONS = 0.06, 0.002, 10, 12
FETCHED, REFUSED = 3, 6
TRAPLINE = [sys.executable, "-c", "from trapline.cli import main; main()", "crawl"]
_PATIENCE_S = 60.0
# What can be lost at once: under way on a connection, in the outbox, in the store's backlog (`full` comes one batch later).
MOST_IN_FLIGHT = CONNECTIONS + (FETCHES - 1) + FETCHES * (StoreSettings().backlog_batches + 1)


@contextmanager
def served(pages: int, sites: int, seed: int = 1) -> Iterator[Served]:
    """A generated web, some sites on one address, a third of them with rules that forbid a part."""
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
    """The folder of a crawl that has not begun: `resume` begins it, with options that the command line does not have."""
    claim_new(folder, asdict(options)).release()
    return folder


class Run:
    """One run of the command. A context: whatever happens, nothing of it is left."""

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

    def look(self) -> bool:
        """Whether it runs; notes the store as soon as there is one."""
        with suppress(OSError, ValueError):
            children = Path(f"/proc/{self.loop}/task/{self.loop}/children").read_text().split()
            self.store = int(children[0]) if children else self.store
        return self.running

    def wait_for(self, what: Callable[[], bool], look_again_s: float = 0.002) -> bool:
        """Whether it came to that before the run ended."""
        give_up_at = time.monotonic() + _PATIENCE_S
        while self.look():
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
        """Exit code and what it said, when the loop and its store are gone."""
        self.look()
        said = "".join(self._process.communicate(timeout=_PATIENCE_S))
        give_up_at = time.monotonic() + _PATIENCE_S
        while self.store and Path(f"/proc/{self.store}").exists():
            assert time.monotonic() < give_up_at, f"the store, {self.store}, has outlived its loop"
            time.sleep(0.002)
        return self._process.returncode, said


def finished(*arguments: str | Path) -> str:
    """What a run says that ends well by itself."""
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
    """Each URL that is done with, as far as it is committed, and what came of it."""
    sql = f"select url, result from fetch join page on page.id = page where result in ({FETCHED}, {REFUSED})"
    return dict(rows(folder, sql))


def fetches(folder: Path) -> int:
    return int(rows(folder, "select count(*) from fetch")[0][0])


@dataclass
class Ledger:
    """What testweb was asked for, run by run, and what was durable at the end of each."""

    server: Served
    start: int  # rows of its log
    ends: list[int] = field(default_factory=list)
    committed: list[set[str]] = field(default_factory=list)

    def run_ended(self, folder: Path) -> None:
        time.sleep(0.03)  # the server may still read what was sent by one who is dead
        self.ends.append(len(self.server.log()))
        self.committed.append(set(settled(folder)))

    def requested(self, log: RequestLog) -> list[list[str]]:
        """URLs of pages, in order, for each run."""
        urls = [log.web.url(page) if page >= 0 else "" for page in log.page.tolist()]
        starts = [self.start, *self.ends]
        return [list(filter(None, urls[begin:end])) for begin, end in zip(starts, self.ends, strict=False)]

    def lost(self, log: RequestLog) -> list[int]:
        """For each run, how many pages it asked for in vain. The law: nothing that is committed is asked for again, and
        nothing twice in a run."""
        runs, counts = self.requested(log), []
        done: set[str] = set()
        for asked, committed in zip(runs, self.committed, strict=True):
            assert len(asked) == len(set(asked)), "asked for twice in one run"
            assert not done & set(asked), "asked for again, and it was committed"
            assert done <= committed, "what was committed is there no more"
            done = committed
            counts.append(len(set(asked) - committed))
        return counts
