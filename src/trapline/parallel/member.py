"""A live crawl as one of several: it owns the sites that the partition function gives it, sends the others what they own, and does what
the coordinator says. The one place where a crawl, its exchange and its lines to other processes meet.

The coordinator is asked for nothing: it says who the others are, counts (census.py), shares out what is left of a goal, and stops the
crawl when it is over or the user wants it.
"""

import asyncio
import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from trapline.crawl.crawler import Crawler
from trapline.crawl.ends import INTERRUPTED
from trapline.crawl.known import Known
from trapline.crawl.partition import Desk, Told
from trapline.crawl.records import Between
from trapline.crawl.robots_file import Answer
from trapline.crawl.run import Show
from trapline.crawl.standing import Standing
from trapline.crawl.store.reading import Reading
from trapline.errors import ConfigError
from trapline.fetch.dns import Resolver
from trapline.frontier import Frontier
from trapline.parallel.answer import answer
from trapline.parallel.delivery import CONNECT_S, Delivery, surface
from trapline.parallel.exchange import Exchange
from trapline.parallel.of_one_moment import ParcelsOfOneMoment
from trapline.parallel.places import Places
from trapline.parallel.quotas import Holding
from trapline.parallel.settling import Settling
from trapline.parallel.wire import Address, Kind, Line, Pass, Refused, greet

_PAUSE_S = 0.2  # between two tries to reach the coordinator
_FIRST_S = 30.0  # for the first time, if there is an end to our patience
_SILENCE_S = 30.0  # of a coordinator that counts all the time: it is out of reach


async def _next_order(line: Line, silence_s: float | None) -> tuple[Kind, bytes] | None:
    """Not by `wait_for`: before Python 3.12 it forgets that it was cancelled if a frame comes at that moment, and nothing would end."""
    async with asyncio.timeout(silence_s):
        return await line.receive()


class Lead(NamedTuple):
    """How a member is led: where its coordinator is, and where the others find the member itself."""

    coordinator: Address
    listen: str  # where it waits for the others to call
    host: str  # where they reach it; "": the address from which it reaches the coordinator
    patience_s: float  # for how long it goes on without its coordinator; infinity: until whoever started it is gone
    limited: bool  # it has no page until the coordinator gives it a share of a goal


