"""Fetched pages are refetched in turn, with conditional requests. The answers update the copies and reach the refresher.

`Copies` returns the last copy that was put, from memory or from a database that another connection writes.
"""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.crawler.stage import A, B, Stage, Wire, links
from tests.effort import examples
from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.engine.records import NOT_KNOWN, KeptCopy
from trapline.crawler.files.layout import claim_new
from trapline.crawler.files.reading import Reading
from trapline.crawler.recrawl.conditional_refetch import (
    Compared,
    ConditionalRefetch,
    Copies,
    Copy,
    ForbiddenPages,
    compared,
)
from trapline.crawler.robots.site_robots import apply
from trapline.crawler.store.keeper import Keeper
from trapline.crawler.store.settings import StoreSettings
from trapline.crawler.visits.judge import FetchVerdict, judge
from trapline.fetch.http.headers import Validators
from trapline.fetch.http.response import Response
from trapline.fetch.robots.parser import parse as parse_robots
from trapline.frontier.layout import FETCHED, REFUSED

CONTINUOUS = RefreshOptions(policy="uniform", continuous=True, rate=0.01)  # one refetch at once, the next after 100 s
TEXT, OTHER = b"<p>The harbour is closed until Monday.</p>", b"<p>The harbour is open again, it says.</p>"


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch, [f"{A}/1"], refresh=CONTINUOUS)


def first_fetch(stage: Stage, body: bytes = TEXT, **headers: str) -> Wire:
    """Fetch the page for the first time."""
    wire = stage.opens().answers(headers=headers, body=body)
    stage.passes(15.0)
    return wire


def second_request(stage: Stage) -> tuple[Wire, bytes]:
    """Wait for the second request for the page, in another visit. Return the connection and the request."""
    stage.passes(100.0)
    wire = stage.wires[-1]
    if not wire.sent:
        wire.opens()
        stage.passes(1.0)
    return wire, wire.sent[-1]


def test_a_refetch_sends_the_validators_of_the_first_answer(stage: Stage) -> None:
    first_fetch(stage, ETag='"a1"', **{"Last-Modified": "Sun, 12 Oct 2025 07:28:00 GMT"})
    wire, request = second_request(stage)
    assert request.startswith(b"GET /1 ")
    assert b'If-None-Match: "a1"\r\nIf-Modified-Since: Sun, 12 Oct 2025 07:28:00 GMT\r\n\r\n' in request
    wire.answers(304, body=b"")
    first, again = stage.fetches
    assert (first.changed, again.changed, again.result) == (NOT_KNOWN, 0, FETCHED)
    assert again.fingerprint == first.fingerprint != b""
    assert (again.etag, again.modified) == (first.etag, first.modified)
    assert stage.life("/1") == FETCHED


@pytest.mark.parametrize(("body", "changed"), [(OTHER, 1), (b"<script>let x = 7</script>" + TEXT, 0)])
def test_a_page_has_changed_if_its_visible_text_has(stage: Stage, body: bytes, changed: int) -> None:
    first_fetch(stage)
    wire, request = second_request(stage)
    assert b"\r\nIf-" not in request
    wire.answers(body=body)
    assert [fetch.changed for fetch in stage.fetches] == [NOT_KNOWN, changed]
    assert stage.refresher.explain(0, stage.loop.time())["changes"] == changed


class IgnoringPartitions:
    """Other partitions that ignore every message."""

    def flush(self) -> None: ...

    def send_links(self, page: int, urls: list[str], links: int, further: dict[int, int]) -> None: ...

    def send_refetched_links(self, page: int, urls: list[str]) -> None: ...


