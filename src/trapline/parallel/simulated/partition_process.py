"""One partition of a simulated parallel crawl: its crawl, its outbox, and the progress of both. It does not know the
other partitions."""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import helper, i8, kernel, type_of, void
from trapline.frontier.core.arrivals import Arrivals
from trapline.frontier.layout import DRAINED, ELSEWHERE, FETCHED, UNKNOWN, WAIT, Array, FrontierState, Pages, recall
from trapline.graph import Graph
from trapline.parallel.simulated.url_exchange import (
    NOBODY,
    LinkOutbox,
    Longs,
    OutboxArrays,
    OutboxType,
    PageOwners,
    add_link,
)
from trapline.simulate.driver import Run
from trapline.simulate.log import FetchLog
from trapline.simulate.servers import Servers

# ---- The view of one partition: the part of a graph that it sees, as a graph with pages and sites numbered from 0.
# Links that lead out of the view are ELSEWHERE.
#
# There are two kinds of view. An *own* view has only the pages of the partition, so that all views together need the
# memory of one graph. A *whole* view has every page under its number in the graph, for partitions that also fetch pages
# of others; links to pages of others are ELSEWHERE there too.

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False, slots=True)
class PartitionView:
    graph: Graph
    pages: Ids | None  # number in the whole graph, by page of the view; None: the numbers are the same
    sites: Ids | None

    def whole_numbers(self, pages: Ids) -> Ids:
        return pages if self.pages is None else self.pages[pages]

    def own_numbers(self, pages: Ids) -> Ids:
        """Return the numbers in the view of pages of the whole graph. All of them must be in the view."""
        return pages if self.pages is None else np.searchsorted(self.pages, pages).astype(np.int32)

    def of_pages(self, values: Array) -> Array:
        return values if self.pages is None else values[self.pages]

    def servers(self, servers: Servers) -> Servers:
        """Return the servers of the sites and pages in this view."""
        if self.pages is None or self.sites is None:
            return servers
        by_page = {name: self._of(getattr(servers, name), self.pages) for name in ("latency_s", "size")}
        names = ("connection_s", "speed", "requests", "keep_alive_s")
        return replace(servers, **by_page, **{name: self._of(getattr(servers, name), self.sites) for name in names})

    @staticmethod
    def _of(values: Array, items: Ids) -> Array:
        return values if len(values) == 1 else values[items]


def own_views(graph: Graph, owner: Ids, partitions: int) -> list[PartitionView]:
    """Return the own view of each partition. O(pages + links) for all views together."""
    order = np.argsort(owner, kind="stable").astype(np.int32)
    number = np.empty(graph.pages, np.int32)  # number of each page in the view of its owner
    bounds = np.searchsorted(owner[order], np.arange(partitions + 1))
    parts = [order[first:last] for first, last in itertools.pairwise(bounds)]
    for pages in parts:
        number[pages] = np.arange(len(pages), dtype=np.int32)
    return [_own_view(graph, owner, number, pages, partition) for partition, pages in enumerate(parts)]


def _own_view(graph: Graph, owner: Ids, number: Ids, pages: Ids, partition: int) -> PartitionView:
    degree = np.diff(graph.offsets)[pages]
    offsets = np.concatenate(([0], np.cumsum(degree)))
    links = np.repeat(graph.offsets[pages] - offsets[:-1], degree) + np.arange(offsets[-1])
    targets = graph.targets[links]
    targets = np.where(owner[targets] == partition, number[targets], ELSEWHERE).astype(np.int32)
    sites, site = np.unique(graph.site[pages], return_inverse=True)
    _, ips = np.unique(graph.ips[sites], return_inverse=True)
    home = np.full(len(sites), -1, np.int32)
    home[site[::-1]] = np.arange(len(pages), dtype=np.int32)[::-1]  # the first page of each site; not used as a seed
    seen = Graph(offsets, targets, site.astype(np.int32), home, graph.dynamic[pages], ips.astype(np.int32))
    return PartitionView(seen, pages, sites.astype(np.int32))


def whole_view(graph: Graph, owner: Ids | None, partition: int) -> PartitionView:
    """Return a view of every page, in which links to pages of other partitions are ELSEWHERE. `owner` None: no page has
    an owner."""
    if owner is None:
        return PartitionView(graph, None, None)
    targets = np.where(owner[graph.targets] == partition, graph.targets, ELSEWHERE).astype(np.int32)
    return PartitionView(replace(graph, targets=targets), None, None)


# ---- process

PageIds = NDArray[np.int32]
Flags = type_of(np.zeros((1, 1), np.uint8))


