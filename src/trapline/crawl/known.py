"""What is known: links as they stand on a page go in, page ids come out. Steps 1 and 2 of the way of a URL.

It makes URLs canonical, leaves out what the scope does not admit, finds the pages seen before, and registers new pages and sites
with the frontier. It does not fetch, and does not know why a page is wanted.

Most links were met before and are found as they stand (seen/lookup.py). What follows here is for the others.
"""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from trapline.crawl.outbox import Outbox
from trapline.crawl.scope import REASONS, Scope
from trapline.crawl.seen import NO_PAGE, UNKNOWN, Lookup, Seen
from trapline.crawl.shelf import Shelf
from trapline.crawl.sites import Site, Sites
from trapline.fetch.links import Links
from trapline.fetch.urls import canonical, is_dynamic, origin, plain
from trapline.frontier import Frontier
from trapline.frontier.layout import Array

_LEFT_OUT = {reason: NO_PAGE - 1 - number for number, reason in enumerate(REASONS)}  # what is remembered of such a link
_REASON = {number: reason for reason, number in _LEFT_OUT.items()}
Values = Callable[[Sequence[str]], Sequence[float]]


class Known:
    """Pages and sites, from their URLs."""

    def __init__(
        self,
        frontier: Frontier,
        sites: Sites,
        seen: Seen,
        shelf: Shelf,
        scope: Scope,
        outbox: Outbox,
        inputs: dict[str, Values],
        locate: Callable[[Site], int],
        left_out: Counter[str],
    ) -> None:
        """`inputs`: what the page rank wants to know of new pages. `locate` answers the group of a new site, or UNRESOLVED.
        `left_out` counts links that are not to be crawled, by reason."""
        self._frontier, self.sites, self._seen, self._shelf = frontier, sites, seen, shelf
        self._scope, self._outbox, self._inputs, self._locate = scope, outbox, inputs, locate
        self._left_out, self._lookup = left_out, Lookup(seen)

    def pages_of(self, url: str, base: str, links: Links, now: float) -> Array:
        """The pages that the links of the page at `url` lead to, each once, in order. `base`: what the page itself says that they are
        relative to; "": nothing."""
        seen_from = (canonical(base, url) or url) if base else url
        pages, unknown = self._lookup.find(links, seen_from.encode())
        found: list[int] = pages.tolist()
        if unknown:
            self._find_out(found, links, seen_from, now)
        if found and min(found) < 0:
            for page in found:
                if page < NO_PAGE:
                    self._left_out[_REASON[page]] += 1
            found = [page for page in found if page >= 0]
        return np.array(list(dict.fromkeys(found)), np.int32)

    def seed_pages(self, urls: Sequence[str], now: float) -> list[int]:
        """The pages at these canonical URLs, whatever the scope: it was made from them."""
        pages, _ = self._pages_at(urls, now, lambda url: "")
        return list(dict.fromkeys(pages))

    def find(self, urls: Sequence[str]) -> list[int]:
        """The page at each canonical URL; -1: it was never met."""
        found = np.empty(len(urls), np.int32)
        self._seen.find(self._seen.fingerprints(urls), found)
        return [max(page, -1) for page in found.tolist()]

    def told_pages(self, urls: Sequence[str], now: float) -> list[int]:
        """The pages at these canonical URLs, as far as their sites are known and the scope admits them."""
        told = [url for url in urls if self.sites.named(origin(url)) is not None]
        pages, _ = self._pages_at(told, now, self._scope.admits)
        return list(dict.fromkeys(page for page in pages if page >= 0))

    def group(self, address: str) -> int:
        """The frontier's number of an address."""
        number, new = self.sites.group(address)
        if new:
            self._outbox.addresses.append((number, address))
        return number

    def _find_out(self, pages: list[int], links: Links, base: str, now: float) -> None:
        """Put the page of each link, or what is to be remembered instead, where it is unknown."""
        name = origin(base)
        path = base[len(name) :].partition("?")[0]
        folder = path[: path.rfind("/") + 1]
        places: list[int] = []
        urls: list[str] = []
        for at, page in enumerate(pages):
            if page == UNKNOWN:
                href = links[at]
                url = self._url(href, name, folder) or canonical(href, base)
                if url is None:
                    pages[at] = NO_PAGE
                    self._lookup.remember(at, NO_PAGE)
                else:
                    places.append(at)
                    urls.append(url)
        if urls:
            for at, page, fingerprint in zip(places, *self._pages_at(urls, now, self._scope.admits), strict=True):
                pages[at] = page
                self._lookup.remember(at, page, fingerprint)

    def _url(self, href: str, name: str, folder: str) -> str | None:
        """The URL of an href that is plain, perhaps on a site that is known."""
        if href[:4] != "http":
            return plain(href, name, folder)
        end = href.find("/", 8)
        return plain(href[end:], href[:end], "/") if end > 0 and self.sites.named(href[:end]) else None

    # ---- pages by URL

    def _pages_at(self, urls: Sequence[str], now: float, left_out: Callable[[str], str]) -> tuple[list[int], list[int]]:
        """The page at each URL: known, new now, or by a number of _LEFT_OUT why not; and their fingerprints."""
        fingerprints = self._seen.fingerprints(urls)
        found = np.empty(len(urls), np.int32)
        self._seen.find(fingerprints, found)
        pages: list[int] = found.tolist()
        new = []
        for at, page in enumerate(pages):
            if page < 0:
                reason = left_out(urls[at])
                if reason:
                    pages[at] = _LEFT_OUT[reason]
                else:
                    new.append(at)
        if new:
            for at, page in zip(new, self._add([urls[at] for at in new], fingerprints[new], now), strict=True):
                pages[at] = page
        return pages, fingerprints.tolist()

    def _add(self, urls: list[str], fingerprints: Array, now: float) -> list[int]:
        """Register those that are new; the page of each. One URL may stand here twice."""
        first = self._frontier.pages
        numbers = np.empty(len(urls), np.int32)
        self._seen.add(fingerprints, first, numbers)
        pages: list[int] = numbers.tolist()
        new = list(dict.fromkeys(url for url, page in zip(urls, pages, strict=True) if page >= first))
        owners = [self._site_of(url, now).id for url in new]
        self._frontier.add_pages(np.array(owners, np.int32), np.array([is_dynamic(url) for url in new], np.int32))
        for name, values in self._inputs.items():
            self._frontier.set_column(name, values(new), first)
        for page, (owner, url) in enumerate(zip(owners, new, strict=True), first):
            self._shelf.put(page, url)
            self._outbox.pages.append((page, owner, url))
        return pages

    def _site_of(self, url: str, now: float) -> Site:
        name = origin(url)
        site = self.sites.named(name)
        if site is None:
            site = self.sites.add(name)
            self._outbox.sites.append((site.id, name))
            self._frontier.add_sites(1, now, [self._locate(site)])
        return site
