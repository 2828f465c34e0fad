"""The DNS lookups of a registrar: message batches to ourselves wait until the names of the hosts in them are looked up
(site_owner.py).

Such a batch is on disk like any other, and is delivered once, in order. At delivery, links to our sites go to the
frontier, links to sites of other partitions are forwarded, and links to sites that are not settled yet go into the next
such batch. Names of many batches are looked up at once. A name server that does not answer delays a batch by one
second, counted from when the batch was read, and waiting batches wait together. A name without an answer is looked up
again, as often as in any crawl (crawler/discovery/site_resolver.py), before its site becomes ours, to be abandoned. A
crash loses no batch.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from trapline.crawler.discovery.site_resolver import RETRY_S, TRIES
from trapline.fetch.dns import Resolver
from trapline.parallel.live.site_owner import SiteOwners, host_of
from trapline.parallel.transport.control_batches import sites_in
from trapline.parallel.transport.delivery import surface

PATIENCE_S = 1.0
_AHEAD = 64  # message batches read from the disk in advance


@dataclass(slots=True)
class _MessageBatch:
    number: int
    data: bytes
    read_at: float
    names: int = 0  # names that had to be looked up
    left: int = 0  # names whose lookup is not finished


class OwnerLookup:
    """A queue of message batches from this partition to itself. It is filled from the disk, and `run` empties it."""

    def __init__(
        self,
        resolver: Resolver,
        site_owners: SiteOwners,
        message_batches: Callable[[int, int, int], list[tuple[int, bytes]]],
        deliver: Callable[[int, int, bytes], None],
        done: int,
    ) -> None:
        """`message_batches`: reads batches from the disk, given the receiver, the number after which to begin, and the
        maximum count. `done`: the number of the last batch that was delivered."""
        self._resolver, self._site_owners, self._message_batches, self._deliver = (
            resolver,
            site_owners,
            message_batches,
            deliver,
        )
        self._last = done  # number of the last batch that was read
        self._queue: deque[_MessageBatch] = deque()
        self._waiting: dict[str, list[_MessageBatch]] = {}  # name that is being looked up -> batches that wait for it
        self._tasks: set[asyncio.Task[None]] = set()
        self.news = asyncio.Event()

    async def run(self) -> None:
        try:
            while True:
                self.news.clear()
                self._read()
                while self._queue and self._may_go(self._queue[0]):
                    batch = self._queue.popleft()
                    self._deliver(self._site_owners.own, batch.number, batch.data)
                    self._read()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._patience_s()):
                        await self.news.wait()
        finally:
            for task in self._tasks:
                task.cancel()

    def _read(self) -> None:
        room = _AHEAD - len(self._queue)
        for number, data in self._message_batches(self._site_owners.own, self._last, room) if room else ():
            self._last = number
            batch = _MessageBatch(number, data, asyncio.get_running_loop().time())
            self._queue.append(batch)
            for name, site in {host_of(site): site for site in sites_in(data)}.items():
                if self._site_owners.owns(site) is None:
                    batch.names, batch.left = batch.names + 1, batch.left + 1
                    self._wait_for(name, site, batch)

    def _wait_for(self, name: str, site: str, batch: _MessageBatch) -> None:
        if name not in self._waiting:
            self._waiting[name] = []
            task = asyncio.ensure_future(self._look_up(name, site))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(surface)
        self._waiting[name].append(batch)

    async def _look_up(self, name: str, site: str) -> None:
        answer = await self._resolver.addresses(name)
        for _ in range(TRIES - 1):
            if not (answer.failure and answer.retry):
                break
            await asyncio.sleep(RETRY_S)
            answer = await self._resolver.addresses(name)
        self._site_owners.settle(site, answer.addresses)
        for batch in self._waiting.pop(name):
            batch.left -= 1
            # The batch may go now; or, after its first name, its wait is limited from now on
            if batch.left in (0, batch.names - 1):
                self.news.set()

    def _may_go(self, batch: _MessageBatch) -> bool:
        return not batch.left or self._patience_s() == 0.0

    def _patience_s(self) -> float | None:
        """Return how long the first batch may still wait. None: without limit, because no batch is behind it, and none
        of its names is looked up yet, so that delivering it would be of no use."""
        if not self._queue:
            return None
        first = self._queue[0]
        if len(self._queue) == 1 and first.left == first.names:
            return None
        return max(first.read_at + PATIENCE_S - asyncio.get_running_loop().time(), 0.0)
