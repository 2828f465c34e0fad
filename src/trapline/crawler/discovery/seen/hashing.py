"""Fingerprints of URLs: SipHash-1-3 (Aumasson and Bernstein, 2012) with a secret key for each crawl.

Two URLs with the same fingerprint are one page. If the hash had no key, or a known one, a hostile site could construct
links that take the place of other sites' pages before these are discovered. With a secret key it would have to guess.

Rules of this file
- Numbers are int64 and wrap around, as in compiled code; `wrapped` does the same for Python's integers.
- Eight bytes behind the end of a text may be read. Their values do not matter.
"""

import numpy as np

from trapline.compiled.jit import DISABLED, b1, helper, i8, type_of, word_at
from trapline.fetch.html.kernels import Bytes
from trapline.fetch.urls import MOST_TEXT, MOST_URL
from trapline.frontier.layout import Array

PADDING = 8
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
State = type_of((1, 2, 3, 4))

if DISABLED:

    def wrapped(number: int) -> int:
        return (number + 2**63) % 2**64 - 2**63

else:

    @helper(i8(i8))
    def wrapped(number: int) -> int:
        return number


@helper(i8(i8, i8))
def rotated(number: int, by: int) -> int:
    return wrapped(number << by) | ((number >> (64 - by)) & ((1 << by) - 1))


@helper(State(State))
def stirred(v: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """One SipRound."""
    v0, v1, v2, v3 = v
    v0, v2 = wrapped(v0 + v1), wrapped(v2 + v3)
    v1, v3 = rotated(v1, 13) ^ v0, rotated(v3, 16) ^ v2
    v0, v2 = wrapped(rotated(v0, 32) + v3), wrapped(v2 + v1)
    v3, v1 = rotated(v3, 21) ^ v0, rotated(v1, 17) ^ v2
    return v0, v1, rotated(v2, 32), v3


@helper(State(State, i8))
def taken_in(v: tuple[int, int, int, int], word: int) -> tuple[int, int, int, int]:
    v0, v1, v2, v3 = stirred((v[0], v[1], v[2], v[3] ^ word))
    return v0 ^ word, v1, v2, v3


@helper(i8(Bytes, i8, i8, i8, i8))
def fingerprint(text: Array, start: int, end: int, key_0: int, key_1: int) -> int:
    start, end, key_0, key_1 = int(start), int(end), int(key_0), int(key_1)  # numpy integers would warn of overflow
    v = (key_0 ^ _START[0], key_1 ^ _START[1], key_0 ^ _START[2], key_1 ^ _START[3])
    at = start
    while end - at >= 8:
        v = taken_in(v, word_at(text, at))
        at += 8
    rest = word_at(text, at) & ((1 << (8 * (end - at))) - 1)
    v0, v1, v2, v3 = taken_in(v, wrapped(rest | ((end - start) << 56)))
    v = stirred(stirred(stirred((v0, v1, v2 ^ 0xFF, v3))))
    return v[0] ^ v[1] ^ v[2] ^ v[3]


# ---- Links joined with the URL of their page, byte by byte: texts that are not canonical yet, but mean the same page.
#
# Each text stands for one page: `canonical` of the text equals `canonical` of the link on its page. If the text is among the seen URLs,
# which are canonical, the page is found. Otherwise the result of resolving the link can be remembered under this text. Most links of the
# web are found at once. A link for which this equality does not hold without more work has no text here (-1); it is resolved by
# fetch/urls.py.
#
# Rules of this section
# - A page's URL is canonical: http or https, a host, a path that begins with a slash.
# - The code only copies, and resolves `../` and `./` at the beginning of a link. All other normalisation is omitted: a text that is not
#   canonical is just not found.

LONGEST = MOST_URL  # most bytes of a text
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
    """Return the end of the link without its fragment. -1: the link is too long, or has bytes that URL parsing drops or changes."""
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
    """Return the position of the colon behind the link's scheme. -1: the link has no scheme."""
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
    """Return whether the scheme is http or https, in upper or lower case."""
    if colon - start != 4 and (colon - start != 5 or (text[start + 4] | 32) != 0x73):
        return False
    found = 0
    for at in range(4):
        found |= int(np.int64(text[start + at] | 32)) << (8 * at)
    return found == _HTTP


@helper(i8(Bytes, i8, i8, Buffer, i8))
def put(text: Array, start: int, end: int, out: Array, at: int) -> int:
    """Copy text[start:end] to `out` from `at` on. Return the end of the copy. -1: there is no room."""
    if at < 0 or at + end - start > LONGEST:
        return -1
    for i in range(start, end):
        out[at + i - start] = text[i]
    return at + end - start


@helper(i8(Bytes, i8, i8, Buffer))
def absolute(text: Array, start: int, end: int, out: Array) -> int:
    """Write the text for a link with a scheme. -1 for `http:x` without slashes, which is relative to a page with that scheme."""
    colon = scheme_end(text, start, end)
    has_host = colon + 2 < end and text[colon + 1] == _SLASH and text[colon + 2] == _SLASH
    return -1 if is_http(text, start, colon) and not has_host else put(text, start, end, out, 0)


@helper(i8(Bytes, i8, i8, Bytes, i8, i8, Buffer))
def beside(text: Array, start: int, end: int, url: Array, path: int, query: int, out: Array) -> int:
    """Write the text for a link that is relative to the folder of its page."""
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
    """Write the text for a link on the page at `url`. Return its length, or -1."""
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
