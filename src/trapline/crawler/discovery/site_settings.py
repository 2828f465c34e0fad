"""Settings of single sites, by host: they take the place of the crawl's own. `[site."example.org"]` in a file of options.

This module holds and finds them. sites.py gives each site its settings, link_resolver.py passes the delays and limits to the
frontier, scope.py applies the patterns, and crawler/engine/live.py adds the headers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from trapline.errors import ConfigError, nearest
from trapline.fetch.http.user_headers import read_headers
from trapline.fetch.urls import canonical, host_port, origin

_BELOW = "*."  # before a domain: all hosts below it
_SEVERAL = ("headers", "include", "exclude")
_SECRETS = ("user", "password", "bearer", "token", "credentials", "cookies", "cookie")
# Keys of a table, as the options are called, and fields.
KEYS = {
    "delay": "delay_s",
    "pause": "pause_s",
    "per_connection": "per_connection",
    "max_pages": "max_pages",
    "header": "headers",
    "include": "include",
    "exclude": "exclude",
    "blocked": "blocked",
}


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """None: as in the whole crawl."""

    delay_s: float | None = None  # w, between two visits
    pause_s: float | None = None  # between two pages of a visit
    per_connection: int | None = None  # k, pages per visit
    max_pages: int | None = None  # most pages of the site
    headers: tuple[str, ...] = ()  # NAME: VALUE, besides those of the whole crawl
    include: tuple[str, ...] = ()  # regular expressions, besides those of the whole crawl
    exclude: tuple[str, ...] = ()
    blocked: bool = False  # whether the site gets no requests

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "SiteSettings":
        """Return the settings that `asdict` has made values of."""
        read: dict[str, Any] = {name: tuple(value) if name in _SEVERAL else value for name, value in values.items()}
        return cls(**read)


SiteTables = Mapping[str, SiteSettings]  # by host, or by *.domain


def settings_of(tables: SiteTables, host: str) -> SiteSettings | None:
    """Return the settings of a host: its own, or those of the nearest domain above it; None: it has none.

    >>> tables = {"*.org": SiteSettings(1.0), "*.a.org": SiteSettings(2.0), "a.org": SiteSettings(3.0)}
    >>> [found and found.delay_s for found in (settings_of(tables, host) for host in ("a.org", "b.a.org", "b.org", "c.net"))]
    [3.0, 2.0, 1.0, None]
    """
    found = tables.get(host)
    domain = host
    while found is None and domain:
        domain = domain.partition(".")[2]
        found = tables.get(_BELOW + domain)
    return found


def site_name(text: str) -> str:
    """Return the name of a site in tables: a host, or *.domain. `text` may be a URL of the site, too.

    >>> site_name("Example.org"), site_name("*.example.org"), site_name("http://example.org:8080/a")
    ('example.org', '*.example.org', 'example.org')
    """
    url = canonical(text) if "://" in text else None
    return _host(text, f"{text[:80]!a}") if url is None else host_port(origin(url))[1]


def is_named(name: str, host: str) -> bool:
    """Return whether a name of tables is that of the host, or of a domain above it.

    >>> is_named("a.org", "a.org"), is_named("*.a.org", "b.a.org"), is_named("*.a.org", "a.org")
    (True, True, False)
    """
    return host.endswith(name[1:]) if name.startswith(_BELOW) else host == name


def with_settings(
    tables: SiteTables, names: Iterable[str], change: Callable[[SiteSettings], SiteSettings]
) -> dict[str, SiteSettings]:
    """Return the tables in which all sites of these names have changed settings, also those with a table of their own. The cost grows
    with the number of names, and not with its square, because a list of blocked sites may be long.

    >>> from dataclasses import replace
    >>> tables = {"*.org": SiteSettings(1.0), "b.a.org": SiteSettings(2.0)}
    >>> changed = with_settings(tables, ["*.a.org"], lambda own: replace(own, pause_s=9.0))
    >>> [(name, own.delay_s, own.pause_s) for name, own in changed.items()]
    [('*.org', 1.0, None), ('b.a.org', 2.0, 9.0), ('*.a.org', 1.0, 9.0)]
    """
    found = dict(tables)
    for name in names:
        below = [key for key in found if is_named(name, key.removeprefix(_BELOW))] if name.startswith(_BELOW) else []
        found |= {key: change(settings_of(found, key) or SiteSettings()) for key in (*below, name)}
        own = found.pop(name)
        if own != (settings_of(found, name) or SiteSettings()):
            found[name] = own
    return found


def read_tables(given: Mapping[str, Mapping[str, Any]], pause_s: float) -> dict[str, SiteSettings]:
    """Return the settings of sites from tables with the names of options as keys. Raise `ConfigError` if one is invalid.
    `pause_s`: that of the whole crawl."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"site is {given!r}; give settings by host, such as {{'example.org': {{'delay': 5}}}}")
    return {_host(key, f'[site."{key}"]'): _settings(f'[site."{key}"]', table, pause_s) for key, table in given.items()}


