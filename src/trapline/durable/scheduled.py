"""A durable frontier whose pages come back: it hands pages out for a time, and again at the date that the crawler names.

A visit of `DurableFrontier` lasts until the crawler finishes it. Here a visit takes no time: `hand_out` takes pages of a site, reserves
each of them until a moment, and the site's delay begins. A page comes back when its reservation ends, unless `put` has given it another
date, or none. So many crawlers can share the frontier, and reservations survive the process.

New pages come in the order of the strategy (`trapline.frontier`), all others in the order of their dates (schedule.py). Both obey the
same delays: a site without new pages gets a visit without a page of the frontier. No call commits anything but `commit`, so that many
calls share one transaction.
"""

import math
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, cast

import numpy as np

from trapline.durable.database import PageRow
from trapline.durable.folder import FrontierFolder
from trapline.durable.pages import HandedOut, PageCounts, PutPage, ScheduledPage, check_text, checked_date
from trapline.durable.schedule import DONE, MOST_DATE, NEVER, NEW, REMOVED, milliseconds
from trapline.durable.schedule_tables import REMOVED_NAME, ScheduleTables
from trapline.durable.site_closures import SiteClosures
from trapline.errors import ConfigError
from trapline.frontier import FETCHED, Outcome, Rules, Visit
from trapline.frontier.layout import WAITING, Array
from trapline.strategies import Strategy

MOST_PAGES = 1_000  # of a site that are handed out at once
# No site is handed out twice at one moment, however short its delay.
_GAP_S = 0.001


