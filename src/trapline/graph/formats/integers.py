"""Parser of page numbers in text, in rows of two or of any count; reads millions a second.

The compiled half reads until it meets an invalid row. The slow half then splits that row in plain Python and finds the
rule that it breaks; a test makes sure that the two halves agree.

A number has 1 to 18 digits. Numbers are separated by blanks, tabs or commas. This module does not know what a number
means, except that it must be in `base`..`base + limit - 1`; `base` is subtracted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import helper, kernel
from trapline.errors import ConfigError, InvariantError
from trapline.graph.formats.textfile import (
    at_row,
    blocks,
    bytes_of,
    integer,
    line_at,
    lines_in,
    row_at,
)
from trapline.graph.graph import MOST_PAGES
from trapline.progress import ProgressCallback, no_progress

Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Text = Any  # an array of bytes; as Any its elements pass for plain numbers

Long: Any = np.int64  # arithmetic on a uint8 would overflow

ANY = 10**18
"""A limit above every number of 18 digits."""

_MOST_DIGITS = 18  # a number of this many digits always fits in 64 bits
_NO_NUMBER, _END_OF_ROW = -1, -2
_LINE_FEED, _COMMENT, _NONE = 10, 35, 45  # "#" and "-"


class Numbering(NamedTuple):
    """The numbers that are valid in a file: `base`..`base + limit - 1`."""

    limit: int
    base: int = 0


@helper("boolean(uint8)")
def _is_blank(char: int) -> bool:
    return char == 32 or char == 9 or char == 44 or char == 13 or char == 11 or char == 12


@helper("int64(uint8[::1], int64)")
def _skip_blanks(text: Text, at: int) -> int:
    while _is_blank(text[at]):
        at += 1
    return at


@helper("int64(uint8[::1], int64)")
def _row_end(text: Text, at: int) -> int:
    while text[at] != _LINE_FEED:
        at += 1
    return at


@helper("int64(uint8[::1], int64[::1])")
def _next_number(text: Text, cursor: Longs) -> int:
    """Return the next number of the row and move the cursor behind it, or return _END_OF_ROW or _NO_NUMBER.

    The text must end in a line feed, which ends every loop.
    """
    at = _skip_blanks(text, cursor[0])
    start, value = at, 0
    while 48 <= text[at] <= 57:
        if at - start < _MOST_DIGITS:
            value = value * 10 + (Long(text[at]) - 48)
        at += 1
    cursor[0] = at
    if at == start:
        return _END_OF_ROW if text[at] == _LINE_FEED else _NO_NUMBER
    if at - start > _MOST_DIGITS or not (_is_blank(text[at]) or text[at] == _LINE_FEED):
        return _NO_NUMBER
    return value


@kernel("int64(uint8[::1], int64, int64, int64[::1], int64[::1], int64[::1])")
def _read_pairs(text: Text, base: int, limit: int, firsts: Longs, seconds: Longs, cursor: Longs) -> int:
    """Read pairs; return how many there are up to cursor[1], the start of the first invalid row or the end of the text."""
    count = 0
    cursor[0] = cursor[1] = 0
    while cursor[0] < len(text):
        cursor[1] = cursor[0]
        if text[cursor[0]] == _COMMENT:
            cursor[0] = _row_end(text, cursor[0]) + 1
            continue
        first, second = _next_number(text, cursor) - base, _next_number(text, cursor) - base
        if not (0 <= first < limit and 0 <= second < limit) or _next_number(text, cursor) != _END_OF_ROW:
            return count
        firsts[count], seconds[count] = first, second
        count += 1
        cursor[0] += 1
    cursor[1] = len(text)
    return count


@kernel("int64(uint8[::1], int64, int64, boolean, int64[::1], int64[::1], int64[::1])")
def _read_rows(text: Text, base: int, limit: int, dashes: bool, values: Longs, ends: Longs, cursor: Longs) -> int:
    """Read rows; return how many there are up to cursor[1], the start of the first invalid row or the end of the text.

    Row i ends before value ends[i]. If `dashes` is set, a row without numbers must hold a dash.
    """
    count, rows = 0, 0
    cursor[0] = cursor[1] = 0
    while cursor[0] < len(text):
        cursor[1] = cursor[0]
        if dashes and not _pass_dash(text, cursor):
            return rows
        value = _next_number(text, cursor)
        while value >= 0:
            if not 0 <= value - base < limit:
                return rows
            values[count] = value - base
            count += 1
            value = _next_number(text, cursor)
        if value != _END_OF_ROW:
            return rows
        ends[rows] = count
        rows += 1
        cursor[0] += 1
    cursor[1] = len(text)
    return rows


@helper("boolean(uint8[::1], int64[::1])")
def _pass_dash(text: Text, cursor: Longs) -> bool:
    """Move the cursor to the end of the row if it holds only a dash; return False if the row is empty."""
    at = _skip_blanks(text, cursor[0])
    if text[at] == _NONE:
        after = _skip_blanks(text, at + 1)
        cursor[0] = after if text[after] == _LINE_FEED else at
    return text[at] != _LINE_FEED


def pairs(
    file: Path, numbering: Numbering, progress: ProgressCallback = no_progress, skip_rows: int = 0
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first and the second number of every row, as int32 where they fit; rows that begin with # are comments."""
    found = [_pairs_of_block(file, row, block, numbering) for row, block in _without(skip_rows, file, progress)]
    if not found:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    return np.concatenate([first for first, _ in found]), np.concatenate([second for _, second in found])


