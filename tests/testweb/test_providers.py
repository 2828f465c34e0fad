"""Providers: what each level publishes, how much of it is true, and that pings reach an endpoint over real sockets."""

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from email.parser import Parser
from itertools import islice, takewhile
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.testweb.changing import changing_web
from tests.testweb.webs import numbered, recorded, response_to
from trapline.errors import ConfigError
from trapline.graph import Graph
from trapline.refresh import drawn_trace
from trapline.testweb import (
    Behaviour,
    PageChanges,
    ServedAnswer,
    ServedWeb,
    SignalSettings,
    answer,
    build_web,
    changes_of,
    get,
    history_of,
    providers_of,
    serve,
)
from trapline.testweb.answers.published import key
from trapline.testweb.answers.robots_txt import allowed
from trapline.testweb.server.pings import endpoint_of, pings_of

BEGAN = 1_000_000.25
LEVELS = ("normal", "polled", "smart", "super", "liar")


def web_of(
    settings: SignalSettings | None = None, pages_per_site: int = 20, gap_s: float = 100.0, **about: Any
) -> ServedWeb:
    """A web with a site of each level."""
    graph = numbered(5, pages_per_site)
    changes = _changes(graph, gap_s, **about)
    providers = providers_of(graph, changes, settings or SignalSettings(LEVELS), seed=4)
    return build_web(graph, changes=changes, providers=providers).at(8080, began=BEGAN)


def _changes(graph: Graph, gap_s: float, **about: Any) -> PageChanges:
    trace = drawn_trace("poisson", graph.pages, 50 * graph.pages, 50 * gap_s / 86_400.0, seed=1)
    return changes_of(graph, trace, **about)


def answer_to(web: ServedWeb, level: str, target: str, since_s: float = 1_000.0) -> ServedAnswer:
    return answer(web, LEVELS.index(level), get(target), now=BEGAN + since_s)


def updates(web: ServedWeb) -> set[tuple[float, int]]:
    """The updates of the first round."""
    assert web.changes
    offsets = np.array(web.changes.offsets)
    return set(zip(web.changes.at_s, np.repeat(np.arange(web.pages), np.diff(offsets)).tolist(), strict=True))


def pings(web: ServedWeb, level: str) -> list[tuple[float, int]]:
    """The pings of the first round."""
    assert web.providers and web.changes
    end_s = web.changes.round_s
    first = takewhile(lambda ping: ping[0] < end_s, web.providers.pings())
    return [(at_s, page) for at_s, page in first if web.level(web.site[page]) == level]


# ---- levels


