"""Which partitions of a crawl are there: the line to each, since when, and where the others reach it. What the lines are for is the
coordinator's business.
"""

import json
import time
from typing import Any

from trapline.parallel.wire import Address, Kind, Line


def tell(line: Line, **order: Any) -> None:
    line.send(Kind.ORDER, json.dumps(order).encode())


class Roll:
    def __init__(self, members: frozenset[int]) -> None:
        self.members = members
        self.peers: dict[int, Address] = {}  # where each was at last
        self._lines: dict[int, Line] = {}
        self._since = dict.fromkeys(members, time.time())  # each is here, or is not

    @property
    def absent(self) -> frozenset[int]:
        return self.members - self._lines.keys()

    def enter(self, line: Line) -> None:
        """If it has come twice, the older line is none any more."""
        before = self._lines.get(line.partition)
        if before is not None:
            before.close()
        self._lines[line.partition] = line
        self._since[line.partition] = time.time()

    def leave(self, line: Line) -> None:
        if self._lines.get(line.partition) is line:
            del self._lines[line.partition]
            self._since[line.partition] = time.time()

    def tell_all(self, **order: Any) -> None:
        for line in self._lines.values():
            tell(line, **order)

    def tell(self, partition: int, **order: Any) -> None:
        """Nothing, if it is not here."""
        if partition in self._lines:
            tell(self._lines[partition], **order)

    def status_of(self, partition: int) -> dict[str, Any]:
        """For whoever asks how it stands."""
        host = self.peers[partition][0] if partition in self.peers else ""
        here, since = partition in self._lines, self._since[partition]
        return {"partition": partition, "alive": here, "since": since, "host": host}

    def close(self) -> None:
        for line in self._lines.values():
            line.close()
