"""robots.txt files that lie on another site: who waits for which URL, and what was found there.

RFC 9309, 2.3.1.2: a redirect leads across sites, and what is at its end holds for the site that it began at. The file is fetched as a
page of the site that it lies on, in that site's own time; nothing is asked for here.
Who fills it: robots_file.py (who waits), visit.py (pages that were waited for). Who empties it: a page that comes, for its waiters. What a
waiter learns is recorded with the page, before it: after a crash either both are known or neither.
"""

from trapline.crawl.robots_file import Answer, RobotsFile, RobotsWeb, answer_of
from trapline.fetch.response import Response

MOST_KEPT = 1_000  # for sites that are sent to the same file later: it is a page by then, and not fetched again


class RobotsElsewhere:
    def __init__(self) -> None:
        self._waiting: dict[str, list[RobotsFile]] = {}
        self._kept: dict[str, Answer] = {}

    def answer(self, url: str) -> Answer | None:
        return self._kept.get(url)

    def wait(self, url: str, robots: RobotsFile) -> None:
        self._waiting.setdefault(url, []).append(robots)

    def awaits(self, url: str) -> bool:
        return url in self._waiting

    def came(self, web: RobotsWeb, visit: int, url: str, response: Response) -> None:
        """A page that was waited for. If it leads on, a waiter follows when it is visited next."""
        answer = answer_of(response, web.now())
        if len(self._kept) == MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[url] = answer
        for robots in self._waiting.pop(url):
            if answer.location is None:
                robots.came(web, visit, url, answer)
