"""Who leads a crawl of several partitions: tells them where the others are, adds up how they stand, and says when it is over.

It starts and restarts nobody (processes.py), and sees no URL. Goals hold for all partitions together: pages to the page
(quotas.py), bytes and time within a round. If it is gone, partitions stop as soon as their patience ends, and can go on later.
"""

import asyncio
import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from trapline.crawl.crawler import BYTES, DRAINED, INTERRUPTED, PAGES, SECONDS
from trapline.crawl.standing import Standing
from trapline.errors import ConfigError
from trapline.parallel.answer import Answer, Together
from trapline.parallel.census import Census
from trapline.parallel.delivery import Address
from trapline.parallel.quotas import Holding, shared_out
from trapline.parallel.wire import Kind, Line, Pass, greet

_ROUND_S = 0.5
_SOON_S = 0.05  # to the next round, if somebody waits for it
COORDINATOR = -1  # among partitions


class Limits(NamedTuple):
    """Of all partitions together. Infinity: none."""

    pages: float = math.inf
    bytes: float = math.inf
    seconds: float = math.inf


class Coordinator:
    def __init__(self, crawl: str, token: bytes, partitions: int, limits: Limits, seconds_before: float = 0.0) -> None:
        """`seconds_before`: of crawling, in earlier runs."""
        self._own = Pass(crawl, token, COORDINATOR)
        self.members = frozenset(range(partitions))
        self._limits, self._seconds_before = limits, seconds_before
        self._census = Census()
        self._whole = asyncio.Event()  # everybody has answered the round
        self._lines: dict[int, Line] = {}
        self._peers: dict[int, Address] = {}
        self.answers: dict[int, Answer] = {}  # the latest of each
        self.stopped_by = ""
        self.doing = "starting the partitions"  # for the user; "": they are all there
        self._began: float | None = None  # when they first were

    async def listen(self, host: str, port: int = 0) -> Address:
        self._server = await asyncio.start_server(self._called, host, port)
        name = self._server.sockets[0].getsockname()
        return name[0], name[1]

    async def lead(self, show: Callable[[Standing], None], together: Together) -> None:
        """Rounds of counting, until it is cancelled: partitions that stop are watched too."""
        while True:
            began = asyncio.get_running_loop().time()
            if self._census.is_whole or not self._census.round:
                self._count()
            with suppress(TimeoutError):
                async with asyncio.timeout(_ROUND_S):
                    await self._whole.wait()
            pause_s = _ROUND_S if self.stopped_by else self._decide()
            show(together.standing(list(self.answers.values()), self.seconds, self.doing))
            await asyncio.sleep(max(pause_s - (asyncio.get_running_loop().time() - began), 0.0))

    @property
    def seconds(self) -> float:
        """Of crawling, over all runs."""
        passed_s = asyncio.get_running_loop().time() - self._began if self._began is not None else 0.0
        return self._seconds_before + passed_s

    def stop(self, why: str) -> None:
        """All partitions; the visits under way come to their end."""
        self.stopped_by = self.stopped_by or why
        self._tell(stop=self.stopped_by)

    def interrupt(self) -> None:
        """The user wants it to end; asked again, at once."""
        if self.stopped_by:
            self._tell(cut=True)
        self.stop(INTERRUPTED)

    def close(self) -> None:
        self._server.close()
        for line in self._lines.values():
            line.close()

    # ---- what to do

    def _count(self) -> None:
        self._whole.clear()
        self._tell(count=self._census.begin(self.members))

    def _decide(self) -> float:
        """Stop the crawl if it is over or has enough; share out what is left of it. How long to wait for the next round."""
        progress = [one.progress for one in self.answers.values()]
        if sum(one.pages for one in progress) >= self._limits.pages:
            self.stop(PAGES)
        elif sum(one.bytes for one in progress) >= self._limits.bytes:
            self.stop(BYTES)
        elif self.seconds >= self._limits.seconds:
            self.stop(SECONDS)
        elif self._census.is_over:
            self.stop(DRAINED)
        if self.stopped_by or not self._census.is_whole:
            return _ROUND_S
        waits = self._share_out() or all(one.counted.idle for one in self.answers.values())
        return _SOON_S if waits else _ROUND_S

    def _share_out(self) -> bool:
        """Whether somebody waits for pages."""
        if self._limits.pages == math.inf:
            return False
        held = {
            number: Holding(one.used, int(one.quota), one.counted.idle) for number, one in sorted(self.answers.items())
        }
        for number, quota in shared_out(int(self._limits.pages), held).items():
            self._tell_one(self._lines.get(number), quota=quota)
        return any(one.is_starving for one in held.values())

    # ---- who calls

    def _tell(self, **order: Any) -> None:
        for line in self._lines.values():
            self._tell_one(line, **order)

    @staticmethod
    def _tell_one(line: Line | None, **order: Any) -> None:
        if line is not None:
            line.send(Kind.ORDER, json.dumps(order).encode())

    async def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConfigError, OSError, asyncio.CancelledError):
            line = await greet(reader, writer, self._own, called=False)
            if line.partition not in self.members:
                line.close()
                return
            self._lines[line.partition] = line
            while (frame := await line.receive()) is not None and frame[0] == Kind.STATUS:
                self._hear(line, json.loads(frame[1]))
            line.close()
            if self._lines.get(line.partition) is line:
                del self._lines[line.partition]

    def _hear(self, line: Line, said: dict[str, Any]) -> None:
        if "address" in said:
            self._welcome(line, said["address"])
        else:
            answer = Answer.read(said["answer"])
            self.answers[line.partition] = answer
            self._census.note(line.partition, said["round"], answer.counted)
            if self._census.is_whole:
                self._whole.set()

    def _welcome(self, line: Line, address: list[Any]) -> None:
        host, port = address
        self._peers[line.partition] = host, port
        self._tell(peers=self._peers)
        if self._lines.keys() == self.members:
            self.doing = ""
            self._began = self._began or asyncio.get_running_loop().time()
        if self._census.round:  # a round that it was not asked in would never be whole
            self._count()
        if self.stopped_by:
            self._tell_one(line, stop=self.stopped_by)
