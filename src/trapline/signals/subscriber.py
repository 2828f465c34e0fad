"""The side of WebSub that asks: subscribes to the topics that the crawl found or the user named, renews leases, and leaves.

It alone talks to hubs; who answers them is deliveries.py. One request at a time to a hub, a few hubs at once.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby

from trapline.signals import websub
from trapline.signals.deliveries import Deliveries
from trapline.signals.sites_known import SitesKnown, authority_of
from trapline.signals.small_fetch import SmallFetch
from trapline.signals.subscriptions import LEASE_S, LEAVING, Subscription, Subscriptions

LOOK_S = 1.0
_AT_ONCE = 32  # subscriptions looked at


class Subscriber:
    def __init__(
        self,
        subscriptions: Subscriptions,
        deliveries: Deliveries,
        fetch: SmallFetch,
        known: SitesKnown,
        public_url: str,
        clock: Callable[[], float],
    ) -> None:
        self._subscriptions, self._deliveries, self._fetch = subscriptions, deliveries, fetch
        self._known, self._public_url, self._clock = known, public_url, clock

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            with suppress(sqlite3.Error):  # a full disk: what is due stays due
                await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Once: what is new, what is due."""
        now, call = self._clock(), self._deliveries.call
        for topic, hub in await call(self._subscriptions.new_topics):
            await call(self._subscriptions.want, topic, hub, now, self._why_not(topic, hub))
        await call(self._subscriptions.expire, now)
        due = await call(self._subscriptions.due, now, _AT_ONCE)
        by_hub = groupby(sorted(due, key=_hub), key=_hub)
        await asyncio.gather(*(self._ask_in_turn(list(several)) for _, several in by_hub))

    def callback(self, one: Subscription) -> str:
        return f"{self._public_url}/websub/{one.callback}"

    def _why_not(self, topic: str, hub: str) -> str:
        """Why we do not go to this hub for this topic; "": we do."""
        if not hub.startswith("https://") and not self._fetch.allow_private:
            return "the hub is not on https"
        return "" if authority_of(topic) in self._known else "the crawl does not know the topic's site"

    async def _ask_in_turn(self, several: list[Subscription]) -> None:
        for one in several:
            await self._ask(one)

    async def _ask(self, one: Subscription) -> None:
        mode = websub.UNSUBSCRIBE if one.state == LEAVING else websub.SUBSCRIBE
        # Before the answer: a hub may verify before it has answered.
        await self._deliveries.call(self._subscriptions.asked, one, self._clock())
        form = websub.request_form(mode, one.topic, self.callback(one), one.secret, LEASE_S)
        answer = await self._fetch.post(one.hub, form)
        if not 200 <= answer.status < 300:
            why = answer.failure or f"the hub answered {answer.status}: {answer.body[:100].decode('utf-8', 'replace')}"
            await self._deliveries.call(self._subscriptions.failed, one, self._clock(), why)


def _hub(one: Subscription) -> str:
    return authority_of(one.hub)
