"""Damage to a crawl of several processes: a killed store, a folder that was restored from an older copy, a worker that hangs."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.effort import slow
from tests.parallel.processes_world import (
    PAGES,
    PROMISE,
    crawl,
    fetched,
    has,
    meanwhile,
    rows,
    served,
    wait_for,
)
from trapline.crawler.files.lock import holder
from trapline.parallel.live import supervisor
from trapline.parallel.live.worker import WorkerTask
from trapline.testweb import check

Captured = pytest.CaptureFixture[str]


def store_of(folder: Path) -> int:
    """Return the process id of the store that writes into this folder."""
    loop = holder(folder)
    (store,) = Path(f"/proc/{loop}/task/{loop}/children").read_text().split()
    return int(store)


@slow
def test_a_partition_whose_store_is_killed_continues_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    victim = folder / "partition-1"

    def kill() -> None:
        wait_for(lambda: has(victim, 12))
        os.kill(store_of(victim), signal.SIGKILL)

    with served(tmp_path, latency_s=0.02) as (server, arguments):
        with meanwhile(kill):
            assert crawl(*arguments, "-o", folder, "--processes", 2) == 0
        findings = check(server.log(), PROMISE)
    assert len(fetched(folder)) == PAGES and set(fetched(folder).values()) == {1}
    assert (findings.overlaps, findings.early) == ([], [])
    assert [rows(folder / f"partition-{at}", "select value from meta where key = 'runs'") for at in range(2)] == [
        [("1",)],
        [("2",)],
    ]


@slow
def test_a_partition_that_was_restored_from_an_older_copy_is_refused_in_one_line(
    tmp_path: Path, capsys: Captured
) -> None:
    folder, copy = tmp_path / "c", tmp_path / "copy"
    with served(tmp_path) as (_, arguments):
        assert crawl(*arguments, "-o", folder, "--processes", 2, "--max-pages", 30) == 0
        shutil.copytree(folder / "partition-1", copy)
        assert crawl("--resume", folder, "--max-pages", 80) == 0
        shutil.rmtree(folder / "partition-1")
        shutil.copytree(copy, folder / "partition-1")
        capsys.readouterr()
        assert crawl("--resume", folder, "--max-pages", 140) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "are not from the same time" in lines[0] and str(folder / "partition-") in lines[0]


@slow
def test_a_worker_that_hangs_is_killed_if_it_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "process"
    stops = (
        f"import os, signal; open({str(file)!r}, 'w').write(f'{{os.getpid()}} '); os.kill(os.getpid(), signal.SIGSTOP)"
    )
    monkeypatch.setattr(supervisor, "COMMAND", ("-c", stops))
    monkeypatch.setattr(supervisor, "_END_S", 0.1)
    task = WorkerTask("c", "mark", "crawl", "token", 0, {}, [1], "{}", ("127.0.0.1", 9), False)

    async def cancelled() -> None:
        running = asyncio.ensure_future(supervisor.launched(task))
        while not (file.exists() and file.read_text().endswith(" ")):
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 20)

    asyncio.run(cancelled())
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)
