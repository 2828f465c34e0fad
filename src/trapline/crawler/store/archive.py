"""The WARC files of a crawl. One file is open and grows; when it is large enough, the next one is begun.

This module places records and returns their positions. It does not know what they contain; filing.py does. Bytes count
only after the database has recorded the lengths of the files (`lengths`). A crash can therefore leave a file that is
longer than recorded, never a shorter one.
"""

import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trapline.crawler.store.damaged import keep_file
from trapline.crawler.store.settings import StoreSettings
from trapline.crawler.store.tail import Tail
from trapline.crawler.store.warc import warcinfo
from trapline.output import sync


class RecordPlace(NamedTuple):
    file: int
    offset: int
    length: int


class Length(NamedTuple):
    """A row of the table `warc`."""

    file: int
    name: str
    bytes: int


def archive_name(name: str, number: int) -> str:
    """
    >>> archive_name("trapline", 12)
    'trapline-00012.warc.gz'
    """
    return f"{name}-{number:05d}.warc.gz"


def uncommitted(place: Path, known: Sequence[Length]) -> list[Path]:
    """Return the archives in `place` that the store began and never committed.

    These are the files with the next names in sequence, without a gap. Every other file belongs to the user.
    `known`: the committed archives.
    """
    name = known[-1].name.rpartition("-")[0] if known else StoreSettings.name
    following = (place / archive_name(name, number) for number in itertools.count(known[-1].file + 1 if known else 0))
    return list(itertools.takewhile(Path.is_file, following))


class Archive:
    def __init__(self, folder: Path, settings: StoreSettings, known: Sequence[Length]) -> None:
        self._folder = folder
        self._settings = settings
        self._file = known[-1].file if known else -1
        self._tail = Tail(folder / known[-1].name, known[-1].bytes) if known else None
        self._before = sum(length.bytes for length in known[:-1])
        self._finished: list[Length] = []  # since the last commit
        self.begun: list[Path] = []  # files begun since the last commit

    def make_room(self) -> None:
        """Begin the next file if the current one is full.

        Call this before the first of several records that must be in the same file.
        """
        if self._tail is None or self._tail.length >= self._settings.warc_bytes:
            self._begin_file()

    def add(self, member: bytes) -> RecordPlace:
        assert self._tail is not None, "call make_room first"
        return RecordPlace(self._file, self._tail.add(member), len(member))

    def name(self) -> str:
        assert self._tail is not None
        return self._tail.path.name

    def total_bytes(self) -> int:
        return self._before + (0 if self._tail is None else self._tail.length)

    def flush(self) -> None:
        if self._tail is not None:
            self._tail.flush()

    def lengths(self) -> list[Length]:
        """Return the lengths of the files that changed since the last call. Call `flush` first."""
        current = [] if self._tail is None else [Length(self._file, self.name(), self._tail.length)]
        changed = self._finished + current
        self._finished, self.begun = [], []
        return changed

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()

    def _begin_file(self) -> None:
        if self._tail is not None:
            self._tail.flush()
            self._finished.append(Length(self._file, self.name(), self._tail.length))
            self._before += self._tail.length
            self._tail.close()
        self._file += 1
        name = archive_name(self._settings.name, self._file)
        if os.path.lexists(self._folder / name):  # somebody put a file there after the store started
            keep_file(self._folder.parent, self._folder / name)
        self._tail = Tail(self._folder / name, 0)
        self.begun.append(self._tail.path)
        sync(self._folder)
        self._tail.add(warcinfo(name, time.time(), self._settings))
