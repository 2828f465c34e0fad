"""The tokenizer of the HTML standard, as compiled helpers: names, attributes, values, and the ends of comments and of raw text.

Laws of this folder
- The bytes are UTF-8, or of an encoding in which none of `<`, `>`, `&`, `=`, `/`, the quotes and the blanks is a part of another character.
- Every loop advances in each iteration, so the time is linear whatever the bytes.
- The code of a name is an integer made of its bytes in lower case, the first byte lowest. Only the first eight bytes count, so names are
  compared by code and length.

markup.py lists what is found and what is ignored. tests/naive/markup.py is the slow twin.
"""

import numpy as np

from trapline.compiled.jit import b1, helper, i8, low_zeros, type_of, word_at
from trapline.frontier.layout import Array


def code(name: str) -> int:
    return int.from_bytes(name.encode()[:8], "little")


_SCRIPT, _STYLE, _TITLE, _TEXTAREA, _XMP = code("script"), code("style"), code("title"), code("textarea"), code("xmp")
_NOFRAMES, _NOEMBED, _PLAINTEXT, _IFRAME = code("noframes"), code("noembed"), code("plaintext"), code("iframe")
_CDATA = int.from_bytes(b"[CDATA[", "little")
_SEVEN = (1 << 56) - 1  # mask for seven bytes of a word
_SPACE, _SLASH, _GREATER, _LESS, _EQUALS = 0x20, 0x2F, 0x3E, 0x3C, 0x3D
_EACH = 0x0101010101010101  # the byte 1 eight times
_DOUBLE, _SINGLE, _DASH, _BANG, _QUESTION, _BRACKET = 0x22, 0x27, 0x2D, 0x21, 0x3F, 0x5D
_LESSES, _DASHES, _BANGS = _EACH * _LESS, _EACH * _DASH, _EACH * _BANG
_SLASHES, _GREATERS, _EQUAL_SIGNS = _EACH * _SLASH, _EACH * _GREATER, _EACH * _EQUALS

Bytes = type_of(np.frombuffer(b"x", np.uint8))  # read-only, like Python's bytes
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
    """Return up to eight bytes from `start` as an integer."""
    length = int(min(end - start, 8))
    if start + 8 <= html.size:
        word = word_at(html, start)
        return word if length == 8 else word & ((1 << (8 * length)) - 1)
    word = 0
    for at in range(length):
        word |= int(np.int64(html[start + at])) << (8 * int(at))
    return word


@helper(i8(i8))
def capitals(four: int) -> int:
    """Return the bits in which the upper-case letters among four bytes differ from lower case. A to Z set the highest bit of their byte
    if 63 is added to the lower seven bits, and do not if 37 is added. With eight bytes, the sum might overflow."""
    seven_bits = four & 0x7F7F7F7F
    return (((seven_bits + 0x3F3F3F3F) ^ (seven_bits + 0x25252525)) & ~four & 0x80808080) >> 2


@helper(i8(Bytes, i8, i8))
def name_code(html: Array, start: int, end: int) -> int:
    word = first_bytes(html, start, end)
    return word | capitals(word & 0xFFFFFFFF) | (capitals((word >> 32) & 0xFFFFFFFF) << 32)


@helper(i8(i8, i8))
def marks_of_byte(word: int, eight_times: int) -> int:
    """Return 0 if a byte is not among the eight bytes of `word`. Otherwise the lowest set bit is the highest bit of its first occurrence;
    higher bits may be wrong, because the subtraction borrows from the bytes above a match."""
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
    """Like marks_of_byte, for blanks and all other bytes up to the space."""
    return (word - _EACH * 0x21) & ~word & (_EACH << 7)


@helper(i8(i8))
def marks_of_name_ends(word: int) -> int:
    """Like marks_of_byte, for every byte that ends a name, and also for control characters, which do not."""
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
    """Return start and end of the next eight bytes that may contain a byte. If a page has many such bytes, checking these eight one by
    one is faster than a search for each: no page can make a byte cost more than a few steps."""
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
    """Return the offset of the next attribute's name, of the tag's `>`, or the end of the page."""
    while at < html.size and (is_blank(html[at]) or html[at] == _SLASH):
        at += 1
    return at


@helper(i8(Bytes, i8))
def attribute_name_end(html: Array, at: int) -> int:
    at += 1  # the first character belongs to the name, even an equals sign
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
    """Return the start of the value, after its quote if it has one; -1 if the attribute has no value."""
    at = skip_blanks(html, at)
    if at >= html.size or html[at] != _EQUALS:
        return -1
    at = skip_blanks(html, at + 1)
    return at + 1 if at < html.size and (html[at] == _DOUBLE or html[at] == _SINGLE) else at


@helper(i8(Bytes, i8))
def value_end(html: Array, start: int) -> int:
    """Return the end of the value. Its quote, if any, is the byte before its start."""
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
    """Return the offset of the tag's `>`, or the end of the page."""
    at = attribute_start(html, at)
    while at < html.size and html[at] != _GREATER:
        name = attribute_name_end(html, at)
        start = value_start(html, name)
        at = name if start < 0 else behind_value(html, start, value_end(html, start))
        at = attribute_start(html, at)
    return min(at, html.size)


