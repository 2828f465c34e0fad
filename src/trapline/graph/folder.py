"""A graph folder for the user, whole or not at all: written beside its place, then renamed.

It knows nothing of what is written. What is in the way is only ever replaced on request, and only by its like.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trapline.errors import ConfigError

Strangers = Callable[[Path], list[str]]
"""What a folder holds beside a graph of the kind that is to be written."""


def write_folder(folder: Path, write: Callable[[Path], None], strangers: Strangers, replace: bool) -> None:
    check_folder(folder, strangers, replace)
    target = Path(os.path.realpath(folder))  # a link stays a link, to the new graph
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _beside(target) as fresh:
            write(fresh)
            _put(fresh, target)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror or error}") from None


def check_folder(folder: Path, strangers: Strangers, replace: bool) -> None:
    """Refuses at once what `write_folder` would refuse after a long computation."""
    _restore(Path(os.path.realpath(folder)))
    if folder.is_dir():
        others = strangers(folder)
        if others:
            raise ConfigError(f"{folder}: exists and holds other files ({others[0]}), which are never replaced")
        if any(folder.iterdir()) and not replace:
            raise ConfigError(f"{folder}: exists and holds a saved graph (--replace replaces it)")
    elif folder.exists() or folder.is_symlink():
        raise ConfigError(f"{folder}: exists and is not a folder")
    ancestor = next(parent for parent in folder.absolute().parents if parent.exists())
    if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
        raise ConfigError(f"{folder}: cannot be written: no permission to write in {ancestor}")


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A folder on the same file system, so that a rename puts it in place; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        fresh = Path(scratch) / "graph"
        fresh.mkdir()
        yield fresh


def _old(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def _restore(target: Path) -> None:
    """A process was killed between the two renames of `_put`: what it had put aside is the last whole graph."""
    if _old(target).is_dir() and not target.exists():
        _old(target).rename(target)


def _put(fresh: Path, target: Path) -> None:
    old = _old(target)
    try:
        if target.is_dir() and any(target.iterdir()):
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        fresh.rename(target)
    except BaseException:  # Ctrl-C too: what was there is worth more than nothing
        _restore(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
