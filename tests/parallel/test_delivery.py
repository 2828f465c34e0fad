"""Every message batch is delivered once and in order despite failures, and leaves the sender's disk only when it is on the receiver's."""

import asyncio
import random
from collections import defaultdict

import pytest

from trapline.parallel.transport.delivery import Delivery
from trapline.parallel.transport.wire import Address, FrameKind, Pass, greet

TOKEN = b"token"


class Disk:
    """The durable state of a partition: message batches to send, and the number of the last received one."""

    def __init__(self) -> None:
        self.message_batches: dict[int, dict[int, bytes]] = defaultdict(dict)
        self.received: dict[int, int] = {}
        self.delivered: list[tuple[int, bytes]] = []

    def after(self, receiver: int, number: int, most: int) -> list[tuple[int, bytes]]:
        return sorted(item for item in self.message_batches[receiver].items() if item[0] > number)[:most]


class Partition:
    """A partition that lives until it is killed. A kill loses what it has received and not written."""

    def __init__(self, number: int, disk: Disk) -> None:
        self.number, self.disk, self.unwritten = number, disk, list[tuple[int, int, bytes]]()
        self.delivery = Delivery(
            Pass("crawl", TOKEN, number),
            3,
            disk,
            lambda *batch: self.unwritten.append(batch),
            self.acknowledged,
            disk.received,
        )

    def acknowledged(self, receiver: int, number: int) -> None:
        for one in [one for one in self.disk.message_batches[receiver] if one <= number]:
            del self.disk.message_batches[receiver][one]

    def write(self) -> None:
        for sender, number, body in self.unwritten:
            assert number == self.disk.received.get(sender, 0) + 1
            self.disk.received[sender] = number
            self.disk.delivered.append((sender, body))
        for sender in {sender for sender, _, _ in self.unwritten}:
            self.delivery.committed(sender, self.disk.received[sender])
        self.unwritten.clear()


class Proxy:
    """A proxy between partitions that cuts connections at random places in the stream."""

    def __init__(self, target: Address, dice: random.Random, mean_bytes: float) -> None:
        self.target, self.dice, self.mean_bytes = target, dice, mean_bytes
        self.writers: list[asyncio.StreamWriter] = []

    async def start(self) -> Address:
        self.server = await asyncio.start_server(self.called, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[:2]

    async def called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            theirs, ours = await asyncio.open_connection(*self.target)
        except OSError:
            writer.close()
            return
        left = self.dice.expovariate(1 / self.mean_bytes)
        await asyncio.gather(self.pump(reader, ours, left), self.pump(theirs, writer, left))
        writer.close()
        ours.close()

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: float) -> None:
        while left > 0 and (piece := await reader.read(500)):
            writer.write(piece[: int(left) + 1])
            left -= len(piece)
        writer.close()


