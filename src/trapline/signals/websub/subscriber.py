"""The WebSub subscriber: subscribes to the topics that the crawl found or the user named, renews leases, and unsubscribes.

Only this module sends requests to hubs; deliveries.py answers the requests of hubs. It sends one request at a time to a hub, and
contacts a few hubs at once. Hubs take turns. A hub that does not answer loses the rest of its turn, so that a slow hub does not
delay the others.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress

from trapline.signals.endpoint.known_sites import SitesKnown, authority_of
from trapline.signals.small_fetch import SmallFetch
from trapline.signals.websub import protocol
from trapline.signals.websub.deliveries import Deliveries
from trapline.signals.websub.subscriptions import LEASE_S, LEAVING, NEW_AT_ONCE, NoRoom, Subscription, Subscriptions

LOOK_S = 1.0
MOST_HUBS = 32  # contacted at the same time
_MOST_OF_A_TURN = 32  # requests to a hub in one turn


class Subscriber:
    """Sends the subscription requests that are due."""

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
        self._known_sites, self._public_url, self._clock = known, public_url, clock
        self._asking: set[str] = set()  # hubs that are being contacted
        self._turns: dict[str, int] = {}  # number of the last turn, for hubs with requests that are due
        self._turn = 0
        self._last_topic = ""  # new topics were read up to this URL
        self.no_room = ""  # why some topic was rejected for lack of room; "": none was

    async def run(self) -> None:
        """Send due requests until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                with suppress(sqlite3.Error):  # a full disk: due requests stay due
                    await self._want_new()
                    for hub, subscriptions in await self._next_turns():
                        self._asking.add(hub)
                        tasks.create_task(self._ask_in_turn(hub, subscriptions))
                await asyncio.sleep(LOOK_S)

    async def _want_new(self) -> None:
        """Record subscriptions for some of the topics that the crawl found; the next call continues after them."""
        no_room = self.no_room if self._last_topic else ""
        topics = await self._deliveries.call(self._subscriptions.new_topics, self._last_topic)
        for topic, hub in topics:
            try:
                why_not = self._why_not(topic, hub)
                await self._deliveries.call(self._subscriptions.want, topic, hub, self._clock(), why_not)
            except NoRoom as error:
                no_room = str(error)
        self._last_topic = topics[-1][0] if len(topics) == NEW_AT_ONCE else ""
        self.no_room = no_room

    async def _next_turns(self) -> list[tuple[str, list[Subscription]]]:
        """Return the hubs to contact now, with their due subscriptions; first those whose last turn is longest ago, or that had none."""
        now = self._clock()
        await self._deliveries.call(self._subscriptions.expire, now)
        due: dict[str, list[Subscription]] = {}
        for subscription in await self._deliveries.call(self._subscriptions.due, now, _MOST_OF_A_TURN):
            due.setdefault(authority_of(subscription.hub), []).append(subscription)
        self._turns = {hub: turn for hub, turn in self._turns.items() if hub in due or hub in self._asking}
        free = sorted(due.keys() - self._asking, key=lambda hub: (self._turns.get(hub, 0), due[hub][0].next_try))
        chosen = free[: MOST_HUBS - len(self._asking)]
        self._turn += 1
        self._turns.update(dict.fromkeys(chosen, self._turn))
        return [(hub, due[hub][:_MOST_OF_A_TURN]) for hub in chosen]

    def callback(self, one: Subscription) -> str:
        return f"{self._public_url}/websub/{one.callback}"

    def _why_not(self, topic: str, hub: str) -> str:
        """Return why this hub must not be contacted for this topic; "" if it may be."""
        if not hub.startswith("https://") and not self._fetch.allow_private:
            return "the hub is not on https"
        return "" if authority_of(topic) in self._known_sites else "the crawl does not know the topic's site"

    async def _ask_in_turn(self, hub: str, subscriptions: list[Subscription]) -> None:
        try:
            with suppress(sqlite3.Error):
                for subscription in subscriptions:
                    if not await self._ask(subscription):
                        return
        finally:
            self._asking.remove(hub)

    async def _ask(self, subscription: Subscription) -> bool:
        """Send one request, and return whether the hub responded, with any status."""
        mode = protocol.UNSUBSCRIBE if subscription.state == LEAVING else protocol.SUBSCRIBE
        # Recorded before the response, because a hub may verify before it responds.
        await self._deliveries.call(self._subscriptions.requested, subscription, self._clock())
        callback = self.callback(subscription)
        form = protocol.request_form(mode, subscription.topic, callback, subscription.secret, LEASE_S)
        answer = await self._fetch.post(subscription.hub, form)
        if not 200 <= answer.status < 300:
            why = answer.failure or f"the hub answered {answer.status}: {answer.body[:100].decode('utf-8', 'replace')}"
            await self._deliveries.call(self._subscriptions.failed, subscription, self._clock(), why)
        return not answer.failure
