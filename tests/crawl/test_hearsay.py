"""What providers tell reaches the refresher: from the inbox, and from sitemaps, feeds and schedules that the crawl fetches itself."""

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

from tests.crawl.stage import A, B, Stage, Wire
from trapline.crawl.engine.options import RefreshOptions
from trapline.crawl.engine.status import SignalCounts
from trapline.crawl.files.layout import claim_new
from trapline.crawl.files.reading import Reading
from trapline.crawl.recrawl import offload as aside_module
from trapline.crawl.recrawl import published_lists as tellers_module
from trapline.crawl.recrawl.offload import Offload
from trapline.crawl.recrawl.published_lists import SITEMAP
from trapline.crawl.recrawl.signal_intake import SignalIntake
from trapline.crawl.store.keeper import Keeper
from trapline.crawl.store.settings import StoreSettings
from trapline.errors import ConfigError
from trapline.fetch.limits import Limits
from trapline.frontier.layout import FETCHED, UNKNOWN, WAITING
from trapline.refresh.core.evidence import SAME_S
from trapline.signals.endpoint.intake import REPEATED_S
from trapline.signals.inbox import ACCESS, CHANGED, POINT, Inbox, Signal
from trapline.signals.published.schedule import Schedule

REFRESH = RefreshOptions(policy="residual-life", continuous=True, price=1e9)  # nothing is worth that
_XML = {"Content-Type": "application/xml"}


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    inbox = Inbox(tmp_path)
    yield inbox
    inbox.close()


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, inbox: Inbox) -> Stage:
    """/1 and /2 are had, after 17 seconds."""
    stage = Stage(monkeypatch, [f"{A}/1", f"{A}/2"], refresh=REFRESH, inbox=inbox, scope="host")
    wire = stage.opens().answers(body=b"<p>one")
    stage.passes(1.0)
    wire.answers(body=b"<p>two")
    stage.passes(15.0)
    return stage


def told(
    stage: Stage, url: str, kind: str = CHANGED, at: float | None = None, p: float = 1.0, verified: bool = True
) -> str:
    """A signal comes; what became of it."""
    assert stage.inbox is not None and stage.signal_intake is not None
    now = stage.loop.time()
    stage.inbox.put([Signal(0, now, "indexnow", url, kind, now if at is None else at, p, verified)])
    assert stage.signal_intake.poll(now)
    return [signal.outcome for batch in stage._sent() for signal in batch.signals][-1]


def known_of(stage: Stage, page: int) -> dict[str, object]:
    return stage.refresher.explain(page, stage.loop.time())


def serve(stage: Stage, body: bytes, headers: dict[str, str]) -> Wire:
    """The page that waits is asked for and answered."""
    wire = stage.wires[-1]
    if not wire.sent:
        wire.opens()
        stage.passes(1.0)
    return wire.answers(headers=headers, body=body)


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- the inbox


def test_a_ping_is_noted_of_its_page_once(stage: Stage) -> None:
    assert told(stage, f"{A}/1") == "noted"
    assert known_of(stage, 0)["signals"] == 1
    assert told(stage, f"{A}/1") == "old"  # within a minute of the other
    assert known_of(stage, 0)["signals"] == 1
    assert known_of(stage, 1)["signals"] == 0


def test_a_ping_of_before_our_copy_says_nothing(stage: Stage) -> None:
    assert told(stage, f"{A}/1", at=stage.refresher.seen_at(0) - SAME_S - 1.0) == "old"
    assert known_of(stage, 0)["signals"] == 0


