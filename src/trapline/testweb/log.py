"""The server's own log: one row a request, in order of arrival. It knows no rule of politeness and no crawler.

`Recorder` is what the server writes into, 48 bytes a request; `Log` is what others read, arrays and the web to tell them
in words. Times are monotonic seconds; `wall` adds what makes them wall-clock seconds.
"""

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.testweb.paths import ROBOTS_TXT
from trapline.testweb.pings import PingCounts
from trapline.testweb.web import Web

_ROW = struct.Struct("<ddqiiiiii")
_TYPES = np.dtype(
    [
        *(("arrival_s", "<f8"), ("end_s", "<f8"), ("size", "<i8")),
        *((name, "<i4") for name in ("connection", "address", "site", "page", "status", "version")),
    ]
)
_NAN = float("nan")


class Columns(NamedTuple):
    """The log as it crosses from the server's process to another."""

    wall: float
    rows: bytes
    other: dict[int, tuple[str, str]]
    pings: PingCounts | None = None


class Recorder:
    def __init__(self) -> None:
        self.wall = time.time() - time.monotonic()
        self._rows = bytearray()
        self._other: dict[int, tuple[str, str]] = {}
        self.connections = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

    def connected(self) -> int:
        """The number of a new connection."""
        self.connections += 1
        return self.connections

    def arrived(self, now: float, connection: int, address: int, site: int, page: int) -> int:
        """A request came; its row."""
        self._rows += _ROW.pack(now, _NAN, 0, connection, address, site, page, 0, -1)
        return len(self) - 1

    def named(self, row: int, host: str, target: str) -> None:
        """What was asked for, if it was no page."""
        self._other[row] = (host, target)

    def ended(self, row: int, now: float, status: int, size: int, version: int = -1) -> None:
        """The last byte of its answer was handed to the kernel, or the connection ended before."""
        at = row * _ROW.size
        struct.pack_into("<dq", self._rows, at + 8, now, size)
        struct.pack_into("<ii", self._rows, at + 40, status, version)
        self.bytes += size

    def answered(
        self,
        now: float,
        end: float,
        size: int,
        connection: int,
        address: int,
        site: int,
        page: int,
        status: int,
        version: int,
    ) -> None:
        """All of the three above, for a page that was answered at once."""
        self._rows += _ROW.pack(now, end, size, connection, address, site, page, status, version)
        self.bytes += size

    def columns(self) -> Columns:
        return Columns(self.wall, bytes(self._rows), dict(self._other))


@dataclass(frozen=True, eq=False)
class Log:
    web: Web
    columns: Columns

    def __len__(self) -> int:
        return len(self.arrival_s)

    @property
    def wall(self) -> float:
        """What added to a time of this log makes it seconds since 1970."""
        return self.columns.wall

    @property
    def pings(self) -> PingCounts:
        """What became of those that were due."""
        return self.columns.pings or PingCounts()

    @cached_property
    def _rows(self) -> NDArray[Any]:
        return np.frombuffer(self.columns.rows, _TYPES)

    @cached_property
    def arrival_s(self) -> NDArray[np.float64]:
        """when all of the request had arrived"""
        return self._rows["arrival_s"]

    @cached_property
    def end_s(self) -> NDArray[np.float64]:
        """just before the last piece of the answer (at most 64 kB) was handed to the kernel; if the connection ended before
        that, when it did; NaN: neither yet"""
        return self._rows["end_s"]

    @cached_property
    def connection(self) -> NDArray[np.int32]:
        """numbered from 1"""
        return self._rows["connection"]

    @cached_property
    def address(self) -> NDArray[np.int32]:
        return self._rows["address"]

    @cached_property
    def site(self) -> NDArray[np.int32]:
        """-1: the host is none of those at this address"""
        return self._rows["site"]

    @cached_property
    def page(self) -> NDArray[np.int32]:
        """or ROBOTS_FILE, or OTHER"""
        return self._rows["page"]

    @cached_property
    def status(self) -> NDArray[np.int32]:
        """0: no answer, or none that has one"""
        return self._rows["status"]

    @cached_property
    def version(self) -> NDArray[np.int32]:
        """of the page that was sent whole, or confirmed by 304, as it was when the request arrived; -1: neither"""
        return self._rows["version"]

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """bytes sent, head and body"""
        return self._rows["size"]

    def host(self, row: int) -> str:
        site = int(self.site[row])
        return self.web.names[site] if site >= 0 else self.columns.other[row][0]

    def path(self, row: int) -> str:
        """Path and query, as asked for."""
        page = int(self.page[row])
        if page >= 0:
            return self.web.paths[page]
        return self.columns.other[row][1] if row in self.columns.other else ROBOTS_TXT

    def rows(self) -> Iterator[tuple[float, float, float, int, str, str, str, int, int, int]]:
        """Arrival by the wall clock, arrival, end, connection, address, host, path, status, bytes, version."""
        numbers = zip(self.arrival_s.tolist(), self.end_s.tolist(), self.connection.tolist(), strict=True)
        answers = zip(self.status.tolist(), self.size.tolist(), self.version.tolist(), strict=True)
        for row, ((arrival, end, connection), answer) in enumerate(zip(numbers, answers, strict=True)):
            where = self.web.addresses[self.address[row]]
            yield arrival + self.wall, arrival, end, connection, where, self.host(row), self.path(row), *answer
