"""Rows of a text file, plain or gzipped, such that every fault is one line that names the file and the row.

It knows rows (1-based) and bytes, not what they mean.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from trapline.errors import ConfigError


def at_row(file: Path, row: int, what: str) -> ConfigError:
    return ConfigError(f"{file}, row {row}: {what}")


def find(folder: Path, name: str) -> Path | None:
    """`name` or `name.gz` in the folder."""
    candidates = (folder / name, folder / f"{name}.gz")
    return next((path for path in candidates if path.is_file()), None)


def companion(folder: Path, name: str, of: str) -> Path:
    """A file that the format cannot do without."""
    path = find(folder, name)
    if path is None:
        raise ConfigError(f"{folder}: {name} (or {name}.gz) is missing; it belongs to {of}")
    return path


def rows(file: Path) -> Iterator[tuple[int, bytes]]:
    """(row, bytes without the line end) of each line."""
    row = 0
    try:
        with _opened(file) as stream:
            for line in stream:
                row += 1
                yield row, line.rstrip(b"\r\n")
    except (OSError, EOFError, zlib.error) as error:
        raise at_row(file, row + 1, _trouble(error)) from None


def text(file: Path, row: int, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise at_row(file, row, f"byte {error.start + 1} is not UTF-8") from None


def integer(file: Path, row: int, token: bytes) -> int:
    # int() would also take "1_0", "+1" and digits of other scripts, and isdigit() alone numbers without end.
    if not token.isdigit() or len(token) > 18:
        raise at_row(file, row, f"{shown(token)} is not an integer")
    return int(token)


def shown(token: bytes) -> str:
    return repr(token[:40].decode(errors="replace"))


def _opened(file: Path) -> BinaryIO:
    if file.suffix == ".gz" and file.stat().st_size == 0:
        raise gzip.BadGzipFile("Not a gzipped file: it has 0 bytes")  # which gzip would read as an empty text
    # GzipFile reads like a BinaryIO but is not declared as one.
    return cast(BinaryIO, gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def _trouble(error: Exception) -> str:
    match error:
        case gzip.BadGzipFile() if "CRC" not in str(error) and "length" not in str(error):
            return "not a gzip file"
        case EOFError():
            return "the gzip file ends too early"
        case zlib.error() | gzip.BadGzipFile():
            return "the gzip file is damaged"
        case _:
            return f"cannot be read: {getattr(error, 'strerror', None) or error}"
