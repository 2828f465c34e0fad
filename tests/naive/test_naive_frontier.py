"""The oracle, against numbers worked out by hand. Agreement with the fast frontier alone would not show that both are right."""

import math

import pytest

from tests.naive.frontier import (
    AS_RULES,
    FAILED,
    FETCHED,
    REFUSED,
    Drained,
    NaiveFrontier,
    Outcome,
    Rescore,
    Result,
    Rules,
    Visit,
    WaitUntil,
    exact_sum,
    median,
)
from tests.naive.ranks import twin_of_page_rank, twin_of_site_rank, uniform
from trapline.errors import ConfigError, InvariantError


def web(frontier: NaiveFrontier, groups: list[int], pages: list[int], quality: list[float] | None = None) -> None:
    """Register sites with these groups and pages with these sites at time 0."""
    frontier.add_sites(len(groups), 0.0, groups=groups)
    frontier.add_pages(pages)
    if quality:
        frontier.set_column("quality", quality)


def visit(number: int) -> Visit:
    """A visit that is known by its id alone."""
    return Visit(number, -1, (), math.nan)


def done(page: int, *links: int, result: str = FETCHED, **facts: float) -> Outcome:
    return Outcome((Result(page, result, links),), **facts)  # type: ignore[arg-type]


def test_three_sites_of_which_two_share_an_address() -> None:
    frontier = NaiveFrontier("fifo", "fifo", Rules(delay_s=10.0, ip_delay_s=2.0))
    web(frontier, groups=[0, 0, 1], pages=[0, 0, 1, 2])
    frontier.discover([0, 1, 2, 3], 0.0)  # serials 0 to 3
    assert frontier.next(0.0) == Visit(0, 0, (0,), 600.0)
    # Site 1 (serial 2) shares the address under visit, so site 2 (serial 3) is next.
    assert frontier.next(0.0) == Visit(1, 2, (3,), 600.0)
    assert frontier.next(0.0) == WaitUntil(600.0)
    # Site 0 is delayed until 1 + 10, its address until 1 + 2.
    assert frontier.finish(visit(0), done(0), 1.0)
    assert frontier.next(1.0) == WaitUntil(3.0)
    assert frontier.next(3.0) == Visit(2, 1, (2,), 603.0)
    # The address is free from 4 + 2, site 0 from 11.
    assert frontier.finish(visit(2), done(2), 4.0)
    assert frontier.next(4.0) == WaitUntil(11.0)
    assert frontier.next(11.0) == Visit(3, 0, (1,), 611.0)
    assert frontier.finish(visit(1), done(3), 11.5)
    assert frontier.finish(visit(3), done(1), 12.0)
    assert frontier.next(12.0) == Drained()


def test_opic_cash_on_four_pages() -> None:
    frontier = NaiveFrontier("opic", "top-page", Rules(delay_s=0.0, backoff_s=0.0))
    web(frontier, groups=[0, 1], pages=[0, 0, 0, 1])
    frontier.discover([0], 0.0)  # cash 1
    assert frontier.next(0.0) == Visit(0, 0, (0,), 600.0)
    # Four links share 1: page 1 has 1.25, page 2 (linked twice) 1.5, page 3 1.25.
    frontier.finish(visit(0), done(0, 1, 2, 2, 3), 1.0)
    assert [page.rank for page in frontier.pages] == [1.0, 1.25, 1.5, 1.25]
    assert frontier.next(1.0) == Visit(1, 0, (2,), 601.0)
    # Two links share 1.5: pages 1 and 3 have 2.0 each. Both sites rank 2.0; page 1 has the smaller serial.
    frontier.finish(visit(1), done(2, 3, 1), 2.0)
    assert frontier.next(2.0) == Visit(2, 0, (1,), 602.0)
    # A failed try halves the key of page 1 to 1.0; page 3 keeps 2.0.
    frontier.finish(visit(2), done(1, result=FAILED), 3.0)
    assert frontier.pages[1].key == 1.0
    assert frontier.next(3.0) == Visit(3, 1, (3,), 603.0)
    # A link raises it while it waits: rank 2.0 + 2.0 / 1 = 4.0, key 2.0.
    frontier.finish(visit(3), done(3, 1), 4.0)
    assert (frontier.pages[1].rank, frontier.pages[1].key) == (4.0, 2.0)


