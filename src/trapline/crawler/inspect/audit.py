"""Audit of politeness: counts the visits in a crawl's database that broke a rule.

The audit reads which requests were sent and when, the robots.txt files and the options. It never uses the frontier,
because the frontier is what it checks.

There are four rules, each checked for every visit (the requests with one `visit` number):
- apart: the visit overlaps no earlier visit to the same site, nor to the same address;
- delay: the visit begins at least w after them (`delay_s`; after a visit to the same site at least the site's
  Crawl-delay, if that is longer);
- pause: the requests of the visit do not overlap, and each begins at least the pause (or the Crawl-delay) after the
  previous answer;
- robots: every requested path is allowed, and robots.txt was requested before.
With pipelining, the requests of one visit overlap on purpose: the third rule then applies only if the pause is not 0.

The audit does not see: requests that were in flight when a crawl was killed; requests on which the server closed a
connection that it had answered on before (they count as not made); back-off after failures; Retry-After; and, if w
depends on the size of a site, all but the smaller w. It finds early and overlapping visits in any order of the rows.
"""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.discovery.scope import is_among
from trapline.crawler.discovery.site_settings import SiteSettings, settings_of
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.run_options import RunOptions, options_over_time
from trapline.crawler.inspect.database_reader import Longs, meta, options
from trapline.crawler.inspect.requests import NONE_SEEN, ROBOTS, Requests, RobotsKept, requests_of, robots_kept
from trapline.fetch.urls import host_port

Marks = NDArray[np.bool_]

# A gap is the difference of a start and an end, and an end is itself a sum: three numbers. Rounding to the microsecond
# changes each by at most a half, and the float that held it by 0.24 more. The sum of the errors is below 2 in all but
# contrived cases.
TOLERANCE_US = 2
MOST_EXAMPLES = 20
_PAGES_AT_ONCE = 500
_NEVER = -(1 << 62)


class Manners(NamedTuple):
    """The politeness settings of a crawl: one value for each time from which on they held, the earliest first. A resume or an
    order may change them."""

    since_us: Longs
    delay_us: Longs
    address_delay_us: Longs
    pause_us: Longs
    pipelining: bool
    own_delays_us: list[dict[int, int]]  # at each time, of the sites that have a delay of their own
    own_pauses_us: list[dict[int, int]]

    def delays_us(self, sites: Longs, moments_us: Longs) -> Longs:
        """Return the delay of each of these sites at these moments."""
        return self._with_own(self.at(self.delay_us, moments_us), sites, moments_us, self.own_delays_us)

    def pauses_us(self, sites: Longs, moments_us: Longs) -> Longs:
        return self._with_own(self.at(self.pause_us, moments_us), sites, moments_us, self.own_pauses_us)

    def at(self, values: Longs, moments_us: Longs) -> Longs:
        """Return the values that held at these moments."""
        return values[self._indexes(moments_us)]

    def _indexes(self, moments_us: Longs) -> Longs:
        return np.maximum(np.searchsorted(self.since_us, moments_us, "right") - 1, 0)

    def _with_own(self, usual: Longs, sites: Longs, moments_us: Longs, own: list[dict[int, int]]) -> Longs:
        """Return the values, except for the sites that had values of their own at these moments."""
        if not any(own) or not len(sites):
            return usual
        found, indexes = usual.copy(), self._indexes(moments_us)
        for index, by_site in enumerate(own):
            if by_site:
                numbers = np.array(sorted(by_site))
                rows = np.flatnonzero((indexes == index) & np.isin(sites, numbers))
                values = np.array([by_site[number] for number in numbers.tolist()])
                found[rows] = values[np.searchsorted(numbers, sites[rows])]
        return found


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
    """number of visits that broke each rule; a visit may have broken several"""
    violations: int
    """number of visits that broke any rule"""
    examples: list[Violation]
    """the first of these visits"""


def politeness_violations(database: sqlite3.Connection) -> int:
    """Return the number of visits that broke at least one rule. It must be 0."""
    return audit(database).violations


def audit(database: sqlite3.Connection) -> Audit:
    given, requests, runs = options(database), requests_of(database), options_over_time(meta(database))
    manners = manners_of(runs, origins(database) if any(run.options.sites for run in runs) else ())
    kept = robots_kept(database, given.robots_token, _without_robots(database, given))
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


def origins(database: sqlite3.Connection) -> list[tuple[int, str]]:
    return database.execute("select id, origin from site").fetchall()


def _without_robots(database: sqlite3.Connection, options: CrawlOptions) -> frozenset[int]:
    """Return the sites whose robots.txt does not hold."""
    hosts = options.without_robots
    found = origins(database) if hosts else ()
    return frozenset(number for number, name in found if is_among(host_port(name)[1], hosts))


def manners_of(runs: Sequence[RunOptions], sites: Collection[tuple[int, str]] = ()) -> Manners:
    """Return the settings. `sites`: numbers and origins of the sites, if some have settings of their own."""
    tables = [run.options.sites for run in runs]
    named = ((number, host_port(name)[1]) for number, name in sites)
    hosts = [(number, host) for number, host in named if any(settings_of(one, host) is not None for one in tables)]
    own = [
        {number: one for number, host in hosts if (one := settings_of(run.options.sites, host)) is not None}
        for run in runs
    ]
    return Manners(
        _microseconds([run.since for run in runs]),
        _microseconds([_delay_s(run.options) for run in runs]),
        _microseconds([run.options.rules.address_delay_s for run in runs]),
        _microseconds([run.options.pause_s for run in runs]),
        pipelining=runs[-1].options.http == "pipelining",
        own_delays_us=[_own_us(of_run, "delay_s") for of_run in own],
        own_pauses_us=[_own_us(of_run, "pause_s") for of_run in own],
    )


