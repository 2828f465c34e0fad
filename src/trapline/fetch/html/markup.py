"""Tags and attributes of HTML: finds the tags that may contain links, in source order. The lower half of step 6 in
docs/architecture.md; page.py interprets the tags.

This is the tokenizer of the HTML standard without its tree: a tree costs time and memory that grow with the square of the nesting, and
links do not depend on it (docs/decisions/017). One compiled pass over the bytes finds all tags, whatever the bytes, in a bounded number
of steps (docs/decisions/034).

Ignored, as in a browser without scripts: the content of comments, scripts, styles, title, textarea, iframe, noembed, noframes, xmp and
template, and everything after plaintext. Not ignored: noscript. Elements of SVG and MathML contain markup, whatever their names
(foreign.py); of these elements only `a` is a link. Differs from a browser, which builds the tree: links beside framesets, and frames
outside them, are found.
"""

import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from html.entities import html5
from typing import NamedTuple

import numpy as np

from trapline.compiled.array_handles import Pin
from trapline.fetch.html.foreign import OPEN_SHAPE
from trapline.fetch.html.kernels import (
    COLUMNS,
    HREFS,
    MOST_BYTES,
    MOST_STEPS,
    MOST_WORK,
    RELATIONS,
    ROWS,
    STATE_SIZE,
    STEPS,
    WORK,
    TagArrays,
    find_tags,
)
from trapline.frontier.layout import Array

_VALUE = r"""[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|(?!["'])([^ \t\n\f\r>]*+))"""
_ATTRIBUTE = r"([^ \t\n\f\r/>][^ \t\n\f\r/>=]*+)(?:" + _VALUE + r")?"
_UNNAMED = re.sub(r"(?<!\\)\((?!\?)", "(?:", _ATTRIBUTE)  # the same without groups
ATTRIBUTES = r"(?:[ \t\n\f\r/]++|" + _UNNAMED + r")*+"  # of a tag, up to its `>` or the end of the text
_ATTRIBUTE_OF = re.compile(_ATTRIBUTE)
_REFERENCE = re.compile(r"&(?:#(?:[0-9]+|[xX][0-9a-fA-F]+);?|[a-zA-Z][a-zA-Z0-9]*+(?:;|(?!=)))")
_SPACE, _TILDE = 0x20, 0x7E
_MOST_DIGITS = 100  # of a numeric character reference; Python refuses to parse thousands of digits

# A page is read up to these limits. Figures of real pages, and the cost: docs/decisions/034.
BYTES_OF_A_PAGE = 16 << 20
STEPS_OF_A_PAGE = 1 << 20  # tags and attributes
WORK_OF_A_PAGE = 24 * 1024  # tags with a value that Python must decode, and the character references in them
BYTES_OF_LINKS = 4 << 20

_ROWS_AT_ONCE = 512
_MOST_ROWS = 4096  # larger arrays are not kept for the next page
ALL_BYTES, ASCII_ALONE = 256, 128  # bytes of a value below this number can be used without decoding


@lru_cache(16)
def _bytes_of(agent: bytes) -> Array:
    return np.frombuffer(agent or b" ", np.uint8)


class Tags(NamedTuple):
    """Offsets of a page's tags that may contain links. The next page overwrites both arrays."""

    hrefs: Array  # start and end of the href of each plain link; NOT_YET: to be decoded from a row of `others`
    others: Array  # rows of kernels.py: kind, start and end of three values, index in `hrefs`

    def rows(self) -> Iterator[list[int]]:
        """Yield the rows of `others`, converting a few at a time, because Python integers take ten times the memory."""
        for at in range(0, len(self.others), _ROWS_AT_ONCE):
            yield from self.others[at : at + _ROWS_AT_ONCE].tolist()


