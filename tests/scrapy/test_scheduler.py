"""Scrapy with our scheduler: real spiders, in processes of their own, and a real server whose log says what was requested when."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.small_server import NOT_FOUND, SmallServer, moved, page, small_server
from tests.effort import slow

ROOT = Path(__file__).parents[2]
PAGES = 40


def web(host: str, target: str) -> bytes:
    """A site of PAGES pages. /old redirects, /away does not exist, and /down answers with 503."""
    if target == "/old":
        return moved("/39")
    if not target.strip("/").isdigit() and target != "/":
        return page(status="503 Busy") if target == "/down" else NOT_FOUND
    number = int(target.strip("/") or 0)
    links = [f"/{n}" for n in (2 * number + 1, 2 * number + 2, number // 2) if 0 < n < PAGES]
    return page(*links, *(["/old", "/away", "/down"] if number == 5 else []))


@contextmanager
def served(*hosts: str) -> Iterator[tuple[SmallServer, list[str]]]:
    with small_server(web, hosts or ("127.0.0.1",)) as server:
        yield server, [f"http://{host}:{server.port}/" for host in hosts or ("127.0.0.1",)]


class Run:
    """A crawl by a spider of tests/scrapy/spiders.py."""

    def __init__(
        self, folder: Path, seeds: list[str], spider: str = "Pages", jobs: bool = True, **settings: Any
    ) -> None:
        self.log = folder / "log"
        words = (spider, json.dumps(seeds), str(folder / "job") if jobs else "", str(self.log), json.dumps(settings))
        command = [sys.executable, "-m", "tests.scrapy.spiders", *words]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self) -> dict[str, Any]:
        """Return the statistics of Scrapy."""
        output, self.complaints = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, self.complaints
        stats: dict[str, Any] = json.loads(output.splitlines()[-1])
        return stats

    @property
    def parsed(self) -> list[str]:
        """The paths of the pages whose callbacks have begun."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return ["/" + line.split("/", 3)[3] for line in lines]


def times(server: SmallServer, host: str) -> list[float]:
    return [one.arrival_s for one in server.log if one.host.partition(":")[0] == host]


def test_a_killed_crawl_continues_and_loses_nothing(tmp_path: Path) -> None:
    """Without a kill Scrapy would do the same; after SIGKILL its own scheduler loses the requests that were in memory."""
    with served() as (server, seeds):
        first = Run(tmp_path, seeds, DOWNLOAD_DELAY=0.02)
        while len(first.parsed) < 12 and first.process.poll() is None:
            time.sleep(0.01)
        first.process.send_signal(signal.SIGKILL)
        first.process.communicate()
        parsed = Counter(first.parsed)
        assert 12 <= len(parsed) < PAGES
        second = Run(tmp_path, seeds, DOWNLOAD_DELAY=0.02)
        stats = second.end()
        requests = Counter(one.target for one in server.log)
    assert set(second.parsed) == {"/", *(f"/{n}" for n in range(1, PAGES))}
    assert "is resumed" in second.complaints and stats["finish_reason"] == "finished"
    assert sum(requests.values()) - len(requests) <= 2  # the page in flight, and /39, where the redirect leads too
    assert stats["trapline/waiting"] == 0 and stats["trapline/known"] == len(requests)


@slow
def test_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    chance, kills = random.Random(5), 0
    with served() as (server, seeds):
        while True:
            run = Run(tmp_path, seeds, DOWNLOAD_DELAY=0.02)
            before = len(run.parsed)
            while run.process.poll() is None and len(run.parsed) == before:
                time.sleep(0.005)
            time.sleep(chance.random() * 0.1)
            if run.process.poll() is None and kills < 8:
                run.process.send_signal(signal.SIGKILL)
                kills += 1
                run.process.communicate()
            else:
                run.end()
                break
        requests = Counter(one.target for one in server.log)
    assert set(run.parsed) == {"/", *(f"/{n}" for n in range(1, PAGES))}
    assert sum(requests.values()) - len(requests) <= kills + 1


@slow
def test_delays_hold_for_sites_and_addresses(tmp_path: Path) -> None:
    with served("127.0.0.1", "127.0.0.2") as (server, seeds):
        Run(tmp_path, seeds, jobs=False, DOWNLOAD_DELAY=0.1, CLOSESPIDER_PAGECOUNT=24).end()
        for host in ("127.0.0.1", "127.0.0.2"):
            moments = times(server, host)
            assert len(moments) > 5 and min(b - a for a, b in pairwise(moments)) >= 0.1


@slow
def test_requests_that_scrapy_repeats_redirects_or_cannot_serialise(tmp_path: Path) -> None:
    with served() as (server, seeds):
        run = Run(tmp_path, seeds, "Repeats")
        stats = run.end()
        assert [one.target for one in server.log].count("/") == 3
    assert stats["scheduler/unserializable"] == 1 and "cannot be serialised" in run.complaints
    assert stats["httperror/response_ignored_count"] == 1  # the lambda's page is a 404, but it was requested
    with served() as (server, seeds):
        run = Run(tmp_path / "x", seeds, jobs=False, RETRY_ENABLED=True, RETRY_TIMES=2)
        (tmp_path / "x").mkdir()
        stats = run.end()
        requests = Counter(one.target for one in server.log)
    assert requests["/down"] == 3 and stats["retry/max_reached"] == 1
    assert requests["/old"] == 1 and requests["/39"] >= 1


@slow
def test_the_strategy_orders_the_pages(tmp_path: Path) -> None:
    with served() as (_, seeds):
        settings = {"TRAPLINE_STRATEGY": "quality", "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 0.3}
        run = Run(tmp_path, seeds, "BestFirst", **settings)
        run.end()
    assert run.parsed in (
        ["/1", "/3", "/2"],
        ["/3", "/2", "/1"],
    )  # the first request may leave before the others are known


@slow
def test_a_filter_of_the_user_is_used(tmp_path: Path) -> None:
    with served() as (server, seeds):
        Run(tmp_path, seeds, DUPEFILTER_CLASS="tests.scrapy.spiders.FiltersNothing").end()
        assert max(Counter(one.target for one in server.log).values()) > 1


@slow
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"TRAPLINE_STRATEGY": "no-such"}, "no strategy 'no-such'"),
        ({"TRAPLINE_QUALITY": "no.such"}, "TRAPLINE_QUALITY is 'no.such'"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, settings: dict[str, Any], reason: str) -> None:
    with served() as (_, seeds):
        run = Run(tmp_path, seeds, **settings)
        _, complaints = run.process.communicate(timeout=60)
    assert reason in complaints and not run.parsed


@slow
def test_the_example_runs_and_is_in_the_guide(tmp_path: Path) -> None:
    example = ROOT / "examples" / "scrapy_spider.py"
    assert f"```python\n{example.read_text()}```" in (ROOT / "docs" / "how-to" / "scrapy.md").read_text()
    with served() as (_, (seed,)):
        command = [
            sys.executable,
            "-m",
            "scrapy",
            "runspider",
            str(example),
            "-a",
            f"start={seed}",
            "-s",
            "DOWNLOAD_DELAY=0",
        ]
        settings = ["-s", f"JOBDIR={tmp_path / 'job'}", "-O", str(tmp_path / "titles.jsonl")]
        done = subprocess.run([*command, *settings], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "titles.jsonl").read_text().splitlines()) == PAGES
