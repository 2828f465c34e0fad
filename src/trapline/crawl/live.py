"""The live web, as the crawler sees it: a clock, timers, connections, names. Step 5 of the way of a URL begins here.

One thread, one event loop. One timer sweeps all connections, four times a second; there is none for a request. The clock is
anchored to the wall clock when the crawl starts and then runs by the monotonic one, so that times can be kept and never run
backwards within a run.
"""

import asyncio
import math
import time
from collections.abc import Callable

from trapline.crawl.crawler import Crawler
from trapline.crawl.names import Names
from trapline.crawl.options import AGENT, CrawlOptions
from trapline.crawl.outbox import Outbox
from trapline.crawl.robots_elsewhere import RobotsElsewhere
from trapline.crawl.robots_file import Answer
from trapline.crawl.scores import Scores
from trapline.crawl.sites import Site, Sites
from trapline.crawl.visit import Robot
from trapline.fetch.connection import Connection, Owner, open_connection
from trapline.fetch.content import ACCEPT_ENCODING
from trapline.fetch.http1 import request, request_rest
from trapline.fetch.throttle import Link, Throttle
from trapline.fetch.tls import tls_context
from trapline.fetch.urls import origin
from trapline.frontier import Frontier, Visit

ACCEPT = "text/html,application/xhtml+xml,*/*;q=0.5"
SWEEP_S = 0.25
# A connection is kept between two visits if the site rests no longer: common servers close after 5 s or more.
KEPT_S = 5.0


class Nobody:
    """The owner of a connection between visits, and of one that is no longer wanted."""

    def __init__(self, forget: Callable[[Connection], None]) -> None:
        self._forget = forget

    def connected(self, connection: Connection, seconds: float) -> None:
        connection.close()

    def received(self, connection: Connection, response: object) -> None:
        connection.close()

    def lost(self, connection: Connection, kind: str, unanswered: int) -> None:
        self._forget(connection)


