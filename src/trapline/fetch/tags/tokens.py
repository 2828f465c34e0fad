"""The tokenizer of the HTML standard, piece by piece: names, attributes, values, and where comments and text without markup end.

Rules of this folder
- The bytes are UTF-8, or of an encoding in which none of `<`, `>`, `&`, `=`, `/`, the quotes and the blanks is a part of another character.
- Every loop moves on at each turn, so the time is linear whatever the bytes.
- A name is the number whose bytes it is, in small letters, the first byte lowest; longer ones are cut after eight, so their length counts
  too.

What is seen and what not: fetch/markup.py. tests/naive/markup.py is the slow twin.
"""

import numpy as np

from trapline.frontier.layout import Array
from trapline.jit import b1, helper, i8, low_zeros, type_of, word_at


def code(name: str) -> int:
    return int.from_bytes(name.encode()[:8], "little")


_SCRIPT, _STYLE, _TITLE, _TEXTAREA, _XMP = code("script"), code("style"), code("title"), code("textarea"), code("xmp")
_NOFRAMES, _NOEMBED, _PLAINTEXT, _IFRAME = code("noframes"), code("noembed"), code("plaintext"), code("iframe")
_CDATA = int.from_bytes(b"[CDATA[", "little")
_SEVEN = (1 << 56) - 1  # that many bytes of a word
_SPACE, _SLASH, _GREATER, _LESS, _EQUALS = 0x20, 0x2F, 0x3E, 0x3C, 0x3D
_EACH = 0x0101010101010101  # one in each of eight bytes
_DOUBLE, _SINGLE, _DASH, _BANG, _QUESTION, _BRACKET = 0x22, 0x27, 0x2D, 0x21, 0x3F, 0x5D
_LESSES, _DASHES, _BANGS = _EACH * _LESS, _EACH * _DASH, _EACH * _BANG
_SLASHES, _GREATERS, _EQUAL_SIGNS = _EACH * _SLASH, _EACH * _GREATER, _EACH * _EQUALS

Bytes = type_of(np.frombuffer(b"x", np.uint8))  # that cannot be written, as Python's own
Two = type_of((1, 1))


@helper(b1(i8))
def is_blank(c: int) -> bool:
    return c == _SPACE or (9 <= c <= 13 and c != 11)


@helper(b1(i8))
def is_letter(c: int) -> bool:
    return 97 <= (c | 32) <= 122


@helper(b1(i8))
def ends_name(c: int) -> bool:
    return is_blank(c) or c in (_SLASH, _GREATER)


@helper(i8(Bytes, i8, i8))
def first_bytes(html: Array, start: int, end: int) -> int:
    """At most eight bytes as a number."""
    length = min(end - start, 8)
    if start + 8 <= html.size:
        word = word_at(html, start)
        return word if length == 8 else word & ((1 << (8 * length)) - 1)
    word = 0
    for at in range(length):
        word |= int(np.int64(html[start + at])) << (8 * int(at))
    return word


@helper(i8(i8))
def capitals(four: int) -> int:
    """The bits in which the capitals among four bytes differ from small letters. A to Z reach the highest bit of their byte if 63 is added
    to the lower seven, and do not if it is 37. Of eight bytes the sum might not fit."""
    seven_bits = four & 0x7F7F7F7F
    return (((seven_bits + 0x3F3F3F3F) ^ (seven_bits + 0x25252525)) & ~four & 0x80808080) >> 2


@helper(i8(Bytes, i8, i8))
def name_code(html: Array, start: int, end: int) -> int:
    word = first_bytes(html, start, end)
    return word | capitals(word & 0xFFFFFFFF) | (capitals((word >> 32) & 0xFFFFFFFF) << 32)


@helper(i8(i8, i8))
def marks_of_byte(word: int, eight_times: int) -> int:
    """Zero: a byte is not among eight. Else the lowest one is the highest bit of the first: what becomes zero borrows from there."""
    differs = word ^ eight_times
    return (differs - _EACH) & ~differs & (_EACH << 7)


