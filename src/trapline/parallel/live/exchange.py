"""The link exchange of a live partition: sends links to pages of other partitions as message batches, and takes in
links from them.

The exchange stands between the crawl and `Delivery`, and owns what is neither on disk nor in the frontier: links
gathered since the last batch of the store. It also carries control messages (control_messages.py) and hand-overs
(handover.py). Message batches are made when a batch goes to the store, from the pages in that batch, so that all links
of a fetched page are on disk together with the page. They are sent when that batch is on disk. An incoming message
batch counts as received when the store has committed the batch in which the frontier took it in.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from trapline.crawl.discovery.link_resolver import LinkResolver
from trapline.crawl.engine.other_partitions import Exchanged
from trapline.crawl.engine.records import MessageBatch, PartitionTraffic
from trapline.errors import ConfigError
from trapline.fetch.urls import origin
from trapline.frontier import Frontier
from trapline.frontier.core.arrivals import Arrivals
from trapline.frontier.layout import DEEPEST
from trapline.parallel.live.control_messages import ControlMessages
from trapline.parallel.live.handover import Handover
from trapline.parallel.live.partition_report import PartitionCount
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.transport.control_batches import decode as messages_in
from trapline.parallel.transport.handover_batches import Contents, is_handover
from trapline.parallel.transport.handover_batches import encode as encode_handover
from trapline.parallel.transport.url_batches import LinkRow, decode, encode, parts


class Sends(Protocol):
    """The methods of `Delivery` that the exchange uses."""

    def more(self) -> None: ...

    def committed(self, sender: int, number: int) -> None: ...


class LinkExchange:
    def __init__(
        self, frontier: Frontier, link_resolver: LinkResolver, site_owners: SiteOwners, exchanged: Exchanged
    ) -> None:
        """`exchanged`: the numbers of message batches made for each other partition and received from it, as on disk."""
        self._frontier, self._link_resolver, self._site_owners = frontier, link_resolver, site_owners
        self.made = {partition: passed.made for partition, passed in exchanged.items()}
        self.received = {partition: passed.received for partition, passed in exchanged.items()}
        self._handed_on = frontier.strategy.page.handed_on
        self._gathered: dict[str, LinkRow] = {}
        # Rows without links; the depth is the number of redirects that lead from a seed to the URL.
        self._seeds: dict[str, LinkRow] = {}
        self._arrived: list[tuple[int, int]] = []
        self._delivered: dict[int, int] = {}
        self._on_disk = dict(self.received)
        # Store batches that are not committed yet: number, message batches received with it, whether it has message
        # batches to send.
        self._under_way: deque[tuple[int, Sequence[tuple[int, int]], bool]] = deque()
        self.delivery: Sends | None = None
        self.messages = ControlMessages(frontier, link_resolver, site_owners)
        self._message_batches: list[MessageBatch] = []  # made since the last store batch
        ended = (partition for partition, passed in exchanged.items() if passed.ended)
        self.handover = Handover(frontier, link_resolver, site_owners, self._make, ended)

    # ---- out

    def send_links(self, page: int, urls: Sequence[str], links: int) -> None:
        """Gather links to pages of other partitions. `page`: the page of ours, just reported, that has them. `links`:
        its number of links in all."""
        frontier = self._frontier
        share = float(frontier.column(self._handed_on)[page]) / links if self._handed_on >= 0 else 0.0
        depth = int(frontier.page_depths[page])
        for url in urls:
            self._gather(url, LinkRow(url.encode(), 1, depth, share))

    def begin(self, seeds: Sequence[str]) -> None:
        """Gather the seeds whose hosts we must settle, and the seeds that were ours until the crawl grew, if it grew
        before this partition could begin. A new partition gathers none: its seeds come with the hand-over. A row
        without links is a seed."""
        site_owners = self._site_owners
        for url in seeds if not site_owners.elders else ():
            if site_owners.owns(origin(url)) is None or site_owners.has_moved(origin(url)):
                self._gather(url, LinkRow(url.encode(), 0, 0))

    def seed(self, url: str, redirects: int, is_wider: bool) -> None:
        """Tell the owner of the URL that it counts as a seed before the link to it arrives; otherwise the owner would
        reject the link. `is_wider`: the scope is wider now, so tell the other partitions too."""
        if not self._site_owners.owns(origin(url)):
            self._gather(url, LinkRow(url.encode(), 0, redirects))
        if is_wider:
            self.messages.widen(url, redirects)

    def _gather(self, url: str, row: LinkRow) -> None:
        if not row.links:
            self._seeds[url] = row
            return
        before = self._gathered.get(url)
        if before is not None:
            depth = min(row.depth, before.depth)
            row = LinkRow(row.url, before.links + row.links, depth, before.share + row.share)
        self._gathered[url] = row

    def take(self) -> PartitionTraffic:
        """Return the traffic for the next store batch: gathered links as message batches, the batches that came in, and
        the batches that other partitions have acknowledged."""
        site_owners, handover = self._site_owners, self.handover
        for owner, hosts in site_owners.take_decided().items():
            # Before the first links, because batches arrive in order
            self._make(owner, encode_handover(Contents(hosts)))
        by_owner: dict[int, list[LinkRow]] = {}
        for url, row in (*self._seeds.items(), *self._gathered.items()):
            by_owner.setdefault(site_owners.where(origin(url)), []).append(row)
        for owner, rows in by_owner.items():
            for part in parts(rows, lambda row: len(row.url)):
                self._make(owner, encode(part))
        for receiver, data in self.messages.take():
            self._make(receiver, data)
        delivered = list(self._delivered.items())
        traffic = PartitionTraffic(
            self._message_batches, delivered, self._arrived, site_owners.fresh, handover.ended, handover.size
        )
        self._message_batches, self._seeds, self._gathered, self._arrived, self._delivered = [], {}, {}, [], {}
        site_owners.fresh, handover.ended, handover.size = [], [], 0
        return traffic

    def _make(self, receiver: int, data: bytes) -> None:
        self.made[receiver] = number = self.made.get(receiver, 0) + 1
        self._message_batches.append(MessageBatch(receiver, number, data))

    def sent(self, batch: int, traffic: PartitionTraffic) -> None:
        """Note that a store batch was sent to the store."""
        if any(traffic):
            self._under_way.append((batch, traffic.received, bool(traffic.made)))

    def committed(self, batch: int) -> None:
        """Acknowledge what was received with this store batch, and send its message batches: it is on disk."""
        while self._under_way and self._under_way[0][0] <= batch:
            _, received, made = self._under_way.popleft()
            for sender, number in received:
                self._on_disk[sender] = number
                if self.delivery is not None:
                    self.delivery.committed(sender, number)
            if made and self.delivery is not None:
                self.delivery.more()

    def acknowledged(self, receiver: int, number: int) -> None:
        self._delivered[receiver] = number

    # ---- in

    def deliver(self, sender: int, number: int, data: bytes, now: float) -> None:
        """Take in a message batch of another partition: a hand-over, control messages or links."""
        if is_handover(data):
            self.handover.take(sender, data, now)
        elif (messages := messages_in(data)) is not None:
            self.messages.deliver(messages, now)
        else:
            self._take_links(data, now)
        self.received[sender] = number
        self._arrived.append((sender, number))
        if sender == self._site_owners.own:
            self._delivered[sender] = number

    def _take_links(self, data: bytes, now: float) -> None:
        """Take in links to our pages. Links to sites that are not ours are gathered again and forwarded: we know more
        about the owner than the sender did."""
        seeds: dict[str, LinkRow] = {}
        linked: dict[str, LinkRow] = {}
        for row in decode(data):
            url = row.url.decode(errors="replace")
            if not self._site_owners.owns(origin(url)):
                self._gather(url, row)
            elif row.links:
                linked[url] = row
            else:
                seeds[url] = row
        self._add_to_frontier(seeds, linked, now)

    def _add_to_frontier(self, seeds: Mapping[str, LinkRow], linked: Mapping[str, LinkRow], now: float) -> None:
        for url, row in seeds.items():
            if row.depth:
                self._link_resolver.add_seed(url, row.depth)  # the page itself arrives as a link
        if user_seeds := [url for url, row in seeds.items() if not row.depth]:
            self._frontier.discover(self._link_resolver.seed_pages(user_seeds, now), now)
        pages = self._link_resolver.arrived(list(linked), now)
        ours = [(page, row) for page, row in zip(pages, linked.values(), strict=True) if page >= 0]
        if ours:
            self._frontier.receive(_arrivals(ours), now)

    # ---- counting

    @property
    def has_news(self) -> bool:
        """Whether the next store batch would contain traffic to or from other partitions."""
        return bool(self._seeds or self._gathered or self._arrived or self._message_batches or self.messages.has_news)

    @property
    def is_still(self) -> bool:
        """Whether all traffic is on disk."""
        return not (self.has_news or self._under_way)

    def count(self, idle: bool) -> PartitionCount:
        return PartitionCount(idle and self.is_still, sum(self.made.values()), sum(self._on_disk.values()))


def _arrivals(ours: list[tuple[int, LinkRow]]) -> Arrivals:
    """Return one arrival for each page: two URLs may be the same page here. Raises `ConfigError` for impossible numbers."""
    by_page: dict[int, list[LinkRow]] = {}
    for page, row in ours:
        by_page.setdefault(page, []).append(row)
    merged = [
        (page, sum(r.links for r in rows), sum(r.share for r in rows), min(r.depth for r in rows))
        for page, rows in by_page.items()
    ]
    pages, links, shares, depths = zip(*merged, strict=True)
    if max(links) > _MOST_LINKS or min(depths) < 0 or max(depths) > DEEPEST or not np.isfinite(shares).all():
        raise ConfigError("a message batch has a link with impossible numbers: run the same version in all partitions")
    return Arrivals(np.array(pages, np.int32), np.array(links), np.array(shares), np.array(depths))


_MOST_LINKS = 1 << 24
