"""What is known: links as they stand on a page go in, page ids come out. Steps 1 and 2 of the way of a URL.

It makes URLs canonical, leaves out what the scope does not admit, finds the pages seen before, and registers new pages and sites
with the frontier. It does not fetch, and does not know why a page is wanted.

Most links were met before, so there are two memories, both bounded: each site remembers its hrefs that begin with a slash, which mean
the same on all its pages and are found without making a URL of them; and all share one of URLs, which spares the hash and the look
into the table of seen URLs.
"""

from collections.abc import Callable, Sequence

import numpy as np

from trapline.crawl.outbox import Outbox
from trapline.crawl.scope import Scope
from trapline.crawl.seen import Seen, fingerprints
from trapline.crawl.shelf import Shelf
from trapline.crawl.sites import Site, Sites
from trapline.fetch.urls import canonical, is_dynamic, origin, plain
from trapline.frontier import Frontier
from trapline.frontier.layout import Array

NOT_OURS = -1
MOST_HREFS = 1 << 16  # of all sites together: some 10 MB
LONGEST_HREF = 256  # that is remembered: an attribute may be as long as a page
MOST_URLS = 1 << 16  # some 12 MB
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
    ) -> None:
        """`inputs`: what the page rank wants to know of new pages. `locate` answers the group of a new site, or UNRESOLVED."""
        self._frontier, self.sites, self._seen, self._shelf = frontier, sites, seen, shelf
        self._scope, self._outbox, self._inputs, self._locate = scope, outbox, inputs, locate
        self._urls: dict[str, int] = {}
        self._hrefs = 0  # that sites remember
        self.left_out: dict[str, int] = {}  # links that are not to be crawled, by reason

    def pages_of(self, site: Site, url: str, base: str, hrefs: Sequence[str], now: float) -> list[int]:
        """The pages that the hrefs of a page at `url` lead to, each once, in order. `base`: what the page itself says that they are
        relative to; "": nothing, and then its site remembers them."""
        memory = site.hrefs
        if memory is None:
            memory = site.hrefs = {}
        if base:
            base = canonical(base, url) or url
            ids: list[int | None] = [None] * len(hrefs)
        else:
            ids = list(map(memory.get, hrefs))
        if None in ids:
            self._fill(ids, hrefs, base or url, now)
            if not base:
                self._remember(memory, hrefs, ids)
        found = dict.fromkeys(ids)
        found.pop(NOT_OURS, None)
        return list(found)  # type: ignore[arg-type]  # no None is left

    def seed_pages(self, urls: Sequence[str], now: float) -> list[int]:
        """The pages at these canonical URLs, whatever the scope: it was made from them."""
        return list(dict.fromkeys(self._page_ids(urls, now, lambda url: "")))

    def group(self, address: str) -> int:
        """The frontier's number of an address."""
        number, new = self.sites.group(address)
        if new:
            self._outbox.addresses.append((number, address))
        return number

    def _fill(self, ids: list[int | None], hrefs: Sequence[str], base: str, now: float) -> None:
        """Put the page of each href where there is a gap."""
        name = origin(base)
        path = base[len(name) : base.find("?") if "?" in base else len(base)]
        folder = path[: path.rfind("/") + 1]
        known = self._urls
        gaps: list[int] = []
        urls: list[str] = []
        for at, page in enumerate(ids):
            if page is None:
                href = hrefs[at]
                url = href if href in known else self._url(href, name, folder) or canonical(href, base)
                ids[at] = known.get(url) if url is not None else NOT_OURS
                if ids[at] is None:
                    gaps.append(at)
                    urls.append(url)  # type: ignore[arg-type]  # else it is not ours
        if gaps:
            pages = self._page_ids(urls, now, self._left_out)
            for at, page in zip(gaps, pages, strict=True):
                ids[at] = page
            if len(known) > MOST_URLS:
                known.clear()
            known.update(zip(urls, pages, strict=True))

    def _url(self, href: str, name: str, folder: str) -> str | None:
        """The URL of an href that is plain, perhaps on a site that is known."""
        if href[:4] != "http":
            return plain(href, name, folder)
        end = href.find("/", 8)
        return plain(href[end:], href[:end], "/") if end > 0 and self.sites.named(href[:end]) else None

    def _remember(self, memory: dict[str, int], hrefs: Sequence[str], ids: list[int | None]) -> None:
        before = len(memory)
        for href, page in zip(hrefs, ids, strict=True):
            if href[:1] == "/" and len(href) <= LONGEST_HREF:
                memory[href] = page  # type: ignore[assignment]  # no None is left
        self._hrefs += len(memory) - before
        if self._hrefs > MOST_HREFS:
            for site in self.sites:
                site.hrefs = None
            self._hrefs = 0

    def _left_out(self, url: str) -> str:
        reason = self._scope.admits(url, origin(url))
        if reason:
            self.left_out[reason] = self.left_out.get(reason, 0) + 1
        return reason

    # ---- pages by URL

    def _page_ids(self, urls: Sequence[str], now: float, left_out: Callable[[str], str]) -> list[int]:
        """The page at each URL: known, new now, or NOT_OURS."""
        prints = fingerprints(list(urls))
        ids = np.empty(len(urls), np.int32)
        self._seen.find(prints, ids)
        unknown = [at for at in np.flatnonzero(ids < 0).tolist() if not left_out(urls[at])]
        if unknown:
            ids[unknown] = self._add([urls[at] for at in unknown], prints[unknown], now)
        return ids.tolist()

    def _add(self, urls: list[str], prints: Array, now: float) -> Array:
        """Register those that are new; the page of each. One URL may stand here twice."""
        first = self._frontier.pages
        ids = np.empty(len(urls), np.int32)
        self._seen.add(prints, first, ids)
        new = list(dict.fromkeys(url for url, page in zip(urls, ids.tolist(), strict=True) if page >= first))
        owners = [self._site_of(url, now).id for url in new]
        self._frontier.add_pages(np.array(owners, np.int32), np.array([is_dynamic(url) for url in new], np.int32))
        for name, values in self._inputs.items():
            self._frontier.set_column(name, values(new), first)
        for page, (owner, url) in enumerate(zip(owners, new, strict=True), first):
            self._shelf.put(page, url)
            self._outbox.pages.append((page, owner, url))
        return ids

    def _site_of(self, url: str, now: float) -> Site:
        name = origin(url)
        site = self.sites.named(name)
        if site is None:
            site = self.sites.add(name)
            self._outbox.sites.append((site.id, name))
            self._frontier.add_sites(1, now, [self._locate(site)])
        return site
