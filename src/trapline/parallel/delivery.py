"""Parcels from partition to partition, sent at least once and delivered exactly once, in order.

A parcel is numbered by its sender, for each receiver from 1. It lies on the sender's disk before it is sent (`Parcels`), and until
the receiver says that it is on the receiver's: `RECEIVED n` means that all up to n are. A line that breaks is opened again, and the
receiver says first how far it has come. A receiver that is slow or away costs its senders nothing but room on their disks.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from trapline.errors import ConfigError
from trapline.parallel.wire import Address, Kind, Line, Pass, greet, listen

_NUMBER = struct.Struct("!Q")
_WINDOW = 32  # parcels under way to one receiver
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
CONNECT_S = 10.0


def surface(task: asyncio.Task[None]) -> None:
    """What nobody expected in a task that nobody waits for is told to whoever runs the loop."""
    if not task.cancelled() and (error := task.exception()) is not None:
        task.get_loop().call_exception_handler({"message": "a line to other partitions", "exception": error})


async def at_once(body: bytes) -> None:
    """A parcel need not wait before it is delivered."""


class Parcels(Protocol):
    """Those on our disk that are not known to be on the receiver's."""

    def after(self, receiver: int, number: int, most: int) -> list[tuple[int, bytes]]:
        """In order, from the first with a larger number on."""


class Delivery:
    """All lines of one partition. `deliver(sender, number, body)` is called once a parcel, in order; `acknowledged(receiver, number)`,
    when the receiver has all parcels up to that one on its disk."""

    def __init__(
        self,
        own: Pass,
        partitions: int,
        parcels: Parcels,
        deliver: Callable[[int, int, bytes], None],
        acknowledged: Callable[[int, int], None],
        received: Mapping[int, int],
        until_taken: Callable[[bytes], Awaitable[None]] = at_once,
    ) -> None:
        """`partitions`: how many there are. `received`: how far each sender's parcels are on our disk. `until_taken`: waits until a parcel
        may be delivered; meanwhile nothing more is read from its sender."""
        self._own, self._parcels, self._until_taken = own, parcels, until_taken
        self._others = frozenset(range(partitions)) - {own.partition}
        self._deliver, self._acknowledged = deliver, acknowledged
        self._delivered, self._committed = dict(received), dict(received)
        self._lines: dict[int, Line] = {}  # on which senders reach us
        self._senders: dict[int, _Sender] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, host: str) -> Address:
        """Take parcels at a free port of the host."""
        self._server, address = await listen(host, self._own, self._called)
        return address

    def reach(self, peers: Mapping[int, Address]) -> None:
        """Where the others are, from now on."""
        for receiver, address in peers.items():
            if receiver == self._own.partition:
                continue
            sender = self._senders.get(receiver)
            if sender is None:
                sender = _Sender(self._own, receiver, address, self._parcels, self._acknowledged)
                self._senders[receiver] = sender
                self._keep(asyncio.ensure_future(sender.run()))
            sender.move(address)

    def more(self) -> None:
        """There are parcels that were not there before."""
        for sender in self._senders.values():
            sender.news.set()

    def committed(self, sender: int, number: int) -> None:
        """The sender's parcels up to this one are on our disk."""
        self._committed[sender] = number
        if line := self._lines.get(sender):
            line.send(Kind.RECEIVED, _NUMBER.pack(number))

    async def close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        for line in self._lines.values():
            line.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(surface)

    # ---- who calls us

    async def _called(self, line: Line) -> None:
        if line.partition not in self._others:
            line.refuse(f"partition {self._own.partition} takes no parcels from {line.partition}")
            return
        before = self._lines.get(line.partition)
        if before is not None:
            before.close()
        self._lines[line.partition] = line
        line.send(Kind.RECEIVED, _NUMBER.pack(self._committed.get(line.partition, 0)))
        await self._take(line)

    async def _take(self, line: Line) -> None:
        sender = line.partition
        while (frame := await line.receive()) is not None:
            kind, body = frame
            if kind != Kind.PARCEL or len(body) < _NUMBER.size:
                break
            (number,) = _NUMBER.unpack_from(body)
            await self._until_taken(body[_NUMBER.size :])
            delivered = self._delivered.get(sender, 0)  # now: it may have come on another line meanwhile
            if number > delivered + 1:
                break  # one is missing: it says so again on a new line
            if number == delivered + 1:
                self._delivered[sender] = number
                self._deliver(sender, number, body[_NUMBER.size :])
        line.close()
        if self._lines.get(sender) is line:
            del self._lines[sender]


class _Sender:
    """The way to one receiver: a line if there is one, and how far the receiver has come."""

    def __init__(
        self,
        own: Pass,
        receiver: int,
        address: Address,
        parcels: Parcels,
        acknowledged: Callable[[int, int], None],
    ) -> None:
        self._own, self._receiver, self._address, self._parcels = own, receiver, address, parcels
        self._acknowledged = acknowledged
        self._has = 0  # all up to this one are on its disk
        self.news = asyncio.Event()
        self._line: Line | None = None

    def move(self, address: Address) -> None:
        if address != self._address:
            self._address = address
            if self._line is not None:
                self._line.close()

    async def run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                if await self._once():
                    pause_s = _FIRST_PAUSE_S
            except (ConfigError, OSError, TimeoutError):
                pass  # nobody there, no partition, or one that has nothing to do with us: perhaps later
            finally:
                if self._line is not None:
                    self._line.close()
                    self._line = None
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _once(self) -> bool:
        """One line, from its opening to its end; whether it ever worked."""
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(*self._address)
        self._line = line = await greet(reader, writer, self._own, called=True)
        if line.partition != self._receiver:  # it has the port that the other had before it died
            return False
        frame = await line.receive()
        if frame is None or frame[0] != Kind.RECEIVED:
            return False
        self._heard(frame[1])
        sending = asyncio.ensure_future(self._send(line, self._has))
        sending.add_done_callback(lambda _: line.close())  # if it fails, all is tried again
        try:
            while (frame := await line.receive()) is not None and frame[0] == Kind.RECEIVED:
                self._heard(frame[1])
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return True

    def _heard(self, body: bytes) -> None:
        (number,) = _NUMBER.unpack(body)
        if number > self._has:
            self._has = number
            self._acknowledged(self._receiver, number)
        self.news.set()

    async def _send(self, line: Line, sent: int) -> None:
        while True:
            self.news.clear()
            room = _WINDOW - (sent - self._has)
            for number, body in self._parcels.after(self._receiver, sent, room) if room > 0 else ():
                line.send(Kind.PARCEL, _NUMBER.pack(number) + body)
                sent = number
                await line.drain()
            await self.news.wait()
