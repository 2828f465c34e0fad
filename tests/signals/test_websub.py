"""WebSub against our own hub on loopback: the whole cycle by real requests, and the protocol functions alone."""

import asyncio
import hashlib
import hmac
import math
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.crawler.small_server import NOT_FOUND
from tests.effort import slow
from tests.signals.endpoint_world import World, world
from trapline.fetch.failure import TIMEOUT
from trapline.signals.endpoint.known_sites import SitesKnown
from trapline.signals.inbox import Inbox
from trapline.signals.small_fetch import SmallResponse
from trapline.signals.websub.protocol import Topic, discovered, question, signed_by
from trapline.signals.websub.subscriber import Subscriber
from trapline.signals.websub.subscriptions import (
    ACTIVE,
    ASKED,
    DENIED,
    ENDED,
    LEAVING,
    WANTED,
    NoRoom,
    Subscription,
    Subscriptions,
)

PUBLIC = "http://127.0.0.1:1"  # replaced once the port is known: only the path of the callback matters


class Hub:
    """A hub that accepts requests, and verifies, denies and delivers when a test says so."""

    def __init__(self) -> None:
        self.requests: list[dict[str, str]] = []
        self.status = 202
        self.body = b""
        self.port = 0

    def callback(self) -> str:
        return urlsplit(self.requests[-1]["hub.callback"]).path

    def verify(
        self, one: World, mode: str = "subscribe", challenge: str = "c-1", lease_s: int = 1000, **more: str
    ) -> str:
        requested = self.requests[-1]
        fields = {"hub.mode": mode, "hub.topic": requested["hub.topic"], "hub.challenge": challenge}
        query = urlencode({**fields, "hub.lease_seconds": str(lease_s), **more})
        answer = one.ask("GET", f"{self.callback()}?{query}")
        return f"{answer.status} {answer.body.strip()}"

    def deliver(self, one: World, body: str, method: str = "sha256", secret: str | None = None) -> int:
        key = (secret or self.requests[-1].get("hub.secret", "")).encode()
        signature = f"{method}={hmac.new(key, body.encode(), method).hexdigest()}"
        return one.ask("POST", self.callback(), body.encode(), x_hub_signature=signature).status


