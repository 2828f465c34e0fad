"""The view `link` shows each link of the blobs `fetch.links` as a row."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

FETCH = """insert into fetch (page, visit, address, started, total_s, result, status, error, bytes, mime, marks, found, truncated, links)
values (?, 0, '', 0, 0, ?, ?, '', 0, '', 0, 0, '', ?)"""
IDS = st.one_of(st.integers(0, 20), st.sampled_from([255, 256, 65_535, 65_536, 0x01020304, 0x10203040, 2**31 - 1]))


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(files("trapline.crawler.files").joinpath("schema.sql").read_text())
        yield connection


def links(ids: list[int]) -> bytes:
    return np.array(ids, "<i4").tobytes()


@given(st.dictionaries(st.integers(0, 20), st.lists(IDS, max_size=300), max_size=5))
def test_every_link_is_a_row(database: sqlite3.Connection, web: dict[int, list[int]]) -> None:
    database.execute("begin")
    pages = {*web, *(target for targets in web.values() for target in targets)}
    database.executemany("insert into page values (?, 0, ?)", ((page, f"http://a.test/{page}") for page in pages))
    database.executemany(FETCH, ((page, 3, 200, links(targets)) for page, targets in web.items()))
    found = database.execute("select source, target, source_url, target_url from link").fetchall()
    database.execute("rollback")
    url = "http://a.test/{}".format
    assert sorted(found) == sorted((page, to, url(page), url(to)) for page, all_to in web.items() for to in all_to)


def test_the_last_contents_of_a_page_count(database: sqlite3.Connection) -> None:
    database.execute("begin")
    database.executemany("insert into page values (?, 0, ?)", ((page, str(page)) for page in range(4)))
    database.executemany(
        FETCH, [(0, 3, 200, links([1])), (0, 3, 200, links([2, 3])), (0, 3, 304, b""), (0, 5, 500, b"")]
    )
    found = database.execute("select source, target from link order by target").fetchall()
    database.execute("rollback")
    assert found == [(0, 2), (0, 3)]
