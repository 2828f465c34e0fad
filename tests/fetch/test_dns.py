"""The resolver against a real DNS server on loopback, on both event loops."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from tests.fetch.name_server import SERVER_FAILURE, TYPE_A, TYPE_AAAA, Name, NameServer
from trapline.errors import ConfigError
from trapline.fetch import failure
from trapline.fetch.dns import ABSENT_S, FAILED_S, LEAST_TTL_S, MOST_ADDRESSES, MOST_TTL_S, DnsAnswer, Resolver

NAMES = {
    "four.test": Name(("192.0.2.9", "192.0.2.10", "192.0.2.9"), 600),
    "six.test": Name(("2001:db8::2", "2001:db8::1"), 700),
    "both.test": Name(("2001:db8::1", "192.0.2.1")),
    "short.test": Name(("192.0.2.1",), 0),
    "long.test": Name(("192.0.2.1",), 10_000_000),
    "alias.test": Name(ttl_s=120, alias="four.test"),
    "nothing.test": Name(),
    "trouble.test": Name(code=SERVER_FAILURE),
    "silent.test": Name(silent=True),
    "many.test": Name(tuple(f"192.0.2.{last}" for last in range(1, 21))),
}
Ask = Callable[[NameServer, Resolver], Awaitable[Any]]
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def run(ask: Ask, loop: str = "uvloop", **options: Any) -> Any:
    async def whole() -> Any:
        server = NameServer(NAMES)
        resolver = Resolver(nameservers=[await server.start()], **options)
        try:
            return await ask(server, resolver)
        finally:
            await resolver.close()
            server.transport.close()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(whole())


def answer(host: str, **options: Any) -> DnsAnswer:
    async def ask(_: NameServer, resolver: Resolver) -> DnsAnswer:
        return await resolver.addresses(host)

    return run(ask, **options)


@pytest.mark.parametrize("loop", LOOPS)
def test_addresses_are_sorted_and_valid_for_their_ttl(loop: str) -> None:
    clock = Clock()
    assert answer("four.test", loop=loop, clock=clock) == DnsAnswer(("192.0.2.9", "192.0.2.10"), clock.now + 600)


def test_ipv6_is_queried_only_if_there_is_no_ipv4_address() -> None:
    async def ask(server: NameServer, resolver: Resolver) -> None:
        assert (await resolver.addresses("six.test")).addresses == ("2001:db8::1", "2001:db8::2")
        assert (await resolver.addresses("both.test")).addresses == ("192.0.2.1",)
        assert server.queries == {("six.test", TYPE_A): 1, ("six.test", TYPE_AAAA): 1, ("both.test", TYPE_A): 1}

    run(ask)


@pytest.mark.parametrize(
    ("host", "holds_s"),
    [("short.test", LEAST_TTL_S), ("long.test", MOST_TTL_S), ("alias.test", 120), ("six.test", 700)],
)
def test_how_long_an_answer_is_valid(host: str, holds_s: float) -> None:
    found = answer(host, clock=Clock())
    assert found.addresses and found.expires_at == Clock.now + holds_s


def test_an_alias_has_the_addresses_of_its_name() -> None:
    assert answer("alias.test").addresses == ("192.0.2.9", "192.0.2.10")


def test_only_the_first_of_many_addresses_are_kept() -> None:
    assert answer("many.test").addresses == tuple(f"192.0.2.{last}" for last in range(1, MOST_ADDRESSES + 1))


@pytest.mark.parametrize(
    ("host", "retry", "reason"),
    [
        ("absent.test", False, "no such name"),
        ("nothing.test", False, "the name has no address"),
        ("a..test", False, "not a valid name"),
        ("x" * 64 + ".test", False, "not a valid name"),
        ("\ud800.test", False, "not a valid name"),
        ("trouble.test", True, "dns server"),
        ("silent.test", True, "time"),
    ],
)
def test_a_host_without_an_address_differs_from_a_missing_answer(host: str, retry: bool, reason: str) -> None:
    found = answer(host, clock=Clock(), tries=1, try_s=0.25)
    assert (found.addresses, found.failure, found.retry) == ((), failure.DNS, retry)
    assert found.expires_at == Clock.now + (FAILED_S if retry else ABSENT_S)
    assert reason in found.reason


def test_a_lookup_has_a_total_timeout() -> None:
    found = answer("silent.test", whole_s=0.02)
    assert (found.retry, found.reason) == (True, "no answer in time")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("[::ffff:7f4e:e]", "127.78.0.14"),
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1.", "192.0.2.1"),
        ("[::1]", "::1"),
        ("[2001:db8:0:0::1]", "2001:db8::1"),
    ],
)
def test_a_numeric_host_is_its_own_address(host: str, address: str) -> None:
    assert Resolver().known(host) == DnsAnswer((address,), math.inf)


@pytest.mark.parametrize(
    "host", ["127.1", "1.2.3.4.5", "256.1.1.1", "0x7f.1", "2130706433", "a.test.7", "[::g]", "010.1.1.1"]
)
def test_a_malformed_numeric_host_is_never_queried(host: str) -> None:
    found = Resolver().known(host)
    assert found is not None and (found.addresses, found.failure, found.retry) == ((), failure.DNS, False)


def test_the_users_hosts_file_takes_precedence_over_dns() -> None:
    async def ask(server: NameServer, resolver: Resolver) -> None:
        for host in ("four.test", "four.test."):
            assert await resolver.addresses(host) == DnsAnswer(("127.0.0.9", "127.0.0.10", "::1"), math.inf)
        assert not server.queries

    run(ask, hosts={"four.test": ["::1", "127.0.0.10", "127.0.0.9"]})


def test_localhost_is_resolved_by_the_system() -> None:
    async def ask(server: NameServer, resolver: Resolver) -> None:
        assert (await resolver.addresses("localhost")).addresses == ("127.0.0.1",)
        assert not server.queries

    run(ask)


def test_simultaneous_lookups_of_one_host_share_one_query() -> None:
    async def ask(server: NameServer, resolver: Resolver) -> None:
        found = await asyncio.gather(*(resolver.addresses("four.test") for _ in range(50)))
        assert len(set(found)) == 1
        assert server.queries["four.test", TYPE_A] == 1

    run(ask)


def test_a_cancelled_lookup_does_not_cancel_the_others() -> None:
    async def ask(server: NameServer, resolver: Resolver) -> None:
        server.delay_s = 0.02
        first = asyncio.ensure_future(resolver.addresses("four.test"))
        second = asyncio.ensure_future(resolver.addresses("four.test"))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).addresses
        assert first.cancelled()

    run(ask)


def test_simultaneous_queries_are_limited() -> None:
    async def ask(server: NameServer, resolver: Resolver) -> int:
        server.delay_s = 0.05
        found = await asyncio.gather(*(resolver.addresses(f"absent-{number}.test") for number in range(12)))
        assert {each.reason for each in found} == {"no such name"}
        return server.most_waiting

    assert run(ask, most_at_once=3) <= 3 < run(ask, most_at_once=12)


def test_an_answer_is_cached_until_it_expires() -> None:
    clock = Clock()

    async def ask(server: NameServer, resolver: Resolver) -> None:
        found = await resolver.addresses("four.test")
        clock.now = found.expires_at - 0.001
        assert resolver.known("four.test") is found
        clock.now = found.expires_at
        assert resolver.known("four.test") is None
        assert (await resolver.addresses("four.test")).expires_at > clock.now

    run(ask, clock=clock)


def test_the_cache_keeps_the_most_recently_used_names_up_to_its_size() -> None:
    async def ask(_: NameServer, resolver: Resolver) -> None:
        for number in range(100):
            await resolver.addresses(f"absent-{number}.test")
            assert await resolver.addresses("four.test") is resolver.known("four.test")
        kept = [number for number in range(100) if resolver.known(f"absent-{number}.test")]
        assert kept[-4:] == [96, 97, 98, 99]
        assert len(kept) < 10

    run(ask, most_names=10)


def test_closing_ends_pending_lookups() -> None:
    async def ask(_: NameServer, resolver: Resolver) -> None:
        waiting = asyncio.ensure_future(resolver.addresses("silent.test"))
        await asyncio.sleep(0.01)
        await resolver.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run(ask)


def test_an_invalid_name_server_is_a_configuration_error() -> None:
    async def ask() -> None:
        await Resolver(nameservers=["not an address"]).addresses("four.test")

    with pytest.raises(ConfigError, match="not an address: not an IP address"):
        asyncio.run(ask())
