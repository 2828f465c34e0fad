"""The possible contents of a disk after a power loss: the writes and syncs of a command, as strace saw them, cut at any point.

The model promises no more than POSIX does. The bytes of a file are durable once the file was synced, and a name once its folder was.
Unsynced writes may be on the disk, in whole or in part, in any order. Of the changed names of a folder, those up to some point are.
Files from before the command are durable. SQLite's -shm file is left out, because it is mapped memory and is rebuilt after a crash.
"""

import pickle
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from trapline.crawler.store.frames import HEAD, StoreFrameKind

STRACE = shutil.which("strace")
_CALLS = "openat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,ftruncate,unlink,unlinkat,rmdir,mkdir,mkdirat,lseek"
_LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (-?\d+)")
_UNFINISHED = re.compile(r"(\d+) +(\w+\(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)$")
_FD = re.compile(r"(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})*)>")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_SECTOR = 512


class Event(NamedTuple):
    """One call that changed files or made a change durable; or `acknowledged`, with the number of the batch."""

    call: str
    path: str = ""  # path in the folder
    other: str = ""  # the new name
    data: bytes = b""
    number: int = 0  # an offset, a length, a batch


def recorded(folder: Path, trace: Path, command: Sequence[str]) -> tuple[int, str, list[Event]]:
    """Run a command. Return its exit code, its output, and the events in the folder."""
    assert STRACE is not None
    watch = [STRACE, "-f", "-y", "-qq", "-xx", "--seccomp-bpf", "-s", "100000000", "-e", f"trace={_CALLS}"]
    done = subprocess.run([*watch, "-o", str(trace), *command], capture_output=True, text=True)
    with trace.open(encoding="ascii", errors="replace") as lines:
        events = list(_events(_whole_calls(lines), str(folder.resolve())))
    trace.unlink()
    return done.returncode, done.stdout + done.stderr, events


def _whole_calls(lines: Iterator[str] | object) -> Iterator[str]:
    """Yield whole calls. A call that another thread interrupted is on two lines, and counts when it ends."""
    begun: dict[str, str] = {}
    for line in lines:  # type: ignore[attr-defined]
        if found := _UNFINISHED.match(line):
            begun[found[1]] = f"{found[1]} {found[2]}"
        elif found := _RESUMED.match(line):
            yield begun.pop(found[1], "") + found[2]
        else:
            yield line


def _events(calls: Iterator[str], folder: str) -> Iterator[Event]:
    places: dict[str, int] = {}  # where the next write goes; a file has one writer at a time
    for line in calls:
        found = _LINE.match(line)
        if found is None or found[4].startswith("-"):
            continue
        event = _event(found[2], found[3], int(found[4]), found.string[found.end() :], folder, places)
        if event is not None and not event.path.endswith("-shm"):
            yield event


def _event(call: str, given: str, answer: int, rest: str, folder: str, places: dict[str, int]) -> Event | None:
    fds = [_bytes(text).decode(errors="replace") for text in _FD.findall(given)]
    texts = [_bytes(text) for text in _TEXT.findall(given)]
    if call == "write" and fds[0].startswith("pipe:"):
        return _acknowledged(texts[0])
    paths = [text.decode(errors="replace") for text in texts] if call not in ("write", "pwrite64") else []
    if call in ("unlinkat", "mkdirat", "openat", "renameat", "renameat2") and not paths[0].startswith("/"):
        paths[0] = f"{fds[0]}/{paths[0]}"
    path = paths[0] if paths else fds[0] if fds else ""
    if not (path == folder or path.startswith(f"{folder}/")):
        return None
    name = path[len(folder) + 1 :]
    last = given.rsplit(",", 1)[-1].strip()
    match call:
        case "openat":
            if "O_APPEND" in given or "O_CREAT" in given or "O_TRUNC" in given:
                places[name] = -1 if "O_APPEND" in given else 0
                return Event("truncate" if "O_TRUNC" in given else "open", name)
        case "lseek":
            if places.get(name, 0) >= 0:
                places[name] = answer
        case "write":
            at = places.get(name, 0)
            places[name] = at if at < 0 else at + answer
            return Event("write", name, data=texts[0][:answer], number=at)
        case "pwrite64":
            return Event("write", name, data=texts[0][:answer], number=int(last))
        case "ftruncate":
            return Event("ftruncate", name, number=int(last))
        case "fsync" | "fdatasync":
            return Event("sync", name)
        case "rename" | "renameat" | "renameat2":
            return Event("rename", name, paths[1][len(folder) + 1 :])
        case "mkdir" | "mkdirat":
            return Event("mkdir", name)
        case "unlink" | "unlinkat" | "rmdir":
            return Event("unlink", name)
    return None


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _acknowledged(data: bytes) -> Event | None:
    """Yield the batches that the store acknowledges to the loop."""
    if (
        len(data) > HEAD.size
        and data[0] == StoreFrameKind.COMMITTED
        and HEAD.unpack_from(data)[1] == len(data) - HEAD.size
    ):
        return Event("acknowledged", number=pickle.loads(data[HEAD.size :])[0])
    return None


