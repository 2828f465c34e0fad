"""What the sites of a web are called and where they are: one name each, and an address in 127.0.0.0/8.

It takes the host of a recorded URL where a hosts file can hold it, and never a number: a crawler would go to the machine
that has that address. It opens no socket.
"""

import re
from collections.abc import Iterable, Sequence

from ada_url import URL, HostType

from trapline.errors import ConfigError

MOST_ADDRESSES = 126 * 256 * 254  # 127.1.0.1 to 127.126.255.254

_LABELS = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


def address(number: int) -> str:
    """
    >>> address(0), address(254), address(254 * 256)
    ('127.1.0.1', '127.1.1.1', '127.2.0.1')
    """
    rest, last = divmod(number, 254)
    return f"127.{1 + (rest >> 8)}.{rest & 255}.{1 + last}"


def grouped(sites: int, shared: Iterable[int], sites_per_address: int | None) -> list[int]:
    """The number of each site's address: so many sites to each, or as `shared` says, which has a number for each site."""
    if sites_per_address is not None:
        groups: Iterable[int] = (site // sites_per_address for site in range(sites))
    else:
        groups = shared
    numbers: dict[int, int] = {}
    return [numbers.setdefault(group, len(numbers)) for group in groups]


def addresses(count: int) -> list[str]:
    if count > MOST_ADDRESSES:
        raise ConfigError(f"{count:,} addresses are more than 127.0.0.0/8 has room for; put several sites on one")
    return [address(number) for number in range(count)]


def site_names(origins: Sequence[str] | None, sites: int) -> list[str]:
    """A name each, no two alike. `origins`: scheme://host[:port] of each site, if it was recorded.

    >>> site_names(["http://a.org", "https://a.org", "http://10.1.2.3", "http://B.org:81"], 4)
    ['a.org', 'a.org.site-1.test', 'site-2.test', 'b.org']
    >>> site_names(None, 2)
    ['site-0.test', 'site-1.test']
    """
    names: list[str] = []
    taken: set[str] = set()
    for site in range(sites):
        own = f"site-{site}.test"
        name = (_host(origins[site]) if origins else None) or own
        while name in taken:
            name = f"{name}.{own}"
        taken.add(name)
        names.append(name)
    return names


def _host(origin: str) -> str | None:
    """The host of a URL, if it is a name that a hosts file can hold."""
    try:
        url = URL(f"{origin}/")
    except ValueError:
        return None
    named = url.host_type == HostType.DEFAULT and len(url.hostname) <= 253 and _LABELS.fullmatch(url.hostname)
    return url.hostname if named and url.hostname != "localhost" else None
