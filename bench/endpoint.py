"""Measures the endpoint for pings under load, on loopback: pings per second, and their delay. python bench/endpoint.py --json FILE

The endpoint runs in its own process with a fresh folder; this process sends pings and serves the key files. Both share the
machine's cores, so the numbers are those of endpoint and sender together. Every ping is about another page, so that each is
written to disk. Limits per sender and host are off where capacity is measured, and on under the flood.

closed: a fixed number of connections; each sends the next ping when the last one is answered.
open:   a fixed number of pings per second, independent of the answers; the delay counts from the time a ping was due.
flood:  open, while other senders forge keys, repeat pings and name sites outside the crawl, as fast as they can.

Two options test a crawl behind the endpoint instead (endpoint_crawl.py). `--forged 100000` sends that many forged and replayed
pings and compares the data of the crawl before and after. `--beside 240` floods the endpoint for half of that many seconds and
prints the crawl's speed and freshness with and without the flood.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import uvloop

from trapline.signals.inbox import Inbox

KEY = "0123456789abcdef"
HOSTS = 200
KEY_ADDRESS = "127.8.0.1"
NO_LIMIT = 1e12
numbers = count()


class Client:
    """One connection of one sender."""

    def __init__(self, port: int, source: int) -> None:
        self._port, self._source = port, f"127.8.{1 + source // 200}.{1 + source % 200}"

    async def open(self) -> "Client":
        opened = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(self._source, 0))
        self._reader, self._writer = opened
        return self

    async def send(self, request: bytes) -> int:
        """Send a request; return the status of the answer."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await self._reader.readexactly(length)
        return int(head[9:12])

    def close(self) -> None:
        self._writer.close()


