"""WebSub subscriptions in signals.db: the state of each, and its transitions. The module sends no requests.

    wanted --request sent--> asked --hub verifies--> active --lease runs out--> wanted
    any --hub denies--> denied;  wanted, asked, active, denied --unsubscribe--> leaving --hub verifies, or is silent--> ended

A callback belongs to a single subscription, cannot be guessed, and is never reused after the subscription has ended.
"""

import hashlib
import math
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from trapline.errors import ConfigError
from trapline.fetch.urls import origin
from trapline.signals.database import Transaction, opened, urls_of

WANTED, ASKED, ACTIVE, DENIED, LEAVING, ENDED = "wanted", "asked", "active", "denied", "leaving", "ended"

LEASE_S = 10 * 86_400.0  # requested; the hub decides what it grants
LEAST_LEASE_S, MOST_LEASE_S = 60.0, 90 * 86_400.0
RENEW_AT = 0.8  # share of the lease after which it is renewed
RETRY_S, MOST_RETRY_S = 60.0, 86_400.0
MOST_BODIES = 1_000  # digests remembered per callback
MOST_SUBSCRIPTIONS = 10_000  # except those that are denied or ended
MOST_OF_ONE_SITE = 100  # in any state
NEW_AT_ONCE = 100

Entry = tuple[str, float]  # URL, and when it was updated: seconds since 1970, or nan


class Subscription(NamedTuple):
    callback: str
    topic: str
    hub: str
    secret: str
    state: str
    next_try: float
    tries: int
    expires: float
    why: str


class NoRoom(ConfigError):
    """The number of subscriptions has reached its limit."""


