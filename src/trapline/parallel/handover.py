"""When a crawl grows: what is another partition's from now on goes to it, and who is new begins when it has all that is its own.

All partitions have stopped before any starts with the new number of them. Ownership moves to partitions that are new, and to no others
(partition.py: rendezvous). An old one hands over as soon as it opens: sites with their waiting pages, the URLs of pages that were had
or refused, all that is known of pages that are fetched again, hosts that were settled; then to every newcomer that this was all. It is
one batch, with the note for how many partitions it was done: whoever is killed before that is on disk does it again, whoever is killed
later does not. It stands between the crawl and the exchange, which carries it in parcels, and knows of neither sockets nor disks.

A newcomer takes what is handed over as it comes. It asks for no page, and takes no links, before all its elders have said that this was
all: else it would take a page for new that one of them had. If the crawl has grown again meanwhile, it then hands over in its turn. Nor
does it ask before the rest of an address has passed: an elder may have asked there just before it stopped, and of addresses nothing
is handed over.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from trapline.crawl.crawler import Crawler
from trapline.crawl.known import Known
from trapline.crawl.moved_pages import MovedPages
from trapline.crawl.sites import Site
from trapline.errors import ConfigError, InvariantError
from trapline.frontier import Frontier
from trapline.frontier.layout import FETCHED, GONE
from trapline.parallel.batch_code import PARCEL_BYTES, parts
from trapline.parallel.handover_code import (
    PIECE_PAGES,
    Again,
    Contents,
    Piece,
    decode,
    encode,
    is_handover,
    pieces,
    pieces_again,
)
from trapline.parallel.letter_code import Kind, Letter
from trapline.parallel.letter_code import encode as encode_letters
from trapline.parallel.places import Places

_MOST_HOSTS = 10_000
_SURELY_S = 0.05  # timers may come a moment early
Make = Callable[[int, bytes], None]


class Handover:
    def __init__(self, frontier: Frontier, known: Known, places: Places, make: Make, ended: Iterable[int]) -> None:
        """`make`: a parcel for that partition. `ended`: the elders of which we have all, as on disk."""
        self._frontier, self._known, self._places, self._make = frontier, known, places, make
        self._awaited = set(range(places.elders)) - set(ended)
        self._whole = asyncio.Event()
        self.ended: list[int] = []  # since the last batch
        self.size = 0  # we have handed over for so many partitions, since the last batch; 0: we have not
        self._asks_from = -math.inf
        self._again: MovedPages | None = None  # where pages are fetched again
        self._call_later: Callable[[float], None] = lambda seconds: None  # until the crawl has begun
        self._look()

    def _look(self) -> None:
        self._places.is_whole = not self._awaited
        if self._again is not None:
            self._again.wait(bool(self._awaited))
        if not self._awaited:
            self._whole.set()

    def open(self, crawler: Crawler) -> None:
        """The crawl is about to begin, and nothing is under way."""
        if crawler.upkeep is not None and crawler.hearsay is not None:
            self._again = MovedPages(crawler.upkeep, crawler.hearsay)
        self._look()
        is_full = crawler.full
        crawler.full = lambda: not self._may_ask(crawler.now()) or is_full()
        self._call_later = lambda seconds: crawler.pause(seconds, crawler.go_on)
        self._rest(crawler.now())
        self.go_on(crawler.now())

    def _may_ask(self, now: float) -> bool:
        return self._places.is_whole and now >= self._asks_from

    def _rest(self, now: float) -> None:
        """A newcomer that has all waits once more, as every crawl does that goes on after a stop."""
        if self._places.elders and self._places.is_whole:
            rest_s = self._frontier.rules.address_rest_s
            self._asks_from = now + rest_s
            self._call_later(rest_s + _SURELY_S)

    def go_on(self, now: float) -> None:
        """Hand over, if there is something to and it is time."""
        places = self._places
        if not places.is_whole:
            return
        if places.size < places.partitions:
            self._hand_over(now)
            places.size = self.size = places.partitions
        if places.has_grown:
            self._known.leave(site.id for site in self._known.sites if places.where(site.origin) != places.own)

    async def until_taken(self, data: bytes) -> None:
        """Wait until a parcel may be delivered."""
        if not is_handover(data):
            await self._whole.wait()

    # ---- out

    def _hand_over(self, now: float) -> None:
        learned = self._again.learned() if self._again else ()
        parcels = {partition: _Packing(partition, self._make, learned) for partition in self._places.newcomers()}
        for partition, host, address in self._places.to_tell():
            parcels[partition].add_host(host, address)
        moved = [site for site in self._known.sites if self._places.has_moved(site.origin)]
        for site, piece in self._pieces(moved, now):
            parcels[self._places.where(site.origin)].add(piece)
        heard = self._again.heard({site.origin for site in moved}) if self._again else None
        for partition, packing in parcels.items():
            packing.end(heard)
            self._tell_seeds(partition)

    def _tell_seeds(self, partition: int) -> None:
        """What seeds redirect to; behind all that is handed over, for before the end of that a newcomer takes no letters."""
        letters = [Letter(Kind.SEED, url, redirects) for url, redirects in self._known.redirected_seeds.items()]
        for part in parts(letters, lambda letter: letter.size) if letters else ():
            self._make(partition, encode_letters(part))

    def _pieces(self, moved: list[Site], now: float) -> Iterator[tuple[Site, Piece]]:
        had = self._had([site.id for site in moved])
        for site in moved:
            export, over = self._frontier.export_site(site.id, now), had.get(site.id, [])
            again = [page for page in over if page in self._again] if self._again else []
            over = [page for page in over if page not in self._again] if self._again else over
            urls = self._known.urls([*export.pages.tolist(), *over])
            for piece in pieces(site.origin, export, urls[: len(export.pages)], urls[len(export.pages) :]):
                yield site, piece
            if self._again and again:
                outcomes = self._again.outcomes(site.id)
                for piece in pieces_again(site.origin, export, outcomes, self._leaving(self._again, again, now)):
                    yield site, piece

    def _leaving(self, known: MovedPages, pages: list[int], now: float) -> Iterator[Again]:
        """Some at a time: all that is known of a large site would be large."""
        for first in range(0, len(pages), PIECE_PAGES):
            some = pages[first : first + PIECE_PAGES]
            depths = self._frontier.state.page["depth"][some].tolist()
            yield from map(Again, self._known.urls(some), depths, known.leave(some, now))

    def _had(self, sites: list[int]) -> dict[int, list[int]]:
        """The pages of each that were had or refused, and are not to be asked for again."""
        state, count = self._frontier.state, self._frontier.pages
        is_moved = np.zeros(self._frontier.sites, bool)
        is_moved[sites] = True
        site_of = state.page["site"][:count]
        pages = np.flatnonzero(is_moved[site_of] & np.isin(state.state[:count], (FETCHED, GONE)))
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
            mend = "let all partitions run the same version, or restore all of the crawl's folder from a copy"
            raise ConfigError(f"what partition {sender} hands over cannot be taken ({error}): {mend}") from None
        if contents.is_last:
            if self._again is not None and contents.heard is not None:
                self._again.hear_after(*contents.heard, is_first=len(self._awaited) == self._places.elders)
            self._awaited.discard(sender)
            self.ended.append(sender)
            self._look()
            self._rest(now)
            self.go_on(now)

    def _put_down(self, contents: Contents, now: float) -> None:
        if self._again is not None and contents.learned:
            self._again.learn(contents.learned, now)
        for host, address in contents.hosts:
            self._places.learn(host, address)
        for piece in contents.sites:
            self._adopt(piece, now)

    def _adopt(self, piece: Piece, now: float) -> None:
        count, columns = len(piece.waiting), len(self._frontier.strategy.page.columns)
        pages = self._known.adopt([*piece.waiting, *piece.had, *(one.url for one in piece.again)], now)
        site = self._known.sites.named(piece.site)
        assert site is not None  # it has pages
        self._frontier.import_site(piece.export(columns), site.id, pages[:count], now)
        over = count + len(piece.had)
        self._frontier.had_elsewhere(pages[count:over], now)
        if self._again is not None and piece.again:
            self._frontier.fetched_elsewhere(pages[over:], [one.depth for one in piece.again], now)
            if piece.outcomes:
                self._again.trust(site.id, piece.outcomes, now)
            self._again.adopt(pages[over:], site.id, [one.page for one in piece.again], now)


class _Packing:
    """What goes to one partition, made into parcels as soon as it is enough for one."""

    def __init__(self, receiver: int, make: Make, learned: Sequence[float]) -> None:
        """`learned`: of all pages, with the first."""
        self._receiver, self._make_parcel, self._learned = receiver, make, learned
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
        if self._size >= PARCEL_BYTES:
            self._send(False)

    def end(self, heard: tuple[str, int] | None) -> None:
        self._send(True, heard)

    def _send(self, is_last: bool, heard: tuple[str, int] | None = None) -> None:
        contents = Contents(self._hosts, self._sites, is_last, self._learned, heard)
        self._make_parcel(self._receiver, encode(contents))
        self._hosts, self._sites, self._learned, self._size = [], [], (), 0
