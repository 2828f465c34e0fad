"""The pace of a crawl: what limits it, and how long the waiting pages take. It decides nothing; the user reads it.

The time follows from what the crawl knows: how many pages wait at each site, the site's delay w, pages per visit k and pause,
its measured times, the delay of its address, the connections, the bandwidth, and the speed so far. It is a lower bound,
because pages may still be found, unless a goal ends the crawl before (docs/decisions/052-pace-and-changes.md).
"""

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from trapline.crawler.discovery.sites import Sites
from trapline.crawler.engine.options import KEPT_S, CrawlOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.frontier import Frontier, Rules
from trapline.frontier.layout import BY_BACKOFF, MOST_PER_VISIT, Array
from trapline.units import byte_rate, counted, duration, three_digits

# What limits a crawl. Names are part of `status --json`.
DELAY, PAUSE, SITE_DELAY, CRAWL_DELAY, ADDRESS = "delay", "pause", "site-delay", "crawl-delay", "address"
CONNECTIONS, BANDWIDTH, ANSWERS, SPEED, BACKOFF = "connections", "bandwidth", "answers", "speed", "back-off"
_LEAST_S = 5.0  # of a run, before its speed so far may be the limit
_MOST_SITES = 10_000  # the pauses of robots.txt files are read if no more sites than this have waiting pages
_POLITENESS = (DELAY, PAUSE, SITE_DELAY, CRAWL_DELAY, ADDRESS, BACKOFF)
_ESTIMATED = (ANSWERS, CONNECTIONS)  # limits that follow from estimated times of servers, so that a crawl may be faster
_LEAST_ANSWER_S = 1e-5
_LEAST_ADDRESS_S = 1e-6  # for all pages of an address, so that each has a rate
# The speed so far is the limit of a crawl if the pages take this much longer than all other limits say, or if an estimate of the times of
# servers is that wrong. It fluctuates, most of all in crawls that wait for delays.
_CLEARLY_SLOWER = 1.5


class Pace(NamedTuple):
    limit: str
    pages: int  # that wait and are to be fetched
    seconds: float  # that they take
    at_least: bool  # whether more pages may be found, so that the crawl takes at least this time
    sites: int  # with waiting pages
    visit_pages: int  # pages of one visit to the site or address that takes longest
    visit_every_s: float  # from the begin of a visit there to the next
    answer_s: float  # response time of that site
    amount: float  # of the limit: connections, bytes per second, pages per second, or seconds of back-off

    @classmethod
    def from_json(cls, text: str) -> "Pace":
        return cls(**{name: value for name, value in json.loads(text).items() if name != "text"})

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "text": self.text}

    @property
    def text(self) -> str:
        times = (
            "at least {}"
            if self.at_least and self.limit != SPEED
            else "at least about {}"
            if self.at_least
            else "about {}"
        )
        hint = f"; {_hint(self.limit == DELAY, self.sites)}" if self.limit in (DELAY, PAUSE) else ""
        return f"{self._why()}: {times.format(duration(self.seconds))} for {counted(self.pages, 'page')}{hint}"

    def _why(self) -> str:
        visits = f"{counted(self.visit_pages, 'page')} every {duration(self.visit_every_s)}"
        sites = "one site" if self.sites == 1 else f"{self.sites:,} sites"
        slowest_site = "one site, which" if self.sites == 1 else f"{sites}; the slowest"
        slowest = f"{sites}, {visits}" if self.sites == 1 else f"{slowest_site} gives {visits}"
        return {
            DELAY: slowest,
            PAUSE: slowest,
            SITE_DELAY: f"{slowest} (its own settings)",
            CRAWL_DELAY: f"{slowest} (Crawl-delay of its robots.txt)",
            ADDRESS: f"{sites}; some share an address, which gives {visits} (--ip-delay)",
            CONNECTIONS: f"{sites}, {self.amount:,.0f} connections at once (--connections)",
            BANDWIDTH: f"{byte_rate(self.amount)} (--bandwidth)",
            ANSWERS: f"{slowest_site} answers in {duration(self.answer_s)}",
            SPEED: f"{three_digits(self.amount)} pages/s so far",
            BACKOFF: f"{slowest_site} is in back-off for {duration(self.amount)} after failed visits (--backoff)",
        }[self.limit]


_COLUMNS = (
    *("per_connection", "requests", "known", "delay_s", "group", "ready_at", "delay_rule"),
    *("responses", "response_s", "connections", "connection_s"),
)  # of SITE in frontier/layout.py


