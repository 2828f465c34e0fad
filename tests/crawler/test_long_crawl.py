"""A crawl of weeks, in virtual time: its logs, signals and progress stay bounded, and it can be resumed in the same state."""

import shutil
import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.store_world import batch, fetched
from trapline.crawler.engine.options import CrawlOptions, RefreshOptions
from trapline.crawler.engine.records import Batch, CrawlProgress, SignalNoted
from trapline.crawler.engine.snapshots import Snapshots
from trapline.crawler.files import resume
from trapline.crawler.files.checkpoint import is_due
from trapline.crawler.files.layout import DATABASE, SNAPSHOT, claim_new
from trapline.crawler.files.reading import Reading
from trapline.crawler.store.database import SIGNALS_KEPT_S
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.store.settings import StoreSettings
from trapline.errors import ConfigError
from trapline.frontier import FETCHED, Outcome, Rules, Visit, WaitUntil
from trapline.frontier.journal import Journal
from trapline.refresh.live.agenda import Agenda, Turns
from trapline.report.refresh_record import trust_now, trust_of

SITES, PAGES, DAY_S = 3, 12, 86_400.0
REFRESH = RefreshOptions(policy="cgm", continuous=True)
OPTIONS = CrawlOptions((), rules=Rules(delay_s=3_600.0, per_connection=4), refresh=REFRESH, strategy="breadth-first")
STRATEGY = resume.strategy_of(OPTIONS)


class LongCrawl:
    """A crawl whose servers answer at once. The store commits batches some time after the loop has sent them."""

    def __init__(self, folder: Path) -> None:
        claim_new(folder, asdict(OPTIONS)).release()
        self.folder, self.keeper = folder, Keeper(folder, StoreSettings())
        self.state = resume.fresh(folder, OPTIONS, STRATEGY)
        assert self.state.refresher is not None
        self.frontier, self.refresher, self._sent = self.state.frontier, self.state.refresher, list[Batch]()
        self.frontier.journal = journal = Journal()
        self.outbox = Outbox(journal, self._sent.append, 0, self.refresher.take)
        self.snapshots = Snapshots(folder, self.state, self.outbox, pages=60)
        self.agenda = Agenda(self.frontier, self.refresher, Turns(), continuous=True)
        self.now = self.refresher.started
        self._register()

    def _register(self) -> None:
        urls = [f"http://site{page % SITES}.example/{page}" for page in range(PAGES)]
        self.outbox.sites += [(site, f"http://site{site}.example") for site in range(SITES)]
        self.outbox.addresses += [(site, f"192.0.2.{site}") for site in range(SITES)]
        self.outbox.pages += [(page, page % SITES, url) for page, url in enumerate(urls)]
        self.frontier.add_sites(SITES, self.now, list(range(SITES)))
        self.frontier.add_pages([page % SITES for page in range(PAGES)])
        self.frontier.discover(list(range(PAGES)), self.now)

    def run_for(self, days: float) -> None:
        end = self.now + days * DAY_S
        while self.now < end:
            answer = self.agenda.next(self.now)
            if isinstance(answer, Visit):
                self._visit(answer)
            else:
                assert isinstance(answer, WaitUntil)
                self.now = max(self.now + 1.0, min(answer.time, end))
            if len(self._sent) > 8:
                self.commit()

    def _visit(self, visit: Visit) -> None:
        self.now += 1.0
        for page in visit.pages:
            again = page in self.agenda.under_way
            self.frontier.report(visit, page, FETCHED, self.now)
            self.agenda.came(page, visit.site, FETCHED, self.now, changed=page % 2 == 0)
            self.state.tally.refetched += again
            self.outbox.fetched(fetched(page, b"")._replace(site=visit.site, started=self.now))
        self.frontier.finish(visit, Outcome(), self.now)
        self.agenda.over(visit, self.now)
        self.outbox.flush(CrawlProgress(self.now, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0))
        if self.snapshots.is_due:
            self.snapshots.take()

    def commit(self) -> None:
        self.keeper.commit(self._sent)
        for one in self._sent:
            self.snapshots.committed(one.number)
        self._sent.clear()

    def log(self) -> list[int]:
        """Return the batches whose logs are in the database."""
        connection = sqlite3.connect(self.folder / DATABASE)
        found = [number for (number,) in connection.execute("select batch from journal order by batch")]
        connection.close()
        return found

    def kill(self) -> None:
        self.outbox.flush()
        self.commit()
        self.keeper.leave()


