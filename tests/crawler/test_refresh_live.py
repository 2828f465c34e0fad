"""A crawl that refetches pages of a changing web, with store and database, and after a stop."""

import math
import shutil
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.live_web import Crawled, crawled, refetched, until
from tests.effort import slow
from tests.testweb.changing import changing_web
from trapline.crawler.engine.options import CrawlOptions, RefreshOptions
from trapline.crawler.engine.run import resume_crawl
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.engine.tally import SignalCounts
from trapline.crawler.files import resume
from trapline.crawler.files.reading import Reading
from trapline.crawler.inspect.folder_status import folder_status
from trapline.signals.inbox import ACCESS, CHANGED, Inbox, Signal
from trapline.testweb import Behaviour, serve

REFRESH = RefreshOptions(continuous=True, rate=40.0)


def refreshed(folder: Path) -> Crawled:
    """Crawl three sites of four pages, each of which changes every two seconds, until 40 refetches."""
    with serve(changing_web(2.0)) as server:
        enough = until(refetched(12, 40))
        return crawled(folder, server.seed_urls, server.hosts, enough, refresh=REFRESH, delay_s=0.05)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return refreshed(tmp_path_factory.mktemp("refreshed") / "crawl")


def test_pages_are_refetched_and_the_history_is_stored(crawl: Crawled) -> None:
    summary = crawl.summary
    assert summary["pages_fetched"] == 12
    assert summary["pages_refetched"] == len(crawl.rows("select 1 from fetch where changed is not null")) > 20
    assert 0 < summary["pages_changed"] < summary["pages_refetched"]
    assert summary["politeness_violations"] == 0
    assert summary["stopped_by"] == "interrupted"
    assert summary["signals"] == 0
    ((copies,),) = crawl.rows("select count(*) from copy")
    assert copies == 12


def test_refetches_stay_within_the_rate(crawl: Crawled) -> None:
    times = [
        started for (started,) in crawl.rows("select started from fetch where changed is not null order by started")
    ]
    for first, at in enumerate(times):
        within = sum(1 for other in times[first:] if other < at + 1.0)
        assert within <= 2 * REFRESH.rate + 2  # the refetches of one second may come at once


def state_of(folder: Path) -> list[dict[str, Any]]:
    reading = Reading(folder)
    options = CrawlOptions.from_json(reading.meta()["options"])
    assert options.refresh is not None
    refresher = resume.refresher_of(reading, options.refresh)
    reading.close()
    moment = refresher.started + 1000.0
    return [refresher.explain(page, moment) for page in range(refresher.pages)]


