"""The shelf gives back the URL of every page that was put, from memory or from a database that another connection writes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trapline.crawl.shelf import Shelf
from trapline.errors import InvariantError


def url(page: int) -> str:
    return f"http://site-{page % 7}.example/{page}"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crawl with % and ?") / "crawl.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.executescript((files("trapline.crawl") / "store" / "schema.sql").read_text())
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


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(recent=st.integers(0, 20), start=st.sampled_from([0, 13]), steps=STEPS)
def test_every_page_put_is_found(
    recent: int, start: int, steps: list[tuple[int, bool, list[int]]], database: Path, writer: sqlite3.Connection
) -> None:
    """Whatever is in memory still: pages come, some are committed, any are asked for. `start`: a crawl that goes on."""
    writer.execute("delete from page")
    write(writer, 0, start)
    with closing(Shelf(database, recent)) as shelf:
        shelf.committed(start)
        known = durable = start
        for new, commits, asked in steps:
            for page in range(known, known + new):
                shelf.put(page, url(page))
            known += new
            if commits:
                write(writer, durable, known - new // 2)
                durable = known - new // 2
                shelf.committed(durable)
            pages = [page % known for page in asked] if known else []
            assert shelf.urls(pages) == [url(page) for page in pages]
            assert len(shelf._urls) <= recent + recent // 4 + (known - durable) + (0 if commits else 41 * len(steps))


def test_memory_stays_within_its_bound(database: Path, writer: sqlite3.Connection) -> None:
    write(writer, 0, 20_000)
    with closing(Shelf(database, recent=100)) as shelf:
        for page in range(20_000):
            shelf.put(page, url(page))
            if page % 50 == 0:
                shelf.committed(page)
            assert len(shelf._urls) <= 100 + 100 // 4 + 51
        asked = list(range(0, 20_000, 3))
        assert shelf.urls(asked) == [url(page) for page in asked]


def test_what_is_not_committed_stays_however_much_it_is(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "nothing.db", recent=1)
    for page in range(5_000):
        shelf.put(page, url(page))
    assert shelf.urls([0, 4_999, 17]) == [url(0), url(4_999), url(17)]


def test_without_a_database_everything_stays() -> None:
    shelf = Shelf(None, recent=1)
    for page in range(100):
        shelf.put(page, url(page))
    shelf.committed(100)
    assert shelf.urls([0, 99]) == [url(0), url(99)]


def test_reading_keeps_no_transaction_open(database: Path, writer: sqlite3.Connection) -> None:
    """Else the log of writes could not be emptied: `truncate` answers busy while anybody reads from it."""
    write(writer, 0, 1_000)
    with closing(Shelf(database, recent=0)) as shelf:
        shelf.committed(1_000)
        shelf.urls(list(range(700)))
        write(writer, 1_000, 1_100)
        busy, frames, moved = writer.execute("pragma wal_checkpoint(truncate)").fetchone()
        assert (busy, frames, moved) == (0, 0, 0)
        shelf.committed(1_100)
        assert shelf.urls([1_050]) == [url(1_050)]


def test_the_shelf_cannot_write(database: Path, writer: sqlite3.Connection) -> None:
    write(writer, 0, 2)
    with closing(Shelf(database)) as shelf:
        shelf.committed(2)
        shelf.urls([1])
        assert shelf._connection is not None
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            shelf._connection.execute("delete from page")


def test_a_page_that_is_nowhere_is_our_mistake(database: Path, writer: sqlite3.Connection) -> None:
    write(writer, 0, 5)
    with closing(Shelf(database, recent=0)) as shelf:
        shelf.committed(6)
        for page in (-1, 5, 6, 10**9):
            with pytest.raises(InvariantError, match=f"page {page}"):
                shelf.urls([2, page])
    with pytest.raises(InvariantError):
        Shelf(None).urls([0])


def test_pages_are_put_in_order() -> None:
    shelf = Shelf(None)
    shelf.put(7, url(7))
    for page in (6, 7, 9):
        with pytest.raises(InvariantError, match=f"page {page}"):
            shelf.put(page, url(page))
