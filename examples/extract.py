"""Extracts something from every page of a site into JSON Lines: python examples/extract.py https://example.org/ > pages.jsonl"""

import asyncio
import json
import re
import sys

import trapline

HEADING = re.compile(r"<h[1-3][^>]*>(.*?)</h[1-3]", re.IGNORECASE | re.DOTALL)


async def main(url: str) -> None:
    async for page in trapline.crawl(url, max_pages=1_000):
        if page.is_html:
            found = {"url": page.url, "title": page.title, "headings": HEADING.findall(page.text)}
            print(json.dumps(found, ensure_ascii=False))


asyncio.run(main(sys.argv[1]))
