"""Small random webs, and a driver in virtual time that crawls one with any object that has the frontier's interface.

A `World` is everything outside the frontier: the web, its servers, the connections and their failures, the calls of
an operator, and the clock. `drive` makes the calls and returns the trace: every call, the moment at which the frontier
must take it, and its answer. All times are multiples of 0.25, so that ties in time are frequent and sums are exact.

"""

import heapq
import itertools
import math
import os
import secrets
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numba
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.naive import frontier as naive
from trapline.errors import ConfigError, InvariantError
from trapline.frontier.core.arrivals import Arrivals
from trapline.strategies import page_ranks, site_ranks
from trapline.strategies.base.url_inputs import STATE_PAGES

MOST_STEPS = 20_000
PATIENCE = 5  # how often a revisit is requested again
COMPLETION, CALL, ASK = range(3)  # the order of events at one moment
FETCHED_PAGE = naive.FETCHED_PAGE

Event = tuple[Any, ...]
Drawn = TypeVar("Drawn")


class Rank(NamedTuple):
    """A pair of ranks, by name."""

    page: str
    site: str


PAGE_RANKS, SITE_RANKS = list(page_ranks()), list(site_ranks())  # found by folder
PAIRS = [Rank(page, site) for page in PAGE_RANKS for site in SITE_RANKS]


QUALITY = "fetched_quality"
VALUES = (0.0, 1.0, 0.5, 0.3, -1.0, 2.0)


class WebPage(NamedTuple):
    site: int
    links: tuple[int, ...] = ()
    results: tuple[str, ...] = ()  # of the first tries; after those the page is fetched
    seconds: float = 1.0
    dynamic: bool = False
    inputs_seed: int = 0  # determines the inputs of the page

    def value(self, column: str) -> float:
        """An input of a page rank of any name. -1 is also how `history` marks a page that the old crawl did not have."""
        if column == QUALITY:
            return -1.0 if self.inputs_seed % 2 else self.quality
        return VALUES[zlib.crc32(f"{column} {self.inputs_seed}".encode()) % len(VALUES)]

    @property
    def quality(self) -> float:
        """The quality of the page once it is fetched. Half of the qualities are known from the start, as in a simulated crawl."""
        return self.inputs_seed % 5 / 4


class WebSite(NamedTuple):
    group: int
    late: bool = False  # unresolved until the frontier has nothing else to do
    connection_s: float = 0.25
    closes_after: int = 0  # requests; 0: never
    announces: int = 0  # requests per connection; 0: not announced


class CrawlerSettings(NamedTuple):
    """How one visit goes."""

    kind: str = "whole"  # whole | broken: ends before its pages do | lost: never finishes | late: finishes after expiry
    pages: int = 0  # how many pages a broken or lost visit still fetches
    reporting: str = "finish"  # finish | report | both
    measured: bool = True
    site_delay_s: float | None = None  # the server's Retry-After
    twice: bool = False  # finish is called a second time
    failed: bool = False  # the site failed, apart from its pages


class Call(NamedTuple):
    """A call of the operator: set_site, resolve, hold_all, discover, receive, rescore or move (export, and import under a new id)."""

    time: float
    name: str
    site: int = 0
    group: int = 0
    pages: tuple[int, ...] = ()
    settings: tuple[tuple[str, float], ...] = ()


class RevisitRequest(NamedTuple):
    """A request to fetch pages of a site again, from this moment on."""

    time: float
    site: int
    pages: tuple[int, ...] = ()  # in this order, as numbers among the fetched pages of the site
    links: tuple[int, ...] = ()  # new links of the pages
    results: tuple[str, ...] = ("fetched",)  # of the pages, in turn
    settings: CrawlerSettings = CrawlerSettings()  # how the visit goes


class World(NamedTuple):
    sites: tuple[WebSite, ...]
    pages: tuple[WebPage, ...]
    seeds: tuple[int, ...]
    rules: dict[str, Any]
    connections: int = 1
    visit_settings: tuple[
        CrawlerSettings, ...
    ] = ()  # of the first visits; all later visits go well, so that every crawl ends
    calls: tuple[Call, ...] = ()
    revisits: tuple[RevisitRequest, ...] = ()
    clock: tuple[float, ...] = ()  # errors of the clock at the first calls; later the clock is right
    scoring_s: float = 0.0  # how long the computation of scores takes
    seed: int = 0


