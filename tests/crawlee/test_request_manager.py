"""Crawlee with our request manager: the promises of a request manager, and a real crawler in a process of its own."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from crawlee import Request
from crawlee.request_loaders import RequestList

from tests.effort import slow
from tests.scrapy.test_scheduler import PAGES, served
from trapline import ConfigError
from trapline.crawlee import FrontierRequestManager
from trapline.durable import NewPage
from trapline.frontier import Rules
from trapline.graph.generate import generate
from trapline.testweb import build_web, serve

ROOT = Path(__file__).parents[2]
FAST = Rules(delay_s=0.0, retries=10, backoff_s=0.0)


NOT_JSON = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


def manager(folder: Path) -> FrontierRequestManager:
    return FrontierRequestManager(folder / "f", "breadth-first", FAST)


def test_requests_are_kept_with_all_that_they_carry(tmp_path: Path) -> None:
    async def run() -> None:
        first = manager(tmp_path)
        given = Request.from_url(
            "http://a.example/1", label="shop", user_data={"n": [1, "x"]}, session_id="s", method="POST", payload=b"q"
        )
        added = await first.add_request(given)
        assert added is not None and not added.was_already_present
        again = await first.add_request(given)
        assert again is not None and again.was_already_present
        first.close()
        second = manager(tmp_path)
        found = await second.fetch_next_request()
        assert found is not None and found.unique_key == given.unique_key
        assert (found.label, found.user_data["n"], found.session_id) == ("shop", [1, "x"], "s")
        assert (found.method, found.payload) == ("POST", b"q")
        second.close()

    asyncio.run(run())


def test_a_request_is_finished_when_it_is_marked(tmp_path: Path) -> None:
    async def run() -> None:
        ours = manager(tmp_path)
        assert await ours.is_empty() and await ours.is_finished()
        await ours.add_requests(["http://a.example/1", "http://a.example/2", "http://a.example/1"])
        assert (await ours.get_total_count(), await ours.get_handled_count()) == (2, 0)
        first = await ours.fetch_next_request()
        assert first is not None and await ours.fetch_next_request() is None  # one request to a site at a time
        assert not await ours.is_finished()
        marked = await ours.mark_request_as_handled(first)
        assert marked is not None and marked.was_already_handled
        assert await ours.mark_request_as_handled(first) is None
        second = await ours.fetch_next_request()
        assert second is not None
        second.retry_count = 1
        await ours.reclaim_request(second)
        assert not await ours.is_finished() and not await ours.is_empty()
        again = await ours.fetch_next_request()
        assert again is not None and (again.unique_key, again.retry_count) == (second.unique_key, 1)
        await ours.mark_request_as_handled(again)
        assert await ours.is_finished() and await ours.get_handled_count() == 2
        await ours.purge()
        assert await ours.get_total_count() == 0
        await ours.drop()
        assert not (tmp_path / "f").exists()

    asyncio.run(run())


@pytest.mark.parametrize("in_child", [False, True])
def test_requests_that_a_handler_adds_are_links_of_its_page(tmp_path: Path, in_child: bool) -> None:
    """OPIC gives half of a page's cash to each of its two links. Crawlee marks a request in a child of the task that adds."""

    async def handled(ours: FrontierRequestManager, request: Request, *links: str) -> None:
        await ours.add_requests(links)
        mark = ours.mark_request_as_handled(request)
        await (asyncio.create_task(mark) if in_child else mark)

    async def run() -> None:
        ours = FrontierRequestManager(tmp_path / "f", "opic", FAST)
        await ours.add_requests(["http://a.example/", "http://b.example/"])
        one, other = await ours.fetch_next_request(), await ours.fetch_next_request()
        assert one is not None and other is not None
        tasks = [
            asyncio.create_task(handled(ours, one, "http://c.example/1")),
            asyncio.create_task(handled(ours, other, "http://c.example/2", "http://c.example/1")),
        ]
        await asyncio.gather(*tasks)
        best = await ours.fetch_next_request()
        assert best is not None and best.url == "http://c.example/1"  # 1 + 1 + 1/2 against 1 + 1/2
        ours.close()

    asyncio.run(run())