@pytest.mark.parametrize(("crawled_between", "outcome"), [(True, "noted"), (False, "old")])
def test_a_repetition_counts_if_the_page_was_crawled_since_the_first(
    stage: Stage, crawled_between: bool, outcome: str
) -> None:
    """The endpoint holds it back (`Intake.late`): it comes after the minute, and its moment is a minute before it was said."""
    stage.passes(100.0)
    assert told(stage, f"{A}/1") == "noted"
    stage.passes(20.0)
    repeated = stage.loop.time() + (10.0 if crawled_between else -10.0)
    stage.refresher.crawled(0, stage.loop.time(), changed=True)
    stage.passes(50.0)
    assert told(stage, f"{A}/1", at=repeated - REPEATED_S) == outcome
    assert known_of(stage, 0)["signals"] == int(crawled_between)


def test_nothing_is_heard_twice(stage: Stage) -> None:
    told(stage, f"{A}/1")
    assert stage.signal_intake is not None
    assert not stage.signal_intake.poll(stage.loop.time())


def test_a_verified_ping_may_bring_a_new_page_of_a_known_site(stage: Stage) -> None:
    assert told(stage, f"{A}/3") == "new page"
    assert stage.life("/3") == WAITING


@pytest.mark.parametrize("url", ["http://c.test/1", "http://never-heard-of.test/"])
def test_no_ping_brings_a_new_site(stage: Stage, url: str) -> None:
    pages, sites = stage.frontier.pages, len(stage.sites)
    assert told(stage, url) == "no page of the crawl"
    assert (stage.frontier.pages, len(stage.sites)) == (pages, sites)


def test_who_is_not_verified_brings_no_page(stage: Stage) -> None:
    assert told(stage, f"{A}/3", p=0.05, verified=False) == "no page of the crawl"


def test_a_page_that_waits_needs_no_ping(stage: Stage) -> None:
    told(stage, f"{A}/3")
    assert told(stage, f"{A}/3") == "not fetched yet"


def test_accesses_count(stage: Stage) -> None:
    assert stage.refresher.by_quality
    assert told(stage, f"{A}/1", ACCESS, p=12.0) == "noted"
    assert known_of(stage, 0)["accesses"] == 12
    assert not stage.refresher.by_quality


def test_points_are_published(stage: Stage) -> None:
    assert told(stage, f"{A}/1", POINT, at=stage.loop.time() + 500.0, p=0.9) == "noted"
    assert known_of(stage, 0)["level"] == "super"


# ---- what is published


def test_robots_txt_leads_to_a_sitemap_and_that_to_pages_and_dates(
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
    serve(stage, body, _XML)
    assert stage.life("/map.xml") == FETCHED
    assert stage.life("/9") == WAITING
    assert known_of(stage, 0)["signals"] == 1
    assert stage.sites.named("http://b.test") is None
    assert [(signal.id, signal.page, signal.channel) for batch in stage._sent() for signal in batch.signals] == [
        (-1, 0, "sitemap")
    ]


def test_a_feed_tells_of_entries_of_its_own_host_and_where_its_hub_is(stage: Stage, inbox: Inbox) -> None:
    told(stage, f"{A}/feed")
    stage.passes(20.0)
    entry = "<entry><link href='{}'/><updated>{}</updated></entry>"
    body = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='https://hub.test/'/>"
        f"<link rel='self' href='{A}/feed'/>{entry.format(A + '/2', stamp(30.0))}{entry.format('http://b.test/x', stamp(30.0))}</feed>"
    )
    serve(stage, body.encode(), {"Content-Type": "application/atom+xml"})
    assert known_of(stage, 1)["signals"] == 1
    assert stage.sites.named("http://b.test") is None
    assert inbox.topics() == [(f"{A}/feed", "https://hub.test/")]


def test_a_schedule_publishes_moments_of_its_host(stage: Stage) -> None:
    told(stage, f"{A}/schedule.json")
    stage.passes(20.0)
    now = stage.loop.time()
    entries = [{"url": f"{A}/2", "updates": [{"at": stamp(now + 1000.0), "p": 0.9}]}]
    feed = {"version": 1, "host": "a.test", "generated": stamp(now), "expires": stamp(now + 9000.0), "entries": entries}
    serve(stage, json.dumps(feed).encode(), {"Content-Type": "application/json"})
    assert known_of(stage, 1)["level"] == "super"
    assert known_of(stage, 0)["level"] != "super"


