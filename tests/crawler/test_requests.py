"""What the user sets for requests: headers, settings of single sites, media types, robots.txt of own hosts, proxies."""

import asyncio
import json
import ssl
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trustme

from tests.crawler.live_web import Crawled, crawled
from tests.crawler.proxies import proxy_server
from tests.crawler.small_server import CLOSE, NOT_FOUND, Part, SmallServer, page, small_server, text
from tests.crawler.stage import A, B, Stage
from tests.effort import slow
from trapline import __version__
from trapline.cli import run
from trapline.crawler.discovery.scope import Scope
from trapline.crawler.discovery.site_settings import SiteSettings
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.settings import CrawlSettings, seed_of
from trapline.crawler.files.run_options import RunOptions
from trapline.crawler.inspect.audit import manners_of
from trapline.errors import ConfigError
from trapline.fetch.http.headers import MimeFilter
from trapline.fetch.http.private_headers import PrivateHeaders
from trapline.fetch.http.proxy import Proxy, ProxyError, read_proxy, tunnel
from trapline.frontier import Rules

PAGES = [f"{A}/{number}" for number in range(1, 6)]
SEEDS = ("http://a.test/",)


def options(**settings: Any) -> CrawlOptions:
    return CrawlSettings(**settings).options(SEEDS)


# ---- headers


def test_with_everything_off_a_request_has_the_same_bytes_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(PrivateHeaders, "sent")  # not called
    stage = Stage(monkeypatch, PAGES, pause_s=0.0)
    wire = stage.opens()
    assert stage.site().private_headers is None and stage.site().settings is None
    for sent, target in zip(wire.sent, ["/robots.txt", "/1"], strict=True):
        assert (
            sent
            == (
                f"GET {target} HTTP/1.1\r\nHost: a.test\r\nUser-Agent: trapline/{__version__}\r\n"
                "Accept: text/html,application/xhtml+xml,*/*;q=0.5\r\nAccept-Encoding: gzip, br, zstd\r\n"
                "Connection: keep-alive\r\n\r\n"
            ).encode()
        )


def test_headers_and_user_agent_are_sent_and_the_token_chooses_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    given = options(
        header=["accept: text/html", "X-A: 1"], user_agent="my-bot/1", contact="http://c.test/", robots_token="my-bot"
    )
    names = ("headers", "user_agent", "contact", "robots_token")
    stage = Stage(monkeypatch, PAGES, pause_s=0.0, **{name: getattr(given, name) for name in names})
    rules = b"User-agent: trapline\nDisallow: /\n\nUser-agent: my-bot\nDisallow: /1\n"
    wire = stage.opens((200, {}, rules))
    assert wire.targets == ["/robots.txt", "/2"]
    assert b"\r\nUser-Agent: my-bot/1 (+http://c.test/)\r\nAccept: text/html\r\n" in wire.sent[1]
    assert wire.sent[1].endswith(b"\r\nX-A: 1\r\nConnection: keep-alive\r\n\r\n")


def test_a_seed_with_a_password_is_refused_without_showing_it() -> None:
    for url in ("http://ann:pw@a.test/", "ann:pw@a.test", "https://:pw@a.test"):
        with pytest.raises(ConfigError, match="--credentials FILE") as error:
            seed_of(url)
        assert "pw@" not in str(error.value)
    assert seed_of("http://a.test:80/x:y@z") == "http://a.test/x:y@z"


# ---- settings of single sites


def test_a_site_has_its_own_pace_budget_and_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    own = SiteSettings(delay_s=40.0, pause_s=2.0, per_connection=2, max_pages=3, headers=("X-Own: 1",))
    stage = Stage(monkeypatch, [*PAGES, f"{B}/1"], sites={"a.test": own}, rules=Rules(delay_s=15.0, per_connection=10))
    first, second = stage.wires
    assert b"X-Own" not in second.opens().sent[0]
    first.opens().answers(404)
    stage.passes(1.0)
    assert len(first.sent) == 1  # its pause is 2 s
    stage.passes(1.0)
    assert b"\r\nX-Own: 1\r\n" in first.sent[1]
    first.answers()
    stage.passes(2.0)
    first.answers()
    assert first.targets == ["/robots.txt", "/1", "/2"] and stage.frontier.site_rules(0) == (40.0, 2)
    stage.passes(39.0)
    assert len(stage.wires) == 2
    stage.passes(1.0)
    stage.wires[2].opens().answers()
    stage.passes(100.0)
    assert len(stage.wires) == 3 and len(stage.page_results()) == 3  # three pages, and no more


