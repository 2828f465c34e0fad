"""The intake, between a checked request and the inbox: rate limits per host, removal of repetitions, and weight of signals. Also the
replies that all channels of the endpoint share, and the posts of access counts.

Every channel of the endpoint passes through here. The intake knows neither IndexNow nor WebSub: its caller has decided whether the
sender is vouched for. Senders that nobody vouches for have separate limits, so that they cannot use up those of the others.
"""

import asyncio
import hashlib
import json
import math
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from trapline.signals.access_log import BAD, CHANNEL, AccessCounts
from trapline.signals.endpoint.known_sites import SitesKnown, authority_of
from trapline.signals.endpoint.rate_limits import Buckets, Once, RequestRate
from trapline.signals.inbox import CHANGED, UNVERIFIED_P, InboxWriter, Signal

# ---- Counts of received signals, by channel, outcome and hour. Every signal has exactly one outcome.
#
# Signals in the inbox are also stored one by one; of all others only these counts are kept, however many there are.

ACCEPTED = "accepted"  # in the inbox, and vouched for
UNVERIFIED = "unverified"  # in the inbox, but nobody vouches for it
REPEATED = "repeated"  # its URL was signalled within REPEATED_S
HELD = "held"  # waits for its key to be checked; counted again with its later outcome
REFUTED = "refuted"  # the key file is missing, or has other content
UNSIGNED = "unsigned"  # a delivery whose signature is missing or wrong
REPLAYED = "replayed"  # a delivery that was received before
UNKNOWN = "unknown"  # about a site that the crawl does not know, or to a callback that does not exist
MALFORMED = "malformed"
OUT_OF_SCOPE = "out of scope"  # outside the key file's folder
LIMITED = "limited"  # beyond a rate limit
LOST = "lost"  # could not be written to disk; the sender got an error

_HOUR_S = 3600
Row = tuple[int, str, str, int]  # hour, channel, outcome, signals