def learned_state(refresher: Any) -> list[dict[str, Any]]:
    moment = refresher.started + 1000 * DAY_S
    learned = ("page", "crawls", "changes", "last_crawl", "failures", "value", "price")
    return [{name: refresher.explain(page, moment)[name] for name in learned} for page in range(PAGES)]


def assert_same(long_crawl: LongCrawl, state: resume.CrawlState) -> None:
    ours, theirs = long_crawl.frontier, state.frontier
    assert (ours.state.page[:PAGES] == theirs.state.page[:PAGES]).all()
    assert (ours.state.state[:PAGES] == theirs.state.state[:PAGES]).all()
    assert (ours.state.site["ready_at"][:SITES] == theirs.state.site["ready_at"][:SITES]).all()
    assert ours.state.run[0].visits == theirs.state.run[0].visits
    assert learned_state(long_crawl.refresher) == learned_state(state.refresher)


@pytest.fixture
def long_crawl(tmp_path: Path) -> LongCrawl:
    return LongCrawl(tmp_path / "crawl")


def test_logs_stay_bounded_and_a_killed_crawl_resumes_in_the_same_state(long_crawl: LongCrawl) -> None:
    lengths = []
    for _ in range(10):
        long_crawl.run_for(0.6)
        log = long_crawl.log()
        lengths.append(len(log))
        assert log == list(range(log[0], log[-1] + 1))
    assert long_crawl.log()[0] > 5 * max(lengths[2:])
    assert max(lengths[2:]) <= lengths[1] + 30  # the log of two to three snapshots
    long_crawl.kill()
    assert_same(long_crawl, resume.restored(long_crawl.folder, OPTIONS, STRATEGY))


@pytest.mark.parametrize("fetched", [10**6, 10**8])
def test_snapshots_take_time_in_proportion_to_the_crawl(fetched: int) -> None:
    known_per_fetch, log_per_fetch, step = 4, 500, 10_000
    written, last = 0, 0
    for now in range(step, fetched, step):
        known = known_per_fetch * now
        if is_due(now - last, log_per_fetch * (now - last), known, 100_000, 256 << 20):
            written, last = written + known, now
    assert 2 * (fetched - last) <= fetched  # a resume repeats at most half of the crawl
    assert fetched <= written <= 3 * known_per_fetch * fetched


@pytest.mark.parametrize("damaged", ["newest", "refresh of the newest"])
def test_one_of_the_two_snapshots_may_be_damaged(long_crawl: LongCrawl, damaged: str) -> None:
    long_crawl.run_for(1.0)
    long_crawl.kill()
    newest = max((long_crawl.folder / SNAPSHOT).iterdir(), key=lambda place: int(place.name))
    assert long_crawl.log()[0] > 1
    shutil.rmtree(newest if damaged == "newest" else newest / "refresh")
    assert_same(long_crawl, resume.restored(long_crawl.folder, OPTIONS, STRATEGY))


def test_without_both_snapshots_the_crawl_is_refused_in_one_line(long_crawl: LongCrawl) -> None:
    long_crawl.run_for(1.0)
    long_crawl.kill()
    shutil.rmtree(long_crawl.folder / SNAPSHOT)
    with pytest.raises(ConfigError, match="the log of batch 1 is missing, and no snapshot is newer; restore"):
        resume.restored(long_crawl.folder, OPTIONS, STRATEGY)


