"""The owner of a page: every machine computes the same one, a site has one owner, and a new partition takes only its share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parallel.webs import webs
from trapline.errors import ConfigError
from trapline.graph import Graph
from trapline.parallel.partition import KINDS, Partitioning

SITES = st.text("abcdefg.", min_size=1, max_size=9).map(lambda host: f"http://{host}:80".encode())


def partitioning(kind: str, partitions: int) -> Partitioning:
    return Partitioning(kind, partitions, {"edu": 0} if kind == "suffix" else {})


@given(webs(), st.sampled_from(KINDS), st.integers(1, 9))
def test_every_page_has_one_owner(web: Graph, kind: str, partitions: int) -> None:
    owners = partitioning(kind, partitions).owners(web)
    assert owners.shape == (web.pages,)
    assert owners.min() >= 0
    assert owners.max() < partitions


@given(webs(), st.sampled_from([kind for kind in KINDS if kind != "url-hash"]), st.integers(1, 9))
def test_the_pages_of_a_site_have_one_owner(web: Graph, kind: str, partitions: int) -> None:
    owners = partitioning(kind, partitions).owners(web)
    assert all(len(np.unique(owners[web.site == site])) == 1 for site in range(web.sites))


@given(webs(), st.integers(1, 9))
def test_sites_on_one_address_have_one_owner(web: Graph, partitions: int) -> None:
    owners = partitioning("address", partitions).owners(web)
    assert all(len(np.unique(owners[web.ips[web.site] == address])) == 1 for address in set(web.ips.tolist()))


@given(SITES, st.integers(1, 40))
def test_a_new_partition_takes_sites_and_no_other_site_moves(site: bytes, partitions: int) -> None:
    before = partitioning("rendezvous", partitions).owner_of(b"", site, b"")
    after = partitioning("rendezvous", partitions + 1).owner_of(b"", site, b"")
    assert after in (before, partitions)


def test_a_new_partition_takes_its_share() -> None:
    sites = [b"http://s%d:80" % number for number in range(4000)]
    moved = sum(
        partitioning("rendezvous", 4).owner_of(b"", s, b"") != partitioning("rendezvous", 5).owner_of(b"", s, b"")
        for s in sites
    )
    assert 4000 / 5 * 0.85 < moved < 4000 / 5 * 1.15


def test_owners_are_the_same_on_every_machine() -> None:
    """These numbers are part of the format of a parallel crawl. Changing them would move sites between partitions."""
    sites = [b"http://example.org:80", b"https://trapline.example:443"]
    assert [Partitioning("site-hash", 16).owner_of(b"", site, b"") for site in sites] == [7, 7]
    assert [Partitioning("rendezvous", 16).owner_of(b"", site, b"") for site in sites] == [9, 4]


def test_the_longest_public_suffix_counts() -> None:
    chosen = Partitioning("suffix", 8, {"uk": 1, "ac.uk": 2, "example.org": 3})
    hosts = {b"http://www.ox.ac.uk:80": 2, b"http://bbc.co.uk:80": 1, b"https://example.org:443": 3}
    assert {site: chosen.owner_of(b"", site, b"") for site in hosts} == hosts
    elsewhere = chosen.owner_of(b"", b"http://notexample.org:80", b"")
    assert elsewhere == Partitioning("rendezvous", 8).owner_of(b"", b"http://notexample.org:80", b"")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kind": "sitehash"}, "sitehash"),
        ({"partitions": 0}, "0 partitions"),
        ({"kind": "suffix"}, "table of suffixes"),
        ({"kind": "site-hash", "suffixes": {"edu": 0}}, "table of suffixes"),
        ({"kind": "suffix", "partitions": 2, "suffixes": {"edu": 2}}, "no process 2; give a number from 0 to 1"),
    ],
)
def test_an_invalid_partitioning_is_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Partitioning(**settings)  # type: ignore[arg-type]
