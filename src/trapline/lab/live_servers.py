"""The same crawl twice: simulated, and live against a test web whose servers have the same numbers.

`LiveSetting` says what both crawls share. `simulated` and `live` run one crawl each, and `agreement` compares their
quality over time (thesis, figure 4.15). `protocol_batches` compares HTTP/1.0, persistent connections and pipelining (cao,
figure 4), simulated and live. The results are plain numbers; other modules of the lab judge and draw them.

The two crawls share the rules, the strategy, the servers and robots.txt. What a live crawl has in addition, and what no
server model describes, is the time of the crawler and the machine itself. Differences between the two crawls show that.
"""

import math
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.engine.options import CrawlOptions, live_rules
from trapline.errors import ConfigError
from trapline.fetch.limits import Limits
from trapline.frontier import FETCHED, Rules
from trapline.graph import Graph, pagerank
from trapline.lab.live import run_crawl
from trapline.servers.model import MODELS, ServerModel
from trapline.servers.sampled import Servers, modelled_servers
from trapline.simulator import PROTOCOLS, Network, simulate
from trapline.simulator.log import fetched
from trapline.strategies import load_strategy
from trapline.testweb import Served, build_web, serve

Floats = NDArray[np.float64]
Ids = NDArray[np.int32]

LIVE_PROTOCOLS = dict(zip(PROTOCOLS, ("1.1", "1.0", "pipelining"), strict=True))
"""The protocols of a live crawl, by those of the simulator."""
IDLE_S = 0.2
"""An idle connection is closed after this time. The simulator keeps no connection between two visits, and a live crawl that
waits longer than this does not either."""
BATCH_SHARE = 0.9
"""Share of the pages of a batch that is fetched. The others are on the slowest sites: a site sends one page after the other,
so that every protocol waits for them."""


@dataclass(frozen=True, slots=True)
class LiveSetting:
    """What a simulated crawl and a live one share. The strategy must not need values of pages."""

    graph: Graph
    model: ServerModel = MODELS["measured-tcp"]
    strategy: str = "larger-sites-first"
    connections: int = 16
    delay_s: float = 1.0
    per_connection: int = 10
    protocol: str = "keep-alive"
    all_known: bool = False
    """whether the crawl begins with all pages instead of the home pages: one batch of known pages"""
    max_pages: int | None = None
    """number of complete pages at which both crawls end; None: all pages"""
    seed: int = 0
    max_transfer_s: float = math.inf
    """pages that take longer to transfer are made smaller, in both crawls"""
    own_s: float = 0.0
    """time that the crawler and the machine add to each answer; for simulated crawls only"""

    @property
    def rules(self) -> Rules:
        return live_rules(delay_s=self.delay_s, per_connection=self.per_connection)

    @property
    def servers(self) -> Servers:
        drawn = modelled_servers(self.graph, self.model, self.seed)
        most = np.maximum(1.0, self.max_transfer_s * np.broadcast_to(drawn.speed, self.graph.sites)[self.graph.site])
        return replace(drawn, size=np.minimum(drawn.size, most))

    @property
    def seeds(self) -> Ids:
        return np.arange(self.graph.pages, dtype=np.int32) if self.all_known else self.graph.home


@dataclass(frozen=True, slots=True)
class CrawlTimes:
    """The fetched pages of a crawl in the order of their completion, and when each was complete."""

    page: Ids
    end_s: Floats  # since the first request
    taken_s: Floats  # time of each page, from its request to its end

    def first(self, pages: int | None) -> "CrawlTimes":
        return CrawlTimes(self.page[:pages], self.end_s[:pages], self.taken_s[:pages])

    def pages_per_second(self, share: float = 0.9) -> float:
        """Return the throughput until this share of the pages is fetched: the last pages wait for the slowest sites."""
        pages = max(1, math.ceil(share * len(self.page)))
        return pages / float(self.end_s[pages - 1])

    def quality(self, value: Floats, times_s: Floats) -> Floats:
        """Return the sum of the values of the pages fetched by each of these times."""
        gained = np.concatenate(([0.0], np.cumsum(value[self.page])))
        return gained[np.searchsorted(self.end_s, times_s, side="right")]


