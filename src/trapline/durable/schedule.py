"""When the pages of a durable frontier may be handed out again: their dates and reservations. No IO, no clock, no politeness.

A page that was never handed out is NEW: the frontier has it, in the order of its strategy. Once it is handed out, or scheduled by the
crawler, it is here, by its date. Times are integers, in milliseconds since 1970, so that heaps compare integers.

Each site has two heaps: `later` has its pages by the moment at which they become available (the date, or the end of the reservation if
that is later), `ready` has the available ones by date. `opens` is the heap of the sites by the moment at which they must be looked at.
Sites with available pages wait in `rotation`. Entries are not removed when a page changes: `first` and `_wake` skip those that no longer
hold, and a heap that has doubled is cleaned.
"""

import math
from array import array
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from trapline.frontier.layout import Array

# Dates that are no times.
DONE, NEW, REMOVED = 0, -1, -2
_LEAST = 64  # entries of a heap that is not cleaned yet
_BITS = 32  # of an entry: the time, then the page or site in this number of bits
_LOW = (1 << _BITS) - 1
NEVER = 1 << 60
MOST_DATE = 1 << 42  # seconds: as milliseconds it fits an int64 and a float exactly


def milliseconds(seconds: float) -> int:
    return math.floor(1000 * seconds)


class PageDates(NamedTuple):
    created: int
    date: int
    held_until: int  # the end of the reservation; 0: none


