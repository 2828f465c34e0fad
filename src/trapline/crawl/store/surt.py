"""The key of a URL in a web archive's index: its host reversed, so that what belongs together sorts together (SURT).

pywb and others look a URL up by the key that the `surt` package gives it, so this follows that package's rules for
http: scheme and www. are dropped, all is lower case, escapes are undone as far as they can be, a path loses double
slashes and its last, arguments of a query are sorted. Left out: session ids are not removed, `..` behind an escape is not resolved.
It takes canonical URLs only (fetch/urls.py): ASCII, lower-case host, default port left out.
"""

import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

_WWW = re.compile(r"www\d*\.")
_SLASHES = re.compile("//+")


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
    if len(path) > 1 and path.endswith("/"):
        path = path[:-1]
    tail = f"{path}?{_sorted(query.lower())}" if query else path
    return f"{_host(url[start:slash])}){tail.lower()}"


@lru_cache(maxsize=4096)
def _host(host: str) -> str:
    """
    >>> _host("www.example.com:8080"), _host("127.0.0.1"), _host("[::1]")
    ('com,example:8080', '1,0,0,127', '[::1]')
    """
    if host.startswith("["):
        return host
    name, colon, port = _WWW.sub("", host, count=1).partition(":") if _WWW.match(host) else host.partition(":")
    return ",".join(reversed(name.split("."))) + colon + port


def _sorted(query: str) -> str:
    if "&" not in query:
        return query
    return "&".join("=".join(pair) for pair in sorted(part.split("=", 1) for part in query.split("&")))


def _unescaped(text: str) -> str:
    data = text.encode()
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return "".join(chr(b) if 0x20 < b < 0x7F and b not in b"#%" else f"%{b:02x}" for b in data)
