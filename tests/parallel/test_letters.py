"""Letters reach the owner of their site by way of registrars or not, answers reach who asked, and what is known is not new."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parallel.test_exchange import ADDRESS, URLS, One, exchanged
from trapline.crawl.robots_file import Answer
from trapline.errors import ConfigError
from trapline.parallel.batch_code import PARCEL_BYTES
from trapline.parallel.letter_code import MAGIC, Kind, Letter, decode, encode, sites_in
from trapline.parallel.partition import Partitioning
from trapline.parallel.places import Places

ANSWERS = st.builds(
    Answer,
    st.integers(0, 599),
    st.text(max_size=9),
    st.none() | st.text(max_size=9),
    st.binary(max_size=99),
    st.none() | st.floats(0, 1e9),
    st.none() | st.floats(0, 1e9),
)
LETTERS = st.lists(
    st.builds(
        Letter, st.sampled_from(list(map(int, Kind))), st.text(max_size=20), st.integers(0, 99), st.none() | ANSWERS
    )
)


@given(LETTERS)
def test_letters_are_what_they_were(letters: list[Letter]) -> None:
    assert decode(encode(letters)) == letters


@given(st.binary(max_size=60).filter(lambda data: data[:4] != MAGIC))
def test_other_bytes_are_no_letters(data: bytes) -> None:
    assert decode(data) is None
    with pytest.raises(ConfigError):
        decode(MAGIC + data)


def test_parcels_are_cut_where_they_would_be_too_long() -> None:
    letters = One(0, 2, dict(ADDRESS)).exchange.letters
    for number in range(3):
        letters.reply(1, str(number), Answer(200, "", None, bytes(PARCEL_BYTES // 2 + 1), None, None))
    letters.reply(1, "a", Answer(404, "", None, b"", None, None))
    assert [len(decode(data) or ()) for _, data in letters.take()] == [1, 1, 2]


class Answering:
    """A desk that knows every file on its own sites at once."""

    def __init__(self, one: One) -> None:
        self._one = one
        self.asked: Counter[tuple[str, int]] = Counter()
        self.told: Counter[tuple[str, bytes]] = Counter()

    def robots_asked(self, url: str, partition: int) -> None:
        self.asked[url, partition] += 1
        self._one.exchange.letters.reply(partition, url, Answer(200, "", None, url.encode(), None, None))

    def robots_told(self, url: str, answer: Answer) -> None:
        self.told[url, answer.body] += 1


@settings(deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(URLS), st.sampled_from(["ask", "again"])), max_size=30),
    st.sets(st.sampled_from(sorted(ADDRESS))),
    st.lists(st.booleans(), min_size=1, max_size=8),
)
def test_every_letter_reaches_its_owner_and_every_answer_its_asker(
    partitions: int, sent: list[tuple[int, str, str]], known: set[str], answers: list[bool]
) -> None:
    """`known`: names whose addresses everybody knows; of the others name servers answer, or not yet."""
    every = [One(own, partitions, {name: ADDRESS[name] for name in known}) for own in range(partitions)]
    desks = [Answering(one) for one in every]
    for one, desk in zip(every, desks, strict=True):
        one.exchange.letters.desk = desk
    for own, url, what in sent:
        letters = every[own % partitions].exchange.letters
        letters.ask(url) if what == "ask" else letters.post_again(every[own % partitions].page, [url])
    turn = 0
    while any(one.exchange.has_news for one in every):
        for one in every:
            turn += 1
            exchanged(one, every, answers[turn % len(answers)] or turn > 100)
    by_address = Places(Partitioning("address", partitions), {}, 0, {})
    for number, (one, desk) in enumerate(zip(every, desks, strict=True)):
        asks = {url for own, url, what in sent if what == "ask" and own % partitions == number}
        assert desk.told == Counter({(url, url.encode()): 1 for url in asks})
        owned = {url for url in URLS if by_address.where(f"http://{ADDRESS[url.split('/')[2]]}") == number}
        assert {url for url, _ in desk.asked} <= owned
        assert set(one.links()) == owned & {url for _, url, what in sent if what == "again"}


def test_what_is_told_again_is_met_once_and_counts_once() -> None:
    one = One(0, 1, dict(ADDRESS))
    letters = [Letter(Kind.AGAIN, URLS[0], 3), Letter(Kind.AGAIN, URLS[0], 2)]
    for _ in range(3):
        one.exchange.letters.deliver(letters, 1.0)
    assert one.links() == {URLS[0]: 1.0}
    (page,) = one.known.find([URLS[0]])
    assert one.frontier.state.page["depth"][page] == 3


def test_what_is_named_in_passing_brings_in_no_site() -> None:
    one = One(0, 1, dict(ADDRESS))
    one.known.seed_pages([URLS[0]], 0.0)
    one.exchange.letters.deliver([Letter(Kind.TOLD, url) for url in URLS], 1.0)
    assert set(one.links()) == set(URLS[:3])  # those of its site


def test_what_was_named_before_its_site_was_met_is_taken_when_it_is_named_again() -> None:
    every = [One(own, 2, dict(ADDRESS)) for own in range(2)]
    url = next(url for url in URLS if every[1].places.owns(url.rpartition("/")[0]))
    every[0].exchange.letters.tell([url])
    exchanged(every[0], every, True)
    assert every[1].links() == {}
    every[1].known.seed_pages([url.replace("/0", "/1")], 0.0)
    every[0].exchange.letters.tell([url])
    exchanged(every[0], every, True)
    assert url in every[1].links()


def test_the_same_is_told_once_in_a_batch_and_the_same_link_once() -> None:
    one = One(0, 2, dict(ADDRESS))
    letters = one.exchange.letters
    for _ in range(2):
        letters.tell(URLS[:1])
        letters.post_again(one.page, URLS[-1:])
    first = letters.take()
    assert sorted(letter.url for _, data in first for letter in decode(data) or ()) == [URLS[0], URLS[-1]]
    assert {site for _, data in first for site in sites_in(data)} == {"http://a.test", "http://f.test"}
    letters.post_again(one.page, URLS[-1:])
    assert letters.take() == [] and not letters.has_news
