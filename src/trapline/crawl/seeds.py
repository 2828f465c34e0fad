"""Whether there is anything to crawl: looked at before a folder is made, so that a wrong URL costs nothing."""

import asyncio

from trapline.crawl.options import CrawlOptions
from trapline.errors import ConfigError
from trapline.fetch.address import Guard
from trapline.fetch.dns import Answer, Resolver
from trapline.fetch.urls import host_port, origin

_HOSTS = 64  # of a long list of seeds, the first so many


async def check_seeds(options: CrawlOptions) -> None:
    """`ConfigError` if none of the first seeds' hosts has an address that may be connected to."""
    resolver, guard = Resolver(options.hosts, options.nameservers), Guard(options.allow_private)
    of_host: dict[str, str] = {}
    for seed in options.seeds:
        of_host.setdefault(host_port(origin(seed))[1], seed)
    hosts = list(of_host)[:_HOSTS]
    answers = await asyncio.gather(*map(resolver.addresses, hosts))
    if not any(_allowed(answer, guard) for answer in answers):
        raise ConfigError(f"{of_host[hosts[0]]}: {_why(hosts[0], answers[0], guard)}")


def _allowed(answer: Answer, guard: Guard) -> bool:
    return any(not guard.check(address) for address in answer.addresses)


def _why(host: str, answer: Answer, guard: Guard) -> str:
    if answer.addresses:
        kind = guard.check(answer.addresses[0])
        return f"{answer.addresses[0]} is a {kind} address; --allow-private connects to such"
    if answer.retry:
        return f"no name server answered for {host}"
    return f"no such host: {host}"
