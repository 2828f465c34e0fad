"""The mailbox of a running crawl: actions and their answers, as files in DIR/live/control.

N.request    an action, written by `send`, in a command or the dashboard. The process that crawls the folder takes it.
N.answer     the answer of that process. `send` reads and deletes it.

The folder has mode 0700, so only the user who crawls may send actions. An action names the process for which it is meant; an action for
another process, or an old one, is void. Exactly one of the two sides deletes a request: either the crawl takes the action, or the sender
withdraws it. This module does not know what an action does (crawler/control/crawl_control.py).
"""

import json
import os
import re
import secrets
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.files.lock import Holder, holding
from trapline.crawler.files.status_file import LIVE
from trapline.errors import ConfigError

CONTROL = "control"
PAUSE, CONTINUE, STOP, BLOCK, UNBLOCK = "pause", "continue", "stop", "block", "unblock"
DELAY, ADD_SEEDS, EXPORT_SITES = "delay", "add_seeds", "export_sites"
ACTIONS = (PAUSE, CONTINUE, STOP, BLOCK, UNBLOCK, DELAY, ADD_SEEDS, EXPORT_SITES)
MOST_BYTES = 1 << 20  # of a request
_NAME = re.compile(r"(\d{20}-[0-9a-f]{16})\.request")
_OLD_S = 60.0  # nobody waits for the answer to an action of this age
_MOST_BY = 200  # characters
_STARTING = "the crawl is still starting, and accepts no actions yet; try again"
_POLL_S = 0.02
_LOOK_S = 0.5  # between two looks whether the crawl still runs


class Action(NamedTuple):
    name: str  # one of ACTIONS
    by: str  # who sends it, for people
    values: Mapping[str, Any] = {}


def control_folder(folder: Path) -> Path:
    return folder / LIVE / CONTROL


# ---- The sender.


def send(folder: Path, action: Action, wait_s: float = 15.0) -> str:
    """Send an action to the crawl that runs in the folder, and return its answer. Raise `ConfigError` if the crawl refuses the action, does
    not run, or does not answer."""
    number = f"{time.time_ns():020d}-{secrets.token_hex(8)}"
    box = control_folder(folder)
    request = box / f"{number}.request"
    _write_request(folder, request, action)
    was_taken = False
    try:
        answer = _awaited(folder, box / f"{number}.answer", wait_s)
        if answer is None and not _deleted(request):
            was_taken = True  # it is being executed
            answer = _awaited(folder, box / f"{number}.answer", wait_s)
    finally:
        _deleted(request)
        _deleted(box / f"{number}.answer")
    if answer is None and was_taken:
        raise ConfigError(f"{folder}: the crawl has not finished the action yet; crawl.log records when it does")
    if answer is None:
        raise ConfigError(
            f"{folder}: the process of its crawl does not answer; if you suspended it with Ctrl-Z, continue it with: fg"
        )
    if answer.get("refused"):
        raise ConfigError(f"{folder}: {answer['answer']}")
    return str(answer["answer"])


def _write_request(folder: Path, request: Path, action: Action) -> None:
    meant_for = _holder(folder)
    text = json.dumps({"process": meant_for, "action": action.name, "by": action.by, "values": dict(action.values)})
    if len(text) > MOST_BYTES:
        raise ConfigError(f"the request has {len(text):,} bytes, more than {MOST_BYTES:,}; give it in several parts")
    try:
        _write(request, text)
    except FileNotFoundError:
        raise ConfigError(f"{folder}: {_STARTING}") from None
    except PermissionError:
        raise ConfigError(f"{folder}: only the user who started its crawl may control it") from None
    except OSError as error:
        raise ConfigError(f"{request.parent}: cannot be written: {error.strerror}") from None


def _holder(folder: Path) -> str:
    """Return which process crawls the folder."""
    found = holding(folder)
    if found is None:
        problem = "its crawl is not running" if folder.is_dir() else "no such folder"
        raise ConfigError(f"{folder}: {problem}; name the folder of a running crawl")
    if not found.process:
        raise ConfigError(f"{folder}: {_STARTING}")
    if found.doing != Holder().doing:
        raise ConfigError(f"{folder}: is being {found.doing} by {found}; wait until that process has ended")
    return _named(found.process, found.machine)


