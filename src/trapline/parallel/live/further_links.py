"""Further links to pages of other partitions: links whose target its owner has, because we sent the URL before.

All partitions of a crawl compute fingerprints of URLs with one secret key (`seen_key` in parallel.json). A partition sends the URL of
a page once, and then its fingerprint: no URL is made, sorted or parsed for a further link. These rules make that safe:

- A fingerprint goes only to the partition that was sent the URL in this run, in an earlier message batch or in the same one. Batches are
  delivered once and in order, so the receiver has the URL. What a partition has sent is in memory alone
  (crawler/discovery/link_resolver.py): after a restart, or if the memory has forgotten, it sends the URL again.
- It goes only to the owner of the page, and only if that cannot change. A link to a host that is not settled goes to its registrar, as a
  URL.
- A receiver keeps every URL that it gets. Either its page is known, or it is in the table `unplaced_url`: out of scope here, because the
  news of a wider scope are on their way; or of a site that moved, because the crawl has grown since the link was sent. A fingerprint
  of such a URL is replaced by the URL, and treated as if the URL had come.
- A URL is not kept if its site has too many known pages. The links to it are dropped, as before.

This module gathers further links to send, and finds the pages of those that arrive. `LinkExchange` does the rest.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.frontier.core.arrivals import Arrivals
from trapline.frontier.layout import DEEPEST
from trapline.parallel.transport.url_batches import FurtherLinks, LinkRow


class ArrivedLinks(NamedTuple):
    ours: Arrivals  # links to our pages
    others: list[LinkRow]  # links to URLs about which scope or ownership must decide first


class FurtherLinkExchange:
    def __init__(self, link_resolver: LinkResolver, unplaced: Mapping[int, str]) -> None:
        """`unplaced`: the URLs in the table `unplaced_url`, by fingerprint."""
        self._link_resolver, self._unplaced = link_resolver, dict(unplaced)
        self._gathered: list[tuple[int, int, int, float]] = []  # receiver, fingerprint, depth, share
        self._fresh: dict[int, str] = {}  # unplaced URLs that are not on disk

    @property
    def has_news(self) -> bool:
        return bool(self._gathered or self._fresh)

    # ---- out

    def add(self, further: Mapping[int, int], depth: int, share: float) -> None:
        """Gather links. `further`: the receivers, by the fingerprints of the URLs."""
        self._gathered += [(receiver, fingerprint, depth, share) for fingerprint, receiver in further.items()]

    def take(self) -> dict[int, FurtherLinks]:
        """Remove and return the links, by receiver."""
        if not self._gathered:
            return {}
        receivers, *columns = map(np.array, zip(*self._gathered, strict=True))
        self._gathered = []
        return {
            receiver: _summed(*(column[receivers == receiver] for column in columns))
            for receiver in np.unique(receivers).tolist()
        }

    def sent(self, urls: Sequence[str], partition: int) -> None:
        """Note that a message batch for the partition, which owns the pages, has these URLs."""
        self._link_resolver.foreign.sent(urls, partition)

    # ---- in

    def keep(self, urls: Sequence[str]) -> None:
        """Keep URLs that were sent to us and are no pages of ours: their fingerprints may follow."""
        new = dict(zip(self._link_resolver.fingerprints(urls), urls, strict=True))
        self._fresh |= {fingerprint: url for fingerprint, url in new.items() if fingerprint not in self._unplaced}
        self._unplaced |= new

    def take_kept(self) -> list[tuple[int, str]]:
        """Return the rows for the table `unplaced_url`."""
        fresh, self._fresh = self._fresh, {}
        return list(fresh.items())

    def arrived(self, further: FurtherLinks) -> ArrivedLinks:
        pages = self._link_resolver.arrived_again(further.fingerprints)
        is_ours = pages >= 0
        ours = (column[is_ours] for column in (pages, further.links, further.shares, further.depths))
        return ArrivedLinks(
            Arrivals(*ours), [] if is_ours.all() else self._rows(further, np.flatnonzero(~is_ours).tolist())
        )

    def _rows(self, further: FurtherLinks, places: list[int]) -> list[LinkRow]:
        known = self._link_resolver.known_urls(further.fingerprints[places])
        found = []
        for at in places:
            fingerprint = int(further.fingerprints[at])
            url = known.get(fingerprint) or self._unplaced.get(fingerprint)
            if url is not None:
                numbers = int(further.links[at]), int(further.depths[at]), float(further.shares[at])
                found.append(LinkRow(url.encode(), *numbers))
        return found


def _summed(fingerprints: np.ndarray, depths: np.ndarray, shares: np.ndarray) -> FurtherLinks:
    """Return one row for each URL."""
    found, at = np.unique(fingerprints, return_inverse=True)
    least = np.full(len(found), DEEPEST)
    np.minimum.at(least, at, depths)
    return FurtherLinks(found, least, np.bincount(at), np.bincount(at, shares))
