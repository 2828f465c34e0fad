"""`trapline parallel status` and `trapline parallel resize`, run from a second terminal while several processes crawl."""

import json
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
from trapline import __version__
from trapline.cli import run
from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.parallel import CROSS_OVER, FIREWALL
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.folder.manifest import create, read
from trapline.parallel.live import control
from trapline.parallel.live.control import WHERE
from trapline.parallel.partition import Partitioning
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
    head, how, names, *rows = seen["table"].splitlines()
    assert head.startswith(f"{folder}: 2 partitions, ")
    assert how == "mode exchange, partition function address, exchanges links with every batch"
    assert names.split() == ["pages", "pages/s", "refetched", "waiting", "batches", "made", "received", "host"]
    assert [row.split()[0] for row in rows] == ["0", "1"] and all(" connected for " in row for row in rows)
    assert "can grow, but not shrink" in seen["fewer"] and "already has 2 processes" in seen["same"]
    assert "restarting with 4 partitions" in seen["order"]
    assert not (folder / WHERE).exists()


@pytest.mark.parametrize(
    ("policy", "kind", "every", "line"),
    [
        (LinkPolicy(), "rendezvous", 0, "mode exchange, partition function rendezvous, exchanges links with every batch"),
        (LinkPolicy(every_pages=500), "site-hash", 500,
         "mode exchange, partition function site-hash, exchanges links every 500 pages"),
        (LinkPolicy(FIREWALL), "site-hash", None, "mode firewall, partition function site-hash"),
        (LinkPolicy(CROSS_OVER), "suffix", None, "mode cross-over, partition function suffix"),
    ],
)  # fmt: skip
def test_the_status_shows_how_the_partitions_work_together(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch,
    policy: LinkPolicy, kind: str, every: int | None, line: str,
) -> None:  # fmt: skip
    options = CrawlOptions(
        ("http://a.test/",), rules=live_rules(ip_delay_s=0.0),
        own_hosts=("test",) if policy.mode == CROSS_OVER else (),
    )  # fmt: skip
    create(tmp_path / "c", options, Partitioning(kind, 2, {"edu": 1} if kind == "suffix" else {}), policy)
    answer = {"seconds": 1.0, "doing": "", "stopped_by": "", "partitions": []}
    monkeypatch.setattr(control, "ask", lambda folder, **request: answer)
    found = json.loads(output_of(capsys, "status", tmp_path / "c", "--json"))
    assert found.pop("trapline") == __version__
    assert found == {"mode": policy.mode, "partition": kind, "exchange_every": every} | answer
    assert output_of(capsys, "status", tmp_path / "c").splitlines()[1] == line


@pytest.mark.parametrize("command", [("status", "{}"), ("resize", "{}", 3)])
def test_a_crawl_that_does_not_run_has_no_status(tmp_path: Path, capsys: Captured, command: tuple[object, ...]) -> None:
    with_folder = [str(arg).format(tmp_path) for arg in command]
    assert "this command needs a crawl that was started with --processes N" in refused(capsys, *with_folder)
    (tmp_path / "parallel.json").write_text("{}")
    assert "is not running" in (said := refused(capsys, *with_folder))
    assert ("--processes 3" in said) == (command[0] == "resize")
    (tmp_path / WHERE).write_text('{"address": ["127.0.0.1", 9], "crawl": "c", "token": "t"}')  # left by a killed crawl
    assert "is not running" in refused(capsys, *with_folder)
    (tmp_path / WHERE).write_text("[]")
    assert "cannot be read" in refused(capsys, *with_folder)
