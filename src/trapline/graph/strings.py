"""URLs of a graph by page id: stored in one block of bytes, or computed for a generated web.

Callers that need all or many URLs should fetch them in bulk, with `encoded`, `decoded` or `NumberedUrls.at`: one by one, a
computed URL takes some 20 times as long.

This module knows no URL rules; `sites` decides what a site is.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import helper, kernel

Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Flags = NDArray[np.uint8]
Text = Any  # an array of bytes; as Any its elements pass for plain numbers

_BLOCK = 1 << 16  # computed strings at a time


class Strings(Protocol):
    """A read-only table of strings."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> str: ...


class StoredStrings:
    """Strings concatenated in UTF-8, with the end of each: two arrays instead of an object per string."""

    def __init__(self, ends: NDArray[np.int64], text: NDArray[np.uint8]) -> None:
        self.ends = ends
        self.text = text

    @classmethod
    def of(cls, strings: Iterable[str]) -> "StoredStrings":
        encoded = [string.encode() for string in strings]
        ends = np.cumsum([len(piece) for piece in encoded], dtype=np.int64)
        return cls(ends, np.frombuffer(bytearray().join(encoded), dtype=np.uint8))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise IndexError(index)
        start = self.ends[index - 1] if index else 0
        return self.text[start : self.ends[index]].tobytes().decode(errors="replace")


def stored(strings: Strings) -> StoredStrings:
    if isinstance(strings, StoredStrings):
        return strings
    if isinstance(strings, NumberedUrls):
        return strings.at(np.arange(len(strings)))
    return StoredStrings.of(strings[i] for i in range(len(strings)))


def encoded(strings: Strings) -> Iterator[bytes]:
    """Yield all strings in order, in UTF-8."""
    for block in _blocks(strings):
        text, ends = block.text.tobytes(), block.ends.tolist()
        yield from (text[start:end] for start, end in zip([0, *ends], ends, strict=False))


def decoded(strings: Strings) -> Iterator[str]:
    """Yield all strings in order."""
    return (piece.decode(errors="replace") for piece in encoded(strings))


def _blocks(strings: Strings) -> Iterator[StoredStrings]:
    if not isinstance(strings, NumberedUrls):
        yield stored(strings)
        return
    for first in range(0, len(strings), _BLOCK):
        yield strings.at(np.arange(first, min(first + _BLOCK, len(strings))))


# ---- computed


class GeneratedSiteNames:
    """Names of the sites of a generated web, computed from their numbers."""

    def __init__(self, sites: int) -> None:
        self._sites = sites

    def __len__(self) -> int:
        return self._sites

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < self._sites:
            raise IndexError(index)
        return f"http://s{index:06d}.example"


def generated_path(number: int, dynamic: bool) -> str:
    """Return the part of the URL after the site's name and the slash, for page `number` of a site; 0 is the home page."""
    if number == 0:
        return ""
    return f"q?id={number}" if dynamic else f"p/{number}"


class NumberedUrls(ABC):
    """URLs computed from the site and the page's number within it."""

    def __init__(self, site: Ids, dynamic: Flags, sites: int) -> None:
        self._site, self._dynamic = site, dynamic
        self._names = GeneratedSiteNames(sites)

    def __len__(self) -> int:
        return len(self._site)

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise IndexError(index)
        number = int(self._number(index))
        return f"{self._names[int(self._site[index])]}/{generated_path(number, bool(self._dynamic[index]))}"

    def at(self, pages: NDArray[Any]) -> StoredStrings:
        """Return the URLs of these pages."""
        ends, text = np.empty(len(pages), np.int64), np.empty(len(pages) * _LONGEST, np.uint8)
        number = self._number(pages.astype(np.int64))
        size = _write_urls(self._site[pages], number, self._dynamic[pages], _WORDS, ends, text)
        text.resize(size, refcheck=False)
        return StoredStrings(ends, text)

    @abstractmethod
    def _number(self, page: Any) -> Any:
        """Return the number within its site, of one page or of an array of pages."""


class GeneratedUrls(NumberedUrls):
    """URLs of a generated web, where a site's pages have consecutive ids and its home page comes first."""

    def __init__(self, site: Ids, home: Ids, dynamic: Flags) -> None:
        super().__init__(site, dynamic, len(home))
        self._home = home

    def _number(self, page: Any) -> Any:
        return page - self._home[self._site[page]]


_WORDS = np.frombuffer(bytearray(b"http://s.example/q?id=p/"), np.uint8)
_LONGEST = len(_WORDS) + 2 * 20  # two numbers of 64 bits


@helper("int64(int64, int64, uint8[::1], int64)")
def write_number(value: int, width: int, out: Text, at: int) -> int:
    """Write at least `width` digits; return where the number ends."""
    digits, rest = 1, value // 10
    while rest:
        digits, rest = digits + 1, rest // 10
    end = at + max(digits, width)
    for place in range(end - 1, at - 1, -1):
        out[place] = 48 + value % 10
        value //= 10
    return end


@helper("int64(uint8[::1], int64, int64, uint8[::1], int64)")
def _write_word(words: Text, first: int, last: int, out: Text, at: int) -> int:
    for place in range(first, last):
        out[at] = words[place]
        at += 1
    return at


@kernel("int64(int32[::1], int64[::1], uint8[::1], uint8[::1], int64[::1], uint8[::1])")
def _write_urls(site: Ids, number: Longs, dynamic: Flags, words: Text, ends: Longs, out: Text) -> int:
    """Write the URLs that `NumberedUrls` gives for these pages; return the number of bytes written."""
    at = 0
    for index in range(len(ends)):
        at = write_number(site[index], 6, out, _write_word(words, 0, 8, out, at))
        at = _write_word(words, 8, 17, out, at)
        if number[index] > 0:
            at = _write_word(words, 17, 22, out, at) if dynamic[index] else _write_word(words, 22, 24, out, at)
            at = write_number(number[index], 1, out, at)
        ends[index] = at
    return at
