"""The events of a running crawl, as crawler/files/event_log.py writes them: their names, levels and sentences.

The loop calls one method per event. Nothing here is called once per page: a crawl without trouble writes some lines per run.
"""

import math
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trapline import __version__
from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.files.event_log import EventLog, begin_log
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.status_file import free_bytes
from trapline.crawler.store.client import StoreDiedError
from trapline.errors import ConfigError
from trapline.units import bytes_shown, counted, duration

TOO_MANY_REQUESTS, UNAVAILABLE = 429, 503
_SLOW_STORE_S = 5.0  # an event if the store is full for longer
_LOW_DISK_BYTES = 10**9
_DISK_EVERY_S = 10.0  # between two looks at the free space
_LARGE = ("seeds", "hosts")  # options that may have very many values


class CrawlEvents:
    def __init__(self, log: EventLog, folder: Path | None = None) -> None:
        self.log, self._folder = log, folder
        self._full_since = math.inf  # seconds of crawling
        self._disk_at = -math.inf  # likewise: when the free space was last looked at
        self._is_slow = self._is_low = False  # whether that was noted

    @classmethod
    def of(cls, options: CrawlOptions, folder: Path | None) -> "CrawlEvents":
        """Return the events of a run with these options. `folder`: None for a crawl without one, which has no log."""
        if folder is not None:
            begin_log(folder, options.log_format)
        return cls(EventLog(folder, options.log_level, options.log_format, options.log_bytes), folder)

    # ---- the run

    def began(self, options: CrawlOptions) -> None:
        """Note the beginning of the first run."""
        seeds = options.seeds
        text = f"the crawl began with {counted(len(seeds), 'seed')}, the first is {seeds[0] if seeds else 'missing'}"
        self.log.note(
            "info", "crawl_began", text, trapline=__version__, seeds=len(seeds), options=_differences(None, options)
        )

    def resumed(self, options: CrawlOptions, fetched: int) -> None:
        """Note the beginning of a later run. Call it before the folder has the options of this run. `fetched`: pages of earlier runs."""
        assert self._folder is not None
        with closing(Reading(self._folder)) as reading:
            before = CrawlOptions.from_json(reading.meta().get("options", ""))
        text = f"the crawl continues after {counted(fetched, 'page')}"
        self.log.note("info", "crawl_resumed", text, trapline=__version__, pages=fetched)
        if changes := _differences(before, options):
            self.log.note("info", "options_changed", f"options changed: {', '.join(changes)}", options=changes)

    def ended(self, stopped_by: str, progress: CrawlProgress) -> None:
        text = f"the crawl ended ({stopped_by}) after {counted(progress.pages, 'page')} in {duration(progress.seconds)}"
        totals = {name: getattr(progress, name) for name in ("pages", "errors", "bytes", "known", "waiting", "seconds")}
        self.log.note("info", "crawl_ended", text, stopped_by=stopped_by, **totals)

    def failed(self, error: BaseException) -> None:
        """Note that the crawl ends by an error."""
        text = str(error) or type(error).__name__
        if isinstance(error, StoreDiedError):
            self.log.note("error", "store_died", text)
        elif isinstance(error, ConfigError):
            self.log.note("error", "crawl_failed", text)
        elif isinstance(error, Exception):
            self.log.note("error", "defect", f"{type(error).__name__}: {text}")

    def snapshot(self, batch: int, seconds: float) -> None:
        self.log.note("info", "snapshot", f"wrote a snapshot in {duration(seconds)}", batch=batch, seconds=seconds)

    def handler_error(self, what: str, error: BaseException) -> None:
        kind = type(error).__name__
        self.log.note("warning", "handler_error", f"the handler failed: {kind}: {error}", url=what, error=kind)

    def scorer_error(self, url: str, error: str) -> None:
        self.log.note("warning", "scorer_error", f"the scorer failed, the page gets the quality 0: {error}", url=url)

    # ---- as time passes

    def watch(self, is_store_full: bool, seconds: float) -> None:
        """Note a slow store and a disk that is almost full, once each time. `seconds`: of crawling."""
        self._watch_store(is_store_full, seconds)
        if self._folder is not None and seconds - self._disk_at >= _DISK_EVERY_S:
            self._disk_at = seconds
            self._watch_disk(free_bytes(self._folder))

    def _watch_store(self, is_full: bool, seconds: float) -> None:
        if not is_full:
            self._full_since, self._is_slow = math.inf, False
            return
        self._full_since = min(self._full_since, seconds)
        if seconds - self._full_since >= _SLOW_STORE_S and not self._is_slow:
            self._is_slow = True
            text = "the store cannot write as fast as pages arrive; no new request is sent until it has room"
            self.log.note("warning", "store_slow", text)

    def _watch_disk(self, free: int) -> None:
        was_low, self._is_low = self._is_low, free < _LOW_DISK_BYTES
        if self._is_low and not was_low:
            self.log.note("warning", "disk_low", f"only {bytes_shown(free)} are free on the disk", free_bytes=free)

    # ---- sites

    def site_abandoned(self, site: Site, kind: str, why: str) -> None:
        text = f"{site.origin} is abandoned: {why}"
        self.log.note("warning", "site_abandoned", text, site=site.origin, kind=kind, why=why)

    def site_failed(self, site: Site, failures: int, wait_s: float) -> None:
        text = f"{counted(failures, 'failed visit')} to {site.origin} in a row; next visit in {duration(wait_s)}"
        self.log.note("warning", "site_failed", text, site=site.origin, failures=failures, wait_s=wait_s)

    def robots_unreachable(self, site: Site, why: str) -> None:
        text = f"the robots.txt of {site.origin} cannot be read" + (f": {why}" if why else "")
        self.log.note("warning", "robots_unreachable", text, site=site.origin)

    def asked_to_wait(self, site: Site, url: str, status: int, wait_s: float) -> None:
        """Note an answer that says that the site gets too many requests: 429, or 503 with a time to wait."""
        if status == TOO_MANY_REQUESTS or (status == UNAVAILABLE and wait_s):
            wish = f" and asks to wait {duration(wait_s)}" if wait_s else ""
            text = f"{site.origin} answered {status}{wish}"
            self.log.note("warning", "too_many_requests", text, site=site.origin, url=url, status=status, wait_s=wait_s)

    def address_found(self, site: Site) -> None:
        self.log.note("debug", "address_found", f"{site.origin} is at {site.addresses[0]}", site=site.origin)

    def scope_followed(self, url: str, target: str) -> None:
        text = f"the seed {url} redirects to {target}; the scope follows"
        self.log.note("info", "scope_followed", text, url=url, target=target)


NO_EVENTS = CrawlEvents(EventLog(None))
"""For a crawl without a log."""


def _differences(before: CrawlOptions | None, now: CrawlOptions) -> Mapping[str, Any]:
    """Return the options that differ from those before, or from the defaults. Large ones are left out."""
    old, new = _flat(before or CrawlOptions(())), _flat(now)
    return {name: value for name, value in new.items() if value != old[name] and name not in _LARGE}


def _flat(options: CrawlOptions) -> dict[str, Any]:
    values = asdict(options)
    return {**values.pop("rules"), **values.pop("limits"), **values}
