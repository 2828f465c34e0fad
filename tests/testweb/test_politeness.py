"""The politeness checker finds forged violations, reports no polite log, and agrees with its definition."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.testweb.webs import numbered
from trapline.testweb import ROBOTS_FILE, Behaviour, Findings, Promise, RequestLog, build_web, check
from trapline.testweb.answers.robots_txt import allowed
from trapline.testweb.server.log import Recorder

# Sites 0 and 1 share an address, and site 2 has its own. Site 1 has a Crawl-delay of 4 s and forbids much.
WEB = build_web(
    numbered(3, 40),
    [Behaviour(), Behaviour(robots="rules", disallowed=0.5, crawl_delay_s=4.0), Behaviour()],
    sites_per_address=2,
)
FORBIDDEN = next(page for page in range(40, 80) if not allowed(WEB, 1, WEB.paths[page]))
RULES = Promise(delay_s=10.0, per_connection=2, pause_s=1.0)

Row = tuple[int, int, int, float, float]  # connection, site, page, arrival, end


def log_of(*rows: Row) -> RequestLog:
    recorder = Recorder()
    for connection, site, page, arrival, end in rows:
        recorder.answered(arrival, end, 1, connection, WEB.address_of[site], site, page, 200, 0)
    return RequestLog(WEB, recorder.columns())


def checked(*rows: Row, promise: Promise = RULES) -> Findings:
    return check(log_of(*rows), promise)


POLITE = [
    (1, 0, ROBOTS_FILE, 0.0, 1.0),
    (1, 0, 0, 2.0, 3.0),
    (1, 0, 1, 4.0, 5.0),
    (2, 2, 80, 0.0, 90.0),  # at another address
    (3, 1, ROBOTS_FILE, 15.0, 16.0),
    (3, 1, 40, 20.0, 21.0),
    (1, 0, 2, 31.0, 32.0),  # the connection stayed open between visits
]


def test_a_polite_log_has_no_violations() -> None:
    found = checked(*POLITE)
    assert (found.violations, found.visits, found.requests) == (0, 4, 7)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ((4, 0, 3, 31.5, 33.0), "overlaps"),  # a second connection to a site under visit
        ((4, 1, 41, 31.5, 33.0), "overlaps"),  # to another site at its address
        ((4, 2, 81, 89.0, 95.0), "overlaps"),
        ((4, 0, 3, 41.9, 43.0), "early"),  # a new connection within w
        ((4, 1, 41, 41.9, 43.0), "early"),  # within w of the address
        ((1, 0, 3, 32.9, 43.0), "early"),  # within the pause
        ((1, 0, ROBOTS_FILE, 32.9, 43.0), "early"),  # robots.txt is a request like any other
        ((3, 1, FORBIDDEN, 60.0, 61.0), "disallowed"),
    ],
)
def test_a_forged_violation_is_found(row: Row, kind: str) -> None:
    found = checked(*POLITE, row)
    assert getattr(found, kind) == [7] and found.violations == 1


def test_crawl_delay_applies_within_and_between_visits() -> None:
    assert checked((1, 1, ROBOTS_FILE, 0, 1), (1, 1, 40, 4.9, 6)).early == [1]
    assert checked((1, 1, ROBOTS_FILE, 0, 1), (1, 1, 40, 5.0, 6)).early == []
    short = replace(RULES, delay_s=2.0)
    assert checked((1, 1, ROBOTS_FILE, 0, 1), (2, 1, 40, 4.9, 6), promise=short).early == [1]
    assert checked((1, 1, ROBOTS_FILE, 0, 1), (2, 1, 40, 5.0, 6), promise=short).early == []


def test_more_than_k_pages_without_a_delay_are_early() -> None:
    rows: list[Row] = [(1, 0, page, 2.0 * page, 2.0 * page + 1) for page in range(5)]
    assert checked(*rows).early == [2, 3, 4]
    assert checked((1, 0, ROBOTS_FILE, -2.0, -1.0), *rows[:2]).early == []


def test_a_request_without_an_answer_counts_as_under_way() -> None:
    assert checked((1, 0, 0, 0.0, np.nan), (2, 0, 1, 99.0, 99.5)).overlaps == [1]


def test_pipelined_requests_keep_no_pause() -> None:
    rows: list[Row] = [(1, 0, 0, 0.0, 1.0), (1, 0, 1, 0.0, 2.0)]
    assert checked(*rows).early == [1]
    assert checked(*rows, promise=Promise(delay_s=0.0, per_connection=2)).violations == 0


def test_tolerance_allows_exactly_its_amount() -> None:
    rows: list[Row] = [(1, 0, 0, 0.0, 1.0), (2, 0, 1, 10.9, 12.0)]
    assert checked(*rows, promise=replace(RULES, tolerance_s=0.11)).violations == 0
    assert checked(*rows, promise=replace(RULES, tolerance_s=0.09)).early == [1]


# ---- against the definition

times = st.integers(0, 60).map(float)
one_row = st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(-1, 9), times, st.integers(0, 9))
forged = st.lists(one_row, max_size=10).map(
    lambda rows: sorted(
        [(c, s, s * 40 + p if p >= 0 else ROBOTS_FILE, at, at + took) for c, s, p, at, took in rows],
        key=lambda row: row[3],
    )
)


def slow(rows: list[Row], promise: Promise) -> tuple[set[int], set[int], set[int]]:
    """Overlaps, early and disallowed requests, by looking at every pair."""
    delay_s = {0: 0.0, 1: 4.0, 2: 0.0}
    begins = [at for at in range(len(rows)) if not continues(rows, at, promise.delay_s)]
    visit_of = {}
    for at, (connection, site, *_) in enumerate(rows):
        visit_of[at] = max(one for one in begins if one <= at and rows[one][:2] == (connection, site))
    members = {first: [at for at in visit_of if visit_of[at] == first] for first in begins}
    end = {first: max(rows[at][4] for at in members[first]) for first in begins}
    overlaps, early, disallowed = set(), set(), set()
    for place, first in enumerate(begins):
        for before in begins[:place]:
            rest_s = -1.0
            if WEB.address_of[rows[first][1]] == WEB.address_of[rows[before][1]]:
                rest_s = promise.delay_s
            if rows[first][1] == rows[before][1]:
                rest_s = max(promise.delay_s, delay_s[rows[first][1]])
            if rest_s >= 0 and rows[first][3] < end[before]:
                overlaps.add(first)
            elif rest_s >= 0 and rows[first][3] < end[before] + rest_s:
                early.add(first)
        pages = 0
        for at in members[first]:
            pages += rows[at][2] != ROBOTS_FILE
            pause_s = max(promise.pause_s, delay_s[rows[at][1]])
            hasty = any(rows[at][3] < rows[one][4] + pause_s for one in members[first] if one < at)
            if pages > promise.per_connection or (hasty and pause_s):
                early.add(at)
    for at, (_, site, page, *_) in enumerate(rows):
        if page != ROBOTS_FILE and not allowed(WEB, site, WEB.paths[page]):
            disallowed.add(at)
    return overlaps, early - overlaps, disallowed


def continues(rows: list[Row], at: int, delay_s: float) -> bool:
    """Whether a request is not the first of a visit: less than w after all earlier requests of its site and connection."""
    before = [row for row in rows[:at] if row[:2] == rows[at][:2]]
    return bool(before) and rows[at][3] - max(row[4] for row in before) < delay_s


@given(forged, st.sampled_from([RULES, Promise(0.0, 3), Promise(2.0, 1, 0.5), Promise(5.0, 2, 0.0)]))
def test_the_checker_agrees_with_its_definition(rows: list[Row], promise: Promise) -> None:
    found = checked(*rows, promise=promise)
    assert (set(found.overlaps), set(found.early), set(found.disallowed)) == slow(rows, promise)
