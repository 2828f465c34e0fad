"""Signals of providers reach the refresher: from the inbox, and from the sitemaps, feeds and schedules that the crawl fetches."""

import asyncio
import gzip
import json
import random
import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.stage import A, B, Stage, Wire
from tests.effort import slow
from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.engine.tally import SignalCounts
from trapline.crawler.files.layout import claim_new
from trapline.crawler.files.reading import Reading
from trapline.crawler.recrawl import list_signals as list_signals_module
from trapline.crawler.recrawl import published_lists as published_lists_module
from trapline.crawler.recrawl.list_signals import SITEMAP
from trapline.crawler.recrawl.published_lists import Offload
from trapline.crawler.recrawl.signal_intake import SignalIntake
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.settings import StoreSettings
from trapline.errors import ConfigError
from trapline.fetch.limits import Limits
from trapline.frontier.layout import FETCHED, UNKNOWN, WAITING
from trapline.refresh.core.evidence import SAME_S
from trapline.signals.endpoint.intake import REPEATED_S
from trapline.signals.inbox import ACCESS, CHANGED, POINT, Inbox, Signal
from trapline.signals.published.schedule import Schedule

REFRESH = RefreshOptions(policy="residual-life", continuous=True, price=1e9)  # no page is worth this price
_XML = {"Content-Type": "application/xml"}


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    inbox = Inbox(tmp_path)
    yield inbox
    inbox.close()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> Stage:
    """Fetch /1 and /2. 17 seconds have passed."""
    stage = Stage(monkeypatch, [f"{A}/1", f"{A}/2"], refresh=REFRESH, inbox=inbox, scope="host")
    wire = stage.opens().answers(body=b"<p>one")
    stage.passes(1.0)
    wire.answers(body=b"<p>two")
    stage.passes(15.0)
    return stage


def receive(
    stage: Stage, url: str, kind: str = CHANGED, at: float | None = None, p: float = 1.0, verified: bool = True
) -> str:
    """Put a signal into the inbox, let the crawl read it, and return its outcome."""
    assert stage.inbox is not None and stage.signal_intake is not None
    now = stage.loop.time()
    stage.inbox.put([Signal(0, now, "indexnow", url, kind, now if at is None else at, p, verified)])
    assert stage.signal_intake.poll(now)
    return [signal.outcome for batch in stage._sent() for signal in batch.signals][-1]


def explained(stage: Stage, page: int) -> dict[str, object]:
    return stage.refresher.explain(page, stage.loop.time())


def answer_next(stage: Stage, body: bytes, headers: dict[str, str]) -> Wire:
    """Answer the request for the waiting page."""
    wire = stage.wires[-1]
    if not wire.sent:
        wire.opens()
        stage.passes(1.0)
    return wire.answers(headers=headers, body=body)


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- the inbox


def test_a_ping_counts_once_for_its_page(stage: Stage) -> None:
    assert receive(stage, f"{A}/1") == "noted"
    assert explained(stage, 0)["signals"] == 1
    assert receive(stage, f"{A}/1") == "old"  # less than a minute after the first
    assert explained(stage, 0)["signals"] == 1
    assert explained(stage, 1)["signals"] == 0


def test_a_ping_from_before_our_copy_is_old(stage: Stage) -> None:
    assert receive(stage, f"{A}/1", at=stage.refresher.seen_at(0) - SAME_S - 1.0) == "old"
    assert explained(stage, 0)["signals"] == 0


@pytest.mark.parametrize(("crawled_between", "outcome"), [(True, "noted"), (False, "old")])
def test_a_repeated_ping_counts_if_the_page_was_crawled_after_the_first(
    stage: Stage, crawled_between: bool, outcome: str
) -> None:
    """The endpoint holds a repeated ping back (`Intake.late`). It arrives more than a minute later, dated a minute before it was sent."""
    stage.passes(100.0)
    assert receive(stage, f"{A}/1") == "noted"
    stage.passes(20.0)
    repeated = stage.loop.time() + (10.0 if crawled_between else -10.0)
    stage.refresher.crawled(0, stage.loop.time(), changed=True)
    stage.passes(50.0)
    assert receive(stage, f"{A}/1", at=repeated - REPEATED_S) == outcome
    assert explained(stage, 0)["signals"] == int(crawled_between)


