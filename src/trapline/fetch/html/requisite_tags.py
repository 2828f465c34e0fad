"""Compiled search for the tags of a page that may name requisites: images, stylesheets, scripts and the like. Part of step 6 in
docs/architecture.md, in crawls with --requisites alone; requisites.py interprets the tags.

The pass is that of kernels.py, with the same laws: linear in the bytes, no tree, a bounded number of steps. Content of comments,
scripts and templates is ignored.
"""

import numpy as np

from trapline.compiled.jit import b1, helper, i8, kernel
from trapline.fetch.html.foreign import HTML as HTML_ELEMENT
from trapline.fetch.html.foreign import OPEN_SHAPE, Open, codes_of, innermost, is_named
from trapline.fetch.html.kernels import (
    AT,
    MOST_STEPS,
    ROWS,
    STATE_SIZE,
    STEPS,
    TEMPLATES,
    Rows,
    State,
    is_html_tag,
)
from trapline.fetch.html.markup import BYTES_OF_A_PAGE, STEPS_OF_A_PAGE
from trapline.fetch.html.tokens import (
    Bytes,
    attribute_name_end,
    attribute_start,
    behind_content,
    behind_markup,
    behind_value,
    code,
    find_byte,
    is_letter,
    name_code,
    name_end,
    text_end,
    value_end,
    value_start,
)
from trapline.frontier.layout import Array

MOST_TAGS = 16_384  # of a page; the rest of the page is not searched

# Other tags count if they have an attribute `style` or `background`.
_WANTED = codes_of("audio embed feimage image img input link object script source style track use video")
_STYLE, _BACKGROUND = code("style"), code("background")
_SLASH, _GREATER, _LESS = 0x2F, 0x3E, 0x3C
# Indexes of a page's state besides those of kernels.py, about the last tag that was read: the number of its attributes, and whether
# `style` or `background` is among them.
_ATTRIBUTES_READ, _HAS_STYLE = STATE_SIZE, STATE_SIZE + 1
# Columns of a row: start of the name, start and end of the attributes, end of the content of a style element, number of attributes.
NAME, ATTRIBUTES, END, CONTENT_END, COUNT, _COLUMNS = range(6)


@helper(i8(Bytes, i8, State))
def read_attributes(html: Array, at: int, state: Array) -> int:
    """Return the offset of the tag's `>`, or the end of the page if there is none or if all steps are used up."""
    state[_ATTRIBUTES_READ], state[_HAS_STYLE] = 0, 0
    at = attribute_start(html, at)
    while at < html.size and html[at] != _GREATER and state[STEPS] < state[MOST_STEPS]:
        state[STEPS] += 1
        state[_ATTRIBUTES_READ] += 1
        name = attribute_name_end(html, at)
        length = name - at
        if length in (5, 10):
            what = name_code(html, at, name)
            if what == (_STYLE if length == 5 else _BACKGROUND):
                state[_HAS_STYLE] = 1
        start = value_start(html, name)
        at = name if start < 0 else behind_value(html, start, value_end(html, start))
        at = attribute_start(html, at)
    return at if at < html.size and html[at] == _GREATER else html.size


@helper(i8(Bytes, i8, b1))
def style_end(html: Array, at: int, is_html: bool) -> int:
    """Return the end of the content of a style element. In SVG that is markup, and only its first text is used: otherwise a page of
    `<style>` tags would be read once for each of them."""
    return text_end(html, at, _STYLE, 5) if is_html else find_byte(html, at, _LESS)


@kernel(b1(Bytes, Rows, State, Open))
def find_requisite_tags(html: Array, rows: Array, state: Array, opened: Array) -> bool:
    """Write a row for every tag that may name a requisite. Return False if `rows` is full; then call again with a larger array, which
    contains the previous rows."""
    at = find_byte(html, state[AT], _LESS)
    while at + 1 < html.size and state[STEPS] < state[MOST_STEPS]:
        row = state[ROWS]
        if row == len(rows):
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
        end = read_attributes(html, attributes, state)
        if end >= html.size:
            break
        is_html = is_html_tag(html, what, length, closing, attributes, end, state, opened)
        if not closing and state[TEMPLATES] == 0 and (state[_HAS_STYLE] == 1 or is_named(_WANTED, what, length)):
            is_style = what == _STYLE and length == 5
            rows[row, NAME], rows[row, ATTRIBUTES], rows[row, END] = name, attributes, end
            rows[row, CONTENT_END] = style_end(html, end + 1, is_html) if is_style else end
            rows[row, COUNT] = state[_ATTRIBUTES_READ]
            state[ROWS] = row + 1
        at = find_byte(html, end + 1 if closing or not is_html else behind_content(html, end + 1, what, length), _LESS)
    return True


def requisite_rows(html: bytes) -> list[list[int]]:
    """Return a row for each tag that may name a requisite, up to MOST_TAGS."""
    if not html:
        return []
    text = np.frombuffer(html, np.uint8, min(len(html), BYTES_OF_A_PAGE))
    rows, state = np.zeros((64, _COLUMNS), np.int32), np.zeros(STATE_SIZE + 2, np.int64)
    state[MOST_STEPS] = STEPS_OF_A_PAGE
    opened = np.zeros(OPEN_SHAPE, np.int64)
    while not find_requisite_tags(text, rows, state, opened) and len(rows) < MOST_TAGS:
        rows = np.concatenate((rows, np.zeros((3 * len(rows), _COLUMNS), np.int32)))
    return rows[: int(state[ROWS])].tolist()