class SignalTally:
    """Counts of signals by outcome: totals since the start, and new ones that are not on disk yet."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.counts: Counter[tuple[str, str]] = Counter()  # by (channel, outcome), since the endpoint started
        self.requests = 0
        self._new: Counter[tuple[int, str, str]] = Counter()

    def add(self, channel: str, outcome: str, signals: int = 1) -> None:
        if signals:
            self.counts[channel, outcome] += signals
            self._new[int(self._clock()) // _HOUR_S * _HOUR_S, channel, outcome] += signals

    def taken(self) -> list[Row]:
        """Return the counts since the last call, for the caller to store."""
        new, self._new = self._new, Counter()
        return [(*key, signals) for key, signals in new.items()]

    def put_back(self, rows: list[Row]) -> None:
        """Return rows that could not be stored, so that the next `taken` includes them."""
        for hour, channel, outcome, signals in rows:
            self._new[hour, channel, outcome] += signals

    def total(self, *outcomes: str) -> int:
        return sum(signals for (_, outcome), signals in self.counts.items() if outcome in outcomes)

    def by_channel(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for (channel, outcome), signals in sorted(self.counts.items()):
            found.setdefault(channel, {})[outcome] = signals
        return found


# ---- Intake

REPEATED_S = 60.0
MOST_REPEATED = 20_000  # repeated signals that wait to be sent on later
BUSY_S = 1.0  # seconds after which senders may retry when the queue is full

Fact = tuple[str, float]  # URL, moment


class SenderRates(NamedTuple):
    """Rate limits of the endpoint. `sender` counts requests; all others count URLs."""

    sender: RequestRate = RequestRate(50.0, 1_000.0)
    host: RequestRate = RequestRate(50.0, 20_000.0)
    host_unvouched: RequestRate = RequestRate(1.0, 10_000.0)
    all: RequestRate = RequestRate(20_000.0, 200_000.0)
    all_unvouched: RequestRate = RequestRate(2_000.0, 50_000.0)


class Intake:
    """Passes signals to the inbox writer, within the rate limits."""

    def __init__(self, writer: InboxWriter, tally: SignalTally, rates: SenderRates, clock: Callable[[], float]) -> None:
        self._writer, self._tally, self._clock = writer, tally, clock
        self._hosts: dict[bool, Buckets[str]] = {True: Buckets(rates.host), False: Buckets(rates.host_unvouched)}
        self._all: dict[bool, Buckets[None]] = {True: Buckets(rates.all), False: Buckets(rates.all_unvouched)}
        self._secret = secrets.token_bytes(16)
        self._recent: Once[bytes] = Once(REPEATED_S)
        # (channel, URL, time of the last repetition); `changed` fills it, `late` empties it
        self._repeated: dict[bytes, tuple[str, str, float]] = {}

    def wait_s(self, authority: str, urls: int, vouched: bool) -> float:
        """Return 0.0 if this many URLs of this host are accepted now; otherwise the seconds to wait."""
        if not self._writer.has_room:
            return BUSY_S
        now = self._clock()
        return self._hosts[vouched].wait_s(authority, urls, now) or self._all[vouched].wait_s(None, urls, now)

    async def changed(self, channel: str, facts: Iterable[Fact], vouched: bool) -> bool:
        """Record that pages changed. Return True if the signals are on disk or repeat recent ones, False if writing failed."""
        now = self._clock()
        facts = list(facts)
        new = [fact for fact in facts if self._is_new(channel, fact[0], vouched, now)]
        self._tally.add(channel, REPEATED, len(facts) - len(new))
        p = 1.0 if vouched else UNVERIFIED_P
        signals = [Signal(0, now, channel, url, CHANGED, min(moment, now), p, vouched) for url, moment in new]
        if not signals:
            return await self._writer.settled()  # the signals that these repeat may not be written yet
        written = await self.written(signals)
        outcome = (ACCEPTED if vouched else UNVERIFIED) if written else LOST
        self._tally.add(channel, outcome, len(signals))
        for signal in () if written else signals:
            self._recent.forget(self._key(channel, signal.url, vouched))
        return written

    def _is_new(self, channel: str, url: str, vouched: bool, now: float) -> bool:
        """Return whether this signal was not received within the last REPEATED_S.

        If it was, and its sender is vouched for, `late` sends it on after REPEATED_S: the page may have changed again after
        the crawl acted on the first signal.
        """
        key = self._key(channel, url, vouched)
        if self._recent.is_new(key, now):
            return True
        if vouched and len(self._repeated) < MOST_REPEATED:
            self._repeated[key] = channel, url, now
        return False

    async def late(self) -> None:
        """Send on the repeated signals that are due. Called once a second.

        The moment of such a signal is REPEATED_S before the repetition, which is the interval that a crawl may miss. So it
        counts only for a page that was crawled between the first and the last of the repeated signals, and a sender gains
        nothing by repeating the signals of another.
        """
        now = self._clock()
        due = [key for key in self._repeated if self._recent.is_new(key, now)]
        repeated = [self._repeated.pop(key) for key in due]
        signals = [Signal(0, now, channel, url, CHANGED, at - REPEATED_S, 1.0, True) for channel, url, at in repeated]
        if signals and await self.written(signals):
            for channel, *_ in repeated:
                self._tally.add(channel, ACCEPTED)

    async def written(self, signals: list[Signal]) -> bool:
        """Write signals, and return whether they are on disk."""
        return await asyncio.shield(self._writer.put(signals))

    def _key(self, channel: str, url: str, vouched: bool) -> bytes:
        """Return the key by which repetitions are recognised.

        It is safe against forgers: an unverified signal does not suppress a verified one, and the hash uses a secret of this
        process, so that nobody can find a URL whose key collides with that of another.
        """
        text = f"{channel}{vouched:d}{url}".encode()
        return hashlib.blake2b(text, digest_size=16, key=self._secret).digest()


# ---- Replies of the endpoint: a status, a short text, and when to retry. This part knows no requests.

MOST_RETRY_S = 3600.0


class Reply(NamedTuple):
    status: int
    body: bytes = b""
    kind: bytes = b"text/plain; charset=utf-8"
    retry_s: float = 0.0  # 0.0: no Retry-After header
    close: bool = False  # close the connection, without reading the rest of the request

    def headers(self) -> list[tuple[bytes, bytes]]:
        fields = [
            (b"content-type", self.kind),
            (b"content-length", b"%d" % len(self.body)),
            (b"x-content-type-options", b"nosniff"),  # the body may be a hub's challenge, which is a stranger's text
        ]
        if self.retry_s:
            fields.append((b"retry-after", b"%d" % math.ceil(min(self.retry_s, MOST_RETRY_S))))
        if self.close:
            fields.append((b"connection", b"close"))
        return fields


def said(status: int, text: str) -> Reply:
    return Reply(status, f"{text}\n".encode())


def too_many(wait_s: float) -> Reply:
    return Reply(429, b"too many\n", retry_s=max(wait_s, 1.0))


def as_json(value: Any) -> Reply:
    return Reply(200, json.dumps(value, indent=1).encode() + b"\n", b"application/json")


DONE = said(200, "ok")
TAKEN = said(202, "accepted")
NOT_FOUND = said(404, "not found")
GONE = said(410, "gone")
NOT_WRITTEN = Reply(503, b"could not be written\n", retry_s=60.0)


# ---- Access counts received by HTTP: parses a body of lines (signals/access_log.py), and writes to the inbox those about crawled sites.


class AccessPosts:
    """Answers posts of access counts."""

    def __init__(self, known: SitesKnown, intake: Intake, tally: SignalTally, clock: Callable[[], float]) -> None:
        self._known_sites, self._intake, self._tally, self._clock = known, intake, tally, clock

    async def post(self, body: bytes) -> Reply:
        accesses = AccessCounts("", self._clock())
        accesses.read(body.splitlines())
        found = list(accesses.signals(CHANNEL))
        signals = [signal for signal in found if authority_of(signal.url) in self._known_sites]
        if signals and not await self._intake.written(signals):
            self._tally.add(CHANNEL, LOST, len(signals))
            return NOT_WRITTEN
        self._tally.add(CHANNEL, ACCEPTED, len(signals))
        self._tally.add(CHANNEL, UNKNOWN, len(found) - len(signals))
        self._tally.add(CHANNEL, MALFORMED, accesses.lines[BAD])
        return as_json({"lines": dict(accesses.lines), "taken": len(signals), "unknown": len(found) - len(signals)})
