"""A crawl of several processes is stopped by the user, killed, and resumed: nothing is lost, and no process is left behind."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import slow
from tests.parallel.processes_world import (
    PAGES,
    PROMISE,
    crawl,
    fetched,
    has,
    requests_of_pages,
    rows,
    served,
    wait_for,
)
from trapline.cli import run
from trapline.crawler.files.lock import holder
from trapline.parallel.folder.manifest import read
from trapline.testweb import check

Captured = pytest.CaptureFixture[str]
COMMAND = "import sys; from trapline.cli import run; sys.exit(run(sys.argv[1:]))"


def started(*args: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", COMMAND, "crawl", "--quiet", *map(str, args)])


def pages_of(folder: Path) -> int:
    return sum(sum(fetched(part).values()) for part in read(folder).parts)


@slow
def test_the_crawl_resumes_after_a_stop_and_after_a_kill(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "c"
    parts = [folder / "partition-0", folder / "partition-1"]
    with served(tmp_path, latency_s=0.02) as (server, arguments):
        process = started(*arguments, "-o", folder, "--processes", 2)
        wait_for(lambda: has(parts[1], 8))
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        check_stopped(folder, parts)
        check_strangers(folder, tmp_path, capsys)
        assert crawl("--resume", folder, "--max-pages", 1) == 2
        assert "; give a --max-pages above that to continue" in capsys.readouterr().err

        before = pages_of(folder)
        process = started("--resume", folder)
        wait_for(lambda: pages_of(folder) > before)
        process.kill()
        process.wait(120)
        wait_for(lambda: not any(map(holder, parts)))  # a worker that has lost its coordinator ends
        assert run(["status", str(folder)]) == 0
        assert "broken off" in capsys.readouterr().out

        assert crawl("--resume", folder) == 0
        findings, requests = check(server.log(), PROMISE), requests_of_pages(server)
    assert len(fetched(folder)) == PAGES == len(requests)
    assert set(fetched(folder).values()) == {1}
    assert (findings.overlaps, findings.early) == ([], [])
    assert rows(folder, "select value from meta where key = 'runs'") == [("3",)]


def check_stopped(folder: Path, parts: list[Path]) -> None:
    assert rows(folder, "select value from meta where key = 'stopped_by'") == [("interrupted",)]
    assert 0 < sum(fetched(folder).values()) < PAGES
    for part in parts:
        assert rows(part, "select count(*) from meta where key = 'closed'") == [(1,)]
        assert holder(part) is None


def check_strangers(folder: Path, place: Path, capsys: Captured) -> None:
    """Check that a partition of another crawl in place of ours is refused, and that nothing of ours is damaged."""
    other = place / "other"
    shutil.copytree(folder, other)
    shutil.rmtree(other / "partition-1")
    os.rename(other / "partition-0", other / "partition-1")
    capsys.readouterr()
    assert run(["crawl", "--quiet", "--resume", str(other)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "partition-1: belongs to another crawl" in lines[0]
