"""The dashboard answers for crawls in every state, never imports compiled code, and ends at once with open streams."""

import asyncio
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.dashboard.dashboard_world import BEGAN, PAGES, World, made_folder, made_partitions, served, write
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.files import site_table
from trapline.crawler.files.event_log import EventLog
from trapline.crawler.files.status_file import StatusFile
from trapline.dashboard.detail_views import partitions
from trapline.dashboard.metrics import Scraping, exposition
from trapline.dashboard.server import DashboardServer
from trapline.dashboard.settings import DashboardSettings
from trapline.dashboard.watched_crawl import WatchedCrawl, WatchedSites
from trapline.errors import ConfigError

VIEWS = ("overview", "history", "sites", "sites/0", "partitions", "events")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, as the process that crawls it does."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, f"{os.getpid()} {socket.gethostname()} crawled\n".encode())
    try:
        yield
    finally:
        os.close(descriptor)


def all_views(world: World) -> dict[str, Any]:
    return {view: world.get(f"/api/0/{view}") for view in VIEWS}


def test_a_crawl_that_has_ended_is_shown_with_its_numbers(tmp_path: Path) -> None:
    with served(made_folder(tmp_path / "one")) as world:
        found = all_views(world)
        overview, (listed,) = found["overview"], world.get("/api/crawls")
    assert (listed["name"], listed["state"], listed["partitions"], listed["can_act"]) == ("one", "ended", 1, True)
    assert overview["state"] == "ended" and overview["stopped_by"] == "drained" and not overview["live"]
    assert overview["totals"]["pages"] == PAGES and overview["totals"]["sites"] == 2
    assert overview["processor"] == {"loop": 24 / 60, "store": 6 / 42} and overview["disk"]["warc"] == 1234
    assert overview["rejected"] == {"host": 5} and overview["speed"]["sentence"]
    assert found["history"]["pages"] == [0, *range(1, PAGES + 1)] and found["history"]["known"][0] == PAGES
    assert [row["robots"] for row in found["sites"]["rows"]] == ["timeout", "200"]
    assert found["partitions"]["partitions"][0]["share"] == 1.0 and len(found["events"]["events"]) == PAGES // 10


