"""The sites of a crawl as a table that the server searches and sorts: for 100,000 sites a browser could do neither fast enough.

`SiteReader` keeps the names and robots.txt answers of one partition, and reads only what is new. `SiteIndex` is the table of one moment; it
never changes, so orders are computed once. A site of partition p has the id p * 2^32 + its number there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.files import site_table
from trapline.crawler.files.layout import DATABASE
from trapline.crawler.files.reading import IS_UNREACHABLE
from trapline.crawler.files.site_table import EMPTY, STATES, SiteTable
from trapline.dashboard.folder_reader import created_of, finite, reading

PER_PARTITION = 2**32
ABANDONED, BLOCKED = "abandoned", "blocked"
ALL_STATES = (*STATES, ABANDONED, BLOCKED)
_ABANDONED, _BLOCKED = len(STATES), len(STATES) + 1
_DELAYED = tuple(STATES.index(state) for state in ("site_delay", "address_delay", "back_off"))
_COLUMNS = ("waiting", "known", "delay_s", "response_s", "connection_s", "requests", "per_connection", "failures")
SORTS = (
    *("origin", "waiting", "fetched", "known", "next_visit_at", "delay_s", "response_s", "connection_s", "requests"),
    *("failures", "robots", "budget", "state"),
)
FILTERS = ("", *ALL_STATES, "waiting", "delayed", "failing", "robots")
_NOT_REQUESTED = -1  # in place of the status of a robots.txt

Array = NDArray[Any]


class Abandoned(NamedTuple):
    at: float
    kind: str
    why: str


class RobotsFiles:
    """The last answer to a request of each site's robots.txt."""

    def __init__(self) -> None:
        self._last = 0  # row of the table `robots`
        self.row = np.zeros(0, np.int64)  # by site; 0: none
        self.status = np.zeros(0, np.int32)
        self.unreachable = np.zeros(0, np.bool_)
        self.errors: dict[int, str] = {}

    def read(self, database: Any, sites: int) -> None:
        self._grow(sites)
        sql = f"select seq, site, status, error, {IS_UNREACHABLE} from robots where seq > ? order by seq"
        rows = [row for row in database.execute(sql, (self._last,)) if row[1] < sites]
        if not rows:
            return
        seqs, of, statuses, errors, unreachable = zip(*rows, strict=True)
        place = np.array(of)
        # A site may have several rows: numpy keeps the last of them.
        self.row[place], self.status[place], self.unreachable[place] = seqs, statuses, np.array(unreachable, np.bool_)
        self.errors |= {site: error for site, error in zip(of, errors, strict=True) if error}
        self._last = seqs[-1]

    def _grow(self, sites: int) -> None:
        new = sites - len(self.row)
        self.row = np.concatenate((self.row, np.zeros(new, np.int64)))
        self.status = np.concatenate((self.status, np.full(new, _NOT_REQUESTED, np.int32)))
        self.unreachable = np.concatenate((self.unreachable, np.zeros(new, np.bool_)))

    def text(self, site: int) -> str:
        """Return the status of the answer, or what went wrong; "": it was not requested."""
        status = int(self.status[site])
        return "" if status == _NOT_REQUESTED else str(status) if status else self.errors.get(site, "failed")


