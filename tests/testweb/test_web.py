"""A web without a socket: names, paths, pages, and answers."""

import re
import zlib
from itertools import product

import pytest
from ada_url import URL, join_url
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tests.testweb.webs import SIZE, numbered, recorded
from trapline.errors import ConfigError
from trapline.testweb import (
    FAULTS,
    HARMLESS,
    REDIRECTS,
    ROBOTS,
    Behaviour,
    Mix,
    Sending,
    ServedWeb,
    answer,
    build_web,
    get,
    render,
)
from trapline.testweb.answers.answer import BY_NAME
from trapline.testweb.answers.message import Request
from trapline.testweb.answers.robots_txt import allowed, beginning, rules, text
from trapline.testweb.web.behaviour import behaviours
from trapline.testweb.web.served_web import address, site_names

ODD = "/?&=#%.;:@!$'()*+,\\\"<>|{}[]^`~ \taZ0é漢\u00a0"
paths = st.text(st.sampled_from(ODD), max_size=12)
urls = st.builds("{}://{}{}".format, st.sampled_from(["http", "https"]), st.sampled_from(["a.org", "b.org:81"]), paths)


def found(web: ServedWeb, page: int) -> list[str]:
    """The URLs that a page links to, as a crawler finds them."""
    nodes = LexborHTMLParser(render(web, page)).css("a[href]")
    return [join_url(web.url(page), node.attributes["href"] or "") for node in nodes]


def page_at(web: ServedWeb, url: str) -> int:
    """The page that a server answers with."""
    parts = URL(url)
    return web.paths.page(web.names.index(parts.hostname), parts.pathname + parts.search)


@given(st.lists(urls, min_size=1, max_size=5))
def test_a_canonical_link_is_the_key_that_the_server_looks_up(given_urls: list[str]) -> None:
    web = build_web(recorded(given_urls)).at(8080)
    for page in range(web.pages):
        assert [page_at(web, url) for url in found(web, page)] == list(range(web.pages))


@given(st.lists(urls, min_size=1, max_size=8))
def test_no_two_pages_have_one_url_and_every_url_is_canonical(given_urls: list[str]) -> None:
    web = build_web(recorded(given_urls))
    every = [web.url(page) for page in range(web.pages)]
    assert len(set(every)) == web.pages
    assert [URL(url).href for url in every] == every


@pytest.mark.parametrize("names", ["host", "address"])
def test_links_without_recorded_urls_lead_to_their_pages(names: str) -> None:
    graph = numbered()
    web = build_web(graph, names=names).at(8080)
    for page in range(web.pages):
        assert [page_at(web, url) for url in found(web, page)] == graph.targets_of(page).tolist()
    assert [URL(url).pathname for url in web.seed_urls] == ["/"] * 3
    assert "?" in web.paths[2] and "?" not in web.paths[1]  # dynamic or not


def test_links_within_a_site_are_relative_and_others_absolute() -> None:
    web = build_web(recorded(["http://a.org/", "http://a.org//x", "http://b.org/?x=1&y"])).at(81)
    assert b'href="/"' in render(web, 0)
    assert b'href="http://a.org:81//x"' in render(web, 0)  # as a relative link it would name a host
    assert b'href="http://b.org:81/?x=1&amp;y"' in render(web, 0)


def test_robots_txt_is_never_a_page() -> None:
    web = build_web(recorded(["http://a.org/robots.txt", "http://a.org/-/to/0"]))
    assert web.paths.all == ["/robots.txt?page=0", "/-/to/0?page=1"]


@given(st.integers(0, 3_000), st.integers(0, 40))
def test_a_page_has_the_size_of_the_graph_unless_its_links_are_larger(size: int, links: int) -> None:
    graph = numbered(2, 30, [[target % 60 for target in range(links)]] * 60)
    assert graph.sizes is not None
    graph.sizes[:] = size
    web = build_web(graph)
    least = len(render(build_web(numbered(2, 30, [[t % 60 for t in range(links)]] * 60)), 7).partition(b"<p>\n")[0]) + 4
    assert len(render(web, 7)) == max(size, least)


def test_text_longer_than_the_repeated_piece() -> None:
    graph = numbered()
    assert graph.sizes is not None
    graph.sizes[:] = 300_001
    assert len(render(build_web(graph), 5)) == 300_001


def test_names_are_distinct_and_never_numbers() -> None:
    origins = ["http://a.org", "https://a.org", "http://a.org:81", "http://1.2.3.4", "http://0x7f.1", "http://[::1]"]
    origins += [
        "http://ex ample",
        "http://me@x.org",
        "(no host)",
        "http://localhost",
        "http://Bücher.example",
        "http://-",
    ]
    names = site_names(origins, len(origins))
    assert len(set(names)) == len(names)
    assert names[:4] == ["a.org", "a.org.site-1.test", "a.org.site-2.test", "site-3.test"]
    assert names[10] == "xn--bcher-kva.example"
    for name in names:
        assert re.fullmatch(r"[a-z0-9_.-]+", name) and not re.fullmatch(r"[0-9.]+", name)
        assert URL(f"http://{name}/").href == f"http://{name}/"


