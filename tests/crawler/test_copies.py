"""`Copies` returns the last copy that was put, from memory or from a database that another connection writes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.crawler.engine.records import NOT_KNOWN, KeptCopy
from trapline.crawler.recrawl.conditional_refetch import Compared, Copies, Copy, compared
from trapline.crawler.visits.judge import FetchVerdict, judge
from trapline.fetch.http.headers import Validators
from trapline.fetch.http.response import Response


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


# ---- comparing an answer with a copy

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
