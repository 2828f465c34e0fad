"""What is known: links as they stand on a page go in, page ids come out. Steps 1 and 2 of the way of a URL.

It makes URLs canonical, leaves out what the scope does not admit, finds the pages seen before, and registers new pages and sites
with the frontier. It does not fetch, and does not know why a page is wanted.

Most links were met before and are found as they stand (seen/lookup.py). What follows here is for the others, and bounded for each page and
each site, so that no page stops a crawl and no site fills its disk (docs/decisions/034).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from trapline.crawl.outbox import Outbox
from trapline.crawl.records import FULL, TOO_MANY
from trapline.crawl.scope import REASONS, Scope
from trapline.crawl.seen import NO_PAGE, UNKNOWN, Lookup, Seen
from trapline.crawl.shelf import Shelf
from trapline.crawl.sites import Site, Sites
from trapline.fetch.links import Links
from trapline.fetch.urls import canonical, is_dynamic, origin, plain
from trapline.frontier import Frontier
from trapline.frontier.layout import ELSEWHERE, Array

MOST_NEW = 8_192  # links of one page that are found out, and that are told to other partitions; the rest once a page leads there again
MOST_NEW_BYTES = 1 << 20  # of the URLs of these
KNOWN_PER_FETCHED = 10  # a site may have this many times as many known pages as may be fetched of it (--pages-per-site)

# What is remembered of such a link.
_LEFT_OUT = {reason: NO_PAGE - 1 - number for number, reason in enumerate((*REASONS, FULL))}
_REASON = {number: reason for reason, number in _LEFT_OUT.items()}
_FOREIGN = min(_LEFT_OUT.values()) - 1  # another partition owns it
_UNSETTLED = _FOREIGN - 1  # nobody knows yet who does: for now it is another's, and this is not remembered
Values = Callable[[Sequence[str]], Sequence[float]]


class Found(NamedTuple):
    """Where the links of a page lead."""

    pages: Array  # each once, in order; then one ELSEWHERE for each of `foreign`
    foreign: Sequence[str] = ()  # URLs that other partitions own


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
        owns: Callable[[str], bool | None] | None = None,
    ) -> None:
        """`inputs`: what the page rank wants to know of new pages. `locate` answers the group of a new site, or UNRESOLVED.
        `left_out` counts links that are not to be crawled, by reason. `owns`: whether a site is ours, by its origin, and None
        where that is ours to find out; without it all are."""
        self._frontier, self.sites, self._seen, self._shelf = frontier, sites, seen, shelf
        self._scope, self._outbox, self._inputs, self._locate = scope, outbox, inputs, locate
        self._left_out, self._owns, self._lookup = left_out, owns, Lookup(seen)
        self._moved: frozenset[int] = frozenset()
        self._moved_pages = 0
        self._most_of_site = KNOWN_PER_FETCHED * frontier.rules.pages_per_site  # 0: no limit

    def pages_of(self, url: str, base: str, links: Links, now: float) -> Found:
        """Where the links of the page at `url` lead. `base`: what the page itself says that they are relative to; "": nothing."""
        seen_from = (canonical(base, url) or url) if base else url
        pages, unknown = self._lookup.find(links, seen_from.encode())
        found: list[int] = pages.tolist()
        if unknown:
            self._find_out(found, links, seen_from, now)
        if self._moved:
            self._see_moved(found)
        foreign: list[str] = []
        if found and min(found) < 0:
            if self._owns is not None:
                foreign = self._foreign(found, links, seen_from)
            for page in found:
                if _FOREIGN < page < NO_PAGE:
                    self._left_out[_REASON[page]] += 1
            self._left_out.update({TOO_MANY: found.count(UNKNOWN)} if UNKNOWN in found else {})
            found = [page for page in found if page >= 0]
        return Found(np.array([*dict.fromkeys(found), *[ELSEWHERE] * len(foreign)], np.int32), foreign)

    def _foreign(self, pages: list[int], links: Links, base: str) -> list[str]:
        """The URLs of links that others own, each once: what is remembered of such a link is only that it is one."""
        if min(pages) > _FOREIGN:
            return []
        name, folder = _split(base)
        places = [at for at, page in enumerate(pages) if page <= _FOREIGN]
        urls: dict[str, None] = {}
        told, room = 0, MOST_NEW_BYTES
        for href in links.some(places[:MOST_NEW]):
            url = self._url(href, name, folder) or canonical(href, base) or ""
            room -= len(url)
            if room < 0:
                break
            told += 1
            urls[url] = None
        urls.pop("", None)
        self._left_out.update({TOO_MANY: len(places) - told} if told < len(places) else {})
        return list(urls)

    def leave(self, sites: Iterable[int]) -> None:
        """These sites have moved to other partitions: links to pages of theirs are links to pages of others, though we know them."""
        self._moved = frozenset(sites)
        sites_of_pages = self._frontier.state.page["site"][: self._frontier.pages]
        self._moved_pages = int(np.isin(sites_of_pages, list(self._moved)).sum())

    @property
    def own_pages(self) -> int:
        """How many pages are known, but for those that have moved."""
        return self._frontier.pages - self._moved_pages

    @property
    def own_sites(self) -> int:
        return len(self.sites) - len(self._moved)

    def _see_moved(self, pages: list[int]) -> None:
        sites = self._frontier.state.page["site"][np.maximum(pages, 0)].tolist()
        for at, site in enumerate(sites):
            if site in self._moved and pages[at] >= 0:
                pages[at] = _FOREIGN

    def adopt(self, urls: Sequence[str], now: float) -> list[int]:
        """The page at each of these URLs, which another partition hands over to us: whatever the scope, and nobody's but ours."""
        return self._add(list(urls), self._seen.fingerprints(urls), now)

    def urls(self, pages: list[int]) -> list[str]:
        return self._shelf.urls(pages)

    def seed_pages(self, urls: Sequence[str], now: float) -> list[int]:
        """The pages at these canonical URLs that are ours, whatever the scope: it was made from them."""
        pages, _ = self._pages_at(urls, now, lambda url: "", is_seed=True)
        return list(dict.fromkeys(page for page in pages if page >= 0))

    def arrived(self, urls: Sequence[str], now: float) -> list[int]:
        """The page at each of these URLs, which another partition has met; less than 0: not to be crawled, or not ours."""
        return self._pages_at(urls, now, self._scope.admits)[0]

    def redirected(self, url: str, target: str) -> tuple[int, bool]:
        """The page at `url` redirects to a canonical URL. If that makes a seed of it: by how many redirects, else 0; and whether the
        scope is wider now."""
        redirects = self._scope.redirects_to(url, target)
        return redirects, bool(redirects) and self.add_seed(target, redirects)

    def add_seed(self, url: str, redirects: int) -> bool:
        """Count the target of a seed's redirect as a seed. Return whether the scope is wider now."""
        self._outbox.seeds.append((url, redirects))
        is_wider = self._scope.add_seed(url, redirects)
        if is_wider:
            self._lookup.forget()  # links that were left out
        return is_wider

    @property
    def redirected_seeds(self) -> Mapping[str, int]:
        """What counts as a seed beside those that were given, and by how many redirects."""
        return self._scope.redirected

    def is_ours(self, url: str) -> bool:
        """Whether what is told of the page at a canonical URL is for us to hear."""
        return self._owns is None or bool(self._owns(origin(url)))

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
        """Put the page of each link, or what is to be remembered instead, where it is unknown; for the first MOST_NEW of these, up to
        MOST_NEW_BYTES."""
        name, folder = _split(base)
        places: list[int] = []
        urls: list[str] = []
        room = MOST_NEW_BYTES
        unknown = [at for at, page in enumerate(pages) if page == UNKNOWN][:MOST_NEW]
        for at, href in zip(unknown, links.some(unknown), strict=True):
            url = self._url(href, name, folder) or canonical(href, base)
            if url is None:
                pages[at] = NO_PAGE
                self._lookup.remember(at, NO_PAGE)
            else:
                room -= len(url)
                if room < 0:
                    break
                places.append(at)
                urls.append(url)
        if urls:
            for at, page, fingerprint in zip(places, *self._pages_at(urls, now, self._scope.admits), strict=True):
                pages[at] = page
                if page != _UNSETTLED:
                    self._lookup.remember(at, page, fingerprint)

    def _url(self, href: str, name: str, folder: str) -> str | None:
        """The URL of an href that is plain, perhaps on a site that is known."""
        if href[:4] != "http":
            return plain(href, name, folder)
        end = href.find("/", 8)
        return plain(href[end:], href[:end], "/") if end > 0 and self.sites.named(href[:end]) else None

    # ---- pages by URL

    def _pages_at(
        self, urls: Sequence[str], now: float, left_out: Callable[[str], str], is_seed: bool = False
    ) -> tuple[list[int], list[int]]:
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
                elif self._owns is not None and not (ours := self._owns(origin(urls[at]))):
                    pages[at] = _UNSETTLED if ours is None else _FOREIGN
                else:
                    new.append(at)
        # A crawl that knows fewer pages than one site may have need not look at its sites.
        if new and not is_seed and 0 < self._most_of_site < self._frontier.pages + len(new):
            new = self._with_room(urls, new, pages)
        if new:
            for at, page in zip(new, self._add([urls[at] for at in new], fingerprints[new], now), strict=True):
                pages[at] = page
        return pages, fingerprints.tolist()

    def _with_room(self, urls: Sequence[str], new: list[int], pages: list[int]) -> list[int]:
        """Those of the new URLs whose site may have more pages; the others are left out."""
        kept: list[int] = []
        rooms: dict[str, int] = {}
        for at in new:
            name = origin(urls[at])
            room = rooms.get(name)
            if room is None:
                site = self.sites.named(name)
                room = self._most_of_site - (self._frontier.known_pages(site.id) if site else 0)
            if room > 0:
                kept.append(at)
            else:
                pages[at] = _LEFT_OUT[FULL]
            rooms[name] = room - 1
        if min(rooms.values()) < 0:  # a URL that stands here twice is not full the second time
            had = {urls[at] for at in kept}
            kept = [at for at in new if urls[at] in had]
        return kept

    def _add(self, urls: list[str], fingerprints: Array, now: float) -> list[int]:
        """Register those that are new; the page of each. One URL may stand here twice."""
        first = self._frontier.pages
        numbers = np.empty(len(urls), np.int32)
        self._seen.add(fingerprints, first, numbers)
        pages: list[int] = numbers.tolist()
        new = list(dict.fromkeys(url for url, page in zip(urls, pages, strict=True) if page >= first))
        owners = self._owners(new, now)
        self._frontier.add_pages(np.array(owners, np.int32), np.array([is_dynamic(url) for url in new], np.int32))
        for name, values in self._inputs.items():
            self._frontier.set_column(name, values(new), first)
        for page, (owner, url) in enumerate(zip(owners, new, strict=True), first):
            self._shelf.put(page, url)
            self._outbox.pages.append((page, owner, url))
        return pages

    def _owners(self, urls: list[str], now: float) -> list[int]:
        """The site of each URL. Those that are new are registered at one go: one by one, a site takes the time of eight pages."""
        owners: list[int] = []
        groups: list[int] = []
        for url in urls:
            name = origin(url)
            site = self.sites.named(name)
            if site is None:
                site = self.sites.add(name)
                self._outbox.sites.append((site.id, name))
                groups.append(self._locate(site))
            owners.append(site.id)
        if groups:
            self._frontier.add_sites(len(groups), now, groups)
        return owners


def _split(url: str) -> tuple[str, str]:
    """
    >>> _split("http://a.org/b/c?d/e")
    ('http://a.org', '/b/')
    """
    name = origin(url)
    path = url[len(name) :].partition("?")[0]
    return name, path[: path.rfind("/") + 1]