def test_foreign_links_are_stored_for_every_fetch(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage.link_resolver, "_owns", lambda url: url.startswith(f"{A}/"))
    stage.crawler.features.others = IgnoringPartitions()  # type: ignore[assignment]
    first_fetch(stage, TEXT + links(f"{B}/1", f"{B}/2"))
    wire, _ = second_request(stage)
    wire.answers(body=OTHER + links(f"{B}/2"))
    visits = [fetch.visit for fetch in stage.fetches]
    reading = stored(stage, tmp_path / "c")
    found = reading.connection.execute("select page, visit, url from foreign_link order by rowid").fetchall()
    reading.close()
    assert found == [(0, visits[0], f"{B}/1"), (0, visits[0], f"{B}/2"), (0, visits[1], f"{B}/2")]


def test_a_304_to_an_unconditional_request_is_a_failure(stage: Stage) -> None:
    first_fetch(stage)
    wire, _ = second_request(stage)
    wire.answers(304, body=b"")
    assert [fetch.error for fetch in stage.fetches] == ["", "http"]
    assert stage.life("/1") == FETCHED
    assert stage.refresher.explain(0, stage.loop.time())["failures"] == 1


@pytest.mark.parametrize("status", [404, 410])
def test_a_gone_page_is_requested_after_a_day_and_then_after_two(stage: Stage, status: int) -> None:
    first_fetch(stage)
    second_request(stage)[0].answers(status)
    for day_s in (86_400.0, 2 * 86_400.0):
        assert stage.life("/1") == FETCHED and 0 in stage.refresher  # our copy is kept
        wires = len(stage.wires)
        stage.passes(day_s - 200.0)
        assert len(stage.wires) == wires
        stage.passes(400.0)
        assert len(stage.wires) == wires + 1
        stage.wires[-1].opens()
        stage.passes(1.0)
        if stage.wires[-1].targets == ["/robots.txt"]:
            stage.wires[-1].answers(404)
            stage.passes(1.0)
        stage.wires[-1].answers(status)
    assert {fetch.result for fetch in stage.fetches[1:]} == {REFUSED}


def test_a_gone_page_that_returns_is_refetched_like_any_other(stage: Stage) -> None:
    first_fetch(stage)
    second_request(stage)[0].answers(404)
    stage.refresher.recalled(0, stage.loop.time())
    second_request(stage)[0].answers(body=OTHER)
    assert [fetch.changed for fetch in stage.fetches] == [NOT_KNOWN, NOT_KNOWN, 1]
    known = stage.refresher.explain(0, stage.loop.time())
    assert (known["crawls"], known["changes"], known["failures"]) == (1, 1, 0)


_CLOSED, _OPEN = b"User-agent: *\nDisallow: /1", b"User-agent: *\nDisallow: /3"


def two_fetched_pages(patch: pytest.MonkeyPatch) -> Stage:
    """Fetch /1 and /2."""
    stage = Stage(patch, [f"{A}/1", f"{A}/2"], refresh=CONTINUOUS)
    wire = stage.opens().answers(body=TEXT)
    stage.passes(1.0)
    wire.answers(body=TEXT)
    stage.passes(15.0)
    return stage


def answer_all(stage: Stage, seconds: float) -> None:
    """Answer every request for this time."""
    opened = None
    for _ in range(int(seconds / 10.0)):
        stage.passes(10.0)
        wire = stage.wires[-1]
        if not (wire.sent or wire.is_over or wire is opened):
            opened = wire.opens()
            stage.passes(1.0)
        if len(wire.sent) > wire.responses_received and not wire.is_over:
            wire.answers(body=OTHER)


def robots_says(stage: Stage, body: bytes) -> None:
    apply(stage.site(), parse_robots(body, "trapline"), stage.loop.time() + 1e6, 0.0)


def stored(stage: Stage, folder: Path) -> Reading:
    claim_new(folder, {}).release()
    keeper = Keeper(folder, StoreSettings())
    keeper.commit(stage._sent())
    keeper.leave()
    return Reading(folder)


def resumed(stage: Stage, folder: Path) -> None:
    """Read the forbidden pages from the store, as a resume does."""
    reading, refetch = stored(stage, folder), stage.refetch
    forbidden = ForbiddenPages(stage.refresher, stage.url_store.urls, reading.forbidden())
    reading.close()
    stage.crawler.features.refetch = ConditionalRefetch(refetch.agenda, refetch.copies, stage.outbox, forbidden)


