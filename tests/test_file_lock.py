"""Only one process at a time holds the lock, as seen with real processes, and no process waits for a dead one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trapline.compiled.file_lock import alone

HOLDER = """
import sys
from pathlib import Path
from trapline.compiled.file_lock import alone

with alone(Path(sys.argv[1]), lambda: print("waiting", flush=True)):
    print("in", flush=True)
    sys.stdin.readline()
print("out", flush=True)
"""


@contextmanager
def process(file: Path) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def next_line(one: subprocess.Popen[str]) -> str:
    assert one.stdout is not None
    return one.stdout.readline().strip()


def release(one: subprocess.Popen[str]) -> None:
    assert one.stdin is not None
    one.stdin.write("\n")
    one.stdin.flush()


def test_a_second_process_waits_for_the_first(tmp_path: Path) -> None:
    with process(tmp_path / "lock") as first, process(tmp_path / "lock") as second:
        order = [(one, next_line(one)) for one in (first, second)]
        ((holder, _),) = [pair for pair in order if pair[1] == "in"]
        ((waiter, word),) = [pair for pair in order if pair[0] is not holder]
        assert word == "waiting"
        release(holder)
        assert (next_line(holder), next_line(waiter)) == ("out", "in")


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    with process(tmp_path / "lock") as first, process(tmp_path / "lock") as second:
        words = {next_line(one): one for one in (first, second)}
        words["in"].kill()
        assert next_line(words["waiting"]) == "in"


@pytest.mark.parametrize("place", ["file/lock", ".", "read-only/lock"])
def test_without_a_lock_file_no_process_waits(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "read-only").mkdir()
    (tmp_path / "read-only" / "lock").mkdir()  # permissions would not stop root
    waits: list[int] = []
    with alone(tmp_path / place, lambda: waits.append(1)), alone(tmp_path / place, lambda: waits.append(1)):
        assert waits == []


def test_on_a_file_system_without_locks_no_process_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(37, os.strerror(37))

    monkeypatch.setattr("fcntl.flock", none)
    done = []
    with alone(tmp_path / "lock", lambda: done.append("waiting")):
        done.append("in")
    assert done == ["in"]
