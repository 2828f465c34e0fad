"""Scrapy with our scheduler: real spiders, in processes of their own, and a real server whose log says what was requested when."""

import json
import shutil
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

from tests.crawler.small_server import HANG, NOT_FOUND, Part, SmallServer, moved, page, small_server
from tests.effort import slow
from tests.scrapy.kills import CONCURRENT, killed_crawl
from trapline.scrapy.site_backoff import SiteBackoff

ROOT = Path(__file__).parents[2]
PAGES = 40


def web(host: str, target: str) -> bytes | list[Part]:
    """A site of PAGES pages. /old redirects, /away does not exist, /down answers with 503, and /hang not at all."""
    if target == "/hang":
        return [HANG]
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


# ---- the crawl ends, and not too early


@slow
def test_a_page_that_two_callbacks_request_at_once_is_not_lost(tmp_path: Path) -> None:
    with served() as (_, seeds):
        run = Run(tmp_path, seeds, "SharedLink")
        stats = run.end()
    assert run.parsed == ["/3"] and "trapline/lost" not in stats


@slow
@pytest.mark.parametrize("reactor", ["asyncioreactor.AsyncioSelectorReactor", "selectreactor.SelectReactor"])
def test_names_are_looked_up_with_every_reactor_and_bad_ones_stop_nothing(tmp_path: Path, reactor: str) -> None:
    with served() as (server, _):
        seeds = [f"http://{'a' * 70}.example/", "http://nowhere.invalid/", f"http://localhost:{server.port}/39"]
        run = Run(tmp_path, seeds, TWISTED_REACTOR=f"twisted.internet.{reactor}")
        stats = run.end()
    assert stats["finish_reason"] == "finished" and stats["trapline/waiting"] == 0
    assert "/39" in run.parsed


@slow
def test_a_crawl_goes_on_after_requests_that_cannot_be_restored(tmp_path: Path) -> None:
    """The first run has begun one request. The spider of the second run no longer has the callback of the next ones."""
    settings = {"TRAPLINE_STRATEGY": "breadth-first", "DOWNLOAD_DELAY": 0.2}
    with served() as (_, seeds):
        Run(tmp_path, seeds, "Renamed", CLOSESPIDER_PAGECOUNT=1, **settings).end()
        run = Run(tmp_path, [], **settings)
        stats = run.end()
    assert stats["trapline/lost"] >= 2 and stats["trapline/waiting"] == 0
    assert "/39" in run.parsed


@slow
def test_an_object_that_is_yielded_twice_is_two_requests(tmp_path: Path) -> None:
    with served() as (_, seeds):
        run = Run(tmp_path, seeds, "OneObject")
        assert run.end()["finish_reason"] == "finished"
    assert run.parsed == ["/1", "/1"]


@slow
@pytest.mark.parametrize(
    "settings",
    [
        {"DOWNLOAD_TIMEOUT": 1},  # one page of the first visit gets no answer
        {"DOWNLOAD_MAXSIZE": 10, "DOWNLOAD_DELAY": 0.1, "DOWNLOAD_TIMEOUT": 1},  # an answer that is too large is one
        {"DOWNLOAD_DELAY": 0.5, "TRAPLINE_DELAY": 0, "DOWNLOAD_TIMEOUT": 1, "AUTOTHROTTLE_ENABLED": True},
    ],
)
def test_a_site_that_answers_is_not_slowed_down(tmp_path: Path, settings: dict[str, Any]) -> None:
    with served() as (_, (seed,)):
        seeds = [f"{seed}1", f"{seed}2"] if "DOWNLOAD_MAXSIZE" in settings else [f"{seed}1", f"{seed}hang"]
        stats = Run(tmp_path, seeds, **settings).end()
    assert stats["elapsed_time_seconds"] < 10.0 and stats["finish_reason"] == "finished"


@slow
def test_a_dead_site_does_not_hold_up_the_end_and_each_request_fails(tmp_path: Path) -> None:
    settings = {"TRAPLINE_MAX_BACKOFF": 2, "DOWNLOAD_DELAY": 0.01, "RETRY_ENABLED": True, "RETRY_TIMES": 2}
    run = Run(tmp_path, ["http://127.0.0.1:9/"], "Dead", **settings)
    stats = run.end()
    assert sorted(run.parsed) == [f"/{n}" for n in range(10)]
    assert stats["retry/max_reached"] == 10 and stats["finish_reason"] == "finished"
    assert 2.0 <= stats["elapsed_time_seconds"] < 30.0