def test_a_longer_crawl_delay_is_obeyed_and_a_shorter_one_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for demanded, expected in ((60, (60.0, 1)), (20, (40.0, 5))):
        own = SiteSettings(delay_s=40.0, per_connection=5)
        stage = Stage(monkeypatch, PAGES, sites={"a.test": own})
        stage.opens((200, {}, b"User-agent: *\nCrawl-delay: %d" % demanded))
        assert stage.frontier.site_rules(0) == expected


def test_patterns_of_a_site_hold_for_it_alone() -> None:
    scope = Scope(
        "any",
        sites={"a.test": SiteSettings(include=("/x",), exclude=("z$",)), "*.b.test": SiteSettings(exclude=("q",))},
    )
    verdicts = {
        "http://a.test/x": "",
        "http://a.test/y": "include",
        "http://a.test/xz": "exclude",
        "http://b.test/q": "",
        "http://c.b.test/q": "exclude",
    }
    assert {url: scope.admits(url) for url in verdicts} == verdicts
    assert scope.admits_list("http://a.test/y") == "" and scope.admits_list("http://a.test/z") == "exclude"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"a.test": {"dealy": 1}}, "there is no setting 'dealy'; did you mean 'delay'"),
        ({"http://a.test/": {"delay": 20}}, "not a host name"),
        ({"a.test": {"delay": "soon"}}, "delay is 'soon'; give a number"),
        ({"a.test": {"delay": -1}}, "it must be between 0 and 1,000,000,000 seconds"),
        ({"a.test": {"max-pages": 0}}, "between 1 and"),
        ({"a.test": {"delay": 1}}, "also give --ip-delay 1"),
        ({"a.test": {"header": "Cookie: a=b"}}, "--cookies FILE"),
        ({"a.test": {"password": "x"}}, "a file for --credentials FILE"),
        ({"a.test": {"include": 3}}, "a text or a list of texts"),
        ({"a.test": 3}, "not a table"),
        (3, "give settings by host"),
    ],
)
def test_mistakes_in_the_settings_of_a_site_are_named(table: Any, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        options(site=table)
    assert said in str(error.value)


def test_an_invalid_pattern_of_a_site_is_refused_before_the_crawl() -> None:
    with pytest.raises(ConfigError, match="not a regular expression"):
        options(site={"a.test": {"include": "("}}).scope_of_crawl()


def test_settings_of_sites_go_to_json_and_back() -> None:
    given = options(site={"a.test": {"delay": 20, "header": ["A: b"]}}, exclude_extension=".PDF", include_mime="text/*")
    again = CrawlOptions.from_json(given.to_json())
    assert again == given and again.sites["a.test"] == SiteSettings(delay_s=20.0, pause_s=1.0, headers=("A: b",))


def test_the_audit_knows_the_delays_of_single_sites() -> None:
    given = RunOptions(1, 0.0, options(site={"a.test": {"delay": 20}}), {})
    manners = manners_of([given], [(0, "http://a.test"), (1, "http://b.test")])
    assert manners.delays_us(np.array([1, 0, 1]), np.zeros(3, np.int64)).tolist() == [
        15_000_000,
        20_000_000,
        15_000_000,
    ]
    assert manners.pauses_us(np.array([0, 1]), np.zeros(2, np.int64)).tolist() == [1_000_000, 1_000_000]
    later = RunOptions(2, 100.0, options(site={"b.test": {"delay": 30}}), {})
    manners = manners_of([given, later], [(0, "http://a.test"), (1, "http://b.test")])
    moments_us = np.array([99, 99, 100, 100]) * 1_000_000
    assert (manners.delays_us(np.array([0, 1, 0, 1]), moments_us) // 1_000_000).tolist() == [20, 15, 15, 30]


def test_the_audit_needs_memory_only_for_sites_with_settings() -> None:
    runs = [RunOptions(run, 100.0 * run, options(site={"a.test": {"delay": 20 + run}}), {}) for run in range(1, 6)]
    manners = manners_of(runs, [(3, "http://a.test"), (2_000_000, "http://b.test")])
    sites, moments_us = np.array([3, 2_000_000, 3]), np.array([150, 150, 550]) * 1_000_000
    tracemalloc.start()
    found = manners.delays_us(sites, moments_us) // 1_000_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.tolist() == [21, 15, 25] and peak < 1_000_000


# ---- media types and extensions


LINKS = ("small", "large", "unknown", "x.pdf", "y.PDF?a", "pdf", "secret")


class Types:
    """A site with pages of several types. A large body is sent in pieces, as long as the crawler reads."""

    port = 0
    pieces = 0

    def answers(self, host: str, target: str) -> Any:
        if target == "/large":
            return self._large()
        if target == "/small":
            return self._head("image/png", 5) + b"small"
        if target == "/unknown":
            return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        if target == "/map.xml":
            body = f"<urlset><url><loc>http://a.test:{self.port}/listed</loc></url></urlset>".encode()
            return self._head("application/xml", len(body)) + body
        if target == "/robots.txt":
            return text(f"User-agent: *\nDisallow: /secret\nSitemap: http://a.test:{self.port}/map.xml")
        return page() if target == "/listed" else page(*(f"/{path}" for path in LINKS))

    def _head(self, kind: str, length: int) -> bytes:
        return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n".encode()

    def _large(self) -> Iterator[Part]:
        yield self._head("image/png", 1 << 30)
        for self.pieces in range(3000):
            yield bytes(1000)
            yield 0.02
        yield CLOSE


def crawled_types(tmp_path: Path, **given: Any) -> tuple[Crawled, SmallServer, Types]:
    types = Types()
    with small_server(types.answers) as server:
        types.port = server.port
        seed = f"http://a.test:{server.port}/"
        return crawled(tmp_path / "out", [seed], {"a.test": "127.9.0.1"}, http="1.1", **given), server, types


def test_unwanted_types_are_not_read_and_unwanted_extensions_not_requested(tmp_path: Path) -> None:
    crawl, server, types = crawled_types(
        tmp_path, include_mimes=("text/html",), exclude_extensions=("pdf",), sitemaps=True
    )
    results = {url.rpartition("/")[2]: result for url, result in crawl.last().items()}
    assert results["large"] == (6, 200, "mime") and results["small"] == (6, 200, "mime")
    assert results["unknown"][2] == "" and results["pdf"][2] == "" and results[""][2] == ""
    # robots.txt and the sitemap were read, though they are not HTML.
    assert results["listed"][2] == "" and not {"/x.pdf", "/y.PDF?a", "/secret"} & set(server.targets("a.test"))
    assert crawl.summary["unwanted_types"] == 2 and crawl.summary["errors"] == 0
    assert crawl.summary["rejected_links"] == {"exclude": 4}  # two links of each of the two pages
    assert crawl.rows("select sum(bytes) from fetch where error = 'mime'") == [(0,)]
    # The connection was given up for the large body, and kept for the small one.
    assert server.connections == 2 and types.pieces < 1000
    assert run(["verify", str(crawl.folder)]) == 0


def test_a_type_may_be_excluded() -> None:
    filtered = MimeFilter((), ("image/*", "text/plain"))
    types = (b"text/html", b"text/plain; charset=x", b"IMAGE/png", b"application/pdf", b"")
    assert [filtered.wants(kind) for kind in types] == [True, False, False, True, True]


@pytest.mark.parametrize("given", [{"include_mime": "html"}, {"exclude_mime": ["text/"]}, {"exclude_extension": "a/b"}])
def test_what_is_no_type_or_extension_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"not a media type|not an extension"):
        options(**given)


# ---- robots.txt of own hosts


def test_robots_txt_is_ignored_on_own_hosts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, [f"{A}/1", f"{B}/1"], no_robots=True, own_hosts=("a.test",), lists=True)
    for wire in stage.wires:
        wire.opens().answers(200, {}, b"User-agent: *\nDisallow: /\nCrawl-delay: 50\nSitemap: http://a.test/map.xml")
    stage.passes(1.0)
    stage.wires[0].answers()
    stage.passes(1.0)
    assert [wire.targets for wire in stage.wires] == [["/robots.txt", "/1", "/map.xml"], ["/robots.txt"]]
    assert stage.frontier.site_rules(0) == (-1, -1)