async def eventually(condition: object, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("seed", range(4))
def test_broken_connections_and_killed_partitions_lose_and_repeat_nothing(seed: int) -> None:
    async def run() -> None:
        dice = random.Random(seed)
        disks = [Disk() for _ in range(3)]
        parts = [Partition(number, disk) for number, disk in enumerate(disks)]
        expected = {
            (a, b): [f"{a}>{b} {n}".encode() * dice.randrange(1, 60) for n in range(60)]
            for a in range(3)
            for b in range(3)
            if a != b
        }
        proxies = {b: Proxy(await parts[b].delivery.listen("127.0.0.1"), dice, 4000) for b in range(3)}
        peers = {b: await proxy.start() for b, proxy in proxies.items()}
        for part in parts:
            part.delivery.reach(peers)
        made = dict.fromkeys(expected, 0)
        for round_ in range(60):
            for (a, b), bodies in expected.items():
                made[a, b] += 1
                disks[a].message_batches[b][made[a, b]] = bodies[made[a, b] - 1]
            for part in parts:
                part.delivery.more()
            await asyncio.sleep(0.005)
            for part in parts:
                if dice.random() < 0.5:
                    part.write()
            if round_ in (20, 40):
                killed = dice.randrange(3)
                await parts[killed].delivery.close()  # what it had not written is lost
                parts[killed] = Partition(killed, disks[killed])
                proxies[killed].target = await parts[killed].delivery.listen("127.0.0.1")
                parts[killed].delivery.reach(peers)

        def done() -> bool:
            for part in parts:
                part.write()
            return not any(rows for disk in disks for rows in disk.message_batches.values())

        await eventually(done)
        for b, disk in enumerate(disks):
            for a in range(3):
                if a != b:
                    assert [body for sender, body in disk.delivered if sender == a] == expected[a, b]
        for part in parts:
            await part.delivery.close()
        for proxy in proxies.values():
            proxy.server.close()

    asyncio.run(run())


def test_a_batch_leaves_the_disk_only_when_it_is_on_the_receivers_disk() -> None:
    async def run() -> None:
        one, other = Disk(), Disk()
        first, second = Partition(0, one), Partition(1, other)
        await first.delivery.listen("127.0.0.1")
        first.delivery.reach({1: await second.delivery.listen("127.0.0.1")})
        one.message_batches[1][1] = b"batch"
        first.delivery.more()
        await eventually(lambda: second.unwritten)
        await asyncio.sleep(0.05)
        assert one.message_batches[1] == {1: b"batch"}
        second.write()
        await eventually(lambda: not one.message_batches[1])
        await first.delivery.close()
        await second.delivery.close()

    asyncio.run(run())


def test_a_held_batch_is_delivered_once_when_it_is_accepted_and_delays_no_other_sender() -> None:
    """This holds even if the connection breaks meanwhile and the batch arrives again on another one."""

    async def run() -> None:
        disks = [Disk() for _ in range(3)]
        parts = [Partition(number, disk) for number, disk in enumerate(disks)]
        free = asyncio.Event()

        async def until_taken(body: bytes) -> None:
            if body.startswith(b"held"):
                await free.wait()

        parts[2].delivery._until_taken = until_taken
        where = await parts[2].delivery.listen("127.0.0.1")
        disks[0].message_batches[2] = {1: b"first", 2: b"held", 3: b"behind it"}
        disks[1].message_batches[2] = {1: b"of another"}
        for part in parts[:2]:
            await part.delivery.listen("127.0.0.1")
            part.delivery.reach({2: where})
        await eventually(lambda: len(parts[2].unwritten) == 2)
        parts[2].delivery._lines[0].close()
        await eventually(lambda: 0 in parts[2].delivery._lines)
        await asyncio.sleep(0.1)
        assert sorted(body for _, _, body in parts[2].unwritten) == [b"first", b"of another"]
        free.set()
        await eventually(lambda: len(parts[2].unwritten) == 4)
        await asyncio.sleep(0.1)
        assert [body for sender, _, body in parts[2].unwritten if sender == 0] == [b"first", b"held", b"behind it"]
        for part in parts:
            await part.delivery.close()

    asyncio.run(run())


def test_a_partition_of_another_crawl_gets_nothing_and_ours_gets_it_later() -> None:
    """The other partition has the port that ours had before it died."""

    async def run() -> None:
        one = Disk()
        first, second, stranger = Partition(0, one), Partition(1, Disk()), Partition(1, Disk())
        stranger.delivery._own = Pass("another", TOKEN, 1)
        await first.delivery.listen("127.0.0.1")
        one.message_batches[1] = {1: b"batch"}
        first.delivery.reach({1: await stranger.delivery.listen("127.0.0.1")})
        await asyncio.sleep(0.2)
        first.delivery.reach({1: await second.delivery.listen("127.0.0.1")})
        await eventually(lambda: second.unwritten)
        assert not stranger.unwritten and one.message_batches[1]
        for part in (first, second, stranger):
            await part.delivery.close()

    asyncio.run(run())


def test_a_partition_on_the_port_of_another_gets_and_acknowledges_nothing() -> None:
    """It has received more than the right one. If it were taken for the right one, we would delete batches that the right one never
    got."""

    async def run() -> None:
        one, third = Disk(), Disk()
        third.received[0] = 5
        first, other = Partition(0, one), Partition(2, third)
        await first.delivery.listen("127.0.0.1")
        one.message_batches[1] = dict.fromkeys(range(1, 8), b"batch")
        first.delivery.reach({1: await other.delivery.listen("127.0.0.1")})
        first.delivery.more()
        await asyncio.sleep(0.3)
        assert len(one.message_batches[1]) == 7 and not other.unwritten
        await first.delivery.close()
        await other.delivery.close()

    asyncio.run(run())


@pytest.mark.parametrize("number", [0, 3, 99, -1])
def test_batches_from_an_invalid_partition_number_are_refused(number: int) -> None:
    """More batches would have arrived than were sent, and the crawl would never end."""

    async def run() -> None:
        first = Partition(0, Disk())
        where = await first.delivery.listen("127.0.0.1")
        line = await greet(*await asyncio.open_connection(*where), Pass("crawl", TOKEN, number), called=True)
        line.send(FrameKind.BATCH, (1).to_bytes(8, "big") + b"batch")
        frame = await line.receive()
        assert frame is None or frame[0] == FrameKind.REFUSED  # the batch may be in flight when the connection closes
        await asyncio.sleep(0.05)
        assert not first.unwritten and not first.delivery._lines
        line.close()
        await first.delivery.close()

    asyncio.run(run())