def test_a_site_that_answers_again_backs_off_as_at_first() -> None:
    backoff = SiteBackoff(first_s=1.0, total_s=2.0)
    failed = {"has_failed": True, "is_answered": False}
    assert [backoff.wait_s("a", **failed) for _ in range(3)] == [1.0, 1.0, 0.0]
    assert backoff.wait_s("b", **failed) == 1.0
    assert backoff.wait_s("a", has_failed=False, is_answered=True) == 0.0
    assert backoff.wait_s("a", **failed) == 1.0


@slow
def test_a_disk_that_is_full_for_a_while_loses_nothing(tmp_path: Path) -> None:
    """What could not be written is reported, and written later. Links have large payloads, so that the database must grow."""
    with served() as (_, seeds):
        run = Run(tmp_path, seeds, "FullDisk", USER_AGENT="x" * 10)
        stats = run.end()
    assert set(run.parsed) == {"/", *(f"/{n}" for n in range(1, PAGES))}
    assert stats["finish_reason"] == "finished" and "full" in run.complaints


# ---- kills


@slow
def test_only_pages_in_flight_are_fetched_twice(tmp_path: Path) -> None:
    crawl = killed_crawl(tmp_path, pages=900, sites=30, kills=3)
    assert crawl.kills >= 2 and crawl.pages > 800 and not crawl.lost and not crawl.twice_in_a_run
    assert max(crawl.repeated) <= 3 * CONCURRENT and max(crawl.done_s, default=0.0) < 1.0


# ---- start requests, slots, filters and qualities


@slow
def test_start_requests_of_an_earlier_run_are_retried(tmp_path: Path) -> None:
    settings = {"TRAPLINE_STRATEGY": "breadth-first", "DOWNLOAD_DELAY": 0.2, "RETRY_ENABLED": True, "RETRY_TIMES": 2}
    with served() as (server, (seed,)):
        seeds = [f"{seed}39", f"{seed}down"]
        Run(tmp_path, seeds, CLOSESPIDER_PAGECOUNT=1, **settings).end()
        assert [one.target for one in server.log] == ["/39"]
        Run(tmp_path, seeds, **settings).end()
        assert Counter(one.target for one in server.log)["/down"] == 3


@slow
def test_a_retry_belongs_to_the_slot_of_its_request(tmp_path: Path) -> None:
    with served() as (_, seeds):
        stats = Run(tmp_path, seeds, "OwnSlot", RETRY_ENABLED=True, RETRY_TIMES=2).end()
    assert stats["retry/count"] == 2 and stats["trapline/sites"] == 1


@slow
def test_requests_that_only_the_filter_of_the_user_knows_are_not_scheduled(tmp_path: Path) -> None:
    with served() as (_, seeds):
        run = Run(tmp_path, seeds, DUPEFILTER_CLASS="tests.scrapy.spiders.KnowsAllButSeeds")
        stats = run.end()
    assert run.parsed == ["/"] and stats["trapline/known"] == 1 and "trapline/lost" not in stats


@slow
def test_a_quality_that_is_no_number_is_named_and_stops_nothing(tmp_path: Path) -> None:
    with served() as (_, seeds):
        run = Run(tmp_path, seeds, TRAPLINE_STRATEGY="quality", TRAPLINE_QUALITY="tests.scrapy.spiders.no_quality")
        run.end()
    assert len(set(run.parsed)) == PAGES and "The quality of <GET" in run.complaints


@slow
def test_requests_of_scrapys_own_scheduler_are_not_forgotten_silently(tmp_path: Path) -> None:
    with served() as (_, seeds):
        Run(tmp_path, seeds, SCHEDULER="scrapy.core.scheduler.Scheduler", CLOSESPIDER_PAGECOUNT=3).end()
        run = Run(tmp_path, seeds)
        run.end()
    assert "Scrapy's own scheduler" in run.complaints


@slow
def test_the_example_project_runs(tmp_path: Path) -> None:
    project = shutil.copytree(ROOT / "examples" / "scrapy_project", tmp_path / "project")
    options = ["-s", f"JOBDIR={tmp_path / 'job'}", "-s", "DOWNLOAD_DELAY=0", "-O", str(tmp_path / "titles.jsonl")]
    with served() as (_, (seed,)):
        command = [sys.executable, "-m", "scrapy", "crawl", "titles", "-a", f"start={seed}", *options]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "titles.jsonl").read_text().splitlines()) == PAGES
    assert "trapline/visits" in done.stderr


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