def test_robots_txt_is_ignored_only_if_the_user_names_own_hosts() -> None:
    with pytest.raises(ConfigError, match="--own-hosts HOST"):
        options(no_robots=True)


def test_the_audit_counts_no_violation_on_own_hosts(tmp_path: Path) -> None:
    def answers(host: str, target: str) -> bytes:
        return text("User-agent: *\nDisallow: /") if target == "/robots.txt" else page("/a")

    with small_server(answers) as server:
        given = {"no_robots": True, "own_hosts": ("a.test",)}
        crawl = crawled(tmp_path / "out", [f"http://a.test:{server.port}/"], {"a.test": "127.9.0.1"}, **given)
    assert crawl.summary["pages_fetched"] == 2 and crawl.summary["politeness_violations"] == 0


# ---- proxies

HOSTS = {"a.test": "127.9.0.1", "c.test": "169.254.1.1"}


def proxied(tmp_path: Path, server: SmallServer, proxy: str, scheme: str = "http", **given: Any) -> Crawled:
    seed = f"{scheme}://a.test:{server.port}/"
    return crawled(tmp_path / "out", [seed], HOSTS, proxy=proxy, backoff_s=0.0, **given)


def linking(host: str, target: str) -> bytes:
    return NOT_FOUND if target == "/robots.txt" else page("/a", "http://c.test/", "http://169.254.169.254/")


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_the_guard_decides_before_the_proxy_is_asked(tmp_path: Path, kind: str) -> None:
    with small_server(linking) as server, proxy_server(kind) as proxy:
        crawl = proxied(tmp_path, server, proxy.url)
        assert set(proxy.log) == {f"127.9.0.1:{server.port}"}
    assert crawl.summary["pages_fetched"] == 2 and crawl.summary["abandoned_sites_by_kind"] == {"address": 2}


