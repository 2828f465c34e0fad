"""A parcel of letters as bytes. It knows the form, and not who writes.

magic "TLL1" | zstd of a JSON list, of each letter: kind, URL, number, answer or null (its bytes as the characters 0 to 255)
"""

import json
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import zstandard

from trapline.crawl.robots_file import Answer
from trapline.errors import ConfigError
from trapline.fetch.urls import origin
from trapline.parallel.batch_code import decode as links_in
from trapline.parallel.batch_code import packed, unpacked

MAGIC = b"TLL1"


class Kind(IntEnum):
    """What a letter says of its URL. Numbers are on disk: add, never reuse."""

    TOLD = 1  # a page or a robots.txt names it as a sitemap, a feed or a schedule; or a sitemap or a feed lists it
    AGAIN = 2  # a page that was fetched again links to it; `number`: the depth of that page
    ASK = 3  # what is there? `number`: the partition that asks
    ANSWER = 4  # this is there; `number`: the partition that asked
    SEED = 5  # a seed redirects to it, and so its host or domain is in scope; `number`: of redirects


NOT_BY_SITE = (Kind.ANSWER, Kind.SEED)  # for whoever gets it, not for the owner of its site


class Letter(NamedTuple):
    kind: int
    url: str
    number: int = 0
    answer: Answer | None = None

    @property
    def size(self) -> int:
        return len(self.url) + (len(self.answer.body) if self.answer else 0)


def encode(letters: Sequence[Letter]) -> bytes:
    """
    >>> letters = [Letter(Kind.ANSWER, "http://a/robots.txt", 2, Answer(200, "", None, b"\\xff", None, None))]
    >>> decode(encode(letters)) == letters
    True
    """
    rows = [(*letter[:3], letter.answer and _as_text(letter.answer)) for letter in letters]
    return MAGIC + packed(json.dumps(rows).encode())


def _as_text(answer: Answer) -> list[object]:
    return [part.decode("latin-1") if isinstance(part, bytes) else part for part in answer]


def decode(data: bytes) -> list[Letter] | None:
    """None: it is no parcel of letters. `ConfigError`: it is a damaged one."""
    if data[:4] != MAGIC:
        return None
    try:
        return [_letter(row) for row in json.loads(unpacked(data[4:]))]
    except (zstandard.ZstdError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"a parcel of letters is damaged: {error}") from error


def _letter(row: Sequence[object]) -> Letter:
    kind, url, number, answer = row
    if not (isinstance(kind, int) and isinstance(url, str) and isinstance(number, int)):
        raise ValueError("a letter is none")
    if not isinstance(answer, list):
        return Letter(kind, url, number)
    told = Answer(*answer)
    return Letter(kind, url, number, told._replace(body=str(told.body).encode("latin-1")))


def sites_in(data: bytes) -> set[str]:
    """The sites that a parcel is about, of letters or of links."""
    letters = decode(data)
    if letters is None:
        return {origin(row.url.decode(errors="replace")) for row in links_in(data)}
    return {origin(letter.url) for letter in letters if letter.kind not in NOT_BY_SITE}
