"""The fetch log of a simulated crawl: each fetch, when it began and ended, and its result; the log as a Parquet file;
and a count of politeness violations in it.

The log does not know who chose the pages, nor how long they should have taken. docs/simulator.md, "The log", defines a row.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import kernel
from trapline.frontier import Rules
from trapline.frontier.layout import FAILED, FETCHED, REFUSED, Array
from trapline.graph import Graph
from trapline.graph.strings import NumberedUrls, StoredStrings, Strings
from trapline.output import atomic

RESULTS = {FETCHED: "fetched", FAILED: "failed", REFUSED: "refused"}
ROW_GROUP = 500_000  # rows that a reader must hold in memory at once: 30 MB with URLs of 60 bytes


class FetchLog(NamedTuple):
    """One row per fetch, failed ones included, in order of completion."""

    page: Array  # int32
    visit: Array  # int32: number of the visit, from 0
    start: Array  # in the first row of a visit: when the visit began, so that the time to connect is included
    first_byte: Array
    end: Array
    result: Array  # uint8: FETCHED, FAILED or REFUSED


def log_of(*rows: tuple[float, ...]) -> FetchLog:
    """Return a log of the given rows: page, visit, start, first byte, end and, if it is not FETCHED, result.

    >>> log_of((7, 0, 0.0, 0.5, 2.0), (9, 1, 0.0, 2.5, 2.5, FAILED)).result.tolist() == [FETCHED, FAILED]
    True
    """
    columns = zip(*((*row, FETCHED)[:6] for row in rows), strict=True) if rows else [()] * 6
    types = (np.int32, np.int32, np.float64, np.float64, np.float64, np.uint8)
    return FetchLog(*(np.array(column, kind) for column, kind in zip(columns, types, strict=True)))


def new_log(rows: int) -> FetchLog:
    return FetchLog(
        page=np.zeros(rows, np.int32),
        visit=np.zeros(rows, np.int32),
        start=np.zeros(rows),
        first_byte=np.zeros(rows),
        end=np.zeros(rows),
        result=np.zeros(rows, np.uint8),
    )


def fetched(log: FetchLog) -> FetchLog:
    """Return the rows of successful fetches; without refetching, each page occurs once."""
    is_fetched = log.result == FETCHED
    return log if is_fetched.all() else FetchLog(*(column[is_fetched] for column in log))


def bytes_of(log: FetchLog, size: Array) -> NDArray[np.int64]:
    """Return the bytes of each fetch: [rows]; 0 if it was not successful. `size` has a value for each page, or one for all.

    >>> log = log_of((2, 0, 0.0, 1.0, 1.0, FAILED), (2, 1, 5.0, 6.0, 7.0))
    >>> bytes_of(log, np.array([10.0, 20.0, 30.0])).tolist()
    [0, 30]
    """
    of_page = np.rint(size).astype(np.int64)
    each = of_page[log.page] if len(of_page) > 1 else np.full(len(log.page), of_page[0])
    return np.where(log.result == FETCHED, each, 0)


def write_parquet(
    log: FetchLog, graph: Graph, size: Array, path: str | Path, made_by: Mapping[str, Any] | None = None
) -> None:
    """Write the log as a Parquet file, for pandas, DuckDB and others. The file is written completely or not at all.

    `made_by` describes the crawl, by name: the strategy, the rules, the command's options. It becomes the file's
    metadata, each value as JSON, together with Trapline's version.
    """
    import pyarrow.parquet  # type: ignore[import-untyped]  # imported late: the import takes longer than a small crawl

    schema = _schema(graph, made_by or {})
    urls = None if graph.urls is None else _Urls(graph.urls)
    # Times hardly repeat and pages never do, so a dictionary of them would be a second copy. zstd compresses times well
    # if bytes of equal significance are side by side.
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
            part = FetchLog(*(column[rows] for column in log))
            writer.write_table(pyarrow.table(_columns(part, graph, size, urls), schema=schema))


def log_table(log: FetchLog, graph: Graph, size: Array, made_by: Mapping[str, Any] | None = None) -> Any:
    """Return the log as a pyarrow table, with the columns of the Parquet file."""
    import pyarrow

    urls = None if graph.urls is None else _Urls(graph.urls)
    return pyarrow.table(_columns(log, graph, size, urls), schema=_schema(graph, made_by or {}))


def _schema(graph: Graph, made_by: Mapping[str, Any]) -> Any:
    from importlib.metadata import version

    import pyarrow as pa

    fields = {"end_s": pa.float64(), "start_s": pa.float64(), "first_byte_s": pa.float64(), "page": pa.int32()}
    if graph.urls is not None:
        fields["url"] = pa.large_string()
    fields |= {"site": pa.int32(), "visit": pa.int32(), "bytes": pa.int64(), "result": _result_type()}
    about = {"trapline": version("trapline")} | {name: _json(value) for name, value in made_by.items()}
    return pa.schema(list(fields.items()), metadata=about)


def _result_type() -> Any:
    import pyarrow as pa

    return pa.dictionary(pa.int8(), pa.string())


def _json(value: Any) -> str:
    value = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return json.dumps(_finite(value))


def _finite(value: Any) -> Any:
    """Replace infinity, which JSON cannot represent, by "no limit", its usual meaning in options."""
    if isinstance(value, Mapping):
        return {str(name): _finite(item) for name, item in value.items()}
    return "no limit" if isinstance(value, float) and not math.isfinite(value) else value


def _slices(rows: int) -> Iterator[slice]:
    for first in range(0, rows, ROW_GROUP):
        yield slice(first, min(first + ROW_GROUP, rows))


def _columns(log: FetchLog, graph: Graph, size: Array, urls: "_Urls | None") -> list[Any]:
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
    """Looks up the URLs of many pages at once: with arrow if they are one block of UTF-8, by computation for a
    generated web, otherwise one by one."""

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
    except pa.ArrowInvalid:  # some URL is not UTF-8: read one by one, its invalid bytes are replaced
        return None
    return block


# ---- The politeness audit: counts violations in a fetch log. It uses the log and the rules, and nothing of the
# frontier, because an audit must not rely on what it checks.
#
# The audit takes a few passes and no sorting, because rows are logged in order of completion and visits are numbered as
# they begin. A log for which that is not true is sorted first.

Floats = NDArray[np.float64]


def politeness_violations(log: FetchLog, site: Array, group: Array, rules: Rules) -> int:
    """Count the visits that began before the delay after an earlier visit to the same site or address had passed, or whose
    own pages overlap. Each visit counts once, however many rules it broke.

    `site[page]` and `group[site]` give the site of a page and the address of a site. A visit is earlier if it began
    earlier, or at the same time with a smaller number; a page of a visit is earlier if it ended earlier. The audit
    cannot check what a log does not record: if w depends on the size of a site, it demands the smaller delay of all
    sites, and it does not check the back-off after failures.
    """
    delay_s = min(rules.delay_s, rules.small_site_delay_s) if rules.small_site_pages else rules.delay_s
    address_delay_s = rules.address_delay_s
    log = _in_order_of_completion(log)
    broken = np.zeros(int(log.visit.max(initial=-1)) + 1, np.bool_)
    ended = _mark_early(log.visit, log.visit, log.start, log.end, 0.0, broken)
    page, begun = np.full(len(ended), -1), np.full(len(ended), np.inf)
    page[log.visit] = log.page
    np.minimum.at(begun, log.visit, log.start)
    visit = _by_begin(np.flatnonzero(page >= 0), begun)
    owner, begun, ended = site[page[visit]], begun[visit], ended[visit]
    _mark_early(owner, visit, begun, ended, delay_s, broken)
    _mark_early(group[owner], visit, begun, ended, address_delay_s, broken)
    return int(np.count_nonzero(broken))


def _in_order_of_completion(log: FetchLog) -> FetchLog:
    if _rises(log.end):
        return log
    order = np.argsort(log.end, kind="stable")
    return FetchLog(*(column[order] for column in log))


def _by_begin(visit: Array, begun: Floats) -> Array:
    return visit if _rises(begun[visit]) else visit[np.argsort(begun[visit], kind="stable")]


def _rises(values: Floats) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _mark_early(owner: Array, visit: Array, start: Floats, end: Floats, delay_s: float, broken: Array) -> Floats:
    """Mark the visits of intervals that begin before the latest end so far of their owner plus the delay. Return the
    latest end of each owner."""
    latest = np.full(int(owner.max(initial=-1)) + 1, -np.inf)
    owner, visit = np.ascontiguousarray(owner, np.int32), np.ascontiguousarray(visit, np.int32)
    mark_early(owner, visit, start, end, delay_s, latest, broken)
    return latest


@kernel("void(int32[::1], int32[::1], float64[::1], float64[::1], float64, float64[::1], boolean[::1])")
def mark_early(
    owner: Array, visit: Array, start: Floats, end: Floats, delay_s: float, latest: Floats, broken: Array
) -> None:
    """Mark early visits in `broken`, going through the intervals in the given order. `latest` becomes the latest end of
    each owner; `delay_s` is the delay in seconds."""
    for at in range(owner.size):
        one = owner[at]
        if start[at] < latest[one] + delay_s:
            broken[visit[at]] = True
        latest[one] = max(latest[one], end[at])