def _pairs_of_block(file: Path, row: int, block: bytes, numbering: Numbering) -> tuple[NDArray[Any], NDArray[Any]]:
    most, cursor = lines_in(block), np.zeros(2, np.int64)
    firsts, seconds = np.empty(most, np.int64), np.empty(most, np.int64)
    text = bytes_of(block)
    count = _read_pairs(text, numbering.base, numbering.limit, firsts, seconds, cursor)
    if cursor[1] < len(block):
        stop = int(cursor[1])
        raise _pair_fault(file, row_at(row, block, stop), line_at(block, stop), numbering)
    firsts, seconds = firsts[:count], seconds[:count]
    narrow = numbering.limit <= MOST_PAGES or max(firsts.max(initial=0), seconds.max(initial=0)) < MOST_PAGES
    return (firsts.astype(np.int32), seconds.astype(np.int32)) if narrow else (firsts, seconds)


def number_rows(
    file: Path,
    numbering: Numbering,
    progress: ProgressCallback = no_progress,
    *,
    dashes: bool = False,
    skip_rows: int = 0,
) -> Iterator[tuple[int, Longs, Longs]]:
    """Yield (row number of its first line, ends, values) for each block; row i has the values ends[i - 1] to ends[i] - 1."""
    for row, block in _without(skip_rows, file, progress):
        cursor, ends = np.zeros(2, np.int64), np.empty(lines_in(block), np.int64)
        values = np.empty(len(block) // 2 + 1, np.int64)
        text = bytes_of(block)
        rows = _read_rows(text, numbering.base, numbering.limit, dashes, values, ends, cursor)
        if cursor[1] < len(block):
            stop = int(cursor[1])
            raise _row_fault(file, row_at(row, block, stop), line_at(block, stop), numbering, dashes)
        yield row, ends, values[: ends[rows - 1]]


def _without(skip_rows: int, file: Path, progress: ProgressCallback) -> Iterator[tuple[int, bytes]]:
    for row, block in blocks(file, progress):
        start = 0
        while row <= skip_rows and start < len(block):
            row, start = row + 1, block.index(b"\n", start) + 1
        if start < len(block):
            yield row, block[start:]


# ---- faults of a row


def tokens_of(line: bytes) -> list[bytes]:
    return line.replace(b",", b" ").split()


def page_number(file: Path, row: int, token: bytes, numbering: Numbering) -> int:
    page = integer(file, row, token)
    first, last = numbering.base, numbering.base + numbering.limit - 1
    if not first <= page <= last:
        raise at_row(file, row, f"page {page}, but pages are numbered {first}..{last}")
    return page - first


def _pair_fault(file: Path, row: int, line: bytes, numbering: Numbering) -> ConfigError:
    tokens = tokens_of(line)
    if len(tokens) != 2:
        return at_row(file, row, f"{len(tokens)} values; give a source and a target")
    return _number_fault(file, row, tokens, numbering)


def _row_fault(file: Path, row: int, line: bytes, numbering: Numbering, dashes: bool) -> ConfigError:
    tokens = tokens_of(line)
    if dashes and not tokens:
        return at_row(file, row, 'empty; a page without links has "-"')
    return _number_fault(file, row, tokens, numbering)


def _number_fault(file: Path, row: int, tokens: list[bytes], numbering: Numbering) -> ConfigError:
    try:
        for token in tokens:
            page_number(file, row, token, numbering)
    except ConfigError as error:
        return error
    raise InvariantError(f"{file}, row {row}: rejected by the compiled reader, accepted by the slow one")