class SiteLoads(NamedTuple):
    """The sites with waiting pages, and the time that each needs if nothing else limits it."""

    pages: Array  # that wait and may be fetched
    per_visit: Array  # k
    delay_s: Array  # w
    pause_s: Array  # between two pages of a visit
    answer_s: Array
    connection_s: Array
    opens_s: Array  # until the first visit may begin
    group: Array  # address; sites that are not resolved have numbers of their own
    own_delay_s: Array  # that the user set for the site alone; NaN: none
    own_pause_s: Array
    backs_off: Array  # whether failed visits are the reason of `opens_s`
    most_per_visit: Array  # what k may become: pages that the server lets a visit have, or the site's own k
    has_common_delay: Array  # whether --delay sets the delay of the site

    @property
    def visits(self) -> Array:
        return np.ceil(self.pages / self.per_visit)

    @property
    def busy_s(self) -> Array:
        """Time in which a connection is open."""
        return self.visits * self.connection_s + self.pages * self.answer_s + (self.pages - self.visits) * self.pause_s

    @property
    def seconds(self) -> Array:
        return self.opens_s + self.busy_s + (self.visits - 1.0) * self.delay_s


def site_loads(frontier: Frontier, sites: Sites, pause_s: float, now: float) -> SiteLoads:
    """Return the load of each site with waiting pages. `pause_s`: the pause of sites whose robots.txt asks for none."""
    waiting = frontier.site_waiting
    chosen = np.flatnonzero(waiting)
    every, rules = frontier.site_records, frontier.rules
    record = {name: every[name][chosen] for name in _COLUMNS}  # a copy of whole records would take ten times as long
    k = np.where(record["per_connection"] >= 0, record["per_connection"], rules.per_connection)
    per_visit = np.minimum(np.minimum(np.where(k > 0, k, MOST_PER_VISIT), record["requests"]), MOST_PER_VISIT)
    small = record["known"] < rules.small_site_pages
    delay_s = np.where(small, rules.small_site_delay_s, rules.delay_s)
    own = record["delay_s"]
    pauses = np.full(len(chosen), pause_s)
    if len(chosen) <= _MOST_SITES:
        pauses = np.array([sites[site].pause_s for site in chosen.tolist()], np.float64)
    group = np.where(record["group"] >= 0, record["group"], -1 - chosen)
    delay_s = np.where(np.isnan(own), delay_s, own)
    connection_s = _measured(record["connection_s"], record["connections"], rules.first_connection_s, rules)
    is_kept = np.maximum(delay_s, rules.address_delay_s) <= KEPT_S  # the next visit goes on with the same connection
    return SiteLoads(
        waiting[chosen].astype(np.float64),
        np.maximum(per_visit, 1).astype(np.float64),
        delay_s,
        pauses,
        _measured(record["response_s"], record["responses"], rules.first_response_s, rules),
        np.where(is_kept, 0.0, connection_s),
        np.maximum(record["ready_at"] - now, 0.0),
        group,
        *_own_settings(sites, chosen),
        record["delay_rule"] == BY_BACKOFF,
        np.where(record["per_connection"] >= 0, per_visit, np.clip(record["requests"], 1, MOST_PER_VISIT)),
        np.isnan(own) & ~small,
    )


def _measured(estimate_s: Array, measurements: Array, first_s: float, rules: Rules) -> Array:
    """Return the mean of the measurements; 0: there are none. A moving average contains a share of the value that was assumed before the
    first measurement, and a server on this machine answers in a hundredth of that."""
    if rules.estimator == "average":
        share = rules.alpha**measurements
        estimate_s = np.maximum(estimate_s - share * first_s, _LEAST_ANSWER_S) / np.maximum(1.0 - share, 1e-9)
    return np.where(measurements > 0, estimate_s, 0.0)


def _own_settings(sites: Sites, chosen: Array) -> tuple[Array, Array]:
    """Return the delays and pauses that the user set for single sites; NaN: none."""
    own = np.full((2, len(chosen)), np.nan)
    for at, site in enumerate(chosen.tolist() if sites.has_tables else ()):
        if (settings := sites[site].settings) is not None:
            own[:, at] = (settings.delay_s, settings.pause_s)  # None becomes NaN
    return own[0], own[1]


class _Needs(NamedTuple):
    """The addresses with waiting pages: the pages of each, and when they come."""

    pages: Array
    opens: Array  # seconds until the first visit may begin
    seconds: Array  # until the last page
    slowest: int  # the site, by its place in the loads, that makes the slowest address slow
    is_shared: bool  # whether sites that share this address make it slow


