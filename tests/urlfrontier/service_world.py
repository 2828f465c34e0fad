"""A server of URLFrontier on a loopback port, in a thread or a process, and a client of it."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from trapline.frontier import Rules
from trapline.strategies import load_strategy
from trapline.urlfrontier import messages as m
from trapline.urlfrontier.server import ServerSettings, serve

TIMEOUT_S = 20.0


class Clock:
    """The time of the system, and what tests have skipped."""

    def __init__(self) -> None:
        self.skipped_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.skipped_s


class Client:
    """Calls of one client, with shorter names. `clock`: that of the server, if it runs in this process."""

    def __init__(self, port: int, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_send_message_length", -1)])
        grpc.channel_ready_future(self.channel).result(timeout=TIMEOUT_S)
        self.stub = m.Stub(self.channel)

    def skip(self, seconds: float) -> None:
        """Let time pass at the server."""
        self.clock.skipped_s += seconds

    def close(self) -> None:
        self.channel.close()

    def put(self, *items: Any) -> list[int]:
        """Put items, and return the statuses by their order."""
        for number, item in enumerate(items):
            item.ID = item.ID or str(number)
        statuses = {ack.ID: ack.status for ack in self.stub.PutURLs(iter(items), timeout=TIMEOUT_S)}
        return [statuses[item.ID] for item in items]

    def get(self, queues: int = 0, most: int = 0, hold_s: int = 0, **other: Any) -> list[Any]:
        params = m.GetParams(max_queues=queues, max_urls_per_queue=most, delay_requestable=hold_s, **other)
        return list(self.stub.GetURLs(params, timeout=TIMEOUT_S))

    def urls(self, *args: Any, **other: Any) -> list[str]:
        return [info.url for info in self.get(*args, **other)]

    def set_delay(self, key: str, delay_s: int, crawl: str = "") -> None:
        self.stub.SetDelay(m.QueueDelayParams(key=key, delay_requestable=delay_s, crawlID=crawl), timeout=TIMEOUT_S)

    def block(self, key: str, until: int) -> None:
        self.stub.BlockQueueUntil(m.BlockQueueParams(key=key, time=until), timeout=TIMEOUT_S)

    def limit(self, key: str, limit: int) -> None:
        self.stub.SetCrawlLimit(m.CrawlLimitParams(key=key, limit=limit), timeout=TIMEOUT_S)

    def stats(self, key: str = "", crawl: str = "") -> Any:
        return self.stub.GetStats(m.QueueWithinCrawlParams(key=key, crawlID=crawl), timeout=TIMEOUT_S)

    def status(self, url: str, key: str = "", crawl: str = "") -> Any:
        return self.stub.GetURLStatus(m.URLStatusRequest(url=url, key=key, crawlID=crawl), timeout=TIMEOUT_S)

    def queues(self, **params: Any) -> list[str]:
        return list(self.stub.ListQueues(m.Pagination(**params), timeout=TIMEOUT_S).values)


def info(url: str, key: str = "", crawl: str = "", metadata: dict[str, Sequence[str]] | None = None) -> Any:
    values = {name: m.StringList(values=texts) for name, texts in (metadata or {}).items()}
    return m.URLInfo(url=url, key=key, crawlID=crawl, metadata=values)


def new(url: str, key: str = "", crawl: str = "", metadata: dict[str, Sequence[str]] | None = None) -> Any:
    return m.URLItem(discovered=m.DiscoveredURLItem(info=info(url, key, crawl, metadata)))


def known(url: str, date: int, key: str = "", crawl: str = "", metadata: dict[str, Sequence[str]] | None = None) -> Any:
    return m.URLItem(known=m.KnownURLItem(info=info(url, key, crawl, metadata), refetchable_from_date=date))


@contextmanager
def running(folder: Path, strategy: str = "breadth-first-turn", delay_s: float = 0.0, **more: Any) -> Iterator[Client]:
    """Serve a folder in a thread."""
    rules, clock = Rules(delay_s=delay_s, per_connection=100), Clock()
    settings = ServerSettings(folder, load_strategy(strategy), rules, port=0, clock=clock, **more)
    loop, stop, ready, ports = asyncio.new_event_loop(), asyncio.Event(), threading.Event(), list[int]()

    def started(port: int, crawls: object) -> None:
        ports.append(port)
        ready.set()

    def run() -> None:
        try:
            loop.run_until_complete(serve(settings, stop, started))
        finally:
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(TIMEOUT_S) and ports, "the server did not start"
    client = Client(ports[0], clock)
    try:
        yield client
    finally:
        client.close()
        loop.call_soon_threadsafe(stop.set)
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
        loop.close()


@contextmanager
def started(folder: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", Client]]:
    """Serve a folder by the command, in a process of its own."""
    arguments = ["serve", "urlfrontier", str(folder), "--listen", "127.0.0.1:0", *options]
    command = [sys.executable, "-c", "from trapline.cli import main; main()", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving URLFrontier on 127.0.0.1:"), line
        client = Client(int(line.split(":")[1].split(",")[0]))
        yield process, client
        client.close()
    finally:
        process.kill()
        process.wait()