def _own_us(settings: Mapping[int, SiteSettings], name: str) -> dict[int, int]:
    values = {site: getattr(one, name) for site, one in settings.items()}
    return {site: round(value * 1e6) for site, value in values.items() if value is not None}


def _delay_s(options: CrawlOptions) -> float:
    rules = options.rules
    return min(rules.delay_s, rules.small_site_delay_s) if rules.small_site_pages else rules.delay_s


def _microseconds(seconds: Sequence[float]) -> Longs:
    return np.array([round(one * 1e6) for one in seconds], np.int64)


# ---- Visits compared with each other.


class VisitSpans(NamedTuple):
    """The times of visits from the first request to the last answer, in order of the first request.

    `owner`: the number of the site or address.
    """

    visit: Longs
    owner: Longs
    begin_us: Longs
    end_us: Longs


def _between_visits(requests: Requests, kept: RobotsKept, manners: Manners) -> dict[str, Longs]:
    """Return the visits that overlapped an earlier one, and those that began before the delay after it had passed."""
    sites, addresses = _spans(requests, requests.site), _spans(requests, requests.address)
    delays = kept.delay_us(kept.in_force(sites.owner, sites.begin_us))
    found = [
        _against_earlier(sites, np.maximum(manners.delays_us(sites.owner, sites.begin_us), delays)),
        _against_earlier(addresses, manners.at(manners.address_delay_us, addresses.begin_us)),
    ]
    overlapping, early = (np.unique(np.concatenate(visits)) for visits in zip(*found, strict=True))
    return {"apart": overlapping, "delay": early}


def _spans(requests: Requests, owner: Longs) -> VisitSpans:
    """Return the span of each visit at each owner. If a robots.txt redirects, one visit uses several addresses."""
    order = np.lexsort((owner, requests.visit))
    visit, owner = requests.visit[order], owner[order]
    first = np.flatnonzero(np.r_[True, (visit[1:] != visit[:-1]) | (owner[1:] != owner[:-1])][: len(visit)])
    if not len(first):
        return VisitSpans(visit, owner, visit, visit)
    begin = np.minimum.reduceat(requests.begin_us[order], first)
    end = np.maximum.reduceat(requests.end_us[order], first)
    by_begin = np.lexsort((visit[first], begin))
    return VisitSpans(*(column[by_begin] for column in (visit[first], owner[first], begin, end)))


def _against_earlier(spans: VisitSpans, delay_us: Longs) -> tuple[Longs, Longs]:
    before = latest_end_before(spans.owner, spans.end_us)
    overlapping = spans.begin_us < before - TOLERANCE_US
    early = (spans.begin_us < before + delay_us - TOLERANCE_US) & ~overlapping
    return spans.visit[overlapping], spans.visit[early]


def latest_end_before(owner: Longs, end: Longs) -> Longs:
    """Return for each row the latest end of all earlier rows with the same owner; `_NEVER` if there is none.

    >>> latest_end_before(np.array([7, 7, 8, 7]), np.array([30, 20, 50, 40])).tolist()[1:] == [30, _NEVER, 30]
    True
    """
    before = np.full(len(owner), _NEVER)
    _, owner = np.unique(owner, return_inverse=True)  # the numbers of visits may be of any size
    order = np.argsort(owner, kind="stable")
    ends, number = np.unique(end, return_inverse=True)
    # One running maximum serves all owners: every number of an owner is above those of the owners sorted before it.
    latest = np.maximum.accumulate(owner[order] * len(ends) + number[order])
    same_owner = np.flatnonzero(owner[order][1:] == owner[order][:-1])
    before[order[same_owner + 1]] = ends[latest[same_owner] % max(len(ends), 1)]
    return before


# ---- Requests inside one visit.


def _inside_visits(requests: Requests, kept: RobotsKept, manners: Manners) -> Longs:
    """Return the visits whose own requests overlap, or begin too soon after the previous answer."""
    delays = kept.delay_us(kept.in_force(requests.site, requests.begin_us))
    gap = np.maximum(manners.pauses_us(requests.site, requests.begin_us), delays)
    early = requests.begin_us < latest_end_before(requests.visit, requests.end_us) + gap - TOLERANCE_US
    if manners.pipelining:
        early &= gap > 0
    return np.unique(requests.visit[early])


def _disallowed(database: sqlite3.Connection, requests: Requests, kept: RobotsKept) -> Longs:
    """Return the visits that requested a page which the latest robots.txt forbids, or without having fetched robots.txt."""
    pages = requests.rows(np.flatnonzero(requests.page != ROBOTS))
    in_force = kept.in_force(pages.site, pages.begin_us)
    refused = in_force == NONE_SEEN
    doubtful = np.flatnonzero(~refused & ~kept.is_free(in_force))
    targets = _targets(database, np.unique(pages.page[doubtful]))
    for row in doubtful.tolist():
        refused[row] = not kept.rules[in_force[row]].allows(targets[pages.page[row]])
    return np.unique(pages.visit[refused])


def _targets(database: sqlite3.Connection, pages: Longs) -> dict[int, str]:
    """Return path and query of each page."""
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
    names = dict(origins(database))
    return [
        Violation(
            int(requests.visit[row]),
            names.get(int(requests.site[row]), "?"),
            int(requests.begin_us[row]) / 1e6,
            tuple(rule for rule, visits in broken.items() if requests.visit[row] in visits),
        )
        for row in np.sort(chosen[first])[:MOST_EXAMPLES].tolist()
    ]
