"""Fingerprints of URLs: SipHash-1-3 (Aumasson and Bernstein, 2012), with a key that nobody outside the crawl knows.

Two URLs with one fingerprint are one page. With a hash whose key is known, or that has none, a hostile site could make up links that
take the place of other sites' pages before these are met; with this one it would have to guess.

Rules of this file
- Numbers are int64 and wrap, as compiled code has it; `wrapped` does the same to Python's.
- A text has eight bytes behind its end that may be read: what they are does not matter.
"""

from trapline.fetch.tags.kernels import Bytes
from trapline.frontier.layout import Array
from trapline.jit import DISABLED, helper, i8, type_of, word_at

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
    """One round."""
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
    start, end, key_0, key_1 = int(start), int(end), int(key_0), int(key_1)  # numpy's would complain of what wraps
    v = (key_0 ^ _START[0], key_1 ^ _START[1], key_0 ^ _START[2], key_1 ^ _START[3])
    at = start
    while end - at >= 8:
        v = taken_in(v, word_at(text, at))
        at += 8
    rest = word_at(text, at) & ((1 << (8 * (end - at))) - 1)
    v0, v1, v2, v3 = taken_in(v, wrapped(rest | ((end - start) << 56)))
    v = stirred(stirred(stirred((v0, v1, v2 ^ 0xFF, v3))))
    return v[0] ^ v[1] ^ v[2] ^ v[3]
