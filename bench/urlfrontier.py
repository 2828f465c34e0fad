"""Measures `trapline serve urlfrontier`, on loopback: acknowledged URLs per second, and URLs that GetURLs gives.

python bench/urlfrontier.py [--urls 1000000] [--queues 10000]

The limit is gRPC itself: each URL is a message, and in PutURLs its acknowledgement is another. So the same client sends the same messages
to a bare server of the same library, which answers each one at once and keeps nothing. The ratio of the two rates says what the frontier
and the disk cost. Server and client share the machine's cores.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from trapline.urlfrontier import messages as m

_BATCH = 100  # URLs of a message of PutDiscovered, as StormCrawler sends them
_HOLD_S = 100_000


def url_of(number: int, queues: int) -> str:
    return f"https://www.site-{number % queues}.example.org/section-{number % 97}/page-{number}.html"


def info_of(number: int, queues: int) -> Any:
    metadata = {"url.path": m.StringList(values=[url_of(number // 7, queues)]), "depth": m.StringList(values=["2"])}
    return m.URLInfo(url=url_of(number, queues), metadata=metadata)


def items(first: int, count: int, queues: int, date: int | None = None) -> list[bytes]:
    """Return messages of PutURLs in the wire format: the client's own work shall not be measured."""
    found = []
    for number in range(first, first + count):
        item = m.URLItem(ID=str(number))
        if date is None:
            item.discovered.info.CopyFrom(info_of(number, queues))
        else:
            item.known.info.CopyFrom(info_of(number, queues))
            item.known.refetchable_from_date = date
        found.append(item.SerializeToString())
    return found


def batches(first: int, count: int, queues: int) -> list[bytes]:
    starts = range(first, first + count, _BATCH)
    numbers = (range(start, min(start + _BATCH, first + count)) for start in starts)
    return [
        m.DiscoveredBatch(ID=str(some[0]), items=[info_of(number, queues) for number in some]).SerializeToString()
        for some in numbers
    ]


class RawClient:
    """Sends and receives bytes."""

    def __init__(self, port: int) -> None:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        grpc.channel_ready_future(channel).result(timeout=300)
        self._methods = {name: getattr(channel, call.kind)(call.path) for name, call in m.CALLS.items()}

    def answers(self, call: str, request: Any) -> int:
        return sum(1 for _ in self._methods[call](request))


@contextmanager
def process(*arguments: str) -> Iterator[RawClient]:
    """Start a server that prints a line with `127.0.0.1:PORT`."""
    server = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        yield RawClient(int(line.split("127.0.0.1:")[1].split(",")[0]))
    finally:
        server.terminate()
        server.wait(120)


def rate(count: int, run: Callable[[], int], expected: int) -> float:
    began = time.perf_counter()
    answered = run()
    seconds = time.perf_counter() - began
    assert answered == expected, f"{answered} answers, not {expected}"
    return count / seconds


def measure(client: RawClient, count: int, queues: int, first: int, fill: int, label: str) -> dict[str, float]:
    """Put and get this number of URLs with each call; before GetURLs, `fill` more by batch."""
    put, again, many = (
        items(first, count, queues),
        items(first, count, queues, 0),
        batches(first + count, count, queues),
    )
    found = {
        "PutURLs, new": rate(count, lambda: client.answers("PutURLs", iter(put)), count),
        "PutURLs, known": rate(count, lambda: client.answers("PutURLs", iter(again)), count),
        "PutDiscovered": rate(count, lambda: client.answers("PutDiscovered", iter(many)), len(many)),
    }
    for start in range(0, fill, 50_000):
        some = min(50_000, fill - start)
        print(f"\r{label}: {start:,} of {fill:,} URLs put", end="", file=sys.stderr, flush=True)
        client.answers("PutDiscovered", iter(batches(first + 2 * count + start, some, queues)))
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    per_queue = 10
    request = m.GetParams(max_urls_per_queue=per_queue, max_queues=count // per_queue, delay_requestable=_HOLD_S)
    given = 0

    def get() -> int:
        nonlocal given
        given = client.answers("GetURLs", request.SerializeToString())
        return given

    seconds = time.perf_counter()
    get()
    found["GetURLs"] = given / (time.perf_counter() - seconds)
    return found


async def echo() -> None:
    """Answer each message at once: the bare server."""
    from grpc import aio

    async def PutURLs(requests: Any, context: Any) -> None:
        async for item in requests:
            await context.write(m.AckMessage(ID=item.ID).SerializeToString())

    async def PutDiscovered(requests: Any, context: Any) -> None:
        async for batch in requests:
            await context.write(m.BatchAck(ID=batch.ID, statuses=[0] * len(batch.items)).SerializeToString())

    async def GetURLs(request: Any, context: Any) -> None:
        info = info_of(1, 10_000)
        info.key, info.crawlID = "www.site-1.example.org", "DEFAULT"
        data = info.SerializeToString()
        for _ in range(request.max_queues * request.max_urls_per_queue):
            await context.write(data)

    server, handlers = aio.server(), {}
    for method in (PutURLs, PutDiscovered, GetURLs):
        call = m.CALLS[method.__name__]
        make = getattr(grpc, f"{call.kind}_rpc_method_handler")
        handlers[method.__name__] = make(method, call.request.FromString, None)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("urlfrontier.URLFrontier", handlers),))
    print(f"bare server on 127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}, ready", flush=True)
    await server.start()
    await server.wait_for_termination()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=1_000_000, help="URLs in the frontier before GetURLs [1000000]")
    parser.add_argument("--queues", type=int, default=10_000, help="[10000]")
    parser.add_argument("--measured", type=int, default=20_000, help="URLs of each measurement [20000]")
    parser.add_argument("--strategy", default="breadth-first-turn", help="[breadth-first-turn]")
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        import uvloop

        uvloop.run(echo())
        return
    count = options.measured
    with process(__file__, "--echo") as bare:
        limit = measure(bare, count, options.queues, 0, 0, "bare")
    with tempfile.TemporaryDirectory() as folder:
        command = "from trapline.cli import main; main()"
        serve = ("serve", "urlfrontier", str(Path(folder) / "f"), "--listen", "127.0.0.1:0", "--delay", "1")
        with process("-c", command, *serve, "--strategy", options.strategy) as client:
            ours = measure(client, count, options.queues, 0, max(0, options.urls - count), "frontier")
    print(f"{'URLs/s':16}{'frontier':>12}{'bare gRPC':>12}{'ratio':>8}")
    for name, value in ours.items():
        print(f"{name:16}{value:12,.0f}{limit[name]:12,.0f}{value / limit[name]:8.2f}")


if __name__ == "__main__":
    main()