def test_a_signal_is_read_once(stage: Stage) -> None:
    receive(stage, f"{A}/1")
    assert stage.signal_intake is not None
    assert not stage.signal_intake.poll(stage.loop.time())


def test_a_verified_ping_may_add_a_page_of_a_known_site(stage: Stage) -> None:
    assert receive(stage, f"{A}/3") == "new page"
    assert stage.life("/3") == WAITING


@pytest.mark.parametrize("url", ["http://c.test/1", "http://never-heard-of.test/"])
def test_a_ping_adds_no_site(stage: Stage, url: str) -> None:
    pages, sites = stage.frontier.pages, len(stage.sites)
    assert receive(stage, url) == "no page of the crawl"
    assert (stage.frontier.pages, len(stage.sites)) == (pages, sites)


def test_an_unverified_ping_adds_no_page(stage: Stage) -> None:
    assert receive(stage, f"{A}/3", p=0.05, verified=False) == "no page of the crawl"


def test_a_ping_for_a_waiting_page_has_no_effect(stage: Stage) -> None:
    receive(stage, f"{A}/3")
    assert receive(stage, f"{A}/3") == "not fetched yet"


def test_accesses_are_counted(stage: Stage) -> None:
    assert stage.refresher.by_quality
    assert receive(stage, f"{A}/1", ACCESS, p=12.0) == "noted"
    assert explained(stage, 0)["accesses"] == 12
    assert not stage.refresher.by_quality


def test_a_point_makes_its_page_super(stage: Stage) -> None:
    assert receive(stage, f"{A}/1", POINT, at=stage.loop.time() + 500.0, p=0.9) == "noted"
    assert explained(stage, 0)["level"] == "super"


# ---- published lists


def test_robots_txt_leads_to_a_sitemap_and_the_sitemap_to_pages_and_dates(
    monkeypatch: pytest.MonkeyPatch, inbox: Inbox
) -> None:
    stage = Stage(monkeypatch, [f"{A}/1"], refresh=REFRESH, inbox=inbox, scope="host")
    wire = stage.opens((200, {}, f"Sitemap: {A}/map.xml".encode()))
    wire.answers(body=b"<p>one")
    stage.passes(1.0)
    assert stage.life("/map.xml") == WAITING
    stage.passes(30.0)
    row = "<url><loc>{}</loc><lastmod>{}</lastmod></url>"
    rows = [
        row.format(f"{A}/1", stamp(20.0)),
        row.format(f"{A}/9", stamp(3.0)),
        row.format("http://b.test/", stamp(4.0)),
    ]
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{"".join(rows)}</urlset>'.encode()
    answer_next(stage, body, _XML)
    assert stage.life("/map.xml") == FETCHED
    assert stage.life("/9") == WAITING
    assert explained(stage, 0)["signals"] == 1
    assert stage.sites.named("http://b.test") is None
    assert [(signal.id, signal.page, signal.channel) for batch in stage._sent() for signal in batch.signals] == [
        (-1, 0, "sitemap")
    ]


def test_a_feed_reports_entries_of_its_own_host_and_its_hub(stage: Stage, inbox: Inbox) -> None:
    receive(stage, f"{A}/feed")
    stage.passes(20.0)
    entry = "<entry><link href='{}'/><updated>{}</updated></entry>"
    body = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='https://hub.test/'/>"
        f"<link rel='self' href='{A}/feed'/>{entry.format(A + '/2', stamp(30.0))}{entry.format('http://b.test/x', stamp(30.0))}</feed>"
    )
    answer_next(stage, body.encode(), {"Content-Type": "application/atom+xml"})
    assert explained(stage, 1)["signals"] == 1
    assert stage.sites.named("http://b.test") is None
    assert inbox.topics() == [(f"{A}/feed", "https://hub.test/")]


