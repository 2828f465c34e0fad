"""Counts broken politeness in a crawl's database. It reads what was requested and when, the robots.txt files and the options,
and never asks the frontier: whoever checks must not ask whom he checks.

Four rules, each checked for every visit (requests with one `visit` number):
- apart: it overlaps no earlier visit to the same site, nor to the same address;
- rest: it begins at least w after them (`delay_s`; after one to its own site also the site's Crawl-delay, if longer);
- pause: its own requests do not overlap, and come at least the pause (or the Crawl-delay) after the answer before;
- robots: every path it asks for is allowed, and robots.txt was asked for before.
With pipelining, requests of one visit overlap on purpose: the third rule then holds only where there is a pause to keep.

What is not seen: requests that were in flight when a crawl was killed, requests on which the server closed a connection that it had
answered on before (they count as not made), back-off after failures, Retry-After, and, if w depends on
the size of a site, all but the smaller w. An early or overlapping visit is found whatever the order of the rows.
"""

import sqlite3
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawl.folder import Longs, options
from trapline.crawl.options import AGENT, CrawlOptions
from trapline.crawl.requests import ROBOTS, Requests, requests_of
from trapline.crawl.robots_kept import NONE_SEEN, RobotsKept, robots_kept

Marks = NDArray[np.bool_]

# A gap is the difference of a start and of an end, which is itself a sum: three numbers, each rounded to the microsecond by
# at most a half, and 0.24 more by the float that held it. Their errors stay below 2 in all but contrived cases.
TOLERANCE_US = 2
MOST_EXAMPLES = 20
_PAGES_AT_ONCE = 500
_NEVER = -(1 << 62)


class Manners(NamedTuple):
    """What the options of a crawl ask of it."""

    rest_us: int
    address_rest_us: int
    pause_us: int
    pipelining: bool


class Violation(NamedTuple):
    """A visit that broke rules."""

    visit: int
    site: str
    at: float  # wall clock
    rules: tuple[str, ...]


class Audit(NamedTuple):
    requests: int
    visits: int
    by_rule: dict[str, int]
    """visits that broke each rule; some may have broken several"""
    violations: int
    """visits that broke any"""
    examples: list[Violation]
    """the first of them"""


def politeness_violations(database: sqlite3.Connection) -> int:
    """Visits that broke a rule, each once, however many it broke. Must be 0."""
    return audit(database).violations


def audit(database: sqlite3.Connection) -> Audit:
    manners, requests = manners_of(options(database)), requests_of(database)
    kept = robots_kept(database, AGENT)
    broken = {
        **_between_visits(requests, kept, manners),
        "pause": _inside_visits(requests, kept, manners),
        "robots": _disallowed(database, requests, kept),
    }
    every = np.unique(np.concatenate(list(broken.values())))
    return Audit(
        requests=len(requests.page),
        visits=len(np.unique(requests.visit)),
        by_rule={rule: len(visits) for rule, visits in broken.items()},
        violations=len(every),
        examples=_examples(database, requests, every, broken),
    )


def manners_of(options: CrawlOptions) -> Manners:
    rules = options.rules
    rest_s = min(rules.delay_s, rules.small_site_delay_s) if rules.small_site_pages else rules.delay_s
    return Manners(
        rest_us=round(rest_s * 1e6),
        address_rest_us=round(rules.address_rest_s * 1e6),
        pause_us=round(options.pause_s * 1e6),
        pipelining=options.http == "pipelining",
    )


# ---- visits against each other


class Spans(NamedTuple):
    """From the first request of a visit to its last answer, in order of beginning."""

    visit: Longs
    owner: Longs
    begin_us: Longs
    end_us: Longs


def _between_visits(requests: Requests, kept: RobotsKept, manners: Manners) -> dict[str, Longs]:
    """The visits that were not apart from an earlier one, and those that came before it had rested."""
    sites, addresses = _spans(requests, requests.site), _spans(requests, requests.address)
    delays = kept.delay_us(kept.in_force(sites.owner, sites.begin_us))
    found = [
        _against_earlier(sites, np.maximum(manners.rest_us, delays)),
        _against_earlier(addresses, np.full(len(addresses.visit), manners.address_rest_us)),
    ]
    apart, rest = (np.unique(np.concatenate(visits)) for visits in zip(*found, strict=True))
    return {"apart": apart, "rest": rest}


