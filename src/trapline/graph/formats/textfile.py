"""Reader of text files, plain or gzipped, by rows or by blocks of rows. Every error is one line with file and row.

This module knows rows (1-based) and bytes, not what they mean.
"""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.progress import ProgressCallback, no_progress

# ---- The options of a loader. Each format names the options that it supports, and `load` rejects the others.


@dataclass(frozen=True)
class LoadOptions:
    """Options of a loader, besides the path."""

    dangling: bool = False
    """include the pages that a crawl found links to and did not fetch, as pages without links"""
    ids_per_site: int | None = None
    """for graphs without URLs: the number of consecutive pages that are a site; None: all are one site"""
    progress: ProgressCallback = no_progress
    """receives the bytes of a file read so far, the bytes in total, and the name of the file"""


# ---- textfile

_BLOCK_BYTES = 1 << 22  # large enough that the cost of a call per block is negligible, small enough for the L2 cache
_HEAD_BYTES = 1 << 13
_MARK = b"\xef\xbb\xbf"  # the byte order mark that some editors write before UTF-8 text; not part of the first row


def at_row(file: Path, row: int, what: str) -> ConfigError:
    return ConfigError(f"{file}, row {row}: {what}")


def plain_name(file: Path) -> str:
    """Return the file's name without .gz."""
    return file.name.removesuffix(".gz")


def find(folder: Path, name: str) -> Path | None:
    """Return `name` or `name.gz` in the folder; None if neither exists."""
    candidates = (folder / name, folder / f"{name}.gz")
    return next((path for path in candidates if path.is_file()), None)


def companion(folder: Path, name: str, of: str) -> Path:
    """Return `name` or `name.gz` in the folder, which the format requires beside the file `of`."""
    path = find(folder, name)
    if path is None:
        raise ConfigError(f"{folder}: {name} (or {name}.gz) is missing; it belongs to {of}")
    return path


def blocks(file: Path, progress: ProgressCallback = no_progress) -> Iterator[tuple[int, bytes]]:
    """Yield (row of its first line, bytes) for blocks of whole lines. Every line ends in a line feed."""
    row = 1
    held: list[bytes] = []
    if file.exists() and not file.is_file():  # reading a pipe or a device might never end
        raise ConfigError(f"{file}: not a file; give a regular file, plain or gzipped")
    try:
        with file.open("rb") as raw:
            total, stream = file.stat().st_size, _opened(file, raw)
            while piece := stream.read(_BLOCK_BYTES):
                if row == 1 and not held:
                    piece = piece.removeprefix(_MARK)
                progress(min(raw.tell(), total), total, file.name)
                whole = piece.rfind(b"\n") + 1
                if not whole:
                    held.append(piece)
                    continue
                block = b"".join([*held, piece[:whole]])
                yield row, block
                row, held = row + lines_in(block), [piece[whole:]]
    except (OSError, EOFError, zlib.error) as error:
        raise at_row(file, row, _trouble(error)) from None
    if rest := b"".join(held):
        yield row, rest + b"\n"


def rows(file: Path, progress: ProgressCallback = no_progress) -> Iterator[tuple[int, bytes]]:
    """Yield (row, bytes without the line end) for each line."""
    for first, block in blocks(file, progress):
        for row, line in enumerate(block[:-1].split(b"\n"), first):
            yield row, line.rstrip(b"\r")


def named_rows(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (row, text) for each line that is not empty and does not begin with #."""
    for row, line in rows(file):
        name = text(file, row, line).strip()
        if name and not name.startswith("#"):
            yield row, name


def head(file: Path) -> list[bytes]:
    """Return the first rows of a file, by which its format is recognised, as far as it can be read.

    The last row may be cut off.
    """
    start = bytearray()
    if not file.is_file():
        return []
    with suppress(OSError, EOFError, zlib.error), file.open("rb") as raw:
        stream = _opened(file, raw)
        # Read in small pieces, because a read that fails returns nothing at all.
        while len(start) < _HEAD_BYTES and (piece := stream.read(256)):
            start += piece
    return [line.rstrip(b"\r") for line in bytes(start).removeprefix(_MARK).split(b"\n")]


def lines_in(block: bytes) -> int:
    # Several times faster than bytes.count, which matters for files of gigabytes.
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == 10))


def bytes_of(block: bytes) -> NDArray[np.uint8]:
    """Return a copy for compiled code, which requires writable arrays."""
    return np.frombuffer(bytearray(block), np.uint8)


def line_at(block: bytes, start: int) -> bytes:
    return block[start : block.index(b"\n", start)].rstrip(b"\r")


def row_at(first: int, block: bytes, start: int) -> int:
    """Return the row of the line that begins at `start` in a block whose first line is row `first`."""
    return first + block.count(b"\n", 0, start)


def text(file: Path, row: int, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise at_row(file, row, f"byte {error.start + 1} is not UTF-8") from None


def integer(file: Path, row: int, token: bytes) -> int:
    # int() would also accept "1_0", "+1" and digits of other scripts; isdigit() alone would accept numbers of any length.
    if not token.isdigit() or len(token) > 18:
        raise at_row(file, row, f"{shown(token)} is not an integer of up to 18 digits")
    return int(token)


def shown(token: bytes) -> str:
    return repr(token[:40].decode(errors="replace"))


def _opened(file: Path, raw: BinaryIO) -> BinaryIO:
    if file.suffix != ".gz":
        return raw
    if file.stat().st_size == 0:
        raise gzip.BadGzipFile("Not a gzipped file: it has 0 bytes")  # gzip itself would read it as empty text
    # GzipFile reads like a BinaryIO but is not declared as one.
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw))


def _trouble(error: Exception) -> str:
    match error:
        case gzip.BadGzipFile() if "CRC" not in str(error) and "length" not in str(error):
            return "not a gzip file; rename it without .gz if it is plain text"
        case EOFError():
            return "the gzip file ends too early; copy or download it again"
        case zlib.error() | gzip.BadGzipFile():
            return "the gzip file is damaged; copy or download it again"
        case _:
            return f"cannot be read: {getattr(error, 'strerror', None) or error}"
