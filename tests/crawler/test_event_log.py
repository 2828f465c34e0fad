"""The log of a crawl: whole lines whatever the text, rotation without loss, and the events of real crawls."""

import json
import multiprocessing
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.live_web import crawled, silence
from tests.crawler.small_server import small_server
from tests.effort import slow
from tests.hostile_text import ADDRESS, FORGED, HOSTILE, hostile_site
from trapline.crawler.engine.crawl_events import CrawlEvents
from trapline.crawler.engine.run import resume_crawl
from trapline.crawler.files.control_mailbox import ACTIONS, EXPORT_SITES
from trapline.crawler.files.event_log import (
    HERITRIX,
    KEPT,
    LEVELS,
    EventLog,
    LogFile,
    begin_log,
    event_files,
    numbered,
)


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def test_an_event_is_one_line_of_ascii_whatever_its_text(tmp_path: Path) -> None:
    EventLog(tmp_path).note("warning", "site_failed", HOSTILE, site=f"{HOSTILE}\ud800", seconds=float("nan"))
    written = (tmp_path / "crawl.log").read_bytes()
    assert written.isascii() and written.count(b"\n") == 1 and written.endswith(b"\n")
    (event,) = events_of(tmp_path / "crawl.log")
    assert (event["text"], event["seconds"]) == (HOSTILE, "nan")
    assert FORGED in event["site"]


@pytest.mark.parametrize("least", LEVELS)
def test_events_below_the_level_are_not_written(tmp_path: Path, least: str) -> None:
    log = EventLog(tmp_path, least)
    for level in LEVELS:
        log.note(level, "event", "text")
    assert [event["level"] for event in events_of(tmp_path / "crawl.log")] == list(LEVELS[LEVELS.index(least) :])


def test_a_folder_that_cannot_be_written_raises_nothing(tmp_path: Path) -> None:
    EventLog(tmp_path / "missing").note("error", "event", "text")
    EventLog(None).note("error", "event", "text")
    assert list(tmp_path.iterdir()) == []


def test_a_torn_line_does_not_swallow_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "crawl.log").write_bytes(b'{"at": "20')
    EventLog(tmp_path).note("info", "crawl_resumed", "text")
    assert json.loads((tmp_path / "crawl.log").read_bytes().split(b"\n")[1])["event"] == "crawl_resumed"


def _write(path: Path, writer: int, lines: int) -> None:
    file = LogFile(path, 4_000)
    for number in range(lines):
        file.append(b"%d %d\n" % (writer, number))


