"""`next` does what `explain` says, on random webs, at every call of a crawl."""

import math
from typing import Any

import pytest

from tests.effort import sample
from tests.frontier.test_replay import assert_same_state
from tests.frontier.worlds import HOSTILE_WORLDS, PAIRS, Rank, World, check_webs, drive, fast_frontier
from trapline.frontier import FAILED, FETCHED, Frontier, Outcome, Rescore, Result, Rules, Visit
from trapline.frontier.core.learning import MOST_CHECKS
from trapline.frontier.explain import MAY_BE_VISITED, SiteExplanation
from trapline.frontier.layout import FrontierState
from trapline.strategies import pair

NOT_OF_BATCH = "no page of it is in the current batch"


def copy_of(frontier: Frontier) -> Frontier:
    """A copy of a frontier that can be called and thrown away. Most of its memory is unused pool."""
    used = frontier.state._replace(pool=frontier.state.pool[: frontier.state.run[0].pool])
    return Frontier.from_state(FrontierState(*(array.copy() for array in used)), frontier.strategy, frontier.rules)


def an_expiry_is_due(frontier: Frontier, now: float) -> bool:
    visits = frontier.state.visit
    return bool(((visits["id"] >= 0) & (visits["expires_at"] <= max(now, frontier.state.run[0].now))).any())


def scores_are_due(frontier: Frontier, now: float) -> bool:
    """Nothing is visited before the scores come, and they change the order."""
    return bool(frontier.strategy.page.scores) and isinstance(copy_of(frontier).next(now), Rescore)


