"""The crawler: asks the frontier for the next visit, starts it, and ends it.

These are steps 4 and 8 in docs/architecture.md. The crawler opens no socket and reads no clock. A `World` (world.py)
does: the live web (live.py) or virtual time (tests). The order of a crawl is therefore decided here and in the frontier
alone, and tests can compare it with the simulator's.

Two parties call the crawler: the world, for timers and for the store, and the visits (crawler/visits/visit.py), which ask
what they may do and report their end. The pages that arrive meanwhile are reported to `FetchResults` (fetch_results.py).
Every event that may allow a new visit calls `soon`. The frontier is then asked once for all of these events, after
everything else that happens at this moment, as in the simulator.
"""

import math
from collections import Counter
from collections.abc import Callable

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.fetch_results import Features, FetchResults
from trapline.crawler.engine.options import CrawlerSettings
from trapline.crawler.engine.page_quality import PageScoring
from trapline.crawler.engine.records import NOT_ABANDONED, VISITS, AbandonedSite, CrawlProgress
from trapline.crawler.engine.status import next_visit
from trapline.crawler.engine.stop_reasons import DRAINED, MAX_BYTES, MAX_PAGES, UNREACHABLE
from trapline.crawler.engine.tally import CrawlTally
from trapline.crawler.engine.world import Timer, World
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.extra_queue import ExtraSource
from trapline.crawler.visits.extra_requests import ExtraRequests
from trapline.crawler.visits.out_of_band import OutOfBandFetches
from trapline.crawler.visits.visit_state import WaitingVisits
from trapline.frontier import REFUSED, Drained, Frontier, Outcome, Rescore, Visit, WaitUntil
from trapline.frontier.layout import Array
from trapline.units import counted


