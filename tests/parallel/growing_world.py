"""Partitions in one process, for tests. Frontiers, databases and exchange are real; the web has a few pages, and the test sets the
time.

Nothing happens by itself: a test says which partition fetches, commits, receives or is killed. A kill loses what is not committed.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.sites import Site
from trapline.crawler.discovery.url_store import UrlStore
from trapline.crawler.engine.options import CrawlOptions, RefreshOptions
from trapline.crawler.engine.records import NOT_KNOWN, Batch, Fetched, PartitionTraffic
from trapline.crawler.files import resume
from trapline.crawler.files.layout import DATABASE, claim_new
from trapline.crawler.files.reading import Reading
from trapline.crawler.recrawl.conditional_refetch import ConditionalRefetch, Copies, Copy, ForbiddenPages
from trapline.crawler.recrawl.signal_intake import SignalIntake
from trapline.crawler.requisites.page_requisites import PageRequisites
from trapline.crawler.store.database import Database
from trapline.crawler.store.outbox import Outbox
from trapline.fetch.html.page import Links
from trapline.fetch.http.headers import Validators
from trapline.fetch.urls import origin
from trapline.frontier import FETCHED, REFUSED, Outcome, Rules, Visit
from trapline.frontier.journal import Journal
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.folder.manifest import Manifest, create
from trapline.parallel.live.exchange import LinkExchange
from trapline.parallel.live.further_links import FurtherLinkExchange
from trapline.parallel.live.site_owner import SiteOwners, host_of
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport.handover_batches import is_handover
from trapline.refresh.live.agenda import Agenda, Turns
from trapline.refresh.live.refresher import Refresher
from trapline.signals.inbox import Inbox

DELAY_S = 1.0
NAMES = [f"{name}.test" for name in "abcdefghij"]
ADDRESS = {name: f"10.0.0.{number // 2}" for number, name in enumerate(NAMES)}  # two names on each address
PAGES = 4
URLS = [f"http://{name}/{page}" for name in NAMES for page in range(PAGES)]
SEEDS = (URLS[0], URLS[5 * PAGES])
REFUSING = URLS[7]  # this page is always refused, and never requested again


def links_of(url: str) -> list[str]:
    """Return the three links of a page. Some pages have no links to them."""
    at = URLS.index(url)
    return [URLS[(at * step + 1) % len(URLS)] for step in (1, 3, 7)]


def reachable() -> set[str]:
    found, new = set(SEEDS), list(SEEDS)
    while new:
        url = new.pop()
        fresh = set(links_of(url)) - found if url != REFUSING else set()
        found |= fresh
        new += fresh
    return found


class World:
    """The time, the requests of all partitions, and the requests that a kill lost."""

    def __init__(self, fickle: bool) -> None:
        """If `fickle`, name servers give another answer each time. Then only hosts have one visitor at a time, and addresses do not."""
        self.now = 1000.0
        self.fickle = fickle
        self._answers = 0
        self.requested: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.requested_again: Counter[str] = Counter()
        self.lost_again: Counter[str] = Counter()
        self.last: dict[str, float] = {}  # by address, or by host if fickle: time of the last request
        self.visitor: dict[str, int] = {}  # by the same key: the partition that visits it, since the crawl last grew

    def answer(self, name: str) -> str:
        self._answers += 1
        return f"10.{self._answers % 7}.{self._answers % 5}.1" if self.fickle else ADDRESS[name]

    def request(self, url: str, partition: int, begun: bool, again: bool = False) -> None:
        (self.requested_again if again else self.requested)[url] += 1
        host = host_of(origin(url))
        server = host if self.fickle else ADDRESS[host]
        assert self.visitor.setdefault(server, partition) == partition
        assert begun or self.now >= self.last.get(server, -math.inf) + DELAY_S
        self.last[server] = self.now


class Node:
    """One partition, opened from its folder, until it is killed or closed."""

    def __init__(self, world: World, manifest: Manifest, own: int) -> None:
        self._world, self.own, self.folder = world, own, manifest.parts[own]
        options = manifest.options
        new = not (self.folder / DATABASE).exists()
        if new:
            claim_new(self.folder, asdict(options), manifest.began).release()
        strategy = resume.strategy_of(options)
        key = bytes.fromhex(manifest.seen_key)
        opened = resume.fresh if new else resume.restored
        self._state = opened(self.folder, options, strategy, seen_key=key)
        self.frontier = self._state.frontier
        self.database = Database(self.folder / DATABASE)
        self.database.connection.execute("pragma synchronous=off")  # these tests do not simulate power losses
        self.reading = Reading(self.folder)
        self.sent: list[Batch] = []
        self._open_exchange(manifest)
        self.refetch: ConditionalRefetch | None = None
        self.signal_intake: SignalIntake | None = None
        self.requisites: PageRequisites | None = None
        if self._state.refresher is not None:
            self._open_refetch(manifest, self._state.refresher)
        self._begin(options, new)

    @property
    def features(self) -> "Node":
        """Where a handover looks for the intake of signals."""
        return self

    def _open_exchange(self, manifest: Manifest) -> None:
        journal, options, state = Journal(), manifest.options, self._state
        self.frontier.journal = journal
        self.outbox = Outbox(journal, self._put, state.last_batch, self._refresh_log, lambda: self._take())
        self._url_store = UrlStore(self.folder / DATABASE)
        self._url_store.committed(self.frontier.pages)
        reading = self.reading
        self.site_owners = SiteOwners(
            manifest.partitioning, options.hosts, self.own, reading.assigned(), manifest.sizes, reading.size()
        )
        self.link_resolver = LinkResolver(
            self.frontier, state.sites, state.seen, self._url_store, options.scope_of_crawl(), self.outbox, {},
            self._locate, Counter(), self.site_owners.owns,
        )  # fmt: skip
        self.exchange = LinkExchange(
            self.frontier, self.link_resolver, self.site_owners, reading.partitions(), manifest.policy, reading.pending_links,
            further=FurtherLinkExchange(self.link_resolver, reading.unplaced_urls()) if manifest.seen_key else None,
        )  # fmt: skip
        self.fetched = 0  # pages, in this run
        self.exchange.open(lambda: self.fetched)

    def _refresh_log(self) -> bytes:
        return self._state.refresher.take() if self._state.refresher else b""

    def _open_refetch(self, manifest: Manifest, refresher: Refresher) -> None:
        """Do what crawler/engine/wiring.py does."""
        self._inbox = Inbox(manifest.folder)
        offload: Any = None  # there are no lists here
        self.signal_intake = SignalIntake(
            refresher, self.frontier, self.link_resolver, self._inbox, self.outbox, self.now, offload, self.now
        )
        self.signal_intake.restore(self.reading)
        agenda = Agenda(self.frontier, refresher, Turns(0.5, None, math.inf))
        forbidden = ForbiddenPages(refresher, self._url_store.urls, self.reading.forbidden())
        self.refetch = ConditionalRefetch(
            agenda, Copies(self.folder / DATABASE), self.outbox, forbidden, self.signal_intake.whole
        )

    def _begin(self, options: CrawlOptions, new: bool) -> None:
        """Do what crawler/engine/run.py does."""
        self.full: Callable[[], bool] = lambda: False
        if self._state.last_batch == 0:
            self.frontier.discover(self.link_resolver.seed_pages(options.seeds, self.now()), self.now())
            self.exchange.begin(options.seeds)
        if not new:
            resume.settle(self.frontier, self.now(), self._state.refresher)
        self.exchange.handover.open(self)  # type: ignore[arg-type]  # it needs no more of a crawler
        self.outbox.flush()

    def now(self) -> float:
        return self._world.now

    def go_on(self) -> None:
        """Do nothing: no connection sleeps here."""

    def pause(self, seconds: float, go_on: Callable[[], None]) -> None:
        """Do nothing: no connection waits here."""

    def _locate(self, site: Site) -> int:
        return self.link_resolver.group(ADDRESS[site.host])

    def _take(self) -> PartitionTraffic:
        return self.exchange.take()

    def _put(self, batch: Batch) -> None:
        self.exchange.sent(batch.number, batch.traffic)
        self.sent.append(batch)

    # ---- actions of a test

    def fetch(self) -> bool:
        """Make one visit if a site may be visited. Return whether there was one."""
        if self.full():
            return False
        visit = (self.refetch.agenda if self.refetch else self.frontier).next(self.now())
        if not isinstance(visit, Visit):
            return False
        for at, url in enumerate(self._url_store.urls(visit.pages)):
            again = self.refetch is not None and self.refetch.is_refetch(visit.pages[at])
            self._world.request(url, self.own, at > 0, again)
            self._fetched(visit, visit.pages[at], url, again)
        self.frontier.finish(visit, Outcome(), self.now())
        if self.refetch is not None:
            self.refetch.agenda.over(visit, self.now())
        return True

    def _fetched(self, visit: Visit, page: int, url: str, again: bool) -> None:
        assert self.site_owners.owns(origin(url))
        result = REFUSED if url == REFUSING else FETCHED
        self.fetched += 1
        found = self.link_resolver.pages_of(url, "", Links.of(links_of(url)), self.now(), wants_urls=again)
        kept = found.own.tobytes() if result == FETCHED else b""
        self.frontier.report(visit, page, result, self.now(), found.pages if result == FETCHED else ())
        if self.refetch is not None:
            self._note_refetch(self.refetch, visit, page, url, result, again)
        if result == FETCHED and not again:
            self.exchange.send_links(page, found.foreign, len(found.pages), found.further)
        row = (
            page,
            visit.id,
            "",
            self.now(),
            0.0,
            0.0,
            result,
            200,
            "",
            0,
            "",
            b"",
            0,
            3,
            "",
            None,
            None,
            None,
            kept,
            0 if again else None,
            None,
        )
        foreign = (found.foreign, np.array(list(found.further), "<i8").tobytes()) if result == FETCHED else ((), b"")
        self.outbox.fetches.append((url, foreign, row))  # type: ignore[arg-type]  # the row that the store would write

    def _note_refetch(
        self, refetch: ConditionalRefetch, visit: Visit, page: int, url: str, result: int, again: bool
    ) -> None:
        assert not again or refetch.copies.of([page]) == [copy_of(url)]  # as the previous owner left it
        about = (page, visit.site, visit.id, url, "", self.now(), 0.0, 0.0, result, 200, "", b"")
        copy = copy_of(url)
        record = Fetched(
            *about, changed=0 if again else NOT_KNOWN, fingerprint=copy.fingerprint, etag=copy.validators.etag
        )
        refetch.came(record, self.now(), 1.0)

    def commit(self, most: int = 1 << 30) -> None:
        """Commit the oldest `most` batches."""
        batches, self.sent = self.sent[:most], self.sent[most:]
        for batch in batches:
            rows = [row for *_, row in batch.fetches]
            lead = [(*row[:2], url) for _, (foreign, _), row in batch.fetches for url in foreign]  # type: ignore[misc]
            further = [(*row[:2], prints) for _, (_, prints), row in batch.fetches if prints]  # type: ignore[misc]
            self.database.commit([batch._replace(fetches=[])], [], [], [], 0)
            self.database._add("fetch", _COLUMNS, rows)  # type: ignore[arg-type]
            self.database._add("foreign_link", "page, visit, url", lead)
            self.database._add("further_link", "page, visit, fingerprints", further)
            if self.refetch is not None:
                self._commit_copies(batch, self.refetch.copies)
            self.exchange.committed(batch.number)
        if not self.sent:
            self._url_store.committed(0)

    def _commit_copies(self, batch: Batch, copies: Copies) -> None:
        for url, _, row in batch.fetches:  # type: ignore[misc]
            copy, page, now = copy_of(url), row[0], row[3]  # type: ignore[has-type]
            values = (page, now, now, None, copy.fingerprint, b"digest", copy.validators.etag, b"", "")
            if row[6] == FETCHED:  # type: ignore[has-type]
                self.database.connection.execute("replace into copy values (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        copies.committed(batch.number)

    def foreign_links(self) -> list[tuple[int, int, str]]:
        """Return page, visit and URL of the foreign links on disk."""
        return self.database.connection.execute("select page, visit, url from foreign_link order by rowid").fetchall()

    def add_refetch(self, page: int, visit: int, foreign: list[str]) -> None:
        """Add a fetch of this page that found only these foreign links."""
        columns = _COLUMNS.split(", ")
        old = self.database.connection.execute(f"select {_COLUMNS} from fetch where page = ?", (page,)).fetchone()
        row = tuple(
            {"visit": visit, "links": b"", "found": 0}.get(column, value)
            for column, value in zip(columns, old, strict=True)
        )
        self.database._add("fetch", _COLUMNS, [row])
        self.database._add("foreign_link", "page, visit, url", [(page, visit, url) for url in foreign])

    def receive(self, sender: "Node", most: int = 1 << 30) -> bool:
        """Take the message batches on the sender's disk, if we accept them, and acknowledge those that we have committed."""
        after = self.exchange.received.get(sender.own, 0)
        received = False
        for number, data in sender.reading.message_batches(self.own, after, most):
            if not (is_handover(data) or self.site_owners.is_whole):
                break
            self.exchange.deliver(sender.own, number, data, self.now())
            received = True
        sender.exchange.acknowledged(self.own, self.exchange._on_disk.get(sender.own, 0))
        return received

    def settle(self, answers: bool) -> bool:
        """Resolve the names that this partition must look up. If not `answers`, the name servers are silent."""
        found = self.reading.message_batches(self.own, self.exchange.received.get(self.own, 0), 8)
        for number, data in found:
            for name in NAMES if answers else ():
                if self.site_owners.owns(f"http://{name}") is None:
                    self.site_owners.settle(f"http://{name}", [self._world.answer(name)])
            self.exchange.deliver(self.own, number, data, self.now())
        return bool(found)

    def stop(self) -> None:
        """Stop in order."""
        self.outbox.flush()
        self.commit()
        self.kill()

    def kill(self) -> None:
        lost = [one for batch in self.sent for one in batch.fetches] + self.outbox.fetches
        for url, _, row in lost:  # type: ignore[misc]
            (self._world.lost if row[-2] is None else self._world.lost_again)[url] += 1  # type: ignore[has-type]
        if self.refetch is not None:
            self.refetch.copies.close()
            self._inbox.close()
        self.database.close()
        self.reading.close()
        self._url_store.close()

    @property
    def is_quiet(self) -> bool:
        return self.exchange.is_still and not self.sent


