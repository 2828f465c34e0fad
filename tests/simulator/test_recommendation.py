"""The search for the best settings: its advice holds on draws that it has not seen, and never breaks the user's limits."""

from collections.abc import Sequence

import pytest

from trapline.defaults import TRIED_PER_CONNECTION
from trapline.errors import ConfigError
from trapline.graph import generate
from trapline.report.recommendation_page import advice, grounds, recommendation_table
from trapline.simulator.arena import Arena, arena_of
from trapline.simulator.recommendation import (
    ROUNDS,
    CrawlBudget,
    CrawlSetting,
    Recommendation,
    TrialRunner,
    Trials,
    TriedConditions,
    live_only,
    nearest_to,
    needs_future,
    planned_crawls,
    recommend,
)
from trapline.strategies.base.chosen import named, ready

PAGES, SITES, DRAWS = 400, 20, 3
GIVEN = {"delay": (15.0,), "per_connection": TRIED_PER_CONNECTION}
MINUTE = CrawlBudget(time_s=60.0)
HOUR_OR_SO = CrawlBudget(time_s=59 * 60.0)  # a curve has 60 points, so one at every minute


def conditions(budget: CrawlBudget, connections: Sequence[int] = (10,), **given: object) -> TriedConditions:
    return TriedConditions.of(budget, connections, GIVEN | given)


def arena(plans: TriedConditions) -> Arena:
    return arena_of(generate(PAGES, SITES, seed=2), plans.default)


def setting(name: str, plans: TriedConditions) -> CrawlSetting:
    return plans.setting(ready(named(name), "opic", False))


def searched(budget: CrawlBudget, *names: str, **given: object) -> Recommendation:
    plans = conditions(budget, **given)
    every = [ready(named(name), "opic", False) for name in names]
    default, first = setting("crawl-ability", plans), setting("breadth-first", plans)
    return recommend(arena(plans), budget, plans.settings(every), default, first, DRAWS)


def crawled(one: CrawlSetting, budget: CrawlBudget, plans: TriedConditions, draws: Sequence[int]) -> Trials:
    trials = Trials(one)
    TrialRunner(arena(plans), budget, lambda _: None).add(trials, draws)
    return trials


def test_a_budget_without_a_limit_is_refused() -> None:
    with pytest.raises(ConfigError, match="give --time, --pages or both"):
        CrawlBudget()


def test_no_crawl_exceeds_the_budget() -> None:
    budget = CrawlBudget(time_s=90.0, pages=60)
    found = searched(budget, "breadth-first", "opic")
    for trials in found.best:
        assert max(trials.seconds) <= 90.0 and max(trials.pages) <= 60
        assert all(0.0 < share < 1.0 for share in trials.shares)


def test_a_crawl_that_ends_in_time_fetches_what_a_full_crawl_has_fetched_by_then() -> None:
    plans = conditions(MINUTE)
    one = setting("opic", plans)
    part, whole = (crawled(one, budget, plans, [0]) for budget in (MINUTE, HOUR_OR_SO))
    (curve,), (longer,) = part.curves, whole.curves
    assert (
        0.0 < part.shares[0] == curve[-1] == longer[1] < longer[-1]
    )  # the second point of the longer curve is at a minute
    assert (curve[1:] >= curve[:-1]).all() and (longer[1:] >= longer[:-1]).all()


def test_the_advice_is_judged_on_draws_that_the_search_has_not_seen() -> None:
    found = searched(MINUTE, "breadth-first", "opic", "depth")
    plans = conditions(MINUTE)
    assert all(len(trials.shares) == DRAWS for trials in found.best)
    again = crawled(found.advised.setting, MINUTE, plans, range(ROUNDS[-1], ROUNDS[-1] + DRAWS))
    assert again.shares == found.advised.shares


def test_the_advice_is_never_worse_than_the_default_on_these_draws() -> None:
    for budget in (MINUTE, CrawlBudget(pages=100)):
        found = searched(budget, "breadth-first", "opic", "random")
        assert found.advised.mean >= found.default.mean
        assert found.keeps_default == (found.advised is found.default)


def test_a_setting_that_is_better_on_every_draw_is_the_advice() -> None:
    """Ten connections fetch more in a minute than one."""
    plans = conditions(MINUTE, (10, 1), per_connection=(1,))
    many, one = plans.settings([ready(named("opic"), "opic", False)])
    found = recommend(arena(plans), MINUTE, [many], one, one, DRAWS)
    assert (many.conditions.connections, one.conditions.connections) == (10, 1)
    assert found.advised.setting == many and not found.keeps_default
    assert min(found.advised.shares) > max(found.default.shares)


def test_the_advice_is_reproducible() -> None:
    one, other = (searched(MINUTE, "opic", "breadth-first") for _ in range(2))
    assert recommendation_table(one) == recommendation_table(other)


def test_a_limit_on_pages_alone_does_not_vary_connections_and_pages_per_visit() -> None:
    assert len(conditions(CrawlBudget(pages=9)).every) == 1
    assert len(conditions(MINUTE).every) == 6  # 10 and 1 connections, three k
    assert len(conditions(CrawlBudget(pages=9), per_connection=(1, 5)).every) == 2


def test_with_http_1_0_every_visit_has_one_page() -> None:
    plans = conditions(MINUTE, protocol="http/1.0")
    assert {one.rules.per_connection for one in (*plans.every, plans.default)} == {1}


