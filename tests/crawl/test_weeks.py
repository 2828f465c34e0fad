"""A crawl of weeks, in virtual time: what it writes beside its pages stays bounded, and it goes on from there as it was."""

import shutil
import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.store_world import batch, fetched
from trapline.crawl.engine.options import CrawlOptions, RefreshOptions
from trapline.crawl.engine.records import Batch, CrawlProgress, SignalNoted
from trapline.crawl.files import resume
from trapline.crawl.files.layout import DATABASE, SNAPSHOT, claim_new
from trapline.crawl.files.reading import Reading
from trapline.crawl.files.snapshots import Snapshots
from trapline.crawl.store.database import SIGNALS_KEPT_S
from trapline.crawl.store.keeper import Keeper
from trapline.crawl.store.outbox import Outbox
from trapline.crawl.store.settings import StoreSettings
from trapline.errors import ConfigError
from trapline.frontier import FETCHED, Outcome, Rules, Visit, WaitUntil
from trapline.frontier.journal import Journal
from trapline.refresh.live.agenda import Agenda, Turns
from trapline.report.refresh_record import trust_now, trust_of

SITES, PAGES, DAY_S = 3, 12, 86_400.0
REFRESH = RefreshOptions(policy="cgm", continuous=True)
OPTIONS = CrawlOptions((), rules=Rules(delay_s=3_600.0, per_connection=4), refresh=REFRESH, strategy="breadth-first")
STRATEGY = resume.strategy_of(OPTIONS)


class Weeks:
    """A crawl whose servers answer at once; the store commits what the loop sent a while ago."""

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

    def goes_on(self, days: float) -> None:
        end = self.now + days * DAY_S
        while self.now < end:
            answer = self.agenda.next(self.now)
            if isinstance(answer, Visit):
                self._visit(answer)
            else:
                assert isinstance(answer, WaitUntil)
                self.now = max(self.now + 1.0, min(answer.time, end))
            if len(self._sent) > 8:
                self.commits()

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

    def commits(self) -> None:
        self.keeper.commit(self._sent)
        for one in self._sent:
            self.snapshots.committed(one.number)
        self._sent.clear()

    def log(self) -> list[int]:
        """The batches whose logs are there."""
        connection = sqlite3.connect(self.folder / DATABASE)
        found = [number for (number,) in connection.execute("select batch from journal order by batch")]
        connection.close()
        return found

    def killed(self) -> None:
        self.outbox.flush()
        self.commits()
        self.keeper.leave()


def known(refresher: Any) -> list[dict[str, Any]]:
    moment = refresher.started + 1000 * DAY_S
    learned = ("page", "crawls", "changes", "last_crawl", "failures", "value", "price")
    return [{name: refresher.explain(page, moment)[name] for name in learned} for page in range(PAGES)]


def assert_same(weeks: Weeks, state: resume.CrawlState) -> None:
    ours, theirs = weeks.frontier, state.frontier
    assert (ours.state.page[:PAGES] == theirs.state.page[:PAGES]).all()
    assert (ours.state.state[:PAGES] == theirs.state.state[:PAGES]).all()
    assert (ours.state.site["ready_at"][:SITES] == theirs.state.site["ready_at"][:SITES]).all()
    assert ours.state.run[0].visits == theirs.state.run[0].visits
    assert known(weeks.refresher) == known(state.refresher)


@pytest.fixture
def weeks(tmp_path: Path) -> Weeks:
    return Weeks(tmp_path / "crawl")


def test_logs_stay_bounded_and_a_killed_crawl_goes_on_as_it_was(weeks: Weeks) -> None:
    lengths = []
    for _ in range(10):
        weeks.goes_on(0.6)
        log = weeks.log()
        lengths.append(len(log))
        assert log == list(range(log[0], log[-1] + 1))
    assert weeks.log()[0] > 5 * max(lengths[2:])
    assert max(lengths[2:]) <= lengths[1] + 30  # between two and three snapshots' worth
    weeks.killed()
    assert_same(weeks, resume.restored(weeks.folder, OPTIONS, STRATEGY))


@pytest.mark.parametrize("damaged", ["newest", "refresh of the newest"])
def test_one_of_the_two_snapshots_may_be_damaged(weeks: Weeks, damaged: str) -> None:
    weeks.goes_on(1.0)
    weeks.killed()
    newest = max((weeks.folder / SNAPSHOT).iterdir(), key=lambda place: int(place.name))
    assert weeks.log()[0] > 1
    shutil.rmtree(newest if damaged == "newest" else newest / "refresh")
    assert_same(weeks, resume.restored(weeks.folder, OPTIONS, STRATEGY))


