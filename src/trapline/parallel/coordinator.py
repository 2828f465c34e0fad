"""Who leads a crawl of several partitions: tells them where the others are, adds up how they stand, and says when it is over.

It starts and restarts nobody (crew.py), and sees no URL. Goals hold for all partitions together: pages to the page
(quotas.py), bytes and time within a round. If it is gone, partitions stop as soon as their patience ends, and can go on later.
Whoever watches from a second terminal (watching.py) may ask how each stands, and order that there be more of them.
"""

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from trapline.crawl.ends import BYTES, DRAINED, PAGES, SECONDS
from trapline.crawl.records import Progress
from trapline.crawl.standing import Standing, stopping
from trapline.errors import ConfigError, InvariantError
from trapline.parallel import MOST_PROCESSES
from trapline.parallel.answer import NOTHING, Answer, Together, in_numbers
from trapline.parallel.census import Census
from trapline.parallel.quotas import PageBudget
from trapline.parallel.roll import Roll, tell
from trapline.parallel.watching import WATCHER
from trapline.parallel.wire import Address, Kind, Line, Pass, listen

_ROUND_S = 0.5
_SOON_S = 0.05  # to the next round, if somebody waits for it
_STUCK_S = 60.0  # without a page, a parcel or a visit, though there is something to fetch
_LATE_S = 5.0  # the others do not wait longer than that for one that does not answer
COORDINATOR = -1  # among partitions
RESIZED = "resized"  # what stops a crawl that goes on with more partitions


class Limits(NamedTuple):
    """Of all partitions together. Infinity: none."""

    pages: float = math.inf
    bytes: float = math.inf
    seconds: float = math.inf


