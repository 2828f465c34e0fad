"""A live partition's links to the others: what it meets of theirs goes out in parcels, what they met of its own comes in.

It stands between the crawl and `Delivery`, and owns what is neither on disk nor in the frontier: links gathered since the last batch.
What it carries beside links is letters.py's and handover.py's.
Parcels are cut when a batch goes to the store, of the pages in that batch, so that a page that counts as fetched has told all it had to
tell; they are sent when the batch is on disk. What comes in counts as received when the batch is on disk in which the
frontier was told.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from trapline.crawl.known import Known
from trapline.crawl.partition import Told
from trapline.crawl.records import Between, Parcel
from trapline.errors import ConfigError
from trapline.fetch.urls import origin
from trapline.frontier import Frontier
from trapline.frontier.arrivals import Arrivals
from trapline.frontier.layout import DEEPEST
from trapline.parallel.batch_code import Row, decode, encode, parts
from trapline.parallel.census import Count
from trapline.parallel.handover import Handover
from trapline.parallel.handover_code import Contents, is_handover
from trapline.parallel.handover_code import encode as encode_handover
from trapline.parallel.letter_code import decode as letters_in
from trapline.parallel.letters import Letters
from trapline.parallel.places import Places


class Sends(Protocol):
    """What the exchange needs of `Delivery`."""

    def more(self) -> None: ...

    def committed(self, sender: int, number: int) -> None: ...


class Exchange:
    def __init__(self, frontier: Frontier, known: Known, places: Places, told: Told) -> None:
        """`told`: parcels made for each other partition and received from it, as on disk."""
        self._frontier, self._known, self._places = frontier, known, places
        self.made = {partition: passed.made for partition, passed in told.items()}
        self.received = {partition: passed.received for partition, passed in told.items()}
        self._handed_on = frontier.strategy.page.handed_on
        self._gathered: dict[str, Row] = {}
        self._seeds: dict[str, Row] = {}  # a row without links; its depth: the redirects that lead to it from a seed
        self._arrived: list[tuple[int, int]] = []
        self._delivered: dict[int, int] = {}
        self._on_disk = dict(self.received)
        # Batch, what was received with it, whether it has parcels.
        self._under_way: deque[tuple[int, Sequence[tuple[int, int]], bool]] = deque()
        self.delivery: Sends | None = None
        self.letters = Letters(frontier, known, places)
        self._parcels: list[Parcel] = []  # beside those of links
        ended = (partition for partition, passed in told.items() if passed.ended)
        self.handover = Handover(frontier, known, places, self._make, ended)

    # ---- out

    def post(self, page: int, urls: Sequence[str], links: int) -> None:
        """A page of ours, just reported, links to these; it has so many links in all."""
        state = self._frontier.state
        share = float(state.columns[page, self._handed_on]) / links if self._handed_on >= 0 else 0.0
        depth = int(state.page[page].depth)
        for url in urls:
            self._gather(url, Row(url.encode(), 1, depth, share))

    def begin(self, seeds: Sequence[str]) -> None:
        """Those that are ours to settle, and those that would have been ours to begin with had the crawl not grown before we could.
        Who is new is handed over what it has to begin with. A row without links is a seed."""
        places = self._places
        for url in seeds if not places.elders else ():
            if places.owns(origin(url)) is None or places.has_moved(origin(url)):
                self._gather(url, Row(url.encode(), 0, 0))

    def seed(self, url: str, redirects: int, is_wider: bool) -> None:
        """Tell the owner of the URL that it counts as a seed before the link to it arrives, or the owner would leave the link out.
        The others are told if the scope is wider now."""
        if not self._places.owns(origin(url)):
            self._gather(url, Row(url.encode(), 0, redirects))
        if is_wider:
            self.letters.widen(url, redirects)

    def _gather(self, url: str, row: Row) -> None:
        if not row.links:
            self._seeds[url] = row
            return
        before = self._gathered.get(url)
        if before is not None:
            depth = min(row.depth, before.depth)
            row = Row(row.url, before.links + row.links, depth, before.share + row.share)
        self._gathered[url] = row

    def take(self) -> Between:
        """For the next batch: what was gathered, as parcels; what came in; what others have by now."""
        places, handover = self._places, self.handover
        for owner, hosts in places.take_decided().items():
            self._make(owner, encode_handover(Contents(hosts)))  # before the first links, which follow in the same lane
        by_owner: dict[int, list[Row]] = {}
        for url, row in (*self._seeds.items(), *self._gathered.items()):
            by_owner.setdefault(places.where(origin(url)), []).append(row)
        for owner, rows in by_owner.items():
            for part in parts(rows, lambda row: len(row.url)):
                self._make(owner, encode(part))
        for receiver, data in self.letters.take():
            self._make(receiver, data)
        delivered = list(self._delivered.items())
        between = Between(self._parcels, delivered, self._arrived, places.fresh, handover.ended, handover.size)
        self._parcels, self._seeds, self._gathered, self._arrived, self._delivered = [], {}, {}, [], {}
        places.fresh, handover.ended, handover.size = [], [], 0
        return between

    def _make(self, receiver: int, data: bytes) -> None:
        self.made[receiver] = number = self.made.get(receiver, 0) + 1
        self._parcels.append(Parcel(receiver, number, data))

    def sent(self, batch: int, between: Between) -> None:
        """A batch is on its way to the disk."""
        if any(between):
            self._under_way.append((batch, between.received, bool(between.made)))

    def committed(self, batch: int) -> None:
        """It is there."""
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
        """What another partition has for us: links, what became ours when the crawl grew, or letters."""
        if is_handover(data):
            self.handover.take(sender, data, now)
        elif (letters := letters_in(data)) is not None:
            self.letters.deliver(letters, now)
        else:
            self._take_links(data, now)
        self.received[sender] = number
        self._arrived.append((sender, number))
        if sender == self._places.own:
            self._delivered[sender] = number

    def _take_links(self, data: bytes, now: float) -> None:
        """To pages of ours; or of sites that we know more of than the sender did, and then they go on from here."""
        seeds: dict[str, Row] = {}
        linked: dict[str, Row] = {}
        for row in decode(data):
            url = row.url.decode(errors="replace")
            if not self._places.owns(origin(url)):
                self._gather(url, row)
            elif row.links:
                linked[url] = row
            else:
                seeds[url] = row
        self._tell_frontier(seeds, linked, now)

    def _tell_frontier(self, seeds: Mapping[str, Row], linked: Mapping[str, Row], now: float) -> None:
        for url, row in seeds.items():
            if row.depth:
                self._known.add_seed(url, row.depth)  # the page itself comes as a link
        if given := [url for url, row in seeds.items() if not row.depth]:
            self._frontier.discover(self._known.seed_pages(given, now), now)
        pages = self._known.arrived(list(linked), now)
        ours = [(page, row) for page, row in zip(pages, linked.values(), strict=True) if page >= 0]
        if ours:
            self._frontier.receive(_arrivals(ours), now)

    # ---- counting

    @property
    def has_news(self) -> bool:
        """Whether a batch would have something for the others, or from them."""
        return bool(self._seeds or self._gathered or self._arrived or self._parcels or self.letters.has_news)

    @property
    def is_still(self) -> bool:
        """Whether all that it knows is on disk."""
        return not (self.has_news or self._under_way)

    def count(self, idle: bool) -> Count:
        return Count(idle and self.is_still, sum(self.made.values()), sum(self._on_disk.values()))


def _arrivals(ours: list[tuple[int, Row]]) -> Arrivals:
    """Of each page once: two URLs may be one page here."""
    by_page: dict[int, list[Row]] = {}
    for page, row in ours:
        by_page.setdefault(page, []).append(row)
    merged = [
        (page, sum(r.links for r in rows), sum(r.share for r in rows), min(r.depth for r in rows))
        for page, rows in by_page.items()
    ]
    pages, links, shares, depths = zip(*merged, strict=True)
    if max(links) > _MOST_LINKS or min(depths) < 0 or max(depths) > DEEPEST or not np.isfinite(shares).all():
        raise ConfigError("a parcel says what cannot be of a link: let all partitions run the same version")
    return Arrivals(np.array(pages, np.int32), np.array(links), np.array(shares), np.array(depths))


_MOST_LINKS = 1 << 24
