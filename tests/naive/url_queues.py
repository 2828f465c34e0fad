"""The oracle of a scheduled frontier: queues of URLs with dates and reservations, in dicts, without a heap.

It knows which pages a site gives, and when. It does not know the order of sites, which belongs to the strategy.
"""

import math
from dataclasses import dataclass, field

GAP_S = 0.001  # the least time between two visits of a site


@dataclass
class Page:
    number: int
    created: float
    date: float | None  # None: never handed out yet; 0: done
    held_until: float = 0.0


@dataclass
class Site:
    pages: dict[str, Page] = field(default_factory=dict)
    removed: dict[str, int] = field(default_factory=dict)  # numbers of pages that may come back
    delay_s: float | None = None
    visited_at: float = -math.inf
    ready_at: float = -math.inf
    blocked_until: float = 0.0
    most_done: int = 0


class NaiveQueues:
    def __init__(self, delay_s: float, per_visit: int, most_reserved: float = math.inf) -> None:
        """`per_visit`: the most new pages that a site gives at once."""
        self.delay_s, self.per_visit, self.most_reserved = delay_s, per_visit, most_reserved
        self.sites: dict[str, Site] = {}
        self.numbers = 0
        self.now = 0.0

    def site(self, name: str) -> Site:
        return self.sites.setdefault(name, Site())

    def put(self, name: str, url: str, date: float | None) -> bool:
        site = self.site(name)
        page = site.pages.get(url)
        if page is not None and date is None:
            return False
        if page is None and url in site.removed:
            page = site.pages[url] = Page(site.removed.pop(url), self.now, self.now)
            if date is None:
                return True
        if page is None:
            page = site.pages[url] = Page(self.numbers, self.now, None)
            self.numbers += 1
        page.date, page.held_until = date, 0.0
        return True

    def is_open(self, name: str) -> bool:
        site = self.sites.get(name)
        if site is None or site.ready_at > self.now or site.blocked_until > self.now:
            return False
        if self._reserved(site) >= self.most_reserved:
            return False
        return not 0 < site.most_done <= sum(page.date == 0 for page in site.pages.values())

    def _reserved(self, site: Site) -> int:
        return sum(page.held_until > self.now for page in site.pages.values())

    def available(self, name: str) -> list[Page]:
        """The pages that the site would give, in order: by date, where new pages, in their order, have the date of their creation."""
        if not self.is_open(name):
            return []
        free = [page for page in self.sites[name].pages.values() if page.held_until <= self.now]
        due = sorted((p for p in free if p.date and p.date <= self.now), key=lambda page: (page.date, page.number))
        new = sorted((p for p in free if p.date is None), key=lambda page: page.number)
        new = new[: self.per_visit]
        order = []
        while due or new:
            is_due = due and (not new or due[0].date <= new[0].created)
            order.append((due if is_due else new).pop(0))
        return order

    def hand_out(self, name: str, most: int, hold_s: float) -> list[int]:
        if name not in self.sites:
            return []
        most = min(most, self.most_reserved - self._reserved(self.sites[name]))
        pages = self.available(name)[: int(max(0, most))]
        for page in pages:
            page.date = page.created if page.date is None else page.date
            page.held_until = self.now + hold_s
        if pages:
            self._visit(self.sites[name])
        return [page.number for page in pages]

    def _visit(self, site: Site) -> None:
        site.visited_at = self.now
        site.ready_at = max(site.ready_at, self.now + max(GAP_S, self._delay_s(site)))

    def _delay_s(self, site: Site) -> float:
        return self.delay_s if site.delay_s is None else site.delay_s

    def set_delay(self, name: str, delay_s: float) -> None:
        site = self.site(name)
        site.delay_s = delay_s
        site.ready_at = max(site.ready_at, site.visited_at + delay_s)

    def remove_site(self, name: str) -> int:
        return len(self.sites.pop(name, Site()).pages)

    def remove_older(self, than: float) -> int:
        count = 0
        for site in self.sites.values():
            for url in [url for url, page in site.pages.items() if page.created < than]:
                site.removed[url] = site.pages.pop(url).number
                count += 1
        return count

    def restart(self) -> None:
        """Every site waits for its full delay, and nothing else changes."""
        for site in self.sites.values():
            site.ready_at = max(site.ready_at, self.now + self._delay_s(site))
            site.visited_at = -math.inf