class Subscriptions:
    """The table of subscriptions. Like the inbox, for use by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._connection = opened(folder)

    def close(self) -> None:
        self._connection.close()

    def want(self, topic: str, hub: str, now: float, not_this: str = "") -> bool:
        """Record that a topic is wanted; the subscriber sends the request soon. A topic that moved is subscribed at its new hub.

        Return False if the topic is already subscribed at this hub. `not_this`: why this hub must not be contacted; then
        the subscription is only recorded, as denied. Raises `NoRoom`, and changes nothing, if there are too many.
        """
        with Transaction(self._connection):
            found = self.of_topic(topic)
            if found and found.hub == hub:
                return False
            self._check_room(origin(topic))
            if found:
                self._set(found.callback, state=LEAVING, next_try=now, tries=0)
            state = DENIED if not_this else WANTED
            row = (secrets.token_urlsafe(32), topic, hub, secrets.token_urlsafe(32), state, now, 0, 0.0, not_this)
            self._connection.execute("insert into subscription values (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return True

    def leave(self, topic: str, now: float) -> bool:
        """End the subscription to a topic. Return False if there is none."""
        found = self.of_topic(topic)
        if found:
            self._update(found.callback, state=LEAVING, next_try=now, tries=0)
        return found is not None

    def all(self) -> list[Subscription]:
        return self._found("order by topic, callback")

    def of_topic(self, topic: str) -> Subscription | None:
        found = self._found("where topic = ? and state not in ('ended', 'leaving')", topic)
        return found[0] if found else None

    def of_callback(self, callback: str) -> Subscription | None:
        found = self._found("where callback = ?", callback)
        return found[0] if found else None

    def due(self, now: float, most: int) -> list[Subscription]:
        """Return the subscriptions for which a request is due, at most `most` per hub, longest waiting first."""
        rows = self._connection.execute(_DUE, (now, most))
        return [Subscription(*row[:-1]) for row in rows]

    def new_topics(self, after: str = "") -> list[tuple[str, str]]:
        """Return up to `NEW_AT_ONCE` topics, with their hubs, that the crawl found and that have no subscription at this hub.

        They are in order of URL, beginning after `after`.
        """
        return self._connection.execute(_NEW_TOPICS, (after, NEW_AT_ONCE)).fetchall()

    # Transitions of one subscription

    def requested(self, one: Subscription, now: float) -> None:
        """Record that a request is sent to the hub. If the hub does not verify it, the request is repeated later."""
        if one.state == LEAVING:
            self._update(one.callback, next_try=now + MOST_RETRY_S, tries=one.tries + 1)
        else:
            state = ACTIVE if one.state == ACTIVE else ASKED
            self._update(one.callback, state=state, next_try=now + self._wait_s(one), tries=one.tries + 1, why="")

    def failed(self, one: Subscription, now: float, why: str) -> None:
        """Record that the hub did not accept the request."""
        self._update(one.callback, next_try=now + self._wait_s(one), tries=one.tries + 1, why=why)

    def expire(self, now: float) -> None:
        """Advance subscriptions whose time is over.

        Those whose lease ran out become wanted again. Those whose hub does not confirm that we left become ended. Those that
        ended a day ago are deleted.
        """
        with Transaction(self._connection):
            forgotten = self._connection.execute(_FORGET_ENDED, (now,)).fetchall()
            for table in ("delivery", "delivered_entry"):
                self._connection.executemany(f"delete from {table} where callback = ?", forgotten)
            lost = "update subscription set state = 'wanted', next_try = ? where state = 'active' and expires <= ?"
            self._connection.execute(lost, (now, now))
            left = "update subscription set state = 'ended', next_try = ? where state = 'leaving' and tries >= 3"
            self._connection.execute(left, (now + MOST_RETRY_S,))

    def granted(self, one: Subscription, lease_s: float, now: float) -> None:
        lease_s = LEASE_S if math.isnan(lease_s) else min(max(lease_s, LEAST_LEASE_S), MOST_LEASE_S)
        renewal = now + RENEW_AT * lease_s
        self._update(one.callback, state=ACTIVE, next_try=renewal, tries=0, expires=now + lease_s, why="")

    def denied(self, one: Subscription, why: str) -> None:
        self._update(one.callback, state=DENIED, why=why or "the hub gave no reason")

    def ended(self, one: Subscription) -> None:
        self._update(one.callback, state=ENDED, expires=0.0)

    # Deliveries

    def has_come(self, callback: str, body: bytes) -> bool:
        """Return whether this body was delivered before.

        WebSub messages have no timestamp: a repeated body may be a replay, and in any case holds nothing new.
        """
        query = "select 1 from delivery where callback = ? and digest = ?"
        return self._connection.execute(query, (callback, hashlib.sha256(body).digest())).fetchone() is not None

    def news(self, callback: str, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries that the previous delivery did not contain, or that were updated since."""
        rows = self._connection.execute("select entry from delivered_entry where callback = ?", (callback,))
        previous = {row[0] for row in rows}
        return [entry for entry in dict.fromkeys(entries) if _digest(entry) not in previous]

    def delivered(self, callback: str, body: bytes, entries: Iterable[Entry], now: float) -> None:
        """Record a delivery and its entries, so that `has_come` and `news` recognise them."""
        entry_rows = {(callback, _digest(entry)) for entry in entries}
        with Transaction(self._connection):
            digest = hashlib.sha256(body).digest()
            self._connection.execute("insert or ignore into delivery values (?, ?, ?)", (callback, digest, now))
            self._connection.execute(_FORGET_BODIES, (callback, callback, MOST_BODIES))
            self._connection.execute("delete from delivered_entry where callback = ?", (callback,))
            self._connection.executemany("insert into delivered_entry values (?, ?)", entry_rows)

    def _check_room(self, site: str) -> None:
        (count,) = self._connection.execute(_COUNT).fetchone()
        if count >= MOST_SUBSCRIPTIONS:
            raise NoRoom(f"there are already {count:,} subscriptions, the most allowed; unsubscribe from some of them")
        (of_site,) = self._connection.execute(_COUNT_OF_SITE, urls_of(site)).fetchone()
        if of_site >= MOST_OF_ONE_SITE:
            raise NoRoom(f"{site}: already has {of_site:,} subscriptions, the most allowed for one site")

    def _wait_s(self, one: Subscription) -> float:
        return min(RETRY_S * 2.0 ** min(one.tries, 20), MOST_RETRY_S)

    def _found(self, rest: str, *given: object) -> list[Subscription]:
        return [Subscription(*row) for row in self._connection.execute(f"select * from subscription {rest}", given)]

    def _update(self, callback: str, **columns: object) -> None:
        with Transaction(self._connection):
            self._set(callback, **columns)

    def _set(self, callback: str, **columns: object) -> None:
        names = ", ".join(f"{name} = ?" for name in columns)
        self._connection.execute(f"update subscription set {names} where callback = ?", (*columns.values(), callback))


def _digest(entry: Entry) -> bytes:
    return hashlib.sha256(repr(entry).encode()).digest()


_FORGET_BODIES = (
    "delete from delivery where callback = ? and digest in "
    "(select digest from delivery where callback = ? order by at desc limit -1 offset ?)"
)
_COUNT = "select count(*) from subscription where state not in ('denied', 'ended')"
_COUNT_OF_SITE = "select count(*) from subscription where topic >= ? and topic < ?"
_DUE = (
    "select * from (select *, row_number() over (partition by hub order by next_try) as turn from subscription "
    "where next_try <= ? and state not in ('denied', 'ended')) where turn <= ? order by next_try"
)
_NEW_TOPICS = (
    "select url, hub from topic where url > ? and not exists "
    "(select 1 from subscription where subscription.topic = topic.url and subscription.hub = topic.hub) "
    "order by url limit ?"
)
# An ended subscription stays as long as the crawl still lists its topic: its row shows that the user unsubscribed.
# `next_try` is a day after the last request to unsubscribe, or after the moment at which we stopped waiting for the hub.
_FORGET_ENDED = (
    "delete from subscription where state = 'ended' and next_try <= ? and not exists "
    "(select 1 from topic where topic.url = subscription.topic and topic.hub = subscription.hub) returning callback"
)