# ---- under attack


def attacked(check: Callable[[FrontierRequestManager], Awaitable[None]], folder: Path, rules: Rules = FAST) -> None:
    async def run() -> None:
        ours = FrontierRequestManager(folder / "f", "breadth-first", rules)
        try:
            await check(ours)
        finally:
            ours.close()

    asyncio.run(run())


async def fetched(ours: FrontierRequestManager) -> Request:
    request = await ours.fetch_next_request()
    assert request is not None
    return request


def test_a_request_that_is_reclaimed_more_often_than_the_rules_allow_is_not_lost(tmp_path: Path) -> None:
    """Crawlee alone says how often: by default up to three retries and ten rotations of sessions."""

    async def check(ours: FrontierRequestManager) -> None:
        await ours.add_request("http://a.example/")
        for number in range(15):
            request = await fetched(ours)
            assert request.retry_count == number
            request.retry_count += 1
            assert await ours.reclaim_request(request) and not await ours.is_finished()
        await ours.mark_request_as_handled(await fetched(ours))
        assert await ours.is_finished() and await ours.get_handled_count() == 1

    attacked(check, tmp_path, Rules(delay_s=0.0, retries=2, backoff_s=0.0))


def test_a_request_in_progress_is_not_handed_out_again_however_long_it_takes(tmp_path: Path) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        await ours.add_requests(["http://a.example/1", "http://a.example/2"])
        first = await fetched(ours)
        await asyncio.sleep(0.02)
        assert await ours.fetch_next_request() is None
        assert await ours.mark_request_as_handled(first) is not None
        assert (await fetched(ours)).url != first.url

    attacked(check, tmp_path, Rules(delay_s=0.0, lease_s=0.001))


def test_tasks_that_fetch_and_add_at_once_get_each_request_once(tmp_path: Path) -> None:
    seen: list[str] = []

    async def work(ours: FrontierRequestManager) -> None:
        while not await ours.is_finished():
            if (request := await ours.fetch_next_request()) is None:
                await asyncio.sleep(0.001)
                continue
            site, page = request.url.removeprefix("http://s").split(".example/")
            if int(page) < 16:
                links = [f"http://s{(int(site) + n) % 5}.example/{2 * int(page) + n}" for n in (1, 2)]
                await ours.add_requests([*links, *links])
            await asyncio.sleep(0)
            if int(page) % 3 == 0 and not request.retry_count:
                request.retry_count += 1
                await ours.reclaim_request(request)
            else:
                seen.append(request.url)
                assert await ours.mark_request_as_handled(request) is not None
                assert await ours.mark_request_as_handled(request) is None

    async def check(ours: FrontierRequestManager) -> None:
        await ours.add_request("http://s0.example/0")
        await asyncio.wait_for(asyncio.gather(*(work(ours) for _ in range(7))), 30.0)
        assert len(seen) == len(set(seen)) == await ours.get_total_count() == await ours.get_handled_count() > 30

    attacked(check, tmp_path)


@NOT_JSON
def test_bodies_and_user_data_come_back_after_a_restart(tmp_path: Path) -> None:
    data: dict[str, Any] = {"n": [1, 2.5, None, True], "text": "\0ü\U0001f600", "": {"deep": {}}}
    body = bytes(range(256))

    async def check(ours: FrontierRequestManager) -> None:
        given = Request.from_url("http://a.example/", method="POST", payload=body, user_data=data)
        given.user_data["moment"] = datetime(2026, 1, 2)  # type: ignore[assignment]
        given.session_rotation_count = 2
        await ours.add_requests([given, Request.from_url("http://b.example/", payload=b"", method="POST")])
        ours.close()
        ours._open()
        found = {request.url: request for request in [await fetched(ours), await fetched(ours)]}
        one, other = found["http://a.example/"], found["http://b.example/"]
        assert (one.payload, other.payload, one.session_rotation_count) == (body, b"", 2)
        kept = {**data, "moment": "2026-01-02T00:00:00"}  # JSON has no dates
        assert {name: one.user_data[name] for name in kept} == kept

    attacked(check, tmp_path)


