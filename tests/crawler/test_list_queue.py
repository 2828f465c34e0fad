"""Requests for sitemaps and feeds, in virtual time: their turn in a visit, the delays around them, and their limits."""

from itertools import pairwise

import pytest

from tests.crawler.stage import A, Stage, Wire
from trapline.crawler.recrawl.list_queue import MOST_LINKED, MOST_OF_A_SITE, TOO_MANY_LISTS, ListQueue
from trapline.crawler.recrawl.published_lists import PublishedLists
from trapline.crawler.visits.extra_queue import FAILED, MOST_REQUESTS, WAITING
from trapline.fetch.limits import Limits
from trapline.frontier import Rules

_XML = {"Content-Type": "application/xml"}


def lists_of(stage: Stage) -> PublishedLists:
    assert stage.published_lists is not None
    return stage.published_lists


def sitemap(*paths: str) -> bytes:
    return f"<urlset>{''.join(f'<url><loc>{A}{path}</loc></url>' for path in paths)}</urlset>".encode()


def index(*paths: str) -> bytes:
    return (
        f"<sitemapindex>{''.join(f'<sitemap><loc>{A}{path}</loc></sitemap>' for path in paths)}</sitemapindex>".encode()
    )


def newest(stage: Stage) -> Wire:
    return stage.wires[-1]


def test_a_list_comes_after_the_first_page_and_before_others_with_a_pause_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, [f"{A}/", f"{A}/other"], lists=True, scope="host")
    wire = stage.opens()
    assert wire.targets == ["/robots.txt", "/"]
    wire.answers()
    assert wire.targets[2:] == []  # --pause is a second
    stage.passes(1.0)
    assert wire.targets[2:] == ["/sitemap.xml"]
    wire.answers(200, _XML, sitemap("/1", "/2"))
    stage.passes(1.0)
    assert wire.targets[3:] == ["/other"]
    wire.answers()
    stage.passes(20.0)
    assert newest(stage) is not wire, "the delay between two visits applies"
    assert stage.crawler.tally.fetched == 2 and stage.crawler.progress(1.0).known == 4


def test_a_server_that_closes_after_each_answer_sends_a_page_before_its_sitemap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Later, every second visit requests something else than a page, if anything waits. Each visit keeps the delay."""
    stage = Stage(monkeypatch, [f"{A}/", f"{A}/other"], lists=True, scope="host", rules=Rules(delay_s=15.0))
    answers = {"/robots.txt": (404, {}, b""), "/sitemap.xml": (200, _XML, sitemap("/1", "/2"))}
    times = []
    for number in range(6):
        wire = newest(stage).opens()
        times.append(stage.web.now())
        wire.answers(*answers.get(wire.targets[0], (200, {}, b"<p>")), keep=False)
        for _ in range(40):
            stage.passes(0.5)
            if len(stage.wires) > number + 1:
                break
    targets = [wire.targets for wire in stage.wires[:6]]
    assert targets == [["/robots.txt"], ["/"], ["/sitemap.xml"], ["/other"], ["/1"], ["/2"]]
    assert min(later - before for before, later in pairwise(times)) >= 15.0


def test_lists_take_at_most_half_of_a_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(
        monkeypatch,
        [f"{A}/{n}" for n in range(20)],
        lists=True,
        scope="host",
        rules=Rules(delay_s=15.0, per_connection=6),
    )
    wire = stage.opens()
    wire.answers()
    stage.passes(1.0)
    wire.answers(200, _XML, index(*(f"/m{n}.xml" for n in range(9))))
    for _ in range(9):
        stage.passes(1.0)
        if len(wire.sent) > wire.responses_received:
            wire.answers(200, _XML, sitemap())
    assert [".xml" in target for target in wire.targets[1:]] == [False] + [True] * 3 + [False] * 2


def test_a_site_without_pages_is_visited_for_its_lists_after_its_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lists=True, scope="host", rules=Rules(delay_s=15.0, per_connection=4))
    wire = stage.opens()
    wire.answers()
    stage.passes(1.0)
    wire.answers(200, _XML, index(*(f"/m{n}.xml" for n in range(6))))
    stage.passes(1.0)
    wire.answers(200, _XML, sitemap())  # m0.xml
    assert not stage.over
    stage.passes(14.0)
    assert len(stage.wires) == 1
    stage.passes(2.0)
    second = newest(stage).opens()
    assert second is not wire and second.targets == ["/m1.xml"] and stage.frontier.waiting == 0


def test_a_list_that_fails_is_requested_three_times_and_never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lists=True, scope="host")
    requested = 0
    wire = stage.opens()
    for _ in range(12):
        if wire.targets[-1] == "/sitemap.xml":
            requested += 1
            wire.answers(503)
        else:
            wire.answers()
        stage.passes(20.0)
        if stage.over:
            break
        if newest(stage) is not wire:
            wire = newest(stage).opens()
    assert (requested, stage.over) == (MOST_REQUESTS, True)
    assert lists_of(stage).queue._records[1].state == FAILED
    assert stage.crawler.tally.fetched == 1 and not stage.crawler.tally.errors


def test_an_index_of_50_000_sitemaps_brings_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lists=True, scope="host")
    stage.opens()
    lists, before = lists_of(stage), stage.frontier.pages
    for number in range(MOST_OF_A_SITE + 500):
        lists._want(f"{A}/m{number}.xml", "index", A, 1, 0.0)
    assert stage.frontier.pages == before + MOST_OF_A_SITE - 1, "the guess is a list too"
    assert lists.queue.add(f"{A}/more.xml", "index", A, 1, 0.0) == (-1, TOO_MANY_LISTS)


def test_a_site_has_at_most_eight_lists_that_pages_name(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lists=True, scope="host")
    stage.opens()
    queue = lists_of(stage).queue
    found = [queue.add(f"{A}/feed{n}", "link", "", 0, 0.0)[0] for n in range(MOST_LINKED + 3)]
    assert sum(page >= 0 for page in found) == MOST_LINKED


def test_a_long_list_holds_the_crawl_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lists=True, scope="host")
    waiting = []
    monkeypatch.setattr(lists_of(stage)._offload, "read", lambda *work: waiting.append(work) or True)
    wire = stage.opens()
    wire.answers(200, _XML, b"<urlset>" + b" " * 100_000 + b"<url><loc>/late</loc></url>")
    stage.passes(1.0)
    wire.answers()
    stage.passes(60.0)
    assert not stage.over and lists_of(stage).is_reading
    (read, take, _), *_ = waiting
    take(read())
    stage.passes(20.0)
    assert newest(stage).opens().targets == ["/late"]


def test_a_stopped_request_is_no_failure_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lists=True, scope="host")
    wire = stage.opens()
    queue = lists_of(stage).queue
    queue._records[1] = queue._records[1]._replace(requests=MOST_REQUESTS)
    wire.abort()
    stage.passes(0.0)
    assert queue._records[1].state == WAITING and queue.has(0)


def test_a_resumed_queue_has_the_lists_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, lists=True, scope="host")
    stage.opens()
    rows = {one.page: one for batch in stage._sent() for one in batch.published_lists}
    again = ListQueue(stage.frontier, stage.link_resolver, stage.outbox)
    again.restore(rows.values())
    assert again.sites == [0] and again.take(0) == (1, f"{A}/sitemap.xml")
    assert Limits.expanded_bytes >= 50 << 20, "a sitemap may have 50 MB"
