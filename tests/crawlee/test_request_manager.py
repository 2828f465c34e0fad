"""Crawlee with our request manager: the promises of a request manager, and a real crawler in a process of its own."""

import asyncio
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from crawlee import Request

from tests.effort import slow
from tests.scrapy.test_scheduler import PAGES, served
from trapline.crawlee import FrontierRequestManager
from trapline.frontier import Rules

ROOT = Path(__file__).parents[2]
FAST = Rules(delay_s=0.0, retries=10, backoff_s=0.0)


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


def run(folder: Path, seed: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.crawlee.crawl", str(folder / "f"), str(folder / "log"), seed]
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
def test_the_example_runs_and_is_in_the_guide(tmp_path: Path) -> None:
    example = ROOT / "examples" / "crawlee_crawler.py"
    assert f"```python\n{example.read_text()}```" in (ROOT / "docs" / "how-to" / "crawlee.md").read_text()
    with served() as (server, (seed,)):
        command = [sys.executable, str(example), str(tmp_path / "f"), seed, "3"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert len({one.target for one in server.log}) >= 3
