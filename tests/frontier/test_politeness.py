"""No two visits to a site or to an address overlap, and no visit starts too early, whatever the clock shows.

The checker knows the world and the trace, and neither frontier. It keeps its own record of when each site may be visited.

"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.effort import sample
from tests.frontier.worlds import (
    HOSTILE_WORLDS,
    PAIRS,
    WORLDS,
    Event,
    Rank,
    WebPage,
    WebSite,
    World,
    check_webs,
    drive,
    fast_frontier,
    naive_frontier,
)
from tests.naive.frontier import AS_RULES, ELSEWHERE, Rules


class OpenVisit:
    def __init__(self, number: int, site: int, pages: tuple[int, ...], expires_at: float) -> None:
        self.number = number
        self.site = site
        self.unreported = set(pages)
        self.expires_at = expires_at
        self.failed = False
        self.fetched = False


class Checker:
    """Reads a trace from its beginning. `violations` is the list of violations."""

    def __init__(self, world: World) -> None:
        self.rules = Rules(**world.rules)
        self.violations: list[str] = []
        self.open: dict[int, OpenVisit] = {}
        self.group = dict(enumerate(-1 if site.late else site.group for site in world.sites))
        self.site_of = {page: web.site for page, web in enumerate(world.pages)}
        self.dynamic = {page: web.dynamic for page, web in enumerate(world.pages)}
        self.depth: dict[int, int] = {}  # of the known pages
        self.known: dict[int, int] = defaultdict(int)
        self.failures: dict[int, int] = defaultdict(int)
        self.own_delay: dict[int, float] = {}
        self.site_from: dict[int, float] = defaultdict(lambda: -math.inf)
        self.group_from: dict[int, float] = defaultdict(lambda: -math.inf)

    def read(self, trace: Iterable[Event]) -> list[str]:
        for kind, *event in trace:
            getattr(self, f"on_{kind}")(*event)
        return self.violations

    def on_states(self, *_: Any) -> None:
        pass

    def on_sites(self, *_: Any) -> None:
        pass

    # Visits.

    def on_next(self, time: float, answer: Event) -> None:
        expired = [visit for visit in self.open.values() if visit.expires_at <= time]
        for visit in sorted(expired, key=lambda visit: visit.number):
            visit.failed |= bool(visit.unreported)
            self.end(visit, time, -math.inf)
        self.begin(time, answer)

    def on_revisit(self, time: float, site: int, pages: tuple[int, ...], answer: Event) -> None:
        self.begin(time, answer)

    def begin(self, time: float, answer: Event) -> None:
        if answer[0] == "visit":
            visit = OpenVisit(*answer[1:])
            self.check_start(visit, time)
            self.open[visit.number] = visit

    def check_start(self, visit: OpenVisit, time: float) -> None:
        site, group = visit.site, self.group[visit.site]
        sites_open = {other.site for other in self.open.values()}
        checks = {
            "site overlap": site in sites_open,
            "group overlap": group in {self.group[other] for other in sites_open},
            "unresolved": group < 0,
            "site too early": time < self.site_from[site],
            "group too early": time < self.group_from[group],
        }
        self.violations += [f"{what}: visit {visit.number} at {time}" for what, wrong in checks.items() if wrong]

    def on_report(self, time: float, number: int, page: int, result: str, links: Any, _: Any, accepted: bool) -> None:
        if self.accepts(number, accepted):
            self.result(self.open[number], page, result, links)

    def on_finish(
        self, time: float, number: int, results: Any, not_before: float, failed: bool, accepted: bool
    ) -> None:
        if self.accepts(number, accepted):
            self.open[number].failed |= failed
            for page, result, links in results:
                self.result(self.open[number], page, result, links)
            self.end(self.open[number], time, not_before)

    def accepts(self, number: int, accepted: bool) -> bool:
        if accepted != (number in self.open):
            self.violations.append(f"wrong end: visit {number} answered {accepted}")
        return number in self.open

    def result(self, visit: OpenVisit, page: int, result: str, links: tuple[int, ...]) -> None:
        visit.unreported.discard(page)
        visit.failed |= result == "failed"
        if result == "fetched":
            visit.fetched = True
            self.learn(links, self.depth[page] + 1)

    def end(self, visit: OpenVisit, time: float, not_before: float) -> None:
        site, group = visit.site, self.group[visit.site]
        if visit.failed:
            self.failures[site] += 1
        elif visit.fetched:
            self.failures[site] = 0
        delay = max(self.delay(site), self.backoff(site))
        self.site_from[site] = max(self.site_from[site], time + delay, not_before)
        self.group_from[group] = max(self.group_from[group], time + self.ip_delay())
        del self.open[visit.number]

    def ip_delay(self) -> float:
        return self.rules.delay_s if self.rules.ip_delay_s is None else self.rules.ip_delay_s

    def delay(self, site: int) -> float:
        if site in self.own_delay:
            return self.own_delay[site]
        small = self.known[site] < self.rules.small_site_pages
        return self.rules.small_site_delay_s if small else self.rules.delay_s

    def backoff(self, site: int) -> float:
        failures = self.failures[site]
        doubled = self.rules.backoff_s * 2.0 ** (failures - 1)
        return min(doubled, self.rules.backoff_most_s) if failures else 0.0

    # Known pages. The delay of a small site depends on their number.

    def on_discover(self, time: float, pages: tuple[int, ...]) -> None:
        self.learn(pages, 0)

    def on_receive(self, time: float, pages: tuple[int, ...], depths: tuple[int, ...]) -> None:
        for page, depth in zip(pages, depths, strict=True):
            self.learn((page,), depth + 1)

    def learn(self, pages: tuple[int, ...], depth: int) -> None:
        for page in pages:
            if page == ELSEWHERE:
                continue
            limit = self.rules.depth_dynamic if self.dynamic[page] else self.rules.depth_static
            if page not in self.depth and (not limit or depth <= limit):
                self.depth[page] = depth
                self.known[self.site_of[page]] += 1

    # The operator.

    def on_set_site(self, time: float, site: int, given: tuple[tuple[str, float], ...]) -> None:
        settings = dict(given)
        if settings.get("delay_s") == AS_RULES:
            self.own_delay.pop(site, None)
        elif "delay_s" in settings:
            self.own_delay[site] = settings["delay_s"]
        self.site_from[site] = max(self.site_from[site], settings.get("not_before", -math.inf))

    def on_hold_all(self, time: float) -> None:
        for site, group in self.group.items():
            self.site_from[site] = max(self.site_from[site], time + self.delay(site))
            self.group_from[group] = max(self.group_from[group], time + self.ip_delay())

    def on_set_quality(self, *_: Any) -> None:
        """The quality of a fetched page changes the order, and no delay."""

    def on_rescore(self, *_: Any) -> None:
        """Scores change the order, and never which sites may be visited."""

    def on_resolve(self, time: float, site: int, group: int, answer: str) -> None:
        if answer == "done":
            self.group[site] = group

    def on_move(self, time: float, old: int, answer: str, *moved: Any) -> None:
        if answer == "refused":
            return
        site, group, old_pages, new_pages = moved
        self.group[site] = group
        self.known[site], self.failures[site] = self.known[old], self.failures[old]
        self.site_from[site] = self.site_from[old]
        if old in self.own_delay:
            self.own_delay[site] = self.own_delay[old]
        for before, after in zip(old_pages, new_pages, strict=True):
            self.depth[after] = self.depth[before]
            self.site_of[after], self.dynamic[after] = site, self.dynamic[before]


# The oracle is checked too, with a few pairs. Otherwise an impolite rule would pass if both frontiers follow it.
RUNS = [(fast_frontier, rank) for rank in sample(PAIRS, 3)]
RUNS += [(naive_frontier, rank) for rank in PAIRS if rank.page == "batch-pagerank"]
every_frontier = pytest.mark.parametrize(
    ("make", "rank"), RUNS, ids=[f"{make.__name__}-{'-x-'.join(rank)}" for make, rank in RUNS]
)


@every_frontier
def test_visits_do_not_overlap_and_do_not_start_early(make: Callable[[Rank, World], Any], rank: Rank) -> None:
    def is_polite(world: World) -> None:
        assert Checker(world).read(drive(make(rank, world), world)) == []

    check_webs(is_polite, WORLDS, rank, compiled=50, uncompiled=10)


@every_frontier
def test_visits_are_polite_when_the_clock_jumps(make: Callable[[Rank, World], Any], rank: Rank) -> None:
    def is_polite(world: World) -> None:
        assert Checker(world).read(drive(make(rank, world), world)) == []

    check_webs(is_polite, HOSTILE_WORLDS, rank, compiled=50, uncompiled=10)


# The checker can fail: forged traces with two sites on one address.

TWO_SITES = World(
    sites=(WebSite(group=0), WebSite(group=0), WebSite(group=1)),
    pages=(WebPage(0), WebPage(0), WebPage(1), WebPage(2)),
    seeds=(0, 1, 2, 3),
    rules={"delay_s": 10.0, "ip_delay_s": 2.0, "backoff_s": 16.0, "small_site_pages": 2, "small_site_delay_s": 30.0},
)
SEEDS: Event = ("discover", 0.0, (0, 1, 2, 3))


def visit(time: float, number: int, site: int, page: int) -> Event:
    return ("next", time, ("visit", number, site, (page,), time + 600.0))


def revisit(time: float, number: int, site: int, page: int) -> Event:
    return ("revisit", time, site, (page,), ("visit", number, site, (page,), time + 600.0))


def finish(time: float, number: int, page: int, result: str = "fetched", not_before: float = -math.inf) -> Event:
    return ("finish", time, number, ((page, result, ()),), not_before, False, True)


def site_fails(time: float, number: int) -> Event:
    return ("finish", time, number, (), -math.inf, True, True)


FORGED = {
    "site overlap: visit 1 at 1.0": [visit(0.0, 0, 0, 0), visit(1.0, 1, 0, 1)],
    "group overlap: visit 1 at 1.0": [visit(0.0, 0, 0, 0), visit(1.0, 1, 1, 2)],
    "site too early: visit 1 at 10.75": [visit(0.0, 0, 0, 0), finish(1.0, 0, 0), visit(10.75, 1, 0, 1)],
    "group too early: visit 1 at 2.75": [visit(0.0, 0, 0, 0), finish(1.0, 0, 0), visit(2.75, 1, 1, 2)],
    # Back-off: 16 s after one failure.
    "site too early: visit 1 at 16.75": [visit(0.0, 0, 0, 0), finish(1.0, 0, 0, "failed"), visit(16.75, 1, 0, 0)],
    "site too early: visit 1 at 16.25": [visit(0.0, 0, 0, 0), site_fails(1.0, 0), visit(16.25, 1, 0, 0)],
    # Site 2 has one known page, so it is small.
    "site too early: visit 1 at 30.75": [visit(0.0, 0, 2, 3), finish(1.0, 0, 3), visit(30.75, 1, 2, 3)],
    "site too early: visit 1 at 40.0": [
        visit(0.0, 0, 0, 0),
        finish(1.0, 0, 0, not_before=50.0),
        visit(40.0, 1, 0, 1),
    ],
    # A site's own delay applies after the end of the next visit.
    "site too early: visit 1 at 20.0": [
        ("set_site", 0.0, 0, (("delay_s", 20.0),)),
        visit(0.0, 0, 0, 0),
        finish(1.0, 0, 0),
        visit(20.0, 1, 0, 1),
    ],
    # A site's own delay that is withdrawn: site 2 is small again.
    "site too early: visit 1 at 20.5": [
        ("set_site", 0.0, 2, (("delay_s", 1.0),)),
        ("set_site", 0.0, 2, (("delay_s", AS_RULES),)),
        visit(0.0, 0, 2, 3),
        finish(1.0, 0, 3),
        visit(20.5, 1, 2, 3),
    ],
    # hold_all delays all sites from its moment: sites by 10 s (site 2, which is small, by 30 s), addresses by 2 s.
    "site too early: visit 0 at 14.75": [("hold_all", 5.0), visit(14.75, 0, 0, 0)],
    "group too early: visit 0 at 6.75": [
        ("set_site", 0.0, 0, (("delay_s", 0.0),)),
        ("hold_all", 5.0),
        visit(6.75, 0, 0, 0),
    ],
    # A revisit must be as polite as a visit, and so must the visit after it.
    "site too early: visit 1 at 10.5": [visit(0.0, 0, 0, 0), finish(1.0, 0, 0), revisit(10.5, 1, 0, 0)],
    "group too early: visit 1 at 2.5": [visit(0.0, 0, 0, 0), finish(1.0, 0, 0), revisit(2.5, 1, 1, 2)],
    "site overlap: visit 1 at 1.5": [visit(0.0, 0, 0, 0), revisit(1.5, 1, 0, 1)],
    "group overlap: visit 1 at 1.5": [revisit(0.0, 0, 0, 0), visit(1.5, 1, 1, 2)],
    "site too early: visit 1 at 16.5": [revisit(0.0, 0, 0, 0), finish(1.0, 0, 0, "failed"), visit(16.5, 1, 0, 1)],
    # Only `next` finds that a visit has expired.
    "group overlap: visit 1 at 600.0": [visit(0.0, 0, 0, 0), revisit(600.0, 1, 1, 2)],
    # A lost visit ends when `next` finds it, not when it expired, and counts as failed.
    "site too early: visit 1 at 715.75": [
        visit(0.0, 0, 0, 0),
        ("next", 700.0, ("wait", 716.0)),
        visit(715.75, 1, 0, 0),
    ],
    "wrong end: visit 0 answered True": [visit(0.0, 0, 0, 0), ("next", 600.0, ("wait", 616.0)), finish(601.0, 0, 0)],
}


@pytest.mark.parametrize("violation", FORGED)
def test_the_checker_finds_forged_violations(violation: str) -> None:
    found = Checker(TWO_SITES).read([SEEDS, *FORGED[violation]])
    assert violation in found
    # An overlap on a site is also reported for its address. Nothing else may be reported.
    assert len(found) <= (2 if violation.startswith("site overlap") else 1)


def test_the_checker_accepts_the_first_allowed_moment() -> None:
    events = [
        visit(0.0, 0, 0, 0),
        finish(1.0, 0, 0),
        visit(3.0, 1, 1, 2),  # the address is free 2 s after 1.0
        finish(4.0, 1, 2),
        visit(11.0, 2, 0, 1),  # the site is free 10 s after 1.0
        finish(12.0, 2, 1, "failed"),
        visit(28.0, 3, 0, 1),  # 16 s after 12.0
    ]
    assert Checker(TWO_SITES).read([SEEDS, *events]) == []
