"""Resume: restores the state of a crawl from its folder.

A snapshot and the log since then give the frontier; the database gives the rest.

Pages that were requested but not committed when the crawl ended are not in the log, so they wait in the frontier as
before. Every site is delayed for its full delay from now, because it is not known which sites were visited last.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from trapline.crawler.discovery.seen import SeenTable
from trapline.crawler.discovery.sites import Sites
from trapline.crawler.engine.options import CrawlOptions, RefreshOptions
from trapline.crawler.engine.page_quality import Scores
from trapline.crawler.engine.tally import CrawlTally, tally_of
from trapline.crawler.files import checkpoint
from trapline.crawler.files.earlier_strategies import EarlierStrategies
from trapline.crawler.files.earlier_strategies import strategy_of as strategy_of
from trapline.crawler.files.reading import Reading
from trapline.crawler.robots.site_robots import apply
from trapline.errors import ConfigError
from trapline.fetch.robots.answer import LONGEST_S, SHORTEST_S, read_answer
from trapline.fetch.robots.parser import DISALLOW_ALL
from trapline.frontier import Frontier, Outcome, Visit
from trapline.progress import ProgressCallback, no_progress
from trapline.refresh.live.refresher import Refresher
from trapline.refresh.policy import Policy, policy_named
from trapline.strategies import Strategy

T = TypeVar("T")
_AT_ONCE = 4096
_BATCHES_AT_ONCE = 4096  # after each replay of this many batches, the refresher places all pages anew


@dataclass(slots=True)
class CrawlState:
    """The state of a crawl, without its sockets."""

    frontier: Frontier
    sites: Sites
    seen: SeenTable
    tally: CrawlTally
    last_batch: int = 0
    refresher: Refresher | None = None
    notes: tuple[str, ...] = ()  # what the user should know about the folder


def policy_of(options: RefreshOptions) -> Policy:
    return policy_named(options.policy).with_options(**options.settings)


def fresh(folder: Path | None, options: CrawlOptions, strategy: Strategy, seen_key: bytes = b"") -> CrawlState:
    """Return the state of a new crawl, whose folder, if it has one, was just created. `seen_key`: the key of the fingerprints of
    URLs; b"": a random one."""
    frontier = Frontier(strategy, options.rules, options.seed)
    state = CrawlState(
        frontier, Sites(options.pause_s, options.sites, options.without_robots), SeenTable(seen_key), CrawlTally()
    )
    if options.refresh and folder:
        reading = Reading(folder)
        state.refresher = refresher_of(reading, options.refresh)
        reading.close()
    return state


def rebuilt(reading: Reading) -> tuple[Frontier, float]:
    """Return the frontier as of the last commit, and the time of its last call. For readers outside the crawl process."""
    options = CrawlOptions.from_json(reading.meta().get("options", ""))
    frontier = once_more(lambda: _replayed(reading, options, strategy_of(options), no_progress)).frontier
    return frontier, frontier.now


def restored(
    folder: Path,
    options: CrawlOptions,
    strategy: Strategy,
    progress: ProgressCallback = no_progress,
    seen_key: bytes = b"",
) -> CrawlState:
    """Return the state of the crawl as of the last commit, ready to continue. `progress` receives what is done, the total, and the
    unit. `seen_key`: the key of the fingerprints of URLs, if it is given; the snapshots must have it too."""
    reading = Reading(folder)
    checkpoint.forget_after(folder, reading.last_batch())
    old = once_more(lambda: _replayed(reading, options, strategy, progress, seen_key=seen_key))
    if seen_key not in (b"", old.seen.key):
        raise ConfigError(
            f"{folder}: its snapshot has another key of fingerprints than the crawl; restore the crawl from a copy"
        )
    refresh = once_more(lambda: _refresher_replayed(reading, settings)) if (settings := options.refresh) else None
    sites, tally = _sites(reading, options, old.frontier), _tally(reading)
    damaged = dict.fromkeys([*old.damaged, *(refresh.damaged if refresh else ())])
    if damaged:
        checkpoint.forget_after(folder, min(old.batch, refresh.batch if refresh else old.batch))
    refresher = refresh.refresher if refresh else None
    notes = tuple(f"removed a damaged snapshot: {problem}" for problem in damaged)
    state = CrawlState(old.frontier, sites, old.seen, tally, reading.last_batch(), refresher, notes)
    reading.close()
    return state


def scores_of(folder: Path) -> Scores:
    """Return scores with the links of all pages fetched so far. The log has past scores, but not the links behind them."""
    scores = Scores()
    scores.restore(links_in(folder))
    return scores


def links_in(folder: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each fetched page with the pages that it links to, as stored, in the order of their fetches."""
    reading = Reading(folder)
    yield from reading.links()
    reading.close()


