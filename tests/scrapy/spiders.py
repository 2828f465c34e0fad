"""Runs a Scrapy spider with our scheduler: python -m tests.scrapy.spiders SPIDER SEEDS JOBDIR LOG SETTINGS (seeds and settings as JSON)

A process of its own, because Scrapy's reactor can run only once. The log has the URL of each page whose callback has begun.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.dupefilters import BaseDupeFilter
from scrapy.http import Response
from scrapy.utils.asyncio import call_later

SETTINGS = {
    "SCHEDULER": "trapline.scrapy.Scheduler",
    "LOG_LEVEL": "INFO",
    "TELNETCONSOLE_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_DELAY": 0,
    "RETRY_ENABLED": False,
}


class Pages(scrapy.Spider):
    """Follows all links."""

    name = "pages"

    def __init__(self, seeds: list[str], log: Path) -> None:
        super().__init__()
        self.start_urls = seeds
        self._log = log.open("a", buffering=1)

    def parse(self, response: Response) -> Iterator[Any]:
        self._log.write(f"{response.url}\n")
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)
        yield {"url": response.url}


class Whole(Pages):
    """Follows all links. The log has the pages whose callback has ended, and when."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from response.follow_all(css="a")
        self._log.write(f"{response.url} {time.time()}\n")


class Repeats(Pages):
    """Requests its seed three times in all, and a page with a callback that cannot be serialised."""

    def parse(self, response: Response) -> Iterator[Any]:
        self._log.write(f"{response.url}\n")
        if response.url in self.start_urls and not response.meta.get("again"):
            yield response.follow("/", dont_filter=True, meta={"again": True})
            yield response.follow("/", dont_filter=True, meta={"again": True})
            yield response.follow("/lambda", callback=lambda found: self._log.write(f"lambda {found.url}\n"))


class Dead(Pages):
    """Requests ten pages of a site that does not answer, and notes each failure."""

    async def start(self) -> AsyncIterator[Any]:
        for number in range(10):
            yield scrapy.Request(f"{self.start_urls[0]}{number}", self.parse, errback=self.failed)

    def failed(self, failure: Any) -> None:
        self._log.write(f"{failure.request.url}\n")


class FullDisk(Pages):
    """Follows all links. After its fifth page the disk is full for a second."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from super().parse(response)
        self.parsed = getattr(self, "parsed", 0) + 1
        if self.parsed == 5:
            self._set_most_pages(1)
            call_later(1.0, self._set_most_pages, 1 << 30)

    def _set_most_pages(self, pages: int) -> None:
        self.crawler.engine._slot.scheduler._frontier._database.connection.execute(f"pragma max_page_count = {pages}")


class BestFirst(Pages):
    """Says how good pages are."""

    async def start(self) -> AsyncIterator[Any]:
        for number in (1, 3, 2):
            yield scrapy.Request(f"{self.start_urls[0]}{number}", meta={"quality": number})

    def parse(self, response: Response) -> Iterator[Any]:
        self._log.write(f"{response.url}\n")
        yield from ()


class SharedLink(Pages):
    """Two pages link to /3. The callback that yields the request first ends last."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield response.follow("/1", self.slow)
        yield response.follow("/2", self.quick)

    async def slow(self, response: Response) -> AsyncIterator[Any]:
        yield response.follow("/3", self.shared)
        await asyncio.sleep(1.0)

    async def quick(self, response: Response) -> AsyncIterator[Any]:
        await asyncio.sleep(0.5)
        yield response.follow("/3", self.shared)

    def shared(self, response: Response) -> None:
        self._log.write(f"{response.url}\n")


class OneObject(Pages):
    """Yields the same request twice, which cannot be serialised."""

    def parse(self, response: Response) -> Iterator[Any]:
        request = response.follow("/1", callback=lambda found: self._log.write(f"{found.url}\n"), dont_filter=True)
        yield request
        yield request


class Renamed(Pages):
    """Has a callback that `Pages` does not have."""

    async def start(self) -> AsyncIterator[Any]:
        for number in range(1, 5):
            yield scrapy.Request(f"{self.start_urls[0]}{number}", self.renamed)
        yield scrapy.Request(f"{self.start_urls[0]}39", self.parse)

    def renamed(self, response: Response) -> None:
        self._log.write(f"{response.url}\n")


class OwnSlot(Pages):
    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(f"{self.start_urls[0]}down", meta={"download_slot": "mine"})


def no_quality(request: scrapy.Request) -> None:
    """A function that forgets to return a number."""


class KnowsAllButSeeds(BaseDupeFilter):
    def request_seen(self, request: scrapy.Request) -> bool:
        return True


class FiltersNothing(BaseDupeFilter):
    """Lets a page be requested up to five times."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    def request_seen(self, request: scrapy.Request) -> bool:
        self._times[request.url] = self._times.get(request.url, 0) + 1
        return self._times[request.url] > 5


def main(spider: str, seeds: str, jobs: str, log: str, settings: str) -> None:
    process = CrawlerProcess({**SETTINGS, **({"JOBDIR": jobs} if jobs else {}), **json.loads(settings)})
    crawler = process.create_crawler(globals()[spider])
    process.crawl(crawler, json.loads(seeds), Path(log))
    process.start()
    print(json.dumps(crawler.stats.get_stats() if crawler.stats else {}, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
