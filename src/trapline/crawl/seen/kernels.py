"""The compiled half of table.py and lookup.py: open addressing with linear probing, one segment for each first byte of a fingerprint.

Rules of this file
- Fingerprints are int64 here, the same bits: mixed with numba's int64, uint64 would turn into floats.
- A slot is empty if its fingerprint is 0. The URL whose fingerprint is 0 has a place of its own, head[ZERO].
- A fingerprint's own slot grows with the fingerprint's low half, so that a segment that moves is read and written from
  end to end, not at random.
"""

from typing import NamedTuple

import numpy as np

from trapline.crawl.seen.hashing import fingerprint
from trapline.crawl.seen.joining import joined
from trapline.fetch.tags.kernels import Bytes, Rows
from trapline.frontier.layout import Array, Numbers, Pages
from trapline.jit import helper, i8, kernel, prefetch, void
from trapline.pinned import Pinned, recaller

SEGMENTS = 256
# Of head: URLs in all; the page of fingerprint 0, or -1; the key of all fingerprints.
COUNT, ZERO, KEY_0, KEY_1 = 0, 1, 2, 3
AHEAD = 8  # fingerprints to ask memory for before they are looked up: one miss takes as long as some ten look-ups

SLOT = np.dtype((np.record, [("fingerprint", "<i8"), ("page", "<i4")]))  # 12 bytes, not padded


class Segment(NamedTuple):
    slots: Array  # SLOT


class Table(NamedTuple):
    head: Array
    used: Array  # slots in use, by segment
    segments: Array  # int64: the handle of each Segment (pinned.py)


class Desk(NamedTuple):
    """Where links are looked up."""

    text: Array  # LONGEST bytes and some to spare: a link, joined
    met: Array  # fingerprints of such texts that are no URL seen, each in the one slot that it may have
    met_pages: Array  # what is known of each


SegmentType = Pinned(Segment(np.zeros(1, SLOT)))
TableType = Pinned(Table(*(np.zeros(1, np.int64) for _ in Table._fields)))
DeskType = Pinned(Desk(np.zeros(1, np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int32)))
recall_segment, recall_table, recall_desk = recaller(SegmentType), recaller(TableType), recaller(DeskType)


@helper(i8(i8))
def segment_of(fingerprint: int) -> int:
    return (fingerprint >> 56) & (SEGMENTS - 1)


@helper(i8(SegmentType, i8))
def own_slot(segment: Segment, fingerprint: int) -> int:
    return ((fingerprint & 0xFFFFFFFF) * segment.slots.size) >> 32


@helper(i8(SegmentType, i8))
def find_slot(segment: Segment, fingerprint: int) -> int:
    """The slot that has the fingerprint, or the empty one that would."""
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
    """The page, or -1."""
    if fingerprint == 0:
        return table.head[ZERO]
    segment: Segment = recall_segment(table.segments[segment_of(fingerprint)])
    slot = segment.slots[find_slot(segment, fingerprint)]
    return slot.page if slot.fingerprint != 0 else -1


@kernel(void(i8, Bytes, Pages, Numbers))
def take_fingerprints(handle: int, text: Array, ends: Array, out: Array) -> None:
    """Of texts that stand side by side."""
    table: Table = recall_table(handle)
    start = 0
    for i in range(ends.size):
        out[i] = fingerprint(text, start, ends[i], table.head[KEY_0], table.head[KEY_1])
        start = ends[i]


@kernel(void(i8, Numbers, Pages))
def find_seen(handle: int, fingerprints: Array, out: Array) -> None:
    """out[i] = the page, or -1."""
    table: Table = recall_table(handle)
    for i in range(AHEAD):
        look_up_ahead(table, fingerprints, i)
    for i in range(fingerprints.size):
        look_up_ahead(table, fingerprints, i + AHEAD)
        out[i] = page_seen(table, fingerprints[i])


@kernel(i8(i8, i8, Bytes, Rows, Bytes, Numbers, Pages))
def find_links(handle: int, at: int, text: Array, spans: Array, url: Array, fingerprints: Array, out: Array) -> int:
    """The links of the page at `url`: out[i] = its page, or less than -1 if it has none, or -1 if nobody knows yet; fingerprints[i] = by
    what it may be remembered, 0: nothing. How many are not known."""
    table: Table = recall_table(handle)
    desk: Desk = recall_desk(at)
    unknown = 0
    for i in range(len(spans)):
        end = joined(text, spans[i, 0], spans[i, 1], url, desk.text)
        fingerprints[i] = 0 if end < 0 else fingerprint(desk.text, 0, end, table.head[KEY_0], table.head[KEY_1])
        look_up_ahead(table, fingerprints, i)
    for i in range(len(spans)):
        out[i] = page_seen(table, fingerprints[i]) if fingerprints[i] != 0 else -1
        slot = fingerprints[i] & (desk.met.size - 1)
        if out[i] < 0 and fingerprints[i] != 0 and desk.met[slot] == fingerprints[i]:
            out[i] = desk.met_pages[slot]
        unknown += out[i] == -1
    return unknown


@helper(i8(TableType, i8, i8))
def page_of(table: Table, fingerprint: int, page: int) -> int:
    """The page of a fingerprint; if it is new, `page`, or -1 if its segment is full."""
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
    """From `start` on: out[i] = the page; a new one is `offset` + the number of URLs before it. How many are done: all, or up
    to one whose segment must grow."""
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
    """Every slot in use of one segment goes to another, which has room."""
    old: Segment = recall_segment(source)
    new: Segment = recall_segment(target)
    for i in range(old.slots.size):
        slot = old.slots[i]
        if slot.fingerprint != 0:
            moved = new.slots[find_slot(new, slot.fingerprint)]
            moved.fingerprint = slot.fingerprint
            moved.page = slot.page
