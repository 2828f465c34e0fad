"""Headers of an answer that say more than they weigh: its type, its links, what it asks of robots, when to come back.

Step 6 of the way of a URL. Each function takes the value as it was received (several headers of one name joined by commas)
and answers what it can make of it; nothing here raises, whatever the bytes. It knows no other part of an answer.
"""

import re
from calendar import timegm
from collections.abc import Iterator
from email.utils import parsedate_tz
from functools import lru_cache
from itertools import islice

from trapline.fetch.page import marks_of

MOST_RETRY_S = 86_400.0
_MOST_TYPE = 512  # bytes of a Content-Type that are read, and kept in the table of them

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_ODD = re.compile(r"[^\t\x20-\x7e\x80-\xff]")  # what no value of a parameter may have
# A parameter's value in quotes, in which a backslash takes the next character as it is, or up to the next semicolon.
_PARAMETER = re.compile(r';[ \t\n\r]*+([^;=]*+)(?:=(?:"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)[^;]*+|([^;]*+)))?', re.DOTALL)

# A target (without `<`, or each of them would be looked for to the end), its parameters; the parameters one by one.
_LINK = re.compile(r'<([^<>]*+)>((?:[ \t]*+;(?:[^,;"]++|"(?:[^"\\]|\\.)*+(?:"|\Z))*+)*+)', re.DOTALL)
_LINK_PARAMETER = re.compile(r';[ \t]*+([^\s=;,"]++)[ \t]*+(?:=[ \t]*+(?:"((?:[^"\\]|\\.)*+)|([^;,\s]*+)))?', re.DOTALL)
# Relations to what is not a page that people read.
_HINTS = {"preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "prerender", "expect"}
_PARTS = {"stylesheet", "icon", "apple-touch-icon", "mask-icon", "manifest", "compression-dictionary"}
_SERVICES = {"pingback", "webmention", "hub", "search", "edituri", "wlwmanifest", "service-doc", "service-desc"}
_NOT_PAGES = _HINTS | _PARTS | _SERVICES | {"describedby", "shortlink", "nofollow"}
MOST_LINKS = 1024  # of a header
_MOST_PARAMETERS = 32  # of a link
_HTML = ("", "text/html", "application/xhtml+xml")

_ESCAPES = {0xDC00 + octet: f"%{octet:02X}" for octet in range(128, 256)}  # of bytes that Python decodes to surrogates

_AGENT = re.compile(r"[ \t]*+([a-z0-9_.-]++)[ \t]*+:(.*)", re.DOTALL)
_WITH_VALUES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_SECONDS = re.compile(rb"[ \t]*(-?[0-9]+(?:\.[0-9]*)?)[ \t]*")


def content_type(value: bytes) -> tuple[str, str | None]:
    """The type, in lower case and without parameters ("" if there is none to be read), and its charset.

    >>> content_type(b'Text/HTML; Charset="utf-8"')
    ('text/html', 'utf-8')
    """
    return _content_type(value[:_MOST_TYPE])


@lru_cache(maxsize=1024)
def _content_type(value: bytes) -> tuple[str, str | None]:
    """By "parse a MIME type" of the MIME Sniffing standard."""
    text = value.decode("latin-1").strip(" \t\n\r")
    essence, _, parameters = text.partition(";")
    kind, slash, part = essence.rstrip(" \t\n\r").partition("/")
    if not (slash and _TOKEN.fullmatch(kind) and _TOKEN.fullmatch(part)):
        return "", None
    return f"{kind}/{part}".lower(), _charset(";" + parameters)


def _charset(parameters: str) -> str | None:
    for found in _PARAMETER.finditer(parameters):
        name, quoted, bare = found.groups(default="")
        charset = re.sub(r"\\(.)", r"\1", quoted) or bare.rstrip(" \t\n\r")
        if name.lower() == "charset" and (charset or found[2] is not None) and not _ODD.search(charset):
            return charset or None
    return None


def url_text(value: bytes) -> str:
    """A URL as a header has it. Bytes that are not UTF-8 are percent-encoded, as in browsers.

    >>> url_text(b"/caf\\xe9"), url_text("/café".encode())
    ('/caf%E9', '/café')
    """
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("utf-8", "surrogateescape").translate(_ESCAPES)


def link_targets(value: bytes) -> list[tuple[str, str]]:
    """Where a Link header leads that a reader might go, and by which relation (RFC 8288), in order.

    Left out: relations to what is no page, those named by a URL (services, mostly), nofollow, types other than HTML, and
    links that are said to be another page's (`anchor`).

    >>> link_targets(b'</2>; rel="next", </s.css>; rel=preload; as=style, </de>; rel=alternate; hreflang=de')
    [('/2', 'next'), ('/de', 'alternate')]
    """
    found = ((target, named.get("rel", "").lower(), named) for target, named in links(value))
    return [(target, rel) for target, rel, named in found if _leads_to_page(rel, named)]


def links(value: bytes) -> Iterator[tuple[str, dict[str, str]]]:
    """The first targets of a Link header with their first parameters, of each the first of its name."""
    for link in islice(_LINK.finditer(url_text(value)), MOST_LINKS):
        target, rest = link.groups()
        named: dict[str, str] = {}
        for parameter in islice(_LINK_PARAMETER.finditer(rest), _MOST_PARAMETERS):
            name, quoted, bare = parameter.groups(default="")
            named.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or bare)
        yield target.strip(), named


def _leads_to_page(rel: str, named: dict[str, str]) -> bool:
    relations = rel.split()
    return (
        bool(relations)
        and _NOT_PAGES.isdisjoint(relations)
        and ":" not in rel
        and "anchor" not in named
        and named.get("type", "").lower() in _HTML
    )


def robots_marks(value: bytes, agent: str) -> int:
    """The marks of an X-Robots-Tag: rules for all, and those behind our own name. A name holds up to the next name.

    >>> robots_marks(b"noarchive, otherbot: noindex, nofollow, Trapline: noindex", "trapline")
    5
    """
    marks, ours = 0, True
    for rule in value.decode("latin-1").lower().split(","):
        named = _AGENT.fullmatch(rule)
        if named and named[1] not in _WITH_VALUES:
            ours, rule = named[1] == agent.lower(), named[2]
        if ours:
            marks |= marks_of([rule])
    return marks


def retry_after_s(value: bytes, now_wall: float) -> float | None:
    """Seconds from now, between none and a day, that a Retry-After asks us to stay away; None if it cannot be read.

    >>> retry_after_s(b"120", 0.0), retry_after_s(b"Thu, 01 Jan 1970 00:01:00 GMT", 15.0), retry_after_s(b"soon", 0.0)
    (120.0, 45.0, None)
    """
    if seconds := _SECONDS.fullmatch(value):
        wait_s = float(seconds[1])
    elif (at := http_date(value)) is not None:
        wait_s = at - now_wall
    else:
        return None
    return min(max(wait_s, 0.0), MOST_RETRY_S)


def http_date(value: bytes) -> float | None:
    """Seconds since 1970; None if it is no date. One is in GMT, whatever it says; but one that says otherwise is believed.

    >>> http_date(b"Thu, 01 Jan 1970 00:01:00 GMT"), http_date(b"soon")
    (60.0, None)
    """
    try:
        parsed = parsedate_tz(value[:64].decode("latin-1"))
        return float(timegm(parsed[:6]) - (parsed[9] or 0)) if parsed else None
    except (ValueError, OverflowError, IndexError, TypeError):
        return None