# The hypothesis strategies. All are made once, and numbers are cut to the size of the world afterwards: making strategies
# for each world costs more than the crawl. The first value of a choice is the simplest, because examples shrink towards it.

MOST_SITES, MOST_GROUPS, MOST_PAGES = 8, 5, 40


def one_of_each(**choices: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A value for each name, drawn as one number."""
    names = list(choices)
    combinations = math.prod(len(values) for values in choices.values())

    def decode(number: int) -> dict[str, Any]:
        chosen = {}
        for name in names:
            number, at = divmod(number, len(choices[name]))
            chosen[name] = choices[name][at]
        return chosen

    return st.integers(0, combinations - 1).map(decode)


def several(items: st.SearchStrategy[Any], *sizes: tuple[int, int]) -> st.SearchStrategy[tuple[Any, ...]]:
    """Lists of several ranges of sizes. One range alone would mostly give a handful of items."""
    return st.one_of(*(st.lists(items, min_size=least, max_size=most) for least, most in sizes)).map(tuple)


DELAYS = one_of_each(
    delay_s=[1.0, 0.0, 0.25, 2.5, 15.0],
    ip_delay_s=[None, 0.0, 0.5, 3.0, 20.0],
    small_site_pages=[0, 0, 3, 6],
    small_site_delay_s=[15.0, 0.0, 0.5],
    backoff_s=[2.0, 0.0, 0.5],
    backoff_most_s=[60.0, 3.0],
)
LIMITS = one_of_each(
    per_connection=[1, 2, 5, 0],
    lease_s=[600.0, 30.0, 4.0, 1.5],
    retries=[2, 1, 0],
    pages_per_site=[0, 0, 0, 1, 3, 5],
    depth_static=[0, 0, 0, 0, 3],
    depth_dynamic=[0, 0, 0, 0, 2],
    pipelining=[False, True],
    first_requests=[50, 2],
    rescore=[0, 1, 3, 8],
)
ESTIMATES = one_of_each(estimator=["average", "median"], alpha=[0.8, 0.5, 0.0, 1.0])
BATCHES = one_of_each(batch=[0, 0, 0, 1, 3, 8, 100], batch_ahead=[False, True], batch_least_active=[0, 1, 2, 3])

LINKS = st.lists(st.integers(0, MOST_PAGES - 1), max_size=10).map(tuple)
PAGES = one_of_each(
    site=list(range(MOST_SITES)),
    results=[(), (), (), (), (), (), ("failed",), ("refused",), ("failed", "failed"), ("failed", "refused")],
    seconds=[1.0, 0.0, 0.25, 0.5, 3.0],
    dynamic=[False, True],
    inputs_seed=list(range(100)),
)
WEB_PAGES = st.builds(lambda page, links: WebPage(links=links, **page), PAGES, LINKS)

WEB_SITES = one_of_each(
    group=list(range(MOST_GROUPS)),
    late=[False, False, True],
    connection_s=[0.25, 0.0, 2.0],
    closes_after=[0, 0, 0, 1, 2, 3],
    announces=[0, 0, 0, 1, 3],
).map(lambda site: WebSite(**site))

VISIT_SETTINGS = one_of_each(
    kind=["whole", "whole", "broken", "lost", "lost", "late"],
    pages=[0, 1, 2],
    reporting=["finish", "report", "both"],
    measured=[True, False],
    site_delay_s=[None, None, None, 0.5, 9.0],
    twice=[False, False, True],
    failed=[False, False, True],
).map(lambda settings: CrawlerSettings(**settings))

CALLS = one_of_each(
    name=[
        "set_site",
        "set_site",
        "set_site",
        "resolve",
        "resolve",
        "hold_all",
        "discover",
        "move",
        "move",
        "move",
        "move",
        "rescore",
        "receive",
    ],
    time=[quarters / 4 for quarters in range(24)],
    site=list(range(MOST_SITES)),
    group=list(range(MOST_GROUPS)),
)
SETTINGS = one_of_each(
    delay_s=[None, None, 0.0, 0.5, 7.0, naive.AS_RULES],
    per_connection=[None, None, 1, 2, 5, 0, naive.AS_RULES],
    pages=[None, None, None, None, 4, 2, 1, 0, naive.AS_RULES],
    not_before=[None, None, None, 5.0, 12.0, 40.0],
).map(lambda given: tuple((name, value) for name, value in given.items() if value is not None))
OPERATOR = st.builds(lambda call, given, pages: Call(settings=given, pages=pages, **call), CALLS, SETTINGS, LINKS)

AGAIN = one_of_each(
    time=[quarters / 2 for quarters in range(60)],
    site=list(range(MOST_SITES + 3)),  # beyond those of the world: sites that moved
    results=[("fetched",), ("fetched", "failed"), ("failed", "fetched"), ("refused", "fetched"), ("failed", "refused")],
)
REVISITS = st.builds(
    lambda again, pages, links, settings: RevisitRequest(pages=pages, links=links, settings=settings, **again),
    AGAIN,
    several(st.integers(0, MOST_PAGES - 1), (0, 1), (2, 6), (6, 12)),
    LINKS,
    VISIT_SETTINGS,
)

CLOCK_ERRORS = st.lists(st.sampled_from([0.0, -0.25, 0.25, -3.0, 5.0, -100.0, 700.0]), max_size=40).map(tuple)


def fitted(world: World) -> World:
    """The world with every site, page and group cut to its numbers."""
    site_count, page_count = len(world.sites), len(world.pages)

    def cut(pages: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(page % page_count for page in pages)

    return world._replace(
        pages=tuple(page._replace(site=page.site % site_count, links=cut(page.links)) for page in world.pages),
        seeds=cut(world.seeds),
        calls=tuple(call._replace(site=call.site % site_count, pages=cut(call.pages)) for call in world.calls),
        revisits=tuple(again._replace(pages=cut(again.pages), links=cut(again.links)) for again in world.revisits),
    )


def worlds(clock: st.SearchStrategy[tuple[float, ...]] | None = None) -> st.SearchStrategy[World]:
    return st.builds(
        World,
        sites=several(WEB_SITES, (1, 4), (3, MOST_SITES), (6, MOST_SITES)),
        pages=several(WEB_PAGES, (1, 8), (16, 24), (24, MOST_PAGES), (30, MOST_PAGES), (34, MOST_PAGES)),
        seeds=several(st.integers(0, MOST_PAGES - 1), (1, 3), (4, 12), (10, 20)),
        rules=st.builds(
            lambda *parts: {k: v for part in parts for k, v in part.items()}, DELAYS, LIMITS, BATCHES, ESTIMATES
        ),
        connections=st.integers(1, 4),
        visit_settings=several(VISIT_SETTINGS, (0, 4), (6, 16)),
        calls=several(OPERATOR, (0, 2), (3, 10)),
        revisits=several(REVISITS, (0, 3), (6, 12), (12, 20)),
        clock=st.just(()) if clock is None else clock,
        scoring_s=st.sampled_from([0.0, 0.5, 3.0]),
        seed=st.sampled_from([0, 7, 2**40]),
    ).map(fitted)


WORLDS = worlds()
HOSTILE_WORLDS = worlds(clock=CLOCK_ERRORS)


# The webs that a pair of ranks is tried on.

ASKED = os.environ.get("TRAPLINE_WEBS")  # the number of new webs, in place of the same webs in every run
SEED = secrets.randbits(32) if ASKED else 0
FAILED_PAIRS: list[Rank] = []


def run_webs(check: Callable[[Drawn], None], strategy: st.SearchStrategy[Drawn], count: int) -> None:
    def run(drawn: Drawn) -> None:
        note(str(drawn))
        check(drawn)

    plain = settings(
        max_examples=count,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    plain(seed(SEED)(given(drawn=strategy)(run)))()


@cache
def draws(strategy: st.SearchStrategy[Drawn], count: int) -> list[Drawn]:
    """The random webs of a strategy. Drawing a web costs as much as crawling it, so all pairs of ranks share them."""
    found: list[Drawn] = []
    run_webs(found.append, strategy, count)
    return found


def share(rank: Rank, drawn: list[Drawn]) -> list[Drawn]:
    """The webs for this pair. Every page rank and every site rank gets all webs, with different partners in turn."""
    turns = min(len(PAGE_RANKS), len(SITE_RANKS))
    return drawn[(SITE_RANKS.index(rank.site) - PAGE_RANKS.index(rank.page)) % turns :: turns]


def check_webs(
    check: Callable[[Drawn], None],
    strategy: st.SearchStrategy[Drawn],
    rank: Rank,
    compiled: int,
    uncompiled: int,
) -> None:
    """Check this pair's share of the random webs. For the first failing pair of a run, find the smallest failing web.

    Only for the first, because shrinking takes minutes and a defect mostly breaks many pairs.

    """
    turns = min(len(PAGE_RANKS), len(SITE_RANKS))
    count = int(ASKED) if ASKED else max(turns, examples(uncompiled if numba.config.DISABLE_JIT else compiled))
    for drawn in share(rank, draws(strategy, count)):
        try:
            check(drawn)
        except Exception:
            if not FAILED_PAIRS:
                FAILED_PAIRS.append(rank)
                run_webs(check, strategy, count)
            raise


# Frontiers by name, for the same world.


def naive_frontier(rank: Rank, world: World) -> naive.NaiveFrontier:
    return naive.NaiveFrontier(rank.page, rank.site, naive.Rules(**world.rules), seed=world.seed)


def fast_frontier(rank: Rank, world: World) -> Any:
    from trapline.frontier import Frontier, Rules
    from trapline.strategies import pair

    return Frontier(pair(rank.page, rank.site), rules=Rules(**world.rules), seed=world.seed)


def module_of(frontier: Any) -> ModuleType:
    """The module with this frontier's Outcome, Result and names of results."""
    if isinstance(frontier, naive.NaiveFrontier):
        return naive
    import trapline.frontier

    return trapline.frontier


def inputs_of(frontier: Any) -> tuple[str, ...]:
    """The columns that this frontier's page rank takes from its caller."""
    rank = frontier.page_rank if isinstance(frontier, naive.NaiveFrontier) else frontier.strategy.page
    return tuple(rank.inputs)


class SiteRecord(NamedTuple):
    """The part of a site's record that a site rank may use. None: not measured, or not set."""

    connection_s: float | None
    response_s: float | None
    requests: int
    failures: int
    known: int
    taken: int
    delay_s: float | None
    turn: int


def record_of(frontier: Any, site: int) -> SiteRecord:
    if isinstance(frontier, naive.NaiveFrontier):
        return SiteRecord(**frontier.site_record(site))
    row = frontier.state.site[site]
    connection_s = float(row.connection_s) if row.connections else None
    response_s = float(row.response_s) if row.responses else None
    counts = (int(row[name]) for name in ("requests", "failures", "known", "taken"))
    return SiteRecord(connection_s, response_s, *counts, plain(float(row.delay_s)), int(row.turn))


# The driver.


class Done(NamedTuple):
    """A page whose result a connection has."""

    page: int
    result: str
    links: tuple[int, ...]
    response_s: float


class Tour:
    """A visit as its connection sees it."""

    def __init__(
        self, connection: int | None, visit: Any, number: int, settings: CrawlerSettings, again: RevisitRequest | None
    ) -> None:
        self.connection = connection  # None: no connection asks for another visit after this one
        self.again = again  # set if the pages were fetched before
        self.visit = visit
        self.number = number  # in order of visits, because ids need only grow
        self.site = int(visit.site)
        self.pages = tuple(int(page) for page in visit.pages)
        self.expires_at = float(visit.expires_at)
        self.settings = settings
        self.kept: list[Done] = []  # results for finish

    def answer(self) -> Event:
        return ("visit", self.number, self.site, self.pages, self.expires_at)


def plain(value: float) -> float | None:
    """None for NaN, which equals nothing and would make equal traces differ."""
    return None if math.isnan(value) else value


class Driver:
    def __init__(self, frontier: Any, world: World) -> None:
        self.frontier = frontier
        self.world = world
        self.words = module_of(frontier)
        self.trace: list[Event] = []
        self.events: list[tuple[float, int, int, Callable[[], None]]] = []
        self.serial = itertools.count()
        self.time = 0.0
        self.taken = -math.inf  # the frontier's time: the latest `now` so far
        self.clock_errors = iter(world.clock)
        self.visit_settings = iter(world.visit_settings)
        self.tours = 0
        self.last_id = -1
        self.tries = [0] * len(world.pages)
        self.web_page = list(range(len(world.pages)))  # of each id
        self.web_site = list(range(len(world.sites)))
        self.local = list(range(len(world.pages)))  # the id of each web page
        self.site_of = [page.site for page in world.pages]  # of each id
        self.unresolved = [at for at, site in enumerate(world.sites) if site.late]
        self.turn = [0] * world.connections  # an older event of this connection is void
        self.idle: set[int] = set()
        self.links: dict[int, tuple[int, ...]] = {}  # of the fetched pages
        self.scoring = False  # whether scores are being computed
        self.scorings = itertools.count()

    def run(self) -> list[Event]:
        self.register()
        for call in self.world.calls:
            self.at(call.time, CALL, lambda call=call: self.call(call))  # type: ignore[misc]
        for again in self.world.revisits:
            self.at(again.time, CALL, lambda again=again: self.revisit(again, PATIENCE))  # type: ignore[misc]
        for connection in range(self.world.connections):
            self.ask_at(0.0, connection)
        for _ in range(MOST_STEPS):
            if not self.events:
                break
            self.time, _, _, happen = heapq.heappop(self.events)
            happen()
        assert not self.events, "the crawl does not end"
        self.trace.append(("states", tuple(int(self.frontier.page_state(p)) for p in range(len(self.web_page)))))
        self.trace.append(("sites", *(record_of(self.frontier, site) for site in range(len(self.web_site)))))
        return self.trace

    def register(self) -> None:
        sites, pages = self.world.sites, self.world.pages
        groups = [-1 if site.late else site.group for site in sites]
        assert self.frontier.add_sites(len(sites), self.now(), groups=groups) == 0
        assert self.frontier.add_pages([p.site for p in pages], dynamic=[p.dynamic for p in pages]) == 0
        for name in inputs_of(self.frontier):
            if name in STATE_PAGES:  # three pages in a row have a directory; the first of them keeps its state
                self.frontier.set_column(name, [float(page // 3 * 3) for page in range(len(pages))])
            else:
                self.frontier.set_column(name, [page.value(name) for page in pages])
        self.discover(self.world.seeds)

    # Time.

    def now(self) -> float:
        now = self.time + next(self.clock_errors, 0.0)
        self.taken = max(self.taken, now)
        return now

    def at(self, time: float, kind: int, happen: Callable[[], None]) -> None:
        heapq.heappush(self.events, (max(time, self.time), kind, next(self.serial), happen))

    def ask_at(self, time: float, connection: int | None) -> None:
        if connection is None:
            return
        self.turn[connection] += 1
        turn = self.turn[connection]
        self.at(time, ASK, lambda: self.ask(connection, turn))

    def wake(self) -> None:
        """Something has changed: every idle connection asks again, after all other events of this moment."""
        for connection in sorted(self.idle):
            self.ask_at(self.time, connection)
        self.idle.clear()

    # Connections.

    def ask(self, connection: int, turn: int) -> None:
        if turn != self.turn[connection]:
            return
        self.idle.discard(connection)
        answer = self.frontier.next(self.now())
        if hasattr(answer, "pages"):
            self.trace.append(("next", self.taken, self.set_out(connection, answer)))
        elif hasattr(answer, "time"):
            self.wait(connection, float(answer.time))
        elif hasattr(answer, "fetched"):
            self.score(connection, int(answer.fetched))
        else:
            self.trace.append(("next", self.taken, ("drained",)))
            self.idle.add(connection)

    def wait(self, connection: int, until: float) -> None:
        self.trace.append(("next", self.taken, ("wait", until)))
        assert until > self.taken
        self.idle.add(connection)
        if until < math.inf:
            self.ask_at(until, connection)
        elif self.unresolved:
            site = self.unresolved[0]
            self.resolve(site, self.world.sites[site].group)
            self.wake()

    def score(self, connection: int, fetched: int) -> None:
        """Compute scores while the crawl continues. The connections ask again when the scores are there."""
        self.trace.append(("next", self.taken, ("rescore", fetched)))
        self.idle.add(connection)
        if not self.scoring:
            self.scoring = True
            self.at(self.time + self.world.scoring_s, COMPLETION, self.deliver_scores)

    def deliver_scores(self) -> None:
        self.scoring = False
        self.rescore()
        self.wake()

    def set_out(self, connection: int | None, visit: Any, again: RevisitRequest | None = None) -> Event:
        assert visit.id > self.last_id
        self.last_id = visit.id
        settings = next(self.visit_settings, CrawlerSettings()) if again is None else again.settings
        tour = Tour(connection, visit, self.tours, settings, again)
        self.tours += 1
        server = self.world.sites[self.web_site[tour.site]]
        time = self.time + server.connection_s
        pages = self.served(tour, server)
        for at, page in enumerate(pages):
            time += self.world.pages[self.web_page[page]].seconds
            self.at(time, COMPLETION, lambda at=at, page=page: self.complete(tour, at, page))  # type: ignore[misc]
        self.end_tour(tour, time, len(pages))
        return tour.answer()

    def served(self, tour: Tour, server: WebSite) -> tuple[int, ...]:
        """The pages that this visit gets."""
        pages = tour.pages
        if tour.settings.kind in ("broken", "lost"):
            pages = pages[: tour.settings.pages]
        return pages[: server.closes_after] if server.closes_after else pages

    def end_tour(self, tour: Tour, time: float, served: int) -> None:
        if tour.settings.kind == "lost":
            self.ask_at(time, tour.connection)  # another connection takes its slot
        else:
            if tour.settings.kind == "late":
                time = max(time, tour.expires_at + 0.25)
            self.at(time, COMPLETION, lambda: self.finish(tour, served))

    def complete(self, tour: Tour, at: int, page: int) -> None:
        done = self.fetch(page, tour.settings.measured)
        if tour.again is not None:
            done = self.changed(done, tour.again, at)
        by_report = tour.settings.reporting == "report" or (tour.settings.reporting == "both" and at % 2 == 0)
        if by_report or tour.settings.kind == "lost":
            self.report(tour, done)
        else:
            tour.kept.append(done)

    def fetch(self, page: int, measured: bool) -> Done:
        at = self.web_page[page]
        web = self.world.pages[at]
        result = web.results[self.tries[at]] if self.tries[at] < len(web.results) else "fetched"
        self.tries[at] += 1
        links = tuple(self.local[link] for link in web.links) if result == "fetched" else ()
        if links and at % 3 == 1:
            links = (naive.ELSEWHERE, *links)
        return Done(page, result, links, web.seconds if measured else math.nan)

    def changed(self, done: Done, again: RevisitRequest, at: int) -> Done:
        """The result of a page that was fetched before, given its number in the visit."""
        result = again.results[at % len(again.results)]
        links = (*done.links, *(self.local[link] for link in again.links)) if result == "fetched" else ()
        return done._replace(result=result, links=links)

    def code(self, result: str) -> Any:
        return getattr(self.words, result.upper())

    def report(self, tour: Tour, done: Done) -> None:
        result = self.code(done.result)
        answer = self.frontier.report(
            tour.visit, done.page, result, self.now(), links=done.links, response_s=done.response_s
        )
        event = ("report", self.taken, tour.number, done.page, done.result, done.links, plain(done.response_s))
        self.trace.append((*event, bool(answer)))
        self.learn([done] if answer else [])
        self.wake()

    def finish(self, tour: Tour, served: int) -> None:
        self.finish_once(tour, served)
        if tour.settings.twice:
            self.finish_once(tour, served)
        self.wake()
        self.ask_at(self.time, tour.connection)

    def finish_once(self, tour: Tour, served: int) -> None:
        server = self.world.sites[self.web_site[tour.site]]
        now = self.now()
        facts = {
            "connection_s": server.connection_s if tour.settings.measured else math.nan,
            "served": served,
            # A server with a limit closes when the limit is reached. A broken visit may also end without any page.
            "closed": 0 < server.closes_after == served or (tour.settings.kind == "broken" and served == 0),
            "allowed": server.announces,
            "not_before": -math.inf if tour.settings.site_delay_s is None else self.time + tour.settings.site_delay_s,
            "failed": tour.settings.failed,
        }
        results = tuple(self.words.Result(d.page, self.code(d.result), d.links, d.response_s) for d in tour.kept)
        answer = self.frontier.finish(tour.visit, self.words.Outcome(results=results, **facts), now)
        reported = tuple((done.page, done.result, done.links) for done in tour.kept)
        self.trace.append(
            ("finish", self.taken, tour.number, reported, facts["not_before"], tour.settings.failed, bool(answer))
        )
        self.learn(tour.kept if answer else [])

    def learn(self, results: list[Done]) -> None:
        for done in results:
            if done.result == "fetched":
                self.links[done.page] = tuple(link for link in done.links if link != naive.ELSEWHERE)

            if done.result == "fetched" and QUALITY in inputs_of(self.frontier):
                delay_s = self.world.pages[self.web_page[done.page]].seconds
                self.at(self.time + delay_s, COMPLETION, lambda done=done: self.set_quality(done))  # type: ignore[misc]

    def set_quality(self, done: Done) -> None:
        quality, taken = self.world.pages[self.web_page[done.page]].quality, self.taken
        answer = self.frontier.set_quality(done.page, quality, done.links, self.now())
        if not answer:  # nothing was taken, not even the time
            self.taken = taken
        self.trace.append(("set_quality", self.taken, done.page, quality, bool(answer)))
        self.wake()

    # Revisits.

    def revisit(self, again: RevisitRequest, patience: int) -> None:
        taken, now = self.taken, self.now()
        site, pages = self.wanted(again, anywhere=patience == PATIENCE)
        try:
            answer = self.frontier.revisit(site, pages, now)
        except InvariantError:
            self.taken = taken
            self.trace.append(("revisit", self.taken, site, pages, ("refused",)))
            self.ask_again(again, self.time + 6.0, patience)
            return
        reported = self.set_out(None, answer, again) if hasattr(answer, "pages") else ("wait", float(answer.time))
        self.trace.append(("revisit", self.taken, site, pages, reported))
        if reported[0] == "wait":
            assert reported[1] > self.taken
            self.ask_again(again, reported[1] if reported[1] < math.inf else self.time + 3.0, patience)
        self.wake()

    def ask_again(self, again: RevisitRequest, time: float, patience: int) -> None:
        if patience > 1:
            self.at(time, CALL, lambda: self.revisit(again, patience - 1))

    def wanted(self, again: RevisitRequest, anywhere: bool) -> tuple[int, tuple[int, ...]]:
        """A site and its fetched pages in the requested order, or pages that cannot be revisited if the site has none."""
        fetched_pages = [page for page in range(len(self.site_of)) if self.frontier.page_state(page) == FETCHED_PAGE]
        sites = sorted({self.site_of[page] for page in fetched_pages})
        if anywhere or not sites:
            sites = list(range(len(self.web_site)))
        site = sites[again.site % len(sites)]
        its = [page for page in fetched_pages if self.site_of[page] == site]
        return site, tuple(dict.fromkeys(its[at % len(its)] for at in again.pages)) if its else again.pages

    # The operator.

    def call(self, call: Call) -> None:
        if call.name == "set_site":
            self.set_site(call)
        elif call.name == "resolve":
            self.resolve(call.site, call.group)
        elif call.name == "hold_all":
            self.frontier.hold_all(self.now())
            self.trace.append(("hold_all", self.taken))
        elif call.name == "discover":
            self.discover(call.pages)
        elif call.name == "receive":
            self.receive(call.pages)
        elif call.name == "rescore":
            self.rescore()
        else:
            self.move(call)
        self.wake()

    def set_site(self, call: Call) -> None:
        self.frontier.set_site(call.site, self.now(), **dict(call.settings))
        self.trace.append(("set_site", self.taken, call.site, call.settings))

    def resolve(self, site: int, group: int) -> None:
        taken, now = self.taken, self.now()
        try:
            self.frontier.resolve(site, group, now)
        except InvariantError:
            self.taken = taken  # a call that raises changes nothing
            self.trace.append(("resolve", self.taken, site, group, "refused"))
            return
        self.trace.append(("resolve", self.taken, site, group, "done"))
        self.unresolved = [one for one in self.unresolved if one != site]

    def discover(self, pages: Iterable[int]) -> None:
        ids = tuple(self.local[page] for page in pages)
        self.frontier.discover(ids, self.now())
        self.trace.append(("discover", self.taken, ids))

    def receive(self, pages: Iterable[int]) -> None:
        """Links from other partitions, one to three per page."""
        ids = tuple(dict.fromkeys(self.local[page] for page in pages))
        links = tuple(1 + page % 3 for page in ids)
        depths = tuple(page % 4 for page in ids)
        arrived = Arrivals(ids, links, tuple(0.375 * number for number in links), depths)
        self.frontier.receive(arrived, self.now())
        self.trace.append(("receive", self.taken, ids, depths))

    def rescore(self) -> None:
        taken, scores = self.taken, self.scores()
        try:
            self.frontier.rescore(scores, self.now())
        except ConfigError:  # the page rank takes no scores
            self.taken = taken
            self.trace.append(("rescore", self.taken, "refused"))
            return
        self.trace.append(("rescore", self.taken, "done", tuple(scores)))

    def scores(self) -> list[float]:
        """A stand-in for PageRank of the known graph: where a surfer is after one or two steps, and a little for some
        pages in turn. So a page may have a score before it is discovered, have none, or lose its score."""
        everywhere = dict.fromkeys(range(len(self.web_page)), 1.0)
        first = self.surfed(everywhere)
        second, turn = self.surfed(first), next(self.scorings)
        little = [0.125 if (page + turn) % 3 == 0 else 0.0 for page in everywhere]
        return [little[page] + first[page] + second[page] for page in everywhere]

    def surfed(self, scores: dict[int, float]) -> dict[int, float]:
        after = dict.fromkeys(scores, 0.0)
        for page, links in self.links.items():
            for link in links:
                after[link] += scores[page] / len(links)
        return after

    def move(self, call: Call) -> None:
        """The site moves to a new id, and so do its waiting pages. Later links to them lead to the new ids."""
        taken, now = self.taken, self.now()
        try:
            export = self.frontier.export_site(call.site, now)
        except InvariantError:
            self.taken = taken
            self.trace.append(("move", self.taken, call.site, "refused"))
            return
        old = tuple(int(page) for page in export.pages)
        site = int(self.frontier.add_sites(1, self.now(), groups=[call.group]))
        dynamic = [self.world.pages[self.web_page[page]].dynamic for page in old]
        first = int(self.frontier.add_pages([site] * len(old), dynamic=dynamic))
        new = tuple(range(first, first + len(old)))
        self.frontier.import_site(export, site, new, self.now())
        self.rename(call.site, site, old, new)
        self.trace.append(("move", self.taken, call.site, "done", site, call.group, old, new))

    def rename(self, old_site: int, site: int, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        assert site == len(self.web_site) and (not new or new[0] == len(self.web_page))
        self.web_site.append(self.web_site[old_site])
        for before, after in zip(old, new, strict=True):
            self.web_page.append(self.web_page[before])
            self.site_of.append(site)
            self.local[self.web_page[before]] = after


def drive(frontier: Any, world: World) -> list[Event]:
    """The trace of a whole crawl. `frontier` is new and made with the world's rules."""
    return Driver(frontier, world).run()
