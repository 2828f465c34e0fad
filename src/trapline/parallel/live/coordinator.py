"""The coordinator of a parallel crawl: it tells the partitions each other's addresses, adds up their progress, and
decides when the crawl is complete.

It does not start partitions (supervisor.py does), and sees no URL. Limits hold for all partitions together: pages
exactly (page_budget.py), bytes and time to within a round. If the coordinator is gone, partitions stop when their
patience ends, and can be resumed later. A command in a second terminal (control.py) may request the status of each
partition, and order more partitions.
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status import CRAWLING, PAUSED, PREPARING, STOPPING, CrawlStatus, stopping
from trapline.crawler.engine.stop_reasons import DRAINED, MAX_BYTES, MAX_PAGES, MAX_TIME
from trapline.errors import ConfigError, InvariantError
from trapline.parallel import MOST_PROCESSES
from trapline.parallel.live.action_relay import ActionRelay
from trapline.parallel.live.control import WATCHER
from trapline.parallel.live.membership import Membership, send_order
from trapline.parallel.live.page_budget import PageBudget
from trapline.parallel.live.partition_report import NOTHING, PartitionReport, Together, in_numbers
from trapline.parallel.live.termination import Termination
from trapline.parallel.transport.wire import Address, FrameKind, Pass, SecureStream, listen

_ROUND_S = 0.5
_SOON_S = 0.05  # time to the next round, if a partition waits for it
_STUCK_S = (
    60.0  # a crawl is stuck after this time without a page, a message batch or a visit, though there are pages to fetch
)
_LATE_S = 5.0  # a round waits no longer than this for a partition that does not answer
COORDINATOR = -1  # its number in the handshake, where partitions have 0 and up
RESIZED = "resized"  # why a crawl stopped that continues with more partitions


class CrawlLimits(NamedTuple):
    """Limits of all partitions together. Infinity: no limit."""

    pages: float = math.inf
    bytes: float = math.inf
    seconds: float = math.inf


class Coordinator:
    def __init__(
        self,
        own: Pass,
        partitions: int,
        limits: CrawlLimits,
        check_size: Callable[[int], object],
        before: Mapping[int, CrawlProgress],
        seconds_before: float = 0.0,
    ) -> None:
        """`check_size`: raises `ConfigError` for an impossible number of partitions. `before`: the progress of each
        partition after earlier runs; `seconds_before`: the crawling time of those runs."""
        self._own = own
        self.members = frozenset(range(partitions))
        self._limits, self._check_size = limits, check_size
        self._before, self._seconds_before = before, seconds_before
        self._termination = Termination()
        self._counted = asyncio.Event()  # all partitions have answered the round, apart from late ones
        self._owes_since: dict[
            int, float
        ] = {}  # since when each partition owes an answer, if it has not answered the round
        self._budget = PageBudget(int(limits.pages)) if limits.pages < math.inf else None
        self._membership = Membership(self.members)
        self.answers: dict[int, PartitionReport] = {}  # the latest answer of each
        self._notes: dict[str, None] = {}  # notes of partitions; a partition that reconnects repeats its notes
        self.restarts: Counter[int] = Counter()  # number of times that each partition died and was started again
        self.stopped_by = ""
        self.size = partitions  # the number of partitions with which the crawl continues, if it was stopped as RESIZED
        self.trouble = ""  # shown to the user until all partitions are connected again
        self._were_there = False  # all partitions were connected at some time
        self._began: float | None = None  # when the first partition connected
        self._done: Sequence[object] = ()  # what each partition had done when that last changed
        self._moved_at = self._looked_at = 0.0
        self.actions: ActionRelay | None = None  # set by its owner; None: the crawl accepts no actions

    async def listen(self, host: str) -> Address:
        self._server, address = await listen(host, self._own, self._called)
        return address

    async def lead(self, show: Callable[[CrawlStatus], None], together: Together) -> None:
        """Count in rounds until cancelled; partitions that are stopping are watched too."""
        while True:
            began = asyncio.get_running_loop().time()
            if self._is_counted:
                self.count()
            with suppress(TimeoutError):
                async with asyncio.timeout(_ROUND_S):
                    await self._counted.wait()
            if self.actions is not None:
                self.actions.poll(self._membership.absent, bool(self.stopped_by), self.interrupt)
            pause_s = _ROUND_S if self.stopped_by else self._decide()
            answers = list(self.answers.values())
            status = together.status(self.progress.values(), answers, self.seconds, self.doing, list(self._notes))
            status = status._replace(phase=self._phase, stopped_by=self.stopped_by, paused=self.is_paused)
            show(status._replace(parts=self._status()["partitions"]))
            await asyncio.sleep(max(pause_s - (asyncio.get_running_loop().time() - began), 0.0))

    @property
    def seconds(self) -> float:
        """Seconds of crawling, over all runs."""
        passed_s = asyncio.get_running_loop().time() - self._began if self._began is not None else 0.0
        return self._seconds_before + passed_s

    @property
    def doing(self) -> str:
        """What the crawl is doing, for the user; "": all partitions are connected, and crawl."""
        absent = f"{len(self._membership.absent)} of {len(self.members)} partitions"
        if not self.stopped_by:
            if not self._membership.absent:
                return "paused" if self.is_paused else ""
            return self.trouble or (f"out of reach: {absent}" if self._were_there else f"{absent} are starting")
        why = f"to continue with {self.size} partitions" if self.stopped_by == RESIZED else self.stopped_by
        text = stopping(why, sum(progress.active for progress in self.progress.values()))
        return text if self._were_there else f"{text}; {absent} have still to start"

    @property
    def _phase(self) -> str:
        if self.stopped_by:
            return STOPPING
        return PREPARING if not self._were_there else PAUSED if self.is_paused else CRAWLING

    @property
    def is_paused(self) -> bool:
        return self.actions is not None and self.actions.is_paused

    @property
    def progress(self) -> dict[int, CrawlProgress]:
        """Progress of every partition: its last answer in this run, or otherwise its state after its last run."""
        return {number: self._progress_of(number) for number in sorted(self.members)}

    def _progress_of(self, number: int) -> CrawlProgress:
        return self.answers[number].progress if number in self.answers else self._before.get(number, NOTHING)

    def is_here(self, partition: int) -> bool:
        return partition not in self._membership.absent

    @property
    def late(self) -> frozenset[int]:
        """Partitions that have not answered for seconds: they are away, or hang."""
        now = asyncio.get_running_loop().time()
        return frozenset(number for number in self._termination.missing if now - self._owes_since[number] >= _LATE_S)

    def count(self) -> None:
        """Begin a round: request a report from all partitions."""
        self._counted.clear()
        now = asyncio.get_running_loop().time()
        self._owes_since |= dict.fromkeys(self.members - self._termination.missing, now)
        self._membership.send_order_to_all(count=self._termination.begin(self.members))

    def stop(self, why: str) -> None:
        """Stop all partitions. Visits under way are finished."""
        self.stopped_by = self.stopped_by or why
        self._membership.send_order_to_all(stop=self.stopped_by)

    def interrupt(self, why: str) -> bool:
        """Stop the crawl for the user; on the second request, stop it at once. Return whether this is the second
        request. `why`: Ctrl-C or SIGTERM."""
        is_second = self.stopped_by not in ("", RESIZED)
        if is_second:
            self._membership.send_order_to_all(cut=True)
        elif self.stopped_by:  # it was RESIZED: the crawl will not continue with more partitions
            self.stopped_by = why
        self.stop(why)
        return is_second

    def close(self) -> None:
        self._server.close()
        self._membership.close()

    # ---- decisions

    @property
    def _is_counted(self) -> bool:
        return self._termination.missing <= self.late

    def _decide(self) -> float:
        """Stop the crawl if it is complete or a limit is reached; otherwise divide what is left of the page budget.
        Return the seconds to the next round."""
        progress = [one.progress for one in self.answers.values()]
        are_enough = sum(one.pages for one in progress) >= self._limits.pages
        if are_enough and not self._has_requisites:
            self.stop(MAX_PAGES)
        elif sum(one.bytes for one in progress) >= self._limits.bytes:
            self.stop(MAX_BYTES)
        elif self.seconds >= self._limits.seconds:
            self.stop(MAX_TIME)
        elif self._termination.is_over and not self.is_paused:  # the user may be about to add seeds
            self.stop(DRAINED)
        if self.stopped_by or not self._is_counted or are_enough:
            return _ROUND_S
        self._check_that_it_moves()
        waits = self._share_out() or all(one.counted.idle for one in self.answers.values())
        return _SOON_S if waits and self._termination.is_whole else _ROUND_S

    @property
    def _has_requisites(self) -> bool:
        """Whether requisites of the fetched pages are left to fetch, or may be."""
        left = [one.requisites_left for one in self.answers.values() if one.requisites_left is not None]
        return bool(left) and not (self._termination.is_still and sum(left) == 0)

    def _check_that_it_moves(self) -> None:
        """Raise `InvariantError` if the crawl does nothing for a minute although a page could be fetched: that is a
        defect, and the crawl would wait for ever."""
        now = asyncio.get_running_loop().time()
        done = [(one.progress.pages, one.progress.errors, one.counted) for one in self.answers.values()]
        ready = [number for number, one in self.answers.items() if one.holding.is_ready]
        is_stuck = self._termination.is_whole and not any(one.progress.active for one in self.answers.values())
        was_suspended = now - self._looked_at > _LATE_S  # the coordinator itself did not run, and received no answers
        self._looked_at = now
        if not ready or not is_stuck or was_suspended or done != self._done:
            self._done, self._moved_at = done, now
        elif now - self._moved_at >= _STUCK_S:
            held = "; ".join(f"partition {number}: {one.holding}" for number, one in sorted(self.answers.items()))
            raise InvariantError(f"nothing was fetched for {_STUCK_S:.0f} s though pages are ready ({held})")

    def _share_out(self) -> bool:
        """Divide the page budget. Return whether quotas change, so that the next round should come soon. Does nothing
        until every partition has answered once, because what it has used is not known before."""
        if self._budget is None or self.answers.keys() != self.members:
            return False
        held = {number: self.answers[number].holding for number in sorted(self.members)}
        orders = self._budget.orders(held, self._termination.missing)
        for number, quota in orders.items():
            self._membership.send_order(number, quota=quota)
        return bool(orders)

    # ---- connections of partitions

    async def _called(self, line: SecureStream) -> None:
        if line.partition == WATCHER:
            await self._listen_to(line, self._receive_from_watcher)
            return
        if line.partition not in self.members:
            line.refuse(f"the crawl has no partition {line.partition}")
            return
        self._membership.enter(line)
        await self._listen_to(line, self._receive)
        self._membership.leave(line)

    @staticmethod
    async def _listen_to(line: SecureStream, receive: Callable[[SecureStream, dict[str, Any]], None]) -> None:
        """Read from a connection until it ends or sends something unintelligible."""
        try:
            while (frame := await line.receive()) is not None and frame[0] == FrameKind.STATUS:
                receive(line, _read(frame[1]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            reason = f"the coordinator does not understand this message ({type(error).__name__})"
            if line.partition == WATCHER:
                send_order(line, refused=reason)
            else:
                line.refuse(reason)
        line.close()

    def _receive(self, line: SecureStream, message: dict[str, Any]) -> None:
        if "address" in message:
            self._notes |= {f"partition {line.partition}: {note}": None for note in message.get("notes", ())}
            self._admit(line, message["address"])
            return
        if "obeyed" in message:
            if self.actions is not None:
                self.actions.answered(line.partition, message["obeyed"])
            return
        answer = PartitionReport.read(message["answer"])
        self.answers[line.partition] = answer
        self._termination.note(line.partition, message["round"], answer.counted)
        self._owes_since[line.partition] = asyncio.get_running_loop().time()
        if self._is_counted:
            self._counted.set()

    def _admit(self, line: SecureStream, address: list[Any]) -> None:
        host, port = address
        if not isinstance(host, str) or type(port) is not int or not 0 < port < 1 << 16:
            raise ValueError("not an address")
        self._membership.peers[line.partition] = host, port
        self._membership.send_order_to_all(peers=self._membership.peers)
        self._began = self._began or asyncio.get_running_loop().time()
        if not self._membership.absent:
            self.trouble, self._were_there = "", True
        if self._termination.round:  # the present round would never be complete: this partition was not asked in it
            self.count()
        if self.actions is not None:
            self.actions.admitted(line.partition)
        if self.stopped_by:
            send_order(line, stop=self.stopped_by)

    def send_control(self, partition: int, action: Mapping[str, Any]) -> None:
        """Send an action of the user to a partition."""
        self._membership.send_order(partition, control=action)

    # ---- connections of watchers

    def _receive_from_watcher(self, line: SecureStream, message: dict[str, Any]) -> None:
        try:
            answer = self._resize(message["resize"]) if "resize" in message else self._status()
        except ConfigError as error:
            answer = {"refused": str(error)}
        send_order(line, **answer)

    def _resize(self, partitions: object) -> dict[str, Any]:
        if type(partitions) is not int or not 1 <= partitions <= MOST_PROCESSES:
            raise ConfigError(f"the number of processes must be from 1 to {MOST_PROCESSES}")
        if self.stopped_by == RESIZED:
            raise ConfigError(
                f"the crawl is about to continue with {self.size} processes; try again when all of them are connected"
            )
        if self.stopped_by:
            raise ConfigError(f"the crawl is ending ({self.stopped_by}), and cannot be resized now")
        if partitions == len(self.members):
            raise ConfigError(f"the crawl already has {partitions} processes; give a larger number")
        self._check_size(partitions)
        self.size = partitions
        self.stop(RESIZED)
        return {"size": partitions}

    def _status(self) -> dict[str, Any]:
        crawl = {"seconds": self.seconds, "doing": self.doing, "stopped_by": self.stopped_by}
        return {**crawl, "partitions": [self._status_of(number) for number in sorted(self.members)]}

    def _status_of(self, number: int) -> dict[str, Any]:
        numbers = in_numbers(self._progress_of(number), self.answers.get(number), self.is_here(number))
        return self._membership.status_of(number) | numbers | {"restarts": self.restarts[number]}


def _read(body: bytes) -> dict[str, Any]:
    message = json.loads(body)
    if not isinstance(message, dict):
        raise TypeError("not a JSON object")
    return message