def test_moments_of_pages_that_we_do_not_have_yet_are_heard_when_they_are_had(stage: Stage) -> None:
    """A schedule is often fetched before most of the pages that it speaks of, and some of these nobody has met."""
    assert stage.signal_intake is not None
    now = stage.loop.time()
    moments = {f"{A}/3": [(now + 1.0, 0.9), (now + 900.0, 0.9)]}
    stage.signal_intake.published_lists._schedule(1, Schedule(moments, now, now + 9_000.0, Counter()))
    told(stage, f"{A}/3")
    stage.passes(20.0)
    serve(stage, b"<p>three", {"Content-Type": "text/html"})
    found = known_of(stage, 2)
    assert found["level"] == "super" and found["next_point"]["at"] == pytest.approx(now + 900.0)  # type: ignore[index]


def test_a_page_names_its_feed_in_its_head(stage: Stage) -> None:
    told(stage, f"{A}/3")
    stage.passes(20.0)
    head = b"<html><head><link rel=alternate type='application/rss+xml' href='/news.rss'></head><body>x"
    assert stage.life("/news.rss") == UNKNOWN
    serve(stage, head, {"Content-Type": "text/html"})
    assert stage.life("/news.rss") == WAITING


def test_who_lists_a_page_is_worth_the_accesses_of_that_page(stage: Stage) -> None:
    told(stage, f"{A}/feed")
    stage.passes(20.0)
    body = f"<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='{A}/2'/><updated>{stamp(1.0)}</updated></entry></feed>"
    serve(stage, body.encode(), {"Content-Type": "application/atom+xml"})
    told(stage, f"{A}/2", ACCESS, p=5.0)
    assert known_of(stage, 1)["accesses"] == known_of(stage, 2)["accesses"] == 5
    assert known_of(stage, 0)["accesses"] == 0


def test_a_date_that_a_list_repeats_is_no_news_of_a_page_crawled_since(stage: Stage) -> None:
    stage.passes(100.0)
    assert stage.signal_intake is not None
    date = stage.loop.time() - 10.0
    for signals in (1, 1):
        stage.signal_intake.published_lists._list(1, SITEMAP, [(f"{A}/1", date)])
        assert stage.refresher.signals(0) == signals
        stage.refresher.crawled(0, stage.loop.time(), changed=True)
        stage.passes(10.0)


def test_two_lists_that_disagree_tell_of_a_change_once(stage: Stage) -> None:
    """Days without a time: one list still has yesterday."""
    assert stage.signal_intake is not None
    for _ in range(3):
        stage.refresher.crawled(0, stage.loop.time(), changed=False)
        for list_page, day in ((1, -1.0), (2, 0.0)):
            stage.signal_intake.published_lists._list(list_page, SITEMAP, [(f"{A}/1", day * 86_400.0)])
        stage.passes(61.0)
    assert stage.refresher.signals(0) == 1


def test_pages_to_be_had_whole_are_bounded_and_sent_once_a_batch(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tellers_module, "_MOST_WHOLE", 3)
    assert stage.signal_intake is not None
    for page in (9, 7, 5, 3, 1):
        stage.signal_intake.published_lists.have_whole(page, True)
    stage.signal_intake.published_lists.have_whole(7, False)
    assert [batch.whole for batch in stage._sent() if batch.whole is not None] == [[5, 9]]


def test_the_expiry_of_a_cache_is_a_weak_point(stage: Stage) -> None:
    told(stage, f"{A}/3")
    stage.passes(20.0)
    now = stage.loop.time()
    serve(stage, b"<p>three", {"Content-Type": "text/html", "Cache-Control": "max-age=600"})
    point = known_of(stage, 2)["next_point"]
    assert isinstance(point, dict) and now + 600.0 <= point["at"] <= now + 602.0
    assert point["p"] == pytest.approx(0.05) and known_of(stage, 2)["level"] == "normal"
    assert known_of(stage, 1)["next_point"] is None


