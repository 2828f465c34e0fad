"""Politeness checker: counts violations in the log of a web.

It knows the log, the rules that a crawler was given, and the robots.txt files that the web defines. It knows nothing about
the crawler, because a check must not rely on what it checks.

A *visit* is a run of requests to one site on one connection without a gap of w or more. A *gap* is the time from the end of
one answer to the arrival of the next request, both by the server's clock. The server records the end just before it hands
over the last bytes, a crawler starts its clock after it has received them, and a request arrives after it was sent. So the
server sees longer gaps than the crawler, and a crawler that keeps its rules passes without a tolerance. (A crawler that
counts from its *request* needs a tolerance, and is impolite.)
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from trapline.testweb.answers.message import ROBOTS_FILE
from trapline.testweb.answers.robots_txt import allowed, crawl_delay_s
from trapline.testweb.server.log import RequestLog


@dataclass(frozen=True, slots=True)
class Promise:
    """The rules that a crawler was given."""

    delay_s: float
    """w: least time between two visits to a site"""
    per_connection: int = 0
    """k: most pages in a visit, not counting robots.txt; 0: no limit"""
    pause_s: float = 0.0
    """least time between the requests of a visit, including those for robots.txt"""
    address_delay_s: float | None = None
    """least time between two visits to an address; None: w"""
    tolerance_s: float = 0.0
    """by how much a gap may be too short"""


@dataclass(frozen=True, slots=True)
class Findings:
    """Violations, as rows of the log. A visit that begins before another has ended is an overlap and does not count as early."""

    requests: int
    visits: int
    overlaps: list[int] = field(default_factory=list)
    """first requests of visits that began before an earlier visit to the same site or address had ended"""
    early: list[int] = field(default_factory=list)
    """requests that came too early: between visits before w (or the site's longer Crawl-delay) was over, within a visit
    before the pause or the Crawl-delay was over, or beyond the k pages of a visit"""
    disallowed: list[int] = field(default_factory=list)
    """requests for URLs that robots.txt forbids"""

    @property
    def violations(self) -> int:
        return len(self.overlaps) + len(self.early) + len(self.disallowed)


class _Visit(NamedTuple):
    site: int
    address: int
    rows: list[int]
    begin: float
    end: float


class _Rows(NamedTuple):
    """The log's columns as lists: reading single numbers from arrays would take five times as long."""

    connection: list[int]
    address: list[int]
    site: list[int]
    page: list[int]
    arrival: list[float]
    end: list[float]


def check(log: RequestLog, promise: Promise) -> Findings:
    """Return all violations. Requests for a host that is not at the address they arrived at are ignored."""
    rows, web = _rows(log), log.web
    visits = sorted(_visits(rows, promise), key=lambda visit: (visit.begin, visit.rows[0]))
    delays_s = [crawl_delay_s(web, site) for site in range(web.sites)]
    overlaps: set[int] = set()
    early = {row for visit in visits for row in _hasty(rows, visit, delays_s[visit.site], promise)}
    by_address = promise.delay_s if promise.address_delay_s is None else promise.address_delay_s
    by_site = ((visit.site, max(promise.delay_s, delays_s[visit.site]), visit) for visit in visits)
    _compare(by_site, promise, overlaps, early)
    _compare(((visit.address, by_address, visit) for visit in visits), promise, overlaps, early)
    return Findings(
        requests=len(log),
        visits=len(visits),
        overlaps=sorted(overlaps),
        early=sorted(early - overlaps),
        disallowed=[row for visit in visits for row in visit.rows if not allowed(web, visit.site, log.path(row))],
    )


def _rows(log: RequestLog) -> _Rows:
    ends = np.where(np.isnan(log.end_s), np.inf, log.end_s)  # not answered yet: the visit has not ended
    columns = (log.connection, log.address, log.site, log.page, log.arrival_s, ends)
    return _Rows(*(column.tolist() for column in columns))


def _visits(rows: _Rows, promise: Promise) -> Iterator[_Visit]:
    under_way: dict[tuple[int, int], _Visit] = {}
    for row in sorted(range(len(rows.arrival)), key=rows.arrival.__getitem__):
        place = (rows.connection[row], rows.site[row])
        if place[1] < 0:
            continue
        arrival, end = rows.arrival[row], rows.end[row]
        visit = under_way.get(place)
        if visit is not None and arrival - visit.end < promise.delay_s - promise.tolerance_s:
            visit.rows.append(row)
            under_way[place] = visit._replace(end=max(visit.end, end))
            continue
        if visit is not None:
            yield visit
        under_way[place] = _Visit(place[1], rows.address[row], [row], arrival, end)
    yield from under_way.values()


def _hasty(rows: _Rows, visit: _Visit, delay_s: float, promise: Promise) -> Iterator[int]:
    """Yield the requests of a visit that came too soon after the one before, or that exceed the number of pages."""
    pause_s = max(promise.pause_s, delay_s)
    pages, ended = 0, -math.inf
    for row in visit.rows:
        pages += rows.page[row] != ROBOTS_FILE
        too_many = promise.per_connection and pages > promise.per_connection
        if too_many or (pause_s and rows.arrival[row] - ended < pause_s - promise.tolerance_s):
            yield row
        ended = max(ended, rows.end[row])


def _compare(owned: Iterable[tuple[int, float, _Visit]], promise: Promise, overlaps: set[int], early: set[int]) -> None:
    """Mark the visits that begin before the latest end so far of a visit to the same owner, or before its delay is over.

    An owner is a site or an address.
    """
    latest: dict[int, float] = {}
    for owner, delay_s, visit in owned:
        before = latest.get(owner, -math.inf)
        if visit.begin < before - promise.tolerance_s:
            overlaps.add(visit.rows[0])
        elif visit.begin - before < delay_s - promise.tolerance_s:
            early.add(visit.rows[0])
        latest[owner] = max(before, visit.end)
