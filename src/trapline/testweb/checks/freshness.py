"""Freshness of a crawler's copies of a changing web, measured from the web's own log and history, never from the crawler.

The crawler gets a copy when the last bytes of an answer of 200 or 304 are sent. The copy holds the page as it was when the
request arrived, and is fresh until the page's next update. Freshness is the share of time in a window in which a page's copy
is fresh, with each page weighted by how often it is accessed: the share of fresh pages that a reader finds whose accesses
are a Poisson process. Pages that were never fetched are not fresh. A page that is born later counts from its birth on. Times
are seconds since the web was started.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.testweb.server.log import RequestLog, write_rows
from trapline.testweb.web.served_web import ServedWeb

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ZIPF = 0.85  # exponent of accesses over pages: xu, table 2
_POPULARITY = 13  # number of the random stream
_COUNTED = (200, 304)


class ChangeHistory(NamedTuple):
    """Updates of all pages, at least up to the end of the window."""

    offsets: Ints
    """[pages + 1] where the updates of each page begin in `at_s`"""
    at_s: Floats
    born_s: Floats
    """[pages]"""
    level: NDArray[np.str_]
    """[pages] level of the page's provider"""


class FetchTimes(NamedTuple):
    """Fetches whose answer was sent completely, or confirmed the client's copy; in any order."""

    page: Ints
    requested_s: Floats
    """when the request arrived"""
    sent_s: Floats
    """when the last bytes of the answer were sent"""
    status: Ints
    version: Ints

    def rows(self, chosen: Ints) -> "FetchTimes":
        page, requested_s, sent_s, status, version = self
        return FetchTimes(page[chosen], requested_s[chosen], sent_s[chosen], status[chosen], version[chosen])


class AccessTimes(NamedTuple):
    """Accesses of readers to pages, in any order."""

    page: Ints
    at_s: Floats


@dataclass(frozen=True, slots=True)
class CopyFreshness:
    """Freshness of the pages of one level, or of all pages. A share of nothing is 0."""

    pages: int
    fetched: int
    """number of pages with a copy at the end"""
    updates: int
    """number of updates in the window; the next three count in the window too"""
    fetches: int
    confirmed: int
    """number of fetches that were answered by 304"""
    useful: int
    """number of fetches that brought a version other than the one before"""
    binary: float
    """share of the time in which pages exist"""
    binary_of_copies: float
    """share of the time in which there is a copy"""
    binary_at_accesses: float | None = None
    """share of the given accesses that find a fresh copy"""


def history_of(web: ServedWeb, end_s: float) -> ChangeHistory:
    born_s = np.array(web.changes.born_s) if web.changes else np.zeros(web.pages)
    updates = web.changes.until(end_s) if web.changes else (np.zeros(web.pages + 1, np.int64), np.zeros(0))
    return ChangeHistory(*updates, born_s, np.array([web.level(site) for site in web.site]))


def fetches_of(log: RequestLog) -> FetchTimes:
    counted = (log.version >= 0) & np.isin(log.status, _COUNTED)
    since_s = log.wall - log.web.began
    columns = log.page[counted], log.status[counted], log.version[counted]
    page, status, version = (column.astype(np.int64) for column in columns)
    return FetchTimes(page, log.arrival_s[counted] + since_s, log.end_s[counted] + since_s, status, version)


def popularity(pages: int, zipf: float = ZIPF, seed: int = 0) -> Floats:
    """Return each page's share of all accesses, by Zipf's law. The order of the pages is random."""
    weight = np.arange(1, pages + 1, dtype=np.float64) ** -zipf
    return np.random.default_rng((seed, _POPULARITY)).permutation(weight / weight.sum())


def freshness(
    history: ChangeHistory,
    fetches: FetchTimes,
    weights: Floats,
    begin_s: float,
    end_s: float,
    accesses: AccessTimes | None = None,
) -> dict[str, CopyFreshness]:
    """Return the freshness in [begin_s, end_s) by level of provider, and under the name "all" that of all pages."""
    if not begin_s < end_s:
        raise ConfigError(
            f"freshness: the window from {begin_s:g} s to {end_s:g} s is empty; it must end after it begins"
        )
    measured = _Measured(history, fetches, weights, begin_s, end_s, accesses)
    every = np.ones(len(weights), bool)
    levels = {level: history.level == level for level in sorted(set(history.level.tolist()))}
    return {name: measured.of(chosen) for name, chosen in {"all": every, **levels}.items()}