@pytest.mark.parametrize("kind", ["http", pytest.param("socks5", marks=slow)])
def test_names_are_given_to_a_proxy_that_looks_them_up(tmp_path: Path, kind: str) -> None:
    with small_server(linking) as server, proxy_server(kind, names=HOSTS) as proxy:
        crawl = proxied(tmp_path, server, proxy.url, proxy_names=True)
        whole = {f"http://a.test:{server.port}{path}" for path in ("/robots.txt", "/", "/a")}
        assert set(proxy.log) == (whole if kind == "http" else {f"a.test:{server.port}"})
        assert {one.header("host") for one in server.log} == {f"a.test:{server.port}"}
    assert crawl.summary["pages_fetched"] == 2 and crawl.summary["abandoned_sites_by_kind"] == {"address": 2}


@pytest.mark.parametrize("kind", ["http", pytest.param("socks5", marks=slow)])
def test_tls_passes_through_a_proxy(tmp_path: Path, kind: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("a.test").configure_cert(context)
    with small_server(linking, tls=context) as server, proxy_server(kind) as proxy:
        crawl = proxied(tmp_path, server, proxy.url, "https", insecure=True)
        assert set(proxy.log) == {f"127.9.0.1:{server.port}"}
    assert crawl.summary["pages_fetched"] == 2


@pytest.mark.parametrize(
    ("kind", "login", "refuses", "said"),
    [
        ("http", ("bob", "x"), 0, "the proxy wants credentials"),
        ("socks5", ("bob", "x"), 0, "it wants credentials"),
        ("http", None, 403, "answered 403 to CONNECT 127.9.0.1:1; some proxies want names: --proxy-names"),
        ("socks5", None, 0, "did not connect: connection refused"),
    ],
)
def test_a_proxy_that_refuses_is_quoted(kind: str, login: tuple[str, str] | None, refuses: int, said: str) -> None:
    async def connect(proxy: Proxy) -> None:
        await tunnel(asyncio.get_running_loop(), proxy, "127.9.0.1", 1, "a.test", False)

    with proxy_server(kind, login, refuses=refuses) as server, pytest.raises(ProxyError, match=said):
        asyncio.run(connect(read_proxy(server.url).located()))


def test_a_proxy_without_its_password_stops_the_crawl_and_allows_nothing(tmp_path: Path) -> None:
    with small_server(linking) as server, proxy_server("http", ("bob", "x"), HOSTS) as proxy:
        with pytest.raises(ConfigError, match="the proxy wants credentials"):
            proxied(tmp_path, server, proxy.url, proxy_names=True)
        assert proxy.log == [] and server.log == []
    crawl = Crawled(tmp_path / "out", json.loads((tmp_path / "out" / "summary.json").read_text()))
    assert crawl.rows("select count(*) from robots where status = 407") == [(1,)]
    assert crawl.rows("select count(*) from fetch where result > 0") == [(0,)] and not crawl.summary["abandoned_sites"]


def whole_urls(patch: pytest.MonkeyPatch, *seeds: str) -> Stage:
    """A crawl through a proxy that gets whole URLs of http sites. Its connections are open, the first first."""
    hosts = {f"{name}.test": (f"127.0.1.{ord(name)}",) for name in "abcde"}
    given = {"proxy": "http://127.0.0.1:1", "proxy_names": True, "accept_cookies": True, "hosts": hosts}
    stage = Stage(patch, seeds, connections=5, pause_s=0.0, **given)
    for wire in stage.wires:
        wire.opens()
    return stage


def test_the_407_of_a_server_in_a_tunnel_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = whole_urls(monkeypatch, *(f"https://{name}.test/" for name in "abcd"))
    for wire in stage.wires:
        wire.answers(407)
    assert len(stage.wires) == 4 and not stage.web.proxy_trouble


def test_the_407_of_one_server_does_not_stop_a_crawl_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = whole_urls(monkeypatch, *(f"http://{name}.test/{number}" for name in "abcde" for number in range(9)))
    for wire in stage.wires:
        wire.answers(404)  # robots.txt
    stage.passes(0.1)
    a, b, c, d, e = stage.wires
    a.answers(407)
    b.answers(407)
    d.answers(200)
    c.answers(407)
    d.answers(407)
    assert not stage.web.proxy_trouble  # the proxy has passed on a request to d in between
    e.answers(407)
    assert "the proxy wants credentials" in stage.web.proxy_trouble


def test_the_407_of_the_first_answer_is_that_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = whole_urls(monkeypatch, "http://a.test/")
    stage.wires[0].answers(407)
    assert "the proxy wants credentials" in stage.web.proxy_trouble


def test_a_proxy_that_is_not_there_is_reported_before_the_crawl(tmp_path: Path) -> None:
    with small_server(linking) as server, pytest.raises(ConfigError, match="no connection: connection refused"):
        proxied(tmp_path, server, "http://127.0.0.1:1")
    assert not (tmp_path / "out").exists()


def test_a_crawl_stops_when_its_proxy_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise all sites would be abandoned."""
    monkeypatch.setattr(Proxy, "check", lambda self: None)
    with small_server(linking) as server, pytest.raises(ConfigError, match=r"refused; .*--resume"):
        proxied(tmp_path, server, "http://127.0.0.1:1")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["stopped_by"] == "proxy-lost" and summary["abandoned_sites"] == 0