def settle(frontier: Frontier, now: float, refresher: Refresher | None = None) -> None:
    """End the visits that were under way, return their pages unchanged, and delay every site for its full delay."""
    for visit, site in frontier.visits_under_way():
        frontier.finish(Visit(visit, site, [], 0.0), Outcome(), now)
    frontier.hold_all(now)
    if refresher is not None:
        refresher.return_all(now)


def once_more(read: Callable[[], T]) -> T:
    """Call `read`, and call it once more if it fails.

    Snapshot and log must match. A running crawl that is read from outside may have replaced both between the two reads.
    """
    try:
        return read()
    except ConfigError:
        return read()


class _Old(NamedTuple):
    """A frontier and the URLs that it knows, restored from a snapshot and the log since then."""

    frontier: Frontier
    seen: SeenTable
    batch: int  # of the snapshot; 0: none
    damaged: tuple[str, ...]  # what is wrong with newer snapshots


class _OldRefresher(NamedTuple):
    """A refresher, restored in the same way."""

    refresher: Refresher
    batch: int
    damaged: tuple[str, ...]


def frontier_from(reading: Reading, options: CrawlOptions, batch: int, progress: ProgressCallback) -> Frontier:
    """Restore the frontier from the snapshot of this batch and the log since then; 0: from the log alone.

    Raise `ConfigError` if these, or those of the refresher, cannot be read.
    """
    old = _replayed(reading, options, strategy_of(options), progress, batch)
    found = [(old.batch, old.damaged)]
    if options.refresh:
        refresh = _refresher_replayed(reading, options.refresh, batch)
        found.append((refresh.batch, refresh.damaged))
    for taken, damaged in found:
        if taken != batch:
            raise ConfigError(damaged[0] if damaged else "the snapshot is incomplete")
    return old.frontier


def _replayed(
    reading: Reading,
    options: CrawlOptions,
    strategy: Strategy,
    progress: ProgressCallback,
    newest: int | None = None,
    seen_key: bytes = b"",
) -> _Old:
    """Restore the frontier and the seen URLs, under the options that each run had. `options`, `strategy`: those of the run that
    is about to begin. `newest`: use no snapshot after this batch."""
    last = reading.last_batch()
    latest = last if newest is None else newest
    is_complete = checkpoint.newest(reading.folder, latest) == last  # the snapshot, which then needs no replay
    runs = EarlierStrategies(reading, options, strategy, has_present_files=is_complete)
    batch, state, damaged = checkpoint.load(reading.folder, latest, runs.strategy)
    first = runs.first
    frontier, seen = state or (
        Frontier(runs.strategy(first.run), first.options.rules, first.options.seed),
        SeenTable(seen_key),
    )
    for number, calls in _log(reading.journal(after=batch), damaged):
        # Imported late: its kernel takes seconds to compile, and a new crawl or one that ended cleanly does not need it.
        from trapline.frontier.replay import replay

        progress(number - batch, last - batch, "batches of its log")
        with _naming_batches(reading.folder, number, number), runs.explaining():
            replay(frontier, calls, lambda number, fetches: runs.change(number, fetches, frontier))
    _see(reading, seen, frontier.pages, progress)
    return _Old(frontier, seen, batch, damaged)


