"""Bulk processing of recorded URLs: reads the rows of a file into one block of bytes, finds sites and home pages.

This module applies the rules of `sites` to bytes instead of strings, millions of URLs a second. It has no rules of its own.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import helper, kernel
from trapline.errors import ConfigError
from trapline.graph.formats.textfile import at_row, blocks, bytes_of, lines_in, text
from trapline.graph.strings import StoredStrings
from trapline.progress import ProgressCallback, no_progress

Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Text = Any  # an array of bytes; as Any its elements pass for plain numbers

_LINE_FEED, _RETURN = 10, 13
_HASH, _SLASH, _COLON, _QUERY = 35, 47, 58, 63


@kernel("int64(uint8[::1], int64, uint8[::1], int64[::1])")
def _pack_rows(text: Text, base: int, out: Text, ends: Longs) -> int:
    """Copy the rows of a text to `out` without their line ends; return how many bytes they have."""
    count, rows = 0, 0
    for at in range(len(text)):
        if text[at] != _LINE_FEED:
            out[count] = text[at]
            count += 1
        else:
            start = ends[rows - 1] - base if rows else 0
            while count > start and out[count - 1] == _RETURN:
                count -= 1
            ends[rows] = base + count
            rows += 1
    return count


@helper("int64(uint8[::1], int64, int64)")
def _scheme_end(text: Text, start: int, end: int) -> int:
    """Return the position behind `scheme://`, or -1."""
    at = start
    while at < end and (_is_letter(text[at]) or (at > start and _is_other(text[at]))):
        at += 1
    sound = start < at < end - 3 and text[at] == _COLON and text[at + 1] == _SLASH and text[at + 2] == _SLASH
    return at + 3 if sound else -1


@helper("boolean(uint8)")
def _is_letter(char: int) -> bool:
    return 97 <= char <= 122 or 65 <= char <= 90


@helper("boolean(uint8)")
def _is_other(char: int) -> bool:
    return 48 <= char <= 57 or char == 43 or char == 45 or char == 46


@helper("boolean(uint8[::1], int64, int64, int64, int64)")
def _same_bytes(text: Text, start: int, length: int, other: int, other_length: int) -> bool:
    at = 0
    while at < min(length, other_length) and text[start + at] == text[other + at]:
        at += 1
    return length == other_length == at


@helper("boolean(uint8[::1], int64, int64)")
def _is_dynamic(text: Text, at: int, end: int) -> bool:
    while at < end and text[at] != _QUERY and text[at] != _HASH:
        at += 1
    return at < end and text[at] == _QUERY


@kernel("void(uint8[::1], int64[::1], int64[::1], uint8[::1], uint8[::1])")
def _split_urls(text: Text, ends: Longs, lengths: Longs, begins: Bytes, dynamic: Bytes) -> None:
    """Write for each URL: the length of its `scheme://host[:port]` (0: none), whether this part differs from that of the
    URL before, and whether there is a query."""
    start, before, before_length = 0, 0, -1
    for page in range(len(ends)):
        end = ends[page]
        at = host = _scheme_end(text, start, end)
        while 0 <= at < end and text[at] != _SLASH and text[at] != _QUERY and text[at] != _HASH:
            at += 1
        lengths[page] = at - start if at > host else 0
        begins[page] = not _same_bytes(text, start, lengths[page], before, before_length)
        dynamic[page] = _is_dynamic(text, start, end)
        before, before_length = start, lengths[page]
        start = end


@kernel("void(uint8[::1], int64[::1], int32[::1], int32[::1])")
def _choose_homes(text: Text, ends: Longs, site: Ids, home: Ids) -> None:
    """Find the home page of each site: the shortest URL, among equally short ones the alphabetically first.

    home: -1 on entry, the page on return.
    """
    for page in range(len(ends)):
        best = home[site[page]]
        if best < 0 or _url_before(text, ends, page, best):
            home[site[page]] = page


@helper("boolean(uint8[::1], int64[::1], int64, int64)")
def _url_before(text: Text, ends: Longs, page: int, other: int) -> bool:
    start, other_start = ends[page - 1] if page else 0, ends[other - 1] if other else 0
    length, other_length = ends[page] - start, ends[other] - other_start
    if length != other_length:
        return length < other_length
    for at in range(length):
        if text[start + at] != text[other_start + at]:
            return text[start + at] < text[other_start + at]
    return False


def urls_in(file: Path, progress: ProgressCallback = no_progress) -> StoredStrings:
    """Read one URL a row. There must be at least one, and none may be empty."""
    ends, texts, base = [], [], 0
    for row, block in blocks(file, progress):
        check_utf8(file, row, block)
        rows, out = np.empty(lines_in(block), np.int64), np.empty(len(block), np.uint8)
        count = _pack_rows(bytes_of(block), base, out, rows)
        blank = np.flatnonzero(np.diff(rows, prepend=base) == 0)
        if len(blank):
            raise at_row(file, row + int(blank[0]), "empty; each row must have a URL")
        ends.append(rows)
        texts.append(out[:count])
        base += count
    if not ends:
        raise ConfigError(f"{file}, row 1: empty; each row must have a URL")
    return StoredStrings(np.concatenate(ends), np.concatenate(texts))


def check_utf8(file: Path, row: int, block: bytes) -> None:
    try:
        block.decode()
    except UnicodeDecodeError as error:
        start = block.rfind(b"\n", 0, error.start) + 1
        text(file, row + block.count(b"\n", 0, start), block[start : block.index(b"\n", error.start)])


def split(urls: StoredStrings) -> tuple[Longs, Bytes, Bytes]:
    """Return for each URL: the length of its `scheme://host[:port]` in bytes (0: none), whether this part differs from that
    of the URL before, and whether the URL is dynamic."""
    lengths = np.empty(len(urls), np.int64)
    begins, dynamic = np.empty(len(urls), np.uint8), np.empty(len(urls), np.uint8)
    _split_urls(urls.text, urls.ends, lengths, begins, dynamic)
    return lengths, begins, dynamic


def homes(urls: StoredStrings, site: Ids, sites: int) -> Ids:
    home = np.full(sites, -1, np.int32)
    _choose_homes(urls.text, urls.ends, site, home)
    return home
