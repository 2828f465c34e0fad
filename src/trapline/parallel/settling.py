"""Sites whose owner is ours to find out: what was met of them lies in parcels to ourselves until their names are looked up.

Such a parcel is on disk like any other, and delivered once, in order: then what is ours goes to the frontier, what is another's goes
on to it, and what is not found out yet goes into the next such parcel. Names of many parcels are looked up at once; a name server that
does not answer holds a parcel up for a second, counted from when it was read, and parcels that wait do so together. A name for which
nobody answers is asked for again, as often as any crawl does (crawl/names.py), before its site is ours to be given up. A crash loses none.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from trapline.crawl.names import RETRY_S, TRIES
from trapline.fetch.dns import Resolver
from trapline.parallel.delivery import surface
from trapline.parallel.letter_code import sites_in
from trapline.parallel.places import Places, host_of

PATIENCE_S = 1.0
_AHEAD = 64  # parcels read from the disk


@dataclass(slots=True)
class _Parcel:
    number: int
    data: bytes
    read_at: float
    names: int = 0  # that had to be looked up
    left: int = 0  # of these, not found out yet


class Settling:
    """Who fills its queue: the disk, with parcels from us to us. Who empties it: `run`."""

    def __init__(
        self,
        resolver: Resolver,
        places: Places,
        parcels: Callable[[int, int, int], list[tuple[int, bytes]]],
        deliver: Callable[[int, int, bytes], None],
        done: int,
    ) -> None:
        """`parcels`: to whom, after which number, how many at most. `done`: the number of the last that was delivered."""
        self._resolver, self._places, self._parcels, self._deliver = resolver, places, parcels, deliver
        self._last = done  # the last that was read
        self._queue: deque[_Parcel] = deque()
        self._waiting: dict[str, list[_Parcel]] = {}  # by name that is being looked up
        self._tasks: set[asyncio.Task[None]] = set()
        self.news = asyncio.Event()

    async def run(self) -> None:
        try:
            while True:
                self.news.clear()
                self._read()
                while self._queue and self._may_go(self._queue[0]):
                    parcel = self._queue.popleft()
                    self._deliver(self._places.own, parcel.number, parcel.data)
                    self._read()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._patience_s()):
                        await self.news.wait()
        finally:
            for task in self._tasks:
                task.cancel()

    def _read(self) -> None:
        room = _AHEAD - len(self._queue)
        for number, data in self._parcels(self._places.own, self._last, room) if room else ():
            self._last = number
            parcel = _Parcel(number, data, asyncio.get_running_loop().time())
            self._queue.append(parcel)
            for name, site in {host_of(site): site for site in sites_in(data)}.items():
                if self._places.owns(site) is None:
                    parcel.names, parcel.left = parcel.names + 1, parcel.left + 1
                    self._wait_for(name, site, parcel)

    def _wait_for(self, name: str, site: str, parcel: _Parcel) -> None:
        if name not in self._waiting:
            self._waiting[name] = []
            task = asyncio.ensure_future(self._look_up(name, site))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(surface)
        self._waiting[name].append(parcel)

    async def _look_up(self, name: str, site: str) -> None:
        answer = await self._resolver.addresses(name)
        for _ in range(TRIES - 1):
            if not (answer.failure and answer.retry):
                break
            await asyncio.sleep(RETRY_S)
            answer = await self._resolver.addresses(name)
        self._places.settle(site, answer.addresses)
        for parcel in self._waiting.pop(name):
            parcel.left -= 1
            if parcel.left in (0, parcel.names - 1):  # it may go; it need not wait for ever any more
                self.news.set()

    def _may_go(self, parcel: _Parcel) -> bool:
        return not parcel.left or self._patience_s() == 0.0

    def _patience_s(self) -> float | None:
        """For how long the first parcel may still wait. None: for ever, as none is behind it and nothing of it would get anywhere."""
        if not self._queue:
            return None
        first = self._queue[0]
        if len(self._queue) == 1 and first.left == first.names:
            return None
        return max(first.read_at + PATIENCE_S - asyncio.get_running_loop().time(), 0.0)
