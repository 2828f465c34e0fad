"""Cookies: those of a file in Netscape format, and those that servers set. RFC 6265, without the parts for browsers.

A cookie of the file is sent to its domain, and to the hosts below it if the file says so. A cookie that a server sets is sent back
to the host that set it and to no other: its attribute Domain is ignored, because only a list of public suffixes could say which
domains may share cookies. No message of this module has a value of a cookie.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from trapline.errors import ConfigError
from trapline.fetch.http.credentials import missing
from trapline.fetch.http.headers import http_date

_HTTP_ONLY = "#HttpOnly_"
_MAX_AGE = re.compile(rb"-?[0-9]+")
_SINCE_1970 = re.compile(r"(-?[0-9]+)(?:\.[0-9]*)?")
# RFC 6265, section 6.1, asks for at least 50 cookies of 4,096 bytes for each domain.
MOST_OF_HOST, MOST_BYTES = 50, 4_096
# Of cookies that servers set. Beyond, those of the host that has set none for longest are dropped.
MOST_HOSTS, MOST_JAR_BYTES = 100_000, 64 << 20
_Cookies = dict[tuple[bytes, str], "Cookie"]  # by name and path


class Cookie(NamedTuple):
    path: str
    is_secure: bool  # sent over https only
    expires: float  # seconds since 1970; infinity: at the end of the crawl
    pair: bytes  # name=value

    def is_for(self, target: str, is_secure: bool, now: float) -> bool:
        """Return whether the cookie is sent with a request for path and query `target`."""
        if now >= self.expires or (self.is_secure and not is_secure):
            return False
        path, target = self.path, target.partition("?")[0]
        return target.startswith(path) and (path.endswith("/") or target[len(path) : len(path) + 1] in ("", "/"))


class CookieJar:
    """Cookies of a file, which `add` gives, and those that servers set, which `keep` takes. Only the latter are bounded, and dropped."""

    def __init__(self) -> None:
        self._by_domain: dict[str, _Cookies] = {}  # of the file, for a domain and the hosts below it
        self._by_host: dict[str, _Cookies] = {}  # of the file, for one host
        self._set: dict[str, _Cookies] = {}  # by servers, for themselves; they take the place of those of the file
        self._set_bytes = 0

    def __repr__(self) -> str:
        return f"CookieJar of {len(self._by_host.keys() | self._set.keys())} hosts"

    def add(self, domain: str, with_hosts_below: bool, cookie: Cookie) -> None:
        where = self._by_domain if with_hosts_below else self._by_host
        where.setdefault(domain, {})[_key(cookie)] = cookie

    def has(self, host: str) -> bool:
        """Return whether requests to the host may have cookies."""
        return any(True for _ in self._of(host))

    def line(self, host: str, target: str, is_secure: bool, now: float) -> bytes:
        """Return the header line with the cookies of a request; b"": it has none. Longer paths come first (RFC 6265, 5.4)."""
        chosen = {_key(one): one for one in self._of(host) if one.is_for(target, is_secure, now)}
        if not chosen:
            return b""
        ordered = sorted(chosen.values(), key=lambda one: -len(one.path))
        return b"Cookie: " + b"; ".join(one.pair for one in ordered) + b"\r\n"

    def keep(self, host: str, target: str, is_secure: bool, head: bytes, now: float) -> None:
        """Keep the cookies that the head of a response sets."""
        for line in head.split(b"\n")[1:]:
            name, _, value = line.partition(b":")
            if name.rstrip(b" \t").lower() == b"set-cookie":
                cookie = _set_cookie(value.strip(), target, is_secure, now)
                if cookie is not None and (is_secure or not self._is_secure(host, cookie)):
                    self._keep(host, cookie, now)

    def _is_secure(self, host: str, cookie: Cookie) -> bool:
        """Return whether the host has a cookie of this name for https only. An answer over http cannot replace it (RFC 6265bis)."""
        name = _key(cookie)[0]
        return any(one.is_secure and _key(one)[0] == name for one in self._of(host))

    def _keep(self, host: str, cookie: Cookie, now: float) -> None:
        own, key = self._set.pop(host, {}), _key(cookie)
        self._drop(own, key)
        if cookie.expires <= now:  # the server takes the cookie back, also one of the file
            self._by_host.get(host, {}).pop(key, None)
        else:
            while len(own) >= MOST_OF_HOST:
                self._drop(own, next(iter(own)))
            own[key] = cookie
            self._set_bytes += _size(cookie)
        if own:
            self._set[host] = own
        while len(self._set) > MOST_HOSTS or self._set_bytes > MOST_JAR_BYTES:
            first = self._set.pop(next(iter(self._set)))
            self._set_bytes -= sum(map(_size, first.values()))

    def _drop(self, own: _Cookies, key: tuple[bytes, str]) -> None:
        if (dropped := own.pop(key, None)) is not None:
            self._set_bytes -= _size(dropped)

    def _of(self, host: str) -> Iterator[Cookie]:
        domain = host
        while domain and self._by_domain:
            yield from self._by_domain.get(domain, {}).values()
            domain = domain.partition(".")[2]
        for cookies in (self._by_host, self._set):
            yield from cookies.get(host, {}).values()


def _key(cookie: Cookie) -> tuple[bytes, str]:
    return cookie.pair.partition(b"=")[0], cookie.path


def _size(cookie: Cookie) -> int:
    """Return about how many bytes of memory the cookie takes."""
    return 400 + 2 * len(cookie.pair) + len(cookie.path)


def _set_cookie(value: bytes, target: str, is_secure: bool, now: float) -> Cookie | None:
    """Return the cookie of a Set-Cookie header, or None if it is invalid, or may not be set over http (RFC 6265bis)."""
    pair, *attributes = (part.strip() for part in value.split(b";"))
    if not pair.partition(b"=")[0].strip() or b"=" not in pair or len(value) > MOST_BYTES:
        return None
    if any(byte < 32 or byte == 127 for byte in pair):
        return None
    named = {name.strip().lower(): text.strip() for name, _, text in (one.partition(b"=") for one in attributes)}
    only_https = b"secure" in named
    if only_https and not is_secure:
        return None
    path = named.get(b"path", b"").decode("latin-1")
    path = path if path.startswith("/") else _folder(target)
    return Cookie(path, only_https, _expires(named, now), pair)


def _folder(target: str) -> str:
    """Return the path of a cookie that names none (RFC 6265, 5.1.4)."""
    path = target.partition("?")[0]
    return path[: path.rfind("/")] or "/"


def _expires(named: dict[bytes, bytes], now: float) -> float:
    max_age = named.get(b"max-age", b"")
    if _MAX_AGE.fullmatch(max_age):
        return now + float(max_age)  # not `int`, which refuses very many digits
    at = http_date(named.get(b"expires", b"").replace(b"-", b" "))
    return math.inf if at is None else at


def read_cookies(file: Path) -> CookieJar:
    """Read a file of cookies in Netscape format. Raise `ConfigError` if it cannot be read, or is in another format."""
    try:
        rows = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise missing("cookies", file, error) from None
    jar = CookieJar()
    for number, row in enumerate(rows, 1):
        text = row.rstrip("\r").removeprefix(_HTTP_ONLY)
        if text.strip() and not text.startswith("#"):
            jar.add(*_netscape(f"--cookies {file}, row {number}", text))
    return jar


def _netscape(where: str, row: str) -> tuple[str, bool, Cookie]:
    """Return domain, whether hosts below it get the cookie, and the cookie of a row."""
    fields = row.split("\t")
    if len(fields) == 6:
        fields.append("")  # some programs write no tab before an empty value
    if len(fields) != 7 or fields[1] not in ("TRUE", "FALSE") or fields[3] not in ("TRUE", "FALSE"):
        raise ConfigError(
            f"{where}: not a cookie in Netscape format (7 fields, separated by tabs); export the cookies again"
        )
    domain, below, path, secure, expires, name, value = fields
    seconds = _SINCE_1970.fullmatch(expires)
    if seconds is None:
        raise ConfigError(f"{where}: the time in field 5 is not a number of seconds since 1970; correct it")
    if not f"{name}{value}".isprintable() or ";" in f"{name}{value}" or not path.startswith("/"):
        raise ConfigError(f"{where}: path, name or value cannot be sent; export the cookies again")
    until = float(seconds[1])
    cookie = Cookie(path, secure == "TRUE", until if until > 0 else math.inf, f"{name}={value}".encode())
    return domain.strip(".").lower(), below == "TRUE", cookie