@NOT_JSON
def test_a_request_that_cannot_be_kept_is_named_and_changes_nothing(tmp_path: Path) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        bad = Request.from_url("http://bad.example/")
        bad.user_data["soup"] = object()  # type: ignore[assignment]
        with pytest.raises(ConfigError, match=r"http://bad\.example/: the request cannot be written as JSON"):
            await ours.add_requests(["http://a.example/", bad])
        assert await ours.get_total_count() == 0
        await ours.add_request("http://a.example/")
        request = await fetched(ours)
        request.user_data["soup"] = object()  # type: ignore[assignment]
        with pytest.raises(ConfigError, match="cannot be written"):
            await ours.reclaim_request(request)
        del request.user_data["soup"]
        assert await ours.reclaim_request(request) and await fetched(ours)

    attacked(check, tmp_path)


def test_a_request_that_an_other_version_has_written_is_named_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        ours._frontier.add([NewPage("http://a.example/old", b'{"version": 0}', "old")])
        await ours.add_request("http://a.example/")
        assert (await fetched(ours)).url == "http://a.example/"
        assert "The request for http://a.example/old is lost" in caplog.text

    attacked(check, tmp_path)


def test_urls_and_keys_of_every_kind_are_kept(tmp_path: Path) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        long = f"http://long.example/{'x' * 2060}"  # more than a frontier takes by itself
        urls = [long, "http://a.example/#a", "http://a.example/#b", "http://[::1]:8080/", "http://ü.example/"]
        same = [
            Request.from_url("http://a.example/x", unique_key="one"),
            Request.from_url("http://b.example/y", unique_key="one"),
        ]
        again = Request.from_url("http://a.example/x", always_enqueue=True)
        await ours.add_requests([*(Request.from_url(url, keep_url_fragment=True) for url in urls), *same, again])
        found = []
        while not await ours.is_finished():
            found.append(request := await fetched(ours))
            await ours.mark_request_as_handled(request)
        assert {request.url for request in found} == {*urls, "http://a.example/x"} and len(found) == 7
        added = await ours.add_request(same[1])
        assert added is not None and (added.was_already_present, added.was_already_handled) == (True, True)

    attacked(check, tmp_path)


def test_many_requests_at_once_let_other_tasks_run_and_are_all_kept(tmp_path: Path) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        adding = asyncio.create_task(ours.add_requests([f"http://s{n % 100}.example/{n}" for n in range(5_000)]))
        turns = 0
        while not adding.done():
            await asyncio.sleep(0)
            assert adding.done() or not await ours.is_finished()
            turns += 1
        assert await ours.get_total_count() == 5_000 and turns >= 5

    attacked(check, tmp_path)


def test_a_task_that_adds_requests_for_ever_takes_no_memory_for_them(tmp_path: Path) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        await ours.add_request("http://a.example/")
        await fetched(ours)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("trapline.crawlee.request_manager._MOST_LINKS", 50)
            for first in range(0, 200, 20):
                await ours.add_requests([f"http://b.example/{first + n}" for n in range(20)])
        assert len(ours._take_found()) == 50 and await ours.get_total_count() == 201

    attacked(check, tmp_path)


def test_requests_in_progress_or_behind_a_delay_are_not_the_end(tmp_path: Path) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        await ours.add_requests(["http://a.example/1", "http://a.example/2", "http://a.example/3"])
        assert not await ours.is_empty()
        first = await fetched(ours)
        assert await ours.is_empty() and not await ours.is_finished()
        await ours.mark_request_as_handled(first)
        assert await ours.is_empty() and not await ours.is_finished()  # the site waits
        assert await ours.fetch_next_request() is None

    attacked(check, tmp_path, Rules(delay_s=60.0))