def test_the_page_of_a_site_has_its_settings_its_robots_file_and_its_fetches(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "one")
    write(folder, "insert into abandoned_site values (1, ?, 'visits', 'no answer')", BEGAN)
    with served(folder) as world:
        first, second = world.get("/api/0/sites/0"), world.get("/api/0/sites/1")
        assert world.ask("/api/0/sites/2").status == 404
    assert first["settings"] == {"delay_s": 3.0} and first["robots_file"]["error"] == "timeout"
    assert second["settings"] == {} and second["robots_file"]["crawl_delay_s"] == 7.0
    assert second["state"] == "abandoned" and second["abandoned"]["why"] == second["reason"] == "no answer"
    assert first["by_status"] == {"200": PAGES // 2} and second["by_status"] == {"200": 24, "429": 6}
    assert second["recent"][0]["url"] == "http://b.example/59" and second["is_complete"] and second["since"] == BEGAN


def test_sites_are_searched_sorted_and_filtered(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "one", [f"http://s{site}.example" for site in range(12)])
    rows = np.zeros(12, site_table.ROW)
    rows["waiting"], rows["budget"] = range(12), -1
    (folder / "live").mkdir()
    site_table._save(folder / "live" / "sites", site_table.SiteTable("live", BEGAN, 0.0, rows))
    with served(folder) as world:
        page = world.get("/api/0/sites?q=S1&sort=waiting&dir=desc&n=2")
        assert [row["origin"] for row in page["rows"]] == ["http://s11.example", "http://s10.example"]
        assert (page["matching"], page["total"], page["source"]) == (3, 12, "live")
        assert world.get("/api/0/sites?filter=waiting")["matching"] == 11
        for wrong in ("sort=x", "dir=up", "filter=x", "n=0", "n=-1", "from=x"):
            assert world.ask(f"/api/0/sites?{wrong}").status == 400


def test_a_running_crawl_without_reports_is_shown_by_its_commits(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "one", stopped_by="")
    with held(folder), served(folder) as world:
        overview = all_views(world)["overview"]
    assert overview["state"] == "running" and not overview["live"] and overview["rates"]["pages_per_s"] == 1.0
    assert [goal["goal"] for goal in overview["goals"]] == ["waiting-pages"]


def test_a_crawl_that_was_broken_off_says_so(tmp_path: Path) -> None:
    with served(made_folder(tmp_path / "one", stopped_by="")) as world:
        overview = world.get("/api/0/overview")
    assert overview["state"] == "broken off" and "broken off" in overview["speed"]["sentence"]


def test_a_crawl_that_has_not_begun_is_new_until_it_begins(tmp_path: Path) -> None:
    with served(tmp_path / "one") as world:
        assert world.get("/api/0/overview")["state"] == "new"
        assert world.get("/api/0/sites")["rows"] == [] and world.get("/api/0/history")["pages"] == [0.0]
        assert world.ask("/api/0/sites/0").status == 404
        made_folder(tmp_path / "one")
        time.sleep(1.05)
        assert world.get("/api/0/overview")["state"] == "ended"


def test_partitions_are_shown_together_and_one_by_one(tmp_path: Path) -> None:
    with served(made_partitions(tmp_path / "one")) as world:
        found = all_views(world)
        assert world.get("/api/crawls")[0]["partitions"] == 3
    assert found["overview"]["totals"]["pages"] == 2 * PAGES and found["overview"]["connections"]["limit"] == 200
    states = [row["state"] for row in found["partitions"]["partitions"]]
    assert states == ["broken off", "broken off", "new"] and found["partitions"]["mode"] == "exchange"
    assert found["history"]["pages"][-1] == 2 * PAGES and found["sites"]["total"] == 6
    assert {row["id"] >> 32 for row in found["sites"]["rows"]} == {0, 1}


@pytest.mark.parametrize("damage", ["database", "progress", "options", "manifest"])
def test_a_damaged_folder_is_unreadable_and_says_why(tmp_path: Path, damage: str) -> None:
    folder = made_folder(tmp_path / "one")
    if damage == "database":
        (folder / "crawl.db").write_bytes(b"not a database" * 1000)
    elif damage == "progress":
        write(folder, "update progress set pages = 'many'")
    elif damage == "options":
        write(folder, "update meta set value = '{' where key = 'options'")
    else:
        (folder / "parallel.json").write_text('{"sizes": []}')
    with served(folder) as world:
        overview = world.get("/api/0/overview")
        assert overview["state"] == "unreadable" and str(folder) in overview["error"]
        assert all(world.ask(f"/api/0/{view}").status == 409 for view in VIEWS[1:])


def test_a_folder_without_write_permission_is_shown(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "one")
    folder.chmod(0o555)
    try:
        with served(folder) as world:
            assert all_views(world)["overview"]["totals"]["pages"] == PAGES
    finally:
        folder.chmod(0o755)


def test_unknown_crawls_paths_and_files_are_not_found(tmp_path: Path) -> None:
    with served(made_folder(tmp_path / "one")) as world:
        for path in ("/api/1/overview", "/api/x/overview", "/api/0/nothing", "/static/nothing.js", "/nothing"):
            assert world.ask(path).status == 404
        for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/static/views/../../app.py"):
            assert world.ask(path).status == 404
        sheet = world.ask("/static/page.css")
        assert sheet.headers["content-type"].startswith("text/css")
        assert world.ask("/static/page.css", headers={"If-None-Match": sheet.headers["etag"]}).status == 304


def test_the_stream_sends_the_overview_and_new_lines_of_the_log(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "one")
    with served(folder) as world:
        connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=20)
        connection.request("GET", "/api/0/stream")
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert next_event(answer, "status")["totals"]["pages"] == PAGES
        assert next_event(answer, "status")["state"] == "ended"  # the second frame: lines of the log count from now on
        EventLog(folder).note("info", "action", "paused\nby hand \u2028")
        (event,) = next_event(answer, "log")
        assert event["event"] == "action" and event["text"] == "paused\nby hand \u2028"
        connection.close()


def next_event(answer: http.client.HTTPResponse, name: str) -> Any:
    """Return the data of the next event with this name."""
    while True:
        kind = ""
        while line := answer.readline().rstrip(b"\n").decode():
            key, _, value = line.partition(": ")
            kind = value if key == "event" else kind
            if key == "data" and kind == name:
                return json.loads(value)


