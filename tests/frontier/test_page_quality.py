"""The quality of a fetched page may become known after its report: the pages that it links to are ranked again, once."""

import pytest

from trapline.errors import ConfigError, InvariantError
from trapline.frontier import FETCHED, Frontier, Outcome, Result, Rules, Visit
from trapline.frontier.journal import Journal
from trapline.frontier.layout import ELSEWHERE, QUALITY_UNKNOWN
from trapline.frontier.replay import replay
from trapline.strategies import load_strategy


def frontier_of(strategy: str = "mean-parent-quality", known: float = QUALITY_UNKNOWN) -> Frontier:
    """Return a frontier of one site with the pages 0 to 5, of which 0 and 1 are fetched. 0 links to 2 and 3, 1 to 3 and 4."""
    frontier = Frontier(load_strategy(strategy), Rules(delay_s=0.0, per_connection=1))
    frontier.journal = Journal()
    frontier.add_sites(1, 0.0, [0])
    frontier.add_pages([0] * 6)
    frontier.set_column("fetched_quality", [known] * 6)
    if strategy == "quality-by-directory":
        frontier.set_column("directory_page", [0.0] * 6)
    frontier.discover([0, 1], 0.0)
    for page, links in ((0, [2, 3]), (1, [3, 4, ELSEWHERE])):
        visit = frontier.next(0.0)
        assert isinstance(visit, Visit) and visit.pages == [page]
        frontier.finish(visit, Outcome([Result(page, FETCHED, links)]), 0.0)
    return frontier


def ranks(frontier: Frontier) -> dict[int, float]:
    pages, keys = frontier.waiting_pages(0)
    return dict(zip(pages.tolist(), keys.tolist(), strict=True))


def test_pages_wait_with_what_is_expected_of_their_parents_until_these_are_scored() -> None:
    frontier = frontier_of()
    assert ranks(frontier) == {2: 1.0, 3: 1.0, 4: 1.0}
    assert frontier.set_quality(0, 0.2, [2, 3], 1.0)
    assert ranks(frontier) == {2: 0.2, 3: 0.2, 4: 1.0}
    assert frontier.set_quality(1, 0.5, [3, 4], 1.0)
    assert ranks(frontier) == {2: 0.2, 3: 0.35, 4: 0.5}


@pytest.mark.parametrize("strategy", ["parent-quality", "mean-parent-quality", "quality-by-directory"])
def test_a_quality_that_is_known_at_the_report_gives_the_same_ranks(strategy: str) -> None:
    """As in a simulated crawl. With equal qualities, the order in which they arrive does not matter."""
    late, early = frontier_of(strategy), frontier_of(strategy, known=0.25)
    late.set_quality(0, 0.25, [2, 3], 1.0)
    late.set_quality(1, 0.25, [3, 4], 1.0)
    if strategy == "quality-by-directory":  # keys that have become too large are corrected before a visit (Y3)
        assert all(
            late_key >= early_key
            for late_key, early_key in zip(ranks(late).values(), ranks(early).values(), strict=True)
        )
        assert [list(late.column(at)) for at in (3, 4, 9, 10)] == [list(early.column(at)) for at in (3, 4, 9, 10)]
    else:
        assert ranks(late) == ranks(early)


def test_the_first_parent_alone_counts_for_parent_quality() -> None:
    frontier = frontier_of("parent-quality")
    frontier.set_quality(1, 0.9, [3, 4], 1.0)
    assert ranks(frontier) == {2: 1.0, 3: 1.0, 4: 0.9}
    frontier.set_quality(0, 0.1, [2, 3], 1.0)
    assert ranks(frontier) == {2: 0.1, 3: 0.1, 4: 0.9}


def test_a_quality_is_set_once() -> None:
    frontier = frontier_of()
    assert frontier.set_quality(0, 0.2, [2, 3], 1.0)
    before = ranks(frontier)
    assert not frontier.set_quality(0, 0.8, [2, 3], 1.0)
    assert ranks(frontier) == before


def test_the_log_gives_the_same_ranks_again() -> None:
    frontier = frontier_of()
    frontier.set_quality(0, 0.2, [2, 3], 1.0)
    frontier.set_quality(1, 0.5, [3, 4], 2.0)
    assert frontier.journal is not None
    twin = Frontier(frontier.strategy, frontier.rules)
    replay(twin, frontier.journal.take())
    assert ranks(twin) == ranks(frontier)
    assert (twin.now, twin.column(0).tolist()) == (2.0, frontier.column(0).tolist())


def test_wrong_calls_change_nothing() -> None:
    frontier = frontier_of()
    before = ranks(frontier)
    with pytest.raises(InvariantError, match="page 2 is not fetched"):
        frontier.set_quality(2, 0.5, [], 1.0)
    with pytest.raises(InvariantError, match="page 9 is not registered"):
        frontier.set_quality(9, 0.5, [], 1.0)
    for wrong in (-0.5, float("nan"), float("inf")):
        with pytest.raises(InvariantError, match="is not a number from 0"):
            frontier.set_quality(0, wrong, [2, 3], 1.0)
    with pytest.raises(InvariantError, match="page 77"):
        frontier.set_quality(0, 0.5, [2, 77], 1.0)
    assert ranks(frontier) == before
    with pytest.raises(ConfigError, match="takes no input 'fetched_quality'"):
        Frontier(load_strategy("opic"), Rules()).set_quality(0, 0.5, [], 1.0)
