"""The outbox collects, merges and filters links like a dictionary and a list."""

from collections import OrderedDict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trapline.compiled.jit import f8, i8, kernel, void
from trapline.parallel.simulated.url_exchange import (
    NO_KEY,
    WAYS,
    LinkOutbox,
    OutboxArrays,
    OutboxType,
    add_link,
    empty_outbox,
    scattered,
)

LINKS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3), st.integers(0, 5)), max_size=80)


@kernel(void(OutboxType, i8, i8, f8, i8))
def add_one_link(outbox: OutboxArrays, key: int, owner: int, share: float, depth: int) -> None:
    add_link(outbox, key, owner, share, depth)


@kernel(void(OutboxType))
def empty(outbox: OutboxArrays) -> None:
    empty_outbox(outbox)


@kernel(i8(i8))
def scattered_key(key: int) -> int:
    return scattered(key)


def fill(outbox: LinkOutbox, links: list[tuple[int, int, int]]) -> None:
    for key, eighths, depth in links:
        outbox.reserve(1)
        add_one_link(outbox.arrays, key, key % 3, eighths / 8, depth)


def rows(outbox: LinkOutbox) -> list[tuple[int, int, float, int, int]]:
    """Empty the outbox, and return what was in it."""
    found = [(int(e.key), int(e.links), float(e.share), int(e.depth), int(e.owner)) for e in outbox.entries]
    empty(outbox.arrays)
    assert (outbox.arrays.place == NO_KEY).all()
    return found


@given(LINKS)
def test_links_to_a_page_are_one_entry_in_order_of_discovery(links: list[tuple[int, int, int]]) -> None:
    outbox = LinkOutbox()
    fill(outbox, links)
    expected: dict[int, list[tuple[int, int, int]]] = {}
    for link in links:
        expected.setdefault(link[0], []).append(link)
    assert rows(outbox) == [
        (key, len(its), sum(e for _, e, _ in its) / 8, min(d for _, _, d in its), key % 3)
        for key, its in expected.items()
    ]
    assert len(outbox) == 0


@given(LINKS, st.sets(st.integers(0, 40), max_size=10))
def test_pages_known_everywhere_are_not_sent(links: list[tuple[int, int, int]], known: set[int]) -> None:
    outbox = LinkOutbox(replicated=np.array(sorted(known), np.int64))
    fill(outbox, links)
    tally = outbox.arrays.tally[0]
    assert tally.replicated == sum(key in known for key, _, _ in links)
    assert {row[0] for row in rows(outbox)} == {key for key, _, _ in links} - known


@given(st.lists(LINKS, max_size=8))
def test_the_filter_forgets_the_least_recently_seen_urls(batches: list[list[tuple[int, int, int]]]) -> None:
    outbox = LinkOutbox(filter_size=2 * WAYS)
    buckets: list[OrderedDict[int, None]] = [OrderedDict(), OrderedDict()]
    for links in batches:
        fill(outbox, links)
        expected: dict[int, None] = {}
        for key, _, _ in links:
            bucket = buckets[scattered_key(key) & 1]
            if key not in expected and key in bucket:
                bucket.move_to_end(key)
            else:
                expected[key] = None
        assert [row[0] for row in rows(outbox)] == list(expected)
        for key in expected:
            bucket = buckets[scattered_key(key) & 1]
            if len(bucket) == WAYS:
                bucket.popitem(last=False)
            bucket[key] = None


def test_the_popular_policy_keeps_frequent_urls() -> None:
    """One key is seen often, then not for a long time, while others pass through its bucket."""
    for policy, remembers in (("lru", False), ("popular", True)):
        outbox = LinkOutbox(filter_size=WAYS, policy=policy)
        for _ in range(5):
            fill(outbox, [(7, 1, 0)])
            rows(outbox)
        for key in range(100, 100 + 2 * WAYS):
            fill(outbox, [(key, 1, 0)])
            rows(outbox)
        fill(outbox, [(7, 1, 0)])
        assert (rows(outbox) == []) is remembers