@contextmanager
def command(*words: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run `trapline dashboard` and yield the process and its URL."""
    code = "import sys; from trapline.cli import main; sys.argv[0] = 'trapline'; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "dashboard", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().rpartition(" ")[2].strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()


def test_ctrl_c_ends_the_command_although_a_stream_is_open(tmp_path: Path) -> None:
    with command(str(made_folder(tmp_path / "one")), "--listen", "127.0.0.1:0") as (process, url):
        connection = http.client.HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=20)
        connection.request("GET", "/api/0/stream")
        answer = connection.getresponse()
        next_event(answer, "status")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        answer.read()  # the stream has ended in order
        connection.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("DIR", "--listen", "nowhere"), "not HOST:PORT"),
        (("DIR", "--listen", "203.0.113.9:1"), "not an address of this machine"),
        (("nothing",), "no such folder; name the folder of a crawl"),
        (("DIR", "--token-file", "short"), "not a valid token"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, words: tuple[str, ...], message: str, capsys: Any) -> None:
    from trapline.cli import run

    folder = made_folder(tmp_path / "one")
    (tmp_path / "short").write_text("secret")
    given = [{"DIR": str(folder), "short": str(tmp_path / "short")}.get(word, word) for word in words]
    assert run(["dashboard", *given]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_the_server_and_its_readers_import_no_compiled_code(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "one")
    code = f"""
import sys
from pathlib import Path
from tests.dashboard.dashboard_world import served
with served(Path({str(folder)!r})) as world:
    for view in {VIEWS!r}:
        world.get("/api/0/" + view)
print("numba" in sys.modules, "trapline.frontier" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert found.stdout.split() == ["False", "False"]


def test_the_process_beside_a_crawl_ends_with_it(tmp_path: Path) -> None:
    settings = DashboardSettings((str(tmp_path / "later"),), ("127.0.0.1", 0), ("127.0.0.1", 0))
    words = [sys.executable, "-P", "-m", "trapline.dashboard"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(settings.to_line())
        process.stdin.flush()
        told = json.loads(process.stdout.readline())
        connection = http.client.HTTPConnection(told["pages"].removeprefix("http://").rstrip("/"), timeout=20)
        connection.request("GET", "/api/crawls")
        assert json.loads(connection.getresponse().read())[0]["state"] == "new"
        connection.close()
        assert told["metrics"].endswith("/metrics") and not told["metrics_token"]
        process.stdin.close()
        assert process.wait(20) == 0


def test_a_port_that_is_taken_is_an_error_of_the_option(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        line = DashboardSettings((str(tmp_path),), metrics=taken.getsockname()).to_line()
        with pytest.raises(ConfigError, match=r"--metrics 127\.0\.0\.1:\d+: address already in use"):
            DashboardServer(DashboardSettings.from_line(line))


@pytest.mark.slow
def test_jobs_explain_pages_and_predict_quality(tmp_path: Path) -> None:
    from tests.crawler.crawl_folder import simulated, write_crawl

    folder = write_crawl(tmp_path / "one", *simulated())
    shutil.rmtree(folder / "snapshot", ignore_errors=True)
    with served(folder) as world:
        site = world.until("/api/0/explain?url=s000003.example")
        assert site.status == 409 or site.json["lines"][0] == "http://s000003.example"
        assert "did you mean" in world.until("/api/0/explain?url=s00003.example").json["error"]
        curves = world.until("/api/0/quality").json["curves"]
        assert [curve["name"] for curve in curves] == ["this crawl"] * 2 + ["breadth-first, simulated"] * 2
        assert all(abs(curve["y"][-1] - 1.0) < 0.05 for curve in curves[:2])
        assert world.ask("/api/0/refresh").status == 404


def test_slow_and_endless_heads_keep_no_browser_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trapline.dashboard.server._SWEEP_S", 0.05)
    monkeypatch.setattr("trapline.signals.endpoint.connections.HEAD_S", 0.3)
    with served(made_folder(tmp_path / "c")) as world, ExitStack() as stack:

        def connected(sent: bytes) -> socket.socket:
            found = stack.enter_context(socket.create_connection(("127.0.0.1", world.port), timeout=20))
            found.sendall(sent)
            return found

        stream = connected(b"GET /api/0/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert stream.recv(15) == b"HTTP/1.1 200 OK"  # first: on a busy machine the server may read this head late
        slow = [connected(b"GET / HTTP/1.1\r\nHost: local") for _ in range(300)]
        assert world.ask("/api/crawls").status == 200
        assert slow[-1].recv(1) == b""  # the server has hung up
        endless = connected(b"GET / HTTP/1.1\r\n")
        with pytest.raises(OSError):
            for _ in range(1000):
                endless.sendall(b"X: " + b"x" * 10_000 + b"\r\n")
        assert stream.recv(1)  # a stream stays open, however long it lasts


def test_a_question_about_the_head_of_a_stream_is_answered_at_once(tmp_path: Path) -> None:
    with served(made_folder(tmp_path / "c")) as world:
        reply = world.ask("/api/0/stream", "HEAD")
        assert (reply.status, reply.headers["content-length"]) == (200, "0")


@pytest.mark.parametrize("path", ["/api/{}/overview", "/api/0/sites/{}"])
def test_a_number_of_any_length_in_a_path(tmp_path: Path, path: str) -> None:
    with served(made_folder(tmp_path / "c")) as world:
        assert [world.ask(path.format("9" * digits)).status for digits in (18, 19, 5000)] == [404, 404, 404]


def test_another_crawl_in_the_same_folder_has_its_own_sites(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "c", ["http://old.example", "http://older.example"])
    tables = WatchedSites(folder)
    assert len(asyncio.run(tables.index(running=True))) == 2
    shutil.rmtree(folder)
    made_folder(folder, ["http://new.example", "http://newer.example"])
    write(folder, "update meta set value = '1760009999.0' where key = 'created'")
    found = asyncio.run(tables.index(running=False)).page("", "origin", False, 0, 10)
    assert [row["origin"] for row in found["rows"]] == ["http://new.example", "http://newer.example"]


@pytest.mark.parametrize(
    "place", [("progress",), ("progress", "pages"), ("connections",), ("doing",), ("store",), ("at",)]
)
@pytest.mark.parametrize("value", [None, "x", [], 10**400, {"a": 1}])
def test_a_status_of_another_version_costs_only_what_it_says(
    tmp_path: Path, place: tuple[str, ...], value: Any
) -> None:
    folder, connections = made_folder(tmp_path / "c"), {"limit": 9, "now": {"fetching": 9}}
    progress = {**CrawlProgress(1.0, 61.0, 77, 0, 0, 0, 0, 0, 0, 0.0)._asdict(), "added_later": 1}
    status: dict[str, Any] = {"format": 1, "at": time.time(), "doing": "", "progress": progress, "store": None}
    status |= {"pages_per_s": 1.0, "bytes_per_s": 1.0, "connections": connections}
    crawl, file = WatchedCrawl(folder, "c"), StatusFile(folder)
    with held(folder):
        file.write(status)
        assert asyncio.run(WatchedCrawl(folder, "c").tick()).overview["totals"]["pages"] == 77
        inner = status
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        file.write(status)
        view = asyncio.run(crawl.tick())
        assert view.overview["state"] == "running" and view.reading is not None
        assert partitions(view.reading) and exposition({"c": view}, {}, "")
    file.close()


def test_pages_of_blocked_sites_are_in_no_estimate(tmp_path: Path) -> None:
    folder, file = made_folder(tmp_path / "c"), StatusFile(tmp_path / "c")
    progress = CrawlProgress(1.0, 61.0, 77, 0, 0, 1077, 1000, 9, 0, 0.0)._asdict()
    pace = {"limit": "delay", "text": "9 sites: at least 10 s for 400 pages", "pages": 400, "seconds": 10.0}
    status = {"format": 1, "at": time.time(), "progress": progress, "pages_per_s": 1.0, "bytes_per_s": 1.0}
    with held(folder):
        file.write({**status, "connections": {"limit": 9, "now": None, "pages": 400}, "pace": pace})
        (goal,) = asyncio.run(WatchedCrawl(folder, "c").tick()).overview["goals"]
    file.close()
    assert (goal["goal"], goal["of"], goal["seconds_left"]) == ("waiting-pages", 477, 10.0)


def test_a_folder_that_cannot_be_looked_at_is_unreadable(tmp_path: Path) -> None:
    crawl = WatchedCrawl(tmp_path / ("x" * 300), "c")  # fails as a folder does that belongs to another user
    assert "File name too long" in asyncio.run(crawl.tick()).overview["error"]
    Scraping([crawl])._read_new("c")
