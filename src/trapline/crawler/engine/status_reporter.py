"""The status of a running crawl, as the view shows it and the folder keeps it twice a second, and the summary of a crawl without a
folder.

This module decides nothing of the crawl; it notes the pace for the folder. `PaceMeter` computes the pace, and what other options would
change, at most once a second. status.py has the values, crawler/inspect/summary.py
the summary of a crawl with a folder.
"""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from trapline import __version__
from trapline.crawler.discovery.sites import Sites
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import PageStream
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status import (
    CLOSING,
    CRAWLING,
    MOST_ROWS,
    PAUSED,
    PREPARING,
    STOPPING,
    CrawlStatus,
    Recent,
    RefetchCounts,
    stopping,
)
from trapline.crawler.engine.wiring import Parts
from trapline.crawler.files.opening import Opened
from trapline.crawler.files.status_file import FORMAT, StatusFile, free_bytes
from trapline.crawler.handler.handler_thread import HandlerThread
from trapline.crawler.inspect.summary import strategy_name
from trapline.crawler.inspect.why_not_faster import RUNNING, STARTING, why_not_faster
from trapline.crawler.speed.connection_sampler import ConnectionSampler, SpeedMeter
from trapline.crawler.speed.pace import Pace, pace_of, site_loads
from trapline.crawler.speed.what_if import WhatIf, what_ifs
from trapline.crawler.store.client import NoStore, Store
from trapline.frontier import Frontier

_BUSIEST_EVERY = 4  # records: the busiest sites of a fast crawl take a millisecond to find


class StatusWriter:
    """Shows each status to the user, and writes it into the folder for other processes."""

    def __init__(self, show: Callable[[CrawlStatus], None], file: StatusFile, options: CrawlOptions) -> None:
        self._show, self._file, self._options = show, file, asdict(options)
        self._records = 0
        self._busiest: Sequence[tuple[str, int]] = ()

    def __call__(self, status: CrawlStatus) -> None:
        if self._file.folder is None:
            self._show(status)
            return
        if self._records % _BUSIEST_EVERY == 0:
            self._busiest = status.busiest()
        self._records += 1
        record = status_record(status, self._busiest)
        self._file.write(record)
        if status.phase == CRAWLING:
            answer = why_not_faster(record, self._options, free_bytes(self._file.folder), RUNNING)
            status = status._replace(answer=answer if answer.limit != STARTING else None)
        self._show(status)


