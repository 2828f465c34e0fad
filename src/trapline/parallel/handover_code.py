"""What one partition hands over to another when the crawl grows, as bytes. It knows the form, and not what belongs to whom.

    magic "TLH1" | JSON, compressed: [hosts and their addresses, pieces of sites, whether nothing follows, what was learned, what was
    heard], each piece a row of its fields

Numbers are written so that they are read back to the last bit; NaN is among them. Bytes are text of as many characters.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import zstandard

from trapline.crawl.moved_pages import MovedPage
from trapline.crawl.records import KeptCopy
from trapline.errors import ConfigError
from trapline.frontier.transfer import SiteExport
from trapline.parallel.batch_code import packed, parts, unpacked

MAGIC = b"TLH1"
PIECE_PAGES = 2048  # of which the longest have as many bytes


class Again(NamedTuple):
    """A page that is fetched again."""

    url: str
    depth: int
    page: MovedPage

    @property
    def size(self) -> int:
        """In bytes, about: most of it is numbers."""
        copy = sum(len(one) for one in self.page.copy or () if isinstance(one, bytes))
        return len(self.url) + 16 * len(self.page.evidence) + copy


class Piece(NamedTuple):
    """A site, or a part of its pages: those that wait, as `SiteExport` has them, those that were had or refused, and those that are
    fetched again."""

    site: str  # its origin
    record: Mapping[str, float]
    rest_s: float
    waiting: Sequence[str] = ()  # URLs
    keys: Sequence[float] = ()
    depths: Sequence[float] = ()
    tries: Sequence[float] = ()
    columns: Sequence[Sequence[float]] = ()
    had: Sequence[str] = ()
    again: Sequence[Again] = ()
    outcomes: Sequence[float] = ()  # how right the site's channels were; with the first of these pages

    @property
    def size(self) -> int:
        """In bytes, about."""
        return sum(map(len, self.waiting)) + sum(map(len, self.had)) + sum(one.size for one in self.again)

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
    learned: Sequence[float] = ()  # of all pages that are fetched again
    heard: tuple[str, int] | None = None  # with the last: of which inbox, up to which signal


def pieces(site: str, export: SiteExport, waiting: Sequence[str], had: Sequence[str]) -> Iterator[Piece]:
    """A site of any size, in parts that fit a parcel."""
    at = 0
    for part in export.parts(PIECE_PAGES) if waiting else ():
        numbers = (part.keys.tolist(), part.depths.tolist(), part.tries.tolist(), part.columns.tolist())
        yield Piece(site, part.record, part.rest_s, waiting[at : at + len(part.pages)], *numbers)
        at += len(part.pages)
    for first in range(0, len(had), PIECE_PAGES):
        yield Piece(site, export.record, export.rest_s, had=had[first : first + PIECE_PAGES])


def pieces_again(site: str, export: SiteExport, outcomes: Sequence[float], pages: Iterable[Again]) -> Iterator[Piece]:
    """The same for its pages that are fetched again; there are some."""
    for part in parts(pages, lambda one: one.size):
        yield Piece(site, export.record, export.rest_s, outcomes=outcomes, again=part)
        outcomes = ()


def encode(contents: Contents) -> bytes:
    """
    >>> said = Contents([("a.org", "192.0.2.1")], [Piece("http://a.org", {"known": 1.0}, 2.5, had=["http://a.org/"])], True)
    >>> decode(encode(said)).sites[0].had
    ['http://a.org/']
    """
    return MAGIC + packed(json.dumps(contents, default=_text).encode())


def decode(data: bytes) -> Contents:
    """`ConfigError`: these are not the bytes of a hand-over."""
    try:
        if data[:4] != MAGIC:
            raise ValueError("it begins with something else")
        hosts, sites, is_last, *more = json.loads(unpacked(data[4:]))
        learned, heard = more or ((), None)  # of an older version
        known = [(host, address) for host, address in hosts]
        up_to = None if heard is None else (str(heard[0]), int(heard[1]))
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
        raise ConfigError(f"it is damaged, or of another version: {error}") from None


def _piece(*fields: Any) -> Piece:
    piece = Piece(*fields)
    return piece._replace(again=[Again(url, depth, _page(*page)) for url, depth, page in piece.again])


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
