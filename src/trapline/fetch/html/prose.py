"""Readable content of an HTML page, without navigation and other surroundings: one pass over the bytes, no tree. The lower half of
fingerprint.py.

Laws of this file
- As in kernels.py, with which it shares the tokenizer: the bytes are UTF-8, and every loop advances in each iteration.
- All white space is dropped, so `wo<b>rd` is one word, and the indentation of the source does not matter.
- Skipped is what surrounds a page's content and changes by itself: elements that are marked by their name (nav, aside, ...), by their
  role, or by the first word of a class or id (`ad-slot`, `sidebar`). The skipped part ends with the matching end tag, found by counting
  tags of the same name. If that end tag is missing, the page is `TORN`, and the caller reads it again at a lower level.
- Of a <time>, its `datetime` counts, because the text may be "3 minutes ago".
"""

import numpy as np

from trapline.compiled.jit import b1, helper, i8, kernel, type_of, void
from trapline.fetch.html.foreign import HTML, Codes, Open, codes_of, innermost, is_among, is_of_html
from trapline.fetch.html.tokens import (
    Bytes,
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
    tag_end,
    value_end,
    value_start,
)
from trapline.frontier.layout import Array

SURROUNDINGS = "nav aside footer button select noscript template svg dialog menu object audio video canvas datalist"
"""Elements that are skipped. `header` is too, unless it is within a main or an article."""
ROLES = "navigation banner contentinfo complementary search dialog alert status timer menu menubar toolbar"
WORDS = (
    "ad ads adsbygoogle adsense adslot advert advertisement sponsor sponsored promo cookie cookies consent gdpr "
    "nav navbar navigation menu breadcrumb sidebar footer toolbar share sharing social related recommended popular "
    "trending newsletter subscribe popup modal login pageviews visitors hits counter timeago"
)
"""First words of classes and ids. Only eight letters count: `advertis` matches advertisement, advertising, advertiser."""
BOXES = "div section ul ol dl span table form ins figure center header"
"""Elements whose role, class and id are checked. All of them have end tags."""


_SURROUNDINGS, _BOXES, _ROLES, _WORDS = map(codes_of, (SURROUNDINGS, BOXES, ROLES, WORDS))

_MAIN, _ARTICLE, _HEADER, _BODY, _HTML = code("main"), code("article"), code("header"), code("body"), code("html")
_TITLE, _XMP, _PLAINTEXT, _TIME = code("title"), code("xmp"), code("plaintext"), code("time")
_CLASS, _ID, _ROLE, _HIDDEN, _ARIA_HIDDEN = code("class"), code("id"), code("role"), code("hidden"), code("aria-hidden")
_DATETIME = code("datetime")
_NAMES = 4  # names of a class that are checked: the first ones say what an element is, later ones describe its look or its page
_LESS, _GREATER, _SLASH, _BANG, _QUESTION, _T = 0x3C, 0x3E, 0x2F, 0x21, 0x3F, 0x74

Out = type_of(np.zeros(1, np.uint8))
State = type_of(np.zeros(10, np.int64))
# Levels: ALL skips nothing; BY_NAME skips elements by name and role, and hidden ones; BY_CLASS skips by class and id as well.
ALL, BY_NAME, BY_CLASS = 0, 1, 2
# Indexes of the state: bytes written; bytes of text skipped; start and end of <main> in the output (-1: there is none); the element
# that is being skipped (0: none), and the number of open elements of its name; the number of open <main> and <article>; whether an end
# tag is missing; the level; the number of tags read.
WRITTEN, PASSED, MAIN_FROM, MAIN_TO, OVER, DEPTH, INSIDE, TORN, LEVEL, TAGS = range(10)
MOST_TAGS = 1 << 18  # per page; the most in the first 2 MiB of a real page were 132,156


@helper(void(Bytes, i8, i8, Out, State))
def take_text(html: Array, at: int, end: int, out: Array, state: Array) -> None:
    """Write the text without white space, or only count it if it is skipped."""
    written, passes = state[WRITTEN], state[OVER] != 0
    for place in range(at, end):
        letter = html[place]
        if letter > 32 or not is_blank(letter):
            if passes:
                state[PASSED] += 1
            elif written < out.size:
                out[written] = letter
                written += 1
    state[WRITTEN] = written


# ---- skipped elements


@helper(b1(Bytes, i8, i8, Codes))
def begins_with_one(html: Array, at: int, end: int, codes: Array) -> bool:
    """Return whether the first word of one of the first _NAMES blank-separated names in this value is among these."""
    for _ in range(_NAMES):
        if at >= end:
            break
        word = at
        while word < end and is_letter(html[word]):
            word += 1
        if word > at and is_among(codes, name_code(html, at, word)):
            return True
        while word < end and not is_blank(html[word]):
            word += 1
        at = word + 1
    return False


@helper(b1(Bytes, i8, i8, i8, i8, b1))
def says_so(html: Array, what: int, length: int, start: int, end: int, by_class: bool) -> bool:
    """Return whether an attribute marks its element as not part of the content."""
    if what == _HIDDEN and length == 6:
        return True
    if start < 0:
        return False
    if (what == _CLASS and length == 5) or (what == _ID and length == 2):
        return by_class and begins_with_one(html, start, end, _WORDS)
    if what == _ROLE and length == 4:
        return begins_with_one(html, start, end, _ROLES)
    return what == _ARIA_HIDDEN and length == 11 and start < end and html[start] | 32 == _T  # "true"