class Timed:
    def __init__(self) -> None:
        self.delays_s: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.began = time.monotonic()

    def add(self, status: int, delay_s: float) -> None:
        self.statuses[status] += 1
        self.delays_s.append(delay_s)

    def summary(self, urls_each: int = 1) -> dict[str, object]:
        seconds, delays = time.monotonic() - self.began, sorted(self.delays_s)
        return {
            "pings_per_second": round(urls_each * self.statuses[200] / seconds, 1),
            "requests_per_second": round(len(delays) / seconds, 1),
            "p50_ms": round(1e3 * delays[len(delays) // 2], 2),
            "p99_ms": round(1e3 * delays[len(delays) * 99 // 100], 2),
            "statuses": dict(self.statuses),
        }


def origin_of(number: int, port: int) -> str:
    return f"http://h{number % HOSTS}.test:{port}"


def ping(key_port: int, key: str = KEY, path: str = "") -> bytes:
    number = next(numbers)
    url = f"{origin_of(number, key_port)}/{path or number}".replace(":", "%3A").replace("/", "%2F")
    return f"GET /indexnow?url={url}&key={key} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def list_of(key_port: int, urls: int) -> bytes:
    first = next(numbers)
    site = origin_of(first, key_port)
    pages = [f"{site}/{first}-{number}" for number in range(urls)]
    body = json.dumps({"host": site[7:], "key": KEY, "urlList": pages}).encode()
    return b"POST /indexnow HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def forged(key_port: int) -> bytes:
    """Make a forgery. Of four, two have a forged key, one repeats a ping, one is for an unknown site."""
    kind = next(numbers) % 4
    if kind == 3:
        return b"GET /indexnow?url=http%%3A%%2F%%2Fx%d.test%%2F&key=%s HTTP/1.1\r\nHost: x\r\n\r\n" % (
            next(numbers),
            KEY.encode(),
        )
    return ping(key_port, f"forged-{next(numbers)}") if kind < 2 else ping(key_port, path="same")


async def closed(port: int, connections: int, seconds: float, make: Callable[[], bytes]) -> Timed:
    clients = await asyncio.gather(*(Client(port, number).open() for number in range(connections)))
    timed, end = Timed(), time.monotonic() + seconds

    async def one(client: Client) -> None:
        while (now := time.monotonic()) < end:
            timed.add(await client.send(make()), time.monotonic() - now)

    await asyncio.gather(*map(one, clients))
    for client in clients:
        client.close()
    return timed


async def at_rate(port: int, connections: int, seconds: float, rate: float, make: Callable[[], bytes]) -> Timed:
    clients = await asyncio.gather(*(Client(port, number).open() for number in range(connections)))
    due: asyncio.Queue[float] = asyncio.Queue()
    timed, began = Timed(), time.monotonic()

    async def one(client: Client) -> None:
        while (moment := await due.get()) >= 0.0:
            timed.add(await client.send(make()), time.monotonic() - moment)

    working = [asyncio.create_task(one(client)) for client in clients]
    for number in range(int(rate * seconds)):
        moment = began + number / rate
        await asyncio.sleep(max(0.0, moment - time.monotonic()))
        due.put_nowait(moment)
    for _ in clients:
        due.put_nowait(-1.0)
    await asyncio.gather(*working)
    for client in clients:
        client.close()
    return timed


async def flooded(port: int, key_port: int, connections: int, seconds: float, rate: float) -> dict[str, object]:
    """Send honest pings at a fixed rate during a flood. The senders of the flood have their own addresses."""
    stop, statuses = asyncio.Event(), Counter[int]()

    async def flood(number: int) -> None:
        client = await Client(port, 1000 + number).open()
        while not stop.is_set():
            statuses[await client.send(forged(key_port))] += 1
        client.close()

    began = time.monotonic()
    floods = [asyncio.create_task(flood(number)) for number in range(connections)]
    timed = await at_rate(port, 64, seconds, rate, lambda: ping(key_port))
    stop.set()
    await asyncio.gather(*floods)
    lasted = time.monotonic() - began
    return {
        **timed.summary(),
        "forged_per_second": round(statuses.total() / lasted, 1),
        "forged_statuses": dict(statuses),
    }


async def key_files(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    body = KEY.encode() if head.split(b" ")[1] == f"/{KEY}.txt".encode() else b"no"
    status = b"200 OK" if body != b"no" else b"404 Not Found"
    writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body))
    writer.close()


@contextmanager
def serving(folder: Path, key_port: int, limits: bool) -> Iterator[tuple[int, int]]:
    """Run an endpoint in its own process; yield its port and process id."""
    command = [sys.executable, __file__, "--serve", str(folder), str(key_port), "on" if limits else "off"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.terminate()


def serve(folder: str, key_port: str, limits: str) -> None:
    import signal

    from trapline.signals.endpoint.intake import SenderRates
    from trapline.signals.endpoint.rate_limits import RequestRate
    from trapline.signals.endpoint.server import Service, Settings
    from trapline.signals.published.feed import read_feed

    free = RequestRate(NO_LIMIT, NO_LIMIT)
    rates = SenderRates() if limits == "on" else SenderRates(free, free, free, free, free)
    hosts = {f"h{number}.test": (KEY_ADDRESS,) for number in range(HOSTS)}
    settings = Settings(Path(folder), port=0, allow_private=True, rates=rates, hosts=hosts)
    sites = [(number, origin_of(number, int(key_port))) for number in range(HOSTS)]

    async def main() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        service = Service(settings, lambda last: sites[last + 1 :], read_feed)
        await service.run(stop, lambda port: print(port, flush=True))

    uvloop.run(main())


def usage(process: int) -> tuple[float, float]:
    """Return the processor seconds and resident megabytes of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measured(
    name: str, limits: bool, run: Callable[[int, int], Awaitable[dict[str, object]]]
) -> dict[str, object]:
    key_server = await asyncio.start_server(key_files, KEY_ADDRESS, 0)
    key_port = key_server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as text:
        with serving(Path(text), key_port, limits) as (port, process):
            client = await Client(port, 999).open()
            for _ in range(HOSTS):  # the endpoint checks the key of every host before the measurement
                await client.send(ping(key_port))
            await asyncio.sleep(2.0)
            client.close()
            before, _ = usage(process)
            found = await run(port, key_port)
            after, megabytes = usage(process)
        inbox = Inbox(Path(text))
        stored = inbox.last
        inbox.close()
    key_server.close()
    result = {
        "name": name,
        **found,
        "processor_s": round(after - before, 2),
        "memory_mb": round(megabytes),
        "stored": stored,
    }
    print(json.dumps(result), flush=True)
    return result


async def main(seconds: float, rates: list[float], connections: int) -> list[dict[str, object]]:
    async def single(port: int, key_port: int) -> dict[str, object]:
        return (await closed(port, connections, seconds, lambda: ping(key_port))).summary()

    async def lists(port: int, key_port: int) -> dict[str, object]:
        return (await closed(port, 4, seconds, lambda: list_of(key_port, 10_000))).summary(10_000)

    results = [
        await measured(f"closed, {connections} connections, one URL a ping", False, single),
        await measured("closed, 4 connections, lists of 10,000", False, lists),
    ]
    for rate in rates:

        async def open_loop(port: int, key_port: int, rate: float = rate) -> dict[str, object]:
            return (await at_rate(port, 128, seconds, rate, lambda: ping(key_port))).summary()

        async def flood(port: int, key_port: int, rate: float = rate) -> dict[str, object]:
            return await flooded(port, key_port, 64, seconds, rate)

        results.append(await measured(f"open, {rate:g}/s", False, open_loop))
        results.append(await measured(f"flood, {rate:g}/s honest", True, flood))
    return results


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement [10]")
    parser.add_argument(
        "--rates", type=float, nargs="*", default=[500.0, 2000.0], help="pings per second of open and flood [500 2000]"
    )
    parser.add_argument("--connections", type=int, default=256, help="connections of closed [256]")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument(
        "--forged", type=int, metavar="N", help="send N forged and replayed pings to a crawl's endpoint"
    )
    parser.add_argument(
        "--beside", type=float, metavar="SECONDS", help="flood a crawl's endpoint for half of this time"
    )
    given = parser.parse_args()
    if given.forged or given.beside:
        import endpoint_crawl

        found = [endpoint_crawl.forged(given.forged)] if given.forged else []
        found += [endpoint_crawl.beside(given.beside)] if given.beside else []
        print(json.dumps(found, indent=1))
    else:
        found = uvloop.run(main(given.seconds, given.rates, given.connections))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