def test_a_schedule_publishes_points_of_its_own_host(stage: Stage) -> None:
    receive(stage, f"{A}/schedule.json")
    stage.passes(20.0)
    now = stage.loop.time()
    entries = [{"url": f"{A}/2", "updates": [{"at": stamp(now + 1000.0), "p": 0.9}]}]
    feed = {"version": 1, "host": "a.test", "generated": stamp(now), "expires": stamp(now + 9000.0), "entries": entries}
    answer_next(stage, json.dumps(feed).encode(), {"Content-Type": "application/json"})
    assert explained(stage, 1)["level"] == "super"
    assert explained(stage, 0)["level"] != "super"


def test_points_of_an_unfetched_page_count_when_the_page_is_fetched(stage: Stage) -> None:
    """A schedule is often fetched before most of the pages that it names, and some of those pages are not discovered yet."""
    assert stage.signal_intake is not None
    now = stage.loop.time()
    moments = {f"{A}/3": [(now + 1.0, 0.9), (now + 900.0, 0.9)]}
    stage.signal_intake.list_signals.schedule(1, Schedule(moments, now, now + 9_000.0, Counter()))
    receive(stage, f"{A}/3")
    stage.passes(20.0)
    answer_next(stage, b"<p>three", {"Content-Type": "text/html"})
    found = explained(stage, 2)
    assert found["level"] == "super" and found["next_point"]["at"] == pytest.approx(now + 900.0)  # type: ignore[index]


def test_a_page_names_its_feed_in_its_head_element(stage: Stage) -> None:
    receive(stage, f"{A}/3")
    stage.passes(20.0)
    head = b"<html><head><link rel=alternate type='application/rss+xml' href='/news.rss'></head><body>x"
    assert stage.life("/news.rss") == UNKNOWN
    answer_next(stage, head, {"Content-Type": "text/html"})
    assert stage.life("/news.rss") == WAITING


def test_a_list_counts_the_accesses_of_the_pages_that_it_lists(stage: Stage) -> None:
    receive(stage, f"{A}/feed")
    stage.passes(20.0)
    body = f"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='{A}/2'/><updated>{stamp(1.0)}</updated></entry></feed>"
    answer_next(stage, body.encode(), {"Content-Type": "application/atom+xml"})
    receive(stage, f"{A}/2", ACCESS, p=5.0)
    assert explained(stage, 1)["accesses"] == explained(stage, 2)["accesses"] == 5
    assert explained(stage, 0)["accesses"] == 0


def test_a_repeated_date_of_a_list_is_old_after_the_page_was_crawled(stage: Stage) -> None:
    stage.passes(100.0)
    assert stage.signal_intake is not None
    date = stage.loop.time() - 10.0
    for signals in (1, 1):
        stage.signal_intake.published_lists._take_entries(1, SITEMAP, [(f"{A}/1", date)], Counter())
        assert stage.refresher.signals(0) == signals
        stage.refresher.crawled(0, stage.loop.time(), changed=True)
        stage.passes(10.0)


def test_two_lists_that_disagree_report_a_change_once(stage: Stage) -> None:
    """The lists give days without times, and one list still shows yesterday."""
    assert stage.signal_intake is not None
    for _ in range(3):
        stage.refresher.crawled(0, stage.loop.time(), changed=False)
        for list_page, day in ((1, -1.0), (2, 0.0)):
            stage.signal_intake.published_lists._take_entries(
                list_page, SITEMAP, [(f"{A}/1", day * 86_400.0)], Counter()
            )
        stage.passes(61.0)
    assert stage.refresher.signals(0) == 1


def test_the_pages_to_request_whole_are_bounded_and_sent_once_a_batch(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_signals_module, "_MOST_WHOLE", 3)
    assert stage.signal_intake is not None
    for page in (9, 7, 5, 3, 1):
        stage.signal_intake.list_signals.have_whole(page, True)
    stage.signal_intake.list_signals.have_whole(7, False)
    assert [batch.whole for batch in stage._sent() if batch.whole is not None] == [[5, 9]]


