"""The cache folder of compiled functions: where it is, whether it is safe to use, and when it is removed.

This module does not know what the files contain, and nothing about numba. The cache (`TRAPLINE_CACHE`, else
`~/.cache/trapline`) has one folder per identity of the compiled code, shared by all clones and installations of a user.
"""

import os
import re
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

_IDENTITY = re.compile("[0-9a-f]{20}")
_DAY_S = 86_400.0
_UNUSED_S = 30 * _DAY_S  # every version of the sources leaves a folder of some megabytes
_MOST_OLD = 8  # folders that were not used for a day; a developer who edits the sources makes dozens in a week


def cache_folder(identity: str) -> Path:
    """Return the folder for compiled code of this identity. It need not exist."""
    chosen = os.environ.get("TRAPLINE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "trapline"
    )
    return Path(chosen).absolute() / identity


def is_ours(folder: Path) -> bool:
    """Return whether the folder exists and only we can write into it, because its files are executed.

    If the folder is ours, the permissions of other users are removed.
    """
    with suppress(OSError):
        found = folder.lstat()  # does not follow a link of another user
        if found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode):
            if found.st_mode & 0o077:
                folder.chmod(0o700)
            return True
    return False


def make(folder: Path) -> bool:
    """Create the folder if it is missing, and return whether it can be used.

    A new folder replaces old ones that were not used for long, or that are too many.
    """
    with suppress(OSError):  # a home that cannot be written: a container, a service user
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        _remove_superfluous(folder.parent)
    return is_ours(folder)


def can_be_written(folder: Path) -> bool:
    """Create the folder if it is missing, and return whether files can be added to it."""
    return make(folder) and os.access(folder, os.W_OK | os.X_OK)


def mark_used(folder: Path) -> None:
    """Keep the folder from being removed as unused."""
    with suppress(OSError):  # the folder does not exist, or belongs to another user
        os.utime(folder)


def _remove_superfluous(root: Path) -> None:
    with suppress(OSError):  # another process may remove a folder at the same time
        for folder in _superfluous(root, time.time()):
            shutil.rmtree(folder, ignore_errors=True)


def _superfluous(root: Path, now: float) -> list[Path]:
    """Return the folders to remove: those not used for a day, except the newest few; those not used for long, all of them."""
    unused_s = {folder: now - folder.stat().st_mtime for folder in root.iterdir() if _IDENTITY.fullmatch(folder.name)}
    old = sorted((folder for folder in unused_s if unused_s[folder] > _DAY_S), key=unused_s.__getitem__)
    return [folder for place, folder in enumerate(old) if place >= _MOST_OLD or unused_s[folder] > _UNUSED_S]
