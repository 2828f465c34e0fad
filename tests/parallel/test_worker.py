"""A partition as a process of its own: what it waits for before it starts, and how it ends."""

import fcntl
import io
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.lock import LOCK
from trapline.parallel.live import worker
from trapline.parallel.live.worker import WorkerTask


@contextmanager
def held(folder: Path, by: str) -> Iterator[int]:
    """Hold the lock of the folder, as a worker that crawls into it does. Yield the holder."""
    with (folder / LOCK).open("w") as lock:
        lock.write(by)
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def test_a_folder_that_another_machine_holds_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = CrawlOptions(seeds=("http://127.0.0.1:9/",)).to_json()
    task = WorkerTask(str(tmp_path), "", "", "", 0, {}, [1], options, ("127.0.0.1", 9), False)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(task.to_line()), fileno=lambda: -1))
    monkeypatch.setattr(worker, "_die_with_the_other_end", lambda descriptor: None)
    monkeypatch.setattr(worker, "_LEASE_ENDS_WITHIN_S", 0.2)
    with held(tmp_path, "123 far-away\n"):
        assert worker.main() == os.EX_TEMPFAIL
    assert capsys.readouterr().err == f"{tmp_path}: is being crawled by process 123 on far-away\n"


@pytest.mark.parametrize("machine", ["far-away", socket.gethostname()])
def test_a_holder_that_ends_in_time_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    """If the holder was on another machine that is gone, its lease must expire first."""
    monkeypatch.setattr(worker, "_LEASE_ENDS_WITHIN_S" if machine != "far-away" else "_ENDS_WITHIN_S", 0.0)
    ended: list[None] = []
    with held(tmp_path, f"123 {machine}\n") as lock:
        threading.Timer(0.3, lambda: ended.append(fcntl.flock(lock, fcntl.LOCK_UN))).start()
        worker._wait_for_the_last(tmp_path)
    assert ended