def test_crawl_ability_is_constant_between_evaluations() -> None:
    frontier = NaiveFrontier("quality", "crawl-ability", Rules(per_connection=2))
    web(frontier, groups=[0, 1], pages=[0, 0, 0, 1, 1, 1], quality=[0.5, 1.0, 0.25, 1.0, 0.25, 0.5])
    frontier.discover([0, 1, 2, 3, 4], 0.0)
    one, two = frontier.sites
    assert one.competing is not None and two.competing is not None
    # T = 2 * 0.1 + 2 * 0.1 for both; the best two pages have 1.5 and 1.25.
    assert one.competing.rank == pytest.approx(3.75)
    assert two.competing.rank == pytest.approx(3.125)
    assert frontier.next(0.0) == Visit(0, 0, (1, 0), 600.0)
    frontier.report(visit(0), 1, FETCHED, 1.0, response_s=0.6)
    assert one.response_s == pytest.approx(0.1 * 0.8 + 0.6 * 0.2)  # 0.2
    frontier.finish(visit(0), Outcome((Result(0, FETCHED, (), 0.6),), connection_s=1.1), 2.0)
    assert one.response_s == pytest.approx(0.28)  # 0.2 * 0.8 + 0.12
    assert one.connection_s == pytest.approx(0.3)  # 0.1 * 0.8 + 0.22
    # Site 1 shows the mean of the measured sites only when it is evaluated again.
    assert two.competing.rank == pytest.approx(3.125)
    frontier.discover([5], 3.0)
    assert two.competing.rank == pytest.approx(1.5 / (0.6 + 2 * 0.28))
    # The next first measurement starts from the mean: 0.28 * 0.8 + 0.2 * 0.28 = 0.28; the total is then 0.56.
    assert frontier.next(3.0) == Visit(1, 1, (3, 5), 603.0)
    frontier.report(visit(1), 3, REFUSED, 4.0, response_s=0.28)
    assert frontier.responses.total == pytest.approx(0.56)
    assert frontier.responses.number == 2


def test_exact_sum() -> None:
    assert exact_sum([]) == 0.0
    assert exact_sum([2.0**-63]) == 0.0
    assert exact_sum([-(2.0**-40)]) == -(2.0**-40)
    assert exact_sum([2.0**51, 2.0**-60, -(2.0**51)]) == 2.0**-60
    assert exact_sum([0.1] * 10) != sum([0.1] * 10)  # The tenth float addition has lost a bit; the exact sum has not.
    assert exact_sum([-0.75, 0.5]) == -0.25


def test_a_lost_visit_expires_fails_and_backs_off() -> None:
    rules = Rules(delay_s=1.0, lease_s=10.0, backoff_s=4.0, backoff_most_s=6.0, retries=1, per_connection=2)
    frontier = NaiveFrontier("fifo", "fifo", rules)
    web(frontier, groups=[0], pages=[0, 0])
    frontier.discover([0, 1], 0.0)
    assert frontier.next(0.0) == Visit(0, 0, (0, 1), 10.0)
    assert frontier.report(visit(0), 0, FETCHED, 2.0)
    assert frontier.next(5.0) == WaitUntil(10.0)
    # Found at 12: page 1 failed once. The back-off of 4 s is longer than the delay of 1 s.
    assert frontier.next(12.0) == WaitUntil(16.0)
    assert not frontier.finish(visit(0), done(1), 13.0)
    assert not frontier.report(visit(0), 1, FETCHED, 13.0)
    assert frontier.next(16.0) == Visit(1, 0, (1,), 26.0)
    # A second failure: the page is gone, with a back-off of min(8, 6) s for the next visit.
    frontier.finish(visit(1), done(1, result=FAILED), 17.0)
    assert [frontier.page_state(page) for page in (0, 1)] == [3, 4]
    assert frontier.sites[0].ready_at == 23.0
    assert frontier.next(17.0) == Drained()


