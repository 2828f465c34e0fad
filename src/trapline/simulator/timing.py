"""How a simulated crawl used its time and its link: pages and quality over time, active connections, bandwidth used.

This module reads the log and the page sizes; it does not know who chose the pages. Amounts in bins of time are whole
numbers (bytes, microseconds of connections), so that the bins add up exactly to the total.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.simulator.log import FetchLog, fetched
from trapline.simulator.network import Network

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Spans = tuple[Floats, Floats]
"""Begin and end of each of several intervals."""

MICROSECONDS = 1_000_000
_SHORTEST_S = 1e-9


class CrawlCourse(NamedTuple):
    """The progress of a crawl at several times, from its beginning to its end."""

    time_s: Floats
    pages: Counts  # number of pages fetched by then
    quality: Floats  # value of those pages, as a share of `whole`


def progress(log: FetchLog, value: Floats, whole: float, points: int = 200) -> CrawlCourse:
    """Return the progress at about `points` completions, spread evenly over both time and pages (see `_pace`).

    `value` is the value of each page, `whole` the value that counts as 100 %.

    >>> from trapline.simulator.log import log_of
    >>> log = log_of((1, 0, 0.0, 1.0, 2.0), (0, 1, 2.0, 2.0, 8.0))
    >>> [column.tolist() for column in progress(log, np.array([1.0, 3.0]), 4.0)]
    [[0.0, 2.0, 8.0], [0, 1, 2], [0.0, 0.75, 1.0]]
    """
    came = fetched(log)
    count = len(came.page)
    if not count:
        return CrawlCourse(np.zeros(1), np.zeros(1, np.int64), np.zeros(1))
    steps = np.searchsorted(_pace(came.end), np.linspace(0, 1, points)[1:]) + 1
    steps = np.unique(np.concatenate(([0], np.minimum(steps, count), [count])))
    times = np.concatenate(([0.0], came.end))
    gained = np.concatenate(([0.0], np.cumsum(value[came.page])))
    return CrawlCourse(times[steps], steps, gained[steps] / whole if whole > 0 else steps / count)


def bin_edges(log: FetchLog, bins: int = 200) -> Floats:
    """Return the edges of `bins` bins from 0 to the end of the crawl, spread evenly over both time and fetches (see
    `_pace`).

    >>> from trapline.simulator.log import log_of
    >>> bin_edges(log_of((1, 0, 0.0, 1.0, 2.0), (0, 1, 2.0, 2.0, 8.0)), bins=2).tolist()
    [0.0, 3.2, 8.0]
    """
    if not len(log.end) or log.end[-1] <= 0:
        return np.zeros(1)
    pace, times = np.concatenate(([0.0], _pace(log.end))), np.concatenate(([0.0], log.end))
    edges = np.unique(np.interp(np.linspace(0, 1, bins + 1), pace, times))
    edges[-1] = log.end[-1]
    return edges


def _pace(end: Floats) -> Floats:
    """Return, for each completion, the mean of the elapsed share of the time and the share of completions so far.

    By time alone, few points would show a crawl that does nine tenths of its work in the first tenth of its time; by
    completions alone, few points would show its long end.
    """
    share = np.arange(1, len(end) + 1) / len(end)
    return (share + end / end[-1]) / 2 if end[-1] > 0 else share


def in_bins(begin: Floats, end: Floats, amount: Counts, edges: Floats) -> Counts:
    """Return how much of the amounts falls into each bin: [bins]. Each amount is spread evenly over its own interval.

    Amounts outside the edges belong to the first or last bin. The sum over the bins is exactly the sum of the amounts. An
    interval of less than a nanosecond is a moment: its rate may be infinite.

    >>> in_bins(np.array([0.0]), np.array([3.0]), np.array([30]), np.array([0.0, 1.0, 4.0])).tolist()
    [10, 20]
    """
    bins, total = len(edges) - 1, int(amount.sum())
    if bins < 1:
        return np.zeros(0, np.int64)
    first = np.clip(np.searchsorted(edges, begin, side="right") - 1, 0, bins - 1)
    last = np.clip(np.searchsorted(edges, end, side="left") - 1, first, bins - 1)
    across = (last > first) & (end - begin > _SHORTEST_S)
    parts = np.zeros(bins)
    parts += np.bincount(first[~across], amount[~across], bins)
    begin, end, first, last = begin[across], end[across], first[across], last[across]
    rate = amount[across] / (end - begin)
    parts += np.bincount(first, rate * (edges[first + 1] - begin), bins)
    parts += np.bincount(last, rate * (end - edges[last]), bins)
    through = np.cumsum(np.bincount(first + 1, rate, bins + 1) - np.bincount(last, rate, bins + 1))
    return _whole(parts + through[:bins] * np.diff(edges), total)


def _whole(parts: Floats, total: int) -> Counts:
    """Round the parts to whole numbers that add up to the total: the running sum is rounded, not the parts."""
    sums = np.rint(np.cumsum(parts)).astype(np.int64)
    sums[-1] = total
    sums = np.maximum.accumulate(np.clip(sums, 0, total))
    return np.diff(sums, prepend=0)


def visits(log: FetchLog) -> Spans:
    """Return when each visit began and ended: [visits], for the visits that have rows in the log.

    >>> from trapline.simulator.log import log_of
    >>> log = log_of((0, 0, 0.0, 1.0, 2.0), (1, 0, 2.0, 2.0, 3.0))
    >>> [column.tolist() for column in visits(log)]
    [[0.0], [3.0]]
    """
    count = int(log.visit.max(initial=-1)) + 1
    begun, ended = np.full(count, np.nan), np.full(count, np.nan)
    # The rows of a visit are in order of time; if an index occurs several times, numpy keeps the last value.
    begun[log.visit[::-1]] = log.start[::-1]
    ended[log.visit] = log.end
    known = ~np.isnan(begun)
    return begun[known], ended[known]


def connection_time(visits: Spans, edges: Floats) -> Counts:
    """Return the microseconds that connections spent in visits: [bins]. A visit that the end of the crawl cut off
    counts up to its last page.

    >>> connection_time((np.array([0.0, 1.0]), np.array([2.0, 4.0])), np.array([0.0, 2.0, 4.0])).tolist()
    [3000000, 2000000]
    """
    begun, ended = visits
    return in_bins(begun, ended, np.rint((ended - begun) * MICROSECONDS).astype(np.int64), edges)


def active_connections(visits: Spans, edges: Floats) -> Floats:
    """Return the average number of active connections in each bin: [bins].

    >>> active_connections((np.array([0.0, 1.0]), np.array([2.0, 4.0])), np.array([0.0, 2.0, 4.0])).tolist()
    [1.5, 1.0]
    """
    return connection_time(visits, edges) / (np.diff(edges) * MICROSECONDS)


def bytes_received(log: FetchLog, brought: Counts, edges: Floats) -> Counts:
    """Return the bytes received in each bin: [bins]. Those of a page are spread evenly from its first to its last byte.
    `brought`: the bytes of each fetch, from `bytes_of`.

    The log does not record how the speed of a transfer changed while others began and ended, so a bin shorter than a
    transfer may seem to have a little more than the link can carry.

    >>> from trapline.simulator.log import log_of
    >>> log = log_of((0, 0, 0.0, 1.0, 3.0))
    >>> bytes_received(log, np.array([100]), np.array([0.0, 1.5, 3.0])).tolist()
    [25, 75]
    """
    return in_bins(log.first_byte, log.end, brought, edges)


def capacity(network: Network, connections: int) -> float:
    """Return the bytes per second that the link can carry: B, or r times B if each connection has a link of its own.

    >>> capacity(Network(bandwidth=20_000.0, per_connection=True), connections=3)
    60000.0
    """
    return network.bandwidth * (connections if network.per_connection else 1)


def wasted_bandwidth(received: Counts, edges: Floats, bytes_per_s: float) -> Floats:
    """Return the unused share of the link in each bin: [bins] (castillo04 fig. 2, hatched).

    >>> wasted_bandwidth(np.array([25, 100]), np.array([0.0, 1.0, 2.0]), 100.0).tolist()
    [0.75, 0.0]
    """
    return 1.0 - received / (bytes_per_s * np.diff(edges))


def optimal_seconds(total_bytes: int, bytes_per_s: float) -> float | None:
    """Return T* = total bytes / B, the time with an always full link (castillo04 eq. 2); None if the link has no limit.

    >>> optimal_seconds(30_000, 2_000.0)
    15.0
    """
    return total_bytes / bytes_per_s if math.isfinite(bytes_per_s) else None


def rate(log: FetchLog) -> float:
    """Return the pages fetched per second; 0 if the crawl took no time.

    >>> from trapline.simulator.log import log_of
    >>> rate(log_of((0, 0, 0.0, 1.0, 2.0), (1, 1, 2.0, 2.0, 8.0)))
    0.25
    """
    seconds = float(log.end[-1]) if len(log.end) else 0.0
    return len(fetched(log).page) / seconds if seconds else 0.0


def speed_up(rate: float, reference: float) -> float:
    """Return the pages per second relative to a reference crawl: in the papers, one with r = 1 and unlimited B.

    >>> speed_up(rate=27.0, reference=0.5)
    54.0
    """
    return rate / reference


def seconds_until(log: FetchLog, value: Floats, shares: Sequence[float]) -> list[float]:
    """Return when each of these shares of the total value of all fetched pages was reached; 0 if nothing was fetched.

    >>> from trapline.simulator.log import log_of
    >>> log = log_of((1, 0, 0.0, 1.0, 2.0), (0, 1, 2.0, 2.0, 8.0))
    >>> seconds_until(log, np.array([1.0, 3.0]), shares=(0.75, 0.8))
    [2.0, 8.0]
    """
    came = fetched(log)
    if not len(came.page):
        return [0.0] * len(shares)
    gained = np.cumsum(value[came.page])
    at = np.searchsorted(gained, np.array(shares) * gained[-1])
    return came.end[np.minimum(at, len(gained) - 1)].tolist()
