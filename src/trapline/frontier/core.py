"""What the face of the frontier stands on: the arrays, their growth, one way to call a kernel, faults, and the log of calls.

It decides nothing and checks no argument; frontier.py does that, and explain.py and transfer.py look in through here.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from trapline import jit
from trapline.errors import ConfigError, InvariantError
from trapline.frontier import blocks, kernels
from trapline.frontier.journal import Call, Journal
from trapline.frontier.layout import (
    LEVELS_BATCH,
    LEVELS_PLAIN,
    MOST_PER_VISIT,
    MOST_SERIAL,
    NEED_ROOM,
    PAGE_FAULT,
    PAGE_RANK_FAULT,
    REVISIT_FAULT,
    Array,
    State,
    allocate,
    resized,
)
from trapline.frontier.rules import Rules
from trapline.frontier.visits import SLOT_BITS
from trapline.pinned import Pin

if TYPE_CHECKING:  # strategies are above the frontier; it only calls what they bind
    from trapline.strategies.strategy import Strategy

FIRST_POOL = 1 << 16
MOST_ID = 2**31 - 1
_WRONG_PAGE = {
    PAGE_FAULT: "is not a registered page, or not one that this visit leased",
    REVISIT_FAULT: "is not a fetched page of this site, or was given twice",
}


class Core:
    """The state of a frontier, and how kernels get at it."""

    def __init__(
        self, strategy: "Strategy", rules: Rules | None = None, seed: int = 0, journal: Journal | None = None
    ) -> None:
        rules = rules or Rules()
        levels = LEVELS_BATCH if rules.batch else LEVELS_PLAIN
        state = allocate(1024, 64, 64, 64, FIRST_POOL, max(1, len(strategy.page.columns)), levels)
        blocks.reset(state.pool, state.run)
        state.run[0].now = -math.inf
        state.run[0].seed = seed
        _set_rules(state, rules)
        state.run[0].free_visit = -1
        _free_slots(state, 0)
        self._adopt(state, strategy, rules, journal)

    @classmethod
    def from_state(cls, state: State, strategy: "Strategy", rules: Rules) -> Self:
        """A frontier that goes on with this state (snapshot.py)."""
        frontier = cls.__new__(cls)
        frontier._adopt(state, strategy, rules, None)
        frontier._widen_heaps()
        return frontier

    def _adopt(self, state: State, strategy: "Strategy", rules: Rules, journal: Journal | None) -> None:
        jit.ready()
        self.journal = journal
        self.strategy, self.rules = strategy, rules
        strategy.bind(state.run)
        if state.run[0].ages and len(state.age) < len(state.page):
            state = state._replace(age=np.zeros(len(state.page), np.int32))
        self._set_state(state)
        # Views of memory: an item of one is a plain number, at a third of what an item of an array costs.
        self._fault, self._pages, self._sites = (state.run[name].data for name in ("fault", "pages", "sites"))
        self.out, self.moment = np.zeros(MOST_PER_VISIT + 2, np.int64), np.zeros(1)
        self.out_view, self.moment_view = self.out.data, self.moment.data

    @property
    def pages(self) -> int:
        return self._pages[0]

    @property
    def sites(self) -> int:
        return self._sites[0]

    # ---- looking in

    @property
    def waiting(self) -> int:
        """Pages that wait, at all sites. It looks at every site: for once a second, not for every page."""
        return int(self.state.queue["waiting"][: self.sites].sum())

    @property
    def has_new(self) -> bool:
        """Whether a page never fetched waits where it may be had, or is under way."""
        run = self.state.run[0]
        return bool(
            run.active - run.revisits + run.contest + run.resting_sites + run.unresolved + run.open_backlogs > 0
        )

    def opens_at(self, now: float) -> float:
        """When a visit to a page never fetched could begin: `now`, a later moment, or infinity if time alone changes nothing. It asks for
        no visit, and changes nothing."""
        return float(kernels.opening(self.handle, now))

    def visits_under_way(self) -> list[tuple[int, int]]:
        """Visit id and site of each, oldest first."""
        under_way = self.state.visit[self.state.visit["id"] >= 0]
        return sorted(zip(under_way["id"].tolist(), under_way["site"].tolist(), strict=True))

    def page_state(self, page: int) -> int:
        """UNKNOWN, WAITING, LEASED, FETCHED, GONE or REVISITED (layout.py)."""
        if not 0 <= page < self.pages:
            raise InvariantError(f"page {page}: there are pages 0..{self.pages - 1}")
        return int(self.state.state[page])

    def waiting_pages(self, site: int, level: int = 0) -> tuple[Array, Array]:
        """The pages that wait at a site, best first, and their keys."""
        self.check_site(site)
        n = int(self.state.queue[site, level].waiting)
        pages, keys = np.zeros(n, np.int32), np.zeros(n)
        kernels.list_waiting(self.handle, site, level, pages, keys)
        order = np.lexsort((self.state.page["serial"][pages], -keys))
        return pages[order], keys[order]

    # ---- memory, faults, log

    def reserve(self, pages: int, sites: int, groups: int, visits: int) -> None:
        """Room for a web whose size is known, so that nothing grows on the way. Memory is taken only as it is used."""
        self.make_room(pages, sites, groups)
        needed = (24 if self.state.run[0].ages else 12) * pages + 16 * (sites + groups) + 2 * self.state.run[0].reserve
        if self.state.pool.size < needed:
            self._replace(pool=resized(self.state.pool, int(needed), int(self.state.run[0].pool)))
        if visits > len(self.state.visit):
            self._add_slots(visits)

    def make_room(self, pages: int = 0, sites: int = 0, groups: int = 0) -> None:
        s = self.state
        if pages > len(s.page):
            size, used = max(pages, len(s.page) * 3 // 2), self.pages
            self._replace(
                state=resized(s.state, size, used),
                page=resized(s.page, size, used),
                columns=resized(s.columns, size, used),
                age=resized(s.age, size, used) if s.run[0].ages else s.age,
            )
        if sites > len(s.site):
            size, used = max(sites, len(s.site) * 3 // 2), self.sites
            self._replace(site=resized(s.site, size, used), queue=resized(s.queue, size, used))
        if groups > len(s.group):
            self._replace(group=resized(s.group, max(groups, len(s.group) * 3 // 2), len(s.group)))
        self._start_groups(groups)
        self._widen_heaps()

    def _start_groups(self, groups: int) -> None:
        run, known = self.state.run[0], int(self.state.run[0].groups)
        if groups > known:
            new = self.state.group[known:groups]
            new["ready_at"] = -math.inf
            new["log2"] = new["visit"] = -1
            run.groups = groups

    def _widen_heaps(self) -> None:
        s = self.state
        items = max(len(s.site), len(s.group), len(s.visit))
        if items > s.heap.shape[1]:
            wider = np.zeros((len(s.heap), items), s.heap.dtype)
            wider[:, : s.heap.shape[1]] = s.heap
            self._replace(heap=wider)

    def _replace(self, **arrays: Array) -> None:
        self._set_state(self.state._replace(**arrays))

    def _set_state(self, state: State) -> None:
        self.state = state
        self._pin = Pin(state)
        self.handle = self._pin.handle

    def _grow(self) -> None:
        s, run = self.state, self.state.run[0]
        if max(run.serial, run.turns) >= MOST_SERIAL:
            raise ConfigError(
                "the frontier is full: 2^31 joinings of pages or turns of sites; crawl with more partitions"
            )
        if s.pool.size - run.pool < run.reserve:
            size = min(max(s.pool.size * 3 // 2, int(run.pool + 2 * run.reserve)), MOST_ID)
            if size < run.pool + run.reserve:
                raise ConfigError("the frontier is full: 2^31 entries of its queues; crawl with more partitions")
            self._replace(pool=resized(s.pool, size, int(run.pool)))
        if run.free_visit < 0:
            self._add_slots(2 * len(s.visit))

    def _add_slots(self, slots: int) -> None:
        used = len(self.state.visit)
        if slots > 1 << SLOT_BITS:
            raise ConfigError(f"{slots} visits at once; {1 << SLOT_BITS} is the most")
        self._replace(visit=resized(self.state.visit, slots, used))
        _free_slots(self.state, used)
        self._widen_heaps()

    def run_kernel(self, kernel: Callable[..., int], *arguments: Any) -> int:
        try:
            answer = kernel(self.handle, *arguments)
            while answer == NEED_ROOM:
                self._grow()
                answer = kernel(self.handle, *arguments)
        except (IndexError, ZeroDivisionError, ValueError, OverflowError) as error:  # kernels raise nothing, ranks may
            self.state.run[0].resume = 0
            raise ConfigError(
                f"strategy {self.strategy.name!r}: a rank raised {type(error).__name__}: {error}"
            ) from error
        except BaseException:
            # No memory, or Ctrl-C: the rest of the links is lost, not mistaken for the next call's.
            self.state.run[0].resume = 0
            raise
        if self._fault[0]:
            self._raise_fault()
        return answer

    def _raise_fault(self) -> None:
        """A wrong page changed nothing. A rank that is no number may have left anything half done, so that fault stays for ever."""
        run = self.state.run[0]
        fault, item = int(run.fault), int(run.fault_item)
        if fault in _WRONG_PAGE:
            run.fault = run.fault_item = 0
            raise InvariantError(f"page {item} {_WRONG_PAGE[fault]}")
        what = f"page {item}" if fault == PAGE_RANK_FAULT else f"site {item}"
        rank = self.strategy.page.name if fault == PAGE_RANK_FAULT else self.strategy.site.name
        raise ConfigError(f"strategy {self.strategy.name!r}: rank {rank!r} of {what} is not a finite number under 2^42")

    def check_group(self, group: int, sites: int) -> None:
        if group >= 1024 + 16 * sites:  # memory is taken for every number below
            raise InvariantError(f"group {group} with {sites} sites: number the addresses densely, from 0")

    def check_site(self, site: int, at_rest: bool = False) -> None:
        if not 0 <= site < self.sites:
            raise InvariantError(f"site {site}: there are sites 0..{self.sites - 1}")
        if at_rest and self.state.site[site].visit >= 0:
            raise InvariantError(f"site {site} is under visit; finish the visit first")

    def note(self, call: Call, payload: Any, count: int, *numbers: float) -> None:
        if self.journal is not None:
            self.journal.write(call, payload, count, *numbers)


def _set_rules(state: State, rules: Rules) -> None:
    run, values = state.run[0], asdict(rules)
    names = set(state.run.dtype.names or ())
    for name, value in values.items():
        if name in names and value is not None:
            setattr(run, name, value)
    run.ip_delay_s = rules.address_rest_s
    run.pipeline_gain = rules.pipeline_gain
    run.median = rules.estimator == "median"
    run.rescore_at = rules.rescore


def _free_slots(state: State, first: int) -> None:
    """Slots from `first` on join the end of the list of free ones, so that ids do not depend on when memory grew."""
    run, slots = state.run[0], state.visit
    slots["id"][first:] = -1
    slots["free"][first:] = np.arange(first + 1, len(slots) + 1)
    slots["free"][-1] = -1
    if run.free_visit < 0:
        run.free_visit = first
        return
    last = int(run.free_visit)
    while slots[last].free >= 0:
        last = int(slots[last].free)
    slots[last].free = first
