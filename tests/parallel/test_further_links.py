"""Further links to a page of another partition travel as fingerprints. Whatever is killed, each link counts once, at its own page."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.scope import Scope
from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.discovery.sites import Sites
from trapline.crawler.discovery.url_store import UrlStore
from trapline.crawler.engine.records import PartitionTraffic
from trapline.crawler.store.outbox import Outbox
from trapline.errors import ConfigError
from trapline.fetch.html.page import Links
from trapline.frontier import Frontier, Rules
from trapline.frontier.journal import Journal
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.live.exchange import LinkExchange
from trapline.parallel.live.further_links import FurtherLinkExchange
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport.url_batches import LinkBatch, decode
from trapline.strategies import load_strategy

KEY = bytes(range(16))
OWNERS = Partitioning("rendezvous", 2)
_HOSTS = [f"{name}.test" for name in "abcdefghijkl"]
OURS, THEIRS = ([host for host in _HOSTS if OWNERS.owner_of(b"", host.encode(), b"") == own] for own in range(2))
SEED = f"http://{OURS[0]}/"
URLS = [f"http://{host}/{page}" for host in THEIRS[:3] for page in range(2)]
LATE = URLS[-2:]  # in scope at their owner only when it has heard of a wider scope


class Partition:
    """A partition without sockets. What is on its disk is up to the test."""

    def __init__(self, own: int, scope: Scope, policy: LinkPolicy = LinkPolicy()) -> None:  # noqa: B008  frozen
        journal = Journal()
        self.frontier = Frontier(load_strategy("backlink-count"), Rules(), journal=journal)
        self.site_owners = SiteOwners(OWNERS, {}, own, {})
        self.resolver = LinkResolver(
            self.frontier, Sites(0.0), SeenTable(KEY), UrlStore(None), scope, Outbox(journal, lambda batch: None), {},
            lambda site: 7, Counter(), self.site_owners.owns,
        )  # fmt: skip
        self.restart({}, policy)
        (self.page,) = self.resolver.adopt([SEED], 0.0)
        self.frontier.discover([self.page], 0.0)

    def restart(self, unplaced: dict[int, str], policy: LinkPolicy = LinkPolicy()) -> None:  # noqa: B008  frozen
        """Begin with another exchange. `unplaced`: the URLs in its table."""
        further = FurtherLinkExchange(self.resolver, unplaced)
        self.exchange = LinkExchange(self.frontier, self.resolver, self.site_owners, {}, policy, further=further)

    def link(self, hrefs: list[str], wants_urls: bool = False) -> None:
        """Fetch a page with these links."""
        found = self.resolver.pages_of(SEED, "", Links.of(hrefs), 1.0, wants_urls)
        self.exchange.send_links(self.page, found.foreign, len(found.pages), found.further)

    def counts(self) -> Counter[str]:
        """Return the number of links to each of our pages."""
        pages = {url: self.resolver.find([url])[0] for url in URLS}
        found = {url: int(self.frontier.state.columns[page, 0]) for url, page in pages.items() if page >= 0}
        return Counter({url: count for url, count in found.items() if count})


def sender(policy: LinkPolicy = LinkPolicy()) -> Partition:  # noqa: B008  frozen
    return Partition(0, Scope("any", (SEED,)), policy)


def receiver() -> Partition:
    return Partition(1, Scope("host", (SEED, *(f"http://{host}/" for host in THEIRS[:2]))))


def batches(traffic: PartitionTraffic) -> list[LinkBatch]:
    return [decode(batch.data) for batch in traffic.made]


def sent(one: Partition) -> tuple[list[str], int]:
    """Return the URLs and the number of fingerprints that the partition sends."""
    found = batches(one.exchange.take())
    return [row.url.decode() for batch in found for row in batch.rows], sum(batch.further.size for batch in found)


# ---- the sender


def test_a_url_is_sent_once_and_then_its_fingerprint() -> None:
    one = sender()
    one.link(URLS[:2])
    assert sent(one) == (URLS[:2], 0)
    one.link([URLS[1], URLS[2], f"{URLS[1]}#fragment", "/ours"])
    one.link([URLS[1]])
    assert sent(one) == ([URLS[2]], 1)
    one.link([URLS[1]])
    assert sent(one) == ([], 1) and sent(one) == ([], 0)


def test_links_are_summed_and_have_the_least_depth() -> None:
    one = sender()
    one.link(URLS[:2])
    one.exchange.take()
    for _ in range(3):
        one.link(URLS[:2])
    ((_, further),) = batches(one.exchange.take())
    assert sorted(further.fingerprints.tolist()) == sorted(one.resolver.fingerprints(URLS[:2]))
    assert further.links.tolist() == [3, 3] and further.depths.tolist() == [0, 0]


def test_a_page_counts_once_whatever_the_spelling_of_its_links() -> None:
    one, other = sender(), receiver()
    for count in range(1, 4):
        one.link([URLS[0], URLS[0].upper().replace("HTTP", "http"), URLS[0].replace("/0", "/./0"), URLS[1]])
        for batch in one.exchange.take().made:
            other.exchange.deliver(0, batch.number, batch.data, 1.0)
        assert other.counts() == {URLS[0]: count, URLS[1]: count}


def test_a_link_that_is_wanted_as_a_url_is_given_as_one() -> None:
    one = sender()
    one.link(URLS[:2])
    one.exchange.take()
    found = one.resolver.pages_of(SEED, "", Links.of([*URLS[:2], "/ours"]), 1.0, wants_urls=True)
    assert list(found.foreign) == URLS[:2] and not found.further and len(found.own) == 1


def test_after_a_wider_scope_urls_are_sent_again() -> None:
    one = Partition(0, Scope("host", (SEED, *URLS)))
    one.link(URLS[:1])
    one.exchange.take()
    assert one.resolver.add_seed("http://new.test/", 0)
    one.link(URLS[:1])
    assert sent(one) == (URLS[:1], 0)


@pytest.mark.parametrize("policy", [LinkPolicy("firewall"), LinkPolicy("cross-over"), LinkPolicy(every_pages=5)])
def test_other_modes_and_rare_exchanges_send_no_fingerprints(policy: LinkPolicy) -> None:
    one = sender(policy)
    for _ in range(3):
        one.link(URLS[:2])
        one.exchange.idle(0, 1.0)
        assert all(batch.further.size == 0 for batch in batches(one.exchange.take()))


def test_links_to_hosts_that_are_not_settled_are_sent_as_urls() -> None:
    one = sender()
    one.site_owners = SiteOwners(Partitioning("address", 2), {}, 0, {})
    one.restart({})
    one.resolver._owns = one.site_owners.owns
    for _ in range(2):
        one.link(URLS[:2])
        assert sent(one) == (URLS[:2], 0)


# ---- the receiver


def test_fingerprints_without_a_key_are_refused() -> None:
    one, other = sender(), receiver()
    one.link(URLS[:1])
    one.exchange.take()
    one.link(URLS[:1])
    (batch,) = one.exchange.take().made
    other.exchange = LinkExchange(other.frontier, other.resolver, other.site_owners, {})
    with pytest.raises(ConfigError, match=r"restore parallel\.json from a copy"):
        other.exchange.deliver(0, 1, batch.data, 1.0)


def test_a_url_of_a_site_that_has_moved_is_forwarded() -> None:
    one, other = sender(), receiver()
    one.link(URLS[:1])
    for _ in range(2):
        for batch in one.exchange.take().made:
            other.exchange.deliver(0, batch.number, batch.data, 1.0)
        one.link(URLS[:1])
        site = other.resolver.sites.named(URLS[0][: URLS[0].find("/", 8)])
        assert site is not None
        other.site_owners = SiteOwners(Partitioning("suffix", 2, {"test": 0}), {}, 1, {})
        other.exchange._site_owners, other.resolver._owns = other.site_owners, other.site_owners.owns
        other.resolver.foreign.leave([site.id])
    assert sent(other) == (URLS[:1], 0)


# ---- both, against a count of the links

ACTIONS = ("link", "link", "link", "flush", "commit", "deliver", "acknowledge", "widen", "kill sender", "kill receiver")
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.lists(st.sampled_from(URLS), max_size=4)), max_size=40)


class Model:
    """A sender, a receiver and their disks. The oracle counts links that are on the sender's disk, when they arrive."""

    def __init__(self) -> None:
        self.one, self.other = sender(), receiver()
        self.linked: list[list[str]] = []  # pages since the last flush: their links
        self.flushed: list[tuple[list[bytes], list[list[str]]]] = []  # batches that are not on disk, with their pages
        self.disk: list[tuple[bytes, Counter[str]]] = []  # message batches on the sender's disk, with their links
        self.arrived = self.committed = 0  # of these message batches, at the receiver
        self.unplaced: dict[int, str] = {}  # on the receiver's disk
        self.is_wide = False
        self.widened_at = 1 << 30  # number of the message batch from which the receiver's scope is wide
        self.expected: Counter[str] = Counter()

    def act(self, action: str, urls: list[str]) -> None:
        match action:
            case "link":
                self.one.link(urls)
                self.linked.append(urls)
            case "flush":
                self.flushed.append(([batch.data for batch in self.one.exchange.take().made], self.linked))
                self.linked = []
            case "commit" if self.flushed:
                self.commit(*self.flushed.pop(0))
            case "deliver" if self.arrived < len(self.disk):
                self.deliver()
            case "acknowledge":
                self.unplaced |= dict(self.other.exchange.take().unplaced)
                self.committed = self.arrived
            case "widen" if not self.is_wide:
                self.act("acknowledge", [])
                self.is_wide, self.widened_at = True, self.arrived
                self.widen()
            case "kill sender":
                self.one, self.linked, self.flushed = sender(), [], []
            case "kill receiver":
                self.restart_receiver()

    def commit(self, made: list[bytes], pages: list[list[str]]) -> None:
        links = Counter(url for page in pages for url in set(page))
        assert len(made) == bool(links)
        self.disk += [(data, links) for data in made]

    def deliver(self) -> None:
        data, links = self.disk[self.arrived]
        self.other.exchange.deliver(0, self.arrived + 1, data, 1.0)
        self.expected += Counter({url: n for url, n in links.items() if self.is_wide or url not in LATE})
        self.arrived += 1

    def widen(self) -> None:
        self.other.resolver.add_seed(f"http://{THEIRS[2]}/", 0)

    def restart_receiver(self) -> None:
        """Replay what is on disk, as the log of the frontier does, and forget the rest."""
        self.other, self.arrived, self.expected, was_wide = receiver(), 0, Counter(), self.is_wide
        self.is_wide = False
        for number in range(self.committed + 1):
            if was_wide and number == self.widened_at:
                self.is_wide = True
                self.widen()
            if number < self.committed:
                self.deliver()
        self.other.restart(self.unplaced)

    def finish(self) -> None:
        self.act("flush", [])
        while self.flushed:
            self.act("commit", [])
        while self.arrived < len(self.disk):
            self.act("deliver", [])


@settings(max_examples=examples(150), deadline=None)
@given(STEPS)
def test_every_link_counts_once_at_its_own_page(steps: list[tuple[str, list[str]]]) -> None:
    model = Model()
    for action, urls in steps:
        model.act(action, urls)
        assert model.other.counts() == model.expected
    model.finish()
    assert model.other.counts() == model.expected


def test_a_url_that_came_before_the_news_of_a_wider_scope_is_kept() -> None:
    model = Model()
    late = LATE[:1]
    for action in ("link", "flush", "commit", "deliver", "acknowledge", "kill receiver", "link", "flush", "commit"):
        model.act(action, late)
    assert model.unplaced == {model.one.resolver.fingerprints(late)[0]: late[0]}
    assert model.disk[1][0] != model.disk[0][0] and decode(model.disk[1][0]).rows == []
    model.act("widen", [])
    model.act("deliver", [])
    assert model.other.counts() == {late[0]: 1}
