"""The refresher of a live or simulated crawl: it decides which fetched pages to crawl again now.

It uses the same policies, evidence and queues as a replay. It knows no clocks, sockets, URLs or protocols: the caller reports
events with their times and asks for decisions. Politeness belongs to the frontier: `choose` reads the frontier and leases
nothing. Times are seconds on the frontier's clock; pages and sites have the frontier's numbers.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trapline.errors import InvariantError
from trapline.frontier.frontier import Frontier
from trapline.frontier.layout import MOST_PER_VISIT, Array, Record
from trapline.refresh.core import kernels
from trapline.refresh.core.layout import AWAY, CHOSEN, OPEN, SHUT, UNVERIFIED
from trapline.refresh.live import moving
from trapline.refresh.live.calls import NOTHING, LoggedCall, RefreshLog, carry_out, check, read
from trapline.refresh.live.channels import NOT_VERIFIED, Channels, ahead
from trapline.refresh.live.explain import DuePages, due_pages, explain
from trapline.refresh.live.memory import Memory, RefreshRules
from trapline.refresh.live.snapshot import RefreshSnapshot, load, save
from trapline.refresh.policy import Policy


class Choice(NamedTuple):
    """Pages of one site to crawl, best first, and the value of the first page: in the policy's unit, or the seconds for which it has
    been due."""

    site: int
    pages: list[int]
    value: float


class Refresher:
    """The refresh state of a crawl. `started`: a time before all events that will be reported.

    >>> from trapline.refresh.policy import policy_named
    >>> refresher = Refresher(policy_named("residual-life"), started=1_000.0)
    >>> refresher.join(page=7, site=0, now=1_010.0)
    >>> refresher.signalled(7, channel=0, now=1_500.0, moment=1_500.0)
    True
    >>> known = refresher.explain(7, now=1_500.0)
    >>> known["level"], known["signals"], round(known["trust"]["precision"], 2)
    ('smart', 1, 0.95)
    """

    def __init__(
        self, policy: Policy, started: float, rules: RefreshRules | None = None, memory: Memory | None = None
    ) -> None:
        self.policy, self.started, self.rules = policy, started, rules or RefreshRules()
        self.memory = memory or Memory(policy, self.rules)
        self.memory.whole.run[0].started = started
        self.log = RefreshLog()
        self._channels = Channels(self.memory, self.rules)
        self._out, self._value = np.zeros(MOST_PER_VISIT + 1, np.int64), np.zeros(1)

    def __contains__(self, page: int) -> bool:
        """Return whether the page has joined and has not left."""
        return self.memory.slot(page) >= 0

    def seen_at(self, page: int) -> float:
        """Return the time of the page's last crawl, when our copy was last known to be fresh."""
        return float(self._record(page).crawled_s) + self.started

    def signals(self, page: int) -> int:
        """Return how many signals of the page have counted."""
        return int(self._record(page).all_signals)

    @property
    def pages(self) -> int:
        """Number of pages."""
        return self.memory.pages

    @property
    def by_quality(self) -> bool:
        """Whether the popularity of pages is derived from their quality, because no access was reported."""
        return bool(self.memory.whole.run[0].accesses == 0)

    @property
    def now(self) -> float:
        """Time of the last event."""
        return float(self.memory.whole.run[0].now) + self.started

    @property
    def price(self) -> float:
        """Moving average of the values of the chosen pages."""
        return float(self.memory.whole.run[0].price)

    # ---- events of a page

    def join(self, page: int, site: int, now: float, quality: float = 1.0) -> None:
        """Add a page that was fetched for the first time: there is a fresh copy."""
        if self.memory.slot(page) >= 0:
            raise InvariantError(f"page {page} has joined already; report later fetches with `crawled`")
        if not 0.0 <= quality < math.inf or not 0 <= site < 2**31 or not 0 <= page < 2**31:
            raise InvariantError(
                f"page {page} of site {site} with quality {quality}: ids must be in 0..2^31-1, the quality finite and at least 0"
            )
        self._make(kernels.JOIN, page, now, number=site, payload=np.array([quality]))

    def crawled(self, page: int, now: float, changed: bool, age_s: float = math.inf) -> None:
        """Report a refetch. `age_s`: time since the page last changed, by a reliable Last-Modified; infinity: unknown."""
        self._make(kernels.CRAWLED, self._joined(page), now, flag=int(changed), number=age_s)

    def failed(self, page: int, now: float) -> None:
        """Report that a refetch failed. The copy remains, and the page is tried again later; the wait doubles each time."""
        self._make(kernels.FAILED, self._joined(page), now)

    def gone(self, page: int, now: float) -> None:
        """Report that the server no longer has the page, or that it may not be requested.

        The copy remains, and the page is tried again after one day, then two, up to thirty; or when it is `recalled`.
        """
        self._make(kernels.FAILED, self._joined(page), now, flag=1)

    def recalled(self, page: int, now: float) -> None:
        """End the wait of a page that failed or was gone, because a signal says that it exists."""
        if int(self._record(page).place) == AWAY:
            self._make(kernels.RETURNED, page, now, flag=1)

    def returned(self, page: int, now: float) -> None:
        """Report that a chosen page was not requested. It returns to the queue unchanged."""
        self._make(kernels.RETURNED, self._joined(page), now)

    def leave(self, page: int, now: float) -> None:
        """Remove a page that no longer belongs to the crawl."""
        self._make(kernels.LEAVE, self._joined(page), now)

    def accessed(self, page: int, now: float, count: float = 1.0) -> bool:
        """Report accesses to a page. Return False if the page has not joined."""
        return self._make_if_joined(kernels.ACCESSED, page, now, number=count)

    # ---- moving pages to another refresher that has the same start

    def evidence(self, page: int) -> list[float]:
        """Return the evidence about a page."""
        return moving.page_row(self.memory, self._joined(page)).tolist()

    def outcomes(self, site: int) -> list[float]:
        """Return the outcomes of a site's channels: how often their signals and points were true so far."""
        return moving.site_row(self.memory, self._channels, site).tolist()

    def learned(self) -> list[float]:
        """Return what was learned from all pages together."""
        return moving.row_of_all(self.memory, self._channels).tolist()

    def moved(self, page: int, now: float) -> None:
        """Remove a page that another refresher has from now on."""
        self._make(kernels.LEAVE, self._joined(page), now, flag=1)

    def adopt(self, page: int, site: int, evidence: Sequence[float], now: float) -> None:
        """Add a page from another refresher with its evidence. Call `trust` for its site before. Raise ConfigError if the evidence is
        invalid."""
        if self.memory.slot(page) >= 0:
            raise InvariantError(f"page {page} has joined already; adopt every page once")
        known = moving.check_page(self.memory, evidence)
        known[: moving.MOMENTS] = known[: moving.MOMENTS].clip(max=self._at(now))  # the other clock may be ahead
        self._make(kernels.ADOPTED, page, now, number=site, payload=known)

    def trust(self, site: int, outcomes: Sequence[float], now: float) -> None:
        """Set the outcomes of a site's channels, from another refresher."""
        self._make(kernels.TRUSTED, site, now, payload=moving.check_site(outcomes))

    def learn(self, learned: Sequence[float], now: float) -> None:
        """Take over from another refresher those kinds of learned numbers that are not known here yet."""
        self._make(kernels.LEARNED, 0, now, payload=moving.check_all(self.memory, learned))

    # ---- signals and published points

    def signalled(self, page: int, channel: int, now: float, moment: float, p: float = 1.0) -> bool:
        """Report a signal of a channel of the site: the page changed at `moment`. Return False if the page has not joined.

        `p` of UNVERIFIED or less: the sender of the signal is unknown.
        """
        flag = channel | NOT_VERIFIED if p <= UNVERIFIED else channel
        return self._make_if_joined(kernels.SIGNALLED, page, now, flag=flag, number=moment - self.started)

    def publish(self, page: int, channel: int, points: Sequence[tuple[float, float]], now: float) -> bool:
        """Replace the points that a channel published for the page: times at which it will change, each with a probability.

        Return False if the page has not joined.
        """
        payload = ahead([(at - self.started, p) for at, p in points], self._at(now))
        return self._make_if_joined(kernels.PUBLISHED, page, now, flag=channel, payload=payload)

    # ---- decisions

    def choose(
        self,
        frontier: Frontier,
        now: float,
        least: float = 0.0,
        credit: Array = NOTHING,
        needs: float = -math.inf,
    ) -> Choice | None:
        """Choose the best page that may be visited now, and further pages of its site, as many as a visit may take.

        Return None if no page with a value of at least `least` may be visited now. The caller must report every chosen page
        as crawled, failed, gone, returned or left. A site at which new pages wait is passed over if its `credit` (0 beyond the
        end of the array) is less than `needs`.
        """
        at_s = self._at(now)
        matters = self._something_is_due(at_s)
        handles = self.memory.handle, frontier.handle
        n = int(kernels.decide(*handles, at_s, least, credit, needs, self._out, self._value))
        if n < 0:
            if matters:
                self.log.write(LoggedCall(kernels.TIME_PASSED, 0, 0, 0.0, at_s, NOTHING))
            return None
        site, *pages = self._out[: n + 1].tolist() if n > 0 else [0]
        value = float(self._value[0]) if n > 0 else 0.0
        self.log.write(LoggedCall(kernels.CHOSE, 0, site, value, at_s, np.array(pages, np.float64)))
        return Choice(site, pages, value) if n > 0 else None

    def _something_is_due(self, at_s: float) -> bool:
        """Return whether time up to `at_s` brings an event (refresh/core/timers.py). The call must then be logged, because a replay of the
        log has no other way to know of it."""
        s, run = self.memory.whole, self.memory.whole.run[0]
        return bool(
            run.cycle * run.cycle_s <= at_s
            or (run.timers > 0 and -s.timer[0].key <= at_s)
            or (run.half_life_s > 0.0 and at_s - run.halved_s >= run.half_life_s)
        )

    def visited(self, site: int) -> None:
        """Report that a visit to the site is over, so that the next decision checks the site. It is not evidence, so it is not logged."""
        kernels.look_again(self.memory.handle, site)

    def next_moment(self) -> float:
        """Return when to call `choose` again if nothing else happens: a site opens, a page is due, or a point comes. Infinity: never."""
        s, run = self.memory.whole, self.memory.whole.run[0]
        heaps = ((run.shut, s.sites[SHUT]), (run.timers, s.timer))
        moments = [-float(heap[0].key) for size, heap in heaps if size > 0]
        if run.open > 0:
            moments.append(-float(s.sites[OPEN, 0].key) if run.still else float(run.now))
        return max(min(moments, default=math.inf), float(run.now)) + self.started

    def has_waiting(self, site: int) -> bool:
        """Return whether the site has pages that could be chosen."""
        pages = self.memory.whole.site["pages"]
        return site < len(pages) and bool(pages[site] > 0)

    def chosen(self) -> list[int]:
        """Return the chosen pages whose results were not reported yet."""
        page = self.memory.state.page
        return sorted(page["id"][page["place"] == CHOSEN].tolist())

    def return_all(self, now: float) -> None:
        """Return all chosen pages to the queue. For a crawl that resumes after a stop: their results will never be reported."""
        for page in self.chosen():
            self.returned(page, now)

    def explain(self, page: int, now: float) -> dict[str, Any]:
        """Return the evidence about a page, for people. Changes nothing."""
        return explain(self.memory, self.policy, self.memory.slot(self._joined(page)), self._at(now), self.started)

    def due(self, most: int) -> DuePages:
        """Return which pages are due at the time of the last event, for people: numbers, and at most `most` of the best."""
        return due_pages(self.memory, self.memory.now, most)

    # ---- durability

    def take(self) -> bytes:
        """Remove and return the log of calls since the last `take`."""
        return self.log.take()

    def replay(self, blobs: bytes) -> int:
        """Make the logged calls again and return their number. Raise ConfigError if they do not follow the present state.

        Decisions are taken from the log, because the state of the frontier at that time is not known.
        """
        calls = 0
        for entry in read(blobs):
            check(self.memory, entry)
            carry_out(self.memory, self._channels, entry)
            calls += 1
        kernels.settle_all(self.memory.handle)
        return calls

    def save(self, folder: Path | str) -> None:
        """Write all evidence to `folder`, replacing the snapshot there. The log continues from here."""
        save(RefreshSnapshot(self.memory, self.rules, self.started), self.policy, Path(folder))

    @classmethod
    def load(cls, folder: Path | str, policy: Policy) -> "Refresher":
        """Load the refresher that was saved. It must have been saved with the same policy."""
        saved = load(Path(folder), policy)
        return cls(policy, saved.started, saved.rules, saved.memory)

    # ---- private

    def _at(self, now: float) -> float:
        """Return the seconds since the start. A clock may be set back, but the refresher's time never goes back."""
        if not -math.inf < now < math.inf:
            raise InvariantError(f"now is {now}; it must be a finite time in seconds")
        return max(now - self.started, self.memory.now)

    def _record(self, page: int) -> Record:
        return self.memory.whole.page[self.memory.slot(self._joined(page))]

    def _joined(self, page: int) -> int:
        if self.memory.slot(page) < 0:
            raise InvariantError(f"page {page} has not joined, or has left; add it with `join` first")
        return page

    def _make_if_joined(self, call: int, page: int, now: float, **more: Any) -> bool:
        joined = self.memory.slot(page) >= 0
        if joined:
            self._make(call, page, now, **more)
        return joined

    def _make(
        self, call: int, page: int, now: float, flag: int = 0, number: float = 0.0, payload: Array = NOTHING
    ) -> None:
        entry = LoggedCall(call, flag, page, number, self._at(now), payload)
        self.log.write(entry)
        carry_out(self.memory, self._channels, entry)
