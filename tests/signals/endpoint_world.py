"""A running endpoint on loopback, with sites that have key files and a hub, in threads of this process and over real sockets."""

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.crawler.small_server import Answers, SmallServer, small_server
from trapline.signals.endpoint.server import Service, Settings
from trapline.signals.inbox import Inbox, Signal
from trapline.signals.websub.deliveries import ReadFeed

KEY = "0123456789abcdef"
TOKEN = "a-token-that-nobody-guesses"


@dataclass
class Feed:
    entries: Sequence[tuple[str, float]] = ()


def read_feed(body: bytes, url: str, now: float) -> Feed:
    """A feed of lines: a URL, and seconds since 1970 or nan."""
    return Feed([(line.split()[0], float(line.split()[1])) for line in body.decode().splitlines() if line])


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


@dataclass
class World:
    service: Service
    folder: Path
    port: int
    sites: list[str]
    server: SmallServer | None = None
    seen: set[int] = field(default_factory=set)

    def ask(
        self, method: str, path: str, body: bytes | None = None, source: str = "127.0.0.1", **headers: str
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20, source_address=(source, 0))
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode())
        finally:
            connection.close()

    def ping(self, url: str, key: str = KEY, location: str | None = None, **more: str) -> Reply:
        where = f"&keyLocation={quote(location, safe='')}" if location else ""
        return self.ask("GET", f"/indexnow?url={quote(url, safe='')}&key={key}{where}", **more)

    def post_pings(self, host: str, urls: Sequence[str], key: str = KEY, **more: Any) -> Reply:
        body = json.dumps({"host": host, "key": key, "urlList": list(urls), **more})
        return self.ask("POST", "/indexnow", body.encode(), content_type="application/json; charset=utf-8")

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("GET", "/status", authorization=f"Bearer {TOKEN}").body)
        return found

    def counts(self, channel: str = "indexnow") -> dict[str, int]:
        found: dict[str, int] = self.status()["signals"].get(channel, {})
        return found

    def signals(self) -> list[Signal]:
        inbox = Inbox(self.folder)
        found = inbox.take(0, 1_000_000)
        inbox.close()
        return found

    def url(self, host: str, path: str = "/") -> str:
        assert self.server is not None
        return f"http://{host}:{self.server.port}{path}"

    def until(self, holds: Callable[[], object], most_s: float = 20.0) -> None:
        """Wait until the condition holds. The test does not assert how long this takes."""
        end = time.monotonic() + most_s
        while not holds():
            assert time.monotonic() < end, f"it did not come about: {self.status()}"
            time.sleep(0.02)

    def prove(self, host: str, key: str = KEY) -> None:
        """Ping until the endpoint has verified that the key belongs to the host."""
        assert self.ping(self.url(host, "/proof"), key).status in (200, 202)
        self.until(lambda: self.ping(self.url(host, "/proof"), key).status == 200)


@contextmanager
def endpoint(settings: Settings, sites: list[str], reader: ReadFeed = read_feed) -> Iterator[World]:
    """`sites`: origins that the crawl knows. More may be added while the endpoint runs."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    made: dict[str, Any] = {}

    async def main() -> None:
        made["service"] = Service(settings, lambda last: list(enumerate(sites))[last + 1 :], reader)

        def started(port: int) -> None:
            made["port"] = port
            ready.set()

        await made["service"].run(stop, started)

    def run() -> None:
        try:
            loop.run_until_complete(main())
        except BaseException as error:
            made["error"] = error
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(20)
    if "error" in made:
        raise made["error"]
    try:
        yield World(made["service"], settings.folder, made["port"], sites)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()
    if "error" in made:
        raise made["error"]


@contextmanager
def world(
    folder: Path, answers: Answers, hosts: Sequence[str] = ("a.test", "b.test"), **settings: Any
) -> Iterator[World]:
    """Run sites for these hosts on one loopback address. The crawl knows all of them, and `answers` gives their responses."""
    with small_server(answers) as server:
        chosen = Settings(
            folder,
            port=0,
            allow_private=True,
            token=TOKEN,
            hosts=dict.fromkeys((*hosts, "hub.test", "other.test"), ("127.9.0.1",)),
        )
        origins = [f"http://{host}:{server.port}" for host in hosts]
        with endpoint(replace(chosen, **settings), origins) as found:
            found.server = server
            yield found
