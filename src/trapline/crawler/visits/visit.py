"""One visit: one connection, robots.txt first, then up to k pages with pauses between them. Step 5 in docs/architecture.md.

The visit decides nothing about order: the frontier chose its pages, and the crawler says whether there may be another
request. This module knows how a connection can end, and what then happens to the pages:
- Answered: they are reported.
- Requested, and the connection was lost: the first page failed; the pages pipelined behind it go back as they were.
- Requested on a connection that has served before, which the server closed before it began to answer: the server takes
  no more requests on this connection. Nobody failed, and the page goes back as it was. The second time in a row, the
  page has failed.
- Never requested: they go back as they were when the visit ends. If the visit ends because there is no connection or no
  usable robots.txt, the site has failed: it backs off, and is abandoned in the end.
A visit has one connection, and ends with it; the remaining pages wait for the next visit. Only a robots.txt that
redirects within its site may need a second connection. The second one is opened after the delay between two visits.

The states of a visit, and what leads from one to another, are in visit_state.py.
"""

import math
from collections import deque

from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.engine.records import ROBOTS_FILE
from trapline.crawler.engine.world import VisitWeb
from trapline.crawler.robots.site_robots import RobotsFile, Step
from trapline.crawler.visits.fetch_record import PageRequest
from trapline.crawler.visits.judge import NOT_MODIFIED
from trapline.crawler.visits.visit_requests import VisitRequests
from trapline.crawler.visits.visit_state import SENDS_NOTHING, End, VisitState, end_by
from trapline.fetch import failure
from trapline.fetch.http.connection import Connection
from trapline.fetch.http.private_headers import PrivateHeaders
from trapline.fetch.http.response import Response
from trapline.frontier import FETCHED, Outcome, Visit

MOST_SECONDS = 300.0  # after this time a visit sends no further request
PIPELINED = 8  # most requests in flight on one connection
# The time for a server to notice that we do not read the rest of its answer: by the server's clock, the visit lasts until then.
HANG_UP_S = 0.5