@pytest.mark.parametrize(("p", "verified", "recalled"), [(1.0, True, True), (0.05, False, False)])
def test_a_ping_of_a_page_that_was_gone_brings_it_back(stage: Stage, p: float, verified: bool, recalled: bool) -> None:
    told(stage, f"{A}/2")  # its site is one that tells
    stage.refresher.gone(0, stage.loop.time())
    stage.passes(100.0)
    told(stage, f"{A}/1", p=p, verified=verified)
    assert (known_of(stage, 0)["due"] <= stage.loop.time()) == recalled  # type: ignore[operator]


# ---- a crawl that goes on


def gone_on(stage: Stage, folder: Path) -> SignalIntake:
    """Killed now; what the next run begins with."""
    assert stage.inbox is not None
    claim_new(folder, {}).release()
    keeper = Keeper(folder, StoreSettings())
    keeper.commit(stage._sent())
    keeper.leave()
    about = stage.refresher, stage.frontier, stage.known, stage.inbox, stage.outbox, stage.loop.time
    signal_intake, reading = SignalIntake(*about, Offload(stage.loop)), Reading(folder)
    signal_intake.restore(reading)
    reading.close()
    return signal_intake


def test_what_lists_told_is_known_after_a_stop(monkeypatch: pytest.MonkeyPatch, inbox: Inbox, tmp_path: Path) -> None:
    stage = Stage(monkeypatch, [f"{A}/1"], refresh=REFRESH, inbox=inbox, scope="host")
    stage.opens((200, {}, f"Sitemap: {A}/map.xml".encode())).answers(body=b"<p>one")
    stage.passes(30.0)
    rows = [f"<url><loc>{A}/{path}</loc><lastmod>{stamp(at)}</lastmod></url>" for path, at in (("1", 20.0), ("9", 3.0))]
    rows.append(f"<url><loc>{A}/undated</loc></url>")
    serve(stage, f"<urlset>{''.join(rows)}</urlset>".encode(), _XML)
    told(stage, f"{A}/1", ACCESS, p=2.0)
    before, after = stage.signal_intake, gone_on(stage, tmp_path / "c")
    assert before is not None and after.published_lists._cited == before.published_lists._cited == {f"{A}/map.xml"}
    assert (after._last, after.published_lists._own) == (before._last, before.published_lists._own) == (1, -1)
    assert after.heard == before.heard == SignalCounts(1, 1)
    pages, lists = stage.frontier.pages, [one.signal_recorder.listed for one in (before, after)]
    said = [[(one.by(page), one.dated(page)) for page in range(pages)] for one in lists]
    assert said[0] == said[1] and sum(by >= 0 for by, _ in said[0]) == 3


@pytest.mark.parametrize("stopped", [False, True])
def test_accesses_of_a_page_not_fetched_yet_count_when_it_is_had(stage: Stage, tmp_path: Path, stopped: bool) -> None:
    told(stage, f"{A}/3")
    for _ in range(2):
        assert told(stage, f"{A}/3", ACCESS, p=5.0) == "not fetched yet"
    told(stage, f"{A}/1", ACCESS, p=3.0)
    if stopped:
        stage.crawler.signal_intake = gone_on(stage, tmp_path / "c")
    stage.passes(20.0)
    serve(stage, b"<p>three", {})
    assert [known_of(stage, page)["accesses"] for page in range(3)] == [3, 0, 10]


