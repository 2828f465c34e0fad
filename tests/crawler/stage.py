"""A live crawl without sockets. The crawler, robots.txt handling, name resolution, frontier and outbox are real; the clock is virtual.

A test plays the servers: it opens a `Wire`, reads the requests, answers them, ends the connection, and lets time pass. The event loop
is asyncio's own, but its clock jumps ahead when there is nothing to do.
"""

import asyncio
import selectors
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.scope import Scope
from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.discovery.site_resolver import SiteResolver
from trapline.crawler.discovery.sites import Site, Sites
from trapline.crawler.discovery.url_store import UrlStore
from trapline.crawler.engine import live
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.engine.fetch_results import Features
from trapline.crawler.engine.options import AGENT, CrawlerSettings, CrawlOptions, Goals, RefreshOptions
from trapline.crawler.engine.page_quality import PageScoring
from trapline.crawler.engine.records import OUT_OF_BAND, RETURNED, SITE_FAILED, Batch, Fetched, RobotsFetched
from trapline.crawler.recrawl.conditional_refetch import ConditionalRefetch, Copies, ForbiddenPages
from trapline.crawler.recrawl.published_lists import ListOptions, Offload, PublishedLists
from trapline.crawler.recrawl.signal_intake import SignalIntake
from trapline.crawler.requisites.page_requisites import PageRequisites
from trapline.crawler.store.outbox import Outbox
from trapline.fetch import failure
from trapline.fetch.address import Guard
from trapline.fetch.dns import Resolver
from trapline.fetch.http.response import Response, response_of
from trapline.frontier import Frontier, Rules
from trapline.frontier.journal import Journal
from trapline.refresh.live.agenda import Agenda, Turns
from trapline.refresh.live.refresher import Refresher
from trapline.refresh.policy import policy_named
from trapline.signals.inbox import Inbox
from trapline.strategies import load_strategy

A, B = "http://a.test", "http://b.test"
HOSTS = {"a.test": ("127.0.0.1",), "b.test": ("127.0.0.2",), "c.test": ("127.0.0.1",)}
NO_ROBOTS = (404, {}, b"")


class _InstantSelector(selectors.SelectSelector):
    """Does not wait: the virtual clock jumps ahead by the timeout."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[Any]:
        self.loop.passed += timeout or 0.0
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        selector = _InstantSelector()
        self.passed = 0.0
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.passed


class Wire:
    """One connection: the methods that the crawler calls, and the methods with which a test plays the server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str, port: int, owner: Any) -> None:
        self._loop, self.address, self.port, self.owner = loop, address, port, owner
        self.sent: list[bytes] = []
        self.responses_received = 0
        self.is_over = self.is_answering = self.is_proxy_lost = self.is_throttled = False
        self.why_not_connected = ""

    # ---- called by the crawler

    def send(self, request: bytes) -> None:
        self.sent.append(request)

    def close(self) -> None:
        self._over("stopped" if len(self.sent) > self.responses_received else "")

    def abort(self) -> None:
        self._over("stopped")

    def sweep(self, now: float) -> None: ...

    def _over(self, kind: str) -> None:
        if not self.is_over:
            self.is_over = True
            self._loop.call_soon(self._tell, kind)

    def _tell(self, kind: str) -> None:
        self.owner.lost(self, kind, len(self.sent) - self.responses_received)

    # ---- called by the test

    @property
    def targets(self) -> list[str]:
        """Return the requested targets in order."""
        return [request.split(b" ")[1].decode() for request in self.sent]

    def opens(self, seconds: float = 0.1) -> "Wire":
        self.owner.connected(self, seconds)
        return self

    def answers(
        self,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"<p>",
        keep: bool = True,
        truncated: str = "",
        junk: bool = False,
    ) -> "Wire":
        """Answer the first unanswered request. With `junk`, unrequested bytes follow the answer."""
        assert len(self.sent) > self.responses_received, "there is no unanswered request"
        said = {"Content-Type": "text/html", "Content-Length": str(len(body)), **(headers or {})}
        if not keep:
            said["Connection"] = "close"
        head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in said.items()) + "\r\n"
        response = response_of(head.encode(), 100)
        assert isinstance(response, Response)
        response.wire = response.body = body
        response.truncated = truncated
        if truncated or junk:
            response.hang_up()
        response.first_byte_s = response.total_s = response.own_s = 0.25
        self.responses_received += 1
        if not response.keep_alive:
            self._over("protocol" if junk else "closed" if len(self.sent) > self.responses_received else "")
        self.owner.received(self, response)
        return self

    def ends(self, kind: str = "", is_answering: bool = False) -> None:
        """End the connection: the server closes it, or it breaks."""
        self.is_over, self.is_answering = True, is_answering
        self._tell(kind or ("closed" if len(self.sent) > self.responses_received else ""))


