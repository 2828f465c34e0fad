"""URLs: a reference in, the one text that names its page out, and the pieces that a fetch needs of that text.

Step 1 of the way of a URL. Pages are told apart by this text alone, so it is what the WHATWG standard serialises and
nothing cleverer: two texts that a server may tell apart stay apart. It knows nothing of scope, traps or what was seen.

Taken away, because neither is ever sent for a page: the fragment, and user name and password (a link that carries them
leads to the page that everybody else sees). Kept as they stand: the order and the repetition of parameters, an empty
query, the case of the path, double slashes, and percent-encoding (`%7e`, `%7E` and `~` are three pages: equal by RFC
3986, section 6.2.2, and yet requested as written by every browser).
"""

import re
import unicodedata
from urllib.parse import unquote

from ada_url import join_url

MOST_URL = 2048  # characters of a canonical URL; sitemaps.org has them shorter than that
MOST_TEXT = 4 * MOST_URL  # of a reference without its fragment: beyond, it is data, and is not even parsed

MOST_LABEL = 63  # characters between two dots of a host's name: DNS has room for as many octets
_MOST_COMPOSED = 4  # characters that normalisation makes one of: Greek letters with three marks

_PORTS = {"http": 80, "https": 443}
# "Bad ports" of the Fetch standard (WHATWG, section 2.9, 2024).
_BLOCKED_PORTS = frozenset(
    map(
        str,
        (
            0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
            104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514,
            515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723,
            2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
        ),
    )
)  # fmt: skip
_NO_BASE = "about:blank"  # against it a relative reference is an error, and an absolute one is itself
# A path and query that are their own canonical form: nothing to encode, to decode or to leave out.
_MOST_PLAIN = 1024
_PLAIN = re.compile(r"(?:/(?!\.{1,2}(?:[/?]|$))[A-Za-z0-9_~.-]*+)++(?:\?[A-Za-z0-9_~.=&%+/:-]*+)?")
_DROPPED = re.compile(r"[\t\n\r]+")  # wherever they stand in a reference
_AUTHORITY = re.compile(r"[\0- ]*+(?:([A-Za-z][A-Za-z0-9+.-]*+):)?([/\\]*+)([^/\\?#]*+)")
_DOTS = re.compile(r"[.\u3002\uff0e\uff61]")
# Characters that a name may hold and that IDNA maps to nothing: soft hyphens, joiners, variation selectors and their like.
_MAPPED_TO_NOTHING = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)


def canonical(text: str, base: str | None = None) -> str | None:
    """The page that `text` leads to, seen from the page `base`; None if that is none of http or https. Pure ASCII.

    Never raises, whatever the text. Applied to its own result it changes nothing.

    >>> canonical(" ../b?x=1&X=1#top", "HTTP://me:pw@Example.ORG:80/a/c/")
    'http://example.org/a/b?x=1&X=1'
    >>> canonical("//bücher.example")  # no base to take the scheme from
    >>> canonical("mailto:a@example.org")
    """
    if len(text) > MOST_TEXT:
        text = text.partition("#")[0]
        if len(text) > MOST_TEXT:
            return None
    if not text.isascii():
        text = _scalar(text)
    if len(text) > MOST_LABEL and _has_endless_label(text, base):
        return None
    try:
        url = join_url(base or _NO_BASE, text)
    except ValueError:
        return None
    if not url.startswith(("http://", "https://")):
        return None
    url = url.partition("#")[0]
    if "@" in url:
        url = _without_credentials(url)
    return url if len(url) <= MOST_URL else None


