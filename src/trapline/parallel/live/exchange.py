"""The link exchange of a live partition: sends links to pages of other partitions as message batches, and takes in
links from them.

The mode of the crawl (parallel/folder/link_policy.py) decides what happens to such a link. In mode exchange it is sent at
the next exchange: first as a URL, and further links to that URL as its fingerprint (further_links.py). In mode firewall it is
dropped. In mode cross-over it waits until this partition has no own pages left, and then this partition fetches the page itself.

The exchange stands between the crawl and `Delivery`. Links that wait are in `PendingLinks`. The exchange also carries
control messages (control_messages.py) and hand-overs (handover.py). Message batches are made when a batch goes to the
store, from the pages in that batch, so that all links of a fetched page are on disk together with the page. They are
sent when that batch is on disk. An incoming message batch counts as received when the store has committed the batch in
which the frontier took it in.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from trapline.crawler.discovery.foreign_links import NO_FURTHER
from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.partition_member import Exchanged
from trapline.crawler.engine.records import MessageBatch, PartitionTraffic, PendingLink
from trapline.errors import ConfigError
from trapline.frontier import Frontier
from trapline.frontier.core.arrivals import Arrivals
from trapline.frontier.layout import DEEPEST
from trapline.parallel import CROSS_OVER, EXCHANGE
from trapline.parallel.folder.link_policy import LinkPolicy
from trapline.parallel.live.control_messages import ControlMessages
from trapline.parallel.live.further_links import FurtherLinkExchange
from trapline.parallel.live.handover import Handover
from trapline.parallel.live.pending_links import PendingLinks, ReadPendingLinks
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.live.termination import PartitionCount
from trapline.parallel.transport.control_batches import decode as messages_in
from trapline.parallel.transport.handover_batches import Contents, is_handover
from trapline.parallel.transport.handover_batches import encode as encode_handover
from trapline.parallel.transport.url_batches import NO_LINKS, FurtherLinks, LinkRow, decode, encode, parts

MOST_IN_MEMORY = 32_768
"""Pending links that a partition keeps in memory in mode cross-over, about 300 bytes each; the URL store keeps as many URLs."""


class Sends(Protocol):
    """The methods of `Delivery` that the exchange uses."""

    def more(self) -> None: ...

    def committed(self, sender: int, number: int) -> None: ...


class LinkExchange:
    def __init__(
        self,
        frontier: Frontier,
        link_resolver: LinkResolver,
        site_owners: SiteOwners,
        exchanged: Exchanged,
        policy: LinkPolicy = LinkPolicy(),  # noqa: B008  frozen
        pending: ReadPendingLinks = lambda _: [],
        most_in_memory: int = MOST_IN_MEMORY,
        further: FurtherLinkExchange | None = None,
    ) -> None:
        """`exchanged`: the numbers of message batches made for each other partition and received from it, as on disk.
        `pending`: reads the links on disk that are left to send, or to follow. `most_in_memory`: pending links to keep in
        memory in mode cross-over; in mode exchange all are sent together. `further`: the exchange of fingerprints, if the
        partitions share their key; without it, URLs are sent every time."""
        self._frontier, self._link_resolver, self._site_owners = frontier, link_resolver, site_owners
        self.made = {partition: passed.made for partition, passed in exchanged.items()}
        self.received = {partition: passed.received for partition, passed in exchanged.items()}
        self._handed_on = frontier.strategy.page.handed_on
        self._policy, self._replicated = policy, frozenset(policy.replicated)
        self._pending = PendingLinks(pending, most_in_memory if policy.mode == CROSS_OVER else None)
        self._further = further
        # Links that wait on disk for the next exchange are URLs.
        self._sends_further = further is not None and policy.mode == EXCHANGE and not policy.every_pages
        self._forwarded = PendingLinks()  # links that go out with the next batch, in every mode
        self._pages_fetched: Callable[[], int] = lambda: 0  # by the crawl
        self._sent_at = 0  # pages fetched when pending links were last sent
        self._is_idle = False  # links wait, and the crawl has nothing else to do
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

    def send_links(self, page: int, urls: Sequence[str], links: int, further: Mapping[int, int] = NO_FURTHER) -> None:
        """Gather links to pages of other partitions. `page`: the page of ours, just reported, that has them. `links`:
        its number of links in all. `further`: the receivers of further links, by fingerprint."""
        frontier = self._frontier
        share = frontier.page_value(page, self._handed_on) / links if self._handed_on >= 0 else 0.0
        depth = int(frontier.page_depths[page])
        for url in urls:
            if url in self._replicated:
                continue
            if url in self._seeds:  # the page is a seed that redirects there: `seed` was called just before
                self._forwarded.add(PendingLink(url, 1, depth, share))
            elif self._policy.mode in (EXCHANGE, CROSS_OVER):
                self._pending.add(PendingLink(url, 1, depth, share))
        if self._further is not None and further:
            self._further.add(further, depth, share)

    def send_refetched_links(self, page: int, urls: Sequence[str]) -> None:
        if self._policy.mode == EXCHANGE:
            self.messages.send_refetched_links(page, [url for url in urls if url not in self._replicated])

    def send_listed(self, urls: Sequence[str]) -> None:
        if self._policy.mode == EXCHANGE:
            self.messages.send_listed(urls)

    def send_list(self, url: str, speaks_for: str, level: int) -> None:
        if self._policy.mode == EXCHANGE:
            self.messages.send_list(url, speaks_for, level)

    def begin(self, seeds: Sequence[str]) -> None:
        """Discover the replicated pages that are ours. Gather the seeds and replicated pages whose hosts we must settle,
        and those that were ours until the crawl grew, if it grew before this partition could begin. A new partition
        gathers none: its seeds come with the hand-over. A row without links is a seed."""
        site_owners, frontier = self._site_owners, self._frontier
        if site_owners.elders:
            return
        if own := self._link_resolver.seed_pages(self._policy.replicated, frontier.now):
            frontier.discover(own, frontier.now)
        for url in (*seeds, *self._policy.replicated):
            if site_owners.owns(url) is None or (site_owners.has_grown and site_owners.has_moved(url)):
                self._seeds[url] = LinkRow(url.encode(), 0, 0)

    def add_seeds(self, urls: Sequence[str]) -> int:
        """Gather the seeds whose hosts we must settle. Return their number."""
        unsettled = {url: LinkRow(url.encode(), 0, 0) for url in urls if self._site_owners.owns(url) is None}
        self._seeds |= unsettled
        return len(unsettled)

    def seed(self, url: str, redirects: int, is_wider: bool) -> None:
        """Tell the owner of the URL that it counts as a seed before the link to it arrives; otherwise the owner would
        reject the link. `is_wider`: the scope is wider now, so tell the other partitions too."""
        if not self._site_owners.owns(url):
            self._seeds[url] = LinkRow(url.encode(), 0, redirects)
        if is_wider:
            self.messages.widen(url, redirects)

    def open(self, pages_fetched: Callable[[], int]) -> None:
        """Begin to count the pages between two exchanges. `pages_fetched`: returns the number of pages over all runs."""
        self._pages_fetched, self._sent_at = pages_fetched, pages_fetched()

    def idle(self, connections: int, now: float) -> bool:
        """Note that the crawl has nothing to do. Pending links are now due; in mode cross-over, take over as many of the
        pages that they lead to as there are `connections`. Return whether there are any."""
        if self.can_load:
            self._pending.load()
        self._is_idle = bool(self._pending)  # if nothing waits, no batch would follow that ends this state
        taken: dict[str, LinkRow] = {}
        while self._policy.mode == CROSS_OVER and len(taken) < connections:
            rows = self._pending.take(connections - len(taken))
            if not rows:
                break
            for row in rows:
                if self._link_resolver.find([row.url])[0] < 0:  # else we took it over before
                    taken[row.url] = _row(row)
        if taken:
            pages = self._link_resolver.adopt(list(taken), now)
            self._frontier.receive(_arrivals(list(zip(pages, taken.values(), strict=True))), now)
        return bool(taken)

    @property
    def can_load(self) -> bool:
        """Whether the pending links in memory are used up, and the next ones can be read: all changes are on disk."""
        return self._pending.must_load and self.is_still

    @property
    def _is_due(self) -> bool:
        """Whether pending links are sent with the next batch."""
        is_late = self._is_idle or self._pages_fetched() - self._sent_at >= self._policy.every_pages
        return self._policy.mode == EXCHANGE and bool(self._pending) and is_late

    def _take_due(self) -> dict[int, list[LinkRow]]:
        """Return the links and seeds to send now, by receiver."""
        rows = [*self._seeds.values(), *map(_row, self._forwarded.take())]
        if self._is_due:
            rows += map(_row, self._pending.take())
            self._sent_at = self._pages_fetched()
        by_owner: dict[int, list[LinkRow]] = {}
        for row in rows:
            by_owner.setdefault(self._site_owners.where(row.url.decode()), []).append(row)
        self._seeds = {}
        return by_owner

    def take(self) -> PartitionTraffic:
        """Return the traffic for the next store batch: gathered links as message batches, the batches that came in, and
        the batches that other partitions have acknowledged."""
        site_owners, handover = self._site_owners, self.handover
        for owner, hosts in site_owners.take_decided().items():
            # Before the first links, because batches arrive in order
            self._make(owner, encode_handover(Contents(hosts)))
        urls = self._make_links()
        for receiver, data in self.messages.take():
            self._make(receiver, data)
        delivered = list(self._delivered.items())
        traffic = PartitionTraffic(
            self._message_batches, delivered, self._arrived, site_owners.fresh, handover.ended, handover.size,
            urls, *self._pending.take_changes(), self._further.take_kept() if self._further is not None else (),
        )  # fmt: skip
        self._message_batches, self._arrived, self._delivered, self._is_idle = [], [], {}, False
        site_owners.fresh, handover.ended, handover.size = [], [], 0
        return traffic

    def _make_links(self) -> list[tuple[int, int]]:
        """Make the message batches of links. Return the receivers, and how many URLs each gets."""
        due, own = self._take_due(), self._site_owners.own
        further = self._further.take() if self._further is not None else {}
        for owner in {**due, **further}:
            *whole, last = parts(due.get(owner, []), lambda row: len(row.url))
            for part in whole:
                self._make(owner, encode(part))
            self._make(owner, encode(last, further.get(owner, NO_LINKS)))
        if self._sends_further:
            for owner, rows in due.items():
                self._note_sent(owner, rows)
        counts = {owner: sum(row.links > 0 for row in rows) for owner, rows in due.items() if owner != own}
        for owner, links in further.items():
            counts[owner] = counts.get(owner, 0) + links.size
        return list(counts.items())

    def _note_sent(self, owner: int, rows: Sequence[LinkRow]) -> None:
        """Let further links to these pages travel as fingerprints, if the receiver is their owner and not a registrar."""
        urls = [row.url.decode() for row in rows if row.links]
        settled = [url for url in urls if self._site_owners.settled_owner(url) is not None]
        if settled and self._further is not None:
            self._further.sent(settled, owner)

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
            batch = decode(data)
            self._take_links(sender, batch.rows, now)
            if batch.further.size:
                self._take_further(sender, batch.further, now)
        self.received[sender] = number
        self._arrived.append((sender, number))
        if sender == self._site_owners.own:
            self._delivered[sender] = number

    def _take_further(self, sender: int, further: FurtherLinks, now: float) -> None:
        """Take in links to URLs that we have."""
        if self._further is None:
            raise ConfigError(
                "a message batch has fingerprints of URLs, but the crawl has no key: restore parallel.json from a copy"
            )
        ours, others = self._further.arrived(further)
        if len(ours.pages):
            self._frontier.receive(_checked(ours), now)
        self._take_links(sender, others, now)

    def _take_links(self, sender: int, rows: Sequence[LinkRow], now: float) -> None:
        """Take in links to our pages. Links to sites that are not ours are forwarded: we know more
        about the owner than the sender did."""
        seeds: dict[str, LinkRow] = {}
        linked: list[tuple[str, LinkRow]] = []  # one URL may have two rows: forwarded links and the sender's own
        unplaced: list[str] = []
        for row in rows:
            url = row.url.decode(errors="replace")
            if not self._site_owners.owns(url):
                self._forward(url, row)
                if row.links and not self._site_owners.is_registrar(url):
                    unplaced.append(url)
            elif row.links:
                linked.append((url, row))
            else:
                seeds[url] = row
        unplaced += self._add_to_frontier(seeds, linked, now)
        if unplaced and self._further is not None and sender != self._site_owners.own:
            self._further.keep(unplaced)

    def _forward(self, url: str, row: LinkRow) -> None:
        if row.links:
            self._forwarded.add(PendingLink(url, row.links, row.depth, row.share))
        else:
            self._seeds[url] = row

    def _add_to_frontier(
        self, seeds: Mapping[str, LinkRow], linked: Sequence[tuple[str, LinkRow]], now: float
    ) -> list[str]:
        """Discover seeds and linked pages. Return the URLs that are out of scope."""
        for url, row in seeds.items():
            if row.depth:
                self._link_resolver.add_seed(url, row.depth)  # the page itself arrives as a link
        if user_seeds := [url for url, row in seeds.items() if not row.depth]:
            self._frontier.discover(self._link_resolver.seed_pages(user_seeds, now), now)
        pages = self._link_resolver.arrived([url for url, _ in linked], now)
        ours = [(page, row) for page, (_, row) in zip(pages, linked, strict=True) if page >= 0]
        if ours:
            self._frontier.receive(_arrivals(ours), now)
        is_outside = self._link_resolver.is_out_of_scope
        return [url for page, (url, _) in zip(pages, linked, strict=True) if page < 0 and is_outside(page)]

    # ---- counting

    @property
    def has_news(self) -> bool:
        """Whether the next store batch would contain traffic to or from other partitions."""
        is_out = self._seeds or self._forwarded or self._message_batches or self.messages.has_news
        is_out = is_out or (self._further is not None and self._further.has_news)
        return bool(is_out or self._arrived or self._pending.has_changes or self._is_due)

    @property
    def is_still(self) -> bool:
        """Whether all traffic is on disk."""
        return not (self.has_news or self._under_way)

    def count(self, idle: bool) -> PartitionCount:
        is_done = idle and self.is_still and not self._pending
        return PartitionCount(is_done, sum(self.made.values()), sum(self._on_disk.values()))


def _row(pending: PendingLink) -> LinkRow:
    return LinkRow(pending.url.encode(), pending.links, pending.depth, pending.share)


def _arrivals(ours: list[tuple[int, LinkRow]]) -> Arrivals:
    """Return one arrival for each page: it may have two rows, or two URLs here."""
    by_page: dict[int, list[LinkRow]] = {}
    for page, row in ours:
        by_page.setdefault(page, []).append(row)
    merged = [
        (page, sum(r.links for r in rows), sum(r.share for r in rows), min(r.depth for r in rows))
        for page, rows in by_page.items()
    ]
    pages, links, shares, depths = zip(*merged, strict=True)
    return _checked(Arrivals(np.array(pages, np.int32), np.array(links), np.array(shares), np.array(depths)))


def _checked(arrivals: Arrivals) -> Arrivals:
    """Return the arrivals. Raises `ConfigError` for impossible numbers."""
    _, links, shares, depths = arrivals
    is_wrong = links.min() < 1 or links.max() > _MOST_LINKS or depths.min() < 0 or depths.max() > DEEPEST
    if is_wrong or not np.isfinite(shares).all():
        raise ConfigError("a message batch has a link with impossible numbers: run the same version in all partitions")
    return arrivals


_MOST_LINKS = 1 << 24