class Explained:
    """A frontier that explains every site before each `next`, and compares the explanations with the answer."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.promised: dict[int, list[SiteExplanation]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.frontier, name)

    def resolve(self, site: int, group: int, now: float) -> None:
        self.frontier.resolve(site, group, now)
        self.promised.pop(site, None)  # a new address has its own delay

    def next(self, now: float) -> Any:
        copy = copy_of(self.frontier)
        explained = [copy.explain_site(site, now) for site in range(copy.sites)]
        if not an_expiry_is_due(self.frontier, now) and not scores_are_due(self.frontier, now):
            if self.frontier.strategy.page.learns:
                check_learned(copy_of(self.frontier), now)
            else:
                check_order(copy_of(self.frontier), explained, now)
                check_pages(copy_of(self.frontier), now)
        answer = self.frontier.next(now)
        if isinstance(answer, Visit):
            self.check_promises(answer.site, float(self.frontier.state.run[0].now))
        for one in explained:
            if "is delayed" in one.rule:
                self.promised.setdefault(one.site, []).append(one)
        return answer

    def revisit(self, site: int, pages: Any, now: float) -> Any:
        answer = self.frontier.revisit(site, pages, now)
        if isinstance(answer, Visit):
            self.check_promises(site, float(self.frontier.state.run[0].now))
            assert all(self.frontier.explain_page(page, now).life == "revisited" for page in answer.pages)
        return answer

    def check_promises(self, site: int, time: float) -> None:
        """Check that no site was visited before the end of its explained delay. Only a new address ends a delay early."""
        assert all(one.wait_until <= time for one in self.promised.pop(site, []))


def check_order(frontier: Frontier, explained: list[SiteExplanation], now: float) -> None:
    """The sites that may be visited are visited in the explained order, as far as each is alone on its address."""
    may = sorted((one for one in explained if one.rule == MAY_BE_VISITED), key=lambda one: one.sites_before or 0)
    assert [one.sites_before for one in may] == list(range(len(may)))
    sites = [one.site for one in may]
    for at, one in enumerate(may):
        assert one.first_before == tuple(sites[: min(at, 5)])
    first_of_group = {one.group: one.site for one in reversed(may)}
    expected = [one.site for one in may if first_of_group[one.group] == one.site]
    answers = [frontier.next(now) for _ in expected]
    assert [answer.site for answer in answers if isinstance(answer, Visit)] == expected
    if not expected:
        answer = frontier.next(now)
        # Only a new batch can make a site visitable that was not visitable before.
        assert not isinstance(answer, Visit) or explained[answer.site].rule == NOT_OF_BATCH


def check_pages(frontier: Frontier, now: float) -> None:
    before = copy_of(frontier)
    answer = frontier.next(now)
    if isinstance(answer, Visit) and before.explain_site(answer.site, now).rule == MAY_BE_VISITED:
        explained = [before.explain_page(page, now) for page in answer.pages]
        assert [one.pages_before for one in explained] == list(range(len(explained)))
        keys = [one.key for one in explained]
        assert keys == sorted(keys, reverse=True)
        assert all(one.life == "waiting" and one.site.sites_before == 0 for one in explained)
        assert all(frontier.explain_page(page, now).life == "leased" for page in answer.pages)


def check_learned(frontier: Frontier, now: float) -> None:
    """A page rank that learns ranks a few pages again before the visit: so many sites and pages may have seemed better."""
    before = copy_of(frontier)
    answer = frontier.next(now)
    if isinstance(answer, Visit) and (site := before.explain_site(answer.site, now)).rule == MAY_BE_VISITED:
        assert site.sites_before is not None and site.sites_before <= MOST_CHECKS
        for place, page in enumerate(answer.pages):
            before_it = before.explain_page(page, now).pages_before
            assert before_it is not None and before_it <= place + MOST_CHECKS


@pytest.mark.parametrize("rank", sample(PAIRS, 5), ids="-x-".join)
def test_next_does_what_explain_says(rank: Rank) -> None:
    def check(world: World) -> None:
        drive(Explained(fast_frontier(rank, world)), world)

    check_webs(check, HOSTILE_WORLDS, rank, compiled=10, uncompiled=10)


# Worked out by hand: each rule once.


def small(**rules: Any) -> Frontier:
    """Pages 0 and 1 of site 0, page 2 of site 1 on the same address, and page 3 of site 2, which has no address."""
    frontier = Frontier(pair("opic", "top-page"), Rules(**rules))
    frontier.add_sites(3, 0.0, groups=[0, 0, -1])
    frontier.add_pages([0, 0, 1, 2])
    frontier.discover([0, 1, 2, 3], 0.0)
    return frontier


def visited(frontier: Frontier, result: int, now: float) -> Visit:
    visit = frontier.next(now)
    assert isinstance(visit, Visit)
    results = [Result(page, result) for page in visit.pages]
    frontier.finish(visit, Outcome(results=results), now + 1.0)
    return visit


def test_an_explanation_worked_out_by_hand() -> None:
    frontier = small(delay_s=15.0, ip_delay_s=2.0)
    assert str(frontier.explain_site(0, 0.0)) == (
        "site 0: 2 pages waiting, rank 1, 0 sites before it; it may be visited"
    )
    assert str(frontier.explain_site(1, 0.0)) == (
        "site 1: 1 pages waiting, rank 1, 1 sites before it (0); it may be visited"
    )
    assert str(frontier.explain_site(2, 0.0)) == ("site 2: 1 pages waiting, rank 1; its address is not known yet")
    assert str(frontier.explain_page(1, 0.0)) == (
        "page 1: waiting (depth 0, 0 failed tries), rank 1, 1 pages of its site before it; it is in the queue of its site\n"
        "site 0: 2 pages waiting, rank 1, 0 sites before it; it may be visited"
    )
    visited(frontier, FETCHED, 0.0)  # the visit ends at 1.0: site 0 is delayed until 16.0, its address until 3.0
    assert str(frontier.explain_site(0, 1.0)) == (
        "site 0: 1 pages waiting, rank 1; it waits because of its delay until 16"
    )
    assert str(frontier.explain_site(1, 1.0)) == (
        "site 1: 1 pages waiting, rank 1; it waits because of the delay of its address until 3"
    )
    assert frontier.explain_page(0, 1.0).rule == "it is fetched"


def test_a_site_waits_for_its_address_until_the_lease_ends() -> None:
    frontier = small(lease_s=30.0)
    frontier.next(5.0)
    assert (frontier.explain_site(0, 6.0).wait_until, frontier.explain_site(1, 6.0).wait_until) == (35.0, 35.0)
    assert "site 0 on the same address" in frontier.explain_site(1, 6.0).rule
    assert frontier.explain_page(0, 6.0).life == "leased"


def test_a_failed_visit_is_named_as_the_cause_of_the_back_off() -> None:
    frontier = small(backoff_s=60.0)
    visited(frontier, FAILED, 0.0)
    explained = frontier.explain_site(0, 1.0)
    assert explained.wait_until == 61.0 and explained.rule.endswith("back-off after 1 failed visit")
    assert frontier.explain_page(0, 1.0).tries == 1


def test_a_wait_without_a_known_end_has_no_moment() -> None:
    budget = small(pages_per_site=1, delay_s=0.0)
    visited(budget, FETCHED, 0.0)
    batch = small(batch=1)
    batch.next(0.0)
    rules = {
        "its page budget is used up:": budget.explain_site(0, 1.0),
        "no page of it is in the current batch": batch.explain_site(1, 1.0),
        "its address is not known yet": batch.explain_site(2, 1.0),
    }
    for rule, explained in rules.items():
        assert explained.rule.startswith(rule) and explained.wait_until == math.inf and explained.sites_before is None
    visited(budget, FETCHED, 1_000.0)
    assert budget.explain_site(1, 1_000.0).rule == "no page is waiting"


def test_a_page_under_revisit_is_explained_as_fetched_and_under_visit() -> None:
    frontier = small(delay_s=1.0)
    visited(frontier, FETCHED, 0.0)
    assert isinstance(frontier.revisit(0, [0], 2.0), Visit)
    explained = frontier.explain_page(0, 3.0)
    assert (explained.life, explained.rule) == ("revisited", "it is fetched, and a visit is fetching it again")
    assert explained.site.rule == "a visit is in progress and holds a lease" and explained.site.wait_until == 602.0


def test_explaining_only_reads() -> None:
    """Otherwise a crawl that was inspected would differ from its replay."""
    frontier = small()
    untouched = copy_of(frontier)
    for site in range(3):
        frontier.explain_site(site, 7.0)
    for page in range(4):
        frontier.explain_page(page, 7.0)
    assert_same_state(frontier, untouched)
