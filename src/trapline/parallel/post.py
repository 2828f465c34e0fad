"""What a partition has to tell others: links that it found to pages that are not its own, gathered until they are sent.

A page is a key, any 64-bit number that all partitions agree on. Links to one page are one entry, with their number, what they
hand on and the least depth that they come from. The order is that in which pages were first met.

Two things keep links from being sent again and again (Cho and Garcia-Molina 2002; the filter: BUbiNG, Boldi et al. 2018):
- *replicated* keys are known everywhere and never sent;
- the *filter* remembers keys that were sent, as many as it has room for, in buckets of `WAYS`. When one is full the key leaves that
  was not met for the longest time (`lru`), or that was met least often (`popular`).
What is not sent does not count at its owner, where ranks go by links.
"""

from typing import NamedTuple

import numpy as np

from trapline.errors import ConfigError
from trapline.frontier.layout import Array, record
from trapline.jit import b1, f8, helper, i8, kernel, ready, type_of, void
from trapline.rng import mixed

LRU, POPULAR = range(2)
FILTERS = ("lru", "popular")
WAYS = 8
NO_KEY = -1
_FIRST = 1024

ENTRY = record([("key", "i8"), ("links", "i8"), ("share", "f8"), ("depth", "i4"), ("owner", "i4")])
SENT = record([("key", "i8"), ("met", "i8"), ("times", "i8")])
TALLY = record(
    [
        ("entries", "i8"),
        ("moment", "i8"),  # of the filter: counts what it is asked and told
        ("policy", "i8"),
        ("replicated", "i8"),  # not sent, because known everywhere
        ("filtered", "i8"),  # not sent, because sent before
    ]
)


class Post(NamedTuple):
    tally: Array  # TALLY[1]
    entry: Array  # ENTRY[...]
    place: Array  # int32[a power of two]: the entry of a key, or NO_KEY
    sent: Array  # SENT[buckets, WAYS]; no buckets: no filter
    everywhere: Array  # int64, rising


def filter_bytes(filter_size: int) -> int:
    """The memory of one filter, all of it from the beginning on.

    >>> filter_bytes(1_000)
    24576
    """
    return _buckets(filter_size) * WAYS * SENT.itemsize


def _buckets(filter_size: int) -> int:
    return 0 if filter_size == 0 else 1 << max(0, (filter_size // WAYS - 1).bit_length())


def _new_post(filter_size: int, policy: int, replicated: Array) -> Post:
    sent = np.zeros((_buckets(filter_size), WAYS), SENT)
    sent["key"] = NO_KEY
    tally = np.zeros(1, TALLY)
    tally["policy"] = policy
    places = np.full(2 * _FIRST, NO_KEY, np.int32)
    return Post(tally, np.zeros(_FIRST, ENTRY), places, sent, np.unique(replicated).astype(np.int64))


PostType = type_of(_new_post(8, LRU, np.zeros(0, np.int64)))


@helper(i8(i8))
def scattered(key: int) -> int:
    """A place for the key, without visible pattern, in 32 bits."""
    return mixed(mixed(key & 0xFFFFFFFF) ^ ((key >> 32) & 0xFFFFFFFF))


@helper(i8(PostType, i8))
def place_of(post: Post, key: int) -> int:
    """Where in `place` the key is, or would be."""
    mask = post.place.size - 1
    at = scattered(key) & mask
    while post.place[at] != NO_KEY and post.entry[post.place[at]].key != key:
        at = (at + 1) & mask
    return at


@helper(b1(PostType, i8))
def is_everywhere(post: Post, key: int) -> bool:
    low, high = 0, post.everywhere.size
    while low < high:
        middle = (low + high) // 2
        if post.everywhere[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < post.everywhere.size and post.everywhere[low] == key


@helper(b1(PostType, i8))
def was_sent(post: Post, key: int) -> bool:
    """Whether the filter knows the key; if so, it was met once more."""
    if post.sent.size == 0:
        return False
    tally = post.tally[0]
    tally.moment += 1
    bucket = scattered(key) & (post.sent.shape[0] - 1)
    for way in range(WAYS):
        one = post.sent[bucket, way]
        if one.key == key:
            one.met = tally.moment
            one.times += 1
            return True
    return False


@helper(void(PostType, i8))
def remember_sent(post: Post, key: int) -> None:
    if post.sent.size == 0:
        return
    tally = post.tally[0]
    tally.moment += 1
    bucket = scattered(key) & (post.sent.shape[0] - 1)
    leaves = 0
    for way in range(1, WAYS):
        one, least = post.sent[bucket, way], post.sent[bucket, leaves]
        earlier = one.met < least.met
        if tally.policy == POPULAR and one.times != least.times:
            earlier = one.times < least.times
        if earlier:
            leaves = way
    one = post.sent[bucket, leaves]
    one.key = key
    one.met = tally.moment
    one.times = 1


@helper(void(PostType, i8, i8, f8, i8))
def add_link(post: Post, key: int, owner: int, share: float, depth: int) -> None:
    """There is room for one more entry."""
    tally = post.tally[0]
    at = place_of(post, key)
    if post.place[at] == NO_KEY:
        if is_everywhere(post, key):
            tally.replicated += 1
            return
        if was_sent(post, key):
            tally.filtered += 1
            return
        post.place[at] = tally.entries
        one = post.entry[tally.entries]
        one.key = key
        one.owner = owner
        one.links = 0
        one.share = 0.0
        one.depth = depth
        tally.entries += 1
    one = post.entry[post.place[at]]
    one.links += 1
    one.share += share
    one.depth = min(one.depth, depth)


@kernel(void(PostType))
def settle_places(post: Post) -> None:
    """Every entry to its place; `place` is empty."""
    for number in range(post.tally[0].entries):
        post.place[place_of(post, post.entry[number].key)] = number


@kernel(void(PostType))
def forget_entries(post: Post) -> None:
    """They are sent: the filter remembers them."""
    for number in range(post.tally[0].entries):
        remember_sent(post, post.entry[number].key)
    post.tally[0].entries = 0


class Outbox:
    """The post of one partition, and its growth."""

    def __init__(self, filter_size: int = 0, policy: str = "lru", replicated: Array | None = None) -> None:
        if filter_size < 0:
            raise ConfigError(f"a filter of {filter_size} URLs; give 0 (none) or more")
        ready()
        known = np.zeros(0, np.int64) if replicated is None else replicated
        self.post = _new_post(filter_size, FILTERS.index(policy), known)

    def __len__(self) -> int:
        return int(self.post.tally[0].entries)

    def reserve(self, links: int) -> None:
        """Room for so many more links, should each be to a page of its own."""
        needed = len(self) + links
        if needed <= len(self.post.entry):
            return
        size = max(needed, 2 * len(self.post.entry))
        entry = np.zeros(size, ENTRY)
        entry[: len(self)] = self.post.entry[: len(self)]
        place = np.full(1 << (2 * size - 1).bit_length(), NO_KEY, np.int32)
        self.post = self.post._replace(entry=entry, place=place)
        settle_places(self.post)

    def take(self) -> Array:
        """All entries, in the order in which they were first met. They are as good as sent."""
        entries = self.post.entry[: len(self)].copy()
        forget_entries(self.post)
        self.post.place[:] = NO_KEY
        return entries
