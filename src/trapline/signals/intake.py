"""The way from a checked request to the inbox: how much a host may say, what was said just now, and with how much force.

Every channel of the endpoint goes through here. It knows no protocol: whoever calls has decided whether the sender is vouched
for. Senders nobody vouches for have limits of their own, so that they cannot use up those of the others.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Iterable
from typing import NamedTuple

from trapline.signals.inbox import CHANGED, UNVERIFIED_P, Signal
from trapline.signals.limits_of_senders import Buckets, Once, Rate
from trapline.signals.tally import ACCEPTED, LOST, REPEATED, UNVERIFIED, Tally
from trapline.signals.writer import InboxWriter

REPEATED_S = 60.0
MOST_REPEATED = 20_000  # that wait to be said once more
BUSY_S = 1.0  # when there is no room, to come again

Fact = tuple[str, float]  # URL, moment


class Rates(NamedTuple):
    """URLs; `sender` counts requests."""

    sender: Rate = Rate(50.0, 1_000.0)
    host: Rate = Rate(50.0, 20_000.0)
    host_unvouched: Rate = Rate(1.0, 10_000.0)
    all: Rate = Rate(20_000.0, 200_000.0)
    all_unvouched: Rate = Rate(2_000.0, 50_000.0)


class Intake:
    def __init__(self, writer: InboxWriter, tally: Tally, rates: Rates, clock: Callable[[], float]) -> None:
        self._writer, self._tally, self._clock = writer, tally, clock
        self._hosts: dict[bool, Buckets[str]] = {True: Buckets(rates.host), False: Buckets(rates.host_unvouched)}
        self._all: dict[bool, Buckets[None]] = {True: Buckets(rates.all), False: Buckets(rates.all_unvouched)}
        self._secret = secrets.token_bytes(16)
        self._recent: Once[bytes] = Once(REPEATED_S)
        # channel, URL, when last; filled by `changed`, emptied by `late`
        self._repeated: dict[bytes, tuple[str, str, float]] = {}

    def wait_s(self, authority: str, urls: int, vouched: bool) -> float:
        """0.0: so many URLs of this host may come in now. Else, seconds."""
        if not self._writer.has_room:
            return BUSY_S
        now = self._clock()
        return self._hosts[vouched].wait_s(authority, urls, now) or self._all[vouched].wait_s(None, urls, now)

    async def changed(self, channel: str, facts: Iterable[Fact], vouched: bool) -> bool:
        """Pages changed. True: it is on disk, or was said just now. False: it could not be written."""
        now = self._clock()
        facts = list(facts)
        new = [fact for fact in facts if self._is_new(channel, fact[0], vouched, now)]
        self._tally.add(channel, REPEATED, len(facts) - len(new))
        p = 1.0 if vouched else UNVERIFIED_P
        signals = [Signal(0, now, channel, url, CHANGED, min(moment, now), p, vouched) for url, moment in new]
        if not signals:
            return await self._writer.settled()  # the one that it repeats may still be on its way
        written = await self.written(signals)
        outcome = (ACCEPTED if vouched else UNVERIFIED) if written else LOST
        self._tally.add(channel, outcome, len(signals))
        for signal in () if written else signals:
            self._recent.forget(self._key(channel, signal.url, vouched))
        return written

    def _is_new(self, channel: str, url: str, vouched: bool, now: float) -> bool:
        """Whether it was not said within the last REPEATED_S. If it was, by one who is vouched for, it is said once more when they are
        over: the page may have changed again after the crawl followed the first."""
        key = self._key(channel, url, vouched)
        if self._recent.is_new(key, now):
            return True
        if vouched and len(self._repeated) < MOST_REPEATED:
            self._repeated[key] = channel, url, now
        return False

    async def late(self) -> None:
        """Once a second: what was repeated, and is due. Its moment is REPEATED_S before the repetition, which is what a crawl may
        miss: so it counts only for a page that was crawled between the first time and the last that it was said, and whoever
        repeats what another said gains nothing by it."""
        now = self._clock()
        due = [key for key in self._repeated if self._recent.is_new(key, now)]
        said = [self._repeated.pop(key) for key in due]
        signals = [Signal(0, now, channel, url, CHANGED, at - REPEATED_S, 1.0, True) for channel, url, at in said]
        if signals and await self.written(signals):
            for channel, *_ in said:
                self._tally.add(channel, ACCEPTED)

    async def written(self, signals: list[Signal]) -> bool:
        """Whether they are on disk."""
        return await asyncio.shield(self._writer.put(signals))

    def _key(self, channel: str, url: str, vouched: bool) -> bytes:
        """What counts as the same signal. Not by a forger's leave: an unverified one does not stand for a verified one, and by a secret of
        this process, so that nobody can find a URL that is taken for another's."""
        said = f"{channel}{vouched:d}{url}".encode()
        return hashlib.blake2b(said, digest_size=16, key=self._secret).digest()