def test_the_expiry_of_a_cache_is_a_weak_point(stage: Stage) -> None:
    receive(stage, f"{A}/3")
    stage.passes(20.0)
    now = stage.loop.time()
    answer_next(stage, b"<p>three", {"Content-Type": "text/html", "Cache-Control": "max-age=600"})
    point = explained(stage, 2)["next_point"]
    assert isinstance(point, dict) and now + 600.0 <= point["at"] <= now + 602.0
    assert point["p"] == pytest.approx(0.05) and explained(stage, 2)["level"] == "normal"
    assert explained(stage, 1)["next_point"] is None


@pytest.mark.parametrize(("p", "verified", "recalled"), [(1.0, True, True), (0.05, False, False)])
def test_a_verified_ping_recalls_a_gone_page(stage: Stage, p: float, verified: bool, recalled: bool) -> None:
    receive(stage, f"{A}/2")  # this makes the site one that sends signals
    stage.refresher.gone(0, stage.loop.time())
    stage.passes(100.0)
    receive(stage, f"{A}/1", p=p, verified=verified)
    assert (explained(stage, 0)["due"] <= stage.loop.time()) == recalled  # type: ignore[operator]


# ---- a resumed crawl


def resumed(stage: Stage, folder: Path) -> SignalIntake:
    """Commit what the crawl has sent, and return the signal intake with which the next run starts."""
    assert stage.inbox is not None
    claim_new(folder, {}).release()
    keeper = Keeper(folder, StoreSettings())
    keeper.commit(stage._sent())
    keeper.leave()
    about = stage.refresher, stage.frontier, stage.link_resolver, stage.inbox, stage.outbox, stage.loop.time
    signal_intake, reading = SignalIntake(*about, Offload(stage.loop)), Reading(folder)
    signal_intake.restore(reading)
    reading.close()
    return signal_intake


def test_a_resumed_crawl_knows_what_the_lists_said(
    monkeypatch: pytest.MonkeyPatch, inbox: Inbox, tmp_path: Path
) -> None:
    stage = Stage(monkeypatch, [f"{A}/1"], refresh=REFRESH, inbox=inbox, scope="host")
    stage.opens((200, {}, f"Sitemap: {A}/map.xml".encode())).answers(body=b"<p>one")
    stage.passes(30.0)
    rows = [f"<url><loc>{A}/{path}</loc><lastmod>{stamp(at)}</lastmod></url>" for path, at in (("1", 20.0), ("9", 3.0))]
    rows.append(f"<url><loc>{A}/undated</loc></url>")
    answer_next(stage, f"<urlset>{''.join(rows)}</urlset>".encode(), _XML)
    receive(stage, f"{A}/1", ACCESS, p=2.0)
    before, after = stage.signal_intake, resumed(stage, tmp_path / "c")
    (map_page,) = stage.link_resolver.find([f"{A}/map.xml"])
    assert before is not None
    assert [one.published_lists.queue.speaks_for(map_page) for one in (before, after)] == [A, A]
    assert (after._last, after.list_signals._own) == (before._last, before.list_signals._own) == (1, -1)
    assert after.signal_counts == before.signal_counts == SignalCounts(1, 1)
    pages, lists = stage.frontier.pages, [one.signal_recorder.listed for one in (before, after)]
    said = [[(one.by(page), one.dated(page)) for page in range(pages)] for one in lists]
    assert said[0] == said[1] and sum(by >= 0 for by, _ in said[0]) == 3


@pytest.mark.parametrize("stopped", [False, True])
def test_accesses_of_an_unfetched_page_count_when_it_is_fetched(stage: Stage, tmp_path: Path, stopped: bool) -> None:
    receive(stage, f"{A}/3")
    for _ in range(2):
        assert receive(stage, f"{A}/3", ACCESS, p=5.0) == "not fetched yet"
    receive(stage, f"{A}/1", ACCESS, p=3.0)
    if stopped:
        stage.crawler.features.signal_intake = resumed(stage, tmp_path / "c")
    stage.passes(20.0)
    answer_next(stage, b"<p>three", {})
    assert [explained(stage, page)["accesses"] for page in range(3)] == [3, 0, 10]


