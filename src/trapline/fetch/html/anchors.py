"""Links of an HTML page with all that a person wants to know of them: element, href, rel, anchor text, and whether a crawl follows them.

For exports, not for the crawl, which needs only the targets (page.py). Both use the same tags (markup.py) and the same rules
(`TagReader`), so a link that is to be followed here is one of `read_page(...).links`, in the same order. This module makes a string of
every link, and takes about ten times as long.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from trapline.fetch.html.encoding import decode
from trapline.fetch.html.kernels import AREA, FRAME, IFRAME, KIND, LINK, LONGEST_VALUE, META, VALUES, A
from trapline.fetch.html.markup import BYTES_OF_A_PAGE, ThreadRows, text, values
from trapline.fetch.html.page import TagReader, ascii_based, with_encoded_queries
from trapline.fetch.html.visible_text import one_line, visible_text

MOST_TEXT = 1_000  # characters of an anchor text
_ELEMENTS = {A: "a", AREA: "area", FRAME: "frame", IFRAME: "iframe", LINK: "link", META: "meta"}
_USED = ("href", "src", "rel", "content", "name", "http-equiv")
_BLANKS = " \t\n\f\r"
_ANCHOR_END = re.compile(rb"</?[aA](?=[ \t\n\f\r/>])")  # a link also ends where the next one begins
_ANCHOR_BYTES = 64 * 1024  # the markup of an anchor text is read up to here

_rows = ThreadRows(64, 0)


class PageLink(NamedTuple):
    element: str  # a, area, frame, iframe, link (canonical) or meta (refresh)
    href: str  # as written, without character references
    rel: str  # "": none
    text: str  # anchor text in one line; "": none
    is_nofollow: bool  # rel has nofollow


def read_anchors(body: bytes, charset: str | None, agent: str) -> list[PageLink]:
    """Return the links of an HTML page in source order. `charset`: from its Content-Type. `agent`: our name in rules for robots.

    >>> read_anchors(b'<a href="x"> One <b>link</b></a><a href=y rel="NoFollow me">2<a href=z>', None, "trapline")[0]
    PageLink(element='a', href='x', rel='', text='One link', is_nofollow=False)
    """
    body = body if len(body) <= BYTES_OF_A_PAGE else body[:BYTES_OF_A_PAGE]
    html, encoding, usable = ascii_based(body, charset)
    reader = TagReader(agent.lower())
    found: dict[int, PageLink] = {}
    for place, (kind, attributes, end) in enumerate(_tags(html, agent, encoding, usable)):
        reader.take(kind, attributes, place)
        is_link = place in reader.links
        if is_link or (kind in (A, AREA) and "href" in attributes):
            href = reader.links[place] if is_link else text(attributes["href"])
            anchor = _anchor_text(html, end + 1, encoding) if kind == A else ""
            rel = one_line(text(attributes.get("rel", "")))
            found[place] = PageLink(_ELEMENTS[kind], href, rel, anchor, not is_link)
    hrefs = with_encoded_queries({place: link.href for place, link in found.items()}, body, charset)
    return [link._replace(href=hrefs[place]) for place, link in found.items()]


def _tags(html: bytes, agent: str, encoding: str, usable: int) -> Iterator[tuple[int, dict[str, str], int]]:
    """Yield kind, attributes and end of each tag that may be a link."""
    for row in _rows.own.tags(html, agent.lower().encode(), 1, usable).rows():
        start, end = row[VALUES], row[VALUES + 1]
        # Values are split in Latin-1, which keeps all bytes, and decoded one by one, as the crawl does.
        raw = values(html[start:end].decode("latin-1"))
        usual = {name: raw[name] for name in _USED if name in raw and len(raw[name].strip(_BLANKS)) <= LONGEST_VALUE}
        yield row[KIND], {name: decode(value.encode("latin-1"), encoding) for name, value in usual.items()}, end


def _anchor_text(html: bytes, start: int, encoding: str) -> str:
    end = _ANCHOR_END.search(html, start, start + _ANCHOR_BYTES)
    markup = html[start : end.start() if end else start + _ANCHOR_BYTES]
    return one_line(visible_text(decode(markup, encoding)).text)[:MOST_TEXT]
