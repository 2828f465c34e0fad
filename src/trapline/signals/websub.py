"""WebSub (W3C Recommendation of 23 January 2018), as a subscriber: its forms, its signatures, and where pages name their hub. Pure.

Who subscribes to what, and when, is subscriber.py's; what is known of subscriptions, subscriptions.py's.
"""

import hashlib
import hmac
from typing import NamedTuple
from urllib.parse import urlencode

from trapline.signals.feed import read_feed
from trapline.signals.indexnow import fields_of
from trapline.signals.relations import of_response

SUBSCRIBE, UNSUBSCRIBE, DENIED = "subscribe", "unsubscribe", "denied"
MOST_CHALLENGE = 2048
LOW_TRUST = "sha1"

_METHODS = {"sha1": hashlib.sha1, "sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


class Question(NamedTuple):
    """What a hub asks of a callback."""

    mode: str
    topic: str
    challenge: str
    lease_s: float  # nan: it does not say
    reason: str


class Place(NamedTuple):
    """Where changes of a page are to be had: its own URL as it states it, and its hub."""

    topic: str
    hub: str


def question(query: bytes) -> Question | None:
    """The query of a GET; None: it is none that a hub would send."""
    one = fields_of(query)
    if one is None:
        return None
    mode, topic = one.get("hub.mode", ""), one.get("hub.topic", "")
    challenge = one.get("hub.challenge", "")
    if mode not in (SUBSCRIBE, UNSUBSCRIBE, DENIED) or not topic or len(challenge) > MOST_CHALLENGE:
        return None
    if mode != DENIED and not challenge:
        return None
    lease = one.get("hub.lease_seconds", "")
    lease_s = float(lease) if lease.isascii() and lease.isdigit() and len(lease) < 12 else float("nan")
    return Question(mode, topic, challenge, lease_s, one.get("hub.reason", "")[:200])


def request_form(mode: str, topic: str, callback: str, secret: str, lease_s: float) -> bytes:
    """What is posted to a hub."""
    fields = {"hub.callback": callback, "hub.mode": mode, "hub.topic": topic}
    if mode == SUBSCRIBE:
        fields |= {"hub.lease_seconds": str(round(lease_s)), "hub.secret": secret}
    return urlencode(fields).encode()


def signed_by(body: bytes, secret: str, signature: bytes) -> str:
    """The method of an X-Hub-Signature that is right; "": there is none, or it is wrong. Compared in constant time.

    >>> signature = b"sha256=" + hmac.new(b"s", b"feed", "sha256").hexdigest().encode()
    >>> signed_by(b"feed", "s", signature), signed_by(b"fee", "s", signature)
    ('sha256', '')
    """
    name, _, given = signature.strip().partition(b"=")
    method = name.decode("latin-1").lower()
    if method not in _METHODS or not secret:
        return ""
    right = hmac.new(secret.encode(), body, _METHODS[method]).hexdigest().encode()
    return method if hmac.compare_digest(right, given.strip().lower()) else ""


def discovered(url: str, headers: dict[bytes, bytes], body: bytes) -> Place | None:
    """The hub of a page and its own URL: by its Link headers, else by its feed or HTML head. `url`: where it came from.

    >>> discovered("http://a.org/f", {b"link": b'<https://hub.org/>; rel="hub", </feed>; rel=self'}, b"")
    Place(topic='http://a.org/feed', hub='https://hub.org/')
    """
    said = of_response(headers, url)
    feed = read_feed(body, url, 0.0)
    of_body = of_response({}, url, b"" if feed.kind else body)
    hubs = said.hubs or feed.hubs or of_body.hubs
    topic = said.self_url or feed.self_url or of_body.self_url or url
    return Place(topic, hubs[0]) if hubs else None
