"""Names to addresses: asynchronous, cached, each name asked once however many wait for it. Step 5 of the way of a URL, and
ahead of it: a site can be visited only when its address is known.

It does not judge addresses (address.py) and does not connect. Nothing that comes from outside raises here: what went wrong is
in the answer.

In this order: a numeric host is its own address; the hosts given by the user; the system's hosts file and `localhost`; DNS. A
name with IPv4 addresses is reached by those alone; IPv6 is asked for if there are none: docs/decisions/015-dns-and-guard.md.
"""

import asyncio
import math
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

import aiodns
import pycares

from trapline.errors import ConfigError
from trapline.fetch import failure

LEAST_TTL_S = 60.0
MOST_TTL_S = 86_400.0
ABSENT_S = 900.0  # a name that does not exist may be registered; RFC 2308 would allow hours
FAILED_S = 60.0  # nobody answered; RFC 9520: at most five minutes
MOST_ADDRESSES = 8  # kept of one name; we connect to one

_NOSORT = 1 << 7  # ARES_AI_NOSORT of c-ares: else it opens a socket to every address to compare routes
_FINAL = {
    aiodns.error.ARES_ENOTFOUND: "no such name",
    aiodns.error.ARES_ENODATA: "the name has no address",
    aiodns.error.ARES_EBADNAME: "not a valid name",
}
# WHATWG URL, "ends in a number": such a host is an IPv4 address or nothing, never a name.
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:\d+|0[xX][0-9a-fA-F]*)\.?$")


class Answer(NamedTuple):
    addresses: tuple[str, ...]  # in rising order, IPv4 first; () if there are none
    expires_at: float  # of the monotonic clock
    failure: str = ""  # failure.DNS if there are none
    retry: bool = False  # it may be otherwise soon: nobody answered, or the server is in trouble
    reason: str = ""  # for people


class Resolver:
    """Answers for one event loop; the first question to DNS binds it to the one that runs.

    `nameservers` are "address" or "address:port", instead of the system's.
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
        self._under_way: dict[str, asyncio.Task[Answer]] = {}
        self._dns: aiodns.DNSResolver | None = None

    def known(self, host: str) -> Answer | None:
        """The answer if it takes no waiting."""
        answer = self._recent.get(host)
        if answer is not None and answer.expires_at > self._clock():
            return answer
        answer = _numeric(host) or self._of_user(host)
        if answer is not None:
            self._recent.put(host, answer)
        return answer

    def bind(self) -> None:
        """Now, instead of with the first question: `ConfigError` if the name servers are not addresses."""
        self._bound()

    async def addresses(self, host: str) -> Answer:
        """`host` is that of a canonical URL: ASCII, small letters, IPv6 in brackets."""
        return self.known(host) or await self._shared(host)

    async def close(self) -> None:
        """Ends the questions under way; their askers are cancelled."""
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        if self._dns is not None:
            await self._dns.close()
            self._dns = None

    def _of_user(self, host: str) -> Answer | None:
        given = self._hosts.get(host.removesuffix("."))
        return Answer(_in_order(given), math.inf) if given else None

    async def _shared(self, host: str) -> Answer:
        task = self._under_way.get(host)
        if task is None:
            task = self._under_way[host] = asyncio.ensure_future(self._look_up(host))
            task.add_done_callback(lambda _: self._under_way.pop(host, None))
        return await asyncio.shield(task)  # an asker that gives up does not take the others' answer away

    async def _look_up(self, host: str) -> Answer:
        async with self._turn:
            answer = await self._ask(host)
        self._recent.put(host, answer)
        return answer

    async def _ask(self, host: str) -> Answer:
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
        return Answer(addresses, self._clock() + min(max(LEAST_TTL_S, _ttl_s(found)), MOST_TTL_S))

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
                # NOSEARCH: `example` is not `example.our-company.net`.
                self._dns = aiodns.DNSResolver(
                    self._nameservers, flags=pycares.ARES_FLAG_NOSEARCH, timeout=self._try_s, tries=self._tries
                )
            except pycares.AresError as error:
                raise ConfigError(
                    f"--nameserver {', '.join(self._nameservers)}: not addresses, as 9.9.9.9 or 127.0.0.1:53"
                ) from error
        return self._dns

    def _failed(self, reason: str, retry: bool, for_s: float) -> Answer:
        return Answer((), self._clock() + for_s, failure.DNS, retry, reason)


class _Recent:
    """The names used last, at least half of `most` and at most all of them: when the young half is full, it becomes the old one."""

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._young: dict[str, Answer] = {}
        self._old: dict[str, Answer] = {}

    def get(self, host: str) -> Answer | None:
        answer = self._young.get(host)
        if answer is None:
            answer = self._old.get(host)
            if answer is not None:
                self.put(host, answer)
        return answer

    def put(self, host: str, answer: Answer) -> None:
        if len(self._young) >= self._half and host not in self._young:
            self._old, self._young = self._young, {}
        self._young[host] = answer

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())


def _numeric(host: str) -> Answer | None:
    """The answer if the host is an address, or something that can only be one."""
    if not (":" in host or _ENDS_IN_NUMBER.search(host)):
        return None
    try:
        address = str(_unmapped(ip_address(host.strip("[]") if ":" in host else host.removesuffix("."))))
    except ValueError:
        return Answer((), math.inf, failure.DNS, False, "not a valid address")
    return Answer((address,), math.inf)


def _unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Of the two ways to write an IPv4 address the usual one: a server is to be known by one address."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _ttl_s(found: pycares.AddrInfoResult) -> int:
    """For how long the whole chain of names and addresses holds."""
    return min([*(node.ttl for node in found.nodes), *(alias.ttl for alias in found.cnames)], default=0)


def _in_order(addresses: Sequence[str]) -> tuple[str, ...]:
    """The same order whenever they are the same addresses, so that a site stays in the group of its first one."""
    parsed = {_unmapped(ip_address(address)) for address in addresses}
    return tuple(str(address) for address in sorted(parsed, key=lambda a: (a.version, int(a))))[:MOST_ADDRESSES]