@helper(i8(Bytes, i8, i8))
def find_byte(html: Array, at: int, wanted: int) -> int:
    eight_times = int(wanted) * _EACH
    while at + 8 <= html.size:
        marks = marks_of_byte(word_at(html, at), eight_times)
        if marks != 0:
            return at + (low_zeros(marks) >> 3)
        at += 8
    while at < html.size and html[at] != wanted:
        at += 1
    return at


@helper(i8(i8))
def marks_of_controls(word: int) -> int:
    """As marks_of_byte, for blanks and all other bytes up to the space."""
    return (word - _EACH * 0x21) & ~word & (_EACH << 7)


@helper(i8(i8))
def marks_of_name_ends(word: int) -> int:
    """As marks_of_byte, for every byte that ends a name, and control characters that do not."""
    return marks_of_controls(word) | marks_of_byte(word, _SLASHES) | marks_of_byte(word, _GREATERS)


@helper(i8(Bytes, i8))
def name_end(html: Array, at: int) -> int:
    while at + 8 <= html.size:
        word = word_at(html, at)
        marks = marks_of_name_ends(word)
        at += 8 if marks == 0 else low_zeros(marks) >> 3
        if marks != 0:
            if ends_name(html[at]):
                return at
            at += 1
    while at < html.size and not ends_name(html[at]):
        at += 1
    return at


@helper(Two(Bytes, i8, i8))
def next_eight(html: Array, at: int, wanted: int) -> tuple[int, int]:
    """The next eight bytes that may hold a byte, from where to where. To look at them one by one is faster than to find each, if there
    are many: no page can make a byte cost more than a few steps."""
    eight_times = int(wanted) * _EACH
    while at + 8 <= html.size and marks_of_byte(word_at(html, at), eight_times) == 0:
        at += 8
    return at, min(at + 8, html.size)


@helper(i8(Bytes, i8))
def skip_blanks(html: Array, at: int) -> int:
    while at < html.size and is_blank(html[at]):
        at += 1
    return at


# ---- attributes


@helper(i8(Bytes, i8))
def attribute_start(html: Array, at: int) -> int:
    """The next attribute's name, or the tag's `>`, or the end of all."""
    while at < html.size and (is_blank(html[at]) or html[at] == _SLASH):
        at += 1
    return at


@helper(i8(Bytes, i8))
def attribute_name_end(html: Array, at: int) -> int:
    at += 1  # whatever it begins with, an equals sign too
    while at + 8 <= html.size:
        word = word_at(html, at)
        marks = marks_of_name_ends(word) | marks_of_byte(word, _EQUAL_SIGNS)
        at += 8 if marks == 0 else low_zeros(marks) >> 3
        if marks != 0:
            if ends_name(html[at]) or html[at] == _EQUALS:
                return at
            at += 1
    while at < html.size and not ends_name(html[at]) and html[at] != _EQUALS:
        at += 1
    return at


@helper(i8(Bytes, i8))
def value_start(html: Array, at: int) -> int:
    """Where the value begins, behind its quote if it has one; -1: the attribute has none."""
    at = skip_blanks(html, at)
    if at >= html.size or html[at] != _EQUALS:
        return -1
    at = skip_blanks(html, at + 1)
    return at + 1 if at < html.size and (html[at] == _DOUBLE or html[at] == _SINGLE) else at


@helper(i8(Bytes, i8))
def value_end(html: Array, start: int) -> int:
    """Where the value ends; what it is quoted by stands before its start."""
    quote = html[start - 1]
    if quote in (_DOUBLE, _SINGLE):
        return find_byte(html, start, quote)
    at = start
    while at + 8 <= html.size:
        word = word_at(html, at)
        marks = marks_of_controls(word) | marks_of_byte(word, _GREATERS)
        at += 8 if marks == 0 else low_zeros(marks) >> 3
        if marks != 0:
            if is_blank(html[at]) or html[at] == _GREATER:
                return at
            at += 1
    while at < html.size and not is_blank(html[at]) and html[at] != _GREATER:
        at += 1
    return at


@helper(i8(Bytes, i8, i8))
def behind_value(html: Array, start: int, end: int) -> int:
    quote = html[start - 1]
    return end + 1 if quote in (_DOUBLE, _SINGLE) else end


