"""The endpoint over HTTP, from the request to the inbox: answers to IndexNow, accesses, counters, and a shutdown that
loses nothing."""

import json
import socket
import socketserver
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crawler.small_server import NOT_FOUND, text
from tests.signals.endpoint_world import KEY, TOKEN, world
from trapline.fetch.urls import canonical
from trapline.signals.inbox import ACCESS, UNVERIFIED_P, Inbox
from trapline.signals.indexnow import request as indexnow

UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def keys(host: str, target: str) -> bytes:
    """Every host has KEY in its root. b.test fails, and a.test also has a key in a folder."""
    if host == "b.test":
        return UNAVAILABLE
    return text(KEY) if target in (f"/{KEY}.txt", "/shop/key.txt") else NOT_FOUND


def test_a_ping_is_pending_then_ok_and_in_the_inbox(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        url = one.url("a.test", "/x?y=1")
        assert one.ping(url).status == 202
        one.until(one.signals)
        (signal,) = one.signals()
        assert (signal.url, signal.channel, signal.kind, signal.p, signal.verified) == (
            url,
            "indexnow",
            "changed",
            1.0,
            True,
        )
        assert abs(signal.moment - signal.received) < 1.0
        assert one.ping(one.url("a.test", "/z")).status == 200
        assert [signal.url for signal in one.signals()] == [url, one.url("a.test", "/z")]  # durable before the answer


def test_a_list_of_ten_thousand_by_post(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        one.prove("a.test")
        host = f"a.test:{one.server.port}"  # type: ignore[union-attr]
        urls = [one.url("a.test", f"/{number}") for number in range(10_000)]
        assert one.post_pings(host, urls).status == 200
        assert {signal.url for signal in one.signals()} == {*urls, one.url("a.test", "/proof")}
        assert one.post_pings(host, [*urls, one.url("a.test", "/more")]).status == 400


@pytest.mark.parametrize(
    "query, status",
    [
        ("", 400),
        ("url=http%3A%2F%2Fa.test%2F", 400),
        ("url=http%3A%2F%2Fa.test%2F&url=x&key=0123456789", 400),
        ("url=%FF&key=0123456789", 400),
        ("url=mailto%3Ame&key=0123456789", 422),
        ("url=http%3A%2F%2Fa.test%2F&key=short", 422),
        ("url=http%3A%2F%2Fa.test%2F&key=no_such_sign", 422),
        ("url=http%3A%2F%2Fa.test%2F&key=0123456789&keyLocation=http%3A%2F%2Fb.test%2Fk.txt", 422),
        ("url=http%3A%2F%2Fa.test%2F&key=0123456789&keyLocation=http%3A%2F%2Fa.test%2Fk%3Fq", 422),
    ],
)
def test_an_invalid_ping_is_answered_as_the_protocol_says(tmp_path: Path, query: str, status: int) -> None:
    with world(tmp_path, keys) as one:
        assert one.ask("GET", f"/indexnow?{query}").status == status
        assert one.status()["keys"]["fetches"] == 0 and not one.signals()


@pytest.mark.parametrize(
    "body, status",
    [
        (b"", 400),
        (b"[]", 400),
        (b"[" * 100_000, 400),
        (b'{"host": "a.test", "key": "0123456789", "urlList": []}', 400),
        (b'{"host": "a.test", "key": "0123456789", "urlList": "http://a.test/"}', 400),
        (b'{"host": 5, "key": "0123456789", "urlList": ["http://a.test/"]}', 400),
        (b'{"host": "a.test/x", "key": "0123456789", "urlList": ["http://a.test/"]}', 400),
        (b'{"host": "a.test", "key": "0123456789", "urlList": ["http://b.test/"]}', 422),
        (b'{"host": "a.test", "key": "0123456789", "urlList": ["nonsense"]}', 422),
        (b'{"host": "a.test", "key": "?", "urlList": ["http://a.test/"]}', 422),
    ],
)
def test_an_invalid_list_is_answered_as_the_protocol_says(tmp_path: Path, body: bytes, status: int) -> None:
    with world(tmp_path, keys) as one:
        assert one.ask("POST", "/indexnow", body).status == status
        assert one.status()["keys"]["fetches"] == 0


def test_a_list_is_read_up_to_its_first_url_of_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(indexnow, "canonical", lambda url: read.append(url) or canonical(url))
    others = [f"http://b.test/{number}" for number in range(1_000)]
    body = json.dumps({"host": "a.test", "key": KEY, "urlList": ["http://a.test/", *others]})
    assert indexnow.ping_of_body(body.encode()) == indexnow.Refusal(422, "a URL is not on this host")
    assert read == ["http://a.test/", "http://a.test/", "http://b.test/0"]  # its host, and two of its URLs
    read.clear()
    indexnow.ping_of_body(body.replace(KEY, "?").encode())
    assert read == ["http://a.test/"]


def test_a_wrong_key_is_forbidden_after_it_was_checked(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        assert one.ping(one.url("a.test"), "another-key").status == 202
        one.until(lambda: one.ping(one.url("a.test"), "another-key").status == 403)
        assert not one.signals() and one.counts()["refuted"] > 1


def test_a_key_file_in_a_folder_is_valid_for_that_folder(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        location = one.url("a.test", "/shop/key.txt")
        assert one.ping(one.url("a.test", "/"), location=location).status == 422
        assert one.ping(one.url("a.test", "/shop/1"), location=location).status == 202
        one.until(one.signals)
        assert one.ping(one.url("a.test", "/shop/2"), location=location).status == 200
        assert one.ping(one.url("a.test", "/shopping"), location=location).status == 422


def test_a_site_that_the_crawl_discovers_is_accepted_soon(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        one.service._settings.hosts["new.test"] = ("127.9.0.1",)
        url = one.url("new.test")
        assert one.ping(url).status == 202 and one.counts() == {"unknown": 1}
        one.sites.append(one.url("new.test")[:-1])
        one.until(lambda: one.ping(url).status == 200)


def test_signals_held_at_shutdown_are_stored_as_unverified(tmp_path: Path) -> None:
    def hang(host: str, target: str) -> list[bytes | float | str]:
        return [60.0]

    with world(tmp_path, hang) as one:
        url = one.url("a.test", "/x")
        assert one.ping(url).status == 202 and one.status()["keys"]["urls_held"] == 1
    (signal,) = one.signals()
    assert signal.url == url and not signal.verified and signal.p == UNVERIFIED_P


def test_accesses_can_be_posted_with_the_token_only(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        page, other = one.url("a.test", "/p"), "http://stranger.test/"
        lines = [
            f"{page}\t1700000000",
            f"{page}\t1700000100",
            json.dumps({"url": page, "count": 5, "time": 1700007200}),
        ]
        body = "\n".join([*lines, f"{other}\t3", "nonsense"]).encode()
        assert one.ask("POST", "/accesses", body).status == 403
        assert one.ask("POST", "/accesses", body, authorization="Bearer wrong").status == 403
        answer = one.ask("POST", "/accesses", body, authorization=f"Bearer {TOKEN}")
        assert json.loads(answer.body) == {"lines": {"counted": 4, "bad": 1}, "taken": 2, "unknown": 1}
        found = [(signal.kind, signal.url, signal.moment, signal.p) for signal in one.signals()]
        assert found == [(ACCESS, page, 1699999200.0, 2.0), (ACCESS, page, 1700006400.0, 5.0)]


def test_without_a_token_the_path_does_not_exist(tmp_path: Path) -> None:
    with world(tmp_path, keys, token="") as one:
        assert one.ask("POST", "/accesses", b"x", authorization="Bearer ").status == 404
        assert one.ask("GET", "/status", authorization="Bearer ").status == 404


@contextmanager
def proxy_to(port: int) -> Iterator[int]:
    """The port of a TCP proxy on this machine that passes bytes on and adds no header."""

    class Passing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port), 20) as onward:
                onward.sendall(self.request.recv(65_536))
                while data := onward.recv(65_536):
                    self.request.sendall(data)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Passing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_counters_need_the_token_even_through_a_local_proxy(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        assert one.status()["requests"] == 1
        assert one.ask("GET", "/status").status == 403
        with proxy_to(one.port) as port:
            through = replace(one, port=port)
            assert through.ask("GET", "/", connection="close").status == 200
            assert through.ask("GET", "/status", connection="close").status == 403
            assert through.ask("GET", "/status", connection="close", authorization=f"Bearer {TOKEN}").status == 200


def test_only_the_documented_paths_exist(tmp_path: Path) -> None:
    with world(tmp_path, keys) as one:
        assert "IndexNow" in one.ask("GET", "/").body
        assert one.ask("HEAD", "/").status == 200
        assert one.ask("GET", "/admin").status == 404
        assert one.ask("DELETE", "/indexnow").status == 405
        assert one.ask("GET", "/websub/x").status == 404  # without a public URL there are no callbacks


def test_an_internal_error_ends_one_request_and_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with world(tmp_path, keys) as one:
        monkeypatch.setattr(one.service.pings, "get", lambda query: 1 / 0)
        assert one.ping(one.url("a.test")).status == 500
        assert one.status()["trouble"] == "ZeroDivisionError: division by zero"


def test_counters_survive_a_disk_that_is_full_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(rows: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with world(tmp_path, keys) as one:
        inbox = one.service._side_inbox
        with monkeypatch.context() as patch:
            patch.setattr(inbox, "add_tally", full)
            one.ping("http://stranger.test/")
            one.until(lambda: "full" in one.status()["trouble"])
        one.until(lambda: not one.status()["trouble"])
    inbox = Inbox(tmp_path)
    assert [row[1:] for row in inbox.tally()] == [("indexnow", "unknown", 1)]
    inbox.close()