class _Measured:
    """Measurements per page, fetch and access, before they are added up by level."""

    def __init__(
        self,
        history: ChangeHistory,
        fetches: FetchTimes,
        weights: Floats,
        begin_s: float,
        end_s: float,
        accesses: AccessTimes | None,
    ) -> None:
        order = np.lexsort((fetches.sent_s, fetches.page))
        fetches = fetches.rows(order)
        until_s = _next_updates(history, fetches.page, fetches.requested_s)
        self._weights, self._accesses = weights, accesses
        self._updates = _in_window(history, begin_s, end_s)
        self._there_s = np.clip(end_s - np.maximum(history.born_s, begin_s), 0.0, None)
        self._fresh_s, self._copied_s = np.zeros(len(weights)), np.zeros(len(weights))
        for page, sent_s, fresh_until_s in _by_page(fetches, until_s):
            self._fresh_s[page] = _covered(sent_s, fresh_until_s, begin_s, end_s)
            self._copied_s[page] = max(0.0, end_s - max(sent_s[0], begin_s))
        self._found = _found_fresh(fetches, until_s, accesses) if accesses else None
        now = (begin_s <= fetches.sent_s) & (fetches.sent_s < end_s)
        self._page, self._new, self._status = fetches.page[now], _news(fetches)[now], fetches.status[now]

    def of(self, chosen: NDArray[np.bool_]) -> CopyFreshness:
        weights, rows = self._weights * chosen, chosen[self._page]
        fresh = float(weights @ self._fresh_s)
        return CopyFreshness(
            pages=int(chosen.sum()),
            fetched=int((self._copied_s[chosen] > 0).sum()),
            updates=int(self._updates[chosen].sum()),
            fetches=int(rows.sum()),
            confirmed=int((self._status[rows] == 304).sum()),
            useful=int(self._new[rows].sum()),
            binary=_share(fresh, float(weights @ self._there_s)),
            binary_of_copies=_share(fresh, float(weights @ self._copied_s)),
            binary_at_accesses=self._at_accesses(chosen),
        )

    def _at_accesses(self, chosen: NDArray[np.bool_]) -> float | None:
        if self._accesses is None or self._found is None:
            return None
        rows = chosen[self._accesses.page]
        return _share(float(self._found[rows].sum()), float(rows.sum()))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _in_window(history: ChangeHistory, begin_s: float, end_s: float) -> Ints:
    """Return the number of updates of each page in the window."""
    page = np.repeat(np.arange(len(history.born_s)), np.diff(history.offsets))
    now = (begin_s <= history.at_s) & (history.at_s < end_s)
    return np.bincount(page[now], minlength=len(history.born_s))


def _next_updates(history: ChangeHistory, pages: Ints, after_s: Floats) -> Floats:
    """Return the first update of each page after its time in `after_s`; infinity if none is known."""
    found = np.full(len(pages), np.inf)
    for row, (page, moment) in enumerate(zip(pages.tolist(), after_s.tolist(), strict=True)):
        own = history.at_s[history.offsets[page] : history.offsets[page + 1]]
        at = int(np.searchsorted(own, moment, "right"))
        if at < len(own):
            found[row] = own[at]
    return found


def _by_page(fetches: FetchTimes, until_s: Floats) -> Iterator[tuple[int, Sequence[float], Sequence[float]]]:
    """Yield each page, the times at which its copies arrived, ascending, and until when each copy is fresh."""
    cuts = np.flatnonzero(np.diff(fetches.page, prepend=-1)).tolist()
    for begin, end in pairwise([*cuts, len(fetches.page)]):
        yield int(fetches.page[begin]), fetches.sent_s[begin:end].tolist(), until_s[begin:end].tolist()


def _covered(sent_s: Sequence[float], until_s: Sequence[float], begin_s: float, end_s: float) -> float:
    """Return the seconds of the window in which some copy is fresh."""
    covered, reached_s = 0.0, begin_s
    for sent, until in zip(sent_s, until_s, strict=True):
        fresh_from, fresh_to = max(sent, reached_s), min(until, end_s)
        if fresh_to > fresh_from:
            covered += fresh_to - fresh_from
            reached_s = fresh_to
    return covered


def _news(fetches: FetchTimes) -> NDArray[np.bool_]:
    """Return whether each fetch brought another version than the page's fetch before. The first fetch always did."""
    same = (np.diff(fetches.page, prepend=-1) == 0) & (np.diff(fetches.version, prepend=-1) == 0)
    return ~same


def _found_fresh(fetches: FetchTimes, until_s: Floats, accesses: AccessTimes) -> NDArray[np.bool_]:
    """Return whether each access finds a fresh copy: one that had arrived by then and was not outdated by an update."""
    copies = {page: (sent, until) for page, sent, until in _by_page(fetches, until_s)}
    found = np.zeros(len(accesses.page), bool)
    for row, (page, at_s) in enumerate(zip(accesses.page.tolist(), accesses.at_s.tolist(), strict=True)):
        sent, until = copies.get(page, ((), ()))
        found[row] = any(begin <= at_s < end for begin, end in zip(sent, until, strict=True))
    return found


