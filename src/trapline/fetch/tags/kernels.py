"""The tokenizer of the HTML standard, as far as links need it: one pass over the bytes, no tree, no memory but the rows it writes.

Rules of this file
- The bytes are UTF-8. All that counts is ASCII, which never is a part of another character there.
- Every loop moves on at each turn, so the time is linear whatever the bytes.
- A name is the number whose bytes it is, in small letters, the first byte lowest; longer ones are cut after eight, so their length counts
  too.

What is seen and what not: fetch/markup.py. tests/naive/markup.py is the slow twin.
"""

import numpy as np

from trapline.frontier.layout import Array
from trapline.jit import b1, helper, i8, kernel, type_of, word_at

A, AREA, BASE, FRAME, IFRAME, LINK, META = range(7)  # kinds of tags


def code(name: str) -> int:
    return int.from_bytes(name.encode()[:8], "little")


_A, _AREA, _BASE, _FRAME, _IFRAME = code("a"), code("area"), code("base"), code("frame"), code("iframe")
_LINK, _META, _TEMPLATE, _SCRIPT = code("link"), code("meta"), code("template"), code("script")
_STYLE, _TITLE, _TEXTAREA, _XMP = code("style"), code("title"), code("textarea"), code("xmp")
_NOFRAMES, _NOEMBED, _PLAINTEXT = code("noframes"), code("noembed"), code("plaintext")
_HREF, _REL = code("href"), code("rel")
_NOFOLLOW, _CANONICA, _ROBOTS, _REFRESH = code("nofollow"), code("canonica"), code("robots"), code("refresh")
_SIX, _SEVEN = (1 << 48) - 1, (1 << 56) - 1  # that many letters of a word
_SPACE, _SLASH, _GREATER, _LESS, _EQUALS = 0x20, 0x2F, 0x3E, 0x3C, 0x3D
_EACH = 0x0101010101010101  # one in each of eight bytes
_DOUBLE, _SINGLE, _DASH, _BANG, _QUESTION, _AND, _L = 0x22, 0x27, 0x2D, 0x21, 0x3F, 0x26, 0x6C

Bytes = type_of(np.frombuffer(b"x", np.uint8))  # that cannot be written, as Python's own
Rows = type_of(np.zeros((1, 1), np.int32))
Counts = type_of(np.zeros(3, np.int64))
ROWS, HREFS, CANONICAL = 0, 1, 2  # of counts; the last: whether a canonical was found, or may have been
NONE, FOUND, PERHAPS = 0, 1, 2
NOT_YET = -1


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
def name_code(html: Array, start: int, end: int) -> int:
    found = 0
    for at in range(start, min(end, start + 8)):
        letter = int(np.int64(html[at]))
        found |= (letter | 32 if 65 <= letter <= 90 else letter) << (8 * (at - start))
    return found


@helper(i8(Bytes, i8))
def name_end(html: Array, at: int) -> int:
    while at < html.size and not ends_name(html[at]):
        at += 1
    return at


@helper(b1(i8, i8))
def has_byte(word: int, eight_times: int) -> bool:
    """Whether a byte is among eight: one that becomes zero borrows from its highest bit."""
    differs = word ^ eight_times
    return ((differs - _EACH) & ~differs & (_EACH << 7)) != 0


@helper(i8(Bytes, i8, i8))
def find_byte(html: Array, at: int, wanted: int) -> int:
    eight_times = int(wanted) * _EACH
    while at + 8 <= html.size and not has_byte(word_at(html, at), eight_times):
        at += 8
    while at < html.size and html[at] != wanted:
        at += 1
    return at


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
    while start < html.size and not is_blank(html[start]) and html[start] != _GREATER:
        start += 1
    return start


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
def is_plain_value(html: Array, start: int, end: int) -> bool:
    """Nothing to decode, nothing to trim."""
    for at in range(start, end):
        c = html[at]
        if c == _AND or c <= _SPACE:
            return False
    return True


@helper(i8(Bytes, i8))
def small_word(html: Array, at: int) -> int:
    """Eight bytes, letters in small; other bytes may become others too."""
    return word_at(html, at) | (_EACH << 5)


@helper(b1(Bytes, i8, i8))
def may_forbid(html: Array, start: int, end: int) -> bool:
    """Whether a rel may say nofollow."""
    for at in range(start, end):  # noqa: SIM110  # numba has no any()
        if html[at] == _AND or at + 8 > html.size or small_word(html, at) == _NOFOLLOW:
            return True
    return False


