"""The fetch log of a crawl: what was asked for, when it began and ended, and what came of it; and the log as a Parquet file.

It knows neither who chose the pages nor how long they should have taken. What a row means: docs/simulator.md, "The log".
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.frontier.layout import FAILED, FETCHED, REFUSED, Array
from trapline.graph import Graph
from trapline.graph.strings import NumberedUrls, StoredStrings, Strings
from trapline.output import atomic

RESULTS = {FETCHED: "fetched", FAILED: "failed", REFUSED: "refused"}
ROW_GROUP = 500_000  # rows that a reader must hold at least: 30 MB with URLs of 60 bytes


class Log(NamedTuple):
    """One row a fetch, also a failed one, in order of completion."""

    page: Array  # int32
    visit: Array  # int32: number of the visit, from 0
    start: Array  # of a visit's first row: when the visit began, so that its connection is included
    first_byte: Array
    end: Array
    result: Array  # uint8: FETCHED, FAILED or REFUSED


def log_of(*rows: tuple[float, ...]) -> Log:
    """A log written out: rows of page, visit, start, first byte, end and, if it is not FETCHED, result.

    >>> log_of((7, 0, 0.0, 0.5, 2.0), (9, 1, 0.0, 2.5, 2.5, FAILED)).result.tolist() == [FETCHED, FAILED]
    True
    """
    columns = zip(*((*row, FETCHED)[:6] for row in rows), strict=True) if rows else [()] * 6
    types = (np.int32, np.int32, np.float64, np.float64, np.float64, np.uint8)
    return Log(*(np.array(column, kind) for column, kind in zip(columns, types, strict=True)))


def new_log(rows: int) -> Log:
    return Log(
        page=np.zeros(rows, np.int32),
        visit=np.zeros(rows, np.int32),
        start=np.zeros(rows),
        first_byte=np.zeros(rows),
        end=np.zeros(rows),
        result=np.zeros(rows, np.uint8),
    )


def fetched(log: Log) -> Log:
    """The rows of the pages that came in, each page once."""
    came = log.result == FETCHED
    return log if came.all() else Log(*(column[came] for column in log))


def bytes_of(log: Log, size: Array) -> NDArray[np.int64]:
    """[rows] what each fetch brought: nothing if it failed. `size` has a value for each page, or one for all.

    >>> log = log_of((2, 0, 0.0, 1.0, 1.0, FAILED), (2, 1, 5.0, 6.0, 7.0))
    >>> bytes_of(log, np.array([10.0, 20.0, 30.0])).tolist()
    [0, 30]
    """
    of_page = np.rint(size).astype(np.int64)
    each = of_page[log.page] if len(of_page) > 1 else np.full(len(log.page), of_page[0])
    return np.where(log.result == FETCHED, each, 0)


def write_parquet(
    log: Log, graph: Graph, size: Array, path: str | Path, made_by: Mapping[str, Any] | None = None
) -> None:
    """Write the log for pandas, DuckDB and the like: whole or not at all.

    `made_by` says what made it, by name: the strategy, the rules, the command's options. It becomes the file's
    metadata, each value as JSON, beside Trapline's version.
    """
    import pyarrow.parquet  # type: ignore[import-untyped]  # late: it takes longer than a small crawl

    schema = _schema(graph, made_by or {})
    urls = None if graph.urls is None else _Urls(graph.urls)
    # Times hardly repeat and pages never, so that a dictionary of them would be a second copy. Bytes of equal weight
    # side by side are what zstd finds something in.
    with (
        atomic(path) as file,
        pyarrow.parquet.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=["result"],
            use_byte_stream_split=["end_s", "start_s", "first_byte_s"],
        ) as writer,
    ):
        for rows in _slices(len(log.page)):
            part = Log(*(column[rows] for column in log))
            writer.write_table(pyarrow.table(_columns(part, graph, size, urls), schema=schema))


def _schema(graph: Graph, made_by: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    from trapline import __version__

    fields = {"end_s": pa.float64(), "start_s": pa.float64(), "first_byte_s": pa.float64(), "page": pa.int32()}
    if graph.urls is not None:
        fields["url"] = pa.large_string()
    fields |= {"site": pa.int32(), "visit": pa.int32(), "bytes": pa.int64(), "result": _result_type()}
    about = {"trapline": __version__} | {name: _json(value) for name, value in made_by.items()}
    return pa.schema(list(fields.items()), metadata=about)


def _result_type() -> Any:
    import pyarrow as pa

    return pa.dictionary(pa.int8(), pa.string())


def _json(value: Any) -> str:
    value = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return json.dumps(_finite(value))


def _finite(value: Any) -> Any:
    """Infinity has no JSON, and as a rule it says: no limit."""
    if isinstance(value, Mapping):
        return {str(name): _finite(one) for name, one in value.items()}
    return "no limit" if isinstance(value, float) and not math.isfinite(value) else value


def _slices(rows: int) -> Iterator[slice]:
    for first in range(0, rows, ROW_GROUP):
        yield slice(first, min(first + ROW_GROUP, rows))


def _columns(log: Log, graph: Graph, size: Array, urls: "_Urls | None") -> list[Any]:
    columns = [log.end, log.start, log.first_byte, log.page]
    if urls is not None:
        columns.append(urls.of(log.page))
    return [*columns, graph.site[log.page], log.visit, bytes_of(log, size), _results(log.result)]


def _results(result: Array) -> Any:
    import pyarrow as pa

    known = np.array(list(RESULTS), np.uint8)
    number = np.searchsorted(known, result).astype(np.int8)
    return pa.DictionaryArray.from_arrays(number, list(RESULTS.values()))


class _Urls:
    """URLs of many pages at once: by arrow where they lie in one block of UTF-8, by computation in a generated web,
    else one by one."""

    def __init__(self, urls: Strings) -> None:
        self._urls = urls
        self._block = _block(urls) if isinstance(urls, StoredStrings) else None

    def of(self, pages: Array) -> Any:
        import pyarrow as pa

        if self._block is not None:
            return self._block.take(pa.array(pages))
        if isinstance(self._urls, NumberedUrls):
            return _block(self._urls.at(pages))
        return pa.array([self._urls[page] for page in pages.tolist()], pa.large_string())


def _block(urls: StoredStrings) -> Any:
    import pyarrow as pa

    offsets = np.concatenate(([0], urls.ends)).astype(np.int64)
    block = pa.LargeStringArray.from_buffers(len(urls), pa.py_buffer(offsets), pa.py_buffer(urls.text))
    try:
        block.validate(full=True)
    except pa.ArrowInvalid:  # a byte of it is no UTF-8: one by one, it is replaced
        return None
    return block
