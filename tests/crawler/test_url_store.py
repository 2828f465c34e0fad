"""The URL store returns the URL of every page that was put, from memory or from a database that another connection writes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.crawler.discovery.url_store import UrlStore
from trapline.errors import InvariantError


def url(page: int) -> str:
    return f"http://site-{page % 7}.example/{page}"


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
    connection.execute("delete from page")
    yield connection
    connection.close()


def write(writer: sqlite3.Connection, first: int, end: int) -> None:
    writer.execute("begin")
    writer.executemany("insert into page values (?, ?, ?)", ((page, page % 7, url(page)) for page in range(first, end)))
    writer.execute("commit")


STEPS = st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.lists(st.integers(0, 10**6), max_size=8)), max_size=12)


@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(recent=st.integers(0, 20), start=st.sampled_from([0, 13]), steps=STEPS)
def test_every_page_that_was_put_is_found(
    recent: int, start: int, steps: list[tuple[int, bool, list[int]]], database: Path, writer: sqlite3.Connection
) -> None:
    """Pages arrive, some are committed, and any are looked up. `start`: the first page of a resumed crawl."""
    writer.execute("delete from page")
    write(writer, 0, start)
    with closing(UrlStore(database, recent)) as url_store:
        url_store.committed(start)
        known = durable = start
        for new, commits, lookups in steps:
            for page in range(known, known + new):
                url_store.put(page, url(page))
            known += new
            if commits:
                write(writer, durable, known - new // 2)
                durable = known - new // 2
                url_store.committed(durable)
            pages = [page % known for page in lookups] if known else []
            assert url_store.urls(pages) == [url(page) for page in pages]
            assert len(url_store._urls) <= recent + recent // 4 + (known - durable) + (
                0 if commits else 41 * len(steps)
            )


def test_memory_stays_within_its_bound(database: Path, writer: sqlite3.Connection) -> None:
    write(writer, 0, 20_000)
    with closing(UrlStore(database, recent=100)) as url_store:
        for page in range(20_000):
            url_store.put(page, url(page))
            if page % 50 == 0:
                url_store.committed(page)
            assert len(url_store._urls) <= 100 + 100 // 4 + 51
        lookups = list(range(0, 20_000, 3))
        assert url_store.urls(lookups) == [url(page) for page in lookups]


def test_uncommitted_urls_stay_in_memory_even_beyond_the_bound(tmp_path: Path) -> None:
    url_store = UrlStore(tmp_path / "nothing.db", recent=1)
    for page in range(5_000):
        url_store.put(page, url(page))
    assert url_store.urls([0, 4_999, 17]) == [url(0), url(4_999), url(17)]


def test_without_a_database_every_url_stays_in_memory() -> None:
    url_store = UrlStore(None, recent=1)
    for page in range(100):
        url_store.put(page, url(page))
    url_store.committed(100)
    assert url_store.urls([0, 99]) == [url(0), url(99)]


def test_reading_leaves_no_transaction_open(database: Path, writer: sqlite3.Connection) -> None:
    """An open transaction would keep the write-ahead log from being emptied: `truncate` answers busy while a reader uses the log."""
    write(writer, 0, 1_000)
    with closing(UrlStore(database, recent=0)) as url_store:
        url_store.committed(1_000)
        url_store.urls(list(range(700)))
        write(writer, 1_000, 1_100)
        busy, frames, moved = writer.execute("pragma wal_checkpoint(truncate)").fetchone()
        assert (busy, frames, moved) == (0, 0, 0)
        url_store.committed(1_100)
        assert url_store.urls([1_050]) == [url(1_050)]


def test_the_url_store_cannot_write(database: Path, writer: sqlite3.Connection) -> None:
    write(writer, 0, 2)
    with closing(UrlStore(database)) as url_store:
        url_store.committed(2)
        url_store.urls([1])
        assert url_store._connection is not None
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            url_store._connection.execute("delete from page")


def test_an_unknown_page_raises_an_invariant_error(database: Path, writer: sqlite3.Connection) -> None:
    write(writer, 0, 5)
    with closing(UrlStore(database, recent=0)) as url_store:
        url_store.committed(6)
        for page in (-1, 5, 6, 10**9):
            with pytest.raises(InvariantError, match=f"page {page}"):
                url_store.urls([2, page])
    with pytest.raises(InvariantError):
        UrlStore(None).urls([0])


def test_pages_must_be_put_in_order() -> None:
    url_store = UrlStore(None)
    url_store.put(7, url(7))
    for page in (6, 7, 9):
        with pytest.raises(InvariantError, match=f"page {page}"):
            url_store.put(page, url(page))
