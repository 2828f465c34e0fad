"""Visits to a site that the caller chooses: law V6 of docs/frontier.md, for the frontier and for its oracle."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.test_replay import assert_same_state
from tests.frontier.test_revisits import OPIC, Make, crawled, either, end, is_wait, states
from tests.frontier.worlds import Rank, World, fast_frontier, module_of, naive_frontier
from tests.naive.frontier import LEASED, WAITING
from trapline.errors import InvariantError
from trapline.frontier import FETCHED, Frontier, Outcome, Result, Rules, Visit, WaitUntil
from trapline.frontier.journal import Call, Journal, read
from trapline.frontier.replay import replay
from trapline.strategies import pair


@either
def test_a_visit_takes_the_best_pages_of_the_site(make: Make) -> None:
    frontier = crawled(make, rank=Rank("fifo", "fifo"), sites=(0, 1, 1, 1), per_connection=2)
    frontier.discover([2, 1, 3], 20.0)
    visit = frontier.visit(1, 20.0)
    assert (list(visit.pages), visit.site, visit.expires_at) == ([2, 1], 1, 120.0)
    assert states(frontier, 4)[1:] == [LEASED, LEASED, WAITING]
    end(frontier, visit, 21.0, **{"2": "fetched"})
    assert list(frontier.next(40.0).pages) == [1, 3]


@either
def test_a_site_without_waiting_pages_is_visited_without_a_page(make: Make) -> None:
    frontier = crawled(make)
    visit = frontier.visit(0, 10.0)
    assert list(visit.pages) == []
    end(frontier, visit, 11.0)
    assert is_wait(frontier.visit(0, 12.0)) == 21.0


@either
def test_a_visit_waits_for_the_delays_of_its_site_and_its_address(make: Make) -> None:
    frontier = crawled(make)
    frontier.discover([3], 0.0)
    assert is_wait(frontier.visit(1, 1.0)) == 2.0  # the delay of the address
    visit = frontier.visit(1, 2.0)
    assert is_wait(frontier.visit(0, 50.0)) == math.inf
    assert is_wait(frontier.next(50.0)) == visit.expires_at
    frontier.set_site(0, 50.0, pages=0)
    end(frontier, visit, 50.0)
    assert is_wait(frontier.visit(0, 100.0)) == math.inf


@either
def test_a_delayed_site_need_not_have_become_ready(make: Make) -> None:
    """Site 0 is delayed until 10. No `next` has looked at it since."""
    frontier = crawled(make)
    frontier.add_pages([0])
    frontier.discover([3, 4], 5.0)
    assert list(frontier.visit(0, 10.0).pages) == [4]
    assert is_wait(frontier.next(10.0)) == 110.0


def test_a_site_that_is_not_registered_is_refused() -> None:
    with pytest.raises(InvariantError):
        crawled(fast_frontier).visit(7, 0.0)


SITES, PAGES = 3, 12
steps = st.lists(
    st.tuples(st.sampled_from(["visit", "next", "finish", "discover"]), st.integers(0, PAGES - 1), st.sampled_from([0.0, 1.0, 9.0])),
    max_size=30,
)  # fmt: skip


@pytest.mark.parametrize("rank", [OPIC, Rank("fifo", "fifo"), Rank("depth", "crawl-ability")], ids=str)
@given(steps=steps)
def test_visits_to_sites_agree_with_the_oracle(rank: Rank, steps: list[tuple[str, int, float]]) -> None:
    """Sites 0 and 1 share an address. Every second finished visit returns its last page."""
    answers = []
    for make in (fast_frontier, naive_frontier):
        frontier = make(rank, World((), (), (), {"delay_s": 4.0, "per_connection": 2, "lease_s": 20.0}))
        frontier.add_sites(SITES, 0.0, groups=[0, 0, 1])
        frontier.add_pages([page % SITES for page in range(PAGES)])
        now, visits, trace = 0.0, [], []
        for step, number, passed in steps:
            now += passed
            if step == "discover":
                frontier.discover([number], now)
            elif step == "finish" and visits:
                visit = visits.pop()
                kept = list(visit.pages)[: None if number % 2 else -1]
                trace.append(_finish(frontier, visit, kept, now))
            else:
                answer = frontier.visit(number % SITES, now) if step == "visit" else frontier.next(now)
                if hasattr(answer, "pages"):
                    visits.append(answer)
                    trace.append((answer.site, list(answer.pages), answer.expires_at))
                else:
                    trace.append((type(answer).__name__, float(getattr(answer, "time", 0.0))))
        answers.append((trace, states(frontier, PAGES)))
    assert answers[0] == answers[1]


def _finish(frontier: object, visit: object, pages: list[int], now: float) -> bool:
    words = module_of(frontier)
    results = [words.Result(int(page), words.FETCHED) for page in pages]
    return bool(frontier.finish(visit, words.Outcome(results), now))  # type: ignore[attr-defined]


# Durability.


def logged() -> tuple[Frontier, Journal]:
    journal = Journal()
    frontier = Frontier(pair("fifo", "fifo"), Rules(delay_s=10.0, per_connection=2), journal=journal)
    frontier.add_sites(2, 0.0, groups=[0, 1])
    frontier.add_pages([0, 0, 0, 1])
    frontier.discover([0, 1, 2, 3], 0.0)
    visit = frontier.visit(0, 0.0)
    assert isinstance(visit, Visit) and visit.pages == [0, 1]
    frontier.finish(visit, Outcome([Result(page, FETCHED) for page in (0, 1)]), 0.0)
    assert frontier.visit(0, 5.0) == WaitUntil(10.0)
    assert isinstance(frontier.visit(1, 10.0), Visit)
    return frontier, journal


def test_a_replay_makes_the_same_visits() -> None:
    frontier, journal = logged()
    again = Frontier(frontier.strategy, frontier.rules)
    replay(again, journal.take())
    assert_same_state(again, frontier)


@pytest.mark.parametrize("at", [1, 3], ids=["pages", "moment"])
@pytest.mark.parametrize("which", [0, 1, 2], ids=["visit", "wait", "other visit"])
def test_a_log_with_another_answer_of_visit_is_refused(at: int, which: int) -> None:
    frontier, journal = logged()
    frames = list(read(journal.take()))
    place = [number for number, frame in enumerate(frames) if frame.call == Call.VISIT][which]
    numbers = list(frames[place].numbers)
    numbers[at] += 1
    frames[place] = frames[place]._replace(numbers=tuple(numbers))
    changed = Journal()
    for frame in frames:
        changed.write(frame.call, frame.payload, len(frame.payload), *frame.numbers)
    with pytest.raises(InvariantError, match="replay: visit"):
        replay(Frontier(frontier.strategy, frontier.rules), changed.take())


def test_there_is_room_for_any_number_of_visits() -> None:
    sites, journal = 100, Journal()
    frontier = Frontier(pair("fifo", "fifo"), Rules(delay_s=0.0), journal=journal)
    frontier.add_sites(sites, 0.0, groups=range(sites))
    frontier.add_pages(range(sites))
    frontier.discover(range(0, sites, 2), 0.0)
    for site in range(sites):
        visit = frontier.visit(site, 1.0)
        assert isinstance(visit, Visit) and visit.pages == ([] if site % 2 else [site])
    again = Frontier(frontier.strategy, frontier.rules)
    replay(again, journal.take())
    assert_same_state(again, frontier)
