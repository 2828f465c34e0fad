"""The refresh of a live or simulated crawl: which fetched pages are worth a crawl now. By the same policies, evidence and queue as a
replay.

It refuses to know clocks, sockets, URLs and protocols: it is told what happened, with the time, and asked what to do. Politeness is the
frontier's: `choose` looks at it and leases nothing. Times are seconds on the frontier's clock; pages and sites are its numbers.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trapline import jit
from trapline.errors import InvariantError
from trapline.frontier.frontier import Frontier
from trapline.frontier.layout import MOST_PER_VISIT, Array, Record
from trapline.refresh import kernels, moving
from trapline.refresh.calls import carry_out, check
from trapline.refresh.channels import NOT_VERIFIED, Channels
from trapline.refresh.explain import explain
from trapline.refresh.layout import AWAY, CHOSEN, OPEN, SHUT, UNVERIFIED
from trapline.refresh.memory import Memory
from trapline.refresh.policy import Policy
from trapline.refresh.published import ahead
from trapline.refresh.refresh_log import NOTHING, Entry, RefreshLog, read
from trapline.refresh.refresh_rules import RefreshRules


class Choice(NamedTuple):
    """Pages of one site to crawl, best first, and what the first is worth: in the policy's unit, or for how many seconds it has been
    due."""

    site: int
    pages: list[int]
    value: float


class Refresher:
    """`started`: a moment before everything that it will hear of.

    >>> from trapline.refresh.registry import policy_named
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
        jit.ready()
        self.policy, self.started, self.rules = policy, started, rules or RefreshRules()
        self.memory = memory or Memory(policy, self.rules)
        self.memory.whole.run[0].started = started
        self.log = RefreshLog()
        self._channels = Channels(self.memory, self.rules)
        self._out, self._worth = np.zeros(MOST_PER_VISIT + 1, np.int64), np.zeros(1)

    def __contains__(self, page: int) -> bool:
        """Whether the page was fetched and is not gone."""
        return self.memory.slot(page) >= 0

    def seen_at(self, page: int) -> float:
        """When our copy was last as the page is: its last crawl."""
        return float(self._record(page).crawled_s) + self.started

    def signals(self, page: int) -> int:
        """How many signals of a page have counted."""
        return int(self._record(page).all_signals)

    @property
    def pages(self) -> int:
        return self.memory.pages

    @property
    def by_quality(self) -> bool:
        """Whether pages are taken to be as popular as their quality says, because no access has been heard of."""
        return bool(self.memory.whole.run[0].accesses == 0)

    @property
    def now(self) -> float:
        """The last moment heard of."""
        return float(self.memory.whole.run[0].now) + self.started

    @property
    def price(self) -> float:
        """What a crawl was worth, recently."""
        return float(self.memory.whole.run[0].price)

    # ---- what happens to a page

    def join(self, page: int, site: int, now: float, quality: float = 1.0) -> None:
        """It was fetched for the first time: there is a fresh copy."""
        if self.memory.slot(page) >= 0:
            raise InvariantError(f"page {page} joins twice")
        if not 0.0 <= quality < math.inf or not 0 <= site < 2**31 or not 0 <= page < 2**31:
            raise InvariantError(f"page {page} of site {site} joins with a quality of {quality}")
        self._make(kernels.JOIN, page, now, number=site, payload=np.array([quality]))

    def crawled(self, page: int, now: float, changed: bool, age_s: float = math.inf) -> None:
        """It was fetched again. `age_s`: since it last changed, by a Last-Modified that can be believed; infinity: nobody says."""
        self._make(kernels.CRAWLED, self._joined(page), now, flag=int(changed), number=age_s)

    def failed(self, page: int, now: float) -> None:
        """No answer: the copy stands, and is tried again later. The wait doubles each time."""
        self._make(kernels.FAILED, self._joined(page), now)

    def gone(self, page: int, now: float) -> None:
        """Its server says that there is no such page any more, or it may not be asked for: the copy stands, and is tried again after a
        day, then two, up to thirty; or when `recalled`."""
        self._make(kernels.FAILED, self._joined(page), now, flag=1)

    def recalled(self, page: int, now: float) -> None:
        """Somebody says that a page which failed or was gone is there: it need not wait any longer."""
        if int(self._record(page).place) == AWAY:
            self._make(kernels.RETURNED, page, now, flag=1)

    def returned(self, page: int, now: float) -> None:
        """It was chosen and never asked for: it is as it was."""
        self._make(kernels.RETURNED, self._joined(page), now)

    def leave(self, page: int, now: float) -> None:
        """It is not a page of the crawl any more."""
        self._make(kernels.LEAVE, self._joined(page), now)

    def accessed(self, page: int, now: float, count: float = 1.0) -> bool:
        """False: it is no page that was fetched."""
        return self._make_if_joined(kernels.ACCESSED, page, now, number=count)

    # ---- what moves to another refresher, with the same start

    def evidence(self, page: int) -> list[float]:
        """What is known of a page."""
        return moving.page_row(self.memory, self._joined(page)).tolist()

    def outcomes(self, site: int) -> list[float]:
        """How right what was told of a site's pages has been so far."""
        return moving.site_row(self.memory, self._channels, site).tolist()

    def learned(self) -> list[float]:
        """What all pages together have taught."""
        return moving.row_of_all(self.memory, self._channels).tolist()

    def moved(self, page: int, now: float) -> None:
        """Another has it from now on."""
        self._make(kernels.LEAVE, self._joined(page), now, flag=1)

    def adopt(self, page: int, site: int, evidence: Sequence[float], now: float) -> None:
        """A page that another had. What is known of its site comes first. `ConfigError` if the evidence is none."""
        if self.memory.slot(page) >= 0:
            raise InvariantError(f"page {page} joins twice")
        known = moving.check_page(self.memory, evidence)
        known[: moving.MOMENTS] = known[: moving.MOMENTS].clip(max=self._at(now))  # another's clock may be ahead
        self._make(kernels.ADOPTED, page, now, number=site, payload=known)

    def trust(self, site: int, outcomes: Sequence[float], now: float) -> None:
        self._make(kernels.TRUSTED, site, now, payload=moving.check_site(outcomes))

    def learn(self, learned: Sequence[float], now: float) -> None:
        """Whatever of it is not known here yet."""
        self._make(kernels.LEARNED, 0, now, payload=moving.check_all(self.memory, learned))

    # ---- what providers tell

    def signalled(self, page: int, channel: int, now: float, moment: float, p: float = 1.0) -> bool:
        """The page changed at `moment`, a channel of its site says. `p` of UNVERIFIED or less: nobody knows who says it. False: it is no
        page that was fetched."""
        flag = channel | NOT_VERIFIED if p <= UNVERIFIED else channel
        return self._make_if_joined(kernels.SIGNALLED, page, now, flag=flag, number=moment - self.started)

    def publish(self, page: int, channel: int, points: Sequence[tuple[float, float]], now: float) -> bool:
        """The page will change at these moments, each with a probability: in place of all that this channel said of it before. False: it is
        no page that was fetched."""
        told = ahead([(at - self.started, p) for at, p in points], self._at(now))
        return self._make_if_joined(kernels.PUBLISHED, page, now, flag=channel, payload=told)

    # ---- decisions

    def choose(
        self,
        frontier: Frontier,
        now: float,
        least: float = 0.0,
        credit: Array = NOTHING,
        needs: float = -math.inf,
    ) -> Choice | None:
        """The best page that may be visited now, and more of its site that are worth a crawl too, up to what a visit may take. None:
        nothing that is worth at least `least` may be visited now. What was chosen must be crawled, failed, returned or leave. Sites at
        which new pages wait are passed over if their `credit` (0 beyond its end) is less than it `needs` to be."""
        at_s = self._at(now)
        matters = self._something_is_due(at_s)
        handles = self.memory.handle, frontier.handle
        n = int(kernels.decide(*handles, at_s, least, credit, needs, self._out, self._worth))
        if n < 0:
            if matters:
                self.log.write(Entry(kernels.ASKED, 0, 0, 0.0, at_s, NOTHING))
            return None
        site, *pages = self._out[: n + 1].tolist() if n > 0 else [0]
        worth = float(self._worth[0]) if n > 0 else 0.0
        self.log.write(Entry(kernels.CHOSE, 0, site, worth, at_s, np.array(pages, np.float64)))
        return Choice(site, pages, worth) if n > 0 else None

    def _something_is_due(self, at_s: float) -> bool:
        """Whether the mere passing of time up to this moment is an event (timers.py): a replay has no other way to know of it."""
        s, run = self.memory.whole, self.memory.whole.run[0]
        return bool(
            run.cycle * run.cycle_s <= at_s
            or (run.timers > 0 and -s.timer[0].key <= at_s)
            or (run.half_life_s > 0.0 and at_s - run.halved_s >= run.half_life_s)
        )

    def visited(self, site: int) -> None:
        """A visit of the site is over: when it may be visited again is known now. No evidence, and so not in the log."""
        kernels.look_again(self.memory.handle, site)

    def next_moment(self) -> float:
        """When it is worth asking again if nothing else happens: a site opens, a page is due, a point comes. Infinity: never."""
        s, run = self.memory.whole, self.memory.whole.run[0]
        heaps = ((run.shut, s.sites[SHUT]), (run.timers, s.timer))
        moments = [-float(heap[0].key) for size, heap in heaps if size > 0]
        if run.open > 0:
            moments.append(-float(s.sites[OPEN, 0].key) if run.still else float(run.now))
        return max(min(moments, default=math.inf), float(run.now)) + self.started

    def has_waiting(self, site: int) -> bool:
        """Whether there are pages of the site that could be chosen."""
        pages = self.memory.whole.site["pages"]
        return site < len(pages) and bool(pages[site] > 0)

    def chosen(self) -> list[int]:
        """The pages chosen and not heard of yet."""
        page = self.memory.state.page
        return sorted(page["id"][page["place"] == CHOSEN].tolist())

    def return_all(self, now: float) -> None:
        """A crawl goes on after a stop: nobody will say what became of the pages that were chosen."""
        for page in self.chosen():
            self.returned(page, now)

    def explain(self, page: int, now: float) -> dict[str, Any]:
        """What is known of a page, for people. Nothing changes by it."""
        return explain(self.memory, self.policy, self.memory.slot(self._joined(page)), self._at(now), self.started)

    # ---- durability

    def take(self) -> bytes:
        """The log of calls since the last time."""
        return self.log.take()

    def replay(self, blobs: bytes) -> int:
        """Make the calls again; how many there were. Decisions are taken from the log: what the frontier said then is not known.
        `ConfigError` if these are not the calls that came next."""
        calls = 0
        for entry in read(blobs):
            check(self.memory, entry)
            carry_out(self.memory, self._channels, entry)
            calls += 1
        kernels.settle_all(self.memory.handle)
        return calls

    def save(self, folder: Path | str) -> None:
        """Write all evidence as `folder`, in place of what was there. The log goes on from here."""
        from trapline.refresh.refresh_snapshot import save

        save(self, Path(folder))

    @classmethod
    def load(cls, folder: Path | str, policy: Policy) -> "Refresher":
        """The refresher that was saved, by the same policy."""
        from trapline.refresh.refresh_snapshot import load

        return load(Path(folder), policy)

    # ---- the way down

    def _at(self, now: float) -> float:
        """Seconds since the start. Clocks may be set back; time does not go back."""
        if not -math.inf < now < math.inf:
            raise InvariantError(f"now is {now}")
        return max(now - self.started, self.memory.now)

    def _record(self, page: int) -> Record:
        return self.memory.whole.page[self.memory.slot(self._joined(page))]

    def _joined(self, page: int) -> int:
        if self.memory.slot(page) < 0:
            raise InvariantError(f"page {page} has not joined, or has left")
        return page

    def _make_if_joined(self, call: int, page: int, now: float, **more: Any) -> bool:
        joined = self.memory.slot(page) >= 0
        if joined:
            self._make(call, page, now, **more)
        return joined

    def _make(
        self, call: int, page: int, now: float, flag: int = 0, number: float = 0.0, payload: Array = NOTHING
    ) -> None:
        entry = Entry(call, flag, page, number, self._at(now), payload)
        self.log.write(entry)
        carry_out(self.memory, self._channels, entry)
