"""A Python program receives the pages of a crawl as they come, slows it down, stops it, and continues it from its folder."""

import asyncio
import gzip
import logging
import math
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.small_server import NOT_FOUND, SmallServer, moved, page, small_server, text
from trapline import crawl
from trapline.api.keyword_errors import as_keywords
from trapline.cli.crawl.options import SECTIONS, SETTINGS
from trapline.cli.options.values import Number
from trapline.crawler.engine.page_stream import MOST_READY
from trapline.crawler.engine.settings import CrawlSettings
from trapline.crawler.handler.page import FailedFetch, Page
from trapline.errors import ConfigError
from trapline.setting_bounds import BOUNDS

PAGES = 1000
OPTIONS: dict[str, Any] = {"allow_private": True, "delay": 0, "pause": 0, "strategy": "breadth-first"}


def tree(host: str, target: str) -> bytes:
    """Answer with a page of a binary tree of PAGES pages."""
    if not target[1:].isdecimal() and target != "/":
        return NOT_FOUND
    number = int(target[1:] or 0)
    return page(*(f"/{child}" for child in (2 * number + 1, 2 * number + 2) if child < PAGES))


@pytest.fixture
def server() -> Iterator[SmallServer]:
    with small_server(tree, ("127.0.0.1",)) as found:
        yield found


def home(server: SmallServer) -> str:
    return f"http://127.0.0.1:{server.port}/"


def numbers(pages: list[Page]) -> list[int]:
    return [int(one.final_url.rpartition("/")[2] or 0) for one in pages]


# ---- iteration


def test_for_and_async_for_receive_every_page_once(server: SmallServer, tmp_path: Path) -> None:
    async def received() -> list[Page]:
        return [one async for one in crawl(home(server), **OPTIONS)]

    for pages in (list(crawl([home(server)], **OPTIONS)), asyncio.run(received())):
        assert sorted(numbers(pages)) == list(range(PAGES))
        for one, number in zip(pages, numbers(pages), strict=True):
            assert one.depth == (number + 1).bit_length() - 1
            parent = f"{home(server)}{(number - 1) // 2 or ''}" if number else ""
            assert one.referrer == parent
            assert one.url == one.final_url and one.status == 200 and one.content_type == "text/html"


def test_several_crawls_run_at_the_same_time(server: SmallServer) -> None:
    async def received() -> list[int]:
        return numbers([one async for one in crawl(home(server), **OPTIONS)])

    async def all_of_them() -> list[list[int]]:
        return await asyncio.gather(*(received() for _ in range(3)))

    assert [sorted(one) for one in asyncio.run(all_of_them())] == [list(range(PAGES))] * 3


