"""The agenda decides between new pages and refetches. An answer without a visit always names a later moment, so that no
caller asks in a loop."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.effort import examples
from trapline.frontier import FETCHED, Drained, Frontier, Outcome, Result, Rules, Visit, WaitUntil
from trapline.refresh.core.kernels import CHOSE, RETURNED
from trapline.refresh.live.agenda import Agenda, Turns, burst_of
from trapline.refresh.live.calls import read
from trapline.refresh.live.refresher import Refresher
from trapline.refresh.policy import policy_named
from trapline.strategies import load_strategy

BEGAN = 1.7e9


def agenda_of(policy: str, pages: int, sites: int, turns: Turns, delay_s: float, continuous: bool = True) -> Agenda:
    """An agenda over a frontier with these pages, all of which are discovered."""
    frontier = Frontier(load_strategy("breadth-first"), Rules(delay_s=delay_s, per_connection=10))
    frontier.add_sites(sites, BEGAN, list(range(sites)))
    frontier.add_pages([page % sites for page in range(pages)])
    frontier.discover(list(range(pages)), BEGAN)
    return Agenda(frontier, Refresher(policy_named(policy), BEGAN), turns, continuous)


def finish_visit(agenda: Agenda, visit: Visit, now: float) -> None:
    results = [Result(page, FETCHED) for page in visit.pages]
    agenda._frontier.finish(visit, Outcome(results), now)
    for page in visit.pages:
        agenda.came(page, visit.site, FETCHED, now, changed=page % 3 == 0)
    agenda.over(visit, now)


@settings(max_examples=examples(25), deadline=None)
@given(
    some.sampled_from(["residual-life", "uniform", "cgm"]),
    some.integers(1, 200),
    some.integers(1, 8),
    some.sampled_from([Turns, lambda: Turns(price=1e9), lambda: Turns(price=1e-9), lambda: Turns(rate=0.3)]),
    some.sampled_from([0.0, 1.0, 60.0]),
)
def test_an_answer_without_a_visit_names_a_later_moment(
    policy: str, pages: int, sites: int, turns: object, delay_s: float
) -> None:
    agenda, now = agenda_of(policy, max(pages, sites), sites, turns(), delay_s), BEGAN  # type: ignore[operator]
    for _ in range(300):
        answer = agenda.next(now)
        if isinstance(answer, Visit):
            now += 0.01
            finish_visit(agenda, answer, now)
        else:
            assert isinstance(answer, WaitUntil) and answer.time > now
            now = min(answer.time, now + 1000.0)


def popular_page(share: float) -> Agenda:
    """Page 0 is on site 0 with 99 other pages, one per visit. The other sites have very many new pages."""
    frontier = Frontier(load_strategy("breadth-first"), Rules(delay_s=1.0, per_connection=10))
    frontier.add_sites(9, BEGAN, list(range(9)))
    frontier.add_pages([0] * 100 + [1 + page % 8 for page in range(20_000)])
    frontier.set_site(0, BEGAN, per_connection=1)
    frontier.discover(list(range(20_100)), BEGAN)
    return Agenda(frontier, Refresher(policy_named("residual-life"), BEGAN), Turns(share=share))


def visits_of(agenda: Agenda, asks: int) -> list[tuple[Visit, bool]]:
    """The visits, each with whether it was a revisit. Every reader reads page 0."""
    now, visits = BEGAN, []
    for _ in range(asks):
        answer = agenda.next(now)
        if isinstance(answer, WaitUntil):
            now = answer.time
            continue
        assert isinstance(answer, Visit)
        now += 0.01
        visits.append((answer, answer.pages[0] in agenda.under_way))
        finish_visit(agenda, answer, now)
        if 0 in answer.pages:
            agenda.refresher.accessed(0, now, 1000.0)
    return visits


def test_a_page_that_always_changes_leaves_the_new_pages_of_its_site_their_share() -> None:
    """By the overall share alone this page would take every visit of its site."""
    visited_pages = {True: 0, False: 0}  # pages at its site: refetched or new
    for visit, again in visits_of(popular_page(share=0.5), 600):
        visited_pages[again] += len(visit.pages) * (visit.site == 0)
    assert visited_pages[True] > 10 and visited_pages[False] >= min(100, visited_pages[True])


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_choice_that_new_pages_displace_leaves_no_trace(share: float) -> None:
    """The log names the visited pages as chosen, and no choice was returned."""
    agenda = popular_page(share)
    visits = [visit.pages for visit, again in visits_of(agenda, 600) if again]
    log = list(read(agenda.refresher.take()))
    assert [entry.payload.tolist() for entry in log if entry.call == CHOSE and len(entry.payload)] == visits
    assert len(visits) > 10 and not [entry for entry in log if entry.call == RETURNED]


def test_new_pages_give_no_credit_to_a_site_without_fetched_pages() -> None:
    agenda = agenda_of("residual-life", 60, 1, Turns(share=0.5), 1.0)
    first = agenda.next(BEGAN)
    assert isinstance(first, Visit)
    assert agenda._turns.of_sites()[0][0] == 0.0
    finish_visit(agenda, first, BEGAN + 0.01)
    visits, now = 0, BEGAN + 0.01
    while not visits:
        answer = agenda.next(now)
        visits, now = int(isinstance(answer, Visit)), getattr(answer, "time", now)
    assert agenda._turns.of_sites()[0][0] != 0.0


@settings(max_examples=examples(20), deadline=None)
@given(some.floats(0.1, 3.0), some.integers(1, 6), some.sampled_from([0.0, 1.0, 15.0]))
def test_a_revisit_is_cut_to_what_the_rate_allows(rate: float, sites: int, delay_s: float) -> None:
    """In no period are more pages refetched than the rate allows, whatever a visit could take, and no page is lost."""
    agenda, now, again = agenda_of("uniform", 60, sites, Turns(rate=rate), delay_s), BEGAN, []
    for _ in range(300):
        answer = agenda.next(now)
        if isinstance(answer, Visit):
            again += [now] * agenda.under_way.issuperset(answer.pages) * len(answer.pages)
            assert set(agenda.refresher.chosen()) == agenda.under_way
            now += 0.01
            finish_visit(agenda, answer, now)
        else:
            assert isinstance(answer, WaitUntil)
            now = answer.time
    assert len(again) > 10
    for first, begin in enumerate(again):
        for last in range(first, len(again)):
            assert last - first + 1 <= rate * (again[last] - begin) + burst_of(rate) + 1e-6


@pytest.mark.parametrize("sites", [1, 3])
def test_a_crawl_that_is_not_continuous_ends_with_its_new_pages(sites: int) -> None:
    agenda, now = agenda_of("uniform", 12, sites, Turns(share=0.5), 1.0, continuous=False), BEGAN
    for _ in range(1000):
        answer = agenda.next(now)
        if isinstance(answer, Drained):
            return
        if isinstance(answer, Visit):
            now += 0.01
            finish_visit(agenda, answer, now)
        else:
            assert isinstance(answer, WaitUntil)
            now = answer.time
    pytest.fail("it goes on and on")


def test_a_resumed_crawl_starts_without_a_burst() -> None:
    frontier = Frontier(load_strategy("breadth-first"), Rules(delay_s=1.0))
    new, old = (Refresher(policy_named("uniform"), BEGAN) for _ in range(2))
    old.join(0, 0, BEGAN)
    for refresher, at_once in ((new, int(burst_of(1.0))), (old, 0)):
        turns = Turns(rate=1.0)
        Agenda(frontier, refresher, turns)
        assert turns.most(BEGAN) == at_once
