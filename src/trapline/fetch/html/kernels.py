"""Compiled search for the tags of a page that may contain links: one pass over the bytes, no tree, no memory but the rows it writes.

Step 6 in docs/architecture.md. tokens.py splits HTML into tags; foreign.py recognises tags of SVG and MathML. Laws of this file
- A link whose value needs no decoding is only recorded as offsets; values that need decoding are left to Python, one by one.
- Tags, attributes and other markup count as *steps*; values and character references that Python must decode count as *work*. A page is
  read until one of the two is used up, so that no page takes longer than a very long real one (docs/decisions/034).
- A value is recorded as its start and end, without the blanks at its ends.
"""

from typing import NamedTuple

import numpy as np

from trapline.compiled.array_handles import Pinned, recaller
from trapline.compiled.jit import b1, helper, i8, kernel, type_of, void
from trapline.fetch.html.foreign import HTML as HTML_ELEMENT
from trapline.fetch.html.foreign import OPEN_SHAPE, Open, innermost, is_of_html
from trapline.fetch.html.tokens import Bytes as Bytes
from trapline.fetch.html.tokens import (
    attribute_name_end,
    attribute_start,
    behind_content,
    behind_markup,
    behind_value,
    code,
    find_byte,
    is_blank,
    is_letter,
    name_code,
    name_end,
    value_end,
    value_start,
)
from trapline.frontier.layout import Array

A, AREA, BASE, FRAME, IFRAME, LINK, META = range(7)  # kinds of tags
LONGEST_VALUE = 32 * 1024  # bytes; longer values are unusable, and a URL of more than 8 KB is never used anyway

_A, _AREA, _BASE, _FRAME, _IFRAME = code("a"), code("area"), code("base"), code("frame"), code("iframe")
_LINK, _META, _TEMPLATE = code("link"), code("meta"), code("template")
_HREF, _SRC, _REL, _CONTENT, _NAME, _HTTP_EQUIV = map(code, ("href", "src", "rel", "content", "name", "http-equiv"))
_NOFOLLOW, _CANONICAL, _ROBOTS, _REFRESH = code("nofollow"), code("canonical"), code("robots"), code("refresh")
_ALTERNATE, _SITEMAP, _SCHEDULE = code("alternate"), code("sitemap"), code("crawl-schedule")
_HUB, _SELF = code("hub"), code("self")
_SLASH, _GREATER, _LESS, _AND, _L = 0x2F, 0x3E, 0x3C, 0x26, 0x6C
_SPACE, _NOT_ASCII = 0x20, 0x80

Rows = type_of(np.zeros((1, 1), np.int32))
Buffer = type_of(np.zeros(1, np.uint8))
State = type_of(np.zeros(1, np.int64))
# Indexes of a page's state: rows and hrefs written; whether a canonical link was found (NONE, FOUND, PERHAPS), and whether a base was;
# the offset at which to continue; the number of open templates; steps, work and bytes of links so far, and the limits of these three; the
# smallest byte that a value must be decoded for; whether a <link> has a rel as in `may_relate`. `begin_tags` clears all before
# MOST_STEPS.
ROWS, HREFS, CANONICAL, HAS_BASE, AT, TEMPLATES, STEPS, WORK, BYTES, MOST_STEPS, MOST_WORK, MOST_BYTES = range(12)
FIRST_ODD, RELATIONS, STATE_SIZE = 12, 13, 14
NONE, FOUND, PERHAPS = 0, 1, 2
NOT_YET = -1
# Columns of a row: the kind; start and end of up to three values (ABSENT: no such attribute; UNUSABLE: too long); the index in the hrefs.
KIND, VALUES, PLACE, COLUMNS = 0, 1, 7, 8
HREF, REL = VALUES, VALUES + 2  # for all kinds except META; for frames, src is stored as href
CONTENT, META_NAME, HTTP_EQUIV = VALUES, VALUES + 2, VALUES + 4
ABSENT, UNUSABLE = -1, -2


class TagArrays(NamedTuple):
    """What `find_tags` writes, and its state."""

    rows: Array  # columns: see above
    hrefs: Array  # start and end of each link
    state: Array  # indexes: see above
    opened: Array  # open elements of SVG and MathML (foreign.py)


_ROWS = np.zeros((1, 1), np.int32)
TagArraysType = Pinned(TagArrays(_ROWS, _ROWS, np.zeros(1, np.int64), np.zeros(OPEN_SHAPE, np.int64)))
recall_arrays = recaller(TagArraysType)


# ---- values


