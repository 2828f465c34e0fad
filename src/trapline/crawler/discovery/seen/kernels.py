"""The compiled half of table.py: open addressing with linear probing, one segment for each first byte of a fingerprint.

Rules of this file
- Fingerprints are int64 with the same bits: numba turns uint64 into floats when it is mixed with int64.
- A slot is empty if its fingerprint is 0. The URL whose fingerprint is 0 has its own place, head[ZERO].
- The preferred slot of a fingerprint increases with the fingerprint's low half. When a segment grows, it is therefore
  read and written from end to end, not at random.
"""

from typing import NamedTuple

import numpy as np

from trapline.compiled.array_handles import Pinned, recaller
from trapline.compiled.jit import helper, i8, kernel, prefetch, void
from trapline.crawler.discovery.seen.hashing import fingerprint, joined
from trapline.fetch.html.kernels import Bytes, Rows
from trapline.frontier.layout import Array, Numbers, Pages

SEGMENTS = 256
# Indexes of `head`: the number of URLs; the page of fingerprint 0, or -1; the two halves of the key.
COUNT, ZERO, KEY_0, KEY_1 = 0, 1, 2, 3
NO_PAGE = -2  # lower numbers too: the caller of the lookup may use them for reasons
LINKS_ELSEWHERE = -256  # and lower: other processes have the page; the number says which
LOW_BITS = 0x7FFFFFFF  # of a page number
AHEAD = 8  # slots are prefetched this many fingerprints ahead: one cache miss takes as long as some ten look-ups

SLOT = np.dtype((np.record, [("fingerprint", "<i8"), ("page", "<i4")]))  # 12 bytes, not padded


class Segment(NamedTuple):
    slots: Array  # SLOT


class Table(NamedTuple):
    head: Array
    used: Array  # slots in use, by segment
    segments: Array  # int64: the handle of each Segment (compiled/array_handles.py)


class LookupArrays(NamedTuple):
    """The arrays of a `Lookup`."""

    text: Array  # a joined link: LONGEST bytes and padding
    met: Array  # fingerprints of joined links that are not among the seen URLs, each in the only slot that it may have
    met_pages: Array  # the remembered result for each of them
    fingerprints: Array  # of the links of one page
    pages: Array  # the results for the links of one page
    slots: Array  # for the distinct ones among these results; at least twice as many as links, a power of two
    marks: Array  # uint8, by page: not 0 if a link to the page needs a closer look; 0 for pages beyond the end


SegmentType = Pinned(Segment(np.zeros(1, SLOT)))
TableType = Pinned(Table(*(np.zeros(1, np.int64) for _ in Table._fields)))
_BYTES, _NUMBERS, _PAGES = np.zeros(1, np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int32)
DeskType = Pinned(LookupArrays(_BYTES, _NUMBERS, _PAGES, _NUMBERS, _PAGES, _PAGES, _BYTES))
recall_segment, recall_table, recall_desk = recaller(SegmentType), recaller(TableType), recaller(DeskType)


@helper(i8(i8))
def segment_of(fingerprint: int) -> int:
    return (fingerprint >> 56) & (SEGMENTS - 1)


@helper(i8(SegmentType, i8))
def own_slot(segment: Segment, fingerprint: int) -> int:
    return ((fingerprint & 0xFFFFFFFF) * segment.slots.size) >> 32


@helper(i8(SegmentType, i8))
def find_slot(segment: Segment, fingerprint: int) -> int:
    """Return the slot that has the fingerprint, or the empty slot where it belongs."""
    at = own_slot(segment, fingerprint)
    while segment.slots[at].fingerprint != fingerprint and segment.slots[at].fingerprint != 0:
        at += 1
        if at == segment.slots.size:
            at = 0
    return at


@helper(void(TableType, Numbers, i8))
def look_up_ahead(table: Table, fingerprints: Array, i: int) -> None:
    if i < fingerprints.size:
        segment: Segment = recall_segment(table.segments[segment_of(fingerprints[i])])
        prefetch(segment.slots, own_slot(segment, fingerprints[i]))


@helper(i8(TableType, i8))
def page_seen(table: Table, fingerprint: int) -> int:
    """Return the page of the fingerprint, or -1."""
    if fingerprint == 0:
        return table.head[ZERO]
    segment: Segment = recall_segment(table.segments[segment_of(fingerprint)])
    slot = segment.slots[find_slot(segment, fingerprint)]
    return slot.page if slot.fingerprint != 0 else -1


@kernel(void(i8, Bytes, Pages, Numbers))
def take_fingerprints(handle: int, text: Array, ends: Array, out: Array) -> None:
    """Write the fingerprints of texts that are stored one after another. ends[i]: the end of text i."""
    table: Table = recall_table(handle)
    start = 0
    for i in range(ends.size):
        out[i] = fingerprint(text, start, ends[i], table.head[KEY_0], table.head[KEY_1])
        start = ends[i]


@kernel(void(i8, Numbers, Pages))
def find_seen(handle: int, fingerprints: Array, out: Array) -> None:
    """Write out[i], the page of fingerprints[i], or -1."""
    table: Table = recall_table(handle)
    for i in range(AHEAD):
        look_up_ahead(table, fingerprints, i)
    for i in range(fingerprints.size):
        look_up_ahead(table, fingerprints, i + AHEAD)
        out[i] = page_seen(table, fingerprints[i])


