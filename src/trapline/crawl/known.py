"""What is known: links as they stand on a page go in, page ids come out. Steps 1 and 2 of the way of a URL.

It makes URLs canonical, leaves out what the scope does not admit, finds the pages seen before, and registers new pages and sites
with the frontier. It does not fetch, and does not know why a page is wanted.

Most hrefs of a page were met before on the same site, so each site remembers what became of them: href -> page id. That spares
the join, the hash and the look into the table of seen URLs.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from trapline.crawl.outbox import Outbox
from trapline.crawl.scope import Scope
from trapline.crawl.seen import Seen, fingerprints
from trapline.crawl.shelf import Shelf
from trapline.crawl.sites import Site, Sites
from trapline.fetch.urls import canonical, is_dynamic, origin, plain
from trapline.frontier import Frontier

NOT_OURS = -1
HREFS_OF_A_SITE = 4096
HREFS_IN_ALL = 1 << 17  # some 20 MB
Values = Callable[[Sequence[str]], Sequence[float]]


class _Lookup(NamedTuple):
    at: int  # its place on the page
    key: str  # what its site remembers it by; "": not at all
    url: str


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
        self._remembered = 0
        self.left_out: dict[str, int] = {}  # links that are not to be crawled, by reason

    def pages_of(self, site: Site, url: str, base: str, hrefs: Sequence[str], now: float) -> list[int]:
        """The pages that the hrefs of a page at `url` lead to, each once, in order. `base`: what the page itself says that they are
        relative to; "": nothing, and then its site remembers them."""
        own = not base
        base = (canonical(base, url) if base else None) or url
        memory = site.hrefs
        if memory is None:
            memory = site.hrefs = {}
        ids: list[int | None] = list(map(memory.get, hrefs)) if own else [None] * len(hrefs)
        if None in ids:
            self._look_up(memory, base, hrefs, ids, now, own)
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

    def _look_up(
        self, memory: dict[str, int], base: str, hrefs: Sequence[str], ids: list[int | None], now: float, own: bool
    ) -> None:
        """Fill the gaps in `ids`."""
        name = origin(base)
        path = base[len(name) : base.find("?") if "?" in base else len(base)]
        folder = path[: path.rfind("/") + 1]
        missing: list[_Lookup] = []
        for at, page in enumerate(ids):
            if page is not None:
                continue
            href = hrefs[at]
            key = _key(name + folder, href) if own else ""
            ids[at] = memory.get(key) if key else None
            if ids[at] is None:
                url = self._url(href, name, folder) or canonical(href, base)
                ids[at] = NOT_OURS
                if url is not None:
                    missing.append(_Lookup(at, key, url))
                elif key:
                    memory[key] = NOT_OURS
        if missing:
            pages = self._page_ids([lookup.url for lookup in missing], now, self._left_out)
            for lookup, page in zip(missing, pages, strict=True):
                ids[lookup.at] = page
            self._remember(memory, missing, pages)

    def _url(self, href: str, name: str, folder: str) -> str | None:
        """The URL of an href that is plain, perhaps on a site that is known."""
        if href[:4] != "http":
            return plain(href, name, folder)
        end = href.find("/", 8)
        return plain(href[end:], href[:end], "/") if end > 0 and self.sites.named(href[:end]) else None

    def _remember(self, memory: dict[str, int], lookups: list[_Lookup], pages: list[int]) -> None:
        before = len(memory)
        if before > HREFS_OF_A_SITE:
            memory.clear()
        memory.update((lookup.key, page) for lookup, page in zip(lookups, pages, strict=True) if lookup.key)
        self._remembered += len(memory) - before
        if self._remembered > HREFS_IN_ALL:
            for site in self.sites:
                site.hrefs = None
            self._remembered = 0

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

    def _add(self, urls: list[str], prints: "np.ndarray", now: float) -> "np.ndarray":
        """Register those that are new; the page of each. One URL may stand here twice."""
        first = self._frontier.pages
        ids = np.empty(len(urls), np.int32)
        self._seen.add(prints, first, ids)
        new = list(dict.fromkeys(url for url, page in zip(urls, ids.tolist(), strict=True) if page >= first))
        owners = [self._site_of(url, now).id for url in new]
        self._frontier.add_pages(owners, [is_dynamic(url) for url in new])
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


def _key(folder: str, href: str) -> str:
    """What a site remembers an href by: itself if it means the same on every page of the site, else with the page's folder.

    >>> _key("http://a.org/x/", "/y"), _key("http://a.org/x/", "y")
    ('/y', 'http://a.org/x/y')
    >>> _key("http://a.org/x/", "?page=2"), _key("http://a.org/x/", "mailto:me@a.org")
    ('', '')
    """
    if href.startswith(("/", "http://", "https://")):
        return href
    # A query alone is relative to the whole URL; with a colon it may be a URL of another scheme.
    return "" if href[:1] in ("", "?", "#") or ":" in href else folder + href