def simulated(given: LiveSetting) -> CrawlTimes:
    servers = given.servers
    servers = replace(servers, latency_s=servers.latency_s + given.own_s, robots_s=servers.robots_s + given.own_s)
    done = simulate(
        given.graph,
        load_strategy(given.strategy),
        replace(given.rules, lease_s=math.inf, pipelining=given.protocol == "pipelining"),
        connections=given.connections,
        servers=servers,
        network=Network(protocol=given.protocol, robots=True),
        seeds=given.seeds,
        most=given.max_pages,
        seed=given.seed,
    )
    log = fetched(done.log)
    return CrawlTimes(log.page, log.end, log.end - log.start)


def live(given: LiveSetting) -> CrawlTimes:
    """Serve the web on loopback and crawl it in real time. Needs the main thread, as every live crawl does."""
    web = build_web(given.graph, names="address", sites_per_address=1, seed=given.seed, servers=given.servers)
    with serve(web) as server, tempfile.TemporaryDirectory(prefix="trapline-lab-") as scratch:
        folder = Path(scratch) / "crawl"
        run_crawl(_options(given, server), folder, math.inf if given.max_pages is None else given.max_pages)
        found = _times(folder, {server.web.url(page): page for page in range(given.graph.pages)})
    return found.first(given.max_pages)


def _options(given: LiveSetting, server: Served) -> CrawlOptions:
    return CrawlOptions(
        tuple(server.web.url(page) for page in given.seeds.tolist()),
        given.strategy,
        seed=given.seed,
        connections=given.connections,
        rules=replace(given.rules, pipelining=given.protocol == "pipelining"),
        pause_s=0.0,
        http=LIVE_PROTOCOLS[given.protocol],
        scope="any",
        allow_private=True,
        limits=Limits(idle_s=IDLE_S, body_bytes=1 << 26),
    )


def _times(folder: Path, number: dict[str, int]) -> CrawlTimes:
    sql = "select url, started + total_s, total_s from fetch join page on page.id = page where result = ? order by 2"
    first = "select min(started) from (select started from fetch union all select started from robots)"
    with closing(sqlite3.connect(folder / "crawl.db")) as database:
        rows = database.execute(sql, (FETCHED,)).fetchall()
        began = database.execute(first).fetchone()[0]
    urls, ends, taken = zip(*rows, strict=True)
    return CrawlTimes(np.array([number[url] for url in urls], np.int32), np.array(ends) - began, np.array(taken))


