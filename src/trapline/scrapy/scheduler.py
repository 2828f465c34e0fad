"""A scheduler for Scrapy: requests are kept by a durable frontier, which decides what is downloaded next, and when.

Scrapy's engine asks for the next request, and gives the scheduler every new one. The scheduler turns visits of the frontier into requests
(durable/open_visits.py), and requests into pages with payloads. A request that a callback yields is added to the frontier when the
callback and the pipelines of its page have ended, together with the report on the page. So after a kill a page is either done, with all
that came from it, or it is downloaded again.
"""

import gc
import logging
import math
import pickle
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.http import Response
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import RequestFingerprinter, request_from_dict
from scrapy.utils.url import strip_url

from trapline.durable import DurableFrontier, KnownPage, NewPage, QueuedPage, UrlVisit
from trapline.durable.open_visits import OpenVisits, RunningPage
from trapline.durable.pages import is_quality
from trapline.frontier import FETCHED, REFUSED, Outcome, WaitUntil
from trapline.scrapy.name_lookups import NameLookups
from trapline.scrapy.settings import SchedulerSettings
from trapline.scrapy.site_backoff import SiteBackoff

logger = logging.getLogger(__name__)

SLOT = "trapline"  # the download slot of all requests: the frontier has the delays, so the slot has none
FOLDER = "frontier"  # in JOBDIR
SITE = "trapline_site"  # in `request.meta`: the download slot that the spider has named
_SCRAPY_QUEUE = "requests.queue"  # in JOBDIR: what Scrapy's own scheduler has kept
_IN_MEMORY = b"-"  # the payload of a request that cannot be serialised
_MOST_FOUND = 1 << 16
_LOOK_AGAIN_S = 0.05  # until the engine is asked again whether it has finished a page


