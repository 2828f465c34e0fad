"""The callbacks of WebSub: a hub verifies a subscription, denies it, or delivers the new content of a topic.

A delivery is trusted by the callback that it arrives at and the signature on its body, and by nothing else that it says about
itself. Its body is the feed: new entries on the topic's own host become signals, and the topic itself is one more signal. One
separate thread makes all database calls and parses the feeds.
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from trapline.fetch.urls import canonical
from trapline.signals.endpoint.intake import (
    DONE,
    GONE,
    LIMITED,
    NOT_FOUND,
    NOT_WRITTEN,
    REPLAYED,
    TAKEN,
    UNKNOWN,
    UNSIGNED,
    Intake,
    Reply,
    SignalTally,
    too_many,
)
from trapline.signals.endpoint.known_sites import authority_of
from trapline.signals.websub import protocol
from trapline.signals.websub.subscriptions import ACTIVE, ASKED, LEAVING, WANTED, Entry, Subscription, Subscriptions

CHANNEL = "websub"
MOST_ENTRIES = 1_000  # per delivery
Answer = TypeVar("Answer")


class DeliveredFeed(Protocol):
    @property
    def entries(self) -> Iterable[tuple[str, float]]:
        """Pairs of URL and time of update, in seconds since 1970 or nan."""


ReadFeed = Callable[[bytes, str, float], DeliveredFeed]  # body, URL of the feed, now


class Deliveries:
    """Answers the requests of hubs, and passes delivered changes to the intake."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        intake: Intake,
        tally: SignalTally,
        read_feed: ReadFeed,
        clock: Callable[[], float],
    ) -> None:
        self._subscriptions, self._intake, self._tally = subscriptions, intake, tally
        self._read_feed, self._clock = read_feed, clock
        self._thread = ThreadPoolExecutor(1, "websub")

    async def verify(self, callback: str, query: bytes) -> Reply:
        """Answer a GET, by which the hub asks whether we want the subscription, or denies it."""
        question = protocol.question(query)
        subscription = await self.call(self._subscriptions.of_callback, callback)
        if question is None or subscription is None or question.topic != subscription.topic:
            return NOT_FOUND
        if question.mode == protocol.DENIED and subscription.state in (WANTED, ASKED, ACTIVE):
            await self.call(self._subscriptions.denied, subscription, question.reason)
            return DONE
        if question.mode == protocol.SUBSCRIBE and subscription.state in (ASKED, ACTIVE):
            await self.call(self._subscriptions.granted, subscription, question.lease_s, self._clock())
            return Reply(200, question.challenge.encode())
        if question.mode == protocol.UNSUBSCRIBE and subscription.state == LEAVING:
            await self.call(self._subscriptions.ended, subscription)
            return Reply(200, question.challenge.encode())
        return NOT_FOUND

    async def deliver(self, callback: str, signature: bytes, body: bytes) -> Reply:
        """Answer a POST, by which the hub delivers new content."""
        subscription = await self.call(self._subscriptions.of_callback, callback)
        if subscription is None:
            self._tally.add(CHANNEL, UNKNOWN)
            return NOT_FOUND
        if subscription.state not in (ASKED, ACTIVE):
            return GONE
        method = protocol.signed_by(body, subscription.secret, signature)
        if not method:
            self._tally.add(CHANNEL, UNSIGNED)
            return TAKEN  # the same answer, so that a forger learns nothing
        if await self.call(self._subscriptions.has_come, callback, body):
            self._tally.add(CHANNEL, REPLAYED)
            return TAKEN
        return await self._take(subscription, body, method != protocol.LOW_TRUST)

    async def call(self, function: Callable[..., Answer], *given: Any) -> Answer:
        """Call a function in the thread that uses the database."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *given)

    def close(self) -> None:
        self._thread.shutdown()

    async def _take(self, subscription: Subscription, body: bytes, vouched: bool) -> Reply:
        now = self._clock()
        topic, callback = subscription.topic, subscription.callback
        entries = await self.call(self._entries, topic, body, now)
        news = await self.call(self._subscriptions.news, callback, entries)
        if (wait_s := self._intake.wait_s(authority_of(topic), len(news) + 1, vouched)) > 0.0:
            self._tally.add(CHANNEL, LIMITED, len(news) + 1)
            return too_many(wait_s)
        facts = [(topic, now), *((url, now if math.isnan(updated) else updated) for url, updated in news)]
        if not await self._intake.changed(CHANNEL, facts, vouched):
            return NOT_WRITTEN
        await self.call(self._subscriptions.delivered, callback, body, entries, now)
        return TAKEN

    def _entries(self, topic: str, body: bytes, now: float) -> list[Entry]:
        """Return the feed's entries on the topic's own host; a hub does not speak for other hosts."""
        found: dict[str, float] = {}
        for reference, updated in self._read_feed(body, topic, now).entries:
            url = canonical(reference, topic)
            if url is not None and authority_of(url) == authority_of(topic) and len(found) < MOST_ENTRIES:
                found.setdefault(url, updated)
        return list(found.items())
