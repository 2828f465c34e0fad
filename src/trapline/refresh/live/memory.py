"""The arrays of a live crawl's refresh, and their growth. It knows no events and no functions of policies.

`whole` has the arrays with spare room. Kernels and policies see only the used part of `page`, so that its length is the number
of pages, as in a replay. They get the other arrays whole. Arrays grow by doubling. Slots are dense: `slot` finds the slot of a
page of the frontier.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from trapline.compiled import jit
from trapline.compiled.array_handles import Pin
from trapline.errors import ConfigError
from trapline.frontier.layout import resized
from trapline.refresh.core.layout import CHOSEN, IDLE, Array, RefreshState, Sizes, allocate
from trapline.refresh.policy import Policy

# ---- Rules of refresh for any policy: a frozen dataclass, like the frontier's Rules.


@dataclass(frozen=True, slots=True)
class RefreshRules:
    """The rules of refresh that do not depend on the policy.

    >>> RefreshRules().keeps
    0.995
    """

    cycle_s: float = 1800.0  # the paper's cycle
    slots_per_s: float | None = None  # capacity that policies assume; None: measured from the recent past
    first_slots_per_s: float = 1.0  # capacity until it is measured
    half_life_s: float | None = 30 * 86_400.0  # half-life of accesses; None: none is forgotten
    trust_memory: float = (
        200.0  # outcomes of a site's channel after which one counts a third; at all sites a hundred times as many
    )

    def __post_init__(self) -> None:
        for name in ("cycle_s", "slots_per_s", "first_slots_per_s", "half_life_s"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < math.inf:
                raise ConfigError(f"refresh: {name} is {value}; it must be above 0 and finite")
        if not self.trust_memory > 1.0:
            raise ConfigError(f"refresh: trust_memory is {self.trust_memory}; it must be above 1")

    @property
    def keeps(self) -> float:
        """Factor by which the outcomes of a site's channel are multiplied when one is added."""
        return 1.0 - 1.0 / self.trust_memory

    @property
    def keeps_of_all(self) -> float:
        """The same factor for the rows of a channel at all sites, and of all."""
        return 1.0 - 0.01 / self.trust_memory


# ---- memory

FIRST = 1024