def _needs(loads: SiteLoads, address_delay_s: float) -> _Needs:
    _, address = np.unique(loads.group, return_inverse=True)
    turns = np.bincount(address, loads.busy_s + loads.visits * address_delay_s) - address_delay_s
    longest, opens = np.zeros(len(turns)), np.full(len(turns), np.inf)
    np.maximum.at(longest, address, loads.seconds)
    np.minimum.at(opens, address, loads.opens_s)
    seconds, pages = np.maximum(turns, longest), np.bincount(address, loads.pages)
    slow = int(np.argmax(seconds))
    of_slow = np.flatnonzero(address == slow)
    slowest = int(of_slow[np.argmax(loads.seconds[of_slow])])
    is_shared = len(of_slow) > 1 and bool(turns[slow] > longest[slow])
    return _Needs(pages, opens, seconds, slowest, is_shared)


def _seconds_for(wanted: float, needs: _Needs) -> float:
    """Return the time in which the addresses together can give this number of pages, each at its own rate from its first visit on."""
    ends = np.maximum(needs.seconds, needs.opens + _LEAST_ADDRESS_S)
    rates = needs.pages / (ends - needs.opens)
    moments = np.concatenate((needs.opens, ends))
    order = np.argsort(moments, kind="stable")
    moments, rate = moments[order], np.cumsum(np.concatenate((rates, -rates))[order])
    given = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(moments))))  # number of pages at each moment
    after = min(int(np.searchsorted(given, wanted * (1 - 1e-9))), len(moments) - 1)
    return float(moments[after] - max(given[after] - wanted, 0.0) / max(rate[after - 1], 1e-9))


def pace_of(loads: SiteLoads, options: CrawlOptions, progress: CrawlProgress, ran: CrawlProgress) -> Pace | None:
    """Return the pace, or None if no page waits, or if nothing is known yet that takes time. `ran`: the progress of this run alone."""
    waiting = float(loads.pages.sum())
    wanted = min(waiting, options.max_pages - progress.pages)
    if wanted <= 0.0:
        return None
    needs = _needs(loads, options.rules.address_delay_s)
    by_sites_s = _seconds_for(wanted, needs)
    share = wanted / waiting
    page_bytes = progress.bytes / progress.pages if progress.pages else 0.0
    limits = {
        _limit_of_sites(loads, needs, options): by_sites_s,
        CONNECTIONS: float(loads.busy_s.sum()) * share / options.connections,
        BANDWIDTH: wanted * page_bytes / options.bandwidth,
    }
    limit = max(limits, key=limits.__getitem__)
    speed = ran.pages / ran.seconds if ran.seconds > _LEAST_S and limit not in _POLITENESS else 0.0
    is_faster = limit in _ESTIMATED and speed * limits[limit] > _CLEARLY_SLOWER * wanted
    if speed and (is_faster or wanted / speed > _CLEARLY_SLOWER * limits[limit]):
        limit, limits[SPEED] = SPEED, wanted / speed
    if limit == ANSWERS and not loads.answer_s[needs.slowest]:
        return None  # no answer of the slowest site is measured yet, and a time without it would be absurd
    backoff_s = float(loads.opens_s[needs.slowest])
    amounts = {CONNECTIONS: float(options.connections), BANDWIDTH: options.bandwidth, SPEED: speed, BACKOFF: backoff_s}
    return Pace(
        limit,
        int(wanted),
        limits[limit],
        wanted == waiting,
        len(loads.pages),
        *_visit(loads, needs.slowest),
        amounts.get(limit, 0.0),
    )


def _visit(loads: SiteLoads, at: int) -> tuple[int, float, float]:
    """Return pages per visit, seconds from visit to visit, and response time of a site."""
    k = min(float(loads.per_visit[at]), float(loads.pages[at]))
    busy_s = float(loads.connection_s[at] + k * loads.answer_s[at] + (k - 1.0) * loads.pause_s[at])
    return int(k), busy_s + float(loads.delay_s[at]), float(loads.answer_s[at])