def test_without_both_the_crawl_is_refused_in_one_line(weeks: Weeks) -> None:
    weeks.goes_on(1.0)
    weeks.killed()
    shutil.rmtree(weeks.folder / SNAPSHOT)
    with pytest.raises(ConfigError, match="the log of batch 1 is missing, and no snapshot reaches beyond it; restore"):
        resume.restored(weeks.folder, OPTIONS, STRATEGY)


def test_who_is_believed_is_known_although_the_log_does_not_begin_at_the_beginning(weeks: Weeks) -> None:
    weeks.refresher.signalled(0, 0, weeks.now, weeks.now)
    weeks.goes_on(0.2)
    weeks.refresher.signalled(0, 0, weeks.now, weeks.now)
    weeks.goes_on(1.0)
    weeks.killed()
    assert weeks.log()[0] > 1
    assert trust_now(weeks.folder, REFRESH) == trust_of(weeks.refresher) != []


@pytest.mark.parametrize("column", ["journal", "refresh_log"])
def test_a_batch_that_is_missing_in_between_is_said_to_be(weeks: Weeks, column: str) -> None:
    weeks.goes_on(0.5)
    weeks.killed()
    with sqlite3.connect(weeks.folder / DATABASE) as connection:
        connection.execute("delete from journal where batch = 3")
    reading = Reading(weeks.folder)
    with pytest.raises(ConfigError, match="the log of batch 3 is missing"):
        list(getattr(reading, column)())
    reading.close()


# ---- signals and progress


def told(number: int, at: float) -> Batch:
    """One of the inbox and one of the crawl's own, with nothing else."""
    signals = [
        SignalNoted(number, 1, at, "indexnow", "changed", "noted"),
        SignalNoted(-number, 1, at, "feed", "changed", "noted"),
    ]
    whole = batch(number)
    progress = CrawlProgress(at, float(number), 0, 0, 0, 0, 0, 5, 1, 0.5)
    return Batch(number, [], [], [], [], [], whole.calls, progress, signals=signals)


def test_signals_are_kept_for_a_month_and_counted_for_ever(tmp_path: Path) -> None:
    claim_new(tmp_path / "c", {}).release()
    keeper = Keeper(tmp_path / "c", StoreSettings())
    moments = [1.7e9 + number * DAY_S / 6 for number in range(1, 500)]
    for first in range(0, len(moments), 100):
        keeper.commit([told(number, moments[number - 1]) for number in range(first + 1, min(first + 101, 500))])
    reading = Reading(tmp_path / "c")
    (oldest, kept), totals = (
        reading.connection.execute("select min(at), count(*) from signal").fetchone(),
        reading.connection.execute("select channel, signals from signal_total").fetchall(),
    )
    assert moments[-1] - SIGNALS_KEPT_S <= oldest and kept == 2 * sum(at >= oldest for at in moments)
    assert totals == [("feed", 499), ("indexnow", 499)]
    assert reading.heard() == (499, -499)
    late = told(500, moments[-1] + 2 * SIGNALS_KEPT_S)._replace(signals=())
    keeper.commit([late])
    assert reading.heard() == (499, -499)
    assert reading.connection.execute("select count(*) from signal").fetchone() == (2,)
    reading.close()
    keeper.leave()


def test_progress_of_long_ago_has_a_row_a_minute(tmp_path: Path) -> None:
    claim_new(tmp_path / "c", {}).release()
    keeper = Keeper(tmp_path / "c", StoreSettings())
    moments = [1.7e9 + 10.0 * number for number in range(3_000)]
    for first in range(0, len(moments), 500):
        keeper.commit([told(number + 1, moments[number])._replace(signals=()) for number in range(first, first + 500)])
    reading = Reading(tmp_path / "c")
    kept = [at for (at,) in reading.connection.execute("select at from progress order by rowid")]
    dense = [at for at in moments if at >= moments[-1] - 3_600.0]
    assert kept[0] == moments[0] and kept[-len(dense) :] == dense
    assert (
        len(kept) <= len(dense) + len(moments) / 6 + 2 * 360
    )  # what came since they were last looked through is there
    assert reading.progress() == told(3_000, moments[-1]).progress
    reading.close()
    keeper.leave()
