"""Which URLs are known: a table of fingerprints in memory. Step 2 of the way of a URL."""

from trapline.crawl.seen.table import Seen, fingerprints

__all__ = ["Seen", "fingerprints"]