@pytest.mark.parametrize("after_a_resume", [False, True])
def test_a_forbidden_page_is_refetched_when_robots_txt_allows_it_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, after_a_resume: bool
) -> None:
    """The page is noticed after any visit to its site."""
    stage = two_fetched_pages(monkeypatch)
    robots_says(stage, _CLOSED)
    answer_all(stage, 500.0)
    assert ("/1", "robots") in stage.page_results() and stage.life("/1") == FETCHED
    if after_a_resume:
        resumed(stage, tmp_path / "c")
    robots_says(stage, _OPEN)
    answer_all(stage, 500.0)
    assert [fetch.changed for fetch in stage.fetches if fetch.page == 0 and not fetch.error][:2] == [NOT_KNOWN, 1]


def test_a_forbidden_page_is_not_refetched_while_it_is_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = two_fetched_pages(monkeypatch)
    robots_says(stage, _CLOSED)
    answer_all(stage, 500.0)
    robots_says(stage, _CLOSED)  # robots.txt is fetched once more
    answer_all(stage, 1_000.0)
    assert [fetch.error for fetch in stage.fetches if fetch.page == 0] == ["", "robots"]
    assert stage.refresher.explain(0, stage.loop.time())["due"] > stage.loop.time() + 80_000.0


def test_an_error_keeps_the_copy_and_the_page_waits_longer(stage: Stage) -> None:
    first_fetch(stage)
    second_request(stage)[0].answers(503)
    assert stage.life("/1") == FETCHED
    stage.passes(300.0)
    assert len(stage.fetches) == 2
    stage.passes(400.0)
    assert len(stage.wires) == 3


def test_links_of_a_refetched_page_lead_to_new_pages(stage: Stage) -> None:
    first_fetch(stage, links("/2"))
    stage.wires[-1].opens()
    stage.passes(1.0)
    stage.wires[-1].answers()
    second_request(stage)[0].answers(body=links("/2", "/3"))
    assert stage.frontier.pages == 3


def test_a_refetch_that_is_stopped_leaves_the_page_as_it_was(stage: Stage) -> None:
    first_fetch(stage)
    wire, _ = second_request(stage)
    wire.ends("stopped")
    assert stage.crawler.active == 0
    assert stage.refresher.chosen() == []
    assert stage.life("/1") == FETCHED


def test_a_crawl_that_is_not_continuous_ends_when_no_new_page_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1"], refresh=RefreshOptions(policy="uniform", rate=0.01))
    first_fetch(stage)
    assert stage.over and stage.crawler.stopped_by == "drained"


def test_a_crawl_that_is_not_continuous_does_not_wait_for_refetches_of_other_sites(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, [f"{A}/1", f"{B}/1"], refresh=RefreshOptions(policy="uniform"))
    for wire in stage.wires[:2]:
        wire.opens().answers(404)
    stage.passes(1.0)
    for wire in stage.wires[:2]:
        wire.answers()
    stage.passes(20.0)
    assert stage.over and stage.crawler.stopped_by == "drained"


def test_a_page_without_a_copy_does_not_count_as_changed(stage: Stage) -> None:
    stage.opens().answers(body=TEXT, truncated="time")
    stage.passes(16.0)
    second_request(stage)[0].answers(body=TEXT)
    assert [fetch.changed for fetch in stage.fetches] == [NOT_KNOWN, NOT_KNOWN]
    assert stage.refresher.explain(0, stage.loop.time())["changes"] == 0


def test_a_site_without_a_delay_is_refetched_as_soon_as_its_visit_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    from trapline.frontier import Rules

    rules = Rules(delay_s=0.0, per_connection=1)
    refresh = RefreshOptions(policy="lambda-crawl", continuous=True)
    stage = Stage(monkeypatch, [f"{A}/1", f"{A}/2", f"{A}/3"], refresh=refresh, rules=rules, pause_s=0.0)
    wire = stage.opens()
    for _ in range(20):
        wire.answers()
        stage.passes(0.3)  # the crawl looks at it again within a quarter of a second
    assert len(stage.fetches) == 20


