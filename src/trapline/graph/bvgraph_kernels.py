"""The compiled half of `format_bvgraph`: bits into links, node by node, in one pass and without an index.

The format is that of Boldi and Vigna, "The WebGraph Framework I: Compression Techniques" (WWW 2004). A page has
- its number of links d (nothing else follows if it is 0);
- r, if there is a window: it copies from the links of the page r before it (0: from none);
- if r > 0, the number of copy blocks and their lengths less 1 (the first as it is): runs of that page's links that are
  copied and skipped in turn; behind an even number of blocks all the rest is copied;
- if links are left, the number of intervals (unless their least length is 0): consecutive pages, each with the gap to
  the last and its length less the least one;
- the links left then: gaps, less 1. The first gap of intervals and links is relative to the page itself, and signed.

Rules of this file
- Bits are numbered from the highest of the first byte. `at` is [next bit, fault]; a fault is noted once and everything
  read after it is 0, so that every loop ends.
- Nothing that was read is used as an index or a length before it was compared with its bounds: the bits can be
  anything.
- A code is 48 bits at most: more than any page number or count needs, and it fits into one look at 7 bytes.
"""

from typing import Any

import numpy as np

from trapline.jit import helper, kernel

Bits = Any
Longs = Any
Ids = Any

Long: Any = np.int64  # a byte shifted as a byte would lose its bits

UNARY, GAMMA, DELTA, ZETA, NIBBLE = range(5)
"""How a field is coded."""

OUTDEGREES, REFERENCES, BLOCK_COUNTS, BLOCKS, RESIDUALS, ZETA_K, WINDOW, LEAST_INTERVAL = range(8)
"""Places in `plan`: the codes of five fields, and three parameters."""

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
    """49 bits from a position on, or more below them; behind the end there are zeros."""
    first, word = position >> 3, 0
    for byte in range(first, first + 7):
        word = (word << 8) | (Long(bits[byte]) if byte < len(bits) else 0)
    return (word << (position & 7)) & ((1 << 56) - 1)


@helper("int64(uint8[::1], int64[::1], int64)")
def _take_bits(bits: Bits, at: Longs, width: int) -> int:
    """The next `width` bits as a number."""
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
    """How many zeros stand before the next one."""
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
    """zeta_k: in unary which power of 2^k the number lies above, then how far, in minimal binary code."""
    width = _unary(bits, at) * k
    short = _take_bits(bits, at, width + k - 1)
    if at[_FAULT]:
        return 0
    if short < 1 << width:
        return (1 << width) + short - 1
    return (short << 1) + _take_bits(bits, at, 1) - 1


@helper("int64(uint8[::1], int64[::1])")
def _nibble(bits: Bits, at: Longs) -> int:
    """Three bits at a time, the last three behind a 1."""
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
    """0, -1, 1, -2, 2, ... for 0, 1, 2, 3, 4, ..."""
    return number >> 1 if number & 1 == 0 else -((number + 1) >> 1)


@helper("int64(uint8[::1], int64[::1], int64[::1], int32[::1], int64, int32[::1])")
def _copy_blocks(bits: Bits, at: Longs, plan: Longs, linked: Ids, most: int, out: Ids) -> int:
    """Copies from the links of the page referred to; returns how many, `most` at most."""
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
    """Writes the pages of all intervals; returns how many, `most` at most."""
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
    """The three rising lists as one; whether no page is in it twice."""
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
    """The links of a page, into targets from offsets[page] on; sets offsets[page + 1]."""
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
    """The links of pages first..last-1. Returns the page at which at[1] noted a fault, or `last`."""
    for page in range(first, last):
        _read_page(bits, at, plan, page, offsets, targets, scratch)
        if at[_FAULT]:
            return page
    return last