def test_a_failed_site_backs_off_and_no_page_is_charged() -> None:
    rules = Rules(delay_s=1.0, backoff_s=4.0, backoff_most_s=6.0, retries=0, per_connection=2)
    frontier = NaiveFrontier("quality", "fifo", rules)
    web(frontier, groups=[0], pages=[0, 0, 0], quality=[0.5, 0.25, 0.125])
    frontier.discover([0, 1, 2], 0.0)
    before = [(page.key, page.serial, page.tries) for page in frontier.pages]
    # Back-off of 4 s, then min(8, 6). With one retry less, a failed page would be gone.
    for number, (now, ready_at) in enumerate([(0.0, 4.0), (4.0, 10.0), (10.0, 16.0)]):
        assert frontier.next(now) == Visit(number, 0, (0, 1), now + 600.0)
        frontier.finish(visit(number), Outcome(failed=True), now)
        assert frontier.sites[0].ready_at == ready_at and frontier.sites[0].failures == number + 1
    assert [(page.key, page.serial, page.tries) for page in frontier.pages] == before
    # A page that was fetched before the site failed stays fetched, and the failure counts.
    frontier.next(16.0)
    frontier.finish(visit(3), Outcome((Result(0, FETCHED),), failed=True), 17.0)
    assert frontier.sites[0].failures == 4
    # A visit that brings a page ends the back-off.
    frontier.next(23.0)
    frontier.finish(visit(4), done(1), 24.0)
    assert frontier.sites[0].failures == 0 and frontier.sites[0].ready_at == 25.0


def test_the_server_limits_the_pages_of_a_visit() -> None:
    frontier = NaiveFrontier("fifo", "fifo", Rules(delay_s=0.0, per_connection=0, first_requests=3))
    web(frontier, groups=[0], pages=[0] * 9)
    frontier.discover(range(9), 0.0)
    assert frontier.next(0.0) == Visit(0, 0, (0, 1, 2), 600.0)
    # The server closed after two pages. The page without a result returns as it was.
    results = (Result(0, FETCHED), Result(1, FETCHED))
    frontier.finish(visit(0), Outcome(results, served=2, closed=True), 0.0)
    assert frontier.next(0.0) == Visit(1, 0, (2, 3), 600.0)
    frontier.finish(visit(1), Outcome((), served=0, closed=True, allowed=4), 0.0)
    assert frontier.next(0.0) == Visit(2, 0, (2, 3, 4, 5), 600.0)


def test_a_batch_is_fetched_before_the_next_is_chosen() -> None:
    frontier = NaiveFrontier("fifo", "larger-sites-first", Rules(delay_s=10.0, batch=2))
    web(frontier, groups=[0, 1], pages=[0, 0, 1])
    frontier.discover([0, 1, 2], 0.0)
    # Site 0 has two pages and gives page 0. Then both sites have one page, and page 1 has the smaller serial. So site 1 must wait.
    assert frontier.next(0.0) == Visit(0, 0, (0,), 600.0)
    assert frontier.next(0.0) == WaitUntil(600.0)
    frontier.finish(visit(0), done(0), 1.0)
    assert frontier.next(1.0) == WaitUntil(11.0)
    assert frontier.next(11.0) == Visit(1, 0, (1,), 611.0)
    # The batch is leased and has not ended.
    assert frontier.next(11.0) == WaitUntil(611.0)
    frontier.finish(visit(1), done(1), 12.0)
    assert frontier.next(12.0) == Visit(2, 1, (2,), 612.0)


def test_batches_end_early_or_are_chosen_ahead() -> None:
    for options in ({"batch_least_active": 2}, {"batch_ahead": True}):
        frontier = NaiveFrontier("fifo", "larger-sites-first", Rules(batch=1, **options))
        web(frontier, groups=[0, 1], pages=[0, 1])
        frontier.discover([0, 1], 0.0)
        assert frontier.next(0.0) == Visit(0, 0, (0,), 600.0)
        assert frontier.next(0.0) == Visit(1, 1, (1,), 600.0)


def test_budgets_and_depth_limit_the_pages() -> None:
    frontier = NaiveFrontier("fifo", "fifo", Rules(delay_s=0.0, pages_per_site=2, per_connection=5, depth_static=1))
    web(frontier, groups=[0], pages=[0] * 5)
    frontier.discover([0], 0.0)
    assert frontier.next(0.0) == Visit(0, 0, (0,), 600.0)
    frontier.finish(visit(0), done(0, 1, 2), 0.0)
    # One page of the budget of two is left.
    assert frontier.next(0.0) == Visit(1, 0, (1,), 600.0)
    # Page 3 would be at depth 2, and page 2 waits for ever.
    frontier.finish(visit(1), done(1, 3), 0.0)
    assert [frontier.page_state(page) for page in range(5)] == [3, 3, 1, 0, 0]
    assert frontier.next(0.0) == Drained()
    frontier.set_site(0, 0.0, pages=3)
    assert frontier.next(0.0) == Visit(2, 0, (2,), 600.0)