@helper(i8(Bytes, i8))
def tag_end(html: Array, at: int) -> int:
    """The tag's `>`, or the end of all."""
    at = attribute_start(html, at)
    while at < html.size and html[at] != _GREATER:
        name = attribute_name_end(html, at)
        start = value_start(html, name)
        at = name if start < 0 else behind_value(html, start, value_end(html, start))
        at = attribute_start(html, at)
    return min(at, html.size)


@helper(b1(Bytes, i8, i8))
def closes_itself(html: Array, at: int, end: int) -> bool:
    """Whether a slash stands before the `>` of a tag, and not at the end of a value without quotes."""
    if html[end - 1] != _SLASH:
        return False
    at = attribute_start(html, at)
    while at < end:
        name = attribute_name_end(html, at)
        start = value_start(html, name)
        at = name if start < 0 else behind_value(html, start, value_end(html, start))
        if at >= end:
            return False
        at = attribute_start(html, at)
    return True


# ---- what is no markup


@helper(b1(Bytes, i8, i8, i8))
def is_end_tag(html: Array, at: int, what: int, length: int) -> bool:
    """Whether the end tag of this name begins here."""
    end = at + 2 + length
    if end >= html.size or html[at + 1] != _SLASH or not ends_name(html[end]):
        return False
    return name_code(html, at + 2, end) == what


@helper(b1(Bytes, i8))
def is_markup(html: Array, at: int) -> bool:
    """Whether `</` or `<!` stands here."""
    return html[at] == _LESS and (html[at + 1] == _SLASH or html[at + 1] == _BANG)


@helper(i8(Bytes, i8))
def next_markup(html: Array, at: int) -> int:
    """The next `</` or `<!`, or the end of all. Nothing else can end a script or text."""
    while at + 9 <= html.size:
        following = word_at(html, at + 1)
        marks = marks_of_byte(following, _SLASHES) | marks_of_byte(following, _BANGS)
        marks &= marks_of_byte(word_at(html, at), _LESSES)
        at += 8 if marks == 0 else low_zeros(marks) >> 3
        if marks != 0:
            if is_markup(html, at):
                return at
            at += 1
    while at + 1 < html.size and not is_markup(html, at):
        at += 1
    return at if at + 1 < html.size else html.size


@helper(i8(Bytes, i8, i8, i8))
def text_end(html: Array, at: int, what: int, length: int) -> int:
    """Where the end tag of an element that holds text alone begins."""
    at = next_markup(html, at)
    while at < html.size and not is_end_tag(html, at, what, length):
        at = next_markup(html, at + 1)
    return at


@helper(b1(Bytes, i8))
def is_arrow(html: Array, at: int) -> bool:
    return at + 2 < html.size and html[at] == _DASH and html[at + 1] == _DASH and html[at + 2] == _GREATER


@helper(i8(Bytes, i8))
def next_in_hidden(html: Array, at: int) -> int:
    """The next `<` or `-`, for all else means nothing between `<!--` and `-->` of a script."""
    while at + 8 <= html.size:
        word = word_at(html, at)
        marks = marks_of_byte(word, _LESSES) | marks_of_byte(word, _DASHES)
        if marks != 0:
            return at + (low_zeros(marks) >> 3)
        at += 8
    while at < html.size and html[at] != _LESS and html[at] != _DASH:
        at += 1
    return at


@helper(i8(Bytes, i8))
def twice_hidden_end(html: Array, at: int) -> int:
    """Behind `<!-- <script`: an end tag ends only this, an arrow all of it."""
    at = next_in_hidden(html, at)
    while at < html.size and not is_arrow(html, at):
        if html[at] == _LESS and is_end_tag(html, at, _SCRIPT, 6):
            return at + 8
        at = next_in_hidden(html, at + 1)
    return at


@helper(i8(Bytes, i8))
def hidden_end(html: Array, at: int) -> int:
    """Behind `<!--` in a script: to the arrow, or to the script's end tag."""
    at = next_in_hidden(html, at)
    while at < html.size and not is_arrow(html, at):
        end = at + 1
        if html[at] == _LESS:
            if is_end_tag(html, at, _SCRIPT, 6):
                return at
            name = at + 7
            if name < html.size and ends_name(html[name]) and name_code(html, at + 1, name) == _SCRIPT:
                end = twice_hidden_end(html, name)
        at = next_in_hidden(html, end)
    return at


