"""URLs: makes references canonical, and splits canonical URLs into the parts that a fetch needs.

Step 1 in docs/architecture.md. The canonical text identifies a page, so it is exactly what the WHATWG standard serialises: two texts
that a server may treat differently stay different. The module knows nothing of scope, or of which URLs were seen.

Removed, because no request for a page sends them: the fragment, and user name and password (a link with credentials leads to the
page that everybody else sees). Kept unchanged: the order and the repetition of parameters, an empty query, the case of the path,
double slashes, and percent-encoding (`%7e`, `%7E` and `~` are three pages: they are equal by RFC 3986, section 6.2.2, but every
browser requests them as written).
"""

import re
import unicodedata
from urllib.parse import unquote

from ada_url import join_url

MOST_URL = 2048  # characters of a canonical URL; sitemaps.org demands fewer
MOST_TEXT = 4 * MOST_URL  # characters of a reference without its fragment; a longer one is data, and is not parsed

MOST_LABEL = 63  # characters between two dots of a host name: the limit of DNS, in octets
_MOST_COMPOSED = 4  # characters that normalisation may compose into one: Greek letters with three marks

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
_NO_BASE = "about:blank"  # with this base, a relative reference is an error, and an absolute one stays as it is
# A path and query that are already canonical: nothing to encode, to decode or to remove.
_MOST_PLAIN = 1024
_PLAIN = re.compile(r"(?:/(?!\.{1,2}(?:[/?]|$))[A-Za-z0-9_~.-]*+)++(?:\?[A-Za-z0-9_~.=&%+/:-]*+)?")
_DROPPED = re.compile(r"[\t\n\r]+")  # removed anywhere in a reference
_AUTHORITY = re.compile(r"[\0- ]*+(?:([A-Za-z][A-Za-z0-9+.-]*+):)?([/\\]*+)([^/\\?#]*+)")
_DOTS = re.compile(r"[.\u3002\uff0e\uff61]")
# Characters that a host name may contain and that IDNA removes: soft hyphens, joiners, variation selectors and the like.
_MAPPED_TO_NOTHING = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)


def canonical(text: str, base: str | None = None) -> str | None:
    """Resolve the reference `text` on the page `base` to a canonical URL in ASCII; return None if it is not http or https.

    Never raises, whatever the text. Idempotent.

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
    """Return the same as `canonical`, in a third of the time, for an href of a simple form; None if the caller must use `canonical`.

    `origin` and `folder` are parts of the page's canonical URL, such as "http://a.org" and "/x/".

    >>> plain("../y?page=2#top", "http://a.org", "/x/")
    'http://a.org/y?page=2'
    >>> plain("%7Eme", "http://a.org", "/x/")
    """
    href = href.partition("#")[0]
    if len(href) > _MOST_PLAIN:
        return None
    if href[:1] == "/":
        target = href if href[1:2] != "/" else ""  # `//` introduces a host
    elif href[:1] in ("", "?"):
        return None  # relative to the whole URL
    else:
        while href[:3] == "../":
            href, folder = href[3:], folder[: folder.rfind("/", 0, -1) + 1] or "/"
        target = folder + href
    return origin + target if _PLAIN.fullmatch(target) and len(origin + target) <= MOST_URL else None


def _has_endless_label(text: str, base: str | None) -> bool:
    """Return whether the host of a reference has a label with more non-ASCII characters, or combining marks, than DNS can hold.

    The time to normalise a name grows with the square of the combining marks in a row: one link could take 0.1 s. The
    standard has no limit for labels; those used here are far beyond every name that can be looked up.
    """
    if text.isascii() and "%" not in text:
        return False
    found = _AUTHORITY.match(_DROPPED.sub("", text))
    assert found is not None  # every part of the pattern may be empty
    scheme, slashes, authority = found.groups()
    if len(authority) <= MOST_LABEL or (len(slashes) < 2 and not _is_absolute(scheme, base)):
        return False
    host = unquote(authority.rpartition("@")[2].partition(":")[0])
    return not host.isascii() and any(map(_is_endless, _DOTS.split(_MAPPED_TO_NOTHING.sub("", host))))


def _is_absolute(scheme: str | None, base: str | None) -> bool:
    """Return whether a host follows the colon without slashes: `http:x` is relative on an http page, and absolute elsewhere."""
    return scheme is not None and not (base or "").lower().startswith(f"{scheme.lower()}:")


def _is_endless(label: str) -> bool:
    if len(label) <= MOST_LABEL:
        return False
    if len(label) > MOST_LABEL * _MOST_COMPOSED:
        return not label.isascii()
    # Normalise twice, because some letters compose with a mark only in lower case.
    name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).lower())
    return sum(map(bool, map(unicodedata.combining, name))) > MOST_LABEL


def _scalar(text: str) -> str:
    """Replace lone surrogates by U+FFFD, as the web does wherever it turns strings into URLs; join pairs into one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_credentials(url: str) -> str:
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def origin(url: str) -> str:
    """Return the site of a canonical URL: scheme, host, and the port if it is not the scheme's default.

    >>> origin("https://example.org:8443/a/b?c")
    'https://example.org:8443'
    """
    return url[: url.find("/", 8)]  # 8: after https://, or within the host after http://


