"""A loop that only sends batches to a store, for tests that kill the loop or the store. Run as a program.

It prints the store's process id, then the number of each acknowledged batch, until it is killed.
"""

import asyncio
import os
import sys
from pathlib import Path

from tests.crawler.store_world import batch
from trapline.crawler.files.layout import claim_existing
from trapline.crawler.files.reading import Reading
from trapline.crawler.store.client import Store
from trapline.crawler.store.settings import StoreSettings


async def feed(folder: Path) -> None:
    claim = claim_existing(folder)
    settings = StoreSettings(warc_bytes=300_000, backlog_batches=8)
    store = await Store.start(claim, settings, lambda number: print(number, flush=True), lambda why: os._exit(3))
    print(store._process.pid, flush=True)
    reading = Reading(folder)
    number = reading.last_batch()
    reading.close()
    while True:
        while store.full:
            await asyncio.sleep(0.001)
        number += 1
        store.put(batch(number))
        await asyncio.sleep(0)


if __name__ == "__main__":
    asyncio.run(feed(Path(sys.argv[1])))
