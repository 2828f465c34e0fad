"""A frontier with its folder, on which `DurableFrontier` and `ScheduledFrontier` are built. It hands nothing out.

It gives sites and pages their numbers, keeps them with the log of calls in a database (database.py), and takes snapshots, so that a later
process begins where this one ended. Snapshots and the log restore the frontier exactly (frontier/replay.py).
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

import numpy as np

from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.files import checkpoint, lock
from trapline.crawler.files.resume import settle
from trapline.durable.database import DATABASE, FORMAT, FrontierDatabase, PageRow
from trapline.errors import ConfigError
from trapline.fetch.urls import canonical
from trapline.frontier import Frontier, Rules
from trapline.frontier.journal import Journal
from trapline.strategies import Strategy, load_strategy
from trapline.strategies.base.live_inputs import live_inputs
from trapline.strategies.base.url_inputs import STATE_PAGES

_SNAPSHOT_PAGES = 50_000  # reported pages between two snapshots, until many pages are known
_SNAPSHOT_BYTES = 64 << 20  # of log between two snapshots
_OTHER_FILES = ("lock", "snapshot", DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm")


class MoreTables(Protocol):
    """What the owner of a folder keeps in the database beside the folder's own tables."""

    @property
    def has_changes(self) -> bool: ...

    def write(self, run: sqlite3.Connection) -> None:
        """Write what was changed since `forget_written` was called."""

    def forget_written(self) -> None: ...


