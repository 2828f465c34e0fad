"""The server's own log: one row for each request, in order of arrival.

The server writes into a `Recorder`, 48 bytes a request. Others read a `RequestLog`: arrays, and the web that gives their
numbers names. Times are monotonic seconds; adding `wall` makes them wall-clock seconds. The log knows no rule of politeness
and no crawler.
"""

import csv
import io
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline import __version__
from trapline.errors import ConfigError
from trapline.output import atomic
from trapline.testweb.server.pings import PingCounts
from trapline.testweb.web.paths import ROBOTS_TXT
from trapline.testweb.web.served_web import ServedWeb

_ROW = struct.Struct("<ddqiiiiii")
_TYPES = np.dtype(
    [
        *(("arrival_s", "<f8"), ("end_s", "<f8"), ("size", "<i8")),
        *((name, "<i4") for name in ("connection", "address", "site", "page", "status", "version")),
    ]
)
_NAN = float("nan")


class Columns(NamedTuple):
    """The log in the form in which the server process sends it to its parent."""

    wall: float
    rows: bytes
    other: dict[int, tuple[str, str]]
    pings: PingCounts | None = None


class Recorder:
    """The log under construction, into which the server writes."""

    def __init__(self) -> None:
        self.wall = time.time() - time.monotonic()
        self._rows = bytearray()
        self._other: dict[int, tuple[str, str]] = {}
        self.connections = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

    def connected(self) -> int:
        """Count a new connection; return its number."""
        self.connections += 1
        return self.connections

    def arrived(self, now: float, connection: int, address: int, site: int, page: int) -> int:
        """Record the arrival of a request; return its row."""
        self._rows += _ROW.pack(now, _NAN, 0, connection, address, site, page, 0, -1)
        return len(self) - 1

    def named(self, row: int, host: str, target: str) -> None:
        """Record the host and target of a request that is not for a page."""
        self._other[row] = (host, target)

    def ended(self, row: int, now: float, status: int, size: int, version: int = -1) -> None:
        """Record the end of an answer: its last byte was handed to the kernel, or the connection ended before that."""
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
        """Record arrival and end of a request for a page that was answered at once."""
        self._rows += _ROW.pack(now, end, size, connection, address, site, page, status, version)
        self.bytes += size

    def columns(self) -> Columns:
        return Columns(self.wall, bytes(self._rows), dict(self._other))


@dataclass(frozen=True, eq=False)
class RequestLog:
    """The log of a web for readers: a column for each value, an element for each request."""

    web: ServedWeb
    columns: Columns

    def __len__(self) -> int:
        return len(self.arrival_s)

    @property
    def wall(self) -> float:
        """Seconds to add to a time of this log to get seconds since 1970."""
        return self.columns.wall

    @property
    def pings(self) -> PingCounts:
        """Counts of the pings that were due, by their result."""
        return self.columns.pings or PingCounts()

    @cached_property
    def _rows(self) -> NDArray[Any]:
        return np.frombuffer(self.columns.rows, _TYPES)

    @cached_property
    def arrival_s(self) -> NDArray[np.float64]:
        """When the complete request had arrived."""
        return self._rows["arrival_s"]

    @cached_property
    def end_s(self) -> NDArray[np.float64]:
        """The time just before the last piece of the answer (at most 64 kB) was handed to the kernel, or the end of the
        connection if that came first; NaN if neither has happened yet."""
        return self._rows["end_s"]

    @cached_property
    def connection(self) -> NDArray[np.int32]:
        """Number of the connection, from 1."""
        return self._rows["connection"]

    @cached_property
    def address(self) -> NDArray[np.int32]:
        return self._rows["address"]

    @cached_property
    def site(self) -> NDArray[np.int32]:
        """The site; -1 if the host is none of those at this address."""
        return self._rows["site"]

    @cached_property
    def page(self) -> NDArray[np.int32]:
        """The page, or ROBOTS_FILE, or OTHER."""
        return self._rows["page"]

    @cached_property
    def status(self) -> NDArray[np.int32]:
        """Status of the answer; 0 if there was no answer, or one without a status."""
        return self._rows["status"]

    @cached_property
    def version(self) -> NDArray[np.int32]:
        """Version of the page when the request arrived, if the page was sent completely or confirmed by 304; else -1."""
        return self._rows["version"]

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """Bytes sent, head and body."""
        return self._rows["size"]

    def host(self, row: int) -> str:
        site = int(self.site[row])
        return self.web.names[site] if site >= 0 else self.columns.other[row][0]

    def path(self, row: int) -> str:
        """Return path and query, as requested."""
        page = int(self.page[row])
        if page >= 0:
            return self.web.paths[page]
        return self.columns.other[row][1] if row in self.columns.other else ROBOTS_TXT

    def rows(self) -> Iterator[tuple[float, float, float, int, str, str, str, int, int, int]]:
        """Yield the rows: wall-clock arrival, arrival, end, connection, address, host, path, status, bytes, version."""
        numbers = zip(self.arrival_s.tolist(), self.end_s.tolist(), self.connection.tolist(), strict=True)
        answers = zip(self.status.tolist(), self.size.tolist(), self.version.tolist(), strict=True)
        for row, ((arrival, end, connection), answer) in enumerate(zip(numbers, answers, strict=True)):
            where = self.web.addresses[self.address[row]]
            yield arrival + self.wall, arrival, end, connection, where, self.host(row), self.path(row), *answer


# ---- The log as a file: CSV or Parquet, by its name.

COLUMNS = ("arrived", "arrival_s", "end_s", "connection", "address", "host", "path", "status", "bytes", "version")
_ROWS_AT_ONCE = 100_000


def check_name(path: Path) -> None:
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ConfigError(f"{path}: the name of the file must end in .csv or .parquet")


def write_log(log: RequestLog, path: Path) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]  # late: importing it takes longer than serving a small web

    numbers = [pa.float64()] * 3 + [pa.int32()]
    kinds = [*numbers, *[pa.string()] * 3, pa.int16(), pa.int64(), pa.int32()]
    write_rows(log.rows(), pa.schema(zip(COLUMNS, kinds, strict=True)), path)


def write_rows(rows: Iterable[tuple[Any, ...]], schema: Any, path: Path) -> None:
    """Write rows with the columns of an Arrow schema."""
    check_name(path)
    (_write_parquet if path.suffix.lower() == ".parquet" else _write_csv)(iter(rows), schema, path)


def _write_csv(rows: Iterator[tuple[Any, ...]], schema: Any, path: Path) -> None:
    with atomic(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text)
        writer.writerow(schema.names)
        writer.writerows(rows)
        text.flush()
        text.detach()


def _write_parquet(rows: Iterator[tuple[Any, ...]], schema: Any, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet  # type: ignore[import-untyped]

    named = schema.with_metadata({"trapline": __version__})
    with atomic(path) as file, pyarrow.parquet.ParquetWriter(file, named, compression="zstd") as writer:
        while part := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pa.table([list(column) for column in zip(*part, strict=True)], schema=schema))