class TagRows:
    """Arrays for the tags of one page, reused for the next one. The large arrays of a page with a million tags are not kept.

    With `hrefs` 0, no hrefs are written, and `others` holds where the attributes of each tag are.
    """

    def __init__(self, rows: int = 64, hrefs: int = 256) -> None:
        self._usual = rows, hrefs
        self._state, self._opened = np.zeros(STATE_SIZE, np.int64), np.zeros(OPEN_SHAPE, np.int64)
        self._state[[MOST_STEPS, MOST_WORK, MOST_BYTES]] = STEPS_OF_A_PAGE, WORK_OF_A_PAGE, BYTES_OF_LINKS
        self._numbers = self._state.data  # the same numbers, faster to read one by one
        self._make_room(rows, hrefs)

    def _make_room(self, rows: int, hrefs: int) -> None:
        self._rows, self._hrefs = np.zeros((rows, COLUMNS), np.int32), np.zeros((hrefs, 2), np.int32)
        self._pin = Pin(TagArrays(self._rows, self._hrefs, self._state, self._opened))

    def _make_more_room(self) -> None:
        rows, hrefs = self._rows, self._hrefs
        grows = len(rows) == self._state[ROWS], len(hrefs) == self._state[HREFS]
        self._make_room(*(4 * len(old) if grow else len(old) for old, grow in zip((rows, hrefs), grows, strict=True)))
        self._rows[: len(rows)], self._hrefs[: len(hrefs)] = rows, hrefs

    def tags(self, html: bytes, agent: bytes, most: int, usable: int = ALL_BYTES) -> Tags:
        """Find the tags of a page, up to `most` hrefs. Omits meta and link tags that are irrelevant for this agent.

        `agent`: our name in rules for robots, in lower case. `usable`: ALL_BYTES or ASCII_ALONE.
        """
        html_bytes, agent_bytes = (
            np.frombuffer(html or b" ", np.uint8, min(len(html) or 1, BYTES_OF_A_PAGE)),
            _bytes_of(agent),
        )
        is_done = find_tags(self._pin.handle, html_bytes, agent_bytes, most, usable)
        while not is_done:
            self._make_more_room()
            is_done = find_tags(self._pin.handle, html_bytes, agent_bytes, most, 0)
        found = Tags(self._hrefs[: self._numbers[HREFS]], self._rows[: self._numbers[ROWS]])
        if len(self._rows) > _MOST_ROWS or len(self._hrefs) > _MOST_ROWS:
            self._make_room(*self._usual)
        return found

    @property
    def has_relations(self) -> bool:
        """Whether a <link> of the last page may name a feed, a sitemap, a schedule or a hub."""
        return self._numbers[RELATIONS] > 0

    @property
    def spent(self) -> tuple[int, int]:
        """Steps and work that the last page took."""
        return self._numbers[STEPS], self._numbers[WORK]


class ThreadRows(threading.local):
    """The `TagRows` of each thread. A handler's thread parses pages of earlier runs while the loop parses new ones."""

    def __init__(self, rows: int = 64, hrefs: int = 256) -> None:
        self.own = TagRows(rows, hrefs)


def any_case(name: str) -> str:
    """Return a pattern for a name in any case; several times faster than the flag IGNORECASE for a whole pattern.

    >>> any_case("h1")
    '[hH]1'
    """
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in name)


def values(attributes: str) -> dict[str, str]:
    """Return raw attribute values by name, in lower case. Of a repeated attribute, the first counts.

    >>> values(" HREF = 'a ' rel=nofollow href=c")
    {'href': 'a ', 'rel': 'nofollow'}
    """
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE_OF.findall(attributes):
        found.setdefault(name.lower(), double or single or bare)
    return found


def text(value: str) -> str:
    """Return a value with character references replaced and white space at its ends removed.

    >>> text(" /a?b=1&amp;copy=2&lang=&eacute; ")
    '/a?b=1&copy=2&lang=é'
    """
    return resolved(value).strip(" \t\n\f\r")


def resolved(value: str) -> str:
    """Return a value with its character references replaced."""
    if "&" in value:
        is_usual = value.count("&") == value.count("&amp;")
        value = value.replace("&amp;", "&") if is_usual else _REFERENCE.sub(_character, value)
    return value.replace("\0", "\ufffd")


def _character(reference: re.Match[str]) -> str:
    """Return the character of a reference. In an attribute, a name must be complete: `&copy=2` and `&copyx` stay as they are."""
    name = reference[0]
    if name[1] != "#":
        return html5.get(name[1:], name)
    if name[2] not in "xX" and len(name) < 8 and (_SPACE <= (number := int(name[2:].rstrip(";"))) <= _TILDE):
        return chr(number)
    return unescape(name) if len(name) < _MOST_DIGITS else "\ufffd"
