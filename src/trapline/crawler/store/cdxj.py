"""The lines of index.cdxj, which say where the record of a URL at a given time is stored. Pure functions.

A line has a SURT key, the time to the second, and a JSON object, in the form that pywb reads:
https://pywb.readthedocs.io/en/latest/manual/indexing.html
"""

import re
import time
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from urllib.parse import unquote_to_bytes

from trapline.crawler.store.archive import RecordPlace

# ---- SURT: the key of a URL in the index of a web archive. The host is reversed, so that related URLs sort together.
#
# pywb and other tools look up a URL by the key that the `surt` package computes, so these functions follow the rules of
# that package for http: drop the scheme and www., use lower case, undo escapes as far as possible, remove double
# slashes and the last slash of a path, remove session ids, and sort the arguments of a query. One rule is not implemented:
# `..` behind an escape is not resolved. The input must be a canonical URL (fetch/urls.py): ASCII, host in lower case, no
# default port.

_WWW = re.compile(r"www\d*\.")
_SLASHES = re.compile("//+")
# Hardly any URL has a session id, so a quick search decides whether the others are worth a try.
_MAY_HAVE_SESSION = re.compile(r"sid=|sessionid|cfid=|\)/", re.IGNORECASE)
_SESSIONS_IN_PATHS = tuple(
    re.compile(rf"(.*/)\({session}\)/([^?]+\.aspx.*)") for session in (r"(?:[a-z]\([0-9a-z]{24}\))+", "[0-9a-z]{24}")
)
# In the order of the `surt` package, which removes the last id of each kind.
_SESSIONS_IN_QUERIES = tuple(
    re.compile(rf"(.*){session}(?:&|$)")
    for session in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)


def surt(url: str) -> str:
    """
    >>> surt("http://www.example.com/a/B/?y=2&x=1")
    'com,example)/a/b?x=1&y=2'
    """
    url, _, _ = url.partition("#")
    start = url.index("://") + 3
    slash = url.find("/", start)
    if slash < 0:
        return _host(url[start:]) + ")/"
    path, _, query = url[slash:].partition("?")
    if "%" in url:
        path, query = _unescaped(path), _unescaped(query)
    if "//" in path:
        path = _SLASHES.sub("/", path)
    path, query = path.lower(), query.lower()
    if _MAY_HAVE_SESSION.search(url):
        path, query = _without_sessions(path, query)
    if len(path) > 1 and path.endswith("/"):
        path = path[:-1]
    tail = f"{path}?{_sorted(query)}" if query else path
    return f"{_host(url[start:slash])}){tail}"


def _without_sessions(path: str, query: str) -> tuple[str, str]:
    """
    >>> _without_sessions("/(0123456789abcdefghijklmn)/a.aspx", "a=1&sid=0123456789abcdef0123456789abcdef&b=2")
    ('/a.aspx', 'a=1&b=2')
    """
    for pattern in _SESSIONS_IN_PATHS:
        if found := pattern.match(path):
            path = found[1] + found[2]
    for pattern in _SESSIONS_IN_QUERIES:
        if found := pattern.match(query):
            query = found[1] + query[found.end() :]
    return path, query


@lru_cache(maxsize=4096)
def _host(host: str) -> str:
    """Return the labels of a host in reverse order, with its port. An IPv6 address stays as it is.

    >>> _host("www.example.com:8080"), _host("127.0.0.1"), _host("[::1]:81"), _host("a.org.")
    ('com,example:8080', '1,0,0,127', '::1:81', 'org,a')
    """
    if host.startswith("["):
        return host.replace("[", "").replace("]", "")
    name, colon, port = _WWW.sub("", host, count=1).partition(":") if _WWW.match(host) else host.partition(":")
    return ",".join(reversed(name.rstrip(".").split("."))) + colon + port


def _sorted(query: str) -> str:
    if "&" not in query:
        return query
    return "&".join("=".join(pair) for pair in sorted(part.split("=", 1) for part in query.split("&")))


def _unescaped(text: str) -> str:
    data = text.encode()
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return "".join(chr(b) if 0x20 < b < 0x7F and b not in b"#%" else f"%{b:02x}" for b in data)


# ---- Lines of the index.

REVISIT = "warc/revisit"  # written instead of a MIME type, as in the indexes of other tools
NO_STATUS = "-"


def line(
    url: str, started: float, mime: str, status: int | str, digest: str, place: RecordPlace, filename: str
) -> bytes:
    return (
        f'{surt(url)} {_stamp(int(started))} {{"url": {quoted(url)}, "mime": {quoted(mime or "unk")}, '
        f'"status": "{status}", "digest": "{digest or "-"}", '
        f'"length": "{place.length}", "offset": "{place.offset}", "filename": {quoted(filename)}}}\n'
    ).encode()


@lru_cache(maxsize=256)
def _stamp(second: int) -> str:
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(second))