class SiteReader:
    """The sites of one partition, or of a crawl of one process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._created = folder, ""
        self.origins: list[str] = []
        self.robots = RobotsFiles()
        self.abandoned: dict[int, Abandoned] = {}
        self.table = EMPTY

    def read(self) -> bool:
        """Read what is new. Return False, and read nothing, if the folder was deleted and has another crawl now."""
        if not (self.folder / DATABASE).exists():
            return not self._created
        with reading(self.folder) as database:
            created = created_of(database)
            if self._created not in ("", created):
                return False
            self._created, self.table = created, site_table.read(self.folder)
            new = database.execute("select origin from site where id >= ? order by id", (len(self.origins),))
            self.origins += [origin for (origin,) in new]
            self.robots.read(database, len(self.origins))
            rows = database.execute("select site, at, kind, why from abandoned_site")
            self.abandoned = {site: Abandoned(*rest) for site, *rest in rows}
        return True


class SiteIndex:
    def __init__(self, readers: Sequence[SiteReader], before: "SiteIndex | None" = None) -> None:
        """Make the table from what the readers have read. `before`: an earlier table, which may have the same names in order."""
        self.readers = tuple(readers)
        self._counts = [len(reader.origins) for reader in readers]
        self.source, self.at, self.took_s = _about([reader.table for reader in readers])
        self._origins = [origin for reader in readers for origin in reader.origins]
        self._rows = _joined([_fitted(reader) for reader in readers])
        self._robots = np.concatenate([reader.robots.status for reader in readers] or [np.zeros(0, np.int32)])
        self._unreachable = np.concatenate([reader.robots.unreachable for reader in readers] or [np.zeros(0, np.bool_)])
        self._shown = self._visible()
        self._orders: dict[tuple[str, bool], Array] = {}
        if before is not None and before._counts == self._counts:
            self._orders = {key: order for key, order in before._orders.items() if key[0] == "origin"}

    def __len__(self) -> int:
        return int(np.count_nonzero(self._shown))

    def page(self, q: str, sort: str, descending: bool, first: int, count: int, only: str = "") -> dict[str, Any]:
        """Return some rows of the sites whose origin contains `q`. Sites without a value come last in both directions."""
        chosen = self._shown & self._filtered(only)
        if q:
            chosen &= self._found(q.lower())
        order = self._order(sort, descending)
        rows = order[chosen[order]]
        return {
            "total": len(self),
            "matching": len(rows),
            "from": first,
            "at": self.at or None,
            "source": self.source,
            "rows": [self._row(row) for row in rows[first : first + count].tolist()],
        }

    def row_of(self, id: int) -> dict[str, Any] | None:
        """Return the row of one site; None: there is none with this id."""
        part, site = divmod(id, PER_PARTITION)
        if not (0 <= part < len(self._counts) and site < self._counts[part]):
            return None
        return self._row(sum(self._counts[:part]) + site)

    def _found(self, q: str) -> Array:
        return np.fromiter((q in origin for origin in self._origins), np.bool_, len(self._origins))

    def _visible(self) -> Array:
        """Return which sites are shown: all, except those that moved to another partition."""
        if len(self.readers) == 1:
            return np.ones(len(self._rows), np.bool_)
        return (self._rows["budget"] != 0) | (self._rows["state"] >= _ABANDONED)

    def _filtered(self, only: str) -> Array:
        rows = self._rows
        if only in ALL_STATES:
            return rows["state"] == ALL_STATES.index(only)
        if only == "waiting":
            return rows["waiting"] > 0
        if only == "delayed":
            return np.isin(rows["state"], _DELAYED)
        if only == "failing":
            return rows["failures"] > 0
        return self._unreachable if only == "robots" else np.ones(len(rows), np.bool_)

    def _order(self, sort: str, descending: bool) -> Array:
        """Return all sites in this order; of equal ones the first in the crawl comes first."""
        if (sort, descending) not in self._orders:
            self._orders[sort, descending] = self._sorted(sort, descending)
        return self._orders[sort, descending]

    def _sorted(self, sort: str, descending: bool) -> Array:
        if sort == "origin":
            places = sorted(range(len(self._origins)), key=self._origins.__getitem__, reverse=descending)
            return np.array(places, np.int64)
        key = self._key(sort)
        return np.argsort(-key if descending else key, kind="stable")

    def _key(self, sort: str) -> Array:
        rows = self._rows
        if sort == "robots":
            return np.where(self._robots == _NOT_REQUESTED, np.nan, self._robots)
        if sort in ("budget", "requests"):
            return np.where(rows[sort] < (0 if sort == "budget" else 1), np.nan, rows[sort])
        names = {"fetched": "taken", "next_visit_at": "next_at"}
        return rows[names.get(sort, sort)].astype(np.float64)

    def _row(self, row: int) -> dict[str, Any]:
        part, site, found = *self._place(row), self._rows[row]
        reader = self.readers[part]
        abandoned = reader.abandoned.get(site)
        values = {name: found[name].item() for name in _COLUMNS}
        cleaned: dict[str, Any] = finite(
            {
                **values,
                "id": part * PER_PARTITION + site,
                "origin": self._origins[row],
                "fetched": int(found["taken"]),
                "next_visit_at": float(found["next_at"]),
                "state": ALL_STATES[found["state"]],
                "reason": _reason(found, abandoned),
                "requests": values["requests"] or None,
                "robots": reader.robots.text(site),
                "budget": None if found["budget"] < 0 else int(found["budget"]),
            }
        )
        return cleaned

    def _place(self, row: int) -> tuple[int, int]:
        """Return the partition of a row, and its site there."""
        part = 0
        while row >= self._counts[part]:
            row -= self._counts[part]
            part += 1
        return part, row


def _about(tables: Sequence[SiteTable]) -> tuple[str, float, float]:
    """Return the source of the tables together, the oldest moment, and the longest time that one of them took."""
    known = [table for table in tables if len(table.rows)]
    if not known:
        return EMPTY.source, 0.0, 0.0
    oldest = min(known, key=lambda table: table.at)
    return oldest.source, oldest.at, max(table.took_s for table in known)


def _fitted(reader: SiteReader) -> Array:
    """Return one row for each known site. The table may have more, which are not committed yet, or fewer."""
    rows = np.zeros(len(reader.origins), site_table.ROW)
    missing = rows[len(reader.table.rows) :]
    for name in ("next_at", "delay_s", "response_s", "connection_s"):
        missing[name] = np.nan
    missing["budget"] = missing["group"] = -1
    count = min(len(rows), len(reader.table.rows))
    rows[:count] = reader.table.rows[:count]
    for site, abandoned in reader.abandoned.items():
        if site < len(rows):
            rows[site]["state"] = _BLOCKED if abandoned.kind == BLOCKED else _ABANDONED
    return rows


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts or [np.zeros(0, site_table.ROW)])


def _reason(found: Any, abandoned: Abandoned | None) -> str:
    if abandoned is not None:
        return abandoned.why
    failures = int(found["failures"])
    return f"after {failures:,} failed visit{'' if failures == 1 else 's'}" if failures else ""