def _log(log: Iterator[tuple[int, bytes]], damaged: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the batches since a snapshot. If one is missing, the error also names the damaged snapshot that made it necessary."""
    try:
        yield from log
    except ConfigError as error:
        raise ConfigError(f"{damaged[0]}; without it, {error}" if damaged else str(error)) from error


@contextmanager
def _naming_batches(folder: Path, first: int, last: int) -> Iterator[None]:
    """Add these batches to the message of a `ConfigError` that the block raises."""
    try:
        yield
    except ConfigError as error:
        batches = f"batch {first}" if first == last else f"batches {first} to {last}"
        raise type(error)(f"{folder}: in the log of {batches}, {error}") from error


def refresher_of(reading: Reading, options: RefreshOptions) -> Refresher:
    """Return the refresher as of the last commit."""
    return once_more(lambda: _refresher_replayed(reading, options)).refresher


def _refresher_replayed(reading: Reading, options: RefreshOptions, newest: int | None = None) -> _OldRefresher:
    policy, last = policy_of(options), reading.last_batch() if newest is None else newest
    batch, state, damaged = checkpoint.load_refresher(reading.folder, last, policy)
    refresher = state or Refresher(policy, float(reading.meta()["created"]))
    log = _log(reading.refresh_log(after=batch), damaged)
    while batches := list(islice(log, _BATCHES_AT_ONCE)):
        with _naming_batches(reading.folder, batches[0][0], batches[-1][0]):
            refresher.replay(b"".join(calls for _, calls in batches))
    return _OldRefresher(refresher, batch, damaged)


def _see(reading: Reading, seen: SeenTable, pages: int, progress: ProgressCallback) -> None:
    """Add the URLs of pages that are newer than the snapshot."""
    import numpy as np

    urls: list[str] = []

    def add() -> None:
        progress(len(seen), pages, "URLs")
        seen.add(seen.fingerprints(urls), len(seen), np.empty(len(urls), np.int32))
        urls.clear()

    for _, _, url in reading.pages(after=len(seen) - 1):
        urls.append(url)
        if len(urls) == _AT_ONCE:
            add()
    add()


def _sites(reading: Reading, options: CrawlOptions, frontier: Frontier) -> Sites:
    sites = Sites(options.pause_s, options.sites, options.without_robots)
    addresses = [address for _, address in reading.addresses()]
    sites.restore_groups(addresses)
    groups = frontier.site_groups
    for number, origin in reading.sites():
        site = sites.add(origin)
        if groups[number] >= 0:
            site.addresses = (addresses[groups[number]],)  # looked up again after the next visit
    now = time.time()
    for robots in reading.robots():
        verdict = read_answer(robots.status, robots.error, robots.body, options.robots_token)
        age_s = now - robots.started
        # A file that was unreachable is fetched again: pages that it forbids only for a while would be refused for
        # good. A file that came from another site is fetched again, too, because it may be older there than its row
        # here says. The max-age of the answer is not stored, so the file holds for the shortest time that it may have.
        is_known = verdict.robots is not DISALLOW_ALL and not 300 <= robots.status < 400 and robots.address != ""
        site = sites[robots.site]
        if is_known and age_s < SHORTEST_S and site.obeys_robots:
            apply(site, verdict.robots, now + SHORTEST_S - age_s, sites.usual_pause_s(site))
    # If the last answer of a site is older than LONGEST_S, we do not know whether its robots.txt was reachable meanwhile.
    for number, since in reading.robots_unreachable(after=now - LONGEST_S).items():
        sites[number].robots_unreachable_since = since
    return sites


def _tally(reading: Reading) -> CrawlTally:
    tally, progress = tally_of(reading.connection), reading.progress()
    tally.abandoned_sites.update(reading.abandoned_sites())
    tally.rejected_links.update(reading.rejected_links())
    if progress is not None:
        tally.quality, tally.seconds_before = progress.quality, progress.seconds
    return tally
