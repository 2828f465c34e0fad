"""The security list of the specification, item by item: `test_1_...` is item 1. Comments name what the crawl must do itself.

Everything is tested by real requests to a running endpoint. The last section covers slow, numerous and endless senders.

"""

import asyncio
import hmac
import math
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.crawler.small_server import HANG, NOT_FOUND, loop_in_thread, moved, text
from tests.effort import sample, slow
from tests.fetch.name_server import Name, NameServer
from tests.signals.endpoint_world import KEY, TOKEN, World, world
from tests.signals.test_websub import subscribed, subscriptions_in
from trapline.signals.endpoint import app as endpoint
from trapline.signals.endpoint import connections as bounded
from trapline.signals.endpoint import server as serving
from trapline.signals.endpoint.intake import SenderRates
from trapline.signals.endpoint.rate_limits import Buckets, Once, RequestRate, sender_of
from trapline.signals.inbox import UNVERIFIED_P, Inbox

UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def keys(host: str, target: str) -> bytes:
    return text(KEY) if target == f"/{KEY}.txt" else NOT_FOUND


# ---- 1: ownership


def test_1_a_signal_counts_only_if_its_sender_owns_the_host(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        one.ping(one.url("a.test", "/forged"), "forged-key")
        one.until(lambda: one.counts().get("refuted"))
        assert not one.signals()
        one.prove("a.test")
        assert [(signal.verified, signal.p) for signal in one.signals()] == [(True, 1.0)]


def test_1_an_unverified_signal_has_little_weight(tmp_path: Path) -> None:
    with world(tmp_path, lambda host, target: UNAVAILABLE) as one:
        assert one.ping(one.url("a.test", "/x")).status == 202
        one.until(one.signals)
        assert one.ping(one.url("a.test", "/y")).status == 202  # accepted now, because a failing server refutes nothing
        assert [(signal.verified, signal.p) for signal in one.signals()] == [(False, UNVERIFIED_P)] * 2


def test_1_a_key_proves_its_own_host_and_no_other(tmp_path: Path) -> None:
    with world(tmp_path, lambda host, target: keys(host, target) if host == "a.test" else NOT_FOUND) as one:
        one.prove("a.test")
        one.ping(one.url("b.test", "/x"))
        one.until(lambda: one.ping(one.url("b.test", "/x")).status == 403)
        host = f"a.test:{one.server.port}"  # type: ignore[union-attr]
        assert one.post_pings(host, [one.url("a.test"), one.url("b.test")]).status == 422


def test_1_a_page_that_echoes_its_request_proves_nothing(tmp_path: Path) -> None:
    """A key must be the whole file, and a location with a query is not accepted."""
    with world(tmp_path, lambda host, target: text(f"not found: {target} {KEY}")) as one:
        one.ping(one.url("a.test"))
        one.until(lambda: one.ping(one.url("a.test")).status == 403)
        assert one.ping(one.url("a.test"), location=one.url("a.test", f"/echo?{KEY}")).status == 422


def test_1_a_delivery_without_the_right_signature_is_ignored(tmp_path: Path) -> None:
    with subscribed(tmp_path) as (one, hub, _):
        body = one.url("a.test", "/x") + " 1"
        assert one.ask("POST", hub.callback(), body.encode()).status == 202
        assert hub.deliver(one, body, secret="guessed") == 202
        right = hmac.new(hub.requests[0]["hub.secret"].encode(), b"other", "sha256").hexdigest()
        assert one.ask("POST", hub.callback(), body.encode(), x_hub_signature=f"sha256={right}").status == 202
        assert not one.signals() and one.counts("websub") == {"unsigned": 3}


def test_1_sha1_signatures_have_little_weight(tmp_path: Path) -> None:
    with subscribed(tmp_path) as (one, hub, topic):
        assert hub.deliver(one, "", method="sha1") == 202
        assert [(signal.url, signal.verified, signal.p) for signal in one.signals()] == [(topic, False, UNVERIFIED_P)]


def test_1_a_hub_is_valid_for_the_host_of_its_topic_only(tmp_path: Path) -> None:
    with subscribed(tmp_path) as (one, hub, topic):
        assert hub.deliver(one, f"{one.url('b.test', '/x')} 1\nhttp://a.test/other-port 1") == 202
        assert [signal.url for signal in one.signals()] == [topic]


# ---- 2: requests that others could make us send


def test_2_a_key_file_on_another_host_is_not_requested(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        assert one.ping(one.url("a.test"), location=one.url("b.test", "/k.txt")).status == 422
        assert one.ping(one.url("a.test"), location="http://169.254.169.254/k.txt").status == 422
        assert (
            one.ping(one.url("a.test"), location=one.url("a.test", "/k.txt").replace("http:", "https:")).status == 422
        )
        assert not one.server.log  # type: ignore[union-attr]


def test_2_a_known_host_that_resolves_to_a_private_address_is_not_contacted(tmp_path: Path) -> None:
    """The name is resolved here, judged and refused. No request reaches the server although it listens there."""
    with world(tmp_path, keys, allow_private=False) as one:
        one.ping(one.url("a.test", "/x"))
        one.until(lambda: one.counts().get("refuted"))
        assert not one.server.connections and not one.signals()  # type: ignore[union-attr]


def test_2_a_name_with_a_public_and_a_private_address_is_refused(tmp_path: Path) -> None:
    """The connection uses the address that was judged, so a second lookup cannot change it."""
    hosts = {"a.test": ("127.9.0.1", "192.0.0.8")}
    with world(tmp_path, keys, hosts=("a.test",)) as one:
        one.service._resolver._hosts = hosts
        one.ping(one.url("a.test", "/x"))
        one.until(lambda: one.counts().get("refuted"))
        assert not one.server.connections  # type: ignore[union-attr]


def test_2_a_redirect_to_another_host_is_not_followed(tmp_path: Path) -> None:
    def answers(host: str, target: str) -> bytes:
        return moved(f"http://b.test:{port}/{KEY}.txt") if host == "a.test" else text(KEY)

    port = 0
    with world(tmp_path, answers) as one:
        port = one.server.port  # type: ignore[union-attr]
        one.ping(one.url("a.test", "/x"))
        one.until(lambda: one.counts().get("refuted"))
        assert [request.host for request in one.server.log] == ["a.test"]  # type: ignore[union-attr]


def test_2_a_redirect_does_not_widen_the_authority_of_a_key_file(tmp_path: Path) -> None:
    """Many sites have a page that redirects anywhere, and a folder that visitors may write to."""

    def answers(host: str, target: str) -> bytes:
        return text(KEY) if target == "/users/me/k.txt" else moved("/users/me/k.txt")

    with world(tmp_path, answers) as one:
        one.ping(one.url("a.test", "/x"), location=one.url("a.test", "/go.txt"))
        one.until(lambda: one.counts().get("refuted"))
        assert len(one.server.log) == 2 and not one.signals()  # type: ignore[union-attr]


def test_2_a_long_key_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    with world(tmp_path, lambda host, target: text(KEY + " " * 5000)) as one:
        one.ping(one.url("a.test", "/x"))
        one.until(lambda: one.counts().get("refuted"))


def test_2_a_slow_key_file_is_abandoned(tmp_path: Path) -> None:
    with world(tmp_path, lambda host, target: [text(KEY)[:-1], HANG]) as one:
        one.service.pings.ownership._fetch.whole_s = 0.2
        one.ping(one.url("a.test", "/x"))
        one.until(one.signals)
        assert not one.signals()[0].verified and one.status()["keys"]["pending"] == 0


def test_2_only_hubs_on_https_are_contacted(tmp_path: Path) -> None:
    with world(tmp_path, keys, allow_private=False, public_url="https://ours.test") as one:
        inbox = Inbox(tmp_path)
        inbox.topic(one.url("a.test", "/feed"), one.url("b.test", "/hub"))
        inbox.topic(one.url("a.test", "/feed2"), one.url("b.test", "/hub").replace("http:", "https:"))
        inbox.close()
        one.until(lambda: len([found for found in subscriptions_in(tmp_path) if found.why]) == 2)
        assert [(found.state, found.why) for found in subscriptions_in(tmp_path)] == [
            ("denied", "the hub is not on https"),
            ("asked", "address"),  # its name resolves to a private address
        ]
        assert not one.server.connections  # type: ignore[union-attr]


def test_2_a_callback_cannot_be_guessed(tmp_path: Path) -> None:
    with subscribed(tmp_path) as (one, hub, _):
        token = hub.callback().removeprefix("/websub/")
        assert len(token) >= 43  # 256 bits
        for guess in (token[:-1], token + "x", token.swapcase(), "", "../status"):
            assert one.ask("POST", f"/websub/{guess}", b"").status == 404
        assert one.counts("websub") == {"unknown": 5}


# ---- 3: limits


def few(**rates: RequestRate) -> dict[str, Any]:
    return {"rates": SenderRates()._replace(**rates)}


def test_3_each_sender_has_its_own_limit_of_requests(tmp_path: Path) -> None:
    with world(tmp_path, keys, **few(sender=RequestRate(0.001, 5.0))) as one:
        answers = [one.ask("GET", "/", source="127.0.0.2") for _ in range(7)]
        assert [answer.status for answer in answers] == [200] * 5 + [429] * 2
        assert int(answers[-1].headers["retry-after"]) > 60
        assert one.ask("GET", "/", source="127.0.0.3").status == 200


def test_3_invalid_requests_cost_their_sender_more(tmp_path: Path) -> None:
    with world(tmp_path, keys, **few(sender=RequestRate(0.001, 30.0))) as one:
        bad = [one.ask("GET", "/indexnow", source="127.0.0.2").status for _ in range(5)]
        assert bad == [400] * 3 + [429] * 2
        assert [one.ask("GET", "/", source="127.0.0.3").status for _ in range(5)] == [200] * 5


def test_3_each_host_has_its_own_limit_of_urls(tmp_path: Path) -> None:
    with world(tmp_path, keys, **few(host=RequestRate(0.001, 6.0))) as one:
        one.prove("a.test")
        one.prove("b.test")
        answers = [one.ping(one.url("a.test", f"/{number}")) for number in range(7)]
        assert {answer.status for answer in answers} == {200, 429} and answers[-1].status == 429
        assert int(answers[-1].headers["retry-after"]) > 60
        assert one.ping(one.url("b.test", "/1")).status == 200


def test_3_forged_pings_do_not_use_up_the_limit_of_the_owner(tmp_path: Path) -> None:
    rates = few(
        host=RequestRate(0.001, 50.0), host_unvouched=RequestRate(0.001, 3.0), all_unvouched=RequestRate(0.001, 5.0)
    )
    with world(tmp_path, keys, **rates) as one:
        one.prove("a.test")
        for number in range(9):
            last = one.ping(one.url("a.test", "/x"), f"forged-{number}")
        assert last.status == 429
        assert one.ping(one.url("a.test", "/mine")).status == 200


def test_3_all_senders_together_have_a_limit_of_urls(tmp_path: Path) -> None:
    with world(tmp_path, keys, **few(all=RequestRate(0.001, 8.0))) as one:
        one.prove("a.test")
        one.prove("b.test")
        statuses = [one.ping(one.url(host, f"/{n}")).status for n in range(5) for host in ("a.test", "b.test")]
        assert statuses[-1] == 429


def test_3_a_body_has_at_most_two_megabytes_with_or_without_a_stated_length(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        with closing(socket.create_connection(("127.0.0.1", one.port), 20)) as raw:
            raw.sendall(b"POST /indexnow HTTP/1.1\r\nHost: x\r\nContent-Length: 2097153\r\n\r\n")
            assert b" 413 " in raw.recv(100)  # before any of the body is sent
        with closing(socket.create_connection(("127.0.0.1", one.port), 20)) as raw:
            raw.sendall(b"POST /indexnow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            with pytest.raises(OSError):  # the connection is closed while we send
                for _ in range(100):
                    raw.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                    time.sleep(0.001)
                assert b" 413 " in raw.recv(100)
                raise OSError
        assert one.ask("POST", "/indexnow", b" " * (2 * 1024 * 1024 - 100)).status == 400


def test_3_bodies_being_read_have_a_common_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trapline.signals.endpoint.app.MOST_READING_BYTES", 100_000)
    with world(tmp_path, keys) as one:
        assert one.ask("POST", "/indexnow", b" " * 200_000).status == 503
        assert one.ask("POST", "/indexnow", b" " * 90_000).status == 400
        assert one.service.app._reading_bytes == 0


def test_3_a_url_counts_once_a_minute(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        one.prove("a.test")
        assert [one.ping(one.url("a.test", "/x")).status for _ in range(20)] == [200] * 20
        assert [signal.url for signal in one.signals()].count(one.url("a.test", "/x")) == 1
        assert one.counts()["repeated"] >= 19


def test_3_the_endpoint_fetches_no_pages() -> None:
    """A signal is a row in the inbox and cannot request a page. The frontier alone decides what is fetched, and when."""
    import trapline.signals.inbox as inbox

    assert not {name for name in vars(inbox) if "fetch" in name.lower() or "frontier" in name.lower()}


# ---- 4: amplification


def test_4_many_pings_are_one_signal_and_one_request_for_the_key(tmp_path: Path) -> None:
    with world(tmp_path, lambda host, target: [0.3, keys(host, target)]) as one:
        for _ in range(30):
            assert one.ping(one.url("a.test", "/x")).status in (200, 202)
        one.until(lambda: one.ping(one.url("a.test", "/x")).status == 200)
        assert len(one.signals()) == 1 and len(one.server.log) == 1  # type: ignore[union-attr]


def test_4_one_key_is_requested_once_whatever_its_stated_location(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        statuses = [
            one.ping(one.url("a.test", "/x"), "forged-key", one.url("a.test", f"/{number}.txt")).status
            for number in range(20)
        ]
        assert statuses == [202] + [429] * 19 and len(one.server.log) == 1  # type: ignore[union-attr]


def test_4_many_keys_cause_few_requests_to_a_host(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        answers = [one.ping(one.url("a.test", "/x"), f"forged-{number}") for number in range(50)]
        one.until(lambda: one.status()["keys"]["pending"] == 0)
        assert len(one.server.log) == 5  # type: ignore[union-attr]
        assert answers[-1].status == 429 and int(answers[-1].headers["retry-after"]) > 60


# ---- 5: lying


def test_5_forged_and_replayed_pings_change_nothing_but_counters(tmp_path: Path) -> None:
    """The refresher learns how far a verified sender is trusted. An unverified sender leaves nothing."""
    with world(tmp_path, keys) as one:
        one.prove("a.test")
        before = one.signals()
        host = f"a.test:{one.server.port}"  # type: ignore[union-attr]
        for number in range(20):
            one.post_pings(host, [one.url("a.test", f"/{n}") for n in range(500)], f"forged-{number}")
            one.ping(one.url("a.test", "/proof"))
        one.until(lambda: one.status()["keys"]["pending"] == 0)
        assert one.signals() == before and sum(one.counts().values()) > 10_000


# ---- 6: replay


def test_6_a_repeated_delivery_gives_no_signal_even_after_a_restart(tmp_path: Path) -> None:
    with subscribed(tmp_path) as (one, hub, _):
        body = one.url("a.test", "/x") + " nan"
        assert [hub.deliver(one, body) for _ in range(3)] == [202] * 3
        before, counts = one.signals(), one.counts("websub")
        assert len(before) == 2 and counts == {"accepted": 2, "replayed": 2}
        request = hub.requests[0]
    with world(tmp_path, keys, public_url="http://127.0.0.1:1") as again:
        hub.requests = [request]
        assert hub.deliver(again, body) == 202
        assert again.signals() == before and again.counts("websub") == {"replayed": 1}


# ---- 7: clocks


def test_7_a_moment_in_the_future_becomes_now(tmp_path: Path) -> None:
    """The crawl alone knows the last fetch of the page, so it ensures that no moment lies before that."""
    with subscribed(tmp_path) as (one, hub, _):
        assert hub.deliver(one, f"{one.url('a.test', '/x')} {time.time() + 1e8}\n{one.url('a.test', '/y')} inf") == 202
        assert all(signal.moment <= signal.received for signal in one.signals()) and len(one.signals()) == 3


# ---- 8: new hosts


def test_8_a_ping_never_brings_a_host_into_the_crawl(tmp_path: Path) -> None:
    """No request and no lookup is made, although other.test has an address and a key."""
    with world(tmp_path, keys) as one:
        assert one.ping(one.url("other.test", "/x")).status == 202  # and the answer does not reveal what is crawled
        assert one.ask("POST", "/indexnow", b"{}").status == 400
        assert one.counts() == {"malformed": 1, "unknown": 1}
        assert not one.server.connections and not one.signals()  # type: ignore[union-attr]


def test_8_another_port_or_subdomain_is_another_host(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        one.prove("a.test")
        for url in ("http://a.test/", one.url("www.a.test"), one.url("a.test").replace("a.test", "a.test.")):
            assert one.ping(url).status == 202
        assert one.counts()["unknown"] == 3


# ---- 9: outcomes


def test_9_the_outcome_of_each_signal_is_on_disk(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        one.prove("a.test")
        one.ping(one.url("a.test", "/x"))
        one.ping(one.url("a.test", "/x"))
        one.ping("http://stranger.test/")
        one.ask("GET", "/indexnow")
        one.ping(one.url("b.test", "/x"), "forged-key")
        one.until(lambda: one.counts().get("refuted"))
        counts = one.counts()
    with closing(sqlite3.connect(tmp_path / "signals.db")) as database:
        kept_counts = dict(
            database.execute("select outcome, sum(signals) from tally where channel = 'indexnow' group by 1")
        )
    assert kept_counts == counts
    assert {"accepted": 2, "unknown": 1, "malformed": 1, "refuted": 1}.items() <= counts.items()


# ---- slow, numerous and endless senders: the server below the endpoint


@contextmanager
def raw(one: World, source: str = "127.0.0.1") -> Iterator[socket.socket]:
    with closing(socket.create_connection(("127.0.0.1", one.port), 20, (source, 0))) as connection:
        yield connection


def ends(connection: socket.socket) -> bool:
    """Read until the other side closes. Without a close the test fails by a timeout."""
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


@contextmanager
def name_server(names: dict[str, Name]) -> Iterator[tuple[str, Counter[tuple[str, int]]]]:
    """The address of a DNS server, and its queries."""
    server = NameServer(names)
    with loop_in_thread() as loop:
        yield asyncio.run_coroutine_threadsafe(server.start(), loop).result(10.0), server.queries


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "KEEP_ALIVE_S", 1)
    monkeypatch.setattr(bounded, "HEAD_S", 0.3)
    monkeypatch.setattr(bounded.Bounds, "whole_s", 0.6)


SLOW = [
    pytest.param(b"", id="silent"),
    pytest.param(b"GET /indexnow?url=", id="part of a request line"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\r\n", id="part of a head"),
    pytest.param(b"\r\n\r\n", id="empty lines"),
    pytest.param(b"POST /indexnow HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc", id="part of a body"),
    pytest.param(
        b"POST /indexnow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", id="part of a chunk"
    ),
    pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", id="a second request"),
    pytest.param(b"POST /status HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc", id="a body that nobody reads"),
]
HELD_UP = pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="held up")


@pytest.mark.parametrize("begins", sample(SLOW, 3))
def test_slow_senders_are_disconnected_at_every_point_of_a_request(
    tmp_path: Path, impatient: None, begins: bytes
) -> None:
    with world(tmp_path, keys) as one, raw(one) as connection:
        connection.sendall(begins)
        while not ends(connection):  # an answer to the complete request
            pass
        assert one.ask("GET", "/").status == 200


def test_a_sender_of_one_byte_at_a_time_is_disconnected(tmp_path: Path, impatient: None) -> None:
    with world(tmp_path, keys) as one, raw(one) as connection, pytest.raises(OSError):
        connection.sendall(b"GET / HTTP/1.1\r\n")
        for number in range(2000):
            connection.sendall(b"X-%d: y\r\n" % number)
            time.sleep(0.01)


def test_a_sender_of_an_endless_head_is_disconnected(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one, raw(one) as connection:
        with pytest.raises(OSError):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\nX-Long: ")
            for _ in range(10_000):
                connection.sendall(b"X" * 1000)
        one.until(lambda: one.status()["connections"]["cut_off"])


CHUNKED = b"POST /indexnow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
ENDLESS = {
    "trailers": (CHUNKED + b"0\r\n", b"A: b\r\n" * 200),
    "a trailer's name": (CHUNKED + b"0\r\n", b"A" * 1000),
    "a trailer's value": (CHUNKED + b"0\r\nA: ", b"b" * 1000),
    "what a chunk says of itself": (CHUNKED + b"1;", b"a" * 1000),
}


@pytest.mark.parametrize("begins, goes_on", ENDLESS.values(), ids=ENDLESS)
def test_a_sender_of_an_endless_body_is_disconnected(tmp_path: Path, begins: bytes, goes_on: bytes) -> None:
    with world(tmp_path, keys) as one, raw(one) as connection:
        with pytest.raises(OSError):
            connection.sendall(begins)
            for _ in range(20_000):
                connection.sendall(goes_on)
        one.until(lambda: one.status()["connections"]["cut_off"] == 1)


def test_a_body_may_come_in_chunks_of_one_byte(tmp_path: Path) -> None:
    """The chunk sizes together are far longer than a head may be."""
    with world(tmp_path, keys) as one, raw(one) as connection:
        connection.sendall(CHUNKED + b"1\r\n \r\n" * 20_000 + b"1\r\n}\r\n0\r\nA: b\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 400 ") and not one.service.bounds.cut_off


def test_a_trailer_does_not_count_as_a_header(tmp_path: Path) -> None:
    head = b"POST /accesses HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with world(tmp_path, keys) as one, raw(one) as connection:
        connection.sendall(head + b"1\r\n\n\r\n0\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 403 ")


def test_each_sender_has_its_own_limit_of_connections(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        several = [socket.create_connection(("127.0.0.1", one.port), 20, ("127.0.0.2", 0)) for _ in range(40)]
        one.until(lambda: one.status()["connections"]["gave_way"] == 8)
        assert all(map(ends, several[:8])) and one.ask("GET", "/", source="127.0.0.3").status == 200
        assert one.service.bounds.of_sender["127.0.0.2"] == 32
        for connection in several:
            connection.close()
        one.until(lambda: not one.service.bounds.of_sender["127.0.0.2"])
        assert one.ask("GET", "/", source="127.0.0.2").status == 200


def waiting_connections(
    one: World, begins: bytes, senders: int, each: int, in_turn: bool = False
) -> list[socket.socket]:
    """Open connections that each send the same bytes. `in_turn`: after those of a sender, the server answers somebody else. By
    then it has read them, so that no connection is in an unknown state, however slow the machine is."""
    several = []
    for sender in range(senders):
        for _ in range(each):
            several.append(socket.create_connection(("127.0.0.1", one.port), 20, (f"127.1.0.{sender + 1}", 0)))
            several[-1].sendall(begins)
        if in_turn:
            one.ask("GET", "/x", source=f"127.3.0.{sender + 1}")
    return several


@slow
@pytest.mark.parametrize("begins", [*sample(SLOW, 3), HELD_UP])
def test_any_number_of_slow_senders_does_not_exclude_others(
    tmp_path: Path, begins: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty senders with thirty connections each, more than the total limit. The last ones exceed their rate and wait
    for the answer, however long it takes to open them all."""
    monkeypatch.setattr(endpoint, "HELD_UP_S", 600.0)
    with world(tmp_path, keys, **few(sender=RequestRate(0.5, 2.0))) as one:
        several = waiting_connections(one, begins, senders=20, each=30, in_turn=True)
        one.until(lambda: one.service.bounds.gave_way >= 600 - bounded.MOST_CONNECTIONS, most_s=120.0)
        answers = [one.ask("GET", "/", source=f"127.2.0.{number}").status for number in range(1, 31)]
        assert answers == [200] * 30
        assert one.service.bounds.of_sender.total() <= bounded.MOST_CONNECTIONS and not one.service.bounds.refused
        for connection in several:
            connection.close()


@slow
def test_senders_above_their_rate_do_not_exclude_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many senders as connections are allowed, each with one connection and more requests on it than its rate."""
    monkeypatch.setattr(bounded, "MOST_CONNECTIONS", 40)
    monkeypatch.setattr(endpoint, "HELD_UP_S", 600.0)
    with world(tmp_path, keys, **few(sender=RequestRate(0.001, 2.0))) as one:
        several = waiting_connections(one, b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n" * 300, senders=40, each=1)
        one.until(lambda: one.service.tally.by_channel().get("requests", {}).get("limited") == 40)
        answers = [one.ask("GET", "/", source=f"127.2.0.{number}").status for number in range(1, 31)]
        assert answers == [200] * 30 and not one.service.bounds.refused
        for connection in several:
            connection.close()


@slow
def test_senders_of_pipelined_requests_do_not_exclude_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many senders as connections are allowed, each with one connection and none above its rate."""

    async def never(*_: object) -> None:
        await asyncio.sleep(600.0)

    monkeypatch.setattr(bounded, "MOST_CONNECTIONS", 40)
    monkeypatch.setattr(endpoint.Endpoint, "_about", never)
    with world(tmp_path, keys) as one:
        several = waiting_connections(one, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 300, senders=40, each=1)
        one.until(lambda: one.service.tally.requests == 40)
        answers = [one.ask("GET", "/x", source=f"127.2.0.{number}").status for number in range(1, 31)]
        assert answers == [404] * 30 and not one.service.bounds.refused
        for connection in several:
            connection.close()


def test_the_answer_429_closes_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "HELD_UP_S", 0.0)
    with world(tmp_path, keys, **few(sender=RequestRate(0.001, 2.0))) as one, raw(one) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
        came = b""
        with suppress(ConnectionResetError):  # the excess that it sent was not read
            while piece := connection.recv(10_000):
                came += piece
        assert [came.count(b"HTTP/1.1 %d " % status) for status in (200, 429)] == [2, 1]


class Caller:
    """A connection as `Bounds` sees it."""

    def __init__(self, sender: str, waits: bool) -> None:
        self.sender, self.waits, self.aborted = sender, waits, False

    def abort(self) -> None:
        self.aborted = True


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), max_size=60))
def test_no_sender_loses_a_connection_to_one_with_more_connections(steps: list[tuple[int, bool, bool]]) -> None:
    """With eight connections in total and four per sender. `answered`: the oldest connection gets its answer and waits again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded, "MOST_CONNECTIONS", 8)
        patch.setattr(bounded, "MOST_OF_ONE_SENDER", 4)
        bounds, here = bounded.Bounds(), list[Caller]()
        for sender, waits, answered in steps:
            before, new = Counter(one.sender for one in here), Caller(str(sender), waits)
            admitted = bounds.admits(new)  # type: ignore[arg-type]
            gone = [one for one in here if one.aborted]
            here = [one for one in here if not one.aborted] + [new] * admitted
            assert len(gone) <= 1 and len(here) <= 8 and Counter(one.sender for one in here) == bounds.of_sender
            for one in gone:
                assert before[one.sender] > before[new.sender] or one.sender == new.sender
                assert one.waits or before[one.sender] > before[new.sender] + 1
            if not admitted:
                rivals = [one for one in here if before[one.sender] > before[new.sender] or one.sender == new.sender]
                assert before[new.sender] == 4 or len(here) == 8
                assert not any(one.waits for one in rivals if before[new.sender] < 4 or one.sender == new.sender)
            if answered and here:
                here[0].waits = True
                bounds.answered(here[0])  # type: ignore[arg-type]
                here.append(here.pop(0))


def test_3_senders_behind_a_trusted_proxy_are_distinguished_and_others_cannot_claim_an_address(tmp_path: Path) -> None:
    with world(tmp_path, keys, proxy="127.0.0.5", **few(sender=RequestRate(0.001, 2.0))) as one:

        def statuses(source: str, *named: str) -> list[int]:
            return [one.ask("GET", "/", source=source, x_forwarded_for=name).status for name in named]

        assert statuses("127.0.0.5", "192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2") == [200, 200, 429, 200]
        assert statuses("127.0.0.6", "192.0.2.7", "192.0.2.8", "192.0.2.9") == [200, 200, 429]
        several = [socket.create_connection(("127.0.0.1", one.port), 20, ("127.0.0.5", 0)) for _ in range(40)]
        one.until(lambda: one.service.bounds.of_sender["127.0.0.5"] == 40)
        for connection in several:
            connection.close()


def test_3_senders_behind_a_proxy_with_an_ipv6_address_are_distinguished() -> None:
    bounds, several = bounded.Bounds("::1"), [Caller(sender_of("::1"), True) for _ in range(40)]
    assert all(bounds.admits(one) for one in several) and not any(one.aborted for one in several)  # type: ignore[arg-type]


def test_3_memory_is_bounded_for_any_hosts_keys_and_senders(tmp_path: Path) -> None:
    """Tested on the parts themselves, because no socket could bring that many that quickly."""
    buckets: Buckets[str] = Buckets(RequestRate(1.0, 1.0))
    once: Once[int] = Once(math.inf)
    for number in range(500_000):
        buckets.wait_s(f"host-{number}.test", 1.0, 0.0)
        once.is_new(number, 0.0)
    assert len(buckets) == 100_000 and len(once) == 400_000


def test_4_pending_key_checks_and_held_urls_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trapline.signals.indexnow.ownership.MOST_PENDING", 3)
    monkeypatch.setattr("trapline.signals.indexnow.ownership.MOST_HELD_BYTES", 20_000)
    hosts = [f"h{number}.test" for number in range(9)]
    with world(tmp_path, lambda host, target: [5.0], hosts=hosts) as one:
        statuses = [one.ping(one.url(host, "/x")).status for host in hosts]
        assert statuses == [202] * 3 + [429] * 6
        long = [one.url("h0.test", f"/{'x' * 1000}{number}") for number in range(30)]
        host = f"h0.test:{one.server.port}"  # type: ignore[union-attr]
        assert one.post_pings(host, long).status == 429
        assert one.status()["keys"]["urls_held"] == 3


def test_8_names_of_unknown_hosts_are_not_looked_up(tmp_path: Path) -> None:
    """By real queries to a real name server, which alone knows these names."""
    names = {"a.test": Name(("127.9.0.1",)), "stranger.test": Name(("127.9.0.1",))}
    with name_server(names) as (where, queries), world(tmp_path, keys, hosts=("a.test",)) as one:
        one.service._resolver._hosts, one.service._resolver._nameservers = {}, [where]
        one.prove("a.test")
        one.ping(one.url("stranger.test"))
        assert {name for name, _ in queries} == {"a.test"} and one.counts()["unknown"] == 1
