"""Compilation in several processes: this process and its workers take functions from one list until all are compiled.

Workers (worker.py) only fill the cache. This process then loads what they wrote and compiles what is still missing, so a worker that
fails, is killed or finds a full disk changes nothing but the time.

A process compiles a helper once, and again if another process needs it too. In the list, functions that share helpers are therefore
neighbours, and two processes begin at its two ends. More processes divide the list into segments, each with two ends.

A process claims a function by a lock on one byte of a temporary file. The system releases the locks of a process that dies. This
module knows nothing about numba.
"""

import fcntl
import json
import os
import re
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import TypeAlias

from trapline.compiled.sources import reached
from trapline.errors import ConfigError

Worker: TypeAlias = "subprocess.Popen[bytes]"

VARIABLE = "TRAPLINE_COMPILE_PROCESSES"
# Arguments of Python; -P: import nothing from the user's working directory, unless the host does. The host's path comes before the
# first import of Trapline, which perhaps only that path finds.
_WORKER = (
    "-P",
    "-c",
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); from trapline.compiled.worker import main; main()",
)
# With fewer functions than this per process, imports and helpers that are compiled twice take more time than one more process saves.
_FUNCTIONS_EACH = 90
_BYTES_EACH = 400_000_000  # a worker needs 260 MB in `trapline demo`
# Files of Linux with the available memory, and with the limit of a container (cgroups of version 2 and 1): number and unit
_MEMORY_FILES = (
    ("/proc/meminfo", r"MemAvailable: *(\d+) kB", 1024),
    ("/sys/fs/cgroup/memory.max", r"(\d+)", 1),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", r"(\d+)", 1),
)
_MOST_READ = 1 << 16
_LOOK_EVERY_MS = 100  # whether workers still run; if they all end, the pipe tells at once


