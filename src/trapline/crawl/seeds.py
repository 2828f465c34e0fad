"""Whether there is anything to crawl: looked at before a folder is made, so that a wrong URL costs nothing."""

import asyncio
from itertools import islice

from trapline.crawl.options import CrawlOptions
from trapline.errors import ConfigError
from trapline.fetch.address import Guard
from trapline.fetch.dns import Answer, Resolver
from trapline.fetch.urls import host_port, origin

_HOSTS = 64  # of a long list of seeds, the first so many
_WITHIN_S = 4.0  # the crawl itself waits longer for a name server; nobody wants to before it begins
_NOTES = 5


async def check_seeds(options: CrawlOptions) -> tuple[str, ...]:
    """`ConfigError` if no seed's host has an address that may be connected to; if some have, a line on each that has not."""
    of_host: dict[str, str] = {}
    for seed in options.seeds:
        of_host.setdefault(host_port(origin(seed))[1], seed)
    some = dict(islice(of_host.items(), _HOSTS))
    answers = await _looked_up(options, list(some))
    guard = Guard(options.allow_private)
    lost = [
        f"{seed}: {_why(host, answer, guard)}"
        for (host, seed), answer in zip(some.items(), answers, strict=True)
        if all(guard.check(address) for address in answer.addresses)
    ]
    if len(lost) == len(of_host):
        raise ConfigError(lost[0])
    return (*lost[:_NOTES], *([f"and {len(lost) - _NOTES:,} seeds more that cannot be had"] if lost[_NOTES:] else []))


async def _looked_up(options: CrawlOptions, hosts: list[str]) -> list[Answer]:
    resolver = Resolver(options.hosts, options.nameservers, try_s=_WITHIN_S / 2, tries=2, whole_s=_WITHIN_S)
    try:
        resolver.bind()
        return await asyncio.gather(*map(resolver.addresses, hosts))
    finally:
        await resolver.close()


def _why(host: str, answer: Answer, guard: Guard) -> str:
    if answer.retry:
        return f"no name server answered for {host}: {answer.reason}"
    if not answer.addresses:
        return f"no such host: {host}"
    kind = guard.check(answer.addresses[0])
    if Guard(allow_private=True).check(answer.addresses[0]):
        return f"{answer.addresses[0]} is a {kind} address, which is never connected to"
    return f"{answer.addresses[0]} is a {kind} address; --allow-private connects to such"
