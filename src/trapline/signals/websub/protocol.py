"""WebSub (W3C Recommendation of 23 January 2018) for subscribers: forms, signatures, and hub discovery. Pure functions.

subscriber.py decides when to subscribe to what; subscriptions.py stores the subscriptions.
"""

import hashlib
import hmac
from typing import NamedTuple
from urllib.parse import urlencode

from trapline.signals.indexnow.request import fields_of
from trapline.signals.published.feed import read_feed
from trapline.signals.published.list_discovery import of_response

SUBSCRIBE, UNSUBSCRIBE, DENIED = "subscribe", "unsubscribe", "denied"
MOST_CHALLENGE = 2048
LOW_TRUST = "sha1"

_METHODS = {"sha1": hashlib.sha1, "sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}


class Question(NamedTuple):
    """A hub's request to a callback: verification of intent, or denial."""

    mode: str
    topic: str
    challenge: str
    lease_s: float  # nan: not given
    reason: str


class Topic(NamedTuple):
    """What to subscribe to for a page: the URL that it gives as its own (rel=self), and its hub."""

    topic: str
    hub: str


def question(query: bytes) -> Question | None:
    """Parse the query of a GET; return None if no hub would send it."""
    fields = fields_of(query)
    if fields is None:
        return None
    mode, topic = fields.get("hub.mode", ""), fields.get("hub.topic", "")
    challenge = fields.get("hub.challenge", "")
    if mode not in (SUBSCRIBE, UNSUBSCRIBE, DENIED) or not topic or len(challenge) > MOST_CHALLENGE:
        return None
    if mode != DENIED and not challenge:
        return None
    lease = fields.get("hub.lease_seconds", "")
    lease_s = float(lease) if lease.isascii() and lease.isdigit() and len(lease) < 12 else float("nan")
    return Question(mode, topic, challenge, lease_s, fields.get("hub.reason", "")[:200])


def request_form(mode: str, topic: str, callback: str, secret: str, lease_s: float) -> bytes:
    """Return the form to post to a hub."""
    fields = {"hub.callback": callback, "hub.mode": mode, "hub.topic": topic}
    if mode == SUBSCRIBE:
        fields |= {"hub.lease_seconds": str(round(lease_s)), "hub.secret": secret}
    return urlencode(fields).encode()


def signed_by(body: bytes, secret: str, signature: bytes) -> str:
    """Return the method of a valid X-Hub-Signature; "" if it is missing or wrong. Compares in constant time.

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


def discovered(url: str, headers: dict[bytes, bytes], body: bytes) -> Topic | None:
    """Return a page's hub and own URL, from its Link headers, or else from its feed or HTML head. `url`: where it was fetched.

    >>> discovered("http://a.org/f", {b"link": b'<https://hub.org/>; rel="hub", </feed>; rel=self'}, b"")
    Topic(topic='http://a.org/feed', hub='https://hub.org/')
    """
    in_headers = of_response(headers, url)
    feed = read_feed(body, url, 0.0)
    in_html = of_response({}, url, b"" if feed.kind else body)
    hubs = in_headers.hubs or feed.hubs or in_html.hubs
    topic = in_headers.self_url or feed.self_url or in_html.self_url or url
    return Topic(topic, hubs[0]) if hubs else None