@helper(i8(i8, i8, i8))
def column_of(kind: int, what: int, length: int) -> int:
    """Return the column for the value of an attribute; 0 if the attribute is irrelevant."""
    if kind == META:
        if what == _CONTENT and length == 7:
            return CONTENT
        if what == _NAME and length == 4:
            return META_NAME
        return HTTP_EQUIV if what == _HTTP_EQUIV and length == 10 else 0
    if kind in (FRAME, IFRAME):
        return HREF if what == _SRC and length == 3 else 0
    if what == _HREF and length == 4:
        return HREF
    return REL if what == _REL and length == 3 else 0


@helper(void(Bytes, i8, i8, Rows, i8, i8))
def note_value(html: Array, start: int, end: int, rows: Array, row: int, column: int) -> None:
    """Write start and end of a value into its column, unless the attribute occurred before: the first one counts."""
    if rows[row, column] != ABSENT:
        return
    if column != HTTP_EQUIV:  # http-equiv is a keyword, which browsers do not trim
        while start < end and is_blank(html[start]):
            start += 1
        while start < end and is_blank(html[end - 1]):
            end -= 1
    rows[row, column], rows[row, column + 1] = (UNUSABLE if end - start > LONGEST_VALUE else start), end


@helper(void(Rows, i8))
def clear_values(rows: Array, row: int) -> None:
    for column in range(VALUES, PLACE):
        rows[row, column] = ABSENT


@helper(i8(Bytes, i8, i8, Rows, State))
def read_tag(html: Array, at: int, kind: int, rows: Array, state: Array) -> int:
    """Return the offset of the tag's `>`, or the end of the page if there is none or if all steps are used up. If `kind` is not -1, write
    the tag's values into the next row."""
    row, left = state[ROWS], state[MOST_STEPS] - state[STEPS]
    if kind >= 0:
        clear_values(rows, row)
    if at < html.size and html[at] == _GREATER:  # most tags have no attributes
        return at
    at = attribute_start(html, at)
    while at < html.size and html[at] != _GREATER and left > 0:
        left -= 1
        name = attribute_name_end(html, at)
        start = value_start(html, name)
        end = name if start < 0 else value_end(html, start)
        if kind >= 0:
            column = column_of(kind, name_code(html, at, name), name - at)
            if column > 0:
                note_value(html, end if start < 0 else start, end, rows, row, column)
                left -= (end - at) // 16  # the value will be read once more
        at = attribute_start(html, name if start < 0 else behind_value(html, start, end))
    state[STEPS] = state[MOST_STEPS] - max(0, left)
    return at if left > 0 and at < html.size else html.size


@helper(b1(Bytes, i8, i8, i8))
def is_plain(html: Array, start: int, end: int, first_odd: int) -> bool:
    """Return whether a value needs no decoding: no character references, no NUL, no byte from `first_odd` on."""
    for at in range(start, end):  # numba has no any()
        c = html[at]
        if c == _AND or c == 0 or c >= first_odd:
            return False
    return True


@helper(b1(Bytes, i8, i8, i8, i8))
def has_word(html: Array, at: int, end: int, wanted: int, length: int) -> bool:
    """Return whether a word is among the blank-separated words of a value. A code holds eight letters; of the words that callers look
    for, only `canonical` has nine."""
    while at < end:
        word = at
        while at < end and not is_blank(html[at]):
            at += 1
        if at - word == length and name_code(html, word, at) == wanted and (length < 9 or html[at - 1] | 32 == _L):
            return True
        at += 1
    return False


@helper(b1(Bytes, i8, i8))
def may_relate(html: Array, at: int, end: int) -> bool:
    """Return whether the rel of a <link> may name a feed, a sitemap, a schedule, a hub, or the page itself. Of the long words, the
    first eight letters and the length are compared."""
    if not is_plain(html, at, end, _NOT_ASCII):
        return True
    while at < end:
        word = at
        while at < end and html[at] > _SPACE:
            at += 1
        what, length = name_code(html, word, at), at - word
        if (length == 9 and what == _ALTERNATE) or (length == 7 and what == _SITEMAP):
            return True
        if (length == 3 and what == _HUB) or (length == 4 and what == _SELF) or (length == 14 and what == _SCHEDULE):
            return True
        at += 1
    return False


@helper(b1(Bytes, i8, i8, Bytes))
def is_agent(html: Array, start: int, end: int, agent: Array) -> bool:
    """Return whether a value is the agent's name in any case; `agent` is in lower case."""
    if end - start != agent.size:
        return False
    for at in range(agent.size):
        c = html[start + at]
        if (c | 32 if 65 <= c <= 90 else c) != agent[at]:
            return False
    return True


# ---- rows


@helper(i8(i8, i8))
def kind_of(what: int, length: int) -> int:
    """Return the kind of a tag; -1 if it is irrelevant."""
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