def test_trust_is_known_although_the_log_does_not_reach_back_to_the_beginning(long_crawl: LongCrawl) -> None:
    long_crawl.refresher.signalled(0, 0, long_crawl.now, long_crawl.now)
    long_crawl.run_for(0.2)
    long_crawl.refresher.signalled(0, 0, long_crawl.now, long_crawl.now)
    long_crawl.run_for(1.0)
    long_crawl.kill()
    assert long_crawl.log()[0] > 1
    assert trust_now(long_crawl.folder, REFRESH) == trust_of(long_crawl.refresher) != []


@pytest.mark.parametrize("column", ["journal", "refresh_log"])
def test_a_missing_batch_of_the_log_is_reported(long_crawl: LongCrawl, column: str) -> None:
    long_crawl.run_for(0.5)
    long_crawl.kill()
    with sqlite3.connect(long_crawl.folder / DATABASE) as connection:
        connection.execute("delete from journal where batch = 3")
    reading = Reading(long_crawl.folder)
    with pytest.raises(ConfigError, match="the log of batch 3 is missing"):
        list(getattr(reading, column)())
    reading.close()


# ---- signals and progress


def two_signals(number: int, at: float) -> Batch:
    """Return one signal of the inbox and one of a published list, in a batch without anything else."""
    signals = [
        SignalNoted(number, 1, at, "indexnow", "changed", "noted"),
        SignalNoted(-number, 1, at, "feed", "changed", "noted"),
    ]
    whole = batch(number)
    progress = CrawlProgress(at, float(number), 0, 0, 0, 0, 0, 5, 1, 0.5)
    return Batch(number, [], [], [], [], [], whole.calls, progress, signals=signals)


def test_signals_are_stored_for_a_month_and_counted_forever(tmp_path: Path) -> None:
    claim_new(tmp_path / "c", {}).release()
    keeper = Keeper(tmp_path / "c", StoreSettings())
    moments = [1.7e9 + number * DAY_S / 6 for number in range(1, 500)]
    for first in range(0, len(moments), 100):
        keeper.commit([two_signals(number, moments[number - 1]) for number in range(first + 1, min(first + 101, 500))])
    reading = Reading(tmp_path / "c")
    (oldest, kept), totals = (
        reading.connection.execute("select min(at), count(*) from signal").fetchone(),
        reading.connection.execute("select channel, signals from signal_total").fetchall(),
    )
    assert moments[-1] - SIGNALS_KEPT_S <= oldest and kept == 2 * sum(at >= oldest for at in moments)
    assert totals == [("feed", 499), ("indexnow", 499)]
    assert reading.last_signals() == (499, -499)
    late = two_signals(500, moments[-1] + 2 * SIGNALS_KEPT_S)._replace(signals=())
    keeper.commit([late])
    assert reading.last_signals() == (499, -499)
    assert reading.connection.execute("select count(*) from signal").fetchone() == (2,)
    reading.close()
    keeper.leave()


def test_old_progress_has_one_row_a_minute(tmp_path: Path) -> None:
    claim_new(tmp_path / "c", {}).release()
    keeper = Keeper(tmp_path / "c", StoreSettings())
    moments = [1.7e9 + 10.0 * number for number in range(3_000)]
    for first in range(0, len(moments), 500):
        keeper.commit(
            [two_signals(number + 1, moments[number])._replace(signals=()) for number in range(first, first + 500)]
        )
    reading = Reading(tmp_path / "c")
    kept = [at for (at,) in reading.connection.execute("select at from progress order by rowid")]
    dense = [at for at in moments if at >= moments[-1] - 3_600.0]
    assert kept[0] == moments[0] and kept[-len(dense) :] == dense
    assert len(kept) <= len(dense) + len(moments) / 6 + 2 * 360  # rows since the last thinning are all there
    assert reading.progress() == two_signals(3_000, moments[-1]).progress
    reading.close()
    keeper.leave()