def test_new_and_old_pages_take_turns_by_share(monkeypatch: pytest.MonkeyPatch) -> None:
    from trapline.frontier import Rules

    rules = Rules(delay_s=1.0, per_connection=1)
    seeds = [f"{A}/{number}" for number in range(20)]
    stage = Stage(monkeypatch, seeds, refresh=RefreshOptions(policy="uniform"), rules=rules, pause_s=0.0)
    stage.opens()
    for _ in range(16):
        wire = stage.wires[-1]
        if not wire.sent:
            wire.opens()
        if len(wire.sent) > wire.responses_received:
            wire.answers()
        stage.passes(1.0)
    order = [fetch.changed == NOT_KNOWN for fetch in stage.fetches]
    assert len(order) >= 14
    assert abs(sum(order) - len(order) / 2) <= 1


@pytest.mark.parametrize("ahead_s", [0.0, 3_600.0])
def test_the_age_of_a_change_is_measured_by_the_clock_of_the_server(ahead_s: float, stage: Stage) -> None:
    """Our clock was ahead in an earlier run and still is. A page that changed just before its fetch does not count as an hour old."""
    own = stage.refetch
    refetch = ConditionalRefetch(
        own.agenda, own.copies, stage.outbox, ForbiddenPages(stage.refresher, {}.get), (), lambda now: ahead_s
    )  # type: ignore[arg-type]
    dated = Validators(b"", b"Sun, 12 Oct 2025 07:28:00 GMT")
    assert refetch._age_s(dated, 1_760_254_080.0 + 100.0 + ahead_s) == 100.0
    assert refetch._age_s(Validators(b"", b""), 1_760_254_080.0) == math.inf


# ---- The copies


def copy(page: int, version: int) -> Copy:
    return Copy(b"%07d%d" % (page, version % 10), Validators(b'"%d"' % version, b"" if version % 2 else b"Mon"))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crawl with % and ?") / "crawl.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.executescript((files("trapline.crawler.files") / "schema.sql").read_text())
    return path


