"""The back-off of sites that do not answer: other sites go first, but the end of a crawl is not held up for long.

The back-off doubles with every failed visit in a row, until all together have lasted as long as the crawl is willing to wait for a site.
Then the site is taken as dead: its requests are sent without a back-off and fail one after the other, as with Scrapy's own scheduler,
so that each errback is called. An answer begins everything anew.
"""


class SiteBackoff:
    def __init__(self, first_s: float, total_s: float) -> None:
        self._first_s, self._total_s = first_s, total_s
        self._waited_s: dict[str, float] = {}  # by site: the sum of its back-offs in a row

    def wait_s(self, site: str, has_failed: bool, is_answered: bool) -> float:
        """Return how long a site waits after a visit.

        >>> backoff = SiteBackoff(first_s=1.0, total_s=10.0)
        >>> [backoff.wait_s("a", has_failed=True, is_answered=False) for _ in range(5)]
        [1.0, 2.0, 4.0, 3.0, 0.0]
        """
        if is_answered:
            self._waited_s.pop(site, None)
        if not has_failed:
            return 0.0
        waited_s = self._waited_s.get(site, 0.0)
        wait_s = min(self._first_s + waited_s, self._total_s - waited_s)  # doubled: the earlier ones and one more
        self._waited_s[site] = waited_s + wait_s
        return wait_s
