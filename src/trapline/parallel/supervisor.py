"""What the machines of a cluster are asked to do: make ready, run a worker, hand over its database. It knows nothing of Ray (on_ray.py),
which only brings it there.
"""

import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import trapline
from trapline.parallel.manifest import MANIFEST
from trapline.parallel.processes import last_line
from trapline.parallel.worker import COMMAND

_READERS_END_S = 60.0
_PIECE = 8 << 20
_WARMUP = ("-P", "-c", "from trapline.cli import main; main()", "warmup")


class Supervisor:
    """Of one worker, from its start to its end."""

    def __init__(self) -> None:
        self._ended: tuple[int, str] | None = None

    def run(self, task: bytes) -> tuple[int, str]:
        """Asked again, by somebody whom the answer has not reached: how it ended, and no second worker."""
        self._ended = self._ended or _run(task)
        return self._ended


def _run(task: bytes) -> tuple[int, str]:
    process = subprocess.Popen(
        [sys.executable, *COMMAND], stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    with process:
        assert process.stdin is not None and process.stderr is not None
        with suppress(OSError):  # it has died already
            process.stdin.write(task)
            process.stdin.flush()  # and it stays open: the worker dies with it
        complaint = process.stderr.read()
        code = process.wait()
        with suppress(OSError):  # what it has not read is still to be written
            process.stdin.close()
    return code, last_line(complaint)


def made_ready(folder: str, manifest: str, warm: bool) -> tuple[str, bool]:
    """Its version of Trapline, and whether it sees the crawl's folder. `warm`: kernels are compiled there."""
    if not warm:
        ended = subprocess.run([sys.executable, *_WARMUP], capture_output=True)
        if ended.returncode:
            raise RuntimeError(f"trapline warmup failed: {last_line(ended.stderr) or ended.returncode}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    file = Path(folder) / MANIFEST
    return trapline.__version__, file.is_file() and file.read_text() == manifest


def in_one_file(database: str) -> bool:
    """On the machine that has it: what a worker that was killed has committed lies beside it until then. False: there is none."""
    if not Path(database).exists():
        return False
    with closing(sqlite3.connect(database, timeout=_READERS_END_S)) as opened:
        busy, _, _ = opened.execute("pragma wal_checkpoint(truncate)").fetchone()
    if busy:
        raise TimeoutError(f"{database} is being read")
    return True


def piece(file: str, at: int) -> bytes:
    with open(file, "rb") as reading:
        reading.seek(at)
        return reading.read(_PIECE)
