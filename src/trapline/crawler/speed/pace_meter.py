"""Computes the pace of a running crawl and what other options would change, at most every few seconds (pace.py, what_if.py)."""

import math
import time
from collections.abc import Iterator, Sequence

from trapline.crawler.discovery.sites import Sites
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.speed.pace import Pace, pace_of, site_loads
from trapline.crawler.speed.what_if import WhatIf, what_ifs
from trapline.frontier import Frontier

_EVERY_S = 5.0  # between two computations, which take milliseconds for 100,000 sites
_FIRST_S = 1.0  # until a site has answered, so that what-ifs are known
_MOST_SHARE = 200  # a computation that takes long is repeated only after this many times its duration
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
            every_s = _EVERY_S if self.what_ifs else _FIRST_S
            self._due_at = now + max(every_s, _MOST_SHARE * (time.monotonic() - now))
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
        self._due_at += _MOST_SHARE * (time.monotonic() - began)
