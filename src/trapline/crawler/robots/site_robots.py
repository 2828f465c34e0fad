"""The robots.txt of one site: which URL to request, and what follows from the answer. This module sends nothing itself.

It follows RFC 9309. A redirect within the site is followed at once. A redirect to another site is not, because this visit
has no lease on that site. Its target is discovered like any URL; if it was fetched before, it is fetched once more; and
if another partition owns it, that partition is asked. This site is delayed in the meantime (cross_site.py). The answer
holds for this site too, and no longer than for the other one.
"""

import math
import re
from enum import Enum, auto
from typing import NamedTuple, Protocol

from trapline.crawler.discovery.sites import Site, Sites
from trapline.crawler.engine.records import RobotsFetched
from trapline.crawler.store.outbox import Outbox
from trapline.fetch import failure
from trapline.fetch.http.content import decoded
from trapline.fetch.http.headers import retry_after_s, url_text
from trapline.fetch.http.response import Response
from trapline.fetch.robots.answer import (
    LONGEST_S,
    MOST_REDIRECTS,
    SHORTEST_S,
    RobotsVerdict,
    is_unreachable,
    lifetime_s,
    read_answer,
)
from trapline.fetch.robots.parser import ALLOW_ALL, DISALLOW_ALL, LIMIT_BYTES, Robots
from trapline.fetch.urls import canonical, has_blocked_port, origin
from trapline.frontier import AS_RULES, Frontier

