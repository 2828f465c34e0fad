"""Addresses of sites, ahead of need: a new site is looked up when it is discovered, and can be visited once it has an address.

It decides which address a site is on (the frontier's group), and gives up sites that have none or only addresses that the guard
refuses. It opens no connection; the guard is asked again when one is opened.
"""

import asyncio
from collections import deque

import numpy as np

from trapline.crawl.crawler import Crawler
from trapline.crawl.sites import UNRESOLVED, Site, Sites
from trapline.fetch import failure
from trapline.fetch.address import Guard
from trapline.fetch.dns import FAILED_S, Answer, Resolver

AT_ONCE = 128
TRIES = 3
RETRY_S = FAILED_S + 1.0  # after a name server that did not answer: before that the resolver says the same again


class Names:
    """Who fills its queue: `locate` (new sites) and `visited` (addresses that have expired). Who empties it: up to AT_ONCE tasks."""

    def __init__(self, resolver: Resolver, guard: Guard) -> None:
        self._resolver, self._guard = resolver, guard
        self._queue: deque[Site] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._tries: dict[int, int] = {}  # site -> lookups that nobody answered

    def start(self, crawler: Crawler, loop: asyncio.AbstractEventLoop) -> None:
        self._crawler, self._loop = crawler, loop

    def locate(self, site: Site) -> int:
        """The group of a new site if its address is known at once, else UNRESOLVED until it is."""
        answer = self._resolver.known(site.host)
        if answer is None:
            self._look_up(site)
            return UNRESOLVED
        group = self._place(site, answer)
        if group == UNRESOLVED:
            self._loop.call_soon(self._give_up, site, answer)  # not yet: the frontier learns of the site after this
        return group

    def look_up_rest(self, sites: Sites) -> None:
        """A crawl goes on: the sites whose address nobody had found yet, and that were not given up."""
        records = self._crawler.frontier.state.site[: len(sites)]
        for number in np.flatnonzero((records["group"] < 0) & (records["budget"] != 0)).tolist():
            self._look_up(sites[number])

    def visited(self, site: Site) -> None:
        """A visit has ended: now the site may move, if its address has expired."""
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
        """The first address could not be reached, and the visit has ended: the next one tries another."""
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

    def _found(self, site: Site, answer: Answer) -> None:
        record = self._crawler.frontier.state.site[site.id]
        if record["visit"] >= 0:
            return  # a site does not move while it is visited; `visited` asks again, and has the answer at once
        if record["budget"] == 0:
            return  # it was given up meanwhile
        if answer.failure and site.addresses:
            site.addresses_until = answer.expires_at  # what was known must do
            return
        if answer.failure and answer.retry and self._tries.get(site.id, 0) < TRIES - 1:
            self._tries[site.id] = self._tries.get(site.id, 0) + 1
            self._loop.call_later(RETRY_S, self._look_up, site)
            return
        self._tries.pop(site.id, None)
        if self._place(site, answer) == UNRESOLVED:
            self._give_up(site, answer)
        else:
            self._move(site)
            self._crawler.soon()

    def _place(self, site: Site, answer: Answer) -> int:
        """Note its addresses; the group of the first, or UNRESOLVED if it has none that may be connected to."""
        allowed = tuple(address for address in answer.addresses if not self._guard.check(address))
        if not allowed:
            return UNRESOLVED
        site.addresses, site.addresses_until = allowed, answer.expires_at
        return self._crawler.known.group(allowed[0])

    def _give_up(self, site: Site, answer: Answer) -> None:
        if answer.addresses:
            first = answer.addresses[0]
            self._crawler.give_up(site, failure.ADDRESS, f"its address {first} is refused: {self._guard.check(first)}")
        else:
            self._crawler.give_up(site, failure.DNS, answer.reason or "no such host")

    def _move(self, site: Site) -> None:
        """To the group of its address, so that the address gets its rest."""
        frontier = self._crawler.frontier
        group = self._crawler.known.group(site.addresses[0])
        if frontier.state.site["group"][site.id] != group:
            frontier.resolve(site.id, group, self._crawler.now())
