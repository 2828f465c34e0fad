"""What a page says: where it leads, what its links are relative to, and what it asks of robots.

Step 6 of the way of a URL. It reads tags (markup.py) of bytes whose encoding is known (encoding.py) and resolves nothing:
links are given as they stand, for whoever keeps a table of them resolves only the new ones.

Read as HTML: text/html, application/xhtml+xml (in the wild it is HTML with slashes), and what comes without a type but
begins as HTML does. All else has no links.
"""

import re
from typing import NamedTuple

from trapline.fetch.encoding import UTF_8, decode, encoding_of, in_encoding
from trapline.fetch.links import Links
from trapline.fetch.markup import Rows, text, values
from trapline.fetch.tags.kernels import AREA, BASE, LINK, META, A

MOST_LINKS = 50_000  # of a page, as many as a sitemap may have; what stands behind them is not read
NOINDEX, NOFOLLOW, NOARCHIVE = 1, 2, 4
MARKS = {
    "noindex": NOINDEX,
    "nofollow": NOFOLLOW,
    "none": NOINDEX | NOFOLLOW,
    "noarchive": NOARCHIVE,
    "nocache": NOARCHIVE,
}

_HTML = frozenset({"text/html", "application/xhtml+xml"})
# The first tags that the MIME Sniffing standard takes for HTML, section 7.1.
_BEGINS_AS_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?[ \t\n\f\r]*+(?:<!--|<\?xml|"
    rb"<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[ >])",
    re.IGNORECASE,
)
# HTML, "shared declarative refresh steps": the seconds, a separator, `url=` or not, quotes or not.
_REFRESH = re.compile(
    r"""[ \t\n\f\r]*+(?:[0-9]++|(?=\.))[0-9.]*+(?=[;, \t\n\f\r])[ \t\n\f\r]*+[;,]?+[ \t\n\f\r]*+"""
    r"""(?:url[ \t\n\f\r]*+=[ \t\n\f\r]*+)?+(?:"([^"]*+)|'([^']*+)|(.++))""",
    re.IGNORECASE | re.DOTALL,
)


class PageFacts(NamedTuple):
    links: Links  # as they stand, trimmed, in the order of the source and repeated if they are; a canonical and a refresh among them
    base: str | None  # what links are relative to, itself relative to the page's URL
    marks: int  # NOINDEX, NOFOLLOW, NOARCHIVE. The links are given even so


def is_html(mime: str, body: bytes) -> bool:
    """Whether a body is to be read as HTML: by its type, or if it has none by its first tag."""
    return mime in _HTML or (not mime and _BEGINS_AS_HTML.match(body) is not None)


_rows = Rows()


def read_page(body: bytes, charset: str | None, agent: str = "trapline", most: int = MOST_LINKS) -> PageFacts:
    """What a page of HTML says, up to its `most`-th link. `charset` is that of its Content-Type; `agent` the name that robots' rules
    call us by.

    >>> facts = read_page(b'<base href=/d/><meta name=robots content=noindex><a href="x">1</a><a href=y rel=nofollow>', None)
    >>> list(facts.links), facts.base, facts.marks
    (['x'], '/d/', 1)
    """
    encoding = encoding_of(body, charset)
    html = body if encoding == UTF_8 else decode(body, encoding).encode()
    page = _Reader(agent)
    hrefs, others = _rows.tags(html, page.agent.encode(), most)
    links = Links(html, hrefs.copy())
    for kind, start, end, place in others:
        page.take(kind, values(html[start:end].decode("utf-8", "replace")), place)
    if others:
        links = links.completed(page.links)
    if encoding != UTF_8:
        links = Links.of([in_encoding(link, encoding) for link in links])
    return PageFacts(links, page.base, page.marks)


class _Reader:
    """One page while its tags come in, those that had to be taken apart."""

    def __init__(self, agent: str) -> None:
        self.agent = agent.lower()
        self.links: dict[int, str] = {}  # links, by the place of their tag
        self.base: str | None = None
        self.marks = 0
        self._has_canonical = self._has_refresh = False  # of several the first counts

    def take(self, kind: int, attributes: dict[str, str], place: int) -> None:
        if kind == META:
            self._meta(attributes, place)
        elif kind == LINK:
            self._link(attributes, place)
        elif kind == BASE:
            if self.base is None and "href" in attributes:
                self.base = text(attributes["href"])
        elif kind in (A, AREA):
            if "href" in attributes and "nofollow" not in _words(attributes.get("rel")):
                self.links[place] = text(attributes["href"])
        elif address := text(attributes.get("src", "")):  # of a frame; without one it is empty
            self.links[place] = address

    def _link(self, attributes: dict[str, str], place: int) -> None:
        address = text(attributes.get("href", ""))
        if address and not self._has_canonical and "canonical" in _words(attributes.get("rel")):
            self.links[place], self._has_canonical = address, True

    def _meta(self, attributes: dict[str, str], place: int) -> None:
        if text(attributes.get("name", "")).lower() in ("robots", self.agent):
            self.marks |= marks_of(text(attributes.get("content", "")).split(","))
        elif not self._has_refresh and attributes.get("http-equiv", "").lower() == "refresh":
            target = _refresh_target(text(attributes.get("content", "")))
            self._has_refresh = target is not None
            self.links.update({place: target} if target else {})


def marks_of(rules: list[str]) -> int:
    """The marks that the rules ask for, all together: restrictions add up, and what is unknown asks for nothing."""
    marks = 0
    for rule in rules:
        marks |= MARKS.get(rule.strip().lower(), 0)
    return marks


def _words(value: str | None) -> list[str]:
    return text(value).lower().split() if value else []


def _refresh_target(content: str) -> str | None:
    """The URL of a refresh. None: it has none, or is none."""
    found = _REFRESH.match(content)
    target = found and next(group for group in found.groups() if group is not None)
    return target.strip(" \t\n\f\r") or None if target else None