def plain(href: str, origin: str, folder: str) -> str | None:
    """What `canonical` answers for an href that asks for no more than most do; None: ask it. A third of its time.

    `origin` and `folder` are of the canonical URL of the page: "http://a.org", "/x/".

    >>> plain("../y?page=2#top", "http://a.org", "/x/")
    'http://a.org/y?page=2'
    >>> plain("%7Eme", "http://a.org", "/x/")
    """
    href = href.partition("#")[0]
    if len(href) > _MOST_PLAIN:
        return None
    if href[:1] == "/":
        target = href if href[1:2] != "/" else ""  # a host follows
    elif href[:1] in ("", "?"):
        return None  # relative to the whole URL
    else:
        while href[:3] == "../":
            href, folder = href[3:], folder[: folder.rfind("/", 0, -1) + 1] or "/"
        target = folder + href
    return origin + target if _PLAIN.fullmatch(target) and len(origin + target) <= MOST_URL else None


def _has_endless_label(text: str, base: str | None) -> bool:
    """Whether the host of a reference has a label of more characters beyond ASCII, or more combining marks, than DNS can hold.

    To normalise a name takes time that grows with the square of the combining marks in a row: 0.1 s for those of one link.
    The standard has no limit for labels; those here are far from all names that can be looked up.
    """
    if text.isascii() and "%" not in text:
        return False
    found = _AUTHORITY.match(_DROPPED.sub("", text))
    assert found is not None  # everything in it may be empty
    scheme, slashes, authority = found.groups()
    if len(authority) <= MOST_LABEL or (len(slashes) < 2 and not _is_absolute(scheme, base)):
        return False
    host = unquote(authority.rpartition("@")[2].partition(":")[0])
    return not host.isascii() and any(map(_is_endless, _DOTS.split(_MAPPED_TO_NOTHING.sub("", host))))


def _is_absolute(scheme: str | None, base: str | None) -> bool:
    """Whether a host follows the colon without slashes: `http:x` is relative on a page of http, and absolute elsewhere."""
    return scheme is not None and not (base or "").lower().startswith(f"{scheme.lower()}:")


def _is_endless(label: str) -> bool:
    if len(label) <= MOST_LABEL:
        return False
    if len(label) > MOST_LABEL * _MOST_COMPOSED:
        return not label.isascii()
    # Twice, because some letters compose with a mark in lower case alone.
    name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).lower())
    return sum(map(bool, map(unicodedata.combining, name))) > MOST_LABEL


def _scalar(text: str) -> str:
    """Surrogates that stand alone become U+FFFD, as wherever the web turns strings into URLs; pairs become one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_credentials(url: str) -> str:
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def origin(url: str) -> str:
    """The site of a canonical URL, by its name: scheme, host, and the port if it is not the scheme's own.

    >>> origin("https://example.org:8443/a/b?c")
    'https://example.org:8443'
    """
    return url[: url.find("/", 8)]  # 8: behind https://, and inside the host behind http://


def target(url: str) -> str:
    """What the request line asks for: path and query.

    >>> target("https://example.org/a/b?c")
    '/a/b?c'
    """
    return url[url.find("/", 8) :]


def host_port(origin: str) -> tuple[str, str, int]:
    """Scheme, host and port of a site. An IPv6 address comes without its brackets, as sockets want it.

    >>> host_port("http://[::1]:8080"), host_port("https://example.org")
    (('http', '::1', 8080), ('https', 'example.org', 443))
    """
    scheme, _, authority = origin.partition("://")
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = authority, ""
    return scheme, host.strip("[]"), int(port) if port else _PORTS[scheme]


def has_blocked_port(url: str) -> bool:
    """Whether a canonical URL leads to a port on which no web server is expected, but mail, shells and the like: one that browsers
    refuse. Else a page could have us knock at the services of its host.

    >>> has_blocked_port("http://example.org:25/"), has_blocked_port("http://[::1]:8080/"), has_blocked_port("http://a.org/:25")
    (True, False, False)
    """
    end = url.find("/", 8)
    colon = url.rfind(":", 7, end)
    return colon > 0 and url[colon + 1 : end] in _BLOCKED_PORTS


def is_dynamic(url: str) -> bool:
    """Whether the page is made on request, as far as one can see: its URL has a query (castillo04 limits their depth)."""
    return "?" in url