def _named(process: int, machine: str) -> str:
    return f"{process} {machine}"


def _awaited(folder: Path, answer: Path, wait_s: float) -> dict[str, Any] | None:
    """Return the answer. None: there is none in time."""
    give_up_at, look_at = time.monotonic() + wait_s, time.monotonic() + _LOOK_S
    while (found := _read_answer(answer)) is None and time.monotonic() < give_up_at:
        if time.monotonic() >= look_at:
            if holding(folder) is None and (found := _read_answer(answer)) is None:
                raise ConfigError(
                    f"{folder}: its crawl ended before it answered; the action may not have been executed"
                )
            look_at = time.monotonic() + _LOOK_S
        time.sleep(_POLL_S)
    return found


def _read_answer(answer: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(answer.read_bytes())
    except (OSError, ValueError):
        return None
    return found


def _deleted(path: Path) -> bool:
    """Delete a file. Return whether it was there."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _write(path: Path, text: str) -> None:
    """Write a file that appears complete."""
    partial = path.with_name(f".{path.name}")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(text)
    os.replace(partial, path)


# ---- The crawl.


class Mailbox:
    """The actions for the process that crawls a folder. Without a folder, or if it cannot be written, there are none."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else control_folder(folder)
        self._owner = _named(os.getpid(), socket.gethostname())
        if self._folder is not None:
            with suppress(OSError):
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if self._folder.is_symlink():
                    self._folder = None  # its target may belong to others
                else:
                    self._folder.chmod(0o700)

    def take(self) -> list[tuple[str, Action]]:
        """Return the actions that have arrived, the oldest first, each with its number. Each must be answered."""
        return list(self._taken()) if self._folder is not None else []

    def _taken(self) -> Iterator[tuple[str, Action]]:
        for name in self._names():
            found = _NAME.fullmatch(name)
            if found is None:
                self._forget_if_old(name)
                continue
            request = self._read(name)
            if request is None or not _deleted(self._path(name)):  # void, or the sender has withdrawn it
                continue
            action = _action(request)
            if action is None:
                self.answer(found[1], "this version does not know the action; use the same version everywhere", True)
            else:
                yield found[1], action

    def _names(self) -> list[str]:
        assert self._folder is not None
        try:
            return sorted(os.listdir(self._folder))
        except OSError:
            return []

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / name

    def _read(self, name: str) -> dict[str, Any] | None:
        """Return a request that is meant for this process. Delete any other, and return None."""
        request = None
        with suppress(OSError, ValueError, RecursionError):
            request = json.loads(_read_own(self._path(name)))
        if isinstance(request, dict) and request.get("process") == self._owner:
            return request
        _deleted(self._path(name))
        return None

    def _forget_if_old(self, name: str) -> None:
        """Delete a file whose reader or writer must be dead."""
        with suppress(OSError):
            if abs(time.time() - self._path(name).lstat().st_mtime) > _OLD_S:
                self._path(name).unlink()

    def answer(self, number: str, text: str, refused: bool = False) -> None:
        with suppress(OSError):
            _write(self._path(f"{number}.answer"), json.dumps({"answer": text, "refused": refused}))


def _read_own(path: Path) -> bytes:
    """Return the contents of a regular file that this user or root wrote lately. Raise `OSError` or `ValueError` for any other."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (os.getuid(), 0) or found.st_size > MOST_BYTES:
            raise ValueError(f"{path}: not a request of this user")
        if abs(time.time() - found.st_mtime) > _OLD_S:
            raise ValueError(f"{path}: too old")
        return file.read(MOST_BYTES)


def _action(request: Mapping[str, Any]) -> Action | None:
    name, by, values = (request.get(key) for key in ("action", "by", "values"))
    if name not in ACTIONS or not isinstance(by, str) or not isinstance(values, dict):
        return None
    return Action(name, by[:_MOST_BY], values)
