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
_PER_QUEUE = 10  # URLs, of GetURLs
_ROUNDS = 3  # of which the best counts


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


def put_rates(client: RawClient, count: int, queues: int, first: int) -> dict[str, float]:
    """Put this number of URLs from `first` on, make them known, and put as many more by batch."""
    new, known = items(first, count, queues), items(first, count, queues, 0)
    many = batches(first + count, count, queues)
    return {
        "PutURLs, new": rate(count, lambda: client.answers("PutURLs", iter(new)), count),
        "PutURLs, known": rate(count, lambda: client.answers("PutURLs", iter(known)), count),
        "PutDiscovered": rate(count, lambda: client.answers("PutDiscovered", iter(many)), len(many)),
    }


def get_rate(client: RawClient, count: int) -> dict[str, float]:
    params = m.GetParams(max_urls_per_queue=_PER_QUEUE, max_queues=count // _PER_QUEUE, delay_requestable=_HOLD_S)
    began = time.perf_counter()
    given = client.answers("GetURLs", params.SerializeToString())
    assert given > count // 2, f"only {given} URLs"
    return {"GetURLs": given / (time.perf_counter() - began)}


def fill(client: RawClient, first: int, count: int, queues: int) -> None:
    for start in range(0, count, 50_000):
        print(f"\r{start:,} of {count:,} URLs put", end="", file=sys.stderr, flush=True)
        client.answers("PutDiscovered", iter(batches(first + start, min(50_000, count - start), queues)))
    print(f"\r{'':40}\r", end="", file=sys.stderr)


def keep_best(best: dict[str, float], found: dict[str, float]) -> None:
    for name, value in found.items():
        best[name] = max(value, best.get(name, 0.0))


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
    parser.add_argument("--measured", type=int, default=10_000, help="URLs of each measurement [10000]")
    parser.add_argument("--strategy", default="breadth-first-turn", help="[breadth-first-turn]")
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        import uvloop

        uvloop.run(echo())
        return
    count, queues = options.measured, options.queues
    limit: dict[str, float] = {}
    ours: dict[str, float] = {}
    command = "from trapline.cli import main; main()"
    with tempfile.TemporaryDirectory() as folder:
        serve = ("serve", "urlfrontier", str(Path(folder) / "f"), "--listen", "127.0.0.1:0", "--delay", "1")
        with (
            process(__file__, "--echo") as bare,
            process("-c", command, *serve, "--strategy", options.strategy) as client,
        ):
            for number in range(_ROUNDS):  # in turn, because other programs may run now and then
                keep_best(limit, put_rates(bare, count, queues, 0))
                keep_best(ours, put_rates(client, count, queues, 2 * count * number))
            put = 2 * count * _ROUNDS
            fill(client, put, options.urls - put, queues)
            for _ in range(_ROUNDS):
                keep_best(limit, get_rate(bare, count))
                keep_best(ours, get_rate(client, count))
    print(f"{'URLs/s':16}{'frontier':>12}{'bare gRPC':>12}{'ratio':>8}")
    for name, value in ours.items():
        print(f"{name:16}{value:12,.0f}{limit[name]:12,.0f}{value / limit[name]:8.2f}")


if __name__ == "__main__":
    main()
