"""The link resolver: turns links as written on a page into page ids. Steps 1 and 2 in docs/architecture.md.

The resolver rejects URLs that the scope does not admit, finds pages seen before, and registers new pages and sites with
the frontier. It fetches nothing, and does not know why a page is wanted.

Most links were seen before, and seen/table.py finds them without making a URL of them. This module handles the others, whose
URLs link_urls.py makes; links to pages of other partitions are handled by foreign_links.py. The work is bounded for each page
and each site, so that no page stops a crawl and no site fills its disk (docs/decisions/034).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from trapline.crawler.discovery.extra_pages import ExtraPages
from trapline.crawler.discovery.foreign_links import (
    FOREIGN,
    LOOKUP_SLOTS,
    NO_FURTHER,
    UNSETTLED,
    ForeignLinks,
    owners_of,
)
from trapline.crawler.discovery.link_urls import LinkUrls
from trapline.crawler.discovery.scope import REASONS, Scope
from trapline.crawler.discovery.seen import LINKS_ELSEWHERE, NO_PAGE, UNKNOWN, Lookup, SeenTable
from trapline.crawler.discovery.sites import Site, Sites
from trapline.crawler.discovery.url_store import UrlStore
from trapline.crawler.engine.records import FULL, TOO_MANY
from trapline.crawler.store.outbox import Outbox
from trapline.fetch.html.page import Links
from trapline.fetch.urls import canonical, is_dynamic, origin
from trapline.frontier import Frontier
from trapline.frontier.layout import ELSEWHERE, Array
from trapline.frontier.layout import UNKNOWN as UNKNOWN_PAGE
from trapline.strategies.base.live_inputs import Values
from trapline.strategies.base.url_inputs import STATE_PAGES, StatePages

# Most known pages of a site, as a multiple of the pages that may be fetched from it (--max-pages-per-site).
KNOWN_PER_FETCHED = 10

# Numbers below NO_PAGE, and above FOREIGN, that the lookup remembers in place of a page: why a link was rejected.
_REJECTED = {reason: NO_PAGE - 1 - number for number, reason in enumerate((*REASONS, FULL))}
_REASON = {number: reason for reason, number in _REJECTED.items()}


class ResolvedLinks(NamedTuple):
    """The targets of the links of a page."""

    pages: Array  # each page once, in order; then one ELSEWHERE for each page of another partition
    foreign: Sequence[str] = ()  # URLs that other partitions own
    further: Mapping[int, int] = NO_FURTHER  # the others that they own, whose URLs they have: fingerprint -> owner

    @property
    def own(self) -> Array:
        return self.pages[: len(self.pages) - len(self.foreign) - len(self.further)]

    @property
    def has_foreign(self) -> bool:
        """Whether a link leads to a page of another partition."""
        return bool(self.foreign or self.further)


class LinkResolver:
    """Finds pages and sites by their URLs."""

    def __init__(
        self,
        frontier: Frontier,
        sites: Sites,
        seen: SeenTable,
        url_store: UrlStore,
        scope: Scope,
        outbox: Outbox,
        inputs: dict[str, Values],
        locate: Callable[[Site], int],
        rejected_links: Counter[str],
        owns: Callable[[str], bool | None] | None = None,
    ) -> None:
        """`inputs`: the inputs of the page rank for new pages. `locate`: returns the group of a new site, or UNRESOLVED.
        `rejected_links`: counts rejected links by reason. `owns`: returns whether this partition owns the page at a URL, or
        None if this partition has to find out; without `owns`, all pages are ours."""
        self._frontier, self.sites, self._seen, self._url_store = frontier, sites, seen, url_store
        self._scope, self._outbox, self._inputs, self._locate = scope, outbox, inputs, locate
        self._rejected_links, self._owns = rejected_links, owns
        self._lookup = Lookup(seen) if owns is None else Lookup(seen, LOOKUP_SLOTS)
        self._link_urls = LinkUrls(sites)
        self.foreign = ForeignLinks(frontier, seen, self._lookup, self._link_urls, rejected_links)
        self._state_pages = _state_pages(frontier, url_store)
        self.extra_pages = ExtraPages(frontier, self._lookup.mark)
        outbox.before_flush = self.extra_pages.tell_new_pages
        self._rejected_extras: dict[int, int] = {}  # by extra page: the number that stands for its rejection
        self.most_of_site = KNOWN_PER_FETCHED * frontier.rules.pages_per_site  # 0: no limit

    def pages_of(self, url: str, base: str, links: Links, now: float, wants_urls: bool = False) -> ResolvedLinks:
        """Resolve the links of the page at `url`. `base`: the base URL that the page declares (<base>); "": none. `wants_urls`:
        return the URLs of all pages of other partitions, also of those whose owners have them."""
        base_url = (canonical(base, url) or url) if base else url
        wants_urls = wants_urls and self._owns is not None
        pages, elsewhere = self._lookup.find(links, base_url.encode(), not (self.foreign.moved_sites or wants_urls))
        if elsewhere >= 0:
            return _with_further(pages, self._lookup.elsewhere(elsewhere)) if elsewhere else ResolvedLinks(pages.copy())
        found: list[int] = pages.tolist()
        for at in self.extra_pages.among(found):
            found[at] = self._page_of_extra(found[at])
        made = self._resolve_unknown(found, links, base_url, now) if UNKNOWN in found else {}
        if found and self.foreign.moved_sites:
            self.foreign.mark_moved(found)
        foreign: Sequence[str] = ()
        further: Mapping[int, int] = NO_FURTHER
        if found and (lowest := min(found)) < 0:
            if lowest <= FOREIGN:
                further = NO_FURTHER if lowest > LINKS_ELSEWHERE or wants_urls else self.foreign.further(found)
                foreign = self.foreign.urls(found, links, base_url, further, wants_urls, made)
            for page in found:
                if FOREIGN < page < NO_PAGE:
                    self._rejected_links[_REASON[page]] += 1
            self._rejected_links.update({TOO_MANY: found.count(UNKNOWN)} if UNKNOWN in found else {})
            found = [page for page in found if page >= 0]
        others = [ELSEWHERE] * (len(foreign) + len(further))
        return ResolvedLinks(np.array([*dict.fromkeys(found), *others], np.int32), foreign, further)

    @property
    def own_pages(self) -> int:
        """Number of known pages, without those that have moved to other partitions."""
        return self._frontier.pages - self.foreign.moved_pages

    @property
    def own_sites(self) -> int:
        return len(self.sites) - self.foreign.moved_sites

    def adopt(self, urls: Sequence[str], now: float) -> list[int]:
        """Return the page at each of these URLs, which another partition hands over to us, or which we fetch in its place.
        Neither the scope nor the owner is checked."""
        return self._add(list(urls), self._seen.fingerprints(urls), now)

    def urls(self, pages: list[int]) -> list[str]:
        return self._url_store.urls(pages)

    def seed_pages(self, urls: Sequence[str], now: float) -> list[int]:
        """Return the pages at these canonical URLs that are ours. The scope is not checked, because it follows from the seeds."""
        pages, _ = self._pages_at(urls, now, lambda url: "", is_seed=True)
        for page in pages:
            self.extra_pages.link(page)
        return list(dict.fromkeys(page for page in pages if page >= 0))

    def arrived(self, urls: Sequence[str], now: float) -> list[int]:
        """Return the page at each of these URLs, which another partition has found. Below 0: it is rejected, or not ours."""
        return self._pages_at(urls, now, self._scope.admits)[0]

    def arrived_again(self, fingerprints: Array) -> Array:
        """Return the page of ours at each URL with these fingerprints, which another partition has found. Below 0: none, or the scope
        must decide about it."""
        found = np.empty(len(fingerprints), np.int32)
        self._seen.find(fingerprints, found)
        if self.foreign.moved_sites:
            found[self.foreign.has_moved(found)] = UNKNOWN
        for at in self.extra_pages.among(found.tolist()):
            found[at] = self._page_of_extra(int(found[at]))
        return found

    def known_urls(self, fingerprints: Array) -> dict[int, str]:
        """Return the URLs of the known pages with these fingerprints, whoever owns them."""
        found = np.empty(len(fingerprints), np.int32)
        self._seen.find(fingerprints, found)
        known = found >= 0
        return dict(zip(fingerprints[known].tolist(), self._url_store.urls(found[known].tolist()), strict=True))

    def fingerprints(self, urls: Sequence[str]) -> list[int]:
        found: list[int] = self._seen.fingerprints(urls).tolist()
        return found

    def is_out_of_scope(self, page: int) -> bool:
        """Return whether a number below 0 that `arrived` returned stands for a URL out of scope. The scope may become wider."""
        return page in _REASON and _REASON[page] != FULL

    def redirected(self, url: str, target: str) -> tuple[int, bool]:
        """Note that the page at `url` redirects to the canonical URL `target`. Return the number of redirects from a seed if
        that makes `target` a seed too, else 0; and whether the scope is wider now."""
        redirects = self._scope.redirects_to(url, target)
        return redirects, bool(redirects) and self.add_seed(target, redirects)

    def add_seed(self, url: str, redirects: int) -> bool:
        """Count a URL as a seed: the target of a seed's redirect, or with 0 `redirects` one that the user has added. Return whether the
        scope is wider now."""
        self._outbox.seeds.append((url, redirects))
        is_wider = self._scope.add_seed(url, redirects)
        if is_wider:
            self._lookup.forget()  # links rejected before may be in scope now
            self._rejected_extras.clear()
        return is_wider

    @property
    def redirected_seeds(self) -> Mapping[str, int]:
        """URLs that count as seeds besides the given ones, with their number of redirects."""
        return self._scope.redirected

    @property
    def scope_followed(self) -> Sequence[str]:
        """Hosts or domains that are in scope because a seed redirects there."""
        return self._scope.followed

    def is_ours(self, url: str) -> bool:
        """Return whether this partition owns the page at a canonical URL."""
        return self._owns is None or bool(self._owns(url))

    def find(self, urls: Sequence[str]) -> list[int]:
        """Return the page at each canonical URL; -1: the URL was never seen."""
        found = np.empty(len(urls), np.int32)
        self._seen.find(self._seen.fingerprints(urls), found)
        return [max(page, -1) for page in found.tolist()]

    def listed_pages(self, urls: Sequence[str], now: float) -> list[int]:
        """Return the pages at those canonical URLs whose sites are known and that the scope admits."""
        at_known_sites = [url for url in urls if self.sites.named(origin(url)) is not None]
        pages, _ = self._pages_at(at_known_sites, now, self._scope.admits)
        return list(dict.fromkeys(page for page in pages if page >= 0))

    def entry_pages(self, urls: Sequence[str], now: float) -> tuple[list[int], Counter[str]]:
        """Return the page of each entry of a published list, below 0 if it is rejected or not ours; and the number of rejected
        entries by reason. The rules are those of links."""
        pages, _ = self._pages_at(urls, now, self._scope.admits)
        return pages, Counter(_REASON[page] for page in pages if FOREIGN < page < NO_PAGE)

    def list_page(self, url: str, now: float) -> tuple[int, str]:
        """Return the page of a sitemap or feed, below 0 if it has none here; and why it is rejected, or "". The list needs no
        room among the known pages of its site."""
        (page,), _ = self._pages_at([url], now, self._scope.admits_list, is_seed=True)
        return page, _REASON[page] if FOREIGN < page < NO_PAGE else ""

    def requisite_pages(self, urls: Sequence[str], now: float) -> list[int]:
        """Return the page of each requisite, below 0 if it is rejected or not ours. It needs no room among the known pages of its
        site."""
        return self._pages_at(urls, now, self._scope.admits_requisite, is_seed=True)[0] if urls else []

    def is_seed(self, url: str) -> bool:
        return self._scope.is_seed(url)

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Do not count the links that are rejected in this block: they were counted when their pages were fetched."""
        before = Counter(self._rejected_links)
        yield
        self._rejected_links.clear()
        self._rejected_links.update(before)

    def why_rejected(self, url: str) -> str:
        """Return why the scope rejects a canonical URL, or ""."""
        return self._scope.admits(url)

    def is_full(self, site: int) -> bool:
        """Return whether links to further pages of the site are rejected, because it has too many known pages."""
        return 0 < self.most_of_site <= self._frontier.known_pages(site)

    def group(self, address: str) -> int:
        """Return the frontier's number for an address, a new one if necessary."""
        number, new = self.sites.group(address)
        if new:
            self._outbox.addresses.append((number, address))
        return number

    def _resolve_unknown(self, pages: list[int], links: Links, base: str, now: float) -> dict[int, str]:
        """Replace UNKNOWN in `pages` by the page of the link, or by the number that stands for a rejection. This is done for
        the first MOST_NEW targets of unknown links, up to MOST_NEW_BYTES. Return the URLs that other partitions own, by place."""
        targets: list[list[int]] = []
        urls: list[str] = []
        unknown = [at for at, page in enumerate(pages) if page == UNKNOWN]
        for url, places in self._link_urls.made(links, unknown, base):
            if url is None:
                self._settle(pages, places, NO_PAGE)
            else:
                targets.append(places)
                urls.append(url)
        foreign: dict[int, str] = {}
        found = zip(urls, targets, *self._pages_at(urls, now, self._scope.admits), strict=True) if urls else ()
        for url, places, page, fingerprint in found:
            self._settle(pages, places, page, fingerprint)
            if page <= FOREIGN:
                foreign |= dict.fromkeys(places, url)
                self._link_urls.note_foreign_site(origin(url))
        return foreign

    def _settle(self, pages: list[int], places: Sequence[int], page: int, fingerprint: int = 0) -> None:
        """Note the page of the links at these places, which differ in their fragments."""
        for at in places:
            pages[at] = page
            if page != UNSETTLED:
                self._lookup.remember(at, page, fingerprint)

    # ---- pages by URL

    def _pages_at(
        self, urls: Sequence[str], now: float, why_rejected: Callable[[str], str], is_seed: bool = False
    ) -> tuple[list[int], list[int]]:
        """Return the page at each URL, known or new, or a number below 0 if it has none here; and the fingerprints of the URLs.
        `why_rejected`: returns the reason to reject a URL, or ""."""
        fingerprints = self._seen.fingerprints(urls)
        found = np.empty(len(urls), np.int32)
        self._seen.find(fingerprints, found)
        pages: list[int] = found.tolist()
        new = []
        for at, page in enumerate(pages):
            if page < 0:
                reason = why_rejected(urls[at])
                if reason:
                    pages[at] = _REJECTED[reason]
                elif self._owns is not None and not (ours := self._owns(urls[at])):
                    pages[at] = UNSETTLED if ours is None else FOREIGN
                else:
                    new.append(at)
        if not is_seed:
            for at in self.extra_pages.among(pages):
                pages[at] = self._page_of_extra(pages[at])
        # A crawl that knows fewer pages in all than one site may have need not check its sites.
        if new and not is_seed and 0 < self.most_of_site < self._frontier.pages + len(new):
            new = self._with_room(urls, new, pages)
        if new:
            for at, page in zip(new, self._add([urls[at] for at in new], fingerprints[new], now), strict=True):
                pages[at] = page
        return pages, fingerprints.tolist()

    def _page_of_extra(self, page: int) -> int:
        """Return the page that a link to an extra page leads to: itself, or a number below 0. The scope was not asked about it
        before, or not as about a page."""
        if self.extra_pages.is_fetched(page):
            return NO_PAGE
        if self._frontier.page_state(page) == UNKNOWN_PAGE:
            rejection = self._rejected_extras.get(page)
            if rejection is None:
                reason = self._scope.admits(self._url_store.urls([page])[0])
                rejection = self._rejected_extras[page] = _REJECTED[reason] if reason else 0
            if rejection:
                return rejection
        self.extra_pages.link(page)
        return page

    def _with_room(self, urls: Sequence[str], new: list[int], pages: list[int]) -> list[int]:
        """Return those of the new URLs whose site may have more pages. The others are rejected."""
        kept: list[int] = []
        rooms: dict[str, int] = {}
        for at in new:
            name = origin(urls[at])
            room = rooms.get(name)
            if room is None:
                site = self.sites.named(name)
                room = self.most_of_site - (self._frontier.known_pages(site.id) if site else 0)
            if room > 0:
                kept.append(at)
            else:
                pages[at] = _REJECTED[FULL]
            rooms[name] = room - 1
        if min(rooms.values()) < 0:  # a URL that is in the list twice needs room only once
            kept_urls = {urls[at] for at in kept}
            kept = [at for at in new if urls[at] in kept_urls]
        return kept

    def _add(self, urls: list[str], fingerprints: Array, now: float) -> list[int]:
        """Register the new ones of these URLs. Return the page of each. A URL may be in the list twice."""
        first = self._frontier.pages
        numbers = np.empty(len(urls), np.int32)
        self._seen.add(fingerprints, first, numbers)
        pages: list[int] = numbers.tolist()
        new = list(dict.fromkeys(url for url, page in zip(urls, pages, strict=True) if page >= first))
        owners = self._owners(new, now)
        self._frontier.add_pages(np.array(owners, np.int32), np.array([is_dynamic(url) for url in new], np.int32))
        for name, values in self._inputs.items():
            self._frontier.set_column(name, values(new), first)
        for name, state_pages in self._state_pages.items():
            self._frontier.set_column(name, state_pages.of(new, first), first)
        for page, (owner, url) in enumerate(zip(owners, new, strict=True), first):
            self._url_store.put(page, url)
            self._outbox.pages.append((page, owner, url))
        return pages

    def _owners(self, urls: list[str], now: float) -> list[int]:
        """Return the site of each URL. New sites are registered by one call: one by one, a site takes as long as eight pages."""
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
            first = self._frontier.add_sites(len(groups), now, groups)
            if self.sites.has_tables:
                self._apply_settings(first, now)
        return owners

    def _apply_settings(self, first: int, now: float) -> None:
        """Pass the settings of the new sites, from number `first` on, to the frontier."""
        for number in range(first, len(self.sites)):
            own = self.sites[number].settings
            if own is not None:
                delay_s, k, pages = own.delay_s, own.per_connection, own.max_pages
                self._frontier.set_site(number, now, delay_s=delay_s, per_connection=k, pages=pages)


def _with_further(pages: Array, fingerprints: list[int]) -> ResolvedLinks:
    """Return the targets of the links of a page, none of which needs a URL. `pages`: the distinct pages, and then the number of the link
    with each fingerprint."""
    distinct = len(pages) - len(fingerprints)
    further = owners_of(fingerprints, pages[distinct:])
    found = np.full(distinct + len(further), ELSEWHERE, np.int32)
    found[:distinct] = pages[:distinct]
    return ResolvedLinks(found, (), further)


def _state_pages(frontier: Frontier, url_store: UrlStore) -> dict[str, StatePages]:
    """Return the pages that keep the state of sites or directories, by input, for a page rank that has such inputs. The pages of an
    earlier run are found by their columns: such a page is its own."""
    found = {}
    for name in frontier.strategy.page.inputs:
        if name in STATE_PAGES:
            found[name] = StatePages(name)
            column = frontier.column(frontier.strategy.page.columns.index(name))[: frontier.pages]
            pages = np.flatnonzero(column == np.arange(frontier.pages)).tolist()
            found[name].restore(pages, url_store.urls(pages))
    return found
