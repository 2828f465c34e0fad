"""The known URLs: a table of fingerprints in memory, and the lookup of links in it. Step 2 in docs/architecture.md."""

from trapline.crawler.discovery.seen.kernels import LINKS_ELSEWHERE, NO_PAGE
from trapline.crawler.discovery.seen.table import UNKNOWN, Lookup, SeenTable

__all__ = ["LINKS_ELSEWHERE", "NO_PAGE", "UNKNOWN", "Lookup", "SeenTable"]
