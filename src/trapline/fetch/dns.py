"""DNS resolver: asynchronous and cached. Concurrent lookups of one name share one query.

Part of step 5 in docs/architecture.md, but runs ahead of it: a site can be visited only when its address is known. The resolver does
not check addresses (address.py) and does not connect. Nothing that comes from outside raises here: the answer says what went wrong.

The order is: a numeric host is its own address; the hosts given by the user; the system's hosts file and `localhost`; DNS. If a name
has IPv4 addresses, only these are used; IPv6 is queried only if there are none: docs/decisions/015-dns-and-guard.md.
"""

import asyncio
import math
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

import aiodns
import pycares

from trapline.errors import ConfigError
from trapline.fetch import failure

# ---- Hosts files: on each line an address, then its names; `#` begins a comment.
#
# The resolver uses these before DNS; `testweb` writes such a file for the sites that it serves.


def read_hosts(path: Path) -> dict[str, tuple[str, ...]]:
    """Read a hosts file, and return the addresses of each name."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as a hosts file: {error}") from error
    return parse_hosts(text, str(path))


def parse_hosts(text: str, source: str) -> dict[str, tuple[str, ...]]:
    """Return the addresses of each name, in lower case. A name on several lines has the addresses of all of them.

    >>> parse_hosts("127.0.0.2 a.test www.a.test  # two names", "hosts")
    {'a.test': ('127.0.0.2',), 'www.a.test': ('127.0.0.2',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for row, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words:
            address = _address(words, f"{source}, line {row}")
            for name in words[1:]:
                name = name.lower().removesuffix(".")
                found[name] = (*found.get(name, ()), address)
    return found


def hosts_text(addresses: Mapping[str, Sequence[str]]) -> str:
    """Return the text of a hosts file with these addresses by name.

    >>> hosts_text({"a.test": ["127.0.0.2"]})
    '127.0.0.2 a.test\\n'
    """
    return "".join(f"{address} {name}\n" for name, own in addresses.items() for address in own)


def _address(words: list[str], where: str) -> str:
    try:
        address = str(ip_address(words[0]))
    except ValueError:
        raise ConfigError(f"{where}: {words[0]!r} is not an IP address; begin the line with one") from None
    if len(words) < 2:
        raise ConfigError(f"{where}: no host name after the address {address}; add one")
    return address


# ---- Resolver

LEAST_TTL_S = 60.0
MOST_TTL_S = 86_400.0
ABSENT_S = 900.0  # a name that does not exist may get registered; RFC 2308 would allow hours
FAILED_S = 60.0  # no name server answered; RFC 9520: at most five minutes
MOST_ADDRESSES = 8  # kept per name; the crawler connects to one

_NOSORT = 1 << 7  # ARES_AI_NOSORT of c-ares: without it, c-ares opens a socket to every address to compare routes
_FINAL = {
    aiodns.error.ARES_ENOTFOUND: "no such name",
    aiodns.error.ARES_ENODATA: "the name has no address",
    aiodns.error.ARES_EBADNAME: "not a valid name",
}
# WHATWG URL, "ends in a number": such a host is an IPv4 address or invalid, never a name.
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:\d+|0[xX][0-9a-fA-F]*)\.?$")


class DnsAnswer(NamedTuple):
    addresses: tuple[str, ...]  # in ascending order, IPv4 first; () if there are none
    expires_at: float  # by the monotonic clock
    failure: str = ""  # failure.DNS if there are no addresses
    retry: bool = False  # the failure may be temporary: no answer, or a server error
    reason: str = ""  # why it failed, for people


class Resolver:
    """A resolver for one event loop; the first DNS query binds it to the running one.

    `nameservers`: "address" or "address:port", used instead of the system's.
    """

    def __init__(
        self,
        hosts: Mapping[str, Sequence[str]] | None = None,
        nameservers: Sequence[str] = (),
        *,
        most_at_once: int = 64,
        try_s: float = 2.0,
        tries: int = 3,
        whole_s: float = 15.0,
        most_names: int = 100_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hosts = hosts or {}
        self._nameservers = list(nameservers)
        self._try_s, self._tries, self._whole_s = try_s, tries, whole_s
        self._clock = clock
        self._turn = asyncio.Semaphore(most_at_once)
        self._recent = _Recent(most_names)
        self._under_way: dict[str, asyncio.Task[DnsAnswer]] = {}
        self._dns: aiodns.DNSResolver | None = None

    def known(self, host: str) -> DnsAnswer | None:
        """Return the answer if it is available without a DNS query."""
        answer = self._recent.get(host)
        if answer is not None and answer.expires_at > self._clock():
            return answer
        answer = _numeric(host) or self._from_user(host)
        if answer is not None:
            self._recent.put(host, answer)
        return answer

    def bind(self) -> None:
        """Bind to the event loop now, before the first query. Raises `ConfigError` if the name servers are not addresses."""
        self._bound()

    async def addresses(self, host: str) -> DnsAnswer:
        """Return the addresses of a host, written as in a canonical URL: ASCII, lower case, IPv6 in brackets."""
        return self.known(host) or await self._shared(host)

    async def close(self) -> None:
        """Cancel all lookups under way, and with them the tasks that await them."""
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        if self._dns is not None:
            await self._dns.close()
            self._dns = None

    def _from_user(self, host: str) -> DnsAnswer | None:
        given = self._hosts.get(host.removesuffix("."))
        return DnsAnswer(_in_order(given), math.inf) if given else None

    async def _shared(self, host: str) -> DnsAnswer:
        task = self._under_way.get(host)
        if task is None:
            task = self._under_way[host] = asyncio.ensure_future(self._look_up(host))
            task.add_done_callback(lambda _: self._under_way.pop(host, None))
        return await asyncio.shield(task)  # a caller that is cancelled does not cancel the lookup for the others

    async def _look_up(self, host: str) -> DnsAnswer:
        async with self._turn:
            answer = await self._ask(host)
        self._recent.put(host, answer)
        return answer

    async def _ask(self, host: str) -> DnsAnswer:
        try:
            async with asyncio.timeout(self._whole_s):
                found = await self._ask_either_family(host)
        except TimeoutError:
            return self._failed("no answer in time", True, FAILED_S)
        except UnicodeError:
            return self._failed("not a valid name", False, ABSENT_S)
        except aiodns.error.DNSError as error:
            number, text = error.args
            final = number in _FINAL
            return self._failed(_FINAL.get(number, text.lower()), not final, ABSENT_S if final else FAILED_S)
        addresses = _in_order([node.addr[0].decode("ascii") for node in found.nodes])
        return DnsAnswer(addresses, self._clock() + min(max(LEAST_TTL_S, _ttl_s(found)), MOST_TTL_S))

    async def _ask_either_family(self, host: str) -> pycares.AddrInfoResult:
        dns = self._bound()
        try:
            return await dns.getaddrinfo(host, family=socket.AF_INET, flags=_NOSORT)
        except aiodns.error.DNSError as error:
            if error.args[0] != aiodns.error.ARES_ENODATA:
                raise
        return await dns.getaddrinfo(host, family=socket.AF_INET6, flags=_NOSORT)

    def _bound(self) -> aiodns.DNSResolver:
        if self._dns is None:
            try:
                # NOSEARCH: do not try `example.our-company.net` for `example`.
                self._dns = aiodns.DNSResolver(
                    self._nameservers, flags=pycares.ARES_FLAG_NOSEARCH, timeout=self._try_s, tries=self._tries
                )
            except pycares.AresError as error:
                raise ConfigError(
                    f"--nameserver {', '.join(self._nameservers)}: not an IP address; use one such as 9.9.9.9 or 127.0.0.1:53"
                ) from error
        return self._dns

    def _failed(self, reason: str, retry: bool, for_s: float) -> DnsAnswer:
        return DnsAnswer((), self._clock() + for_s, failure.DNS, retry, reason)


class _Recent:
    """Cache of the most recently used names, between half of `most` and `most` of them.

    When the young half is full, it replaces the old half.
    """

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._young: dict[str, DnsAnswer] = {}
        self._old: dict[str, DnsAnswer] = {}

    def get(self, host: str) -> DnsAnswer | None:
        answer = self._young.get(host)
        if answer is None:
            answer = self._old.get(host)
            if answer is not None:
                self.put(host, answer)
        return answer

    def put(self, host: str, answer: DnsAnswer) -> None:
        if len(self._young) >= self._half and host not in self._young:
            self._old, self._young = self._young, {}
        self._young[host] = answer

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())


def _numeric(host: str) -> DnsAnswer | None:
    """Return the answer for a host that is an address, or that can only be an invalid address; None for a name."""
    if not (":" in host or _ENDS_IN_NUMBER.search(host)):
        return None
    try:
        address = str(_unmapped(ip_address(host.strip("[]") if ":" in host else host.removesuffix("."))))
    except ValueError:
        return DnsAnswer((), math.inf, failure.DNS, False, "not a valid address")
    return DnsAnswer((address,), math.inf)


def _unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return an IPv4-mapped IPv6 address as IPv4, so that a server is known by one address."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _ttl_s(found: pycares.AddrInfoResult) -> int:
    """Return the lifetime of the whole chain of aliases and addresses: the smallest TTL in it."""
    return min([*(node.ttl for node in found.nodes), *(alias.ttl for alias in found.cnames)], default=0)


def _in_order(addresses: Sequence[str]) -> tuple[str, ...]:
    """Sort addresses, so that the same set always has the same first address and a site stays in the group of that address."""
    parsed = {_unmapped(ip_address(address)) for address in addresses}
    return tuple(str(address) for address in sorted(parsed, key=lambda a: (a.version, int(a))))[:MOST_ADDRESSES]
