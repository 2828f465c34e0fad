"""The known URLs: a table of fingerprints in memory, and the lookup of links in it. Step 2 in docs/architecture.md."""

from trapline.crawler.discovery.seen.table import NO_PAGE, UNKNOWN, Lookup, SeenTable

__all__ = ["NO_PAGE", "UNKNOWN", "Lookup", "SeenTable"]
