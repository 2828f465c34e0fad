"""A link to a page of another partition reaches the one owner of its site, through a registrar or directly, and counts once."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.parallel.test_pending_links import Disk
from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.scope import Scope
from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.discovery.sites import Sites
from trapline.crawler.discovery.url_store import UrlStore
from trapline.crawler.store.outbox import Outbox
from trapline.frontier import Frontier, Rules
from trapline.frontier.journal import Journal
from trapline.parallel import CROSS_OVER, FIREWALL
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.live.exchange import LinkExchange
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport.control_batches import decode as messages_in
from trapline.parallel.transport.url_batches import LinkRow, decode
from trapline.strategies import load_strategy

ADDRESS = {f"{name}.test": f"10.0.0.{number // 2}" for number, name in enumerate("abcdef")}  # two names on each address
SEEDS = ("http://seed.test/",)
DEFAULT = LinkPolicy()
URLS = [f"http://{name}/{page}" for name in ADDRESS for page in range(3)]


def address_of(own: int, partitions: int) -> str:
    """Return an address that belongs to this partition."""
    anybody = SiteOwners(Partitioning("address", partitions), {}, 0, {})
    return next(address for n in range(256) if anybody.where(f"http://{(address := f'10.9.0.{n}')}") == own)


class PartitionWithoutDisk:
    """A partition without sockets and disks: its batches are durable at once."""

    def __init__(
        self, own: int, partitions: int, table: dict[str, str], scope: str = "any", policy: LinkPolicy = DEFAULT
    ) -> None:
        journal = Journal()
        self.frontier = Frontier(load_strategy("backlink-count"), Rules(), journal=journal)
        hosts = {name: (address,) for name, address in table.items()}
        self.site_owners = SiteOwners(Partitioning("address", partitions), hosts, own, {})
        self.link_resolver = LinkResolver(
            self.frontier, Sites(0.0), SeenTable(), UrlStore(None), Scope(scope, SEEDS), Outbox(journal, lambda batch: None), {},
            lambda site: 7, Counter(), self.site_owners.owns,
        )  # fmt: skip
        self.exchange = LinkExchange(self.frontier, self.link_resolver, self.site_owners, {}, policy)
        self.page = self._own_page(own, partitions)

    def _own_page(self, own: int, partitions: int) -> int:
        """Return a page of this partition, to send links from."""
        self.site_owners.learn(f"own-{own}.test", address_of(own, partitions))
        (page,) = self.link_resolver.seed_pages([f"http://own-{own}.test/"], 0.0)
        self.frontier.discover([page], 0.0)
        return page

    def links(self) -> dict[str, float]:
        """Return the number of links to each of our pages."""
        found = {url: self.link_resolver.find([url])[0] for url in URLS}
        return {url: float(self.frontier.state.columns[page, 0]) for url, page in found.items() if page >= 0}


def exchanged(one: PartitionWithoutDisk, every: Sequence[PartitionWithoutDisk], known_now: bool) -> None:
    """Flush one partition. Deliver its message batches to itself, as parallel/live/owner_lookup.py does, and then those to the others."""
    made, own = one.exchange.take().made, one.site_owners.own
    for batch in made:
        if batch.receiver == own:
            settle(one, known_now)
            one.exchange.deliver(own, batch.number, batch.data, 1.0)
    for batch in made:
        if batch.receiver != own:
            every[batch.receiver].exchange.deliver(own, batch.number, batch.data, 1.0)


def settle(one: PartitionWithoutDisk, known_now: bool) -> None:
    for site in dict.fromkeys(url.rpartition("/")[0] for url in URLS):
        if known_now and one.site_owners.owns(site) is None:
            one.site_owners.settle(site, [ADDRESS[site.partition("://")[2]]])


@settings(deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(URLS)), max_size=40),
    st.sets(st.sampled_from(sorted(ADDRESS))),
    st.lists(st.booleans(), min_size=1, max_size=8),
)
@example(1, [(0, URLS[0])] * 6, set(), [False, False, True])  # a batch with a forwarded and an own row of one URL
def test_every_link_reaches_the_owner_of_its_address_once(
    partitions: int, links: list[tuple[int, str]], known: set[str], answers: list[bool]
) -> None:
    """`known`: names whose addresses all partitions know. For the others, name servers answer or are silent."""
    table = {name: ADDRESS[name] for name in known}
    every = [PartitionWithoutDisk(own, partitions, table) for own in range(partitions)]
    sent: Counter[str] = Counter()
    turn = 0
    while links or any(one.exchange.has_news for one in every):
        for own, url in links[:5]:
            one = every[own % partitions]
            if not one.site_owners.owns(url.rpartition("/")[0]):  # else it is not a foreign link
                one.exchange.send_links(one.page, [url], 1)
                sent[url] += 1
        links = links[5:]
        for one in every:
            turn += 1
            exchanged(one, every, answers[turn % len(answers)] or turn > 100)
    found: Counter[str] = Counter()
    by_address = SiteOwners(Partitioning("address", partitions), {}, 0, {})
    for number, one in enumerate(every):
        for url, count in one.links().items():
            assert url not in found
            assert by_address.where(f"http://{ADDRESS[url.split('/')[2]]}") == number
            found[url] = int(count)
    assert found == sent


def test_seeds_that_need_a_lookup_reach_their_owner_as_seeds() -> None:
    every = [PartitionWithoutDisk(own, 3, {}) for own in range(3)]
    for one in every:
        one.exchange.begin(URLS)
    for _ in range(3):
        for one in every:
            exchanged(one, every, True)
    assert sorted(url for one in every for url in one.links()) == sorted(URLS)
    assert {count for one in every for count in one.links().values()} == {0.0}
    for one in every:
        pages = [one.link_resolver.find([url])[0] for url in one.links()]
        assert (one.frontier.state.page["depth"][pages] == 0).all()


@settings(deadline=None)
@given(
    st.integers(1, 4),
    st.sampled_from(URLS),
    st.integers(1, 5),
    st.lists(st.integers(0, 3), max_size=4),
    st.sets(st.sampled_from(sorted(ADDRESS))),
    st.lists(st.booleans(), min_size=1, max_size=8),
)
def test_the_target_of_a_seed_redirect_is_a_seed_of_its_owner_and_in_scope_everywhere(
    partitions: int, url: str, redirects: int, linking: list[int], known: set[str], answers: list[bool]
) -> None:
    """`linking`: partitions whose pages link to the target at the same time. The first partition has the redirect."""
    table = {name: ADDRESS[name] for name in known}
    every = [PartitionWithoutDisk(own, partitions, table, "host") for own in range(partitions)]
    is_wider = every[0].link_resolver.add_seed(url, redirects)
    every[0].exchange.seed(url, redirects, is_wider)
    is_sent, sent = not every[0].site_owners.owns(url.rpartition("/")[0]), 0
    for one in (every[own % partitions] for own in (0, *linking)):
        if not one.site_owners.owns(url.rpartition("/")[0]):
            one.exchange.send_links(one.page, [url], 1)
            sent += 1
    turn = 0
    while any(one.exchange.has_news for one in every):
        for one in every:
            turn += 1
            exchanged(one, every, answers[turn % len(answers)] or turn > 100)
    assert is_wider and all(dict(one.link_resolver.redirected_seeds) == {url: redirects} for one in every)
    owner = every[every[0].site_owners.where(f"http://{ADDRESS[url.split('/')[2]]}")]
    links = owner.links().get(url, 0.0)
    assert links == sum(one.links().get(url, 0.0) for one in every)
    assert is_sent <= links <= sent  # the link of the redirect always counts


def foreign_to(one: PartitionWithoutDisk) -> list[str]:
    return [url for url in URLS if not one.site_owners.owns(url)]


@settings(deadline=None)
@given(st.integers(2, 4), st.integers(1, 6), st.lists(st.sampled_from(URLS), min_size=1, max_size=30), st.booleans())
def test_links_wait_for_the_exchange_and_each_url_is_sent_once_with_all_its_links(
    partitions: int, every: int, links: list[str], ends_idle: bool
) -> None:
    """One page has each link, and each page goes to the store in a batch of its own."""
    one = PartitionWithoutDisk(0, partitions, ADDRESS, policy=LinkPolicy(every_pages=every))
    pages = sent_at = 0
    one.exchange.open(lambda: pages)
    kept: Counter[str] = Counter()
    for url in links:
        pages += 1
        if url in foreign_to(one):
            one.exchange.send_links(one.page, [url], 1)
            kept[url] += 1
        traffic = one.exchange.take()
        sent = Counter({row.url.decode(): row.links for made in traffic.made for row in decode(made.data).rows})
        is_due = pages - sent_at >= every
        assert sent == (kept if is_due else Counter())
        assert sum(count for _, count in traffic.urls) == len(sent)
        if is_due and kept:
            sent_at, kept = pages, Counter()
    assert one.exchange.count(idle=True).idle == (not kept)  # a crawl with links to send is not over
    assert not one.exchange.has_news  # what waits is on disk
    if ends_idle and kept:
        assert not one.exchange.idle(1, 1.0) and one.exchange.has_news
        traffic = one.exchange.take()
        assert sum(row.links for made in traffic.made for row in decode(made.data).rows) == kept.total()
        assert set(traffic.not_pending) == set(kept)


def test_links_found_after_an_idle_time_wait_for_the_exchange() -> None:
    one = PartitionWithoutDisk(0, 3, ADDRESS, policy=LinkPolicy(every_pages=9))
    one.exchange.open(lambda: 0)
    one.exchange.idle(1, 1.0)
    one.exchange.send_links(one.page, foreign_to(one), 9)
    assert not one.exchange.take().made
    one.exchange.idle(1, 2.0)
    assert one.exchange.take().made


def test_a_firewall_drops_links_but_not_the_redirect_of_a_seed() -> None:
    one = PartitionWithoutDisk(0, 3, ADDRESS, "host", LinkPolicy(FIREWALL))
    redirected, *others = foreign_to(one)
    one.link_resolver.add_seed(redirected, 1)
    one.exchange.seed(redirected, 1, True)
    one.exchange.send_links(one.page, [redirected, *others], 9)
    one.exchange.send_refetched_links(one.page, others)
    one.exchange.send_listed(others)
    urls = {row.url.decode() for made in one.exchange.take().made for row in rows_in(made.data)}
    assert urls == {redirected} and not one.exchange.take().made
    assert one.exchange.count(idle=True).idle


def rows_in(data: bytes) -> list[LinkRow]:
    """Return the links in a message batch; none if it has control messages."""
    return decode(data).rows if messages_in(data) is None else []


@settings(deadline=None)
@given(st.lists(st.sampled_from(URLS), max_size=30), st.integers(1, 4))
def test_a_partition_that_crosses_over_takes_the_pages_of_others_in_the_order_found(
    links: list[str], connections: int
) -> None:
    one = PartitionWithoutDisk(0, 3, ADDRESS, policy=LinkPolicy(CROSS_OVER))
    found = [url for url in links if url in foreign_to(one)]
    for url in found:
        one.exchange.send_links(one.page, [url], 1)
    assert not one.exchange.take().made
    wanted, taken = list(dict.fromkeys(found)), 0
    while one.exchange.idle(connections, 1.0):
        taken += connections
        assert set(one.links()) == set(wanted[:taken])
        one.exchange.send_links(one.page, wanted[:1], 1)  # found again: it is not taken over again
    assert {url: int(links) for url, links in one.links().items()} == Counter(found)
    assert one.exchange.count(idle=True).idle == one.exchange.is_still


def test_a_partition_that_crosses_over_keeps_few_links_in_memory_and_takes_all() -> None:
    """Two rows stay in memory. The others are read from disk when these are taken and everything is on disk."""
    disk = Disk()
    one = PartitionWithoutDisk(0, 3, ADDRESS, policy=LinkPolicy(CROSS_OVER))
    one.exchange = LinkExchange(
        one.frontier, one.link_resolver, one.site_owners, {}, LinkPolicy(CROSS_OVER), disk.read, most_in_memory=2
    )
    foreign = foreign_to(one)
    assert len(foreign) > 4
    batch = 0

    def commit() -> None:
        nonlocal batch
        batch += 1
        traffic = one.exchange.take()
        one.exchange.sent(batch, traffic)
        assert not one.exchange.can_load  # not on disk yet
        disk.write(list(traffic.pending), list(traffic.not_pending))
        one.exchange.committed(batch)

    one.exchange.send_links(one.page, foreign, len(foreign))
    commit()
    rounds = 0
    while not one.exchange.count(idle=True).idle:
        one.exchange.idle(1, 1.0)
        commit()
        rounds += 1
        assert rounds < 4 * len(foreign)
    assert set(one.links()) == set(foreign) and not disk.rows


def test_replicated_urls_are_seeds_of_their_owner_and_are_never_sent() -> None:
    policy = LinkPolicy(replicated=tuple(URLS[::2]))
    every = [PartitionWithoutDisk(own, 3, ADDRESS, policy=policy) for own in range(3)]
    for one in every:
        one.exchange.begin(())
        assert set(one.links()) == {url for url in policy.replicated if one.site_owners.owns(url)}
        one.exchange.send_links(one.page, foreign_to(one), 9)
        sent = {row.url.decode() for made in one.exchange.take().made for row in decode(made.data).rows}
        assert sent == set(foreign_to(one)) - set(policy.replicated)