def test_unresolved_sites_wait_for_an_address() -> None:
    frontier = NaiveFrontier("fifo", "fifo", Rules())
    frontier.add_sites(1, 0.0)
    frontier.add_pages([0])
    frontier.discover([0], 0.0)
    assert frontier.next(0.0) == WaitUntil(math.inf)
    frontier.resolve(0, 7, 1.0)
    assert frontier.next(1.0) == Visit(0, 0, (0,), 601.0)
    with pytest.raises(InvariantError):
        frontier.resolve(0, 8, 2.0)


def test_delays_of_small_sites_own_delays_and_not_before() -> None:
    rules = Rules(delay_s=5.0, ip_delay_s=0.0, small_site_pages=3, small_site_delay_s=15.0)
    frontier = NaiveFrontier("fifo", "fifo", rules)
    web(frontier, groups=[0, 0], pages=[0, 0, 1, 1, 1])
    frontier.discover([0, 1, 2, 3], 0.0)
    small, other = frontier.sites
    frontier.next(0.0)
    frontier.finish(visit(0), done(0, 4), 1.0)  # the link makes site 1 known with three pages
    assert small.ready_at == 16.0  # two pages are small: 1 + 15
    frontier.next(1.0)
    frontier.finish(visit(1), done(2), 2.0)
    assert other.ready_at == 7.0  # 2 + 5
    frontier.set_site(0, 3.0, delay_s=0.5, not_before=12.0)
    assert small.ready_at == 16.0  # never lowered
    frontier.next(7.0)
    frontier.finish(visit(2), done(3, not_before=40.0), 8.0)
    assert other.ready_at == 40.0
    frontier.next(16.0)
    frontier.finish(visit(3), done(1), 17.0)
    assert small.ready_at == 17.5  # its own delay
    frontier.set_site(0, 18.0, delay_s=AS_RULES)
    assert frontier.delay_s(0) == 15.0  # two pages are small


def test_time_does_not_run_backwards() -> None:
    frontier = NaiveFrontier("fifo", "fifo", Rules())
    web(frontier, groups=[0], pages=[0])
    frontier.discover([0], 100.0)
    assert frontier.next(3.0) == Visit(0, 0, (0,), 700.0)


def test_a_moved_site_keeps_its_order_delay_and_budget() -> None:
    frontier = NaiveFrontier("quality", "top-page", Rules(delay_s=10.0, pages_per_site=9))
    web(frontier, groups=[0], pages=[0, 0, 0], quality=[3.0, 1.0, 2.0])
    frontier.set_site(0, 0.0, pages=2)
    frontier.discover([0, 1, 2], 0.0)
    frontier.next(0.0)
    with pytest.raises(InvariantError):
        frontier.export_site(0, 1.0)
    frontier.finish(visit(0), done(0), 1.0)
    export = frontier.export_site(0, 4.0)
    assert export.pages == (1, 2)  # by serial
    assert export.site_delay_s == 7.0  # 1 + 10 - 4
    other = NaiveFrontier("quality", "top-page", Rules(delay_s=10.0, pages_per_site=9))
    web(other, groups=[5], pages=[0, 0])
    other.import_site(export, 0, [0, 1], 100.0)
    assert other.next(100.0) == WaitUntil(107.0)
    assert other.next(107.0) == Visit(0, 0, (1,), 707.0)  # of quality 2
    # The budget of two is used up by the page fetched here and the one fetched there.
    other.finish(visit(0), done(1), 108.0)
    assert other.next(200.0) == Drained()
    assert [frontier.page_state(page) for page in range(3)] == [3, 4, 4]


def test_a_rank_that_is_not_a_number_is_refused() -> None:
    frontier = NaiveFrontier("quality", "top-page", Rules())
    web(frontier, groups=[0], pages=[0, 0], quality=[math.nan, 2.0**52])
    for page in (0, 1):
        with pytest.raises(ConfigError):
            frontier.discover([page], 0.0)


