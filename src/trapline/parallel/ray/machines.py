"""Which machine of a cluster each partition runs on. This module knows names of machines and counts, and nothing about Ray.

A partition stays on the machine that has its folder. It may resume on another machine only if all machines see the
crawl's folder on shared storage.

DIR/hosts.json     the last machine of each partition, whether the folder is shared, and which machine the command ran on
"""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import trapline
from trapline.errors import ConfigError
from trapline.output import write_json
from trapline.parallel.folder.manifest import MANIFEST
from trapline.parallel.live.supervisor import last_line
from trapline.parallel.live.worker import COMMAND

HOSTS = "hosts.json"
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Placement:
    command: str  # the machine on which the crawl command runs
    shared: bool  # all machines see the same folder
    hosts: Mapping[int, str] = field(default_factory=dict)  # partition -> machine

    @property
    def elsewhere(self) -> dict[int, str]:
        """Partitions whose folders are on other machines than the command: partition -> machine."""
        return {} if self.shared else {number: host for number, host in self.hosts.items() if host != self.command}

    def hosts_at(self, here: str) -> dict[int, str]:
        """Return the machine of each partition, for a command that now runs on the machine `here`. A cluster of one machine
        (`--ray local`) recorded that machine as loopback.

        >>> Placement("127.0.0.1", True, {0: "127.0.0.1"}).hosts_at("10.0.0.1")
        {0: '10.0.0.1'}
        """
        return {number: here if host == _LOOPBACK else host for number, host in self.hosts.items()}

    def having(self, partition: int, host: str | None) -> "Placement":
        """Return this placement with the partition on the host; None: on no host."""
        others = {number: other for number, other in self.hosts.items() if number != partition}
        return replace(self, hosts=others if host is None else {**others, partition: host})


def host_for(partition: int, placed: Placement, there: Sequence[str]) -> str | None:
    """Choose a machine for a partition among those that are `there`: its last machine, or otherwise the one with the
    fewest partitions. None: the partition must wait until its last machine comes back.

    >>> placed = Placement("a", False, {0: "a", 1: "b"})
    >>> host_for(2, placed, ["a", "b", "c"]), host_for(1, placed, ["a", "c"])
    ('c', None)
    """
    before = placed.hosts.get(partition)
    if before in there or (before is not None and not placed.shared):
        return before if before in there else None
    busy = Counter(placed.hosts.values())
    return min(there, key=lambda host: (busy[host], there.index(host)), default=None)


def write(folder: Path, placed: Placement) -> None:
    hosts = {str(number): host for number, host in sorted(placed.hosts.items())}
    write_json(folder / HOSTS, {"command": placed.command, "shared": placed.shared, "hosts": hosts})


def read(folder: Path) -> Placement | None:
    """Return the placement that the folder records; None: the crawl never ran on Ray."""
    try:
        found = json.loads((folder / HOSTS).read_text())
        hosts = {int(number): str(host) for number, host in found["hosts"].items()}
        return Placement(str(found["command"]), bool(found["shared"]), hosts)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{folder / HOSTS}: cannot be read ({error}); restore it from a copy") from None


def refuse_elsewhere(folder: Path) -> None:
    """Raise `ConfigError` if the crawl cannot resume with the partitions on this machine alone."""
    placed = read(folder)
    for number, host in sorted(placed.elsewhere.items()) if placed else ():
        raise ConfigError(f"{folder}: its partition {number} is on {host}; resume with --ray")


# ---- Functions that run on the machines of a cluster: prepare the machine, run a worker, return its database.
# cluster.py calls them through Ray; they know nothing about Ray.

_READERS_END_S = 60.0
_PIECE = 8 << 20
_WARMUP = ("-P", "-c", "from trapline.cli import main; main()", "warmup")


class Supervisor:
    """Runs one worker, from its start to its end."""

    def __init__(self) -> None:
        self._ended: tuple[int, str] | None = None

    def run(self, task: bytes) -> tuple[int, str]:
        """Run the worker and return its exit code and last error line. A second call, by a caller whom the first answer
        did not reach, returns the same answer and starts no second worker."""
        self._ended = self._ended or _run(task)
        return self._ended


def _run(task: bytes) -> tuple[int, str]:
    process = subprocess.Popen(
        [sys.executable, *COMMAND], stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    with process:
        assert process.stdin is not None and process.stderr is not None
        with suppress(OSError):  # the worker has died already
            process.stdin.write(task)
            process.stdin.flush()  # standard input stays open: the worker dies when it is closed
        complaint = process.stderr.read()
        code = process.wait()
        with suppress(OSError):  # closing tries to write what the worker has not read
            process.stdin.close()
    return code, last_line(complaint)


def made_ready(folder: str, manifest: str, warm: bool) -> tuple[str, bool]:
    """Prepare this machine. Return its version of Trapline, and whether it sees the crawl's folder. `warm`: the kernels
    are compiled already."""
    if not warm:
        ended = subprocess.run([sys.executable, *_WARMUP], capture_output=True)
        if ended.returncode:
            raise RuntimeError(f"trapline warmup failed: {last_line(ended.stderr) or ended.returncode}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    file = Path(folder) / MANIFEST
    return trapline.__version__, file.is_file() and file.read_text() == manifest


def in_one_file(database: str) -> bool:
    """Move all commits from the write-ahead log into the database file; a worker that was killed leaves some there.
    Return False if there is no database. Runs on the machine that has it."""
    if not Path(database).exists():
        return False
    with closing(sqlite3.connect(database, timeout=_READERS_END_S)) as opened:
        busy, _, _ = opened.execute("pragma wal_checkpoint(truncate)").fetchone()
    if busy:
        raise TimeoutError(f"{database} is being read by another process")
    return True


def piece(file: str, at: int) -> bytes:
    with open(file, "rb") as reading:
        reading.seek(at)
        return reading.read(_PIECE)
