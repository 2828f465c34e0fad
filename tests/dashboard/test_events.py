"""Events are found by level, kind, site and time, the newest first, in logs with hostile lines and after a rotation."""

import json
import math
import os
from pathlib import Path

import pytest

from tests.dashboard.dashboard_world import BEGAN, PAGES, made_folder, write
from trapline.crawler.files.event_log import EventLog
from trapline.dashboard.events import EventFilter, LogTail, events


def line(second: int, level: str = "info", event: str = "snapshot", text: str = "x", **fields: object) -> str:
    at = f"2026-11-18T10:{second // 60:02}:{second % 60:02}.000Z"
    return json.dumps({"at": at, "level": level, "event": event, "text": text, **fields}) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "crawl.log.2").write_text("".join(line(second) for second in range(100)))
    (tmp_path / "crawl.log.1").write_text("".join(line(second, event="action") for second in range(100, 200)))
    lines = [line(second, "warning", "site_failed", f"site {second}", site="b.example") for second in range(200, 210)]
    (tmp_path / "crawl.log").write_text(
        "".join(lines) + "not JSON\n[]\n" + line(210, "debug", "fetch") + '{"at": "2026'
    )
    return tmp_path


def test_numbers_that_json_does_not_have_and_names_of_strange_files(tmp_path: Path) -> None:
    (tmp_path / "crawl.log").write_text(line(1, pages=math.nan) + line(2).replace("}", ', "pages": 1e999}'))
    (tmp_path / "crawl.log.²").write_text(line(3))
    found = events(tmp_path, (), EventFilter(), 10)["events"]
    assert [event.get("pages") for event in found] == [None, None]
    assert json.dumps(found, allow_nan=False)


def seconds(found: list[dict[str, object]]) -> list[int]:
    times = [float(str(event["at"])) for event in found]
    return [round(at - 1_794_996_000.0) for at in times]


def test_pages_of_events_go_back_through_all_files(folder: Path) -> None:
    seen, before = list[int](), None
    for _ in range(10):
        page = events(folder, [folder], EventFilter("info", before=before), 25)
        seen += seconds(page["events"])
        before = page["next"]
        if before is None:
            break
    assert seen == list(range(209, -1, -1)) and "action" in events(folder, [], EventFilter(), 200)["kinds"]


def test_events_are_found_after_each_change_of_the_format(tmp_path: Path) -> None:
    tail = LogTail(tmp_path)
    (tmp_path / "crawl.log.2").write_text(line(1))
    (tmp_path / "events.log").write_text(line(2))
    (tmp_path / "crawl.log.1").write_text("2026-11-18T10:00:02.804Z   200\n")
    assert tail() == [] and seconds(events(tmp_path, [], EventFilter(), 9)["events"]) == [2, 1]
    (tmp_path / "crawl.log").write_text(line(3))
    assert seconds(tail()) == [3] and seconds(events(tmp_path, [], EventFilter(), 9)["events"]) == [3, 2, 1]


def test_events_of_one_moment_stay_on_one_page(tmp_path: Path) -> None:
    (tmp_path / "crawl.log").write_text("".join(line(second // 4) for second in range(12)))
    first = events(tmp_path, [], EventFilter(), 2)
    assert seconds(first["events"]) == [2, 2, 2, 2]
    assert seconds(events(tmp_path, [], EventFilter(before=first["next"]), 2)["events"]) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (EventFilter("debug"), 211),
        (EventFilter("info"), 210),
        (EventFilter("warning"), 10),
        (EventFilter("error"), 0),
        (EventFilter("info", kind="action"), 100),
        (EventFilter("info", site="b.exam"), 10),
        (EventFilter("info", site="site 207"), 1),
    ],
)
def test_filters(folder: Path, wanted: EventFilter, count: int) -> None:
    assert len(events(folder, [], wanted, 1000)["events"]) == count


def test_failed_fetches_are_events_and_so_are_abandoned_sites_of_a_crawl_without_a_log(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "one")
    write(folder, "insert into abandoned_site values (1, ?, 'visits', 'no answer')", BEGAN + 5.5)
    found = events(folder, [folder], EventFilter(), 100)["events"]
    failed = [event for event in found if event["event"] == "fetch_failed"]
    assert len(failed) == PAGES // 10 and failed[0]["status"] == 429 and failed[0]["url"].endswith("/59")
    (gone,) = (event for event in found if event["event"] == "site_abandoned")
    assert gone["site"] == "http://b.example" and found == sorted(found, key=lambda event: -event["at"])
    EventLog(folder).note("warning", "site_abandoned", "http://b.example was abandoned")
    assert (
        sum(event["event"] == "site_abandoned" for event in events(folder, [folder], EventFilter(), 100)["events"]) == 1
    )


def test_the_tail_of_the_log_gives_each_line_once_also_after_a_rotation(tmp_path: Path) -> None:
    tail, log = LogTail(tmp_path), EventLog(tmp_path, "debug")
    assert tail() == []
    log.note("info", "first", "x")
    assert [event["event"] for event in tail()] == ["first"] and tail() == []
    with (tmp_path / "crawl.log").open("a") as file:
        file.write(line(1, event="second")[:20])
        file.flush()
        assert tail() == []
        file.write(line(1, event="second")[20:])
    log.note("debug", "fetch", "x")
    assert [event["event"] for event in tail()] == ["second"]
    os.rename(tmp_path / "crawl.log", tmp_path / "crawl.log.1")
    log.note("error", "third", "x")
    assert [event["event"] for event in tail()] == ["third"]


def test_pages_that_are_not_found_hide_no_other_failures(tmp_path: Path) -> None:
    folder = made_folder(tmp_path)
    write(folder, "update fetch set status = 404 where status = 429 and page < 50")

    def statuses(level: str) -> list[int]:
        found = events(folder, [folder], EventFilter(level), 100)["events"]
        return [event["status"] for event in found if event["event"] == "fetch_failed"]

    assert statuses("info") == [429] and statuses("debug") == [429, 404, 404, 404, 404, 404]


def test_a_429_that_the_log_names_is_one_event(tmp_path: Path) -> None:
    made_folder(tmp_path)
    failed = events(tmp_path, [tmp_path], EventFilter(), 100)["events"]
    last = next(event for event in failed if event["event"] == "fetch_failed")
    logged = line(0, "warning", "too_many_requests", "asks to wait", url=last["url"], status=last["status"])
    (tmp_path / "crawl.log").write_text(logged)
    found = events(tmp_path, [tmp_path], EventFilter(), 100)["events"]
    assert [event["event"] for event in found if event.get("url") == last["url"]] == ["too_many_requests"]
    assert last in events(tmp_path, [tmp_path], EventFilter(kind="fetch_failed"), 100)["events"]
