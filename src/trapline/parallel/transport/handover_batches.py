"""The binary format of a hand-over: what an old partition sends to a new one when the crawl grows. This module knows
the format, and not which site belongs to which partition.

    magic "TLH1" | JSON, compressed: [hosts and their addresses, pieces of sites, whether nothing follows, what was learned, the
    position in the signal inbox], each piece a row of its fields

Numbers are written so that they are read back exactly, to the last bit; NaN may be among them. Bytes are written as
Latin-1 text.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import zstandard

from trapline.crawler.engine.records import KeptCopy
from trapline.crawler.recrawl.moved_pages import MovedPage
from trapline.errors import ConfigError
from trapline.frontier.transfer import SiteExport
from trapline.parallel.transport.url_batches import packed, parts, unpacked

MAGIC = b"TLH1"
PIECE_PAGES = 2048  # pages in one piece; the longest URLs also have 2048 characters (fetch/urls.py)


class MovedRefetch(NamedTuple):
    """A page that the crawl refetches, with all that is known about it."""

    url: str
    depth: int
    page: MovedPage

    @property
    def size(self) -> int:
        """Approximate size in bytes: most of it is numbers."""
        copy = sum(len(value) for value in self.page.copy or () if isinstance(value, bytes))
        return len(self.url) + 16 * len(self.page.evidence) + copy


class Piece(NamedTuple):
    """A site, or a part of its pages: waiting pages as in `SiteExport`, pages that were fetched or refused (`gone`), and
    pages that the crawl refetches (`refetched`)."""

    site: str  # origin: scheme://host:port
    record: Mapping[str, float]
    remaining_delay_s: float
    waiting: Sequence[str] = ()  # URLs
    keys: Sequence[float] = ()
    depths: Sequence[float] = ()
    tries: Sequence[float] = ()
    columns: Sequence[Sequence[float]] = ()
    gone: Sequence[str] = ()
    refetched: Sequence[MovedRefetch] = ()
    outcomes: Sequence[
        float
    ] = ()  # how often the site's signal channels were right; in the first piece with pages to refetch

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return sum(map(len, self.waiting)) + sum(map(len, self.gone)) + sum(one.size for one in self.refetched)

    def export(self, columns: int) -> SiteExport:
        """Return the waiting pages in the frontier's form. `columns`: the number of columns of its page rank. The page
        ids are zeros: the caller must find the ids of the pages in its own frontier."""
        pages = len(self.waiting)
        keys, depths, tries, values = (
            np.array(numbers, float) for numbers in (self.keys, self.depths, self.tries, self.columns)
        )
        ids = np.zeros(pages, np.int32)
        return SiteExport(
            dict(self.record), self.remaining_delay_s, ids, keys, depths, tries, values.reshape(pages, columns)
        )


class Contents(NamedTuple):
    """The contents of one hand-over batch."""

    hosts: Sequence[tuple[str, str]] = ()  # settled hosts (parallel/live/site_owner.py), with their addresses
    sites: Sequence[Piece] = ()
    is_last: bool = False
    learned: Sequence[float] = ()  # what the refresher learned from all refetched pages
    inbox_position: tuple[str, int] | None = (
        None  # in the last batch: the signal inbox, and the last signal read from it
    )


def pieces(site: str, export: SiteExport, waiting: Sequence[str], gone: Sequence[str]) -> Iterator[Piece]:
    """Yield a site of any size, in pieces that fit into a message batch. `gone`: the URLs of pages that were fetched or
    refused."""
    at = 0
    for part in export.parts(PIECE_PAGES) if waiting else ():
        numbers = (part.keys.tolist(), part.depths.tolist(), part.tries.tolist(), part.columns.tolist())
        yield Piece(site, part.record, part.remaining_delay_s, waiting[at : at + len(part.pages)], *numbers)
        at += len(part.pages)
    for first in range(0, len(gone), PIECE_PAGES):
        yield Piece(site, export.record, export.remaining_delay_s, gone=gone[first : first + PIECE_PAGES])


def refetch_pieces(
    site: str, export: SiteExport, outcomes: Sequence[float], pages: Iterable[MovedRefetch]
) -> Iterator[Piece]:
    """Yield the pages of a site that the crawl refetches, in pieces that fit into a message batch. There must be at
    least one page."""
    for part in parts(pages, lambda page: page.size):
        yield Piece(site, export.record, export.remaining_delay_s, outcomes=outcomes, refetched=part)
        outcomes = ()


def encode(contents: Contents) -> bytes:
    """Return the bytes of a hand-over batch.

    >>> piece = Piece("http://a.org", {"known": 1.0}, 2.5, gone=["http://a.org/"])
    >>> decode(encode(Contents([("a.org", "192.0.2.1")], [piece], True))).sites[0].gone
    ['http://a.org/']
    """
    return MAGIC + packed(json.dumps(contents, default=_text).encode())


def decode(data: bytes) -> Contents:
    """Return the contents of a hand-over batch. Raises `ConfigError` if the bytes are not a hand-over."""
    try:
        if data[:4] != MAGIC:
            raise ValueError(f"the data does not begin with {MAGIC.decode()}")
        hosts, sites, is_last, *more = json.loads(unpacked(data[4:]))
        learned, inbox_position = more or ((), None)  # an older version did not write them
        known = [(host, address) for host, address in hosts]
        up_to = None if inbox_position is None else (str(inbox_position[0]), int(inbox_position[1]))
        return Contents(known, [_piece(*site) for site in sites], bool(is_last), learned, up_to)
    except (
        zstandard.ZstdError,
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
        AttributeError,
        RecursionError,
    ) as error:
        raise ConfigError(f"the hand-over is damaged, or another version wrote it: {error}") from None


def _piece(*fields: Any) -> Piece:
    piece = Piece(*fields)
    return piece._replace(refetched=[MovedRefetch(url, depth, _page(*page)) for url, depth, page in piece.refetched])


def _page(evidence: Sequence[float], whole: bool, copy: Sequence[Any] | None) -> MovedPage:
    if copy is None:
        return MovedPage(evidence, whole, None)
    fetched, checked, last_change, *values, refused = copy
    print_, digest, etag, modified = (value.encode("latin-1") for value in values)
    kept = KeptCopy(float(fetched), float(checked), last_change, print_, digest, etag, modified, refused)
    return MovedPage(evidence, whole, kept)


def _text(value: bytes) -> str:
    return value.decode("latin-1")


def is_handover(data: bytes) -> bool:
    return data[:4] == MAGIC
