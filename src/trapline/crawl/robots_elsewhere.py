"""robots.txt files that lie on another site: who waits for which URL, and what was found there.

RFC 9309, 2.3.1.2: a redirect leads across sites, and what is at its end holds for the site that it began at. The file is fetched as a
page of the site that it lies on, in that site's own time, or once more if it was had before (errands.py); nothing is asked for here. If
another partition of the crawl owns that site, it is asked, and its answer is as good as ours (docs/decisions/033-robots-of-others.md).
What was found is kept for the sites that are sent there later, for as long as it holds (2.4): rules a day at most, from when they were
fetched, and that they are not to be had for five minutes or as long as the server asks.
Who fills it: robots_file.py (who waits), visit.py (pages that were waited for), other partitions (their questions and answers). Who empties
it: a page that comes, for its waiters. What a waiter learns is recorded with the page, before it: after a crash either both are known or
neither. Questions of others are not kept: whoever still waits asks again.
"""

import math
from typing import Protocol

from trapline.crawl.robots_file import PATH, Answer, RobotsFile, RobotsWeb, answer_of
from trapline.crawl.sites import Site
from trapline.fetch import failure
from trapline.fetch.response import Response
from trapline.fetch.robots import LIMIT_BYTES, written
from trapline.fetch.robots_answer import read_answer
from trapline.fetch.urls import origin

MOST_KEPT = 1_000  # for sites that are sent to the same file later: it need not be asked for again
MOST_ASKED = 1_000  # files, by other partitions: one that never comes makes room, and its askers are not answered


class Replies(RobotsWeb, Protocol):
    """Whoever can answer another partition too."""

    def reply(self, partition: int, url: str, answer: Answer) -> None: ...


class RobotsElsewhere:
    def __init__(self) -> None:
        # By URL and site, with the visit in which the site last asked for it.
        self._waiting: dict[str, dict[int, tuple[int, RobotsFile]]] = {}
        self._asked: dict[str, set[int]] = {}  # by other partitions
        self._kept: dict[str, tuple[float, Answer]] = {}  # with the moment until which it holds

    def answer(self, url: str, now: float) -> Answer | None:
        """What was found there, if it still holds, and for how long it does: rules, or that there are none to be had for a while."""
        until, answer = self._kept.get(url, (-math.inf, None))
        if answer is None or now >= until:
            return None
        return answer._replace(max_age_s=until - now, retry_after_s=until - now)

    def wait(self, url: str, visit: int, robots: RobotsFile) -> None:
        self._waiting.setdefault(url, {})[robots.site_id] = (visit, robots)

    def awaits(self, url: str) -> bool:
        """Whether what is there now matters: to who waits for it, or in place of what was found there before."""
        return url in self._waiting or url in self._asked or url in self._kept

    def came(self, web: Replies, url: str, response: Response) -> None:
        """A page that matters here (`awaits`)."""
        answer = answer_of(response, web.now())
        self._keep(web, url, answer)
        self._reply(web, url, answer)
        self._tell(web, url, answer)

    def told(self, web: Replies, url: str, answer: Answer) -> None:
        """Another partition has it. What nobody waits for any more may have been under way for long, and is not kept."""
        if url in self._waiting:
            self._keep(web, url, answer)
        self._tell(web, url, answer)

    def _keep(self, web: Replies, url: str, answer: Answer) -> None:
        self._kept.pop(url, None)
        if len(self._kept) == MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        asked = (answer.status, answer.error, b"", web.agent)
        verdict = read_answer(*asked, max_age_s=answer.max_age_s, retry_after_s=answer.retry_after_s)
        self._kept[url] = (web.now() + verdict.expires_in_s, answer)

    def _tell(self, web: Replies, url: str, answer: Answer) -> None:
        """If it leads on, a waiter follows when it is visited next."""
        for visit, robots in self._waiting.pop(url, {}).values():
            if answer.location is None:
                robots.came(web, visit, url, answer)

    # ---- for other partitions

    def asked(self, web: Replies, url: str, partition: int) -> None:
        """It lies on a site of ours: answered at once if that is known, else as soon as it is."""
        if url not in self._asked and len(self._asked) == MOST_ASKED:
            self._asked.pop(next(iter(self._asked)))
        self._asked.setdefault(url, set()).add(partition)
        site, now = web.sites.named(origin(url)), web.now()
        if site is not None and site.robots is not None and now < site.robots_until and url == site.origin + PATH:
            self.ruled(web, site)
        elif (answer := self.answer(url, now)) is not None:
            self._reply(web, url, answer)
        else:
            web.discover(url)

    def ruled(self, web: Replies, site: Site) -> None:
        """The rules of a site of ours are known. They are sent as a file that says the same: the file itself is not in memory."""
        url = site.origin + PATH
        if url in self._asked:
            assert site.robots is not None
            body = written(site.robots)
            error = failure.TOO_LARGE if len(body) > LIMIT_BYTES else ""
            self._reply(web, url, Answer(200, error, None, body, site.robots_until - web.now(), None))

    def _reply(self, web: Replies, url: str, answer: Answer) -> None:
        for partition in sorted(self._asked.pop(url, ())):
            web.reply(partition, url, answer)
