"""Sites whose owner is ours to find out: what was met of them lies in parcels to ourselves until their names are looked up.

Such a parcel is on disk like any other, and delivered once: then what is ours goes to the frontier, what is another's goes on to it, and
what could not be looked up in time goes into the next such parcel. One parcel is looked up
at a time, for a second at most: a name server that does not answer delays the sites of later parcels by that. A crash loses none.
"""

import asyncio
from collections.abc import Callable

from trapline.fetch.dns import Resolver
from trapline.fetch.urls import host_port, origin
from trapline.parallel.batch_code import decode
from trapline.parallel.places import Places

_PATIENCE_S = 1.0
_AT_ONCE = 8  # parcels read from the disk


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
        self._done = done
        self.news = asyncio.Event()

    async def run(self) -> None:
        own = self._places.own
        while True:
            self.news.clear()
            while found := self._parcels(own, self._done, _AT_ONCE):
                for number, data in found:
                    await self._look_up({origin(row.url.decode(errors="replace")) for row in decode(data)})
                    self._done = number
                    self._deliver(own, number, data)
            await self.news.wait()

    async def _look_up(self, sites: set[str]) -> None:
        unsettled = {
            site: asyncio.ensure_future(self._resolver.addresses(host_port(site)[1]))
            for site in sites
            if self._places.owns(site) is None
        }
        if not unsettled:
            return
        await asyncio.wait(unsettled.values(), timeout=_PATIENCE_S)
        for site, answer in unsettled.items():
            if answer.done():
                self._places.settle(site, answer.result().addresses)
            else:
                answer.cancel()  # the question itself goes on, and its answer is kept for the next time
