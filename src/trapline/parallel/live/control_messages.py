"""Control messages between partitions: everything besides the links that count, such as pages that their owner may not
know, and robots.txt files.

A control message concerns one URL (parallel/transport/control_batches.py). It goes to the owner of the URL's site,
through the registrar like any link (site_owner.py); but an answer goes to the partition that asked, and a message that
widens the scope goes to all partitions. Control messages travel in message batches like links: none is lost, and none
is delivered twice. This module does not know how batches travel (parallel/transport/delivery.py), nor what follows from
a robots.txt (crawler/robots/cross_site.py).

The crawl adds messages (`send_listed`, `send_list`, `send_requisite`, `send_refetched_links`, `ask`, `reply`, `widen`), and so do
messages that are forwarded. `take` removes them for a batch.
"""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.engine.partition_member import PartitionServices
from trapline.crawler.robots.site_robots import RobotsResponse
from trapline.frontier import Frontier
from trapline.frontier.core.arrivals import Arrivals
from trapline.frontier.layout import DEEPEST, UNKNOWN
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.transport.control_batches import NOT_BY_SITE, ControlMessage, MessageKind, encode
from trapline.parallel.transport.url_batches import parts

_SLOTS = 1 << 16  # a power of two


class ControlMessages:
    def __init__(self, frontier: Frontier, link_resolver: LinkResolver, site_owners: SiteOwners) -> None:
        self._frontier, self._link_resolver, self._site_owners = frontier, link_resolver, site_owners
        self._gathered: dict[ControlMessage, None] = {}
        self._for_all: dict[ControlMessage, None] = {}
        # Links of refetched pages, and requisites, that were sent lately, because pages repeat them. Each URL has one slot,
        # given by its hash.
        self._lately = array("q", bytes(8 * _SLOTS))
        self.services: PartitionServices | None = None  # None until the crawl begins

    @property
    def has_news(self) -> bool:
        return bool(self._gathered or self._for_all)

    # ---- out

    def send_listed(self, urls: Sequence[str]) -> None:
        """Send URLs that a page or a published list names to their owners, each at most once per batch. They are sent
        again every time, because an owner accepts a URL only if it knows the site, and may have discovered the site
        since."""
        for url in urls:
            self._gather(ControlMessage(MessageKind.LISTED_URL, url))

    def send_list(self, url: str, speaks_for: str, level: int) -> None:
        self._gather(ControlMessage(MessageKind.LIST, url, level, text=speaks_for))

    def send_requisite(self, url: str, role: str, level: int) -> None:
        """Send a requisite to its owner. In every mode: no other partition may visit its host. Pages repeat their requisites,
        so those that were sent lately are not sent again."""
        if self._is_new(MessageKind.REQUISITE, url):
            self._gather(ControlMessage(MessageKind.REQUISITE, url, level, text=role))

    def send_refetched_links(self, page: int, urls: Sequence[str]) -> None:
        depth = int(self._frontier.page_depths[page])
        for url in urls:
            if self._is_new(MessageKind.REFETCHED_LINK, url):
                self._gather(ControlMessage(MessageKind.REFETCHED_LINK, url, depth))

    def _is_new(self, kind: MessageKind, url: str) -> bool:
        """Return whether no such message was sent lately, and note that one is."""
        mark = hash((int(kind), url)) or 1
        slot = mark & (_SLOTS - 1)
        is_new, self._lately[slot] = self._lately[slot] != mark, mark
        return is_new

    def ask(self, url: str) -> None:
        self._gather(ControlMessage(MessageKind.ASK, url, self._site_owners.own))

    def reply(self, partition: int, url: str, answer: RobotsResponse) -> None:
        self._gather(ControlMessage(MessageKind.ANSWER, url, partition, answer))

    def widen(self, url: str, redirects: int) -> None:
        """Tell all partitions that a seed leads to this URL through `redirects` redirects: its host or domain is in scope."""
        self._for_all[ControlMessage(MessageKind.SEED, url, redirects)] = None

    def _gather(self, message: ControlMessage) -> None:
        self._gathered[message] = None

    def take(self) -> list[tuple[int, bytes]]:
        """Return all messages as batches, each with its receiver."""
        gathered, for_all, self._gathered, self._for_all = self._gathered, self._for_all, {}, {}
        others = range(self._site_owners.partitions) if for_all else ()
        by_receiver = {partition: list(for_all) for partition in others if partition != self._site_owners.own}
        for message in gathered:
            by_receiver.setdefault(self._receiver(message), []).append(message)
        return [
            (receiver, encode(part))
            for receiver, messages in by_receiver.items()
            for part in parts(messages, lambda message: message.size)
        ]

    def _receiver(self, message: ControlMessage) -> int:
        return message.number if message.kind == MessageKind.ANSWER else self._site_owners.where(message.url)

    # ---- in

    def deliver(self, messages: Sequence[ControlMessage], now: float) -> None:
        """Process the messages that are for this partition, and forward the others."""
        ours = []
        for message in messages:
            if message.kind in NOT_BY_SITE or self._site_owners.owns(message.url):
                ours.append(message)
            else:
                self._gather(message)
        self._discover_listed([message.url for message in ours if message.kind == MessageKind.LISTED_URL], now)
        self._receive_refetched([message for message in ours if message.kind == MessageKind.REFETCHED_LINK], now)
        for message in ours:
            if message.kind == MessageKind.SEED:
                self._link_resolver.add_seed(message.url, message.number)
            elif message.kind == MessageKind.LIST and self.services is not None:
                self.services.list_found(message.url, message.text, message.number)
            elif message.kind == MessageKind.REQUISITE and self.services is not None:
                self.services.requisite_found(message.url, message.text, message.number)
            self._robots(message)

    def _discover_listed(self, urls: list[str], now: float) -> None:
        pages = self._unknown(self._link_resolver.listed_pages(urls, now))
        if pages:
            self._frontier.discover(pages, now)

    def _receive_refetched(self, messages: list[ControlMessage], now: float) -> None:
        """Pass links of refetched pages to the frontier, but only links to unknown pages: docs/frontier.md, A5."""
        depths: dict[int, int] = {}
        for page, message in zip(
            self._link_resolver.arrived([message.url for message in messages], now), messages, strict=True
        ):
            depths[page] = min(depths.get(page, DEEPEST), max(message.number, 0))
        pages = self._unknown(depths)
        if pages:
            links, shares = np.ones(len(pages), np.int64), np.zeros(len(pages))
            arrivals = Arrivals(np.array(pages, np.int32), links, shares, np.array([depths[page] for page in pages]))
            self._frontier.receive(arrivals, now)

    def _unknown(self, pages: Iterable[int]) -> list[int]:
        state = self._frontier.page_states
        return [page for page in pages if page >= 0 and state[page] == UNKNOWN]

    def _robots(self, message: ControlMessage) -> None:
        if self.services is None:
            return
        if message.kind == MessageKind.ASK:
            self.services.robots_requested(message.url, message.number)
        elif message.kind == MessageKind.ANSWER and message.answer is not None:
            self.services.robots_received(message.url, message.answer)
