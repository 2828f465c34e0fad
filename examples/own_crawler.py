"""Crawls a site with a crawler of your own, and Trapline's scheduler: python examples/own_crawler.py FOLDER https://example.org/ 100

httpx fetches, the frontier decides: it says which pages of which site to fetch now, or how long to wait. It lives in a folder: the same
command continues a crawl that was stopped or killed. Needs httpx.
"""

import asyncio
import math
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import httpx

from trapline import FAILED, FETCHED, REFUSED, Drained, DurableFrontier, Rules, UrlVisit, WaitUntil

AGENT = "own-crawler"


class LinkFinder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.hrefs += [value for name, value in attrs if name == "href" and value]


class OwnCrawler:
    def __init__(self, folder: Path, seed: str, max_pages: int, rules: Rules, connections: int = 4) -> None:
        self.frontier = DurableFrontier(folder, "opic", rules)
        self.frontier.add([seed])
        self.max_pages, self.connections = max_pages, connections
        self.robots: dict[str, RobotFileParser] = {}
        self.fetched: list[str] = []
        self.host = urlsplit(seed).netloc

    async def run(self) -> None:
        visits: set[asyncio.Task[None]] = set()
        async with httpx.AsyncClient(headers={"user-agent": AGENT}, follow_redirects=True, timeout=30) as client:
            while True:
                wait_s = None  # until a visit has ended
                if len(visits) < self.connections and len(self.fetched) < self.max_pages:
                    answer = self.frontier.next()
                    if isinstance(answer, UrlVisit):
                        visits.add(asyncio.create_task(self.visit(client, answer)))
                        continue
                    if isinstance(answer, Drained) and not visits:
                        return
                    if isinstance(answer, WaitUntil) and answer.time < math.inf:
                        wait_s = max(0.0, answer.time - self.frontier.now)
                elif not visits:
                    return
                if visits:
                    done, visits = await asyncio.wait(visits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()  # raises the exception of a visit that failed
                else:
                    await asyncio.sleep(wait_s or 0.0)

    async def visit(self, client: httpx.AsyncClient, visit: UrlVisit) -> None:
        """Fetch the pages of one site one after the other, and report each to the frontier."""
        for page in visit.pages:
            if len(self.fetched) >= self.max_pages:
                break  # pages that are not reported wait again
            started = time.monotonic()
            result, links = await self.fetch(client, page.url)
            self.frontier.report(visit, page, result, links, time.monotonic() - started)
        self.frontier.finish(visit)

    async def fetch(self, client: httpx.AsyncClient, url: str) -> tuple[int, list[str]]:
        """Return the result of a page, and the URLs of its links on the same host."""
        try:
            if not await self.is_allowed(client, url):
                return REFUSED, []
            response = await client.get(url)
        except httpx.HTTPError:
            return FAILED, []  # the frontier tries again later
        if response.is_error:
            return FAILED if response.is_server_error else REFUSED, []
        self.fetched.append(url)
        if "html" not in response.headers.get("content-type", ""):
            return FETCHED, []
        finder = LinkFinder()
        finder.feed(response.text)
        links = (urljoin(str(response.url), href) for href in finder.hrefs)
        return FETCHED, [link for link in links if urlsplit(link).netloc == self.host]

    async def is_allowed(self, client: httpx.AsyncClient, url: str) -> bool:
        """Return whether robots.txt of the site lets us fetch the URL."""
        site = urljoin(url, "/")
        if site not in self.robots:
            response = await client.get(f"{site}robots.txt")
            rules = RobotFileParser()
            rules.parse(response.text.splitlines() if response.is_success else [])
            self.robots[site] = rules
        return self.robots[site].can_fetch(AGENT, url)


if __name__ == "__main__":
    crawler = OwnCrawler(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Rules(delay_s=1.0, per_connection=5))
    asyncio.run(crawler.run())
    crawler.frontier.close()
    print("\n".join(crawler.fetched))
