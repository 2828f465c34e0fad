"""Crawls that get actions while they run: a web on loopback, and a script that sends actions from a second thread, as a second terminal."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.crawler.live_web import silence
from trapline.crawler.engine import run
from trapline.crawler.files.control_mailbox import Action, send
from trapline.crawler.files.opening import opened, prepare_new, prepare_old
from trapline.errors import ConfigError
from trapline.fetch.urls import host_port, origin
from trapline.graph.generate import generate
from trapline.testweb import Behaviour, Mix, Served, build_web, serve

_PATIENCE_S = 30.0
IN_FLIGHT_S = 0.1  # in which pages that were requested before an action reach the server's log


def small_web() -> Iterator[Served]:
    graph = generate(900, 6, seed=3, links_per_page=6.0, sites_per_ip=1.0)
    with serve(build_web(graph, Mix(Behaviour(latency_s=0.01)), seed=3)) as server:
        yield server


def host_of(url: str) -> str:
    return host_port(origin(url))[1]


@dataclass
class Terminal:
    """The second terminal: it sends actions, and sees the requests that reach the servers."""

    folder: Path
    server: Served
    start: int = 0  # rows of the server's log before the crawl
    failure: BaseException | None = None
    answers: list[str] = field(default_factory=list)

    def action(self, name: str, **values: Any) -> str:
        answer = send(self.folder, Action(name, "a test", values))
        self.answers.append(answer)
        return answer

    def requests(self, host: str = "") -> int:
        """Return how many requests have arrived, of all hosts or of one."""
        log = self.server.log()
        rows = range(self.start, len(log))
        return sum(log.host(row) == host for row in rows) if host else len(rows)

    def arrivals(self, host: str) -> "np.ndarray[Any, Any]":
        """Return the wall-clock times of the requests to a host."""
        log = self.server.log()
        return np.array([log.arrival_s[row] + log.wall for row in range(self.start, len(log)) if log.host(row) == host])

    def wait_for(self, what: Callable[[], bool]) -> None:
        give_up_at = time.monotonic() + _PATIENCE_S
        while not what():
            assert time.monotonic() < give_up_at, "nothing happens"
            time.sleep(0.01)

    def assert_no_requests(self, host: str = "", seconds: float = 0.3) -> None:
        time.sleep(IN_FLIGHT_S)
        before = self.requests(host)
        time.sleep(seconds)
        assert self.requests(host) == before

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "crawl.db")) as database:
            return database.execute(sql).fetchall()


def crawl(terminal: Terminal, script: Callable[[Terminal], None], options: Any, ends: bool = False) -> dict[str, Any]:
    """Run the crawl, new or resumed, while the script sends actions. Stop it after the script, unless it `ends` by itself."""
    is_new = not terminal.folder.exists()
    terminal.start = len(terminal.server.log())

    def work() -> None:
        try:
            terminal.wait_for((terminal.folder / "live" / "control").exists)
            script(terminal)
        except BaseException as error:
            terminal.failure = error
        finally:
            if not ends or terminal.failure is not None:
                try:
                    terminal.action("stop")
                except ConfigError as error:
                    terminal.failure = terminal.failure or error

    thread = threading.Thread(target=work)
    prepared = prepare_new(options, terminal.folder) if is_new else prepare_old(terminal.folder, None)
    ready = opened(prepared)
    thread.start()
    try:
        summary = run.run_crawl(ready, silence())
    finally:
        thread.join()
    if terminal.failure is not None:
        raise terminal.failure
    return summary


@pytest.fixture
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the crawl look for actions more often."""
    monkeypatch.setattr(run, "_TICK_S", 0.02)