def test_sites_take_turns() -> None:
    frontier = NaiveFrontier("fifo", "fifo-turn", Rules(delay_s=0.0))
    web(frontier, groups=[0, 1, 2], pages=[0, 0, 1, 1, 2])
    frontier.discover([0, 1, 2, 3, 4], 0.0)
    assert [site.turn for site in frontier.sites] == [1, 2, 3]
    for number, (site, page) in enumerate([(0, 0), (1, 2), (2, 4), (0, 1), (1, 3)]):
        assert frontier.next(0.0) == Visit(number, site, (page,), 600.0)
        frontier.finish(visit(number), done(page), 0.0)
    # Site 2 had no page left when its visit ended, so it took no turn after 3; sites 0 and 1 took 4 and 5.
    assert [site.turn for site in frontier.sites] == [4, 5, 3]


def test_a_site_keeps_its_turn_while_delayed_and_takes_one_at_set_site() -> None:
    frontier = NaiveFrontier("fifo", "fifo-turn", Rules(delay_s=5.0))
    web(frontier, groups=[0, 1, 0], pages=[0, 0, 1, 1, 2])
    frontier.discover([0, 1, 2, 3], 0.0)
    assert frontier.next(0.0) == Visit(0, 0, (0,), 600.0)
    frontier.set_site(0, 1.0, delay_s=5.0)  # under visit: it does not compete
    assert [site.turn for site in frontier.sites] == [1, 2, 0]
    frontier.finish(visit(0), done(0), 1.0)
    frontier.set_site(1, 1.0, not_before=3.0)
    assert [site.turn for site in frontier.sites] == [3, 4, 0]
    assert frontier.next(6.0) == Visit(1, 0, (1,), 606.0)
    assert [site.turn for site in frontier.sites] == [3, 4, 0]


def test_sites_begin_to_compete_in_the_order_of_choosing() -> None:
    frontier = NaiveFrontier("quality", "top-page", Rules(batch=3))
    web(frontier, groups=[0, 1], pages=[0, 1, 1], quality=[1.0, 3.0, 2.0])
    frontier.discover([0, 1, 2], 0.0)
    frontier.next(0.0)
    assert [site.turn for site in frontier.sites] == [2, 1]


def test_the_oldest_page_is_not_the_best() -> None:
    frontier = NaiveFrontier("quality", "fifo", Rules(delay_s=0.0))
    web(frontier, groups=[0, 1], pages=[0, 1, 0], quality=[0.0, 1.0, 2.0])
    frontier.discover([0, 1, 2], 0.0)
    # Site 0 has the oldest page (serial 0), and gives its best (serial 2); then again; then site 1.
    assert frontier.next(0.0) == Visit(0, 0, (2,), 600.0)
    frontier.finish(visit(0), done(2), 0.0)
    assert frontier.next(0.0) == Visit(1, 0, (0,), 600.0)
    assert frontier.next(0.0) == Visit(2, 1, (1,), 600.0)


def test_the_median_estimator() -> None:
    assert [median(1.0, measured, 0.5) for measured in (7.0, 1.0, 0.9, 0.0)] == [2.0, 1.0, 0.5, 0.5]
    assert median(0.0, 3.0, 0.5) == median(2.0, 3.0, 0.0) == 3.0
    assert median(2.0, 1.0, 0.0) == 1.0
    frontier = NaiveFrontier("fifo", "fifo", Rules(delay_s=0.0, estimator="median", alpha=0.5, first_response_s=0.5))
    web(frontier, groups=[0, 1], pages=[0, 1])
    frontier.discover([0, 1], 0.0)
    for number in range(2):
        frontier.next(0.0)
        frontier.report(visit(number), number, FETCHED, 1.0, response_s=9.0)
    # The second site starts from the first one's 1.0.
    assert [site.response_s for site in frontier.sites] == [1.0, 2.0]


def test_scores_come_every_two_pages() -> None:
    frontier = NaiveFrontier("partial-pagerank", "top-page", Rules(delay_s=0.0, per_connection=3, rescore=2))
    web(frontier, groups=[0, 1], pages=[0, 0, 0, 1, 1])
    frontier.discover([0], 0.0)
    assert frontier.pages[0].rank == 1.0  # a seed, before the first scores
    assert frontier.next(0.0) == Visit(0, 0, (0,), 600.0)
    frontier.finish(visit(0), done(0, 1, 2, 2, 3), 0.0)
    assert [page.rank for page in frontier.pages[1:4]] == [0.25, 0.5, 0.25]
    assert frontier.next(0.0) == Visit(1, 0, (2, 1), 600.0)
    frontier.report(visit(1), 2, FETCHED, 0.0)
    # Two pages are fetched, and site 1 competes. Scores stay due, and move also what is leased (page 1).
    assert frontier.next(0.0) == Rescore(2)
    frontier.discover([4], 0.0)
    assert frontier.next(0.0) == Rescore(2)
    frontier.rescore([0.1, 0.2, 0.3, 0.0, 0.4], 0.0)
    assert [page.rank for page in frontier.pages] == [1.0, 0.2, 0.5, 0.25, 0.4]
    assert frontier.rescore_at == 4
    assert frontier.next(0.0) == Visit(2, 1, (4, 3), 600.0)
    with pytest.raises(ConfigError):
        frontier.rescore([0.1], 0.0)
    frontier.finish(visit(1), done(1), 0.0)
    frontier.finish(visit(2), Outcome((Result(4, FETCHED), Result(3, FETCHED))), 0.0)
    # Five are fetched, but nobody competes.
    assert frontier.next(0.0) == Drained()


