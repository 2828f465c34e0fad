"""The readers of pages give the same results in several threads at once: a handler's thread reads pages while the loop does."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import zstandard

from trapline.fetch.html.anchors import read_anchors
from trapline.fetch.html.fingerprint import content_of
from trapline.fetch.html.page import read_page
from trapline.fetch.http.content import decoded
from trapline.signals.published.list_discovery import of_response

ROUNDS, THREADS = 24, 3


def page(number: int) -> bytes:
    links = "".join(f'<a href="/page-{number}/{at}">{number} {at}</a>&amp;' for at in range(40 * (number + 1)))
    head = f'<base href="/b{number}/"><link rel=alternate type="application/rss+xml" href="/feed-{number}">'
    return f"<!doctype html>{head}<title>{number}</title><p>{'word ' * number}{links}".encode()


PAGES = [page(number) for number in range(6)]
PACKED = [zstandard.compress(one) for one in PAGES]


def facts(at: int) -> tuple[list[str], str | None]:
    found = read_page(PAGES[at], None)
    return list(found.links), found.base


READERS: dict[str, Callable[[int], Any]] = {
    "links": facts,
    "anchors": lambda at: read_anchors(PAGES[at], None, "trapline"),
    "content": lambda at: content_of(PAGES[at]),
    "zstd": lambda at: decoded(PACKED[at], b"zstd", 1 << 20),
    "relations": lambda at: of_response({}, "http://a.example/", PAGES[at]),
}


@contextmanager
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("name", READERS)
def test_threads_read_pages_at_the_same_time(name: str) -> None:
    read = READERS[name]
    expected = [read(at) for at in range(len(PAGES))]

    def wrong(thread: int) -> list[int]:
        order = [(thread + turn) % len(PAGES) for turn in range(ROUNDS)]
        return [at for at in order if read(at) != expected[at]]

    with frequent_switches(), ThreadPoolExecutor(THREADS) as pool:
        assert [number for found in pool.map(wrong, range(THREADS)) for number in found] == []
