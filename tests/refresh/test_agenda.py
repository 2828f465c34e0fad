"""Whatever there is to fetch, whoever found nothing is told a later moment: nobody asks in a circle."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from trapline.frontier import FETCHED, Drained, Frontier, Outcome, Result, Rules, Visit, WaitUntil
from trapline.refresh.agenda import Agenda
from trapline.refresh.refresher import Refresher
from trapline.refresh.registry import policy_named
from trapline.refresh.turns import Turns
from trapline.strategies import load_strategy

BEGAN = 1.7e9


def agenda_of(policy: str, pages: int, sites: int, turns: Turns, delay_s: float, continuous: bool = True) -> Agenda:
    """A frontier with these pages, the first of each site a seed that links to all."""
    frontier = Frontier(load_strategy("breadth-first"), Rules(delay_s=delay_s, per_connection=10))
    frontier.add_sites(sites, BEGAN, list(range(sites)))
    frontier.add_pages([page % sites for page in range(pages)])
    frontier.discover(list(range(pages)), BEGAN)
    return Agenda(frontier, Refresher(policy_named(policy), BEGAN), turns, continuous)


def fetched(agenda: Agenda, visit: Visit, now: float) -> None:
    results = [Result(page, FETCHED) for page in visit.pages]
    agenda._frontier.finish(visit, Outcome(results), now)
    for page in visit.pages:
        agenda.came(page, visit.site, FETCHED, now, changed=page % 3 == 0)
    agenda.over(visit, now)


@settings(max_examples=25, deadline=None)
@given(
    some.sampled_from(["residual-life", "uniform", "cgm"]),
    some.integers(1, 200),
    some.integers(1, 8),
    some.sampled_from([Turns, lambda: Turns(price=1e9), lambda: Turns(price=1e-9), lambda: Turns(rate=0.3)]),
    some.sampled_from([0.0, 1.0, 60.0]),
)
def test_who_waits_is_told_a_later_moment(policy: str, pages: int, sites: int, turns: object, delay_s: float) -> None:
    agenda, now = agenda_of(policy, max(pages, sites), sites, turns(), delay_s), BEGAN  # type: ignore[operator]
    for _ in range(300):
        answer = agenda.next(now)
        if isinstance(answer, Visit):
            now += 0.01
            fetched(agenda, answer, now)
        else:
            assert isinstance(answer, WaitUntil) and answer.time > now
            now = min(answer.time, now + 1000.0)


def test_one_page_that_always_changes_leaves_the_new_ones_of_its_site_their_share() -> None:
    """Everybody reads it, and other sites have new pages without end: by the share of all alone it would take every visit of its site."""
    frontier = Frontier(load_strategy("breadth-first"), Rules(delay_s=1.0, per_connection=10))
    frontier.add_sites(9, BEGAN, list(range(9)))
    frontier.add_pages([0] * 100 + [1 + page % 8 for page in range(20_000)])
    frontier.set_site(0, BEGAN, per_connection=1)
    frontier.discover(list(range(20_100)), BEGAN)
    agenda, now = Agenda(frontier, Refresher(policy_named("residual-life"), BEGAN), Turns(share=0.5)), BEGAN
    asked = {True: 0, False: 0}  # at its site: again or new
    for _ in range(600):
        answer = agenda.next(now)
        if isinstance(answer, WaitUntil):
            now = answer.time
            continue
        assert isinstance(answer, Visit)
        now += 0.01
        asked[answer.pages[0] in agenda.under_way] += len(answer.pages) * (answer.site == 0)
        fetched(agenda, answer, now)
        if 0 in answer.pages:
            agenda.refresher.accessed(0, now, 1000.0)
    assert asked[True] > 10 and asked[False] >= min(100, asked[True])


@pytest.mark.parametrize("sites", [1, 3])
def test_a_crawl_that_is_not_continuous_ends_with_its_new_pages(sites: int) -> None:
    agenda, now = agenda_of("uniform", 12, sites, Turns(share=0.5), 1.0, continuous=False), BEGAN
    for _ in range(1000):
        answer = agenda.next(now)
        if isinstance(answer, Drained):
            return
        if isinstance(answer, Visit):
            now += 0.01
            fetched(agenda, answer, now)
        else:
            assert isinstance(answer, WaitUntil)
            now = answer.time
    pytest.fail("it goes on and on")
