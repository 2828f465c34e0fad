"""WARC 1.1 records as bytes: the headers before a block, and digests. Pure functions, which open no file.

The length of a block delimits it, so a block may contain any bytes. The end of the line delimits a header: values from
outside that go into a header (URL, address) are refused here unless they are plain ASCII without blanks.
"""

import struct
import time
from base64 import b32encode
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from random import getrandbits
from typing import NamedTuple

from isal.igzip_lib import COMP_GZIP, compress

from trapline.crawler.store.settings import StoreSettings
from trapline.errors import InvariantError

# ---- Bodies that the archive already has: digest -> record with that body. Only the latest are kept, in memory; empty at each start.
#
# filing.py adds every complete response of SMALLEST bytes and more. The table itself removes entries, the oldest first.
# Invariant: at most `limit` entries, one bytes object each; nothing else grows with the crawl.

SMALLEST = 1024  # bytes of a body; a record that refers to another one takes some 400 bytes itself

_PACKED = struct.Struct("<36sd")


class Original(NamedTuple):
    """The record that a revisit record refers to, as far as it is known."""

    record_id: str  # "": not known
    started: float | None
    url: str


class Revisits:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._originals: dict[bytes, bytes] = {}
        self._order: deque[bytes] = deque()

    def find(self, digest: bytes) -> Original | None:
        packed = self._originals.get(digest)
        if packed is None:
            return None
        record_id, started = _PACKED.unpack_from(packed)
        return Original(record_id.decode(), started, packed[_PACKED.size :].decode())

    def remember(self, digest: bytes, record_id: str, started: float, url: str) -> None:
        if not self._limit:
            return
        if len(self._order) == self._limit:
            del self._originals[self._order.popleft()]
        self._originals[digest] = _PACKED.pack(record_id.encode(), started) + url.encode()
        self._order.append(digest)


# ---- Records.

CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
# Profiles of revisit records, which say why there is no body: we have archived the same one, or the server sent 304.
IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
# The only values of WARC-Truncated.
TRUNCATIONS = frozenset({"length", "time", "disconnect", "unspecified"})

# The compression level for records of a few hundred bytes: a third of the time of level 1, and 150 bytes more.
SMALL = 0

_END = b"\r\n\r\n"


def member(level: int, header: str, *block: bytes) -> bytes:
    """Return a record as a gzip member of its own, so that a reader can start there."""
    return compress(b"".join((header.encode(), *block, _END)), level, COMP_GZIP)


def new_record_id() -> str:
    """Return a random UUID of version 4. It is unique across restarts, because the system seeds the generator at each start."""
    digits = f"{getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def response(record_id: str, date: str, url: str, about: str, length: int) -> str:
    return (
        f"{_opening('response', record_id, date)}WARC-Target-URI: {url}\r\n{about}"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {length}\r\n\r\n"
    )


def revisit(record_id: str, date: str, url: str, about: str, length: int, profile: str, original: Original) -> str:
    return (
        f"{_opening('revisit', record_id, date)}WARC-Target-URI: {url}\r\n{about}"
        f"WARC-Profile: {profile}\r\n{_referring(original)}"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {length}\r\n\r\n"
    )


def _referring(original: Original) -> str:
    lines = f"WARC-Refers-To: <urn:uuid:{original.record_id}>\r\n" if original.record_id else ""
    lines += f"WARC-Refers-To-Target-URI: {original.url}\r\n"
    return lines if original.started is None else f"{lines}WARC-Refers-To-Date: {warc_date(original.started)}\r\n"


def request(date: str, url: str, concurrent_to: str, length: int) -> str:
    return (
        f"{_opening('request', new_record_id(), date)}WARC-Target-URI: {url}\r\n"
        f"WARC-Concurrent-To: <urn:uuid:{concurrent_to}>\r\n"
        f"Content-Type: application/http;msgtype=request\r\nContent-Length: {length}\r\n\r\n"
    )


def metadata(date: str, url: str, concurrent_to: str, length: int) -> str:
    return (
        f"{_opening('metadata', new_record_id(), date)}WARC-Target-URI: {url}\r\n"
        f"WARC-Concurrent-To: <urn:uuid:{concurrent_to}>\r\n"
        f"Content-Type: application/warc-fields\r\nContent-Length: {length}\r\n\r\n"
    )


def warcinfo(filename: str, at: float, settings: StoreSettings) -> bytes:
    """Return the first record of a file, as a gzip member."""
    fields = {
        "software": settings.software,
        "format": "WARC File Format 1.1",
        "conformsTo": CONFORMS_TO,
        "robots": settings.robots,
        "http-header-user-agent": settings.user_agent,
        "operator": settings.operator,
    }
    block = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value).encode()
    header = (
        f"{_opening('warcinfo', new_record_id(), warc_date(at))}WARC-Filename: {filename}\r\n"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return member(SMALL, header, block)


def about_answer(address: str, digest: str, truncated: str) -> str:
    """Return the optional header lines of a response record."""
    lines = f"WARC-IP-Address: {plain(address)}\r\n" if address else ""
    if digest:
        lines += f"WARC-Payload-Digest: sha1:{digest}\r\n"
    if truncated:
        lines += f"WARC-Truncated: {truncated if truncated in TRUNCATIONS else 'unspecified'}\r\n"
    return lines


def page_fields(total_s: float, links: Iterable[str]) -> bytes:
    """Return the block of a metadata record. Links are written as found on the page, with unprintable characters escaped."""
    lines = [f"fetchTimeMs: {round(total_s * 1000)}\r\n"]
    lines += [f"outlink: {link if link.isprintable() else _escaped(link)}\r\n" for link in links]
    return "".join(lines).encode("utf-8", "replace")


def plain(text: str) -> str:
    """Return `text` if it may be written in a header and in an index line.

    Otherwise raise `InvariantError`: all that reaches the store is canonical, so anything else is our bug.
    """
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    raise InvariantError(f"{text!r} must not be in a WARC header: it is not printable ASCII without blanks")


def warc_date(at: float) -> str:
    """Format a time for the header WARC-Date.

    >>> warc_date(1_700_000_000.25)
    '2023-11-14T22:13:20.250000Z'
    """
    second = int(at)
    return f"{_second(second)}.{int((at - second) * 1e6):06d}Z"


def base32(digest: bytes) -> str:
    return b32encode(digest).decode()


@lru_cache(maxsize=256)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def _opening(kind: str, record_id: str, date: str) -> str:
    return f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{record_id}>\r\nWARC-Date: {date}\r\n"


def _escaped(link: str) -> str:
    """Percent-encode the UTF-8 bytes of unprintable characters, as in a URL. A lone surrogate becomes U+FFFD.

    >>> _escaped("a\\n\\u2028\\ud800b")
    'a%0A%E2%80%A8%EF%BF%BDb'
    """
    return "".join(c if c.isprintable() else _percent(c) for c in link)


def _percent(character: str) -> str:
    encodable = "\ufffd" if "\ud800" <= character <= "\udfff" else character
    return "".join(f"%{byte:02X}" for byte in encodable.encode())
