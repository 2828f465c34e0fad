"""WARC 1.1 records as bytes: what stands before a block, and the block's digest. Pure; it opens no file.

A block is delimited by its length, so any bytes may stand in it. A header is delimited by its line's end: whatever comes
from outside and goes into one (URL, address) is refused here unless it is plain ASCII without blanks.
"""

import time
from base64 import b32encode
from collections.abc import Iterable
from functools import lru_cache
from random import getrandbits

from isal.igzip_lib import COMP_GZIP, compress

from trapline.crawl.store.revisits import Original
from trapline.crawl.store.settings import StoreSettings
from trapline.errors import InvariantError

CONFORMS_TO = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
# Why there is no body: we have had the same, or the server says so.
IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
# WARC-Truncated has these values and no others
TRUNCATIONS = frozenset({"length", "time", "disconnect", "unspecified"})

# The level for records of a few hundred bytes: a third of the time of level 1, and 150 bytes more
SMALL = 0

_END = b"\r\n\r\n"


def member(level: int, header: str, *block: bytes) -> bytes:
    """A record as a gzip member of its own, so that a reader can begin at it."""
    return compress(b"".join((header.encode(), *block, _END)), level, COMP_GZIP)


def new_record_id() -> str:
    """A UUID of version 4: unique here, and after any restart, for the generator is seeded by the system at each start."""
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
    """The record that opens a file, as its gzip member."""
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
    """The header lines of an answer that not every answer has."""
    lines = f"WARC-IP-Address: {plain(address)}\r\n" if address else ""
    if digest:
        lines += f"WARC-Payload-Digest: sha1:{digest}\r\n"
    if truncated:
        lines += f"WARC-Truncated: {truncated if truncated in TRUNCATIONS else 'unspecified'}\r\n"
    return lines


def page_fields(total_s: float, links: Iterable[str]) -> bytes:
    """The block of a metadata record. Links are as the page has them, so what would end a line is escaped."""
    lines = [f"fetchTimeMs: {round(total_s * 1000)}\r\n"]
    lines += [f"outlink: {link if link.isprintable() else _escaped(link)}\r\n" for link in links]
    return "".join(lines).encode("utf-8", "replace")


def plain(text: str) -> str:
    """`text`, if it can stand in a header and in an index line. What reaches the store is canonical: else it is our bug."""
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    raise InvariantError(f"not plain enough for an archive's header: {text!r}")


def warc_date(at: float) -> str:
    """
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
    """Percent-encode what is not printable, as a URL does: the bytes of its UTF-8; half a surrogate pair is U+FFFD.

    >>> _escaped("a\\n\\u2028\\ud800b")
    'a%0A%E2%80%A8%EF%BF%BDb'
    """
    return "".join(c if c.isprintable() else _percent(c) for c in link)


def _percent(character: str) -> str:
    whole = "\ufffd" if "\ud800" <= character <= "\udfff" else character
    return "".join(f"%{byte:02X}" for byte in whole.encode())
