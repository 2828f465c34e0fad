"""The side of WebSub that asks: subscribes to the topics that the crawl found or the user named, renews leases, and leaves.

It alone talks to hubs; who answers them is deliveries.py. One request at a time to a hub, a few hubs at once. Hubs take turns, and one
that does not answer has had its turn: so nobody waits for the hubs of others.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress

from trapline.signals import websub
from trapline.signals.deliveries import Deliveries
from trapline.signals.sites_known import SitesKnown, authority_of
from trapline.signals.small_fetch import SmallFetch
from trapline.signals.subscriptions import LEASE_S, LEAVING, NEW_AT_ONCE, NoRoom, Subscription, Subscriptions

LOOK_S = 1.0
MOST_HUBS = 32  # asked at once
_MOST_OF_A_TURN = 32  # subscriptions that a hub is asked about


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
        self._asking: set[str] = set()  # hubs
        self._turns: dict[str, int] = {}  # of hubs that something is due at: which turn was their last
        self._turn = 0
        self._last_topic = ""  # up to which new ones were looked at
        self.no_room = ""  # why there is none for some topic; "": there is

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                with suppress(sqlite3.Error):  # a full disk: what is due stays due
                    await self._want_new()
                    for hub, several in await self._next_turns():
                        self._asking.add(hub)
                        tasks.create_task(self._ask_in_turn(hub, several))
                await asyncio.sleep(LOOK_S)

    async def _want_new(self) -> None:
        """Some of the topics that the crawl found; the next time those behind them."""
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
        """Hubs that are to be asked now, and about what: those first that never had a turn, or had theirs longest ago."""
        now = self._clock()
        await self._deliveries.call(self._subscriptions.expire, now)
        due: dict[str, list[Subscription]] = {}
        for one in await self._deliveries.call(self._subscriptions.due, now, _MOST_OF_A_TURN):
            due.setdefault(authority_of(one.hub), []).append(one)
        self._turns = {hub: turn for hub, turn in self._turns.items() if hub in due or hub in self._asking}
        free = sorted(due.keys() - self._asking, key=lambda hub: (self._turns.get(hub, 0), due[hub][0].next_try))
        chosen = free[: MOST_HUBS - len(self._asking)]
        self._turn += 1
        self._turns.update(dict.fromkeys(chosen, self._turn))
        return [(hub, due[hub][:_MOST_OF_A_TURN]) for hub in chosen]

    def callback(self, one: Subscription) -> str:
        return f"{self._public_url}/websub/{one.callback}"

    def _why_not(self, topic: str, hub: str) -> str:
        """Why we do not go to this hub for this topic; "": we do."""
        if not hub.startswith("https://") and not self._fetch.allow_private:
            return "the hub is not on https"
        return "" if authority_of(topic) in self._known else "the crawl does not know the topic's site"

    async def _ask_in_turn(self, hub: str, several: list[Subscription]) -> None:
        try:
            with suppress(sqlite3.Error):
                for one in several:
                    if not await self._ask(one):
                        return
        finally:
            self._asking.remove(hub)

    async def _ask(self, one: Subscription) -> bool:
        """Whether the hub answered, whatever it said."""
        mode = websub.UNSUBSCRIBE if one.state == LEAVING else websub.SUBSCRIBE
        # Before the answer: a hub may verify before it has answered.
        await self._deliveries.call(self._subscriptions.asked, one, self._clock())
        form = websub.request_form(mode, one.topic, self.callback(one), one.secret, LEASE_S)
        answer = await self._fetch.post(one.hub, form)
        if not 200 <= answer.status < 300:
            why = answer.failure or f"the hub answered {answer.status}: {answer.body[:100].decode('utf-8', 'replace')}"
            await self._deliveries.call(self._subscriptions.failed, one, self._clock(), why)
        return not answer.failure
