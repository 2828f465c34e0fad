"""A virtual world for the live crawler: its servers take the same times as the simulator's, and its pages are real HTML.

Only the sockets are replaced. The crawler's own code judges answers, parses pages, makes URLs canonical, and keeps the seen table, the
outbox and the frontier. Events are ordered by (time, completions before readiness, serial), as in the simulator.
"""

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.scope import Scope
from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.discovery.sites import Site, Sites
from trapline.crawler.discovery.url_store import UrlStore
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.engine.options import CrawlerSettings, Goals
from trapline.crawler.engine.page_quality import PageScoring
from trapline.crawler.engine.records import Batch, Fetched
from trapline.crawler.engine.tally import CrawlTally
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.fetch_record import PageRequest
from trapline.fetch import failure
from trapline.fetch.http.response import Response
from trapline.frontier import FAILED, FETCHED, REFUSED, Frontier, Outcome, Rules, Visit
from trapline.frontier.journal import Journal
from trapline.frontier.layout import UNKNOWN, Array
from trapline.graph import Graph
from trapline.rng import uniform
from trapline.simulator.connections import FATE
from trapline.simulator.scores import KnownGraph
from trapline.strategies import Strategy

COMPLETION, READINESS = range(2)


@dataclass(order=True)
class Event:
    time: float
    kind: int
    serial: int
    callback: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class VirtualWorld:
    """A graph as a world. Time passes for `connection_s[site]`, `latency_s[page]`, and `timeout_s` if a page fails.

    `requests[site]`: the server closes after this many requests; 0: never. `failed` and `refused`: shares of tries, chosen at random as
    in the simulator.
    """

    def __init__(
        self,
        graph: Graph,
        connection_s: Array,
        latency_s: Array,
        requests: Array | None = None,
        *,
        failed: float = 0.0,
        refused: float = 0.0,
        timeout_s: float = 30.0,
        pause_s: float = 0.0,
        seed: int = 0,
    ) -> None:
        self._graph, self._connection_s, self._latency_s = graph, connection_s, latency_s
        self._requests = np.zeros(graph.sites, np.int32) if requests is None else requests
        self._failed, self._refused, self._timeout_s = failed, refused, timeout_s
        self._pause_s, self._seed = pause_s, seed
        self.urls = [str(url) for url in graph.urls]
        self.page_at = {url: page for page, url in enumerate(self.urls)}
        self._site_at = {str(name): site for site, name in enumerate(graph.site_names)}
        self._events: list[Event] = []
        self._soon: deque[Callable[[], None]] = deque()
        self._now, self._serial = 0.0, 0
        self._link_resolver = KnownGraph(graph)
        self.over = False

    # ---- called by the crawler

    def now(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_at(self, when: float, callback: Callable[[], None]) -> Event:
        return self._at(when, READINESS, callback)

    def begin_visit(self, visit: Visit, site: Site, urls: list[str], conditions: list[bytes]) -> None:
        self._ask(visit, site, urls, 0)

    def score(self) -> None:
        """Return the simulator's scores. PageRank in another order of pages differs in its last bits, and so in its ties."""
        frontier = self.crawler.frontier
        ours = np.array(
            [self.page_at[url] for url in self.crawler.link_resolver.urls(list(range(frontier.pages)))], np.int64
        )
        life = np.full(self._graph.pages, UNKNOWN, np.uint8)
        life[ours] = frontier.state.state[: frontier.pages]
        self.crawler.rescored(self._link_resolver.scores(life)[ours])

    def ended(self) -> None:
        self.over = True

    # ---- servers

    def locate(self, site: Site) -> int:
        return int(self._graph.ips[self._site_at[site.origin]])

    def _ask(self, visit: Visit, site: Site, urls: list[str], at: int) -> None:
        if not self.crawler.may_request(visit):
            self._end(visit, site, 0)
            return
        page = self.page_at[urls[at]]
        began = self._now + self._pause_s if at else self._now + float(self._connection_s[self._graph.site[page]])
        request = PageRequest(visit.pages[at], urls[at], self._now + (self._pause_s if at else 0.0), b"")
        self.crawler.results.requested(visit)
        result = self._fate(page, visit.pages[at])
        moment = began + (self._timeout_s if result == FAILED else float(self._latency_s[page]))
        self._at(moment, COMPLETION, lambda: self._answer(visit, site, urls, at, request, result))

    def _fate(self, page: int, ours: int) -> int:
        if not self._failed + self._refused:
            return FETCHED
        drawn = uniform(self._seed + FATE, 16 * page + int(self.crawler.frontier.state.page["tries"][ours]))
        return FAILED if drawn < self._failed else REFUSED if drawn < self._failed + self._refused else FETCHED

    def _answer(self, visit: Visit, site: Site, urls: list[str], at: int, request: PageRequest, result: int) -> None:
        page = self.page_at[request.url]
        if result == FAILED:
            self.crawler.results.failed(visit, site, request, failure.TIMEOUT, "")
        else:
            body, status = (self._html(page), 200) if result == FETCHED else (b"", 404)
            self.crawler.results.answered(visit, site, request, answer(body, float(self._latency_s[page]), status), "")
        most = int(self._requests[self._graph.site[page]])
        if result == FAILED or at + 1 == len(urls) or at + 1 == most:
            self._end(visit, site, at + 1 if at + 1 == most else 0)
        else:
            self._ask(visit, site, urls, at + 1)

    def _end(self, visit: Visit, site: Site, closed: int) -> None:
        connection_s = float(self._connection_s[self._site_at[site.origin]])
        self.crawler.over(visit, site, Outcome((), connection_s, closed, closed > 0, 0, -math.inf))

    def _html(self, page: int) -> bytes:
        links = (f'<p><a href="{self.urls[target]}">{target}</a>' for target in self._graph.targets_of(page).tolist())
        return f"<!doctype html><title>{page}</title>{''.join(links)}".encode()

    # ---- time

    def _at(self, when: float, kind: int, callback: Callable[[], None]) -> Event:
        event = Event(when, kind, self._serial, callback)
        self._serial += 1
        heapq.heappush(self._events, event)
        return event

    def run(self, crawler: Crawler, seeds: list[str]) -> None:
        self.begin(crawler, seeds)
        while not self.over:
            if not self._step():
                self._now = self._events[0].time

    def begin(self, crawler: Crawler, seeds: list[str]) -> None:
        self.crawler = crawler
        crawler.frontier.discover(crawler.link_resolver.seed_pages(seeds, 0.0), 0.0)
        crawler.begin(self)

    def run_until(self, moment: float) -> None:
        """Process every event up to this time."""
        while self._step() or (self._events and self._events[0].time <= moment):
            self._now = max(self._now, self._events[0].time) if self._events and not self._soon else self._now
        self._now = moment

    def _step(self) -> bool:
        """Process one event of this time. Return False if there is none."""
        if self._events and (self._events[0].cancelled or self._events[0].time <= self._now):
            self._happen()
        elif self._soon:
            self._soon.popleft()()
        else:
            return False
        return True

    def _happen(self) -> None:
        event = heapq.heappop(self._events)
        if not event.cancelled:
            event.callback()


def answer(body: bytes, total_s: float, status: int = 200) -> Response:
    head = b"HTTP/1.1 %d X\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
    headers = {b"content-type": b"text/html", b"content-length": b"%d" % len(body)}
    return Response(status, 11, head, headers, True, body, body, first_byte_s=total_s, total_s=total_s, own_s=total_s)


def crawled(
    world: VirtualWorld,
    strategy: Strategy,
    rules: Rules,
    seeds: list[str],
    connections: int,
    most: float = math.inf,
    inputs: dict[str, Array] | None = None,
    seed: int = 0,
) -> list[Fetched]:
    """Crawl with the live crawler in virtual time. Return the result of each requested page, in order."""
    crawler, batches = crawl_of(world, strategy, rules, connections, inputs, seed, Goals(most))
    world.run(crawler, seeds)
    crawler.outbox.flush()
    return [record for batch in batches for record in batch.fetches]


def crawl_of(
    world: VirtualWorld,
    strategy: Strategy,
    rules: Rules,
    connections: int,
    inputs: dict[str, Array] | None = None,
    seed: int = 0,
    goals: Goals | None = None,
    tally: CrawlTally | None = None,
) -> tuple[Crawler, list[Batch]]:
    """Return a live crawler in this world, and the list that receives its batches."""
    journal = Journal()
    frontier = Frontier(strategy, rules, seed, journal=journal)
    batches: list[Batch] = []
    outbox = Outbox(journal, batches.append)
    sites, url_store = Sites(0.0), UrlStore(None)
    values: dict[str, Any] = {
        name: lambda urls, of=given: [float(of[world.page_at[url]]) for url in urls]
        for name, given in (inputs or {}).items()
        if name in strategy.page.inputs
    }
    link_resolver = LinkResolver(
        frontier, sites, SeenTable(), url_store, Scope("any"), outbox, values, world.locate, Counter()
    )
    crawler = Crawler(
        frontier,
        link_resolver,
        outbox,
        CrawlerSettings(connections, "trapline", 1 << 20, 99, goals or Goals()),
        PageScoring(lambda page: 1.0, (lambda page, links: None) if strategy.page.scores else None),
        tally=tally,
    )
    return crawler, batches