class Process:
    def __init__(self, number: int, view: PartitionView, run: Run, outbox: LinkOutbox) -> None:
        self.number, self.view, self.run, self.outbox = number, view, run, outbox
        # Memory views, because access to a field of a record costs as much as a short step of a crawl.
        clock: Any = run.world.clock
        self._now, self._until, self._next, self._fetched = (clock[n].data for n in ("now", "until", "next", "fetched"))
        self._goal = view.graph.pages + 1  # more than there are: the crawl ends only when no page is left
        self.idle = False
        self.sent_at = 0  # number of pages fetched when it last sent links
        self._collected = 0  # rows of the log whose links are in the outbox
        self._crossed = 0  # entries of the outbox that cross-over has examined

    @property
    def fetched(self) -> int:
        return self._fetched[0]

    @property
    def next_moment(self) -> float:
        """Time of the next possible event; infinity: nothing happens until another partition sends something."""
        return np.inf if self.idle else self._next[0]

    def log(self) -> FetchLog:
        """Return the fetch log, with the page numbers of the whole graph."""
        log = self.run.log
        return log._replace(page=self.view.whole_numbers(log.page))

    def crawl(self, until_s: float) -> int:
        """Crawl up to time `until_s`. Return the number of pages fetched."""
        before = self.fetched
        self._until[0] = until_s
        self.idle = self.run.until(self._goal, None) in (DRAINED, WAIT)
        self._now[0] = max(self._now[0], until_s)
        return self.fetched - before

    def receive(self, entries: Array, now: float) -> None:
        """Take in links of other partitions, in the order in which they were sent."""
        pages = self.view.own_numbers(entries["key"].astype(np.int32))
        self.run.frontier.receive(Arrivals(pages, entries["links"], entries["share"], entries["depth"]), now)
        self._wake(now)

    def discover(self, pages: PageIds, now: float) -> None:
        self.run.frontier.discover(self.view.own_numbers(pages), now)
        self._wake(now)

    def _wake(self, now: float) -> None:
        """Continue at time `now`, and not before, because something new has arrived."""
        self.idle = False
        self._now[0] = max(self._now[0], now)
        self._next[0] = now

    # ---- pages of other partitions

    def collect_links(self, graph: Graph, owned: PageOwners) -> None:
        """Put the links of pages fetched since the last call into the outbox, if other partitions own their targets."""
        rows = self._new_rows()
        if not len(rows):
            return
        pages = self.view.whole_numbers(rows)
        self.outbox.reserve(int((graph.offsets[pages + 1] - graph.offsets[pages]).sum()))
        handle, column = self.run.frontier.handle, self.run.frontier.strategy.page.handed_on
        add_links(handle, self.outbox.arrays, rows, pages, graph.offsets, graph.targets, *owned, self.number, column)

    def _new_rows(self) -> PageIds:
        log = self.run.log
        since = slice(self._collected, len(log.page))
        self._collected = len(log.page)
        return np.ascontiguousarray(log.page[since][log.result[since] == FETCHED])

    def next_foreign(self, most: int) -> PageIds:
        """Return up to `most` pages of other partitions, for cross-over: the next ones in the order of discovery that
        this partition has not taken yet."""
        found: list[int] = []
        state = self.run.frontier.page_states
        while len(found) < most and self._crossed < len(self.outbox):
            page = int(self.outbox.arrays.entry[self._crossed].key)
            self._crossed += 1
            if state[page] == UNKNOWN:
                found.append(page)
        return np.array(found, np.int32)


@helper(void(i8, Pages, Longs))
def assign(unit: int, owner: Array, units_of: Array) -> None:
    """Assign a unit to the partition that has the fewest units; at a tie, to the first of them."""
    least = 0
    for one in range(1, units_of.size):
        if units_of[one] < units_of[least]:
            least = one
    owner[unit] = least
    units_of[least] += 1


@kernel(void(i8, OutboxType, Pages, Pages, Longs, Pages, Pages, Pages, Longs, Flags, i8, i8))
def add_links(
    handle: int, outbox: OutboxArrays, rows: Array, pages: Array, offsets: Array, targets: Array, unit: Array, owner: Array,
    units_of: Array, requested: Array, own: int, column: int,
) -> None:  # fmt: skip
    """Put the links of pages into the outbox. `rows`: the pages by their numbers in the view; `pages`: by their numbers
    in the graph. With a coordinator, new units are assigned here, and links to own pages go into the outbox too: which
    pages are own was not known when the page was fetched."""
    s: FrontierState = recall(handle)
    dynamic = requested.size > 0
    for i in range(rows.size):
        first, last = offsets[pages[i]], offsets[pages[i] + 1]
        share = s.columns[rows[i], column] / (last - first) if column >= 0 and last > first else 0.0
        depth = s.page[rows[i]].depth
        for at in range(first, last):
            one = unit[targets[at]]
            if dynamic:
                requested[own, one] = 1
                if owner[one] == NOBODY:
                    assign(one, owner, units_of)
            if dynamic or owner[one] != own:
                add_link(outbox, targets[at], owner[one], share, depth)