def test_the_log_alone_restores_the_state_of_the_snapshot(crawl: Crawled, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(crawl.folder, folder)
    from_snapshot = state_of(folder)
    assert any(known["changes"] for known in from_snapshot)
    shutil.rmtree(folder / "snapshot")
    assert state_of(folder) == from_snapshot


def test_a_resumed_crawl_keeps_what_it_has_learned(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    web = changing_web(2.0)
    with serve(web) as server:
        crawled(folder, server.seed_urls, server.hosts, until(refetched(6, 3)), refresh=REFRESH, delay_s=0.05)
        before = {known["page"]: known["crawls"] for known in state_of(folder)}
        more = sum(before.values()) + 10
        summary = resume_crawl(folder, until(refetched(12, more)))
    after = {known["page"]: known["crawls"] for known in state_of(folder)}
    assert summary["runs"] == 2 and summary["pages_fetched"] == 12
    assert sum(after.values()) == summary["pages_refetched"] > sum(before.values()) > 0
    assert all(after[page] >= crawls for page, crawls in before.items())


@slow
def test_the_log_before_the_snapshots_is_deleted_during_the_crawl(tmp_path: Path) -> None:
    """Many snapshots are taken. The crawl resumes from the last two, and also from the older of the two alone."""
    folder = tmp_path / "crawl"
    with serve(changing_web(2.0)) as server:
        crawl = crawled(
            folder,
            server.seed_urls,
            server.hosts,
            until(refetched(12, 60)),
            refresh=REFRESH,
            delay_s=0.05,
            snapshot_pages=10,
        )
        ((first, last),) = crawl.rows("select min(batch), max(batch) from journal")
        assert 1 < first < last
        known = state_of(folder)
        newest = max((folder / "snapshot").iterdir(), key=lambda place: int(place.name))
        shutil.rmtree(newest)
        assert state_of(folder) == known
        assert resume_crawl(folder, until(refetched(12, 70)))["runs"] == 2


@slow
def test_an_idle_crawl_writes_little(tmp_path: Path) -> None:
    idle = RefreshOptions(continuous=True, price=math.inf)
    with serve(changing_web(1e9)) as server:
        crawl = crawled(tmp_path / "crawl", server.seed_urls, server.hosts, refresh=idle, max_seconds=4.0, delay_s=0.0)
    ((ended,),) = crawl.rows("select max(started + total_s) from fetch")
    rows = crawl.rows(f"select at from progress where at > {ended} + 0.6")
    assert len(rows) == 1  # the batch of the closing


def heard(status: CrawlStatus, expected: SignalCounts, shown: list[CrawlStatus]) -> bool:
    """Keep the status. Say whether all signals were read."""
    shown.append(status)
    again = status.refetches
    return again is not None and again.signals == expected


def test_signals_that_arrive_between_two_runs_are_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "crawl"
    web = changing_web(1e9)
    with serve(web) as server:
        once = RefreshOptions(continuous=True, price=math.inf)
        crawled(folder, server.seed_urls, server.hosts, until(refetched(12)), refresh=once, delay_s=0.0)
        inbox = Inbox(folder)
        inbox.put([Signal(0, 4e9, "indexnow", url, CHANGED, 4e9, 1.0, True) for url in server.seed_urls])
        inbox.put([Signal(0, 4e9, "api", server.seed_urls[0], ACCESS, 4e9, 25.0, True) for _ in range(2)])
        inbox.close()
        expected = SignalCounts(len(server.seed_urls), 2)
        for _ in range(2):
            shown: list[CrawlStatus] = []
            summary = resume_crawl(folder, until(lambda status, shown=shown: heard(status, expected, shown)))
            assert (summary["signals"], summary["access_counts"]) == expected
            assert shown[-1].refetches is not None and shown[-1].refetches.signals == expected
    assert sum(known["all_signals"] for known in state_of(folder)) == len(server.seed_urls)
    found = folder_status(folder)
    assert (found.signals, found.access_counts) == expected


@pytest.mark.parametrize("validating", ["honest", "none"])
def test_only_a_change_of_content_counts_as_a_change(tmp_path: Path, validating: str) -> None:
    """Every answer has other bytes. If the web does not change, no page counts as changed."""
    web = changing_web(1e9, Behaviour(validators=validating), noise=True)
    with serve(web) as server:
        crawl = crawled(
            tmp_path / "crawl",
            server.seed_urls,
            server.hosts,
            until(refetched(12, 24)),
            refresh=REFRESH,
            delay_s=0.0,
        )
    assert crawl.summary["pages_refetched"] > 10
    assert crawl.summary["pages_changed"] == 0
    assert (crawl.summary["not_modified"] > 0) == (validating == "honest")


def test_pings_count_after_a_run_whose_clock_was_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, right = tmp_path / "crawl", time.time
    with serve(changing_web(1e9)) as server:
        monkeypatch.setattr(time, "time", lambda: right() + 3_600.0)
        once = RefreshOptions(continuous=True, price=math.inf)
        crawled(folder, server.seed_urls, server.hosts, until(refetched(12)), refresh=once, delay_s=0.0)
        monkeypatch.setattr(time, "time", right)
        with closing(Inbox(folder)) as inbox:
            inbox.put([Signal(0, right(), "indexnow", url, CHANGED, right(), 1.0, True) for url in server.seed_urls])
        all_read = SignalCounts(len(server.seed_urls), 0)
        summary = resume_crawl(folder, until(lambda status: heard(status, all_read, [])))
    assert summary["signals"] == sum(known["all_signals"] for known in state_of(folder)) == len(server.seed_urls)
