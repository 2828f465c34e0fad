"""What befalls the parts of a crawl in several processes: a store that is killed, a folder that was put back."""

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
from trapline.crawl.files.lock import holder
from trapline.parallel.live import supervisor
from trapline.parallel.live.worker import WorkerTask
from trapline.testweb import check

Captured = pytest.CaptureFixture[str]


def store_of(folder: Path) -> int:
    """The process of the store of the crawl there."""
    loop = holder(folder)
    (store,) = Path(f"/proc/{loop}/task/{loop}/children").read_text().split()
    return int(store)


@slow
def test_one_whose_store_is_killed_goes_on_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    victim = folder / "partition-1"

    def kill() -> None:
        wait_for(lambda: has(victim, 12))
        os.kill(store_of(victim), signal.SIGKILL)

    with served(tmp_path, latency_s=0.02) as (server, told):
        with meanwhile(kill):
            assert crawl(*told, "-o", folder, "--processes", 2) == 0
        findings = check(server.log(), PROMISE)
    assert len(fetched(folder)) == PAGES and set(fetched(folder).values()) == {1}
    assert (findings.overlaps, findings.early) == ([], [])
    assert [rows(folder / f"partition-{at}", "select value from meta where key = 'runs'") for at in range(2)] == [
        [("1",)],
        [("2",)],
    ]


@slow
def test_a_part_that_was_put_back_from_an_older_copy_is_refused_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    folder, copy = tmp_path / "c", tmp_path / "copy"
    with served(tmp_path) as (_, told):
        assert crawl(*told, "-o", folder, "--processes", 2, "--max-pages", 30) == 0
        shutil.copytree(folder / "partition-1", copy)
        assert crawl("--resume", folder, "--max-pages", 80) == 0
        shutil.rmtree(folder / "partition-1")
        shutil.copytree(copy, folder / "partition-1")
        capsys.readouterr()
        assert crawl("--resume", folder, "--max-pages", 140) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "are not from the same time" in lines[0] and str(folder / "partition-") in lines[0]


@slow
def test_one_that_hangs_is_killed_if_it_does_not_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