class LiveMember:
    def __init__(
        self, own: Pass, places: Places, resolver: Resolver, folder: Path, lead: Lead, notes: Sequence[str] = ()
    ) -> None:
        """`notes`: what the user may want to know of its folder."""
        self._notes = notes
        self._own, self._places, self._resolver, self._folder, self._lead = own, places, resolver, folder, lead
        self._standing: Standing | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.is_lost = False  # its coordinator was out of reach for too long

    @property
    def signals(self) -> Path:
        return self._folder.parent

    @property
    def resolver(self) -> Resolver:
        return self._resolver

    def owns(self, site: str) -> bool | None:
        return self._places.owns(site)

    @contextmanager
    def view(self) -> Iterator[Show]:
        """Whoever shows all partitions shows this one."""

        def show(standing: Standing) -> None:
            self._standing = standing

        yield show

    # ---- the crawl

    def meet(self, frontier: Frontier, known: Known, told: Told) -> "LiveMember":
        self._exchange = Exchange(frontier, known, self._places, told)
        return self

    def begin(self, seeds: Sequence[str]) -> None:
        self._exchange.begin(seeds)

    @property
    def have_grown(self) -> bool:
        return self._places.has_grown

    def post(self, page: int, urls: Sequence[str], links: int) -> None:
        self._exchange.post(page, urls, links)

    def post_again(self, page: int, urls: Sequence[str]) -> None:
        self._exchange.letters.post_again(page, urls)

    def seed(self, url: str, redirects: int, is_wider: bool) -> None:
        self._exchange.seed(url, redirects, is_wider)

    def tell(self, urls: Sequence[str]) -> None:
        self._exchange.letters.tell(urls)

    def ask(self, url: str) -> None:
        self._exchange.letters.ask(url)

    def reply(self, partition: int, url: str, answer: Answer) -> None:
        self._exchange.letters.reply(partition, url, answer)

    def sent(self, batch: int, between: Between) -> None:
        self._exchange.sent(batch, between)

    def committed(self, batch: int) -> None:
        self._exchange.committed(batch)
        self._settling.news.set()

    @property
    def has_news(self) -> bool:
        return self._exchange.has_news

    def rest(self) -> None:
        if self._exchange.has_news:
            self._crawler.outbox.flush()

    def take(self) -> Between:
        return self._exchange.take()

    async def open(self, crawler: Crawler, desk: Desk) -> None:
        self._crawler, self._exchange.letters.desk = crawler, desk
        # Before anything is handed over: what is made by that is not on disk yet.
        parcels = ParcelsOfOneMoment(self._folder, self.after, self._exchange.made)
        self._exchange.handover.open(crawler)
        if self._lead.limited:
            crawler.most_pages = crawler.tally.fetched
        self._reading = Reading(self._folder)
        done = self._exchange.received.get(self._own.partition, 0)
        self._settling = Settling(self._resolver, self._places, self.after, self._deliver, done)
        self._delivery = self._exchange.delivery = Delivery(
            self._own,
            self._places.partitions,
            parcels,
            self._deliver,
            self._exchange.acknowledged,
            self._exchange.received,
            self._exchange.handover.until_taken,
        )
        self.rest()  # what was handed over need not wait
        _, self._port = await self._delivery.listen(self._lead.listen)
        self._tasks = [asyncio.ensure_future(work) for work in (self._obey(), self._settling.run())]
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
        return self._reading.parcels(receiver, number, most)

    def _deliver(self, sender: int, number: int, data: bytes) -> None:
        self._exchange.deliver(sender, number, data, self._crawler.now())
        self._crawler.soon()  # if there is nothing to do, what came in goes to the disk at once: its sender waits for that

    # ---- the coordinator

    async def _obey(self) -> None:
        """Until it is out of reach for too long: then the crawl stops, and can go on later. `Refused`: we are none of its own."""
        seen_at, patience_s = time.monotonic(), _FIRST_S if self._lead.patience_s < inf else inf
        while time.monotonic() - seen_at <= patience_s:
            try:
                await self._follow()
                seen_at, patience_s = time.monotonic(), self._lead.patience_s
            except Refused:
                raise
            except (OSError, ConfigError):
                pass  # nobody there, or not yet
            await asyncio.sleep(_PAUSE_S)
        self.is_lost = True
        self._crawler.stop(INTERRUPTED)

    async def _follow(self) -> None:
        """One line to the coordinator, from its opening to its end."""
        async with asyncio.timeout(CONNECT_S):  # the kernel tries ever more rarely, and for minutes
            reader, writer = await asyncio.open_connection(*self._lead.coordinator)
        line = await greet(reader, writer, self._own, called=True)
        host = self._lead.host or writer.get_extra_info("sockname")[0]
        self._say(line, address=(host, self._port), notes=self._notes)
        # Where no network lies between, a line ends when its other end does; and a command that is stopped by Ctrl-Z is not gone.
        silence_s = _SILENCE_S if self._lead.patience_s < inf else None
        frame: tuple[Kind, bytes] | None = None
        with suppress(TimeoutError):
            while (frame := await _next_order(line, silence_s)) is not None and frame[0] == Kind.ORDER:
                self._order(line, json.loads(frame[1]))
        line.close()
        if frame is not None and frame[0] == Kind.REFUSED:
            raise Refused(f"refused by the coordinator: {frame[1].decode(errors='replace')[:200]}")

    def _order(self, line: Line, order: dict[str, Any]) -> None:
        if "peers" in order:
            self._delivery.reach({int(number): (host, port) for number, (host, port) in order["peers"].items()})
        if "quota" in order:
            self._crawler.most_pages = max(order["quota"], self._crawler.used)
            self._crawler.soon()
        if "count" in order:
            self._answer(line, order["count"])
        if "stop" in order:
            self._crawler.stop(order["stop"])
        if "cut" in order:
            signal.raise_signal(signal.SIGINT)  # as if the user had typed it here, once more: run.py knows what to do

    def _answer(self, line: Line, round_: int) -> None:
        crawler = self._crawler
        quota = int(crawler.most_pages) if self._lead.limited else 0
        holding = Holding(int(crawler.used), quota, crawler.has_pages, crawler.is_ready)
        count = self._exchange.count(crawler.is_idle)
        told = answer(count, holding, crawler.progress(0.0), self._standing)._replace(next_visit_s=crawler.next_visit_s)
        self._say(line, round=round_, answer=told._asdict())

    @staticmethod
    def _say(line: Line, **said: Any) -> None:
        line.send(Kind.STATUS, json.dumps(said).encode())
