"""Delivery of message batches between partitions: sent at least once, delivered exactly once, in order.

The sender numbers its batches from 1, separately for each receiver. A batch is on the sender's disk before it is sent
(`MessageBatches`), and stays there until the receiver acknowledges that the batch is on the receiver's disk: `RECEIVED
n` means that all batches up to n are. The sender reopens a connection that breaks, and the receiver then first says
which batch it received last. A receiver that is slow or away costs its senders nothing but space on their disks.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

from trapline.errors import ConfigError
from trapline.parallel.transport.wire import Address, FrameKind, Pass, SecureStream, greet, listen

# ---- The batches on our disk that wait for their receivers, and the check that our folder and a receiver's folder are
# from the same time.
#
# A folder that was restored from an older copy does not know of batches that others have received, or has not received
# batches that others have deleted since. Nothing can repair that, and to continue would lose links silently or wait for
# ever. The check is made when a receiver first says which batch it received last: all that it received from us must
# have been made before this run began, and the batch that follows must still be on our disk.

Read = Callable[[int, int, int], list[tuple[int, bytes]]]


def are_of_one_moment(received: int, made: int, waiting: int | None) -> bool:
    """Return whether the folders of a receiver and a sender are from the same time.

    `received`: the number of batches that the receiver has. `made`: the number of batches that the sender has made.
    `waiting`: the number of the first later batch that the sender still has; None: it has none."""
    return received <= made and (made + 1 if waiting is None else waiting) == received + 1


class ConsistentBatches:
    """The `MessageBatches` of a `Delivery`, with the check that each receiver's folder is from the same time as ours."""

    def __init__(self, folder: Path, read: Read, made: Mapping[int, int]) -> None:
        """`read`: reads batches from the disk. `made`: the number of batches made for each receiver when this run began."""
        self._folder, self._read, self._made = folder, read, dict(made)
        self._checked: set[int] = set()  # receivers

    def after(self, receiver: int, number: int, most: int) -> list[tuple[int, bytes]]:
        """Return nothing for a receiver whose folder is from another time, and report the error to the event loop's
        exception handler."""
        found = self._read(receiver, number, most)
        if receiver not in self._checked:
            made = self._made.get(receiver, 0)
            if not are_of_one_moment(number, made, found[0][0] if found else None):
                self._surface(receiver, number, made)
                return []
            self._checked.add(receiver)
        return found

    def _surface(self, receiver: int, has: int, made: int) -> None:
        other = self._folder.with_name(f"partition-{receiver}")
        line = (
            f"{self._folder}: it and {other.name} are not from the same time ({has} message batches arrived there of {made} made here): "
            "restore all partitions from copies that were taken together, or start a new crawl in another folder"
        )
        context = {"message": "the folders of two partitions", "exception": ConfigError(line)}
        asyncio.get_running_loop().call_exception_handler(context)


# ---- delivery

_NUMBER = struct.Struct("!Q")
_WINDOW = 32  # batches sent to one receiver and not acknowledged yet
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
CONNECT_S = 10.0


def surface(task: asyncio.Task[None]) -> None:
    """Report an unexpected error of a task that nobody awaits to the event loop's exception handler."""
    if not task.cancelled() and (error := task.exception()) is not None:
        task.get_loop().call_exception_handler({"message": "a connection to other partitions", "exception": error})


async def at_once(body: bytes) -> None:
    """Let a batch be delivered without waiting."""


class MessageBatches(Protocol):
    """The batches on our disk that their receivers have not acknowledged yet."""

    def after(self, receiver: int, number: int, most: int) -> list[tuple[int, bytes]]:
        """Return up to `most` batches for the receiver whose numbers are larger than `number`, in order."""