@helper(b1(Bytes, i8, b1))
def is_box_aside(html: Array, at: int, by_class: bool) -> bool:
    """Return whether one of the attributes from here on marks the element as not part of the content."""
    at = attribute_start(html, at)
    while at < html.size and html[at] != _GREATER:
        name = attribute_name_end(html, at)
        start = value_start(html, name)
        end = name if start < 0 else value_end(html, start)
        if says_so(html, name_code(html, at, name), name - at, start, end, by_class):
            return True
        at = attribute_start(html, name if start < 0 else behind_value(html, start, end))
    return False


@helper(b1(Bytes, i8, i8, i8, State))
def is_aside(html: Array, what: int, length: int, attributes: int, state: Array) -> bool:
    if length > 8:
        return False
    if is_among(_SURROUNDINGS, what) or (what == _HEADER and state[INSIDE] == 0):
        return True
    return is_among(_BOXES, what) and is_box_aside(html, attributes, state[LEVEL] == BY_CLASS)


@helper(b1(Bytes, i8, Out, State))
def take_datetime(html: Array, at: int, out: Array, state: Array) -> bool:
    at = attribute_start(html, at)
    while at < html.size and html[at] != _GREATER:
        name = attribute_name_end(html, at)
        start = value_start(html, name)
        end = name if start < 0 else value_end(html, start)
        if name_code(html, at, name) == _DATETIME and name - at == 8 and start >= 0:
            take_text(html, start, end, out, state)
            return True
        at = attribute_start(html, name if start < 0 else behind_value(html, start, end))
    return False


@helper(void(State, i8))
def pass_over(state: Array, what: int) -> None:
    state[OVER], state[DEPTH] = what, 1


# ---- tags


@helper(void(Bytes, i8, i8, i8, Out, State))
def opened(html: Array, what: int, length: int, attributes: int, out: Array, state: Array) -> None:
    """Process the start of an element outside of skipped ones."""
    if what in (_MAIN, _ARTICLE):
        state[INSIDE] += 1
        if what == _MAIN and state[MAIN_FROM] < 0:
            state[MAIN_FROM] = state[WRITTEN]
    elif what == _TIME:
        if take_datetime(html, attributes, out, state):
            pass_over(state, what)
    elif is_aside(html, what, length, attributes, state):
        pass_over(state, what)


@helper(void(i8, State))
def opened_within(what: int, state: Array) -> None:
    """Process the start of an element within a skipped one."""
    if what == state[OVER]:
        state[DEPTH] += 1
    elif what in (_MAIN, _BODY):
        state[TORN] = 1


@helper(void(i8, State))
def closed(what: int, state: Array) -> None:
    if state[OVER] != 0:
        if what == state[OVER]:
            state[DEPTH] -= 1
            if state[DEPTH] == 0:
                state[OVER] = 0
        elif what in (_MAIN, _BODY, _HTML):
            state[TORN] = 1
    elif what in (_MAIN, _ARTICLE):
        state[INSIDE] = max(0, state[INSIDE] - 1)
        if what == _MAIN and state[MAIN_TO] < 0:
            state[MAIN_TO] = state[WRITTEN]


@helper(i8(Bytes, i8, b1))
def behind_no_tag(html: Array, at: int, foreign: bool) -> int:
    """Return the offset after a comment, a doctype or the like; or after a `<` that is only text."""
    c = html[at + 1]
    if c not in (_BANG, _QUESTION, _SLASH):
        return at + 1
    return find_byte(html, behind_markup(html, at, foreign), _GREATER) + 1


@helper(i8(Bytes, i8, Out, State, Open))
def take_tag(html: Array, at: int, out: Array, state: Array, open_elements: Array) -> int:
    """Process a tag; return where the text after it begins."""
    closing = html[at + 1] == _SLASH
    name = at + 2 if closing else at + 1
    if name >= html.size or not is_letter(html[name]):
        return behind_no_tag(html, at, innermost(open_elements) != HTML)
    attributes = name_end(html, name)
    what, length = name_code(html, name, attributes), attributes - name
    end = tag_end(html, attributes)
    if state[LEVEL] != ALL and length <= 8 and end < html.size:
        if closing:
            closed(what, state)
        elif html[end - 1] == _SLASH:
            pass  # a self-closing tag: the element has no content, or its author thinks so
        elif state[OVER] != 0:
            opened_within(what, state)
        else:
            opened(html, what, length, attributes, out, state)
    if end >= html.size:
        return end + 1
    is_html = is_of_html(html, what, length, closing, attributes, end, open_elements)
    if closing or not is_html:
        return end + 1
    after = behind_content(html, end + 1, what, length)
    if what in (_TITLE, _XMP, _PLAINTEXT):
        take_text(html, end + 1, after, out, state)
    return after


@kernel(void(Bytes, Out, State, Open, i8))
def read_prose(html: Array, out: Array, state: Array, open_elements: Array, level: int) -> None:
    """Write the readable content into `out`, as much of it as fits."""
    state[:] = 0
    open_elements[0] = 0
    state[MAIN_FROM] = state[MAIN_TO] = -1
    state[LEVEL] = level
    at = 0
    while at < html.size and state[WRITTEN] < out.size and state[TAGS] < MOST_TAGS:
        # A tag is compared with the open elements of SVG and MathML, so it counts as more than one if there are some.
        state[TAGS] += 1 if open_elements[0, 0] == 0 else 4 + open_elements[0, 0] // 4
        less = find_byte(html, at, _LESS)
        take_text(html, at, less, out, state)
        if less + 1 >= html.size:
            break
        at = take_tag(html, less, out, state, open_elements)
    if state[OVER] != 0:
        state[TORN] = 1
    if state[MAIN_FROM] >= 0 and state[MAIN_TO] < 0:
        state[MAIN_TO] = state[WRITTEN]