def test_a_site_whose_budget_is_spent_does_not_keep_the_crawl_open(tmp_path: Path) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        await ours.add_requests(["http://a.example/1", "http://a.example/2"])
        await ours.mark_request_as_handled(await fetched(ours))
        assert await ours.is_finished()

    attacked(check, tmp_path, Rules(delay_s=0.0, pages_per_site=1))


def test_a_full_disk_loses_nothing_and_stops_nothing_when_there_is_room_again(tmp_path: Path) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        await ours.add_requests(["http://a.example/1", "http://a.example/2"])
        first = await fetched(ours)
        set_most_pages(ours, 1)
        for call in (
            ours.add_requests(
                [Request.from_url(f"http://a.example/x{n}", user_data={"x": "x" * 4000}) for n in range(100)]
            ),
            ours.mark_request_as_handled(first),
            ours.add_request("http://a.example/3"),
        ):
            with pytest.raises(sqlite3.Error, match="full"):
                await call
        set_most_pages(ours, 1 << 30)
        second = await fetched(ours)
        assert second.url == "http://a.example/2" and await ours.reclaim_request(second)
        ours.close()
        ours._open()
        assert (await ours.get_total_count(), await ours.get_handled_count()) == (103, 1)

    attacked(check, tmp_path)


def set_most_pages(ours: FrontierRequestManager, pages: int) -> None:
    """Let the database have at most so many pages, or as many as it has if those are more: as on a full disk."""
    ours._frontier._database.connection.execute(f"pragma max_page_count = {pages}")


def test_a_tandem_with_a_list_of_requests_works(tmp_path: Path) -> None:
    async def check(ours: FrontierRequestManager) -> None:
        urls = [f"http://a.example/{n}" for n in range(5)]
        tandem = await RequestList(urls, name=None).to_tandem(ours)
        found = []
        while not await tandem.is_finished():
            if (request := await tandem.fetch_next_request()) is not None:
                found.append(request.url)
                await tandem.mark_request_as_handled(request)
        assert found == urls

    attacked(check, tmp_path)


# ---- a real crawler


def run(folder: Path, *seeds: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.crawlee.crawl", str(folder / "f"), str(folder / "log"), *seeds]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def handled(folder: Path) -> list[str]:
    log = folder / "log"
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


@slow
def test_a_crawl_survives_a_kill(tmp_path: Path) -> None:
    with served() as (server, (seed,)):
        first = run(tmp_path, seed)
        while len(handled(tmp_path)) < 10 and first.poll() is None:
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        second = run(tmp_path, seed)
        output, complaints = second.communicate(timeout=120)
        assert second.returncode == 0, complaints
        requests = Counter(one.target for one in server.log)
    assert set(handled(tmp_path)) == {"/", *(f"/{n}" for n in range(1, PAGES)), "/old"}
    assert output.split()[-1] == "True" and requests["/down"] == 3 and requests["/away"] == 1
    assert all(times <= 2 for path, times in requests.items() if path not in ("/down", "/39", "/robots.txt"))


@slow
def test_a_whole_web_is_crawled_and_each_page_once(tmp_path: Path) -> None:
    web = build_web(generate(500, 20, seed=1), names="address")
    with serve(web) as server:
        crawl = run(tmp_path, *server.seed_urls)
        output, complaints = crawl.communicate(timeout=240)
        assert crawl.returncode == 0, complaints
        log = server.log()
    assert output.split() == ["500", "500", "True"]
    assert Counter(log.page[log.page >= 0].tolist()) == dict.fromkeys(range(500), 1)


@slow
def test_the_example_runs_and_is_in_the_guide(tmp_path: Path) -> None:
    example = ROOT / "examples" / "crawlee_crawler.py"
    assert f"```python\n{example.read_text()}```" in (ROOT / "docs" / "how-to" / "crawlee.md").read_text()
    with served() as (server, (seed,)):
        command = [sys.executable, str(example), str(tmp_path / "f"), seed, "3"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert len({one.target for one in server.log}) >= 3
