"""The crawler: asks the frontier who is next, sends robots there, and tells it what they found. Steps 4 and 8 of the way of a URL.

It opens no socket and reads no clock: `World` does (world.py), the live web (live.py) or virtual time (tests). So the order of a crawl is
decided here and in the frontier alone, and can be held against the simulator's.

Who calls: the world (a timer, the store), and the robots (visit.py), which report each page as it comes in and then the end of their
visit. Whoever becomes free asks `soon`: after all that happens at this moment, as the simulator has it, and once for all of them.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from trapline.crawl.asked import Asked, answer, no_answer
from trapline.crawl.ends import BYTES, DRAINED, PAGES
from trapline.crawl.errands import Errands
from trapline.crawl.hearsay import Hearsay
from trapline.crawl.judge import Verdict, judge
from trapline.crawl.known import Found, Known
from trapline.crawl.outbox import Outbox
from trapline.crawl.partition import Others
from trapline.crawl.records import AS_BEFORE, ERRAND, RETURNED, SITE_FAILED, VISITS, Fetched, GivenUp, Progress
from trapline.crawl.shelf import Shelf
from trapline.crawl.sites import Site
from trapline.crawl.standing import next_visit
from trapline.crawl.tally import Tally
from trapline.crawl.upkeep import Upkeep
from trapline.crawl.waiting import Waiting
from trapline.crawl.world import Timer, World
from trapline.fetch import failure
from trapline.fetch.response import Response
from trapline.fetch.urls import canonical
from trapline.frontier import FAILED, FETCHED, REFUSED, Drained, Frontier, Outcome, Rescore, Visit, WaitUntil
from trapline.frontier.layout import Array
from trapline.units import counted

_CONDITION = b"\r\nIf-"  # of a request: by an entity tag, by a date, or both
_NO_PAGES = np.zeros(0, np.int32)
_NOWHERE = Found(_NO_PAGES)


@dataclass(frozen=True, slots=True)
class Goals:
    """When a crawl has enough. Infinity: never."""

    pages: float = math.inf
    bytes: float = math.inf


@dataclass(frozen=True, slots=True)
class Manner:
    """How a crawler goes about it, whatever it finds."""

    connections: int  # at most, at once
    agent: str  # the name by which robots.txt files know us
    expanded_bytes: int  # of a page without its content coding: a longer one is not read
    give_up: int  # visits in a row that fail, until a site is left alone
    goals: Goals = field(default_factory=Goals)
    keep_hrefs: bool = False  # links as they stand on the page go to the store too


class Crawler:
    def __init__(
        self,
        frontier: Frontier,
        known: Known,
        shelf: Shelf,
        outbox: Outbox,
        manner: Manner,
        *,
        worth: Callable[[Asked], float],
        keep_links: Callable[[int, Array], None] | None = None,
        tally: Tally | None = None,
        upkeep: Upkeep | None = None,
        hearsay: Hearsay | None = None,
        others: Others | None = None,
    ) -> None:
        """`others`: the crawl is one of several, and goes on when it has nothing to do: they may send something."""
        self.frontier, self.known, self.outbox = frontier, known, outbox
        self._shelf, self._manner, self._worth, self._keep_links = shelf, manner, worth, keep_links
        # Whether every page may matter to a free robot.
        self._often = keep_links is not None or frontier.rules.batch > 0
        self.tally = tally or Tally()
        self.upkeep, self.hearsay, self.others = upkeep, hearsay, others
        self.errands = Errands(frontier)
        self._next = frontier.next if upkeep is None else upkeep.agenda.next
        self.active = 0  # visits under way
        self.stopped_by = ""
        # With those asked for; one of several crawls may have a part of their goal.
        self.most_pages = manner.goals.pages
        self.full: Callable[[], bool] = lambda: False  # whether the store has more than it can take
        self._waiting = Waiting()
        self._asking = self._scoring = False
        self._discovered = 0
        self._timer: Timer | None = None
        self._wakes_at = math.inf

    def begin(self, world: World) -> None:
        self._world = world
        self._stop_at_goals()  # a crawl that goes on may have reached them before
        self.soon()

    def now(self) -> float:
        return self._world.now()

    # ---- asking

    def soon(self) -> None:
        if not self._asking:
            self._asking = True
            self._world.call_soon(self._ask)

    def _ask(self) -> None:
        self._asking = False
        while self._may_set_out():
            answer = self._next_visit(self._world.now())
            if isinstance(answer, Visit):
                self._set_out(answer)
                continue
            if isinstance(answer, Rescore):
                self._scoring = True
                self._world.score()
            elif isinstance(answer, WaitUntil):
                self._wake(answer)
            elif self.others is None:
                self.stop(DRAINED)
            break
        if self.others is not None and self.is_idle:
            self.others.rest()
        if self.stopped_by and not self.active:
            self._world.ended()

    def _next_visit(self, now: float) -> Visit | WaitUntil | Rescore | Drained:
        """An errand, which brings no page; or a page, if there may be one more."""
        errand = self.errands.next(now)
        if errand is not None:
            return errand
        answer = self._next(now) if self.used < self.most_pages else WaitUntil(math.inf)
        return answer if isinstance(answer, Visit) else self.errands.awaited(answer)

    def _set_out(self, visit: Visit) -> None:
        self.active += 1
        conditions = self.upkeep.conditions(visit) if self.upkeep and visit not in self.errands else []
        self._world.set_out(visit, self.known.sites[visit.site], self._shelf.urls(visit.pages), conditions)

    def _wake(self, answer: WaitUntil) -> None:
        """One timer serves all waiting: it is set anew only if the next moment is another."""
        if answer.time == self._wakes_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = answer.time
        self._timer = self._world.call_at(answer.time, self._woken) if answer.time < math.inf else None

    @property
    def waits_for(self) -> str:
        """What it waits for while no connection is open; "": it need not wait, or nobody knows for how long."""
        if self.active > 0 or self.stopped_by:
            return ""
        if self.others is not None and self.used >= self.most_pages:
            return "waiting for a share of --max-pages"
        return next_visit(self.next_visit_s)

    @property
    def next_visit_s(self) -> float:
        """For how long it waits while no connection is open; infinity: nobody knows."""
        left_s = self._wakes_at - self._world.now()
        return left_s if self.active == 0 and not self.stopped_by and left_s > 0.0 else math.inf

    def _woken(self) -> None:
        self._wakes_at, self._timer = math.inf, None
        self.soon()

    def rescored(self, scores: Array) -> None:
        self._scoring = False
        self.frontier.rescore(scores, self._world.now())
        self.soon()

    def stop(self, why: str) -> None:
        """No new requests; what is under way comes in."""
        self.stopped_by = self.stopped_by or why
        self._waiting.end_pauses()
        self.go_on()
        self.soon()

    def _stop_at_goals(self) -> None:
        if self.tally.fetched >= self._manner.goals.pages:
            self.stop(PAGES)
        elif self.tally.body_bytes >= self._manner.goals.bytes:
            self.stop(BYTES)

    # ---- what robots may do

    def may_request(self, visit: Visit) -> bool:
        """Whether another page may be asked for: with those under way it must not exceed what is wanted. Errands bring no page."""
        has_room = self.tally.fetched + self.tally.in_flight < self.most_pages
        return not self.stopped_by and (has_room or visit in self.errands)

    @property
    def has_pages(self) -> bool:
        """Whether it has pages to fetch, new or again, now or later. Not a matter of how many it may still have."""
        return self.upkeep.agenda.goes_on if self.upkeep is not None else self.frontier.has_new

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do until another partition sends something."""
        return self.active == 0 and not self.has_pages and self.errands.opens_at == math.inf

    @property
    def is_ready(self) -> bool:
        """Whether it would set out for a new page now, if it may have one more."""
        now = self._world.now()
        return self._may_set_out() and self.frontier.opens_at(now) <= now

    def _may_set_out(self) -> bool:
        has_room = self.active < self._manner.connections and not self.full()
        return has_room and not self._scoring and not self.stopped_by

    @property
    def used(self) -> float:
        """Of `most_pages`: those had and asked for; among others, who may give us more later, also one for each robot that is out, or
        it would come to a site for nothing, and the site would rest all the same."""
        asked = self.tally.fetched + self.tally.in_flight
        if self.others is None:
            return asked
        return max(asked, min(self.tally.fetched + self.active - len(self.errands), self.most_pages))

    def waits(self, go_on: Callable[[], None]) -> bool:
        """Whether the store has too much to do; if so, `go_on` is called when it has less."""
        if not self.full():
            return False
        self._waiting.for_store(go_on)
        return True

    def pause(self, seconds: float, go_on: Callable[[], None]) -> None:
        """Call `go_on` after so long, or as soon as the crawl is to stop."""
        moment = self._world.now() + (0.0 if self.stopped_by else seconds)
        self._waiting.pause(go_on, moment, self._world)

    def leaves(self, go_on: Callable[[], None]) -> None:
        """Its visit is over: it is not to be called any more."""
        self._waiting.leaves(go_on)

    def go_on(self) -> None:
        """The store has room again."""
        self._waiting.store_has_room()
        self.soon()

    # ---- what robots report

    def answered(self, visit: Visit, site: Site, asked: Asked, response: Response, address: str) -> Verdict:
        """A page is in."""
        if visit in self.errands:
            return self._errand_done(visit, site, asked, response, address)
        now = self._world.now()
        again = self.upkeep is not None and self.upkeep.is_again(asked.page)
        verdict = judge(
            response,
            self._manner.agent,
            self._manner.expanded_bytes,
            now,
            again and _CONDITION in asked.request,
            self.upkeep is not None,
        )
        self.tally.in_flight -= 1
        if 300 <= response.status < 400 and verdict.links:
            self._redirected(asked.url, verdict.links[0])
        links, foreign = self.known.pages_of(asked.url, verdict.base, verdict.links, now) if verdict.links else _NOWHERE
        worth = 0.0
        if verdict.result == FETCHED and not again:
            worth = self._worth(asked)  # first: what it is worth may change with the report
            self.tally.quality += worth
            if self._keep_links is not None:
                self._keep_links(asked.page, links)
        hrefs = list(verdict.links) if self._manner.keep_hrefs else ()
        kept = links[: len(links) - len(foreign)]  # those that lead elsewhere are at the end
        record = answer(visit, site, asked, response, address, verdict, hrefs, kept.tobytes())
        if self.upkeep is not None:
            record = self.upkeep.compared(record, verdict, response)
        if foreign and self.others is not None:
            is_known = record.changed == 0 and not self.others.have_grown
            record = record._replace(elsewhere=AS_BEFORE if is_known else foreign)
        self._report(visit, record, now, links, response.own_s, worth)
        if foreign and self.others is not None and record.result == FETCHED:
            if again:
                self.others.post_again(asked.page, foreign)
            else:
                self.others.post(asked.page, foreign, len(links))
        if self.hearsay is not None and record.result == FETCHED:
            self.hearsay.listen(asked.page, asked.url, verdict, response, now)
        self._keep(record, again)
        self._stop_at_goals()
        return verdict

    def _redirected(self, url: str, href: str) -> None:
        """Where a seed leads, the crawl may follow: before links are looked at, for the target is one."""
        target = canonical(href, url)
        redirects, is_wider = self.known.redirected(url, target) if target else (0, False)
        if target and redirects and self.others is not None:
            self.others.seed(target, redirects, is_wider)

    def _errand_done(self, visit: Visit, site: Site, asked: Asked, response: Response, address: str) -> Verdict:
        """Whoever waits for it has heard of it; for all others the page is as it was."""
        self.errands.came(visit, asked.page)
        verdict = judge(response, self._manner.agent, self._manner.expanded_bytes, self._world.now(), False, False)
        self._keep(answer(visit, site, asked, response, address, verdict, (), b"")._replace(result=ERRAND))
        return verdict

    def _report(
        self, visit: Visit, record: Fetched, now: float, links: Array, own_s: float, worth: float = 0.0
    ) -> None:
        """Those hear of it who decide what is next."""
        if self.upkeep is None or not self.upkeep.stands(record):
            self.frontier.report(visit, record.page, record.result, now, links, own_s)
        if self.upkeep is not None:
            self.upkeep.came(record, now, worth)
        self._wake_free(record.result)

    def _keep(self, record: Fetched, again: bool = False) -> None:
        """And those who remember: last, for a batch that goes to the store has all that came of its pages."""
        self.tally.note(record, again)
        self.outbox.fetched(record)

    def _wake_free(self, result: int) -> None:
        """A robot that is free has nothing to gain from a page without new links, unless scores or a batch are due by it, or its
        site has one page more to give instead of it."""
        if self.active < self._manner.connections and (self._often or result == REFUSED or self._has_discovered()):
            self.soon()

    def _has_discovered(self) -> bool:
        """Whether pages were discovered since this was last asked. Not the same as registered: a page too deep may be found anew."""
        before, self._discovered = self._discovered, int(self.frontier.state.run["serial"][0])
        return self._discovered > before

    def failed(self, visit: Visit, site: Site, asked: Asked, kind: str, address: str) -> None:
        """A page was not had, and may be tried again."""
        self._under_way(visit, -1)
        self._without_answer(visit, site, asked, FAILED, kind, address)

    def site_failed(self, visit: Visit, site: Site, asked: Asked, kind: str) -> None:
        """The site gave neither connection nor rules. `asked`: the page that would have been next. The record has it; it is not charged."""
        result = ERRAND if visit in self.errands else SITE_FAILED
        self._keep(no_answer(visit, site, asked, result, kind, "", self._world.now()))

    def disallowed(self, visit: Visit, site: Site, page: int, url: str) -> None:
        """robots.txt says no: nothing was asked."""
        self._without_answer(visit, site, Asked(page, url, self._world.now(), b""), REFUSED, failure.ROBOTS, "")

    def _without_answer(self, visit: Visit, site: Site, asked: Asked, result: int, kind: str, address: str) -> None:
        now = self._world.now()
        is_errand = visit in self.errands
        record = no_answer(visit, site, asked, ERRAND if is_errand else result, kind, address, now)
        if is_errand:
            self.errands.came(visit, asked.page)
        else:
            self._report(visit, record, now, _NO_PAGES, math.nan)
        self._keep(record)

    def requested(self, visit: Visit) -> None:
        self._under_way(visit, 1)

    def _under_way(self, visit: Visit, more: int) -> None:
        """So many pages more are asked for and not answered."""
        if visit not in self.errands:
            self.tally.in_flight += more

    def withdrawn(self, visit: Visit, site: Site, asked: Collection[Asked], kind: str, address: str) -> None:
        """Pages that were asked for and will not be answered; the frontier takes them back as they were."""
        self._under_way(visit, -len(asked))
        now, result = self._world.now(), ERRAND if visit in self.errands else RETURNED
        for one in asked:
            self.outbox.fetched(no_answer(visit, site, one, result, kind, address, now))

    def over(self, visit: Visit, site: Site, outcome: Outcome, fruitless: bool = False) -> None:
        """A visit has ended. `fruitless`: it brought no page. A site with some bad pages among good ones is not given up."""
        now = self._world.now()
        self.frontier.finish(visit, outcome, now)
        self.errands.over(visit)
        if self.upkeep is not None:
            self.upkeep.over(visit, site, now)
        self.active -= 1
        failures = int(self.frontier.state.site["failures"][site.id])
        if fruitless and failures >= self._manner.give_up and not self._has_pages_of(site):
            self.give_up(site, VISITS, f"{counted(failures, 'failed visit')} in a row")
        self.soon()

    def _has_pages_of(self, site: Site) -> bool:
        """Whether it is to be visited again whatever happens: a site that is down for an hour is not given up for weeks."""
        return self.upkeep is not None and int(self.frontier.state.site["taken"][site.id]) > 0

    def give_up(self, site: Site, kind: str, why: str) -> None:
        """A site that cannot be had: its pages wait for ever, and the crawl does not wait for them."""
        now = self._world.now()
        self.frontier.set_site(site.id, now, pages=0)
        self.tally.given_up[kind] += 1
        self.outbox.given_up.append(GivenUp(site.id, now, kind, why))
        self.soon()

    # ---- looking in

    def progress(self, seconds: float) -> Progress:
        tally = self.tally
        return Progress(
            self._world.now(),
            seconds,
            tally.fetched,
            tally.failed,
            tally.body_bytes,
            self.known.own_pages,
            self.frontier.waiting,
            self.known.own_sites,
            self.active,
            tally.quality,
        )
