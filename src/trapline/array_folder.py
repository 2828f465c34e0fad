"""A folder of arrays with a description, whole or not at all: what snapshots are on disk.

It refuses to know what the arrays mean (frontier/snapshot.py and refresh/refresh_snapshot.py do). A folder is written beside its
place, flushed, and renamed; a crash at any moment leaves the one before or the new one. In it: NAME.npy for each array, and a JSON
file with the description and a checksum of each array.
"""

import json
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.output import sync

Array = NDArray[Any]


class Saved(NamedTuple):
    """A folder that is being read."""

    place: Path
    about: dict[str, Any]

    def check_made_with(self, **ours: object) -> None:
        """`ConfigError` unless the description says of each what we do."""
        for what, our in ours.items():
            if self.about.get(what) != our:
                raise ConfigError(f"{self.place}: made with {what} {self.about.get(what)!r}, not {our!r}")

    def arrays(self, kinds: Mapping[str, Any]) -> dict[str, Array]:
        """The arrays of these names; numpy's format drops the record type, which gives fields their attribute form."""
        return {name: self._array(name).view(kind) for name, kind in kinds.items()}

    def _array(self, name: str) -> Array:
        path = self.place / f"{name}.npy"
        array: Array = np.load(path)
        if _checksum(array) != self.about["checksums"][name]:
            raise ConfigError(f"{path}: its contents are not those that were saved")
        return array


class ArrayFolder(NamedTuple):
    """Folders of one kind: the name of their description, and what the user knows them as."""

    description: str
    kind: str

    def save(self, target: Path, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Write the arrays as `target`, in place of what was there."""
        fresh, old = _beside(target, ".new"), _beside(target, ".old")
        if target.exists() and not (target / self.description).exists():
            raise ConfigError(f"{target}: it is there and is no {self.kind}; name another folder")
        if old.exists() and not target.exists():
            old.rename(target)  # a crash came between the two renames below; this one is the last whole folder
        for leftover in (fresh, old):
            shutil.rmtree(leftover, ignore_errors=True)
        self._fill(fresh, about, arrays)
        if target.exists():
            target.rename(old)
        fresh.rename(target)
        sync(target.parent)
        shutil.rmtree(old, ignore_errors=True)

    def _fill(self, folder: Path, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        folder.mkdir(parents=True)
        for name, array in arrays.items():
            _write(folder / f"{name}.npy", array)
        sums = {name: _checksum(array) for name, array in arrays.items()}
        (folder / self.description).write_text(json.dumps({**about, "checksums": sums}, indent=1))
        sync(folder / self.description)
        sync(folder)

    @contextmanager
    def opened(self, source: Path) -> Iterator[Saved]:
        """The folder, to be read in the block. Whatever fails there is `ConfigError`: it is damaged, or not one of these."""
        if not source.exists() and _beside(source, ".old").exists():
            source = _beside(source, ".old")  # the crash came between the two renames
        try:
            yield Saved(source, json.loads((source / self.description).read_text()))
        except ConfigError:
            raise
        except Exception as error:  # a damaged header leads numpy's parser anywhere
            raise ConfigError(f"{source}: not a whole {self.kind}: {error}") from error


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(folder.name + suffix)


def _checksum(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)


def _write(path: Path, array: Array) -> None:
    with path.open("wb") as file:
        np.save(file, array)
        file.flush()
        os.fsync(file.fileno())
