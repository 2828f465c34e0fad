"""Finds broken links of a site: python examples/broken_links.py https://example.org/

Prints each page that could not be fetched, and the page whose link was found first.
"""

import sys

import trapline


def report(failed: trapline.FailedFetch) -> None:
    if failed.error != "robots":  # robots.txt forbids these pages; nobody knows whether they exist
        print(f"{failed.status or failed.error}\t{failed.url}\tlinked from {failed.referrer}")


summary = trapline.crawl(sys.argv[1], on_error=report, max_pages=10_000).run()
print(f"{summary['pages_fetched']:,} pages checked", file=sys.stderr)
