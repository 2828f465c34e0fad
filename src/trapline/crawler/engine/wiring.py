"""The parts of a live crawl, built and connected. What happens to them during the crawl is in run.py."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.scope import Scope
from trapline.crawler.discovery.site_resolver import SiteResolver
from trapline.crawler.discovery.url_store import UrlStore
from trapline.crawler.engine.crawl_events import CrawlEvents
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.engine.fetch_results import Features
from trapline.crawler.engine.live import LiveWeb
from trapline.crawler.engine.options import CrawlerSettings, CrawlOptions, Goals
from trapline.crawler.engine.other_partitions import OtherPartitions
from trapline.crawler.engine.page_quality import PageScoring, Scores, page_quality
from trapline.crawler.engine.partition_member import Exchanged, Member, PartitionExchange
from trapline.crawler.engine.records import Batch, PartitionTraffic
from trapline.crawler.engine.referrers import Referrers
from trapline.crawler.engine.snapshots import Snapshots
from trapline.crawler.files import resume
from trapline.crawler.files.event_log import HERITRIX
from trapline.crawler.files.layout import DATABASE
from trapline.crawler.files.opening import Opened
from trapline.crawler.files.reading import Reading
from trapline.crawler.inspect.database_reader import open_database, scope
from trapline.crawler.recrawl.conditional_refetch import ConditionalRefetch, Copies, ForbiddenPages
from trapline.crawler.recrawl.published_lists import ListOptions, Offload, PublishedLists, Senders
from trapline.crawler.recrawl.signal_intake import SignalIntake
from trapline.crawler.store.outbox import Outbox
from trapline.fetch.address import Guard
from trapline.fetch.dns import Resolver
from trapline.frontier import Frontier
from trapline.frontier.journal import Journal
from trapline.refresh.live.agenda import Agenda, Turns
from trapline.signals.inbox import Inbox

if TYPE_CHECKING:  # imported only by crawls that fetch requisites
    from trapline.crawler.requisites.page_requisites import PageRequisites

# ---- The parts of a crawl that fetches pages again, built when it begins and closed when it ends.

_BUSY_S = 0.1  # SQLite's timeout: the loop does not wait for another writer


class RefreshSetup:
    """`refetch` fetches pages again; `signal_intake` takes the signals of content providers about them."""

    def __init__(
        self,
        crawl: Opened,
        link_resolver: LinkResolver,
        outbox: Outbox,
        clock: Callable[[], float],
        url_store: UrlStore,
        signals: Path | None,
        others: OtherPartitions | None,
    ) -> None:
        """`signals`: the folder of signals.db, if it is not that of the crawl. `others`: the other partitions, if the crawl is one of
        several."""
        options, refresher, folder = crawl.options.refresh, crawl.state.refresher, crawl.folder
        assert options is not None and refresher is not None and folder is not None
        frontier = crawl.state.frontier
        turns = Turns(options.share, options.price, options.rate, refresher.policy.least)
        agenda = Agenda(frontier, refresher, turns, options.continuous)
        self.copies = Copies(folder / DATABASE)
        self._inbox, self._offload = Inbox(signals or folder, _BUSY_S), Offload(asyncio.get_running_loop())
        intake_parts = (refresher, frontier, link_resolver, self._inbox, outbox, clock, self._offload)
        self.signal_intake = SignalIntake(
            *intake_parts, senders=_senders(others), list_options=_list_options(crawl.options)
        )
        reading = Reading(folder)
        self.signal_intake.restore(reading)
        forbidden = ForbiddenPages(refresher, url_store.urls, reading.forbidden())
        reading.close()
        self.refetch = ConditionalRefetch(
            agenda, self.copies, outbox, forbidden, self.signal_intake.whole, self.signal_intake.signal_recorder.ahead_s
        )

    def close(self) -> None:
        self._offload.close()
        self._inbox.close()
        self.copies.close()


# ---- The parts of a crawl that fetches each page once, and reads sitemaps and feeds.


class ListSetup:
    def __init__(
        self,
        options: CrawlOptions,
        folder: Path | None,
        frontier: Frontier,
        link_resolver: LinkResolver,
        outbox: Outbox,
        clock: Callable[[], float],
        others: OtherPartitions | None,
    ) -> None:
        self._offload = Offload(asyncio.get_running_loop())
        self.published_lists = PublishedLists(
            frontier,
            link_resolver,
            outbox,
            clock,
            self._offload,
            _list_options(options),
            senders=_senders(others),
        )
        if folder is not None:
            reading = Reading(folder)
            self.published_lists.restore(reading)
            reading.close()

    def close(self) -> None:
        self._offload.close()


def _senders(others: OtherPartitions | None) -> Senders | None:
    return Senders(others.send_listed, others.send_list) if others is not None else None


def _list_options(options: CrawlOptions) -> ListOptions:
    return ListOptions(options.limits.expanded_bytes, options.guesses_sitemaps, options.reads_lists)


# ---- parts


@dataclass(frozen=True, slots=True)
class Parts:
    url_store: UrlStore
    outbox: Outbox
    snapshots: Snapshots | None  # None: the crawl has no folder
    link_resolver: LinkResolver
    others: PartitionExchange | None  # None: the crawl has one partition
    refresh_setup: RefreshSetup | None  # None: every page is fetched once
    list_setup: ListSetup | None  # None: the refresh setup reads lists
    crawler: Crawler
    web: LiveWeb


def built(
    loop: asyncio.AbstractEventLoop,
    crawl: Opened,
    member: Member | None,
    put: Callable[[Batch], None],
    events: CrawlEvents,
) -> Parts:
    """Build the parts of a crawl. `member`: the membership, if the crawl is one of several. `put`: sends a batch to the store.
    `events`: writes the log of the crawl."""
    options, state, folder = crawl.options, crawl.state, crawl.folder
    # A resume that has changed rules or strategy has begun the log of this run already.
    journal = state.frontier.journal = state.frontier.journal or Journal()
    url_store = UrlStore(folder / DATABASE if folder else None)
    url_store.committed(state.frontier.pages)
    refresh_log = state.refresher.take if state.refresher else bytes
    outbox = Outbox(
        journal,
        put,
        state.last_batch,
        refresh_log,
        lambda: others.take() if others else PartitionTraffic(),
        member.partitions if member else 1,
    )
    snapshots = Snapshots(folder, state, outbox, options.snapshot_pages) if folder else None
    resolver = member.resolver if member else Resolver(options.hosts, options.nameservers)
    site_resolver = SiteResolver(resolver, Guard(options.allow_private))
    link_resolver = _link_resolver(crawl, url_store, outbox, site_resolver, member)
    others = member.connect(state.frontier, link_resolver, _exchanged(folder)) if member and folder else None
    refresh, lists = None, None
    if options.refresh is not None and state.refresher is not None and folder is not None:
        signals = member.signals if member else None
        refresh = RefreshSetup(crawl, link_resolver, outbox, lambda: web.now(), url_store, signals, others)
        published_lists = refresh.signal_intake.published_lists
    else:
        lists = ListSetup(options, folder, state.frontier, link_resolver, outbox, lambda: web.now(), others)
        published_lists = lists.published_lists
    scores = (resume.scores_of(folder) if folder else Scores()) if crawl.strategy.page.scores else None
    crawler = Crawler(
        state.frontier,
        link_resolver,
        outbox,
        _settings(options),
        PageScoring(page_quality(crawl.given, state.frontier), scores.keep if scores else None, crawl.given.program),
        Features(
            refetch=refresh.refetch if refresh else None,
            signal_intake=refresh.signal_intake if refresh else None,
            published_lists=published_lists,
            requisites=_requisites(crawl, link_resolver, outbox, others) if options.requisites else None,
            events=events,
            others=others,
        ),
        state.tally,
    )
    if folder and options.log_format == HERITRIX:
        _keep_origins(folder, crawler)
    web = LiveWeb(loop, options, crawler, site_resolver, scores)
    site_resolver.start(crawler, loop)
    site_resolver.look_up_remaining(state.sites)
    return Parts(url_store, outbox, snapshots, link_resolver, others, refresh, lists, crawler, web)


def _keep_origins(folder: Path, crawler: Crawler) -> None:
    """Let the store know for each fetch where its page was found, for the log."""
    referrers, frontier = Referrers(), crawler.frontier
    with closing(Reading(folder)) as reading:
        referrers.restore(reading.fetches_with_links())
    crawler.results.referrers = referrers
    crawler.outbox.origin_of = lambda page: (int(frontier.page_depths[page]), referrers.of(page))


def _link_resolver(
    crawl: Opened, url_store: UrlStore, outbox: Outbox, site_resolver: SiteResolver, member: Member | None
) -> LinkResolver:
    state = crawl.state
    return LinkResolver(
        state.frontier,
        state.sites,
        state.seen,
        url_store,
        _scope(crawl),
        outbox,
        crawl.given.inputs,
        site_resolver.locate,
        state.tally.rejected_links,
        member.owns if member else None,
    )


def _scope(crawl: Opened) -> Scope:
    if crawl.folder is None:
        return crawl.options.scope_of_crawl(crawl.accept)
    with closing(open_database(crawl.folder)) as database:
        return scope(database, crawl.accept)


def _exchanged(folder: Path) -> Exchanged:
    reading = Reading(folder)
    counts = reading.partitions()
    reading.close()
    return counts


def _requisites(
    crawl: Opened, link_resolver: LinkResolver, outbox: Outbox, others: OtherPartitions | None
) -> "PageRequisites":
    from trapline.crawler.requisites.page_requisites import PageRequisites

    limit = crawl.options.limits.expanded_bytes
    send = others.send_requisite if others is not None else None
    requisites = PageRequisites(crawl.state.frontier, link_resolver, outbox, limit, send)
    if crawl.folder is not None:
        with closing(Reading(crawl.folder)) as reading:
            requisites.restore(reading)
    return requisites


def _settings(options: CrawlOptions) -> CrawlerSettings:
    return CrawlerSettings(
        options.connections,
        options.robots_token,
        options.limits.expanded_bytes,
        options.abandon,
        Goals(options.max_pages, options.max_bytes),
        options.metadata,
    )
