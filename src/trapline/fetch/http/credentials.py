"""Credentials: secret header lines by origin, and the name and password for the proxy, read from a file of the user.

A TOML file, or a file of netrc format (if its name ends in `netrc`). See docs/how-to/authenticated-crawls.md. No message of this
module has a value of the file, and the objects do not show them.
"""

import base64
import netrc
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trapline.errors import ConfigError, nearest
from trapline.fetch.http.user_headers import check_not_ours, check_value
from trapline.fetch.urls import canonical, origin

_PLACE = re.compile(r"\(at [^()]*\)$")  # at the end of the parser's message: line and column
_KEYS = ("user", "password", "bearer", "headers")


class Credentials:
    def __init__(self, lines: Mapping[str, bytes], proxy: tuple[str, str] | None = None) -> None:
        """`lines`: header lines by origin, each ending in CRLF. `proxy`: name and password."""
        self._lines, self.proxy = dict(lines), proxy

    def __repr__(self) -> str:
        return f"Credentials of {len(self._lines)} sites"

    def lines(self, site: str) -> bytes:
        """Return the secret header lines for requests to an origin; b"": there are none."""
        return self._lines.get(site, b"")

    @property
    def origins(self) -> tuple[str, ...]:
        return tuple(self._lines)


def read_credentials(file: Path) -> Credentials:
    """Read a file of credentials. Raise `ConfigError` if it cannot be read or is invalid."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise missing("credentials", file, error) from None
    return _netrc(file) if file.name.endswith("netrc") else _toml(file, text)


def missing(option: str, file: Path, error: Exception) -> ConfigError:
    """Return the error for a file with secrets that cannot be read."""
    why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
    return ConfigError(
        f"--{option} {file}: cannot be read: {why}; restore the file, or give another one with --{option}"
    )


def is_open_to_others(file: Path) -> bool:
    """Return whether other users of this machine may read the file."""
    return bool(file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


def _toml(file: Path, text: str) -> Credentials:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        raise ConfigError(
            f"--credentials {file}: not valid TOML {place[0] if place else ''}; correct it or, if it is a netrc file,"
            " give it a name that ends in netrc"
        ) from None
    for name, value in tables.items():
        if name not in ("site", "proxy") or not isinstance(value, dict):
            raise ConfigError(f'--credentials {file}: {name!r} is not a table; write [site."example.org"] or [proxy]')
    lines = {}
    for key, table in tables.get("site", {}).items():
        where = f'--credentials {file}: [site."{_shown(key)}"]'
        lines[_origin(where, key)] = _lines(where, _checked(where, table, _KEYS))
    return Credentials(lines, _proxy(f"--credentials {file}: [proxy]", tables["proxy"]) if "proxy" in tables else None)


def _netrc(file: Path) -> Credentials:
    try:
        hosts = netrc.netrc(str(file)).hosts
    except netrc.NetrcParseError as error:
        raise ConfigError(f"--credentials {file}: not a netrc file, in line {error.lineno}; correct the file") from None
    lines = {}
    for host, (user, _, password) in hosts.items():
        if host != "default":  # it would be sent to every host
            where = f"--credentials {file}: machine {_shown(host)}"
            if not user.isprintable() or not password.isprintable():  # it may hold the passwords of other hosts
                raise ConfigError(
                    f"{where}: the login or the password is not one line of printable text; close its quote, or correct it"
                )
            lines[_origin(where, host)] = _lines(where, {"user": user, "password": password})
    return Credentials(lines)


def _shown(key: str) -> str:
    """Return the text for a host or origin in a message. One that contains a password is not shown: after a missing quote, or as
    `user:password@host`."""
    return key if key.isprintable() and " " not in key and "@" not in key else "(...)"


def _origin(where: str, key: str) -> str:
    """Return the origin that a key names. A host without a scheme stands for https."""
    url = canonical(key if "://" in key else f"https://{key}")
    if url is None or url != f"{origin(url)}/" or "@" in key:
        raise ConfigError(
            f"{where}: not a host; write a host such as example.org, or an origin such as http://example.org:8080"
        )
    return origin(url)


def _checked(where: str, table: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return a table in which texts from the environment are replaced by their values."""
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: not a table; write user and password, or bearer, in lines below it")
    for key in table:
        if key not in keys:
            raise ConfigError(f"{where}: there is no key {key!r}; {nearest(key, keys)}")
    headers = table.get("headers", {})
    if not isinstance(headers, dict):
        raise ConfigError(f'{where}: headers is not a table; write headers = {{ X-Api-Key = "..." }}')
    found: dict[str, Any] = {key: _text(where, key, value) for key, value in table.items() if key != "headers"}
    return {**found, "headers": {name: _text(where, name, value) for name, value in headers.items()}}


def _text(where: str, key: str, value: Any) -> str:
    """Return a value: a text, or that of the environment variable in { env = "NAME" }."""
    if isinstance(value, dict) and list(value) == ["env"] and isinstance(value["env"], str):
        if value["env"] not in os.environ:
            raise ConfigError(f"{where}: {key} needs the environment variable {value['env']}, which is not set; set it")
        name, value = value["env"], os.environ[value["env"]]
        if not value.isprintable():  # nor are bytes that are not UTF-8
            raise ConfigError(f"{where}: {key} in the environment variable {name} is not printable text; correct it")
    if not isinstance(value, str):
        raise ConfigError(f'{where}: {key} is not a text; write it in quotes, or as {{ env = "NAME" }}')
    return value


def _lines(where: str, table: Mapping[str, Any]) -> bytes:
    fields = dict(table.get("headers", {}))
    if "bearer" in table:
        fields["Authorization"] = f"Bearer {table['bearer']}"
    if "user" in table or "password" in table:
        if "bearer" in table:
            raise ConfigError(f"{where}: has both a password and a bearer token; keep one of them")
        fields["Authorization"] = f"Basic {basic(*_pair(where, table))}"
    if not fields:
        raise ConfigError(f"{where}: has no credentials; write user and password, or bearer, or headers")
    for name, value in fields.items():
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise ConfigError(f"{where}: {name!a} is not a header name; correct it")
        check_not_ours(name, where)
        check_value(name, value, where)
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()


def _pair(where: str, table: Mapping[str, Any]) -> tuple[str, str]:
    if "user" not in table or "password" not in table:
        raise ConfigError(f"{where}: needs both user and password; add the missing one")
    if ":" in table["user"]:
        raise ConfigError(f"{where}: the user name has a colon, which basic authentication cannot send; correct it")
    return table["user"], table["password"]


def _proxy(where: str, table: Any) -> tuple[str, str]:
    return _pair(where, _checked(where, table, ("user", "password")))


def basic(user: str, password: str) -> str:
    """Return the credentials of basic authentication (RFC 7617), in UTF-8."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()
