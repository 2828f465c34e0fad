"""The compiled half of table.py: open addressing with linear probing, one segment for each first byte of a fingerprint.

Rules of this file
- Fingerprints are int64 here, the same bits: mixed with numba's int64, uint64 would turn into floats.
- A slot is empty if its fingerprint is 0. The URL whose fingerprint is 0 has a place of its own, head[ZERO].
- A fingerprint's own slot grows with the fingerprint's low half, so that a segment that moves is read and written from
  end to end, not at random.
"""

from typing import NamedTuple

import numpy as np

from trapline.frontier.layout import Array, Numbers, Pages
from trapline.jit import helper, i8, kernel, prefetch, recaller, type_of, void

SEGMENTS = 256
COUNT, ZERO = 0, 1  # of head: URLs in all; the page of fingerprint 0, or -1
AHEAD = 8  # fingerprints to ask memory for before they are looked up: one miss takes as long as some ten look-ups

SLOT = np.dtype((np.record, [("fingerprint", "<i8"), ("page", "<i4")]))  # 12 bytes, not padded


class Segment(NamedTuple):
    slots: Array  # SLOT


class Table(NamedTuple):
    head: Array
    used: Array  # slots in use, by segment
    segments: Array  # int64: the handle of each Segment (jit.pin)


SegmentType = type_of(Segment(np.zeros(1, SLOT)))
TableType = type_of(Table(*(np.zeros(1, np.int64) for _ in Table._fields)))
recall_segment, recall_table = recaller(SegmentType), recaller(TableType)


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
def look_ahead(table: Table, fingerprints: Array, i: int) -> None:
    if i < fingerprints.size:
        segment: Segment = recall_segment(table.segments[segment_of(fingerprints[i])])
        prefetch(segment.slots, own_slot(segment, fingerprints[i]))


@kernel(void(i8, Numbers, Pages))
def find_seen(handle: int, fingerprints: Array, out: Array) -> None:
    """out[i] = the page, or -1."""
    table: Table = recall_table(handle)
    for i in range(AHEAD):
        look_ahead(table, fingerprints, i)
    for i in range(fingerprints.size):
        look_ahead(table, fingerprints, i + AHEAD)
        if fingerprints[i] == 0:
            out[i] = table.head[ZERO]
            continue
        segment: Segment = recall_segment(table.segments[segment_of(fingerprints[i])])
        slot = segment.slots[find_slot(segment, fingerprints[i])]
        out[i] = slot.page if slot.fingerprint != 0 else -1


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
        look_ahead(table, fingerprints, i)
    for i in range(start, fingerprints.size):
        look_ahead(table, fingerprints, i + AHEAD)
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
