"""A crawl from its folder: a snapshot and the log since give the frontier back, the database the rest.

What was requested and not committed when the crawl ended is not in the log, so its pages wait as before; and no site is asked
again before its full delay from now, because nobody knows which ones were asked last.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from trapline.crawl import checkpoint
from trapline.crawl.options import AGENT, CrawlOptions, RefreshOptions
from trapline.crawl.robots_file import apply
from trapline.crawl.scores import Scores
from trapline.crawl.seen import Seen
from trapline.crawl.sites import Sites
from trapline.crawl.store.reading import Reading
from trapline.crawl.tally import Tally, tally_of
from trapline.errors import ConfigError
from trapline.fetch.robots import DISALLOW_ALL
from trapline.fetch.robots_answer import LONGEST_S, read_answer
from trapline.frontier import Frontier, Outcome, Visit
from trapline.refresh.policy import Policy
from trapline.refresh.refresher import Refresher
from trapline.refresh.registry import policy_named
from trapline.strategies import Strategy
from trapline.strategies.choice import live_strategy

T = TypeVar("T")
Tell = Callable[[int, int, str], None]  # done, of how many, of what
_AT_ONCE = 4096
_BATCHES_AT_ONCE = 4096  # after each, all pages are placed anew


def nobody(done: int, total: int, what: str) -> None:
    """Listens."""


@dataclass(slots=True)
class State:
    """All that a crawl is, but its sockets."""

    frontier: Frontier
    sites: Sites
    seen: Seen
    tally: Tally
    last_batch: int = 0
    refresher: Refresher | None = None
    notes: tuple[str, ...] = ()  # what the user may want to know of its folder


def strategy_of(options: CrawlOptions) -> Strategy:
    return live_strategy(
        options.strategy, options.page_rank, options.site_rank, options.quality, options.history is not None
    )


def policy_of(options: RefreshOptions) -> Policy:
    return policy_named(options.policy).with_options(**options.settings)


def fresh(folder: Path, options: CrawlOptions, strategy: Strategy) -> State:
    """A crawl that has its folder, and nothing in it."""
    frontier = Frontier(strategy, options.rules, options.seed)
    state = State(frontier, Sites(options.pause_s), Seen(), Tally())
    if options.refresh:
        reading = Reading(folder)
        state.refresher = refresher_of(reading, options.refresh)
        reading.close()
    return state


def rebuilt(reading: Reading) -> tuple[Frontier, float]:
    """The frontier as the last commit left it, and the moment of that: for whoever looks in from outside."""
    options = CrawlOptions.from_json(reading.meta()["options"])
    frontier = once_more(lambda: _replayed(reading, options, strategy_of(options), nobody)).frontier
    return frontier, float(frontier.state.run[0].now)


def restored(folder: Path, options: CrawlOptions, strategy: Strategy, tell: Tell = nobody) -> State:
    """The crawl as the last commit left it, ready to go on. `tell` hears how far it is."""
    reading = Reading(folder)
    checkpoint.forget_after(folder, reading.last_batch())
    old = once_more(lambda: _replayed(reading, options, strategy, tell))
    again = once_more(lambda: _refresher_replayed(reading, told)) if (told := options.refresh) else None
    sites, tally = _sites(reading, options, old.frontier), _tally(reading)
    damaged = dict.fromkeys([*old.damaged, *(again.damaged if again else ())])
    if damaged:
        checkpoint.forget_after(folder, min(old.batch, again.batch if again else old.batch))
    refresher, notes = again.refresher if again else None, tuple(f"passed over and removed: {one}" for one in damaged)
    state = State(old.frontier, sites, old.seen, tally, reading.last_batch(), refresher, notes)
    reading.close()
    return state


def scores_of(folder: Path) -> Scores:
    """With the links of all pages fetched so far: the log has the scores that were, not what they were made of."""
    reading, scores = Reading(folder), Scores()
    scores.restore(reading.links())
    reading.close()
    return scores


def settle(frontier: Frontier, now: float, refresher: Refresher | None = None) -> None:
    """End the visits that were under way, their pages as they were, and let every site rest its full delay."""
    for visit, site in frontier.visits_under_way():
        frontier.finish(Visit(visit, site, [], 0.0), Outcome(), now)
    frontier.hold_all(now)
    if refresher is not None:
        refresher.return_all(now)


def once_more(read: Callable[[], T]) -> T:
    """Snapshot and log belong together; a crawl that is looked at from outside may have taken others between the two."""
    try:
        return read()
    except ConfigError:
        return read()


class _Old(NamedTuple):
    """A frontier and the URLs that it knows, by a snapshot and the log since."""

    frontier: Frontier
    seen: Seen
    batch: int  # of the snapshot; 0: none
    damaged: tuple[str, ...]  # newer snapshots


class _OldRefresher(NamedTuple):
    """The same of a refresher."""

    refresher: Refresher
    batch: int
    damaged: tuple[str, ...]


def frontier_from(reading: Reading, options: CrawlOptions, batch: int, tell: Tell) -> Frontier:
    """The frontier by the snapshot of this batch and the log since; 0: by the log alone. `ConfigError` if these, or those of the
    refresher, cannot be read."""
    old = _replayed(reading, options, strategy_of(options), tell, batch)
    found = [(old.batch, old.damaged)]
    if options.refresh:
        again = _refresher_replayed(reading, options.refresh, batch)
        found.append((again.batch, again.damaged))
    for taken, damaged in found:
        if taken != batch:
            raise ConfigError(damaged[0] if damaged else "it was not written to its end")
    return old.frontier


def _replayed(
    reading: Reading, options: CrawlOptions, strategy: Strategy, tell: Tell, newest: int | None = None
) -> _Old:
    """`newest`: no snapshot after this batch is taken."""
    last = reading.last_batch()
    batch, state, damaged = checkpoint.load(reading.folder, last if newest is None else newest, strategy)
    frontier, seen = state or (Frontier(strategy, options.rules, options.seed), Seen())
    for number, calls in _log(reading.journal(after=batch), damaged):
        # Late: its kernel takes seconds to compile, and neither a new crawl nor one that ended as it should has any use for it.
        from trapline.frontier.replay import replay

        tell(number - batch, last - batch, "batches of its log")
        with _of_batches(reading.folder, number, number):
            replay(frontier, calls)
    _see(reading, seen, frontier.pages, tell)
    return _Old(frontier, seen, batch, damaged)


def _log(log: Iterator[tuple[int, bytes]], damaged: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """The batches since a snapshot. If some are missing, a damaged snapshot is why they are missed."""
    try:
        yield from log
    except ConfigError as error:
        raise ConfigError(f"{damaged[0]}; without it, {error}" if damaged else str(error)) from error


@contextmanager
def _of_batches(folder: Path, first: int, last: int) -> Iterator[None]:
    """Whatever is wrong in the block is said of the log of these batches."""
    try:
        yield
    except ConfigError as error:
        batches = f"batch {first}" if first == last else f"batches {first} to {last}"
        raise type(error)(f"{folder}: in the log of {batches}, {error}") from error


def refresher_of(reading: Reading, options: RefreshOptions) -> Refresher:
    """As the last commit left it."""
    return once_more(lambda: _refresher_replayed(reading, options)).refresher


def _refresher_replayed(reading: Reading, options: RefreshOptions, newest: int | None = None) -> _OldRefresher:
    policy, last = policy_of(options), reading.last_batch() if newest is None else newest
    batch, state, damaged = checkpoint.load_refresher(reading.folder, last, policy)
    refresher = state or Refresher(policy, float(reading.meta()["created"]))
    log = _log(reading.refresh_log(after=batch), damaged)
    while some := list(islice(log, _BATCHES_AT_ONCE)):
        with _of_batches(reading.folder, some[0][0], some[-1][0]):
            refresher.replay(b"".join(calls for _, calls in some))
    return _OldRefresher(refresher, batch, damaged)


def _see(reading: Reading, seen: Seen, pages: int, tell: Tell) -> None:
    """The URLs of pages that are younger than the snapshot."""
    import numpy as np

    urls: list[str] = []

    def add() -> None:
        tell(len(seen), pages, "URLs")
        seen.add(seen.fingerprints(urls), len(seen), np.empty(len(urls), np.int32))
        urls.clear()

    for _, _, url in reading.pages(after=len(seen) - 1):
        urls.append(url)
        if len(urls) == _AT_ONCE:
            add()
    add()


def _sites(reading: Reading, options: CrawlOptions, frontier: Frontier) -> Sites:
    sites = Sites(options.pause_s)
    addresses = [address for _, address in reading.addresses()]
    sites.restore_groups(addresses)
    groups = frontier.state.site["group"]
    for number, origin in reading.sites():
        site = sites.add(origin)
        if groups[number] >= 0:
            site.addresses = (addresses[groups[number]],)  # asked again after the next visit
    now = time.time()
    for robots in reading.robots():
        verdict = read_answer(robots.status, robots.error, robots.body, AGENT)
        age_s = now - robots.started
        # One that could not be had is asked for again: what it would forbid for a while would be refused for good. So is one that came
        # from another site, for it may have been some time there.
        is_known = verdict.robots is not DISALLOW_ALL and not 300 <= robots.status < 400 and robots.address != ""
        if is_known and age_s < verdict.expires_in_s:
            apply(sites[robots.site], verdict.robots, now + verdict.expires_in_s - age_s, options.pause_s)
    # Of a site whose last answer is older than that, nobody knows how it was meanwhile.
    for number, since in reading.robots_unreachable(after=now - LONGEST_S).items():
        sites[number].robots_unreachable_since = since
    return sites


def _tally(reading: Reading) -> Tally:
    tally, progress = tally_of(reading.connection), reading.progress()
    tally.given_up.update(reading.given_up())
    tally.left_out.update(reading.left_out())
    if progress is not None:
        tally.quality, tally.seconds_before = progress.quality, progress.seconds
    return tally
