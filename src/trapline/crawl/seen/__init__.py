"""Which URLs are known: a table of fingerprints in memory, and links looked up in it. Step 2 of the way of a URL."""

from trapline.crawl.seen.lookup import NO_PAGE, UNKNOWN, Lookup
from trapline.crawl.seen.table import Seen

__all__ = ["NO_PAGE", "UNKNOWN", "Lookup", "Seen"]
