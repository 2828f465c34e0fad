"""Moving of evidence from one refresher to another that has the same start, as rows of numbers: reading, checking, writing.

It knows the format, and not why a page moves. Slots, rows of trust and indices of points are local to a refresher, so a row
names a channel (plus `NOT_VERIFIED`), or NOBODY. Queues and timers follow from the evidence and are built again.

    a page     _PAGE | time of its return; NOBODY: it is not away | channel of its signals | the policy's columns | for each point:
               time, p, channel
    a site     the channel that signals its updates | for each row: channel, _TRUST
    all pages  _RUN | popularity by accesses | shares of rates | gaps | totals | row 0: _TRUST | for each channel: channel, _TRUST

The first point of a page has passed, if any point has. The row of all pages is used only for those kinds of numbers of which
the receiving refresher has learned nothing yet.
"""

from collections.abc import Sequence

import numpy as np

from trapline.errors import ConfigError
from trapline.refresh.core.layout import ACCESS_CLASSES, AWAY, GRID, PAGE, POINT, Array, RefreshState
from trapline.refresh.live.channels import ALL_SITES, MOST_CHANNELS, MOST_POINTS, NOT_VERIFIED, Channels
from trapline.refresh.live.memory import Memory

NOBODY = -1.0
_PAGE = (
    "crawled_s",
    "first_signal_s",
    "last_signal_s",
    "joined",
    "accesses",
    "hits",
    "signals",
    "all_signals",
    "crawls",
    "changes",
    "points",
    "level",
    "marks",
    "failures",
    "quality",
)
_TRUST = (
    "prompted",
    "confirmed",
    "expected",
    "surprises",
    "promised",
    "kept",
    "signals",
    "announced",
    "beliefs",
    "believed",
    "received",
)
_POPULARITY, _CRAWLS, _PACE = ("accesses", "next_popularity_update"), ("crawls", "changes"), ("price", "slots_per_s")
_RUN = _POPULARITY + _CRAWLS + _PACE
_HEAD = len(_PAGE) + 2
MOMENTS = 4  # number of times at the beginning of a page's row
_MOST = np.iinfo(np.int32).max  # largest count, and largest time of a crawl in seconds


# ---- reading


def page_row(memory: Memory, page: int) -> Array:
    """Return the row of a page."""
    s, slot = memory.whole, memory.slot(page)
    record = s.page[slot]
    returns = float(record.pos) if record.place == AWAY else NOBODY
    points = s.point[record.point - (record.points > 0) : record.point_end]
    channels = [_channel(s, row) for row in points["row"].tolist()]
    published = np.stack([points["at_s"], points["p"], channels], axis=1).ravel()
    head = [*(float(record[name]) for name in _PAGE), returns, _channel(s, int(record.trust))]
    return np.concatenate([head, s.columns[slot], published])


def site_row(memory: Memory, channels: Channels, site: int) -> Array:
    """Return the row of a site."""
    s = memory.whole
    if site >= len(s.site):
        return np.array([NOBODY])
    rows = [[_channel(s, row), *_outcomes(s, row)] for row in channels.rows_of(site)]
    return np.concatenate([[_channel(s, int(s.site[site].row))], *rows])


def row_of_all(memory: Memory, channels: Channels) -> Array:
    """Return the row of all pages."""
    s, run = memory.whole, memory.whole.run[0]
    rows = [[_channel(s, row), *_outcomes(s, row)] for row in channels.rows_of(ALL_SITES)]
    learned = (s.popular[1], s.guess[ACCESS_CLASSES - 1], s.gaps.ravel(), s.totals)
    return np.concatenate([[float(run[name]) for name in _RUN], *learned, _outcomes(s, 0), *rows])


def _channel(s: RefreshState, row: int) -> float:
    """Return the channel of a row of trust; NOBODY for row 0."""
    if row == 0:
        return NOBODY
    return float(s.trust[row].channel | (NOT_VERIFIED if s.trust[row].unverified else 0))


def _outcomes(s: RefreshState, row: int) -> list[float]:
    return [float(s.trust[row][name]) for name in _TRUST]


# ---- checking


def check_page(memory: Memory, row: Sequence[float]) -> Array:
    """Return the row of a page as an array. Raise ConfigError if it is invalid."""
    given, columns = _numbers(row), memory.whole.columns.shape[1]
    published = len(given) - _HEAD - columns
    _refuse_unless(published >= 0 and published % 3 == 0 and published <= 3 * (MOST_POINTS + 1))
    _refuse_unless(_are_finite(given[:_HEAD], given[_HEAD + columns :]))
    known = dict(zip(_PAGE, given.tolist(), strict=False))
    counts = [known[name] for name in _PAGE if PAGE[name].kind in "iu"]
    _refuse_unless(all(0.0 <= count <= _MOST for count in counts) and known["level"] <= 2.0 and known["marks"] <= 15.0)
    _refuse_unless(known["failures"] <= 60.0 and known["quality"] >= 0.0 and given[len(_PAGE)] <= _MOST)
    _refuse_unless(published > 0 or known["points"] == 0.0)
    _check_channels([given[_HEAD - 1], *given[_HEAD + columns + 2 :: 3]])
    return given


def check_site(row: Sequence[float]) -> Array:
    """Return the row of a site as an array. Raise ConfigError if it is invalid."""
    given, size = _numbers(row), 1 + len(_TRUST)
    _refuse_unless(len(given) % size == 1 and _are_finite(given) and (given[1:].reshape(-1, size)[:, 1:] >= 0.0).all())
    _check_channels([given[0], *given[1::size]])
    _refuse_unless(given[0] == NOBODY or given[0] in given[1::size])
    return given