def target(url: str) -> str:
    """Return the request target of a canonical URL: path and query.

    >>> target("https://example.org/a/b?c")
    '/a/b?c'
    """
    return url[url.find("/", 8) :]


def host_port(origin: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a site. An IPv6 address has no brackets, as sockets expect it.

    >>> host_port("http://[::1]:8080"), host_port("https://example.org")
    (('http', '::1', 8080), ('https', 'example.org', 443))
    """
    scheme, _, authority = origin.partition("://")
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = authority, ""
    return scheme, host.strip("[]"), int(port) if port else _PORTS[scheme]


def has_blocked_port(url: str) -> bool:
    """Return whether a canonical URL has a port that browsers refuse, because it belongs to mail, shells and the like.

    Without this check, a page could make the crawler connect to such services of any host.

    >>> has_blocked_port("http://example.org:25/"), has_blocked_port("http://[::1]:8080/"), has_blocked_port("http://a.org/:25")
    (True, False, False)
    """
    end = url.find("/", 8)
    colon = url.rfind(":", 7, end)
    return colon > 0 and url[colon + 1 : end] in _BLOCKED_PORTS


def is_dynamic(url: str) -> bool:
    """Return whether the page is probably generated on request: its URL has a query (castillo04 limits the depth of such pages)."""
    return "?" in url


# ---- Spider traps: URLs that a server generates without end. Recognised from the URL alone, so some traps pass and few pages are
# wrongly rejected.
#
# Step 1 in docs/architecture.md: the scope (crawler/discovery/scope.py) checks canonical URLs here. There is no state: the limits of depth
# and of pages per site handle sites that generate too many pages. These limits also handle calendars, because nothing in the URL of a
# distant year distinguishes it from an archive.
#
# docs/decisions/017 lists what each rule catches of traps seen in real crawls, and what it costs on real graphs.

DEEP, REPEATED, SCRIPTS, PARAMETERS = "deep", "repeated", "scripts", "parameters"

MOST_SEGMENTS = 15  # of a path; Heritrix allows 20
MOST_SAME = 2  # occurrences of one segment in a path, unless it is a number
MOST_SURPLUS = 3  # repeated segments in a path, all together; Java source trees have up to three
MOST_SCRIPTS = 1  # files such as index.php with more path after them: relative links from there add another one
MOST_PARAMETERS = 20
MOST_SAME_PARAMETERS = 2  # occurrences of one parameter with the same value

_FEW_SLASHES = 5  # most URLs have fewer; with a path that short, only three equal segments would be a trap
_SCRIPT = re.compile(r"\.(?:php|aspx?|jsp|html?|cgi)/")


def trap(url: str) -> str:
    """Return why a URL looks like a trap, as one of the four words above; "" if it does not.

    >>> trap("http://example.org/a/b/a/b/a/b/"), trap("http://example.org/index.php/about.php/index.php/x")
    ('repeated', 'scripts')
    >>> trap("http://example.org/2010/10/10/") or trap("http://example.org/shop?tag[]=1&tag[]=2&tag[]=3")
    ''
    """
    path, _, query = url.partition("?")
    if path.count("/") >= _FEW_SLASHES and (reason := _trap_in_path(path)):
        return reason
    return _trap_in_query(query.split("&")) if query.count("&") >= MOST_SAME_PARAMETERS else ""


def _trap_in_path(path: str) -> str:
    segments = path.split("/")[3:]
    if len(segments) > MOST_SEGMENTS:
        return DEEP
    if len(segments) - len(set(segments)) >= MOST_SAME and _is_repeated([s for s in segments if not s.isdigit()]):
        return REPEATED
    return SCRIPTS if len(_SCRIPT.findall(path)) > MOST_SCRIPTS else ""


def _is_repeated(segments: list[str]) -> bool:
    distinct = set(segments)
    if len(segments) - len(distinct) > MOST_SURPLUS:
        return True
    return any(segments.count(segment) > MOST_SAME for segment in distinct)


def _trap_in_query(parameters: list[str]) -> str:
    if len(parameters) > MOST_PARAMETERS:
        return PARAMETERS
    if len(set(parameters)) == len(parameters):
        return ""
    return PARAMETERS if any(parameters.count(same) > MOST_SAME_PARAMETERS for same in set(parameters)) else ""
