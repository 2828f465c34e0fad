"""`trapline status` from a second terminal, for a crawl that runs, has ended, or was interrupted."""

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.crawl_folder import BEGAN, simulated, write_crawl
from trapline.cli import run
from trapline.crawler.files.lock import take
from trapline.crawler.files.status_file import StatusFile
from trapline.crawler.inspect.folder_status import BROKEN_OFF, ENDED, RUNNING, folder_status
from trapline.crawler.inspect.summary import write_summary

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_crawl(tmp_path / "crawl", *simulated(300, 12))


def shown(folder: Path, capsys: Captured, *args: str) -> dict[str, Any]:
    assert run(["status", str(folder), "--json", *args]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_numbers_are_those_of_the_last_commit(folder: Path, capsys: Captured) -> None:
    found, whole = shown(folder, capsys), write_summary(folder)
    for name, same in (("pages", "pages_fetched"), ("bytes", "bytes"), ("errors", "errors"), ("known", "urls_known")):
        assert found[name] == whole[same], name
    assert found["pages_per_second"] == pytest.approx(whole["pages_per_second"], rel=0.01)
    assert found["at"] == pytest.approx(BEGAN + found["seconds"])
    assert found["strategy"] == "breadth-first" and found["connections"] == 8


def test_recent_rates_cover_the_last_seconds(folder: Path) -> None:
    with sqlite3.connect(folder / "crawl.db") as database:
        rows = database.execute("select seconds, pages, at from progress order by rowid").fetchall()
        last = rows[-1]
        count = "select count(*) from fetch where result = 3 and started > ?"
        (came,) = database.execute(count, (last[2] - 10,)).fetchone()
    since = next(row for row in rows if row[0] >= last[0] - 10)
    found = folder_status(folder)
    assert found.pages_per_second_now == pytest.approx((last[1] - since[1]) / (last[0] - since[0]))
    assert sum(number for _, number in found.busiest) == came > 0
    assert [one.at for one in found.last_errors] == sorted((one.at for one in found.last_errors), reverse=True)


def test_a_crawl_runs_while_its_folder_is_locked_and_has_ended_if_a_stop_reason_is_stored(
    folder: Path, capsys: Captured
) -> None:
    assert (folder_status(folder).state, folder_status(folder).stopped_by) == (ENDED, "nothing left")
    with sqlite3.connect(folder / "crawl.db") as database:
        database.execute("delete from meta where key = 'stopped_by'")
    assert folder_status(folder).state == BROKEN_OFF
    assert run(["status", str(folder)]) == 0
    assert f"--resume {folder}" in capsys.readouterr().out
    lock = take(folder)
    assert folder_status(folder).state == RUNNING
    lock.release()


def live_record(process: int, **progress: Any) -> dict[str, Any]:
    """Return a record of live/status, of a crawl whose visits wait for robots.txt files."""
    last = {
        "at": BEGAN,
        "seconds": 1.0,
        "pages": 0,
        "errors": 0,
        "bytes": 0,
        "known": 9,
        "waiting": 0,
        "sites": 9,
        "active": 8,
    }
    return {
        "at": time.time(),
        "process": process,
        "phase": "crawling",
        "progress": {**last, "quality": 0.0, **progress},
        "connections": {"limit": 8, "lately": {"robots": 8}},
        "waiting": {"sites": 9},
    }


def test_the_progress_of_a_running_crawl_is_of_the_moment_of_the_sentence(folder: Path) -> None:
    before, status, lock = folder_status(folder), StatusFile(folder), take(folder)
    for seconds in (before.seconds + 1.0, 1.0):  # the database may be ahead, too
        status.write(live_record(os.getpid(), seconds=seconds, pages=7))
        found = folder_status(folder)
        assert (found.seconds, found.pages, found.known, found.active) == (seconds, 7, 9, 8)
        assert found.why_not_faster["sentence"] == "All 8 connections wait for the robots.txt of their sites."
    status.close()
    lock.release()
    assert folder_status(folder).pages == before.pages  # what is committed


def test_a_resumed_crawl_does_not_show_what_the_killed_one_did(folder: Path, capsys: Captured) -> None:
    with sqlite3.connect(folder / "crawl.db") as database:
        database.execute("delete from meta where key = 'stopped_by'")
        database.execute("update progress set active = 8, known = known + 8")
    status = StatusFile(folder)
    status.write({**live_record(os.getpid() + 1), "at": time.time() - 100.0})
    status.close()
    killed = folder_status(folder)
    assert (killed.state, killed.active) == (BROKEN_OFF, 0)
    assert run(["status", str(folder)]) == 0
    assert "held by visits that broke off" in capsys.readouterr().out
    lock = take(folder)
    resumed = folder_status(folder)
    assert (resumed.pages, resumed.active) == (killed.pages, 0)
    assert resumed.why_not_faster["sentence"] == "The crawl has not written its status yet."
    lock.release()


def test_the_text_output_has_sites_and_errors(folder: Path, capsys: Captured) -> None:
    assert run(["status", str(folder)]) == 0
    said = capsys.readouterr().out
    for name in ("pages/s", "received", "known", "busiest sites", "http://s0000", "last errors"):
        assert name in said


def test_watching_ends_with_the_crawl(folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, looks = take(folder), []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            lock.release()

    monkeypatch.setattr("time.sleep", sleep)
    assert run(["status", str(folder), "--watch", "--json"]) == 0
    states = [json.loads(line)["state"] for line in capsys.readouterr().out.splitlines()]
    assert states == [RUNNING] * 3 + [ENDED]


def test_a_crawl_that_has_just_begun_has_a_status(folder: Path, capsys: Captured) -> None:
    with sqlite3.connect(folder / "crawl.db") as database:
        for table in ("fetch", "robots", "progress"):
            database.execute(f"delete from {table}")
    assert shown(folder, capsys)["pages"] == 0
    assert run(["status", str(folder)]) == 0


def test_a_folder_without_a_crawl_is_reported_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    assert run(["status", str(tmp_path / "nothing")]) == 2
    assert "name the folder of a crawl" in capsys.readouterr().err