def test_addresses_are_distinct_and_on_loopback() -> None:
    every = [address(number) for number in range(70_000)]
    assert len(set(every)) == len(every)
    assert all(one.startswith("127.") and not one.startswith("127.0.") for one in every)


def test_sites_share_addresses_as_requested() -> None:
    web = build_web(numbered(5), sites_per_address=2)
    assert web.address_of == [0, 0, 1, 1, 2]
    assert web.sites_at[1] == {"site-2.test": 2, "site-3.test": 3}
    with pytest.raises(ConfigError, match="one site on each address"):
        build_web(numbered(5), sites_per_address=2, names="address")


# ---- behaviour


def test_measured_request_limits_are_those_of_the_paper() -> None:
    drawn = behaviours(Mix(measured_requests=True), 5_000, seed=1)
    limits = [one.requests_per_connection for one in drawn]
    assert limits.count(1) / 5_000 == pytest.approx(0.24, abs=0.02)
    assert limits.count(100) / 5_000 == pytest.approx(0.66, abs=0.02)
    assert {1, 2, 99, 100} <= set(limits) <= set(range(1, 101))
    assert all(one.http10 == (one.requests_per_connection == 1) for one in drawn)


def test_sites_differ_as_requested_and_equally_for_the_same_seed() -> None:
    mix = Mix(Behaviour(latency_s=0.1, faults=(("error", 0.5),)), 1.0, http10=0.5, robots=(("rules", 0.5),), faulty=0.5)
    drawn = behaviours(mix, 1_000, seed=3)
    assert drawn == behaviours(mix, 1_000, seed=3) != behaviours(mix, 1_000, seed=4)
    assert sorted(one.latency_s for one in drawn)[500] == pytest.approx(0.1, rel=0.1)
    for share in (
        sum(one.http10 for one in drawn),
        sum(one.robots == "rules" for one in drawn),
        sum(bool(one.faults) for one in drawn),
    ):
        assert share == pytest.approx(500, abs=60)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ({"faults": (("rest", 0.1),)}, "did you mean 'reset'"),
        ({"faults": (("reset", 0.7), ("silent", 0.7))}, "a sum of at most 1"),
        ({"robots": "rule"}, "did you mean 'rules'"),
        ({"redirects": (("chains", 0.1),)}, "did you mean 'chain'"),
        ({"latency_s": -1.0}, "latency_s"),
        ({"bandwidth": float("nan")}, "bandwidth"),
    ],
)
def test_an_invalid_behaviour_is_refused(wrong: dict[str, object], hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        Behaviour(**wrong)  # type: ignore[arg-type]


# ---- answers


def body_of(web: ServedWeb, site: int, target: str, gzip: bool = False) -> bytes:
    return answer(web, site, Request("GET", target, True, gzip)).body


def test_answers_to_a_page_an_unknown_path_and_a_wrong_method() -> None:
    web = build_web(numbered())
    assert answer(web, 1, get("/")).page == 4 and body_of(web, 1, "/") == render(web, 4)
    assert answer(web, 0, get("/p5/5")).status == 404  # of another site
    assert answer(web, 0, Request("POST", "/", True, False)).status == 405
    head = answer(web, 0, Request("HEAD", "/", True, False))
    assert head.body == b"" and f"Content-Length: {SIZE}".encode() in head.head
    assert answer(web, 0, get("/")).message(b"X: y\r\n").startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/html")


def faulty_web(**more: object) -> ServedWeb:
    shares = tuple((name, 1 / len(FAULTS)) for name in FAULTS)
    return build_web(numbered(2, 400), Behaviour(faults=shares, **more))  # type: ignore[arg-type]


def page_with(web: ServedWeb, fault: str) -> int:
    return next(page for page in range(web.pages) if web.fault(page) == fault)


def test_every_fault_has_its_function_and_its_pages() -> None:
    assert set(BY_NAME) == set(FAULTS)
    web = faulty_web()
    assert {web.fault(page) for page in range(web.pages)} == set(FAULTS)


@pytest.mark.parametrize("gzip", [True, False])
def test_harmless_faults_deliver_the_page(gzip: bool) -> None:
    web = faulty_web()
    for fault in HARMLESS:
        page = page_with(web, fault)
        made = answer(web, web.site[page], Request("GET", web.paths[page], True, gzip))
        body = made.body
        if b"chunked" in made.head:
            body = b"".join(re.findall(rb"[0-9a-f]+\r\n(.*?)\r\n", body, re.DOTALL))
        elif b"gzip" in made.head:
            body = zlib.decompress(body, 31)
        assert body == render(web, page)
        assert (b"gzip" in made.head) == (gzip and fault == "gzip")


def test_what_fails_once_does_not_fail_again() -> None:
    web = faulty_web(retry_after_s=7)
    page = page_with(web, "unavailable-once")
    first = answer(web, web.site[page], get(web.paths[page]))
    assert first.status == 503 and b"Retry-After: 7\r\n" in first.head
    again = answer(web, web.site[page], get(web.paths[page]), requested_before=True)
    assert again.status == 200 and again.body == render(web, page)


def test_http_1_0_is_never_chunked() -> None:
    for web, client in ((faulty_web(http10=True), True), (faulty_web(), False)):
        page = page_with(web, "chunked")
        made = answer(web, web.site[page], Request("GET", web.paths[page], client, False))
        assert b"chunked" not in made.head and made.body == render(web, page)


@pytest.mark.parametrize("kind", REDIRECTS)
def test_redirects_lead_to_the_page_or_nowhere(kind: str) -> None:
    web = build_web(numbered(), Behaviour(redirects=((kind, 1.0),))).at(81)
    for page in range(web.pages):
        links = found(web, page)
        ends = [followed(web, url) for url in links]
        if kind == "loop":
            assert len(links) == 4 and [end for end in ends if end >= 0] == [(page + 1) % 12, (page + 2) % 12]
        else:
            assert ends == [(page + 1) % 12, (page + 2) % 12]


def followed(web: ServedWeb, url: str) -> int:
    """The page at the end of the redirects. -1: there is no end."""
    for _ in range(10):
        parts = URL(url)
        made = answer(web, web.names.index(parts.hostname), get(parts.pathname + parts.search))
        if made.status == 200:
            return made.page
        assert 301 <= made.status <= 308
        url = join_url(url, re.search(rb"Location: (.*?)\r\n", made.head)[1].decode())  # type: ignore[index]
    return -1


# ---- robots.txt


def ruled(kind: str = "rules", **more: float) -> ServedWeb:
    return build_web(numbered(20, 100), Behaviour(robots=kind, disallowed=0.3, **more))  # type: ignore[arg-type]


def test_robots_txt_forbids_exactly_the_forbidden_paths() -> None:
    web = ruled(crawl_delay_s=2.5)
    shares = []
    for site in range(web.sites):
        ours = text(web, site).decode().partition("User-agent: *\n")[2]
        said = re.findall(r"^Disallow: (.+)$", ours, re.MULTILINE)
        assert "Crawl-delay: 2.5\n" in ours
        own = [web.paths[page] for page in range(web.pages) if web.site[page] == site]
        assert [allowed(web, site, path) for path in own] == [not path.startswith(tuple(said)) for path in own]
        assert allowed(web, site, "/") and allowed(web, site, "/robots.txt")
        shares.append(sum(not allowed(web, site, path) for path in own) / 100)
    assert 0.1 < sum(shares) / 20 < 0.5


def test_a_rule_never_has_a_special_character() -> None:
    web = build_web(recorded(["http://a.org/", "http://a.org/a/$x", "http://a.org/*b", "http://a.org/c"]))
    assert rules(web.at(1), 0) == ()
    web = build_web(
        recorded(["http://a.org/", "http://a.org/a/$x", "http://a.org/*b", "http://a.org/c"]),
        Behaviour(robots="rules", disallowed=1.0),
    )
    assert rules(web, 0) == ("/c",)
    assert all(path.startswith(beginning(path)) for path in web.paths.all)


@pytest.mark.parametrize("kind", ROBOTS)
def test_each_kind_of_robots_txt(kind: str) -> None:
    web = ruled(kind).at(81)
    made = answer(web, 3, get("/robots.txt"))
    assert (made.status, made.sending is Sending.HALF_THEN_RESET) == {
        "none": (404, False),
        "error": (503, False),
        "reset": (200, True),
        **dict.fromkeys(("redirect", "away", "loop"), (301, False)),
        **dict.fromkeys(("rules", "huge"), (200, False)),
    }[kind]
    if kind in ("redirect", "away"):
        where = URL(join_url(web.origins[3], re.search(rb"Location: (.*?)\r\n", made.head)[1].decode()))  # type: ignore[index]
        made = answer(web, web.names.index(where.hostname), get(where.pathname))
    if kind in ("redirect", "away", "rules", "huge"):
        assert all(f"Disallow: {rule}\n".encode() in made.body for rule in rules(web, 3))
        assert len(made.body) > 900_000 or kind != "huge"
    permitted = {allowed(web, 3, web.paths[page]) for page in range(300, 400)}
    assert permitted == {"none": {True}, "loop": {True}, "error": {False}, "reset": {False}}.get(kind, {True, False})


def test_real_graphs_keep_their_sizes() -> None:
    from trapline.graph import load_graph

    graph = load_graph("python-docs")
    web = build_web(graph).at(8080)
    some = range(0, web.pages, 10)
    exact = [len(render(web, page)) == web.sizes[page] for page in some]
    assert sum(exact) > 0.8 * len(exact)
    for page, link in product(some[:100], range(3)):
        targets = graph.targets_of(page)
        if link < len(targets):
            assert page_at(web, found(web, page)[link]) == targets[link]