class Web:
    """The world of a live crawl (crawler.py), and of its robots (visit_web.py)."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        options: CrawlOptions,
        crawler: Crawler,
        names: Names,
        scores: Scores | None,
    ) -> None:
        self._loop, self._options, self._crawler, self._names, self._scores = loop, options, crawler, names, scores
        self.frontier: Frontier = crawler.frontier
        self.sites: Sites = crawler.known.sites
        self.outbox: Outbox = crawler.outbox
        self.elsewhere = RobotsElsewhere()
        self.agent = AGENT
        self.pause_s, self.delay_s = options.pause_s, options.rules.delay_s
        self.rest_s = max(self.delay_s, options.rules.ip_delay_s or 0.0)  # of a site and of its address
        self.pipelining = options.http == "pipelining"
        # A crawl that goes on may find the clock set back, and a new part of one may find it before the beginning: its own time does not
        # run backwards.
        heard = crawler.upkeep.agenda.refresher.now if crawler.upkeep else -math.inf
        self._offset = max(time.time(), float(self.frontier.state.run[0].now), heard) - loop.time()
        self._open: dict[Connection, None] = {}
        self._kept: dict[Connection, Site] = {}  # between two visits, the longest waiting first
        self._nobody = Nobody(self.gone)
        self._tls = tls_context(options.insecure)
        limited = min(options.bandwidth, options.site_bandwidth) < math.inf
        self._link = Link(loop, options.bandwidth) if limited else None
        self.over = loop.create_future()

    # ---- time

    def now(self) -> float:
        return time.monotonic() + self._offset

    def call_soon(self, callback: Callable[[], None]) -> object:
        return self._loop.call_soon(callback)

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_at(when - self._offset, callback)

    def sweep(self) -> None:
        """Every connection looks whether its time is up."""
        now = self._loop.time()
        for connection in list(self._open):
            connection.sweep(now)
        self._loop.call_later(SWEEP_S, self.sweep)

    # ---- robots

    def set_out(self, visit: Visit, site: Site, urls: list[str], conditions: list[bytes]) -> None:
        Robot(self, self._crawler, visit, site, urls, conditions).begin()

    def request_for(self, site: Site, target: str, condition: bytes = b"") -> bytes:
        return request(target, site.rest or self._make_rest(site), condition)

    def _make_rest(self, site: Site) -> bytes:
        headers = {
            "User-Agent": self._options.user_agent,
            "Accept": ACCEPT,
            "Accept-Encoding": ACCEPT_ENCODING.decode(),
        }
        site.rest = request_rest(site.origin.partition("//")[2], headers, self._options.http != "1.0")
        if self._options.http == "1.0":
            site.rest = site.rest.replace(b" HTTP/1.1", b" HTTP/1.0", 1)
        return site.rest

    def score(self) -> None:
        assert self._scores is not None
        frontier = self.frontier
        self._crawler.rescored(self._scores.scores(frontier.state.state[: frontier.pages]))

    def ended(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def discover(self, url: str) -> None:
        """A page that no link led to: where a robots.txt has moved. One that was had before is asked for once more (errands.py); another
        partition's is asked for there."""
        now, crawler = self.now(), self._crawler
        if crawler.others is not None and not crawler.known.is_ours(url):
            crawler.others.ask(url)
            return
        pages = crawler.known.seed_pages([url], now)
        self.frontier.discover(pages, now)
        if not self._is_forbidden(url):
            for page in pages:
                crawler.errands.add(page)
        crawler.soon()

    def _is_forbidden(self, url: str) -> bool:
        """Whether its site is known not to want it asked for."""
        site = self.sites.named(origin(url))
        if site is None or site.robots is None or self.now() >= site.robots_until:
            return False
        return not site.robots.allows(url[len(site.origin) :])

    def robots_read(self, url: str, body: bytes) -> None:
        """A robots.txt: rules are not all that it may tell."""
        if self._crawler.hearsay is not None:
            self._crawler.hearsay.robots(url, body, self.now())

    def ruled(self, site: Site) -> None:
        self.elsewhere.ruled(self, site)

    # ---- robots.txt files that other partitions ask for, or were asked for

    def robots_asked(self, url: str, partition: int) -> None:
        self.elsewhere.asked(self, url, partition)

    def robots_told(self, url: str, answer: Answer) -> None:
        self.elsewhere.told(self, url, answer)

    def reply(self, partition: int, url: str, answer: Answer) -> None:
        assert self._crawler.others is not None  # nobody else asks
        self._crawler.others.reply(partition, url, answer)

    # ---- connections

    def _throttle(self, site: Site) -> Throttle | None:
        if self._link is None:
            return None
        if site.throttle is None:
            site.throttle = Throttle(self._link, self._options.site_bandwidth)
        return site.throttle

    def connect(self, site: Site, robot: Owner) -> Connection | None:
        """Open a connection to the site's address. None: the guard, asked once more for the address may have been kept, refuses it."""
        address = site.addresses[0]
        if self._names.refuses(address):
            return None
        if self._kept and len(self._open) >= self._options.connections:
            self.drop(next(iter(self._kept)))
        tls = self._tls if site.secure else None
        limits = self._options.limits
        connection = open_connection(
            self._loop, address, site.port, robot, limits, tls, site.host, self._throttle(site)
        )
        self._open[connection] = None
        return connection

    def keep(self, site: Site, connection: Connection) -> bool:
        """Keep the connection for the site's next visit, if that may come soon."""
        if self.delay_s > KEPT_S or self._options.http == "1.0":
            return False
        connection.owner = self._nobody
        self._kept[connection] = site
        site.connection = connection
        return True

    def take_kept(self, site: Site) -> Connection | None:
        """The connection that was kept, unless the site has moved since."""
        connection = site.connection
        if connection is None:
            return None
        if connection.address != site.addresses[0]:
            self.drop(connection)
            return None
        site.connection = None
        del self._kept[connection]
        return connection

    def drop(self, connection: Connection) -> None:
        """It is not wanted any more; whatever it still says goes to nobody."""
        self.gone(connection)
        connection.owner = self._nobody
        connection.close()

    def gone(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        site = self._kept.pop(connection, None)
        if site is not None:
            site.connection = None

    def visited(self, site: Site) -> None:
        self._names.visited(site)

    def next_address(self, site: Site) -> None:
        self._names.next_address(site)

    def abort(self) -> None:
        """End every visit now."""
        for connection in list(self._open):
            connection.abort()
