"""The scope decides which URLs belong to a crawl, and gives the reason if one does not."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.crawler.discovery.scope import KINDS, Scope, registrable
from trapline.errors import ConfigError
from trapline.fetch.urls import canonical, origin

SEEDS = ("http://www.example.co.uk/start", "https://127.0.0.1:8080/")


def admits(scope: Scope, url: str) -> str:
    return scope.admits(url)


@pytest.mark.parametrize(
    ("url", "by_host", "by_domain"),
    [
        ("http://www.example.co.uk/a", "", ""),
        ("https://www.example.co.uk:444/a", "", ""),
        ("http://shop.example.co.uk/", "host", ""),
        ("http://example.co.uk/", "host", ""),
        ("http://other.co.uk/", "host", "domain"),
        ("http://www.example.co.uk.evil.org/", "host", "domain"),
        ("http://127.0.0.1/", "", ""),
        ("http://127.0.0.2/", "host", "domain"),
        ("http://[::1]/", "host", "domain"),
    ],
)
def test_the_scope_follows_hosts_or_domains_of_the_seeds(url: str, by_host: str, by_domain: str) -> None:
    assert admits(Scope("any", SEEDS), url) == ""
    assert admits(Scope("host", SEEDS), url) == by_host
    assert admits(Scope("domain", SEEDS), url) == by_domain


def test_the_form_of_a_url_can_reject_it() -> None:
    scope = Scope("any", include=("^https?://[^/]*/docs/", "/blog/"), exclude=(r"\.(?:pdf|zip)$",))
    assert admits(scope, "http://a/docs/x") == admits(scope, "http://a/en/blog/x") == ""
    assert admits(scope, "http://a/x") == "include"
    assert admits(scope, "http://a/docs/x.pdf") == "exclude"
    assert admits(scope, "http://a/docs/x/x/x") == "trap"
    assert admits(Scope("any", traps=False), "http://a/docs/x/x/x") == ""


@pytest.mark.parametrize("option", ["include", "exclude"])
def test_an_invalid_expression_is_reported_with_its_option(option: str) -> None:
    with pytest.raises(ConfigError, match=rf"^--{option} '\(a' is not a regular expression"):
        Scope(**{option: ("ok", "(a")})


@pytest.mark.parametrize("kind", ["any", "host", "domain"])
def test_ports_of_other_services_are_rejected_unless_a_seed_has_the_port(kind: str) -> None:
    scope = Scope(kind, seeds=("http://a.org/", "http://a.org:6000/"))
    for url, reason in {
        "http://a.org:25/": "port",
        "http://a.org:22/robots.txt": "port",
        "http://a.org:6000/x": "",
        "http://a.org:8080/": "",
        "http://a.org/:25/": "",
    }.items():
        assert scope.admits(url) == reason


def test_an_unknown_kind_is_reported_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'domain'"):
        Scope("domains")


def test_registrable_domains_of_the_public_suffix_list(recorded_data: Path) -> None:
    """The cases of the list, in the form of URL hosts: lower case, and names without a registrable part stay as they are."""
    compared = 0
    for row in (recorded_data / "public-suffix" / "tests.txt").read_text(encoding="utf-8").splitlines():
        name, _, expected = row.partition(" ")
        url = canonical(f"http://{name}/") if name and not row.startswith("//") else None
        if url is None or name.startswith("."):
            continue
        host = origin(url).removeprefix("http://")
        whole = canonical(f"http://{expected}/") if expected != "null" else None
        assert registrable(host) == (origin(whole).removeprefix("http://") if whole else host), row
        compared += 1
    assert compared > 50


@given(st.sampled_from(KINDS), st.text(max_size=20), st.text(max_size=20))
def test_a_seed_belongs_to_its_own_crawl(kind: str, host: str, path: str) -> None:
    url = canonical(f"http://{host}/{path}")
    if url is not None:
        assert admits(Scope(kind, (url,), traps=False), url) == ""


def followed(scope: Scope, *chain: str) -> list[int]:
    """Follow the redirects from each URL to the next, as the crawl does."""
    found = []
    for url, to in pairwise(chain):
        found.append(scope.redirects_to(url, to))
        if found[-1]:
            scope.add_seed(to, found[-1])
    return found


def test_the_targets_of_up_to_five_redirects_of_a_seed_are_seeds() -> None:
    scope = Scope("host", ("http://a.org/",))
    chain = ["http://a.org/", *(f"http://{number}.net/" for number in range(7))]
    assert followed(scope, *chain) == [1, 2, 3, 4, 5, 0, 0]
    assert [admits(scope, f"{url}x") for url in chain[1:]] == [""] * 5 + ["host"] * 2
    assert dict(scope.redirected) == {url: number for number, url in enumerate(chain[1:6], 1)}


def test_redirects_of_other_pages_add_no_seeds() -> None:
    scope = Scope("host", ("http://a.org/",))
    assert followed(scope, "http://a.org/b", "http://b.org/") == [0]
    assert admits(scope, "http://b.org/") == "host"


def test_a_redirect_within_the_host_continues_the_chain() -> None:
    scope = Scope("domain", ("http://a.org/",))
    assert followed(scope, "http://a.org/", "https://www.a.org/", "http://b.org/") == [1, 2]
    assert admits(scope, "http://any.b.org/") == ""


def test_a_rejected_url_does_not_become_a_seed_by_a_redirect() -> None:
    assert followed(Scope("any", ("http://a.org/",)), "http://a.org/", "http://b.org/") == [0]
    scope = Scope("host", ("http://a.org/",), exclude=(r"b\.org",))
    assert followed(scope, "http://a.org/", "http://b.org/") == [0]
    assert scope.add_seed("http://a.org/x", 1) is False and scope.add_seed("http://c.org/", 1) is True


def test_a_loop_of_redirects_ends() -> None:
    scope = Scope("host", ("http://a.org/", "http://b.org/"))
    assert followed(scope, "http://a.org/", "http://c.org/", "http://a.org/", "http://b.org/", "http://c.org/") == [
        1,
        0,
        0,
        0,
    ]
