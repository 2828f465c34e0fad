"""The owner of a site in a live crawl: sites on one address have one owner, and all partitions agree on it."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.fetch.name_server import Name, NameServer
from trapline.crawler.engine.options import live_rules
from trapline.fetch.dns import Resolver
from trapline.parallel.folder.manifest import partitioning_for
from trapline.parallel.live.owner_lookup import OwnerLookup
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport.url_batches import LinkRow, encode

NAMES = st.from_regex(r"[a-z]{1,8}\.test", fullmatch=True)
ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"])
PARTITIONS = st.integers(1, 9)


def site_owners(own: int, partitions: int, hosts: dict[str, str] | None = None, kind: str = "address") -> SiteOwners:
    table = {name: (address,) for name, address in (hosts or {}).items()}
    return SiteOwners(Partitioning(kind, partitions), table, own, {})


@given(st.dictionaries(NAMES, ADDRESSES, min_size=2), PARTITIONS)
def test_sites_on_one_known_address_have_one_owner(hosts: dict[str, str], partitions: int) -> None:
    all_partitions = [site_owners(own, partitions, hosts) for own in range(partitions)]
    owner: dict[str, int] = {}
    for name, address in hosts.items():
        for site in (f"http://{name}", f"https://{name}:8443", f"http://{address}:81"):
            (where,) = {one.where(site) for one in all_partitions}
            assert owner.setdefault(address, where) == where
            assert [one.owns(site) for one in all_partitions] == [at == where for at in range(partitions)]


@given(st.dictionaries(NAMES, ADDRESSES, min_size=1), PARTITIONS)
def test_messages_about_a_site_reach_one_owner_through_its_registrar(hosts: dict[str, str], partitions: int) -> None:
    all_partitions, by_address = [site_owners(own, partitions) for own in range(partitions)], site_owners(0, partitions)
    for name, address in hosts.items():
        site = f"http://{name}"
        (registrar,) = {one.where(site) for one in all_partitions}
        assert [one.owns(site) for one in all_partitions] == [
            None if at == registrar else False for at in range(partitions)
        ]
        all_partitions[registrar].settle(site, [address])
        owner = all_partitions[registrar].where(site)
        assert owner == by_address.where(f"http://{address}")
        decided = all_partitions[registrar].take_decided()
        assert decided == ({} if owner == registrar else {owner: [(name, address)]})
        all_partitions[owner].learn(name, address)
        for same in (site, f"https://{name}", f"https://{name}:8443"):  # a robots.txt often redirects between them
            assert [one.owns(same) for one in all_partitions] == [at == owner for at in range(partitions)]
        assert {one.where(site) for one in all_partitions} <= {registrar, owner}
        kept = SiteOwners(Partitioning("address", partitions), {}, owner, dict(all_partitions[owner].fresh))
        assert kept.owns(site)


@given(NAMES, PARTITIONS)
def test_without_a_delay_per_address_the_owner_depends_on_the_name(name: str, partitions: int) -> None:
    assert partitioning_for(live_rules(ip_delay_s=0.0), partitions).kind == "rendezvous"
    assert partitioning_for(live_rules(), partitions).kind == "address"
    all_partitions = [site_owners(own, partitions, kind="rendezvous") for own in range(partitions)]
    assert sum(bool(one.owns(f"http://{name}")) for one in all_partitions) == 1


def test_an_unanswered_name_delays_no_other() -> None:
    """Of three names, one has an address, one has none, and one gets no answer."""
    names = {"a.test": Name(("10.0.0.1",)), "silent.test": Name(silent=True)}
    own = site_owners(0, 1)

    async def settled() -> tuple[list[int], list[bool | None]]:
        server = NameServer(names)
        resolver = Resolver({}, [await server.start()], try_s=5.0, tries=1)
        message_batches = [
            (1, encode([LinkRow(f"http://{name}.test/".encode(), 1, 0) for name in ("a", "b", "silent")]))
        ]
        delivered: list[int] = []
        lookup = OwnerLookup(
            resolver,
            own,
            lambda _, after, __: message_batches[after:],
            lambda _, number, __: delivered.append(number),
            0,
        )
        task = asyncio.ensure_future(lookup.run())
        while not delivered:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await resolver.close()
        server.transport.close()
        return delivered, [own.owns(f"http://{name}.test") for name in ("a", "b", "silent")]

    assert asyncio.run(settled()) == ([1], [True, True, None])


@given(st.integers(1, 5), st.sampled_from(["site-hash", "url-hash", "rendezvous", "suffix"]), st.integers(0, 50))
def test_every_partition_computes_the_owner_of_a_page_as_the_simulator_does(n: int, kind: str, page: int) -> None:
    """A live crawl hashes the host instead of the site, so that http and https of a host have one owner."""
    function = Partitioning(kind, n, {"b.test": n - 1} if kind == "suffix" else {})
    for host in ("a.test", "b.test", "www.b.test"):
        for url in (f"http://{host}/{page}", f"https://{host}:8443/{page}"):
            owner = function.owner_of(url.encode(), host.encode(), b"")
            every = [SiteOwners(function, {}, own, {}) for own in range(n)]
            assert {one.where(url) for one in every} == {owner}
            assert [one.owns(url) for one in every] == [own == owner for own in range(n)]


@given(st.integers(1, 4), st.integers(1, 3), st.sampled_from(["rendezvous", "suffix"]))
def test_hosts_move_only_to_new_partitions_when_a_crawl_grows(n: int, more: int, kind: str) -> None:
    suffixes = {"b.test": 0} if kind == "suffix" else {}
    for number in range(20):
        url = f"http://{number}.{'ab'[number % 2]}.test/"
        (before,) = {SiteOwners(Partitioning(kind, n, suffixes), {}, 0, {}).where(url)}
        grown = SiteOwners(Partitioning(kind, n + more, suffixes), {}, before, {}, [n, n + more], n)
        assert grown.where(url) in (before, *range(n, n + more))
        assert grown.has_moved(url) == (grown.where(url) != before)
