"""What providers tell reaches the refresher: from the inbox, and from sitemaps, feeds and schedules that the crawl fetches itself."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.crawl.stage import A, Stage, Wire
from trapline.crawl.options import RefreshOptions
from trapline.frontier.layout import FETCHED, UNKNOWN, WAITING
from trapline.signals.inbox import ACCESS, CHANGED, POINT, Inbox, Signal

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
    assert stage.inbox is not None and stage.hearsay is not None
    now = stage.loop.time()
    stage.inbox.put([Signal(0, now, "indexnow", url, kind, now if at is None else at, p, verified)])
    assert stage.hearsay.poll(now)
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
    assert told(stage, f"{A}/1", at=0.5) == "old"
    assert known_of(stage, 0)["signals"] == 0


def test_nothing_is_heard_twice(stage: Stage) -> None:
    told(stage, f"{A}/1")
    assert stage.hearsay is not None
    assert not stage.hearsay.poll(stage.loop.time())


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