@helper(b1(Bytes, i8))
def opens_comment(html: Array, at: int) -> bool:
    return at + 3 < html.size and html[at + 1] == _BANG and html[at + 2] == _DASH and html[at + 3] == _DASH


@helper(b1(Bytes, i8))
def closes_at_once(html: Array, at: int) -> bool:
    """Whether what follows `<!--` ends it: `>` or `->`."""
    if at < html.size and html[at] == _GREATER:
        return True
    return at + 1 < html.size and html[at] == _DASH and html[at + 1] == _GREATER


@helper(i8(Bytes, i8))
def script_end(html: Array, at: int) -> int:
    at = next_markup(html, at)
    while at < html.size and not is_end_tag(html, at, _SCRIPT, 6):
        behind = at + 1
        if opens_comment(html, at) and not closes_at_once(html, at + 4):
            behind = hidden_end(html, at + 4)  # an arrow, the script's end tag, or the end of all
        at = next_markup(html, behind)
    return at


@helper(b1(Bytes, i8, i8))
def ends_comment(html: Array, start: int, at: int) -> bool:
    """Whether the `>` here ends the comment whose text begins at `start`: behind `--` or `--!`."""
    if at - start >= 3 and html[at - 1] == _BANG:
        at -= 1
    return at - start >= 2 and html[at - 1] == _DASH and html[at - 2] == _DASH


@helper(i8(Bytes, i8))
def comment_end(html: Array, start: int) -> int:
    """Behind `<!--`: the `>` where the comment is over."""
    if closes_at_once(html, start):
        return start
    at = start
    while at < html.size:
        at, stop = next_eight(html, at, _GREATER)
        while at < stop:
            if html[at] == _GREATER and ends_comment(html, start, at):
                return at
            at += 1
    return html.size


@helper(b1(i8, i8))
def holds_text(what: int, length: int) -> bool:
    """Elements that hold text alone, scripts apart."""
    if length == 5:
        return what in (_STYLE, _TITLE)
    if length == 8:
        return what in (_TEXTAREA, _NOFRAMES)
    return (what == _IFRAME and length == 6) or (what == _NOEMBED and length == 7) or (what == _XMP and length == 3)


@helper(i8(Bytes, i8, i8, i8))
def behind_content(html: Array, at: int, what: int, length: int) -> int:
    """Behind a start tag, or behind the text that it introduces."""
    if what == _SCRIPT and length == 6:
        return script_end(html, at)
    if what == _PLAINTEXT and length == 9:
        return html.size
    return text_end(html, at, what, length) if holds_text(what, length) else at


@helper(i8(Bytes, i8))
def cdata_end(html: Array, at: int) -> int:
    """Behind `<![CDATA[`: the `>` of the `]]>` that ends it."""
    while at < html.size:
        at, stop = next_eight(html, at, _BRACKET)
        while at < stop:
            if html[at] == _BRACKET and at + 2 < html.size and html[at + 1] == _BRACKET and html[at + 2] == _GREATER:
                return at + 2
            at += 1
    return html.size


@helper(b1(Bytes, i8))
def opens_cdata(html: Array, at: int) -> bool:
    return at + 10 <= html.size and html[at + 1] == _BANG and word_at(html, at + 2) & _SEVEN == _CDATA


@helper(i8(Bytes, i8, b1))
def behind_markup(html: Array, at: int, foreign: bool) -> int:
    """Behind a comment, a doctype, or what looks like one; `at`: its `<`, which no tag's name follows. `foreign`: the element that it
    stands in is not HTML's, so that there is CDATA."""
    if opens_comment(html, at):
        return comment_end(html, at + 4)
    if foreign and opens_cdata(html, at):
        return cdata_end(html, at + 9)
    c = html[at + 1]
    is_bogus = c in (_BANG, _QUESTION) or (c == _SLASH and at + 2 < html.size and html[at + 2] != _GREATER)
    return find_byte(html, at + 2, _GREATER) if is_bogus else at + 1