class Scheduler(BaseScheduler):
    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Scheduler":
        return cls(crawler)

    def __init__(self, crawler: Crawler) -> None:
        self._crawler, self._settings = crawler, SchedulerSettings.of(crawler.settings)
        assert crawler.stats is not None
        self._count = crawler.stats.inc_value
        self._backoff = SiteBackoff(self._settings.backoff_s, self._settings.most_backoff_s)
        self._visits = OpenVisits[Request](self._settings.per_site)
        self._pages: dict[str, RunningPage[Request]] = {}  # that were handed out, by how the header Referer names them
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._dupe_filter = _other_dupe_filter(crawler)
        self._in_memory: dict[str, Request] = {}  # by key: requests that cannot be serialised
        # By key: requests that are added when a page that they came from is reported
        self._pending: dict[str, NewPage] = {}
        # Most links lead to a few pages, which need no second search
        self._keys: dict[str, str] = {}  # by URL
        self._found: dict[str, KnownPage] = {}  # by key
        self._is_key_of_url = type(crawler.request_fingerprinter) is RequestFingerprinter
        self._numbers = count()
        self._lookups = NameLookups(self._resolve)
        self._wakes_at = float("inf")
        self._wake_call: CallLaterResult | None = None
        self._look_call: CallLaterResult | None = None
        self._has_more = True
        self._is_resumed = False

    # ---- the interface of Scrapy

    def open(self, spider: Spider) -> None:
        self._spider = spider
        jobs = job_dir(self._crawler.settings)
        if jobs is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="trapline-")
        folder = Path(jobs or self._temporary.name) / FOLDER  # type: ignore[union-attr]
        self._is_resumed = folder.exists()
        settings = self._settings
        self._frontier = DurableFrontier(folder, settings.strategy, settings.rules, by_address=settings.by_address)
        if self._is_resumed:
            logger.info("The frontier in %s is resumed: %d requests wait", folder, self._frontier.waiting)
        elif (folder.parent / _SCRAPY_QUEUE).exists():
            logger.warning("The requests that Scrapy's own scheduler has kept in %s are not read", folder.parent)
        assert self._crawler.engine is not None
        self._crawler.engine.downloader.per_slot_settings[SLOT] = {"concurrency": 1 << 30, "delay": 0.0}
        if self._dupe_filter is not None:
            self._dupe_filter.open()
        connect = self._crawler.signals.connect
        connect(self._reached_downloader, signals.request_reached_downloader)
        connect(self._headers_received, signals.headers_received)
        connect(self._response_downloaded, signals.response_downloaded)
        connect(self._left_downloader, signals.request_left_downloader)
        self._lookups.add(self._frontier.unresolved)
        gc.freeze()  # what was imported and opened lives as long as the crawl: the collector need not look at it again and again

    def close(self, reason: str) -> None:
        gc.unfreeze()
        self._lookups.close()
        for call in (self._wake_call, self._look_call):
            if call is not None:
                call.cancel()
        self._report_ended()
        for visit in self._visits.stop():
            self._frontier.finish(visit.visit)
        if self._in_memory:
            logger.warning("%d requests that could not be serialised are lost", len(self._in_memory))
        self._set_stats()
        self._frontier.close()
        if self._dupe_filter is not None:
            self._dupe_filter.close(reason)
        if self._temporary is not None:
            self._temporary.cleanup()

    def has_pending_requests(self) -> bool:
        return len(self) > 0 and (self._has_more or len(self._visits) > 0)

    def __len__(self) -> int:
        """Return how many requests wait."""
        return self._frontier.waiting + len(self._pending) + self._visits.pages_left

    def enqueue_request(self, request: Request) -> bool:
        is_taken = self._enqueue(request)
        # Here too: while a busy engine processes one page after the other, it asks for no request. Not before, because the request
        # must be kept even if the report cannot be written.
        self._report_if_ended()
        return is_taken

    def _enqueue(self, request: Request) -> bool:
        key = self._key(request)
        known = self._known(key)
        is_new = self._is_wanted(request, known)
        if is_new and known is not None:
            key = self._unique(key)
        page = self._new_page(request, key) if is_new else None
        parent, link = self._parent(request), page or known
        if parent is not None and link is not None:
            parent.links.append(link)  # a link counts, new or not
        if page is None:
            self._count("dupefilter/filtered")
            return False
        if parent is None:
            self._frontier.add([page])
            self._lookups.add(self._frontier.unresolved)
        else:
            self._pending[key] = page
        self._has_more = True
        self._count("scheduler/enqueued")
        self._count(f"scheduler/enqueued/{self._storage(page)}")
        return True

    def next_request(self) -> Request | None:
        self._report_if_ended()
        while (found := self._visits.next_page()) is not None or self._begin_visit():
            if found is None:
                continue
            visit, page = found
            request = self._request(page)
            if request is not None:
                self._take_slot(request)
                self._pages[strip_url(request.url)] = self._visits.hand_out(visit, page, request)
                self._count("scheduler/dequeued")
                self._count(f"scheduler/dequeued/{self._storage(page)}")
                return request
            self._frontier.report(visit.visit, page, REFUSED)
            self._finish_over()  # before the frontier is asked again: the other pages of the site may be next
        return None

    # ---- visits

    def _begin_visit(self) -> bool:
        """Begin a visit, if one is allowed now. Otherwise let the engine ask again when one may be."""
        answer = self._frontier.next()
        if isinstance(answer, UrlVisit):
            self._visits.begin(answer)
            self._count("trapline/visits")
            return True
        moment = answer.time if isinstance(answer, WaitUntil) else float("inf")
        self._has_more = moment < float("inf") or bool(self._frontier.unresolved)
        if moment < float("inf"):
            self._wake_at(moment)
        return False

    def _wake_at(self, moment: float) -> None:
        if moment < self._wakes_at:
            self._wakes_at = moment
            if self._wake_call is not None:
                self._wake_call.cancel()
            self._wake_call = call_later(max(0.0, moment - self._frontier.now), self._wake)

    def _wake(self) -> None:
        self._wakes_at = float("inf")
        self._ask_engine()

    def _ask_engine(self) -> None:
        """Let the engine ask for a request soon."""
        slot = self._crawler.engine._slot if self._crawler.engine is not None else None
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    def _report_if_ended(self) -> None:
        """Report pages that the engine has finished, if numbers say that there are any. The engine calls this often. If a request that
        was sent past the scheduler hides an ended page, `_look` reports that page soon after."""
        if len(self._in_progress()) < self._visits.pages_running:
            self._report_ended()

    def _report_ended(self) -> None:
        """Report the pages that the engine has finished, with the requests that came from them."""
        with self._frontier.one_commit():
            for running in self._visits.ended_but(self._in_progress()):
                if self._pages.get(url := strip_url(running.key.url)) is running:
                    del self._pages[url]
                self._report(running)
            self._finish_over()

    def _in_progress(self) -> set[Request]:
        """Return the requests that the engine has not finished: ours, and those that others sent past the scheduler."""
        engine = self._crawler.engine
        return engine._slot.inprogress if engine is not None and engine._slot is not None else set()

    def _finish_over(self) -> None:
        for visit in self._visits.over():
            wait_s = self._backoff.wait_s(visit.visit.site, visit.has_failed, visit.answers > 0)
            outcome = Outcome(failed=visit.has_failed, not_before=self._frontier.now + wait_s)
            self._frontier.finish(visit.visit, outcome)

    def _report(self, running: RunningPage[Request]) -> None:
        result = REFUSED if running.has_failed else FETCHED
        for link in running.links:
            if isinstance(link, NewPage):
                self._pending.pop(link.key, None)
        self._frontier.report(running.visit.visit, running.page, result, running.links, running.response_s)
        if running.links:
            self._lookups.add(self._frontier.unresolved)

    def _reached_downloader(self, request: Request) -> None:
        if running := self._visits.find(request):
            running.was_sent = True

    def _headers_received(self, request: Request) -> None:
        if running := self._visits.find(request):
            running.is_answered = True  # even if the body is then refused, for example because it is too large

    def _response_downloaded(self, response: Response, request: Request) -> None:
        if running := self._visits.find(request):
            running.is_answered = True
            latency_s = request.meta.get("download_latency", math.nan)
            running.response_s = 0.0 if latency_s < 0.0 else latency_s  # a clock may be set back

    def _left_downloader(self, request: Request) -> None:
        self._visits.downloaded(request)
        if self._look_call is None:
            self._look_call = call_later(_LOOK_AGAIN_S, self._look)

    def _look(self) -> None:
        """Report the pages that the engine has finished. While all connections are busy, it does not ask for a request."""
        self._look_call = None
        self._report_ended()
        self._ask_engine()
        if self._visits.is_processing:
            self._look_call = call_later(_LOOK_AGAIN_S, self._look)

    # ---- requests and pages

    def _key(self, request: Request) -> str:
        """Return the key of a page: Scrapy's fingerprint. It is computed once for a URL, unless it has other sources too."""
        if not self._is_key_of_url or request.method != "GET" or request.body or "verbatim_url" in request.meta:
            return self._fingerprint(request)
        key = self._keys.get(request.url)
        if key is None:
            if len(self._keys) == _MOST_FOUND:
                self._keys.clear()
            key = self._keys[request.url] = self._fingerprint(request)
        return key

    def _fingerprint(self, request: Request) -> str:
        return self._crawler.request_fingerprinter.fingerprint(request).hex()

    def _known(self, key: str) -> NewPage | KnownPage | None:
        """Return the page with this key; None: there is none. One that waits for the report of the page from which it came has its
        payload still: another page with a link to it may be reported first."""
        if known := self._pending.get(key) or self._found.get(key):
            return known
        found = self._frontier.find(key)
        if found is not None:
            if len(self._found) == _MOST_FOUND:
                self._found.clear()
            self._found[key] = found
        return found

    def _is_wanted(self, request: Request, known: NewPage | KnownPage | None) -> bool:
        """Return whether a request is to be scheduled."""
        if request.dont_filter and not self._is_repeated_start(request, known):
            return True
        return known is None if self._dupe_filter is None else not self._dupe_filter.request_seen(request)

    def _is_repeated_start(self, request: Request, known: NewPage | KnownPage | None) -> bool:
        """Return whether a start request is known from an earlier run. Retries and redirects of one are not start requests: they have
        been handed out."""
        is_start = request.meta.get("is_start_request") and request.meta.get("download_slot") != SLOT
        return bool(is_start and self._is_resumed and isinstance(known, KnownPage))

    def _unique(self, key: str) -> str:
        return f"{key} {time.time_ns()} {next(self._numbers)}"

    def _new_page(self, request: Request, key: str) -> NewPage:
        return NewPage(request.url, self._payload(request, key), key, self._site(request), self._quality(request))

    def _quality(self, request: Request) -> float:
        try:
            quality = float(self._settings.quality(request))
            if not is_quality(quality):
                raise ValueError(f"it is {quality}; it must be a number under 2^42")
        except Exception as error:  # whatever the user's function raises
            logger.error(
                "The quality of %s is unknown, and taken as 0: %s", request, error, extra={"spider": self._spider}
            )
            return 0.0
        return quality

    def _payload(self, request: Request, key: str) -> bytes:
        try:
            return pickle.dumps(request.to_dict(spider=self._spider))
        except Exception as error:  # whatever a callback or a value in `meta` raises
            text = "%s cannot be serialised, and will be lost if the process ends: %s"
            logger.warning(text, request, error, extra={"spider": self._spider})
            self._count("scheduler/unserializable")
            self._in_memory[key] = request.copy()  # the spider may yield the same object again
            return _IN_MEMORY + key.encode()

    def _request(self, page: QueuedPage) -> Request | None:
        """Return the request of a page; None: it cannot be made."""
        if page.payload.startswith(_IN_MEMORY):
            request = self._in_memory.pop(page.payload[1:].decode(), None)
            if request is None:
                self._lost(page, "it could not be serialised, and its process has ended")
            return request
        try:
            return request_from_dict(pickle.loads(page.payload), spider=self._spider)
        except Exception as error:  # the spider has changed since then
            self._lost(page, str(error))
            return None

    def _lost(self, page: QueuedPage, reason: str) -> None:
        logger.error("The request for %s is lost: %s", page.url, reason, extra={"spider": self._spider})
        self._count("trapline/lost")

    def _site(self, request: Request) -> str:
        """Return the site of a request: that of its URL, or the download slot that the spider has named."""
        if slot := _named_slot(request):
            return slot
        parts = urlsplit(request.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"

    def _parent(self, request: Request) -> RunningPage[Request] | None:
        """Return the page that is being processed and whose callback has made this request: Scrapy names it in the header Referer."""
        referer = request.headers.get("Referer")
        return self._pages.get(referer.decode("latin-1")) if referer else None

    def _take_slot(self, request: Request) -> None:
        """Let a request use the common download slot, whose delay AutoThrottle must not change."""
        if slot := _named_slot(request):
            request.meta[SITE] = slot
        request.meta.update(download_slot=SLOT, autothrottle_dont_adjust_delay=True)

    def _resolve(self, site: str, address: str) -> None:
        if site in self._frontier.unresolved:
            self._frontier.resolve(site, address)
            self._ask_engine()

    # ---- statistics

    def _storage(self, page: NewPage | QueuedPage) -> str:
        """Return where a request is kept, by the names of Scrapy's statistics: those in memory do not survive the process."""
        return "memory" if self._temporary is not None or page.payload.startswith(_IN_MEMORY) else "disk"

    def _set_stats(self) -> None:
        assert self._crawler.stats is not None
        for name in ("known", "waiting", "sites"):
            self._crawler.stats.set_value(f"trapline/{name}", getattr(self._frontier, name))


def _named_slot(request: Request) -> str:
    """Return the download slot that the spider has named; "": none. A retry or a redirect has that of its first request."""
    slot = request.meta.get("download_slot")
    return str((request.meta.get(SITE) if slot == SLOT else slot) or "")


def _other_dupe_filter(crawler: Crawler) -> BaseDupeFilter | None:
    """Return the user's own filter of duplicates. None: Scrapy's, which the frontier replaces."""
    kind: Any = load_object(crawler.settings["DUPEFILTER_CLASS"])
    return None if kind is RFPDupeFilter else build_from_crawler(kind, crawler)
