"""Links to pages of other partitions: what their owners are sent, as a URL the first time and as a fingerprint from then on.

The link resolver asks here about the links of a page that are foreign, and about sites that have moved to other partitions. This module
does not decide who owns a page, and sends nothing: parallel/live/exchange.py does.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from trapline.crawler.discovery.link_urls import LinkUrls
from trapline.crawler.discovery.seen import LINKS_ELSEWHERE, Lookup, SeenTable
from trapline.crawler.engine.records import TOO_MANY
from trapline.fetch.html.page import Links
from trapline.frontier import Frontier
from trapline.frontier.layout import Array

# Numbers that the lookup remembers in place of a page.
FOREIGN = LINKS_ELSEWHERE + 2  # and lower: another partition owns the page
UNSETTLED = (
    LINKS_ELSEWHERE + 1
)  # the owner is not known yet: for now the page counts as foreign, which is not remembered
_SENT = LINKS_ELSEWHERE  # minus p: partition p owns the page, and was sent its URL in this run

LOOKUP_SLOTS = 1 << 20  # of a partition, which remembers the URLs that it has sent
NO_FURTHER: Mapping[int, int] = MappingProxyType({})


class ForeignLinks:
    def __init__(
        self, frontier: Frontier, seen: SeenTable, lookup: Lookup, link_urls: LinkUrls, rejected_links: Counter[str]
    ) -> None:
        """The parameters are those of `LinkResolver`, and its parts."""
        self._frontier, self._seen, self._lookup = frontier, seen, lookup
        self._link_urls, self._rejected_links = link_urls, rejected_links
        self._moved: frozenset[int] = frozenset()
        self.moved_pages = 0  # known pages of sites that have moved

    # ---- the links of a page

    def further(self, pages: list[int]) -> Mapping[int, int]:
        """Return the owners of pages whose URLs they have, by fingerprint. No URL is made."""
        places = [at for at, page in enumerate(pages) if page <= _SENT]
        return dict(zip(self._lookup.fingerprints_at(places), (_SENT - pages[at] for at in places), strict=True))

    def urls(
        self,
        pages: list[int],
        links: Links,
        base: str,
        further: Mapping[int, int],
        wants_all: bool,
        made: Mapping[int, str],
    ) -> list[str]:
        """Return the URLs of links to other partitions, each once, without those of `further`. Those that are not in `made` are made
        anew here, because the lookup remembers of such a link only that it is foreign."""
        places = [at for at, page in enumerate(pages) if page <= FOREIGN and (wants_all or page > _SENT)]
        urls = (
            dict.fromkeys(made[at] for at in places)
            if all(at in made for at in places)
            else self._made_anew(links, places, base)
        )
        if further:  # a link in another spelling may lead to one of its pages
            fingerprints = self._seen.fingerprints(list(urls)).tolist()
            return [url for url, found in zip(urls, fingerprints, strict=True) if found not in further]
        return list(urls)

    def _made_anew(self, links: Links, places: Sequence[int], base: str) -> dict[str, None]:
        urls: dict[str, None] = {}
        left = len(places)
        for url, same in self._link_urls.made(links, places, base):
            left -= len(same)
            if url is not None:
                urls[url] = None
        self._rejected_links.update({TOO_MANY: left} if left else {})
        return urls

    def sent(self, urls: Sequence[str], partition: int) -> None:
        """Note that the partition, which owns the pages at these URLs, has been sent the URLs. From now on their fingerprints are
        returned (`further`), unless the lookup forgets some: that costs only time."""
        self._lookup.remember_all(self._seen.fingerprints(urls), _SENT - partition)

    # ---- sites that have moved

    def leave(self, sites: Iterable[int]) -> None:
        """Note that these sites have moved to other partitions. Links to their pages count as foreign from now on, although
        we know the pages."""
        self._moved = frozenset(sites)
        self.moved_pages = int(np.isin(self._frontier.page_sites, list(self._moved)).sum())

    @property
    def moved_sites(self) -> int:
        return len(self._moved)

    def mark_moved(self, pages: list[int]) -> None:
        """Replace the pages of sites that have moved by FOREIGN."""
        sites = self._frontier.page_sites[np.maximum(pages, 0)].tolist()
        for at, site in enumerate(sites):
            if site in self._moved and pages[at] >= 0:
                pages[at] = FOREIGN

    def has_moved(self, pages: Array) -> Array:
        """Return which of these numbers are pages of sites that have moved. Numbers below 0 may be among them."""
        return np.isin(self._frontier.page_sites[np.maximum(pages, 0)], list(self._moved))


def owners_of(fingerprints: list[int], numbers: Array) -> dict[int, int]:
    """Return the owners by fingerprint, from the numbers that the lookup has remembered for pages whose URLs they have."""
    return dict(zip(fingerprints, (_SENT - numbers).tolist(), strict=True))
