"""Parser of HTML pages: links, base URL, and directives to robots. Step 6 in docs/architecture.md.

The parser reads tags (markup.py) from the bytes as received, and decodes only the values that need it (encoding.py). It resolves no
links, but returns them as written: the caller keeps a table of links, and resolves only new ones. The amount read of a page is bounded,
so that no page can stop a crawl (docs/decisions/034).

Read as HTML: text/html, application/xhtml+xml (on the real web it is HTML with slashes), and bodies without a type that begin like
HTML. Everything else has no links.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from trapline.fetch.html.encoding import UTF_8, decode, encoding_of, in_encoding, is_ascii_based, query_encoding
from trapline.fetch.html.kernels import (
    AREA,
    BASE,
    FRAME,
    HREF,
    IFRAME,
    KIND,
    LINK,
    META,
    PLACE,
    REL,
    VALUES,
    A,
    gather_links,
)
from trapline.fetch.html.markup import ALL_BYTES, ASCII_ALONE, BYTES_OF_A_PAGE, ThreadRows, resolved, text
from trapline.frontier.layout import Array

# ---- Links as written on a page, as offsets into its bytes, so that links seen before need not become strings.
#
# Between steps 6 and 1 in docs/architecture.md: the parser below finds the links, the link resolver looks them up.

_FEW = 3


class Links:
    """A sequence of links. Iterate to get strings.

    >>> list(Links.of(["/a", "?ü"]).followed_by(["b"]))
    ['/a', '?ü', 'b']
    """

    __slots__ = ("spans", "text")

    def __init__(self, text: bytes, spans: Array) -> None:
        self.text = text  # presumably UTF-8
        self.spans = spans  # int32: start and end of each link

    @classmethod
    def of(cls, links: Sequence[str]) -> "Links":
        texts = [link.encode("utf-8", "replace") for link in links]
        spans = np.zeros((len(texts), 2), np.int32)
        np.cumsum([*map(len, texts)], out=spans[:, 1], dtype=np.int32)
        spans[1:, 0] = spans[:-1, 1]
        return cls(b"".join(texts), spans)

    def __len__(self) -> int:
        return len(self.spans)

    def __getitem__(self, at: int) -> str:
        start, end = self.spans[at].tolist()
        return self.text[start:end].decode("utf-8", "replace")

    def some(self, places: Sequence[int]) -> list[str]:
        """Return the links at these indexes. Many at once take a third of the time of one by one."""
        if len(places) <= _FEW:
            return [self[at] for at in places]
        return [self.text[start:end].decode("utf-8", "replace") for start, end in self.spans[places].tolist()]

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(len(self)))

    def completed(self, links: Mapping[int, str]) -> "Links":
        """Return the links with those at the given indexes filled in, and without those that are still missing.

        Of the page's text, only the links are kept.
        """
        more = Links.of(tuple(links.values()))
        lengths = self.spans[:, 1] - self.spans[:, 0]
        out, spans = np.empty(int(lengths.sum()), np.uint8), np.empty_like(self.spans)
        length = gather_links(np.frombuffer(self.text, np.uint8), self.spans, out, spans)
        spans[list(links)] = more.spans + length
        return Links(out.tobytes() + more.text, spans[spans[:, 0] >= 0])

    def followed_by(self, links: Sequence[str]) -> "Links":
        if not links:
            return self
        more = Links.of(links)
        return Links(self.text + more.text, np.concatenate((self.spans, more.spans + len(self.text))))


NO_LINKS = Links.of(())


# ---- Parser of pages

MOST_LINKS = 50_000  # per page, as many as a sitemap may have; the rest of the page is not read
MOST_TRANSCODED = 1 << 20  # bytes read of a page in UTF-16 or ISO-2022-JP, which must be converted to UTF-8 as a whole
MOST_RULES = 32  # per robots meta
NOINDEX, NOFOLLOW, NOARCHIVE = 1, 2, 4
MARKS = {
    "noindex": NOINDEX,
    "nofollow": NOFOLLOW,
    "none": NOINDEX | NOFOLLOW,
    "noarchive": NOARCHIVE,
    "nocache": NOARCHIVE,
}

_HTML = frozenset({"text/html", "application/xhtml+xml"})
# The first tags by which the MIME Sniffing standard recognises HTML, section 7.1.
_BEGINS_AS_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?[ \t\n\f\r]*+(?:<!--|<\?xml|"
    rb"<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)[ >])",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[ \t\n\f\r]+")
# HTML, "shared declarative refresh steps": seconds, a separator, an optional `url=`, optional quotes.
_REFRESH = re.compile(
    r"""[ \t\n\f\r]*+(?:[0-9]++|(?=\.))[0-9.]*+(?=[;, \t\n\f\r])[ \t\n\f\r]*+[;,]?+[ \t\n\f\r]*+"""
    r"""(?:url[ \t\n\f\r]*+=[ \t\n\f\r]*+)?+(?:"([^"]*+)|'([^']*+)|(.++))""",
    re.IGNORECASE | re.DOTALL,
)


class PageFacts(NamedTuple):
    links: Links  # as written, trimmed, in source order, with repetitions; includes the canonical link and a refresh
    base: str | None  # base of the links, itself relative to the page's URL
    marks: int  # NOINDEX, NOFOLLOW, NOARCHIVE; links are returned even with NOFOLLOW
    has_relations: bool  # whether a <link> may name a feed, a sitemap, a schedule or a hub


def is_html(mime: str, body: bytes) -> bool:
    """Return whether a body is HTML: by its type, or by its first tag if it has no type."""
    return mime in _HTML or (not mime and _BEGINS_AS_HTML.match(body) is not None)


_LINK_VALUES = ("href", "rel")
# In the order of a row in kernels.py
_VALUES = {
    **dict.fromkeys((A, AREA, LINK, BASE), _LINK_VALUES),
    **dict.fromkeys((FRAME, IFRAME), ("src",)),
    META: ("content", "name", "http-equiv"),
}
_rows = ThreadRows()


def read_page(body: bytes, charset: str | None, agent: str = "trapline", most: int = MOST_LINKS) -> PageFacts:
    """Parse an HTML page, up to its `most`-th link. `charset`: from its Content-Type. `agent`: our name in rules for robots.

    >>> facts = read_page(b'<base href=/d/><meta name=robots content=noindex><a href="x">1</a><a href=y rel=nofollow>', None)
    >>> list(facts.links), facts.base, facts.marks
    (['x'], '/d/', 1)
    """
    body = body if len(body) <= BYTES_OF_A_PAGE else body[:BYTES_OF_A_PAGE]
    html, encoding, usable = ascii_based(body, charset)
    agent = agent.lower()
    rows = _rows.own
    tags = rows.tags(html, agent.encode(), most, usable)
    links = Links(html, tags.hrefs.copy())
    if not len(tags.others):
        return PageFacts(links, None, 0, rows.has_relations)
    page = TagReader(agent)
    for row in tags.rows():
        if row[KIND] <= AREA and row[REL] < 0:  # the usual case: a link of which only the href must be decoded
            page.links[row[PLACE]] = text(decode(html[row[HREF] : row[HREF + 1]], encoding))
        else:
            page.take(row[KIND], _attributes(html, row, encoding), row[PLACE])
    links = links.completed(with_encoded_queries(page.links, body, charset))
    return PageFacts(links, page.base, page.marks, rows.has_relations)


def ascii_based(body: bytes, charset: str | None) -> tuple[bytes, str, int]:
    """Return a page's bytes, converted to UTF-8 if its encoding is not based on ASCII; their encoding; ALL_BYTES or ASCII_ALONE."""
    encoding = encoding_of(body, charset)
    usable = ALL_BYTES if encoding.startswith("utf-") else ASCII_ALONE
    if is_ascii_based(encoding):
        return body, encoding, usable
    return decode(body[:MOST_TRANSCODED], encoding).encode("utf-8", "replace"), UTF_8, usable