def test_rotation_by_several_processes_loses_no_line(tmp_path: Path) -> None:
    path, lines = tmp_path / "crawl.log", 600
    writers = [multiprocessing.get_context("fork").Process(target=_write, args=(path, n, lines)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    files = [file for number in range(KEPT, 0, -1) if (file := numbered(path, number)).exists()]
    assert len(files) >= 2
    found = [tuple(map(int, line.split())) for file in (*files, path) for line in file.read_text().splitlines()]
    for writer in range(3):
        assert sorted(n for w, n in found if w == writer) == list(range(lines))


def test_only_the_last_numbered_files_are_kept(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "crawl.log", 10)
    for number in range(KEPT + 5):
        file.append(b"line %5d\n" % number)
    assert len(list(tmp_path.iterdir())) == KEPT + 1
    assert (tmp_path / "crawl.log.1").read_bytes() == b"line %5d\n" % (KEPT + 3)


def test_a_log_in_another_format_is_set_aside(tmp_path: Path) -> None:
    EventLog(tmp_path).note("info", "crawl_began", "text")
    begin_log(tmp_path, "json")
    assert (tmp_path / "crawl.log").exists()
    begin_log(tmp_path, HERITRIX)
    assert not (tmp_path / "crawl.log").exists()
    EventLog(tmp_path, log_format=HERITRIX).note("info", "crawl_resumed", "text")
    (tmp_path / "crawl.log").write_text("2026-11-18T13:32:33.804Z   200\n")
    assert [path.name for path in event_files(tmp_path)] == ["events.log", "crawl.log.1"]
    begin_log(tmp_path, "json")
    time.sleep(0.002)
    EventLog(tmp_path).note("info", "crawl_resumed", "text")
    assert [path.name for path in event_files(tmp_path)] == ["crawl.log", "events.log", "crawl.log.2"]


def test_the_guide_lists_every_event_at_its_level() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "how-to" / "monitoring.md").read_text()
    rows = {level: next(row for row in page.splitlines() if row.startswith(f"| {level} |")) for level in LEVELS}
    sources = "".join(path.read_text() for path in (root / "src" / "trapline").rglob("*.py"))
    noted = re.findall(r'\.note\(\s*"([a-z]+)", "([a-z_]+)"', sources)
    actions = [("debug" if action == EXPORT_SITES else "info", f"action_{action}") for action in ACTIONS]
    assert len(noted) > 15
    others = [("warning", "action_refused"), ("info", "crawl_resized"), ("debug", "fetch"), ("debug", "robots")]
    for level, event in (*noted, *actions, *others):
        assert f"`{event}`" in rows[level]


def test_a_crawl_of_a_hostile_site_logs_its_events_and_no_line_per_page(tmp_path: Path) -> None:
    with hostile_site() as server:
        seed = f"http://{ADDRESS}:{server.port}/"
        seen = crawled(tmp_path / "c", [seed], {}, scope="host", backoff_s=0.0, retries=0)
    written = (tmp_path / "c" / "crawl.log").read_bytes()
    assert written.isascii()
    events = events_of(tmp_path / "c" / "crawl.log")
    kinds = [event["event"] for event in events]
    assert (kinds[0], kinds[-1]) == ("crawl_began", "crawl_ended")
    assert "snapshot" in kinds
    assert "fetch" not in kinds and len(kinds) < len(seen.rows("select 1 from fetch"))
    ended = events[-1]
    assert (ended["stopped_by"], ended["pages"]) == (seen.summary["stopped_by"], seen.summary["pages_fetched"])
    assert ADDRESS in events[0]["text"]


@slow
def test_a_resumed_crawl_logs_what_has_changed(tmp_path: Path) -> None:
    with hostile_site() as server:
        crawled(tmp_path / "c", [f"http://{ADDRESS}:{server.port}/"], {}, scope="host", backoff_s=0.0, max_pages=1)
        resume_crawl(tmp_path / "c", silence(), max_pages=2.0, connections=7)
    events = {event["event"]: event for event in events_of(tmp_path / "c" / "crawl.log")}
    assert events["crawl_resumed"]["pages"] == 1
    assert events["options_changed"]["options"] == {"connections": 7, "max_pages": 2.0}


def test_slow_store_and_low_disk_are_noted_once_each_time(tmp_path: Path) -> None:
    events = CrawlEvents(EventLog(tmp_path))
    for second, is_full in enumerate([True] * 9 + [False] + [True] * 7):
        events._watch_store(is_full, float(second))
    for free in (2 * 10**9, 5 * 10**8, 4 * 10**8, 2 * 10**9, 3):
        events._watch_disk(free)
    kinds = [event["event"] for event in events_of(tmp_path / "crawl.log")]
    assert kinds == ["store_slow", "store_slow", "disk_low", "disk_low"]


@pytest.mark.parametrize(
    ("status", "event"), [("429 Too Many", "too_many_requests"), ("500 Down", "robots_unreachable")]
)
def test_a_site_in_trouble_is_a_warning(tmp_path: Path, status: str, event: str) -> None:
    def answer(host: str, target: str) -> bytes:
        is_wrong = (target == "/robots.txt") == (event == "robots_unreachable")
        head = f"HTTP/1.1 {status if is_wrong else '200 OK'}\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
        return head.encode()

    with small_server(answer, (ADDRESS,)) as server:
        crawled(tmp_path / "c", [f"http://{ADDRESS}:{server.port}/"], {}, abandon=1, retries=0)
    found = {one["event"]: one for one in events_of(tmp_path / "c" / "crawl.log")}
    assert found[event]["site"] == f"http://{ADDRESS}:{server.port}"
    assert found[event]["level"] == found["site_abandoned"]["level"] == "warning"
    if event == "too_many_requests":
        assert (found[event]["status"], found[event]["wait_s"]) == (429, 1.0)
