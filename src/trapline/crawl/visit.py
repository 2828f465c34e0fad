"""A robot on its visit: one connection, robots.txt first, then up to k pages with their pauses. Step 5 of the way of a URL.

It decides nothing about order: the visit says which pages, the crawler whether there may be another request. What it knows is
how a connection can end, and what then becomes of the pages:
- answered: reported. Asked for and lost: the first one failed; those pipelined behind it go back as they were.
- asked for on a connection that has served before, and lost because the server closed it before it began to answer: it had enough,
  nobody failed, and the page goes back as it was; the second time in a row it has failed.
- never asked for: they go back as they were, when the visit ends; also if it ends because there is no connection, or no robots.txt to
  go by. Then the site has failed: it backs off, and is given up in the end.
A visit has one connection: when that is over, so is the visit, and what is left waits for the next one. Only a robots.txt that has
moved within its site may need another; then the site rests between the two as between two visits.
"""

import math
from collections import deque
from enum import Enum, auto

from trapline.crawl.asked import Asked
from trapline.crawl.crawler import Crawler
from trapline.crawl.judge import NOT_MODIFIED
from trapline.crawl.robots_file import RobotsFile, Step
from trapline.crawl.sites import Site
from trapline.crawl.visit_web import VisitWeb
from trapline.fetch import failure
from trapline.fetch.connection import Connection
from trapline.fetch.response import Response
from trapline.frontier import FETCHED, Outcome, Visit

MOST_SECONDS = 300.0  # of one visit, then it asks for no more
PIPELINED = 8  # requests under way at once on one connection
# For a server to notice that we do not want the rest of its answer: its own clock of the visit runs until then.
HANG_UP_S = 0.5
_WE_HUNG_UP = frozenset({failure.TIMEOUT, failure.TOO_LARGE, failure.PROTOCOL})


class End(Enum):
    """Whose doing it is that a connection is over."""

    NONE = auto()  # it is not
    SERVER = auto()  # it has had enough
    OURS = auto()  # what the server said, or did not say, was too much for us: it may still be at it
    NOBODYS = auto()


