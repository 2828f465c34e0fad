"""robots.txt files that lie on another site: who waits for which URL, and what was found there.

RFC 9309, 2.3.1.2: a redirect leads across sites, and what is at its end holds for the site that it began at. The file is fetched as a
page of the site that it lies on, in that site's own time, or once more if it was had before (errands.py); nothing is asked for here. If
another partition of the crawl owns that site, it is asked, and its answer is as good as ours (docs/decisions/033-robots-of-others.md).
Who fills it: robots_file.py (who waits), visit.py (pages that were waited for), other partitions (their questions and answers). Who empties
it: a page that comes, for its waiters. What a waiter learns is recorded with the page, before it: after a crash either both are known or
neither. Questions of others are not kept: whoever still waits asks again.
"""

from typing import Protocol

from trapline.crawl.robots_file import PATH, Answer, RobotsFile, RobotsWeb, answer_of
from trapline.crawl.sites import Site
from trapline.fetch import failure
from trapline.fetch.response import Response
from trapline.fetch.robots import LIMIT_BYTES, written
from trapline.fetch.robots_answer import SHORTEST_S
from trapline.fetch.urls import origin

MOST_KEPT = 1_000  # for sites that are sent to the same file later: it need not be asked for again
MOST_ASKED = 1_000  # files, by other partitions: one that never comes makes room, and its askers are not answered


class Replies(RobotsWeb, Protocol):
    """Whoever can answer another partition too."""

    def reply(self, partition: int, url: str, answer: Answer) -> None: ...


class RobotsElsewhere:
    def __init__(self) -> None:
        self._waiting: dict[str, list[tuple[int, RobotsFile]]] = {}  # with the visit in which it began to wait
        self._asked: dict[str, set[int]] = {}  # by other partitions
        self._kept: dict[str, Answer] = {}

    def answer(self, url: str) -> Answer | None:
        return self._kept.get(url)

    def wait(self, url: str, visit: int, robots: RobotsFile) -> None:
        self._waiting.setdefault(url, []).append((visit, robots))

    def awaits(self, url: str) -> bool:
        return url in self._waiting or url in self._asked

    def came(self, web: Replies, url: str, response: Response) -> None:
        """A page that was waited for."""
        answer = answer_of(response, web.now())
        self._keep(url, answer)
        self._reply(web, url, answer)
        self._tell(web, url, answer)

    def told(self, web: Replies, url: str, answer: Answer) -> None:
        """Another partition has it. It answers as often as it is asked, so that its rules are not kept beyond their time."""
        if answer.location is not None:
            self._keep(url, answer)
        self._tell(web, url, answer)

    def _keep(self, url: str, answer: Answer) -> None:
        if len(self._kept) == MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[url] = answer

    def _tell(self, web: Replies, url: str, answer: Answer) -> None:
        """If it leads on, a waiter follows when it is visited next."""
        for visit, robots in self._waiting.pop(url, ()):
            if answer.location is None:
                robots.came(web, visit, url, answer)

    # ---- for other partitions

    def asked(self, web: Replies, url: str, partition: int) -> None:
        """It lies on a site of ours: answered at once if that is known, else as soon as it is."""
        if url not in self._asked and len(self._asked) == MOST_ASKED:
            self._asked.pop(next(iter(self._asked)))
        self._asked.setdefault(url, set()).add(partition)
        site = web.sites.named(origin(url))
        if site is not None and site.robots is not None and url == site.origin + PATH:
            self.ruled(web, site)
        elif url in self._kept:
            self._reply(web, url, self._kept[url])
        else:
            web.discover(url)

    def ruled(self, web: Replies, site: Site) -> None:
        """The rules of a site of ours are known. They are sent as a file that says the same: the file itself is not in memory."""
        url = site.origin + PATH
        if url in self._asked:
            assert site.robots is not None
            body = written(site.robots)
            error = failure.TOO_LARGE if len(body) > LIMIT_BYTES else ""
            # The other site may not be visited again, so its rules do not expire there as soon as here.
            age_s = max(site.robots_until - web.now(), SHORTEST_S)
            self._reply(web, url, Answer(200, error, None, body, age_s, None))

    def _reply(self, web: Replies, url: str, answer: Answer) -> None:
        for partition in sorted(self._asked.pop(url, ())):
            web.reply(partition, url, answer)
