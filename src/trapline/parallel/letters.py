"""What partitions tell each other besides the links that count: pages that their owner may not know, and robots.txt files.

A letter is one thing of that kind, on one URL (letter_code.py). It goes to the owner of its site, by way of the registrar like any
link (places.py); but an answer goes to whoever asked, and what widens the scope to everyone. Letters lie in parcels like links: none is
lost, none delivered twice. It refuses to know how parcels travel (delivery.py) and what comes of a robots.txt
(crawl/robots_elsewhere.py).

Who fills it: the crawl (`tell`, `post_again`, `ask`, `reply`, `widen`), and letters that go on from here. Who empties it: `take`, for a
batch.
"""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from trapline.crawl.known import Known
from trapline.crawl.partition import Desk
from trapline.crawl.robots_file import Answer
from trapline.fetch.urls import origin
from trapline.frontier import Frontier
from trapline.frontier.arrivals import Arrivals
from trapline.frontier.layout import DEEPEST, UNKNOWN
from trapline.parallel.batch_code import parts
from trapline.parallel.letter_code import NOT_BY_SITE, Kind, Letter, encode
from trapline.parallel.places import Places

_SLOTS = 1 << 16  # a power of two


class Letters:
    def __init__(self, frontier: Frontier, known: Known, places: Places) -> None:
        self._frontier, self._known, self._places = frontier, known, places
        self._gathered: dict[Letter, None] = {}
        self._for_all: dict[Letter, None] = {}
        # Links that were told lately, each URL in the one slot that its hash may have: pages have the same ones again and again.
        self._lately = array("q", bytes(8 * _SLOTS))
        self.desk: Desk | None = None  # until the crawl has begun

    @property
    def has_news(self) -> bool:
        return bool(self._gathered or self._for_all)

    # ---- out

    def tell(self, urls: Sequence[str]) -> None:
        """Each time, once a batch: its owner takes it only when it knows the site, and may have met that since."""
        for url in urls:
            self._gather(Letter(Kind.TOLD, url))

    def post_again(self, page: int, urls: Sequence[str]) -> None:
        depth = int(self._frontier.state.page[page].depth)
        for url in urls:
            mark = hash(url) or 1
            slot = mark & (_SLOTS - 1)
            if self._lately[slot] != mark:
                self._lately[slot] = mark
                self._gather(Letter(Kind.AGAIN, url, depth))

    def ask(self, url: str) -> None:
        self._gather(Letter(Kind.ASK, url, self._places.own))

    def reply(self, partition: int, url: str, answer: Answer) -> None:
        self._gather(Letter(Kind.ANSWER, url, partition, answer))

    def widen(self, url: str, redirects: int) -> None:
        """A seed leads to that page by so many redirects: its host or domain is in scope for all partitions."""
        self._for_all[Letter(Kind.SEED, url, redirects)] = None

    def _gather(self, letter: Letter) -> None:
        self._gathered[letter] = None

    def take(self) -> list[tuple[int, bytes]]:
        """As parcels, each with its receiver."""
        gathered, for_all, self._gathered, self._for_all = self._gathered, self._for_all, {}, {}
        others = range(self._places.partitions) if for_all else ()
        by_receiver = {partition: list(for_all) for partition in others if partition != self._places.own}
        for letter in gathered:
            by_receiver.setdefault(self._receiver(letter), []).append(letter)
        return [
            (receiver, encode(part))
            for receiver, letters in by_receiver.items()
            for part in parts(letters, lambda letter: letter.size)
        ]

    def _receiver(self, letter: Letter) -> int:
        return letter.number if letter.kind == Kind.ANSWER else self._places.where(origin(letter.url))

    # ---- in

    def deliver(self, letters: Sequence[Letter], now: float) -> None:
        """What is for us is heeded, the rest goes on."""
        ours = []
        for letter in letters:
            if letter.kind in NOT_BY_SITE or self._places.owns(origin(letter.url)):
                ours.append(letter)
            else:
                self._gather(letter)
        self._told([letter.url for letter in ours if letter.kind == Kind.TOLD], now)
        self._linked_again([letter for letter in ours if letter.kind == Kind.AGAIN], now)
        for letter in ours:
            if letter.kind == Kind.SEED:
                self._known.add_seed(letter.url, letter.number)
            self._robots(letter)

    def _told(self, urls: list[str], now: float) -> None:
        pages = self._unknown(self._known.told_pages(urls, now))
        if pages:
            self._frontier.discover(pages, now)

    def _linked_again(self, letters: list[Letter], now: float) -> None:
        """Only those to pages that nobody has met: docs/frontier.md, A5."""
        depths: dict[int, int] = {}
        for page, letter in zip(self._known.arrived([letter.url for letter in letters], now), letters, strict=True):
            depths[page] = min(depths.get(page, DEEPEST), max(letter.number, 0))
        pages = self._unknown(depths)
        if pages:
            links, shares = np.ones(len(pages), np.int64), np.zeros(len(pages))
            arrivals = Arrivals(np.array(pages, np.int32), links, shares, np.array([depths[page] for page in pages]))
            self._frontier.receive(arrivals, now)

    def _unknown(self, pages: Iterable[int]) -> list[int]:
        state = self._frontier.state.state
        return [page for page in pages if page >= 0 and state[page] == UNKNOWN]

    def _robots(self, letter: Letter) -> None:
        if self.desk is None:
            return
        if letter.kind == Kind.ASK:
            self.desk.robots_asked(letter.url, letter.number)
        elif letter.kind == Kind.ANSWER and letter.answer is not None:
            self.desk.robots_told(letter.url, letter.answer)
