"""What one partition hands over to another when the crawl grows, as bytes. It knows the form, and not what belongs to whom.

    magic "TLH1" | JSON, compressed: [hosts and their addresses, pieces of sites, whether nothing follows], each piece a row of its fields

Numbers are written so that they are read back to the last bit; NaN is among them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import zstandard

from trapline.errors import ConfigError
from trapline.frontier.transfer import SiteExport
from trapline.parallel.batch_code import packed, unpacked

MAGIC = b"TLH1"
PIECE_PAGES = 2048  # of which the longest have as many bytes


class Piece(NamedTuple):
    """A site, or a part of its pages: those that wait, as `SiteExport` has them, and those that were had or refused."""

    site: str  # its origin
    record: Mapping[str, float]
    rest_s: float
    waiting: Sequence[str] = ()  # URLs
    keys: Sequence[float] = ()
    depths: Sequence[float] = ()
    tries: Sequence[float] = ()
    columns: Sequence[Sequence[float]] = ()
    had: Sequence[str] = ()

    @property
    def url_bytes(self) -> int:
        return sum(map(len, self.waiting)) + sum(map(len, self.had))

    def export(self, columns: int) -> SiteExport:
        """For a frontier whose page rank has so many columns. The ids of its pages there are the caller's to find."""
        pages = len(self.waiting)
        keys, depths, tries, values = (
            np.array(one, float) for one in (self.keys, self.depths, self.tries, self.columns)
        )
        ids = np.zeros(pages, np.int32)
        return SiteExport(dict(self.record), self.rest_s, ids, keys, depths, tries, values.reshape(pages, columns))


class Contents(NamedTuple):
    """Of one parcel."""

    hosts: Sequence[tuple[str, str]] = ()  # settled ones, with their addresses
    sites: Sequence[Piece] = ()
    is_last: bool = False


def pieces(site: str, export: SiteExport, waiting: Sequence[str], had: Sequence[str]) -> Iterator[Piece]:
    """A site of any size, in parts that fit a parcel."""
    at = 0
    for part in export.parts(PIECE_PAGES) if waiting else ():
        numbers = (part.keys.tolist(), part.depths.tolist(), part.tries.tolist(), part.columns.tolist())
        yield Piece(site, part.record, part.rest_s, waiting[at : at + len(part.pages)], *numbers)
        at += len(part.pages)
    for first in range(0, len(had), PIECE_PAGES):
        yield Piece(site, export.record, export.rest_s, had=had[first : first + PIECE_PAGES])


def encode(contents: Contents) -> bytes:
    """
    >>> said = Contents([("a.org", "192.0.2.1")], [Piece("http://a.org", {"known": 1.0}, 2.5, had=["http://a.org/"])], True)
    >>> decode(encode(said)).sites[0].had
    ['http://a.org/']
    """
    return MAGIC + packed(json.dumps(contents).encode())


def decode(data: bytes) -> Contents:
    """`ConfigError`: these are not the bytes of a hand-over."""
    try:
        if data[:4] != MAGIC:
            raise ValueError("it begins with something else")
        hosts, sites, is_last = json.loads(unpacked(data[4:]))
        return Contents([(host, address) for host, address in hosts], [Piece(*site) for site in sites], bool(is_last))
    except (zstandard.ZstdError, ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"what a partition hands over is damaged, or of another version: {error}") from None


def is_handover(data: bytes) -> bool:
    return data[:4] == MAGIC
