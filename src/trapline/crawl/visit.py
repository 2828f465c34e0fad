"""A robot on its visit: one connection, robots.txt first, then up to k pages with their pauses. Step 5 of the way of a URL.

It decides nothing about order: the visit says which pages, the crawler whether there may be another request. What it knows is
how a connection can end, and what then becomes of the pages:
- answered: reported. Asked for and lost: the first one failed; those pipelined behind it go back as they were.
- never asked for: they go back as they were, when the visit ends.
"""

import math
from collections import deque
from typing import TYPE_CHECKING

from trapline.crawl.crawler import Asked, Crawler
from trapline.crawl.robots_file import RobotsFile, Step
from trapline.crawl.sites import Site
from trapline.fetch import failure
from trapline.fetch.response import Response
from trapline.frontier import Outcome, Visit

if TYPE_CHECKING:
    from trapline.crawl.live import NoConnection, Web
    from trapline.fetch.connection import Connection

MOST_SECONDS = 300.0  # of one visit: half of its lease
PIPELINED = 8  # requests under way at once on one connection


class Robot:
    """The owner of a connection while the visit lasts (fetch/connection.py)."""

    __slots__ = (
        "_allowed",
        "_asked",
        "_at",
        "_began",
        "_closes",
        "_connection",
        "_connection_s",
        "_crawler",
        "_fresh",
        "_last",
        "_not_before",
        "_paused",
        "_robots",
        "_served",
        "_site",
        "_urls",
        "_visit",
        "_web",
        "_window",
    )

    def __init__(self, web: "Web", crawler: Crawler, visit: Visit, site: Site, urls: list[str]) -> None:
        self._web, self._crawler, self._visit, self._site, self._urls = web, crawler, visit, site, urls
        self._at = 0  # the next page to ask for
        self._last = len(urls)  # the first one not to ask for
        self._asked: deque[Asked] = deque()  # filled by _request, emptied by answers, in order
        self._window = PIPELINED if web.pipelining and site.pipelining and not site.pause_s else 1
        self._robots: RobotsFile | None = None  # while it is being asked for
        self._connection: Connection | None = None
        self._connection_s = math.nan
        self._fresh = True  # the connection was opened for this visit, or has answered in it
        self._began = web.now()
        self._not_before = -math.inf
        self._served = 0
        self._allowed = 0  # requests on this connection, in all, as the server announced; 0: it did not
        self._closes = False  # the server does, after what it has served
        self._paused = False

    def begin(self) -> None:
        kept = self._web.take_kept(self._site)
        if kept is None:
            self._connect()
            return
        self._connection, self._fresh = kept, False
        kept.owner = self
        self._go_on()

    def _connect(self) -> None:
        self._fresh = True
        self._connection = self._web.connect(self._site, self)

    def _go_on(self) -> None:
        """Over an open connection: robots.txt if its rules are not known, else pages."""
        site = self._site
        if self._robots is None and (site.robots is None or self._web.now() >= site.robots_until):
            self._robots = RobotsFile(site)
        if self._robots is None:
            self._request()
            return
        assert self._connection is not None
        self._robots.request = self._web.request_for(site, self._robots.target)
        self._robots.started = self._web.now()
        self._crawler.tally.requests += 1
        self._connection.send(self._robots.request)

    def _request(self) -> None:
        """Ask for as many pages as may be under way."""
        crawler, site, web = self._crawler, self._site, self._web
        while self._at < self._last and len(self._asked) < self._window:
            if not crawler.may_request() or web.now() - self._began > MOST_SECONDS:
                self._last = self._at
                break
            if crawler.waits(self._request):
                return
            page, url = self._visit.pages[self._at], self._urls[self._at]
            self._at += 1
            target = url[len(site.origin) :]
            if not site.robots.allows(target):  # type: ignore[union-attr]  # known by now
                crawler.disallowed(self._visit, site, page, url)
                continue
            request = web.request_for(site, target)
            self._asked.append(Asked(page, url, web.now(), request))
            crawler.requested()
            self._connection.send(request)  # type: ignore[union-attr]  # open by now
        if not self._asked:
            self._end()

    # ---- what the connection tells

    def connected(self, connection: "Connection", seconds: float) -> None:
        self._connection_s = seconds
        self._go_on()

    def received(self, connection: "Connection", response: Response) -> None:
        self._fresh = True
        if self._robots is not None:
            self._robots_received(self._robots, response, connection.address)
            return
        verdict = self._crawler.answered(self._visit, self._site, self._asked.popleft(), response, connection.address)
        self._served += 1
        if response.allowed:
            self._allowed = connection.responses_received + response.allowed
        if verdict.rest_s:
            self._not_before = self._web.now() + verdict.rest_s
        if verdict.ends_visit:
            self._last = self._at
        if not response.keep_alive:
            self._closes = True
            self._crawler.withdrawn(len(self._asked))
            self._asked.clear()
            self._end()
        elif self._at < self._last and self._site.pause_s > 0.0:
            self._pause(self._web.now() + self._site.pause_s)
        else:
            self._request()

    def lost(self, connection: "Connection | NoConnection", kind: str, unanswered: int) -> None:
        self._connection = None
        self._web.gone(connection)
        if self._paused:
            return
        kind = kind or failure.CLOSED
        if not self._fresh and (self._asked or self._robots):
            self._ask_again()
        elif self._robots is not None:
            self._robots.failed(self._web, self._visit.id, connection.address, kind)
            self._not_had(kind, "")
        elif self._asked:
            self._pages_lost(kind, connection.address)
        else:
            self._not_had(kind, connection.address)

    def _pause(self, until: float) -> None:
        self._paused = True
        self._web.call_at(until, lambda: self._paused_enough(until))

    def _paused_enough(self, until: float) -> None:
        if self._web.now() < until:  # timers go by milliseconds, and may be early by one
            self._pause(until)
            return
        self._paused = False
        if self._connection is not None:
            self._go_on()
        elif self._served:
            self._closes = True
            self._end()
        else:
            self._connect()

    # ---- what goes wrong

    def _ask_again(self) -> None:
        """The server closed a kept connection just as we wrote to it: a new one is asked the same."""
        self._crawler.withdrawn(len(self._asked))
        self._at -= len(self._asked)
        self._asked.clear()
        self._connect()

    def _pages_lost(self, kind: str, address: str) -> None:
        first = self._asked.popleft()
        behind = len(self._asked)
        if behind and self._served:  # it answers one and closes: nobody failed, but no more pipelining
            self._site.pipelining = False
            self._crawler.withdrawn(behind + 1)
        else:
            self._crawler.failed(self._visit, self._site, first, kind, address)
            self._crawler.withdrawn(behind)
        self._asked.clear()
        self._closes = True
        self._end()

    def _not_had(self, kind: str, address: str) -> None:
        """Neither connection nor rules: the first page counts as tried, so that a dead site is given up in the end."""
        self._crawler.requested()
        asked = Asked(self._visit.pages[self._at], self._urls[self._at], self._began, b"")
        self._crawler.failed(self._visit, self._site, asked, kind, address)
        if kind == failure.CONNECT:
            self._web.next_address(self._site)
        self._end()

    def _robots_received(self, robots: RobotsFile, response: Response, address: str) -> None:
        step = robots.answered(self._web, self._visit.id, response, address)
        self._crawler.tally.bytes += len(response.head) + len(response.wire)
        if not response.keep_alive and self._connection is not None:
            self._web.drop(self._connection)
            self._connection = None
        if step is not Step.AGAIN:
            self._robots = None
        if step is Step.FAILED:
            self._not_had(failure.ROBOTS, "")
        elif step is Step.REST:
            self._not_before = self._web.now() + robots.rest_s
            self._end()
        else:
            self._pause(self._web.now() + self._site.pause_s)

    def _end(self) -> None:
        """The visit is over; the connection is kept for the next one if that may come soon."""
        connection, self._connection = self._connection, None
        served = connection.responses_received if connection is not None else self._served
        if connection is not None and (self._closes or not self._web.keep(self._site, connection)):
            self._web.drop(connection)
        self._crawler.over(
            self._visit,
            self._site,
            Outcome((), self._connection_s, served, self._closes, self._allowed, self._not_before),
        )
        self._web.visited(self._site)