def test_a_list_that_was_not_read_to_its_end_is_had_whole_the_next_time(stage: Stage, tmp_path: Path) -> None:
    told(stage, f"{A}/map.xml")
    stage.passes(20.0)
    rows = "".join(f"<url><loc>{A}/p{number}</loc></url>" for number in range(1_200))
    serve(stage, f"<urlset>{rows}</urlset>".encode(), _XML)
    assert stage.life("/p999") == WAITING and stage.life("/p1000") == UNKNOWN
    assert gone_on(stage, tmp_path / "c").whole == {2}
    stage.passes(1.0)
    assert stage.life("/p1199") == WAITING
    assert gone_on(stage, tmp_path / "d").whole == set()


class Later:
    """An aside that reads nothing until it is told to, and takes only so many bytes."""

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
def test_a_long_list_waits_to_be_read_as_it_came(stage: Stage, packed: str) -> None:
    """Decoded it may be a thousand times as long, and so a packed list is never read at once."""
    assert stage.signal_intake is not None
    later = stage.signal_intake.published_lists._offload = Later(1_000)
    told(stage, f"{A}/map.xml")
    stage.passes(20.0)
    body = gzip.compress(b"<urlset>" + b" " * 200_000 + f"<url><loc>{A}/listed</loc></url>".encode())
    assert len(body) < 1_000
    headers = {"Content-Encoding": "gzip"} if packed == "Content-Encoding" else {}
    serve(stage, body, {**_XML, **headers})
    assert (
        later.left == 1_000 - len(body)
        and stage.signal_intake.whole == {2}
        and stage.known.find([f"{A}/listed"]) == [-1]
    )
    later.waiting.pop()()
    assert stage.signal_intake.whole == set() and stage.life("/listed") == WAITING


def test_a_long_coded_list_is_read_to_its_end(stage: Stage) -> None:
    """As much of it is decoded as the first time."""
    assert stage.signal_intake is not None
    stage.crawler._settings = replace(stage.crawler._settings, expanded_bytes=Limits.expanded_bytes)
    later = stage.signal_intake.published_lists._offload = Later(10_000_000)
    told(stage, f"{A}/map.xml")
    stage.passes(20.0)
    chance = random.Random(1)
    rows = "".join(f"<url><loc>http://elsewhere.test/{chance.randbytes(400).hex()}</loc></url>" for _ in range(900))
    body = gzip.compress(f"<urlset>{rows}<url><loc>{A}/listed</loc></url></urlset>".encode())
    assert len(body) > 256 * 1024
    serve(stage, body, {**_XML, "Content-Encoding": "gzip"})
    later.waiting.pop()()
    assert stage.life("/listed") == WAITING


def test_a_list_for_which_there_is_no_room_is_had_whole_the_next_time(stage: Stage) -> None:
    assert stage.signal_intake is not None
    later = stage.signal_intake.published_lists._offload = Later(70_000)
    told(stage, f"{A}/map.xml")
    stage.passes(20.0)
    serve(stage, b"<urlset>" + b" " * 80_000 + f"<url><loc>{A}/listed</loc></url>".encode(), _XML)
    assert later.waiting == [] and stage.signal_intake.whole == {2} and stage.life("/listed") == UNKNOWN


def test_the_bytes_that_wait_to_be_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside_module, "MOST_WAITING_BYTES", 100)
    loop, found, go = asyncio.new_event_loop(), list[int](), threading.Event()
    offload = Offload(loop)
    try:
        begun = [offload.read(lambda at=at: (go.wait(), at)[1], found.append, 40) for at in range(4)]  # type: ignore[misc]
        assert begun == [True, True, False, False]
        go.set()
        while len(found) < 2:
            loop.run_until_complete(asyncio.sleep(0.001))
        assert found == [0, 1]
        assert offload.read(lambda: 9, found.append, 1_000)  # one of any size may wait
        assert not offload.read(lambda: 9, found.append, 1)
    finally:
        offload.close()
        offload._thread.shutdown()
        loop.close()


