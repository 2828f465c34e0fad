"""`Turns` decides whether a new page or a refetch is next, by share, by price and by rate."""

import math

from hypothesis import given
from hypothesis import strategies as some

from trapline.refresh.live.agenda import Turns, burst_of


def order(turns: Turns, pages: int, now: float = 0.0) -> str:
    """The kinds of the next pages if both kinds wait: n for a new page, a for a refetch."""
    turns_taken = ""
    for _ in range(pages):
        if turns.is_first(now):
            turns.count_refetches(1)
            turns_taken += "a"
        else:
            turns.new(1)
            turns_taken += "n"
    return turns_taken


def has_its_turn(turns: Turns, site: int) -> bool:
    credit, needs = turns.of_sites()
    return bool((credit[site] if site < len(credit) else 0.0) >= needs)


def test_a_share_of_one_half_is_every_second_page() -> None:
    assert order(Turns(share=0.5), 6) == "nanana"


@given(some.floats(0.0, 1.0))
def test_a_share_is_exact_to_within_one_page(share: float) -> None:
    turns_taken = order(Turns(share=share), 200)
    for length in range(1, 201):
        assert abs(turns_taken[:length].count("a") - share * length) <= 1.0


def test_shares_of_0_and_1() -> None:
    assert order(Turns(share=0.0), 5) == "nnnnn"
    assert order(Turns(share=1.0), 5) == "aaaaa"


@given(some.floats(0.0, 0.95), some.integers(0, 200), some.lists(some.integers(1, 8), min_size=30, max_size=60))
def test_each_site_keeps_the_share_if_both_kinds_wait(share: float, site: int, visits: list[int]) -> None:
    """Within the pages of one visit, whatever other sites do."""
    turns, new, refetches = Turns(share=share), 0, 0
    for pages in visits:
        turns.new(1000)
        if has_its_turn(turns, site):
            turns.at_site(site, 0, pages)
            refetches += pages
        else:
            turns.at_site(site, pages, 0)
            new += pages
        assert refetches <= share * (new + refetches) + (1.0 - share) * max(visits) + 1e-3
    assert new > 0


def test_with_a_price_no_share_of_a_site_applies() -> None:
    turns = Turns(price=1.0)
    turns.at_site(3, 0, 100)
    assert has_its_turn(turns, 3)


def test_unused_turns_do_not_accumulate_without_limit() -> None:
    turns = Turns(share=0.5)
    for _ in range(10_000):
        turns.new(1)
    assert order(turns, 400).index("n") <= 250


def test_with_a_price_refetches_come_before_new_pages() -> None:
    turns = Turns(price=3.0)
    assert turns.least == 3.0
    assert turns.is_first(0.0)
    turns.count_refetches(50)
    assert turns.is_first(0.0)


# Seconds since the previous visit, pages wanted, and whether the crawl was stopped and resumed
Visits = list[tuple[float, int, bool]]


@given(
    some.floats(0.05, 50.0),
    some.lists(some.tuples(some.floats(0.0, 30.0), some.integers(1, 12), some.booleans()), max_size=60),
)
def test_in_every_period_refetches_stay_within_the_rate(rate: float, visits: Visits) -> None:
    """Plus the allowed burst."""
    turns, now, turns_taken = Turns(share=1.0, rate=rate), 0.0, [(0.0, 0)]  # the time, and the number of pages so far
    for step, wanted, resumed in visits:
        now += step
        if resumed:
            turns = Turns(share=1.0, rate=rate)
            turns.go_on()
        while pages := min(wanted, turns.most(now)):
            turns.count_refetches(pages)
            turns_taken.append((now, turns_taken[-1][1] + pages))
        at = turns.may_at(now)
        assert now < at < math.inf
        now = at + 1e-6
        assert turns.may(now)
    for first, (begin, _) in enumerate(turns_taken[1:]):
        for end, pages in turns_taken[first + 1 :]:
            assert pages - turns_taken[first][1] <= rate * (end - begin) + burst_of(rate) + 1e-6