class SteadyClock:
    """The time of the system, which never goes back and never stands still, even if somebody sets the system's clock back."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._time, self._last = wall(), steady()

    def __call__(self) -> float:
        now = self._steady()
        self._time = max(self._wall(), self._time + now - self._last)
        self._last = now
        return self._time

    def raise_to(self, moment: float) -> None:
        """Go on from this moment, if it is later: an earlier process has reached it."""
        self._time = max(self._time, moment)


class ScheduledFrontier:
    """A frontier of URLs in a folder, which any number of crawlers take from.

    >>> import tempfile
    >>> frontier = ScheduledFrontier(tempfile.mkdtemp() + "/frontier")
    >>> frontier.put([PutPage("http://a.example/", "a.example"), PutPage("http://a.example/old", "a.example", date=0)])
    [True, True]
    >>> (one,) = frontier.hand_out(most=10, hold_s=60.0, sites=5)
    >>> one.site, [page.url for page in frontier.listed(one.pages)]
    ('a.example', ['http://a.example/'])
    >>> frontier.commit()
    >>> frontier.hand_out(most=10, hold_s=60.0)
    []
    >>> frontier.close()
    """

    def __init__(
        self,
        folder: str | Path,
        strategy: str | Strategy = "breadth-first-turn",
        rules: Rules | None = None,
        *,
        most_reserved: int = 0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Open the frontier in a folder, or make a new one. `rules`: `per_connection` is the most new pages that a site gives at once.
        `most_reserved`: the most pages of a site that are reserved at a time; 0: any number."""
        self._most_reserved = most_reserved or sys.maxsize
        own_clock = clock or SteadyClock()
        # No visit is measured, so nothing else would raise what a site gives at once.
        self._rules = replace(rules or Rules(), first_requests=MOST_PAGES)
        self._folder = FrontierFolder(folder, "ScheduledFrontier", strategy, self._rules, _key, own_clock)
        try:
            self._open()
        except BaseException:
            self._folder.discard()
            raise
        if isinstance(own_clock, SteadyClock):
            own_clock.raise_to(self._frontier.now)

    def _open(self) -> None:
        self._frontier, self._database = self._folder.frontier, self._folder.database
        self._folder.more_tables = self._tables = ScheduleTables(self._database.connection, self._frontier.page_sites)
        self._schedule = self._tables.schedule
        self._is_new_first = False  # in the last turn
        self._handed_out_at: dict[int, float] = {}  # by site
        _, _, dates, _ = self._schedule.arrays()
        # Pages that the frontier must forget before it is asked
        self._leaving = np.flatnonzero((self._frontier.page_states == WAITING) & (dates != NEW)).tolist()
        self._closures = SiteClosures(self._folder, self._tables, self._most_reserved)

    # ---- pages

    def put(self, pages: Sequence[PutPage]) -> list[bool]:
        """Add new pages, and set the dates of those that have one. Return for each whether that was done: a page without a date that is
        known stays as it is. If a page cannot be written, raise `ConfigError` and change nothing."""
        dates = [checked_date(page) for page in pages]
        now = self._folder.now()
        stamp = milliseconds(now)
        owners = self._folder.number_sites([page.site for page in pages], now)
        numbers, new = self._folder.page_numbers(
            [_key(owner, page.url) for owner, page in zip(owners, pages, strict=True)]
        )
        rows = [PageRow(numbers[at], owners[at], pages[at].url, None, pages[at].payload or None) for at in new]
        self._folder.register(rows, [pages[at].quality for at in new])
        first_places = set(new)
        discovered: list[int] = []
        done = []
        for place, (number, page, date) in enumerate(zip(numbers, pages, dates, strict=True)):
            is_new = place in first_places
            if is_new:
                self._schedule.add(owners[place], stamp, NEW if date is None else date)
                self._tables.changed_pages.add(number)
                self._closures.pages_changed(owners[place])
            if date is None and self._schedule.date(number) == NEW:
                discovered.append(number)  # again: strategies may count how often a page was found
            done.append(is_new or self._put_again(number, date, page.payload, stamp))
        self._frontier.discover(discovered, now)
        return done

    def _put_again(self, number: int, date: int | None, payload: bytes, stamp: int) -> bool:
        """Schedule a known page, or bring a removed one back. Return whether anything changed."""
        old = self._schedule.date(number)
        if date is None and old != REMOVED:
            return False
        if old == REMOVED:
            self._schedule.revive(number, stamp)
        if date is not None:
            self._set_date(number, date)
        self._tables.changed_pages.add(number)
        self._database.payloads[number] = payload or None
        return True

    def _set_date(self, number: int, date: int) -> None:
        if self._schedule.date(number) == NEW:
            self._leaving.append(number)
        self._schedule.set_date(number, date)
        self._tables.changed_pages.add(number)
        self._closures.pages_changed(self._schedule.site(number))

    def hand_out(
        self,
        most: int,
        hold_s: float,
        sites: int = 1,
        site: str | None = None,
        *,
        served: Collection[str] = (),
        moment: float | None = None,
    ) -> list[HandedOut]:
        """Reserve up to `most` pages of each of up to this number of sites for some seconds. `site`: only of this one.

        A retrieval may take several calls. `served`: the sites that its earlier calls were given; they give nothing more. `moment`: when it
        began; only what was due then is due now, so that no delay is over that began in an earlier call."""
        if not hold_s > 0:
            raise ConfigError(f"hold_s is {hold_s}; give a number of seconds above 0")
        real = self._folder.now()
        now = real if moment is None else max(moment, self._frontier.now)
        until = max(milliseconds(real) + 1, milliseconds(real + min(hold_s, MOST_DATE)))
        self._closures.settle_due(now)
        self._withdraw(now)
        found: list[HandedOut] = []
        while len(found) < sites:
            number = self._folder.site_numbers.get(site, -1) if site is not None else -1
            visit = self._visit_site(number, now) if site is not None else self._next_visit(now, served)
            if visit is None:
                break
            name = self._folder.site_names[visit.site]
            free = self._most_reserved - self._schedule.reserved(visit.site, milliseconds(now))
            # A served site is here only if another call has moved the frontier's time on, beyond the delay.
            pages = [] if name in served else self._reserve(visit, min(most, MOST_PAGES, free), now, until)
            not_before = real + max(_GAP_S, self._delay_s(visit.site))
            self._frontier.finish(visit, Outcome(not_before=not_before), now)
            if not pages:
                continue  # the site is not open any more, others may be
            self._handed_out_at[visit.site] = real
            if len(pages) == free:
                self._closures.settle(visit.site)
            found.append(HandedOut(name, pages))
        return found

    def _delay_s(self, site: int) -> float:
        own, rules = float(self._frontier.site_records["delay_s"][site]), self._rules
        if not math.isnan(own):
            return own
        is_small = self._frontier.known_pages(site) < rules.small_site_pages
        return rules.small_site_delay_s if is_small else rules.delay_s

    def _next_visit(self, now: float, served: Collection[str]) -> Visit | None:
        """Begin a visit to the next site. Sites with new pages and sites with pages that are due take turns."""
        self._is_new_first = not self._is_new_first
        if self._is_new_first:
            return self._new_visit(now) or self._due_visit(now, served)
        return self._due_visit(now, served) or self._new_visit(now)

    def _due_visit(self, now: float, served: Collection[str]) -> Visit | None:
        stamp = milliseconds(now)

        def open_at(site: int) -> int:
            return stamp + 1 if self._folder.site_names[site] in served else _upwards(self._frontier.open_at(site))

        site = self._schedule.next_site(stamp, open_at)
        answer = None if site is None else self._frontier.visit(site, now)
        return answer if isinstance(answer, Visit) else None

    def _new_visit(self, now: float) -> Visit | None:
        if self._frontier.opens_at(now) > now:  # `next` would say so too, but it is logged
            return None
        answer = self._frontier.next(now)
        return answer if isinstance(answer, Visit) else None

    def _visit_site(self, site: int, now: float) -> Visit | None:
        if site < 0 or self._frontier.open_at(site) > now:
            return None
        if not self._frontier.has_waiting(site) and self._schedule.first(site, milliseconds(now)) is None:
            return None
        answer = self._frontier.visit(site, now)
        return answer if isinstance(answer, Visit) else None

    def _reserve(self, visit: Visit, most: int, now: float, until: int) -> list[int]:
        """Reserve pages of the visited site by date; the date of a new page is its creation, and new pages stay in their order."""
        schedule, stamp = self._schedule, milliseconds(now)
        new, pages = iter(visit.pages), list[int]()
        fresh = next(new, None)
        while len(pages) < most:
            due = schedule.first(visit.site, stamp)
            if due is None and fresh is None:
                break
            if fresh is None or (due is not None and schedule.date(due) <= schedule.created(fresh)):
                page = cast(int, due)
            else:
                page, fresh = fresh, next(new, None)
                self._frontier.report(visit, page, FETCHED, now)
            schedule.hold(page, until)
            pages.append(page)
        self._tables.changed_pages.update(pages)
        return pages

    def _withdraw(self, now: float) -> None:
        """Let the frontier forget new pages that have got a date or were removed."""
        states = self._frontier.page_states
        leaving = [page for page in self._leaving if states[page] == WAITING]
        self._leaving.clear()
        if leaving:
            self._frontier.withdraw(leaving, now)

    # ---- sites

    def set_delay(self, site: str, delay_s: float) -> None:
        """Set the delay between two visits to a site. A longer delay holds from the last visit on, a shorter one from the next one on."""
        number, now = self._number_of(site), self._folder.now()
        last = self._handed_out_at.get(number, -math.inf)
        self._frontier.set_site(number, now, delay_s=delay_s, not_before=last + delay_s)

    def block(self, site: str, until: float) -> None:
        """Hand out no page of the site until this time, in seconds since 1970. 0: hand out pages again."""
        self._closures.block(self._number_of(site), until)

    def limit(self, site: str, most_done: int) -> None:
        """Hand out no page of the site when so many of its pages are done. 0: no limit."""
        self._closures.limit(self._number_of(site), most_done)

    def _number_of(self, site: str) -> int:
        check_text("site", site)
        (number,) = self._folder.number_sites([site], self._folder.now())
        return number

    # ---- removal

    def remove_site(self, site: str) -> int:
        """Remove a site with its pages, and return their number. Pages of this site that are put later are new pages of a new site."""
        number = self._folder.site_numbers.get(site)
        if number is None:
            return 0
        self._folder.retire_site(number, REMOVED_NAME.format(number))
        self._closures.forget_rule(number)
        pages = self._remove(self._pages_of(number))
        self._closures.close(number)
        self._schedule.forget_site(number)
        self._tables.removed_sites.append(number)
        return pages

    def remove_older(self, than: float, site: str | None = None) -> int:
        """Remove the pages that were created before this time, in seconds since 1970, and return their number."""
        pages = self._pages_of(self._folder.site_numbers.get(site, -1) if site is not None else None)
        _, created, _, _ = self._schedule.arrays()
        return self._remove(pages[created[pages] < 1000 * than])

    def _remove(self, pages: Array) -> int:
        for page in pages.tolist():
            self._set_date(page, REMOVED)
            self._database.payloads[page] = None
        return len(pages)

    # ---- inspection

    @property
    def now(self) -> float:
        """The frontier's time, which never goes back."""
        return self._folder.now()

    def page(self, url: str, site: str) -> ScheduledPage | None:
        """Return what is known of a page; None: it is unknown."""
        number = self._folder.site_numbers.get(site)
        if number is None:
            return None
        page = self._folder.find(_key(number, url))
        return None if page < 0 or self._schedule.date(page) == REMOVED else self.listed([page])[0]

    def listed(self, pages: Sequence[int]) -> list[ScheduledPage]:
        """Return these pages, without those that were removed."""
        schedule = self._schedule
        return [
            ScheduledPage(row.url, self._folder.site_names[row.site], row.payload or b"", schedule.dates(row.id))
            for row in self._database.rows_of([page for page in pages if schedule.date(page) != REMOVED])
        ]

    def pages(self, site: str | None = None) -> Array:
        """Return the numbers of all known pages, or of those of one site, in the order in which they were put first."""
        return self._pages_of(None if site is None else self._folder.site_numbers.get(site, -1))

    def _pages_of(self, site: int | None) -> Array:
        sites, _, dates, _ = self._schedule.arrays()
        is_known = dates != REMOVED
        return np.flatnonzero(is_known if site is None else is_known & (sites == site))

    def counts(self, site: str | None = None) -> PageCounts:
        pages = self.pages(site)
        sites, _, dates, held = self._schedule.arrays()
        reserved = (held[pages] > milliseconds(self._folder.now())) & (dates[pages] > 0)
        return PageCounts(
            len(pages), int((dates[pages] == DONE).sum()), int(reserved.sum()), len(np.unique(sites[pages]))
        )

    def site_names(self, with_inactive: bool = False) -> list[str]:
        """Return the names of the sites that have pages. Inactive ones are blocked, at their limit, or have only pages that
        are done."""
        sites, _, dates, _ = self._schedule.arrays()
        is_listed = dates != REMOVED if with_inactive else (dates == NEW) | (dates > 0)
        found, stamp = np.unique(sites[is_listed]).tolist(), milliseconds(self._folder.now())
        return [
            self._folder.site_names[site]
            for site in found
            if with_inactive or not self._closures.is_stopped(site, stamp)
        ]

    # ---- durability

    def catch_up(self) -> None:
        """Write what an earlier commit could not write. If that fails too, raise its error: nothing more should be changed, or memory would
        fill while the disk is full."""
        if self._folder.has_changes:
            self.commit(sync=True)

    def commit(self, sync: bool = False) -> None:
        """Write what was changed. `sync`: wait until it is on disk, so that it survives a power failure."""
        self._folder.commit(sync)

    def close(self) -> None:
        """Commit, and end. The next process begins at this point."""
        self._folder.close()

    def discard(self) -> None:
        """End without keeping what was not committed: the folder is to be deleted, or an error has left something half done."""
        self._folder.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _key(site: int, url: str, key: str | None = None) -> str:
    """Return by what a page is known: the same URL may be in several sites, and a removed site leaves its URLs to the next one of its
    name."""
    return f"{site} {url}"


def _upwards(seconds: float) -> int:
    """Return a time in milliseconds that is not earlier."""
    if math.isinf(seconds):
        return NEVER if seconds > 0 else 0
    return math.ceil(1000 * seconds)