@helper(void(Rows, Rows, State))
def keep_row(rows: Array, hrefs: Array, state: Array) -> None:
    """Keep the next row, for Python to decode, and reserve an index in the hrefs."""
    place = state[HREFS]
    hrefs[place, 0], hrefs[place, 1] = NOT_YET, NOT_YET
    rows[state[ROWS], PLACE] = place
    state[HREFS] = place + 1
    state[ROWS] += 1


@helper(i8(Bytes, Rows, i8, i8))
def work_of(html: Array, rows: Array, row: int, first_odd: int) -> int:
    """Return the work that a row costs in Python: 1, or more if it is not a plain link or not in UTF-8, plus the character references in
    its values."""
    work = 1 if rows[row, KIND] <= AREA and rows[row, REL] < 0 else 4
    work += 1 if first_odd < 256 else 0
    for column in range(VALUES, PLACE, 2):
        if rows[row, column] >= 0:
            at, end = rows[row, column], rows[row, column + 1]
            while at < end:
                work += html[at] == _AND
                at += 1
    return work


@helper(b1(Bytes, Rows, i8, i8, Bytes, i8))
def may_be_named(html: Array, rows: Array, row: int, column: int, agent: Array, first_odd: int) -> bool:
    """Return whether the name or http-equiv of a meta may be a relevant one."""
    start, end = rows[row, column], rows[row, column + 1]
    if start < 0:
        return False
    if not is_plain(html, start, end, min(first_odd, 128)):
        return True
    if column == HTTP_EQUIV:
        return end - start == 7 and name_code(html, start, end) == _REFRESH
    return (end - start == 6 and name_code(html, start, end) == _ROBOTS) or is_agent(html, start, end, agent)


@helper(b1(Bytes, i8, Rows, i8, State, Bytes))
def matters(html: Array, kind: int, rows: Array, row: int, state: Array, agent: Array) -> bool:
    """Return whether a tag may contain a link, a base, or a directive to robots. Most meta and link tags do not."""
    if kind == META:
        first_odd = state[FIRST_ODD]
        return may_be_named(html, rows, row, META_NAME, agent, first_odd) or may_be_named(
            html, rows, row, HTTP_EQUIV, agent, first_odd
        )
    if rows[row, HREF] < 0 or (kind == BASE and state[HAS_BASE] != 0):
        return False
    if kind in (FRAME, IFRAME, LINK) and rows[row, HREF] == rows[row, HREF + 1]:
        return False
    if kind in (FRAME, IFRAME, BASE):
        return True
    start, end = rows[row, REL], rows[row, REL + 1]
    if kind != LINK and (start < 0 or not is_plain(html, start, end, state[FIRST_ODD])):
        return True
    if kind != LINK:
        return not has_word(html, start, end, _NOFOLLOW, 8)
    if start < 0 or state[CANONICAL] == FOUND:
        return False  # the first one counts
    return not is_plain(html, start, end, state[FIRST_ODD]) or has_word(html, start, end, _CANONICAL, 9)


@helper(b1(Bytes, i8, Rows, i8, State))
def is_usual(html: Array, kind: int, rows: Array, row: int, state: Array) -> bool:
    """Return whether a relevant tag is a link that needs no decoding in Python."""
    if kind in (META, BASE) or (kind == LINK and state[CANONICAL] != NONE):
        return False
    first_odd = state[FIRST_ODD]
    if rows[row, REL] >= 0 and not is_plain(html, rows[row, REL], rows[row, REL + 1], first_odd):
        return False
    return is_plain(html, rows[row, HREF], rows[row, HREF + 1], first_odd)


@helper(void(Bytes, i8, Rows, Rows, State, Bytes))
def note_tag(html: Array, kind: int, rows: Array, hrefs: Array, state: Array, agent: Array) -> None:
    """Record a tag whose values are in the next row: write the offsets of its link, or keep the row for Python."""
    row = state[ROWS]
    if kind == LINK and rows[row, REL] != ABSENT and state[RELATIONS] == 0:
        is_long = rows[row, REL] == UNUSABLE
        state[RELATIONS] = is_long or may_relate(html, rows[row, REL], rows[row, REL + 1])
    if not matters(html, kind, rows, row, state, agent):
        return
    usual = is_usual(html, kind, rows, row, state)
    if kind == LINK:
        state[CANONICAL] = FOUND if usual else PERHAPS
    elif kind == BASE:
        state[HAS_BASE] = 1
    if usual:
        place = state[HREFS]
        hrefs[place, 0], hrefs[place, 1] = rows[row, HREF], rows[row, HREF + 1]
        state[HREFS] = place + 1
        state[BYTES] += rows[row, HREF + 1] - rows[row, HREF]
        return
    rows[row, KIND] = kind
    state[WORK] += work_of(html, rows, row, state[FIRST_ODD])
    state[BYTES] += max(0, rows[row, VALUES + 1] - rows[row, VALUES])
    keep_row(rows, hrefs, state)


