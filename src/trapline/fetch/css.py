"""Requisites that a stylesheet names with `@import`, `url(...)` and `image-set(...)`. Part of step 6 in docs/architecture.md.

One pass over the text finds comments, strings and the tokens that hold URLs (CSS Syntax Level 3, section 4), and reads nothing
else. No part of the pattern gives back what it has matched, so the time is linear whatever the text is. URLs are returned as
written, without their escapes; the caller resolves them.

Left out: `@namespace`, whose URL is a name; and fragments (`url(#id)`), which are parts of the stylesheet or page itself. Differs
from the standard: a function name that is written with escapes (`u\\72l(...)`) is not recognised.
"""

import re
from collections.abc import Iterator
from itertools import islice

from trapline.fetch.requisite import FILE, STYLESHEET, Requisite, is_usable

# The rest of a stylesheet is not read. Reading this much took up to 0.5 s in a test of twenty hostile texts, and 1.2 s if URLs consist of
# escapes.
MOST_CHARACTERS = 2 << 20
MOST_TOKENS = 100_000  # comments, strings and URLs

_BLANKS = " \t\n\r\f"
_ESCAPE = r"\\(?:\r\n|[\s\S])"
_IN_DOUBLE = rf'(?:[^"\\\n\r\f]++|{_ESCAPE})*+'  # a string also ends at the end of its line
_IN_SINGLE = rf"(?:[^'\\\n\r\f]++|{_ESCAPE})*+"
_BARE = rf"(?:[^\"'()\\{_BLANKS}]++|{_ESCAPE})*+"
_STRING = rf"""(?:"{_IN_DOUBLE}"?+|'{_IN_SINGLE}'?+)"""
_COMMENT = r"/\*(?:[^*]++|\*(?!/))*+(?:\*/)?+"
_GAP = rf"(?:[{_BLANKS}]++|{_COMMENT})*+"
_ARGUMENT = rf"\([{_BLANKS}]*+(?:{_STRING}|{_BARE})"  # of url
_NAME = r"A-Za-z0-9_\-\\\x80-\U0010ffff"  # characters of a name: `curl(` is another function than `url(`
# Each alternative begins with a literal, so that the search skips to the next of these characters.
_TOKEN = re.compile(
    "|".join(
        (
            _COMMENT,
            _STRING[3:-1],
            rf"u(?<![{_NAME}]u)[rR][lL]{_ARGUMENT}",
            rf"U(?<![{_NAME}]U)[rR][lL]{_ARGUMENT}",
            rf"@[iI][mM][pP][oO][rR][tT](?![{_NAME}]){_GAP}(?:[uU][rR][lL]{_ARGUMENT}|{_STRING})?+",
            rf"@[nN][aA][mM][eE][sS][pP][aA][cC][eE](?![{_NAME}])(?:[^;{{}}\"'/]++|{_STRING}|{_COMMENT}|/)*+",
            rf"-set\((?<=image-set\()(?:[^\"'();{{}}]++|{_STRING}|\((?:[^\"'()]++|{_STRING})*+\)?+)*+",
        )
    )
)
_IN_SET = re.compile(rf"[A-Za-z-]*+\((?:[^\"'()]++|{_STRING})*+\)?+|{_STRING}")
_VALUE = re.compile(rf"""[{_BLANKS}]*+(?:"({_IN_DOUBLE})|'({_IN_SINGLE})|({_BARE}))""")
_ESCAPED = re.compile(rf"\\(?:([0-9a-fA-F]{{1,6}})(?:\r\n|[{_BLANKS}])?|(\r\n|[\n\r\f])|([\s\S]))")


def style_requisites(css: str) -> Iterator[Requisite]:
    """Yield the files that a stylesheet names, in order, with repetitions.

    >>> found = style_requisites('@import "a.css"; /* url(no) */ b { background: URL( c.png ), image-set("d.png" 2x) }')
    >>> [requisite.href for requisite in found]
    ['a.css', 'c.png', 'd.png']
    """
    for token in islice(_TOKEN.finditer(css, 0, MOST_CHARACTERS), MOST_TOKENS):
        text = token[0]
        first = text[0]
        if first in "uU":
            yield from _named(text[4:], FILE)
        elif first == "@":
            if text[1] in "iI":
                yield from _imported(text)
        elif first == "-":
            yield from _in_set(text)


def _imported(text: str) -> Iterator[Requisite]:
    value = (re.sub(_COMMENT, " ", text[7:]) if "/*" in text else text[7:]).lstrip(_BLANKS)
    if value:
        yield from _named(value[4:] if value[0] in "uU" else value, STYLESHEET)


def _in_set(text: str) -> Iterator[Requisite]:
    for part in _IN_SET.findall(text, 5):
        if part[0] in "\"'":
            yield from _named(part, FILE)
        elif part[:4].lower() == "url(":
            yield from _named(part[4:], FILE)


def _named(value: str, role: str) -> Iterator[Requisite]:
    found = _VALUE.match(value)
    assert found is not None  # every part of the pattern may be empty
    href = (found[1] or found[2] or found[3] or "").strip(_BLANKS)
    if is_usable(href):
        yield Requisite(role, _ESCAPED.sub(_character, href) if "\\" in href else href)


def _character(escape: re.Match[str]) -> str:
    code, line_break, char = escape.groups()
    if code:
        number = int(code, 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return "" if line_break else char
