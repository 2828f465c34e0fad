"""Input from hostile senders, other partitions and damaged disks: whatever is changed at random, it is read or refused, and nothing
else happens."""

import asyncio
import json
from collections.abc import Iterator

import numpy as np

from tests.proof.fuzzing import FULL, SHORT, Reader, fuzzed
from tests.proof.section import Finding, Section
from trapline.crawler.robots.site_robots import RobotsResponse
from trapline.errors import ConfigError
from trapline.frontier.journal import Call, Journal
from trapline.frontier.journal import read as read_log
from trapline.parallel.transport import control_batches, handover_batches, url_batches, wire
from trapline.parallel.transport.url_batches import packed, unpacked
from trapline.refresh.live.calls import LoggedCall, RefreshLog
from trapline.refresh.live.calls import read as read_refresh_log
from trapline.signals.access_log import AccessCounts
from trapline.signals.indexnow import request
from trapline.signals.published.feed import read_feed
from trapline.signals.websub import protocol as websub

_METHOD = """
A mutator with a fixed seed changes valid examples: it flips bits and bytes; cuts, doubles and swaps pieces with those of another
example; sets numbers to extreme values; and inserts text that parsers often fail on. It also changes the contents of batches, control
messages and hand-overs before they are compressed and get their checksum, so that the reader of the contents sees the change. A reader
may accept an input, or refuse it in the way that it documents (a refusal as its result, or `ConfigError`). Any other exception is a
failure, and so is an input that takes longer than ten seconds. The table shows failing inputs in hexadecimal.
"""


def run(full: bool) -> Iterator[Finding]:
    for title, readers in (
        ("Request bodies at the endpoint", _endpoint_readers()),
        ("Frames between partitions", _partition_readers()),
        ("The log for replay", _log_readers()),
    ):
        yield fuzzed(title, readers, FULL if full else SHORT)


# ---- the readers


def _endpoint_readers() -> list[Reader]:
    ping = {
        "host": "a.test",
        "key": "0123456789abcdef",
        "keyLocation": "http://a.test/k.txt",
        "urlList": ["http://a.test/é"],
    }
    pings = [
        json.dumps(ping).encode(),
        json.dumps({**ping, "urlList": ["http://a.test/"] * 50}, ensure_ascii=False).encode(),
    ]
    atom = (
        b'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="https://h.test/"/><entry>'
        b'<link href="/1"/><updated>2024-01-01T00:00:00Z</updated></entry></feed>'
    )
    rss = (
        b'<rss version="2.0"><channel><item><link>http://a.test/2</link>'
        b"<pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate></item></channel></rss>"
    )
    item = {"url": "http://a.test/3", "date_modified": "2024-01-01T00:00:00Z"}
    feed = json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [item]}).encode()
    accesses = [
        b"http://a.test/\t3\nhttp://a.test/x\t1700000000\n",
        b'{"url": "http://a.test/", "time": 1700000000, "count": 2}\n',
        b'1.2.3.4 - - [10/Oct/2024:13:55:36 +0200] "GET /x HTTP/1.1" 200 5 "-" "Mozilla"\n',
    ]
    query = b"hub.mode=subscribe&hub.topic=http%3A%2F%2Fa.test%2F&hub.challenge=c&hub.lease_seconds=100&hub.reason=x"
    return [
        Reader("pings", request.ping_of_body, pings),
        Reader("queries of pings", request.ping_of_query, [b"url=http%3A%2F%2Fa.test%2F&key=0123456789abcdef"]),
        Reader("questions of hubs", websub.question, [query]),
        Reader("deliveries", lambda body: read_feed(body, "http://a.test/feed", 0.0), [atom, rss, feed]),
        Reader("accesses", lambda body: AccessCounts("http://a.test", 1.7e9).read(body.splitlines()), accesses),
    ]


def _partition_readers() -> list[Reader]:
    rows = [url_batches.LinkRow(b"http://a.test/%d" % one, one, one, one / 3) for one in range(20)]
    answer = RobotsResponse(200, "", None, b"User-agent: *\nDisallow: /\xff", None, None)
    messages = [
        control_batches.ControlMessage(4, "http://a.test/robots.txt", 2, answer),
        control_batches.ControlMessage(1, "http://a.test/s.xml"),
    ]
    pieces = [handover_batches.Piece("http://a.test", {"known": 1.0}, 2.5, gone=["http://a.test/"])]
    contents = handover_batches.Contents([("a.test", "192.0.2.1")], pieces, True, [1.0], ("x", 3))
    whole = [url_batches.encode(rows), control_batches.encode(messages), handover_batches.encode(contents)]
    hello = {"protocol": wire.PROTOCOL, "crawl": "c", "from": 1, "nonce": "0" * 64}
    frames = [wire._HEAD.pack(len(body) + 1, kind) + body for kind, body in zip((4, 4, 6), whole, strict=True)]
    refused = (ConfigError,)
    readers = [
        Reader("batches", url_batches.decode, [whole[0]], refused),
        Reader("control messages", control_batches.decode, [whole[1]], refused),
        Reader("hand-overs", handover_batches.decode, [whole[2]], refused),
        Reader("greetings", wire._hello, [json.dumps(hello).encode()], refused),
        Reader("frames", _read_frames, frames),
    ]
    for name, read, one, head in (
        ("unpacked batches", url_batches.decode, whole[0], 5),
        ("unpacked control messages", control_batches.decode, whole[1], 4),
        ("unpacked hand-overs", handover_batches.decode, whole[2], 4),
    ):
        magic, body = one[:head], unpacked(one[head:])
        readers.append(Reader(name, read, [body], refused, lambda data, magic=magic: magic + packed(data)))  # type: ignore[misc]
    return readers


_loop = asyncio.new_event_loop()


def _read_frames(data: bytes) -> None:
    """Read frames as a connection does, to the end."""

    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        while await wire._read(reader, wire.MOST_FRAME) is not None:
            pass

    _loop.run_until_complete(read())


def _log_readers() -> list[Reader]:
    journal = Journal()
    journal.write(Call.ADD_SITES, np.arange(4, dtype=np.int32), 4, 0.0)
    journal.write(Call.DISCOVER, np.arange(9, dtype=np.int32), 9, 1.0)
    journal.write(Call.NEXT, np.arange(3, dtype=np.int64), 3, 1, 2.0, 3.0)
    calls = journal.take()
    log = RefreshLog()
    log.write(LoggedCall(1, 0, 0, 0.5, 1.0, np.arange(5, dtype=np.float64)))
    entries = log.take()
    refused = (ConfigError,)
    return [
        Reader("calls", lambda data: list(read_log(data)), [calls, calls * 3], refused),
        Reader("entries", lambda data: list(read_refresh_log(data)), [entries, entries * 3], refused),
    ]


SECTION = Section("Hostile senders, partitions and logs", _METHOD, run)