# ---- Files of a web's history and log. They are enough to measure freshness; the web and the crawler are no longer needed.
#
# The history has a row for each page's beginning and one for each of its updates. Both files are CSV or Parquet, by their names. Any
# other file raises a `ConfigError` with its name.

COLUMNS = ("host", "path", "level", "version", "at")
_FETCH = ("arrived", "arrival_s", "end_s", "host", "path", "status", "version")
Keys = dict[tuple[str, str], int]
"""the page for each pair of host and path"""


def write_history(web: ServedWeb, end: float, path: Path) -> None:
    """Write the history of a web up to the time `end`, in seconds since 1970."""
    import pyarrow as pa  # type: ignore[import-untyped]  # late: importing it takes longer than serving a small web

    schema = pa.schema(zip(COLUMNS, [*[pa.string()] * 3, pa.int32(), pa.float64()], strict=True))
    write_rows(_rows(web, end - web.began), schema, path)


def _rows(web: ServedWeb, end_s: float) -> Iterator[tuple[str, str, str, int, float]]:
    history = history_of(web, end_s)
    for page in range(web.pages):
        born_s = float(history.born_s[page])
        moments = [born_s, *history.at_s[history.offsets[page] : history.offsets[page + 1]].tolist()]
        version = web.version(page, web.began + born_s)
        about = web.names[web.site[page]], web.paths[page], str(history.level[page])
        yield from ((*about, version + more, web.began + at_s) for more, at_s in enumerate(moments))


def read_history(path: Path) -> tuple[ChangeHistory, Keys, float]:
    """Return the history, its pages by host and path, and when the web was started, in seconds since 1970."""
    table = _table(path, COLUMNS)
    keys: Keys = {}
    names = zip(table["host"], table["path"], strict=True)
    page = np.array([keys.setdefault(name, len(keys)) for name in names], np.int64)
    if not keys:
        raise ConfigError(f"{path}: has no pages")
    at = np.array(table["at"], np.float64)
    began = float(at.min())
    first = np.flatnonzero(np.diff(page, prepend=-1))
    if len(first) != len(keys):
        raise ConfigError(f"{path}: the rows of a page must be consecutive")
    later = np.diff(page, prepend=-1) == 0
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page[later], minlength=len(keys)))]).astype(np.int64)
    return ChangeHistory(offsets, at[later] - began, at[first] - began, np.array(table["level"])[first]), keys, began


def read_fetches(path: Path, keys: Keys, began: float) -> FetchTimes:
    """Read the fetches from a log that `trapline testweb --log` wrote, without requests for URLs not in the history."""
    table = _table(path, _FETCH)
    page = [keys.get(name, -1) for name in zip(table["host"], table["path"], strict=True)]
    columns = [np.array(table[name]) for name in ("arrived", "arrival_s", "end_s", "status", "version")]
    arrived, arrival_s, end_s, status, version = columns
    counted = (np.array(page, np.int64) >= 0) & (version >= 0) & np.isin(status, (200, 304))
    requested_s = arrived[counted] - began
    sent_s = requested_s + (end_s - arrival_s)[counted]
    return FetchTimes(np.array(page, np.int64)[counted], requested_s, sent_s, status[counted], version[counted])


def read_accesses(path: Path, keys: Keys, began: float) -> AccessTimes:
    """Read accesses: rows of seconds since 1970, a tab and a URL. URLs that are not in the history are ignored."""
    from urllib.parse import urlsplit

    pages, moments = list[int](), list[float]()
    for number, line in enumerate(_lines(path), 1):
        moment, tab, url = line.partition("\t")
        try:
            at, parts = float(moment), urlsplit(url.strip())
        except ValueError:
            tab = ""
        if not tab:
            raise ConfigError(f"{path}, line {number}: write seconds since 1970, a tab, and a URL")
        target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        if (page := keys.get((parts.hostname or "", target))) is not None:
            pages.append(page)
            moments.append(at - began)
    return AccessTimes(np.array(pages, np.int64), np.array(moments))


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
        raise ConfigError(f"{path}: cannot be read, neither CSV nor Parquet") from None
    if missing := [name for name in columns if name not in table.column_names]:
        raise ConfigError(
            f"{path}: has no column named {missing[0]!r}; give a file with the columns {', '.join(columns)}"
        )
    return {name: table[name].to_pylist() for name in columns}
