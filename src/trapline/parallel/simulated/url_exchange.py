"""The outbox of a simulated partition: links to pages of other partitions, gathered until they are sent.

A page is identified by a key, any 64-bit number that all partitions agree on. Links to one page are one entry: the
number of links, the sum of the shares that they hand on (such as OPIC cash), and the smallest depth of the pages that
have them. Entries are in the order in which their pages were first found.

Two mechanisms keep links from being sent repeatedly (Cho and Garcia-Molina 2002; the filter: BUbiNG, Boldi et al.
2018):
- *replicated* keys are known to every partition, and never sent;
- the *filter* remembers keys that were sent, as many as it has room for, in buckets of `WAYS`. When a bucket is full,
  it evicts the key that was found least recently (`lru`) or least often (`popular`).
A link that is not sent is not counted at the owner, which matters for ranks that count links.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import b1, f8, helper, i8, kernel, type_of, void
from trapline.errors import ConfigError
from trapline.frontier.layout import Array, Pages, record
from trapline.graph import Graph
from trapline.rng import mixed

# ---- The owners of pages while a crawl runs: a table that is fixed from the start, or filled as the crawl discovers
# new parts of the web.
#
# A *unit* is what is owned as a whole: a site, or a page. With *dynamic* assignment, a coordinator gives a newly
# discovered unit to the partition that has the fewest units, and a partition asks the coordinator once about each unit.

Ids = NDArray[np.int32]
Longs = type_of(np.zeros(1, np.int64))
NOBODY = -1


class PageOwners(NamedTuple):
    unit: Ids
    """[pages] the unit of each page; empty: each page is a unit, with the same number"""
    owner: Ids
    """[units] the partition that owns each unit"""
    units_of: NDArray[np.int64]
    """[partitions] number of units of each partition, with a coordinator"""
    requested: NDArray[np.uint8]
    """[partitions, units] 1: the partition has asked who owns the unit; no rows: there is no coordinator"""

    def give_out(self, pages: Ids) -> None:
        """Assign the units of these pages to the partitions in turn."""
        units = np.unique(self.unit[pages] if len(self.unit) else pages)
        self.owner[units] = np.arange(len(units)) % len(self.units_of)
        self.units_of[:] = np.bincount(self.owner[units], minlength=len(self.units_of))

    def of_pages(self) -> Ids:
        owner: Ids = self.owner[self.unit] if len(self.unit) else self.owner
        return owner


def fixed(owner: Ids) -> PageOwners:
    """Return owners that are fixed from the start. `owner`: the partition of each page."""
    return PageOwners(np.zeros(0, np.int32), owner, np.zeros(0, np.int64), np.zeros((0, 0), np.uint8))


def by_coordinator(graph: Graph, partitions: int, grain: str) -> PageOwners:
    units = graph.sites if grain == "site" else graph.pages
    unit = graph.site if grain == "site" else np.zeros(0, np.int32)
    return PageOwners(
        unit, np.full(units, NOBODY, np.int32), np.zeros(partitions, np.int64), np.zeros((partitions, units), np.uint8)
    )


@kernel(i8(Pages, Pages, Longs, Pages, Pages))
def links_to_others(pages: Array, process: Array, offsets: Array, targets: Array, owner: Array) -> int:
    """Count the links on `pages` that lead to pages of other partitions. `process`: the partition that fetched each of
    them; `owner`: the owner of every page of the graph. A page without an owner is not another partition's."""
    found = 0
    for row in range(pages.size):
        for at in range(offsets[pages[row]], offsets[pages[row] + 1]):
            one = owner[targets[at]]
            found += one != NOBODY and one != process[row]
    return found


# ---- the outbox

LRU, POPULAR = range(2)
FILTERS = ("lru", "popular")
WAYS = 8
NO_KEY = -1
_FIRST = 1024

ENTRY = record([("key", "i8"), ("links", "i8"), ("share", "f8"), ("depth", "i4"), ("owner", "i4")])
SENT = record([("key", "i8"), ("last_used", "i8"), ("times", "i8")])
TALLY = record(
    [
        ("entries", "i8"),
        ("moment", "i8"),  # logical clock of the filter: counts lookups and insertions
        ("policy", "i8"),
        ("replicated", "i8"),  # links not sent, because every partition knows their target
        ("filtered", "i8"),  # links not sent, because they were sent before
    ]
)


class OutboxArrays(NamedTuple):
    tally: Array  # TALLY[1]
    entry: Array  # ENTRY[...]
    place: Array  # int32[a power of two]: hash table of entry numbers, or NO_KEY
    sent: Array  # SENT[buckets, WAYS]; no buckets: no filter
    everywhere: Array  # int64: replicated keys, ascending


def filter_bytes(filter_size: int) -> int:
    """Return the memory of one filter in bytes. All of it is allocated at the start.

    >>> filter_bytes(1_000)
    24576
    """
    return _buckets(filter_size) * WAYS * SENT.itemsize