def check_all(memory: Memory, row: Sequence[float]) -> Array:
    """Return the row of all pages as an array. Raise ConfigError if it is invalid."""
    given, s = _numbers(row), memory.whole
    size, fixed = 1 + len(_TRUST), len(_RUN) + ACCESS_CLASSES + GRID + s.gaps.size + len(s.totals) + len(_TRUST)
    _refuse_unless(len(given) >= fixed and (len(given) - fixed) % size == 0)
    counts, pace = given[: len(_POPULARITY + _CRAWLS)], given[len(_RUN) - 1 : len(_RUN)]
    _refuse_unless(_are_finite(counts, pace, given[fixed - len(_TRUST) :]) and (counts >= 0.0).all() and pace[0] > 0.0)
    channels = given[fixed::size]
    _refuse_unless(((channels >= 0) & (channels < MOST_CHANNELS)).all())
    return given


def _numbers(row: Sequence[float]) -> Array:
    try:
        given = np.array(row, np.float64)
    except (TypeError, ValueError):
        given = np.zeros((0, 0))
    _refuse_unless(given.ndim == 1)
    return given


def _are_finite(*numbers: Array) -> bool:
    """Return whether all numbers are finite. The columns of policies are not checked: they may hold any number."""
    return all(bool(np.isfinite(array).all()) for array in numbers)


def _check_channels(channels: Sequence[float]) -> None:
    _refuse_unless(all(channel == NOBODY or 0 <= channel < 2 * MOST_CHANNELS for channel in channels))


def _refuse_unless(fits: bool | np.bool) -> None:
    if not fits:
        raise ConfigError("the evidence of moved pages is invalid; all partitions must use the same version and policy")


# ---- writing


def put_page(memory: Memory, channels: Channels, slot: int, row: Array) -> None:
    """Write the record of a page, without queueing it. A page that waits after a failure is AWAY."""
    s = memory.whole
    record, site, columns = s.page[slot], memory.site(slot), s.columns.shape[1]
    s.columns[slot] = row[_HEAD : _HEAD + columns]
    _put_points(memory, channels, slot, row[_HEAD + columns :].reshape(-1, 3))
    for name, value in zip(_PAGE, row.tolist(), strict=False):
        record[name] = value
    record.trust = _row(channels, site, row[_HEAD - 1])
    record.point += record.points > 0
    if row[len(_PAGE)] != NOBODY:
        record.place, record.pos = AWAY, int(row[len(_PAGE)])


def _put_points(memory: Memory, channels: Channels, slot: int, published: Array) -> None:
    points = np.zeros(len(published), POINT)
    points["at_s"], points["p"] = published[:, 0], published[:, 1]
    points["row"] = [_row(channels, memory.site(slot), channel) for channel in published[:, 2]]
    memory.put_points(slot, points)  # as if all were ahead; `put_page` then skips the one that has passed


def put_site(memory: Memory, channels: Channels, site: int, row: Array) -> None:
    """Write the outcomes of a site's channels."""
    memory.make_site_room(site)
    for channel, *outcomes in row[1:].reshape(-1, 1 + len(_TRUST)).tolist():
        _put_outcomes(memory, _row(channels, site, channel), outcomes)
    memory.whole.site[site].row = _row(channels, site, float(row[0]))


def put_all(memory: Memory, channels: Channels, row: Array) -> None:
    """Write those kinds of learned numbers of which nothing is known here yet."""
    s, run = memory.whole, memory.whole.run[0]
    sizes = (len(_RUN), ACCESS_CLASSES, GRID, s.gaps.size, len(s.totals), len(_TRUST))
    counts, popular, shares, gaps, totals, of_all, rest = np.split(row, np.cumsum(sizes))
    known = dict(zip(_RUN, counts.tolist(), strict=True))
    if run.accesses == 0 and known["accesses"] > 0:
        s.popular[1], s.guess[ACCESS_CLASSES - 1] = popular, shares
        _set(run, _POPULARITY, known)
    if run.crawls == 0:
        _set(run, _CRAWLS, known)
        s.gaps[:], s.totals[:] = gaps.reshape(s.gaps.shape), totals
    if run.price == 0.0:
        _set(run, _PACE, known)
    for channel, *outcomes in rest.reshape(-1, 1 + len(_TRUST)).tolist():
        added = channels.row_at_all_sites(int(channel))
        if not any(_outcomes(memory.whole, added)):
            _put_outcomes(memory, added, outcomes)
    if not any(_outcomes(memory.whole, 0)):
        _put_outcomes(memory, 0, of_all.tolist())


def _set(run: Array, names: Sequence[str], values: dict[str, float]) -> None:
    for name in names:
        run[name] = values[name]


def _row(channels: Channels, site: int, channel: float) -> int:
    """Return the row of trust of a channel of the site; 0 for NOBODY."""
    if channel == NOBODY:
        return 0
    return channels.row(site, int(channel) & ~NOT_VERIFIED, 0.0 if int(channel) & NOT_VERIFIED else 1.0)


def _put_outcomes(memory: Memory, row: int, outcomes: Sequence[float]) -> None:
    record = memory.whole.trust[row]
    for name, value in zip(_TRUST, outcomes, strict=True):
        record[name] = value
