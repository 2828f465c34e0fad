"""The address guard: decides which addresses may be connected to. Step 5 in docs/architecture.md.

The guard checks one numeric address immediately before the connection, and knows no host names. The caller connects to the very
address that was checked, so that a name whose address changes between the lookup and the connection (DNS rebinding) gains nothing.

Only public addresses are allowed. The tables are IANA's special-purpose registries (RFC 6890); everything that cannot hold a web
server is refused, even where the registry calls a part of it global. Python's own `is_global` is no substitute: it changed between
releases, and does not look into all addresses that embed an IPv4 address. docs/decisions/015-dns-and-guard.md
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple

LOOPBACK = "loopback"
PRIVATE = "private"
SHARED = "shared"

_V4 = {
    "0.0.0.0/8": "unspecified",  # Linux connects to this machine
    "10.0.0.0/8": PRIVATE,
    "100.64.0.0/10": SHARED,  # carrier-grade NAT, between a provider and its customers
    "127.0.0.0/8": LOOPBACK,
    "169.254.0.0/16": "link-local",  # clouds serve a machine's credentials here
    "172.16.0.0/12": PRIVATE,
    "192.0.0.0/24": "reserved",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "tunnel",  # 6to4 relays
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
    "::/96": "tunnel",  # IPv4-compatible addresses, deprecated
    "64:ff9b:1::/48": "tunnel",  # a network's own translation to IPv4, whose targets only the network knows
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
# Both lead to the IPv4 address in their last 32 bits, and are checked as that address.
_V4_INSIDE = ("::ffff:0:0/96", "64:ff9b::/96")
_GLOBAL_UNICAST = "2000::/3"  # all addresses that are assigned; the rest of IPv6 is reserved


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


@lru_cache(maxsize=16_384)  # a check takes 7 us, most of it for parsing, and sites are visited many times
def refused(address: str) -> str:
    """Return why this is not a public address, in a word or two; "" if it is one.

    >>> refused("192.168.1.1"), refused("::ffff:127.0.0.1"), refused("9.9.9.9")
    ('private', 'loopback', '')
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return "not an address"
    return _refused_v4(int(parsed)) if isinstance(parsed, IPv4Address) else _refused_v6(parsed)


class Guard(NamedTuple):
    """The rules on what a crawl may connect to.

    `allow_private` additionally allows addresses of this machine and of private networks. Link-local addresses stay refused:
    every large cloud serves the credentials of its machines there.
    """

    allow_private: bool = False

    def check(self, address: str) -> str:
        """Return why this address is refused; "" if it is allowed."""
        why = refused(address)
        return "" if self.allow_private and why in (LOOPBACK, PRIVATE, SHARED) else why


def _refused_v4(value: int) -> str:
    for mask, network, kind in _V4_RANGES:
        if value & mask == network:
            return kind
    return ""


def _refused_v6(address: IPv6Address) -> str:
    if address.scope_id is not None:
        return "valid on one link only"  # it has a zone, as in fe80::1%eth0
    value = int(address)
    for mask, network, _ in _V4_INSIDE_RANGES:
        if value & mask == network:
            return _refused_v4(value & 0xFFFF_FFFF)
    for mask, network, kind in _V6_RANGES:
        if value & mask == network:
            return kind
    return "" if value & _GLOBAL_RANGE.mask == _GLOBAL_RANGE.network else "reserved"
