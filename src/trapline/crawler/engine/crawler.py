"""The crawler: asks the frontier for the next visit, starts it, and reports its results to the frontier.

These are steps 4 and 8 in docs/architecture.md. The crawler opens no socket and reads no clock. A `World` (world.py)
does: the live web (live.py) or virtual time (tests). The order of a crawl is therefore decided here and in the frontier
alone, and tests can compare it with the simulator's.

Two parties call the crawler: the world, for timers and for the store, and the visits (visit.py), which report each page
as it arrives and then the end of the visit. Every event that may allow a new visit calls `soon`. The frontier is then
asked once for all of these events, after everything else that happens at this moment, as in the simulator.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver, ResolvedLinks
from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.extra_requests import ExtraRequests, ExtraSource
from trapline.crawler.engine.fetch_record import PageRequest, answer, no_answer
from trapline.crawler.engine.judge import FetchVerdict, judge
from trapline.crawler.engine.other_partitions import OtherPartitions
from trapline.crawler.engine.out_of_band import OutOfBandFetches
from trapline.crawler.engine.page_quality import PageScoring
from trapline.crawler.engine.page_stream import PageDetails, PageStream
from trapline.crawler.engine.records import (
    AS_BEFORE,
    OUT_OF_BAND,
    RETURNED,
    SITE_FAILED,
    VISITS,
    AbandonedSite,
    CrawlProgress,
    Fetched,
)
from trapline.crawler.engine.status import (
    DRAINED,
    MAX_BYTES,
    MAX_PAGES,
    WORDS,
    CrawlTally,
    UnansweredSeeds,
    is_page,
    next_visit,
)
from trapline.crawler.engine.world import Timer, World
from trapline.crawler.recrawl.conditional_refetch import ConditionalRefetch
from trapline.crawler.recrawl.published_lists import PublishedLists
from trapline.crawler.recrawl.signal_intake import SignalIntake
from trapline.crawler.requisites.page_requisites import PageRequisites
from trapline.crawler.store.outbox import Outbox
from trapline.fetch import failure
from trapline.fetch.http.response import Response
from trapline.fetch.urls import canonical
from trapline.frontier import FAILED, FETCHED, REFUSED, Drained, Frontier, Outcome, Rescore, Visit, WaitUntil
from trapline.frontier.layout import Array
from trapline.units import counted

_MOST_SCOPE_NOTES = 5
_CONDITION = b"\r\nIf-"  # in a conditional request: If-None-Match, If-Modified-Since, or both
_NO_PAGES = np.zeros(0, np.int32)
_NO_LINKS = ResolvedLinks(_NO_PAGES)
_NO_DETAILS = PageDetails()


@dataclass(frozen=True, slots=True)
class Goals:
    """Numbers of pages and bytes at which a crawl stops. Infinity: no limit."""

    pages: float = math.inf
    bytes: float = math.inf


@dataclass(frozen=True, slots=True)
class CrawlerSettings:
    """Settings that stay the same during a run."""

    connections: int  # most connections at the same time
    agent: str  # the product token by which robots.txt files address this crawler
    expanded_bytes: int  # largest size of a page after its content coding is removed; a longer page is not read
    abandon: int  # number of consecutive failed visits after which a site is abandoned
    goals: Goals = field(default_factory=Goals)
    keep_hrefs: bool = False  # whether the store also receives the links as they are written on the page


class Crawler:
    def __init__(
        self,
        frontier: Frontier,
        link_resolver: LinkResolver,
        outbox: Outbox,
        settings: CrawlerSettings,
        scoring: PageScoring,
        *,
        tally: CrawlTally | None = None,
        refetch: ConditionalRefetch | None = None,
        signal_intake: SignalIntake | None = None,
        published_lists: PublishedLists | None = None,
        requisites: PageRequisites | None = None,
        others: OtherPartitions | None = None,
    ) -> None:
        """`published_lists`: reads sitemaps and feeds; a signal intake brings its own. `requisites`: fetches requisites of pages.
        `others`: the other partitions, if the crawl is one of several. The crawl then does not end when it has nothing to do,
        because they may send it pages."""
        self.frontier, self.link_resolver, self.outbox = frontier, link_resolver, outbox
        self._settings, self._scoring = settings, scoring
        # Whether every fetched page may allow a new visit: new scores or a new batch may be due.
        self._on_every_page = scoring.keep_links is not None or frontier.rules.batch > 0
        self.tally = tally or CrawlTally()
        self.refetch, self.signal_intake, self.others = refetch, signal_intake, others
        self.published_lists = signal_intake.published_lists if signal_intake is not None else published_lists
        self.requisites = requisites
        self.out_of_band = OutOfBandFetches(frontier, lambda site: self.extra.needs_visit(site))
        self.extra = self._extra_requests()
        self._next = frontier.next if refetch is None else refetch.agenda.next
        self.active = 0  # visits under way
        self.unanswered_seeds = UnansweredSeeds(settings.abandon)
        self.scope_notes: list[str] = []  # for the user: redirects of seeds that the scope followed
        self.stopped_by = ""
        # Limit for the pages fetched and in flight. One of several partitions may have a share of the goal.
        self.most_pages = settings.goals.pages
        # Returns whether the store is behind, or the program that takes the pages.
        self.full: Callable[[], bool] = lambda: False
        self.stream: PageStream | None = None  # to the program that takes the pages; None: there is none
        self._waiting = Waiting()
        self._asking = self._is_scoring = False
        self._has_room = True  # for pages, when visits were last looked for; known in crawls with requisites
        self._discovered = 0
        self._timer: Timer | None = None
        self._wakes_at = math.inf

    def _extra_requests(self) -> ExtraRequests:
        sources: list[ExtraSource | None] = [self.published_lists, self.requisites]
        return ExtraRequests(
            self.frontier,
            self.out_of_band,
            [source for source in sources if source is not None],
            self._settings.agent,
            self._settings.expanded_bytes,
            self._keep,
        )

    def begin(self, world: World) -> None:
        self._world = world
        if self.published_lists is not None:
            self.published_lists.was_read = self.soon
        self.extra.begin(lambda: self.requisites is None or self.used < self.most_pages, self.soon)
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
        if self.requisites is not None and not self.stopped_by:
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
            elif self.others is None:
                self.stop(DRAINED)
            break
        if self.others is not None and self.is_idle:
            self.others.flush()
        if self.stopped_by and not self.active:
            self._world.ended()

    def _next_visit(self, now: float) -> Visit | WaitUntil | Rescore | Drained:
        """Return the next out-of-band visit if one is due. Otherwise ask for a visit to pages if the limit allows one more
        page. An out-of-band visit does not count as a page."""
        if self.requisites is not None:
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
        return self.published_lists is not None and self.published_lists.is_reading

    def _begin_visit(self, visit: Visit) -> None:
        self.active += 1
        conditions = self.refetch.conditions(visit) if self.refetch and visit not in self.out_of_band else []
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
        if self.active > 0 or self.stopped_by:
            return ""
        if self.others is not None and self.used >= self.most_pages:
            return "waiting for a share of --max-pages"
        return next_visit(self.next_visit_s)

    @property
    def next_visit_s(self) -> float:
        """Seconds until the next visit while no connection is open. Infinity: the crawl does not wait, or the time is unknown."""
        left_s = self._wakes_at - self._world.now()
        return left_s if self.active == 0 and not self.stopped_by and left_s > 0.0 else math.inf

    def _woken(self) -> None:
        self._wakes_at, self._timer = math.inf, None
        self.soon()

    def address_found(self, site: Site) -> None:
        """Note that the site has an address now, or another one."""
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

    def _stop_at_goals(self) -> None:
        if self.tally.fetched >= self._settings.goals.pages:
            if not self._has_requisites:
                self.stop(MAX_PAGES)
        elif self.tally.body_bytes >= self._settings.goals.bytes:
            self.stop(MAX_BYTES)

    @property
    def _has_requisites(self) -> bool:
        """Whether requisites are left to fetch, now that the limit on pages is reached."""
        return self.requisites is not None and not self.stopped_by and self.requisites.are_left_without_pages()

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
        return not self.stopped_by and (has_room or visit in self.out_of_band)

    @property
    def has_pages(self) -> bool:
        """Whether there are pages to fetch, new or again, now or later. The limit on pages does not matter here."""
        return self.refetch.agenda.goes_on if self.refetch is not None else self.frontier.has_new

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
        return has_room and not self._is_scoring and not self.stopped_by

    @property
    def used(self) -> float:
        """Number of pages charged to `most_pages`: those fetched and in flight.

        In a crawl of several partitions, whose limits may be raised later, every visit under way is charged at least one page.
        Otherwise a visit could find no page left to request, and the site's delay would begin all the same.
        """
        requested = self.tally.fetched + self.tally.in_flight
        if self.others is None:
            return requested
        return max(requested, min(self.tally.fetched + self.active - len(self.out_of_band), self.most_pages))

    def waits(self, go_on: Callable[[], None]) -> bool:
        """Return whether the store or the program is behind. If so, `go_on` is called when it has room again."""
        if not self.full():
            return False
        self._waiting.for_store(go_on)
        return True

    def pause(self, seconds: float, go_on: Callable[[], None]) -> None:
        """Call `go_on` after `seconds`, or as soon as the crawl is to stop."""
        moment = self._world.now() + (0.0 if self.stopped_by else seconds)
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
        is_known = self.published_lists is not None and page in self.published_lists.queue
        return is_known or self.link_resolver.is_seed(url)

    # ---- what visits report

    def answered(
        self, visit: Visit, site: Site, request: PageRequest, response: Response, address: str
    ) -> FetchVerdict:
        """Judge the response to a request, report it to the frontier, and pass it to the store. Return the verdict."""
        if request.source is not None:
            return self.extra.answered(request.source, visit, site, request, response, address, self._world.now())
        if visit in self.out_of_band:
            return self._out_of_band_answered(visit, site, request, response, address)
        now = self._world.now()
        is_refetch = self.refetch is not None and self.refetch.is_refetch(request.page)
        verdict = judge(
            response,
            self._settings.agent,
            self._settings.expanded_bytes,
            now,
            is_refetch and _CONDITION in request.request,
            self.refetch is not None,
            self.published_lists is not None and self.published_lists.reads(request.url),
        )
        self.tally.in_flight -= 1
        if 300 <= response.status < 400 and verdict.links:
            self._redirected(request.url, verdict.links[0])
        if self._scoring.program is not None:
            self._judge_quality(visit, site, request, response, address, verdict, is_refetch)
        links, foreign = (
            self.link_resolver.pages_of(request.url, verdict.base, verdict.links, now) if verdict.links else _NO_LINKS
        )
        if self._scoring.program is not None:
            self._scoring.program.forget()
        if self.requisites is not None:
            links = self.requisites.queue.without_fetched(links)
        # Before the report, which may change the quality.
        is_new = verdict.result == FETCHED and not is_refetch
        page_quality = self._scored(request, links) if is_new else 0.0
        hrefs = list(verdict.links) if self._settings.keep_hrefs else ()
        own_links = links[: len(links) - len(foreign)]  # the links to other partitions are at the end
        record = answer(visit, site, request, response, address, verdict, hrefs, own_links.tobytes())
        if page_quality and is_page(record):
            self.tally.quality += page_quality
        if self.refetch is not None:
            record = self.refetch.compared(record, verdict, response)
        if foreign and self.others is not None:
            is_known = record.changed == 0 and not self.others.have_grown
            record = record._replace(elsewhere=AS_BEFORE if is_known else foreign)
        self._report(visit, record, now, links, response.own_s, page_quality)
        if record.result == FETCHED:
            self._pass_on(request, verdict, response, foreign, len(links), is_refetch)
        details = PageDetails(verdict.links, verdict.base, page_quality) if self.stream is not None else _NO_DETAILS
        self._keep(record, is_refetch, details, own_links)
        self._stop_at_goals()
        return verdict

    def _judge_quality(
        self,
        visit: Visit,
        site: Site,
        request: PageRequest,
        response: Response,
        address: str,
        verdict: FetchVerdict,
        is_refetch: bool,
    ) -> None:
        """Let the program compute the quality of a new page, before its links are resolved: they inherit it."""
        program = self._scoring.program
        assert program is not None and self.stream is not None
        if verdict.result == FETCHED and not is_refetch and not 300 <= response.status < 400:
            record = answer(visit, site, request, response, address, verdict, (), b"")
            program.judge(self.stream.preview(record, PageDetails(verdict.links, verdict.base)))
        else:
            program.inherit(request.page)

    def _scored(self, request: PageRequest, links: Array) -> float:
        """Keep the links of a new page for scores if there are any, and return the quality of the page."""
        quality = self._scoring.quality(request)
        if self._scoring.keep_links is not None:
            self._scoring.keep_links(request.page, links)
        return quality

    def _pass_on(
        self,
        request: PageRequest,
        verdict: FetchVerdict,
        response: Response,
        foreign: Sequence[str],
        links: int,
        is_refetch: bool,
    ) -> None:
        """Send the links of a fetched page that other partitions own, and read what the page says about other URLs."""
        if foreign and self.others is not None:
            if is_refetch:
                self.others.send_refetched_links(request.page, foreign)
            else:
                self.others.send_links(request.page, foreign, links)
        if self.signal_intake is not None:
            self.signal_intake.listen(request.page, request.url, verdict, response, self._world.now())
        elif self.published_lists is not None and response.status == 200:
            self.published_lists.listen(request.page, request.url, verdict, response, self._world.now())
        if self.requisites is not None:
            self.requisites.read_page(request.page, request.url, verdict, response, self._world.now())

    def _redirected(self, url: str, href: str) -> None:
        """Count the target of a seed's redirect as a seed. This comes before the links are resolved, for the target is one."""
        target = canonical(href, url)
        redirects, is_wider = self.link_resolver.redirected(url, target) if target else (0, False)
        if is_wider and len(self.scope_notes) < _MOST_SCOPE_NOTES:
            self.scope_notes.append(f"{url} redirects to {target}; the scope follows")
        if target and redirects and self.others is not None:
            self.others.seed(target, redirects, is_wider)

    def _out_of_band_answered(
        self, visit: Visit, site: Site, request: PageRequest, response: Response, address: str
    ) -> FetchVerdict:
        """Record the response to an out-of-band fetch. The sites that wait for it have received it already (visit.py); for
        everything else the page stays as it was."""
        self.out_of_band.came(visit, request.page)
        verdict = judge(response, self._settings.agent, self._settings.expanded_bytes, self._world.now(), False, False)
        self._keep(answer(visit, site, request, response, address, verdict, (), b"")._replace(result=OUT_OF_BAND))
        return verdict

    def _report(
        self, visit: Visit, record: Fetched, now: float, links: Array, own_s: float, page_quality: float = 0.0
    ) -> None:
        """Report a result to the frontier and to the refresher, which decide what is fetched next. The frontier is not told
        of the refusal of a page that we have a copy of (`ConditionalRefetch.stands`)."""
        if self.refetch is None or not self.refetch.stands(record):
            self.frontier.report(visit, record.page, record.result, now, links, own_s)
        if self.refetch is not None:
            self.refetch.came(record, now, page_quality)
        self._wake_free(record.result)

    def _keep(
        self,
        record: Fetched,
        is_refetch: bool = False,
        details: PageDetails = _NO_DETAILS,
        links: Array = _NO_PAGES,
    ) -> None:
        """Count the record and pass it to the store. This comes last, so that a batch contains all that follows from its pages."""
        self.tally.note(record, is_refetch)
        if self.stream is not None:
            self.stream.came(self.outbox.number + 1, self.outbox.next_fetch, record, details, links)
        self.outbox.fetched(record)

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

    def failed(self, visit: Visit, site: Site, request: PageRequest, kind: str, address: str) -> None:
        """Report a page that was requested and not answered. It may be tried again."""
        if request.source is not None:
            self.extra.lost(request.source, visit, site, request, kind, address, self._world.now())
            return
        self._under_way(visit, -1)
        self._without_answer(visit, site, request, FAILED, kind, address)

    def site_failed(self, visit: Visit, site: Site, request: PageRequest, kind: str, why: str = "") -> None:
        """Record that the site gave no connection or no robots.txt. `request`: the page that would have been next. The record
        names this page, but the failure is not charged to it. `why`: the reason, for people."""
        result = OUT_OF_BAND if visit in self.out_of_band else SITE_FAILED
        if site.robots is None and self.link_resolver.is_seed(request.url):
            self.unanswered_seeds.note(request.url, why or WORDS.get(kind, kind))
        self._keep(no_answer(visit, site, request, result, kind, "", self._world.now()))

    def disallowed(self, visit: Visit, site: Site, page: int, url: str) -> None:
        """Report a page that robots.txt forbids. No request was sent."""
        self._without_answer(visit, site, PageRequest(page, url, self._world.now(), b""), REFUSED, failure.ROBOTS, "")

    def _without_answer(
        self, visit: Visit, site: Site, request: PageRequest, result: int, kind: str, address: str
    ) -> None:
        now = self._world.now()
        is_out_of_band = visit in self.out_of_band
        record = no_answer(visit, site, request, OUT_OF_BAND if is_out_of_band else result, kind, address, now)
        if is_out_of_band:
            self.out_of_band.came(visit, request.page)
        else:
            self._report(visit, record, now, _NO_PAGES, math.nan)
        self._keep(record)

    def requested(self, visit: Visit) -> None:
        self._under_way(visit, 1)

    def _under_way(self, visit: Visit, more: int) -> None:
        """Add `more` to the number of pages in flight, unless the visit is out-of-band."""
        if visit not in self.out_of_band:
            self.tally.in_flight += more

    def withdrawn(self, visit: Visit, site: Site, requests: Collection[PageRequest], kind: str, address: str) -> None:
        """Record pages that were requested and will not be answered. The frontier takes them back as they were."""
        pages = [request for request in requests if request.source is None]
        self._under_way(visit, -len(pages))
        now, result = self._world.now(), OUT_OF_BAND if visit in self.out_of_band else RETURNED
        for request in requests:
            if request.source is not None:
                self.extra.lost(request.source, visit, site, request, kind, address, now)
            else:
                self.outbox.fetched(no_answer(visit, site, request, result, kind, address, now))

    def over(self, visit: Visit, site: Site, outcome: Outcome, fruitless: bool = False) -> None:
        """End a visit. `fruitless`: it brought no page. A site with some bad pages among good ones is not abandoned."""
        now = self._world.now()
        self.frontier.finish(visit, outcome, now)
        self.unanswered_seeds.tried_again_at(max(self.frontier.open_at(site.id) - now, 0.0) if outcome.failed else 0.0)
        self.out_of_band.over(visit)
        if self.refetch is not None:
            self.refetch.over(visit, site, now)
        self.active -= 1
        self.extra.visit_for(site.id)
        failures = self.frontier.failed_visits(site.id)
        if fruitless and failures >= self._settings.abandon and not self._has_pages_of(site):
            self.abandon(site, VISITS, f"{counted(failures, 'failed visit')} in a row")
        self.soon()

    def _has_pages_of(self, site: Site) -> bool:
        """Return whether pages of the site are to be fetched again. Such a site is not abandoned: one that is down for an hour
        would be lost for weeks."""
        return self.refetch is not None and self.frontier.pages_taken(site.id) > 0

    def abandon(self, site: Site, kind: str, why: str) -> None:
        """Abandon a site that cannot be crawled. Its pages wait for ever, and the crawl does not wait for them."""
        now = self._world.now()
        self.frontier.set_site(site.id, now, pages=0)
        self.tally.abandoned_sites[kind] += 1
        self.outbox.abandoned_sites.append(AbandonedSite(site.id, now, kind, why))
        self.extra.abandoned(site.id)
        self.soon()

    # ---- progress

    def progress(self, seconds: float) -> CrawlProgress:
        tally = self.tally
        extras = self.published_lists.queue.besides_pages if self.published_lists is not None else 0
        extras += self.requisites.queue.besides_pages if self.requisites is not None else 0
        return CrawlProgress(
            self._world.now(),
            seconds,
            tally.fetched,
            tally.failed,
            tally.body_bytes,
            self.link_resolver.own_pages - extras,
            self.frontier.waiting,
            self.link_resolver.own_sites,
            self.active,
            tally.quality,
        )


# ---- Visits that wait for the store, or for the end of a pause.
#
# The crawler adds a visit that has to wait. `store_has_room`, the timers, `end_pauses` and `leaves` remove it. A visit is identified by
# the function that continues it.

Resume = Callable[[], None]


class Waiting:
    def __init__(self) -> None:
        self._for_store: dict[Resume, None] = {}
        self._pausing: dict[Resume, Timer] = {}

    def for_store(self, resume: Resume) -> None:
        self._for_store[resume] = None

    def pause(self, resume: Resume, moment: float, world: World) -> None:
        self._pausing[resume] = world.call_at(moment, lambda: self._paused(resume))

    def _paused(self, resume: Resume) -> None:
        self._pausing.pop(resume).cancel()
        resume()

    def end_pauses(self) -> None:
        for resume in list(self._pausing):
            self._paused(resume)

    def store_has_room(self) -> None:
        waiting, self._for_store = self._for_store, {}
        for resume in waiting:
            resume()

    def leaves(self, resume: Resume) -> None:
        self._for_store.pop(resume, None)
        if resume in self._pausing:
            self._pausing.pop(resume).cancel()
