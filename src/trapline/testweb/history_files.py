"""A web's history, and a log of it, as files that freshness is measured from: no web and no crawler is asked again.

The history has a row for each page's beginning and one for each of its updates. Both are CSV or Parquet, by their names. What is not such a
file is a `ConfigError` with its name.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trapline.errors import ConfigError
from trapline.testweb.freshness import Accesses, Fetches, History, history_of
from trapline.testweb.log_files import write_rows
from trapline.testweb.web import Web

COLUMNS = ("host", "path", "level", "version", "at")
_FETCH = ("arrived", "arrival_s", "end_s", "host", "path", "status", "version")
Keys = dict[tuple[str, str], int]
"""the page of a host and a path"""


def write_history(web: Web, end: float, path: Path) -> None:
    """Up to the moment `end`, in seconds since 1970."""
    import pyarrow as pa  # type: ignore[import-untyped]  # late: it takes longer than a small web

    schema = pa.schema(zip(COLUMNS, [*[pa.string()] * 3, pa.int32(), pa.float64()], strict=True))
    write_rows(_rows(web, end - web.began), schema, path)


def _rows(web: Web, end_s: float) -> Iterator[tuple[str, str, str, int, float]]:
    history = history_of(web, end_s)
    for page in range(web.pages):
        born_s = float(history.born_s[page])
        moments = [born_s, *history.at_s[history.offsets[page] : history.offsets[page + 1]].tolist()]
        version = web.version(page, web.began + born_s)
        about = web.names[web.site[page]], web.paths[page], str(history.level[page])
        yield from ((*about, version + more, web.began + at_s) for more, at_s in enumerate(moments))


def read_history(path: Path) -> tuple[History, Keys, float]:
    """The history, its pages, and when the web began, in seconds since 1970."""
    table = _table(path, COLUMNS)
    keys: Keys = {}
    names = zip(table["host"], table["path"], strict=True)
    page = np.array([keys.setdefault(name, len(keys)) for name in names], np.int64)
    if not keys:
        raise ConfigError(f"{path}: no pages in it")
    at = np.array(table["at"], np.float64)
    began = float(at.min())
    first = np.flatnonzero(np.diff(page, prepend=-1))
    if len(first) != len(keys):
        raise ConfigError(f"{path}: the rows of a page must stand together")
    later = np.diff(page, prepend=-1) == 0
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page[later], minlength=len(keys)))]).astype(np.int64)
    return History(offsets, at[later] - began, at[first] - began, np.array(table["level"])[first]), keys, began


def read_fetches(path: Path, keys: Keys, began: float) -> Fetches:
    """Of a log as `trapline testweb --log` writes it; requests for what is no page of the history are left out."""
    table = _table(path, _FETCH)
    page = [keys.get(name, -1) for name in zip(table["host"], table["path"], strict=True)]
    columns = [np.array(table[name]) for name in ("arrived", "arrival_s", "end_s", "status", "version")]
    arrived, arrival_s, end_s, status, version = columns
    counted = (np.array(page, np.int64) >= 0) & (version >= 0) & np.isin(status, (200, 304))
    asked_s = arrived[counted] - began
    had_s = asked_s + (end_s - arrival_s)[counted]
    return Fetches(np.array(page, np.int64)[counted], asked_s, had_s, status[counted], version[counted])


def read_accesses(path: Path, keys: Keys, began: float) -> Accesses:
    """Rows of seconds since 1970, a tab and a URL; those of other pages are left out."""
    from urllib.parse import urlsplit

    pages, moments = list[int](), list[float]()
    for number, line in enumerate(_lines(path), 1):
        moment, tab, url = line.partition("\t")
        try:
            at, parts = float(moment), urlsplit(url.strip())
        except ValueError:
            tab = ""
        if not tab:
            raise ConfigError(f"{path}, line {number}: not `seconds since 1970<tab>URL`")
        target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        if (page := keys.get((parts.hostname or "", target))) is not None:
            pages.append(page)
            moments.append(at - began)
    return Accesses(np.array(pages, np.int64), np.array(moments))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not text'}") from None


def _table(path: Path, columns: tuple[str, ...]) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.csv  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    read = pyarrow.parquet.read_table if path.suffix.lower() == ".parquet" else pyarrow.csv.read_csv
    try:
        table = read(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except pa.ArrowInvalid:
        raise ConfigError(f"{path}: neither CSV nor Parquet that can be read") from None
    if missing := [name for name in columns if name not in table.column_names]:
        raise ConfigError(f"{path}: no column {missing[0]}; it must have {', '.join(columns)}")
    return {name: table[name].to_pylist() for name in columns}
