"""WebSub subscriptions as they are kept in signals.db: what state each is in, and what may follow. It talks to nobody.

    wanted --asked the hub--> asked --hub verifies--> active --lease runs out--> wanted
    any --hub denies--> denied;  wanted, asked, active, denied --no longer wanted--> leaving --hub verifies, or is silent--> ended

A callback is one subscription's alone, cannot be guessed, and is never used again once it has ended.
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

LEASE_S = 10 * 86_400.0  # asked for; what counts is what the hub grants
LEAST_LEASE_S, MOST_LEASE_S = 60.0, 90 * 86_400.0
RENEW_AT = 0.8  # of the lease
RETRY_S, MOST_RETRY_S = 60.0, 86_400.0
MOST_BODIES = 1_000  # remembered of one callback
MOST_SUBSCRIPTIONS = 10_000  # that a hub knows of, or is to know of
MOST_OF_ONE_SITE = 100  # in whatever state
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
    """There are as many subscriptions as there may be."""


class Subscriptions:
    """May be used by one thread at a time, as the inbox beside it."""

    def __init__(self, folder: Path) -> None:
        self._connection = opened(folder)

    def close(self) -> None:
        self._connection.close()

    def want(self, topic: str, hub: str, now: float, not_this: str = "") -> bool:
        """Subscribe to a topic, soon; a topic that has moved to another hub is asked for there. False: nothing new.

        `not_this`: why we do not go to that hub; then that alone is noted. `NoRoom`: all stays as it was.
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
        """End the subscription to a topic. False: there is none."""
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
        """Those about which a hub is to be asked now, at most so many of one hub, the longest waiting first."""
        rows = self._connection.execute(_DUE, (now, most))
        return [Subscription(*row[:-1]) for row in rows]

    def new_topics(self, after: str = "") -> list[tuple[str, str]]:
        """Up to `NEW_AT_ONCE` topics that the crawl found and that were never subscribed to at this hub, by URL from `after` on."""
        return self._connection.execute(_NEW_TOPICS, (after, NEW_AT_ONCE)).fetchall()

    # What happens to one

    def asked(self, one: Subscription, now: float) -> None:
        """The hub has taken the request; if it then says nothing, it is asked again."""
        if one.state == LEAVING:
            self._update(one.callback, next_try=now + MOST_RETRY_S, tries=one.tries + 1)
        else:
            state = ACTIVE if one.state == ACTIVE else ASKED
            self._update(one.callback, state=state, next_try=now + self._wait_s(one), tries=one.tries + 1, why="")

    def failed(self, one: Subscription, now: float, why: str) -> None:
        """The hub did not take the request."""
        self._update(one.callback, next_try=now + self._wait_s(one), tries=one.tries + 1, why=why)

    def expire(self, now: float) -> None:
        """Leases that ran out; a hub that does not confirm our leave is not waited for; what ended a day ago is forgotten."""
        with Transaction(self._connection):
            forgotten = self._connection.execute(_FORGET_ENDED, (now,)).fetchall()
            for table in ("delivery", "heard"):
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

    # What was delivered

    def has_come(self, callback: str, body: bytes) -> bool:
        """WebSub has no time in it: a body that came before may be a replay, and is no news in any case."""
        query = "select 1 from delivery where callback = ? and digest = ?"
        return self._connection.execute(query, (callback, hashlib.sha256(body).digest())).fetchone() is not None

    def news(self, callback: str, entries: Iterable[Entry]) -> list[Entry]:
        """Those that the delivery before did not have, or that were updated since."""
        rows = self._connection.execute("select entry from heard where callback = ?", (callback,))
        heard = {row[0] for row in rows}
        return [entry for entry in dict.fromkeys(entries) if _digest(entry) not in heard]

    def delivered(self, callback: str, body: bytes, entries: Iterable[Entry], now: float) -> None:
        """All that was in it is known from here on."""
        heard = {(callback, _digest(entry)) for entry in entries}
        with Transaction(self._connection):
            digest = hashlib.sha256(body).digest()
            self._connection.execute("insert or ignore into delivery values (?, ?, ?)", (callback, digest, now))
            self._connection.execute(_FORGET_BODIES, (callback, callback, MOST_BODIES))
            self._connection.execute("delete from heard where callback = ?", (callback,))
            self._connection.executemany("insert into heard values (?, ?)", heard)

    def _check_room(self, site: str) -> None:
        (count,) = self._connection.execute(_COUNT).fetchone()
        if count >= MOST_SUBSCRIPTIONS:
            raise NoRoom(f"there are {count:,} subscriptions, and may be no more: leave some of them")
        (of_site,) = self._connection.execute(_COUNT_OF_SITE, urls_of(site)).fetchone()
        if of_site >= MOST_OF_ONE_SITE:
            raise NoRoom(f"{site}: it has {of_site:,} subscriptions, and a site may have no more")

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
# One whose topic the crawl still finds stays: by it we know that somebody has left it.
# `next_try` is a day ahead of the last request to leave, or of the moment at which the hub was no longer waited for.
_FORGET_ENDED = (
    "delete from subscription where state = 'ended' and next_try <= ? and not exists "
    "(select 1 from topic where topic.url = subscription.topic and topic.hub = subscription.hub) returning callback"
)
