"""The membership of a parallel crawl: which partitions are connected, since when, and where the others reach them. The coordinator decides
what they are sent."""

import json
import time
from typing import Any

from trapline.parallel.transport.wire import Address, FrameKind, SecureStream


def send_order(line: SecureStream, **order: Any) -> None:
    line.send(FrameKind.ORDER, json.dumps(order).encode())


class Membership:
    def __init__(self, members: frozenset[int]) -> None:
        self.members = members
        self.peers: dict[int, Address] = {}  # the last known address of each
        self._lines: dict[int, SecureStream] = {}
        self._since = dict.fromkeys(members, time.time())  # when each connected, or disconnected

    @property
    def absent(self) -> frozenset[int]:
        return self.members - self._lines.keys()

    def enter(self, line: SecureStream) -> None:
        """Add the connection of a partition. It replaces an older connection of the same partition."""
        before = self._lines.get(line.partition)
        if before is not None:
            before.close()
        self._lines[line.partition] = line
        self._since[line.partition] = time.time()

    def leave(self, line: SecureStream) -> None:
        if self._lines.get(line.partition) is line:
            del self._lines[line.partition]
            self._since[line.partition] = time.time()

    def send_order_to_all(self, **order: Any) -> None:
        for line in self._lines.values():
            send_order(line, **order)

    def send_order(self, partition: int, **order: Any) -> None:
        """Send an order to a partition. Does nothing if the partition is not connected."""
        if partition in self._lines:
            send_order(self._lines[partition], **order)

    def status_of(self, partition: int) -> dict[str, Any]:
        """Return the state of a partition's connection, for `trapline parallel status`."""
        host = self.peers[partition][0] if partition in self.peers else ""
        here, since = partition in self._lines, self._since[partition]
        return {"partition": partition, "alive": here, "since": since, "host": host}

    def close(self) -> None:
        for line in self._lines.values():
            line.close()