def process_count(functions: int) -> int:
    """Return the number of processes to compile this number of functions in.

    One per core, or fewer if there is little to do or little memory. One if there is no Python to start: `sys.executable` is empty in
    some applications that embed Python, and in a frozen application it is the application.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen and not (chosen.isdecimal() and int(chosen)):
        raise ConfigError(f"{VARIABLE}={chosen}: not a number of processes; give 1 or more, or unset it")
    if not sys.executable or getattr(sys, "frozen", False):
        return 1
    return min(int(chosen or _cores_with_memory()), max(1, -(-functions // _FUNCTIONS_EACH)))


def _cores_with_memory() -> int:
    return max(1, min(_cores(), _memory() // _BYTES_EACH))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> int:
    """Return how many bytes of memory the system lets this process use, as far as it tells."""
    least = sys.maxsize
    for file, pattern, unit in _MEMORY_FILES:
        with suppress(OSError):  # another system, or no such limit
            if found := re.search(pattern, Path(file).read_text()):
                least = min(least, int(found[1]) * unit)
    return least


def neighbours(functions: Sequence[FunctionType]) -> list[int]:
    """Return the numbers of the functions, each one followed by the one that has most code in common with it."""
    reach = [reached(function) for function in functions]

    def common(one: int, other: int) -> tuple[int, int]:
        return sum(len(function.__code__.co_code) for function in reach[one] & reach[other]), -other

    order = sorted(range(len(functions)), key=lambda number: common(number, number), reverse=True)[:1]
    left = set(range(len(functions))).difference(order)
    while left:
        order.append(max(left, key=lambda number: common(order[-1], number)))
        left.remove(order[-1])
    return order


def claimed(task_file: int, count: int, process: int, processes: int) -> Iterator[int]:
    """Yield the numbers of the functions that this process has claimed, until all are claimed by one process or another."""
    return (number for number in _order(count, process, processes) if _claim(task_file, number))


def _order(count: int, process: int, processes: int) -> list[int]:
    """Return all numbers in the order in which a process tries to claim them: its own segment from one end, then the others."""
    segments = (processes + 1) // 2
    parts = [range(count * n // segments, count * (n + 1) // segments) for n in range(segments)]
    own, is_at_the_end = divmod(process, 2)
    others = (number for n in range(1, segments) for number in reversed(parts[(own + n) % segments]))
    return [*(reversed(parts[own]) if is_at_the_end else parts[own]), *others]


def _claim(task_file: int, number: int) -> bool:
    try:
        fcntl.lockf(task_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
    except OSError:  # another process has it; or there are no locks, and this process compiles everything in the end
        return False
    return True


@contextmanager
def compile_workers(
    names: Sequence[str], processes: int, identity: str, cache: Path, reported: Callable[[str], None]
) -> Iterator[Iterator[int]]:
    """Start workers and give the numbers of the functions that this process shall compile meanwhile.

    `names`: `module:function` for each function. `cache`: the absolute path of the folder that has a folder per identity.
    `reported` is called with the name of each function that a worker begins to compile.
    The workers end with the block: by themselves if all numbers were taken, otherwise they are killed.
    """
    with ExitStack() as ends:
        try:
            own = _begun(names, processes, identity, cache, reported, ends)
        except OSError:  # no temporary file, or no process
            own = iter(())
        yield own


def _begun(
    names: Sequence[str], processes: int, identity: str, cache: Path, reported: Callable[[str], None], ends: ExitStack
) -> Iterator[int]:
    file = ends.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  the caller closes it with its other ends
    file.write(json.dumps({"identity": identity, "names": list(names)}).encode())
    file.flush()
    reports, for_workers = os.pipe()
    ends.callback(os.close, reports)
    workers = []
    try:
        for process in range(1, processes):
            workers.append(worker := _start(process, processes, file.fileno(), for_workers, cache))
            ends.callback(worker.wait)
            ends.callback(worker.kill)
    finally:
        os.close(for_workers)
    return _until_all_end(claimed(file.fileno(), len(names), 0, processes), _Reports(reports, reported), workers)


def _start(process: int, processes: int, task_file: int, reports: int, cache: Path) -> Worker:
    path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])  # Python ignores all others
    return subprocess.Popen(
        [sys.executable, *_WORKER, str(process), str(processes), path],
        env={**os.environ, "TRAPLINE_CACHE": str(cache)},  # which may be relative to an earlier working directory
        stdin=task_file,
        stdout=reports,
        stderr=subprocess.DEVNULL,  # this process meets the same error when it compiles the function itself
        start_new_session=True,  # so that Ctrl-C reaches this process only, which ends the workers
    )


def read_task(task_file: int) -> tuple[str, list[str]]:
    """Return the identity of the code to compile, and the names of the functions."""
    # Not through a file object: to close a second descriptor of the file would release all locks of the process.
    task = json.loads(os.pread(task_file, os.fstat(task_file).st_size, 0))
    return task["identity"], task["names"]


def _until_all_end(numbers: Iterator[int], reports: "_Reports", workers: list[Worker]) -> Iterator[int]:
    for number in numbers:
        reports.read_available()
        yield number
    reports.read_while(lambda: any(_is_running(worker) for worker in workers))


def _is_running(worker: Worker) -> bool:
    return worker.poll() is None and not _is_stopped(worker)


def _is_stopped(worker: Worker) -> bool:
    """Return whether a signal has stopped the worker, which may last forever."""
    with suppress(AttributeError, OSError):  # macOS before Python 3.13; the host collects ended processes itself
        return os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    return False


class _Reports:
    """The names that workers write into a pipe, one per line."""

    def __init__(self, descriptor: int, reported: Callable[[str], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._reported = reported
        self._rest = b""

    def read_available(self) -> bool:
        """Read what was written so far. Return whether more can follow."""
        with suppress(BlockingIOError):
            while self._read():
                pass
            return False
        return True

    def read_while(self, workers_run: Callable[[], bool]) -> None:
        """Read until no worker runs. A process that the host forked meanwhile can hold the pipe open for longer."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        while workers_run() and self.read_available():
            poll.poll(_LOOK_EVERY_MS)
        self.read_available()

    def _read(self) -> bool:
        found = os.read(self._descriptor, _MOST_READ)
        *lines, self._rest = (self._rest + found).split(b"\n")
        for line in lines:
            self._reported(line.decode(errors="replace"))
        return bool(found)