@helper(b1(Bytes, i8, i8, Bytes))
def may_matter(html: Array, start: int, end: int, agent: Array) -> bool:
    """Whether the attributes of a meta or link may be of a kind that is looked for. Most are not, and taking them apart is dear."""
    letters = min(8, agent.size)
    name = name_code(agent, 0, letters) | (_EACH << 5)
    counted = -1 if letters == 8 else (1 << (8 * letters)) - 1
    for at in range(start, end):
        if html[at] == _AND or at + 8 > html.size:
            return True
        word = small_word(html, at)
        if word == _CANONICA or word & _SIX == _ROBOTS or word & _SEVEN == _REFRESH:
            return True
        if (word ^ name) & counted == 0:
            return True
    return False


@helper(b1(Bytes, i8, i8))
def is_canonical(html: Array, start: int, end: int) -> bool:
    """Whether a rel says just that."""
    return end - start == 9 and end < html.size and small_word(html, start) == _CANONICA and html[end - 1] | 32 == _L


@helper(b1(Bytes, i8, i8, Rows, i8))
def usual_link(html: Array, kind: int, at: int, hrefs: Array, row: int) -> bool:
    """Write where the href is, if it is plain: of an `a` whose rel, if there is one, does not say nofollow, or of a canonical."""
    found, may_be = False, kind == A
    at = attribute_start(html, at)
    while at < html.size and html[at] != _GREATER:
        name = attribute_name_end(html, at)
        what, length = name_code(html, at, name), name - at
        start = value_start(html, name)
        end = name if start < 0 else value_end(html, start)
        if what == _REL and length == 3 and start >= 0:
            if may_forbid(html, start, end) if kind == A else not is_canonical(html, start, end):
                return False
            may_be = True
        if what == _HREF and length == 4 and not found:
            if start < 0 or not is_plain_value(html, start, end) or (kind == LINK and start == end):
                return False
            hrefs[row, 0], hrefs[row, 1] = start, end
            found = True
        at = attribute_start(html, name if start < 0 else behind_value(html, start, end))
    return found and may_be


# ---- what is no markup


@helper(b1(Bytes, i8, i8, i8))
def is_end_tag(html: Array, at: int, what: int, length: int) -> bool:
    """Whether the end tag of this name begins here."""
    end = at + 2 + length
    if end >= html.size or html[at + 1] != _SLASH or not ends_name(html[end]):
        return False
    return name_code(html, at + 2, end) == what


@helper(i8(Bytes, i8, i8, i8))
def text_end(html: Array, at: int, what: int, length: int) -> int:
    """Where the end tag of an element that holds text alone begins."""
    at = find_byte(html, at, _LESS)
    while at < html.size and not is_end_tag(html, at, what, length):
        at = find_byte(html, at + 1, _LESS)
    return at


@helper(b1(Bytes, i8))
def is_arrow(html: Array, at: int) -> bool:
    return at + 2 < html.size and html[at] == _DASH and html[at + 1] == _DASH and html[at + 2] == _GREATER


@helper(i8(Bytes, i8))
def twice_hidden_end(html: Array, at: int) -> int:
    """Behind `<!-- <script`: an end tag ends only this, an arrow all of it."""
    while at < html.size and not is_arrow(html, at):
        if html[at] == _LESS and is_end_tag(html, at, _SCRIPT, 6):
            return at + 8
        at += 1
    return at


@helper(i8(Bytes, i8))
def hidden_end(html: Array, at: int) -> int:
    """Behind `<!--` in a script: to the arrow, or to the script's end tag."""
    while at < html.size and not is_arrow(html, at):
        if html[at] == _LESS:
            if is_end_tag(html, at, _SCRIPT, 6):
                return at
            end = at + 7
            if end < html.size and ends_name(html[end]) and name_code(html, at + 1, end) == _SCRIPT:
                at = twice_hidden_end(html, end)
                continue
        at += 1
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
    at = find_byte(html, at, _LESS)
    while at < html.size and not is_end_tag(html, at, _SCRIPT, 6):
        if opens_comment(html, at) and not closes_at_once(html, at + 4):
            at = hidden_end(html, at + 4)
            if at < html.size and html[at] == _LESS:
                continue
        at = find_byte(html, at + 1, _LESS)
    return at