def test_scores_come_when_half_a_batch_is_over() -> None:
    frontier = NaiveFrontier("batch-pagerank", "top-page", Rules(delay_s=0.0, batch=3))
    web(frontier, groups=[0], pages=[0, 0, 0, 0])
    frontier.discover([0], 0.0)
    assert frontier.next(0.0) == Visit(0, 0, (0,), 600.0)
    # A new batch is due, but one page is less than 3/2.
    frontier.finish(visit(0), done(0, 1), 0.0)
    assert frontier.next(0.0) == Visit(1, 0, (1,), 600.0)
    frontier.finish(visit(1), done(1, result=REFUSED), 0.0)
    frontier.discover([2, 3], 0.0)
    assert frontier.next(0.0) == Rescore(1)  # one is FETCHED, one is GONE
    frontier.rescore([0.5, 0.1, 0.1, 0.4], 0.0)
    assert frontier.next(0.0) == Visit(2, 0, (3,), 600.0)


def test_a_page_rank_without_scores_requests_none() -> None:
    frontier = NaiveFrontier("opic", "top-page", Rules(rescore=1))
    with pytest.raises(ConfigError):
        frontier.rescore([], 0.0)


def test_estimates_of_new_pages() -> None:
    frontier = NaiveFrontier("historical-pagerank-parent", "top-page", Rules())
    web(frontier, groups=[0], pages=[0, 0, 0, 0])
    frontier.set_column("history", [0.6, -1.0, -1.0, -1.0])
    frontier.discover([0, 3], 0.0)
    frontier.next(0.0)
    frontier.report(visit(0), 0, FETCHED, 0.0, links=[1, 2, 3])
    assert [page.rank for page in frontier.pages] == pytest.approx([0.6, 0.2, 0.2, 0.0])


def test_the_shortest_visit_and_the_delay_after_it() -> None:
    rules = Rules(estimator="median", alpha=0.0, small_site_pages=2, small_site_delay_s=4.0)
    frontier = NaiveFrontier("fifo", "performance-and-delay", rules)
    web(frontier, groups=[0], pages=[0, 0])
    frontier.discover([0], 0.0)
    assert frontier.sites[0].competing is not None
    assert frontier.sites[0].competing.rank == pytest.approx(1 / (0.3 + 4.0))
    frontier.next(0.0)
    frontier.finish(visit(0), Outcome((Result(0, FAILED, (), 0.0),), connection_s=0.0), 1.0)
    frontier.next(100.0)  # the failed page again
    frontier.discover([1], 100.0)
    frontier.finish(visit(1), done(0), 100.0)
    frontier.set_site(0, 200.0, delay_s=0.0)
    assert frontier.sites[0].competing.rank == pytest.approx(1e9)  # T is at least 1 ns


def test_random_ranks_come_from_a_hash() -> None:
    """mixed(0) = 0, so a seed of -1 draws 0 by number 0; the others look like lots."""
    assert uniform(-1, 0) == 0.0
    assert uniform(7, 1) != uniform(8, 1) != uniform(8, 2)
    assert 0.48 < sum(uniform(3, number) for number in range(10_000)) / 10_000 < 0.52


def test_a_rank_without_a_twin_is_named() -> None:
    with pytest.raises(AssertionError, match=r"tests/naive/ranks.py has no twin of page rank 'newest-first'"):
        twin_of_page_rank("newest-first")
    with pytest.raises(AssertionError, match=r"tests/naive/ranks.py has no twin of site rank 'newest-first'"):
        twin_of_site_rank("newest-first")