def test_the_delay_is_kept_and_every_setting_stays_within_what_the_user_allows() -> None:
    plans = conditions(MINUTE, (8,), delay=(20.0,), per_connection=(2, 3))
    assert {one.rules.delay_s for one in (*plans.every, plans.default)} == {20.0}
    assert {one.rules.per_connection for one in plans.every} == {2, 3}
    assert max(one.connections for one in plans.every) == 8
    assert (plans.default.connections, plans.default.rules.per_connection) == (8, 3)
    assert nearest_to(10, [0]) == 0


def test_no_strategy_knows_the_pagerank_of_pages_that_are_not_fetched() -> None:
    omniscient, opic = named("omniscient"), named("opic")
    assert needs_future(omniscient) and live_only([omniscient, opic]) == [opic]


def test_settings_that_make_the_same_crawl_are_crawled_once() -> None:
    plans = conditions(MINUTE, (SITES, SITES + 50))
    one, other = (setting("opic", TriedConditions([c], c)) for c in plans.every[:: len(TRIED_PER_CONNECTION)])
    assert one.conditions.connections != other.conditions.connections
    assert one.same_crawl(SITES) == other.same_crawl(SITES) and one.same_crawl(1000) != other.same_crawl(1000)
    twice = searched(MINUTE, "crawl-ability", "quality", "quality+crawl-ability")
    assert twice.settings == searched(MINUTE, "crawl-ability", "quality").settings


def test_a_search_makes_no_more_crawls_than_planned() -> None:
    found = searched(MINUTE, "breadth-first", "opic", "depth", "random")
    assert 0 < found.crawls <= planned_crawls(found.settings, DRAWS, 2)


def test_the_advice_says_when_the_budget_is_enough_for_everything() -> None:
    found = searched(CrawlBudget(pages=PAGES), "breadth-first")
    assert found.keeps_default and found.covers_all and "enough for everything" in " ".join(advice(found))


def judged(plans: TriedConditions, strategy: str, *shares: float) -> Trials:
    """Trials with these shares of the PageRank, without a crawl."""
    return Trials(setting(strategy, plans), list(shares), [9] * len(shares), [1.0] * len(shares))


def found_by_hand(default: Trials, first: Trials, other: Trials) -> Recommendation:
    """The search had no winner that matters, so the default is kept."""
    best = sorted((default, first, other), key=lambda trials: -trials.mean)
    return Recommendation(MINUTE, default, default, first, best, settings=9, crawls=99)


def test_the_advice_names_a_setting_that_is_clearly_better_although_it_did_not_win_the_search() -> None:
    plans = conditions(MINUTE)
    default, first = judged(plans, "crawl-ability", 0.5, 0.6, 0.7), judged(plans, "breadth-first", 0.4, 0.5, 0.6)
    said = " ".join(advice(found_by_hand(default, first, judged(plans, "opic", 0.55, 0.65, 0.75))))
    assert (
        "opic, r = 10, k = 10, w = 15 s fetched +5.00 ± 0.00 points more" in said and "did not win the search" in said
    )
    assert "No other setting is clearly better" not in said
    said = " ".join(advice(found_by_hand(default, first, judged(plans, "opic", 0.4, 0.7, 0.71))))
    assert "No other setting is clearly better; the nearest, opic, r = 10" in said


def test_the_advice_says_why_another_row_has_more() -> None:
    plans = conditions(MINUTE)
    default, advised = judged(plans, "breadth-first", 0.4, 0.5, 0.6), judged(plans, "crawl-ability", 0.5, 0.6, 0.7)

    def said(other: Trials) -> str:
        best = sorted((default, advised, other), key=lambda trials: -trials.mean)
        return " ".join(advice(Recommendation(MINUTE, advised, default, default, best, settings=9, crawls=99)))

    better = said(judged(plans, "opic", 0.55, 0.65, 0.75))
    assert (
        "opic, r = 10, k = 10, w = 15 s fetched +5.00 ± 0.00 points more than the advice on these draws, but" in better
    )
    assert "the search chose the advice before, on other draws, and the best of several" in better
    assert "which may be chance, because the interval contains 0; the search" in said(
        judged(plans, "opic", 0.4, 0.7, 0.8)
    )
    assert "the search" not in said(judged(plans, "opic", 0.4, 0.5, 0.6))


def test_the_advice_says_how_much_longer_it_takes_if_the_budget_has_no_time() -> None:
    plans, pages = conditions(MINUTE), CrawlBudget(pages=9)
    default, advised = judged(plans, "breadth-first", 0.4, 0.5), judged(plans, "opic", 0.5, 0.6)

    def said(budget: CrawlBudget, seconds: float) -> str:
        advised.seconds = [seconds, seconds]
        return " ".join(advice(Recommendation(budget, advised, default, default, [advised, default], 9, 99)))

    default.seconds = [100.0, 100.0]
    assert "It takes 5 min, the default 100 s" in said(pages, 300.0)
    assert "It takes" not in said(pages, 199.0) and "It takes" not in said(MINUTE, 300.0)


def test_a_crawl_that_fetched_less_is_said_to_have_fetched_less() -> None:
    plans = conditions(MINUTE)
    default, first = judged(plans, "crawl-ability", 0.5, 0.6), judged(plans, "breadth-first", 0.51, 0.61)
    said = " ".join(advice(found_by_hand(default, first, judged(plans, "opic", 0.4, 0.5))))
    assert "1.00 ± 0.00 percentage points less than breadth-first" in said and "-1.00" not in said


def test_the_advice_says_that_it_rests_on_a_sample() -> None:
    found = searched(CrawlBudget(pages=300), "breadth-first")
    assert "--sample" in " ".join(grounds(found, PAGES, SITES, "measured"))
    sampled = " ".join(grounds(found, PAGES, SITES, "measured", 0.1))
    assert "sample of 0.1 of the pages" in sampled and "--sample" not in sampled