def _spans(requests: Requests, owner: Longs) -> Spans:
    """Of each visit at each owner: with a robots.txt that redirects, a visit has been at more than one address."""
    order = np.lexsort((owner, requests.visit))
    visit, owner = requests.visit[order], owner[order]
    first = np.flatnonzero(np.r_[True, (visit[1:] != visit[:-1]) | (owner[1:] != owner[:-1])][: len(visit)])
    if not len(first):
        return Spans(visit, owner, visit, visit)
    begin = np.minimum.reduceat(requests.begin_us[order], first)
    end = np.maximum.reduceat(requests.end_us[order], first)
    by_begin = np.lexsort((visit[first], begin))
    return Spans(*(column[by_begin] for column in (visit[first], owner[first], begin, end)))


def _against_earlier(spans: Spans, rest_us: Longs) -> tuple[Longs, Longs]:
    before = latest_end_before(spans.owner, spans.end_us)
    at_once = spans.begin_us < before - TOLERANCE_US
    early = (spans.begin_us < before + rest_us - TOLERANCE_US) & ~at_once
    return spans.visit[at_once], spans.visit[early]


def latest_end_before(owner: Longs, end: Longs) -> Longs:
    """For each row, the latest end of those rows before it that have its owner; long ago if there is none.

    >>> latest_end_before(np.array([7, 7, 8, 7]), np.array([30, 20, 50, 40])).tolist()[1:] == [30, _NEVER, 30]
    True
    """
    before = np.full(len(owner), _NEVER)
    _, owner = np.unique(owner, return_inverse=True)  # a visit's number may be of any size
    order = np.argsort(owner, kind="stable")
    ends, number = np.unique(end, return_inverse=True)
    # One running maximum for all owners: any end of an owner exceeds those of the owners sorted before it.
    latest = np.maximum.accumulate(owner[order] * len(ends) + number[order])
    again = np.flatnonzero(owner[order][1:] == owner[order][:-1])
    before[order[again + 1]] = ends[latest[again] % max(len(ends), 1)]
    return before


# ---- inside visits


def _inside_visits(requests: Requests, kept: RobotsKept, manners: Manners) -> Longs:
    """The visits whose own requests overlap, or come too soon after the answer before."""
    delays = kept.delay_us(kept.in_force(requests.site, requests.begin_us))
    gap = np.maximum(manners.pause_us, delays)
    early = requests.begin_us < latest_end_before(requests.visit, requests.end_us) + gap - TOLERANCE_US
    if manners.pipelining:
        early &= gap > 0
    return np.unique(requests.visit[early])


def _disallowed(database: sqlite3.Connection, requests: Requests, kept: RobotsKept) -> Longs:
    """The visits that asked for a page which robots.txt, as last seen, does not allow, or without having seen it."""
    pages = requests.rows(np.flatnonzero(requests.page != ROBOTS))
    in_force = kept.in_force(pages.site, pages.begin_us)
    refused = in_force == NONE_SEEN
    doubtful = np.flatnonzero(~refused & ~kept.is_free(in_force))
    targets = _targets(database, np.unique(pages.page[doubtful]))
    for row in doubtful.tolist():
        refused[row] = not kept.rules[in_force[row]].allows(targets[pages.page[row]])
    return np.unique(pages.visit[refused])


def _targets(database: sqlite3.Connection, pages: Longs) -> dict[int, str]:
    """Path and query of each page."""
    found: dict[int, str] = {}
    for first in range(0, len(pages), _PAGES_AT_ONCE):
        ids = ", ".join(map(str, pages[first : first + _PAGES_AT_ONCE].tolist()))
        query = f"select page.id, substr(url, length(origin) + 1) from page join site on site.id = page.site where page.id in ({ids})"
        found.update(database.execute(query))
    return found


def _examples(
    database: sqlite3.Connection, requests: Requests, every: Longs, broken: dict[str, Longs]
) -> list[Violation]:
    chosen = np.flatnonzero(np.isin(requests.visit, every))
    _, first = np.unique(requests.visit[chosen], return_index=True)
    origins = dict(database.execute("select id, origin from site"))
    return [
        Violation(
            int(requests.visit[row]),
            origins.get(int(requests.site[row]), "?"),
            int(requests.begin_us[row]) / 1e6,
            tuple(rule for rule, visits in broken.items() if requests.visit[row] in visits),
        )
        for row in np.sort(chosen[first])[:MOST_EXAMPLES].tolist()
    ]