def _buckets(filter_size: int) -> int:
    return 0 if filter_size == 0 else 1 << max(0, (filter_size // WAYS - 1).bit_length())


def new_outbox(filter_size: int, policy: int, replicated: Array) -> OutboxArrays:
    sent = np.zeros((_buckets(filter_size), WAYS), SENT)
    sent["key"] = NO_KEY
    tally = np.zeros(1, TALLY)
    tally["policy"] = policy
    places = np.full(2 * _FIRST, NO_KEY, np.int32)
    return OutboxArrays(tally, np.zeros(_FIRST, ENTRY), places, sent, np.unique(replicated).astype(np.int64))


OutboxType = type_of(new_outbox(8, LRU, np.zeros(0, np.int64)))


@helper(i8(i8))
def scattered(key: int) -> int:
    """Return a 32-bit hash of the key."""
    return mixed(mixed(key & 0xFFFFFFFF) ^ ((key >> 32) & 0xFFFFFFFF))


@helper(i8(OutboxType, i8))
def place_of(outbox: OutboxArrays, key: int) -> int:
    """Return where in `place` the key is, or would be inserted."""
    mask = outbox.place.size - 1
    at = scattered(key) & mask
    while outbox.place[at] != NO_KEY and outbox.entry[outbox.place[at]].key != key:
        at = (at + 1) & mask
    return at


@helper(b1(OutboxType, i8))
def is_everywhere(outbox: OutboxArrays, key: int) -> bool:
    low, high = 0, outbox.everywhere.size
    while low < high:
        middle = (low + high) // 2
        if outbox.everywhere[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < outbox.everywhere.size and outbox.everywhere[low] == key


@helper(b1(OutboxType, i8))
def was_sent(outbox: OutboxArrays, key: int) -> bool:
    """Return whether the filter knows the key; if it does, count it as found once more."""
    if outbox.sent.size == 0:
        return False
    tally = outbox.tally[0]
    tally.moment += 1
    bucket = scattered(key) & (outbox.sent.shape[0] - 1)
    for way in range(WAYS):
        one = outbox.sent[bucket, way]
        if one.key == key:
            one.last_used = tally.moment
            one.times += 1
            return True
    return False


@helper(void(OutboxType, i8))
def remember_sent(outbox: OutboxArrays, key: int) -> None:
    if outbox.sent.size == 0:
        return
    tally = outbox.tally[0]
    tally.moment += 1
    bucket = scattered(key) & (outbox.sent.shape[0] - 1)
    leaves = 0
    for way in range(1, WAYS):
        one, least = outbox.sent[bucket, way], outbox.sent[bucket, leaves]
        earlier = one.last_used < least.last_used
        if tally.policy == POPULAR and one.times != least.times:
            earlier = one.times < least.times
        if earlier:
            leaves = way
    one = outbox.sent[bucket, leaves]
    one.key = key
    one.last_used = tally.moment
    one.times = 1


@helper(void(OutboxType, i8, i8, f8, i8))
def add_link(outbox: OutboxArrays, key: int, owner: int, share: float, depth: int) -> None:
    """Add a link to the outbox. There must be room for one more entry."""
    tally = outbox.tally[0]
    at = place_of(outbox, key)
    if outbox.place[at] == NO_KEY:
        if is_everywhere(outbox, key):
            tally.replicated += 1
            return
        if was_sent(outbox, key):
            tally.filtered += 1
            return
        outbox.place[at] = tally.entries
        one = outbox.entry[tally.entries]
        one.key = key
        one.owner = owner
        one.links = 0
        one.share = 0.0
        one.depth = depth
        tally.entries += 1
    one = outbox.entry[outbox.place[at]]
    one.links += 1
    one.share += share
    one.depth = min(one.depth, depth)


@kernel(void(OutboxType))
def settle_places(outbox: OutboxArrays) -> None:
    """Insert every entry into `place`, which must be empty."""
    for number in range(outbox.tally[0].entries):
        outbox.place[place_of(outbox, outbox.entry[number].key)] = number


@helper(void(OutboxType))
def empty_outbox(outbox: OutboxArrays) -> None:
    """Remove all entries, which are being sent, and let the filter remember them."""
    tally = outbox.tally[0]
    for number in range(tally.entries):
        remember_sent(outbox, outbox.entry[number].key)
    if 16 * tally.entries < outbox.place.size:
        # Last in, first out: on the way to a key lie only keys that were inserted before it.
        for number in range(tally.entries - 1, -1, -1):
            outbox.place[place_of(outbox, outbox.entry[number].key)] = NO_KEY
    else:
        outbox.place[:] = NO_KEY
    tally.entries = 0


class LinkOutbox:
    """The outbox of one partition: its arrays, and their growth."""

    def __init__(self, filter_size: int = 0, policy: str = "lru", replicated: Array | None = None) -> None:
        if filter_size < 0:
            raise ConfigError(f"a filter of {filter_size} URLs: give 0 (none) or more")
        known = np.zeros(0, np.int64) if replicated is None else replicated
        self.arrays = new_outbox(filter_size, FILTERS.index(policy), known)

    def __len__(self) -> int:
        return int(self.arrays.tally[0].entries)

    @property
    def entries(self) -> Array:
        """The entries, in the order in which their pages were first found."""
        return self.arrays.entry[: len(self)]

    def reserve(self, links: int) -> None:
        """Make room for `links` more links, even if each leads to a different page."""
        needed = len(self) + links
        if needed <= len(self.arrays.entry):
            return
        size = max(needed, 2 * len(self.arrays.entry))
        entry = np.zeros(size, ENTRY)
        entry[: len(self)] = self.entries
        place = np.full(1 << (2 * size - 1).bit_length(), NO_KEY, np.int32)
        self.arrays = self.arrays._replace(entry=entry, place=place)
        settle_places(self.arrays)