def status_record(status: CrawlStatus, busiest: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Return the record of live/status (docs/crawl-folder.md). All of its values have a form in JSON."""
    speed = status.speed
    return {
        "format": FORMAT,
        "at": time.time(),
        "process": os.getpid(),
        "seconds": status.progress.seconds,
        "phase": status.phase,
        "doing": status.doing,
        "paused": status.paused,
        "stopped_by": status.stopped_by,
        "failure": "",
        "strategy": status.strategy,
        "goal": status.goal if status.goal < math.inf else None,
        "progress": status.progress._asdict(),
        "pages_per_s": status.pages_per_s,
        "bytes_per_s": status.bytes_per_s,
        "connections": {
            "limit": status.connections,
            "now": speed and speed.now._asdict(),
            "lately": speed and speed.lately._asdict(),
        },
        "waiting": speed and speed.waiting._asdict(),
        "pace": status.pace and status.pace.as_json(),
        "what_if": [one._asdict() for one in status.what_ifs],
        "processor": {"loop": speed and speed.loop_busy},
        "store": speed and speed.store._asdict(),
        "errors": dict(status.errors),
        "abandoned_sites": dict(status.abandoned_sites),
        "rejected_links": dict(status.rejected_links),
        "refetches": _refetches_record(status.refetches),
        "handled": status.handled and status.handled._asdict(),
        "busiest": busiest,
        "notes": status.notes,
        "partitions": status.parts or None,
    }


def _refetches_record(refetches: RefetchCounts | None) -> dict[str, Any] | None:
    return None if refetches is None else {**refetches._asdict(), "signals": refetches.signals._asdict()}


class StatusReporter:
    def __init__(
        self,
        crawl: Opened,
        parts: Parts,
        handler: HandlerThread | None,
        store: Store | NoStore,
        stream: PageStream | None,
    ) -> None:
        """`stream`: takes the pages for the handler or for a program."""
        self._options, self._strategy, self._state, self._folder = (
            crawl.options,
            crawl.strategy,
            crawl.state,
            crawl.folder,
        )
        self._crawler, self._outbox, self._refresh = parts.crawler, parts.outbox, parts.refresh_setup
        self._link_resolver, self._handler = parts.link_resolver, handler
        self._recent = Recent()
        self._pace_meter = PaceMeter(self._state.frontier, self._state.sites, self._options)
        self._speed_meter = SpeedMeter(
            ConnectionSampler(
                parts.crawler,
                parts.web,
                self._options.connections,
                lambda: stream is not None and stream.is_held_up,
            ),
            lambda: store.backlog,
        )
        self._noted_pace: Pace | None = None  # the pace in the database, or on its way there
        self.preparing = ""  # what the crawl does before its first visit

    def status(self, seconds: float, closing: str) -> CrawlStatus:
        """Return the status after these seconds of crawling. `closing`: the step of the closing; "": the crawl is not closing yet."""
        tally, options = self._state.tally, self._options
        progress = self._crawler.progress(seconds)
        by_site, tally.recent = tally.recent, Counter()
        pages_per_s, bytes_per_s = self._recent.note(progress, by_site)
        return CrawlStatus(
            progress,
            pages_per_s,
            bytes_per_s,
            lambda: [(self._state.sites[site].origin, pages) for site, pages in self._recent.busiest()],
            tally.errors.most_common(MOST_ROWS),
            self._strategy.name,
            str(self._folder or ""),
            self._doing(progress, closing),
            options.max_pages,
            options.connections,
            tally.abandoned_sites.most_common(MOST_ROWS),
            tally.rejected_links.most_common(MOST_ROWS),
            self._refetches(),
            handled=self._handler.counts if self._handler is not None else None,
            notes=[*self._crawler.results.unanswered_seeds.notes, *self._crawler.results.scope_notes],
            pace=self._pace(progress),
            speed=self._speed_meter.speed(progress.at),
            what_ifs=self._pace_meter.what_ifs,
            phase=self._phase(closing),
            stopped_by=self._crawler.stopped_by,
            paused=self._crawler.is_paused,
        )

    def _phase(self, closing: str) -> str:
        crawler = self._crawler
        if closing or crawler.stopped_by:
            return CLOSING if closing else STOPPING
        return PREPARING if self.preparing else PAUSED if crawler.is_paused else CRAWLING

    def _pace(self, progress: CrawlProgress) -> Pace | None:
        """Return the pace, and note it for `trapline status` if it is new."""
        pace = None if self._crawler.stopped_by else self._pace_meter.pace(progress)
        if pace is not self._noted_pace:
            self._noted_pace = pace
            self._outbox.meta["pace"] = json.dumps(pace.as_json()) if pace else None
        return pace

    def _refetches(self) -> RefetchCounts | None:
        if self._refresh is None or self._state.refresher is None:
            return None
        tally = self._state.tally
        return RefetchCounts(
            tally.refetched, tally.changed, self._refresh.signal_intake.signal_counts, self._state.refresher.by_quality
        )

    def _doing(self, progress: CrawlProgress, closing: str) -> str:
        if closing:
            return f"closing: {closing}"
        if self._crawler.stopped_by:
            return stopping(self._crawler.stopped_by, progress.active)
        if self.preparing:
            return self.preparing
        if self._refresh is not None and self._refresh.signal_intake.trouble:
            return self._refresh.signal_intake.trouble
        if self._handler is not None and self._handler.stream.is_held_up:
            return "waiting for the handler"
        if (
            self._crawler.features.requisites is not None
            and not self._crawler.has_pages
            and len(self._crawler.features.requisites.queue)
        ):
            return f"fetching requisites of pages: {len(self._crawler.features.requisites.queue):,} left"
        waits_for = self._crawler.waits_for
        if not waits_for and not progress.pages and not progress.errors:
            return "starting: DNS, connections, robots.txt"
        return waits_for

    def brief_summary(self, seconds: float) -> dict[str, Any]:
        """Return the keys of summary.json that the loop itself knows, for a crawl without a folder."""
        tally, progress = self._state.tally, self._crawler.progress(seconds)
        return {
            "trapline": __version__,
            "strategy": strategy_name(self._options),
            "pages_fetched": tally.fetched,
            "redirects": tally.redirects,
            "errors": tally.failed,
            "errors_by_kind": dict(tally.errors.most_common()),
            "bytes": tally.body_bytes,
            "sites": progress.sites,
            "urls_known": progress.known,
            "abandoned_sites_by_kind": dict(tally.abandoned_sites.most_common()),
            "rejected_links": dict(tally.rejected_links.most_common()),
            "scope_followed": list(self._link_resolver.scope_followed),
            "seconds": progress.seconds,
            "pages_per_second": tally.fetched / progress.seconds if progress.seconds else 0.0,
            "stopped_by": self._crawler.stopped_by,
            "quality": tally.quality,
            "quality_source": self._options.quality,
        }


# ---- The pace of the crawl and what other options would change (crawler/speed/pace.py, what_if.py), computed at most once a second

_PACE_EVERY_S = 1.0  # between two computations, as between two samples of the connections: a status shows both
_PACE_MOST_SHARE = 200  # a computation that takes long is repeated only after this many times its duration
_WHAT_IF_S = 0.002  # after this time, the next what-if is left to the next call


class PaceMeter:
    def __init__(self, frontier: Frontier, sites: Sites, options: CrawlOptions) -> None:
        self._frontier, self._sites, self._options = frontier, sites, options
        self._began: CrawlProgress | None = None
        self._due_at = -math.inf
        self._waiting = 0  # pages, at the last computation; it is repeated at once if their number doubles or halves
        self._last: Pace | None = None
        self._pending: Iterator[WhatIf] | None = None  # what-ifs to compute
        self._computed: list[WhatIf] = []
        self.what_ifs: Sequence[WhatIf] = ()

    def pace(self, progress: CrawlProgress) -> Pace | None:
        """Return the pace. Each call also computes some what-ifs, of the sites of the last computation of the pace."""
        began = self._began = self._began or progress
        now = time.monotonic()
        if now >= self._due_at or not self._waiting <= 2 * progress.waiting <= 4 * self._waiting:
            self._waiting = progress.waiting
            loads = site_loads(self._frontier, self._sites, self._options.pause_s, progress.at)
            ran = progress._replace(seconds=progress.seconds - began.seconds, pages=progress.pages - began.pages)
            self._last = pace_of(loads, self._options, progress, ran) if len(loads.pages) else None
            self._pending, self._computed = what_ifs(loads, self._options, progress), []
            self._due_at = now + max(_PACE_EVERY_S, _PACE_MOST_SHARE * (time.monotonic() - now))
        self._compute_some()
        return self._last

    def _compute_some(self) -> None:
        if self._pending is None:
            return
        began = time.monotonic()
        for one in self._pending:
            self._computed.append(one)
            if time.monotonic() >= began + _WHAT_IF_S:
                break
        else:
            self.what_ifs, self._pending = self._computed, None
        self._due_at += _PACE_MOST_SHARE * (time.monotonic() - began)
