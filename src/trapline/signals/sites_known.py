"""Which sites the crawl knows, by their authority (host, and the port if it is not the scheme's own). It reads, and decides nothing.

A ping about any other site is of no use: a signal never brings a new site into a crawl. The crawl may be running, so the new
sites of its table are read now and then; sites never leave it.
"""

from collections.abc import Callable, Sequence

# Rows (id, origin) of the crawl's table of sites with an id above this one, in order.
SitesAfter = Callable[[int], Sequence[tuple[int, str]]]

HTTP, HTTPS = 1, 2


class SitesKnown:
    def __init__(self, sites_after: SitesAfter) -> None:
        self._sites_after = sites_after
        self._last = -1
        self._schemes: dict[str, int] = {}
        self.read()

    def __len__(self) -> int:
        return len(self._schemes)

    def __contains__(self, authority: str) -> bool:
        return authority in self._schemes

    def read(self) -> None:
        """The sites that are new since."""
        for number, origin in self._sites_after(self._last):
            scheme, _, authority = origin.partition("://")
            self._schemes[authority] = self._schemes.get(authority, 0) | (HTTPS if scheme == "https" else HTTP)
            self._last = number

    def scheme(self, authority: str) -> str:
        """By which its files are to be had: https if the crawl knows the site by it."""
        return "https" if self._schemes[authority] & HTTPS else "http"

    def has(self, scheme: str, authority: str) -> bool:
        return bool(self._schemes.get(authority, 0) & (HTTPS if scheme == "https" else HTTP))


def authority_of(url: str) -> str:
    """Of a canonical URL.

    >>> authority_of("https://example.org:8443/a/b?c")
    'example.org:8443'
    """
    start = url.find("://") + 3
    return url[start : url.find("/", start)]
