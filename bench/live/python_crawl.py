"""Crawls with `async for page in trapline.crawl(...)` and an empty loop, and prints pages and seconds. Used by run.py, which
also uses the empty handler of this file."""

import argparse
import asyncio
import json
from pathlib import Path

import trapline


def do_nothing(page: trapline.Page) -> None:
    """Handle a page: `trapline crawl --handler bench/live/python_crawl.py:do_nothing`."""


async def crawl(seeds: list[str], output: Path | None, connections: int) -> dict[str, float]:
    pages, started = 0, 0.0
    crawl = trapline.crawl(seeds, output=output, connections=connections, delay=0, max_pages=30_000, allow_private=True)
    async for page in crawl:
        started = started or page.fetched_at.timestamp()
        pages += 1
    assert crawl.summary is not None
    return {"pages": pages, "started": started, "seconds": crawl.summary["seconds"]}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=Path, required=True, help="file of home pages, one per line")
    options.add_argument("--output", type=Path, help="folder of the crawl [none: nothing is written to disk]")
    options.add_argument("--connections", type=int, default=100)
    chosen = options.parse_args()
    print(json.dumps(asyncio.run(crawl(chosen.seeds.read_text().split(), chosen.output, chosen.connections))))


if __name__ == "__main__":
    main()