@helper(i8(DeskType, i8, i8))
def keep_distinct(desk: LookupArrays, count: int, key: int) -> int:
    """Keep each of the first `count` pages of `desk.pages` once, in order. Return how many there are.

    `key`: secret, because strangers choose the links. Pages that they could choose to share slots would take quadratic time.
    """
    size, shift = 1, 31
    first, second = (key & LOW_BITS) | 1, ((key >> 32) & LOW_BITS) | 1
    while size < 2 * count:
        size *= 2
        shift -= 1
    for at in range(size):
        desk.slots[at] = -1
    distinct = 0
    for i in range(count):
        page = desk.pages[i]
        mixed = (page * first) & LOW_BITS
        at = (((mixed ^ (mixed >> 15)) * second) & LOW_BITS) >> shift
        while desk.slots[at] != -1 and desk.slots[at] != page:
            at = (at + 1) & (size - 1)
        if desk.slots[at] == -1:
            desk.slots[at] = desk.pages[distinct] = page
            distinct += 1
    return distinct


@helper(i8(DeskType, i8))
def put_last_elsewhere(desk: LookupArrays, count: int) -> int:
    """Put the links that lead elsewhere behind the others, in order, and their fingerprints first. Return how many others there are."""
    here = elsewhere = 0
    for i in range(count):
        if desk.pages[i] > LINKS_ELSEWHERE:
            desk.pages[here] = desk.pages[i]
            here += 1
        else:
            desk.slots[elsewhere] = desk.pages[i]
            desk.fingerprints[elsewhere] = desk.fingerprints[i]
            elsewhere += 1
    for i in range(elsewhere):
        desk.pages[here + i] = desk.slots[i]
    return here


@kernel(i8(i8, i8, Bytes, Rows, Bytes, i8))
def find_links(handle: int, desk_handle: int, text: Array, spans: Array, url: Array, wants_distinct: int) -> int:
    """Look up the links of the page at `url`. Return the number of distinct pages and, in the high half, the number of links to pages
    that are elsewhere; or -1.

    The distinct pages are the first of `desk.pages`. They are given if they are wanted, and every link leads to a page without a mark,
    or elsewhere. The links that lead elsewhere follow: their numbers after the distinct pages, and their fingerprints as the first of
    `desk.fingerprints`.

    Otherwise desk.pages[i] is the page of link i; below -1: it has none; -1: unknown. And desk.fingerprints[i] is the fingerprint under
    which the result may be remembered; 0: it may not.
    """
    table: Table = recall_table(handle)
    desk: LookupArrays = recall_desk(desk_handle)
    fingerprints, pages, marks = desk.fingerprints, desk.pages, desk.marks
    count = len(spans)
    for i in range(count):
        end = joined(text, spans[i, 0], spans[i, 1], url, desk.text)
        fingerprints[i] = 0 if end < 0 else fingerprint(desk.text, 0, end, table.head[KEY_0], table.head[KEY_1])
        look_up_ahead(table, fingerprints, i)
    is_plain = wants_distinct != 0
    for i in range(count):
        page = page_seen(table, fingerprints[i]) if fingerprints[i] != 0 else -1
        slot = fingerprints[i] & (desk.met.size - 1)
        if page < 0 and fingerprints[i] != 0 and desk.met[slot] == fingerprints[i]:
            page = desk.met_pages[slot]
        pages[i] = page
        is_plain = is_plain and (page <= LINKS_ELSEWHERE or (page >= 0 and (page >= marks.size or marks[page] == 0)))
    if not is_plain:
        return -1
    here = put_last_elsewhere(desk, count)
    distinct = keep_distinct(desk, here, table.head[KEY_0])
    for i in range(count - here):
        pages[distinct + i] = pages[here + i]
    return distinct | ((count - here) << 32)


@helper(i8(TableType, i8, i8))
def page_of(table: Table, fingerprint: int, page: int) -> int:
    """Return the page of a fingerprint. Add a new fingerprint with `page`, or return -1 if its segment is full."""
    if fingerprint == 0:
        if table.head[ZERO] < 0:
            table.head[ZERO] = page
            table.head[COUNT] += 1
        return table.head[ZERO]
    k = segment_of(fingerprint)
    segment: Segment = recall_segment(table.segments[k])
    slot = segment.slots[find_slot(segment, fingerprint)]
    if slot.fingerprint == 0:
        if table.used[k] >= segment.slots.size * 4 // 5:
            return -1
        slot.fingerprint = fingerprint
        slot.page = page
        table.used[k] += 1
        table.head[COUNT] += 1
    return slot.page


@kernel(i8(i8, Numbers, i8, i8, Pages))
def add_seen(handle: int, fingerprints: Array, start: int, offset: int, out: Array) -> int:
    """Add fingerprints from `start` on and write out[i], the page of each. A new page is `offset` + the number of URLs before
    it. Return how many are done: all, or those before the first whose segment must grow."""
    table: Table = recall_table(handle)
    for i in range(start, start + AHEAD):
        look_up_ahead(table, fingerprints, i)
    for i in range(start, fingerprints.size):
        look_up_ahead(table, fingerprints, i + AHEAD)
        page = page_of(table, fingerprints[i], offset + table.head[COUNT])
        if page < 0:
            return i
        out[i] = page
    return fingerprints.size


@kernel(void(i8, i8))
def move_slots(source: int, target: int) -> None:
    """Copy every slot in use from one segment to another, which has room."""
    old: Segment = recall_segment(source)
    new: Segment = recall_segment(target)
    for i in range(old.slots.size):
        slot = old.slots[i]
        if slot.fingerprint != 0:
            moved = new.slots[find_slot(new, slot.fingerprint)]
            moved.fingerprint = slot.fingerprint
            moved.page = slot.page
