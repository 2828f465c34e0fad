"""The hand-over of sites when a crawl grows: old partitions send sites to their new owners, and a new partition begins
when it has all of its sites.

All partitions stop before any of them starts with the new number of partitions. Sites move only to new partitions
(parallel/partition.py: rendezvous). An old partition hands over as soon as it opens: sites with their waiting pages, the URLs of
pages that were fetched or refused, all that is known about pages that it refetches, and settled hosts. At the end it
tells every new partition that this was all. The hand-over is one batch, together with a note for how many partitions it
was done. A partition that is killed before this batch is on disk repeats the hand-over; one that is killed later does
not. This module stands between the crawl and the exchange, which sends the hand-over as message batches, and knows
neither sockets nor disks.

A new partition takes over sites as they arrive. It requests no page, and accepts no links, until all older partitions
have said that this was all: otherwise it could treat a page as new that one of them fetched. If the crawl has grown
again meanwhile, it then hands over in turn. It also waits for the delay of an address: an older partition may have sent
a request there just before it stopped, and no state of addresses is handed over.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from trapline.crawler.discovery.link_resolver import LinkResolver
from trapline.crawler.discovery.sites import Site
from trapline.crawler.engine.crawler import Crawler
from trapline.crawler.recrawl.moved_pages import MovedPages
from trapline.crawler.requisites.page_requisites import PageRequisites
from trapline.errors import ConfigError, InvariantError
from trapline.frontier import Frontier
from trapline.frontier.layout import FETCHED, GONE
from trapline.parallel.live.site_owner import SiteOwners
from trapline.parallel.transport.control_batches import ControlMessage, MessageKind
from trapline.parallel.transport.control_batches import encode as encode_messages
from trapline.parallel.transport.handover_batches import (
    PIECE_PAGES,
    Contents,
    MovedRefetch,
    Piece,
    decode,
    encode,
    is_handover,
    pieces,
    refetch_pieces,
)
from trapline.parallel.transport.url_batches import BATCH_BYTES, parts

_MOST_HOSTS = 10_000
_SURELY_S = 0.05  # margin, because timers may fire a moment early
Make = Callable[[int, bytes], None]


class Handover:
    def __init__(
        self, frontier: Frontier, link_resolver: LinkResolver, site_owners: SiteOwners, make: Make, ended: Iterable[int]
    ) -> None:
        """`make`: makes a message batch for a partition. `ended`: the older partitions whose hand-over is complete on
        our disk."""
        self._frontier, self._link_resolver, self._site_owners, self._make = frontier, link_resolver, site_owners, make
        self._awaited = set(range(site_owners.elders)) - set(ended)
        self._whole = asyncio.Event()
        self.ended: list[int] = []  # older partitions whose hand-over was completed since the last batch
        self.size = 0  # number of partitions for which we handed over since the last batch; 0: no hand-over since
        self._may_request_at = -math.inf
        self._moved_pages: MovedPages | None = None  # if the crawl refetches pages
        self._call_later: Callable[[float], None] = lambda seconds: None  # does nothing until the crawl begins
        self._requisites: PageRequisites | None = None  # if the crawl fetches requisites
        self._look()

    def _look(self) -> None:
        self._site_owners.is_whole = not self._awaited
        if self._moved_pages is not None:
            self._moved_pages.wait(bool(self._awaited))
        if not self._awaited:
            self._whole.set()

    def open(self, crawler: Crawler) -> None:
        """Connect to the crawler and hand over. The crawl is about to begin, and no request is in flight."""
        signal_intake = crawler.features.signal_intake
        if crawler.features.refetch is not None and signal_intake is not None:
            self._moved_pages = MovedPages(crawler.features.refetch, signal_intake)
        self._requisites = crawler.features.requisites
        self._look()
        is_full = crawler.full
        crawler.full = lambda: not self._may_request(crawler.now()) or is_full()
        self._call_later = lambda seconds: crawler.pause(seconds, crawler.go_on)
        self._wait_address_delay(crawler.now())
        self.go_on(crawler.now())

    def _may_request(self, now: float) -> bool:
        return self._site_owners.is_whole and now >= self._may_request_at

    def _wait_address_delay(self, now: float) -> None:
        """Let a new partition that has all of its sites wait for the delay of an address, as every resumed crawl does."""
        if self._site_owners.elders and self._site_owners.is_whole:
            delay_s = self._frontier.rules.address_delay_s
            self._may_request_at = now + delay_s
            self._call_later(delay_s + _SURELY_S)

    def go_on(self, now: float) -> None:
        """Hand over, if this partition has received all of its sites and the crawl has grown since its last hand-over."""
        site_owners = self._site_owners
        if not site_owners.is_whole:
            return
        if site_owners.size < site_owners.partitions:
            self._hand_over(now)
            site_owners.size = self.size = site_owners.partitions
        if site_owners.has_grown:
            self._link_resolver.foreign.leave(
                site.id for site in self._link_resolver.sites if site_owners.where(site.origin) != site_owners.own
            )
            if self._requisites is not None:
                self._requisites.send_moved()

    async def until_taken(self, data: bytes) -> None:
        """Wait until a message batch may be delivered: a hand-over at once, others when this partition has all of its sites."""
        if not is_handover(data):
            await self._whole.wait()

    # ---- out

    def _hand_over(self, now: float) -> None:
        learned = self._moved_pages.learned() if self._moved_pages else ()
        message_batches = {
            partition: _Packing(partition, self._make, learned) for partition in self._site_owners.newcomers()
        }
        for partition, host, address in self._site_owners.hosts_for_newcomers():
            message_batches[partition].add_host(host, address)
        moved = [site for site in self._link_resolver.sites if self._site_owners.has_moved(site.origin)]
        for site, piece in self._pieces(moved, now):
            message_batches[self._site_owners.where(site.origin)].add(piece)
        inbox_position = (
            self._moved_pages.inbox_position({site.origin for site in moved}) if self._moved_pages else None
        )
        for partition, packing in message_batches.items():
            packing.end(inbox_position)
            self._send_seeds(partition)

    def _send_seeds(self, partition: int) -> None:
        """Send the URLs to which seeds redirect. They follow the hand-over, because a new partition accepts no control
        messages before its end."""
        messages = [
            ControlMessage(MessageKind.SEED, url, redirects)
            for url, redirects in self._link_resolver.redirected_seeds.items()
        ]
        for part in parts(messages, lambda message: message.size) if messages else ():
            self._make(partition, encode_messages(part))

    def _pieces(self, moved: list[Site], now: float) -> Iterator[tuple[Site, Piece]]:
        finished = self._finished_pages([site.id for site in moved])
        for site in moved:
            export, done = self._frontier.export_site(site.id, now), finished.get(site.id, [])
            refetched = [page for page in done if page in self._moved_pages] if self._moved_pages else []
            done = [page for page in done if page not in self._moved_pages] if self._moved_pages else done
            urls = self._link_resolver.urls([*export.pages.tolist(), *done])
            for piece in pieces(site.origin, export, urls[: len(export.pages)], urls[len(export.pages) :]):
                yield site, piece
            if self._moved_pages and refetched:
                outcomes = self._moved_pages.outcomes(site.id)
                for piece in refetch_pieces(
                    site.origin, export, outcomes, self._leaving(self._moved_pages, refetched, now)
                ):
                    yield site, piece

    def _leaving(self, known: MovedPages, pages: list[int], now: float) -> Iterator[MovedRefetch]:
        """Yield what is known about pages that leave. Reads a part at a time, because all of a large site would take
        much memory."""
        for first in range(0, len(pages), PIECE_PAGES):
            part = pages[first : first + PIECE_PAGES]
            depths = self._frontier.page_depths[part].tolist()
            yield from map(MovedRefetch, self._link_resolver.urls(part), depths, known.leave(part, now))

    def _finished_pages(self, sites: list[int]) -> dict[int, list[int]]:
        """Return the pages of each site that were fetched or refused, which the frontier does not give out again."""
        is_moved = np.zeros(self._frontier.sites, bool)
        is_moved[sites] = True
        site_of = self._frontier.page_sites
        pages = np.flatnonzero(is_moved[site_of] & np.isin(self._frontier.page_states, (FETCHED, GONE)))
        pages = pages[np.argsort(site_of[pages], kind="stable")]
        found, first = np.unique(site_of[pages], return_index=True)
        parts = np.split(pages, first[1:])
        return {site: part.tolist() for site, part in zip(found.tolist(), parts, strict=False)}

    # ---- in

    def take(self, sender: int, data: bytes, now: float) -> None:
        try:
            contents = decode(data)
            self._put_down(contents, now)
        except (ConfigError, InvariantError) as error:
            advice = "run the same version in all partitions, or restore the crawl's whole folder from a copy"
            raise ConfigError(f"the hand-over of partition {sender} cannot be read ({error}): {advice}") from None
        if contents.is_last:
            if self._moved_pages is not None and contents.inbox_position is not None:
                self._moved_pages.continue_after(
                    *contents.inbox_position, is_first=len(self._awaited) == self._site_owners.elders
                )
            self._awaited.discard(sender)
            self.ended.append(sender)
            self._look()
            self._wait_address_delay(now)
            self.go_on(now)

    def _put_down(self, contents: Contents, now: float) -> None:
        if self._moved_pages is not None and contents.learned:
            self._moved_pages.learn(contents.learned, now)
        for host, address in contents.hosts:
            self._site_owners.learn(host, address)
        for piece in contents.sites:
            self._adopt(piece, now)

    def _adopt(self, piece: Piece, now: float) -> None:
        count, columns = len(piece.waiting), len(self._frontier.strategy.page.columns)
        pages = self._link_resolver.adopt([*piece.waiting, *piece.gone, *(moved.url for moved in piece.refetched)], now)
        site = self._link_resolver.sites.named(piece.site)
        assert site is not None  # every piece has pages
        self._frontier.import_site(piece.export(columns), site.id, pages[:count], now)
        end = count + len(piece.gone)
        self._frontier.gone_elsewhere(pages[count:end], now)
        if self._moved_pages is not None and piece.refetched:
            self._frontier.fetched_elsewhere(pages[end:], [moved.depth for moved in piece.refetched], now)
            if piece.outcomes:
                self._moved_pages.trust(site.id, piece.outcomes, now)
            self._moved_pages.adopt(pages[end:], site.id, [moved.page for moved in piece.refetched], now)


class _Packing:
    """Collects the hand-over to one partition, and makes a message batch whenever there is enough for one."""

    def __init__(self, receiver: int, make: Make, learned: Sequence[float]) -> None:
        """`learned`: what the refresher learned from all pages; sent with the first batch."""
        self._receiver, self._make_batch, self._learned = receiver, make, learned
        self._hosts: list[tuple[str, str]] = []
        self._sites: list[Piece] = []
        self._size = 0

    def add_host(self, host: str, address: str) -> None:
        self._hosts.append((host, address))
        if len(self._hosts) >= _MOST_HOSTS:
            self._send(False)

    def add(self, piece: Piece) -> None:
        self._sites.append(piece)
        self._size += piece.size
        if self._size >= BATCH_BYTES:
            self._send(False)

    def end(self, inbox_position: tuple[str, int] | None) -> None:
        self._send(True, inbox_position)

    def _send(self, is_last: bool, inbox_position: tuple[str, int] | None = None) -> None:
        contents = Contents(self._hosts, self._sites, is_last, self._learned, inbox_position)
        self._make_batch(self._receiver, encode(contents))
        self._hosts, self._sites, self._learned, self._size = [], [], (), 0
