"""`trapline parallel status` and `trapline parallel resize`, run from a second terminal while several processes crawl."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.effort import slow
from tests.parallel.processes_world import (
    PAGES,
    PROMISE,
    crawl,
    fetched,
    has,
    meanwhile,
    requests_of_pages,
    served,
    wait_for,
)
from trapline.cli import run
from trapline.parallel.folder.manifest import read
from trapline.parallel.live.control import WHERE
from trapline.testweb import check

Captured = pytest.CaptureFixture[str]


def output_of(capsys: Captured, *args: object) -> str:
    assert run(["parallel", *map(str, args)]) == 0
    return capsys.readouterr().out


def refused(capsys: Captured, *args: object) -> str:
    """Run a command that must be refused, and return its only line of output."""
    capsys.readouterr()
    assert run(["parallel", *map(str, args)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


@slow
def test_a_running_crawl_shows_its_status_and_can_be_resized(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "c"
    seen: dict[str, Any] = {}

    def shows_progress() -> bool:
        """Whether the status shows progress. Partitions report twice a second."""
        seen["before"] = json.loads(output_of(capsys, "status", folder, "--json"))["partitions"]
        return all(one["pages"] > 0 and one["batches_made"] > 0 for one in seen["before"])

    def watch() -> None:
        wait_for(lambda: has(folder / "partition-0", 4) and has(folder / "partition-1", 4))
        wait_for(shows_progress)
        seen["table"] = output_of(capsys, "status", folder)
        seen["fewer"] = refused(capsys, "resize", folder, 1)
        seen["same"] = refused(capsys, "resize", folder, 2)
        seen["order"] = output_of(capsys, "resize", folder, 4)

    with served(tmp_path, latency_s=0.05) as (server, options), meanwhile(watch):
        assert crawl(*options, "-o", folder, "--processes", 2) == 0
        findings, requests = check(server.log(), PROMISE), requests_of_pages(server)
    assert (findings.overlaps, findings.early) == ([], [])
    assert len(requests) == PAGES == len(fetched(folder))
    assert set(fetched(folder).values()) == {1}
    assert read(folder).sizes == (2, 4)
    assert all(sum(fetched(part).values()) > 0 for part in read(folder).parts)
    check_output(folder, seen)


def check_output(folder: Path, seen: dict[str, Any]) -> None:
    assert [(one["partition"], one["alive"], one["host"]) for one in seen["before"]] == [
        (0, True, "127.0.0.1"),
        (1, True, "127.0.0.1"),
    ]
    head, names, *rows = seen["table"].splitlines()
    assert head.startswith(f"{folder}: 2 partitions, ")
    assert names.split() == ["pages", "pages/s", "refetched", "waiting", "batches", "made", "received", "host"]
    assert [row.split()[0] for row in rows] == ["0", "1"] and all(" connected for " in row for row in rows)
    assert "can grow, but not shrink" in seen["fewer"] and "already has 2 processes" in seen["same"]
    assert "restarting with 4 partitions" in seen["order"]
    assert not (folder / WHERE).exists()


@pytest.mark.parametrize("command", [("status", "{}"), ("resize", "{}", 3)])
def test_a_crawl_that_does_not_run_has_no_status(tmp_path: Path, capsys: Captured, command: tuple[object, ...]) -> None:
    with_folder = [str(arg).format(tmp_path) for arg in command]
    assert "not a crawl of several processes; name the folder of one" in refused(capsys, *with_folder)
    (tmp_path / "parallel.json").write_text("{}")
    assert re.search("does not run now|is not running", said := refused(capsys, *with_folder))
    assert ("--processes 3" in said) == (command[0] == "resize")
    (tmp_path / WHERE).write_text('{"address": ["127.0.0.1", 9], "crawl": "c", "token": "t"}')  # left by a killed crawl
    assert re.search("does not run now|is not running", refused(capsys, *with_folder))
    (tmp_path / WHERE).write_text("[]")
    assert "cannot be read" in refused(capsys, *with_folder)
