"""Links put together with the URL of their page, byte by byte: not yet canonical URLs, but texts that mean the same.

A text of these stands for one page: `canonical` of it is what `canonical` makes of the link on its page. So if the text is found among
the URLs seen, which are canonical, that is the page; and what became of it otherwise can be remembered by it. Most links of the web
are found at once. A link of which that cannot be said without more has no text here (-1), and whoever asks goes by fetch/urls.py.

Rules of this file
- A page's URL is canonical: http or https, a host, a path that begins with a slash.
- Nothing but copying, and `../` and `./` at a link's beginning: whatever else there is to do, a text that is not canonical is not found.
"""

import numpy as np

from trapline.fetch.tags.kernels import Bytes
from trapline.fetch.urls import MOST_TEXT, MOST_URL
from trapline.frontier.layout import Array
from trapline.jit import b1, helper, i8, type_of

LONGEST = MOST_URL  # of a text
Buffer = type_of(np.zeros(1, np.uint8))
_HASH, _SLASH, _COLON, _QUESTION, _BACKSLASH, _DOT = 0x23, 0x2F, 0x3A, 0x3F, 0x5C, 0x2E
_SPACE, _DELETE = 0x20, 0x7F
_HTTP = int.from_bytes(b"http", "little")


@helper(i8(Bytes, i8, i8, i8))
def find_in(text: Array, at: int, end: int, wanted: int) -> int:
    while at < end and text[at] != wanted:
        at += 1
    return at


@helper(i8(Bytes, i8, i8))
def plain_end(text: Array, start: int, end: int) -> int:
    """Where the link ends without its fragment; -1: it has bytes that URLs drop or turn into others, or too many."""
    for at in range(start, end):
        c = text[at]
        if c == _HASH:
            end = at
            break
        if c <= _SPACE or c in (_BACKSLASH, _DELETE):
            return -1
    return end if end - start <= MOST_TEXT else -1


@helper(i8(Bytes, i8, i8))
def scheme_end(text: Array, start: int, end: int) -> int:
    """The colon behind the scheme that a link begins with; -1: it begins with none."""
    for at in range(start, end):
        c = text[at]
        letter = 97 <= (c | 32) <= 122
        if c == _COLON:
            return at if at > start else -1
        if not letter and (at == start or not (48 <= c <= 57 or c in (0x2B, 0x2D, _DOT))):
            return -1
    return -1


@helper(b1(Bytes, i8, i8))
def is_http(text: Array, start: int, colon: int) -> bool:
    """Whether a scheme is http or https, in large or small letters."""
    if colon - start != 4 and (colon - start != 5 or (text[start + 4] | 32) != 0x73):
        return False
    found = 0
    for at in range(4):
        found |= int(np.int64(text[start + at] | 32)) << (8 * at)
    return found == _HTTP


@helper(i8(Bytes, i8, i8, Buffer, i8))
def put(text: Array, start: int, end: int, out: Array, at: int) -> int:
    """Copy, and where it ends; -1: there is no room."""
    if at < 0 or at + end - start > LONGEST:
        return -1
    for i in range(start, end):
        out[at + i - start] = text[i]
    return at + end - start


@helper(i8(Bytes, i8, i8, Buffer))
def absolute(text: Array, start: int, end: int, out: Array) -> int:
    """Of a link with a scheme. `http:x` without slashes is relative, to a page with that scheme."""
    colon = scheme_end(text, start, end)
    has_host = colon + 2 < end and text[colon + 1] == _SLASH and text[colon + 2] == _SLASH
    return -1 if is_http(text, start, colon) and not has_host else put(text, start, end, out, 0)


@helper(i8(Bytes, i8, i8, Bytes, i8, i8, Buffer))
def beside(text: Array, start: int, end: int, url: Array, path: int, query: int, out: Array) -> int:
    """Of a link that is relative to its page's folder."""
    folder = query
    while url[folder - 1] != _SLASH:
        folder -= 1
    while end - start > 1 and text[start] == _DOT:
        if text[start + 1] == _SLASH:
            start += 2
        elif end - start > 2 and text[start + 1] == _DOT and text[start + 2] == _SLASH:
            start += 3
            folder = max(folder - 1, path + 1)
            while url[folder - 1] != _SLASH:
                folder -= 1
        else:
            break
    return put(text, start, end, out, put(url, 0, folder, out, 0))


@helper(i8(Bytes, i8, i8, Bytes, Buffer))
def joined(text: Array, start: int, end: int, url: Array, out: Array) -> int:
    """Write the text for a link on the page at `url`; its length, or -1."""
    end = plain_end(text, start, end)
    if end < 0:
        return -1
    if start == end:
        return put(url, 0, url.size, out, 0)
    if scheme_end(text, start, end) >= 0:
        return absolute(text, start, end, out)
    path = find_in(url, 8, url.size, _SLASH)
    if text[start] == _SLASH:
        has_host = end - start > 1 and text[start + 1] == _SLASH
        return put(text, start, end, out, put(url, 0, find_in(url, 0, url.size, _SLASH) if has_host else path, out, 0))
    query = find_in(url, path, url.size, _QUESTION)
    if text[start] == _QUESTION:
        return put(text, start, end, out, put(url, 0, query, out, 0))
    return beside(text, start, end, url, path, query, out)
