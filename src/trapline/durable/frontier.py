"""The durable frontier: tells a crawler which URLs to fetch next, and survives its process.

It gives URLs their page numbers, keeps them with the log of calls in a database (database.py), and takes snapshots, so that a later
process begins where this one ended. What is fetched next, and when, is decided by `trapline.frontier`. The crawler fetches.

Everything that a call has changed is committed when the call returns, except for `next`: a page that was handed out but not reported
when the process ended is handed out again. Snapshots and the log restore the frontier exactly (frontier/replay.py).
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.files import checkpoint, lock
from trapline.crawler.files.resume import settle
from trapline.durable.database import DATABASE, FORMAT, FrontierDatabase, PageRow
from trapline.durable.pages import NewPage, QueuedPage, UrlVisit, check_text, with_url
from trapline.errors import ConfigError
from trapline.fetch.urls import MOST_URL, canonical, is_dynamic, origin
from trapline.frontier import FETCHED, REFUSED, Drained, Frontier, Outcome, Rescore, Rules, Visit, WaitUntil
from trapline.frontier.journal import Journal
from trapline.frontier.layout import FETCHED as FETCHED_PAGE
from trapline.strategies import Strategy, load_strategy
from trapline.strategies.base.live_inputs import live_inputs
from trapline.strategies.base.url_inputs import STATE_PAGES

_SNAPSHOT_PAGES = 50_000  # reported pages between two snapshots
_SNAPSHOT_BYTES = 64 << 20  # of log between two snapshots
_OTHER_FILES = ("lock", "snapshot", DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm")


class DurableFrontier:
    """A frontier of URLs in a folder.

    If the folder cannot be written, for example because the disk is full, a call raises `sqlite3.Error`. Do not repeat the call: the
    frontier has done what it asked for, and the next call that can write writes that too.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/frontier"
    >>> with DurableFrontier(folder, "breadth-first", Rules(delay_s=0.0)) as frontier:
    ...     frontier.add(["http://a.example/", "http://b.example/"])
    2
    >>> with DurableFrontier(folder, "breadth-first", Rules(delay_s=0.0)) as frontier:
    ...     visit = frontier.next()
    ...     _ = frontier.report(visit, visit.pages[0], FETCHED, ["http://a.example/1"])
    ...     _ = frontier.finish(visit)
    ...     visit.pages[0].url, frontier.known, frontier.waiting
    ('http://a.example/', 3, 2)
    """

    DATABASE_KIND: type[FrontierDatabase] = FrontierDatabase

    def __init__(
        self,
        folder: str | Path,
        strategy: str | Strategy = "opic",
        rules: Rules | None = None,
        *,
        by_address: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the frontier in a folder, or make a new one.

        `strategy`: its name, a Python file of yours, or the strategy itself. `by_address`: sites on the same IP address share a delay;
        `resolve` must name the address of each site (`unresolved`) before it is visited. `clock`: returns seconds since 1970.

        All calls must come from the thread that opened the frontier.
        """
        self._folder, self._clock = Path(folder), clock
        self._strategy = load_strategy(strategy) if isinstance(strategy, str) else strategy
        self._by_address, self._rules = by_address, rules or Rules()
        _check_strategy(self._strategy)
        _check_folder(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._is_open = True
        self._lock = lock.take(self._folder, "used")
        try:
            self._database = self.DATABASE_KIND(self._folder)
            try:
                self._open()
            except BaseException:
                self._database.close()
                raise
        except BaseException:
            self._lock.release()
            raise

    # ---- pages

    def add(self, pages: Iterable[str | NewPage], *, sync: bool = False) -> int:
        """Add URLs that no fetched page links to, such as seeds, and return how many are new. `sync`: wait until they are on disk, so
        that they survive a power failure."""
        given, known, now = list(map(with_url, pages)), self.known, self._now()
        for page, url in given:
            if not url:
                raise ConfigError(f"{page.url[:MOST_URL]}: not an http or https URL of at most {MOST_URL} characters")
        self._frontier.discover(self._numbers(given, now), now)
        self._commit(sync)
        return self.known - known

    def report(
        self,
        visit: UrlVisit,
        page: QueuedPage,
        result: int,
        links: Iterable[str | NewPage] = (),
        response_s: float = math.nan,
        payload: bytes | None = None,
    ) -> bool:
        """Report the result of a page: FETCHED, FAILED (it may be tried again) or REFUSED (never again), with its links. Links that are
        not http or https are left out. `payload`: replaces that of a page that is tried again. Return False if the visit has already
        ended: its time had run out."""
        now = self._now()
        numbers = self._numbers([one for one in map(with_url, links) if one[1]], now)
        is_taken = self._frontier.report(self._visit(visit), page.id, result, now, numbers, response_s)
        if is_taken and result in (FETCHED, REFUSED) and page.payload:
            self._database.payloads.append((None, page.id))
        elif is_taken and payload is not None:
            self._database.payloads.append((payload, page.id))
        self._reported += 1
        self._commit()
        return is_taken

    def set_payload(self, page: QueuedPage, payload: bytes) -> None:
        """Replace the payload of a page that is being visited, for its next visit."""
        self._database.payloads.append((payload, page.id))
        self._commit()

    def finish(self, visit: UrlVisit, outcome: Outcome | None = None) -> bool:
        """End a visit. Pages that were not reported wait again, and the delay of the site begins."""
        is_taken = self._frontier.finish(self._visit(visit), outcome or Outcome(), self._now())
        self._commit()
        return is_taken

    def next(self) -> UrlVisit | WaitUntil | Drained:
        """Return what to do now: make a visit, wait, or end because nothing is left."""
        answer = self._frontier.next(self._now())
        if isinstance(answer, Visit):
            rows = self._database.rows_of(answer.pages)
            pages = [QueuedPage(row.id, row.url, row.payload or b"") for row in rows]
            return UrlVisit(answer.id, self._names[answer.site], pages, answer.expires_at)
        assert not isinstance(answer, Rescore)  # `_check_strategy`
        return answer

    # ---- sites

    def set_site(
        self,
        site: str,
        *,
        delay_s: float | None = None,
        per_connection: int | None = None,
        max_pages: int | None = None,
        not_before: float | None = None,
    ) -> None:
        """Set the rules of one site: the delay between two visits, the pages of a visit, the pages in all (0 blocks the site), and a time
        before which it is not visited. None leaves a rule as it is; AS_RULES removes the site's own."""
        check_text("site", site)
        now = self._now()
        (number,) = self._site_numbers([site], now)
        rules = {"delay_s": delay_s, "per_connection": per_connection, "pages": max_pages, "not_before": not_before}
        self._frontier.set_site(number, now, **rules)  # type: ignore[arg-type]
        self._commit()

    def resolve(self, site: str, address: str) -> None:
        """Name the IP address of a site. Sites on the same address share its delay. With an unknown address, give the site's own name."""
        number = self._sites.get(site)
        if not self._by_address or number is None:
            reason = (
                "is not a site of this frontier" if self._by_address else "needs no address without by_address=True"
            )
            raise ConfigError(f"site {site!r} {reason}")
        check_text("address", address)
        if address not in self._addresses:
            self._addresses[address] = len(self._addresses)
            self._database.addresses.append((self._addresses[address], address))
        if not self._frontier.is_visited(number):
            self._frontier.resolve(number, self._addresses[address], self._now())
            self.unresolved.discard(site)
        self._commit()

    # ---- numbers

    @property
    def known(self) -> int:
        """Number of known pages."""
        return self._frontier.pages

    @property
    def waiting(self) -> int:
        """Number of pages that wait to be fetched."""
        return self._frontier.waiting

    @property
    def sites(self) -> int:
        """Number of known sites."""
        return len(self._names)

    @property
    def done(self) -> int:
        """Number of pages that were fetched, or that are never tried again."""
        return int((self._frontier.page_states >= FETCHED_PAGE).sum())

    @property
    def now(self) -> float:
        """The frontier's time: that of its clock, until the clock is set back. The frontier's time then goes on, and stays ahead."""
        return self._now()

    @property
    def is_drained(self) -> bool:
        """Whether no page is left that could ever be handed out, and none is being fetched."""
        return not self._frontier.has_new

    def opens_at(self) -> float:
        """Return when a visit could begin: now, a later time, or infinity if time alone changes nothing."""
        return self._frontier.opens_at(self._now())

    def knows(self, key: str) -> bool:
        """Return whether a page with this key, or this URL, was added before."""
        return self._find(key) >= 0

    def is_done(self, key: str) -> bool:
        """Return whether the page with this key, or this URL, was fetched, or is never tried again."""
        page = self._find(key)
        return page >= 0 and self._frontier.page_state(page) >= FETCHED_PAGE

    def retries_left(self, page: QueuedPage) -> int:
        """Return how often this page may fail and is still tried again."""
        return self._rules.retries - self._frontier.failed_tries(page.id)

    # ---- the end

    def close(self) -> None:
        """End. The next process begins at this point."""
        if self._is_open:
            self._is_open = False
            try:
                self._commit()
                self._take_snapshot()
            finally:
                self._database.close()
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- private

    def _open(self) -> None:
        settings, database = self._database.settings(), self._database
        self._seen, self._names, self._addresses = SeenTable(), list[str](), dict[str, int]()
        self._batch = database.last_batch()
        self._reported = self._log_bytes = 0
        self._ahead_s = 0.0  # of the clock: as far as it was set back
        self._calls = b""  # that could not be committed: the next commit has them too
        self.unresolved: set[str] = set()
        self._qualities: list[float] = []  # of the pages that are being registered
        self._inputs = live_inputs(self._strategy, lambda urls: self._qualities, None, 1, canonical, _no_graph)
        if settings is None:
            self._frontier = Frontier(self._strategy, self._rules)
            self._frontier.journal = Journal()
            self._database.meta |= {"format": str(FORMAT), "settings": json.dumps(self._settings())}
            self._sites: dict[str, int] = {}
            self._commit(is_first=True)
        else:
            self._restore(settings)

    def _settings(self) -> dict[str, object]:
        return {"strategy": self._strategy.name, "rules": asdict(self._rules), "by_address": self._by_address}

    def _restore(self, settings: dict[str, object]) -> None:
        """Load the newest snapshot, repeat the calls since then, and end the visits that were under way."""
        if (settings["strategy"], settings["by_address"]) != (self._strategy.name, self._by_address):
            made = f"strategy {settings['strategy']!r}, by_address={settings['by_address']}"
            raise ConfigError(
                f"{self._folder}: was made with {made}; open it with the same, or begin in another folder"
            )
        checkpoint.forget_after(self._folder, self._batch)
        first_rules = Rules(**settings["rules"])  # type: ignore[arg-type]
        batch, state, damaged = checkpoint.load(self._folder, self._batch, self._strategy)
        self._frontier, self._seen = state or (Frontier(self._strategy, first_rules), self._seen)
        if batch < self._batch:
            from trapline.frontier.replay import replay  # its kernel takes seconds to compile, and is seldom needed

            for calls in self._database.log(after=batch):
                replay(self._frontier, calls)
        if damaged:
            checkpoint.forget_after(self._folder, batch)
        for keys in self._database.keys(first=len(self._seen)):
            self._seen.add(self._seen.fingerprints(keys), len(self._seen), np.empty(len(keys), np.int32))
        self._names = self._database.site_names()
        self._sites = {name: number for number, name in enumerate(self._names)}
        self._addresses = self._database.address_numbers()
        groups = self._frontier.site_groups[: len(self._names)].tolist()
        self.unresolved = {name for name, group in zip(self._names, groups, strict=True) if group < 0}
        self._frontier.journal = Journal()
        self._settle()

    def _settle(self) -> None:
        now = self._now()
        settle(self._frontier, now)
        if self._frontier.rules != self._rules:
            self._frontier.change_rules(self._rules, now)
        self._commit()

    def _now(self) -> float:
        clock, now = self._clock(), self._frontier.now
        self._ahead_s = max(self._ahead_s, now - clock)
        return max(now, clock + self._ahead_s)

    def _find(self, key: str) -> int:
        """Return the page with this key, or else with this URL; -1: there is none."""
        check_text("key", key)
        found = np.empty(1, np.int32)
        self._seen.find(self._seen.fingerprints([key]), found)
        if found[0] < 0 and (url := canonical(key)) not in (None, key):
            self._seen.find(self._seen.fingerprints([url]), found)
        return int(found[0])

    def _visit(self, visit: UrlVisit) -> Visit:
        return Visit(visit.id, self._sites[visit.site], [page.id for page in visit.pages], visit.expires_at)

    def _numbers(self, given: Sequence[tuple[NewPage, str]], now: float) -> list[int]:
        """Return the page of each of these pages with their canonical URLs. New pages, and new sites, are registered."""
        if not given:
            return []
        keys = [page.key or url for page, url in given]
        first = self._frontier.pages
        numbers = np.empty(len(keys), np.int32)
        self._seen.add(self._seen.fingerprints(keys), first, numbers)
        pages: list[int] = numbers.tolist()
        new: dict[int, int] = {}  # by page: its first place among the given ones
        for at, page in enumerate(pages):
            if page >= first:
                new.setdefault(page, at)
        if new:
            self._register([given[at] for at in new.values()], first, now)
        return pages

    def _register(self, new: Sequence[tuple[NewPage, str]], first: int, now: float) -> None:
        urls = [url for _, url in new]
        owners = self._site_numbers([page.site or origin(url) for page, url in new], now)
        self._frontier.add_pages(owners, [is_dynamic(url) for url in urls])
        self._qualities = [page.quality for page, _ in new]
        for name, values in self._inputs.items():
            self._frontier.set_column(name, values(urls), first)
        for number, (site, (page, url)) in enumerate(zip(owners, new, strict=True), first):
            key = page.key if page.key and page.key != url else None
            self._database.pages[number] = PageRow(number, site, url, key, page.payload or None)

    def _site_numbers(self, names: Sequence[str], now: float) -> list[int]:
        """Return the number of each site. New sites are registered."""
        first = len(self._names)
        for name in names:
            if name not in self._sites:
                self._sites[name] = len(self._names)
                self._names.append(name)
                self._database.sites.append((self._sites[name], name))
        count = len(self._names) - first
        if count:
            own = None if self._by_address else list(range(first, first + count))
            self._frontier.add_sites(count, now, own)
            if self._by_address:
                self.unresolved.update(self._names[first:])
        return [self._sites[name] for name in names]

    def _commit(self, sync: bool = False, is_first: bool = False) -> None:
        assert self._frontier.journal is not None
        self._calls += self._frontier.journal.take()
        if not (self._calls or is_first or self._database.has_changes):
            return
        self._database.commit(self._batch + 1, self._calls, sync)
        self._batch += 1
        self._log_bytes += len(self._calls)
        self._calls = b""
        if self._reported >= _SNAPSHOT_PAGES or self._log_bytes >= _SNAPSHOT_BYTES:
            self._take_snapshot()

    def _take_snapshot(self) -> None:
        if checkpoint.newest(self._folder) == self._batch:
            return
        checkpoint.save(self._folder, self._batch, self._frontier, self._seen)
        self._database.forget_log(checkpoint.tidy(self._folder, self._batch))
        self._reported = self._log_bytes = 0


def _no_graph(graph: object) -> np.ndarray:
    raise AssertionError("no input needs a graph")


def _check_strategy(strategy: Strategy) -> None:
    page = strategy.page
    if page.scores:
        raise ConfigError(
            f"strategy {strategy.name!r} ranks pages by the PageRank of the known graph, which this frontier does not keep; choose"
            " another, such as opic"
        )
    unknown = [name for name in page.inputs if name in STATE_PAGES or name.startswith("history")]
    if unknown:
        raise ConfigError(
            f"strategy {strategy.name!r} needs the input {unknown[0]!r}, which this frontier lacks; choose another strategy"
        )


def _check_folder(folder: Path) -> None:
    """Refuse a folder with other files, unless it has a frontier."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: exists and is not a folder; name another folder")
    if folder.is_dir() and not (folder / DATABASE).exists():
        strangers = sorted(entry.name for entry in folder.iterdir() if entry.name not in _OTHER_FILES)
        if strangers:
            raise ConfigError(f"{folder}: has other files, such as {strangers[0]}; name a new folder")