def _attributes(html: bytes, row: list[int], encoding: str) -> dict[str, str]:
    """Return the relevant attribute values of a tag, by name."""
    found, at = {}, VALUES
    for name in _VALUES[row[KIND]]:
        if row[at] >= 0:
            found[name] = decode(html[row[at] : row[at + 1]], encoding)
        at += 2
    return found


def with_encoded_queries(links: dict[int, str], body: bytes, charset: str | None) -> dict[int, str]:
    """Return links with their queries in the encoding of the page, which is determined only if some link is not ASCII."""
    if all(link.isascii() for link in links.values()):
        return links
    encoding = query_encoding(body, charset)
    return {place: in_encoding(link, encoding) for place, link in links.items()}


class TagReader:
    """State of one page while its tags are read one by one. Says which of them are links to follow."""

    def __init__(self, agent: str) -> None:
        self.agent = agent  # in lower case
        self.links: dict[int, str] = {}  # links, by their index on the page
        self.base: str | None = None
        self.marks = 0
        self._has_canonical = self._has_refresh = False  # if there are several, the first counts

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
        elif address := text(attributes.get("src", "")):  # a frame; one without src is empty
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
    """Return the union of the marks of these rules: restrictions add up, and unknown rules have none."""
    marks = 0
    for rule in rules:
        marks |= MARKS.get(rule.strip().lower(), 0)
    return marks


def _words(value: str | None) -> list[str]:
    return _BLANKS.split(text(value).lower()) if value else []


def _refresh_target(content: str) -> str | None:
    """Return the URL of a refresh; None if it has none or is invalid."""
    found = _REFRESH.match(content)
    target = found and next(group for group in found.groups() if group is not None)
    return target.strip(" \t\n\f\r") or None if target else None
