"""Requisites of an HTML page: the files that a browser loads to show it, as written on the page. Part of step 6 in docs/architecture.md.

Stylesheets, images (also srcset), scripts, icons, media, and what styles within the page name (fetch/css.py). Frames are no
requisites but links (page.py): they are pages. Neither are files that scripts load, because scripts are not run. The caller
resolves and requests the files; the requisites of a stylesheet are found when it arrives.
"""

import re
from collections.abc import Iterator

from trapline.fetch.css import (
    FILE,
    ICON,
    IMAGE,
    MEDIA,
    SCRIPT,
    STYLESHEET,
    Budget,
    Requisite,
    distinct,
    style_requisites,
)
from trapline.fetch.html.encoding import decode
from trapline.fetch.html.markup import BYTES_OF_A_PAGE, text, values
from trapline.fetch.html.page import ascii_based
from trapline.fetch.html.requisite_tags import ATTRIBUTES, CONTENT_END, COUNT, END, NAME, requisite_rows

MOST_STYLE = 64 * 1024  # characters of a style attribute; the rest is not read

_BLANKS = re.compile(r"[ \t\n\f\r]+")
# An item of srcset: a URL, then descriptors up to a comma that is not in parentheses (HTML, "parse a srcset attribute").
_SRCSET_URL = re.compile(r"[ \t\n\f\r,]*+([^ \t\n\f\r]++)")
_DESCRIPTORS = re.compile(r"[^,(]*+(?:\([^)]*+\)?+[^,(]*+)*+")
_OF_ATTRIBUTES = {
    "audio": (("src", MEDIA),),
    "embed": (("src", MEDIA),),
    "feimage": (("href", IMAGE), ("xlink:href", IMAGE)),
    "image": (("href", IMAGE), ("xlink:href", IMAGE), ("src", IMAGE)),
    "img": (("src", IMAGE),),
    "input": (("src", IMAGE),),
    "object": (("data", MEDIA),),
    "script": (("src", SCRIPT), ("href", SCRIPT), ("xlink:href", SCRIPT)),
    "source": (("src", MEDIA),),
    "track": (("src", MEDIA),),
    "use": (("href", IMAGE), ("xlink:href", IMAGE)),
    "video": (("src", MEDIA), ("poster", IMAGE)),
}
# Words of `rel`. Other relations lead to pages, or prepare for pages that may follow.
_RELATIONS = {
    "stylesheet": STYLESHEET,
    "icon": ICON,
    "apple-touch-icon": ICON,
    "apple-touch-icon-precomposed": ICON,
    "apple-touch-startup-image": ICON,
    "mask-icon": ICON,
    "manifest": FILE,
    "modulepreload": SCRIPT,
    "preload": FILE,
}
_SEARCH_TYPE = (
    "application/opensearchdescription+xml"  # a link to the site's search; with another type, it leads to a page
)


def read_requisites(body: bytes, charset: str | None) -> list[Requisite]:
    """Return the requisites that an HTML page names, each once, in source order. `charset`: from its Content-Type.

    >>> page = b"<link rel=stylesheet href=a.css><img src=b.png srcset='c.png 2x'><p style='background: url(d.png)'>"
    >>> [requisite.href for requisite in read_requisites(page, None)]
    ['a.css', 'b.png', 'c.png', 'd.png']
    """
    html, encoding, _ = ascii_based(body[:BYTES_OF_A_PAGE], charset)
    budget = Budget()
    return distinct((one for row in requisite_rows(html) for one in _of_tag(html, row, encoding, budget)), budget)


def _of_tag(html: bytes, row: list[int], encoding: str, budget: Budget) -> Iterator[Requisite]:
    start, end = row[ATTRIBUTES], row[END]
    if not budget.allows(1 + row[COUNT] + html.count(b"&", start, end)):
        return
    name = html[row[NAME] : start].decode("latin-1").lower()
    if name == "style":
        yield from style_requisites(decode(html[end + 1 : row[CONTENT_END]], encoding), budget)
    # Values are split in Latin-1, which keeps all bytes, and decoded one by one.
    raw = values(html[start:end].decode("latin-1"))
    given = {key: text(decode(value.encode("latin-1"), encoding)) for key, value in raw.items() if key in _USED}
    if name == "link":
        yield from _of_link(given)
    for key, role in _OF_ATTRIBUTES.get(name, ()):
        if key in given:
            yield Requisite(role, given[key])
    if name in ("img", "source"):
        yield from (Requisite(IMAGE, url) for url in _srcset(given.get("srcset", "")))
    if "background" in given:
        yield Requisite(IMAGE, given["background"])
    if "url" in given.get("style", "").lower():
        yield from style_requisites(given["style"][:MOST_STYLE], budget)


_USED = {"style", "background", "rel", "type", "href", "imagesrcset", "srcset"}
_USED.update(key for attributes in _OF_ATTRIBUTES.values() for key, _ in attributes)


def _of_link(given: dict[str, str]) -> Iterator[Requisite]:
    roles = [_RELATIONS[word] for word in _BLANKS.split(given.get("rel", "").lower()) if word in _RELATIONS]
    if not roles and given.get("type", "").lower() == _SEARCH_TYPE:
        roles = [FILE]
    if roles:
        yield Requisite(roles[0], given.get("href", ""))
        yield from (Requisite(IMAGE, url) for url in _srcset(given.get("imagesrcset", "")))


def _srcset(value: str) -> Iterator[str]:
    """
    >>> list(_srcset("a.png, b,c.png 2x , d.png 100w"))
    ['a.png', 'b,c.png', 'd.png']
    """
    at = 0
    while (found := _SRCSET_URL.match(value, at)) is not None:
        url = found[1].rstrip(",")
        if url:
            yield url
        at = found.end()
        if url == found[1]:
            rest = _DESCRIPTORS.match(value, at)
            at = rest.end() if rest else at
