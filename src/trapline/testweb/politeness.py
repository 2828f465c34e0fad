"""Counts broken politeness in the log of a web. It knows the log, the rules that a crawler was given and the robots.txt that
the web defines, and nothing of the crawler: whoever checks must not ask whom he checks.

A *visit* is a run of requests to one site on one connection without a gap of w or more. A *gap* is the time from the end of one
answer to the arrival of the next request, both as the server saw them. The server notes the end just before it hands over
the last bytes, a crawler starts its clock after it has them, and a request arrives after it was sent: so whoever keeps his rules
is seen to keep them, and no tolerance is needed. (A crawler that counts from when it *asked* needs one, and is impolite.)
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from trapline.testweb.log import Log
from trapline.testweb.message import ROBOTS_FILE
from trapline.testweb.robots_txt import allowed, crawl_delay_s


@dataclass(frozen=True, slots=True)
class Promise:
    """What a crawler was told to keep."""

    delay_s: float
    """w: between two visits to a site"""
    per_connection: int = 0
    """k: pages a visit, robots.txt apart; 0: no limit"""
    pause_s: float = 0.0
    """between the requests of a visit, robots.txt among them"""
    address_delay_s: float | None = None
    """between two visits to an address; None: w"""
    tolerance_s: float = 0.0
    """by which a gap may fall short"""


@dataclass(frozen=True, slots=True)
class Findings:
    """Rows of the log. A visit that begins before another has ended is an overlap and not also early."""

    requests: int
    visits: int
    overlaps: list[int] = field(default_factory=list)
    """first requests of visits that began before an earlier visit to the same site or address had ended"""
    early: list[int] = field(default_factory=list)
    """requests before w (or the site's Crawl-delay, if that is longer) was over between visits, before the pause or the
    Crawl-delay was over inside one, or beyond the k pages of a visit"""
    disallowed: list[int] = field(default_factory=list)
    """requests for what robots.txt forbids"""

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
    """The log's columns as lists: of arrays, one number at a time would take five times as long."""

    connection: list[int]
    address: list[int]
    site: list[int]
    page: list[int]
    arrival: list[float]
    end: list[float]


def check(log: Log, promise: Promise) -> Findings:
    """All that was broken. Requests for a host that is not at the address they came to are left out."""
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


def _rows(log: Log) -> _Rows:
    ends = np.where(np.isnan(log.end_s), np.inf, log.end_s)  # not answered yet: under way
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
    """Requests inside a visit that came too soon after the one before, or were too many."""
    pause_s = max(promise.pause_s, delay_s)
    pages, ended = 0, -math.inf
    for row in visit.rows:
        pages += rows.page[row] != ROBOTS_FILE
        too_many = promise.per_connection and pages > promise.per_connection
        if too_many or (pause_s and rows.arrival[row] - ended < pause_s - promise.tolerance_s):
            yield row
        ended = max(ended, rows.end[row])


def _compare(owned: Iterable[tuple[int, float, _Visit]], promise: Promise, overlaps: set[int], early: set[int]) -> None:
    """Marks the visits that begin before the latest end so far of their owner, or before it has rested."""
    latest: dict[int, float] = {}
    for owner, rest_s, visit in owned:
        before = latest.get(owner, -math.inf)
        if visit.begin < before - promise.tolerance_s:
            overlaps.add(visit.rows[0])
        elif visit.begin - before < rest_s - promise.tolerance_s:
            early.add(visit.rows[0])
        latest[owner] = max(before, visit.end)