class Robot:
    """The owner of a connection while the visit lasts (fetch/connection.py)."""

    __slots__ = (
        "_allowed",
        "_asked",
        "_at",
        "_before",
        "_began",
        "_conditions",
        "_connection",
        "_connection_s",
        "_crawler",
        "_end",
        "_fruitless",
        "_last",
        "_not_before",
        "_paused_at",
        "_responses",
        "_robots",
        "_served",
        "_site",
        "_site_failed",
        "_urls",
        "_visit",
        "_waits",
        "_web",
        "_window",
    )

    def __init__(
        self, web: VisitWeb, crawler: Crawler, visit: Visit, site: Site, urls: list[str], conditions: list[bytes]
    ) -> None:
        self._web, self._crawler, self._visit, self._site, self._urls = web, crawler, visit, site, urls
        self._conditions = conditions  # of each page, or none at all
        self._at = 0  # the next page to ask for
        self._last = len(urls)  # the first one not to ask for
        self._asked: deque[Asked] = deque()  # filled by _request, emptied by answers, in order
        self._window = self._pipelined()
        self._robots: RobotsFile | None = None  # while it is being asked for
        self._connection: Connection | None = None
        self._connection_s = math.nan
        self._before = 0  # answers on this connection, in earlier visits
        self._end = End.NONE  # of the connection
        self._began = web.now()
        self._not_before = -math.inf
        self._served = 0  # pages
        self._responses = 0  # of a connection that is gone, robots.txt and earlier visits included
        self._fruitless = True
        self._site_failed = False
        self._allowed = 0  # requests on this connection, in all, as the server announced; 0: it did not
        self._waits = False  # for the end of a pause, or for the store
        self._paused_at = 0.0

    def _pipelined(self) -> int:
        """How many requests may be under way at once."""
        return PIPELINED if self._web.pipelining and self._site.pipelining and not self._site.pause_s else 1

    def begin(self) -> None:
        kept = self._web.take_kept(self._site)
        if kept is None:
            self._connect()
            return
        self._connection, self._before = kept, kept.responses_received
        kept.owner = self
        self._go_on()

    def _connect(self) -> None:
        self._end, self._before, self._responses = End.NONE, 0, 0
        self._connection = self._web.connect(self._site, self)
        if self._connection is None:
            address = self._site.addresses[0]
            self._web.call_soon(lambda: self._no_connection(address, failure.ADDRESS, is_answering=False))

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
        self._connection.send(self._robots.request)

    def _request(self) -> None:
        """Ask for as many pages as may be under way."""
        if self._waits:
            return
        crawler, site, web = self._crawler, self._site, self._web
        while self._at < self._last and len(self._asked) < self._window:
            if not crawler.may_request(self._visit) or web.now() - self._began > MOST_SECONDS:
                self._last = self._at
                break
            if crawler.waits(self._store_has_room):
                self._waits = True
                return
            page, url = self._visit.pages[self._at], self._urls[self._at]
            condition = self._conditions[self._at] if self._conditions else b""
            self._at += 1
            target = url[len(site.origin) :]
            if not site.robots.allows(target):  # type: ignore[union-attr]  # known by now
                crawler.disallowed(self._visit, site, page, url)
                continue
            request = web.request_for(site, target, condition)
            self._asked.append(Asked(page, url, web.now(), request))
            crawler.requested(self._visit)
            self._connection.send(request)  # type: ignore[union-attr]  # open by now
        if not self._asked:
            self._finish()

    # ---- what the connection tells

    def connected(self, connection: Connection, seconds: float) -> None:
        self._connection_s = seconds
        self._go_on()

    def received(self, connection: Connection, response: Response) -> None:
        if not response.keep_alive:
            self._end = End.OURS if response.hung_up else End.SERVER
        if self._robots is not None:
            self._robots_received(self._robots, response, connection.address)
            return
        asked = self._asked.popleft()
        # "Not modified" says nothing to who waits for a robots.txt: it asks again, and then for the whole of it.
        if self._web.elsewhere.awaits(asked.url) and not (self._conditions and response.status == NOT_MODIFIED):
            self._web.elsewhere.came(self._web, asked.url, response)
        verdict = self._crawler.answered(self._visit, self._site, asked, response, connection.address)
        self._served += 1
        self._fruitless = self._fruitless and verdict.result != FETCHED
        if response.allowed:
            self._allowed = connection.responses_received + response.allowed
        if verdict.rest_s:
            self._not_before = self._web.now() + verdict.rest_s
        if verdict.ends_visit:
            self._last = self._at
        if not response.keep_alive:
            self._leave(failure.CLOSED, connection.address)
        elif self._at < self._last and self._site.pause_s > 0.0:
            self._pause()
        else:
            self._request()

    def lost(self, connection: Connection, kind: str, unanswered: int) -> None:
        self._connection, self._responses = None, connection.responses_received
        self._web.gone(connection)
        self._no_connection(connection.address, kind, connection.is_answering)

    def _no_connection(self, address: str, kind: str, is_answering: bool) -> None:
        """It is lost, perhaps in the middle of an answer; or there never was one."""
        self._end = _end_by(kind)
        if self._waits and not self._asked:
            return  # it is seen when the waiting is over
        kind = kind or failure.CLOSED
        if kind == failure.STOPPED:
            self._leave(kind, address)  # by ourselves, so nobody failed
        elif self._has_had_enough(kind, is_answering):
            self._put_back(kind, address)
        elif self._robots is not None:
            self._robots.failed(self._web, self._visit.id, address, kind)
            self._not_had(kind)
        elif self._asked:
            self._pages_lost(kind, address)
        else:
            self._not_had(kind)

    # ---- waiting

    def _pause(self) -> None:
        self._waits, self._paused_at = True, self._web.now()
        self._crawler.pause(self._site.pause_s, self._paused_enough)

    def _paused_enough(self) -> None:
        """A timer may come a little early; and a second connection comes after a rest, not after a pause."""
        web = self._web
        if not self._crawler.may_request(self._visit) or (self._connection is None and self._robots is None):
            self._finish()
            return
        enough_at = self._paused_at + (self._site.pause_s if self._connection else max(self._site.pause_s, web.rest_s))
        if web.now() < enough_at:
            self._crawler.pause(enough_at - web.now(), self._paused_enough)
            return
        self._waits = False
        if self._connection is None:
            self._connect()
        else:
            self._go_on()

    def _store_has_room(self) -> None:
        self._waits = False
        if self._connection is not None:
            self._request()
            return
        if self._end is End.SERVER:
            self._end = End.NOBODYS  # it was kept waiting, which says nothing of the requests that it takes
        self._finish()

    # ---- what goes wrong

    def _has_had_enough(self, kind: str, is_answering: bool) -> bool:
        """Whether the server broke off on a connection on which it had answered, here or in an earlier visit, before it began with
        the next answer: then nobody failed. Not twice at the same page, or it might be asked for it for ever."""
        if self._asked and self._asked[0].page == self._site.returned:
            return False
        if kind == failure.PROTOCOL:
            return self._served > 0 and self._window > 1  # an answer may have been longer than it said
        has_served = self._served > 0 or self._before == self._responses > 0
        return kind == failure.CLOSED and has_served and not is_answering

    def _put_back(self, kind: str, address: str) -> None:
        """If it was asked for several pages at once, it will not be again."""
        if self._asked:
            self._site.returned = self._asked[0].page
        self._site.pipelining = self._site.pipelining and len(self._asked) < 2 and kind == failure.CLOSED
        self._leave(kind, address)

    def _pages_lost(self, kind: str, address: str) -> None:
        self._site.returned = None
        if len(self._asked) > 1:
            self._site.pipelining = False  # perhaps it is to blame
        self._crawler.failed(self._visit, self._site, self._asked.popleft(), kind, address)
        self._leave(kind, address)

    def _leave(self, kind: str, address: str) -> None:
        """Without the answers that are still to come."""
        self._crawler.withdrawn(self._visit, self._site, self._asked, kind, address)
        self._asked.clear()
        self._finish()

    def _not_had(self, kind: str) -> None:
        """Neither connection nor rules: the site has failed, and no page. All of them wait as before, and the site backs off."""
        self._site_failed = True
        asked = Asked(self._visit.pages[self._at], self._urls[self._at], self._began, b"")
        self._crawler.site_failed(self._visit, self._site, asked, kind)
        self._finish()
        if kind == failure.CONNECT:
            self._web.next_address(self._site)

    def _robots_received(self, robots: RobotsFile, response: Response, address: str) -> None:
        step = robots.answered(self._web, self._visit.id, response, address)
        if not response.keep_alive and self._connection is not None:
            self._web.drop(self._connection)
            self._connection = None
        if robots.rest_s:
            self._not_before = self._web.now() + robots.rest_s
        if step is Step.AGAIN:
            self._pause()
            return
        self._robots = None
        if step is Step.FAILED:
            self._not_had(failure.ROBOTS)
        elif step is Step.REST or self._connection is None:
            self._finish()
        else:
            self._window = self._pipelined()  # the site may have asked for pauses
            self._pause()

    def _finish(self) -> None:
        """The visit is over; the connection is kept for the next one if that may come soon."""
        web, connection = self._web, self._connection
        if self._waits:
            self._crawler.leaves(self._paused_enough)
            self._crawler.leaves(self._store_has_room)
        if connection is not None:
            self._connection, self._responses = None, connection.responses_received
            if self._end is not End.NONE or not web.keep(self._site, connection):
                web.drop(connection)
        # Only a server that ended it itself, and had been asked for pages, shows how many requests it takes.
        closed = self._end is End.SERVER and self._at > 0 and self._responses > self._before
        answers = (self._connection_s, self._responses, closed, self._allowed)
        outcome = Outcome((), *answers, self._not_before, self._site_failed)
        if self._end is End.OURS and web.rest_s > 0.0:
            web.call_at(web.now() + HANG_UP_S, lambda: self._tell(outcome))
        else:
            self._tell(outcome)

    def _tell(self, outcome: Outcome) -> None:
        self._crawler.over(self._visit, self._site, outcome, self._fruitless)
        self._web.visited(self._site)


def _end_by(kind: str) -> End:
    """What a lost connection's kind of failure says; an orderly end has none."""
    if kind in ("", failure.CLOSED):
        return End.SERVER
    return End.OURS if kind in _WE_HUNG_UP else End.NOBODYS
