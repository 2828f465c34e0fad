"""Only pages of the dashboard itself, and clients with the token, are answered with data; other requests are refused and do nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.dashboard_world import World, made_folder, served

TOKEN = "a-token-that-nobody-guesses"
PAUSE = {"action": "pause", "confirm": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_folder(tmp_path_factory.mktemp("crawls") / "one")


@pytest.fixture(scope="module")
def open_world(folder: Path) -> Iterator[World]:
    with served(folder, allow_hosts=("dash.example",)) as world:
        yield world


@pytest.fixture(scope="module")
def token_world(folder: Path) -> Iterator[World]:
    with served(folder, token=TOKEN) as world:
        yield world


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("127.0.0.1", 200),
        ("[::1]:{port}", 200),
        ("[::1]", 200),
        ("localhost:{port}", 200),
        ("localhost:9", 200),  # another port of this machine is forwarded to ours
        ("192.0.2.7:{port}", 200),
        ("dash.example", 200),
        ("dash.example:{port}", 200),
        ("evil.example:{port}", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:{port}", 403),
        ("[evil.example]:{port}", 403),
        ("LOCALHOST", 200),
        ("Dash.Example:{port}", 200),
        ("[::1]evil.example", 403),
        ("127.0.0.1:80@evil.example", 403),
        ("localhost:80:80", 403),
        ("", 403),
    ],
)
def test_only_our_own_names_are_answered(open_world: World, host: str, status: int) -> None:
    headers = {"Host": host.format(port=open_world.port)}
    assert open_world.ask("/api/crawls", headers=headers).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403),
    ],
)
def test_data_is_not_for_pages_of_other_sites(open_world: World, headers: dict[str, str], status: int) -> None:
    assert open_world.ask("/api/0/overview", headers=headers).status == status


def test_a_link_on_another_site_opens_the_page_but_no_frame(open_world: World) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert open_world.ask("/", headers={**foreign, "Sec-Fetch-Dest": "document"}).status == 200
    assert open_world.ask("/", headers={**foreign, "Sec-Fetch-Dest": "iframe"}).status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 409),  # the crawl does not run: the action got as far as that
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://127.0.0.1"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 409),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"Host": "dash.example", "Origin": "https://dash.example"}, 409),
        ({"Host": "dash.example", "Origin": "http://dash.example"}, 409),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_actions_come_only_from_our_own_pages(open_world: World, headers: dict[str, str], status: int) -> None:
    sent = {name.replace("-", "_"): value.format(port=open_world.port) for name, value in headers.items()}
    assert open_world.post("/api/0/actions", PAUSE, **sent).status == status


def test_an_action_without_an_origin_is_refused(open_world: World) -> None:
    body, headers = b'{"action": "pause", "confirm": true}', {"Content-Type": "application/json"}
    assert open_world.ask("/api/0/actions", "POST", body, headers).status == 403


@pytest.mark.parametrize(("method", "status"), [("GET", 405), ("PUT", 405), ("DELETE", 405), ("OPTIONS", 405)])
def test_an_action_is_a_post(open_world: World, method: str, status: int) -> None:
    assert open_world.ask("/api/0/actions", method).status == status


def test_large_bodies_are_refused_however_they_are_sent(open_world: World) -> None:
    own = {"Origin": f"http://127.0.0.1:{open_world.port}", "Content-Type": "application/json"}
    assert open_world.ask("/api/0/actions", "POST", b" " * 2_000_000, own).status == 413
    with pytest.raises(
        (ConnectionError, AssertionError)
    ):  # the server hangs up in the middle, or answers before the end
        reply = open_world.ask("/api/0/actions", "POST", iter([b" " * 100_000] * 20), own)  # type: ignore[arg-type]
        assert reply.status != 413


def test_every_answer_forbids_foreign_code_frames_and_guesses(open_world: World) -> None:
    for path in ("/", "/api/crawls", "/nothing", "/static/page.css", "/api/0/actions"):
        headers = open_world.ask(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == ("no-cache" if path in ("/", "/static/page.css") else "no-store")


# ---- The token.


def test_data_needs_the_token_and_files_do_not(token_world: World) -> None:
    assert token_world.ask("/").status == 200 and token_world.ask("/static/page.css").status == 200
    for path in ("/api/crawls", "/api/0/overview", "/api/0/stream", "/metrics", "/nothing"):
        assert token_world.ask(path).status == 401
    assert token_world.post("/api/0/actions", PAUSE).status == 401


def test_the_token_opens_as_a_header_or_by_a_login(token_world: World) -> None:
    assert token_world.ask("/api/crawls", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
    reply = token_world.post("/api/login", {"token": TOKEN})
    cookie = reply.headers["set-cookie"]
    assert reply.status == 204 and "httponly" in cookie.lower() and "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    assert token_world.ask("/api/crawls", headers={"Cookie": cookie.partition(";")[0]}).status == 200
    assert token_world.ask("/api/crawls", headers={"Cookie": f"trapline-{token_world.port}=x"}).status == 401


@pytest.mark.parametrize("body", [{}, [], None, {"token": 1}, {"token": ["x"]}])
def test_a_login_without_a_token_is_refused(token_world: World, body: object) -> None:
    assert token_world.post("/api/login", body).status == 400


def test_the_login_is_also_only_for_our_own_pages(token_world: World) -> None:
    assert token_world.post("/api/login", {"token": TOKEN}, Origin="http://evil.example").status == 403


def test_many_wrong_tokens_are_answered_no_more(folder: Path) -> None:
    with served(folder, token=TOKEN) as world:
        cookie = world.post("/api/login", {"token": TOKEN}).headers["set-cookie"].partition(";")[0]
        answers = [world.post("/api/login", {"token": "wrong-wrong-wrong"}).status for _ in range(12)]
        assert answers == [401] * 10 + [429] * 2
        assert world.ask("/api/crawls", headers={"Authorization": f"Bearer {TOKEN}"}).status == 429
        assert (
            world.ask("/api/crawls", headers={"Cookie": cookie}).status == 200
        )  # a browser that has logged in goes on


def test_without_loopback_there_is_always_a_token(folder: Path) -> None:
    with served(folder, listen=("0.0.0.0", 0)) as world:
        token = world.server.page_url.partition("#token=")[2]
        assert len(token) >= 16 and world.ask("/api/crawls").status == 401
        assert world.ask("/api/crawls", headers={"Authorization": f"Bearer {token}"}).status == 200


def test_a_read_only_dashboard_takes_no_actions(folder: Path) -> None:
    with served(folder, read_only=True) as world:
        assert world.get("/api/crawls")[0]["can_act"] is False
        assert world.post("/api/0/actions", PAUSE).status == 403
