"""How far the pages of a crawl are handled, by its handler or by the program that takes them: the file handled.json.

Pages are handed over in the order of their rows in `fetch`, when these rows are committed. The file has the number of the
last row whose page is handled. It is overwritten in place after each page, by one write of a fixed length: a process that is
killed leaves the old number or the new one, and the number is never ahead of the database. When the crawl is resumed, all
later pages are handed over. A page is therefore handed over again only if the crawl was killed or stopped while the page
was being handled.
"""

import ctypes
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from trapline.crawler.files.layout import HANDLED
from trapline.errors import ConfigError
from trapline.output import write_bytes

_LENGTH = 100
# os.pwrite gives the interpreter lock to the thread of the crawl, and getting it back takes many times as long as the write.
_pwrite = ctypes.PyDLL(None, use_errno=True).pwrite
_pwrite.argtypes, _pwrite.restype = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_long), ctypes.c_ssize_t


class HandledCounts(NamedTuple):
    fetch: int = 0  # number of the last fetch that is handled
    pages: int = 0  # pages handled, over all runs; a page that was handed over twice counts twice
    errors: int = 0  # pages for which the handler failed

    def to_bytes(self) -> bytes:
        return (b'{"fetch": %d, "pages": %d, "errors": %d}' % self).ljust(_LENGTH - 1) + b"\n"


def handled_in(folder: Path) -> HandledCounts | None:
    """Return how far the pages of a crawl are handled. None: they were never handed over."""
    path = folder / HANDLED
    try:
        found = HandledCounts(**json.loads(path.read_bytes()))
        if not all(isinstance(number, int) and number >= 0 for number in found):
            raise ValueError("not a number")
        return found
    except FileNotFoundError:
        return None
    except (OSError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: cannot be read: {error}; delete this file to let the handler receive only new pages"
        ) from None


def handled_files(folder: Path) -> list[Path]:
    """Return the files of a crawl, or of its partitions."""
    return sorted(path for pattern in (HANDLED, f"partition-*/{HANDLED}") for path in folder.glob(pattern))


class HandledMark:
    """The file of a crawl that runs. One thread at a time uses it."""

    def __init__(self, folder: Path, last_fetch: int) -> None:
        """Open the file of a crawl. Without one, fetches up to `last_fetch`, the last in the database, count as handled."""
        self._path = folder / HANDLED
        found = handled_in(folder)
        self.counts = HandledCounts(last_fetch) if found is None else found._replace(fetch=min(found.fetch, last_fetch))
        write_bytes(self._path, self.counts.to_bytes())  # durable, so that later writes change no length
        self._descriptor = os.open(self._path, os.O_WRONLY)

    def advance(self, fetch: int, pages: int = 1, errors: int = 0) -> None:
        """Note that all fetches up to this one are handled. `pages`, `errors`: how many were handled and failed since the last call."""
        _, pages_before, errors_before = self.counts
        self.counts = HandledCounts(fetch, pages_before + pages, errors_before + errors)
        if _pwrite(self._descriptor, self.counts.to_bytes(), _LENGTH, 0) < 0:
            why = os.strerror(ctypes.get_errno())
            raise ConfigError(f"{self._path}: cannot be written: {why}; make it writable and resume")

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()
