"""Crawls first what is about a topic: python examples/own_quality.py https://example.org/ crawling

The quality of a page is the share of its words that are the topic. The crawl expects the same of the pages that it links to,
and fetches those of the highest expected quality first.
"""

import sys

import trapline

url, topic = sys.argv[1], sys.argv[2].casefold()


def about_the_topic(page: trapline.Page) -> float:
    words = page.visible_text.casefold().split()
    return words.count(topic) / len(words) if words else 0.0


for page in trapline.crawl(url, quality=about_the_topic, strategy="quality", max_pages=1_000):
    print(f"{page.quality:.3f} {page.url} {page.title}")
