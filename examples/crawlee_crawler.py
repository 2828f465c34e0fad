"""A Crawlee crawler with Trapline's scheduling: python examples/crawlee_crawler.py FOLDER https://example.org/ 100

Needs trapline[crawlee] and crawlee[beautifulsoup]. The same command continues a crawl that was stopped or killed.
"""

import asyncio
import sys

from crawlee.crawlers import BeautifulSoupCrawler, BeautifulSoupCrawlingContext

from trapline import Rules
from trapline.crawlee import FrontierRequestManager


async def main(folder: str, seed: str, max_pages: str) -> None:
    manager = FrontierRequestManager(folder, "crawl-ability", Rules(delay_s=1.0, retries=10))
    crawler = BeautifulSoupCrawler(request_manager=manager, max_requests_per_crawl=int(max_pages))

    @crawler.router.default_handler
    async def handle(context: BeautifulSoupCrawlingContext) -> None:
        await context.push_data({"url": context.request.url, "title": context.soup.title and context.soup.title.text})
        await context.enqueue_links()

    await crawler.run([seed])
    manager.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