PATH = "/robots.txt"
LONGEST_PAUSE_S = 30.0  # a longer Crawl-delay becomes a delay between visits, not a pause within one
# While a robots.txt on another site is awaited: the first delay, doubled each time. That makes four minutes in all; after them, visits
# fail for lack of the file, and each visit requests it again.
FIRST_WAIT_S, MOST_WAITS = 1.0, 8
EXPANDED_BYTES = 8 * 1024 * 1024  # a robots.txt that expands to more is no robots.txt but an attack
_MAX_AGE = re.compile(rb"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)


class Step(Enum):
    """What a visit does next."""

    GO = auto()  # the rules are known: request pages
    NEXT_REQUEST = auto()  # request the new target
    RETRY_LATER = auto()  # end the visit, and come back after `retry_after_s`
    FAILED = auto()  # there are no usable rules: the site has failed


class RobotsResponse(NamedTuple):
    """The parts of a response that matter for robots.txt."""

    status: int
    error: str  # why the body is incomplete; "": it is complete
    location: str | None  # the target of a redirect
    body: bytes
    max_age_s: float | None  # for how long the answer may still be used; None: a day
    retry_after_s: float | None


def answer_of(response: Response, now_wall: float) -> RobotsResponse:
    headers = response.headers
    body = decoded(response.body, response.codings, EXPANDED_BYTES)
    location, max_age = headers.get(b"location"), _MAX_AGE.search(headers.get(b"cache-control", b""))
    # Of a file that is too long, the beginning counts. A file that arrived too slowly may lack any rule.
    error = failure.TIMEOUT if response.truncated == "time" else body if isinstance(body, str) else ""
    return RobotsResponse(
        response.status,
        error,
        url_text(location) if location is not None and 300 <= response.status < 400 else None,
        b"" if isinstance(body, str) else body[:LIMIT_BYTES],
        lifetime_s(float(max_age[1])) if max_age else None,
        retry_after_s(headers.get(b"retry-after", b""), now_wall),
    )


def apply(site: Site, robots: Robots, until: float, pause_s: float) -> None:
    """Set the site's rules, which hold until `until`, and its pause."""
    site.robots, site.robots_until, site.robots_failures = robots, until, 0
    site.pause_s = max(pause_s, robots.crawl_delay_s or 0.0)


def _usual_pace(site: Site) -> tuple[float, int]:
    """Return delay and pages per visit of the site's own settings, or AS_RULES."""
    own = site.settings
    if own is None:
        return AS_RULES, AS_RULES
    return (
        AS_RULES if own.delay_s is None else own.delay_s,
        AS_RULES if own.per_connection is None else own.per_connection,
    )


def set_crawl_delay(frontier: Frontier, site: Site, crawl_delay_s: float, delay_s: float, now: float) -> None:
    """Set the site's own delay (w) and pages per visit (k) if this Crawl-delay demands them; 0: it has none. `delay_s`: the delay
    of all sites."""
    usual_s, usual_k = _usual_pace(site)
    own_delay_s = crawl_delay_s if crawl_delay_s > (delay_s if usual_s == AS_RULES else usual_s) else usual_s
    own_k = 1 if crawl_delay_s > LONGEST_PAUSE_S else usual_k
    if (own_delay_s, own_k) != frontier.site_rules(site.id):
        frontier.set_site(site.id, now, delay_s=own_delay_s, per_connection=own_k)


class Elsewhere(Protocol):
    """Files on other sites (cross_site.py)."""

    def answer(self, url: str, now: float) -> RobotsResponse | None: ...

    def wait(self, url: str, visit: int, robots: "RobotsFile") -> None: ...


class RobotsWeb(Protocol):
    """What a robots.txt needs from its world (crawler/engine/live.py)."""

    agent: str
    delay_s: float
    sites: Sites
    frontier: Frontier
    outbox: Outbox

    @property
    def elsewhere(self) -> Elsewhere: ...

    def now(self) -> float: ...

    def discover(self, url: str) -> None:
        """Discover a page that no link led to. It may belong to another partition."""

    def robots_read(self, site: Site, url: str, body: bytes) -> None:
        """Take the robots.txt of a site, or that at another `url` which counts in its place, for what it contains besides rules,
        such as sitemaps. `body` is empty if there is no file."""

    def ruled(self, site: Site) -> None:
        """Note that the site's rules are known. Other partitions may wait for them."""


class RobotsFile:
    """One attempt to get the rules of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._url = site.origin + PATH
        self._hops = 0
        self.started = 0.0
        self.request = b""
        self.retry_after_s = 0.0  # the delay that the site demands, or that the file needs to arrive; 0: none

    @property
    def site_id(self) -> int:
        return self._site.id

    @property
    def target(self) -> str:
        return self._url[len(self._site.origin) :]

    def answered(self, web: RobotsWeb, visit: int, response: Response, address: str) -> Step:
        answer = answer_of(response, web.now())
        self._record(web, visit, address, answer, response)
        return self._apply_answer(web, visit, answer)

    def failed(self, web: RobotsWeb, visit: int, address: str, kind: str) -> None:
        answer = RobotsResponse(0, kind, None, b"", None, None)
        self._record(web, visit, address, answer)
        self._apply_answer(web, visit, answer)

    def came(self, web: RobotsWeb, visit: int, url: str, answer: RobotsResponse) -> Step:
        """Apply the answer of another site. It is recorded as an answer of this site, without a request."""
        self._url, self.started, self.request = url, web.now(), b""
        self._record(web, visit, "", answer)
        return self._apply_answer(web, visit, answer)

    def _apply_answer(self, web: RobotsWeb, visit: int, answer: RobotsResponse) -> Step:
        if not self._site.obeys_robots:
            return self._ignored(web, answer)
        if answer.location is not None:
            return self._redirected(web, visit, answer.location)
        verdict = self._read(web, answer)
        if verdict.robots is DISALLOW_ALL:
            self.retry_after_s = answer.retry_after_s or 0.0
            return Step.FAILED
        web.robots_read(self._site, self._url, answer.body if 200 <= answer.status < 300 else b"")
        return self._apply_verdict(web, verdict)

    def _ignored(self, web: RobotsWeb, answer: RobotsResponse) -> Step:
        """Take the sitemaps of a file whose rules do not hold, because the user owns the site and says so."""
        web.robots_read(self._site, self._url, answer.body if 200 <= answer.status < 300 else b"")
        return self._apply_verdict(web, RobotsVerdict(ALLOW_ALL, LONGEST_S, "ignored"))

    def _read(self, web: RobotsWeb, answer: RobotsResponse) -> RobotsVerdict:
        """Return the rules that follow from the answer, and from the time for which the file has been unreachable."""
        site, now = self._site, web.now()
        since = min(site.robots_unreachable_since, now) if is_unreachable(answer.status, answer.error) else math.inf
        site.robots_unreachable_since = since
        lasted_s = max(now - since, 0.0)
        response = (answer.status, answer.error, answer.body, web.agent)
        return read_answer(*response, max_age_s=answer.max_age_s, unreachable_for_s=lasted_s)

    def _redirected(self, web: RobotsWeb, visit: int, location: str) -> Step:
        self._hops += 1
        url = canonical(location, self._url)
        if url is None or self._hops > MOST_REDIRECTS or (has_blocked_port(url) and origin(url) != self._site.origin):
            return self._reached(web, read_answer(300, "", b"", web.agent))
        if origin(url) == self._site.origin:
            self._url = url
            return Step.NEXT_REQUEST
        return self._elsewhere(web, visit, url)

    def _elsewhere(self, web: RobotsWeb, visit: int, url: str) -> Step:
        other, now = web.sites.named(origin(url)), web.now()
        if other is not None and url == other.origin + PATH and other.robots is not None and now < other.robots_until:
            return self._reached(web, RobotsVerdict(other.robots, other.robots_until - now, ""))
        answer = web.elsewhere.answer(url, now)
        if answer is not None:
            return self.came(web, visit, url, answer)
        self._site.robots_failures += 1
        web.elsewhere.wait(url, visit, self)
        web.discover(url)
        if self._site.robots_failures > MOST_WAITS:
            return Step.FAILED
        self.retry_after_s = FIRST_WAIT_S * 2.0 ** (self._site.robots_failures - 1)
        return Step.RETRY_LATER

    def _reached(self, web: RobotsWeb, verdict: RobotsVerdict) -> Step:
        """Apply rules that follow from redirects alone. They too end the time for which the file was unreachable."""
        self._site.robots_unreachable_since = math.inf
        return self._apply_verdict(web, verdict)

    def _apply_verdict(self, web: RobotsWeb, verdict: RobotsVerdict) -> Step:
        """Apply the rules from now on, including Crawl-delay."""
        site, delay_s = self._site, verdict.robots.crawl_delay_s or 0.0
        # Rules must outlive the delay that they demand. Otherwise every visit would only request them again, and no page.
        lasts_s = max(verdict.expires_in_s, delay_s + SHORTEST_S if delay_s > LONGEST_PAUSE_S else 0.0)
        apply(site, verdict.robots, web.now() + lasts_s, web.sites.usual_pause_s(site))
        web.ruled(site)
        self._set_pace(web, delay_s)
        if delay_s > LONGEST_PAUSE_S:
            self.retry_after_s = delay_s
            return Step.RETRY_LATER
        return Step.GO

    def _set_pace(self, web: RobotsWeb, delay_s: float) -> None:
        """Set the site's own delay (w) and pages per visit (k) if this Crawl-delay demands them. Otherwise undo those of an
        earlier one."""
        set_crawl_delay(web.frontier, self._site, delay_s, web.delay_s, web.now())

    def _record(
        self, web: RobotsWeb, visit: int, address: str, answer: RobotsResponse, response: Response | None = None
    ) -> None:
        web.outbox.robots.append(
            RobotsFetched(
                self._site.id,
                visit,
                self._url,
                address,
                self.started,
                response.first_byte_s if response else float("nan"),
                response.total_s if response else web.now() - self.started,
                answer.status,
                answer.error,
                self.request,
                response.head if response else b"",
                response.wire if response else b"",
                answer.body,
            )
        )
