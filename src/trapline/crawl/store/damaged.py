"""DIR/damaged: bytes that a resume or `trapline verify --repair` takes out of the archives, kept for the user.

Nothing there belongs to the crawl any more, and nothing is ever overwritten or deleted there. A file is named after its archive, with the
byte at which it began if it is a part of one.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from trapline.crawl.store.members import Record, read_back
from trapline.crawl.store.tail import cut_back
from trapline.errors import ConfigError
from trapline.output import atomic, sync

DAMAGED = "damaged"
_PIECE_BYTES = 1 << 20
_BLOCK_BYTES = 4096  # that a disk reads or fails to read as a whole


def keep_bytes(folder: Path, archive: Path, offset: int, end: int) -> None:
    """Copy a part of an archive. Zeros stand for blocks that the disk does not give back."""
    descriptor = os.open(archive, os.O_RDONLY)
    try:
        end = min(end, os.fstat(descriptor).st_size)
        if offset < end:
            with atomic(_free_name(folder, f"{archive.name}-{offset}")) as file:
                for at, stop in _pieces(offset, end, _PIECE_BYTES):
                    file.write(_read(descriptor, at, stop))
    finally:
        os.close(descriptor)


def _read(descriptor: int, at: int, end: int) -> bytes:
    try:
        return os.pread(descriptor, end - at, at)
    except OSError:
        if at // _BLOCK_BYTES == (end - 1) // _BLOCK_BYTES:
            return bytes(end - at)
    return b"".join(_read(descriptor, *block) for block in _pieces(at, end, _BLOCK_BYTES))


def _pieces(at: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Where each piece begins and ends. All but the first begin at a multiple of `size`."""
    while at < end:
        stop = min(end, (at // size + 1) * size)
        yield at, stop
        at = stop


def keep_tail(folder: Path, archive: Path, length: int) -> None:
    """Leave the first `length` bytes of an archive, and keep the others."""
    keep_bytes(folder, archive, length, archive.stat().st_size)
    cut_back(archive, length)


def keep_file(folder: Path, path: Path) -> None:
    """Move a file out of the way of the archives. An empty one has nothing to keep."""
    if path.is_file() and path.stat().st_size == 0:
        path.unlink()
    else:
        path.rename(_free_name(folder, path.name))
        sync(folder / DAMAGED)
    sync(path.parent)


def answers_after(archive: Path, offset: int) -> Iterator[Record]:
    """The answers that can be read from here on, up to the first place where no record can be."""
    descriptor = os.open(archive, os.O_RDONLY)
    try:
        for part in read_back(descriptor, os.fstat(descriptor).st_size, {}, offset):
            if isinstance(part, Record) and part.is_answer:
                yield part
    finally:
        os.close(descriptor)


def _free_name(folder: Path, name: str) -> Path:
    place = folder / DAMAGED
    try:
        place.mkdir(exist_ok=True)
    except FileExistsError:
        raise ConfigError(f"{place}: exists and is not a folder; move it elsewhere") from None
    names = (name if number == 0 else f"{name}.{number}" for number in count())
    return next(path for path in map(place.joinpath, names) if not os.path.lexists(path))
