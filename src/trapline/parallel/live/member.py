"""A live crawl as a member of a parallel crawl: it owns the sites that the partition function assigns to it, sends
links to pages of other partitions to their owners, and obeys the coordinator. This is the one place that connects a
crawl, its exchange and its connections to other processes.

The member requests nothing from the coordinator. The coordinator sends the addresses of the other partitions, counts
(partition_report.py), divides what is left of a page budget, and stops the crawl when it is complete or the user ends it.
"""

import asyncio
import json
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawler.control.action_handler import Counts
from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.engine.partition_member import Exchanged, Obey, PartitionServices
from trapline.crawler.engine.records import PartitionTraffic, PendingLink
from trapline.crawler.engine.run import Show
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.engine.stop_reasons import INTERRUPTED
from trapline.crawler.files.control_mailbox import Action
from trapline.crawler.files.reading import Reading
from trapline.crawler.robots.site_robots import RobotsResponse
from trapline.errors import ConfigError
from trapline.fetch.dns import Resolver
from trapline.frontier import Frontier
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.live.exchange import LinkExchange
from trapline.parallel.live.further_links import FurtherLinkExchange
from trapline.parallel.live.owner_lookup import OwnerLookup
from trapline.parallel.live.page_budget import Holding
from trapline.parallel.live.partition_report import answer
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.transport.delivery import CONNECT_S, ConsistentBatches, Delivery, surface
from trapline.parallel.transport.wire import Address, FrameKind, Pass, Refused, SecureStream, greet

_PAUSE_S = 0.2  # between two attempts to reach the coordinator
_FIRST_S = 30.0  # limit for the first connection to the coordinator, if patience is limited
_SILENCE_S = 30.0  # a coordinator counts all the time: after this silence it is out of reach


async def _next_order(line: SecureStream, silence_s: float | None) -> tuple[FrameKind, bytes] | None:
    """Return the next frame. Does not use `wait_for`: before Python 3.12 it swallows a cancellation if a frame arrives
    at that moment, and the task would never end."""
    async with asyncio.timeout(silence_s):
        return await line.receive()


class Lead(NamedTuple):
    """How a member and its coordinator, and the member and other partitions, reach each other."""

    coordinator: Address
    listen: str  # where the member accepts connections of other partitions
    host: str  # where they reach it; "": the address from which it reaches the coordinator
    # How long the member continues without its coordinator; infinity: until the process that started it ends.
    patience_s: float
    limited: bool  # the member may fetch no page until the coordinator gives it a quota of the page budget
    paused: bool = False  # the crawl is paused


