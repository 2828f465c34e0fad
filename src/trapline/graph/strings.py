"""URLs of a graph by page id: stored in one block of bytes, or computed for a generated web.

It knows no URL rules: what a site is, is decided in `sites`.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Strings(Protocol):
    """A read-only table of strings."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> str: ...


class StoredStrings:
    """Strings one after the other in UTF-8: two arrays instead of an object per string."""

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

    def __iter__(self) -> Iterator[str]:
        data, start = self.text.tobytes(), 0
        for end in self.ends.tolist():
            yield data[start:end].decode(errors="replace")
            start = end


def stored(strings: Strings) -> StoredStrings:
    return strings if isinstance(strings, StoredStrings) else StoredStrings.of(strings[i] for i in range(len(strings)))


class GeneratedSiteNames:
    def __init__(self, sites: int) -> None:
        self._sites = sites

    def __len__(self) -> int:
        return self._sites

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < self._sites:
            raise IndexError(index)
        return f"http://s{index:06d}.example"


def generated_path(number: int, dynamic: bool) -> str:
    """What follows the site's name and the slash, for page `number` of a site; 0 is the home page."""
    if number == 0:
        return ""
    return f"q?id={number}" if dynamic else f"p/{number}"


class GeneratedUrls:
    """URLs from site and number within the site: a site's pages are neighbours, its home page the first."""

    def __init__(self, site: NDArray[np.int32], home: NDArray[np.int32], dynamic: NDArray[np.uint8]) -> None:
        self._site, self._home, self._dynamic = site, home, dynamic
        self._names = GeneratedSiteNames(len(home))

    def __len__(self) -> int:
        return len(self._site)

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise IndexError(index)
        site = int(self._site[index])
        number = index - int(self._home[site])
        return f"{self._names[site]}/{generated_path(number, bool(self._dynamic[index]))}"