def test_an_inbox_that_was_made_anew_is_heard_from_its_beginning_and_each_signal_once(
    stage: Stage, tmp_path: Path
) -> None:
    """However many signals each of them has, and however often the crawl is stopped."""
    stage.signal_intake = gone_on(stage, tmp_path / "first")
    told(stage, f"{A}/1")
    told(stage, f"{A}/2")
    (tmp_path / "new").mkdir()
    stage.inbox = Inbox(tmp_path / "new")
    for run in range(3):
        stage.inbox.put(Signal(0, 99.0, "indexnow", f"{A}/1", ACCESS, 99.0, 1.0, True) for _ in range(3))
        signal_intake = gone_on(stage, tmp_path / f"c{run}")
        before = signal_intake.heard
        assert signal_intake.poll(stage.loop.time()) and signal_intake.heard == before._replace(
            access_counts=3 * (run + 1)
        )
        assert not signal_intake.poll(stage.loop.time())
    stage.inbox.close()
    ids = [signal.id for batch in stage._sent() for signal in batch.signals]
    assert ids == sorted(set(ids)) and known_of(stage, 0)["accesses"] == 9


@pytest.mark.parametrize("made_anew", [False, True])
@pytest.mark.parametrize("with_all_beside_it", [False, True])
def test_an_inbox_that_is_deleted_while_the_crawl_runs_is_noticed_and_the_new_one_heard(
    stage: Stage, inbox: Inbox, tmp_path: Path, made_anew: bool, with_all_beside_it: bool
) -> None:
    """Each signal once, under numbers that go on; and people are told once."""
    signal_intake = stage.signal_intake
    assert signal_intake is not None and told(stage, f"{A}/1") == "noted"
    for file in tmp_path.glob("signals.db*" if with_all_beside_it else "signals.db"):
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
    assert known_of(stage, 1)["accesses"] == 2 and signal_intake.heard == SignalCounts(1, 2)


def put_five(inbox: Inbox, now: float) -> None:
    """2 and 4 concern other sites, 1 and 3 the first of our pages, 5 the second."""
    urls = (f"{A}/1", f"{B}/", f"{A}/1", f"{B}/", f"{A}/2")
    inbox.put(Signal(0, now, "indexnow", url, ACCESS, now, 1.0, True) for url in urls)


def test_what_was_heard_of_sites_that_move_is_known(stage: Stage, inbox: Inbox) -> None:
    assert stage.signal_intake is not None
    put_five(inbox, stage.loop.time())
    stage.signal_intake._last = 1
    assert stage.signal_intake.signal_counts_of({A}) == (inbox.identity, 2)
    assert stage.signal_intake.signal_counts_of({B}) == (inbox.identity, 1)
    assert stage.signal_intake.signal_counts_of(()) == (inbox.identity, 5)


@pytest.mark.parametrize(("heard", "noted"), [((4, 2, 5), [(1, 0), (2, -1), (3, 1)]), ((5,), [])])
def test_who_takes_over_hears_what_others_have_not_heard(
    stage: Stage, inbox: Inbox, tmp_path: Path, heard: tuple[int, ...], noted: list[tuple[int, int]]
) -> None:
    """Once, whoever is killed before it is heard or afterwards."""
    now, newcomer = stage.loop.time(), stage.signal_intake
    assert newcomer is not None
    put_five(inbox, now)
    newcomer.is_deaf = True
    assert not newcomer.poll(now)
    for number, up_to in enumerate(heard):
        newcomer.hear_after(inbox.identity, up_to, is_first=number == 0)
    killed = gone_on(stage, tmp_path / "killed")
    assert killed.poll(now) == bool(noted)
    assert [(one.id, one.page) for batch in stage._sent() for one in batch.signals] == noted
    again = gone_on(stage, tmp_path / "again")
    assert not again.poll(now)
    again.hear_after("an inbox that is gone", 4, is_first=True)
    assert again.poll(now) and again._last == 5