class LiveMember:
    def __init__(
        self,
        own: Pass,
        site_owners: SiteOwners,
        resolver: Resolver,
        folder: Path,
        lead: Lead,
        notes: Sequence[str] = (),
        policy: LinkPolicy = LinkPolicy(),  # noqa: B008  frozen
        connections: int = 1,
        shares_key: bool = False,
    ) -> None:
        """`notes`: remarks for the user about the partition's folder. `shares_key`: all partitions compute the same fingerprints
        of URLs."""
        self._notes, self._policy, self._connections, self._shares_key = notes, policy, connections, shares_key
        self._own, self._site_owners, self._resolver = own, site_owners, resolver
        self._folder, self._lead = folder, lead
        self._status: CrawlStatus | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._is_open = False
        self.is_lost = False  # the coordinator was out of reach for too long

    @property
    def partitions(self) -> int:
        return self._site_owners.partitions

    @property
    def signals(self) -> Path:
        return self._folder.parent

    @property
    def resolver(self) -> Resolver:
        return self._resolver

    def owns(self, url: str) -> bool | None:
        return self._site_owners.owns(url)

    @contextmanager
    def view(self) -> Iterator[Show]:
        """Keep the status of this partition for the coordinator, which shows all partitions together."""

        def show(status: CrawlStatus) -> None:
            self._status = status

        yield show

    # ---- the crawl

    def connect(self, frontier: Frontier, link_resolver: LinkResolver, exchanged: Exchanged) -> "LiveMember":
        self._exchange = LinkExchange(
            frontier,
            link_resolver,
            self._site_owners,
            exchanged,
            self._policy,
            self._pending_links,
            further=FurtherLinkExchange(link_resolver, self._unplaced_urls()) if self._shares_key else None,
        )
        return self

    def _unplaced_urls(self) -> dict[int, str]:
        with closing(Reading(self._folder)) as reading:
            return reading.unplaced_urls()

    def _pending_links(self, most: int | None) -> list[PendingLink]:
        with closing(Reading(self._folder)) as reading:
            return reading.pending_links(most)

    def begin(self, seeds: Sequence[str]) -> None:
        self._exchange.begin(seeds)

    @property
    def have_grown(self) -> bool:
        return self._site_owners.has_grown

    def send_links(self, page: int, urls: Sequence[str], links: int, further: Mapping[int, int]) -> None:
        self._exchange.send_links(page, urls, links, further)

    def send_refetched_links(self, page: int, urls: Sequence[str]) -> None:
        self._exchange.send_refetched_links(page, urls)

    def seed(self, url: str, redirects: int, is_wider: bool) -> None:
        self._exchange.seed(url, redirects, is_wider)

    def add_seeds(self, urls: Sequence[str]) -> int:
        return self._exchange.add_seeds(urls)

    def send_listed(self, urls: Sequence[str]) -> None:
        self._exchange.send_listed(urls)

    def send_list(self, url: str, speaks_for: str, level: int) -> None:
        self._exchange.send_list(url, speaks_for, level)

    def send_requisite(self, url: str, role: str, level: int) -> None:
        self._exchange.messages.send_requisite(url, role, level)

    def ask(self, url: str) -> None:
        self._exchange.messages.ask(url)

    def reply(self, partition: int, url: str, answer: RobotsResponse) -> None:
        self._exchange.messages.reply(partition, url, answer)

    def sent(self, batch: int, traffic: PartitionTraffic) -> None:
        self._exchange.sent(batch, traffic)

    def committed(self, batch: int) -> None:
        self._exchange.committed(batch)
        if not self._is_open:
            return  # a change of scope, before the crawl has begun
        if self._exchange.can_load:
            self._crawler.soon()
        self._owner_lookup.news.set()

    @property
    def has_news(self) -> bool:
        return self._exchange.has_news

    def flush(self) -> None:
        if not self._crawler.stopped_by and self._exchange.idle(self._connections, self._crawler.now()):
            self._crawler.soon()
        self._write()

    def _write(self) -> None:
        if self._exchange.has_news:
            self._crawler.outbox.flush()

    def take(self) -> PartitionTraffic:
        return self._exchange.take()

    async def open(self, crawler: Crawler, services: PartitionServices, obey: Obey) -> None:
        self._crawler, self._exchange.messages.services, self._execute = crawler, services, obey
        if self._lead.paused:
            crawler.pause_visits()
        self._exchange.open(lambda: crawler.tally.fetched)
        # Count the batches before the hand-over begins: the batches that it makes are not on disk yet.
        message_batches = ConsistentBatches(self._folder, self.after, self._exchange.made)
        self._exchange.handover.open(crawler)
        if self._lead.limited:
            crawler.most_pages = crawler.tally.fetched
        self._reading = Reading(self._folder)
        done = self._exchange.received.get(self._own.partition, 0)
        self._owner_lookup = OwnerLookup(self._resolver, self._site_owners, self.after, self._deliver, done)
        self._delivery = self._exchange.delivery = Delivery(
            self._own,
            self._site_owners.partitions,
            message_batches,
            self._deliver,
            self._exchange.acknowledged,
            self._exchange.received,
            self._exchange.handover.until_taken,
        )
        self._is_open = True
        self._write()  # the hand-over goes to disk at once
        _, self._port = await self._delivery.listen(self._lead.listen)
        self._tasks = [asyncio.ensure_future(work) for work in (self._obey(), self._owner_lookup.run())]
        for task in self._tasks:
            task.add_done_callback(surface)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._delivery.close()
        await self._resolver.close()
        self._reading.close()

    def after(self, receiver: int, number: int, most: int) -> list[tuple[int, bytes]]:
        return self._reading.message_batches(receiver, number, most)

    def _deliver(self, sender: int, number: int, data: bytes) -> None:
        self._exchange.deliver(sender, number, data, self._crawler.now())
        self._crawler.soon()  # an idle crawl then writes what came in to disk at once: the sender waits for that

    # ---- the coordinator

    async def _obey(self) -> None:
        """Obey the coordinator until it is out of reach for too long; then stop the crawl, which can be resumed later.
        Raises `Refused` if the coordinator does not accept this partition."""
        seen_at, patience_s = time.monotonic(), _FIRST_S if self._lead.patience_s < inf else inf
        while time.monotonic() - seen_at <= patience_s:
            try:
                await self._follow()
                seen_at, patience_s = time.monotonic(), self._lead.patience_s
            except Refused:
                raise
            except (OSError, ConfigError):
                pass  # the coordinator is not there, or not yet
            await asyncio.sleep(_PAUSE_S)
        self.is_lost = True
        self._crawler.stop(INTERRUPTED)

    async def _follow(self) -> None:
        """Open a connection to the coordinator, and obey its orders until the connection ends."""
        async with asyncio.timeout(CONNECT_S):  # the kernel would retry for minutes, and more and more rarely
            reader, writer = await asyncio.open_connection(*self._lead.coordinator)
        line = await greet(reader, writer, self._own, called=True)
        host = self._lead.host or writer.get_extra_info("sockname")[0]
        self._say(line, address=(host, self._port), notes=self._notes)
        # On one machine a connection ends when the other process ends, so silence needs no limit; and a command that
        # Ctrl-Z stopped is silent, but not gone.
        silence_s = _SILENCE_S if self._lead.patience_s < inf else None
        frame: tuple[FrameKind, bytes] | None = None
        with suppress(TimeoutError):
            while (frame := await _next_order(line, silence_s)) is not None and frame[0] == FrameKind.ORDER:
                self._order(line, json.loads(frame[1]))
        line.close()
        if frame is not None and frame[0] == FrameKind.REFUSED:
            raise Refused(f"refused by the coordinator: {frame[1].decode(errors='replace')[:200]}")

    def _order(self, line: SecureStream, order: dict[str, Any]) -> None:
        if "peers" in order:
            self._delivery.reach({int(number): (host, port) for number, (host, port) in order["peers"].items()})
        if "quota" in order:
            self._crawler.most_pages = max(order["quota"], self._crawler.used)
            self._crawler.soon()
        if "count" in order:
            self._answer(line, order["count"])
        if "control" in order:
            self._control(line, order["control"])
        if "stop" in order:
            self._crawler.stop(order["stop"])
        if "cut" in order:
            # Like a second Ctrl-C of the user here: crawler/engine/run.py handles it.
            signal.raise_signal(signal.SIGINT)

    def _control(self, line: SecureStream, given: dict[str, Any]) -> None:
        """Execute an action of the user, and answer when it is on disk."""
        number = given["number"]

        def done(counts: Counts, refused: str = "") -> None:
            with suppress(OSError):  # the coordinator is gone; it sends the action again when it is back
                self._say(line, obeyed={"number": number, "counts": dict(counts), "refused": refused})

        try:
            self._execute(Action(given["action"], given["by"], given["values"]), done, number)
        except ConfigError as error:
            done({}, str(error))

    def _answer(self, line: SecureStream, round_: int) -> None:
        crawler = self._crawler
        quota = int(crawler.most_pages) if self._lead.limited else 0
        holding = Holding(int(crawler.used), quota, crawler.has_pages, crawler.is_ready)
        count = self._exchange.count(crawler.is_idle)
        report = answer(count, holding, crawler.progress(0.0), self._status)
        report = report._replace(next_visit_s=crawler.next_visit_s, requisites_left=self._requisites_left)
        self._say(line, round=round_, answer=report._asdict())

    @property
    def _requisites_left(self) -> int | None:
        """Number of requisites to fetch, and of visits and messages that may bring some. None: the crawl fetches none."""
        crawler = self._crawler
        if crawler.features.requisites is None:
            return None
        return len(crawler.features.requisites.queue) + crawler.active + self._exchange.has_news

    @staticmethod
    def _say(line: SecureStream, **message: Any) -> None:
        line.send(FrameKind.STATUS, json.dumps(message).encode())
