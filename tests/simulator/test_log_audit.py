"""The audit of logs, including forged ones, against its definition: every visit is compared with every earlier one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trapline.frontier import Rules
from trapline.simulator import politeness_violations
from trapline.simulator.log import FetchLog, log_of

# Pages 0 and 1 are on site 0, page 2 is on site 1 at the same address, and page 3 is on site 2 at another.
SITE, GROUP = np.array([0, 0, 1, 2], np.int32), np.array([0, 0, 1], np.int32)
RULES = Rules(delay_s=2.0, ip_delay_s=1.0)

Row = tuple[int, int, float, float, float]
times = st.integers(0, 8).map(float)
lengths = st.integers(0, 3).map(float)
one_row = st.tuples(st.integers(0, 3), st.integers(0, 5), times, lengths).map(
    lambda drawn: (drawn[0], drawn[1], drawn[2], drawn[2], drawn[2] + drawn[3])
)


def one_site_each(rows: list[Row]) -> list[Row]:
    """Rows in order of completion, those that end together in order of their start. All rows of a visit are on the site of its last row."""
    page = {visit: page for page, visit, *_ in rows}
    return sorted(((page[row[1]], *row[1:]) for row in rows), key=lambda row: (row[4], row[2]))


forged = st.lists(one_row, max_size=8).map(one_site_each)


def too_early(intervals: list[tuple[int, int, float, float]], delay_s: float) -> set[int]:
    """The visits that begin before an earlier visit of the same owner has ended and its delay has passed. Intervals are
    (visit, owner, begin, end), in order."""
    return {
        visit
        for at, (visit, owner, begin, _) in enumerate(intervals)
        if any(before[1] == owner and begin < before[3] + delay_s for before in intervals[:at])
    }


def slow_violations(rows: list[Row]) -> int:
    of_visit: dict[int, list[Row]] = {}
    for row in rows:
        of_visit.setdefault(row[1], []).append(row)
    visits = [
        (min(row[2] for row in own), number, max(row[4] for row in own), SITE[own[0][0]])
        for number, own in of_visit.items()
    ]
    visits.sort(key=lambda visit: visit[:2])
    return len(
        too_early([(visit, visit, start, end) for _, visit, start, _, end in rows], 0.0)
        | too_early([(visit, site, begin, end) for begin, visit, end, site in visits], RULES.delay_s)
        | too_early([(visit, GROUP[site], begin, end) for begin, visit, end, site in visits], 1.0)
    )


def violations(log: FetchLog) -> int:
    return politeness_violations(log, SITE, GROUP, RULES)


@given(forged)
def test_the_audit_agrees_with_its_definition(rows: list[Row]) -> None:
    assert violations(log_of(*rows)) == slow_violations(rows)


@given(forged, st.randoms(use_true_random=False))
def test_the_order_of_the_log_does_not_matter(rows: list[Row], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = rows.copy()
    random.shuffle(shuffled)
    assert bool(violations(log_of(*shuffled))) >= bool(slow_violations(rows))


def test_unused_visit_numbers_of_a_stopped_crawl_are_not_visits() -> None:
    assert violations(log_of((0, 3, 0.0, 0.0, 1.0), (1, 9, 3.0, 3.0, 4.0))) == 0
    assert violations(log_of((0, 3, 0.0, 0.0, 1.0), (1, 9, 2.9, 2.9, 4.0))) == 1


def test_a_visit_that_breaks_several_rules_counts_once() -> None:
    """Too early for its site and for its address, which are the same. And of three simultaneous pages two overlap."""
    assert violations(log_of((3, 0, 0.0, 0.0, 1.0), (3, 1, 1.5, 1.5, 4.0))) == 1
    assert violations(log_of((3, 0, 0.0, 0.0, 1.0), (3, 1, 0.0, 0.0, 2.0), (3, 1, 0.0, 0.0, 2.0))) == 1


def test_an_empty_log_is_polite() -> None:
    assert violations(log_of()) == 0
