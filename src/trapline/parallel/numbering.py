"""Sites, addresses and pages of one partition, by the numbers that they have in the database of all (merged.py).

Partition after partition they are numbered anew. Sites of several partitions may be on one address; and if the crawl has grown, a site may
lie in several of them, with pages that both know: what has the same name is the same, and has one number. Both databases must be at
hand, as `main` and `part`.
"""

import sqlite3
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]  # by the numbers of the partition, which have no gaps
_NAMES = {"site": "origin", "address": "address", "page": "url"}


def prepare(database: sqlite3.Connection, has_grown: bool) -> None:
    """So that what has the same name is found."""
    for table in _shared(has_grown):
        database.execute(f"create index {table}_by_name on {table} ({_NAMES[table]})")


def finish(database: sqlite3.Connection, has_grown: bool) -> None:
    for table in _shared(has_grown):
        database.execute(f"drop index {table}_by_name")


def _shared(has_grown: bool) -> tuple[str, ...]:
    """What may lie in several partitions."""
    return tuple(_NAMES) if has_grown else ("address",)


def number(database: sqlite3.Connection, has_grown: bool) -> dict[str, int]:
    """Let SQL know the numbers of the partition that is at hand, as `of_site(id)`, `of_page(id)`, ..., and `of_links(blob)`; from which
    number on each kind is new."""
    first = {}
    for table in _NAMES:
        (first[table],) = database.execute(f"select ifnull(max(id), -1) + 1 from main.{table}").fetchone()
        numbers = _numbers(database, table, first[table], table in _shared(has_grown))
        database.create_function(f"of_{table}", 1, _lookup(numbers), deterministic=True)
        if table == "page":
            database.create_function("of_links", 1, lambda links, pages=numbers: renumbered(links, pages))
    return first


def _numbers(database: sqlite3.Connection, table: str, first: int, is_shared: bool) -> Numbers:
    (count,) = database.execute(f"select ifnull(max(id), -1) + 1 from part.{table}").fetchone()
    numbers = np.full(count, -1, np.int64)
    if is_shared:
        same = f"whole.{_NAMES[table]} = mine.{_NAMES[table]}"
        sql = f"select mine.id, whole.id from part.{table} as mine join main.{table} as whole on {same}"
        for own, whole in database.execute(sql):
            numbers[own] = whole
    new = numbers < 0
    numbers[new] = first + np.arange(np.count_nonzero(new))
    return numbers


def _lookup(numbers: Numbers) -> Callable[[int | None], int | None]:
    return lambda own: None if own is None else int(numbers[own])


def renumbered(links: bytes, pages: Numbers) -> bytes:
    """
    >>> renumbered(b"\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00", np.array([256, 7])).hex(" ", 4)
    '07000000 00010000'
    """
    return pages[np.frombuffer(links, "<i4")].astype("<i4").tobytes()