class Crawl:
    """All partitions of one crawl."""

    def __init__(
        self,
        folder: Path,
        partitions: int,
        table: set[str],
        fickle: bool = False,
        refresh: str | None = None,
        policy: LinkPolicy = LinkPolicy(),  # noqa: B008  frozen
    ) -> None:
        """`table`: names whose addresses all partitions know. `refresh`: the policy by which pages are refetched."""
        hosts = {name: [ADDRESS[name]] for name in sorted(table)}
        rules = Rules(delay_s=DELAY_S, ip_delay_s=DELAY_S, per_connection=2, lease_s=math.inf)
        again = RefreshOptions(policy=refresh) if refresh else None
        options = CrawlOptions(SEEDS, "breadth-first", scope="any", hosts=hosts, rules=rules, refresh=again)
        self.world = World(fickle)
        self.manifest = replace(create(folder, options, Partitioning("address", partitions), policy), began=900.0)
        self.manifest.write()
        self.nodes = list(self._opened())

    def _opened(self) -> Iterator[Node]:
        return (Node(self.world, self.manifest, own) for own in range(self.manifest.sizes[-1]))

    def grow(self, by: int, in_order: bool) -> None:
        for node in self.nodes:
            node.stop() if in_order else node.kill()
        self.manifest = self.manifest.grown(self.manifest.sizes[-1] + by)
        self.manifest.write()
        self.world.visitor.clear()
        self.nodes = list(self._opened())

    def kill(self, own: int) -> None:
        self.nodes[own].kill()
        self.nodes[own] = Node(self.world, self.manifest, own)

    def run_to_end(self) -> None:
        """Run until two rounds in a row do nothing, because a partition receives in one round what another commits in the round before."""
        quiet = 0
        for _ in range(500):
            quiet = 0 if self.round() else quiet + 1
            if quiet == 2:
                return
            self.world.now += DELAY_S
        raise AssertionError("it does not come to its end")

    def round(self) -> bool:
        """Let every partition do what it can. Return whether there was anything to do."""
        busy = False
        for node in self.nodes:
            busy |= any(
                [node.fetch(), node.settle(True), *(node.receive(one) for one in self.nodes if one is not node)]
            )
            if not node.frontier.has_new:
                node.exchange.idle(1, node.now())
            node.outbox.flush()
            node.commit()
        return busy or any(node.frontier.has_new or not node.is_quiet for node in self.nodes)

    def close(self) -> None:
        for node in self.nodes:
            node.kill()


def copy_of(url: str) -> Copy:
    return Copy(b"%08d" % URLS.index(url), Validators(b'"%d"' % URLS.index(url)))


def rows(folder: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(Reading(folder)) as reading:
        return reading.connection.execute(sql).fetchall()


_COLUMNS = (
    "page, visit, address, started, first_byte_s, total_s, result, status, error, bytes, mime, digest, marks, found,"
    " truncated, file, offset, length, links, changed, fingerprint"
)
