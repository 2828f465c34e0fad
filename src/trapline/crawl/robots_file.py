"""A site's robots.txt on its way in: what to ask for, and what follows from the answer. It sends nothing itself.

RFC 9309. A redirect within the site is followed at once. One to another site is not, for nobody leased that site: its target is
discovered like any URL, and this site rests until the other one's robots.txt is known; then those rules hold here too.
"""

import re
from enum import Enum, auto
from typing import TYPE_CHECKING

from trapline.crawl.records import RobotsFetched
from trapline.crawl.sites import Site
from trapline.fetch.content import decoded
from trapline.fetch.response import Response
from trapline.fetch.robots import DISALLOW_ALL, Robots
from trapline.fetch.robots_answer import MOST_REDIRECTS, Verdict, read_answer
from trapline.fetch.urls import canonical, origin

if TYPE_CHECKING:
    from trapline.crawl.live import Web

PATH = "/robots.txt"
LONGEST_PAUSE_S = 30.0  # a longer Crawl-delay is a rest between visits
WAIT_FOR_OTHER_S = 30.0
MOST_BYTES = 500 * 1024
_MAX_AGE = re.compile(rb"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)


class Step(Enum):
    GO = auto()  # its rules are known
    AGAIN = auto()  # ask for the new target
    REST = auto()  # not in this visit: `rest_s`
    FAILED = auto()


def _max_age_s(cache_control: bytes) -> float | None:
    found = _MAX_AGE.search(cache_control)
    return float(found[1]) if found else None


def apply(site: Site, robots: Robots, until: float, pause_s: float) -> None:
    """The site's rules until then."""
    site.robots, site.robots_until, site.robots_failures = robots, until, 0
    site.pause_s = max(pause_s, robots.crawl_delay_s or 0.0)


class RobotsFile:
    """One attempt to have the rules of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._url = site.origin + PATH
        self._hops = 0
        self.started = 0.0
        self.request = b""
        self.rest_s = 0.0

    @property
    def target(self) -> str:
        return self._url[len(self._site.origin) :]

    def answered(self, web: "Web", visit: int, response: Response, address: str) -> Step:
        body = decoded(response.body, response.headers.get(b"content-encoding", b""), MOST_BYTES)
        if isinstance(body, str):
            body = b""
        self._record(web, visit, address, response, body, "")
        location = response.headers.get(b"location")
        if 300 <= response.status < 400 and location is not None:
            return self._redirected(web, location.decode("utf-8", "replace"))
        max_age_s = _max_age_s(response.headers.get(b"cache-control", b""))
        verdict = read_answer(response.status, "", body, web.agent, max_age_s=max_age_s)
        if verdict.robots is DISALLOW_ALL:
            return Step.FAILED
        return self._take(web, verdict)

    def failed(self, web: "Web", visit: int, address: str, kind: str) -> None:
        self._record(web, visit, address, None, b"", kind)

    def _redirected(self, web: "Web", location: str) -> Step:
        self._hops += 1
        url = canonical(location, self._url)
        if url is None or self._hops > MOST_REDIRECTS:
            return self._take(web, read_answer(300, "", b"", web.agent))
        if origin(url) == self._site.origin:
            self._url = url
            return Step.AGAIN
        return self._elsewhere(web, url)

    def _elsewhere(self, web: "Web", url: str) -> Step:
        other = web.sites.named(origin(url))
        if other is not None and other.robots is not None:
            return self._take(web, Verdict(other.robots, other.robots_until - web.now(), ""))
        self._site.robots_failures += 1
        if self._site.robots_failures > MOST_REDIRECTS:
            return Step.FAILED
        web.discover(url)
        self.rest_s = WAIT_FOR_OTHER_S
        return Step.REST

    def _take(self, web: "Web", verdict: Verdict) -> Step:
        """The rules are known: they hold from now on, Crawl-delay included."""
        site = self._site
        apply(site, verdict.robots, web.now() + verdict.expires_in_s, web.pause_s)
        delay_s = verdict.robots.crawl_delay_s or 0.0
        if delay_s > web.delay_s:
            web.frontier.set_site(site.id, web.now(), delay_s=delay_s)
        if delay_s > LONGEST_PAUSE_S:
            web.frontier.set_site(site.id, web.now(), per_connection=1)
            self.rest_s = delay_s
            return Step.REST
        return Step.GO

    def _record(self, web: "Web", visit: int, address: str, answer: Response | None, body: bytes, kind: str) -> None:
        web.outbox.robots.append(
            RobotsFetched(
                self._site.id,
                visit,
                self._url,
                address,
                self.started,
                answer.first_byte_s if answer else float("nan"),
                answer.total_s if answer else web.now() - self.started,
                answer.status if answer else 0,
                kind,
                self.request,
                answer.head if answer else b"",
                answer.wire if answer else b"",
                body,
            )
        )
