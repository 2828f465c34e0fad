"""Runs a Crawlee crawler with our request manager: python -m tests.crawlee.crawl FOLDER LOG SEED...

A process of its own, because Crawlee keeps its state in the process. The log has the path of each page that was handled.
"""

import asyncio
import sys
from pathlib import Path

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import BeautifulSoupCrawler, BeautifulSoupCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

from trapline.crawlee import FrontierRequestManager
from trapline.frontier import Rules


async def main(folder: str, log: str, *seeds: str) -> None:
    manager = FrontierRequestManager(folder, "opic", Rules(delay_s=0.02, retries=10, backoff_s=0.1))
    crawler = BeautifulSoupCrawler(
        request_manager=manager,
        configuration=Configuration(purge_on_start=False),
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(desired_concurrency=4, max_concurrency=8),
        max_request_retries=2,
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def handle(context: BeautifulSoupCrawlingContext) -> None:
        with Path(log).open("a") as file:
            file.write(f"/{context.request.url.split('/', 3)[3]} {context.request.label or ''}\n")
        await context.enqueue_links(strategy="all", user_data={"from": context.request.url})

    await crawler.run(seeds)
    print(await manager.get_handled_count(), await manager.get_total_count(), await manager.is_finished())
    manager.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