class Coordinator:
    def __init__(
        self,
        own: Pass,
        partitions: int,
        limits: Limits,
        check_size: Callable[[int], object],
        before: Mapping[int, Progress],
        seconds_before: float = 0.0,
    ) -> None:
        """`check_size`: raises `ConfigError` for a number of partitions that cannot be. `before`: how each stood after earlier runs;
        `seconds_before`: of crawling, in these."""
        self._own = own
        self.members = frozenset(range(partitions))
        self._limits, self._check_size = limits, check_size
        self._before, self._seconds_before = before, seconds_before
        self._census = Census()
        self._counted = asyncio.Event()  # everybody has answered the round, apart from those who are late
        self._owes_since: dict[int, float] = {}  # an answer, if it is missing in the census
        self._budget = PageBudget(int(limits.pages)) if limits.pages < math.inf else None
        self._roll = Roll(self.members)
        self.answers: dict[int, Answer] = {}  # the latest of each
        self._notes: dict[str, None] = {}  # of partitions; one that calls again says the same again
        self.stopped_by = ""
        self.size = partitions  # with which the crawl goes on, if it is stopped as RESIZED
        self.trouble = ""  # for the user, until all partitions are there again
        self._were_there = False  # all of them
        self._began: float | None = None  # when the first was there
        self._done: Sequence[object] = ()  # by each, when that last changed
        self._moved_at = self._looked_at = 0.0

    async def listen(self, host: str) -> Address:
        self._server, address = await listen(host, self._own, self._called)
        return address

    async def lead(self, show: Callable[[Standing], None], together: Together) -> None:
        """Rounds of counting, until it is cancelled: partitions that stop are watched too."""
        while True:
            began = asyncio.get_running_loop().time()
            if self._is_counted:
                self.count()
            with suppress(TimeoutError):
                async with asyncio.timeout(_ROUND_S):
                    await self._counted.wait()
            pause_s = _ROUND_S if self.stopped_by else self._decide()
            answers = list(self.answers.values())
            show(together.standing(self.progress.values(), answers, self.seconds, self.doing, list(self._notes)))
            await asyncio.sleep(max(pause_s - (asyncio.get_running_loop().time() - began), 0.0))

    @property
    def seconds(self) -> float:
        """Of crawling, over all runs."""
        passed_s = asyncio.get_running_loop().time() - self._began if self._began is not None else 0.0
        return self._seconds_before + passed_s

    @property
    def doing(self) -> str:
        """For the user; "": all partitions are there, and crawl."""
        absent = f"{len(self._roll.absent)} of {len(self.members)} partitions"
        if not self.stopped_by:
            if not self._roll.absent:
                return ""
            return self.trouble or (f"out of reach: {absent}" if self._were_there else f"{absent} are starting")
        why = f"to go on with {self.size} partitions" if self.stopped_by == RESIZED else self.stopped_by
        said = stopping(why, sum(one.active for one in self.progress.values()))
        return said if self._were_there else f"{said}; {absent} have still to start"

    @property
    def progress(self) -> dict[int, Progress]:
        """Of every partition, as it says, or else as it was when it last ran."""
        return {number: self._progress_of(number) for number in sorted(self.members)}

    def _progress_of(self, number: int) -> Progress:
        return self.answers[number].progress if number in self.answers else self._before.get(number, NOTHING)

    def is_here(self, partition: int) -> bool:
        return partition not in self._roll.absent

    @property
    def late(self) -> frozenset[int]:
        """Who has not answered for seconds: it is away, or it hangs."""
        now = asyncio.get_running_loop().time()
        return frozenset(number for number in self._census.missing if now - self._owes_since[number] >= _LATE_S)

    def count(self) -> None:
        """Ask all of them how they stand."""
        self._counted.clear()
        now = asyncio.get_running_loop().time()
        self._owes_since |= dict.fromkeys(self.members - self._census.missing, now)
        self._roll.tell_all(count=self._census.begin(self.members))

    def stop(self, why: str) -> None:
        """All partitions; the visits under way come to their end."""
        self.stopped_by = self.stopped_by or why
        self._roll.tell_all(stop=self.stopped_by)

    def interrupt(self, why: str) -> bool:
        """The user wants it to end; asked again, at once. Whether that was asked. `why`: by Ctrl-C, or by SIGTERM."""
        again = self.stopped_by not in ("", RESIZED)
        if again:
            self._roll.tell_all(cut=True)
        elif self.stopped_by:  # it will not go on
            self.stopped_by = why
        self.stop(why)
        return again

    def close(self) -> None:
        self._server.close()
        self._roll.close()

    # ---- what to do

    @property
    def _is_counted(self) -> bool:
        return self._census.missing <= self.late

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
        if self.stopped_by or not self._is_counted:
            return _ROUND_S
        self._check_that_it_moves()
        waits = self._share_out() or all(one.counted.idle for one in self.answers.values())
        return _SOON_S if waits and self._census.is_whole else _ROUND_S

    def _check_that_it_moves(self) -> None:
        """A crawl that does nothing while a page could be fetched would wait for ever: that is a defect, and ends it."""
        now = asyncio.get_running_loop().time()
        done = [(one.progress.pages, one.progress.errors, one.counted) for one in self.answers.values()]
        ready = [number for number, one in self.answers.items() if one.holding.is_ready]
        is_stuck = self._census.is_whole and not any(one.progress.active for one in self.answers.values())
        stood_still = now - self._looked_at > _LATE_S  # the coordinator itself: nobody could tell it anything
        self._looked_at = now
        if not ready or not is_stuck or stood_still or done != self._done:
            self._done, self._moved_at = done, now
        elif now - self._moved_at >= _STUCK_S:
            held = "; ".join(f"partition {number}: {one.holding}" for number, one in sorted(self.answers.items()))
            raise InvariantError(f"nothing was fetched for {_STUCK_S:.0f} s though pages are ready ({held})")

    def _share_out(self) -> bool:
        """Whether quotas change, so that the next round is worth having soon. What one has that has never answered, nobody knows."""
        if self._budget is None or self.answers.keys() != self.members:
            return False
        held = {number: self.answers[number].holding for number in sorted(self.members)}
        orders = self._budget.orders(held, self._census.missing)
        for number, quota in orders.items():
            self._roll.tell(number, quota=quota)
        return bool(orders)

    # ---- who calls

    async def _called(self, line: Line) -> None:
        if line.partition == WATCHER:
            await self._listen_to(line, self._hear_watcher)
            return
        if line.partition not in self.members:
            line.refuse(f"the crawl has no partition {line.partition}")
            return
        self._roll.enter(line)
        await self._listen_to(line, self._hear)
        self._roll.leave(line)

    @staticmethod
    async def _listen_to(line: Line, hear: Callable[[Line, dict[str, Any]], None]) -> None:
        """To its end, or until it says what nobody understands."""
        try:
            while (frame := await line.receive()) is not None and frame[0] == Kind.STATUS:
                hear(line, _read(frame[1]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            reason = f"the coordinator does not understand this ({type(error).__name__})"
            if line.partition == WATCHER:
                tell(line, refused=reason)
            else:
                line.refuse(reason)
        line.close()

    def _hear(self, line: Line, said: dict[str, Any]) -> None:
        if "address" in said:
            self._notes |= {f"partition {line.partition}: {note}": None for note in said.get("notes", ())}
            self._welcome(line, said["address"])
            return
        answer = Answer.read(said["answer"])
        self.answers[line.partition] = answer
        self._census.note(line.partition, said["round"], answer.counted)
        self._owes_since[line.partition] = asyncio.get_running_loop().time()
        if self._is_counted:
            self._counted.set()

    def _welcome(self, line: Line, address: list[Any]) -> None:
        host, port = address
        if not isinstance(host, str) or type(port) is not int or not 0 < port < 1 << 16:
            raise ValueError("no address")
        self._roll.peers[line.partition] = host, port
        self._roll.tell_all(peers=self._roll.peers)
        self._began = self._began or asyncio.get_running_loop().time()
        if not self._roll.absent:
            self.trouble, self._were_there = "", True
        if self._census.round:  # a round that it was not asked in would never be whole
            self.count()
        if self.stopped_by:
            tell(line, stop=self.stopped_by)

    # ---- who watches

    def _hear_watcher(self, line: Line, said: dict[str, Any]) -> None:
        try:
            answer = self._resize(said["resize"]) if "resize" in said else self._status()
        except ConfigError as error:
            answer = {"refused": str(error)}
        tell(line, **answer)

    def _resize(self, partitions: object) -> dict[str, Any]:
        if type(partitions) is not int or not 1 <= partitions <= MOST_PROCESSES:
            raise ConfigError(f"a crawl has 1 to {MOST_PROCESSES} processes")
        if self.stopped_by == RESIZED:
            raise ConfigError(
                f"the crawl is about to go on with {self.size} processes; try again when all of them are there"
            )
        if self.stopped_by:
            raise ConfigError(f"the crawl is ending ({self.stopped_by}), and cannot be resized now")
        if partitions == len(self.members):
            raise ConfigError(f"the crawl has {partitions} processes already")
        self._check_size(partitions)
        self.size = partitions
        self.stop(RESIZED)
        return {"size": partitions}

    def _status(self) -> dict[str, Any]:
        told = {"seconds": self.seconds, "doing": self.doing, "stopped_by": self.stopped_by}
        return {**told, "partitions": [self._status_of(number) for number in sorted(self.members)]}

    def _status_of(self, number: int) -> dict[str, Any]:
        numbers = in_numbers(self._progress_of(number), self.answers.get(number), self.is_here(number))
        return self._roll.status_of(number) | numbers


def _read(body: bytes) -> dict[str, Any]:
    said = json.loads(body)
    if not isinstance(said, dict):
        raise TypeError("no JSON object")
    return said
