"""A site that moves in parts, with pages fetched before the move, is the same site afterwards, in the frontier and in
the oracle."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontier.test_replay import assert_same_state, new_frontier
from tests.frontier.worlds import Rank
from tests.naive.frontier import NaiveFrontier
from trapline.errors import InvariantError
from trapline.frontier import FETCHED, REFUSED, Frontier, Outcome, Result, Rules, Visit, WaitUntil
from trapline.frontier.journal import Journal
from trapline.frontier.layout import GONE, WAITING
from trapline.frontier.replay import replay

RULES = {"delay_s": 5.0, "ip_delay_s": 1.0, "per_connection": 2, "small_site_pages": 4, "small_site_delay_s": 3.0}
RANKS = st.sampled_from([Rank("opic", "top-page"), Rank("backlink-count", "fifo"), Rank("fifo", "fifo-turn")])
Pages = tuple[int, ...]


def exported(frontier: Any, pages: int, visits: int) -> tuple[Any, list[int]]:
    """Export a site after this number of visits, and return its finished pages too. Every second page was refused."""
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0] * pages)
    frontier.discover(range(pages), 0.0)
    over: list[int] = []
    for number in range(visits):
        visit = frontier.next(10.0 * number)
        if hasattr(visit, "pages"):
            said = [Result(page, REFUSED if page % 2 else FETCHED) for page in visit.pages]
            frontier.finish(visit, Outcome(tuple(said), connection_s=0.5), 10.0 * number + 1.0)
            over += visit.pages
    return frontier.export_site(0, 10.0 * visits), over


def fast_parts(export: Any, most: int) -> list[Any]:
    return list(export.parts(most))


def slow_parts(export: Any, most: int) -> list[Any]:
    """The same as `SiteExport.parts`, written independently."""
    count = len(export.pages)
    spans = [(at, min(at + most, count)) for at in range(0, max(count, 1), most)]
    return [
        export._replace(pages=export.pages[a:b], details=export.details[a:b], known=export.known - (count - b))
        for a, b in spans
    ]


def take_over(frontier: Any, parts: list[Any], over: list[int], now: float) -> None:
    """Import the parts into a frontier that has a site of its own."""
    frontier.add_sites(2, now, groups=[0, 1])
    frontier.add_pages([1] * 3)
    frontier.discover([0, 1, 2], now)
    for part in parts:
        first = frontier.add_pages([0] * len(part.pages))
        frontier.import_site(part, 0, list(range(first, first + len(part.pages))), now)
    first = frontier.add_pages([0] * len(over))
    frontier.gone_elsewhere(list(range(first, first + len(over))), now)


def answers(frontier: Any, pages: int, now: float) -> list[Any]:
    """The visits until the end of the crawl. Every page links to all pages."""
    visits_made = []
    for _ in range(60):
        answer = frontier.next(now)
        if hasattr(answer, "pages"):
            visits_made.append((answer.site, tuple(answer.pages), now))
            for page in answer.pages:
                frontier.report(answer, page, FETCHED, now, list(range(pages)))
            frontier.finish(answer, Outcome(), now)
        elif hasattr(answer, "time"):
            now = answer.time
        else:
            return visits_made
    raise AssertionError("it does not end")


@given(RANKS, st.integers(1, 9), st.integers(0, 3), st.integers(1, 4))
def test_a_site_moved_in_parts_continues_as_in_the_oracle(rank: Rank, pages: int, visits: int, most: int) -> None:
    found = []
    for kind, parts in ((Frontier, fast_parts), (NaiveFrontier, slow_parts)):
        one, other = (
            new_frontier(rank, RULES) if kind is Frontier else NaiveFrontier(rank.page, rank.site, Rules(**RULES))
            for _ in range(2)
        )
        export, over = exported(one, pages, visits)
        take_over(other, parts(export, most), over, 100.0)
        states = [other.page_state(page) for page in range(3 + pages)]
        assert states == [WAITING] * (3 + pages - len(over)) + [GONE] * len(over)
        found.append((answers(other, 3 + pages, 100.0), over))
    assert found[0] == found[1]
    visited = [page for site, taken, _ in found[0][0] for page in taken if site == 0]
    assert sorted(visited) == list(range(3, 3 + pages - len(over)))


@given(RANKS, st.integers(1, 9), st.integers(0, 3), st.integers(1, 4))
def test_parts_give_the_record_and_the_queue_of_the_whole(rank: Rank, pages: int, visits: int, most: int) -> None:
    whole, parted = new_frontier(rank, RULES), new_frontier(rank, RULES)
    for other, size in ((whole, 1000), (parted, most)):
        export, over = exported(new_frontier(rank, RULES), pages, visits)
        take_over(other, fast_parts(export, size), over, 100.0)
    for name in ("known", "taken", "budget", "requests", "failures", "connections", "connection_s", "ready_at"):
        assert whole.state.site[0][name] == parted.state.site[0][name]
    assert whole.state.run[0].connection_sites == parted.state.run[0].connection_sites
    assert [column.tolist() for column in whole.waiting_pages(0)] == [
        column.tolist() for column in parted.waiting_pages(0)
    ]


def test_a_move_in_parts_is_replayed_from_the_log() -> None:
    journal, rank = Journal(), Rank("opic", "top-page")
    frontier = new_frontier(rank, RULES, journal)
    export, over = exported(new_frontier(rank, RULES), 7, 2)
    take_over(frontier, fast_parts(export, 2), over, 100.0)
    again = new_frontier(rank, RULES)
    replay(again, journal.take())
    assert_same_state(again, frontier)


def test_a_page_fetched_elsewhere_can_be_revisited_here_and_is_in_the_log() -> None:
    """New pages that it links to are one deeper than the page."""
    journal, rank = Journal(), Rank("fifo", "fifo")
    frontier = new_frontier(rank, RULES, journal)
    export, _ = exported(new_frontier(rank, RULES), 3, 1)
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0] * 4)
    frontier.import_site(export, 0, [0], 100.0)
    for pages, depths in (([0], [1]), ([9], [1]), ([2, 2], [1, 1]), ([2], []), ([2], [-1])):
        with pytest.raises(InvariantError):
            frontier.fetched_elsewhere(pages, depths, 100.0)
    frontier.fetched_elsewhere([2], [5], 100.0)
    visit = frontier.revisit(0, [2], 200.0)
    assert isinstance(visit, Visit) and visit.pages == [2]
    frontier.report(visit, 2, FETCHED, 201.0, [3])
    frontier.finish(visit, Outcome(), 201.0)
    assert [frontier.page_state(page) for page in (2, 3)] == [FETCHED, WAITING]
    assert (frontier.state.page["depth"][3], frontier.state.run[0].fetched) == (6, 1)
    again = new_frontier(rank, RULES)
    replay(again, journal.take())
    assert_same_state(again, frontier)


def test_invalid_moves_are_refused_and_change_nothing() -> None:
    journal, rank = Journal(), Rank("fifo", "fifo")
    frontier = new_frontier(rank, RULES, journal)
    export, _ = exported(new_frontier(rank, RULES), 4, 0)
    first, second = export.parts(2)
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0] * 6)
    frontier.import_site(first, 0, [0, 1], 0.0)
    journal.take()
    for pages in ([0], [6], [-1], [2, 2]):
        with pytest.raises(InvariantError):
            frontier.gone_elsewhere(pages, 1.0)
    with pytest.raises(InvariantError, match="has pages already"):
        frontier.import_site(first, 0, [2, 3], 1.0)  # a second time
    assert journal.take() == b"" and frontier.state.run[0].gone == 0
    frontier.import_site(second, 0, [2, 3], 1.0)
    assert isinstance(frontier.next(2.0), Visit | WaitUntil)
