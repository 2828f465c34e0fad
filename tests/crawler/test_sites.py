"""Sites by id and by name, and the numbers of addresses."""

import pytest

from trapline.crawler.discovery.sites import UNRESOLVED, Site, Sites


@pytest.mark.parametrize(
    ("origin", "host", "port", "secure"),
    [
        ("http://a.org", "a.org", 80, False),
        ("https://a.org", "a.org", 443, True),
        ("http://a.org:8080", "a.org", 8080, False),
        ("http://[::1]", "::1", 80, False),
        ("https://[::1]:8443", "::1", 8443, True),
    ],
)
def test_an_origin_gives_host_port_and_scheme(origin: str, host: str, port: int, secure: bool) -> None:
    site = Site(0, origin)
    assert (site.host, site.port, site.secure) == (host, port, secure)


def test_sites_are_numbered_in_order() -> None:
    sites = Sites(pause_s=2.0)
    added = [sites.add(f"http://{name}.org") for name in "abc"]
    assert [site.id for site in added] == [0, 1, 2] and list(sites) == added and len(sites) == 3
    assert sites[1] is sites.named("http://b.org") is added[1] and sites.named("https://b.org") is None
    assert {site.pause_s for site in sites} == {2.0}


def test_a_new_site_has_no_address_and_no_rules() -> None:
    site = Sites(0.0).add("http://a.org")
    assert (site.addresses, site.robots, site.connection) == ((), None, None) and UNRESOLVED < 0


def test_addresses_are_numbered_densely_and_once() -> None:
    sites = Sites(0.0)
    assert [sites.group(address) for address in ("9.9.9.9", "::1", "9.9.9.9")] == [(0, True), (1, True), (0, False)]


def test_addresses_of_a_resumed_crawl_keep_their_numbers() -> None:
    sites = Sites(0.0)
    sites.restore_groups(["9.9.9.9", "8.8.8.8"])
    assert sites.group("8.8.8.8") == (1, False) and sites.group("7.7.7.7") == (2, True)
