"""What partitions meet of each other's sites reaches one owner, by way of registrars or not, and every link counts once."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from trapline.crawl.discovery.link_resolver import LinkResolver
from trapline.crawl.discovery.scope import Scope
from trapline.crawl.discovery.seen import SeenTable
from trapline.crawl.discovery.sites import Sites
from trapline.crawl.discovery.url_store import UrlStore
from trapline.crawl.store.outbox import Outbox
from trapline.frontier import Frontier, Rules
from trapline.frontier.journal import Journal
from trapline.parallel.live.exchange import LinkExchange
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.partition import Partitioning
from trapline.strategies import load_strategy

ADDRESS = {f"{name}.test": f"10.0.0.{number // 2}" for number, name in enumerate("abcdef")}  # two names on each
SEEDS = ("http://seed.test/",)
URLS = [f"http://{name}/{page}" for name in ADDRESS for page in range(3)]


def address_of(own: int, partitions: int) -> str:
    """One that is that partition's."""
    anybody = SiteOwners(Partitioning("address", partitions), {}, 0, {})
    return next(address for n in range(256) if anybody.where(f"http://{(address := f'10.9.0.{n}')}") == own)


class One:
    """A partition without sockets and disks: batches are on disk at once."""

    def __init__(self, own: int, partitions: int, table: dict[str, str], scope: str = "any") -> None:
        journal = Journal()
        self.frontier = Frontier(load_strategy("backlink-count"), Rules(), journal=journal)
        hosts = {name: (address,) for name, address in table.items()}
        self.site_owners = SiteOwners(Partitioning("address", partitions), hosts, own, {})
        self.known = LinkResolver(
            self.frontier, Sites(0.0), SeenTable(), UrlStore(None), Scope(scope, SEEDS), Outbox(journal, lambda batch: None), {},
            lambda site: 7, Counter(), self.site_owners.owns,
        )  # fmt: skip
        self.exchange = LinkExchange(self.frontier, self.known, self.site_owners, {})
        self.page = self._page_of_its_own(own, partitions)

    def _page_of_its_own(self, own: int, partitions: int) -> int:
        """To post links from."""
        self.site_owners.learn(f"own-{own}.test", address_of(own, partitions))
        (page,) = self.known.seed_pages([f"http://own-{own}.test/"], 0.0)
        self.frontier.discover([page], 0.0)
        return page

    def links(self) -> dict[str, float]:
        """Links to each page of ours."""
        found = {url: self.known.find([url])[0] for url in URLS}
        return {url: float(self.frontier.state.columns[page, 0]) for url, page in found.items() if page >= 0}


def exchanged(one: One, every: Sequence[One], known_now: bool) -> None:
    """A batch of one partition: its parcels to itself as parallel/live/owner_lookup.py has them, then those to the others."""
    made, own = one.exchange.take().made, one.site_owners.own
    for batch in made:
        if batch.receiver == own:
            settle(one, known_now)
            one.exchange.deliver(own, batch.number, batch.data, 1.0)
    for batch in made:
        if batch.receiver != own:
            every[batch.receiver].exchange.deliver(own, batch.number, batch.data, 1.0)


def settle(one: One, known_now: bool) -> None:
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
def test_every_link_reaches_the_owner_of_its_address_once(
    partitions: int, links: list[tuple[int, str]], known: set[str], answers: list[bool]
) -> None:
    """`known`: names whose addresses everybody knows; of the others name servers answer, or not yet."""
    table = {name: ADDRESS[name] for name in known}
    every = [One(own, partitions, table) for own in range(partitions)]
    posted: Counter[str] = Counter()
    turn = 0
    while links or any(one.exchange.has_news for one in every):
        for own, url in links[:5]:
            one = every[own % partitions]
            if not one.site_owners.owns(url.rpartition("/")[0]):  # else it is no link to another
                one.exchange.post(one.page, [url], 1)
                posted[url] += 1
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
    assert found == posted


def test_seeds_that_must_be_settled_come_to_their_owner_as_seeds() -> None:
    every = [One(own, 3, {}) for own in range(3)]
    for one in every:
        one.exchange.begin(URLS)
    for _ in range(3):
        for one in every:
            exchanged(one, every, True)
    assert sorted(url for one in every for url in one.links()) == sorted(URLS)
    assert {count for one in every for count in one.links().values()} == {0.0}
    for one in every:
        pages = [one.known.find([url])[0] for url in one.links()]
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
def test_what_a_seed_redirects_to_is_a_seed_of_its_owner_and_in_scope_for_all(
    partitions: int, url: str, redirects: int, linking: list[int], known: set[str], answers: list[bool]
) -> None:
    """`linking`: partitions whose pages link to it at the same time; the first has the redirect."""
    table = {name: ADDRESS[name] for name in known}
    every = [One(own, partitions, table, "host") for own in range(partitions)]
    is_wider = every[0].known.add_seed(url, redirects)
    every[0].exchange.seed(url, redirects, is_wider)
    is_sent, posted = not every[0].site_owners.owns(url.rpartition("/")[0]), 0
    for one in (every[own % partitions] for own in (0, *linking)):
        if not one.site_owners.owns(url.rpartition("/")[0]):
            one.exchange.post(one.page, [url], 1)
            posted += 1
    turn = 0
    while any(one.exchange.has_news for one in every):
        for one in every:
            turn += 1
            exchanged(one, every, answers[turn % len(answers)] or turn > 100)
    assert is_wider and all(dict(one.known.redirected_seeds) == {url: redirects} for one in every)
    owner = every[every[0].site_owners.where(f"http://{ADDRESS[url.split('/')[2]]}")]
    links = owner.links().get(url, 0.0)
    assert links == sum(one.links().get(url, 0.0) for one in every)
    assert is_sent <= links <= posted  # the link of the redirect is never left out
