"""The site resolver: looks up the address of a site when it is discovered. A site can be visited once it has an address.

The resolver decides which address a site is on (the frontier's group). It abandons sites without an address, or with
addresses that the guard refuses. It opens no connection; the guard checks the address again when one is opened.
"""

import asyncio
from collections import deque

import numpy as np

from trapline.crawler.discovery.sites import UNRESOLVED, Site, Sites
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.engine.records import BLOCKED, BY_SETTINGS
from trapline.fetch import failure
from trapline.fetch.address import Guard
from trapline.fetch.dns import FAILED_S, DnsAnswer, Resolver

AT_ONCE = 128
TRIES = 3
RETRY_S = FAILED_S + 1.0  # after a name server that did not answer; until then the resolver repeats its cached failure


class SiteResolver:
    """A queue of sites to look up. `locate` adds new sites, `visited` adds sites whose addresses have expired. Up to AT_ONCE
    tasks take sites from it."""

    def __init__(self, resolver: Resolver, guard: Guard) -> None:
        self._resolver, self._guard = resolver, guard
        self._queue: deque[Site] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._tries: dict[int, int] = {}  # site -> number of lookups without an answer

    def start(self, crawler: Crawler, loop: asyncio.AbstractEventLoop) -> None:
        self._crawler, self._loop = crawler, loop

    def locate(self, site: Site) -> int:
        """Return the group of a new site if its address is known at once. Otherwise look it up and return UNRESOLVED. A blocked site
        is not looked up."""
        if site.settings is not None and site.settings.blocked:
            self._loop.call_soon(self._crawler.abandon, site, BLOCKED, BY_SETTINGS)
            return UNRESOLVED
        answer = self._resolver.known(site.host)
        if answer is None:
            self._look_up(site)
            return UNRESOLVED
        group = self._place(site, answer)
        if group == UNRESOLVED:
            self._loop.call_soon(self._abandon, site, answer)  # later: the frontier does not know the site yet
        return group

    def look_up_remaining(self, sites: Sites) -> None:
        """Look up the sites of a resumed crawl that have no address yet and were not abandoned."""
        frontier = self._crawler.frontier
        for number in np.flatnonzero((frontier.site_groups < 0) & (frontier.site_budgets != 0)).tolist():
            self._look_up(sites[number])

    def visited(self, site: Site) -> None:
        """Look up the site again if its address has expired. Its visit has ended, so it may move to another address."""
        if self._loop.time() < site.addresses_until:
            return
        answer = self._resolver.known(site.host)
        if answer is None:
            self._look_up(site)
        else:
            self._found(site, answer)

    def refuses(self, address: str) -> bool:
        return bool(self._guard.check(address))

    def next_address(self, site: Site) -> None:
        """Let the next visit try another address. The first one could not be reached, and the visit has ended."""
        if len(site.addresses) > 1:
            site.addresses = (*site.addresses[1:], site.addresses[0])
            self._move(site)

    def _look_up(self, site: Site) -> None:
        self._queue.append(site)
        if len(self._tasks) < AT_ONCE:
            task = self._loop.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        while self._queue:
            site = self._queue.popleft()
            self._found(site, await self._resolver.addresses(site.host))

    def _found(self, site: Site, answer: DnsAnswer) -> None:
        frontier = self._crawler.frontier
        if frontier.is_visited(site.id):
            return  # a site does not move during a visit; after it, `visited` gets the answer from the resolver's cache
        if frontier.site_budgets[site.id] == 0:
            return  # it was abandoned in the meantime
        if answer.failure and site.addresses:
            site.addresses_until = answer.expires_at  # keep the old addresses
            return
        if answer.failure and answer.retry and self._tries.get(site.id, 0) < TRIES - 1:
            self._tries[site.id] = self._tries.get(site.id, 0) + 1
            self._loop.call_later(RETRY_S, self._look_up, site)
            return
        self._tries.pop(site.id, None)
        if self._place(site, answer) == UNRESOLVED:
            self._abandon(site, answer)
        else:
            self._move(site)
            self._crawler.address_found(site)

    def _place(self, site: Site, answer: DnsAnswer) -> int:
        """Set the site's addresses. Return the group of the first, or UNRESOLVED if the guard refuses all of them."""
        allowed = tuple(address for address in answer.addresses if not self._guard.check(address))
        if not allowed:
            return UNRESOLVED
        site.addresses, site.addresses_until = allowed, answer.expires_at
        return self._crawler.link_resolver.group(allowed[0])

    def _abandon(self, site: Site, answer: DnsAnswer) -> None:
        if answer.addresses:
            first = answer.addresses[0]
            self._crawler.abandon(site, failure.ADDRESS, f"its address {first} is refused: {self._guard.check(first)}")
        else:
            self._crawler.abandon(site, failure.DNS, answer.reason or "no such host")

    def _move(self, site: Site) -> None:
        """Move the site to the group of its address, so that the delay of the address applies."""
        frontier = self._crawler.frontier
        group = self._crawler.link_resolver.group(site.addresses[0])
        if frontier.site_groups[site.id] != group:
            frontier.resolve(site.id, group, self._crawler.now())
