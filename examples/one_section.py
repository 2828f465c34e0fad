"""Follows only the links of one section of a site, and stops when it has seen enough: python examples/one_section.py https://example.org/docs/

`accept` decides about each URL; `break` ends the crawl cleanly.
"""

import sys

import trapline

section, enough = sys.argv[1], 500
pages = trapline.crawl(section, accept=lambda url: url.startswith(section))
for seen, page in enumerate(pages, start=1):
    print(f"{page.depth} {page.url} {page.title}")
    if seen == enough:
        break
