"""One partition of a simulated parallel crawl: its crawl, its outbox, and how far both have come. It does not know the others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.frontier.arrivals import Arrivals
from trapline.frontier.layout import DRAINED, FETCHED, UNKNOWN, WAIT, Array, Pages, State, recall
from trapline.graph import Graph
from trapline.jit import helper, i8, kernel, type_of, void
from trapline.parallel.ownership import NOBODY, Longs, Ownership
from trapline.parallel.post import Outbox, Post, PostType, add_link
from trapline.parallel.territory import View
from trapline.simulate.driver import Run
from trapline.simulate.log import Log

Ids = NDArray[np.int32]
Flags = type_of(np.zeros((1, 1), np.uint8))


class Process:
    def __init__(self, number: int, view: View, run: Run, outbox: Outbox) -> None:
        self.number, self.view, self.run, self.outbox = number, view, run, outbox
        # Views of memory: a look at a field of a record costs as much as a short step of a crawl.
        clock: Any = run.world.clock
        self._now, self._until, self._next, self._fetched = (clock[n].data for n in ("now", "until", "next", "fetched"))
        self._goal = view.graph.pages + 1  # more than there are: it ends when nothing is left
        self.idle = False
        self.sent_at = 0  # pages fetched when it last sent
        self._posted = 0  # rows of the log whose links are in the outbox
        self._crossed = 0  # entries of the outbox that were looked at for pages of others

    @property
    def fetched(self) -> int:
        return self._fetched[0]

    @property
    def next_moment(self) -> float:
        """When something could happen here; infinity: not before somebody sends something."""
        return np.inf if self.idle else self._next[0]

    def log(self) -> Log:
        """What it fetched, by the graph's numbers."""
        log = self.run.log
        return log._replace(page=self.view.whole_numbers(log.page))

    def crawl(self, until_s: float) -> int:
        """All that happens up to `until_s`; how many pages came in."""
        before = self.fetched
        self._until[0] = until_s
        self.idle = self.run.until(self._goal, None) in (DRAINED, WAIT)
        self._now[0] = max(self._now[0], until_s)
        return self.fetched - before

    def receive(self, entries: Array, now: float) -> None:
        """What others sent, in the order in which it was sent."""
        pages = self.view.own_numbers(entries["key"].astype(np.int32))
        self.run.frontier.receive(Arrivals(pages, entries["links"], entries["share"], entries["depth"]), now)
        self._wake(now)

    def discover(self, pages: Ids, now: float) -> None:
        self.run.frontier.discover(self.view.own_numbers(pages), now)
        self._wake(now)

    def _wake(self, now: float) -> None:
        """Something is new here at `now`, and nothing of it may happen before."""
        self.idle = False
        self._now[0] = max(self._now[0], now)
        self._next[0] = now

    # ---- what others own

    def post(self, graph: Graph, owned: Ownership) -> None:
        """Put the links of the pages that came in since the last time into the outbox, as far as others own what they lead to."""
        rows = self._new_rows()
        if not len(rows):
            return
        pages = self.view.whole_numbers(rows)
        self.outbox.reserve(int((graph.offsets[pages + 1] - graph.offsets[pages]).sum()))
        handle, column = self.run.frontier.handle, self.run.frontier.strategy.page.handed_on
        post_links(handle, self.outbox.post, rows, pages, graph.offsets, graph.targets, *owned, self.number, column)

    def _new_rows(self) -> Ids:
        log = self.run.log
        since = slice(self._posted, len(log.page))
        self._posted = len(log.page)
        return np.ascontiguousarray(log.page[since][log.result[since] == FETCHED])

    def next_foreign(self, most: int) -> Ids:
        """Of the pages of others that it met, in that order, the next that it has not taken. For cross-over."""
        found: list[int] = []
        state = self.run.frontier.state.state
        while len(found) < most and self._crossed < len(self.outbox):
            page = int(self.outbox.post.entry[self._crossed].key)
            self._crossed += 1
            if state[page] == UNKNOWN:
                found.append(page)
        return np.array(found, np.int32)


@helper(void(i8, Pages, Longs))
def assign(unit: int, owner: Array, units_of: Array) -> None:
    """To the partition that has the fewest, the first of several."""
    least = 0
    for one in range(1, units_of.size):
        if units_of[one] < units_of[least]:
            least = one
    owner[unit] = least
    units_of[least] += 1


@kernel(void(i8, PostType, Pages, Pages, Longs, Pages, Pages, Pages, Longs, Flags, i8, i8))
def post_links(
    handle: int, post: Post, rows: Array, pages: Array, offsets: Array, targets: Array, unit: Array, owner: Array,
    units_of: Array, asked: Array, own: int, column: int,
) -> None:  # fmt: skip
    """`rows` are the pages by the view's numbers, `pages` by the graph's. With a coordinator new units are given out, and links to own
    pages go out too: which those are was not known when the page came in."""
    s: State = recall(handle)
    dynamic = asked.size > 0
    for i in range(rows.size):
        first, last = offsets[pages[i]], offsets[pages[i] + 1]
        share = s.columns[rows[i], column] / (last - first) if column >= 0 and last > first else 0.0
        depth = s.page[rows[i]].depth
        for at in range(first, last):
            one = unit[targets[at]]
            if dynamic:
                asked[own, one] = 1
                if owner[one] == NOBODY:
                    assign(one, owner, units_of)
            if dynamic or owner[one] != own:
                add_link(post, targets[at], owner[one], share, depth)