class Memory:
    """The arrays of a refresher. They grow as pages, sites, points and rows of trust are added."""

    def __init__(self, policy: Policy, rules: RefreshRules) -> None:
        queued = 1 if policy.still else FIRST
        size = Sizes(FIRST, max(1, len(policy.kept)), max(1, len(policy.options)), 8, 64, 64, 64, queued, FIRST)
        self.whole = allocate(size)
        self.handle: Any = None  # handle of the state for kernels: compiled/array_handles.py
        self.pages, self.still = 0, policy.still
        self.slot_of = np.zeros(FIRST, np.int32)  # by page id: slot + 1; 0: the page has no slot
        _start_sites(self.whole.site)
        run = self.whole.run[0]
        run.live, run.rows = True, 1
        run.floor = -math.inf
        run.cycle_s, run.half_life_s = rules.cycle_s, rules.half_life_s or 0.0
        run.measures = rules.slots_per_s is None
        run.slots_per_s = rules.slots_per_s or rules.first_slots_per_s
        run.share, run.growth = policy.revision, policy.growth
        self.whole.trust[0].keeps = rules.keeps_of_all
        policy.bind(self.whole.run, self.whole.option)
        self._pin()

    @property
    def state(self) -> RefreshState:
        """The state as kernels and policies see it."""
        return self.whole._replace(page=self.whole.page[: self.pages])

    @property
    def now(self) -> float:
        """Time of the last event."""
        return self._now[0]

    def site(self, slot: int) -> int:
        """Return the site of the page in a slot."""
        return int(self._site[slot])

    def slot(self, page: int) -> int:
        """Return the slot of a page; -1: it never joined, or has left."""
        return int(self.slot_of[page]) - 1 if 0 <= page < len(self.slot_of) else -1

    # ---- growth

    def add_page(self, page: int, site: int, quality: float) -> int:
        """Add a slot for a page and return it. Kernels see it from now on."""
        if page >= len(self.slot_of):
            self.slot_of = resized(self.slot_of, max(page + 1, 2 * len(self.slot_of)), len(self.slot_of))
        slot = self.pages
        if slot == len(self.whole.page):
            self._grow_pages(2 * slot)
        self.make_site_room(site)
        self.slot_of[page] = slot + 1
        self._id[slot], self._site[slot], self._quality[slot] = page, site, quality
        self._place[slot] = CHOSEN
        self.set_pages(slot + 1)
        return slot

    def remove_page(self, page: int, slot: int) -> None:
        """Remove a page, after the kernel has moved the last page into its slot."""
        self.slot_of[page] = 0
        last = self.pages - 1
        if slot < last:
            self.slot_of[self.whole.page[slot].id] = slot + 1
        self.whole.page[last : last + 1] = 0
        self.whole.columns[last] = 0.0
        self.set_pages(last)

    def set_pages(self, pages: int) -> None:
        """Set the number of pages that kernels see."""
        self.pages = pages
        if jit.DISABLED:
            self.handle = self.state
        else:
            self._pinned.set_length(RefreshState._fields.index("page"), pages)

    def _grow_pages(self, size: int) -> None:
        names = ("page", "columns") if self.still else ("page", "columns", "waiting", "hot")
        self.replace(**{name: resized(getattr(self.whole, name), size, self.pages) for name in names})

    def make_site_room(self, site: int) -> None:
        """Grow the array of sites if it has no record for this site."""
        if site >= len(self.whole.site):
            self._grow_sites(max(site + 1, 2 * len(self.whole.site)))

    def _grow_sites(self, size: int) -> None:
        used, s = len(self.whole.site), self.whole
        site, sites = resized(s.site, size, used), np.zeros((2, size), s.sites.dtype)
        sites[:, :used] = s.sites
        _start_sites(site[used:])
        self.replace(site=site, sites=sites)

    def grow_blocks(self) -> None:
        """Double the room for the queues of sites."""
        self.replace(value=resized(self.whole.value, 2 * len(self.whole.value), int(self.whole.run[0].pool)))

    def make_timer_room(self) -> None:
        """Grow the heap of timers if it is full."""
        used = self._timers[0]
        if used == len(self.whole.timer):
            self.replace(timer=resized(self.whole.timer, 2 * used, used))

    def add_row(self, **fields: Any) -> int:
        """Add a row of trust and return its index."""
        row, run = int(self.whole.run[0].rows), self.whole.run[0]
        if row == len(self.whole.trust):
            self.replace(trust=resized(self.whole.trust, 2 * row, row))
        record = self.whole.trust[row : row + 1]
        record[:] = 0
        for name, value in fields.items():
            record[name] = value
        run.rows = row + 1
        return row

    def replace(self, **arrays: Array) -> None:
        """Replace arrays of the state."""
        self.whole = self.whole._replace(**arrays)
        self._pin()

    def _pin(self) -> None:
        self._id, self._site, self._quality, self._place = (
            self.whole.page[name] for name in ("id", "site", "quality", "place")
        )
        # Memoryviews: reading an item returns a plain number and costs a tenth of reading a field of a record.
        self._now, self._timers = (self.whole.run[name].data for name in ("now", "timers"))
        self._pinned = Pin(self.whole)
        self.handle = self._pinned.handle
        self.set_pages(self.pages)

    def adopt(self, arrays: dict[str, Array], policy: Policy) -> None:
        """Continue with saved evidence. The queues are empty afterwards."""
        page = arrays["page"]
        count, room = len(page), max(FIRST, len(page))
        for name in ("page", "columns"):
            arrays[name] = resized(arrays[name], room, count)
        arrays["trust"] = resized(arrays["trust"], max(8, 2 * len(arrays["trust"])), len(arrays["trust"]))
        arrays["point"] = resized(arrays["point"], max(64, len(arrays["point"])), len(arrays["point"]))
        _start_sites(arrays["site"])
        for name in ("members", "pages"):
            arrays["site"][name] = 0
        for name in ("hot", "waiting", "open", "shut", "pool", "timers"):
            arrays["run"][name] = 0
        policy.bind(arrays["run"], self.whole.option)
        queued = 1 if self.still else room
        size = Sizes(1, 1, 1, sites=len(arrays["site"]), timers=room, queued=queued, blocks=max(FIRST, 2 * count))
        empty = allocate(size)._asdict()
        fresh = {name: empty[name] for name in ("waiting", "hot", "value", "free", "sites", "timer")}
        self.slot_of = np.zeros(max(FIRST, int(page["id"].max(initial=0)) + 1), np.int32)
        self.slot_of[page["id"]] = np.arange(1, count + 1)
        self.pages = count
        self.replace(**{**arrays, **fresh})

    # ---- published points

    def put_points(self, slot: int, points: Array) -> None:
        """Replace the points ahead of a page. The last point that has passed stays before them."""
        record = self.whole.page[slot]
        passed = 1 if record.points > 0 else 0
        kept = self.whole.point[record.point - passed : record.point].copy()
        record.point_end = record.point  # frees the old points
        count = passed + len(points)
        if self.whole.run[0].point_pool + count > len(self.whole.point):
            self._pack_points(count)
        begin = int(self.whole.run[0].point_pool)
        self.whole.point[begin : begin + passed] = kept
        self.whole.point[begin + passed : begin + count] = points
        self.whole.run[0].point_pool = begin + count
        record.point, record.point_end = begin + passed, begin + count

    def _pack_points(self, more: int) -> None:
        """Pack the points: keep those ahead and the last that has passed, page by page, and double the room."""
        page = self.whole.page[: self.pages]
        passed = (page["points"] > 0).astype(np.int32)
        begin, length = page["point"] - passed, page["point_end"] - page["point"] + passed
        at = np.concatenate([[0], np.cumsum(length, dtype=np.int64)])
        used = int(at[-1])
        gather = np.repeat(begin - at[:-1], length) + np.arange(used)
        packed = np.zeros(max(64, 2 * (used + more)), self.whole.point.dtype)
        packed[:used] = self.whole.point[gather]
        page["point"] = at[:-1] + passed
        page["point_end"] = at[:-1] + length
        self.whole.run[0].point_pool = used
        self.replace(point=packed)


def _start_sites(site: Array) -> None:
    site["place"], site["log2"] = IDLE, -1