# ---- the disk


@dataclass
class File:
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # offset and bytes, or a length and None

    def change(self, at: int, data: bytes | None) -> None:
        self.pending.append((len(self.data) if at < 0 else at, data))
        _apply(self.data, *self.pending[-1])

    def sync(self) -> None:
        self.synced, self.pending = bytes(self.data), []

    def after_loss(self, chance: random.Random | None) -> bytes:
        """Return the contents after a power loss. `chance` decides which unsynced changes are on the disk."""
        data = bytearray(self.synced)
        for at, piece in self.pending if chance else ():
            fate = chance.choice(("there", "lost", "torn"))  # type: ignore[union-attr]
            if fate == "torn" and piece:
                piece = piece[: chance.randrange(0, len(piece), _SECTOR)]  # type: ignore[union-attr]
            if fate != "lost":
                _apply(data, at, piece)
        return bytes(data)


def _apply(data: bytearray, at: int, piece: bytes | None) -> None:
    if piece is None:
        del data[at:]
    elif piece:
        data.extend(bytes(max(at - len(data), 0)))
        data[at : at + len(piece)] = piece


Change = Callable[[dict[str, "File | Folder"]], object]


@dataclass
class Folder:
    names: dict[str, "File | Folder"] = field(default_factory=dict)
    synced: dict[str, "File | Folder"] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)

    def change(self, change: Change) -> None:
        self.pending.append(change)
        change(self.names)

    def sync(self) -> None:
        self.synced, self.pending = dict(self.names), []

    def after_loss(self, chance: random.Random | None) -> dict[str, "File | Folder"]:
        names = dict(self.synced)
        for change in self.pending[: chance.randint(0, len(self.pending))] if chance else ():
            change(names)
        return names


class Disk:
    def __init__(self, folder: Path) -> None:
        """Start from the folder as it is now, all of it durable."""
        self._root = _loaded(folder)
        self.acknowledged = 0  # the last batch that was acknowledged to the loop

    def play(self, event: Event) -> None:
        if event.call == "acknowledged":
            self.acknowledged = event.number
            return
        folder, name = self._parent(event.path)
        node = folder.names.get(name) if name else folder
        match event.call:
            case "open" | "truncate" if node is None:
                file = File()
                folder.change(lambda names: names.setdefault(name, file))
            case "truncate" if isinstance(node, File):
                node.change(0, None)
            case "write" if isinstance(node, File):
                node.change(event.number, event.data)
            case "ftruncate" if isinstance(node, File):
                if event.number > len(node.data):
                    node.change(event.number - 1, b"\0")
                node.change(event.number, None)
            case "sync" if node is not None:
                node.sync()
            case "mkdir":
                inner = Folder()
                folder.change(lambda names: names.setdefault(name, inner))
            case "unlink":
                folder.change(lambda names: names.pop(name, None))
            case "rename":
                new = self._parent(event.other)
                if new[0] is folder:
                    folder.change(lambda names: names.update({new[1]: names.pop(name)}) if name in names else None)
                elif node is not None:  # POSIX does not promise that both folders change together
                    new[0].change(lambda names: names.update({new[1]: node}))
                    folder.change(lambda names: names.pop(name, None))

    def _parent(self, path: str) -> tuple[Folder, str]:
        *above, name = path.split("/")
        folder = self._root
        for part in above:
            found = folder.names[part]
            assert isinstance(found, Folder), path
            folder = found
        return folder, name

    def lose_power(self, target: Path, chance: random.Random | None) -> None:
        """Write the contents after a power loss as a folder."""
        _write(self._root, target, chance)


def _loaded(folder: Path) -> Folder:
    root = Folder()
    for path in folder.iterdir():
        if path.name.endswith("-shm"):
            continue
        data = b"" if path.is_dir() else path.read_bytes()
        root.names[path.name] = _loaded(path) if path.is_dir() else File(bytearray(data), data)
    root.sync()
    return root


def _write(node: Folder, target: Path, chance: random.Random | None) -> None:
    target.mkdir()
    for name, one in node.after_loss(chance).items():
        if isinstance(one, Folder):
            _write(one, target / name, chance)
        else:
            (target / name).write_bytes(one.after_loss(chance))
