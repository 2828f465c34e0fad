"""Parsers of response headers: media type, links, directives to robots, Retry-After, dates and validators. Also the media types that a
crawl reads.

Step 6 in docs/architecture.md. Each function takes the value as received (several headers of one name joined by commas). Nothing here
raises, whatever the bytes. The module knows no other part of a response.
"""

import re
from calendar import timegm
from collections.abc import Iterator
from email.utils import parsedate_tz
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from trapline.fetch.html.page import marks_of

MOST_RETRY_S = 86_400.0
_MOST_TYPE = 512  # bytes of a Content-Type that are read, and cached

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_ODD = re.compile(r"[^\t\x20-\x7e\x80-\xff]")  # characters that no parameter value may contain
# A parameter with its value: quoted, with backslash escapes, or up to the next semicolon.
_PARAMETER = re.compile(r';[ \t\n\r]*+([^;=]*+)(?:=(?:"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)[^;]*+|([^;]*+)))?', re.DOTALL)

# A target and its parameters; then one parameter. The target excludes `<`, or else each `<` would cause a search to the end.
_LINK = re.compile(r'<([^<>]*+)>((?:[ \t]*+;(?:[^,;"]++|"(?:[^"\\]|\\.)*+(?:"|\Z))*+)*+)', re.DOTALL)
_LINK_PARAMETER = re.compile(r';[ \t]*+([^\s=;,"]++)[ \t]*+(?:=[ \t]*+(?:"((?:[^"\\]|\\.)*+)|([^;,\s]*+)))?', re.DOTALL)
# Relations to targets that are not pages for people.
_HINTS = {"preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "prerender", "expect"}
_PARTS = {"stylesheet", "icon", "apple-touch-icon", "mask-icon", "manifest", "compression-dictionary"}
_SERVICES = {"pingback", "webmention", "hub", "search", "edituri", "wlwmanifest", "service-doc", "service-desc"}
_NOT_PAGES = _HINTS | _PARTS | _SERVICES | {"describedby", "shortlink", "nofollow"}
MOST_LINKS = 1024  # per header
_MOST_PARAMETERS = 32  # per link
_HTML = ("", "text/html", "application/xhtml+xml")

# For the surrogates to which Python decodes bytes that are not UTF-8.
_ESCAPES = {0xDC00 + octet: f"%{octet:02X}" for octet in range(128, 256)}

_AGENT = re.compile(r"[ \t]*+([a-z0-9_.-]++)[ \t]*+:(.*)", re.DOTALL)
_WITH_VALUES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_SECONDS = re.compile(rb"[ \t]*(-?[0-9]+(?:\.[0-9]*)?)[ \t]*")


def content_type(value: bytes) -> tuple[str, str | None]:
    """Return the media type, in lower case and without parameters ("" if it is invalid), and the charset.

    >>> content_type(b'Text/HTML; Charset="utf-8"')
    ('text/html', 'utf-8')
    """
    return _content_type(value[:_MOST_TYPE])


@lru_cache(maxsize=1024)
def _content_type(value: bytes) -> tuple[str, str | None]:
    """Parse by the algorithm "parse a MIME type" of the MIME Sniffing standard."""
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
    """Decode a URL in a header. Percent-encodes bytes that are not UTF-8, as browsers do.

    >>> url_text(b"/caf\\xe9"), url_text("/café".encode())
    ('/caf%E9', '/café')
    """
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("utf-8", "surrogateescape").translate(_ESCAPES)


def link_targets(value: bytes) -> list[tuple[str, str]]:
    """Return target and relation of the links in a Link header (RFC 8288) that lead to pages for people, in order.

    Rejected are relations to other things than pages, relations named by a URL (mostly services), nofollow, types other than
    HTML, and links with an `anchor`, which belong to another page.

    >>> link_targets(b'</2>; rel="next", </s.css>; rel=preload; as=style, </de>; rel=alternate; hreflang=de')
    [('/2', 'next'), ('/de', 'alternate')]
    """
    found = ((target, named.get("rel", "").lower(), named) for target, named in links(value))
    return [(target, rel) for target, rel, named in found if _leads_to_page(rel, named)]


def links(value: bytes) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the first MOST_LINKS targets of a Link header with their parameters. Of a repeated parameter, the first counts."""
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
    """Return the marks of an X-Robots-Tag: rules for all robots, and those after our own name. A name applies up to the next name.

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
    """Return the seconds that a Retry-After asks to wait, between 0 and a day; None if it cannot be parsed.

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
    """Return an HTTP date in seconds since 1970; None if it is invalid. HTTP dates are in GMT, but another offset is respected.

    >>> http_date(b"Thu, 01 Jan 1970 00:01:00 GMT"), http_date(b"soon")
    (60.0, None)
    """
    try:
        parsed = parsedate_tz(value[:64].decode("latin-1"))
        return float(timegm(parsed[:6]) - (parsed[9] or 0)) if parsed else None
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


# ---- Validators of a response, and conditional requests with them. RFC 9110, sections 8.8 and 13.1.
#
# Pure, and part of steps 5 and 9 in docs/architecture.md. This part knows headers, and nothing of their use. The values come from a server,
# go into a database, and from there into a request. Whatever the bytes are, a request gets at most two header lines of about 1 KB each.

MOST_BYTES = 1024  # of a value; longer ones are not kept
# An entity tag in the standard's form, or without quotes, as some servers send it. Neither a list nor `*`, which matches everything.
_ETAG = re.compile(rb'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"|[A-Za-z0-9._:+/=~-]+')
_DATE = re.compile(rb"[A-Za-z0-9,: +-]{1,64}")

_WEB_BEGAN = 631_152_000.0  # 1990: a page that claims to be older has a wrong clock
# A server that says "modified now" does so for each response: it sends the current time.
_NOW_S = 5.0


class Validators(NamedTuple):
    """The validators of a page, as the server sent them; b"" if there is none."""

    etag: bytes = b""
    modified: bytes = b""

    def renewed(self, headers: dict[bytes, bytes]) -> "Validators":
        """Return the validators after a response 304 with these headers, which may update them (RFC 9111, section 3.2)."""
        new = validators_of(headers)
        return Validators(new.etag or self.etag, new.modified or self.modified)


NO_VALIDATORS = Validators()


def validators_of(headers: dict[bytes, bytes]) -> Validators:
    """Return the valid validators among the headers of a response.

    >>> validators_of({b"etag": b'W/"67ab43"', b"last-modified": b"Mon, 12 Oct 2025 07:28:00 GMT"}).etag
    b'W/"67ab43"'
    """
    etag, modified = headers.get(b"etag", b""), headers.get(b"last-modified", b"")
    if not (etag or modified):
        return NO_VALIDATORS
    return Validators(_fit(_ETAG, etag), _fit(_DATE, modified))


def _fit(pattern: re.Pattern[bytes], value: bytes) -> bytes:
    return value if len(value) <= MOST_BYTES and pattern.fullmatch(value) else b""


def conditional(validators: Validators) -> bytes:
    """Return the header lines of a conditional request with these validators; b"" if there are none.

    Both lines are sent: a server that understands If-None-Match ignores If-Modified-Since.

    >>> conditional(Validators(b'"a"', b""))
    b'If-None-Match: "a"\\r\\n'
    """
    etag, modified = _fit(_ETAG, validators.etag), _fit(_DATE, validators.modified)
    lines = b"If-None-Match: " + etag + b"\r\n" if etag else b""
    return lines + b"If-Modified-Since: " + modified + b"\r\n" if modified else lines


def modified_at(validators: Validators, now_wall: float) -> float | None:
    """Return when the page last changed by its Last-Modified, in seconds since 1970.

    Return None if the date is missing or implausible: before there were web pages, in the future, or just now.

    >>> modified_at(Validators(b"", b"Sun, 12 Oct 2025 07:28:00 GMT"), 1.8e9)
    1760254080.0
    """
    at = http_date(validators.modified) if validators.modified else None
    return at if at is not None and _WEB_BEGAN <= at < now_wall - _NOW_S else None


# ---- The media types whose bodies a crawl reads. Part of step 5 in docs/architecture.md.
#
# Once the head of an answer has arrived, its type is known. If it is not wanted, the rest is not read: connection.py hangs up, unless
# the body is short.


class MimeFilter(NamedTuple):
    """
    >>> MimeFilter(("text/*",), ("text/css",)).wants(b"text/html; charset=utf-8")
    True
    """

    include: tuple[str, ...]  # (): all; type/* stands for all subtypes
    exclude: tuple[str, ...]

    def wants(self, field: bytes) -> bool:
        """Return whether a body with this Content-Type is read. A body without a type is: it may be anything."""
        mime = content_type(field)[0]
        if not mime:
            return True
        names = (mime, f"{mime.partition('/')[0]}/*")
        is_included = not self.include or any(name in self.include for name in names)
        return is_included and not any(name in self.exclude for name in names)
