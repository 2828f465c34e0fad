"""The record of refetched pages: the freshness of copies, changes, signals and trust, read from the crawl's folder.

The size of the record is bounded, however long the crawl was.

Freshness is what the crawl could observe: the next fetch of a page says something about the time since the previous
fetch. If the page had not changed, the copy was fresh all the time. If it had changed, the moment is unknown, and all
moments of that time are taken as equally likely. Copies that were not fetched again are taken as fresh; `looked_at` is
the share of the others. The result is too high if pages change several times between two fetches, because the first of
these changes comes early: compared with testweb's own log, for pages that changed once a minute and were fetched every
half minute, it was .86 to .90 instead of .82 to .85.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.crawler.engine.options import RefreshOptions
from trapline.crawler.engine.row_kinds import IS_FETCHED
from trapline.crawler.files.layout import connect
from trapline.crawler.files.reading import Reading
from trapline.crawler.files.resume import refresher_of
from trapline.parallel.folder.merged import parts_of
from trapline.refresh.core.layout import PolicyView
from trapline.refresh.live.explain import DuePages
from trapline.refresh.live.refresher import Refresher
from trapline.refresh.policies.trust import MISSED, believed, is_struck_out, kept_share, precision_of
from trapline.report.chart import Floats
from trapline.signals.database import DATABASE
from trapline.signals.inbox import CHANNELS

# ---- Trust in the channels of each site, as numbers for people, as of the last commit.
#
# This part reads the state of a crawl's refresher and changes nothing; the formulas are those of
# refresh/policies/trust.py. The report, `explain` and benchmarks use it.


class Trust(NamedTuple):
    """The trust in one channel of one site. Old outcomes lose weight slowly, so the counts are not whole numbers."""

    site: int
    channel: str
    verified: bool  # its senders have proved that the site is theirs
    signals: int  # number of all signals, counted or ignored
    judged_by: float  # fetches that came after exactly one of its signals
    confirmed: float  # those of them that found something new
    precision: float  # expected share of its signals that are true
    recall: float  # expected share of updates that it signals
    struck_out: bool  # its signals are ignored
    promised: float  # announced moments that have passed, weighted by their probabilities
    kept: float  # those of them at which there was an update
    kept_share: float  # expected share of announced moments at which there is an update

    @property
    def is_judged(self) -> bool:
        """Whether any signal or announcement was ever tested. Otherwise the trust is a first guess."""
        return self.judged_by > 0.0 or self.promised > 0.0

    @property
    def outcomes(self) -> tuple[float, float, float]:
        """The number of tests, the number of those that were right, and the expected share of right ones.

        These are for signals or, if no signal was ever tested, for announced moments.
        """
        by_signals = self.judged_by > 0.0 or not self.promised
        return (self.judged_by, self.confirmed, self.precision) if by_signals else self[-3:]


def trust_of(refresher: Refresher) -> list[Trust]:
    """Return the trust in all channels, ordered by site and channel."""
    view = PolicyView(*refresher.memory.state[: len(PolicyView._fields)])
    rows = range(1, int(view.run[0].rows))
    return sorted(_trust_row(view, row) for row in rows if view.trust[row].site >= 0)


def trust_now(folder: Path, options: RefreshOptions) -> list[Trust]:
    """Return the trust in all channels as of the last commit of the crawl."""
    return trust_of(refresher_now(folder, options))


def refresher_now(folder: Path, options: RefreshOptions) -> Refresher:
    """Return the refresher as of the last commit of the crawl."""
    with closing(Reading(folder)) as reading:
        return refresher_of(reading, options)


def _trust_row(view: PolicyView, row: int) -> Trust:
    trust: Any = view.trust[row]
    parent: Any = view.trust[trust.parent]
    odds = believed(trust.surprises, trust.expected, parent.surprises, parent.expected, MISSED)
    return Trust(
        site=int(trust.site),
        channel=CHANNELS[trust.channel] if trust.channel < len(CHANNELS) else f"channel {trust.channel}",
        verified=not trust.unverified,
        signals=int(trust.received),
        judged_by=float(trust.prompted),
        confirmed=float(trust.confirmed),
        precision=float(precision_of(view, row)),
        recall=float(1.0 / (1.0 + odds)),
        struck_out=bool(is_struck_out(view, row)),
        promised=float(trust.promised),
        kept=float(trust.kept),
        kept_share=float(kept_share(view, row)),
    )


# ---- The record.

MOMENTS = 200
_BINS = 40  # bins of time in which fetches are counted
MOST_TRUST = 500
_MOST_DUE = 25
_FETCH = np.dtype([("page", "i8"), ("at", "f8"), ("changed", "f8")])
Longs = NDArray[np.int64]


class Fresh(NamedTuple):
    """Shares of the copies at evenly spaced moments."""

    seconds: Floats
    fresh: Floats  # including copies that were not fetched again
    looked_at: Floats  # copies that were fetched again later


class FetchBins(NamedTuple):
    """Numbers of fetches in bins of time."""

    edges: Floats  # [bins + 1] seconds
    new: Floats
    refetches: Floats
    changed: Floats  # refetches that found a change


class SignalCount(NamedTuple):
    channel: str
    outcome: str
    signals: int


class Believed(NamedTuple):
    origin: str
    trust: Trust


class DuePage(NamedTuple):
    url: str
    copied_at: float  # when it was last fetched, in seconds since 1970
    signals: int  # since then
    value: float  # in the policy's unit or, if the policy has due times, the seconds for which the page has been due


class Due(NamedTuple):
    """Pages that are due to be refetched, as of the last commit."""

    pages: int  # all pages that are refetched
    due: int  # worth as much as pages that were refetched lately or, if the policy has due times, due now
    signalled: int  # a signal has come since they were fetched
    failed: int  # wait after a failure
    by_time: bool  # whether the policy has due times
    best: list[DuePage]


@dataclass(frozen=True, slots=True)
class RefreshRecord:
    fresh: Fresh
    fetches: FetchBins
    signals: list[SignalCount]  # taken from the inbox, or read on the crawl's own pages, since the crawl began
    access_counts: list[SignalCount]  # access counts taken in, by page and hour
    at_endpoint: list[SignalCount]  # all that the endpoint received
    trust: list[Believed]  # those with the most signals first
    due: Due


def refresh_record(folder: Path, database: sqlite3.Connection, options: RefreshOptions) -> RefreshRecord:
    rows, parts = _rows(database), _parts(folder, options)
    end_s = float(database.execute("select coalesce(max(seconds), 0) from progress").fetchone()[0])
    return RefreshRecord(
        fresh=freshness_seen(rows["page"], rows["at"], rows["changed"], end_s),
        fetches=_fetches(rows, end_s),
        signals=_signal_counts(database, "signal_total where kind != 'access'"),
        access_counts=_signal_counts(database, "signal_total where kind = 'access'"),
        at_endpoint=_at_endpoint(folder),
        trust=_trust(parts),
        due=_due(parts),
    )


def _rows(database: sqlite3.Connection) -> NDArray[np.void]:
    """Return all successful fetches, ordered by page and time. Times are seconds of crawling."""
    found = database.execute(f"select page, started, changed from fetch where {IS_FETCHED} order by page, started")
    rows = np.fromiter(((page, at, np.nan if changed is None else changed) for page, at, changed in found), _FETCH)
    clock = np.array(database.execute("select at, seconds from progress order by rowid").fetchall()).reshape(-1, 2)
    if len(clock):
        first = clock[0, 0] - clock[0, 1]
        at, seconds = np.insert(clock[:, 0], 0, first), np.insert(clock[:, 1], 0, 0.0)
        rows["at"] = np.interp(rows["at"], at, seconds)
    return rows


def freshness_seen(page: Longs, at_s: Floats, changed: Floats, end_s: float) -> Fresh:
    """Compute the observed freshness from fetches ordered by page and time. `changed`: 1, 0, or NaN if it is not known.

    Example: a page is fetched at 0, unchanged at 10 and changed at 20. At 15 it was fresh with a probability of one half.

    >>> seen = freshness_seen(np.zeros(3, int), np.array([0.0, 10.0, 20.0]), np.array([np.nan, 0.0, 1.0]), 20.0)
    >>> np.interp([5.0, 15.0], seen.seconds, seen.fresh).round(2).tolist()
    [1.0, 0.5]
    """
    seconds = np.linspace(0.0, max(end_s, 1e-9), MOMENTS + 1)
    later = np.flatnonzero((page[1:] == page[:-1]) & ~np.isnan(changed[1:])) + 1
    begin, end, is_other = at_s[later - 1], at_s[later], changed[later] == 1.0
    known = _covering(seconds, begin, end, np.ones(len(later)))
    # The freshness of a copy that is found changed falls evenly: 1 - (t - begin) / (end - begin), a constant and a slope.
    pace = np.where(is_other, 1.0 / np.maximum(end - begin, 1e-9), 0.0)
    fresh = _covering(seconds, begin, end, 1.0 + begin * pace) - seconds * _covering(seconds, begin, end, pace)
    _, first = np.unique(page, return_index=True)
    copies = np.searchsorted(np.sort(at_s[first]), seconds, side="right")
    looked_at = np.divide(known, copies, out=np.zeros(len(seconds)), where=copies > 0)
    stale = np.divide(known - fresh, copies, out=np.zeros(len(seconds)), where=copies > 0)
    return Fresh(seconds, 1.0 - stale, looked_at)


def _covering(moments: Floats, begin: Floats, end: Floats, amount: Floats) -> Floats:
    """Return for each moment the sum of the amounts of all intervals [begin, end) that contain it."""
    steps = np.zeros(len(moments) + 1)
    np.add.at(steps, np.searchsorted(moments, begin), amount)
    np.add.at(steps, np.searchsorted(moments, end), -amount)
    return np.cumsum(steps)[:-1]


def _fetches(rows: NDArray[np.void], end_s: float) -> FetchBins:
    edges = np.linspace(0.0, max(end_s, 1e-9), _BINS + 1)
    is_first = np.diff(rows["page"], prepend=-1) != 0
    at_s, changed = np.minimum(rows["at"], edges[-1]), rows["changed"] == 1.0

    def counted(which: NDArray[np.bool_]) -> Floats:
        return np.histogram(at_s[which], edges)[0].astype(np.float64)

    return FetchBins(edges, counted(is_first), counted(~is_first), counted(~is_first & changed))


def _signal_counts(database: sqlite3.Connection, rows: str) -> list[SignalCount]:
    added = f"select channel, outcome, sum(signals) from {rows} group by channel, outcome"
    sql = f"{added} order by channel, 3 desc, outcome"
    return [SignalCount(*row) for row in database.execute(sql)]


def _at_endpoint(folder: Path) -> list[SignalCount]:
    """Return the counts of the endpoint; empty if there never was one. This neither creates nor repairs its database."""
    file = folder / DATABASE
    if not file.is_file():
        return []
    try:
        database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return _signal_counts(database, "tally")
        finally:
            database.close()
    except sqlite3.Error:  # another format, or damaged: the endpoint owns the file and reports that
        return []


class _Part(NamedTuple):
    """The crawl, or one of its partitions."""

    folder: Path
    refresher: Refresher


def _parts(folder: Path, options: RefreshOptions) -> list[_Part]:
    return [_Part(part, refresher_now(part, options)) for part in parts_of(folder) or [folder]]


def _trust(parts: Sequence[_Part]) -> list[Believed]:
    """Return the trust in all partitions. If a site moved between partitions, the trust of its last owner counts."""
    pairs = (pair for part in parts for pair in _believed(part))
    latest = {(origin, trust.channel, trust.verified): Believed(origin, trust) for origin, trust in pairs}
    return sorted(latest.values(), key=lambda row: (-row.trust.signals, row.trust))[:MOST_TRUST]


def _believed(part: _Part) -> list[tuple[str, Trust]]:
    with closing(connect(part.folder)) as database:
        origins = dict(database.execute("select id, origin from site"))
    return [(origins.get(trust.site, f"site {trust.site}"), trust) for trust in trust_of(part.refresher)]


def _due(parts: Sequence[_Part]) -> Due:
    found = [part.refresher.due(_MOST_DUE) for part in parts]
    best = [page for part, due in zip(parts, found, strict=True) for page in _due_pages(part, due)]
    return Due(
        pages=sum(due.pages for due in found),
        due=sum(due.due for due in found),
        signalled=sum(due.signalled for due in found),
        failed=sum(due.failed for due in found),
        by_time=any(part.refresher.policy.still for part in parts),
        best=sorted(best, key=lambda page: -page.value)[:_MOST_DUE],
    )


def _due_pages(part: _Part, due: DuePages) -> Iterator[DuePage]:
    with closing(connect(part.folder)) as database:
        for page, value in zip(due.best, due.values, strict=True):
            (url,) = database.execute("select url from page where id = ?", (page,)).fetchone()
            known = part.refresher.explain(page, part.refresher.now)
            yield DuePage(url, known["last_crawl"], known["signals"], value)