@pytest.fixture
def writer(database: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("delete from copy")
    yield connection
    connection.close()


def write(writer: sqlite3.Connection, copies: dict[int, Copy]) -> None:
    writer.execute("begin")
    writer.executemany(
        "replace into copy values (?, 1.0, 2.0, null, ?, x'', ?, ?, '')",
        ((page, one.fingerprint, *one.validators) for page, one in copies.items()),
    )
    writer.execute("commit")


STEPS = st.lists(st.tuples(st.lists(st.integers(0, 30), max_size=12), st.booleans()), max_size=12)


@settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(recent=st.integers(0, 20), steps=STEPS, lookups=st.lists(st.integers(0, 35), max_size=12))
def test_the_last_copy_that_was_put_is_found(
    recent: int, steps: list[tuple[list[int], bool]], lookups: list[int], database: Path, writer: sqlite3.Connection
) -> None:
    """Batches of pages arrive, some pages twice, and are committed late. At each moment the last copy of each page is found."""
    writer.execute("delete from copy")
    latest: dict[int, Copy] = {}
    waiting: list[tuple[int, dict[int, Copy]]] = []
    with closing(Copies(database, recent)) as copies:
        for batch, (pages, commits) in enumerate(steps, 1):
            changes = {page: copy(page, batch) for page in pages}
            for page, one in changes.items():
                copies.put(page, one, batch)
            latest |= changes
            waiting.append((batch, changes))
            if commits:
                number, durable = waiting.pop(0)
                write(writer, durable)
                copies.committed(number)
            assert copies.of(lookups) == [latest.get(page) for page in lookups]


def test_memory_stays_within_its_bound(database: Path, writer: sqlite3.Connection) -> None:
    write(writer, {page: copy(page, page // 50) for page in range(5_000)})
    with closing(Copies(database, recent=100)) as copies:
        for page in range(5_000):
            copies.put(page, copy(page, page // 50), page // 50)
            if page % 50 == 49:
                copies.committed(page // 50)
            assert len(copies._newest) <= 100 + 100 // 4 + 50
        lookups = list(range(0, 5_000, 3))
        assert copies.of(lookups) == [copy(page, page // 50) for page in lookups]


def test_uncommitted_copies_stay_in_memory_even_beyond_the_bound(tmp_path: Path) -> None:
    copies = Copies(tmp_path / "nothing.db", recent=1)
    for page in range(5_000):
        copies.put(page, copy(page, 2), 2)
    copies.committed(1)
    assert copies.of([0, 4_999]) == [copy(0, 2), copy(4_999, 2)]


def test_a_copy_from_another_partition_is_found_before_it_is_durable(
    database: Path, writer: sqlite3.Connection
) -> None:
    write(writer, {1: copy(1, 1)})
    other = KeptCopy(5.0, 6.0, None, b"12345678", b"digest", b'"7"', b"", "robots")
    with closing(Copies(database)) as copies:
        copies.adopt(2, other, 3)
        own = KeptCopy(1.0, 2.0, None, copy(1, 1).fingerprint, b"", *copy(1, 1).validators, "")
        assert copies.rows([1, 2, 3]) == {1: own, 2: other}
        assert copies.of([2]) == [Copy(b"12345678", Validators(b'"7"', b""))]
        copies.committed(2)
        assert 2 in copies.rows([2])
        copies.committed(3)
        assert copies.rows([2]) == {}


def test_without_a_database_every_copy_stays_in_memory() -> None:
    copies = Copies(None, recent=1)
    for page in range(100):
        copies.put(page, copy(page, 1), 1)
    copies.committed(1)
    assert copies.of([0, 99, 100]) == [copy(0, 1), copy(99, 1), None]


def test_reading_leaves_no_transaction_open(database: Path, writer: sqlite3.Connection) -> None:
    write(writer, {page: copy(page, 1) for page in range(1_000)})
    with closing(Copies(database, recent=0)) as copies:
        copies.of(list(range(700)))
        write(writer, {1_000: copy(1_000, 1)})
        assert writer.execute("pragma wal_checkpoint(truncate)").fetchone() == (0, 0, 0)
        assert copies.of([1_000]) == [copy(1_000, 1)]


# ---- Comparing an answer with a copy

PAGE = {b"content-type": b"text/html", b"etag": b'"2"'}


def answer(status: int, body: bytes, conditional: bool = True) -> FetchVerdict:
    return judge(Response(status, 11, b"", PAGE, True, body, body), "trapline", 9999, 0.0, conditional, True)


def test_an_answer_is_compared_with_the_copy() -> None:
    first = compared(None, answer(200, b"<p>one"), PAGE)
    assert first.changed == NOT_KNOWN and first.copy is not None
    assert first.copy.validators == Validators(b'"2"', b"")
    same = compared(first.copy, answer(200, b"<p>one<script>2</script>"), {})
    assert same == Compared(0, Copy(first.copy.fingerprint, Validators()))
    other = compared(first.copy, answer(200, b"<p>two"), PAGE)
    assert other.changed == 1 and other.copy != first.copy


def test_an_unchanged_page_keeps_its_fingerprint_and_takes_new_validators() -> None:
    before = Copy(b"12345678", Validators(b'"1"', b"Mon"))
    assert compared(before, answer(304, b""), PAGE) == Compared(0, Copy(b"12345678", Validators(b'"2"', b"Mon")))


@pytest.mark.parametrize("status", [404, 500, 304])
def test_a_failed_answer_does_not_change_the_copy(status: int) -> None:
    before = Copy(b"12345678", Validators(b'"1"', b""))
    assert compared(before, answer(status, b"<p>gone", conditional=False), PAGE) == Compared(NOT_KNOWN, None)
