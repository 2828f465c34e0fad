"""The parts of a live crawl, put together: who knows whom. What happens to them as time passes is not known here (run.py)."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from trapline.crawl import resume
from trapline.crawl.again import Again
from trapline.crawl.crawler import Crawler, Goals, Manner
from trapline.crawl.folder import opened, scope
from trapline.crawl.known import Known
from trapline.crawl.live import Web
from trapline.crawl.names import Names
from trapline.crawl.opening import Opened
from trapline.crawl.options import AGENT, CrawlOptions
from trapline.crawl.outbox import Outbox
from trapline.crawl.partition import Member, Others, Told
from trapline.crawl.records import Batch, Between
from trapline.crawl.scope import Scope
from trapline.crawl.shelf import Shelf
from trapline.crawl.snapshots import Snapshots
from trapline.crawl.store.folder import DATABASE
from trapline.crawl.store.reading import Reading
from trapline.crawl.worth import worth
from trapline.fetch.address import Guard
from trapline.fetch.dns import Resolver
from trapline.frontier.journal import Journal


@dataclass(frozen=True, slots=True)
class Parts:
    shelf: Shelf
    outbox: Outbox
    snapshots: Snapshots
    known: Known
    others: Others | None  # of several crawls that are one
    again: Again | None  # what fetches pages again
    crawler: Crawler
    web: Web


def built(loop: asyncio.AbstractEventLoop, crawl: Opened, member: Member | None, put: Callable[[Batch], None]) -> Parts:
    """`member`: the crawl is one of several. `put`: a batch is on its way to the store."""
    options, state, folder = crawl.options, crawl.state, crawl.claim.path
    journal = Journal()
    state.frontier.journal = journal
    shelf = Shelf(folder / DATABASE)
    shelf.committed(state.frontier.pages)
    refresh_log = state.refresher.take if state.refresher else bytes
    outbox = Outbox(journal, put, state.last_batch, refresh_log, lambda: others.take() if others else Between())
    snapshots = Snapshots(folder, state, outbox, options.snapshot_pages)
    resolver = member.resolver if member else Resolver(options.hosts, options.nameservers)
    names = Names(resolver, Guard(options.allow_private))
    known = _known(crawl, shelf, outbox, names, member)
    others = member.meet(state.frontier, known, _told(folder)) if member else None
    again = _again(crawl, known, outbox, lambda: web.now(), shelf, member.signals if member else None, others)
    scores = resume.scores_of(folder) if crawl.strategy.page.scores else None
    crawler = Crawler(
        state.frontier,
        known,
        shelf,
        outbox,
        _manner(options),
        worth=worth(crawl.given, state.frontier),
        keep_links=scores.keep if scores else None,
        tally=state.tally,
        upkeep=again.upkeep if again else None,
        hearsay=again.hearsay if again else None,
        others=others,
    )
    web = Web(loop, options, crawler, names, scores)
    names.start(crawler, loop)
    names.look_up_rest(state.sites)
    return Parts(shelf, outbox, snapshots, known, others, again, crawler, web)


def _known(crawl: Opened, shelf: Shelf, outbox: Outbox, names: Names, member: Member | None) -> Known:
    state = crawl.state
    return Known(
        state.frontier,
        state.sites,
        state.seen,
        shelf,
        _scope(crawl.claim.path),
        outbox,
        crawl.given.inputs,
        names.locate,
        state.tally.left_out,
        member.owns if member else None,
    )


def _scope(folder: Path) -> Scope:
    with closing(opened(folder)) as database:
        return scope(database)


def _told(folder: Path) -> Told:
    reading = Reading(folder)
    told = reading.partitions()
    reading.close()
    return told


def _again(
    crawl: Opened,
    known: Known,
    outbox: Outbox,
    clock: Callable[[], float],
    shelf: Shelf,
    signals: Path | None,
    others: Others | None,
) -> Again | None:
    state, told = crawl.state, crawl.options.refresh
    if told is None or state.refresher is None:
        return None
    folder, frontier = crawl.claim.path, state.frontier
    ways = (known, outbox, clock, shelf, signals, others)
    return Again(told, folder, frontier, state.refresher, *ways, crawl.options.limits.expanded_bytes)


def _manner(options: CrawlOptions) -> Manner:
    return Manner(
        options.connections,
        AGENT,
        options.limits.expanded_bytes,
        options.give_up,
        Goals(options.max_pages, options.max_bytes),
        options.metadata,
    )