def test_a_crawl_without_a_folder_writes_no_file(
    server: SmallServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    begun = crawl(home(server), max_pages=50, **OPTIONS)
    assert len(list(begun)) == 50
    assert begun.summary is not None and begun.summary["stopped_by"] == "max-pages"
    assert begun.summary["pages_fetched"] == 50 and not list(tmp_path.iterdir())


def test_break_stops_the_crawl_and_leaves_a_folder_that_resumes(server: SmallServer, tmp_path: Path) -> None:
    slow = OPTIONS | {
        "delay": 0.01,
        "per_connection": 1,
    }  # else the crawl may end before a busy machine comes to the tenth page
    begun = crawl(home(server), output=tmp_path / "out", **slow)
    for count, _ in enumerate(begun, 1):
        if count == 10:
            break
    assert begun.summary is not None and begun.summary["stopped_by"] == "stopped"
    assert 10 <= begun.summary["pages_fetched"] < PAGES
    rest = list(crawl(resume=tmp_path / "out", delay=0, per_connection=10))
    assert len(rest) == PAGES - 9  # the page at which the loop was left comes again
    assert all(one.referrer for one in rest)
    assert not list(crawl(resume=tmp_path / "out"))


def test_pages_on_disk_that_were_not_received_come_after_a_resume_as_they_would_have_come(tmp_path: Path) -> None:
    """Among them are identical bodies, of which the archive has one, a page behind two redirects, and coded ones."""
    same = "<p>" + "the same words " * 100

    def web(host: str, target: str) -> bytes:
        if target == "/":
            return page("/a?1", "/a?2", "/moved", "/gone", "/zip")
        if target.startswith("/a"):
            return text(same)
        if target == "/zip":
            body = gzip.compress(b"<title>t</title><base href=/x/><a href=y>y</a>")
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
            return head.encode() + body
        return moved("/moved2") if target == "/moved" else moved("/there") if target == "/moved2" else page()

    def known(one: Page) -> tuple[Any, ...]:
        origin = (one.url, one.requested_url, one.referrer, one.depth)
        return (*origin, one.status, one.headers, one.body, one.text, one.title, one.links, one.content_type)

    failed: list[FailedFetch] = []
    with small_server(web, ("127.0.0.1",)) as server:
        whole = list(crawl(home(server), on_error=failed.append, **OPTIONS))
        for _ in crawl(home(server), output=tmp_path / "out", max_pages=len(whole) + 2, **OPTIONS):
            time.sleep(1.0)  # the crawl fetches the others meanwhile
            break
        asked = len(server.log)
        rest = list(crawl(resume=tmp_path / "out"))
        assert len(server.log) == asked
    assert sorted(map(known, rest)) == sorted(map(known, whole)) and len(whole) == 7
    assert any(one.requested_url.endswith("/moved") and one.url.endswith("/there") for one in rest)
    assert math.isnan(rest[0].quality)


def test_an_exception_in_the_loop_stops_the_crawl_and_reaches_the_caller(server: SmallServer, tmp_path: Path) -> None:
    async def fails() -> None:
        async for one in crawl(home(server), output=tmp_path / "out", **OPTIONS):
            raise ZeroDivisionError(one.url)

    with pytest.raises(ZeroDivisionError, match=home(server)):
        asyncio.run(fails())
    assert list(crawl(resume=tmp_path / "out"))


def test_break_in_async_for_ends_before_the_event_loop_does(server: SmallServer, tmp_path: Path) -> None:
    begun = crawl(home(server), output=tmp_path / "out", **OPTIONS)

    async def broken_off() -> None:
        async for _ in begun:
            break

    asyncio.run(broken_off())
    assert begun.summary is not None and (tmp_path / "out" / "summary.json").exists()


def test_a_crawl_stops_from_another_thread(server: SmallServer) -> None:
    begun = crawl(home(server), **OPTIONS)
    for count, _ in enumerate(begun, 1):
        if count == 5:
            stopping = threading.Thread(target=begun.stop)
            stopping.start()
            stopping.join()
    assert begun.summary is not None and begun.summary["stopped_by"] == "stopped" and count < PAGES


def test_a_crawl_that_is_stopped_before_it_begins_fetches_nothing(server: SmallServer) -> None:
    begun = crawl(home(server), **OPTIONS)
    begun.stop()
    assert not list(begun) and begun.summary is not None and begun.summary["stopped_by"] == "stopped"


SLOW_S = 1.5


def slow_tree(host: str, target: str) -> list[bytes | float]:
    """Answer the second page slowly, so that a crawl that is stopped has to wait for it."""
    return [SLOW_S if target == "/1" else 0.0, tree(host, target)]


def test_async_with_does_not_block_the_event_loop_while_the_crawl_ends() -> None:
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)

    async def broken_off(url: str) -> None:
        beating = asyncio.create_task(beat())
        async with crawl(url, **OPTIONS) as begun:
            async for _ in begun:
                break
        assert begun.summary is not None
        beating.cancel()

    with small_server(slow_tree, ("127.0.0.1",)) as server:
        asyncio.run(broken_off(home(server)))
    assert longest < SLOW_S / 2


def test_other_tasks_have_their_turn_while_a_slow_program_never_waits_for_pages(server: SmallServer) -> None:
    received: list[Page] = []

    async def receive(url: str) -> None:
        async for one in crawl(url, **OPTIONS):
            received.append(one)
            time.sleep(0.005)  # slower than the crawl: the next page is always ready

    async def cancelled(url: str) -> None:
        task = asyncio.create_task(receive(url))
        while len(received) < 20:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled(home(server)))
    assert len(received) < PAGES / 2