@helper(void(Rows, State, i8, i8, i8))
def note_attributes(rows: Array, state: Array, kind: int, start: int, end: int) -> None:
    row = state[ROWS]
    rows[row, KIND], rows[row, VALUES], rows[row, VALUES + 1] = kind, start, end
    state[ROWS] = row + 1


@helper(b1(Rows, Rows, State))
def has_row(rows: Array, hrefs: Array, state: Array) -> bool:
    return state[ROWS] < len(rows) and (len(hrefs) == 0 or state[HREFS] < len(hrefs))


@helper(b1(State, i8))
def is_over(state: Array, most: int) -> bool:
    if state[HREFS] >= most or state[BYTES] >= state[MOST_BYTES]:
        return True
    return state[STEPS] >= state[MOST_STEPS] or state[WORK] >= state[MOST_WORK]


@helper(b1(Bytes, i8, i8, b1, i8, i8, State, Open))
def is_html_tag(
    html: Array, what: int, length: int, closing: bool, attributes: int, end: int, state: Array, opened: Array
) -> bool:
    """Return whether a tag is one of HTML, and not of SVG or MathML. Note which elements are open after it."""
    if opened[0, 0] > 0:  # the tag is read again, and compared with the open elements
        state[STEPS] += (end - attributes + opened[0, 0]) // 4
    is_html = is_of_html(html, what, length, closing, attributes, end, opened)
    if is_html and what == _TEMPLATE and length == 8:
        state[TEMPLATES] = max(0, state[TEMPLATES] - 1) if closing else state[TEMPLATES] + 1
    return bool(is_html)


@helper(void(TagArraysType, i8))
def begin_tags(arrays: TagArrays, first_odd: int) -> None:
    """Clear the state, except for the limits."""
    for index in range(MOST_STEPS):
        arrays.state[index] = 0
    arrays.state[FIRST_ODD] = first_odd
    arrays.state[RELATIONS] = 0
    arrays.opened[0, 0] = 0  # no element of SVG or MathML is open


@kernel(b1(i8, Bytes, Bytes, i8, i8))
def find_tags(handle: int, html: Array, agent: Array, most: int, first_odd: int) -> bool:
    """Find the relevant tags of a page.

    For every link that needs no decoding, write start and end of its value into `hrefs`. For every other tag that may contain a link or
    matter to `agent`, write NOT_YET into `hrefs`, and the offsets of its values into `rows`. Stop after `most` hrefs. If `hrefs` has
    length 0, write start and end of the attributes of every tag of a known kind into `rows` instead. `first_odd`: the smallest byte that
    a value must be decoded for; 0: continue the page. Return False if an array is full; then continue with larger arrays, which contain
    the previous ones.
    """
    arrays: TagArrays = recall_arrays(handle)
    if first_odd > 0:
        begin_tags(arrays, first_odd)
    rows, hrefs, state, opened = arrays.rows, arrays.hrefs, arrays.state, arrays.opened
    at = find_byte(html, state[AT], _LESS)
    while at + 1 < html.size and not is_over(state, most):
        if not has_row(rows, hrefs, state):
            state[AT] = at
            return False
        state[STEPS] += 1
        closing = html[at + 1] == _SLASH
        name = at + 2 if closing else at + 1
        if name >= html.size or not is_letter(html[name]):
            at = find_byte(html, behind_markup(html, at, innermost(opened) != HTML_ELEMENT), _LESS)
            continue
        attributes = name_end(html, name)
        what, length = name_code(html, name, attributes), attributes - name
        kind = -1 if closing or state[TEMPLATES] > 0 else kind_of(what, length)
        end = read_tag(html, attributes, -1 if len(hrefs) == 0 else kind, rows, state)
        if end >= html.size:
            break
        is_html = is_html_tag(html, what, length, closing, attributes, end, state, opened)
        if kind == A or (kind >= 0 and is_html):
            if len(hrefs) == 0:
                note_attributes(rows, state, kind, attributes, end)
            else:
                note_tag(html, kind, rows, hrefs, state, agent)
        at = find_byte(html, end + 1 if closing or not is_html else behind_content(html, end + 1, what, length), _LESS)
    return True


@kernel(i8(Bytes, Rows, Buffer, Rows))
def gather_links(text: Array, spans: Array, out: Array, gathered: Array) -> int:
    """Copy links one after the other into `out`, and write their new offsets into `gathered`; NOT_YET stays NOT_YET. Return the number of
    bytes written."""
    end = 0
    for link in range(len(spans)):
        start = end
        if spans[link, 0] < 0:
            gathered[link, 0], gathered[link, 1] = NOT_YET, NOT_YET
            continue
        for at in range(spans[link, 0], spans[link, 1]):
            out[end] = text[at]
            end += 1
        gathered[link, 0], gathered[link, 1] = start, end
    return end