class FrontierFolder:
    """A frontier with its folder. Whoever calls `page_numbers` must call `register` with the new pages before anything else."""

    frontier: Frontier
    more_tables: MoreTables | None = None  # written in the same transactions

    def __init__(
        self,
        path: str | Path,
        owner: str,
        strategy: str | Strategy,
        rules: Rules,
        key_of: Callable[[int, str, str | None], str],
        clock: Callable[[], float],
        *,
        by_address: bool = False,
    ) -> None:
        """Open the folder, or make it. `owner`: name of the class that it belongs to. `key_of(site, url, key)`: returns the key by which
        a page is found; the arguments are the columns of its row."""
        self._path, self._owner, self._rules = Path(path), owner, rules
        self._strategy = load_strategy(strategy) if isinstance(strategy, str) else strategy
        self._key_of, self._clock, self._by_address = key_of, clock, by_address
        self._seen = SeenTable()
        self.site_names: list[str] = []  # by number
        self.site_numbers: dict[str, int] = {}  # by name
        self.unresolved: set[str] = set()  # sites whose address is unknown
        self._reported = 0  # pages since the last snapshot
        self._log_bytes = 0
        self._ahead_s = 0.0  # of the clock: as far as it was set back
        self._calls = b""  # that could not be committed: the next commit has them too
        self._is_gathering = False  # changes, which are committed together later
        _check_strategy(self._strategy)
        _check_folder(self._path)
        self._qualities: list[float] = []  # of the pages that are being registered
        self._inputs = live_inputs(self._strategy, lambda urls: self._qualities, None, 1, canonical, _no_graph)
        self._path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as resources:
            resources.callback(lock.take(self._path, "used").release)
            self.database = FrontierDatabase(self._path)
            resources.callback(self.database.close)
            self._open()
            self._resources = resources.pop_all()
        self._is_open = True

    def now(self) -> float:
        clock, now = self._clock(), self.frontier.now
        self._ahead_s = max(self._ahead_s, now - clock)
        return max(now, clock + self._ahead_s)

    def count_reported(self) -> None:
        """Count a page that was reported to the frontier. After many of them, a commit takes a snapshot."""
        self._reported += 1

    # ---- numbers of sites and pages

    def number_sites(self, names: Sequence[str], now: float) -> list[int]:
        """Return the number of each site. New sites are registered."""
        first = len(self.site_names)
        for name in names:
            if name not in self.site_numbers:
                self.site_numbers[name] = len(self.site_names)
                self.site_names.append(name)
                self.database.sites.append((self.site_numbers[name], name))
        count = len(self.site_names) - first
        if count:
            self.frontier.add_sites(count, now, None if self._by_address else list(range(first, first + count)))
            if self._by_address:
                self.unresolved.update(self.site_names[first:])
        return [self.site_numbers[name] for name in names]

    def retire_site(self, number: int, name: str) -> None:
        """Give a site a name by which nobody finds it: a site of its old name is a new one."""
        del self.site_numbers[self.site_names[number]]
        self.site_names[number] = name

    def page_numbers(self, keys: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the page of each key, and the places of the first keys of new pages. The caller must register these pages."""
        if not keys:
            return [], []
        first, numbers = self.frontier.pages, np.empty(len(keys), np.int32)
        self._seen.add(self._seen.fingerprints(keys), first, numbers)
        pages: list[int] = numbers.tolist()
        new: list[int] = []
        for place, page in enumerate(pages):
            if page == first + len(new):
                new.append(place)
        return pages, new

    def find(self, key: str) -> int:
        """Return the page with this key; -1: there is none."""
        found = np.empty(1, np.int32)
        self._seen.find(self._seen.fingerprints([key]), found)
        return int(found[0])

    def register(
        self, rows: Sequence[PageRow], qualities: list[float], is_dynamic: Sequence[bool] | None = None
    ) -> None:
        """Register new pages, in the order of their numbers. `is_dynamic`: for a limit of depth; None: there is none."""
        if not rows:
            return
        # Rows come first: whatever raises an error below, no page is logged without its row.
        self.database.pages.update((row.id, row) for row in rows)
        self.frontier.add_pages([row.site for row in rows], is_dynamic)
        self._qualities, urls = qualities, [row.url for row in rows]
        for name, values in self._inputs.items():
            self.frontier.set_column(name, values(urls), rows[0].id)

    # ---- durability

    @property
    def has_changes(self) -> bool:
        """Whether something waits since a commit that failed."""
        more = self.more_tables
        return bool(self._calls or self.database.has_changes or (more is not None and more.has_changes))

    @contextmanager
    def one_commit(self) -> Iterator[None]:
        """Commit all changes of this block together, when it ends."""
        self._is_gathering = True
        try:
            yield
        finally:
            self._is_gathering = False
            self.commit()

    def commit(self, sync: bool = False) -> None:
        """Write all changes. `sync`: wait for the disk."""
        if self._is_gathering and not sync:
            return
        assert self.frontier.journal is not None
        self._calls += self.frontier.journal.take()
        if not self.has_changes:
            return
        more = self.more_tables if self.more_tables is not None and self.more_tables.has_changes else None
        self.database.commit(self._batch + 1, self._calls, sync, more.write if more is not None else None)
        if more is not None:  # before the snapshot, which may fail
            more.forget_written()
        self._batch += 1
        self._log_bytes += len(self._calls)
        self._calls = b""
        known = self.frontier.pages
        if checkpoint.is_due(self._reported, self._log_bytes, known, _SNAPSHOT_PAGES, _SNAPSHOT_BYTES):
            self._take_snapshot()

    def close(self) -> None:
        """Commit, take a snapshot, and end."""
        if self._is_open:
            try:
                self.commit()
                self._take_snapshot()
            finally:
                self.discard()

    def discard(self) -> None:
        """End without keeping what was not committed."""
        self._is_open = False
        self._resources.close()

    def _take_snapshot(self) -> None:
        if checkpoint.newest(self._path) == self._batch:
            return
        checkpoint.save(self._path, self._batch, self.frontier, self._seen)
        self.database.forget_log(checkpoint.tidy(self._path, self._batch))
        self._reported = self._log_bytes = 0

    # ---- the start

    def _open(self) -> None:
        settings = self.database.settings()
        self._batch = self.database.last_batch()
        if settings is None:
            self.frontier = Frontier(self._strategy, self._rules)
            self.frontier.journal = Journal()
            self.database.meta |= {"format": str(FORMAT), "settings": json.dumps(self._settings())}
        else:
            self._restore(settings)
            self._settle()
        self.commit()

    def _settings(self) -> dict[str, object]:
        return {
            "owner": self._owner,
            "strategy": self._strategy.name,
            "rules": asdict(self._rules),
            "by_address": self._by_address,
        }

    def _restore(self, settings: dict[str, object]) -> None:
        """Load the newest snapshot, and repeat the calls since then."""
        owner = settings.get("owner", self._owner)  # older folders do not say
        if owner != self._owner:
            raise ConfigError(f"{self._path}: belongs to a {owner}, not to a {self._owner}; name another folder")
        if (settings["strategy"], settings["by_address"]) != (self._strategy.name, self._by_address):
            made = f"strategy {settings['strategy']!r}, by_address={settings['by_address']}"
            raise ConfigError(f"{self._path}: was made with {made}; open it with the same, or begin in another folder")
        checkpoint.forget_after(self._path, self._batch)
        first_rules = Rules(**settings["rules"])  # type: ignore[arg-type]
        batch, state, damaged = checkpoint.load(self._path, self._batch, self._strategy)
        self.frontier, self._seen = state or (Frontier(self._strategy, first_rules), self._seen)
        if batch < self._batch:
            from trapline.frontier.replay import replay  # its kernel takes seconds to compile, and is seldom needed

            for calls in self.database.log(after=batch):
                replay(self.frontier, calls)
        if damaged:
            checkpoint.forget_after(self._path, batch)
        self._restore_names()

    def _restore_names(self) -> None:
        for rows in self.database.keys(first=len(self._seen)):
            keys = [self._key_of(*row) for row in rows]
            self._seen.add(self._seen.fingerprints(keys), len(self._seen), np.empty(len(keys), np.int32))
        self.site_names = self.database.site_names()
        self.site_numbers = {name: number for number, name in enumerate(self.site_names)}
        groups = self.frontier.site_groups[: len(self.site_names)].tolist()
        self.unresolved = {name for name, group in zip(self.site_names, groups, strict=True) if group < 0}

    def _settle(self) -> None:
        """End the visits that were under way, and apply the rules, which may be new."""
        self.frontier.journal = Journal()
        now = self.now()
        settle(self.frontier, now)
        if self.frontier.rules != self._rules:
            self.frontier.change_rules(self._rules, now)


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
