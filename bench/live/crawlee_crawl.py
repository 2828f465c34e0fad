"""Crawls the same web with Crawlee for Python, to the last page. Runs in .venv-bench, without Trapline.

100 concurrent tasks from the start; robots.txt obeyed; no delay, no log, the queue in memory. It stores nothing, unlike
Trapline. Crawlee has no limit per site: it may have several connections to one site, unlike Trapline and Scrapy.

plain   as in its documentation: ParselCrawler (faster than BeautifulSoupCrawler) and `enqueue_links`
tuned   HttpCrawler on uvloop, no sessions, links by lxml directly, and a set that avoids a request for a known page
"""

import argparse
import asyncio
import json
import logging
import time
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import lxml.html
import uvloop
from crawlee import ConcurrencySettings
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext, ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient


class Count:
    def __init__(self) -> None:
        self.pages, self.started, self.seconds = 0, time.time(), 0.0

    def page(self) -> None:
        self.pages += 1
        self.seconds = time.time() - self.started


def options_of_both() -> dict[str, Any]:
    return {
        "concurrency_settings": ConcurrencySettings(min_concurrency=100, max_concurrency=100, desired_concurrency=100),
        "storage_client": MemoryStorageClient(),
        "respect_robots_txt_file": True,
        "configure_logging": False,
    }


async def plain(seeds: list[str]) -> Count:
    crawler = ParselCrawler(**options_of_both())
    count = Count()

    @crawler.router.default_handler
    async def take(context: ParselCrawlingContext) -> None:
        await context.enqueue_links(strategy="all")
        count.page()

    await crawler.run(seeds)
    return count


async def tuned(seeds: list[str]) -> Count:
    crawler = HttpCrawler(use_session_pool=False, retry_on_blocked=False, **options_of_both())
    known, count = set(seeds), Count()

    @crawler.router.default_handler
    async def take(context: HttpCrawlingContext) -> None:
        base = context.request.url
        links = lxml.html.fromstring(await context.http_response.read()).xpath("//a/@href")
        new = {urljoin(base, href) for href in links} - known
        known.update(new)
        await context.add_requests(sorted(new))
        count.page()

    await crawler.run(seeds)
    return count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=Path, required=True, help="file of home pages, one per line")
    options.add_argument("--crawler", choices=["plain", "tuned"], default="plain")
    chosen = options.parse_args()
    logging.disable()
    seeds = chosen.seeds.read_text().split()
    count = asyncio.run(plain(seeds)) if chosen.crawler == "plain" else uvloop.run(tuned(seeds))
    print(json.dumps({"pages": count.pages, "started": count.started, "seconds": count.seconds}))


if __name__ == "__main__":
    main()
