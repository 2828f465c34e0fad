"""The compiled half of `bvgraph`: decodes bits into links, page by page, in one pass and without an index.

The format is that of Boldi and Vigna, "The WebGraph Framework I: Compression Techniques" (WWW 2004). The bits of a page
are, in this order:
- d, its number of links (nothing else follows if d is 0);
- r, if there is a window: the page copies from the links of the page r before it (0: it copies none);
- if r > 0, the number of copy blocks and their lengths less 1 (the first length as it is). Blocks are runs of that
  page's links, alternately copied and skipped; after an even number of blocks, all remaining links are copied;
- if links are left, the number of intervals (unless the minimum interval length is 0). An interval is a run of
  consecutive pages, given by its gap to the one before and its length less the minimum;
- the links that are still left (residuals), as gaps less 1. The first gap of the intervals and the first of the
  residuals are relative to the page itself, and signed.

Rules of this file
- Bits are numbered from the highest of the first byte. `at` is [next bit, fault]. Only the first fault is recorded, and
  everything read after it is 0, so that every loop ends.
- No number from the file is used as an index or a length before it was compared with its bounds: the bits can be
  anything.
- A code has 48 bits at most: more than any page number or count needs, and few enough to read from 7 bytes at once.
"""

from typing import Any

import numpy as np

from trapline.compiled.jit import helper, kernel

Bits = Any
Longs = Any
Ids = Any

Long: Any = np.int64  # shifting a uint8 would lose its high bits

UNARY, GAMMA, DELTA, ZETA, NIBBLE = range(5)
"""Codes that a field can have."""

OUTDEGREES, REFERENCES, BLOCK_COUNTS, BLOCKS, RESIDUALS, ZETA_K, WINDOW, LEAST_INTERVAL = range(8)
"""Positions in `plan`: the codes of five fields, and three parameters."""

BITS_END, TOO_MANY_LINKS, BAD_REFERENCE, BAD_BLOCKS, BAD_INTERVALS, BAD_TARGET, BAD_CODE = range(1, 8)
"""Faults."""

_POSITION, _FAULT = 0, 1
_WIDEST = 48


@helper("void(int64[::1], int64)")
def _note_fault(at: Longs, fault: int) -> None:
    if at[_FAULT] == 0:
        at[_FAULT] = fault


@helper("int64(uint8[::1], int64)")
def _look_ahead(bits: Bits, position: int) -> int:
    """Return a 56-bit word whose top 49 bits or more are those from `position` on; zeros follow the end of the file."""
    first, word = position >> 3, 0
    for byte in range(first, first + 7):
        word = (word << 8) | (Long(bits[byte]) if byte < len(bits) else 0)
    return (word << (position & 7)) & ((1 << 56) - 1)


@helper("int64(uint8[::1], int64[::1], int64)")
def _take_bits(bits: Bits, at: Longs, width: int) -> int:
    """Consume the next `width` bits and return them as a number."""
    if width > _WIDEST:
        _note_fault(at, BAD_CODE)
    elif at[_POSITION] + width > 8 * len(bits):
        _note_fault(at, BITS_END)
    if at[_FAULT]:
        return 0
    word = _look_ahead(bits, at[_POSITION])
    at[_POSITION] += width
    return word >> (56 - width)


@helper("int64(uint8[::1], int64[::1])")
def _unary(bits: Bits, at: Longs) -> int:
    """Consume a unary code: return the number of 0 bits before the next 1 bit."""
    start, position, end = at[_POSITION], at[_POSITION], 8 * len(bits)
    if at[_FAULT]:
        return 0
    while position < end:
        word = _look_ahead(bits, position) >> 8
        if word:
            while not word >> 47:
                word <<= 1
                position += 1
            at[_POSITION] = position + 1
            return position - start
        position += 48
    _note_fault(at, BITS_END)
    return 0


@helper("int64(uint8[::1], int64[::1])")
def _gamma(bits: Bits, at: Longs) -> int:
    width = _unary(bits, at)
    tail = _take_bits(bits, at, width)
    return 0 if at[_FAULT] else (1 << width) + tail - 1


@helper("int64(uint8[::1], int64[::1])")
def _delta(bits: Bits, at: Longs) -> int:
    width = _gamma(bits, at)
    tail = _take_bits(bits, at, width)
    return 0 if at[_FAULT] else (1 << width) + tail - 1


@helper("int64(uint8[::1], int64[::1], int64)")
def _zeta(bits: Bits, at: Longs, k: int) -> int:
    """Consume a zeta_k code: in unary the power of 2^k below the number, then the distance to it in minimal binary code."""
    width = _unary(bits, at) * k
    short = _take_bits(bits, at, width + k - 1)
    if at[_FAULT]:
        return 0
    if short < 1 << width:
        return (1 << width) + short - 1
    return (short << 1) + _take_bits(bits, at, 1) - 1


