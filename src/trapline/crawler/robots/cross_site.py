"""Cross-site robots.txt files: which sites wait for a file on another site, and which files are cached.

RFC 9309, section 2.3.1.2: a robots.txt may redirect to another site, and the file at the end of the redirects holds for
the site where they began. The file is fetched as a page of the site that it is on, after that site's delays; if it was
fetched before, it is fetched once more (crawler/visits/out_of_band.py). This module sends no request. If another partition
owns that site, it is asked, and its answer counts like our own (docs/decisions/033-robots-of-others.md).

Answers are cached for sites that are redirected to the same file later, as long as section 2.4 allows. Rules hold for at
most a day from their fetch. The absence of usable rules holds for five minutes, or as long as the server demands.

site_robots.py adds the sites that wait, crawler/visits/visit.py the pages that they wait for, and other partitions their
requests and answers. The arrival of a page removes the sites that waited for it. The answer for a waiting site is
recorded together with the page, and before it, so that after a crash both are known or neither. Requests of other
partitions are not stored: a partition that still waits sends its request again.
"""

import math
from typing import Protocol

from trapline.crawler.discovery.sites import Site
from trapline.crawler.robots.site_robots import PATH, RobotsFile, RobotsResponse, RobotsWeb, answer_of
from trapline.fetch import failure
from trapline.fetch.http.response import Response
from trapline.fetch.robots.answer import read_answer
from trapline.fetch.robots.parser import LIMIT_BYTES, written
from trapline.fetch.urls import origin

MOST_KEPT = 1_000  # most cached answers, for sites that are redirected to the same file later
# Most files that other partitions wait for. Beyond this number, the oldest request is dropped and not answered.
MOST_REQUESTED = 1_000


class Replies(RobotsWeb, Protocol):
    """A world for robots.txt that can also answer other partitions."""

    def reply(self, partition: int, url: str, answer: RobotsResponse) -> None: ...


class RobotsElsewhere:
    def __init__(self) -> None:
        # By URL and by waiting site: the visit in which the site last requested the file, and the request.
        self._waiting: dict[str, dict[int, tuple[int, RobotsFile]]] = {}
        self._requested: dict[str, set[int]] = {}  # by URL: the partitions that wait for the file
        self._kept: dict[str, tuple[float, RobotsResponse]] = {}  # by URL: when the answer expires, and the answer

    def answer(self, url: str, now: float) -> RobotsResponse | None:
        """Return the cached answer for a URL with its remaining lifetime, or None. The answer may be that there are no usable
        rules for now."""
        until, answer = self._kept.get(url, (-math.inf, None))
        if answer is None or now >= until:
            return None
        return answer._replace(max_age_s=until - now, retry_after_s=until - now)

    def wait(self, url: str, visit: int, robots: RobotsFile) -> None:
        self._waiting.setdefault(url, {})[robots.site_id] = (visit, robots)

    def awaits(self, url: str) -> bool:
        """Return whether a new response for the URL matters here: a site or a partition waits for it, or it replaces a cached one."""
        return url in self._waiting or url in self._requested or url in self._kept

    def came(self, web: Replies, url: str, response: Response) -> None:
        """Take the response for a URL that `awaits` accepts: cache it, and pass it to everyone who waits."""
        answer = answer_of(response, web.now())
        self._keep(web, url, answer)
        self._reply(web, url, answer)
        self._pass_to_sites(web, url, answer)

    def reply_received(self, web: Replies, url: str, answer: RobotsResponse) -> None:
        """Take the answer of another partition. If no site waits for it any more, it may be old, and is not cached."""
        if url in self._waiting:
            self._keep(web, url, answer)
        self._pass_to_sites(web, url, answer)

    def _keep(self, web: Replies, url: str, answer: RobotsResponse) -> None:
        self._kept.pop(url, None)
        if len(self._kept) == MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        without_body = (answer.status, answer.error, b"", web.agent)  # its lifetime does not depend on the rules
        verdict = read_answer(*without_body, max_age_s=answer.max_age_s, retry_after_s=answer.retry_after_s)
        self._kept[url] = (web.now() + verdict.expires_in_s, answer)

    def _pass_to_sites(self, web: Replies, url: str, answer: RobotsResponse) -> None:
        """Pass the answer to the sites that wait for it. If it redirects further, they follow it in their next visit."""
        for visit, robots in self._waiting.pop(url, {}).values():
            if answer.location is None:
                robots.came(web, visit, url, answer)

    # ---- for other partitions

    def requested(self, web: Replies, url: str, partition: int) -> None:
        """Answer the request of another partition for a file on a site of ours, at once if the file is known, otherwise when
        it arrives."""
        if url not in self._requested and len(self._requested) == MOST_REQUESTED:
            self._requested.pop(next(iter(self._requested)))
        self._requested.setdefault(url, set()).add(partition)
        site, now = web.sites.named(origin(url)), web.now()
        if site is not None and site.robots is not None and now < site.robots_until and url == site.origin + PATH:
            self.ruled(web, site)
        elif (answer := self.answer(url, now)) is not None:
            self._reply(web, url, answer)
        else:
            web.discover(url)

    def ruled(self, web: Replies, site: Site) -> None:
        """Send the rules of a site of ours, which are known now, to the partitions that wait for them. They are sent as an
        equivalent file, because the original text is not in memory."""
        url = site.origin + PATH
        if url in self._requested:
            assert site.robots is not None
            body = written(site.robots)
            error = failure.TOO_LARGE if len(body) > LIMIT_BYTES else ""
            self._reply(web, url, RobotsResponse(200, error, None, body, site.robots_until - web.now(), None))

    def _reply(self, web: Replies, url: str, answer: RobotsResponse) -> None:
        for partition in sorted(self._requested.pop(url, ())):
            web.reply(partition, url, answer)