def _host(key: str, where: str) -> str:
    host = key.removeprefix(_BELOW).lower()
    url = canonical(f"http://{host}")
    if url is None or host_port(origin(url))[1] != host.strip("[]") or url != f"http://{host}/":
        raise ConfigError(f"{where}: not a host name; give one such as example.org, or *.example.org")
    return (_BELOW if key.startswith(_BELOW) else "") + host.strip("[]")


def _settings(where: str, table: Any, pause_s: float) -> SiteSettings:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: not a table; write its settings in lines below it")
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = KEYS.get(key.replace("-", "_"))
        if key in _SECRETS:
            raise ConfigError(f"{where}: {key!r} does not belong here; put it into a file for --credentials FILE")
        if name is None:
            raise ConfigError(f"{where}: there is no setting {key!r}; {nearest(key, _shown_keys())}")
        values[name] = _read(where, key, value, name)
    read_headers(values.get("headers", ()), f"{where} header")
    if "delay_s" in values:
        values.setdefault("pause_s", min(pause_s, values["delay_s"]))
    return SiteSettings(**values)


def _read(where: str, key: str, value: Any, name: str) -> Any:
    if name == "blocked":
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: {key} is {value!r}; give true or false")
        return value
    return _several(where, key, value) if name in _SEVERAL else _number(where, key, value, name)


def _shown_keys() -> list[str]:
    return [key.replace("_", "-") for key in KEYS]


def _several(where: str, key: str, value: Any) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else (None,)
    if not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"{where}: {key} must be a text or a list of texts")
    return texts


def _number(where: str, key: str, value: Any, name: str) -> float:
    kind = int if name in ("per_connection", "max_pages") else float
    if isinstance(value, bool) or not isinstance(value, int | float) or (kind is int and value != int(value)):
        raise ConfigError(f"{where}: {key} is {value!r}; give a {'whole ' if kind is int else ''}number")
    least = 1 if name == "max_pages" else 0
    if not least <= value <= 1e9:
        unit = " seconds" if name.endswith("_s") else ""
        raise ConfigError(f"{where}: {key} is {value!r}; it must be between {least} and 1,000,000,000{unit}")
    return kind(value)


def as_tables(tables: SiteTables) -> dict[str, dict[str, Any]]:
    """Return settings of sites in the form that `read_tables` reads.

    >>> as_tables({"::1": SiteSettings(delay_s=5.0)})
    {'[::1]': {'delay': 5.0}}
    """
    return {f"[{host}]" if ":" in host else host: _as_keys(own) for host, own in tables.items()}


def _as_keys(settings: SiteSettings) -> dict[str, Any]:
    """Return the settings by the names of options, without those that are not set."""
    names = {name: key for key, name in KEYS.items()}
    found = {names[field.name]: getattr(settings, field.name) for field in fields(settings)}
    return {key: value for key, value in found.items() if value not in (None, ()) and value is not False}
