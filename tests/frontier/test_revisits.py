"""Revisits: each law of the section on fetched pages in docs/frontier.md, worked out by hand, for the frontier and for
its oracle."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.frontier.test_replay import assert_same_state
from tests.frontier.worlds import Rank, World, fast_frontier, module_of, naive_frontier, record_of
from tests.naive.frontier import FETCHED_PAGE, GONE, LEASED, REVISITED, UNKNOWN, WAITING
from trapline.errors import InvariantError
from trapline.frontier import FETCHED, Frontier, Outcome, Result, Rules, Visit, WaitUntil, snapshot
from trapline.frontier.journal import Call, Journal, read
from trapline.frontier.replay import replay
from trapline.strategies import pair

OPIC = Rank("opic", "top-page")
Make = Callable[[Rank, World], Any]
either = pytest.mark.parametrize("make", [fast_frontier, naive_frontier])


def crawled(make: Make, rank: Rank = OPIC, sites: Sequence[int] = (0, 0, 0, 1), **rules: Any) -> Any:
    """A frontier with pages of these sites, which share one address. The pages of site 0 are fetched, in a visit that
    ended at 0."""
    settings = {"delay_s": 10.0, "ip_delay_s": 2.0, "per_connection": 5, "lease_s": 100.0} | rules
    frontier = make(rank, World((), (), (), settings))
    frontier.add_sites(max(sites) + 1, 0.0, groups=[0] * (max(sites) + 1))
    frontier.add_pages(sites)
    frontier.discover([page for page, site in enumerate(sites) if site == 0], 0.0)
    visit = frontier.next(0.0)
    end(frontier, visit, 0.0, **dict.fromkeys(map(str, visit.pages), "fetched"))
    return frontier


def end(frontier: Any, visit: Any, now: float, links: Sequence[int] = (), **results: str) -> None:
    """Finish a visit with these results by page. Every fetched page has these links."""
    words = module_of(frontier)
    reported = [
        words.Result(int(page), getattr(words, result.upper()), links if result == "fetched" else ())
        for page, result in results.items()
    ]
    assert frontier.finish(visit, words.Outcome(reported), now)


def states(frontier: Any, pages: int) -> list[int]:
    return [frontier.page_state(page) for page in range(pages)]


def is_wait(answer: Any) -> float:
    assert type(answer).__name__ == "WaitUntil"
    return float(answer.time)


# A1: which pages can be revisited.


WRONG: dict[str, tuple[int, list[int]]] = {
    "a page twice": (0, [0, 1, 0]),
    "a page of another site": (1, [0]),
    "a page that waits": (1, [3]),
    "no such page": (0, [0, 77]),
    "no page at all": (0, [-1]),
}


@either
@pytest.mark.parametrize(("site", "pages"), WRONG.values(), ids=WRONG)
def test_pages_that_cannot_be_revisited_are_refused_and_nothing_changes(
    make: Make, site: int, pages: list[int]
) -> None:
    frontier, other = crawled(make), crawled(make)
    for one in (frontier, other):
        one.discover([3], 0.0)
    with pytest.raises(InvariantError):
        frontier.revisit(site, pages, 500.0)
    assert states(frontier, 4) == [FETCHED_PAGE] * 3 + [WAITING]
    assert is_wait(frontier.revisit(0, [0], 5.0)) == 10.0  # the clock was not moved to 500
    if isinstance(frontier, Frontier):
        other.revisit(0, [0], 5.0)
        assert_same_state(frontier, other)


@either
def test_a_site_can_be_visited_without_any_page(make: Make) -> None:
    """The delays before and after it are those of any visit, and the pages of the site do not change."""
    frontier = crawled(make)
    assert is_wait(frontier.revisit(0, [], 5.0)) == 10.0
    visit = frontier.revisit(0, [], 10.0)
    assert list(visit.pages) == [] and is_wait(frontier.revisit(0, [0], 11.0)) == math.inf
    end(frontier, visit, 12.0)
    assert is_wait(frontier.revisit(0, [], 12.0)) == 22.0 and states(frontier, 3) == [FETCHED_PAGE] * 3


@either
def test_pages_beyond_the_limit_of_a_visit_are_checked_too(make: Make) -> None:
    frontier = crawled(make, per_connection=1, sites=(0,))
    with pytest.raises(InvariantError):
        frontier.revisit(0, [0, 0], 50.0)
    assert states(frontier, 1) == [FETCHED_PAGE]


@either
def test_a_page_that_is_under_revisit_or_gone_cannot_be_revisited(make: Make) -> None:
    frontier = crawled(make)
    visit = frontier.revisit(0, [0, 1], 50.0)
    with pytest.raises(InvariantError):
        frontier.revisit(0, [0], 50.0)
    end(frontier, visit, 50.0, **{"0": "refused"})
    with pytest.raises(InvariantError):
        frontier.revisit(0, [0], 90.0)


@either
def test_a_revisit_moves_the_clock_even_if_it_must_wait(make: Make) -> None:
    frontier = crawled(make)
    assert is_wait(frontier.revisit(0, [0], 8.0)) == 10.0
    visit = frontier.revisit(0, [0], 12.0)
    assert visit.expires_at == 112.0
    end(frontier, visit, 3.0, **{"0": "fetched"})  # an earlier time counts as the last one
    assert frontier.open_at(0) == 22.0


# A2, A3: when, and which pages.


@either
def test_a_revisit_waits_for_the_delays_of_its_site_and_its_address(make: Make) -> None:
    frontier = crawled(make)  # until 0: site 0 is delayed until 10, the address until 2
    frontier.discover([3], 0.0)
    assert frontier.open_at(0) == 10.0 and frontier.open_at(1) == 2.0
    assert is_wait(frontier.revisit(0, [0], 9.75)) == 10.0
    end(frontier, frontier.next(9.75), 9.75, **{"3": "fetched"})  # site 1: the address is delayed until 11.75
    assert is_wait(frontier.revisit(0, [0], 10.0)) == 11.75
    assert list(frontier.revisit(0, [0], 11.75).pages) == [0]


@either
def test_a_site_without_a_previous_visit_is_open_since_minus_infinity(make: Make) -> None:
    frontier = make(OPIC, World((), (), (), {}))
    frontier.add_sites(1, 5.0, groups=[0])
    assert frontier.open_at(0) == -math.inf


@either
def test_a_site_that_only_another_call_can_open_is_open_at_infinity(make: Make) -> None:
    frontier = crawled(make)
    frontier.add_sites(1, 0.0)
    assert frontier.open_at(2) == math.inf  # the site has no address
    frontier.set_site(0, 20.0, pages=0)
    assert is_wait(frontier.revisit(0, [0], 20.0)) == math.inf  # abandoned
    frontier.set_site(0, 20.0, pages=1)
    visit = frontier.revisit(0, [0], 20.0)
    assert frontier.open_at(0) == frontier.open_at(1) == math.inf  # both are on the address under visit
    assert is_wait(frontier.revisit(0, [1], 20.0)) == math.inf
    end(frontier, visit, 20.0, **{"0": "fetched"})
    frontier.export_site(0, 50.0)
    assert is_wait(frontier.revisit(0, [0], 50.0)) == math.inf


@either
def test_only_next_finds_that_a_visit_has_expired(make: Make) -> None:
    frontier = crawled(make)
    frontier.revisit(0, [0], 10.0)  # until 110
    assert is_wait(frontier.revisit(0, [1], 500.0)) == math.inf
    assert states(frontier, 2) == [REVISITED, FETCHED_PAGE]
    frontier.next(500.0)
    assert states(frontier, 2) == [FETCHED_PAGE, FETCHED_PAGE]


@either
@pytest.mark.parametrize(
    ("own", "allowed", "taken"),
    [
        ({"per_connection": 2}, 50, [2, 0]),
        ({"per_connection": 0}, 1, [2]),
        ({"per_connection": 0}, 50, [2, 0, 1]),
        ({"per_connection": 0, "pages": 3}, 50, [2, 0, 1]),  # the budget is used up
    ],
)
def test_a_revisit_takes_the_first_pages_in_the_order_given(
    make: Make, own: dict[str, int], allowed: int, taken: list[int]
) -> None:
    frontier = crawled(make, sites=(0, 0, 0))
    assert frontier.finish(frontier.revisit(0, [0], 50.0), module_of(frontier).Outcome(allowed=allowed), 50.0)
    frontier.set_site(0, 60.0, **own)
    visit = frontier.revisit(0, [2, 0, 1], 100.0)
    assert (list(visit.pages), visit.site, visit.expires_at) == (taken, 0, 200.0)
    assert states(frontier, 3) == [REVISITED if page in taken else FETCHED_PAGE for page in range(3)]


def test_a_revisit_takes_at_most_a_thousand_pages() -> None:
    frontier = crawled(
        fast_frontier, rank=Rank("fifo", "fifo"), sites=[0] * 1_001, per_connection=0, first_requests=2_000
    )
    rest = frontier.next(10.0)
    end(frontier, rest, 10.0, **{str(rest.pages[0]): "fetched"})
    assert len(frontier.revisit(0, range(1_001), 50.0).pages) == 1_000


# A4: a revisit is a visit like any other.


@either
def test_a_site_and_its_address_do_not_compete_until_the_revisit_ends(make: Make) -> None:
    frontier = crawled(make, sites=(0, 0, 0, 1, 0))
    frontier.discover([3], 10.0)
    visit = frontier.revisit(0, [0], 10.0)
    assert is_wait(frontier.next(10.0)) == 110.0  # site 1 could be visited if its address were free
    with pytest.raises(InvariantError):
        frontier.resolve(0, 1, 10.0)
    with pytest.raises(InvariantError):
        frontier.export_site(0, 10.0)
    end(frontier, visit, 12.0, **{"0": "fetched"})
    assert is_wait(frontier.next(12.0)) == 14.0
    assert frontier.next(14.0).site == 1
    assert frontier.open_at(0) == math.inf


@either
def test_nothing_is_drained_while_a_revisit_is_under_way(make: Make) -> None:
    frontier = crawled(make)
    visit = frontier.revisit(0, [0], 10.0)
    assert is_wait(frontier.next(20.0)) == 110.0
    end(frontier, visit, 20.0, **{"0": "fetched"})
    assert type(frontier.next(20.0)).__name__ == "Drained"


@either
def test_ids_of_visits_and_revisits_grow_together(make: Make) -> None:
    frontier = crawled(make)
    frontier.discover([3], 10.0)
    first = frontier.revisit(0, [0], 10.0)
    end(frontier, first, 10.0)
    second = frontier.next(50.0)
    end(frontier, second, 50.0)
    assert first.id < second.id < frontier.revisit(0, [0], 90.0).id


# A5, A6: the results.


@either
def test_each_result_gives_the_page_its_state(make: Make) -> None:
    frontier = crawled(make, sites=(0,) * 4)
    visit = frontier.revisit(0, [0, 1, 2, 3], 10.0)
    end(frontier, visit, 11.0, **{"0": "fetched", "1": "failed", "2": "refused"})
    assert states(frontier, 4) == [FETCHED_PAGE, FETCHED_PAGE, GONE, FETCHED_PAGE]
    again = frontier.revisit(0, [1, 3, 0], 200.0)
    assert list(again.pages) == [1, 3, 0]


@either
def test_only_a_page_of_the_revisit_can_be_reported(make: Make) -> None:
    frontier = crawled(make)
    visit, words = frontier.revisit(0, [0], 10.0), module_of(frontier)
    with pytest.raises(InvariantError):
        frontier.report(visit, 1, words.FETCHED, 10.0)
    assert frontier.report(visit, 0, words.FETCHED, 10.0)
    with pytest.raises(InvariantError):
        frontier.report(visit, 0, words.FETCHED, 10.0)
    assert frontier.finish(visit, words.Outcome(), 10.0) and not frontier.finish(visit, words.Outcome(), 10.0)


@either
@pytest.mark.parametrize(
    ("result", "failures", "open_at"), [("failed", 2, 58.0), ("fetched", 0, 36.0), ("refused", 1, 42.0)]
)
def test_a_failed_page_counts_against_its_site(make: Make, result: str, failures: int, open_at: float) -> None:
    """A failure at 10, and then this result at 26. The back-off is 16 s, then 32 s."""
    frontier = crawled(make, backoff_s=16.0)
    end(frontier, frontier.revisit(0, [0], 10.0), 10.0, **{"0": "failed"})
    assert (record_of(frontier, 0).failures, frontier.open_at(0)) == (1, 26.0)
    end(frontier, frontier.revisit(0, [1], 26.0), 26.0, **{"1": result})
    assert (record_of(frontier, 0).failures, frontier.open_at(0)) == (failures, open_at)


@either
def test_a_page_whose_refetches_fail_stays_fetched(make: Make) -> None:
    """The retries count only for the first fetch. Otherwise the page would be gone at the second failure."""
    frontier = crawled(make, retries=0)
    for now in (1e4, 2e4, 3e4):
        end(frontier, frontier.revisit(0, [0], now), now, **{"0": "failed"})
        assert states(frontier, 1) == [FETCHED_PAGE]
    assert frontier.finish(frontier.revisit(0, [0], 4e4), module_of(frontier).Outcome(), 4e4)
    frontier.revisit(0, [0], 5e4)
    frontier.next(6e4)
    assert states(frontier, 1) == [FETCHED_PAGE] and record_of(frontier, 0).failures == 4


@either
def test_links_to_new_pages_are_followed_and_other_links_do_not_count_twice(make: Make) -> None:
    """Page 3 waits with one link to it. Page 4 is new and linked twice."""
    frontier = crawled(make, rank=Rank("backlink-count", "top-page"), sites=(0, 0, 0, 1, 1, 1))
    end(frontier, frontier.revisit(0, [0], 10.0), 10.0, links=[3, 5], **{"0": "fetched"})
    frontier.discover([5], 10.0)
    end(frontier, frontier.revisit(0, [1], 20.0), 20.0, links=[3, 4, 4, 3, 3], **{"1": "fetched"})
    assert states(frontier, 6) == [FETCHED_PAGE] * 3 + [WAITING] * 3
    # All pages have rank 1, so their order is that of their discovery.
    assert list(frontier.next(30.0).pages) == [3, 5, 4]


@either
def test_links_of_a_first_fetch_still_count_after_a_revisit(make: Make) -> None:
    frontier = crawled(make, rank=Rank("backlink-count", "top-page"), sites=(0, 0, 1, 1, 1))
    end(frontier, frontier.revisit(0, [0], 10.0), 10.0, links=[2, 3, 4], **{"0": "fetched"})
    frontier.set_site(1, 20.0, per_connection=1)
    end(frontier, frontier.next(20.0), 20.0, links=[4], **{"2": "fetched"})
    assert list(frontier.next(40.0).pages) == [4]


@either
def test_the_depth_of_a_new_page_follows_from_the_revisited_page(make: Make) -> None:
    frontier = crawled(make, sites=(0, 1, 1), depth_static=1)
    end(frontier, frontier.revisit(0, [0], 10.0), 10.0, links=[1], **{"0": "fetched"})
    end(frontier, frontier.next(20.0), 20.0, **{"1": "fetched"})
    end(frontier, frontier.revisit(1, [1], 40.0), 40.0, links=[2], **{"1": "fetched"})
    assert states(frontier, 3) == [FETCHED_PAGE, FETCHED_PAGE, UNKNOWN]


@either
def test_a_revisit_is_measured_like_a_visit(make: Make) -> None:
    frontier = crawled(make, alpha=0.5, first_response_s=1.0, first_connection_s=1.0)
    words, visit = module_of(frontier), frontier.revisit(0, [0, 1], 10.0)
    frontier.report(visit, 0, words.FAILED, 10.0, response_s=3.0)
    frontier.finish(visit, words.Outcome(connection_s=5.0, allowed=7), 10.0)
    record = record_of(frontier, 0)
    assert (record.response_s, record.connection_s, record.requests) == (2.0, 3.0, 7)


# A7: the counts.


@either
def test_a_revisited_page_counts_as_fetched_and_a_refused_one_returns_its_budget(make: Make) -> None:
    frontier = crawled(make, rank=Rank("fifo", "fifo"), sites=(0, 0, 0), pages_per_site=2)
    assert states(frontier, 3) == [FETCHED_PAGE, FETCHED_PAGE, WAITING]
    visit = frontier.revisit(0, [0, 1], 10.0)
    assert (record_of(frontier, 0).taken, record_of(frontier, 0).known) == (2, 3)
    end(frontier, visit, 10.0, **{"0": "fetched", "1": "refused"})
    assert (record_of(frontier, 0).taken, record_of(frontier, 0).known) == (1, 3)
    assert list(frontier.next(50.0).pages) == [2] and states(frontier, 3)[2] == LEASED


@either
def test_scores_are_due_by_the_number_of_fetched_pages(make: Make) -> None:
    """Three pages are fetched and a fourth waits, so scores are due."""
    frontier = crawled(make, rank=Rank("partial-pagerank", "top-page"), sites=(0, 0, 0, 1), per_connection=3, rescore=3)
    frontier.discover([3], 10.0)
    visit = frontier.revisit(0, [0, 1], 10.0)  # although scores are due
    assert frontier.next(10.0).fetched == 3
    end(frontier, visit, 10.0, **{"0": "refused", "1": "fetched"})
    assert list(frontier.next(50.0).pages) == [3]  # two pages are fetched, so scores are no longer due


# A8: batches.


@either
def test_a_batch_does_not_wait_for_a_revisit(make: Make) -> None:
    """Sites 0 and 1 each have their own address."""
    frontier = crawled(make, sites=(0, 1), batch=1)
    frontier.resolve(1, 1, 0.0)
    visit = frontier.revisit(0, [0], 10.0)
    frontier.discover([1], 10.0)
    assert list(frontier.next(10.0).pages) == [1]
    end(frontier, visit, 10.0, **{"0": "fetched"})


@either
def test_a_revisit_does_not_count_as_a_visit_of_a_batch(make: Make) -> None:
    """One of two chosen pages waits at a site under revisit, so there is room for one more."""
    frontier = crawled(make, sites=(0, 0, 1), batch=2, batch_least_active=1, per_connection=1)
    frontier.resolve(1, 1, 0.0)
    assert states(frontier, 2) == [FETCHED_PAGE, WAITING]
    frontier.revisit(0, [0], 10.0)
    frontier.discover([2], 10.0)
    assert list(frontier.next(10.0).pages) == [2]


@either
def test_after_a_revisit_a_batch_still_waits_for_its_own_visits(make: Make) -> None:
    frontier = crawled(make, sites=(0, 1, 2), batch=1)
    for site in (1, 2):
        frontier.resolve(site, site, 0.0)
    end(frontier, frontier.revisit(0, [0], 10.0), 10.0, **{"0": "fetched"})
    frontier.discover([1, 2], 10.0)
    assert list(frontier.next(10.0).pages) == [1]
    assert is_wait(frontier.next(10.0)) == 110.0


# Durability.


def logged() -> tuple[Frontier, Journal]:
    """Pages 0 and 1 are fetched. Then come a revisit that must wait, and a revisit of both pages."""
    journal = Journal()
    frontier = Frontier(pair("fifo", "fifo"), Rules(delay_s=10.0, per_connection=2), journal=journal)
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0, 0])
    frontier.discover([0, 1], 0.0)
    visit = frontier.next(0.0)
    frontier.finish(visit, Outcome([Result(page, FETCHED) for page in (0, 1)]), 0.0)
    assert frontier.revisit(0, [1], 5.0) == WaitUntil(10.0)
    assert isinstance(frontier.revisit(0, [1, 0], 10.0), Visit)
    return frontier, journal


def test_a_resumed_crawl_ends_the_revisits_that_were_under_way(tmp_path: Path) -> None:
    frontier, journal = logged()
    snapshot.save(frontier, tmp_path / "snapshot")
    again = Frontier(frontier.strategy, frontier.rules)
    replay(again, journal.take())
    for one in (frontier, again, snapshot.load(tmp_path / "snapshot", frontier.strategy)):
        assert states(one, 2) == [REVISITED, REVISITED]
        [(number, site)] = one.visits_under_way()
        assert one.finish(Visit(number, site, [], 0.0), Outcome(), 20.0)
        assert states(one, 2) == [FETCHED_PAGE, FETCHED_PAGE] and one.visits_under_way() == []
        assert_same_state(one, frontier)


@pytest.mark.parametrize("at", [1, 2, 4], ids=["pages", "visit", "moment"])
@pytest.mark.parametrize("which", [0, 1], ids=["wait", "visit"])
def test_a_log_with_another_answer_of_revisit_is_refused(at: int, which: int) -> None:
    frontier, journal = logged()
    frames = list(read(journal.take()))
    place = [number for number, frame in enumerate(frames) if frame.call == Call.REVISIT][which]
    numbers = list(frames[place].numbers)
    numbers[at] += 1
    frames[place] = frames[place]._replace(numbers=tuple(numbers))
    changed = Journal()
    for frame in frames:
        changed.write(frame.call, frame.payload, len(frame.payload), *frame.numbers)
    with pytest.raises(InvariantError, match="replay: revisit"):
        replay(Frontier(frontier.strategy, frontier.rules), changed.take())


def test_there_is_room_for_any_number_of_revisits() -> None:
    """More at once than a new frontier has slots for, both by calls and by their replay."""
    journal, sites = Journal(), 100
    frontier = Frontier(pair("fifo", "fifo"), Rules(delay_s=0.0), journal=journal)
    frontier.add_sites(sites, 0.0, groups=range(sites))
    frontier.add_pages(range(sites))
    frontier.discover(range(sites), 0.0)
    while isinstance(visit := frontier.next(0.0), Visit):
        frontier.finish(visit, Outcome([Result(page, FETCHED) for page in visit.pages]), 0.0)
    visits = [frontier.revisit(site, [site], 1.0) for site in range(sites)]
    assert frontier.visits_under_way() == [(visit.id, site) for site, visit in enumerate(visits)]
    again = Frontier(frontier.strategy, frontier.rules)
    replay(again, journal.take())
    assert_same_state(again, frontier)


def test_links_count_once_even_if_memory_grows() -> None:
    """The first links fill the pool. The last link leads to a waiting page."""
    many = 3_000
    frontier = Frontier(pair("backlink-count", "top-page"), Rules(delay_s=0.0))
    frontier.add_sites(2, 0.0, groups=[0, 1])
    frontier.add_pages([0, *[1] * (many + 1)])
    frontier.discover([0], 0.0)
    frontier.finish(frontier.next(0.0), Outcome([Result(0, FETCHED, links=[1])]), 0.0)
    visit, run = frontier.revisit(0, [0], 1.0), frontier.state.run[0]
    frontier._replace(pool=frontier.state.pool[: run.pool + run.reserve].copy())
    small = frontier.state.pool.size
    assert frontier.report(visit, 0, FETCHED, 1.0, links=[*range(2, many + 2), 1])
    assert frontier.state.pool.size > small
    pages, keys = frontier.waiting_pages(1)
    assert len(pages) == many + 1 and set(keys.tolist()) == {1.0}