class Crawler:
    def __init__(
        self,
        frontier: Frontier,
        link_resolver: LinkResolver,
        outbox: Outbox,
        settings: CrawlerSettings,
        scoring: PageScoring,
        features: Features | None = None,
        tally: CrawlTally | None = None,
    ) -> None:
        """One of several partitions does not end when it has nothing to do, because the others may send it pages."""
        self.frontier, self.link_resolver, self.outbox = frontier, link_resolver, outbox
        self._settings = settings
        # Whether every fetched page may allow a new visit: new scores or a new batch may be due.
        self._on_every_page = scoring.keep_links is not None or frontier.rules.batch > 0
        self.features, self.tally = features or Features(), tally or CrawlTally()
        self.out_of_band = OutOfBandFetches(frontier, lambda site: self.extra.needs_visit(site))
        self.results = FetchResults(
            frontier, link_resolver, outbox, settings, scoring, self.tally, self.out_of_band, self.features
        )
        self.extra = self._extra_requests()
        refetch = self.features.refetch
        self._next = frontier.next if refetch is None else refetch.agenda.next
        self.active = 0  # visits under way
        self.stopped_by = ""
        self.is_paused = False  # by an order; visits under way end after their current page
        self.abandoned: dict[int, str] = {}  # sites that were abandoned in this run, and still are, with the kind
        self._ending: set[int] = set()  # sites whose visit under way requests nothing more, though others may
        # Limit for the pages fetched and in flight. One of several partitions may have a share of the goal.
        self.most_pages = settings.goals.pages
        # Returns whether the store is behind, or the program that takes the pages.
        self.full: Callable[[], bool] = lambda: False
        self._waiting = WaitingVisits()
        self._asking, self._is_scoring = True, False  # nothing is asked before `begin`
        self._has_room = True  # for pages, when visits were last looked for; known in crawls with requisites
        self._discovered = 0
        self._timer: Timer | None = None
        self._wakes_at = math.inf

    def _extra_requests(self) -> ExtraRequests:
        sources: list[ExtraSource | None] = [self.features.published_lists, self.features.requisites]
        return ExtraRequests(
            self.frontier,
            self.out_of_band,
            [source for source in sources if source is not None],
            self._settings.agent,
            self._settings.expanded_bytes,
            self.results.keep,
        )

    def enter(self, world: World) -> None:
        """Know the world, as `progress` needs, before the crawl begins."""
        self._world = world

    def begin(self, world: World) -> None:
        self._world, self._asking = world, False
        self.results.begin(world, self.extra, self._wake_free, self._stop_at_goals)
        if self.features.published_lists is not None:
            self.features.published_lists.was_read = self.soon
        self.extra.begin(lambda: self.features.requisites is None or self.used < self.most_pages, self.soon)
        self._stop_at_goals()  # a resumed crawl may have reached them already
        self.soon()

    def now(self) -> float:
        return self._world.now()

    # ---- asking the frontier

    def soon(self) -> None:
        """Ask the frontier for visits after everything else that happens at this moment."""
        if not self._asking:
            self._asking = True
            self._world.call_soon(self._ask)

    def _ask(self) -> None:
        self._asking = False
        if self.features.requisites is not None and not self.stopped_by:
            self._stop_at_goals()  # the last requisite may have come, or its site may be abandoned
        while self._may_begin_visit():
            answer = self._next_visit(self._world.now())
            if isinstance(answer, Visit):
                self._begin_visit(answer)
                continue
            if isinstance(answer, Rescore):
                self._is_scoring = True
                self._world.score()
            elif isinstance(answer, WaitUntil):
                self._wake(answer)
            elif self.features.others is None:
                self.stop(DRAINED)
            break
        if self.features.others is not None and self.is_idle:
            self.features.others.flush()
        if self.stopped_by and not self.active:
            self._world.ended()

    def _next_visit(self, now: float) -> Visit | WaitUntil | Rescore | Drained:
        """Return the next out-of-band visit if one is due. Otherwise ask for a visit to pages if the limit allows one more
        page. An out-of-band visit does not count as a page."""
        if self.features.requisites is not None:
            self._fetch_requisites_without_pages()
        out_of_band_visit = self.out_of_band.next(now)
        if out_of_band_visit is not None:
            return out_of_band_visit
        answer = self._next(now) if self.used < self.most_pages else WaitUntil(math.inf)
        if isinstance(answer, Drained) and self._is_reading:
            answer = WaitUntil(math.inf)  # a list that is being read may bring new pages
        return answer if isinstance(answer, Visit) else self.out_of_band.awaited(answer)

    @property
    def _is_reading(self) -> bool:
        return self.features.published_lists is not None and self.features.published_lists.is_reading

    def _begin_visit(self, visit: Visit) -> None:
        self.active += 1
        conditions = (
            self.features.refetch.conditions(visit) if self.features.refetch and visit not in self.out_of_band else []
        )
        self._world.begin_visit(
            visit, self.link_resolver.sites[visit.site], self.link_resolver.urls(visit.pages), conditions
        )

    def _wake(self, answer: WaitUntil) -> None:
        """Set the timer for the next possible visit. One timer serves all waits; it is replaced only if the time differs."""
        if answer.time == self._wakes_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = answer.time
        self._timer = self._world.call_at(answer.time, self._woken) if answer.time < math.inf else None

    @property
    def waits_for(self) -> str:
        """Text that says what the crawl waits for while no connection is open. "": it does not wait, or the time is unknown."""
        if self.is_paused and not self.stopped_by:
            return f"paused; {counted(self.active, 'visit')} to end" if self.active else "paused"
        if self.active > 0 or self.stopped_by:
            return ""
        if self.features.others is not None and self.used >= self.most_pages:
            return "waiting for a share of --max-pages"
        return next_visit(self.next_visit_s)

    @property
    def next_visit_s(self) -> float:
        """Seconds until the next visit while no connection is open. Infinity: the crawl does not wait, or the time is unknown."""
        left_s = self._wakes_at - self._world.now()
        waits = self.active == 0 and not self.stopped_by and not self.is_paused
        return left_s if waits and left_s > 0.0 else math.inf

    def _woken(self) -> None:
        self._wakes_at, self._timer = math.inf, None
        self.soon()

    def _wake_free(self, result: int) -> None:
        """Ask the frontier again if a connection is free and this result may allow a visit. A page without new links allows
        none, unless scores or a batch may be due, or the site may give another page in place of a refused one."""
        if self.active < self._settings.connections and (
            self._on_every_page or result == REFUSED or self._has_discovered()
        ):
            self.soon()

    def _has_discovered(self) -> bool:
        """Return whether pages were discovered since the last call. The number of registered pages does not show this: a page
        that was too deep when it was registered may be discovered later."""
        before, self._discovered = self._discovered, self.frontier.discoveries
        return self._discovered > before

    def address_found(self, site: Site) -> None:
        """Note that the site has an address now, or another one."""
        self.features.events.address_found(site)
        self.out_of_band.address_found(site.id)
        self.soon()

    def rescored(self, scores: Array) -> None:
        self._is_scoring = False
        self.frontier.rescore(scores, self._world.now())
        self.soon()

    def stop(self, why: str) -> None:
        """Start no new requests. Those under way are still answered."""
        self.stopped_by = self.stopped_by or why
        self._waiting.end_pauses()
        self.go_on()
        self.soon()

    def pause_visits(self) -> None:
        """Begin no visits, and let those under way end after their current page, until `continue_visits`."""
        self.is_paused = True
        self._waiting.end_pauses()
        self.go_on()

    def continue_visits(self) -> None:
        self.is_paused = False
        self.soon()

    def end_visit(self, site: int) -> None:
        """Let the visit to the site that is under way, if there is one, request nothing more."""
        if self.frontier.is_visited(site):
            self._ending.add(site)
            self._waiting.end_pauses()  # all others begin their pauses anew, with the time that is left
            self.go_on()

    def holds(self, visit: Visit) -> bool:
        """Return whether the visit must not send any request, not even for robots.txt, although the crawl does not stop."""
        return self.is_paused or visit.site in self._ending

    def _stop_at_goals(self) -> None:
        has_pages = self.tally.fetched >= self._settings.goals.pages
        if has_pages and not self._has_requisites:
            self.stop(MAX_PAGES)
        elif self.tally.body_bytes >= self._settings.goals.bytes:  # this limit holds for requisites too
            self.stop(MAX_BYTES)

    @property
    def _has_requisites(self) -> bool:
        """Whether requisites are left to fetch, now that the limit on pages is reached."""
        return (
            self.features.requisites is not None
            and not self.stopped_by
            and self.features.requisites.are_left_without_pages()
        )

    def _fetch_requisites_without_pages(self) -> None:
        """Let all sites with requisites be visited if the limit on pages has just been reached: no visit to pages will come."""
        had_room, self._has_room = self._has_room, self.used < self.most_pages
        if had_room and not self._has_room:
            self.extra.visit_all()

    # ---- what visits may do

    def may_request(self, visit: Visit) -> bool:
        """Return whether the visit may request another page. The pages fetched and in flight must not exceed the limit.
        Out-of-band fetches do not count as pages."""
        has_room = self.tally.fetched + self.tally.in_flight < self.most_pages
        return not self.stopped_by and (has_room or visit in self.out_of_band) and not self.holds(visit)

    @property
    def has_pages(self) -> bool:
        """Whether there are pages to fetch, new or again, now or later. The limit on pages does not matter here."""
        return self.features.refetch.agenda.goes_on if self.features.refetch is not None else self.frontier.has_new

    @property
    def is_idle(self) -> bool:
        """Whether the crawl has nothing to do until another partition sends something."""
        has_extras = self._is_reading or self.out_of_band.awaits_extras
        return self.active == 0 and not self.has_pages and not has_extras and self.out_of_band.opens_at == math.inf

    @property
    def is_ready(self) -> bool:
        """Whether a visit to new pages could begin now if the limit allowed one more page."""
        now = self._world.now()
        return self._may_begin_visit() and self.frontier.opens_at(now) <= now

    def _may_begin_visit(self) -> bool:
        has_room = self.active < self._settings.connections and not self.full()
        return has_room and not self._is_scoring and not self.stopped_by and not self.is_paused

    @property
    def used(self) -> float:
        """Number of pages charged to `most_pages`: those fetched and in flight.

        In a crawl of several partitions, whose limits may be raised later, every visit under way is charged at least one page.
        Otherwise a visit could find no page left to request, and the site's delay would begin all the same.
        """
        requested = self.tally.fetched + self.tally.in_flight
        if self.features.others is None:
            return requested
        return max(requested, min(self.tally.fetched + self.active - len(self.out_of_band), self.most_pages))

    def waits(self, go_on: Callable[[], None]) -> bool:
        """Return whether the store or the program is behind. If so, `go_on` is called when it has room again."""
        if not self.full():
            return False
        self._waiting.for_store(go_on)
        return True

    def pause(self, seconds: float, go_on: Callable[[], None]) -> None:
        """Call `go_on` after `seconds`, or as soon as the crawl is to stop or to pause."""
        moment = self._world.now() + (0.0 if self.stopped_by or self.is_paused else seconds)
        self._waiting.pause(go_on, moment, self._world)

    def leaves(self, go_on: Callable[[], None]) -> None:
        """Do not call `go_on` any more: its visit is over."""
        self._waiting.leaves(go_on)

    def go_on(self) -> None:
        """Continue the visits that wait for the store, or for the program: it has room again."""
        self._waiting.store_has_room()
        self.soon()

    def may_be_list(self, page: int, url: str) -> bool:
        """Return whether a page is known as a list, or may be one because it is a seed."""
        is_known = self.features.published_lists is not None and page in self.features.published_lists.queue
        return is_known or self.link_resolver.is_seed(url)

    # ---- the ends of visits and of sites

    def over(self, visit: Visit, site: Site, outcome: Outcome, fruitless: bool = False) -> None:
        """End a visit. `fruitless`: it brought no page. A site with some bad pages among good ones is not abandoned."""
        now = self._world.now()
        self.frontier.finish(visit, outcome, now)
        self.out_of_band.over(visit)
        self._ending.discard(site.id)
        if self.features.refetch is not None:
            self.features.refetch.over(visit, site, now)
        self.active -= 1
        if outcome.failed and not visit.pages:
            self.extra.visit_failed(site.id)
        self.extra.visit_for(site.id)
        failures, seeds = self.frontier.failed_visits(site.id), self.results.unanswered_seeds
        if not outcome.failed:
            seeds.refused.discard(site.id)
        is_end = self._is_unreachable()
        wait_s = max(self.frontier.open_at(site.id) - now, 0.0) if outcome.failed else 0.0
        if not self.stopped_by:  # a crawl that is stopping makes no further attempt
            seeds.visit_ended(wait_s, failures, is_end)
        if outcome.failed:
            self.features.events.site_failed(site, failures, wait_s)
        if is_end:
            self.stop(UNREACHABLE)
        elif fruitless and failures >= self._settings.abandon and self._may_be_abandoned(site):
            self.abandon(site, VISITS, f"{counted(failures, 'failed visit')} in a row")
        self.soon()

    def _is_unreachable(self) -> bool:
        """Return whether nothing was fetched, and every site refuses connections at all of its addresses or was abandoned. The
        address of a seed is then wrong or its server is not running; the back-off is for sites that answered before."""
        refused, tally = self.results.unanswered_seeds.refused, self.tally
        if not refused or self.active or self.features.others is not None or tally.fetched or tally.redirects:
            return False
        if len(refused) + sum(tally.abandoned_sites.values()) < self.link_resolver.own_sites:
            return False
        sites = self.link_resolver.sites
        return all(self.frontier.failed_visits(site) >= len(sites[site].addresses) for site in refused)

    def _may_be_abandoned(self, site: Site) -> bool:
        """Return whether the site is not abandoned yet, and no pages of it are to be fetched again: a site that is down for an hour
        would be lost for weeks."""
        has_pages = self.features.refetch is not None and self.frontier.pages_taken(site.id) > 0
        return not has_pages and self.frontier.site_budgets[site.id] != 0

    def abandon(self, site: Site, kind: str, why: str) -> None:
        """Abandon a site that cannot be crawled. Its pages wait for ever, and the crawl does not wait for them."""
        now = self._world.now()
        self.frontier.set_site(site.id, now, pages=0)
        self.tally.abandoned_sites[kind] += 1
        self.abandoned[site.id] = kind
        self.outbox.abandoned_sites.append(AbandonedSite(site.id, now, kind, why))
        self.features.events.site_abandoned(site, kind, why)
        self.extra.abandoned(site.id)
        self.results.unanswered_seeds.refused.discard(site.id)
        if self._is_unreachable():
            self.stop(UNREACHABLE)
        self.soon()

    def take_back(self, site: Site, kind: str, pages: int) -> None:
        """Visit an abandoned site again. `kind`: why it was abandoned. `pages`: its page budget."""
        now = self._world.now()
        self.frontier.set_site(site.id, now, pages=pages)
        self.tally.abandoned_sites -= Counter({kind: 1})  # without kinds that have no sites
        self.abandoned.pop(site.id, None)
        self.outbox.abandoned_sites.append(AbandonedSite(site.id, now, NOT_ABANDONED, ""))
        if self.features.refetch is not None:
            self.features.refetch.agenda.refresher.visited(site.id)  # its pages may be chosen again
        self.soon()

    # ---- progress

    def progress(self, seconds: float) -> CrawlProgress:
        tally, sites = self.tally, self.link_resolver.own_sites
        if self.features.requisites is not None:
            sites -= self.features.requisites.queue.sites_without_pages
        return CrawlProgress(
            self._world.now(),
            seconds,
            tally.fetched,
            tally.failed,
            tally.body_bytes,
            self.link_resolver.own_pages - self.link_resolver.extra_pages.count,
            self.frontier.waiting,
            sites,
            self.active,
            tally.quality,
        )
