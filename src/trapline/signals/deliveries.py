"""The callbacks of WebSub: a hub verifies a subscription, denies it, or delivers the new content of a topic.

A delivery counts by the callback it comes to and the signature on its body, by nothing else that it says of itself. Its body is
the feed: entries on the topic's own host that are new in it become signals, and the topic itself is one. All calls to the
database, and the reading of feeds, are made in one thread of their own.
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from trapline.fetch.urls import canonical
from trapline.signals import websub
from trapline.signals.intake import Intake
from trapline.signals.reply import DONE, GONE, NOT_FOUND, NOT_WRITTEN, TAKEN, Reply, too_many
from trapline.signals.sites_known import authority_of
from trapline.signals.subscriptions import ACTIVE, ASKED, LEAVING, WANTED, Entry, Subscription, Subscriptions
from trapline.signals.tally import LIMITED, REPLAYED, UNKNOWN, UNSIGNED, Tally

CHANNEL = "websub"
MOST_ENTRIES = 1_000  # of one delivery
Answer = TypeVar("Answer")


class Feed(Protocol):
    @property
    def entries(self) -> Iterable[tuple[str, float]]:
        """URL, and seconds since 1970 at which it was updated, or nan."""


ReadFeed = Callable[[bytes, str, float], Feed]  # body, URL of the feed, now


class Deliveries:
    def __init__(
        self,
        subscriptions: Subscriptions,
        intake: Intake,
        tally: Tally,
        read_feed: ReadFeed,
        clock: Callable[[], float],
    ) -> None:
        self._subscriptions, self._intake, self._tally = subscriptions, intake, tally
        self._read_feed, self._clock = read_feed, clock
        self._thread = ThreadPoolExecutor(1, "websub")

    async def verify(self, callback: str, query: bytes) -> Reply:
        """A GET: the hub asks whether we want this."""
        asked = websub.question(query)
        one = await self.call(self._subscriptions.of_callback, callback)
        if asked is None or one is None or asked.topic != one.topic:
            return NOT_FOUND
        if asked.mode == websub.DENIED and one.state in (WANTED, ASKED, ACTIVE):
            await self.call(self._subscriptions.denied, one, asked.reason)
            return DONE
        if asked.mode == websub.SUBSCRIBE and one.state in (ASKED, ACTIVE):
            await self.call(self._subscriptions.granted, one, asked.lease_s, self._clock())
            return Reply(200, asked.challenge.encode())
        if asked.mode == websub.UNSUBSCRIBE and one.state == LEAVING:
            await self.call(self._subscriptions.ended, one)
            return Reply(200, asked.challenge.encode())
        return NOT_FOUND

    async def deliver(self, callback: str, signature: bytes, body: bytes) -> Reply:
        """A POST: new content."""
        one = await self.call(self._subscriptions.of_callback, callback)
        if one is None:
            self._tally.add(CHANNEL, UNKNOWN)
            return NOT_FOUND
        if one.state not in (ASKED, ACTIVE):
            return GONE
        method = websub.signed_by(body, one.secret, signature)
        if not method:
            self._tally.add(CHANNEL, UNSIGNED)
            return TAKEN  # whoever it is learns nothing
        if await self.call(self._subscriptions.has_come, callback, body):
            self._tally.add(CHANNEL, REPLAYED)
            return TAKEN
        return await self._take(one, body, method != websub.LOW_TRUST)

    async def call(self, function: Callable[..., Answer], *given: Any) -> Answer:
        """In the thread that has the database."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *given)

    def close(self) -> None:
        self._thread.shutdown()

    async def _take(self, one: Subscription, body: bytes, vouched: bool) -> Reply:
        now = self._clock()
        entries = await self.call(self._entries, one, body, now)
        news = await self.call(self._subscriptions.news, one.callback, entries)
        if (wait_s := self._intake.wait_s(authority_of(one.topic), len(news) + 1, vouched)) > 0.0:
            self._tally.add(CHANNEL, LIMITED, len(news) + 1)
            return too_many(wait_s)
        facts = [(one.topic, now), *((url, now if math.isnan(updated) else updated) for url, updated in news)]
        if not await self._intake.changed(CHANNEL, facts, vouched):
            return NOT_WRITTEN
        await self.call(self._subscriptions.delivered, one.callback, body, entries, now)
        return TAKEN

    def _entries(self, one: Subscription, body: bytes, now: float) -> list[Entry]:
        """Of the topic's host; a hub speaks for no other."""
        found: dict[str, float] = {}
        for reference, updated in self._read_feed(body, one.topic, now).entries:
            url = canonical(reference, one.topic)
            if url is not None and authority_of(url) == authority_of(one.topic) and len(found) < MOST_ENTRIES:
                found.setdefault(url, updated)
        return list(found.items())