def _limit_of_sites(loads: SiteLoads, needs: _Needs, options: CrawlOptions) -> str:
    """Return why the slowest address needs its time: rules of politeness, or the answers of its server."""
    at, rules = needs.slowest, options.rules
    visits, pages = loads.visits[at], loads.pages[at]
    waits_s = loads.opens_s[at] + (visits - 1) * loads.delay_s[at] + (pages - visits) * loads.pause_s[at]
    own_delay_s, own_pause_s = float(loads.own_delay_s[at]), float(loads.own_pause_s[at])
    has_own_delay, has_own_pause = not math.isnan(own_delay_s), not math.isnan(own_pause_s)
    set_delay_s = own_delay_s if has_own_delay else max(rules.delay_s, rules.small_site_delay_s)
    set_pause_s = own_pause_s if has_own_pause else options.pause_s
    if needs.is_shared:
        return ADDRESS
    if loads.backs_off[at] and 2.0 * loads.opens_s[at] > loads.seconds[at]:
        return BACKOFF
    if loads.delay_s[at] > set_delay_s or loads.pause_s[at] > set_pause_s:
        return CRAWL_DELAY
    if waits_s <= 0.0 or 2.0 * waits_s < loads.seconds[at]:
        return ANSWERS
    if has_own_delay or has_own_pause:
        return SITE_DELAY
    return DELAY if loads.delay_s[at] > 0.0 else PAUSE


def pace_together(paces: Sequence[Pace], goal: float, fetched: int) -> Pace | None:
    """Return the pace of a crawl of several partitions: the slowest one limits it, unless a goal ends the crawl before."""
    if not paces:
        return None
    slowest, pages = max(paces, key=lambda one: one.seconds), sum(one.pages for one in paces)
    found = slowest._replace(pages=pages, at_least=True, sites=sum(one.sites for one in paces))
    if goal - fetched >= pages:
        return found
    wanted, rate = max(goal - fetched, 0.0), sum(one.pages / max(one.seconds, 1e-9) for one in paces)
    return found._replace(pages=int(wanted), seconds=wanted / rate, at_least=False)


def pace_of_waiting(
    frontier: Frontier, sites: Sites, options: CrawlOptions, now: float, fetched: int, received: int
) -> Pace | None:
    """Return the pace of a crawl that is about to be resumed at a moment `now`, after this number of pages and of bytes. Waits have passed
    since it was stopped."""
    loads = site_loads(frontier, sites, options.pause_s, max(frontier.now, now))
    so_far = CrawlProgress(0.0, 0.0, fetched, 0, received, 0, 0, 0, 0, 0.0)
    return pace_of(loads, options, so_far, so_far) if len(loads.pages) else None


# ---- Before a crawl, when neither the pages nor the times of its sites are known.

_EXAMPLE_PAGES = 1_000
_WORTH_SAYING_S = 10.0


def expected_pace(options: CrawlOptions, sites: int | None) -> str:
    """Return the pace that a new crawl can have, by its delays alone: the time of answers comes on top. `sites`: number of
    sites, if the scope says so."""
    rules = options.rules
    k = max(1, rules.per_connection)
    visit_s = rules.delay_s + (k - 1) * options.pause_s
    if visit_s <= 0.0:
        return "no delay (--delay 0): each site gets requests as fast as it answers; use this only on your own sites"
    if rules.per_connection == 0:
        return (
            f"pace: as many pages per visit as the server allows, one every {duration(options.pause_s)}, "
            f"with {duration(rules.delay_s)} between two visits to a site (--per-connection, --pause, --delay)"
        )
    where = "" if sites is not None else " of each site"
    named = "" if sites is None else "one site, " if sites == 1 else f"{sites:,} sites, each "
    rate = f"pace: {named}{counted(k, 'page')}{where} every {duration(visit_s)} (--per-connection, --pause, --delay)"
    pages = int(min(options.max_pages, _EXAMPLE_PAGES))
    least_s = _least_s(math.ceil(pages / (sites or 1)), k, rules.delay_s, options.pause_s)
    if least_s < _WORTH_SAYING_S:
        return rate
    of_one = " of one site" if sites is None else ""
    every = "every " if options.max_pages > pages else ""
    shown = f"for {every}{counted(pages, 'page')}{of_one}"
    return f"{rate}: at least {duration(least_s)} {shown}; {_hint(rules.delay_s > 0.0, sites)}"


def _least_s(pages: int, k: int, delay_s: float, pause_s: float) -> float:
    """Return the time of this number of pages of one site, without the time of its answers."""
    visits = math.ceil(pages / k)
    return (visits - 1) * delay_s + (pages - visits) * pause_s


def _hint(has_delay: bool, sites: int | None) -> str:
    """Return what the owner of the sites may do. Without a delay, a pause was given: by default it is not longer than the delay."""
    whose = "if the site is yours" if sites == 1 else "for sites of your own"
    return f"{whose}, use --delay 0" if has_delay else f"{whose}, use --pause 0"
