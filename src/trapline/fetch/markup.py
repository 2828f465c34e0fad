"""HTML as tags: those that can lead somewhere, in the order of the source, and their attributes.

Step 6 of the way of a URL, its lower half; what the tags mean is page.py's. It is the tokenizer of the HTML standard and
not its tree: a tree costs time and memory that grow with the square of the nesting, and links do not depend on it
(docs/decisions/017). One compiled pass over the bytes finds all tags, whatever the bytes.

Not seen, as in a browser whose scripts are off: what is in comments, scripts, styles, title, textarea, iframe, noembed,
noframes, xmp, template, and behind plaintext. Seen: noscript. Differs from a browser, which builds the tree: links beside
framesets and frames outside them are seen, and title, style and plaintext inside svg or math are taken for HTML's own.
"""

import re
from html import unescape
from html.entities import html5
from typing import NamedTuple

import numpy as np

from trapline.fetch.tags.kernels import find_tags
from trapline.frontier.layout import Array
from trapline.jit import ready

_VALUE = r"""[ \t\n\f\r]*+=[ \t\n\f\r]*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|(?!["'])([^ \t\n\f\r>]*+))"""
_ATTRIBUTE = r"([^ \t\n\f\r/>][^ \t\n\f\r/>=]*+)(?:" + _VALUE + r")?"
_UNNAMED = re.sub(r"(?<!\\)\((?!\?)", "(?:", _ATTRIBUTE)  # the same without groups
ATTRIBUTES = r"(?:[ \t\n\f\r/]++|" + _UNNAMED + r")*+"  # of a tag, to its `>` or the end of all
_ATTRIBUTE_OF = re.compile(_ATTRIBUTE)
_REFERENCE = re.compile(r"&(?:#(?:[0-9]+|[xX][0-9a-fA-F]+);?|[a-zA-Z][a-zA-Z0-9]*+(?:;|(?!=)))")
_MOST_DIGITS = 100  # of a number that stands for a character; Python refuses to read thousands

_MOST_ROWS = 4096  # that room is kept for


class Tags(NamedTuple):
    """Where the tags of a page are that may lead somewhere. Of links as most are, where the value itself is."""

    hrefs: Array  # start, end; or NOT_YET, for it must be made from one of the others. Overwritten by the next page
    others: list[list[int]]  # kind, start and end of the attributes, place in hrefs


class Rows:
    """Room for the tags of one page, used again for the next; what a page of a million tags needed is not kept.

    Without room for a single href it takes none, and all tags, whatever they are, are among the others.
    """

    def __init__(self, rows: int = 64, hrefs: int = 256) -> None:
        self._usual = rows, hrefs
        self._counts = np.zeros(3, np.int64)
        self._make_room(rows, hrefs)

    def _make_room(self, rows: int, hrefs: int) -> None:
        self._rows, self._hrefs = np.zeros((rows, 4), np.int32), np.zeros((hrefs, 2), np.int32)

    def tags(self, html: bytes, agent: bytes, most: int) -> Tags:
        """The first `most`, without those meta and link tags that cannot matter to a robot of this name, in small letters."""
        if not html:
            return Tags(self._hrefs[:0], [])
        ready()
        text_bytes, agent_bytes = np.frombuffer(html, np.uint8), np.frombuffer(agent, np.uint8)
        while not find_tags(text_bytes, self._rows, self._hrefs, self._counts, agent_bytes, most):
            self._make_room(4 * len(self._rows), 4 * len(self._hrefs))
        rows, hrefs, _ = self._counts.tolist()
        found = Tags(self._hrefs[:hrefs], self._rows[:rows].tolist())
        if len(self._rows) > _MOST_ROWS:
            self._make_room(*self._usual)
        return found


def any_case(name: str) -> str:
    """A pattern for a name in capitals or not; several times faster than the flag that says so for all of a pattern.

    >>> any_case("h1")
    '[hH]1'
    """
    return "".join(f"[{char}{char.upper()}]" if char.isalpha() else char for char in name)


def values(attributes: str) -> dict[str, str]:
    """Attributes by name, in lower case; of two of one name the first. Values as they stand.

    >>> values(" HREF = 'a ' rel=nofollow href=c")
    {'href': 'a ', 'rel': 'nofollow'}
    """
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE_OF.findall(attributes):
        found.setdefault(name.lower(), double or single or bare)
    return found


def text(value: str) -> str:
    """A value as it is meant: character references replaced, white space at its ends gone.

    >>> text(" /a?b=1&amp;copy=2&lang=&eacute; ")
    '/a?b=1&copy=2&lang=é'
    """
    if "&" in value:
        value = _REFERENCE.sub(_character, value)
    return value.replace("\0", "\ufffd").strip(" \t\n\f\r")


def _character(reference: re.Match[str]) -> str:
    """In an attribute a name counts only if it is whole: `&copy=2` and `&copyx` are no signs of copyright."""
    name = reference[0]
    if name[1] != "#":
        return html5.get(name[1:], name)
    return unescape(name) if len(name) < _MOST_DIGITS else "\ufffd"