@helper(b1(Bytes, i8, i8))
def closes_itself(html: Array, at: int, end: int) -> bool:
    """Return whether a tag ends with `/>`, where the slash is not the end of an unquoted value."""
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


# ---- scripts, raw text, comments and CDATA


@helper(b1(Bytes, i8, i8, i8))
def is_end_tag(html: Array, at: int, what: int, length: int) -> bool:
    """Return whether the end tag with this name begins here."""
    end = at + 2 + length
    if end >= html.size or html[at + 1] != _SLASH or not ends_name(html[end]):
        return False
    return name_code(html, at + 2, end) == what


@helper(b1(Bytes, i8))
def is_markup(html: Array, at: int) -> bool:
    """Return whether `</` or `<!` is here."""
    return html[at] == _LESS and (html[at + 1] == _SLASH or html[at + 1] == _BANG)


@helper(i8(Bytes, i8))
def next_markup(html: Array, at: int) -> int:
    """Return the offset of the next `</` or `<!`, or the end of the page. Only these can end a script or raw text, or begin a comment in
    a script."""
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
    """Return the offset of the end tag of an element that contains raw text."""
    at = next_markup(html, at)
    while at < html.size and not is_end_tag(html, at, what, length):
        at = next_markup(html, at + 1)
    return at


@helper(b1(Bytes, i8))
def is_arrow(html: Array, at: int) -> bool:
    return at + 2 < html.size and html[at] == _DASH and html[at + 1] == _DASH and html[at + 2] == _GREATER


@helper(i8(Bytes, i8))
def next_in_hidden(html: Array, at: int) -> int:
    """Return the offset of the next `<` or `-`; other bytes mean nothing between `<!--` and `-->` in a script."""
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
    """Return the end of the inner script after `<!-- <script`: after its end tag, or at the `-->` that also ends the outer comment."""
    at = next_in_hidden(html, at)
    while at < html.size and not is_arrow(html, at):
        if html[at] == _LESS and is_end_tag(html, at, _SCRIPT, 6):
            return at + 8
        at = next_in_hidden(html, at + 1)
    return at


@helper(i8(Bytes, i8))
def hidden_end(html: Array, at: int) -> int:
    """Return the end of the part of a script after `<!--`: the offset of `-->`, or of the script's end tag."""
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
    """Return whether what follows `<!--` closes it at once: `>` or `->`."""
    if at < html.size and html[at] == _GREATER:
        return True
    return at + 1 < html.size and html[at] == _DASH and html[at + 1] == _GREATER


@helper(i8(Bytes, i8))
def script_end(html: Array, at: int) -> int:
    at = next_markup(html, at)
    while at < html.size and not is_end_tag(html, at, _SCRIPT, 6):
        behind = at + 1
        if opens_comment(html, at) and not closes_at_once(html, at + 4):
            behind = hidden_end(html, at + 4)  # a `-->`, the script's end tag, or the end of the page
        at = next_markup(html, behind)
    return at


@helper(b1(Bytes, i8, i8))
def ends_comment(html: Array, start: int, at: int) -> bool:
    """Return whether the `>` here ends the comment whose text begins at `start`: if it follows `--` or `--!`."""
    if at - start >= 3 and html[at - 1] == _BANG:
        at -= 1
    return at - start >= 2 and html[at - 1] == _DASH and html[at - 2] == _DASH


@helper(i8(Bytes, i8))
def comment_end(html: Array, start: int) -> int:
    """Return the offset of the `>` that ends the comment after `<!--`, or the end of the page."""
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
    """Return whether an element other than script contains raw text."""
    if length == 5:
        return what in (_STYLE, _TITLE)
    if length == 8:
        return what in (_TEXTAREA, _NOFRAMES)
    return (what == _IFRAME and length == 6) or (what == _NOEMBED and length == 7) or (what == _XMP and length == 3)


@helper(i8(Bytes, i8, i8, i8))
def behind_content(html: Array, at: int, what: int, length: int) -> int:
    """Return where markup continues after a start tag: at once, or at the end of the raw text that it introduces."""
    if what == _SCRIPT and length == 6:
        return script_end(html, at)
    if what == _PLAINTEXT and length == 9:
        return html.size
    return text_end(html, at, what, length) if holds_text(what, length) else at


@helper(i8(Bytes, i8))
def cdata_end(html: Array, at: int) -> int:
    """Return the offset of the `>` of the `]]>` that ends the section after `<![CDATA[`, or the end of the page."""
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
    """Return the end of a comment, a doctype, or what looks like one. `at`: its `<`, which is not followed by a tag's name. `foreign`:
    the enclosing element is of SVG or MathML, where CDATA is possible."""
    if opens_comment(html, at):
        return comment_end(html, at + 4)
    if foreign and opens_cdata(html, at):
        return cdata_end(html, at + 9)
    c = html[at + 1]
    is_bogus = c in (_BANG, _QUESTION) or (c == _SLASH and at + 2 < html.size and html[at + 2] != _GREATER)
    return find_byte(html, at + 2, _GREATER) if is_bogus else at + 1