# ---- Quality over time, simulated and live (thesis, figure 4.15).


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well a simulated crawl predicts a live one: quality at even steps of time, as a share of the whole web's.

    Errors are simulated minus live, relative to live, after the first tenth of the live crawl."""

    times_s: list[float]
    simulated: list[float]
    live: list[float]
    simulated_pages_per_second: float
    live_pages_per_second: float
    largest_error: float
    mean_error: float
    within_5_percent: float
    """share of the time in which the error is at most 5 %"""
    same_pages: float
    """share of the pages that both crawls had fetched when half of them were"""


def agreement(predicted: CrawlTimes, actual: CrawlTimes, value: Floats, points: int = 100) -> Agreement:
    """Compare two crawls of one web until the live one has fetched 99 % of its pages: its end waits for single pages."""
    pages = len(actual.page)
    until_s = float(actual.end_s[math.ceil(0.99 * pages) - 1])
    times_s = np.linspace(0.0, until_s, points + 1)
    ours, theirs = (crawl.quality(value, times_s) / value.sum() for crawl in (predicted, actual))
    judged = times_s >= 0.1 * until_s
    errors = ours[judged] / theirs[judged] - 1
    half = pages // 2
    return Agreement(
        times_s=times_s.tolist(),
        simulated=ours.tolist(),
        live=theirs.tolist(),
        simulated_pages_per_second=predicted.pages_per_second(),
        live_pages_per_second=actual.pages_per_second(),
        largest_error=float(errors[np.argmax(np.abs(errors))]),
        mean_error=float(np.mean(np.abs(errors))),
        within_5_percent=float(np.mean(np.abs(errors) <= 0.05)),
        same_pages=len(np.intersect1d(predicted.page[:half], actual.page[:half])) / max(half, 1),
    )


def own_seconds(predicted: CrawlTimes, actual: CrawlTimes) -> float:
    """Return how much longer a page took live than simulated, on average over the pages of both crawls.

    Not for pipelining, where a live page is requested before the page in front of it is complete.
    """
    _, ours, theirs = np.intersect1d(predicted.page, actual.page, return_indices=True)
    return float(np.mean(actual.taken_s[theirs] - predicted.taken_s[ours]))


@dataclass(frozen=True, slots=True)
class LiveComparison:
    """The same crawl simulated and live, and what explains the difference."""

    plain: Agreement
    own_s: float
    """average time that the crawler and the machine added to a page"""
    with_own_time: Agreement
    """with a simulated crawl in which every answer takes `own_s` longer"""


def compared(given: LiveSetting) -> LiveComparison:
    """Run both crawls and compare them, without pipelining. The value of a page is its PageRank."""
    if given.protocol == "pipelining":
        raise ConfigError("a crawl with pipelining cannot be compared page by page; choose keep-alive or http/1.0")
    value, actual, predicted = pagerank(given.graph), live(given), simulated(given)
    own_s = own_seconds(predicted, actual)
    slower = simulated(replace(given, own_s=max(0.0, own_s)))
    return LiveComparison(agreement(predicted, actual, value), own_s, agreement(slower, actual, value))


# ---- HTTP/1.0, persistent connections and pipelining, simulated and live (cao, figure 4).


@dataclass(frozen=True, slots=True)
class ProtocolBatch:
    """Pages per second by which one protocol fetches a batch of known pages."""

    protocol: str
    connections: int
    simulated: float
    live: float | None  # None: not run


@dataclass(frozen=True, slots=True)
class ProtocolRatios:
    connections: int
    persistent: float  # HTTP/1.1 to HTTP/1.0
    pipelining: float  # pipelining to HTTP/1.1


def protocol_batches(
    given: LiveSetting, connections: Sequence[int], live_connections: Sequence[int] = ()
) -> list[ProtocolBatch]:
    """Fetch pages that are all known from the start, without delays, with as many pages in a visit as servers allow.

    With HTTP/1.0 a visit has one page, because a visit of a live crawl ends with its connection. Live crawls run for the
    numbers of connections in `live_connections`. Every crawl ends when the share BATCH_SHARE of the
    pages, or of `max_pages`, is complete.
    """
    most = math.ceil(BATCH_SHARE * (given.max_pages or given.graph.pages))
    batch = replace(given, strategy="breadth-first", delay_s=0.0, all_known=True, max_pages=most)
    found = []
    for count in connections:
        for protocol in PROTOCOLS:
            one = replace(batch, connections=count, protocol=protocol, per_connection=int(protocol == "http/1.0"))
            actual = live(one).pages_per_second(1.0) if count in live_connections else None
            found.append(ProtocolBatch(protocol, count, simulated(one).pages_per_second(1.0), actual))
    return found


def protocol_ratios(batches: Sequence[ProtocolBatch], of_live: bool) -> list[ProtocolRatios]:
    """Return the ratios of throughput, of the simulated or of the live batches, for each number of connections.

    >>> three = [ProtocolBatch(protocol, 8, rate, None) for protocol, rate in zip(PROTOCOLS, (6.0, 2.0, 9.0))]
    >>> protocol_ratios(three, of_live=False)
    [ProtocolRatios(connections=8, persistent=3.0, pipelining=1.5)]
    """
    rates = {(one.connections, one.protocol): one.live if of_live else one.simulated for one in batches}
    found = []
    for count in dict.fromkeys(one.connections for one in batches):
        persistent, old, pipelined = (rates[count, protocol] for protocol in PROTOCOLS)
        if persistent is not None and old is not None and pipelined is not None:
            found.append(ProtocolRatios(count, persistent / old, pipelined / persistent))
    return found