@contextmanager
def hub_on(address: str = "127.9.0.2") -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            hub.requests.append({name: values[0] for name, values in parse_qs(body).items()})
            self.send_response(hub.status)
            self.send_header("Content-Length", str(len(hub.body)))
            self.end_headers()
            self.wfile.write(hub.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((address, 0), Handler)
    hub.port = server.server_address[1]
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def subscribed(tmp_path: Path, active: bool = True) -> Iterator[tuple[World, Hub, str]]:
    """An endpoint that has subscribed to a topic that the crawl found."""
    with hub_on() as hub, world(tmp_path, lambda host, target: NOT_FOUND, public_url=PUBLIC) as one:
        topic = one.url("a.test", "/feed")
        inbox = Inbox(tmp_path)
        inbox.topic(topic, f"http://127.9.0.2:{hub.port}/hub")
        inbox.close()
        one.until(lambda: hub.requests)
        if active:
            assert hub.verify(one) == "200 c-1"
        yield one, hub, topic


def subscriptions_in(folder: Path) -> list[Subscription]:
    subscriptions = Subscriptions(folder)
    found = subscriptions.all()
    subscriptions.close()
    return found


def test_a_topic_found_by_the_crawl_is_subscribed_verified_and_delivered(tmp_path: Path) -> None:
    with subscribed(tmp_path, active=False) as (one, hub, topic):
        request = hub.requests[0]
        assert request["hub.mode"] == "subscribe" and request["hub.topic"] == topic and len(request["hub.secret"]) < 200
        assert request["hub.callback"].startswith(f"{PUBLIC}/websub/") and len(hub.callback()) > 40
        assert subscriptions_in(tmp_path)[0].state == ASKED
        assert hub.verify(one, challenge="say-this", lease_s=1000) == "200 say-this"
        found = subscriptions_in(tmp_path)[0]
        assert found.state == ACTIVE and 700 < found.next_try - time.time() < found.expires - time.time() <= 1000
        page, updated = one.url("a.test", "/new"), time.time() - 100
        assert hub.deliver(one, f"{page} {updated}\n{one.url('a.test', '/undated')} nan") == 202
        found_signals = {signal.url: signal for signal in one.signals()}
        assert set(found_signals) == {topic, page, one.url("a.test", "/undated")}
        assert found_signals[page].moment == updated and found_signals[page].verified
        assert found_signals[topic].received - 10 < found_signals[topic].moment <= found_signals[topic].received
        assert {signal.channel for signal in one.signals()} == {"websub"}


def test_an_entry_gives_a_signal_once_and_again_after_an_update(tmp_path: Path) -> None:
    with subscribed(tmp_path) as (one, hub, topic):
        first, second = one.url("a.test", "/1"), one.url("a.test", "/2")
        assert hub.deliver(one, f"{first} 1000") == 202
        assert hub.deliver(one, f"{first} 1000\n{second} nan") == 202
        assert [signal.url for signal in one.signals()] == [topic, first, second]


def test_a_verification_of_an_unknown_subscription_is_refused(tmp_path: Path) -> None:
    with subscribed(tmp_path, active=False) as (one, hub, _):
        assert hub.verify(one, mode="unsubscribe").startswith("404")
        assert hub.verify(one, **{"hub.topic": "http://a.test/other"}).startswith("404")
        assert one.ask("GET", "/websub/unknown?hub.mode=subscribe").status == 404
        assert one.ask("GET", hub.callback()).status == 404
        assert subscriptions_in(tmp_path)[0].state == ASKED


def test_a_hub_may_deny_a_subscription(tmp_path: Path) -> None:
    with subscribed(tmp_path, active=False) as (one, hub, _):
        hub.verify(one, mode="denied", **{"hub.reason": "not for you"})
        found = subscriptions_in(tmp_path)[0]
        assert found.state == DENIED and found.why == "not for you"
        assert hub.deliver(one, "x 1") == 410


def test_the_callback_of_an_ended_subscription_is_gone(tmp_path: Path) -> None:
    with subscribed(tmp_path) as (one, hub, topic):
        subscriptions = Subscriptions(tmp_path)
        assert subscriptions.leave(topic, time.time())
        subscriptions.close()
        one.until(lambda: hub.requests[-1]["hub.mode"] == "unsubscribe")
        assert hub.requests[-1]["hub.callback"] == hub.requests[0]["hub.callback"]
        assert hub.verify(one, mode="unsubscribe") == "200 c-1"
        assert subscriptions_in(tmp_path)[0].state == ENDED
        secret = hub.requests[0]["hub.secret"]
        assert hub.deliver(one, "x 1", secret=secret) == 410
        assert not one.signals()


def test_a_lease_is_renewed_before_it_ends(tmp_path: Path) -> None:
    with subscribed(tmp_path) as (one, hub, _):
        subscriptions = Subscriptions(tmp_path)
        before = subscriptions_in(tmp_path)[0]
        subscriptions.granted(before, 1000.0, time.time() - 900.0)  # as if most of the lease had passed
        one.until(lambda: len(hub.requests) == 2)
        assert hub.requests[1] == hub.requests[0]  # the same callback, topic and secret
        assert subscriptions_in(tmp_path)[0].state == ACTIVE  # the subscription has not ended
        assert hub.deliver(one, "http://x/ 1") == 202
        hub.verify(one, lease_s=500)
        assert 390 < subscriptions_in(tmp_path)[0].next_try - time.time() <= 400
        subscriptions.close()


def test_a_hub_that_refuses_is_tried_again_later(tmp_path: Path) -> None:
    with hub_on() as hub, world(tmp_path, lambda host, target: NOT_FOUND, public_url=PUBLIC) as one:
        hub.status = 500
        inbox = Inbox(tmp_path)
        inbox.topic(one.url("a.test", "/feed"), f"http://127.9.0.2:{hub.port}/hub")
        inbox.close()
        one.until(lambda: subscriptions_in(tmp_path) and "500" in subscriptions_in(tmp_path)[0].why)
        found = subscriptions_in(tmp_path)[0]
        assert found.tries == 1 and found.next_try > time.time() + 50 and len(hub.requests) == 1


def find_topics(folder: Path, hubs: dict[str, str]) -> None:
    """Store topics as the crawl does. `hubs`: the hub of each topic."""
    inbox = Inbox(folder)
    for topic, hub in hubs.items():
        inbox.topic(topic, hub)
    inbox.close()


@slow
def test_a_site_with_too_many_topics_does_not_block_other_sites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trapline.signals.websub.subscriptions.MOST_OF_ONE_SITE", 2)
    for module in ("subscriptions", "subscriber"):
        monkeypatch.setattr(f"trapline.signals.websub.{module}.NEW_AT_ONCE", 3)
    with hub_on() as hub, world(tmp_path, lambda host, target: NOT_FOUND, public_url=PUBLIC) as one:
        topics = [one.url("a.test", f"/{number}") for number in range(8)] + [one.url("b.test", "/feed")]
        find_topics(tmp_path, dict.fromkeys(topics, f"http://127.9.0.2:{hub.port}/hub"))
        one.until(lambda: topics[-1] in {requested["hub.topic"] for requested in hub.requests})
        one.until(lambda: "a.test" in one.status()["trouble"])
        assert len(subscriptions_in(tmp_path)) == 3


def test_a_hub_that_does_not_answer_does_not_delay_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trapline.signals.small_fetch.SmallFetch.whole_s", 600.0)  # it never answers
    silent = socket.create_server(("127.9.0.3", 0))
    with silent, hub_on() as hub, world(tmp_path, lambda host, target: NOT_FOUND, public_url=PUBLIC) as one:
        at_silent = f"http://127.9.0.3:{silent.getsockname()[1]}/hub"
        find_topics(tmp_path, {one.url("a.test", f"/{number}"): at_silent for number in range(64)})
        one.until(lambda: ASKED in {found.state for found in subscriptions_in(tmp_path)})
        find_topics(tmp_path, {one.url("b.test", "/feed"): f"http://127.9.0.2:{hub.port}/hub"})
        one.until(lambda: hub.requests)
        assert [found.state for found in subscriptions_in(tmp_path)].count(
            WANTED
        ) == 63  # one request at a time to one hub


def test_hubs_take_turns_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trapline.signals.websub.subscriber.MOST_HUBS", 1)
    monkeypatch.setattr("trapline.signals.websub.subscriber.LOOK_S", 0.0)
    subscriptions, hubs = Subscriptions(tmp_path), SilentHubs()
    for number in range(6):
        subscriptions.want(f"http://a/{number}", f"https://{'h' if number < 4 else 'i'}/{number}", float(number))
    known = SitesKnown(lambda last: [])
    asking = Subscriber(subscriptions, ImmediateCalls(), hubs, known, PUBLIC, lambda: 9.0)  # type: ignore[arg-type]

    async def until_all_were_contacted() -> None:
        running = asyncio.create_task(asking.run())
        while len(hubs.requested) < 6:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(until_all_were_contacted())
    subscriptions.close()
    assert hubs.requested == [f"https://{hub}" for hub in ("h/0", "i/4", "h/1", "i/5", "h/2", "h/3")]


class SilentHubs:
    """Used in place of the network: no hub answers."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    async def post(self, url: str, form: bytes) -> SmallResponse:
        self.requested.append(url)
        return SmallResponse(url=url, failure=TIMEOUT)


class ImmediateCalls:
    """Used in place of the thread that owns the database."""

    async def call(self, function: Callable[..., Any], *given: Any) -> Any:
        return function(*given)


class TestSubscriptions:
    """Subscriptions in virtual time."""

    @pytest.fixture
    def subscriptions(self, tmp_path: Path) -> Iterator[Subscriptions]:
        found = Subscriptions(tmp_path)
        yield found
        found.close()

    def test_waits_double_and_are_bounded(self, subscriptions: Subscriptions) -> None:
        subscriptions.want("http://a/", "https://h/", 0.0)
        waits, now = [], 0.0
        for _ in range(20):
            (one,) = subscriptions.due(now, 9)
            subscriptions.failed(one, now, "no")
            waits.append(subscriptions.all()[0].next_try - now)
            now = subscriptions.all()[0].next_try
        assert waits[:3] == [60.0, 120.0, 240.0] and max(waits) == waits[-1] == 86_400.0

    def test_an_expired_lease_is_requested_again(self, subscriptions: Subscriptions) -> None:
        subscriptions.want("http://a/", "https://h/", 0.0)
        subscriptions.granted(subscriptions.all()[0], 100.0, 0.0)
        assert not subscriptions.due(79.0, 9) and subscriptions.due(81.0, 9)
        subscriptions.expire(101.0)
        assert subscriptions.all()[0].state == WANTED and subscriptions.due(101.0, 9)

    def test_missing_and_extreme_lease_times_are_bounded(self, subscriptions: Subscriptions) -> None:
        subscriptions.want("http://a/", "https://h/", 0.0)
        for said, taken in ((math.nan, 864_000.0), (1.0, 60.0), (1e11, 90 * 86_400.0)):
            subscriptions.granted(subscriptions.all()[0], said, 0.0)
            assert subscriptions.all()[0].expires == taken

    def test_a_topic_that_moves_to_another_hub_leaves_the_first(self, subscriptions: Subscriptions) -> None:
        assert subscriptions.want("http://a/", "https://h/", 0.0)
        assert not subscriptions.want("http://a/", "https://h/", 0.0)
        assert subscriptions.want("http://a/", "https://i/", 0.0)
        assert {one.hub: one.state for one in subscriptions.all()} == {"https://h/": LEAVING, "https://i/": WANTED}
        first, second = (one.callback for one in subscriptions.all())
        assert first != second

    def test_an_unconfirmed_unsubscription_is_not_waited_for(self, subscriptions: Subscriptions) -> None:
        subscriptions.want("http://a/", "https://h/", 0.0)
        subscriptions.leave("http://a/", 0.0)
        now = 0.0
        for _ in range(3):
            (one,) = subscriptions.due(now, 9)
            subscriptions.requested(one, now)
            now += 86_400.0
        subscriptions.expire(now)
        assert subscriptions.all()[0].state == ENDED and not subscriptions.due(now, 9)

    def test_a_subscription_whose_end_the_hub_never_accepted_is_deleted_a_day_later(
        self, subscriptions: Subscriptions
    ) -> None:
        subscriptions.want("http://a/", "https://h/", 0.0)
        subscriptions.leave("http://a/", 0.0)
        now = 0.0
        for _ in range(3):
            (one,) = subscriptions.due(now, 9)
            subscriptions.failed(one, now, "refused")
            now = subscriptions.all()[0].next_try
        for later_s, left in ((0.0, 1), (86_399.0, 1), (86_400.0, 0)):
            subscriptions.expire(now + later_s)
            assert len(subscriptions.all()) == left

    def test_one_site_does_not_use_up_the_subscriptions_of_all(
        self, subscriptions: Subscriptions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("trapline.signals.websub.subscriptions.MOST_OF_ONE_SITE", 3)
        for number in range(3):
            assert subscriptions.want(f"http://a.test/{number}", "https://h/", 0.0, "no" if number else "")
        with pytest.raises(NoRoom, match=r"http://a\.test: already has 3 subscriptions"):
            subscriptions.want("http://a.test/3", "https://h/", 0.0)
        with pytest.raises(NoRoom):
            subscriptions.want("http://a.test/0", "https://another/", 0.0)
        # The subscription is not ended in vain
        assert [one.state for one in subscriptions.all()] == [WANTED, DENIED, DENIED]
        assert subscriptions.want("http://a.test:81/", "https://h/", 0.0)

    def test_subscriptions_that_no_hub_knows_use_up_no_limit(
        self, subscriptions: Subscriptions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("trapline.signals.websub.subscriptions.MOST_SUBSCRIPTIONS", 2)
        for number in range(3):
            subscriptions.want(f"http://{number}/", "https://h/", 0.0, "no" if number % 2 else "")
        with pytest.raises(NoRoom, match="there are already 2 subscriptions"):
            subscriptions.want("http://a/", "https://h/", 0.0)
        subscriptions.ended(subscriptions.all()[0])
        assert subscriptions.want("http://a/", "https://h/", 0.0)

    def test_an_ended_subscription_is_deleted_unless_the_crawl_would_find_it_again(
        self, subscriptions: Subscriptions, tmp_path: Path
    ) -> None:
        inbox = Inbox(tmp_path)
        inbox.topic("http://a/", "https://h/")
        inbox.close()
        for topic in ("http://a/", "http://b/"):
            subscriptions.want(topic, "https://h/", 0.0)
            subscriptions.delivered(subscriptions.all()[-1].callback, b"body", [("http://x/", 1.0)], 0.0)
            subscriptions.leave(topic, 0.0)
        first, second = subscriptions.all()
        for one in (first, second):
            subscriptions.requested(one, 0.0)
            subscriptions.ended(one)
        subscriptions.expire(86_399.0)
        assert subscriptions.all() == [
            subscriptions.of_callback(first.callback),
            subscriptions.of_callback(second.callback),
        ]
        subscriptions.expire(86_400.0)
        assert [one.callback for one in subscriptions.all()] == [first.callback] and not subscriptions.new_topics()
        assert subscriptions.has_come(first.callback, b"body") and not subscriptions.has_come(second.callback, b"body")
        assert subscriptions.news(second.callback, [("http://x/", 1.0)])

    def test_topics_are_processed_in_turn(
        self, subscriptions: Subscriptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("trapline.signals.websub.subscriptions.NEW_AT_ONCE", 2)
        inbox = Inbox(tmp_path)
        for number in range(3):
            inbox.topic(f"http://a/{number}", "https://h/")
        inbox.close()
        first = subscriptions.new_topics()
        assert [*first, *subscriptions.new_topics(first[-1][0])] == [(f"http://a/{n}", "https://h/") for n in range(3)]

    def test_no_hub_hides_subscriptions_due_at_other_hubs(self, subscriptions: Subscriptions) -> None:
        for number in range(9):
            subscriptions.want(f"http://a/{number}", "https://h/", float(number))
        subscriptions.want("http://b/", "https://i/", 9.0)
        assert [one.topic for one in subscriptions.due(9.0, 2)] == ["http://a/0", "http://a/1", "http://b/"]

    def test_the_number_of_remembered_bodies_is_limited(
        self, subscriptions: Subscriptions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("trapline.signals.websub.subscriptions.MOST_BODIES", 3)
        for number in range(9):
            subscriptions.delivered("c", b"%d" % number, [], float(number))
        assert [subscriptions.has_come("c", b"%d" % number) for number in range(9)] == [False] * 6 + [True] * 3


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_signatures_of_each_kind(method: str) -> None:
    right = hmac.new(b"secret", b"body", method).hexdigest()
    assert signed_by(b"body", "secret", f"{method}={right}".encode()) == method
    assert signed_by(b"other", "secret", f"{method}={right}".encode()) == ""
    assert signed_by(b"body", "other", f"{method}={right}".encode()) == ""


def test_an_invalid_signature_is_refused() -> None:
    md5 = hashlib.md5(b"x").hexdigest()
    for signature in (b"", b"sha256", b"sha256=", f"md5={md5}".encode(), b"=x", b"sha256=\xff\xfe", b"none="):
        assert signed_by(b"body", "secret", signature) == ""
    assert signed_by(b"body", "", b"sha256=" + hmac.new(b"", b"body", "sha256").hexdigest().encode()) == ""


def test_invalid_verification_requests_are_refused() -> None:
    assert question(b"hub.mode=subscribe&hub.topic=t") is None  # no challenge
    assert question(b"hub.mode=other&hub.topic=t&hub.challenge=c") is None
    assert question(b"hub.mode=subscribe&hub.topic=t&hub.challenge=" + b"c" * 5000) is None
    assert question(b"hub.mode=subscribe&hub.topic=%FF&hub.challenge=c") is None
    found = question(b"hub.mode=subscribe&hub.topic=t&hub.challenge=c&hub.lease_seconds=-5")
    assert found is not None and math.isnan(found.lease_s)


ATOM = b"""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="https://hub.org/"/>
<link rel='self' href='http://a.org/feed'/><entry><link rel="hub" href="https://evil.org/"/></entry></feed>"""
RSS = b"""<rss xmlns:atom="http://www.w3.org/2005/Atom"><channel><!-- <atom:link rel="hub" href="https://no.org/"/> -->
<link>http://a.org/</link><atom:link rel="hub" href="https://hub.org/"/><item/></channel></rss>"""
HTML = b"""<html><head><link rel="hub" href="//hub.org"></head><body><link rel=self href=/evil></body>"""


@pytest.mark.parametrize(
    "link, body, place",
    [
        (b"", ATOM, Topic("http://a.org/feed", "https://hub.org/")),
        (b"", RSS, Topic("http://a.org/x", "https://hub.org/")),
        (b"", HTML, Topic("http://a.org/x", "http://hub.org/")),
        (b'<https://first.org/>; rel="hub"', ATOM, Topic("http://a.org/feed", "https://first.org/")),
        (b'<https://first.org/>; rel=hub, <https://second.org/>; rel=hub, </s>; rel="self"', b"", Topic("http://a.org/s", "https://first.org/")),
        (b"</s>; rel=self", b"", None),
        (b"", b"<body><link rel=hub href=https://evil.org/>", None),
        (b"", b"\xff\xfe" * 100, None),
    ],
)  # fmt: skip
def test_places_where_a_page_names_its_hub(link: bytes, body: bytes, place: Topic | None) -> None:
    assert discovered("http://a.org/x", {b"link": link} if link else {}, body) == place
