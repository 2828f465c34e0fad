"""The oracle of the frontier: docs/frontier.md in plain Python, sentence by sentence.

Rules of this file: no heap, no index, no count that could be taken by looking. Every `next` looks at every site and
every page of it. The file remembers only what the law keeps between two events: the rank of a site since its last
evaluation, its turn, and whether it competes or is delayed.

"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.naive.ranks import Queue, twin_of_page_rank, twin_of_site_rank
from trapline.errors import ConfigError, InvariantError

UNKNOWN, WAITING, LEASED, FETCHED_PAGE, GONE = range(5)  # the codes of page_state
REVISITED = 7
AS_RULES = -1  # removes the delay, k or budget of a site's own
ELSEWHERE = -1  # the link of a page to another partition
COPIED = (FETCHED_PAGE, REVISITED)  # states in which we have a copy
FETCHED, FAILED, REFUSED = "fetched", "failed", "refused"
NOWHERE, COMPETES, DELAYED = "nowhere", "competing", "delayed"

DEEPEST = 32_767
MOST_PAGES = 1_000


@dataclass(frozen=True)
class Rules:
    delay_s: float = 15.0
    ip_delay_s: float | None = None
    small_site_pages: int = 0
    small_site_delay_s: float = 15.0
    per_connection: int = 1
    lease_s: float = 600.0
    retries: int = 2
    backoff_s: float = 60.0
    backoff_most_s: float = 3600.0
    pages_per_site: int = 0
    depth_static: int = 0
    depth_dynamic: int = 0
    batch: int = 0
    batch_ahead: bool = False
    batch_least_active: int = 0
    rescore: int = 0
    estimator: str = "average"
    alpha: float = 0.8
    pipelining: bool = False
    first_connection_s: float = 0.1
    first_response_s: float = 0.1
    first_requests: int = 50


class Visit(NamedTuple):
    id: int
    site: int
    pages: tuple[int, ...]
    expires_at: float


class WaitUntil(NamedTuple):
    time: float


class Rescore(NamedTuple):
    fetched: int


class Drained(NamedTuple):
    pass


class Result(NamedTuple):
    page: int
    result: str
    links: Sequence[int] = ()
    response_s: float = math.nan


class Outcome(NamedTuple):
    results: Sequence[Result] = ()
    connection_s: float = math.nan
    served: int = 0
    closed: bool = False
    allowed: int = 0
    not_before: float = -math.inf
    failed: bool = False


class MovedPage(NamedTuple):
    rank: float
    tries: int
    depth: int
    columns: dict[str, float]


class SiteExport(NamedTuple):
    pages: tuple[int, ...]
    details: tuple[MovedPage, ...]
    connection_s: float | None
    response_s: float | None
    requests: int
    failures: int
    known: int
    fetched: int
    delay_s: float | None
    per_connection: int | None
    budget: int | None
    site_delay_s: float


@dataclass
class Page:
    site: int
    dynamic: bool
    state: int = UNKNOWN
    depth: int = 0
    rank: float = 0.0
    tries: int = 0
    serial: int = -1
    chosen: bool = False
    columns: dict[str, float] = field(default_factory=dict)

    @property
    def key(self) -> float:
        return self.rank * 0.5**self.tries if self.rank > 0 else self.rank * 2.0**self.tries


@dataclass
class Standing:
    """A rank that is valid since its last evaluation, and what was seen of the queue after the last single change."""

    rank: float
    seen: Queue


@dataclass
class Site:
    group: int
    requests: int
    pages: list[int] = field(default_factory=list)
    ready_at: float = -math.inf
    visit: int | None = None
    failures: int = 0
    delay_s: float | None = None
    per_connection: int | None = None
    budget: int | None = None
    connection_s: float | None = None
    response_s: float | None = None
    # Pages known and fetched by the frontier from which the site moved here. They have no id in this frontier.
    known_elsewhere: int = 0
    fetched_elsewhere: int = 0
    most_at_last: float = math.inf  # P at the end of the last visit or set_site
    turn: int = 0  # 0: never placed
    place: str = NOWHERE
    competing: Standing | None = None
    backlog: Standing | None = None  # None: not open


@dataclass
class Lease:
    visit: Visit
    again: bool = False  # its pages were fetched before
    failed: bool = False
    fetched: bool = False


@dataclass
class Mean:
    """The mean over the sites measured so far, kept as the law says: a running total and a number."""

    first: float
    total: float = 0.0
    number: int = 0

    def value(self) -> float:
        return self.total / self.number if self.number else self.first

    def measure(self, old: float | None, measured: float, rules: Any) -> float:
        base = self.value() if old is None else old
        new = ESTIMATORS[rules.estimator](base, measured, rules.alpha)
        if old is None:
            self.join(new)
        else:
            self.total += new - old
        return new

    def join(self, estimate: float) -> None:
        self.total += estimate
        self.number += 1


def average(old: float, measured: float, alpha: float) -> float:
    return old * alpha + measured * (1 - alpha)


def median(old: float, measured: float, alpha: float) -> float:
    """A step of fixed size towards the measured value."""
    if old == 0 or alpha == 0:
        return measured
    if measured > old:
        return old / alpha
    return old * alpha if measured < old else old


ESTIMATORS = {"average": average, "median": median}


def exact_sum(keys: Iterable[float]) -> float:
    """The exact sum of the keys, each cut to a multiple of 2^-62 in floating point."""
    whole, fraction = divmod(sum(in_units(key) for key in keys), 2**62)
    return float(whole) + float(fraction) * 2.0**-62


def in_units(key: float) -> int:
    whole = math.floor(key)
    return whole * 2**62 + int((key - whole) * 2.0**62)


def checked(rank: float) -> float:
    if math.isnan(rank) or abs(rank) >= 2.0**42:
        raise ConfigError(f"a rank must be a number smaller than 2^42 in size, not {rank}")
    return rank


class NaiveFrontier:
    def __init__(self, page_rank: str, site_rank: str, rules: Any = None, seed: int = 0) -> None:
        self.rules = Rules() if rules is None else rules
        self.page_rank = twin_of_page_rank(page_rank)
        self.site_rank = twin_of_site_rank(site_rank)
        self.next_visit_queues = "quality_sum" in self.site_rank.reads
        self.seed = seed
        self.sites: list[Site] = []
        self.pages: list[Page] = []
        self.group_ready_at: dict[int, float] = {}
        self.leases: dict[int, Lease] = {}
        self.connections = Mean(self.rules.first_connection_s)
        self.responses = Mean(self.rules.first_response_s)
        self.now = -math.inf
        self.serials = 0
        self.visits = 0
        self.turns = 0
        self.rescore_at = self.rules.rescore
        self.over_at_scores = 0  # pages FETCHED or GONE when the last scores came
        self.times_scored = 0

    # What the caller registers.

    def add_sites(self, count: int, now: float, groups: Sequence[int] | None = None) -> int:
        self._clock(now)
        first = len(self.sites)
        for group in [-1] * count if groups is None else groups:
            self.sites.append(Site(int(group), self.rules.first_requests))
        return first

    def add_pages(self, sites: Sequence[int], dynamic: Sequence[bool] | None = None) -> int:
        first = len(self.pages)
        for at, site in enumerate(sites):
            self.sites[site].pages.append(len(self.pages))
            self.pages.append(Page(int(site), bool(dynamic is not None and dynamic[at])))
        return first

    def set_column(self, name: str, values: Sequence[float]) -> None:
        for page, value in zip(self.pages, values, strict=True):
            page.columns[name] = float(value)

    def page_state(self, page: int) -> int:
        return self.pages[page].state

    # What a site rank may see of a site's record.

    def connection_s(self, site: int) -> float:
        own = self.sites[site].connection_s
        return self.connections.value() if own is None else own

    def response_s(self, site: int) -> float:
        own = self.sites[site].response_s
        return self.responses.value() if own is None else own

    def site_record(self, site: int) -> dict[str, Any]:
        """The values of the record that a site rank may use, by name. None: not measured, or not set."""
        own = self.sites[site]
        kept = {
            name: getattr(own, name)
            for name in ("connection_s", "response_s", "requests", "failures", "delay_s", "turn")
        }
        return kept | {"known": self._known(site), "taken": self.taken(site)}

    def taken(self, site: int) -> int:
        return self._fetched(site) + self._count(site, LEASED)

    def delay_s(self, site: int) -> float:
        """w: the delay that would follow a visit that ended now."""
        own = self.sites[site].delay_s
        if own is not None:
            return own
        small = self._known(site) < self.rules.small_site_pages
        return float(self.rules.small_site_delay_s if small else self.rules.delay_s)

    # Pages of a site.

    def _count(self, site: int, *states: int) -> int:
        return sum(self.pages[page].state in states for page in self.sites[site].pages)

    def _known(self, site: int) -> int:
        return self.sites[site].known_elsewhere + self._count(site, WAITING, LEASED, GONE, *COPIED)

    def _fetched(self, site: int) -> int:
        return self.sites[site].fetched_elsewhere + self._count(site, *COPIED)

    def _queue(self, site: int, chosen: bool) -> list[int]:
        """The waiting pages of the site, in order. Without batches every waiting page is chosen."""
        waiting = [p for p in self.sites[site].pages if self.pages[p].state == WAITING]
        return sorted((p for p in waiting if self.pages[p].chosen == chosen), key=self._page_order)

    def _page_order(self, page: int) -> tuple[float, int]:
        return -self.pages[page].key, self.pages[page].serial

    def _most(self, site: int, chosen: bool) -> float:
        """P, for the pages that may be leased or for the backlog."""
        return min(self._most_at_once(site), self._budget_left(site, chosen))

    def _most_at_once(self, site: int) -> float:
        own = self.sites[site]
        k = self.rules.per_connection if own.per_connection is None else own.per_connection
        return min(k or math.inf, own.requests, MOST_PAGES)

    def _budget_left(self, site: int, chosen: bool) -> float:
        own = self.sites[site].budget
        budget = (self.rules.pages_per_site or math.inf) if own is None else own
        return budget - self.taken(site) - (0 if chosen else len(self._queue(site, chosen=True)))

    def _next_visit(self, site: int, chosen: bool) -> list[int]:
        queue = self._queue(site, chosen)
        return queue[: int(min(self._most(site, chosen), len(queue)))]

    def _seen(self, site: int, chosen: bool) -> Queue:
        queue, planned = self._queue(site, chosen), self._next_visit(site, chosen)
        best = self.pages[queue[0]]
        oldest_serial = min(self.pages[p].serial for p in queue)
        quality_sum = exact_sum(self.pages[p].key for p in planned) if self.next_visit_queues else 0.0
        return Queue(len(queue), best.key, best.serial, oldest_serial, len(planned), quality_sum)

    def _evaluated(self, site: int, chosen: bool) -> Standing:
        seen = self._seen(site, chosen)
        return Standing(checked(self.site_rank.rank(self, site, seen)), seen)

    def _after_change(self, site: int, chosen: bool, standing: Standing) -> Standing:
        """Evaluated again if a value that the rank reads has changed. Otherwise the rank stays."""
        seen = self._seen(site, chosen)
        if seen.read(self.site_rank.reads) != standing.seen.read(self.site_rank.reads):
            return self._evaluated(site, chosen)
        return Standing(standing.rank, seen)

    # Which sites may be visited.

    def _competes(self, site: int) -> bool:
        own = self.sites[site]
        may = own.group >= 0 and own.visit is None
        return may and bool(self._queue(site, chosen=True)) and self._most(site, chosen=True) >= 1

    def _is_open(self, site: int) -> bool:
        has_page = bool(self._queue(site, chosen=False))
        return self.sites[site].group >= 0 and has_page and self._most(site, chosen=False) >= 1

    def _place(self, site: int) -> None:
        own = self.sites[site]
        own.place, own.competing = NOWHERE, None
        if self._competes(site):
            self.turns += 1
            own.turn = self.turns
            if own.ready_at <= max(self.now, self._group_ready_at(own.group)):
                self._start_competing(site)
            else:
                own.place = DELAYED

    def _start_competing(self, site: int) -> None:
        self.sites[site].place = COMPETES
        self.sites[site].competing = self._evaluated(site, chosen=True)

    def _evaluate_backlog(self, site: int) -> None:
        self.sites[site].backlog = self._evaluated(site, chosen=False) if self._is_open(site) else None

    def _changed(self, site: int) -> None:
        """To be called after each single page of the site that joins, leaves or moves."""
        own = self.sites[site]
        if not self._competes(site):
            own.place, own.competing = NOWHERE, None
        elif own.competing is not None:
            own.competing = self._after_change(site, True, own.competing)
        elif own.place == NOWHERE:
            self._place(site)
        if own.backlog is None or not self._is_open(site):
            self._evaluate_backlog(site)
        else:
            own.backlog = self._after_change(site, False, own.backlog)

    def _group_ready_at(self, group: int) -> float:
        return self.group_ready_at.get(group, -math.inf)

    def _group_under_visit(self, group: int) -> bool:
        return any(self.sites[lease.visit.site].group == group for lease in self.leases.values())

    def _can_be_visited(self, site: int) -> bool:
        own = self.sites[site]
        free = own.place == COMPETES and not self._group_under_visit(own.group)
        return free and self._group_ready_at(own.group) <= self.now

    def _all_sites(self) -> range:
        return range(len(self.sites))

    # next.

    def next(self, now: float) -> Visit | WaitUntil | Rescore | Drained:
        self._clock(now)
        self._expire()
        self._end_delays()
        if self._scores_are_due():
            return Rescore(self._all_fetched())
        if self.rules.batch and self._batch_is_due():
            self._choose()
        sites = [site for site in self._all_sites() if self._can_be_visited(site)]
        if sites:
            if self.page_rank.learns:
                self._check_best(sites)
            return self._visit(min(sites, key=self._competing_order))
        return Drained() if self._is_drained() else WaitUntil(self._soonest())

    def _clock(self, now: float) -> None:
        self.now = max(self.now, now)

    def _expire(self) -> None:
        expired = [lease.visit for lease in self.leases.values() if lease.visit.expires_at <= self.now]
        for visit in sorted(expired, key=lambda visit: (visit.expires_at, visit.id)):
            lease = self.leases[visit.id]
            for page in self._still_leased(lease):
                self._fail(lease, page)
            self._end(lease, not_before=-math.inf)

    def _end_delays(self) -> None:
        for site in self._all_sites():
            if self.sites[site].place == DELAYED and self.sites[site].ready_at <= self.now:
                self._start_competing(site)

    def _competing_order(self, site: int) -> tuple[float, int]:
        standing = self.sites[site].competing
        assert standing is not None
        return -standing.rank, self._seen(site, chosen=True).best_serial

    def _visit(self, site: int) -> Visit:
        return self._begin(site, self._next_visit(site, chosen=True), again=False)

    def _check_best(self, sites: Sequence[int]) -> None:
        for _ in range(8):
            best = self._queue(min(sites, key=self._competing_order), chosen=True)[0]
            own = self.pages[best]
            old_rank, old_key = own.rank, own.key
            self._rank_page(best, source=-1, links=0, is_new=False)
            if own.key >= old_key:
                own.rank = old_rank
                return
            self._changed(own.site)

    def _learn(self, page: int) -> None:
        self.page_rank.rank(self, page, page, 0, False)

    def _begin(self, site: int, pages: Sequence[int], again: bool) -> Visit:
        visit = Visit(self.visits, site, tuple(pages), self.now + self.rules.lease_s)
        self.visits += 1
        self.leases[visit.id] = Lease(visit, again)
        self.sites[site].visit = visit.id
        for page in pages:
            self.pages[page].state = REVISITED if again else LEASED
            self._changed(site)
        return visit

    def _is_drained(self) -> bool:
        kinds = (True, False)  # chosen, in the backlog
        wanted = any(self._queue(s, c) and self._most(s, c) >= 1 for s in self._all_sites() for c in kinds)
        return not self.leases and not wanted

    def _soonest(self) -> float:
        times = [lease.visit.expires_at for lease in self.leases.values()]
        times += [site.ready_at for site in self.sites if site.place == DELAYED]
        groups = {site.group for site in self.sites if site.place == COMPETES}
        free = [self._group_ready_at(group) for group in groups if not self._group_under_visit(group)]
        times += [time for time in free if time > self.now]
        return min(times, default=math.inf)

    # Revisits.

    def revisit(self, site: int, pages: Sequence[int], now: float) -> Visit | WaitUntil:
        if len(set(pages)) < len(pages) or not all(self._is_fetched_page_of(site, page) for page in pages):
            raise InvariantError(f"pages {pages} are not fetched pages of site {site}, each of them once")
        self._clock(now)
        if self.open_at(site) > self.now:
            return WaitUntil(self.open_at(site))
        return self._begin(site, pages[: int(min(self._most_at_once(site), len(pages)))], again=True)

    def visit(self, site: int, now: float) -> Visit | WaitUntil:
        self._clock(now)
        if self.open_at(site) > self.now:
            return WaitUntil(self.open_at(site))
        return self._begin(site, self._next_visit(site, chosen=True) if self._most(site, True) > 0 else [], again=False)

    def _is_fetched_page_of(self, site: int, page: int) -> bool:
        is_page = 0 <= page < len(self.pages)
        return is_page and self.pages[page].state == FETCHED_PAGE and self.pages[page].site == site

    def open_at(self, site: int) -> float:
        own = self.sites[site]
        if own.group < 0 or own.budget == 0 or self._group_under_visit(own.group):
            return math.inf
        return max(own.ready_at, self._group_ready_at(own.group))

    # Batches.

    def _chosen(self) -> int:
        """The number of chosen pages. Pages of a site without budget do not count, because the batch would wait for
        them for ever."""
        sites = [site for site in self._all_sites() if self.sites[site].most_at_last >= 1]
        return sum(len(self._queue(site, chosen=True)) for site in sites)

    def _batch_is_due(self) -> bool:
        active = sum(not lease.again for lease in self.leases.values())
        if self._chosen() == 0 and (active == 0 or self.rules.batch_ahead):
            return True
        idle = not any(self._can_be_visited(site) for site in self._all_sites())
        return active < self.rules.batch_least_active and idle

    def _choose(self) -> None:
        while self._chosen() < self.rules.batch:
            sites = [site for site in self._all_sites() if self.sites[site].backlog is not None]
            if not sites:
                break
            self._choose_from(min(sites, key=self._backlog_order))

    def _choose_from(self, site: int) -> None:
        pages = self._next_visit(site, chosen=False)
        if not self.next_visit_queues:
            pages = pages[:1]
        for page in pages[: self.rules.batch - self._chosen()]:
            self.pages[page].chosen = True
            self._changed(site)
        self._evaluate_backlog(site)

    def _backlog_order(self, site: int) -> tuple[float, int]:
        standing = self.sites[site].backlog
        assert standing is not None
        return -standing.rank, self._seen(site, chosen=False).best_serial

    # Scores.

    def _all_fetched(self) -> int:
        return sum(page.state in COPIED for page in self.pages)

    def _all_over(self) -> int:
        return sum(page.state in (*COPIED, GONE) for page in self.pages)

    def _scores_are_due(self) -> bool:
        wanted = any(self._competes(site) or self._is_open(site) for site in self._all_sites())
        if self.page_rank.scores is None or not wanted:
            return False
        by_rule = self.rules.rescore > 0 and self._all_fetched() >= self.rescore_at
        return by_rule or (self.page_rank.batched and self._batch_wants_scores())

    def _batch_wants_scores(self) -> bool:
        is_due = self.rules.batch > 0 and self._batch_is_due()
        return is_due and self._all_over() - self.over_at_scores >= self.rules.batch / 2

    def rescore(self, scores: Sequence[float], now: float) -> None:
        if self.page_rank.scores is None:
            raise ConfigError("this page rank has no scores")
        if len(scores) != len(self.pages) or not all(math.isfinite(score) for score in scores):
            raise ConfigError("scores must be a finite number for every page")
        self._clock(now)
        self.set_column(self.page_rank.scores, scores)
        self.times_scored += 1
        for page, own in enumerate(self.pages):
            if own.state in (WAITING, LEASED):
                self._rank_page(page, source=-1, links=0, is_new=False)
                self._changed(own.site)
        self.over_at_scores = self._all_over()
        if self.rules.rescore:
            self.rescore_at = (self._all_fetched() // self.rules.rescore + 1) * self.rules.rescore

    def set_quality(self, page: int, quality: float, links: Sequence[int], now: float) -> bool:
        own = self.pages[page]
        if not 0.0 <= quality < 2.0**42 or own.state not in (FETCHED_PAGE, REVISITED, GONE):
            raise InvariantError("a quality is a number from 0, and of a fetched page")
        if own.state == GONE or own.columns["fetched_quality"] != -1.0:
            return False
        self._clock(now)
        own.columns["fetched_quality"] = quality
        if self.page_rank.learns:
            self._learn(page)
        for target in links:
            if target != ELSEWHERE and self.pages[target].state != UNKNOWN:
                self._discover([target], source=page, links=len(links))
        return True

    # Discovery.

    def discover(self, pages: Sequence[int], now: float) -> None:
        self._clock(now)
        self._discover(pages, source=-1, links=0)

    def receive(self, arrived: Any, now: float) -> None:
        """A page that is fetched elsewhere and has one link stands for each page that links to ours."""
        self._clock(now)
        for page, links, share, depth in zip(*arrived, strict=True):
            value = share / links if self.page_rank.hands_on else 0.0
            columns = {"score": 0.0, "estimate": 0.0, self.page_rank.hands_on: value}
            self.pages.append(Page(-1, False, FETCHED_PAGE, depth, value, columns=columns))
            for _ in range(links):
                self._discover([page], source=len(self.pages) - 1, links=1)
            self.pages.pop()

    def _discover(self, pages: Sequence[int], source: int, links: int, again: bool = False) -> None:
        for page in pages:
            if page == ELSEWHERE:
                continue
            state = self.pages[page].state
            if state == UNKNOWN:
                self._discover_new(int(page), source, links)
            elif state in (WAITING, LEASED) and not self.page_rank.constant and not again:
                self._rank_page(int(page), source, links, is_new=False)
                self._changed(self.pages[page].site)
            elif state in (FETCHED_PAGE, REVISITED) and self.page_rank.learns and not again:
                self.page_rank.rank(self, int(page), source, links, False)

    def _discover_new(self, page: int, source: int, links: int) -> None:
        own = self.pages[page]
        depth = 0 if source < 0 else min(self.pages[source].depth + 1, DEEPEST)
        deepest = self.rules.depth_dynamic if own.dynamic else self.rules.depth_static
        if deepest and depth > deepest:
            return
        own.depth = depth
        self._give_serial(page)
        self._rank_page(page, source, links, is_new=True)
        self._join(page)

    def _rank_page(self, page: int, source: int, links: int, is_new: bool) -> None:
        self.pages[page].rank = checked(self.page_rank.rank(self, page, source, links, is_new))

    def _join(self, page: int) -> None:
        """Add a page with a serial and a rank to the waiting pages, or with batches to the backlog."""
        own = self.pages[page]
        own.state, own.chosen = WAITING, not self.rules.batch
        self._changed(own.site)

    def _give_serial(self, page: int) -> None:
        self.pages[page].serial = self.serials
        self.serials += 1

    # Ends of pages and visits.

    def report(
        self, visit: Visit, page: int, result: Any, now: float, links: Sequence[int] = (), response_s: float = math.nan
    ) -> bool:
        self._clock(now)
        if visit.id not in self.leases:
            return False
        self._report(self.leases[visit.id], page, result, links, response_s)
        return True

    def finish(self, visit: Visit, outcome: Any, now: float) -> bool:
        self._clock(now)
        if visit.id not in self.leases:
            return False
        lease = self.leases[visit.id]
        for one in outcome.results:
            self._report(lease, one.page, one.result, one.links, one.response_s)
        for page in self._still_leased(lease):
            self.pages[page].state = FETCHED_PAGE if lease.again else WAITING
            self._changed(lease.visit.site)
        self._estimate(lease.visit.site, outcome)
        lease.failed = lease.failed or outcome.failed
        self._end(lease, outcome.not_before)
        return True

    def _still_leased(self, lease: Lease) -> list[int]:
        return [page for page in lease.visit.pages if self.pages[page].state in (LEASED, REVISITED)]

    def _report(self, lease: Lease, page: int, result: Any, links: Sequence[int], response_s: float) -> None:
        if page not in self._still_leased(lease):
            raise InvariantError(f"page {page} is not under way in visit {lease.visit.id}")
        self._measure_response(lease.visit.site, response_s)
        if result == FETCHED:
            lease.fetched = True
            self._leave(page, FETCHED_PAGE)
            if self.page_rank.learns and not lease.again:
                self._learn(page)
            self._discover(links, source=page, links=len(links), again=lease.again)
        elif result == FAILED:
            self._fail(lease, page)
        else:
            self._leave(page, GONE)

    def _leave(self, page: int, state: int) -> None:
        self.pages[page].state = state
        self._changed(self.pages[page].site)

    def _fail(self, lease: Lease, page: int) -> None:
        own = self.pages[page]
        lease.failed = True
        if lease.again:
            self._leave(page, FETCHED_PAGE)
            return
        own.tries += 1
        if own.tries > self.rules.retries:
            self._leave(page, GONE)
            return
        own.state = WAITING
        self._give_serial(page)
        self._changed(own.site)

    def _measure_response(self, site: int, measured: float) -> None:
        if not math.isnan(measured):
            own = self.sites[site]
            own.response_s = self.responses.measure(own.response_s, measured, self.rules)

    def _estimate(self, site: int, outcome: Any) -> None:
        own = self.sites[site]
        if not math.isnan(outcome.connection_s):
            own.connection_s = self.connections.measure(own.connection_s, outcome.connection_s, self.rules)
        if outcome.allowed > 0:
            own.requests = outcome.allowed
        elif outcome.closed:
            own.requests = max(1, outcome.served)

    def _end(self, lease: Lease, not_before: float) -> None:
        site = lease.visit.site
        own = self.sites[site]
        if lease.failed:
            own.failures += 1
        elif lease.fetched:
            own.failures = 0
        # The old ready_at is later than now only if set_site raised it during the visit. That value must not be lost.
        own.ready_at = max(own.ready_at, self.now + self.delay_s(site), self.now + self._backoff(site), not_before)
        self.group_ready_at[own.group] = max(self._group_ready_at(own.group), self.now + self._ip_delay())
        own.visit = None
        del self.leases[lease.visit.id]
        own.most_at_last = self._most(site, chosen=True)
        self._place(site)
        self._evaluate_backlog(site)

    def _ip_delay(self) -> float:
        return float(self.rules.delay_s if self.rules.ip_delay_s is None else self.rules.ip_delay_s)

    def _backoff(self, site: int) -> float:
        failures = self.sites[site].failures
        if failures == 0:
            return 0.0
        return float(min(self.rules.backoff_s * 2 ** (failures - 1), self.rules.backoff_most_s))

    # Sites.

    def resolve(self, site: int, group: int, now: float) -> None:
        self._refuse_under_visit(site, "moved")
        self._clock(now)
        self.sites[site].group = group
        self._place(site)
        self._evaluate_backlog(site)

    def set_site(
        self,
        site: int,
        now: float,
        delay_s: float | None = None,
        per_connection: int | None = None,
        pages: int | None = None,
        not_before: float | None = None,
    ) -> None:
        """None leaves a value as it is, and AS_RULES removes it. An own k of 0 is no limit; an own budget of 0 allows no page."""
        self._clock(now)
        own = self.sites[site]
        for name, value in (("delay_s", delay_s), ("per_connection", per_connection), ("budget", pages)):
            if value is not None:
                setattr(own, name, None if value == AS_RULES else value)
        own.ready_at = own.ready_at if not_before is None else max(own.ready_at, not_before)
        own.most_at_last = self._most(site, chosen=True)
        self._place(site)
        self._evaluate_backlog(site)

    def hold_all(self, now: float) -> None:
        self._clock(now)
        for group in {site.group for site in self.sites} - {-1}:
            self.group_ready_at[group] = max(self._group_ready_at(group), self.now + self._ip_delay())
        for site in self._all_sites():
            self.set_site(site, now, not_before=self.now + self.delay_s(site))

    def _refuse_under_visit(self, site: int, what: str) -> None:
        """Checked before the clock moves, because a call that raises changes nothing."""
        if self.sites[site].visit is not None:
            raise InvariantError(f"site {site} is under visit and cannot be {what}")

    def export_site(self, site: int, now: float) -> SiteExport:
        self._refuse_under_visit(site, "exported")
        self._clock(now)
        own = self.sites[site]
        pages = sorted(self._queue(site, True) + self._queue(site, False), key=lambda page: self.pages[page].serial)
        export = SiteExport(
            pages=tuple(pages),
            details=tuple(self._details(page) for page in pages),
            connection_s=own.connection_s,
            response_s=own.response_s,
            requests=own.requests,
            failures=own.failures,
            known=self._known(site),
            fetched=self._fetched(site),
            delay_s=own.delay_s,
            per_connection=own.per_connection,
            budget=own.budget,
            # The address is delayed too, and the frontier that takes the site over cannot know this.
            site_delay_s=max(0.0, own.ready_at - self.now, self._group_ready_at(own.group) - self.now),
        )
        own.budget = 0
        for page in pages:
            self._leave(page, GONE)
        return export

    def _details(self, page: int) -> MovedPage:
        own = self.pages[page]
        return MovedPage(own.rank, own.tries, own.depth, dict(own.columns))

    def import_site(self, export: SiteExport, site: int, pages: Sequence[int], now: float) -> None:
        own, known = self.sites[site], self._known(site)
        if known > export.known - len(export.pages):
            raise InvariantError(f"site {site} has known pages and cannot take over another")
        self._clock(now)
        if not known:
            self._take_estimates(own, export)
        own.failures = export.failures
        own.known_elsewhere += export.known - len(export.pages) - known
        own.fetched_elsewhere = export.fetched
        own.delay_s, own.per_connection, own.budget = export.delay_s, export.per_connection, export.budget
        own.ready_at = self.now + export.site_delay_s
        own.most_at_last = self._most(site, chosen=True)
        self._place(site)
        for page, details in zip(pages, export.details, strict=True):
            record = self.pages[page]
            record.rank, record.tries, record.depth = details.rank, details.tries, details.depth
            # The page numbers of the other frontier mean nothing here.
            given = {one: record.columns.get(one, 0.0) for one in self.page_rank.inputs if one.endswith("_page")}
            record.columns = {one: value for one, value in details.columns.items() if not one.endswith("_page")} | given
            self._give_serial(page)
            self._join(page)

    def gone_elsewhere(self, pages: Sequence[int], now: float) -> None:
        if len(set(pages)) < len(pages) or any(self.pages[page].state != UNKNOWN for page in pages):
            raise InvariantError("pages that are known, or given twice, were not had elsewhere")
        self._clock(now)
        for page in pages:
            self.pages[page].state = GONE
            self.sites[self.pages[page].site].known_elsewhere -= 1  # its state counts it now

    def _take_estimates(self, own: Site, export: SiteExport) -> None:
        own.requests = export.requests
        own.connection_s, own.response_s = export.connection_s, export.response_s
        if export.connection_s is not None:
            self.connections.join(export.connection_s)
        if export.response_s is not None:
            self.responses.join(export.response_s)
