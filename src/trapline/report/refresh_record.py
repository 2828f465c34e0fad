"""What a crawl's page shows of pages fetched again, read from the crawl's folder: how fresh the copies were, what was found, what was told
and who is believed. Bounded, however long the crawl was.

Freshness is as the crawl could see it: of a copy that was looked at again, what the next fetch said of the time between. If the page had
not changed the copy was fresh all along; if it had, at an unknown moment of that time, each as likely as the other. Copies that
nobody has looked at since are taken for fresh, and `looked_at` says how many are not among them. It is too high where pages change several
times between two fetches, for the first of these changes comes early: against testweb's own log, on pages that changed once a
minute and were fetched every half, .86 to .90 instead of .82 to .85.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawl.options import RefreshOptions
from trapline.crawl.store.folder import connect
from trapline.crawl.tally import IS_PAGE
from trapline.parallel.merged import parts_of
from trapline.report.chart import Floats
from trapline.report.trust import Trust, trust_now
from trapline.signals.database import DATABASE

MOMENTS = 200
_BINS = 40  # of time, in which fetches are counted
MOST_TRUST = 500
_FETCH = np.dtype([("page", "i8"), ("at", "f8"), ("changed", "f8")])
Longs = NDArray[np.int64]


class Fresh(NamedTuple):
    """Shares of the copies, at moments at equal distances."""

    seconds: Floats
    fresh: Floats  # those that nobody has looked at since are taken for fresh
    looked_at: Floats


class Fetches(NamedTuple):
    """In bins of time."""

    edges: Floats  # [bins + 1] seconds
    new: Floats
    again: Floats
    changed: Floats


class Told(NamedTuple):
    channel: str
    outcome: str
    signals: int


class Believed(NamedTuple):
    origin: str
    trust: Trust


@dataclass(frozen=True, slots=True)
class RefreshRecord:
    fresh: Fresh
    fetches: Fetches
    signals: list[Told]  # that the crawl heard, or read on pages of its own, since it began
    access_counts: list[Told]  # accesses that it heard of, by page and hour
    at_endpoint: list[Told]  # all that came there
    trust: list[Believed]  # those of whom most was heard first


def refresh_record(folder: Path, database: sqlite3.Connection, told: RefreshOptions) -> RefreshRecord:
    rows = _rows(database)
    end_s = float(database.execute("select coalesce(max(seconds), 0) from progress").fetchone()[0])
    return RefreshRecord(
        fresh=freshness_seen(rows["page"], rows["at"], rows["changed"], end_s),
        fetches=_fetches(rows, end_s),
        signals=_told(database, "signal_total where kind != 'access'"),
        access_counts=_told(database, "signal_total where kind = 'access'"),
        at_endpoint=_at_endpoint(folder),
        trust=_trust(folder, told),
    )


def _rows(database: sqlite3.Connection) -> NDArray[np.void]:
    """Every time that a page was had, by page and time; moments are seconds of crawling."""
    found = database.execute(f"select page, started, changed from fetch where {IS_PAGE} order by page, started")
    rows = np.fromiter(((page, at, np.nan if changed is None else changed) for page, at, changed in found), _FETCH)
    clock = np.array(database.execute("select at, seconds from progress order by rowid").fetchall()).reshape(-1, 2)
    if len(clock):
        first = clock[0, 0] - clock[0, 1]
        at, seconds = np.insert(clock[:, 0], 0, first), np.insert(clock[:, 1], 0, 0.0)
        rows["at"] = np.interp(rows["at"], at, seconds)
    return rows


def freshness_seen(page: Longs, at_s: Floats, changed: Floats, end_s: float) -> Fresh:
    """Rows by page and time; `changed`: 1, 0, or NaN if nobody knows.

    One page, fetched at 0, unchanged at 10, changed at 20: at 15 it was as likely fresh as not.

    >>> seen = freshness_seen(np.zeros(3, int), np.array([0.0, 10.0, 20.0]), np.array([np.nan, 0.0, 1.0]), 20.0)
    >>> np.interp([5.0, 15.0], seen.seconds, seen.fresh).round(2).tolist()
    [1.0, 0.5]
    """
    seconds = np.linspace(0.0, max(end_s, 1e-9), MOMENTS + 1)
    later = np.flatnonzero((page[1:] == page[:-1]) & ~np.isnan(changed[1:])) + 1
    begin, end, is_other = at_s[later - 1], at_s[later], changed[later] == 1.0
    known = _covering(seconds, begin, end, np.ones(len(later)))
    # A copy that is found changed loses its freshness evenly: 1 - (t - begin) / (end - begin), a constant and a slope.
    pace = np.where(is_other, 1.0 / np.maximum(end - begin, 1e-9), 0.0)
    fresh = _covering(seconds, begin, end, 1.0 + begin * pace) - seconds * _covering(seconds, begin, end, pace)
    _, first = np.unique(page, return_index=True)
    copies = np.searchsorted(np.sort(at_s[first]), seconds, side="right")
    looked_at = np.divide(known, copies, out=np.zeros(len(seconds)), where=copies > 0)
    stale = np.divide(known - fresh, copies, out=np.zeros(len(seconds)), where=copies > 0)
    return Fresh(seconds, 1.0 - stale, looked_at)


def _covering(moments: Floats, begin: Floats, end: Floats, amount: Floats) -> Floats:
    """The sum of the amounts of all stretches [begin, end) in which each moment lies."""
    steps = np.zeros(len(moments) + 1)
    np.add.at(steps, np.searchsorted(moments, begin), amount)
    np.add.at(steps, np.searchsorted(moments, end), -amount)
    return np.cumsum(steps)[:-1]


def _fetches(rows: NDArray[np.void], end_s: float) -> Fetches:
    edges = np.linspace(0.0, max(end_s, 1e-9), _BINS + 1)
    is_first = np.diff(rows["page"], prepend=-1) != 0
    at_s, changed = np.minimum(rows["at"], edges[-1]), rows["changed"] == 1.0

    def counted(which: NDArray[np.bool_]) -> Floats:
        return np.histogram(at_s[which], edges)[0].astype(np.float64)

    return Fetches(edges, counted(is_first), counted(~is_first), counted(~is_first & changed))


def _told(database: sqlite3.Connection, rows: str) -> list[Told]:
    added = f"select channel, outcome, sum(signals) from {rows} group by channel, outcome"
    sql = f"{added} order by channel, 3 desc, outcome"
    return [Told(*row) for row in database.execute(sql)]


def _at_endpoint(folder: Path) -> list[Told]:
    """None, if there never was an endpoint; nothing is made here, and nothing is repaired."""
    file = folder / DATABASE
    if not file.is_file():
        return []
    try:
        database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return _told(database, "tally")
        finally:
            database.close()
    except sqlite3.Error:  # another format, or damaged: the endpoint says so, whose file it is
        return []


def _trust(folder: Path, told: RefreshOptions) -> list[Believed]:
    """Of a site that has moved, what its last owner believes."""
    pairs = (pair for part in parts_of(folder) or [folder] for pair in _believed(part, told))
    latest = {(origin, one.channel, one.verified): Believed(origin, one) for origin, one in pairs}
    return sorted(latest.values(), key=lambda one: (-one.trust.heard, one.trust))[:MOST_TRUST]


def _believed(folder: Path, told: RefreshOptions) -> list[tuple[str, Trust]]:
    with closing(connect(folder)) as database:
        origins = dict(database.execute("select id, origin from site"))
    return [(origins.get(one.site, f"site {one.site}"), one) for one in trust_now(folder, told)]
