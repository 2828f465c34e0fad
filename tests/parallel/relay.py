"""The line between two hosts: it passes packets from one TUN device to the other and back, delays them, loses some, and can be cut.

Run as a process: `python relay.py FD FD DELAY_S LOSS`. Both devices are given open, and the relay does not look into packets. It reads
one order per line from standard input: `cut`, `join`, or `count`, which it answers with a line of JSON. It ends when standard input
does.
"""

import asyncio
import json
import os
import random
import sys
from contextlib import suppress

_MOST_BYTES = 65_536  # bytes of a packet


class Way:
    """One direction, from one device to the other. A packet that is in flight when the line is cut still arrives."""

    def __init__(self, source: int, target: int, delay_s: float, loss: float, seed: int) -> None:
        self._source, self._target, self._delay_s, self._loss = source, target, delay_s, loss
        self._chance = random.Random(seed)
        self.is_cut = False
        self.packets = self.bytes = self.lost = self.cut_off = self.under_way = 0

    def take(self) -> None:
        packet = os.read(self._source, _MOST_BYTES)
        if self.is_cut:
            self.cut_off += 1
        elif self._chance.random() < self._loss:
            self.lost += 1
        else:
            self.under_way += 1
            asyncio.get_running_loop().call_later(self._delay_s, self._pass, packet)

    def _pass(self, packet: bytes) -> None:
        self.under_way -= 1
        self.packets, self.bytes = self.packets + 1, self.bytes + len(packet)
        with suppress(OSError):  # the other device is down, so the packet is lost
            os.write(self._target, packet)

    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("packets", "bytes", "lost", "cut_off", "under_way")}


async def relay(devices: tuple[int, int], delay_s: float, loss: float) -> None:
    loop, orders = asyncio.get_running_loop(), asyncio.StreamReader()
    ways = [Way(*pair, delay_s, loss, seed) for seed, pair in enumerate((devices, devices[::-1]))]
    for device, way in zip(devices, ways, strict=True):
        os.set_blocking(device, False)
        loop.add_reader(device, way.take)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while order := await orders.readline():
        if order == b"count\n":
            print(json.dumps([way.counts() for way in ways]), flush=True)
        for way in ways:
            way.is_cut = {b"cut\n": True, b"join\n": False}.get(order, way.is_cut)


if __name__ == "__main__":
    _, one, other, late_s, lost = sys.argv
    asyncio.run(relay((int(one), int(other)), float(late_s), float(lost)))
