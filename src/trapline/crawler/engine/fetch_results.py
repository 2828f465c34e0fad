"""The results of fetches: the frontier, the refresher, other partitions and the store learn of each page as it arrives.

This is step 8 in docs/architecture.md, up to the end of the visit, which crawler.py handles. Visits
(crawler/visits/visit.py) call this module for each page that they have requested, whether or not it was answered. The
module begins no visit and stops no crawl: it tells the crawler of each result, which does.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver, ResolvedLinks
from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.content_quality import ContentQuality
from trapline.crawler.engine.crawl_events import NO_EVENTS, CrawlEvents
from trapline.crawler.engine.options import CrawlerSettings
from trapline.crawler.engine.other_partitions import OtherPartitions
from trapline.crawler.engine.page_quality import PageScoring
from trapline.crawler.engine.page_stream import PageDetails, PageStream
from trapline.crawler.engine.records import AS_BEFORE, OUT_OF_BAND, RETURNED, SITE_FAILED, Fetched
from trapline.crawler.engine.referrers import Referrers
from trapline.crawler.engine.tally import CrawlTally
from trapline.crawler.engine.unanswered_seeds import WORDS, UnansweredSeeds
from trapline.crawler.engine.world import World
from trapline.crawler.recrawl.conditional_refetch import ConditionalRefetch
from trapline.crawler.recrawl.published_lists import PublishedLists
from trapline.crawler.recrawl.signal_intake import SignalIntake
from trapline.crawler.store.outbox import Outbox
from trapline.crawler.visits.extra_requests import ExtraRequests
from trapline.crawler.visits.fetch_record import PageRequest, answer, no_answer
from trapline.crawler.visits.judge import FetchVerdict, judge
from trapline.crawler.visits.out_of_band import OutOfBandFetches
from trapline.fetch import failure
from trapline.fetch.http.response import Response
from trapline.fetch.urls import canonical
from trapline.frontier import FAILED, FETCHED, REFUSED, Frontier, Visit
from trapline.frontier.layout import Array

if TYPE_CHECKING:  # imported only by crawls that fetch requisites
    from trapline.crawler.requisites.page_requisites import PageRequisites

_MOST_SCOPE_NOTES = 5
_CONDITION = b"\r\nIf-"  # in a conditional request: If-None-Match, If-Modified-Since, or both
_NO_PAGES = np.zeros(0, np.int32)
_NO_LINKS = ResolvedLinks(_NO_PAGES)
_NO_DETAILS = PageDetails()


@dataclass(slots=True)
class Features:
    """What a crawl does besides fetching each page once. None: it does not."""

    refetch: ConditionalRefetch | None = None
    """fetches pages again"""
    signal_intake: SignalIntake | None = None
    """takes in what content providers say about changes"""
    published_lists: PublishedLists | None = None
    """reads sitemaps and feeds"""
    requisites: "PageRequisites | None" = None
    """fetches requisites of pages"""
    events: CrawlEvents = NO_EVENTS
    """writes the log of the crawl"""
    others: OtherPartitions | None = None
    """exchanges URLs with the other partitions, if the crawl is one of several"""


class FetchResults:
    def __init__(
        self,
        frontier: Frontier,
        link_resolver: LinkResolver,
        outbox: Outbox,
        settings: CrawlerSettings,
        scoring: PageScoring,
        tally: CrawlTally,
        out_of_band: OutOfBandFetches,
        features: Features,
    ) -> None:
        """The parameters are those of `Crawler`. `out_of_band`: knows which visits are out-of-band."""
        self._frontier, self._link_resolver, self._outbox = frontier, link_resolver, outbox
        self._settings, self._scoring, self._tally = settings, scoring, tally
        self._out_of_band, self._features = out_of_band, features
        self.unanswered_seeds = UnansweredSeeds(settings.abandon, frontier.rules)
        self.scope_notes: list[str] = []  # for the user: redirects of seeds that the scope followed
        self.stream: PageStream | None = None  # to the program that takes the pages; None: there is none
        self.referrers: Referrers | None = None  # for the log; None: it does not need them
        self.content: ContentQuality | None = None  # scores pages; None: their content has no quality

    def begin(
        self, world: World, extra: ExtraRequests, reported: Callable[[int], None], arrived: Callable[[], None]
    ) -> None:
        """Begin to take results. `reported` is called when the frontier has a result, and `arrived` when the store has a page."""
        self._world, self._extra, self._reported, self._arrived = world, extra, reported, arrived

    # ---- answers

    def answered(
        self, visit: Visit, site: Site, request: PageRequest, response: Response, address: str
    ) -> FetchVerdict:
        """Judge the response to a request, report it to the frontier, and pass it to the store. Return the verdict."""
        if request.source is not None:
            verdict = self._extra.answered(request.source, visit, site, request, response, address, self._world.now())
            self._arrived()
            return verdict
        if visit in self._out_of_band:
            return self._out_of_band_answered(visit, site, request, response, address)
        now = self._world.now()
        refetch, program = self._features.refetch, self._scoring.program
        is_refetch = refetch is not None and refetch.is_refetch(request.page)
        verdict = self._judged(request, response, now, is_refetch)
        self._tally.in_flight -= 1
        self._note_verdict(site, request, response, verdict)
        if program is not None:
            self._judge_quality(visit, site, request, response, address, verdict, is_refetch)
        found = _NO_LINKS
        if verdict.links:
            found = self._link_resolver.pages_of(request.url, verdict.base, verdict.links, now, wants_urls=is_refetch)
        if program is not None:
            program.forget()
        # Before the report, which may change the quality.
        is_new = verdict.result == FETCHED and not is_refetch
        page_quality = self._scored(request, found.pages) if is_new else 0.0
        record = self._record(visit, site, request, response, address, verdict, found)
        self._report(visit, record, now, found.pages, response.own_s, page_quality)
        if record.result == FETCHED:
            if self._features.others is not None and found.has_foreign:
                _send_links(self._features.others, request.page, found, is_refetch)
            self._read_page(request, verdict, response, now)
        known_quality = page_quality if self.content is None else math.nan
        details = PageDetails(verdict.links, verdict.base, known_quality) if self._shows_pages else _NO_DETAILS
        own_links = found.own
        if self.content is not None and is_new and not 300 <= response.status < 400:
            self.content.fetched(record, details, own_links)
        self.keep(record, is_refetch, details, own_links, page_quality)
        self._arrived()
        return verdict

    def _judged(self, request: PageRequest, response: Response, now: float, is_refetch: bool) -> FetchVerdict:
        return judge(
            response,
            self._settings.agent,
            self._settings.expanded_bytes,
            now,
            is_refetch and _CONDITION in request.request,
            self._features.refetch is not None,
            self._reads_lists(request.url),
        )

    def _reads_lists(self, url: str) -> bool:
        lists = self._features.published_lists
        return lists is not None and lists.reads(url)

    def _note_verdict(self, site: Site, request: PageRequest, response: Response, verdict: FetchVerdict) -> None:
        """Note a site that gets too many requests, and a redirect, which may be that of a seed."""
        if verdict.ends_visit:
            self._features.events.asked_to_wait(site, request.url, response.status, verdict.retry_after_s)
        if 300 <= response.status < 400 and verdict.links:
            self._redirected(request.url, verdict.links[0])

    def _record(
        self,
        visit: Visit,
        site: Site,
        request: PageRequest,
        response: Response,
        address: str,
        verdict: FetchVerdict,
        found: ResolvedLinks,
    ) -> Fetched:
        """Return the record of an answer, with what the refresher and the other partitions add to it."""
        refetch, others = self._features.refetch, self._features.others
        hrefs = list(verdict.links) if self._settings.keep_hrefs else ()
        record = answer(visit, site, request, response, address, verdict, hrefs, found.own.tobytes())
        if refetch is not None:
            record = refetch.compared(record, verdict, response)
        if others is not None and found.has_foreign:
            is_known = record.changed == 0 and not others.have_grown
            record = record._replace(
                elsewhere=AS_BEFORE if is_known else found.foreign,
                further=np.array(list(found.further), "<i8").tobytes(),
            )
        return record

    @property
    def _shows_pages(self) -> bool:
        """Whether a program, a handler or a scorer sees the pages."""
        return self.stream is not None or self.content is not None

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
            if "fetched_quality" in self._frontier.strategy.page.inputs:
                self._frontier.set_column("fetched_quality", [program.quality], request.page)
        else:
            program.inherit(request.page)

    def _scored(self, request: PageRequest, links: Array) -> float:
        """Keep the links of a new page for scores if there are any, and return the quality of the page."""
        quality = self._scoring.quality(request)
        if self._scoring.keep_links is not None:
            self._scoring.keep_links(request.page, links)
        return quality

    def _read_page(self, request: PageRequest, verdict: FetchVerdict, response: Response, now: float) -> None:
        """Read what a fetched page says about other URLs, besides its links."""
        if self._features.signal_intake is not None:
            self._features.signal_intake.listen(request.page, request.url, verdict, response, now)
        elif self._features.published_lists is not None and response.status == 200:
            self._features.published_lists.listen(request.page, request.url, verdict, response, now)
        if self._features.requisites is not None:
            self._features.requisites.read_page(request.page, request.url, verdict, response, now)

    def _redirected(self, url: str, href: str) -> None:
        """Count the target of a seed's redirect as a seed. This comes before the links are resolved, for the target is one."""
        target = canonical(href, url)
        redirects, is_wider = self._link_resolver.redirected(url, target) if target else (0, False)
        if is_wider and target:
            self._features.events.scope_followed(url, target)
        if is_wider and len(self.scope_notes) < _MOST_SCOPE_NOTES:
            self.scope_notes.append(f"{url} redirects to {target}; the scope follows")
        if target and redirects and self._features.others is not None:
            self._features.others.seed(target, redirects, is_wider)

    def _out_of_band_answered(
        self, visit: Visit, site: Site, request: PageRequest, response: Response, address: str
    ) -> FetchVerdict:
        """Record the response to an out-of-band fetch. The sites that wait for it have received it already
        (crawler/visits/visit.py); for everything else the page stays as it was."""
        self._out_of_band.came(visit, request.page)
        verdict = judge(response, self._settings.agent, self._settings.expanded_bytes, self._world.now(), False, False)
        self.keep(answer(visit, site, request, response, address, verdict, (), b"")._replace(result=OUT_OF_BAND))
        return verdict

    def _report(
        self, visit: Visit, record: Fetched, now: float, links: Array, own_s: float, page_quality: float = 0.0
    ) -> None:
        """Report a result to the frontier and to the refresher, which decide what is fetched next. The frontier is not told
        of the refusal of a page that we have a copy of (`ConditionalRefetch.stands`)."""
        if self._features.refetch is None or not self._features.refetch.stands(record):
            self._frontier.report(visit, record.page, record.result, now, links, own_s)
        if self._features.refetch is not None:
            self._features.refetch.came(record, now, page_quality)
        self._reported(record.result)

    def keep(
        self,
        record: Fetched,
        is_refetch: bool = False,
        details: PageDetails = _NO_DETAILS,
        links: Array = _NO_PAGES,
        page_quality: float = 0.0,
    ) -> None:
        """Count the record and pass it to the store. This comes last, so that a batch contains all that follows from its pages."""
        self._tally.note(record, is_refetch, page_quality)
        if self.stream is not None:
            self.stream.came(self._outbox.number + 1, self._outbox.next_fetch, record, details, links)
        if self.referrers is not None:
            self.referrers.note_links(record.page, links.tolist())
        self._outbox.fetched(record)

    # ---- requests without an answer

    def failed(self, visit: Visit, site: Site, request: PageRequest, kind: str, address: str) -> None:
        """Report a page that was requested and not answered. It may be tried again."""
        if request.source is not None:
            self._extra.lost(request.source, visit, site, request, kind, address, self._world.now())
            return
        self._no_longer_in_flight(visit, 1)
        self._without_answer(visit, site, request, FAILED, kind, address)

    def site_failed(self, visit: Visit, site: Site, request: PageRequest, kind: str, why: str = "") -> None:
        """Record that the site gave no connection or no robots.txt. `request`: the page that would have been next. The record
        names this page, but the failure is not charged to it. `why`: the reason, for people."""
        result = OUT_OF_BAND if visit in self._out_of_band else SITE_FAILED
        if site.robots is None and self._link_resolver.is_seed(request.url):
            self.unanswered_seeds.note(request.url, why or WORDS.get(kind, kind))
        if kind == failure.ROBOTS:
            self._features.events.robots_unreachable(site, why)
        if why == failure.CONNECTION_REFUSED:
            self.unanswered_seeds.refused.add(site.id)
        else:
            self.unanswered_seeds.refused.discard(site.id)
        self.keep(no_answer(visit, site, request, result, kind, "", self._world.now()))

    def disallowed(self, visit: Visit, site: Site, page: int, url: str) -> None:
        """Report a page that robots.txt forbids. No request was sent."""
        self._without_answer(visit, site, PageRequest(page, url, self._world.now(), b""), REFUSED, failure.ROBOTS, "")

    def _without_answer(
        self, visit: Visit, site: Site, request: PageRequest, result: int, kind: str, address: str
    ) -> None:
        now = self._world.now()
        is_out_of_band = visit in self._out_of_band
        record = no_answer(visit, site, request, OUT_OF_BAND if is_out_of_band else result, kind, address, now)
        if is_out_of_band:
            self._out_of_band.came(visit, request.page)
        else:
            self._report(visit, record, now, _NO_PAGES, math.nan)
        self.keep(record)

    def requested(self, visit: Visit) -> None:
        if visit not in self._out_of_band:
            self._tally.in_flight += 1

    def _no_longer_in_flight(self, visit: Visit, pages: int) -> None:
        """Count this many pages as no longer in flight. Those of an out-of-band visit were not counted."""
        if visit not in self._out_of_band:
            self._tally.in_flight -= pages

    def withdrawn(self, visit: Visit, site: Site, requests: Collection[PageRequest], kind: str, address: str) -> None:
        """Record pages that were requested and will not be answered. The frontier takes them back as they were."""
        pages = [request for request in requests if request.source is None]
        self._no_longer_in_flight(visit, len(pages))
        now, result = self._world.now(), OUT_OF_BAND if visit in self._out_of_band else RETURNED
        for request in requests:
            if request.source is not None:
                self._extra.lost(request.source, visit, site, request, kind, address, now)
            else:
                self._outbox.fetched(no_answer(visit, site, request, result, kind, address, now))


def _send_links(others: OtherPartitions, page: int, found: ResolvedLinks, is_refetch: bool) -> None:
    """Send the links of a fetched page to the partitions that own them."""
    if is_refetch:
        others.send_refetched_links(page, found.foreign)
    else:
        others.send_links(page, found.foreign, len(found.pages), found.further)
