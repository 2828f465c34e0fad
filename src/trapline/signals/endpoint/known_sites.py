"""The sites that the crawl knows, by their authority (host, and the port if it is not the scheme's default). Read-only.

A ping about any other site is useless: a signal never adds a new site to a crawl. The crawl may be running, so the endpoint
regularly reads the new rows of its table of sites; sites are never removed from it.
"""

from collections.abc import Callable, Sequence

# Returns the rows (id, origin) of the crawl's table of sites with an id above the given one, in order.
SitesAfter = Callable[[int], Sequence[tuple[int, str]]]

HTTP, HTTPS = 1, 2


class SitesKnown:
    """The set of known authorities, and the schemes by which the crawl knows them."""

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
        """Read the sites that are new since the last call."""
        for number, origin in self._sites_after(self._last):
            scheme, _, authority = origin.partition("://")
            self._schemes[authority] = self._schemes.get(authority, 0) | (HTTPS if scheme == "https" else HTTP)
            self._last = number

    def scheme(self, authority: str) -> str:
        """Return the scheme for requests to a site: https if the crawl knows the site by it, otherwise http."""
        return "https" if self._schemes[authority] & HTTPS else "http"

    def has(self, scheme: str, authority: str) -> bool:
        return bool(self._schemes.get(authority, 0) & (HTTPS if scheme == "https" else HTTP))


def authority_of(url: str) -> str:
    """Return the authority of a canonical URL: host, and port if it is not the scheme's default.

    >>> authority_of("https://example.org:8443/a/b?c")
    'example.org:8443'
    """
    start = url.find("://") + 3
    return url[start : url.find("/", start)]
