"""What a page says: where it leads, what its links are relative to, and what it asks of robots.

Step 6 of the way of a URL. It reads tags (markup.py) of bytes as they came, decodes only values that need it (encoding.py), and
resolves nothing: links are given as they stand, for whoever keeps a table of them resolves only the new ones. How much of a page is
read is bounded, so that no page stops a crawl (docs/decisions/034).

Read as HTML: text/html, application/xhtml+xml (in the wild it is HTML with slashes), and what comes without a type but
begins as HTML does. All else has no links.
"""

import re
from typing import NamedTuple

from trapline.fetch.encoding import UTF_8, decode, encoding_of, in_encoding, is_ascii_based, query_encoding
from trapline.fetch.links import Links
from trapline.fetch.markup import ALL_BYTES, ASCII_ALONE, BYTES_OF_A_PAGE, Rows, resolved, text
from trapline.fetch.tags.kernels import AREA, BASE, FRAME, HREF, IFRAME, KIND, LINK, META, PLACE, REL, VALUES, A

MOST_LINKS = 50_000  # of a page, as many as a sitemap may have; what stands behind them is not read
MOST_TRANSCODED = 1 << 20  # bytes of a page in UTF-16 or ISO-2022-JP, which must become UTF-8 as a whole
MOST_RULES = 32  # of a robots meta
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
_BLANKS = re.compile(r"[ \t\n\f\r]+")
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


_LINK_VALUES = ("href", "rel")
_VALUES = {
    **dict.fromkeys((A, AREA, LINK, BASE), _LINK_VALUES),
    **dict.fromkeys((FRAME, IFRAME), ("src",)),
    META: ("content", "name", "http-equiv"),
}  # as they stand in a row of tags/kernels.py
_rows = Rows()


def read_page(body: bytes, charset: str | None, agent: str = "trapline", most: int = MOST_LINKS) -> PageFacts:
    """What a page of HTML says, up to its `most`-th link. `charset` is that of its Content-Type; `agent` the name that robots' rules
    call us by.

    >>> facts = read_page(b'<base href=/d/><meta name=robots content=noindex><a href="x">1</a><a href=y rel=nofollow>', None)
    >>> list(facts.links), facts.base, facts.marks
    (['x'], '/d/', 1)
    """
    html = body = body if len(body) <= BYTES_OF_A_PAGE else body[:BYTES_OF_A_PAGE]
    encoding = encoding_of(body, charset)
    usable = ALL_BYTES if encoding.startswith("utf-") else ASCII_ALONE
    if not is_ascii_based(encoding):
        html, encoding = decode(body[:MOST_TRANSCODED], encoding).encode("utf-8", "replace"), UTF_8
    agent = agent.lower()
    tags = _rows.tags(html, agent.encode(), most, usable)
    links = Links(html, tags.hrefs.copy())
    if not len(tags.others):
        return PageFacts(links, None, 0)
    page = _Reader(agent)
    for row in tags.rows():
        if row[KIND] <= AREA and row[REL] < 0:  # most of them: a link of which only the address must be decoded
            page.links[row[PLACE]] = text(decode(html[row[HREF] : row[HREF + 1]], encoding))
        else:
            page.take(row[KIND], _attributes(html, row, encoding), row[PLACE])
    return PageFacts(links.completed(_as_sent(page.links, body, charset)), page.base, page.marks)


def _attributes(html: bytes, row: list[int], encoding: str) -> dict[str, str]:
    """The values that count of a tag, by name."""
    found, at = {}, VALUES
    for name in _VALUES[row[KIND]]:
        if row[at] >= 0:
            found[name] = decode(html[row[at] : row[at + 1]], encoding)
        at += 2
    return found


def _as_sent(links: dict[int, str], body: bytes, charset: str | None) -> dict[int, str]:
    """Links with their queries in the encoding of the page. It is found out only if a link has a query that depends on it."""
    if all(link.isascii() for link in links.values()):
        return links
    encoding = query_encoding(body, charset)
    return {place: in_encoding(link, encoding) for place, link in links.items()}


class _Reader:
    """One page while its tags come in, those that had to be taken apart."""

    def __init__(self, agent: str) -> None:
        self.agent = agent  # in small letters
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
            self.marks |= marks_of(text(attributes.get("content", "")).split(",", MOST_RULES))
        elif not self._has_refresh and resolved(attributes.get("http-equiv", "")).lower() == "refresh":
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
    return _BLANKS.split(text(value).lower()) if value else []


def _refresh_target(content: str) -> str | None:
    """The URL of a refresh. None: it has none, or is none."""
    found = _REFRESH.match(content)
    target = found and next(group for group in found.groups() if group is not None)
    return target.strip(" \t\n\f\r") or None if target else None
