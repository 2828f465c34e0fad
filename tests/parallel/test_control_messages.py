"""Control messages reach the owner of their site, through a registrar or directly. Answers reach the sender, and known pages are not
new."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parallel.test_exchange import ADDRESS, URLS, PartitionWithoutDisk, exchanged
from trapline.crawler.robots.site_robots import RobotsResponse
from trapline.errors import ConfigError
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport.control_batches import MAGIC, ControlMessage, MessageKind, decode, encode, sites_in
from trapline.parallel.transport.url_batches import BATCH_BYTES

ANSWERS = st.builds(
    RobotsResponse,
    st.integers(0, 599),
    st.text(max_size=9),
    st.none() | st.text(max_size=9),
    st.binary(max_size=99),
    st.none() | st.floats(0, 1e9),
    st.none() | st.floats(0, 1e9),
)
LETTERS = st.lists(
    st.builds(
        ControlMessage,
        st.sampled_from(list(map(int, MessageKind))),
        st.text(max_size=20),
        st.integers(0, 99),
        st.none() | ANSWERS,
    )
)


@given(LETTERS)
def test_control_messages_are_decoded_as_they_were_encoded(messages: list[ControlMessage]) -> None:
    assert decode(encode(messages)) == messages


@given(st.binary(max_size=60).filter(lambda data: data[:4] != MAGIC))
def test_other_bytes_are_not_control_messages(data: bytes) -> None:
    assert decode(data) is None
    with pytest.raises(ConfigError):
        decode(MAGIC + data)


def test_batches_are_split_at_the_size_limit() -> None:
    messages = PartitionWithoutDisk(0, 2, dict(ADDRESS)).exchange.messages
    for number in range(3):
        messages.reply(1, str(number), RobotsResponse(200, "", None, bytes(BATCH_BYTES // 2 + 1), None, None))
    messages.reply(1, "a", RobotsResponse(404, "", None, b"", None, None))
    assert [len(decode(data) or ()) for _, data in messages.take()] == [1, 1, 2]


class AnsweringServices:
    """Services that have an answer for every file on their own sites at once."""

    def __init__(self, one: PartitionWithoutDisk) -> None:
        self._one = one
        self.requests: Counter[tuple[str, int]] = Counter()
        self.responses: Counter[tuple[str, bytes]] = Counter()
        self.lists: list[tuple[str, str, int]] = []
        self.requisites: list[tuple[str, str, int]] = []

    def list_found(self, url: str, speaks_for: str, level: int) -> None:
        self.lists.append((url, speaks_for, level))

    def requisite_found(self, url: str, role: str, level: int) -> None:
        self.requisites.append((url, role, level))

    def robots_requested(self, url: str, partition: int) -> None:
        self.requests[url, partition] += 1
        self._one.exchange.messages.reply(partition, url, RobotsResponse(200, "", None, url.encode(), None, None))

    def robots_received(self, url: str, answer: RobotsResponse) -> None:
        self.responses[url, answer.body] += 1


@settings(deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(URLS), st.sampled_from(["ask", "again"])), max_size=30),
    st.sets(st.sampled_from(sorted(ADDRESS))),
    st.lists(st.booleans(), min_size=1, max_size=8),
)
def test_every_control_message_reaches_its_owner_and_every_answer_its_sender(
    partitions: int, sent: list[tuple[int, str, str]], known: set[str], answers: list[bool]
) -> None:
    """`known`: names whose addresses all partitions know. For the others, name servers answer or are silent."""
    every = [
        PartitionWithoutDisk(own, partitions, {name: ADDRESS[name] for name in known}) for own in range(partitions)
    ]
    all_services = [AnsweringServices(one) for one in every]
    for one, services in zip(every, all_services, strict=True):
        one.exchange.messages.services = services
    for own, url, what in sent:
        messages = every[own % partitions].exchange.messages
        messages.ask(url) if what == "ask" else messages.send_refetched_links(every[own % partitions].page, [url])
    turn = 0
    while any(one.exchange.has_news for one in every):
        for one in every:
            turn += 1
            exchanged(one, every, answers[turn % len(answers)] or turn > 100)
    by_address = SiteOwners(Partitioning("address", partitions), {}, 0, {})
    for number, (one, services) in enumerate(zip(every, all_services, strict=True)):
        asks = {url for own, url, what in sent if what == "ask" and own % partitions == number}
        assert services.responses == Counter({(url, url.encode()): 1 for url in asks})
        owned = {url for url in URLS if by_address.where(f"http://{ADDRESS[url.split('/')[2]]}") == number}
        assert {url for url, _ in services.requests} <= owned
        assert set(one.links()) == owned & {url for _, url, what in sent if what == "again"}


def test_a_repeated_link_discovers_a_page_once_and_counts_once() -> None:
    one = PartitionWithoutDisk(0, 1, dict(ADDRESS))
    messages = [
        ControlMessage(MessageKind.REFETCHED_LINK, URLS[0], 3),
        ControlMessage(MessageKind.REFETCHED_LINK, URLS[0], 2),
    ]
    for _ in range(3):
        one.exchange.messages.deliver(messages, 1.0)
    assert one.links() == {URLS[0]: 1.0}
    (page,) = one.link_resolver.find([URLS[0]])
    assert one.frontier.state.page["depth"][page] == 3


def test_a_listed_url_adds_no_site() -> None:
    one = PartitionWithoutDisk(0, 1, dict(ADDRESS))
    one.link_resolver.seed_pages([URLS[0]], 0.0)
    one.exchange.messages.deliver([ControlMessage(MessageKind.LISTED_URL, url) for url in URLS], 1.0)
    assert set(one.links()) == set(URLS[:3])  # those of the known site


def test_a_url_that_was_listed_before_its_site_was_known_is_taken_when_it_is_listed_again() -> None:
    every = [PartitionWithoutDisk(own, 2, dict(ADDRESS)) for own in range(2)]
    url = next(url for url in URLS if every[1].site_owners.owns(url.rpartition("/")[0]))
    every[0].exchange.messages.send_listed([url])
    exchanged(every[0], every, True)
    assert every[1].links() == {}
    every[1].link_resolver.seed_pages([url.replace("/0", "/1")], 0.0)
    every[0].exchange.messages.send_listed([url])
    exchanged(every[0], every, True)
    assert url in every[1].links()


def test_a_list_goes_to_the_owner_of_its_site_with_the_sites_that_it_speaks_for() -> None:
    every = [PartitionWithoutDisk(own, 2, dict(ADDRESS)) for own in range(2)]
    url = next(url for url in URLS if every[1].site_owners.owns(url.rpartition("/")[0]))
    services = AnsweringServices(every[1])
    every[1].exchange.messages.services = services
    every[0].exchange.messages.send_list(url, "http://a.test https://a.test", 2)
    exchanged(every[0], every, True)
    assert services.lists == [(url, "http://a.test https://a.test", 2)]


def test_a_requisite_goes_to_the_owner_of_its_site_once() -> None:
    every = [PartitionWithoutDisk(own, 2, dict(ADDRESS)) for own in range(2)]
    url = next(url for url in URLS if every[1].site_owners.owns(url.rpartition("/")[0]))
    services = AnsweringServices(every[1])
    every[1].exchange.messages.services = services
    for _ in range(2):
        every[0].exchange.messages.send_requisite(url, "image", 2)
        every[0].exchange.messages.send_refetched_links(every[0].page, [url])
        exchanged(every[0], every, True)
    assert services.requisites == [(url, "image", 2)]


def test_a_listed_url_and_a_link_are_sent_once_per_batch() -> None:
    one = PartitionWithoutDisk(0, 2, dict(ADDRESS))
    messages = one.exchange.messages
    for _ in range(2):
        messages.send_listed(URLS[:1])
        messages.send_refetched_links(one.page, URLS[-1:])
    first = messages.take()
    assert sorted(message.url for _, data in first for message in decode(data) or ()) == [URLS[0], URLS[-1]]
    assert {site for _, data in first for site in sites_in(data)} == {"http://a.test", "http://f.test"}
    messages.send_refetched_links(one.page, URLS[-1:])
    assert messages.take() == [] and not messages.has_news
