"""Array folders: the format of snapshots on disk. A folder of arrays with a description, written completely or not at all.

This module does not know what the arrays mean; frontier/snapshot.py and refresh/live/snapshot.py do. A folder is written
under a temporary name beside its target, flushed, and renamed. A crash at any moment leaves the previous folder or the
new one. A folder contains NAME.npy for each array, and a JSON file with the description and a checksum of each array.
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
    """An array folder that is being read."""

    place: Path
    about: dict[str, Any]

    def check_made_with(self, **ours: object) -> None:
        """Raise `ConfigError` unless the description has the same value as ours for each of these keys."""
        for key, value in ours.items():
            if self.about.get(key) != value:
                raise ConfigError(f"{self.place}: made with {key} {self.about.get(key)!r}, not {value!r}")

    def arrays(self, kinds: Mapping[str, Any]) -> dict[str, Array]:
        """Load the arrays of these names and view them as these types.

        The view is needed because numpy's file format drops the record type, which makes fields readable as attributes.
        """
        return {name: self._array(name).view(kind) for name, kind in kinds.items()}

    def _array(self, name: str) -> Array:
        path = self.place / f"{name}.npy"
        array: Array = np.load(path)
        if _checksum(array) != self.about["checksums"][name]:
            raise ConfigError(f"{path}: the checksum does not match; the file was damaged or replaced")
        return array


class ArrayFolder(NamedTuple):
    """Array folders of one kind: the name of their description file, and the name that error messages use for the kind."""

    description: str
    kind: str

    def save(self, target: Path, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Write the arrays to the folder `target`, and replace a folder of this kind that is there."""
        fresh, old = _beside(target, ".new"), _beside(target, ".old")
        if target.exists() and not (target / self.description).exists():
            raise ConfigError(f"{target}: exists and is not a {self.kind}; name another folder")
        if old.exists() and not target.exists():
            old.rename(target)  # a crash came between the two renames below; `old` is the last complete folder
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
        """Open the folder for reading in the `with` block.

        Any exception in the block becomes a `ConfigError`: the folder is damaged, or not of this kind.
        """
        if not source.exists() and _beside(source, ".old").exists():
            source = _beside(source, ".old")  # the crash came between the two renames
        try:
            yield Saved(source, json.loads((source / self.description).read_text()))
        except ConfigError:
            raise
        except Exception as error:  # numpy's parser can raise anything on a damaged header
            raise ConfigError(f"{source}: not a complete {self.kind}: {error}") from error


def _beside(folder: Path, suffix: str) -> Path:
    return folder.with_name(folder.name + suffix)


def _checksum(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)


def _write(path: Path, array: Array) -> None:
    with path.open("wb") as file:
        np.save(file, array)
        file.flush()
        os.fsync(file.fileno())