def test_an_inbox_that_came_back_is_heard_from_where_it_was(stage: Stage, inbox: Inbox, tmp_path: Path) -> None:
    told(stage, f"{A}/1")
    inbox.close()
    shutil.copy(tmp_path / "signals.db", tmp_path / "copy")
    (tmp_path / "copy").replace(tmp_path / "signals.db")
    assert stage.signal_intake is not None and not stage.signal_intake.poll(stage.loop.time())
    told(stage, f"{A}/2")
    assert [signal.id for batch in stage._sent() for signal in batch.signals] == [1, 2]


def test_an_older_copy_that_is_put_back_is_heard_from_its_beginning(stage: Stage, inbox: Inbox, tmp_path: Path) -> None:
    """It gives ids again that were heard before."""
    told(stage, f"{A}/1", ACCESS, p=1.0)
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
    assert known_of(stage, 1)["accesses"] == 1


def test_a_file_that_is_no_inbox_is_said_to_be_none_until_it_is_gone(stage: Stage, tmp_path: Path) -> None:
    assert stage.signal_intake is not None
    for file in tmp_path.glob("signals.db*"):
        file.unlink()
    (tmp_path / "signals.db").write_bytes(b"not a database at all" * 100)
    for _ in range(2):
        assert not stage.signal_intake.poll(stage.loop.time())
        assert "signals.db: not a signals database, or damaged" in stage.signal_intake.trouble
    (tmp_path / "signals.db").unlink()
    assert not stage.signal_intake.poll(stage.loop.time())
    assert told(stage, f"{A}/1") == "noted"


def test_an_inbox_without_its_table_is_said_to_be_damaged(stage: Stage, inbox: Inbox, tmp_path: Path) -> None:
    assert stage.signal_intake is not None
    with sqlite3.connect(tmp_path / "signals.db") as connection:
        connection.execute("drop table signal")
    assert not stage.signal_intake.poll(stage.loop.time())
    assert stage.signal_intake.trouble == "signals.db cannot be read: no such table: signal"
    with pytest.raises(ConfigError, match=r"signals\.db: damaged \(no such table: signal\); move the file away"):
        Inbox(tmp_path)


# ---- a clock that was ahead in one run


_HOUR_S = 3_600.0


def an_hour_ahead(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> float:
    """The crawl goes on from where its clock was; the wall clock has been set right since. How late it is by that."""
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


@pytest.mark.parametrize("before_s", [0.0, 300.0])
def test_pings_are_heard_after_a_run_whose_clock_was_ahead(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, before_s: float
) -> None:
    """Those that came while nobody crawled too; and what was older than its ping is as much older now."""
    late = an_hour_ahead(stage, monkeypatch) - before_s
    assert put(stage, f"{A}/1", CHANGED, late, late) == "noted"
    assert put(stage, f"{A}/2", CHANGED, late, late - 600.0) == "old"
    assert stage.refresher.signals(0) == 1


@pytest.mark.parametrize("before_s", [0.0, 300.0])
def test_points_are_as_far_ahead_as_they_were_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, before_s: float
) -> None:
    """Those too that came before this run began."""
    late = an_hour_ahead(stage, monkeypatch)
    put(stage, f"{A}/1", POINT, late - before_s, late + 500.0)
    assert stage.signal_intake is not None
    stage.signal_intake.published_lists._schedule(
        1, Schedule({f"{A}/2": [(late + 700.0, 0.9)]}, late, late + 900.0, {})
    )
    points = [known_of(stage, page)["next_point"]["at"] - stage.loop.time() for page in range(2)]  # type: ignore[index]
    assert points == pytest.approx([500.0, 700.0])


def test_dates_of_lists_are_heard_after_a_run_whose_clock_was_ahead(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = an_hour_ahead(stage, monkeypatch)
    assert stage.signal_intake is not None
    for _ in range(2):
        stage.signal_intake.published_lists._list(9, SITEMAP, [(f"{A}/1", late - 1.0), (f"{A}/2", late - 600.0)])
    assert [stage.refresher.signals(page) for page in range(2)] == [1, 0]
