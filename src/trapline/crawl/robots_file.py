"""A site's robots.txt on its way in: what to ask for, and what follows from the answer. It sends nothing itself.

RFC 9309. A redirect within the site is followed at once. One to another site is not, for nobody leased that site: its target is
discovered like any URL, asked for once more if it was had before, or its partition asked, and this site rests meanwhile
(robots_elsewhere.py). Whatever is found there holds for this site, and no longer than it would hold there.
"""

import math
import re
from enum import Enum, auto
from typing import NamedTuple, Protocol

from trapline.crawl.outbox import Outbox
from trapline.crawl.records import RobotsFetched
from trapline.crawl.sites import Site, Sites
from trapline.fetch import failure
from trapline.fetch.content import decoded
from trapline.fetch.headers import retry_after_s, url_text
from trapline.fetch.response import Response
from trapline.fetch.robots import DISALLOW_ALL, LIMIT_BYTES, Robots
from trapline.fetch.robots_answer import MOST_REDIRECTS, SHORTEST_S, Verdict, is_unreachable, lifetime_s, read_answer
from trapline.fetch.urls import canonical, has_blocked_port, origin
from trapline.frontier import AS_RULES, Frontier

PATH = "/robots.txt"
LONGEST_PAUSE_S = 30.0  # a longer Crawl-delay is a rest between visits
# For a robots.txt on another site: the first rest, doubled each time. Four minutes in all, then the
# visits fail for want of it, and each asks for it again.
FIRST_WAIT_S, MOST_WAITS = 1.0, 8
EXPANDED_BYTES = 8 * 1024 * 1024  # whoever sends more than that in so little has something else in mind
_MAX_AGE = re.compile(rb"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)


class Step(Enum):
    GO = auto()  # its rules are known
    AGAIN = auto()  # ask for the new target
    REST = auto()  # not in this visit: `rest_s`
    FAILED = auto()


class Answer(NamedTuple):
    """What matters of an answer."""

    status: int
    error: str  # why its body is not whole; "": it is
    location: str | None
    body: bytes
    max_age_s: float | None  # for how long it may still be used; None: a day
    retry_after_s: float | None


def answer_of(response: Response, now_wall: float) -> Answer:
    headers = response.headers
    body = decoded(response.body, response.codings, EXPANDED_BYTES)
    location, max_age = headers.get(b"location"), _MAX_AGE.search(headers.get(b"cache-control", b""))
    # Of a file that is too long the beginning counts; one that was too slow might be missing anything.
    error = failure.TIMEOUT if response.truncated == "time" else body if isinstance(body, str) else ""
    return Answer(
        response.status,
        error,
        url_text(location) if location is not None and 300 <= response.status < 400 else None,
        b"" if isinstance(body, str) else body[:LIMIT_BYTES],
        lifetime_s(float(max_age[1])) if max_age else None,
        retry_after_s(headers.get(b"retry-after", b""), now_wall),
    )


def apply(site: Site, robots: Robots, until: float, pause_s: float) -> None:
    """The site's rules until then."""
    site.robots, site.robots_until, site.robots_failures = robots, until, 0
    site.pause_s = max(pause_s, robots.crawl_delay_s or 0.0)


class Elsewhere(Protocol):
    """Files that lie on another site (robots_elsewhere.py)."""

    def answer(self, url: str, now: float) -> Answer | None: ...

    def wait(self, url: str, visit: int, robots: "RobotsFile") -> None: ...


class RobotsWeb(Protocol):
    """What a robots.txt needs of the world that it is fetched in (live.py)."""

    agent: str
    pause_s: float
    delay_s: float
    sites: Sites
    frontier: Frontier
    outbox: Outbox

    @property
    def elsewhere(self) -> Elsewhere: ...

    def now(self) -> float: ...

    def discover(self, url: str) -> None:
        """A page that no link led to, of ours or of another partition."""

    def robots_read(self, url: str, body: bytes) -> None:
        """What else it may tell."""

    def ruled(self, site: Site) -> None:
        """Its rules are known: others may wait for them."""


class RobotsFile:
    """One attempt to have the rules of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._url = site.origin + PATH
        self._hops = 0
        self.started = 0.0
        self.request = b""
        self.rest_s = 0.0  # what the site wants, or needs until the file is there; 0: nothing

    @property
    def site_id(self) -> int:
        return self._site.id

    @property
    def target(self) -> str:
        return self._url[len(self._site.origin) :]

    def answered(self, web: RobotsWeb, visit: int, response: Response, address: str) -> Step:
        answer = answer_of(response, web.now())
        self._record(web, visit, address, answer, response)
        return self._heed(web, visit, answer)

    def failed(self, web: RobotsWeb, visit: int, address: str, kind: str) -> None:
        answer = Answer(0, kind, None, b"", None, None)
        self._record(web, visit, address, answer)
        self._heed(web, visit, answer)

    def came(self, web: RobotsWeb, visit: int, url: str, answer: Answer) -> Step:
        """Another site's answer: noted as one of this site's, from whom nothing was asked."""
        self._url, self.started, self.request = url, web.now(), b""
        self._record(web, visit, "", answer)
        return self._heed(web, visit, answer)

    def _heed(self, web: RobotsWeb, visit: int, answer: Answer) -> Step:
        if answer.location is not None:
            return self._redirected(web, visit, answer.location)
        verdict = self._read(web, answer)
        if verdict.robots is DISALLOW_ALL:
            self.rest_s = answer.retry_after_s or 0.0
            return Step.FAILED
        web.robots_read(self._url, answer.body)
        return self._take(web, verdict)

    def _read(self, web: RobotsWeb, answer: Answer) -> Verdict:
        """The rules that follow, also from how long there have been none to read."""
        site, now = self._site, web.now()
        since = min(site.robots_unreachable_since, now) if is_unreachable(answer.status, answer.error) else math.inf
        site.robots_unreachable_since = since
        lasted_s = max(now - since, 0.0)
        asked = (answer.status, answer.error, answer.body, web.agent)
        return read_answer(*asked, max_age_s=answer.max_age_s, unreachable_for_s=lasted_s)

    def _redirected(self, web: RobotsWeb, visit: int, location: str) -> Step:
        self._hops += 1
        url = canonical(location, self._url)
        if url is None or self._hops > MOST_REDIRECTS or (has_blocked_port(url) and origin(url) != self._site.origin):
            return self._reached(web, read_answer(300, "", b"", web.agent))
        if origin(url) == self._site.origin:
            self._url = url
            return Step.AGAIN
        return self._elsewhere(web, visit, url)

    def _elsewhere(self, web: RobotsWeb, visit: int, url: str) -> Step:
        other, now = web.sites.named(origin(url)), web.now()
        if other is not None and url == other.origin + PATH and other.robots is not None and now < other.robots_until:
            return self._reached(web, Verdict(other.robots, other.robots_until - now, ""))
        answer = web.elsewhere.answer(url, now)
        if answer is not None:
            return self.came(web, visit, url, answer)
        self._site.robots_failures += 1
        web.elsewhere.wait(url, visit, self)
        web.discover(url)
        if self._site.robots_failures > MOST_WAITS:
            return Step.FAILED
        self.rest_s = FIRST_WAIT_S * 2.0 ** (self._site.robots_failures - 1)
        return Step.REST

    def _reached(self, web: RobotsWeb, verdict: Verdict) -> Step:
        """Take rules that follow from redirects alone: they too end the time for which the file was unreachable."""
        self._site.robots_unreachable_since = math.inf
        return self._take(web, verdict)

    def _take(self, web: RobotsWeb, verdict: Verdict) -> Step:
        """The rules are known: they hold from now on, Crawl-delay included."""
        site, delay_s = self._site, verdict.robots.crawl_delay_s or 0.0
        # Rules must outlive the rest that they ask for, or every visit would ask for them anew and none for a page.
        lasts_s = max(verdict.expires_in_s, delay_s + SHORTEST_S if delay_s > LONGEST_PAUSE_S else 0.0)
        apply(site, verdict.robots, web.now() + lasts_s, web.pause_s)
        web.ruled(site)
        self._set_pace(web, delay_s)
        if delay_s > LONGEST_PAUSE_S:
            self.rest_s = delay_s
            return Step.REST
        return Step.GO

    def _set_pace(self, web: RobotsWeb, delay_s: float) -> None:
        """The site's own w and k, if this Crawl-delay asks for any; else those of an earlier one are taken back."""
        own_delay_s = delay_s if delay_s > web.delay_s else AS_RULES
        own_k = 1 if delay_s > LONGEST_PAUSE_S else AS_RULES
        record = web.frontier.state.site[self._site.id]
        had_delay_s = AS_RULES if math.isnan(record.delay_s) else float(record.delay_s)
        if (own_delay_s, own_k) != (had_delay_s, int(record.per_connection)):
            web.frontier.set_site(self._site.id, web.now(), delay_s=own_delay_s, per_connection=own_k)

    def _record(
        self, web: RobotsWeb, visit: int, address: str, answer: Answer, response: Response | None = None
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
