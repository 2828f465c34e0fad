"""The live web as the crawler sees it: a clock, timers, connections and DNS. Step 5 in docs/architecture.md begins here.

There is one thread and one event loop. One timer checks the time limits of all connections four times a second; a
request has no timer of its own. The clock is set to the wall clock when the crawl starts and then follows the monotonic
clock. Times can therefore be stored, and never run backwards within a run.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator

from trapline.crawler.discovery.site_resolver import SiteResolver
from trapline.crawler.discovery.sites import Site, Sites
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.engine.options import KEPT_S, CrawlOptions
from trapline.crawler.engine.page_quality import Scores
from trapline.crawler.engine.stop_reasons import PROXY_LOST
from trapline.crawler.robots.cross_site import RobotsElsewhere
from trapline.crawler.robots.site_robots import RobotsResponse
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.visit import VisitWorker
from trapline.crawler.visits.visit_state import VisitState
from trapline.fetch.http.connection import Connection, Owner, open_connection, tls_context
from trapline.fetch.http.content import ACCEPT_ENCODING
from trapline.fetch.http.headers import MimeFilter
from trapline.fetch.http.http1 import request, request_headers
from trapline.fetch.http.private_headers import read_secrets
from trapline.fetch.http.proxy import read_proxy
from trapline.fetch.http.throttle import BandwidthLimit, Throttle
from trapline.fetch.http.user_headers import merged, read_headers
from trapline.fetch.urls import origin
from trapline.frontier import Frontier, Visit

ACCEPT = "text/html,application/xhtml+xml,*/*;q=0.5"
SWEEP_S = 0.25
MOST_PROXY_LOSSES = 3  # in a row; then the crawl stops
PROXY_AUTHENTICATION = 407


class Nobody:
    """The owner of a connection that is kept between two visits, or that is no longer wanted."""

    def __init__(self, forget: Callable[[Connection], None]) -> None:
        self._forget = forget

    def connected(self, connection: Connection, seconds: float) -> None:
        connection.close()

    def received(self, connection: Connection, response: object) -> None:
        connection.close()

    def lost(self, connection: Connection, kind: str, unanswered: int) -> None:
        self._forget(connection)


class LiveWeb:
    """The `World` of a live crawl, and the `VisitWeb` of its visits (world.py)."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        options: CrawlOptions,
        crawler: Crawler,
        names: SiteResolver,
        scores: Scores | None,
    ) -> None:
        self._loop, self._options, self._crawler = loop, options, crawler
        self._site_resolver, self._scores = names, scores
        self.frontier: Frontier = crawler.frontier
        self.sites: Sites = crawler.link_resolver.sites
        self.outbox: Outbox = crawler.outbox
        self.elsewhere = RobotsElsewhere()
        self.agent = options.robots_token
        self.delay_s = options.rules.delay_s
        self.longest_delay_s = max(self.delay_s, options.rules.ip_delay_s or 0.0)  # of site and address
        self.pipelining = options.http == "pipelining"
        # The crawl's own time never runs backwards. But the wall clock may have been set back before a resume, and the clock of a new
        # partition may be behind the beginning of the crawl.
        refresher_now = crawler.features.refetch.agenda.refresher.now if crawler.features.refetch else -math.inf
        self._offset = max(time.time(), self.frontier.now, refresher_now) - loop.time()
        self._open: dict[Connection, None] = {}
        self._kept: dict[Connection, Site] = {}  # connections between two visits, the longest idle one first
        self._nobody = Nobody(self.gone)
        self._tls = tls_context(options.insecure)
        proxy = read_proxy(options.proxy, options.proxy_names).located() if options.proxy else None
        self._secrets = read_secrets(options.credentials, options.cookies, options.accept_cookies, proxy)
        self._proxy = self._secrets.proxy if self._secrets is not None else None
        self._proxy_losses = 0  # consecutive times that the proxy was not available
        self._has_proxy_served = False  # whether an answer shows that the proxy accepts us
        self._refused_sites: set[int] = set()  # sites with the last answers 407, since another answer
        self.proxy_trouble = ""  # why the crawl stops because of its proxy
        self.filters_types = bool(options.include_mimes or options.exclude_mimes)
        self._mimes = MimeFilter(options.include_mimes, options.exclude_mimes) if self.filters_types else None
        limited = min(options.bandwidth, options.site_bandwidth) < math.inf
        self._link = BandwidthLimit(loop, options.bandwidth) if limited else None
        self.over = loop.create_future()

    # ---- time

    def now(self) -> float:
        return time.monotonic() + self._offset

    def call_soon(self, callback: Callable[[], None]) -> object:
        return self._loop.call_soon(callback)

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_at(when - self._offset, callback)

    def sweep(self) -> None:
        """Let every connection check its time limits, and schedule the next sweep."""
        now = self._loop.time()
        for connection in list(self._open):
            connection.sweep(now)
        self._loop.call_later(SWEEP_S, self.sweep)

    # ---- visits

    def begin_visit(self, visit: Visit, site: Site, urls: list[str], conditions: list[bytes]) -> None:
        VisitWorker(self, self._crawler, visit, site, urls, conditions).begin()

    def visits(self) -> Iterator[tuple[VisitState, bool]]:
        """Yield the state of each visit that has a connection, and whether a bandwidth limit pauses its reading."""
        for connection in self._open:
            if isinstance(connection.owner, VisitWorker):
                yield connection.owner.state, connection.is_throttled

    def request_for(self, site: Site, target: str, condition: bytes = b"") -> bytes:
        return request(target, site.request_headers or self._make_request_headers(site), condition)

    def _make_request_headers(self, site: Site) -> bytes:
        headers = {
            "User-Agent": self._options.whole_user_agent,
            "Accept": ACCEPT,
            "Accept-Encoding": ACCEPT_ENCODING.decode(),
        }
        own = site.settings.headers if site.settings is not None else ()
        if self._options.headers or own:
            headers = merged(headers, read_headers(self._options.headers), read_headers(own))
        if self._secrets is not None:
            site.private_headers = self._secrets.of_site(site.origin)
        site.request_headers = request_headers(site.origin.partition("//")[2], headers, self._options.http != "1.0")
        if self._options.http == "1.0":
            site.request_headers = site.request_headers.replace(b" HTTP/1.1", b" HTTP/1.0", 1)
        return site.request_headers

    def score(self) -> None:
        assert self._scores is not None
        self._crawler.rescored(self._scores.scores(self.frontier.page_states))

    def ended(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def discover(self, url: str) -> None:
        """Discover a page that no link leads to: the target of a redirected robots.txt. If the page was fetched before, it is
        fetched once more (crawler/visits/out_of_band.py). If another partition owns the page, that partition fetches it."""
        now, crawler = self.now(), self._crawler
        if crawler.features.others is not None and not crawler.link_resolver.is_ours(url):
            crawler.features.others.ask(url)
            return
        pages = crawler.link_resolver.seed_pages([url], now)
        self.frontier.discover(pages, now)
        if not self._is_forbidden(url):
            for page in pages:
                crawler.out_of_band.add(page)
        crawler.soon()

    def _is_forbidden(self, url: str) -> bool:
        """Return whether the site's robots.txt, if it is known and still valid, forbids the URL."""
        site = self.sites.named(origin(url))
        if site is None or site.robots is None or self.now() >= site.robots_until:
            return False
        return not site.robots.allows(url[len(site.origin) :])

    def robots_read(self, site: Site, url: str, body: bytes) -> None:
        """Pass a robots.txt on: besides rules, it may name sitemaps and schedules."""
        if self._crawler.features.published_lists is not None:
            self._crawler.features.published_lists.robots(site, url, body, self.now())

    def ruled(self, site: Site) -> None:
        self.elsewhere.ruled(self, site)

    # ---- robots.txt files that other partitions request from us, and that we request from them

    def list_found(self, url: str, speaks_for: str, level: int) -> None:
        if self._crawler.features.published_lists is not None:
            self._crawler.features.published_lists.received(url, speaks_for, level, self.now())

    def requisite_found(self, url: str, role: str, level: int) -> None:
        if self._crawler.features.requisites is not None:
            self._crawler.features.requisites.received(url, role, level, self.now())

    def robots_requested(self, url: str, partition: int) -> None:
        self.elsewhere.requested(self, url, partition)

    def robots_received(self, url: str, answer: RobotsResponse) -> None:
        self.elsewhere.reply_received(self, url, answer)

    def reply(self, partition: int, url: str, answer: RobotsResponse) -> None:
        assert self._crawler.features.others is not None  # only other partitions request one
        self._crawler.features.others.reply(partition, url, answer)

    # ---- connections

    def _throttle(self, site: Site) -> Throttle | None:
        if self._link is None:
            return None
        if site.throttle is None:
            site.throttle = Throttle(self._link, self._options.site_bandwidth)
        return site.throttle

    def connect(self, site: Site, owner: Owner) -> Connection | None:
        """Open a connection to the site's address. Return None if the guard refuses the address. The guard checks it again
        here, because the address may have been cached."""
        address = site.addresses[0]
        if self._site_resolver.refuses(address):
            return None
        if self._kept and len(self._open) >= self._options.connections:
            self.drop(next(iter(self._kept)))
        tls = self._tls if site.secure else None
        limits = self._options.limits
        connection = open_connection(
            *(self._loop, address, site.port, owner, limits, tls, site.host, self._throttle(site)),
            *(self._mimes, self._proxy),
        )
        self._open[connection] = None
        return connection

    def keep(self, site: Site, connection: Connection) -> bool:
        """Keep the connection for the site's next visit if that may come soon. Return whether it is kept."""
        if self._until_next_visit_s(site) > KEPT_S or self._options.http == "1.0":
            return False
        connection.owner = self._nobody
        self._kept[connection] = site
        site.connection = connection
        return True

    def _until_next_visit_s(self, site: Site) -> float:
        """Return the longest of the delays of the site and of its address."""
        own, robots = site.settings, site.robots
        delay_s = self.delay_s if own is None or own.delay_s is None else own.delay_s
        crawl_delay_s = (robots.crawl_delay_s or 0.0) if robots is not None else 0.0
        return max(delay_s, crawl_delay_s, self._options.rules.address_delay_s)

    def take_kept(self, site: Site) -> Connection | None:
        """Return the connection that was kept for the site, or None. A connection to a former address of the site is closed."""
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
        """Close a connection that is no longer wanted. What it still receives is ignored."""
        self.gone(connection)
        connection.owner = self._nobody
        connection.close()

    def gone(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        if self._proxy is not None:
            self._note_proxy(connection)
        site = self._kept.pop(connection, None)
        if site is not None:
            site.connection = None

    def _note_proxy(self, connection: Connection) -> None:
        """Stop the crawl if the proxy is not available: otherwise all sites would seem to have failed, and be abandoned."""
        self._proxy_losses = self._proxy_losses + 1 if connection.is_proxy_lost else 0
        if self._proxy_losses >= MOST_PROXY_LOSSES:
            self._stop_for_proxy(connection.why_not_connected)

    def proxy_answered(self, site: Site, status: int) -> None:
        """Stop the crawl if its proxy demands credentials. A proxy that gets whole URLs answers 407 in place of servers. Because a
        server may do so too, one that follows other answers counts only together with those of further sites."""
        if self._proxy is None or not self._proxy.sees_requests(site.secure):
            return
        if status != PROXY_AUTHENTICATION:
            self._has_proxy_served = True
            self._refused_sites.clear()
            return
        self._refused_sites.add(site.id)
        if not self._has_proxy_served or len(self._refused_sites) >= MOST_PROXY_LOSSES:
            self._stop_for_proxy(self._proxy.wants_credentials)

    def _stop_for_proxy(self, why: str) -> None:
        self.proxy_trouble = f"--proxy {self._options.proxy}: {why}"
        self._crawler.stop(PROXY_LOST)

    def visited(self, site: Site) -> None:
        self._site_resolver.visited(site)

    def next_address(self, site: Site) -> None:
        self._site_resolver.next_address(site)

    def abort(self) -> None:
        """End every visit now, by aborting its connection."""
        for connection in list(self._open):
            connection.abort()
