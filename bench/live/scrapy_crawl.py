"""Crawls the same web with Scrapy, to the last page. Runs in .venv-bench, without Trapline.

100 concurrent requests, one per site; robots.txt obeyed; no delay, no log. It stores nothing, unlike Trapline.

plain   as in Scrapy's documentation: `response.follow_all`, all other settings at their defaults
tuned   the changes that made it faster without changing Scrapy: uvloop; every middleware, extension and statistic off that
        this crawl does not need; one task for items instead of a hundred per page; links by one XPath; and a set in the
        spider that avoids a Request for a known page
"""

import argparse
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urljoin

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import HtmlResponse

_TASK = {
    "CONCURRENT_REQUESTS": 100,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": True,
    "LOG_ENABLED": False,
}
_PARTS_OFF = ["COOKIES", "RETRY", "COMPRESSION", "REDIRECT", "METAREFRESH", "REFERER", "HTTPPROXY", "HTTPCACHE"]
_EXTENSIONS_OFF = ["MEMUSAGE", "TELNETCONSOLE", "REMOTE_CONTROL"]
_SPIDER_OFF = ["urllength.UrlLength", "depth.Depth", "metacopy.MetaCopyDetection"]
_DOWNLOADER_OFF = ["offsite.Offsite", "httpauth.HttpAuth", "downloadtimeout.DownloadTimeout"]
_TUNED = _TASK | {
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "CONCURRENT_ITEMS": 1,
    "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    "DOWNLOADER_STATS": False,
    "SPIDER_MIDDLEWARES": {f"scrapy.spidermiddlewares.{name}Middleware": None for name in _SPIDER_OFF},
    "DOWNLOADER_MIDDLEWARES": {f"scrapy.downloadermiddlewares.{name}Middleware": None for name in _DOWNLOADER_OFF},
    **{f"{name}_ENABLED": False for name in [*_PARTS_OFF, *_EXTENSIONS_OFF]},
}


class Plain(scrapy.Spider):
    name = "plain"

    def __init__(self, seeds: list[str], result: dict[str, float]) -> None:
        super().__init__()
        self._seeds, self._result = seeds, result

    async def start(self) -> AsyncIterator[scrapy.Request]:
        self._result |= {"pages": 0, "started": time.time()}
        for seed in self._seeds:
            yield scrapy.Request(seed)

    def parse(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        yield from response.follow_all(css="a")
        self.count()

    def count(self) -> None:
        self._result["pages"] += 1
        self._result["seconds"] = time.time() - self._result["started"]


class Tuned(Plain):
    name = "tuned"

    def __init__(self, seeds: list[str], result: dict[str, float]) -> None:
        super().__init__(seeds, result)
        self._known = set(seeds)

    def parse(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        for href in response.selector.root.xpath("//a/@href"):
            url = urljoin(response.url, href)
            if url not in self._known:
                self._known.add(url)
                yield scrapy.Request(url, dont_filter=True)
        self.count()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=Path, required=True, help="file of home pages, one per line")
    options.add_argument("--spider", choices=["plain", "tuned"], default="plain")
    chosen = options.parse_args()
    result: dict[str, float] = {}
    spider, settings = {"plain": (Plain, _TASK), "tuned": (Tuned, _TUNED)}[chosen.spider]
    process = AsyncCrawlerProcess(settings)
    process.crawl(spider, seeds=chosen.seeds.read_text().split(), result=result)
    process.start()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
