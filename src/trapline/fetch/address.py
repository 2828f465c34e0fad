"""The address guard: which addresses we connect to. Step 5 of the way of a URL.

It judges one numeric address, right before it is connected to, and does not know names: whoever connects passes the very
address that was judged, so that a name which changes between the question and the connection (DNS rebinding) gains nothing.

Only what is public is let through. The tables are IANA's special-purpose registries (RFC 6890), with everything refused that no
web server has a place in, even where the registry calls a part of it global. Python's own `is_global` is no substitute: it changed
between releases, and does not look into all addresses that carry an IPv4 address inside. docs/decisions/015-dns-and-guard.md
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple

LOOPBACK = "loopback"
PRIVATE = "private"
SHARED = "shared"

_V4 = {
    "0.0.0.0/8": "unspecified",  # Linux takes it for this machine
    "10.0.0.0/8": PRIVATE,
    "100.64.0.0/10": SHARED,  # of a provider and its customers
    "127.0.0.0/8": LOOPBACK,
    "169.254.0.0/16": "link-local",  # clouds answer here with a machine's own secrets
    "172.16.0.0/12": PRIVATE,
    "192.0.0.0/24": "reserved",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "tunnel",  # relays of 6to4
    "192.168.0.0/16": PRIVATE,
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "255.255.255.255/32": "broadcast",
    "240.0.0.0/4": "reserved",
}
_V6 = {
    "::/128": "unspecified",
    "::1/128": LOOPBACK,
    "::/96": "tunnel",  # IPv4-compatible, out of use
    "64:ff9b:1::/48": "tunnel",  # a network's own translation to IPv4: where to, only it knows
    "100::/64": "discard",
    "2001:2::/48": "benchmarking",
    "2001::/32": "tunnel",  # Teredo
    "2001::/23": "reserved",
    "2001:db8::/32": "documentation",
    "2002::/16": "tunnel",  # 6to4
    "3fff::/20": "documentation",
    "fc00::/7": PRIVATE,
    "fe80::/10": "link-local",
    "fec0::/10": "site-local",
    "ff00::/8": "multicast",
}
# Both lead to the IPv4 address in their last 32 bits, and are judged as it is.
_V4_INSIDE = ("::ffff:0:0/96", "64:ff9b::/96")
_GLOBAL_UNICAST = "2000::/3"  # all that is given out; the rest of IPv6 is reserved


class _Range(NamedTuple):
    mask: int
    network: int
    kind: str


def _range(network: str, kind: str = "") -> _Range:
    parsed = ip_network(network)
    return _Range(int(parsed.netmask), int(parsed.network_address), kind)


_V4_RANGES = [_range(network, kind) for network, kind in _V4.items()]
_V6_RANGES = [_range(network, kind) for network, kind in _V6.items()]
_V4_INSIDE_RANGES = [_range(network) for network in _V4_INSIDE]
_GLOBAL_RANGE = _range(_GLOBAL_UNICAST)


@lru_cache(maxsize=16_384)  # parsing takes most of 7 us, and sites are visited again and again
def refused(address: str) -> str:
    """Why it is not a public address, in a word or two; "" if it is one.

    >>> refused("192.168.1.1"), refused("::ffff:127.0.0.1"), refused("9.9.9.9")
    ('private', 'loopback', '')
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return "not an address"
    return _refused_v4(int(parsed)) if isinstance(parsed, IPv4Address) else _refused_v6(parsed)


class Guard(NamedTuple):
    """What a crawl may connect to. `allow_private` lets in the addresses of this machine and of private networks, and nothing else:
    link-local ones stay out, for among them are the machine secrets of every large cloud."""

    allow_private: bool = False

    def check(self, address: str) -> str:
        """Why we do not connect to it; "": we may."""
        why = refused(address)
        return "" if self.allow_private and why in (LOOPBACK, PRIVATE, SHARED) else why


def _refused_v4(value: int) -> str:
    for mask, network, kind in _V4_RANGES:
        if value & mask == network:
            return kind
    return ""


def _refused_v6(address: IPv6Address) -> str:
    if address.scope_id is not None:
        return "of one link only"  # a zone, as in fe80::1%eth0
    value = int(address)
    for mask, network, _ in _V4_INSIDE_RANGES:
        if value & mask == network:
            return _refused_v4(value & 0xFFFF_FFFF)
    for mask, network, kind in _V6_RANGES:
        if value & mask == network:
            return kind
    return "" if value & _GLOBAL_RANGE.mask == _GLOBAL_RANGE.network else "reserved"