def test_shares_of_levels_are_kept_exactly() -> None:
    graph = numbered(20, 2)
    settings = SignalSettings((("smart", 0.4), ("super", 0.3)))
    levels = [providers_of(graph, _changes(graph, 10.0), settings, seed).level for seed in (1, 2)]
    assert [Counter(one) for one in levels] == [Counter(normal=6, smart=8, super=6)] * 2
    assert levels[0] != levels[1]


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"levels": (("smrt", 1.0),)}, "did you mean 'smart'"),
        ({"levels": (("smart", 0.7), ("super", 0.7))}, "add up to 1.4; give shares with a sum of at most 1"),
        ({"levels": ("smart", "super")}, "2 levels for 3 sites"),
        ({"precision": 0.0}, "above 0"),
        ({"recall": 1.5}, "recall"),
        ({"lie_every_s": 0.0}, "above 0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], hint: str) -> None:
    graph = numbered()
    with pytest.raises(ConfigError, match=hint):
        providers_of(graph, _changes(graph, 1.0), SignalSettings(**settings))


# ---- pings


def test_perfect_pings_equal_the_updates_and_repeat_with_them() -> None:
    web = web_of()
    own = {(at_s, page) for at_s, page in updates(web) if web.level(web.site[page]) == "super"}
    assert set(pings(web, "super")) == own and len(pings(web, "super")) == len(own)
    assert pings(web, "normal") == [] == pings(web, "polled")
    assert web.providers and web.changes
    number = len(web.providers.ping_at_s)
    begin, again = (list(islice(web.providers.pings(), at, at + 5)) for at in (0, number))
    assert [page for _, page in begin] == [page for _, page in again]
    assert [at_s + web.changes.round_s for at_s, _ in begin] == pytest.approx([at_s for at_s, _ in again])


def test_pings_have_the_requested_precision_and_recall() -> None:
    web = web_of(SignalSettings(LEVELS, recall=0.5, precision=0.25), pages_per_site=100)
    published, own = pings(web, "smart"), {one for one in updates(web) if web.level(web.site[one[1]]) == "smart"}
    true = [one for one in published if one in own]
    assert len(true) / len(own) == pytest.approx(0.5, abs=0.05)
    assert len(true) / len(published) == pytest.approx(0.25, abs=0.03)


def test_a_liar_pings_all_the_time_and_never_for_a_change() -> None:
    web = web_of(SignalSettings(LEVELS, lie_every_s=2.0))
    published = pings(web, "liar")
    assert web.changes and len(published) == pytest.approx(web.changes.round_s / 2.0, rel=0.1)
    assert not set(published) & updates(web) and [at_s for at_s, _ in published] == sorted(
        at_s for at_s, _ in published
    )


def test_pings_name_existing_pages_only() -> None:
    web = web_of(grows=0.5)
    assert web.changes and web.providers and web.changes.grows
    assert all(web.changes.born_s[page] <= at_s for at_s, page in islice(web.providers.pings(), 5_000))


def test_one_page_is_sent_by_get_and_several_by_post() -> None:
    web, to = web_of(), endpoint_of("http://127.0.0.1:9/in")
    site = LEVELS.index("smart")
    pages = web.pages_of(site)
    (one,) = pings_of(web, site, pages[:1], to)
    line = one.message.split(b"\r\n")[0].decode()
    said = parse_qs(urlsplit(line.split(" ")[1]).query)
    assert line.startswith("GET /in?") and said == {"url": [web.url(pages[0])], "key": [key(web, site)]}
    (many,) = pings_of(web, site, pages, to)
    head, _, body = many.message.partition(b"\r\n\r\n")
    fields = json.loads(body)
    assert head.startswith(b"POST /in HTTP/1.1\r\n") and b"Content-Type: application/json; charset=utf-8" in head
    assert fields["host"] == f"{web.names[site]}:8080" and fields["urlList"] == [web.url(page) for page in pages]
    assert fields["keyLocation"] == f"{web.origins[site]}/{fields['key']}.txt" and many.pages == len(pages)


@pytest.mark.parametrize("url", ["http://example.org/indexnow", "https://127.0.0.1/", "http://10.0.0.1/", "127.0.0.1"])
def test_pings_stay_on_this_machine(url: str) -> None:
    with pytest.raises(ConfigError, match="on this machine"):
        endpoint_of(url)


# ---- what is published


def test_published_files_depend_on_the_level() -> None:
    web = web_of()
    targets = ("/sitemap.xml", "/feed.xml", "/crawl-schedule.json")
    found = {level: [answer_to(web, level, target).status for target in targets] for level in LEVELS}
    assert found == {
        "normal": [404, 404, 404],
        "polled": [200, 200, 404],
        "smart": [404, 404, 404],
        "super": [200, 200, 200],
        "liar": [200, 200, 200],
    }
    for site, level in enumerate(LEVELS):
        made = answer_to(web, level, f"/{key(web, site)}.txt")
        assert (made.status == 200 and made.body.decode() == key(web, site)) == (level in ("smart", "super", "liar"))


def test_a_sitemap_has_all_pages_and_when_they_changed() -> None:
    web = web_of()
    found = _sitemap(answer_to(web, "super", "/sitemap.xml"))
    own = web.pages_of(LEVELS.index("super"))
    assert found == {web.url(page): pytest.approx(web.updated(page, BEGAN + 1_000.0), abs=1e-3) for page in own}
    lies = _sitemap(answer_to(web, "liar", "/sitemap.xml"))
    assert set(lies.values()) == {BEGAN + 1_000.0}


def _sitemap(made: ServedAnswer) -> dict[str, float]:
    root = ElementTree.fromstring(made.body)
    pairs = ([child.text or "" for child in url] for url in root)
    return {loc: _moment(lastmod) for loc, lastmod in pairs}


def _moment(text: str) -> float:
    return float(np.datetime64(text.removesuffix("Z")).astype("datetime64[ms]").astype(float) / 1e3)


def test_a_feed_has_the_pages_that_changed_last() -> None:
    web = web_of(pages_per_site=50)
    root = ElementTree.fromstring(answer_to(web, "polled", "/feed.xml").body)
    atom = "{http://www.w3.org/2005/Atom}"
    found = [
        (entry.findtext(f"{atom}id"), _moment(entry.findtext(f"{atom}updated") or ""))
        for entry in root.iter(f"{atom}entry")
    ]
    own = web.pages_of(LEVELS.index("polled"))
    newest = sorted(own, key=lambda page: -web.updated(page, BEGAN + 1_000.0))[:20]
    assert [url for url, _ in found] == [web.url(page) for page in newest]
    assert [at for _, at in found] == pytest.approx([web.updated(page, BEGAN + 1_000.0) for page in newest], abs=1e-3)


def test_a_schedule_lists_the_coming_updates() -> None:
    web = web_of(SignalSettings(LEVELS, ahead_s=300.0))
    feed = json.loads(answer_to(web, "super", "/crawl-schedule.json").body)
    assert web.changes and feed["version"] == 1 and feed["host"] == f"{web.names[LEVELS.index('super')]}:8080"
    assert _moment(feed["expires"]) == _moment(feed["generated"]) + 300.0 == BEGAN + 1_300.0
    said = {entry["url"]: [_moment(one["at"]) for one in entry["updates"]] for entry in feed["entries"]}
    own = web.pages_of(LEVELS.index("super"))
    true = {web.url(page): [BEGAN + at_s for at_s in web.changes.between(page, 1_000.0, 1_300.0)] for page in own}
    assert said == {url: pytest.approx(moments, abs=2e-3) for url, moments in true.items() if moments}


@pytest.mark.parametrize(("level", "precision", "share"), [("super", 0.25, 0.25), ("liar", 1.0, 0.0)])
def test_a_schedule_has_the_requested_precision(level: str, precision: float, share: float) -> None:
    web = web_of(SignalSettings(LEVELS, schedule_precision=precision), pages_per_site=100)
    assert web.changes and web.providers
    page = np.repeat(np.arange(web.pages), np.diff(np.array(web.providers.schedule.offsets))).tolist()
    published = {
        one for one in zip(web.providers.schedule.at_s, page, strict=True) if web.level(web.site[one[1]]) == level
    }
    own = {one for one in updates(web) if web.level(web.site[one[1]]) == level}
    assert len(published) == len(own) and len(published & own) / len(own) == pytest.approx(share, abs=0.03)


def test_sites_announce_their_files() -> None:
    web = web_of()
    own, site = web.origins[LEVELS.index("super")], LEVELS.index("super")
    robots = answer_to(web, "super", "/robots.txt").body.decode()
    assert f"\nSitemap: {own}/sitemap.xml\nCrawl-schedule: {own}/crawl-schedule.json\n" in robots
    assert answer_to(web, "smart", "/robots.txt").status == 404
    home, other = answer_to(web, "super", "/"), answer_to(web, "super", web.paths[web.pages_of(site)[1]])
    assert (
        b'rel="alternate" type="application/atom+xml" href="/feed.xml"' in home.body and b"feed.xml" not in other.body
    )
    assert b'Link: </crawl-schedule.json>; rel="crawl-schedule"\r\n' in home.head and b"Link: " in other.head
    assert b"Link: " not in answer_to(web, "polled", "/").head


def test_a_robots_txt_that_only_cites_forbids_nothing() -> None:
    graph = numbered(1, 30)
    changes = _changes(graph, 10.0)
    web = build_web(
        graph,
        Behaviour(disallowed=0.9, crawl_delay_s=9.0),
        changes=changes,
        providers=providers_of(graph, changes, SignalSettings(("polled",))),
    )
    text = answer(web, 0, get("/robots.txt")).body.decode()
    assert "Sitemap: " in text and "Crawl-delay" not in text and not re.search(r"Disallow: /\w", text)
    assert all(allowed(web, 0, path) for path in web.paths.all)


def test_a_published_file_takes_precedence_over_a_recorded_page() -> None:
    graph = recorded(["http://a.org/", "http://a.org/sitemap.xml"])
    changes = _changes(graph, 10.0)
    web = build_web(graph, changes=changes, providers=providers_of(graph, changes, SignalSettings(("super",))))
    assert web.paths.all == ["/", "/sitemap.xml?page=1"]
    assert answer(web, 0, get("/sitemap.xml")).body.startswith(b"<?xml")
    assert build_web(graph).paths.all == ["/", "/sitemap.xml"]


def test_the_history_has_the_levels() -> None:
    assert history_of(web_of(pages_per_site=2), 0.0).level.tolist() == [level for level in LEVELS for _ in range(2)]


# ---- over real sockets


class Listener:
    """An endpoint that accepts everything, one request per connection."""

    def __init__(self, own: socket.socket) -> None:
        self.own, self.requests = own, list[tuple[str, bytes]]()
        self.enough = threading.Event()

    def listen(self) -> None:
        while True:
            try:
                connection, (address, _) = self.own.accept()
            except OSError:
                return
            with connection:
                data = connection.recv(65_536)
                while not _whole(data):
                    data += connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            self.requests.append((address, data))
            if len(self.requests) >= 20:
                self.enough.set()


def _whole(data: bytes) -> bool:
    head, found, body = data.partition(b"\r\n\r\n")
    return bool(found) and len(body) >= int(_fields(head)["Content-Length"] or 0)


def _fields(head: bytes) -> "Message[str, str]":
    return Parser().parsestr(head.partition(b"\r\n")[2].decode())


@contextmanager
def listening() -> Iterator[Listener]:
    with socket.create_server(("127.0.0.1", 0)) as own:
        listener = Listener(own)
        thread = threading.Thread(target=listener.listen)
        thread.start()
        yield listener
        own.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_sites_ping_from_their_own_addresses_while_they_serve() -> None:
    web = web_of(pages_per_site=4, gap_s=0.2)
    with listening() as listener:
        url = f"http://127.0.0.1:{listener.own.getsockname()[1]}/indexnow"
        with serve(web, ping=url) as server:
            assert listener.enough.wait(30.0)
            assert response_to(server.web, 0, "Connection: close").startswith(b"HTTP/1.1 200 ")
            counts = server.log().pings
            web = server.web
    addresses = {address: set(_urls(listener, address)) for address, _ in listener.requests}
    assert set(addresses) <= {"127.1.0.3", "127.1.0.4", "127.1.0.5"} and len(addresses) > 1
    for address, urls in addresses.items():
        own = {web.url(page) for page in range(web.pages) if web.hosts[web.names[web.site[page]]] == address}
        assert urls <= own
    assert counts.answered[202] == counts.sent >= 20 and counts.dropped == counts.failed == 0


def _urls(listener: Listener, address: str) -> Iterator[str]:
    for whose, data in listener.requests:
        head, _, body = data.partition(b"\r\n\r\n")
        if whose == address and body:
            yield from json.loads(body)["urlList"]
        elif whose == address:
            yield parse_qs(urlsplit(head.split(b" ")[1].decode()).query)["url"][0]


def test_a_missing_endpoint_loses_pings_and_nothing_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]
    with serve(web_of(gap_s=0.05), ping=f"http://127.0.0.1:{port}") as server:
        while server.log().pings.failed < 10:
            assert response_to(server.web, 1, "Connection: close").startswith(b"HTTP/1.1 200 ")
        assert not server.log().pings.answered


def test_an_endpoint_that_never_answers_fills_the_queue_and_no_more() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as own:
        url = f"http://127.0.0.1:{own.getsockname()[1]}"
        graph = numbered(200, 2)
        changes = _changes(graph, gap_s=0.01)
        providers = providers_of(graph, changes, SignalSettings((("smart", 1.0),)))
        with serve(build_web(graph, changes=changes, providers=providers, sites_per_address=50), ping=url) as server:
            while server.log().pings.dropped == 0:
                assert response_to(server.web, 1, "Connection: close").startswith(b"HTTP/1.1 200 ")


def test_a_foreign_endpoint_is_refused_before_anything_is_served() -> None:
    with pytest.raises(ConfigError, match="on this machine"), serve(changing_web(1.0), ping="http://example.org/"):
        pass
