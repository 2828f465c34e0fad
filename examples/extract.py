"""Extracts something from every page of a site into JSON Lines: python examples/extract.py https://example.org/ > pages.jsonl"""

import asyncio
import json
import sys
from html.parser import HTMLParser

import trapline


class Headings(HTMLParser):
    """The text of the headings h1 to h3, without the markup inside."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_open = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("h1", "h2", "h3"):
            self.found.append("")
            self._is_open = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("h1", "h2", "h3"):
            self.found[-1:] = [" ".join(text.split()) for text in self.found[-1:]]
            self._is_open = False

    def handle_data(self, data: str) -> None:
        if self._is_open:
            self.found[-1] += data


async def main(url: str) -> None:
    async for page in trapline.crawl(url, max_pages=1_000):
        if page.is_html:
            found = {"url": page.url, "title": page.title, "headings": Headings(page.text).found}
            print(json.dumps(found, ensure_ascii=False))


asyncio.run(main(sys.argv[1]))
