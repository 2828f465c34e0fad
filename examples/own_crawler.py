"""Crawls a site with a crawler of your own, and Trapline's scheduler: python examples/own_crawler.py https://example.org/ 100

httpx fetches, the frontier decides: it says which pages of which site to fetch now, or how long to wait. Needs httpx.
"""

import asyncio
import math
import sys
import time
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import httpx

from trapline import FAILED, FETCHED, REFUSED, Drained, Frontier, Outcome, Rules, Visit, WaitUntil, load_strategy

AGENT = "own-crawler"


class LinkFinder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.hrefs += [value for name, value in attrs if name == "href" and value]


class OwnCrawler:
    def __init__(self, seed: str, max_pages: int, rules: Rules, connections: int = 4) -> None:
        self.frontier = Frontier(load_strategy("opic"), rules)
        self.max_pages, self.connections = max_pages, connections
        self.urls: list[str] = []  # by page number
        self.page_of: dict[str, int] = {}
        self.site_of: dict[str, int] = {}  # by scheme and host
        self.robots: dict[str, RobotFileParser] = {}
        self.fetched: list[str] = []
        self.host = urlsplit(seed).netloc
        self.frontier.discover([self.number(seed)], time.time())

    def number(self, url: str) -> int:
        """Return the page number of a URL. A new page, and a new site, are registered with the frontier."""
        if url not in self.page_of:
            site = urljoin(url, "/")
            if site not in self.site_of:
                # A group is an IP address, which has a delay of its own. Here every site has its own.
                self.site_of[site] = self.frontier.add_sites(1, time.time(), groups=[len(self.site_of)])
            self.page_of[url] = self.frontier.add_pages([self.site_of[site]], [bool(urlsplit(url).query)])
            self.urls.append(url)
        return self.page_of[url]

    async def run(self) -> None:
        visits: set[asyncio.Task[None]] = set()
        async with httpx.AsyncClient(headers={"user-agent": AGENT}, follow_redirects=True, timeout=30) as client:
            while True:
                wait_s = None  # until a visit has ended
                if len(visits) < self.connections and len(self.fetched) < self.max_pages:
                    answer = self.frontier.next(time.time())
                    if isinstance(answer, Visit):
                        visits.add(asyncio.create_task(self.visit(client, answer)))
                        continue
                    if isinstance(answer, Drained) and not visits:
                        return
                    if isinstance(answer, WaitUntil) and answer.time < math.inf:
                        wait_s = max(0.0, answer.time - time.time())
                elif not visits:
                    return
                if visits:
                    done, visits = await asyncio.wait(visits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()  # raises the exception of a visit that failed
                else:
                    await asyncio.sleep(wait_s or 0.0)

    async def visit(self, client: httpx.AsyncClient, visit: Visit) -> None:
        """Fetch the pages of one site one after the other, and report each to the frontier."""
        for page in visit.pages:
            if len(self.fetched) >= self.max_pages:
                break  # pages that are not reported wait again
            started = time.time()
            result, links = await self.fetch(client, self.urls[page])
            now = time.time()
            self.frontier.report(visit, page, result, now, [*map(self.number, links)], now - started)
        self.frontier.finish(visit, Outcome(), time.time())

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
        links = (urldefrag(urljoin(str(response.url), href)).url for href in finder.hrefs)
        return FETCHED, [link for link in dict.fromkeys(links) if urlsplit(link).netloc == self.host]

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
    crawler = OwnCrawler(sys.argv[1], int(sys.argv[2]), Rules(delay_s=1.0, per_connection=5))
    asyncio.run(crawler.run())
    print("\n".join(crawler.fetched))