def test_a_cancelled_task_stops_its_crawl() -> None:
    async def cancelled(url: str) -> None:
        begun = crawl(url, **OPTIONS)

        async def receive() -> None:
            async for _ in begun:
                pass

        task = asyncio.create_task(receive())
        await asyncio.sleep(SLOW_S / 3)
        task.cancel()
        kept = await asyncio.gather(task, return_exceptions=True)  # with its traceback, and so with the iterator
        for _ in range(1000):
            if begun.summary is not None:
                break
            await asyncio.sleep(0.02)
        assert isinstance(kept[0], asyncio.CancelledError)
        assert begun.summary is not None and begun.summary["stopped_by"] == "stopped"

    with small_server(slow_tree, ("127.0.0.1",)) as server:
        asyncio.run(cancelled(home(server)))


def test_ctrl_c_stops_the_crawl_and_leaves_a_folder_that_resumes(server: SmallServer, tmp_path: Path) -> None:
    program = (
        "import signal, time\nfrom trapline import crawl\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # may be ignored by the parent process
        f"for page in crawl({home(server)!r}, output={str(tmp_path / 'out')!r}, **{OPTIONS!r}):\n"
        "    print(page.url, flush=True)\n    time.sleep(0.01)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline().startswith("http")
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT and error.rstrip().endswith("KeyboardInterrupt")
    assert (tmp_path / "out" / "summary.json").exists()
    assert len(list(crawl(resume=tmp_path / "out"))) >= PAGES - 1 - output.count("\n")


@pytest.mark.slow
def test_a_program_that_leaves_its_iteration_open_ends_and_its_folder_resumes(
    server: SmallServer, tmp_path: Path
) -> None:
    program = (
        "from trapline import crawl\n"
        f"pages = iter(crawl({home(server)!r}, output={str(tmp_path / 'out')!r}, **{OPTIONS!r}))\nprint(next(pages))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("Page(") and not done.stderr
    assert sorted(numbers(list(crawl(resume=tmp_path / "out")))) == list(range(PAGES))


def test_a_slow_program_holds_the_crawl_back(server: SmallServer) -> None:
    """The server sees only as many requests as the stream holds, and those under way."""
    begun = crawl(home(server), connections=1, **OPTIONS)
    for count, _ in enumerate(begun, 1):
        if count == 1:
            most = 0
            end = time.monotonic() + 20.0
            while time.monotonic() < end and most < MOST_READY:
                time.sleep(0.05)
                most = len(server.log)
            time.sleep(0.5)
            assert MOST_READY <= len(server.log) < 2 * MOST_READY + 200
    assert count == PAGES


def test_a_crawl_is_iterated_over_once(server: SmallServer) -> None:
    begun = crawl(home(server), max_pages=1, **OPTIONS)
    assert len(list(begun)) == 1
    with pytest.raises(ConfigError, match="once"):
        next(iter(begun))


# ---- hooks


def test_run_calls_on_page_and_goes_on_after_its_exceptions(
    server: SmallServer, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Page] = []

    def handle(one: Page) -> None:
        seen.append(one)
        if len(seen) == 3:
            raise ValueError("three")

    begun = crawl(home(server), on_page=handle, max_pages=100, **OPTIONS)
    with caplog.at_level(logging.ERROR, "trapline"):
        assert begun.run()["pages_fetched"] == 100
    assert len(seen) == 100 and begun.handler_errors == 1
    assert seen[2].final_url in caplog.text and "ValueError: three" in caplog.text


def test_run_async_awaits_coroutines(server: SmallServer) -> None:
    seen: list[str] = []

    async def handle(one: Page) -> None:
        await asyncio.sleep(0)
        seen.append(one.url)

    assert asyncio.run(crawl(home(server), on_page=handle, max_pages=20, **OPTIONS).run_async())["pages_fetched"] == 20
    assert len(seen) == 20
    with pytest.raises(ConfigError, match="run_async"):
        crawl(home(server), on_page=handle, **OPTIONS).run()


def test_accept_rejects_urls_and_its_exceptions_reject_them_too(server: SmallServer) -> None:
    def odd(url: str) -> bool:
        return int(url.rpartition("/")[2]) % 2 == 1  # fails for the home page, which nothing links to

    begun = crawl(home(server), accept=odd, **OPTIONS)
    assert set(numbers(list(begun))) == {0, *(2**n - 1 for n in range(1, 10))}
    assert begun.summary is not None and begun.summary["rejected_links"]["accept"] > 0


def test_quality_decides_which_links_are_followed_first() -> None:
    """/0 and /1 lead to ten pages each. The quality of a page is that of the pages that it leads to."""

    def web(host: str, target: str) -> bytes:
        if target == "/":
            return page("/0", "/1")
        return page(*(f"{target}{digit}" for digit in range(10))) if len(target) == 2 else page()

    def digits(one: Page) -> float:
        if one.url.endswith("/05"):
            raise ValueError("five")
        return 1.0 if one.url.rpartition("/")[2].startswith("1") else 0.5

    with small_server(web, ("127.0.0.1",)) as server:
        begun = crawl(home(server), quality=digits, connections=1, **OPTIONS | {"strategy": "quality"})
        pages = list(begun)
    order = [one.url.rpartition("/")[2] for one in pages]
    assert order[:3] == ["", "0", "1"] and order[3:13] == [f"1{digit}" for digit in range(10)]
    assert {one.quality for one in pages} == {0.0, 0.5, 1.0}
    assert begun.summary is not None and begun.summary["quality"] == sum(one.quality for one in pages)


def test_a_crawl_with_a_quality_function_is_resumed_with_one(server: SmallServer, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    list(crawl(home(server), output=folder, quality=lambda one: 1.0, max_pages=5, **OPTIONS | {"strategy": "quality"}))
    with pytest.raises(ConfigError, match="needs the function `quality` again"):
        list(crawl(resume=folder, max_pages=10))
    assert len(list(crawl(resume=folder, quality=lambda one: 1.0, max_pages=10))) == 5


def test_a_single_text_is_one_pattern(server: SmallServer) -> None:
    assert set(numbers(list(crawl(home(server), exclude="/2$", max_pages=20, **OPTIONS)))).isdisjoint({2})


def test_hooks_that_are_not_awaited_cannot_be_coroutine_functions() -> None:
    async def hook(_: object) -> bool:
        return True

    for name in ("accept", "on_error", "quality"):
        with pytest.raises(ConfigError, match=f"{name} must be an ordinary function"):
            crawl("x.test", **{name: hook})


def test_one_partition_of_a_crawl_is_not_resumed_alone(server: SmallServer, tmp_path: Path) -> None:
    list(crawl(home(server), output=tmp_path / "out", max_pages=1, **OPTIONS))
    with closing(sqlite3.connect(tmp_path / "out" / "crawl.db")) as database, database:
        database.execute("insert into meta values ('partition', '0 of 2')")
    with pytest.raises(ConfigError, match="is one partition of a crawl of several processes"):
        list(crawl(resume=tmp_path / "out", max_pages=30))


def test_failed_fetches_go_to_on_error() -> None:
    def web(host: str, target: str) -> bytes:
        return page("/gone", "/here") if target == "/" else page() if target == "/here" else NOT_FOUND

    failed: list[FailedFetch] = []
    with small_server(web, ("127.0.0.1",)) as server:
        pages = list(crawl(home(server), on_error=failed.append, **OPTIONS))
    assert len(pages) == 2
    (gone,) = failed
    assert (gone.status, gone.error, gone.depth) == (404, "http", 1)
    assert gone.url.endswith("/gone") and gone.referrer.endswith("/")


# ---- pages


def test_a_page_is_decoded_and_knows_where_it_came_from() -> None:
    text = (
        "<html><head><title>\n Grüße &amp; mehr </title></head><body><a href='b?x=1'>b</a> <a href='#top'>t</a></body>"
    )
    coded = gzip.compress(text.encode("latin-1"))
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(coded)}\r\nContent-Type: text/html; charset=ISO-8859-1\r\n"
        "Content-Encoding: gzip\r\nX-Test: a\r\nX-Test: b\r\n\r\n"
    )

    def web(host: str, target: str) -> bytes:
        if target == "/":
            return moved("/there/")
        return head.encode() + coded if target == "/there/" else NOT_FOUND

    with small_server(web, ("127.0.0.1",)) as server:
        (found,) = crawl(home(server), max_pages=2, **OPTIONS)
        assert (found.requested_url, found.url) == (home(server), f"{home(server)}there/")
        assert found.final_url == found.url
        assert found.referrer == home(server) and found.depth == 1
        assert found.body == text.encode("latin-1") and found.text == text and found.title == "Grüße & mehr"
        assert found.visible_text == "b t"
        assert found.headers["x-test"] == "a, b" and found.is_html
        assert found.links == [f"{home(server)}there/b?x=1", f"{home(server)}there/"]
        assert 0.0 <= found.first_byte_seconds <= found.seconds and found.changed is None and found.truncated == ""


# ---- settings


def test_settings_have_the_names_and_defaults_of_the_command_line() -> None:
    defaults = {field: default for section in SECTIONS for _, field, _, default, _ in section.rows}
    settings = {one.name: one.default for one in fields(CrawlSettings)}
    assert (
        settings.keys() - {"site"} == SETTINGS.keys()
    )  # the settings of single sites are tables in a file for --config
    for setting, field in SETTINGS.items():
        assert setting == "refresh_option" or settings[setting] == defaults[field], setting


def test_settings_have_the_bounds_of_the_command_line() -> None:
    kinds = {field: kind for section in SECTIONS for _, field, kind, _, _ in section.rows}
    bounds = {setting: kinds[field] for setting, field in SETTINGS.items() if isinstance(kinds[field], Number)}
    assert {
        setting: (kind._least, kind._most, kind._kind is int, "unlimited" in kind._words)
        for setting, kind in bounds.items()
    } == {name: (one.least, one.most, one.is_whole, one.may_be_infinite) for name, one in BOUNDS.items()}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seeds": []}, "no seed URL"),
        ({"seeds": "ftp://x"}, "not an http or https URL"),
        ({"seeds": "x.test", "max_page": 1}, "max_pages"),
        ({"seeds": "x.test", "resume": "y"}, "keeps its seeds"),
        ({"resume": "y", "seed": 3}, "seed cannot change"),
        ({"seeds": "x.test", "http": "3"}, "1.1"),
        ({"seeds": "x.test", "delay": -1}, "delay"),
        ({"seeds": "x.test", "connections": 0}, "connections: 0 is not between 1 and 100000"),
        ({"seeds": "x.test", "timeout": 0}, "timeout: 0 is not between 0.1 and 1000000000"),
        ({"resume": "y", "max_pages": 0}, "max_pages: 0 is not between 1 and"),
        ({"resume": "y", "quality": "zipf"}, "quality cannot change"),
        ({"seeds": "x.test", "max_pages": 1.5}, "max_pages: 1.5 is not a whole number"),
        ({"seeds": "x.test", "delay": math.nan}, "delay: nan is not between 0 and"),
        ({"seeds": "x.test", "delay": "5s"}, "delay: '5s' is not a number of seconds"),
        ({"seeds": "x.test", "connections": True}, "connections: True is not a whole number"),
        ({"seeds": "x.test", "http": 1.1}, "http: 1.1 is not a text"),
    ],
)
def test_mistakes_are_reported_when_the_crawl_is_made(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        crawl(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seeds": "http://127.0.0.1:1/"}, "is a loopback address; give allow_private=True to connect"),
        ({"seeds": "http://nowhere.invalid/", "hosts": {"nowhere.invalid": []}}, "give its address in a file with hosts=..."),
        ({"seeds": "x.test", "no_robots": True}, "no_robots=True works for your own hosts only; name these hosts with own_hosts=HOST"),
        ({"seeds": "x.test", "proxy_names": True}, "proxy_names=True has no effect without a proxy; also give proxy=URL"),
        ({"seeds": "x.test", "batch_ahead": True}, "batch_min_active have no effect without batches; also give batch=..."),
        ({"seeds": "x.test", "scope": "hots"}, "scope is 'hots'"),
        ({"seeds": "x.test", "refresh": True, "refresh_rate": 0.0}, "refresh_rate=0 would refetch no page; give a rate above 0"),
        ({"resume": "y", "seed": 3}, "seed cannot change with resume=...: "),
    ],
)  # fmt: skip
def test_errors_name_keywords_and_no_options(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        list(crawl(**given))
    assert said in str(raised.value) and "--" not in str(raised.value)


def test_errors_keep_commands_and_options_without_a_keyword() -> None:
    command = "continue it with trapline crawl --resume c"
    assert as_keywords(command) == command
    assert as_keywords("/my --folder--delay: with --processes 4") == "/my --folder--delay: with --processes 4"
    assert as_keywords("continue with --resume c/d, or omit --header") == "continue with resume=c/d, or omit header"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scope": "hots"}, "host"),
        ({"refresh": True}, "folder"),
        ({"strategy": "opicc"}, "opic"),
    ],
)
def test_mistakes_in_settings_are_reported_when_the_crawl_begins(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        list(crawl("http://127.0.0.1:9/", allow_private=True, **given))