class VisitWorker:
    """The owner of a connection while the visit lasts (fetch/http/connection.py)."""

    __slots__ = (
        "_allowed",
        "_before",
        "_began",
        "_connection",
        "_connection_s",
        "_crawler",
        "_end",
        "_fruitless",
        "_in_flight",
        "_is_conditional",
        "_not_before",
        "_paused_at",
        "_responses",
        "_results",
        "_robots",
        "_served",
        "_site",
        "_site_failed",
        "_state",
        "_to_request",
        "_visit",
        "_web",
        "_why",
        "_window",
    )

    def __init__(
        self, web: VisitWeb, crawler: Crawler, visit: Visit, site: Site, urls: list[str], conditions: list[bytes]
    ) -> None:
        self._web, self._crawler, self._visit, self._site = web, crawler, visit, site
        self._results = crawler.results
        self._is_conditional = bool(conditions)
        self._to_request = VisitRequests(crawler, visit, site, urls, conditions)
        self._in_flight: deque[PageRequest] = deque()  # _request appends, answers remove from the left
        self._window = self._pipelined()
        self._robots: RobotsFile | None = None  # while it is being fetched
        self._connection: Connection | None = None
        self._connection_s = math.nan
        self._before = 0  # answers on this connection in earlier visits
        self._end = End.NONE  # of the connection
        self._began = web.now()
        self._not_before = -math.inf
        self._served = 0  # pages
        self._responses = 0  # answers on a connection that has ended, including robots.txt and earlier visits
        self._fruitless = True  # no page was fetched so far
        self._site_failed = False
        self._allowed = 0  # total number of requests on this connection that the server announced; 0: it did not
        self._state = VisitState.CONNECTING
        self._paused_at = 0.0
        self._why = ""  # why there is no connection, for people

    @property
    def state(self) -> VisitState:
        return self._state

    def _pipelined(self) -> int:
        """Return how many requests may be in flight at the same time."""
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
        self._state = VisitState.CONNECTING
        self._end, self._before, self._responses = End.NONE, 0, 0
        self._connection = self._web.connect(self._site, self)
        if self._connection is None:
            address = self._site.addresses[0]
            self._web.call_soon(lambda: self._no_connection(address, failure.ADDRESS, is_answering=False))

    def _go_on(self) -> None:
        """Send requests over the open connection: for robots.txt if its rules are not known, otherwise for pages."""
        site = self._site
        if self._crawler.holds(self._visit):
            self._finish()
            return
        if self._robots is None and (site.robots is None or self._web.now() >= site.robots_until):
            self._robots = RobotsFile(site)
        if self._robots is None:
            self._state = VisitState.FETCHING
            self._request()
            return
        assert self._connection is not None
        self._state = VisitState.ROBOTS
        self._robots.request = self._web.request_for(site, self._robots.target)
        self._robots.started = self._web.now()
        if self._web.filters_types:
            self._connection.exempt_next()
        self._connection.send(self._as_sent(self._robots.request, self._robots.target))

    def _request(self) -> None:
        """Request as many pages as may be in flight."""
        if self._state in SENDS_NOTHING:
            return
        crawler, site, web, to_request = self._crawler, self._site, self._web, self._to_request
        while len(self._in_flight) < self._window and to_request.has_more():
            if not crawler.may_request(self._visit) or web.now() - self._began > MOST_SECONDS:
                to_request.end()
                break
            if crawler.waits(self._store_has_room):
                self._state = VisitState.WAITS_FOR_STORE
                return
            source, page, url, condition = to_request.take()
            target = url[len(site.origin) :]
            if not site.robots.allows(target):  # type: ignore[union-attr]  # known by now
                if source is not None:
                    crawler.extra.disallowed(source, page)
                else:
                    self._results.disallowed(self._visit, site, page, url)
                continue
            request = web.request_for(site, target, condition)
            self._in_flight.append(PageRequest(page, url, web.now(), request, source))
            if source is None:
                self._results.requested(self._visit)
            if site.private_headers is not None:
                request = self._as_sent(request, target)
            if web.filters_types and (source is not None or crawler.may_be_list(page, url)):
                self._connection.exempt_next()  # type: ignore[union-attr]  # open by now
            self._connection.send(request)  # type: ignore[union-attr]  # open by now
        if not self._in_flight:
            self._finish()

    def _as_sent(self, request: bytes, target: str) -> bytes:
        """Return the request with the private headers of the site, which are not recorded."""
        private = self._site.private_headers
        return request if private is None else private.sent(request, target, self._web.now())

    # ---- events of the connection

    def connected(self, connection: Connection, seconds: float) -> None:
        self._connection_s = seconds
        self._go_on()

    def received(self, connection: Connection, response: Response) -> None:
        if not response.keep_alive:
            self._end = End.OURS if response.hung_up else End.SERVER
        if self._site.private_headers is not None:
            self._take_cookies(self._site.private_headers, response)
        if self._robots is not None:
            self._robots_received(self._robots, response, connection.address)
            return
        request = self._in_flight.popleft()
        # "Not modified" does not help a site that waits for this robots.txt. Such a site discovers the URL again, and an out-of-band fetch
        # then has no condition.
        if self._web.elsewhere.awaits(request.url) and not (self._is_conditional and response.status == NOT_MODIFIED):
            self._web.elsewhere.came(self._web, request.url, response)
            request = request._replace(marks=ROBOTS_FILE)
        verdict = self._results.answered(self._visit, self._site, request, response, connection.address)
        self._served += 1
        self._fruitless = self._fruitless and verdict.result != FETCHED
        if response.allowed:
            self._allowed = connection.responses_received + response.allowed
        if verdict.retry_after_s:
            self._not_before = self._web.now() + verdict.retry_after_s
        if verdict.ends_visit:
            self._to_request.end()
        if not response.keep_alive:
            self._leave(failure.CLOSED, connection.address)
        elif self._site.pause_s > 0.0 and self._to_request.has_more():
            self._pause()
        else:
            self._request()

    def _take_cookies(self, private: PrivateHeaders, response: Response) -> None:
        """Pass an answer to the private headers of the site, before it is recorded."""
        self._web.proxy_answered(self._site, response.status)
        robots, origin = self._robots, self._site.origin
        target = robots.target if robots is not None else self._in_flight[0].url[len(origin) :]
        private.received(target, response, self._web.now())

    def lost(self, connection: Connection, kind: str, unanswered: int) -> None:
        self._connection, self._responses = None, connection.responses_received
        self._why = connection.why_not_connected
        self._web.gone(connection)
        self._no_connection(connection.address, kind, connection.is_answering)

    def _no_connection(self, address: str, kind: str, is_answering: bool) -> None:
        """Handle the loss of the connection, perhaps in the middle of an answer; or that none could be opened."""
        self._end = end_by(kind)
        if self._state in SENDS_NOTHING and not self._in_flight:
            return  # the end of the wait handles it
        kind = kind or failure.CLOSED
        if kind == failure.STOPPED:
            self._leave(kind, address)  # we ended it, so nobody failed
        elif self._has_had_enough(kind, is_answering):
            self._put_back(kind, address)
        elif self._robots is not None:
            self._robots.failed(self._web, self._visit.id, address, kind)
            self._fail_site(kind)
        elif self._in_flight:
            self._pages_lost(kind, address)
        else:
            self._fail_site(kind)

    # ---- waiting

    def _pause(self) -> None:
        self._state, self._paused_at = VisitState.PAUSED, self._web.now()
        self._crawler.pause(self._site.pause_s, self._paused_enough)

    def _paused_enough(self) -> None:
        """Continue after a pause, unless it was too short: the timer may fire a little early, and a second connection has to
        wait for the delay between visits, not only for a pause."""
        web = self._web
        if not self._crawler.may_request(self._visit) or (self._connection is None and self._robots is None):
            self._finish()
            return
        enough_at = self._paused_at + (
            self._site.pause_s if self._connection else max(self._site.pause_s, self._longest_delay_s)
        )
        if web.now() < enough_at:
            self._crawler.pause(enough_at - web.now(), self._paused_enough)
            return
        if self._connection is None:
            self._connect()
        else:
            self._go_on()

    @property
    def _longest_delay_s(self) -> float:
        """The longest of the delays that hold between two visits to the site."""
        own = self._site.settings
        return max(self._web.longest_delay_s, (own.delay_s or 0.0) if own is not None else 0.0)

    def _store_has_room(self) -> None:
        self._state = VisitState.FETCHING
        if self._connection is not None:
            self._request()
            return
        if self._end is End.SERVER:
            self._end = End.NOBODYS  # we let the server wait, so the end does not show how many requests it takes
        self._finish()

    # ---- failures

    def _has_had_enough(self, kind: str, is_answering: bool) -> bool:
        """Return whether the server closed a connection on which it had answered, in this visit or an earlier one, before it
        began the next answer. Then nobody failed. This applies only once in a row to a page, or the page might be requested for
        ever."""
        if self._in_flight and self._in_flight[0].page == self._site.returned:
            return False
        if kind == failure.PROTOCOL:
            return self._served > 0 and self._window > 1  # an answer may have been longer than its Content-Length
        has_served = self._served > 0 or self._before == self._responses > 0
        return kind == failure.CLOSED and has_served and not is_answering

    def _put_back(self, kind: str, address: str) -> None:
        """Give the requested pages back and end the visit. If several requests were in flight, the site gets no pipelined
        requests any more."""
        if self._in_flight:
            self._site.returned = self._in_flight[0].page
        self._site.pipelining = self._site.pipelining and len(self._in_flight) < 2 and kind == failure.CLOSED
        self._leave(kind, address)

    def _pages_lost(self, kind: str, address: str) -> None:
        self._site.returned = None
        if len(self._in_flight) > 1:
            self._site.pipelining = False  # pipelining may be the cause
        self._results.failed(self._visit, self._site, self._in_flight.popleft(), kind, address)
        self._leave(kind, address)

    def _leave(self, kind: str, address: str) -> None:
        """End the visit without waiting for the missing answers."""
        self._results.withdrawn(self._visit, self._site, self._in_flight, kind, address)
        self._in_flight.clear()
        self._finish()

    def _fail_site(self, kind: str) -> None:
        """End a visit that got no connection or no robots.txt. The site has failed and backs off; its pages wait as before."""
        self._site_failed = True
        if next_page := self._to_request.next_page:
            request = PageRequest(*next_page, self._began, b"")
            self._results.site_failed(self._visit, self._site, request, kind, self._why)
        self._finish()
        if kind == failure.CONNECT:
            self._web.next_address(self._site)

    def _robots_received(self, robots: RobotsFile, response: Response, address: str) -> None:
        step = robots.answered(self._web, self._visit.id, response, address)
        if not response.keep_alive and self._connection is not None:
            self._web.drop(self._connection)
            self._connection = None
        if robots.retry_after_s:
            self._not_before = self._web.now() + robots.retry_after_s
        if step is Step.NEXT_REQUEST:
            self._pause()
            return
        self._robots = None
        if step is Step.FAILED:
            self._fail_site(failure.ROBOTS)
        elif step is Step.RETRY_LATER or self._connection is None:
            self._finish()
        else:
            self._window = self._pipelined()  # robots.txt may demand pauses
            self._pause()

    def _finish(self) -> None:
        """End the visit. The connection is kept for the site's next visit if that may come soon."""
        web, connection = self._web, self._connection
        if self._state in SENDS_NOTHING:
            self._crawler.leaves(self._paused_enough)
            self._crawler.leaves(self._store_has_room)
        self._state = VisitState.OVER
        if connection is not None:
            self._connection, self._responses = None, connection.responses_received
            if self._end is not End.NONE or not web.keep(self._site, connection):
                web.drop(connection)
        # Only a server that ended the connection itself, after requests for pages, shows how many requests it takes.
        closed = self._end is End.SERVER and self._to_request.at > 0 and self._responses > self._before
        answers = (self._connection_s, self._responses, closed, self._allowed)
        outcome = Outcome((), *answers, self._not_before, self._site_failed)
        if self._end is End.OURS and self._longest_delay_s > 0.0:
            web.call_at(web.now() + HANG_UP_S, lambda: self._report_end(outcome))
        else:
            self._report_end(outcome)

    def _report_end(self, outcome: Outcome) -> None:
        self._crawler.over(self._visit, self._site, outcome, self._fruitless)
        self._web.visited(self._site)