class PageSchedule:
    def __init__(self) -> None:
        self._site, self._created = array("i"), array("q")
        self._date, self._held = array("q"), array("q")
        self._later: dict[int, list[int]] = {}
        self._ready: dict[int, list[int]] = {}
        self._most: dict[int, int] = {}  # by site, the entries that one of its heaps may have before it is cleaned
        self._opens: list[int] = []
        self._opens_at: dict[int, int] = {}  # by site, the time of its entry in `opens` that holds
        self._rotation: deque[int] = deque()
        self._in_rotation: set[int] = set()
        self._done: dict[int, int] = {}
        self._reserved: dict[
            int, int
        ] = {}  # by site, the pages whose reservation has not ended, as far as `first` has looked

    @classmethod
    def restored(cls, sites: Array, created: Array, dates: Array, held: Array) -> "PageSchedule":
        """Return the schedule of pages 0, 1, ... with these sites and dates."""
        schedule = cls()
        schedule._site.frombytes(sites.astype(np.int32).tobytes())
        for target, values in ((schedule._created, created), (schedule._date, dates), (schedule._held, held)):
            target.frombytes(values.astype(np.int64).tobytes())
        due = np.flatnonzero(dates > 0)
        times = np.maximum(dates, held)[due]
        order = np.lexsort((due, times, sites[due]))
        due, times = due[order], times[order]
        owners, firsts = np.unique(sites[due], return_index=True)
        bounds = [*firsts.tolist(), len(due)]
        entries = [time << _BITS | page for time, page in zip(times.tolist(), due.tolist(), strict=True)]
        for owner, first, end in zip(owners.tolist(), bounds, bounds[1:], strict=False):
            schedule._later[owner] = entries[first:end]  # sorted, and so a heap
            schedule._opens_at[owner] = entries[first] >> _BITS
        schedule._opens = [time << _BITS | owner for owner, time in schedule._opens_at.items()]
        heapify(schedule._opens)
        owners, counts = np.unique(sites[dates == DONE], return_counts=True)
        schedule._done = dict(zip(owners.tolist(), counts.tolist(), strict=True))
        owners, counts = np.unique(sites[(held > 0) & (dates > 0)], return_counts=True)
        schedule._reserved = dict(zip(owners.tolist(), counts.tolist(), strict=True))
        return schedule

    def __len__(self) -> int:
        return len(self._site)

    # ---- pages

    def dates(self, page: int) -> PageDates:
        return PageDates(self._created[page], self._date[page], self._held[page])

    def site(self, page: int) -> int:
        return self._site[page]

    def date(self, page: int) -> int:
        return self._date[page]

    def created(self, page: int) -> int:
        return self._created[page]

    def done(self, site: int) -> int:
        """Return how many pages of the site are never handed out again."""
        return self._done.get(site, 0)

    def reserved(self, site: int, now: int) -> int:
        """Return how many pages of the site are reserved."""
        self.first(site, now)
        return self._reserved.get(site, 0)

    def changes_at(self, site: int) -> int:
        """Return when a page of the site becomes available next; NEVER: at no time."""
        later = self._later.get(site)
        return later[0] >> _BITS if later else NEVER

    def add(self, site: int, created: int, date: int) -> None:
        """Add the next page."""
        page = len(self._site)
        self._site.append(site)
        self._created.append(created)
        self._date.append(NEW)
        self._held.append(0)
        self.set_date(page, date)

    def revive(self, page: int, created: int) -> None:
        """Make a removed page available, as one that was created now."""
        self._created[page] = created
        self.set_date(page, created)

    def set_date(self, page: int, date: int) -> None:
        """Set the date, which ends a reservation."""
        site, old = self._site[page], self._date[page]
        self._end_reservation(site, page)
        self._date[page] = date
        if (old == DONE) != (date == DONE):
            self._done[site] = self._done.get(site, 0) + (1 if date == DONE else -1)
        if date > 0:
            self._push(site, page, date)

    def hold(self, page: int, until: int) -> None:
        """Reserve a page, which is new or the `first` of its site, until this time. A new page gets the date at which it was created."""
        site = self._site[page]
        if self._date[page] == NEW:
            self._date[page] = self._created[page]
        elif (ready := self._ready.get(site)) and ready[0] & _LOW == page:
            heappop(ready)
        self._end_reservation(site, page)
        self._held[page] = until
        self._reserved[site] = self._reserved.get(site, 0) + 1
        self._push(site, page, max(until, self._date[page]))

    def _end_reservation(self, site: int, page: int) -> None:
        if self._held[page]:
            self._held[page] = 0
            self._reserved[site] -= 1

    def _push(self, site: int, page: int, time: int) -> None:
        later = self._later.setdefault(site, [])
        heappush(later, time << _BITS | page)
        if len(later) > self._most.get(site, _LEAST):
            self._clean(site)
        if site not in self._in_rotation:
            self.look_at(site, time)

    def _clean(self, site: int) -> None:
        """Remove the entries of a site that no longer hold, and those that are there twice."""
        dates, held, kept = self._date, self._held, _LEAST
        for heaps, is_later in ((self._later, True), (self._ready, False)):
            found = set()
            for entry in heaps.get(site, ()):
                page, date = entry & _LOW, dates[entry & _LOW]
                if date > 0 and (max(date, held[page]) if is_later else date) == entry >> _BITS:
                    found.add(entry)
            heaps[site] = sorted(found)
            kept = max(kept, 2 * len(found))
        self._most[site] = kept

    # ---- sites

    def look_at(self, site: int, time: int) -> None:
        """Look at the site at this time, unless that is planned for an earlier one: it may be open then, or have an available page."""
        if time < self._opens_at.get(site, NEVER):
            self._opens_at[site] = time
            heappush(self._opens, time << _BITS | site)

    def next_site(self, now: int, open_at: Callable[[int], int]) -> int | None:
        """Return a site that is open and has an available page; None: there is none. Sites take turns. `open_at`: when a site is open;
        NEVER: somebody will call `look_at`."""
        self._wake(now)
        for _ in range(len(self._rotation)):
            site = self._rotation.popleft()
            if self.first(site, now) is None:
                self._leave_rotation(site)
            elif (time := open_at(site)) <= now:
                self._rotation.append(site)
                return site
            else:
                self._in_rotation.discard(site)
                if time < NEVER:
                    self.look_at(site, time)
        return None

    def _leave_rotation(self, site: int) -> None:
        self._in_rotation.discard(site)
        if later := self._later.get(site):
            self.look_at(site, later[0] >> _BITS)

    def _wake(self, now: int) -> None:
        opens = self._opens
        while opens and opens[0] >> _BITS <= now:
            entry = heappop(opens)
            site = entry & _LOW
            if self._opens_at.get(site) == entry >> _BITS:
                del self._opens_at[site]
                if site not in self._in_rotation:
                    self._in_rotation.add(site)
                    self._rotation.append(site)

    def first(self, site: int, now: int) -> int | None:
        """Return the available page of the site with the earliest date; None: there is none."""
        later, ready = self._later.get(site), self._ready.get(site)
        while later and later[0] >> _BITS <= now:
            entry = heappop(later)
            page = entry & _LOW
            if self._date[page] > 0 and max(self._date[page], self._held[page]) == entry >> _BITS:
                self._end_reservation(site, page)
                if ready is None:
                    ready = self._ready.setdefault(site, [])
                heappush(ready, self._date[page] << _BITS | page)
        if ready is not None and len(ready) > self._most.get(site, _LEAST):
            self._clean(site)
            ready = self._ready[site]
        while ready:
            page = ready[0] & _LOW
            if self._date[page] == ready[0] >> _BITS and self._held[page] <= now:
                return page
            heappop(ready)
        return None

    def forget_site(self, site: int) -> None:
        """Forget the entries of a site whose pages are removed."""
        for entries in (self._later, self._ready, self._most, self._reserved):
            entries.pop(site, None)

    # ---- all pages

    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """Return copies of the site, creation time, date and end of the reservation of all pages."""
        sites = np.frombuffer(self._site, np.int32).copy() if self._site else np.zeros(0, np.int32)
        others = (self._created, self._date, self._held)
        created, dates, held = (np.frombuffer(a, np.int64).copy() if a else np.zeros(0, np.int64) for a in others)
        return sites, created, dates, held