@helper(i8(Bytes, i8))
def comment_end(html: Array, at: int) -> int:
    """Behind `<!--`: to where the comment is over."""
    if closes_at_once(html, at):
        return at
    at = find_byte(html, at, _DASH)
    while at + 2 < html.size:
        if html[at + 1] == _DASH:
            bang = html[at + 2] == _BANG and at + 3 < html.size and html[at + 3] == _GREATER
            if html[at + 2] == _GREATER or bang:
                return at
        at = find_byte(html, at + 1, _DASH)
    return html.size


@helper(i8(i8, i8))
def kind_of(what: int, length: int) -> int:
    """The kind of row that a tag makes; -1: none."""
    if length == 1:
        return A if what == _A else -1
    if length == 4:
        if what == _LINK:
            return LINK
        if what == _META:
            return META
        if what == _AREA:
            return AREA
        return BASE if what == _BASE else -1
    if what == _FRAME and length == 5:
        return FRAME
    return IFRAME if what == _IFRAME and length == 6 else -1


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
def behind_markup(html: Array, at: int) -> int:
    """Behind a comment, a doctype, or what looks like one; `at`: its `<`, which no tag's name follows."""
    if opens_comment(html, at):
        return comment_end(html, at + 4)
    c = html[at + 1]
    is_bogus = c in (_BANG, _QUESTION) or (c == _SLASH and at + 2 < html.size and html[at + 2] != _GREATER)
    return find_byte(html, at + 2, _GREATER) if is_bogus else at + 1


@helper(b1(Rows, Counts, i8, i8, i8))
def note_row(rows: Array, counts: Array, kind: int, start: int, end: int) -> bool:
    row = counts[ROWS]
    if row == len(rows):
        return False
    rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3] = kind, start, end, counts[HREFS]
    counts[ROWS] = row + 1
    return True


@helper(b1(Bytes, i8, i8, i8, Rows, Rows, Counts, Bytes))
def note_tag(
    html: Array, kind: int, attributes: int, end: int, rows: Array, hrefs: Array, counts: Array, agent: Array
) -> bool:
    """Write where a tag's link is, or its attributes; False: there is no room."""
    if len(hrefs) == 0:
        return note_row(rows, counts, kind, attributes, end)
    if kind in (LINK, META) and not may_matter(html, attributes, end, agent):
        return True
    if kind == LINK and counts[CANONICAL] == FOUND:
        return True  # the first one counts
    href = counts[HREFS]
    if href == len(hrefs):
        return False
    is_usual = kind == A or (kind == LINK and counts[CANONICAL] == NONE)
    is_usual = is_usual and usual_link(html, kind, attributes, hrefs, href)
    if kind == LINK:
        counts[CANONICAL] = FOUND if is_usual else PERHAPS
    if not is_usual:
        hrefs[href, 0], hrefs[href, 1] = NOT_YET, NOT_YET
        if not note_row(rows, counts, kind, attributes, end):
            return False
    counts[HREFS] = href + 1
    return True


@kernel(b1(Bytes, Rows, Rows, Counts, Bytes, i8))
def find_tags(html: Array, rows: Array, hrefs: Array, counts: Array, agent: Array, most: int) -> bool:
    """Write into `hrefs` (start, end) of the value itself for every link as most are; for every other tag that may lead somewhere or
    matter to `agent`, NOT_YET there, and (kind, start, end of its attributes, its place in `hrefs`) into `rows`. False: there is no room.
    `most`: of hrefs, then it stops. Without any room in `hrefs`, all tags are in `rows`."""
    counts[:] = 0
    templates = 0
    at = find_byte(html, 0, _LESS)
    while at + 1 < html.size and counts[HREFS] < most:
        closing = html[at + 1] == _SLASH
        name = at + 2 if closing else at + 1
        if name >= html.size or not is_letter(html[name]):
            at = find_byte(html, behind_markup(html, at), _LESS)
            continue
        attributes = name_end(html, name)
        what, length = name_code(html, name, attributes), attributes - name
        end = tag_end(html, attributes)
        if end >= html.size:
            break
        if what == _TEMPLATE and length == 8:
            templates = max(0, templates - 1) if closing else templates + 1
        kind = -1 if closing or templates > 0 else kind_of(what, length)
        if kind >= 0 and not note_tag(html, kind, attributes, end, rows, hrefs, counts, agent):
            return False
        after = end + 1 if closing else behind_content(html, end + 1, what, length)
        at = find_byte(html, after, _LESS)
    return True
