"""Requisites: files that a browser loads to show a page; and those that a stylesheet names with `@import`, `url(...)` and
`image-set(...)`. Part of step 6 in docs/architecture.md. html/requisites.py reads those of a page; which of them are fetched is decided
in crawler/requisites/.

One pass over the text finds comments, strings and the tokens that hold URLs (CSS Syntax Level 3, section 4), and reads nothing
else. The time is linear whatever the text is: no part of a pattern gives back what it has matched, and no search begins again inside
a run of characters that it has read in vain. A `Budget` bounds the text and the steps in Python. URLs are returned as written, without
their escapes; the caller resolves them.

Left out: `@namespace`, whose URL is a name; and fragments (`url(#id)`), which are parts of the stylesheet or page itself. Differs
from the standard: a function name that is written with escapes (`u\\72l(...)`) is not recognised.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trapline.fetch.urls import MOST_TEXT

STYLESHEET, IMAGE, SCRIPT, ICON, MEDIA, FILE = "stylesheet", "image", "script", "icon", "media", "file"
"""Roles of a requisite. FILE: any other, such as a font, a manifest, or an image that a style names."""
MOST_OF_A_PAGE = 5_000  # requisites of a page or of a stylesheet; the others are ignored
MOST_CHARACTERS = 2 << 20  # of the styles of a page or stylesheet; the rest is not read
# Tags, attributes, tokens, URLs, escapes and character references. The hostile texts of the tests took at most 0.4 s.
MOST_STEPS = 100_000

_NOT_REQUESTED = ("data:", "about", "blob:")  # a data URL holds the file itself


class Requisite(NamedTuple):
    role: str
    href: str  # as written, without character references or escapes


class Budget:
    """What may still be read of one page or stylesheet: characters of styles, and steps."""

    __slots__ = ("characters", "steps")

    def __init__(self) -> None:
        self.characters, self.steps = MOST_CHARACTERS, MOST_STEPS

    def allows(self, steps: int) -> bool:
        """Charge these steps, and return whether the budget covers them."""
        self.steps -= steps
        return self.steps >= 0


def is_usable(href: str) -> bool:
    """Return whether a reference may be a URL to request.

    >>> is_usable("a.png"), is_usable("data:image/png;base64,AAAA"), is_usable("#shape")
    (True, False, False)
    """
    return 0 < len(href) <= MOST_TEXT and href[0] != "#" and href[:5].lower() not in _NOT_REQUESTED


def distinct(found: Iterable[Requisite], budget: Budget) -> list[Requisite]:
    """Return the usable requisites, each once, up to MOST_OF_A_PAGE and as far as the budget allows."""
    by_href: dict[str, Requisite] = {}
    for requisite in found:
        if not budget.allows(1) or len(by_href) == MOST_OF_A_PAGE:
            break
        if is_usable(requisite.href):
            by_href.setdefault(requisite.href, requisite)
    return list(by_href.values())


# ---- styles

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
_IN_PARENTHESES = rf"\((?:[^\"'()]++|{_STRING})*+\)?+"
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
            rf"-set\((?<=image-set\()(?:[^\"'();{{}}]++|{_STRING}|{_IN_PARENTHESES})*+",
        )
    )
)
# An alternative that began with a repetition, such as the letters of a name, would read the rest of a run again from each of them.
_IN_SET = re.compile(rf"[uU](?<![{_NAME}][uU])[rR][lL]{_IN_PARENTHESES}|{_IN_PARENTHESES}|{_STRING}")
_LEADING = re.compile(_GAP)
_VALUE = re.compile(rf"""[{_BLANKS}]*+(?:"({_IN_DOUBLE})|'({_IN_SINGLE})|({_BARE}))""")
_ESCAPED = re.compile(rf"\\(?:([0-9a-fA-F]{{1,6}})(?:\r\n|[{_BLANKS}])?|(\r\n|[\n\r\f])|([\s\S]))")


def read_style(css: str) -> list[Requisite]:
    """Return the files that a stylesheet names, each once, in order.

    >>> found = read_style('@import "a.css"; /* url(no) */ b { background: URL( c.png ), image-set("d.png" 2x) }')
    >>> [requisite.href for requisite in found]
    ['a.css', 'c.png', 'd.png']
    """
    budget = Budget()
    return distinct(style_requisites(css, budget), budget)


def style_requisites(css: str, budget: Budget) -> Iterator[Requisite]:
    """Yield the files that a style names, in order, with repetitions, as far as the budget allows."""
    end = min(len(css), budget.characters)
    budget.characters -= end
    for token in _TOKEN.finditer(css, 0, end):
        if not budget.allows(1):
            return
        for role, value in _values(token[0], budget):
            found = _VALUE.match(value)
            assert found is not None  # every part of the pattern may be empty
            href = (found[1] or found[2] or found[3] or "").strip(_BLANKS)
            if "\\" in href and is_usable(href):
                if not budget.allows(href.count("\\")):
                    return
                href = _ESCAPED.sub(_character, href)
            yield Requisite(role, href)


def _values(token: str, budget: Budget) -> Iterator[tuple[str, str]]:
    """Yield the role and the text of each URL in a token, as far as the budget allows."""
    first = token[0]
    if first in "uU":
        yield FILE, token[4:]
    elif first == "@" and token[1] in "iI":
        value = _LEADING.sub("", token[7:], 1)
        if value:
            yield STYLESHEET, value[4:] if value[0] in "uU" else value
    elif first == "-":
        for part in (found[0] for found in _IN_SET.finditer(token, 5)):
            if not budget.allows(1):
                return
            if part[0] in "\"'":
                yield FILE, part
            elif part[:4].lower() == "url(":
                yield FILE, part[4:]


def _character(escape: re.Match[str]) -> str:
    code, line_break, char = escape.groups()
    if code:
        number = int(code, 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return "" if line_break else char
