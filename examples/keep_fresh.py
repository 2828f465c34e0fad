"""Keeps a copy of a site fresh, and prints what changed: python examples/keep_fresh.py https://example.org/ FOLDER

Crawls the site, then fetches its pages again, those first that change often. Ctrl-C stops; the same command continues.
"""

import sys
from pathlib import Path

import trapline

url, folder = sys.argv[1], Path(sys.argv[2])
crawl = trapline.crawl(resume=folder) if folder.exists() else trapline.crawl(url, output=folder, continuous=True)
for page in crawl:
    print(
        f"{page.fetched_at:%Y-%m-%d %H:%M:%S} {'changed' if page.changed else 'new'} {page.url} {page.title}",
        flush=True,
    )
