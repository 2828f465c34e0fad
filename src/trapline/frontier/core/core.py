"""Base class of the frontier: the arrays, their growth, the call of kernels, the faults of kernels, and the log of calls.

It decides nothing and checks few arguments; frontier/frontier.py does that. frontier/explain.py and frontier/transfer.py read the
state through it.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from trapline.compiled.array_handles import Pin
from trapline.errors import ConfigError, InvariantError, RankError
from trapline.frontier.core import blocks, kernels
from trapline.frontier.core.visits import SLOT_BITS
from trapline.frontier.journal import Call, Journal
from trapline.frontier.layout import (
    AS_RULES,
    FRONT,
    LEVELS_BATCH,
    LEVELS_PLAIN,
    MOST_PER_VISIT,
    MOST_SERIAL,
    NEED_ROOM,
    PAGE_FAULT,
    PAGE_RANK_FAULT,
    REVISIT_FAULT,
    Array,
    FrontierState,
    allocate,
    resized,
)
from trapline.frontier.rules import Rules

if TYPE_CHECKING:  # strategies are a layer above the frontier, which only calls the functions that they bind
    from trapline.strategies import Strategy

FIRST_POOL = 1 << 16
MOST_ID = 2**31 - 1
_WRONG_PAGE = {
    PAGE_FAULT: "is not a registered page, or this visit did not lease it",
    REVISIT_FAULT: "is not a fetched page of this site, or was given twice",
}


class Core:
    """The state of a frontier, and the means to call kernels on it."""

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
    def from_state(cls, state: FrontierState, strategy: "Strategy", rules: Rules) -> Self:
        """Return a frontier that continues from this state (used by frontier/snapshot.py)."""
        frontier = cls.__new__(cls)
        frontier._adopt(state, strategy, rules, None)
        frontier._widen_heaps()
        return frontier

    def _adopt(self, state: FrontierState, strategy: "Strategy", rules: Rules, journal: Journal | None) -> None:
        self.journal, self.rules, self.strategy_number = journal, rules, 1
        self.adopt(state, strategy)

    def adopt(self, state: FrontierState, strategy: "Strategy") -> None:
        """Use this state with this strategy from now on."""
        self.strategy = strategy
        strategy.bind(state.run)
        if state.run[0].ages and len(state.age) < len(state.page):
            state = state._replace(age=np.zeros(len(state.page), np.int32))
        self._set_state(state)
        # Memoryviews: reading an item returns a plain number and costs a third of reading an array item.
        self._fault, self._pages, self._sites = (state.run[name].data for name in ("fault", "pages", "sites"))
        self.out, self.moment = np.zeros(MOST_PER_VISIT + 2, np.int64), np.zeros(1)
        self.out_view, self.moment_view = self.out.data, self.moment.data

    def set_rules(self, rules: Rules) -> None:
        """Write the rules into the state. The caller then places the sites again."""
        self.rules = rules
        _set_rules(self.state, rules)

    @property
    def pages(self) -> int:
        """Number of registered pages."""
        return self._pages[0]

    @property
    def sites(self) -> int:
        """Number of registered sites."""
        return self._sites[0]

    # ---- inspection

    @property
    def waiting(self) -> int:
        """Number of pages that wait, at all sites. Reads every site's queue: call it once a second, not for every page."""
        return int(self.state.queue["waiting"][: self.sites].sum())

    @property
    def has_new(self) -> bool:
        """Whether a page that was never fetched waits at a site that may be visited at some time, or is being fetched."""
        run = self.state.run[0]
        return bool(
            run.active - run.revisits + run.ready_sites + run.delayed_sites + run.unresolved + run.open_backlogs > 0
        )

    def opens_at(self, now: float) -> float:
        """Return when a visit to pages never fetched could begin: `now`, a later time, or infinity if time alone changes nothing.

        Begins no visit and changes nothing.
        """
        return float(kernels.opening(self.handle, now))

    def visits_under_way(self) -> list[tuple[int, int]]:
        """Return the visit id and the site of each visit under way, oldest visit first."""
        under_way = self.state.visit[self.state.visit["id"] >= 0]
        return sorted(zip(under_way["id"].tolist(), under_way["site"].tolist(), strict=True))

    @property
    def now(self) -> float:
        """The latest `now` that the frontier received; minus infinity before the first call."""
        return float(self.state.run[0].now)

    @property
    def discoveries(self) -> int:
        """Number of times that a page has joined a queue. It grows with every discovered page."""
        return int(self.state.run["serial"][0])

    @property
    def visit_slots(self) -> int:
        """Number of visits that can be under way before the table of visits grows."""
        return len(self.state.visit)

    # Arrays with one entry per registered page or site. They are the frontier's own memory: the next call may replace or change them,
    # so read them at once, and do not write to them.

    @property
    def page_states(self) -> Array:
        """UNKNOWN, WAITING, LEASED, FETCHED, GONE or REVISITED (frontier/layout.py) of every page."""
        return self.state.state[: self.pages]

    @property
    def page_sites(self) -> Array:
        """The site of every page."""
        return self.state.page["site"][: self.pages]

    @property
    def page_depths(self) -> Array:
        """The number of links from a seed to every page, by the shortest path that was found."""
        return self.state.page["depth"][: self.pages]

    @property
    def site_groups(self) -> Array:
        """The group (IP address) of every site; -1 for a site that is not resolved."""
        return self.state.site["group"][: self.sites]

    @property
    def site_records(self) -> Array:
        """The record of every site (SITE in frontier/layout.py)."""
        return self.state.site[: self.sites]

    @property
    def queue_records(self) -> Array:
        """The queues of every site (QUEUE in frontier/layout.py): one row per site, one column per queue."""
        return self.state.queue[: self.sites]

    @property
    def group_records(self) -> Array:
        """The record of every address (GROUP in frontier/layout.py)."""
        return self.state.group[: int(self.state.run["groups"][0])]

    @property
    def run_record(self) -> Any:
        """The rules and counters of the crawl (RUN in frontier/layout.py)."""
        return self.state.run[0]

    @property
    def site_waiting(self) -> Array:
        """The number of waiting pages of every site that its budget lets the crawl fetch; 0 for an abandoned site."""
        waiting = self.state.queue["waiting"][: self.sites].sum(axis=1)
        own, common = self.site_budgets, self.rules.pages_per_site
        budget = np.where(own >= 0, own, common or MOST_ID)
        return np.minimum(waiting, np.maximum(budget - self.state.site["taken"][: self.sites], 0))

    @property
    def site_budgets(self) -> Array:
        """The own page budget of every site: 0 for an abandoned site, AS_RULES for a site without a budget of its own (most sites)."""
        return self.state.site["budget"][: self.sites]

    def column(self, index: int) -> Array:
        """Return one input or measure of the page rank, for every page."""
        return self.state.columns[: self.pages, index]

    def page_value(self, page: int, index: int) -> float:
        """Return one input or measure of the page rank, for one known page."""
        return float(self.state.columns.item(page, index))

    def is_visited(self, site: int) -> bool:
        """Return whether a visit to the site is under way."""
        return bool(self.state.site["visit"][site] >= 0)

    def failed_visits(self, site: int) -> int:
        """Return how many visits to the site have failed in a row."""
        return int(self.state.site["failures"][site])

    def pages_taken(self, site: int) -> int:
        """Return how many pages of the site are fetched or leased."""
        return int(self.state.site["taken"][site])

    def site_rules(self, site: int) -> tuple[float, int]:
        """Return the delay and the pages per connection that `set_site` set for the site; AS_RULES where it set none."""
        record = self.state.site[site]
        return AS_RULES if math.isnan(record.delay_s) else float(record.delay_s), int(record.per_connection)

    def has_waiting(self, site: int) -> bool:
        """Return whether the next visit to the site would fetch at least one page."""
        return bool(self.state.queue["planned"][site, FRONT] > 0)

    def page_state(self, page: int) -> int:
        """Return the state of a page: UNKNOWN, WAITING, LEASED, FETCHED, GONE or REVISITED (frontier/layout.py)."""
        if not 0 <= page < self.pages:
            raise InvariantError(f"page {page} is not registered; there are pages 0..{self.pages - 1}")
        return int(self.state.state[page])

    def failed_tries(self, page: int) -> int:
        """Return how often a page that is still tried again has failed."""
        return int(self.state.page["tries"][page])

    def waiting_pages(self, site: int, level: int = 0) -> tuple[Array, Array]:
        """Return the waiting pages of one queue of a site (`level`: FRONT or BACKLOG), best first, and their keys."""
        self.check_site(site)
        n = int(self.state.queue[site, level].waiting)
        pages, keys = np.zeros(n, np.int32), np.zeros(n)
        kernels.list_waiting(self.handle, site, level, pages, keys)
        order = np.lexsort((self.state.page["serial"][pages], -keys))
        return pages[order], keys[order]

    # ---- memory, faults, log

    def reserve(self, pages: int, sites: int, groups: int, visits: int) -> None:
        """Reserve room for a web whose size is known, so that no array must grow during the crawl.

        The operating system provides the memory only when it is used.
        """
        self.make_room(pages, sites, groups)
        needed = (24 if self.state.run[0].ages else 12) * pages + 16 * (sites + groups) + 2 * self.state.run[0].reserve
        if self.state.pool.size < needed:
            self._replace(pool=resized(self.state.pool, int(needed), int(self.state.run[0].pool)))
        if visits > len(self.state.visit):
            self._add_slots(visits)

    def make_room(self, pages: int = 0, sites: int = 0, groups: int = 0) -> None:
        """Grow the arrays to hold at least these numbers of pages, sites and groups."""
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

    def _set_state(self, state: FrontierState) -> None:
        self.state = state
        self._pin = Pin(state)
        self.handle = self._pin.handle

    def _grow(self) -> None:
        s, run = self.state, self.state.run[0]
        if max(run.serial, run.turns) >= MOST_SERIAL:
            raise ConfigError(
                "the frontier is full: it has put 2^31 pages or sites into queues; crawl with more partitions"
            )
        if s.pool.size - run.pool < run.reserve:
            size = min(max(s.pool.size * 3 // 2, int(run.pool + 2 * run.reserve)), MOST_ID)
            if size < run.pool + run.reserve:
                raise ConfigError("the frontier is full: its queues hold 2^31 entries; crawl with more partitions")
            self._replace(pool=resized(s.pool, size, int(run.pool)))
        if run.free_visit < 0:
            self._add_slots(2 * len(s.visit))

    def _add_slots(self, slots: int) -> None:
        used = len(self.state.visit)
        if slots > 1 << SLOT_BITS:
            raise ConfigError(f"{slots} visits at once are too many; use at most {1 << SLOT_BITS}")
        self._replace(visit=resized(self.state.visit, slots, used))
        _free_slots(self.state, used)
        self._widen_heaps()

    def run_kernel(self, kernel: Callable[..., int], *arguments: Any) -> int:
        """Call the kernel, growing the arrays as often as it asks for room, and raise the fault that it recorded."""
        try:
            answer = kernel(self.handle, *arguments)
            while answer == NEED_ROOM:
                self._grow()
                answer = kernel(self.handle, *arguments)
        except (IndexError, ArithmeticError, ValueError) as error:  # only a rank can raise these
            self.state.run[0].resume = 0
            raise self._rank_raised(error) from error
        except BaseException:
            # No memory, or Ctrl-C. The remaining links are lost. Without the reset the next call would continue in their middle.
            self.state.run[0].resume = 0
            raise
        if self._fault[0]:
            self._raise_fault()
        return answer

    def _rank_raised(self, error: Exception) -> RankError:
        """Return the error for one that a rank raised. Compiled code does not say where; Python does."""
        ranks = [rank for rank in (self.strategy.page, self.strategy.site) if rank.function.is_of_user]
        page, where = (
            -1,
            "; to see the row, run the command again with NUMBA_DISABLE_JIT=1 in front (slow: nothing is compiled)",
        )
        for frame, row in walk_tb(error.__traceback__):
            code = frame.f_code
            for rank in [rank for rank in ranks if rank.function.function.__code__ is code]:
                page = int(frame.f_locals[code.co_varnames[1]]) if rank is self.strategy.page else -1
                ranks, where = [rank], f" in row {row}" + (f", for page {page}" if page >= 0 else "")
        names = " or ".join(repr(rank.name) for rank in ranks)
        raised = f"{type(error).__name__}: {error}"
        found = RankError(f"strategy {self.strategy.name!r}: rank {names} raised {raised}{where}")
        found.page = page
        return found

    def _raise_fault(self) -> None:
        """Raise the recorded fault.

        A wrong page changed nothing, so its fault is cleared. A rank that is not a number may have left any change half
        done, so that fault stays for ever.
        """
        run = self.state.run[0]
        fault, item = int(run.fault), int(run.fault_item)
        if fault in _WRONG_PAGE:
            run.fault = run.fault_item = 0
            raise InvariantError(f"page {item} {_WRONG_PAGE[fault]}")
        ranked = f"page {item}" if fault == PAGE_RANK_FAULT else f"site {item}"
        rank = self.strategy.page.name if fault == PAGE_RANK_FAULT else self.strategy.site.name
        error = RankError(
            f"strategy {self.strategy.name!r}: rank {rank!r} of {ranked} is not a finite number under 2^42"
        )
        error.page = item if fault == PAGE_RANK_FAULT else -1
        raise error

    def check_group(self, group: int, sites: int) -> None:
        """Raise InvariantError if the group number is far larger than the number of sites."""
        if group >= 1024 + 16 * sites:  # the group array has a record for every number below
            raise InvariantError(f"group {group} is too large for {sites} sites; number the addresses densely, from 0")

    def check_site(self, site: int, not_visited: bool = False) -> None:
        """Raise InvariantError if the site is not registered or, with `not_visited`, if a visit to it is under way."""
        if not 0 <= site < self.sites:
            raise InvariantError(f"site {site} is not registered; there are sites 0..{self.sites - 1}")
        if not_visited and self.state.site[site].visit >= 0:
            raise InvariantError(f"site {site} is under visit; finish the visit first")

    def note(self, call: Call, payload: Any, count: int, *numbers: float) -> None:
        """Write the call to the log, if the frontier has one."""
        if self.journal is not None:
            self.journal.write(call, payload, count, *numbers)


def _set_rules(state: FrontierState, rules: Rules) -> None:
    run, values = state.run[0], asdict(rules)
    names = set(state.run.dtype.names or ())
    for name, value in values.items():
        if name in names and value is not None:
            setattr(run, name, value)
    run.ip_delay_s = rules.address_delay_s
    run.pipeline_gain = rules.pipeline_gain
    run.median = rules.estimator == "median"
    run.rescore_at = rules.rescore


def _free_slots(state: FrontierState, first: int) -> None:
    """Append the slots from `first` on to the end of the list of free slots, so that visit ids do not depend on when memory grew."""
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