class StageWeb(live.LiveWeb):
    def now(self) -> float:
        return self._loop.time()

    def call_at(self, when: float, callback: Any) -> asyncio.TimerHandle:
        return self._loop.call_at(when, callback)


class Stage:
    """A crawl that has started. `wires` has every connection so far."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        seeds: Sequence[str] = (f"{A}/",),
        *,
        goals: Goals | None = None,
        scope: str = "any",
        resolver: Any = None,
        connections: int = 4,
        inbox: Inbox | None = None,
        lists: bool = False,
        requisites: bool = False,
        **options: Any,
    ) -> None:
        """`lists`: whether the crawl reads sitemaps and feeds, and guesses sitemaps. `requisites`: whether it fetches requisites."""
        rules = options.pop("rules", Rules(delay_s=15.0, per_connection=10))
        given = {"pause_s": 1.0, "allow_private": True, "hosts": HOSTS, **options}
        self.options = CrawlOptions(tuple(seeds), rules=rules, connections=connections, **given)
        self.inbox, self._reads_lists, self._fetches_requisites = inbox, lists, requisites
        self.loop = VirtualLoop()
        # Closed here, because the garbage collector may take the sockets of an unreachable loop before the loop.
        weakref.finalize(self, self.loop.close)
        self.wires: list[Wire] = []
        self.batches: list[Batch] = []
        patch.setattr(live, "open_connection", self._open)
        if resolver is not None:
            resolver.clock = self.loop.time
        self._build(goals or Goals(), scope, resolver or Resolver(self.options.hosts))
        self.frontier.discover(self.link_resolver.seed_pages(list(seeds), 0.0), 0.0)
        self.crawler.begin(self.web)
        self.passes(0.0)

    def _build(self, goals: Goals, scope: str, resolver: Any) -> None:
        options, journal = self.options, Journal()
        self.frontier = Frontier(load_strategy("breadth-first"), options.rules, journal=journal)
        refresh = options.refresh
        self.refresher = Refresher(policy_named(refresh.policy if refresh else "uniform"), 0.0)
        self.outbox = Outbox(journal, self.batches.append, refresh_log=self.refresher.take)
        self.site_resolver = SiteResolver(resolver, Guard(options.allow_private))
        self.sites, url_store = Sites(options.pause_s, options.sites, options.without_robots), UrlStore(None)
        self.url_store = url_store
        kept = Scope(scope, options.seeds)
        self.link_resolver = LinkResolver(
            self.frontier,
            self.sites,
            SeenTable(),
            url_store,
            kept,
            self.outbox,
            {},
            self.site_resolver.locate,
            Counter(),
        )
        self.signal_intake = None
        if self.inbox is not None:
            self.signal_intake = SignalIntake(
                self.refresher,
                self.frontier,
                self.link_resolver,
                self.inbox,
                self.outbox,
                self.loop.time,
                Offload(self.loop),
            )
        about_lists = (self.frontier, self.link_resolver, self.outbox, self.loop.time, Offload(self.loop))
        self.published_lists = PublishedLists(*about_lists, ListOptions(guesses=True)) if self._reads_lists else None
        about_requisites = (self.frontier, self.link_resolver, self.outbox, 50 << 20)
        self.requisites = PageRequisites(*about_requisites) if self._fetches_requisites else None
        self.refetch = self._refetch(refresh or RefreshOptions())
        self.crawler = Crawler(
            self.frontier,
            self.link_resolver,
            self.outbox,
            CrawlerSettings(options.connections, AGENT, 1 << 20, options.abandon, goals),
            PageScoring(lambda page: 1.0),
            Features(
                refetch=self.refetch if refresh else None,
                signal_intake=self.signal_intake,
                published_lists=self.signal_intake.published_lists if self.signal_intake else self.published_lists,
                requisites=self.requisites,
            ),
        )
        self.site_resolver.start(self.crawler, self.loop)
        self.web = StageWeb(self.loop, options, self.crawler, self.site_resolver, None)

    def _refetch(self, refresh: RefreshOptions) -> ConditionalRefetch:
        turns = Turns(refresh.share, refresh.price, refresh.rate)
        agenda = Agenda(self.frontier, self.refresher, turns, refresh.continuous)
        forbidden = ForbiddenPages(self.refresher, self.url_store.urls)
        whole = self.signal_intake.whole if self.signal_intake else ()
        return ConditionalRefetch(agenda, Copies(None), self.outbox, forbidden, whole)

    def _open(self, loop: Any, address: str, port: int, owner: Any, *rest: Any) -> Wire:
        self.wires.append(Wire(loop, address, port, owner))
        return self.wires[-1]

    # ---- actions of a test

    def passes(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def opens(self, robots: tuple[int, dict[str, str], bytes] = NO_ROBOTS) -> Wire:
        """Open the newest connection, answer robots.txt, and let the pause after it pass."""
        wire = self.wires[-1].opens()
        assert wire.targets == ["/robots.txt"]
        status, headers, body = robots
        wire.answers(status, {"Content-Type": "text/plain", **headers}, body)
        self.passes(1.0)
        return wire

    def refuses(self) -> None:
        """Refuse the newest connection, and let the crawler react."""
        self.wires[-1].why_not_connected = failure.CONNECTION_REFUSED
        self.wires[-1].ends(failure.CONNECT)
        self.passes(0.0)

    # ---- results of the crawl

    def site(self, origin: str = A) -> Site:
        site = self.sites.named(origin)
        assert site is not None
        return site

    @property
    def over(self) -> bool:
        return self.web.over.done()

    @property
    def fetches(self) -> list[Fetched]:
        return [fetch for batch in self._sent() for fetch in batch.fetches]

    @property
    def robots(self) -> list[RobotsFetched]:
        return [robots for batch in self._sent() for robots in batch.robots]

    def _sent(self) -> list[Batch]:
        self.outbox.flush()
        return self.batches

    def page_results(self) -> list[tuple[str, str]]:
        """Return path and error of every page whose result went to the frontier and the store."""
        return [
            _path_and_error(fetch) for fetch in self.fetches if fetch.result not in (RETURNED, OUT_OF_BAND, SITE_FAILED)
        ]

    def site_failures(self) -> list[str]:
        """Return the error of every visit in which the site failed, but no page."""
        return [fetch.error for fetch in self.fetches if fetch.result == SITE_FAILED]

    def unanswered(self) -> list[tuple[str, str]]:
        """Return path and error of every page that went back to the frontier unanswered."""
        return [_path_and_error(fetch) for fetch in self.fetches if fetch.result == RETURNED]

    def out_of_band(self) -> list[tuple[str, str]]:
        """Return path and error of every out-of-band fetch."""
        return [_path_and_error(fetch) for fetch in self.fetches if fetch.result == OUT_OF_BAND]

    def life(self, path: str, origin: str = A) -> int:
        page = self.link_resolver.seed_pages([origin + path], 0.0)[0]
        return int(self.frontier.page_state(page))


def _path_and_error(fetch: Fetched) -> tuple[str, str]:
    return fetch.url.partition(".test")[2], fetch.error


def links(*hrefs: str) -> bytes:
    return "".join(f'<a href="{href}">x</a>' for href in hrefs).encode()