@helper("int64(uint8[::1], int64[::1])")
def _nibble(bits: Bits, at: Longs) -> int:
    """Consume a nibble code: groups of a marker bit and three value bits; the marker of the last group is 1."""
    value = 0
    for _ in range(_WIDEST // 3):
        piece = _take_bits(bits, at, 4)
        value = (value << 3) | (piece & 7)
        if piece & 8:
            return value
    _note_fault(at, BAD_CODE)
    return 0


@helper("int64(uint8[::1], int64[::1], int64, int64)")
def _coded(bits: Bits, at: Longs, code: int, k: int) -> int:
    if code == GAMMA:
        return _gamma(bits, at)
    if code == ZETA:
        return _zeta(bits, at, k)
    if code == UNARY:
        return _unary(bits, at)
    return _delta(bits, at) if code == DELTA else _nibble(bits, at)


@helper("int64(int64)")
def _signed_gap(number: int) -> int:
    """Map 0, 1, 2, 3, 4, ... to 0, -1, 1, -2, 2, ..."""
    return number >> 1 if number & 1 == 0 else -((number + 1) >> 1)


@helper("int64(uint8[::1], int64[::1], int64[::1], int32[::1], int64, int32[::1])")
def _copy_blocks(bits: Bits, at: Longs, plan: Longs, linked: Ids, most: int, out: Ids) -> int:
    """Copy links of the referenced page to `out`; return their number, at most `most`."""
    count, taken, place = _coded(bits, at, plan[BLOCK_COUNTS], 0), 0, 0
    block = 0
    while block <= count and at[_FAULT] == 0:
        length = len(linked) - place
        if block < count:
            length = _coded(bits, at, plan[BLOCKS], 0) + (1 if block else 0)
        copies = block & 1 == 0
        if length > len(linked) - place or (copies and length > most - taken):
            _note_fault(at, BAD_BLOCKS)
            return 0
        if copies:
            for link in range(place, place + length):
                out[taken] = linked[link]
                taken += 1
        place += length
        block += 1
    return taken


@helper("int64(uint8[::1], int64[::1], int64[::1], int64, int64, int64, int32[::1])")
def _read_intervals(bits: Bits, at: Longs, plan: Longs, page: int, pages: int, most: int, out: Ids) -> int:
    """Write the pages of all intervals to `out`; return their number, at most `most`."""
    least, written, before = plan[LEAST_INTERVAL], 0, page
    count = _gamma(bits, at) if least and most else 0
    interval = 0
    while interval < count and at[_FAULT] == 0:
        gap = _gamma(bits, at)
        left = page + _signed_gap(gap) if interval == 0 else before + gap + 1
        length = _gamma(bits, at) + least
        if length > most - written or left < 0 or left > pages - length:
            _note_fault(at, BAD_INTERVALS)
            return 0
        for target in range(left, left + length):
            out[written] = target
            written += 1
        before = left + length
        interval += 1
    return written


@helper("void(uint8[::1], int64[::1], int64[::1], int64, int64, int64, int32[::1])")
def _read_residuals(bits: Bits, at: Longs, plan: Longs, page: int, pages: int, count: int, out: Ids) -> None:
    before = page
    for place in range(count):
        gap = _coded(bits, at, plan[RESIDUALS], plan[ZETA_K])
        target = page + _signed_gap(gap) if place == 0 else before + gap + 1
        if target < 0 or target >= pages:
            _note_fault(at, BAD_TARGET)
        if at[_FAULT]:
            return
        out[place] = before = target


@helper("boolean(int32[::1], int32[::1], int32[::1], int32[::1])")
def _merge_links(one: Ids, two: Ids, three: Ids, out: Ids) -> bool:
    """Merge the three ascending lists into `out`; return False if a page occurs twice."""
    a, b, c, last = 0, 0, 0, -1
    for place in range(len(out)):
        first = Long(one[a]) if a < len(one) else 1 << 40
        second = Long(two[b]) if b < len(two) else 1 << 40
        third = Long(three[c]) if c < len(three) else 1 << 40
        smallest = min(first, second, third)
        a, b, c = a + (first == smallest), b + (second == smallest), c + (third == smallest)
        if smallest <= last or smallest == 1 << 40:
            return False
        out[place] = last = smallest
    return True


@helper("void(uint8[::1], int64[::1], int64[::1], int64, int64[::1], int32[::1], int32[:,::1])")
def _read_page(bits: Bits, at: Longs, plan: Longs, page: int, offsets: Longs, targets: Ids, scratch: Ids) -> None:
    """Write the links of a page to `targets` from offsets[page] on; set offsets[page + 1]."""
    pages, start = len(offsets) - 1, offsets[page]
    degree = _coded(bits, at, plan[OUTDEGREES], 0)
    if degree > min(pages, len(targets) - start):
        _note_fault(at, TOO_MANY_LINKS)
    if at[_FAULT] or degree == 0:
        offsets[page + 1] = start
        return
    copied = 0
    reference = _coded(bits, at, plan[REFERENCES], 0) if plan[WINDOW] else 0
    if reference > min(plan[WINDOW], page):
        _note_fault(at, BAD_REFERENCE)
    elif reference:
        linked = targets[offsets[page - reference] : offsets[page - reference + 1]]
        copied = _copy_blocks(bits, at, plan, linked, degree, scratch[0])
    runs = _read_intervals(bits, at, plan, page, pages, degree - copied, scratch[1])
    rest = degree - copied - runs
    _read_residuals(bits, at, plan, page, pages, rest, scratch[2])
    out = targets[start : start + degree]
    if at[_FAULT] == 0 and not _merge_links(scratch[0, :copied], scratch[1, :runs], scratch[2, :rest], out):
        _note_fault(at, BAD_TARGET)
    offsets[page + 1] = start + degree


@kernel("int64(uint8[::1], int64[::1], int64[::1], int64, int64, int64[::1], int32[::1], int32[:,::1])")
def decode_pages(
    bits: Bits, at: Longs, plan: Longs, first: int, last: int, offsets: Longs, targets: Ids, scratch: Ids
) -> int:
    """Decode the links of pages first..last-1. Return the page at which a fault was recorded in at[1], or `last`."""
    for page in range(first, last):
        _read_page(bits, at, plan, page, offsets, targets, scratch)
        if at[_FAULT]:
            return page
    return last