def test_a_list_that_was_read_in_part_is_requested_whole_the_next_time(stage: Stage, tmp_path: Path) -> None:
    receive(stage, f"{A}/map.xml")
    stage.passes(20.0)
    rows = "".join(f"<url><loc>{A}/p{number}</loc></url>" for number in range(1_200))
    answer_next(stage, f"<urlset>{rows}</urlset>".encode(), _XML)
    assert stage.life("/p999") == WAITING and stage.life("/p1000") == UNKNOWN
    assert resumed(stage, tmp_path / "c").whole == {2}
    stage.passes(1.0)
    assert stage.life("/p1199") == WAITING
    assert resumed(stage, tmp_path / "d").whole == set()


class ManualOffload:
    """An offload that reads when the test says so, and takes a limited number of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self.left, self.waiting = most_bytes, list[Callable[[], None]]()

    def read(self, read: Callable[[], Any], take: Callable[[Any], None], size: int) -> bool:
        self.left -= size
        if self.left >= 0:
            self.waiting.append(lambda: take(read()))
        return self.left >= 0

    def soon(self, callback: Callable[[], None]) -> None:
        callback()


@pytest.mark.parametrize("packed", ["Content-Encoding", "gzip file"])
def test_a_long_list_waits_in_its_compressed_form(stage: Stage, packed: str) -> None:
    """A decoded list may be a thousand times as long, so a compressed list is never read at once."""
    assert stage.signal_intake is not None
    manual = stage.signal_intake.published_lists._offload = ManualOffload(1_000)
    receive(stage, f"{A}/map.xml")
    stage.passes(20.0)
    body = gzip.compress(b"<urlset>" + b" " * 200_000 + f"<url><loc>{A}/listed</loc></url>".encode())
    assert len(body) < 1_000
    headers = {"Content-Encoding": "gzip"} if packed == "Content-Encoding" else {}
    answer_next(stage, body, {**_XML, **headers})
    assert (
        manual.left == 1_000 - len(body)
        and stage.signal_intake.whole == {2}
        and stage.link_resolver.find([f"{A}/listed"]) == [-1]
    )
    manual.waiting.pop()()
    assert stage.signal_intake.whole == set() and stage.life("/listed") == WAITING


def test_a_long_compressed_list_is_read_to_its_end(stage: Stage) -> None:
    """The second reading decodes as many bytes as the first."""
    assert stage.signal_intake is not None
    results = stage.crawler.results
    results._settings = replace(results._settings, expanded_bytes=Limits.expanded_bytes)
    manual = stage.signal_intake.published_lists._offload = ManualOffload(10_000_000)
    receive(stage, f"{A}/map.xml")
    stage.passes(20.0)
    chance = random.Random(1)
    rows = "".join(f"<url><loc>http://elsewhere.test/{chance.randbytes(400).hex()}</loc></url>" for _ in range(900))
    body = gzip.compress(f"<urlset>{rows}<url><loc>{A}/listed</loc></url></urlset>".encode())
    assert len(body) > 256 * 1024
    answer_next(stage, body, {**_XML, "Content-Encoding": "gzip"})
    manual.waiting.pop()()
    assert stage.life("/listed") == WAITING


def test_a_list_without_room_to_wait_is_requested_whole_the_next_time(stage: Stage) -> None:
    assert stage.signal_intake is not None
    manual = stage.signal_intake.published_lists._offload = ManualOffload(70_000)
    receive(stage, f"{A}/map.xml")
    stage.passes(20.0)
    answer_next(stage, b"<urlset>" + b" " * 80_000 + f"<url><loc>{A}/listed</loc></url>".encode(), _XML)
    assert manual.waiting == [] and stage.signal_intake.whole == {2} and stage.life("/listed") == UNKNOWN


def test_the_bytes_that_wait_to_be_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_lists_module, "MOST_WAITING_BYTES", 100)
    loop, found, go = asyncio.new_event_loop(), list[int](), threading.Event()
    offload = Offload(loop)
    try:
        begun = [offload.read(lambda at=at: (go.wait(), at)[1], found.append, 40) for at in range(4)]  # type: ignore[misc]
        assert begun == [True, True, False, False]
        go.set()
        while len(found) < 2:
            loop.run_until_complete(asyncio.sleep(0.001))
        assert found == [0, 1]
        assert offload.read(lambda: 9, found.append, 1_000)  # one list of any size may wait
        assert not offload.read(lambda: 9, found.append, 1)
    finally:
        offload.close()
        offload._thread.shutdown()
        loop.close()


def test_a_new_inbox_is_read_from_its_beginning_and_each_signal_once(stage: Stage, tmp_path: Path) -> None:
    """This holds for any number of signals in each inbox, and for any number of stops."""
    stage.signal_intake = resumed(stage, tmp_path / "first")
    receive(stage, f"{A}/1")
    receive(stage, f"{A}/2")
    (tmp_path / "new").mkdir()
    stage.inbox = Inbox(tmp_path / "new")
    for run in range(3):
        stage.inbox.put(Signal(0, 99.0, "indexnow", f"{A}/1", ACCESS, 99.0, 1.0, True) for _ in range(3))
        signal_intake = resumed(stage, tmp_path / f"c{run}")
        before = signal_intake.signal_counts
        assert signal_intake.poll(stage.loop.time()) and signal_intake.signal_counts == before._replace(
            access_counts=3 * (run + 1)
        )
        assert not signal_intake.poll(stage.loop.time())
    stage.inbox.close()
    ids = [signal.id for batch in stage._sent() for signal in batch.signals]
    assert ids == sorted(set(ids)) and explained(stage, 0)["accesses"] == 9


@pytest.mark.parametrize("made_anew", [False, True])
@pytest.mark.parametrize("with_journal_files", [False, True])
def test_a_deleted_inbox_is_noticed_during_the_crawl_and_the_new_one_is_read(
    stage: Stage, inbox: Inbox, tmp_path: Path, made_anew: bool, with_journal_files: bool
) -> None:
    """Each signal is read once, the ids continue, and one message reports the loss."""
    signal_intake = stage.signal_intake
    assert signal_intake is not None and receive(stage, f"{A}/1") == "noted"
    for file in tmp_path.glob("signals.db*" if with_journal_files else "signals.db"):
        file.unlink()
    if not made_anew:
        assert not signal_intake.poll(stage.loop.time()) and signal_intake.trouble.startswith("signals.db was deleted")
    with closing(Inbox(tmp_path)) as endpoint:
        endpoint.put(Signal(0, 0.0, "indexnow", f"{A}/2", ACCESS, 0.0, 1.0, True) for _ in range(2))
    assert signal_intake.poll(stage.loop.time()) and not signal_intake.poll(stage.loop.time())
    assert signal_intake.trouble.startswith("signals.db was deleted")
    assert not signal_intake.poll(stage.loop.time() + 10.0) and signal_intake.trouble == ""
    batches = stage._sent()
    assert [signal.id for batch in batches for signal in batch.signals] == [1, 2, 3]
    assert [batch.inbox for batch in batches if batch.inbox] == [(inbox.identity, 1)]
    assert explained(stage, 1)["accesses"] == 2 and signal_intake.signal_counts == SignalCounts(1, 2)


def put_five(inbox: Inbox, now: float) -> None:
    """Put signals 1 to 5: 1 and 3 for our first page, 5 for our second page, 2 and 4 for another site."""
    urls = (f"{A}/1", f"{B}/", f"{A}/1", f"{B}/", f"{A}/2")
    inbox.put(Signal(0, now, "indexnow", url, ACCESS, now, 1.0, True) for url in urls)


def test_the_intake_knows_how_many_signals_of_a_moving_site_were_read(stage: Stage, inbox: Inbox) -> None:
    assert stage.signal_intake is not None
    put_five(inbox, stage.loop.time())
    stage.signal_intake._last = 1
    assert stage.signal_intake.inbox_position({A}) == (inbox.identity, 2)
    assert stage.signal_intake.inbox_position({B}) == (inbox.identity, 1)
    assert stage.signal_intake.inbox_position(()) == (inbox.identity, 5)


@pytest.mark.parametrize(("read_up_to", "noted"), [((4, 2, 5), [(1, 0), (2, -1), (3, 1)]), ((5,), [])])
def test_a_new_owner_reads_the_signals_that_the_old_owner_has_not_read(
    stage: Stage, inbox: Inbox, tmp_path: Path, read_up_to: tuple[int, ...], noted: list[tuple[int, int]]
) -> None:
    """Each signal counts once, even if a process is killed before or after it reads the signal."""
    now, newcomer = stage.loop.time(), stage.signal_intake
    assert newcomer is not None
    put_five(inbox, now)
    newcomer.is_paused = True
    assert not newcomer.poll(now)
    for number, up_to in enumerate(read_up_to):
        newcomer.continue_after(inbox.identity, up_to, is_first=number == 0)
    killed = resumed(stage, tmp_path / "killed")
    assert killed.poll(now) == bool(noted)
    assert [(one.id, one.page) for batch in stage._sent() for one in batch.signals] == noted
    again = resumed(stage, tmp_path / "again")
    assert not again.poll(now)
    again.continue_after("an inbox that is gone", 4, is_first=True)
    assert again.poll(now) and again._last == 5


def test_an_inbox_that_is_put_back_is_read_from_where_the_crawl_was(stage: Stage, inbox: Inbox, tmp_path: Path) -> None:
    receive(stage, f"{A}/1")
    inbox.close()
    shutil.copy(tmp_path / "signals.db", tmp_path / "copy")
    (tmp_path / "copy").replace(tmp_path / "signals.db")
    assert stage.signal_intake is not None and not stage.signal_intake.poll(stage.loop.time())
    receive(stage, f"{A}/2")
    assert [signal.id for batch in stage._sent() for signal in batch.signals] == [1, 2]


def test_an_older_copy_of_the_inbox_is_read_from_its_beginning(stage: Stage, inbox: Inbox, tmp_path: Path) -> None:
    """The older copy uses again ids that the crawl has read."""
    receive(stage, f"{A}/1", ACCESS, p=1.0)
    inbox.close()
    shutil.copy(tmp_path / "signals.db", tmp_path / "copy")
    assert stage.signal_intake is not None
    with closing(Inbox(tmp_path)) as endpoint:
        endpoint.put([Signal(0, 0.0, "indexnow", f"{A}/1", ACCESS, 0.0, 1.0, True)] * 2)
    stage.signal_intake._inbox.reopen()
    assert stage.signal_intake.poll(stage.loop.time())
    for file in tmp_path.glob("signals.db*"):
        file.unlink()
    (tmp_path / "copy").rename(tmp_path / "signals.db")
    with closing(Inbox(tmp_path)) as endpoint:
        endpoint.put([Signal(0, 0.0, "indexnow", f"{A}/2", ACCESS, 0.0, 1.0, True)])
    assert stage.signal_intake.poll(stage.loop.time())
    assert [signal.id for batch in stage._sent() for signal in batch.signals] == [1, 2, 3, 4, 5]
    assert explained(stage, 1)["accesses"] == 1


def test_a_file_that_is_not_an_inbox_is_reported_until_it_is_gone(stage: Stage, tmp_path: Path) -> None:
    assert stage.signal_intake is not None
    for file in tmp_path.glob("signals.db*"):
        file.unlink()
    (tmp_path / "signals.db").write_bytes(b"not a database at all" * 100)
    for _ in range(2):
        assert not stage.signal_intake.poll(stage.loop.time())
        assert "signals.db: not a signals database, or damaged" in stage.signal_intake.trouble
    (tmp_path / "signals.db").unlink()
    assert not stage.signal_intake.poll(stage.loop.time())
    assert receive(stage, f"{A}/1") == "noted"


def test_an_inbox_without_its_table_is_reported_as_damaged(stage: Stage, inbox: Inbox, tmp_path: Path) -> None:
    assert stage.signal_intake is not None
    with sqlite3.connect(tmp_path / "signals.db") as connection:
        connection.execute("drop table signal")
    assert not stage.signal_intake.poll(stage.loop.time())
    assert stage.signal_intake.trouble == "signals.db cannot be read: no such table: signal"
    with pytest.raises(ConfigError, match=r"signals\.db: damaged \(no such table: signal\); move the file away"):
        Inbox(tmp_path)


# ---- the clock of an earlier run was ahead


_HOUR_S = 3_600.0


def clock_was_an_hour_ahead(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> float:
    """Continue from a clock that was an hour ahead. The wall clock is right again. Return the time by the wall clock."""
    assert stage.signal_intake is not None
    stage.passes(2 * _HOUR_S)
    for page in range(2):
        stage.refresher.crawled(page, stage.loop.time(), changed=False)
    stage.passes(10.0)
    signal_recorder = stage.signal_intake.signal_recorder
    monkeypatch.setattr(signal_recorder, "_wall_clock", lambda: stage.loop.time() - _HOUR_S)
    monkeypatch.setattr(stage.signal_intake, "_began", stage.refresher.now)
    return stage.loop.time() - _HOUR_S


def put(stage: Stage, url: str, kind: str, received: float, moment: float) -> str:
    assert stage.inbox is not None and stage.signal_intake is not None
    stage.inbox.put([Signal(0, received, "indexnow", url, kind, moment, 1.0, True)])
    assert stage.signal_intake.poll(stage.loop.time())
    return [signal.outcome for batch in stage._sent() for signal in batch.signals][-1]


@slow
@pytest.mark.parametrize("before_s", [0.0, pytest.param(300.0, marks=pytest.mark.slow)])
def test_pings_count_after_a_run_whose_clock_was_ahead(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, before_s: float
) -> None:
    """Pings from the time before this run count too. A change that is older than its ping stays older by the same time."""
    late = clock_was_an_hour_ahead(stage, monkeypatch) - before_s
    assert put(stage, f"{A}/1", CHANGED, late, late) == "noted"
    assert put(stage, f"{A}/2", CHANGED, late, late - 600.0) == "old"
    assert stage.refresher.signals(0) == 1


@slow
@pytest.mark.parametrize("before_s", [0.0, pytest.param(300.0, marks=pytest.mark.slow)])
def test_points_keep_their_distance_from_now(stage: Stage, monkeypatch: pytest.MonkeyPatch, before_s: float) -> None:
    """This holds for points from before this run too."""
    late = clock_was_an_hour_ahead(stage, monkeypatch)
    put(stage, f"{A}/1", POINT, late - before_s, late + 500.0)
    assert stage.signal_intake is not None
    stage.signal_intake.list_signals.schedule(1, Schedule({f"{A}/2": [(late + 700.0, 0.9)]}, late, late + 900.0, {}))
    points = [explained(stage, page)["next_point"]["at"] - stage.loop.time() for page in range(2)]  # type: ignore[index]
    assert points == pytest.approx([500.0, 700.0])


def test_dates_of_lists_count_after_a_run_whose_clock_was_ahead(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    late = clock_was_an_hour_ahead(stage, monkeypatch)
    assert stage.signal_intake is not None
    for _ in range(2):
        entries = [(f"{A}/1", late - 1.0), (f"{A}/2", late - 600.0)]
        stage.signal_intake.published_lists._take_entries(9, SITEMAP, entries, Counter())
    assert [stage.refresher.signals(page) for page in range(2)] == [1, 0]
