"""Whose turn it is, by share, by price and by rate."""

import math

from hypothesis import given
from hypothesis import strategies as some

from trapline.refresh.live.agenda import Turns, burst_of


def order(turns: Turns, pages: int, now: float = 0.0) -> str:
    """What is asked for, if both kinds wait: n(ew) or a(gain)."""
    asked = ""
    for _ in range(pages):
        if turns.is_first(now):
            turns.again(1)
            asked += "a"
        else:
            turns.new(1)
            asked += "n"
    return asked


def has_its_turn(turns: Turns, site: int) -> bool:
    credit, needs = turns.of_sites()
    return bool((credit[site] if site < len(credit) else 0.0) >= needs)


def test_half_is_every_second_page() -> None:
    assert order(Turns(share=0.5), 6) == "nanana"


@given(some.floats(0.0, 1.0))
def test_a_share_is_kept_to_within_a_page(share: float) -> None:
    asked = order(Turns(share=share), 200)
    for length in range(1, 201):
        assert abs(asked[:length].count("a") - share * length) <= 1.0


def test_no_share_is_none_and_all_is_all() -> None:
    assert order(Turns(share=0.0), 5) == "nnnnn"
    assert order(Turns(share=1.0), 5) == "aaaaa"


@given(some.floats(0.0, 0.95), some.integers(0, 200), some.lists(some.integers(1, 8), min_size=30, max_size=60))
def test_where_both_wait_a_site_has_its_own_share(share: float, site: int, visits: list[int]) -> None:
    """By a visit's pages at most, whatever is asked for elsewhere."""
    turns, new, again = Turns(share=share), 0, 0
    for pages in visits:
        turns.new(1000)
        if has_its_turn(turns, site):
            turns.at_site(site, 0, pages)
            again += pages
        else:
            turns.at_site(site, pages, 0)
            new += pages
        assert again <= share * (new + again) + (1.0 - share) * max(visits) + 1e-3
    assert new > 0


def test_a_price_asks_no_site_for_its_share() -> None:
    turns = Turns(price=1.0)
    turns.at_site(3, 0, 100)
    assert has_its_turn(turns, 3)


def test_what_was_not_wanted_for_long_is_not_asked_for_all_at_once() -> None:
    turns = Turns(share=0.5)
    for _ in range(10_000):
        turns.new(1)
    assert order(turns, 400).index("n") <= 250


def test_a_price_goes_before_new_pages_and_is_asked_of_all() -> None:
    turns = Turns(price=3.0)
    assert turns.least == 3.0
    assert turns.is_first(0.0)
    turns.again(50)
    assert turns.is_first(0.0)


Visits = list[
    tuple[float, int, bool]
]  # seconds since the one before, pages wanted, whether the crawl was stopped and goes on


@given(
    some.floats(0.05, 50.0),
    some.lists(some.tuples(some.floats(0.0, 30.0), some.integers(1, 12), some.booleans()), max_size=60),
)
def test_in_every_stretch_of_time_no_more_than_the_rate_are_fetched_again(rate: float, visits: Visits) -> None:
    """But for what may come together."""
    turns, now, asked = Turns(share=1.0, rate=rate), 0.0, [(0.0, 0)]  # when, and how many so far
    for step, wanted, goes_on in visits:
        now += step
        if goes_on:
            turns = Turns(share=1.0, rate=rate)
            turns.go_on()
        while pages := min(wanted, turns.most(now)):
            turns.again(pages)
            asked.append((now, asked[-1][1] + pages))
        at = turns.may_at(now)
        assert now < at < math.inf
        now = at + 1e-6
        assert turns.may(now)
    for first, (begin, _) in enumerate(asked[1:]):
        for end, pages in asked[first + 1 :]:
            assert pages - asked[first][1] <= rate * (end - begin) + burst_of(rate) + 1e-6