class Delivery:
    """All connections of one partition. Calls `deliver(sender, number, body)` once for each batch, in order, and
    `acknowledged(receiver, number)` when the receiver has all batches up to that number on its disk."""

    def __init__(
        self,
        own: Pass,
        partitions: int,
        message_batches: MessageBatches,
        deliver: Callable[[int, int, bytes], None],
        acknowledged: Callable[[int, int], None],
        received: Mapping[int, int],
        until_taken: Callable[[bytes], Awaitable[None]] = at_once,
    ) -> None:
        """`partitions`: how many there are. `received`: the number of the last batch from each sender that is on our
        disk. `until_taken`: waits until a batch may be delivered; until then nothing more is read from the sender."""
        self._own, self._message_batches, self._until_taken = own, message_batches, until_taken
        self._others = frozenset(range(partitions)) - {own.partition}
        self._deliver, self._acknowledged = deliver, acknowledged
        self._delivered, self._committed = dict(received), dict(received)
        self._lines: dict[int, SecureStream] = {}  # connections that senders opened to us, by sender
        self._senders: dict[int, _Sender] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, host: str) -> Address:
        """Accept batches at a free port of the host."""
        self._server, address = await listen(host, self._own, self._called)
        return address

    def reach(self, peers: Mapping[int, Address]) -> None:
        """Set the current addresses of the other partitions."""
        for receiver, address in peers.items():
            if receiver == self._own.partition:
                continue
            sender = self._senders.get(receiver)
            if sender is None:
                sender = _Sender(self._own, receiver, address, self._message_batches, self._acknowledged)
                self._senders[receiver] = sender
                self._keep(asyncio.ensure_future(sender.run()))
            sender.move(address)

    def more(self) -> None:
        """Send new batches, which are on disk now."""
        for sender in self._senders.values():
            sender.news.set()

    def committed(self, sender: int, number: int) -> None:
        """Acknowledge the sender's batches up to this number: they are on our disk."""
        self._committed[sender] = number
        if line := self._lines.get(sender):
            line.send(FrameKind.RECEIVED, _NUMBER.pack(number))

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

    # ---- connections from senders

    async def _called(self, line: SecureStream) -> None:
        if line.partition not in self._others:
            line.refuse(f"partition {self._own.partition} accepts no message batches from partition {line.partition}")
            return
        before = self._lines.get(line.partition)
        if before is not None:
            before.close()
        self._lines[line.partition] = line
        line.send(FrameKind.RECEIVED, _NUMBER.pack(self._committed.get(line.partition, 0)))
        await self._take(line)

    async def _take(self, line: SecureStream) -> None:
        sender = line.partition
        while (frame := await line.receive()) is not None:
            kind, body = frame
            if kind != FrameKind.BATCH or len(body) < _NUMBER.size:
                break
            (number,) = _NUMBER.unpack_from(body)
            await self._until_taken(body[_NUMBER.size :])
            # Read only now: the batch may have arrived over another connection during the wait.
            delivered = self._delivered.get(sender, 0)
            if number > delivered + 1:
                break  # a batch is missing: on a new connection the sender learns which one comes next
            if number == delivered + 1:
                self._delivered[sender] = number
                self._deliver(sender, number, body[_NUMBER.size :])
        line.close()
        if self._lines.get(sender) is line:
            del self._lines[sender]


class _Sender:
    """Sends batches to one receiver: holds the connection, if it is open, and the number of the last acknowledged batch."""

    def __init__(
        self,
        own: Pass,
        receiver: int,
        address: Address,
        message_batches: MessageBatches,
        acknowledged: Callable[[int, int], None],
    ) -> None:
        self._own, self._receiver, self._address, self._message_batches = own, receiver, address, message_batches
        self._acknowledged = acknowledged
        self._has = 0  # all batches up to this number are on the receiver's disk
        self.news = asyncio.Event()
        self._line: SecureStream | None = None

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
                pass  # nobody listens there, or not a partition, or one of another crawl: try again later
            finally:
                if self._line is not None:
                    self._line.close()
                    self._line = None
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _once(self) -> bool:
        """Open a connection and use it until it ends. Return whether it ever worked."""
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(*self._address)
        self._line = line = await greet(reader, writer, self._own, called=True)
        if line.partition != self._receiver:  # another partition took over the port after the receiver died
            return False
        frame = await line.receive()
        if frame is None or frame[0] != FrameKind.RECEIVED:
            return False
        self._note_received(frame[1])
        sending = asyncio.ensure_future(self._send(line, self._has))
        sending.add_done_callback(lambda _: line.close())  # if sending fails, `run` opens a new connection
        try:
            while (frame := await line.receive()) is not None and frame[0] == FrameKind.RECEIVED:
                self._note_received(frame[1])
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return True

    def _note_received(self, body: bytes) -> None:
        (number,) = _NUMBER.unpack(body)
        if number > self._has:
            self._has = number
            self._acknowledged(self._receiver, number)
        self.news.set()

    async def _send(self, line: SecureStream, sent: int) -> None:
        while True:
            self.news.clear()
            room = _WINDOW - (sent - self._has)
            for number, body in self._message_batches.after(self._receiver, sent, room) if room > 0 else ():
                line.send(FrameKind.BATCH, _NUMBER.pack(number) + body)
                sent = number
                await line.drain()
            await self.news.wait()
