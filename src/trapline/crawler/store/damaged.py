"""DIR/damaged: bytes that a resume or `trapline verify --repair` takes out of the archives and keeps for the user.

The files there no longer belong to the crawl, and Trapline never overwrites or deletes them. A file is named after its
archive; if it is a part of the archive, its name also has the offset in bytes at which that part began.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from trapline.crawler.files.archive_reader import Record, read_back
from trapline.crawler.store.tail import cut_back
from trapline.errors import ConfigError
from trapline.output import atomic, sync

DAMAGED = "damaged"
_PIECE_BYTES = 1 << 20
_BLOCK_BYTES = 4096  # a disk reads a block, or fails to read it, as a whole


def keep_bytes(folder: Path, archive: Path, offset: int, end: int) -> None:
    """Copy the bytes from `offset` to `end` of an archive. Blocks that the disk cannot read are replaced by zeros."""
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
    """Yield the start and end of each piece. Every piece but the first starts at a multiple of `size`."""
    while at < end:
        stop = min(end, (at // size + 1) * size)
        yield at, stop
        at = stop


def keep_tail(folder: Path, archive: Path, length: int) -> None:
    """Cut an archive to its first `length` bytes, and keep the rest in DIR/damaged."""
    keep_bytes(folder, archive, length, archive.stat().st_size)
    cut_back(archive, length)


def keep_file(folder: Path, path: Path) -> None:
    """Move a file from the archives to DIR/damaged. An empty file is deleted."""
    if path.is_file() and path.stat().st_size == 0:
        path.unlink()
    else:
        path.rename(_free_name(folder, path.name))
        sync(folder / DAMAGED)
    sync(path.parent)


def answers_after(archive: Path, offset: int) -> Iterator[Record]:
    """Yield the readable responses from `offset` on, up to the first place where no record can be read."""
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
