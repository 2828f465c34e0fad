"""Coverage and freshness of a crawl of a changing web over time, from its log and the true changes. This module knows
no policy and no frontier.

A copy shows the page as it was at the time of the first byte. The crawl has the copy from the end of the fetch on, and
the copy is fresh until the page's first update after that first byte. Freshness-weighted quality: Q(t) = sum of
quality_i over the pages whose copy is fresh at t, divided by the same sum over all pages. Averages are exact: they are
computed from the intervals in which copies exist or are fresh, not from samples.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.refresh import Trace
from trapline.simulator.log import FetchLog, fetched

Floats = NDArray[np.float64]
LAST = 0.1  # share of the time that counts as the end, because a single moment says little


class ValuedSpans(NamedTuple):
    """Intervals [begin, end), each with a value while it lasts."""

    begin_s: Floats
    end_s: Floats
    value: Floats

    def mean(self, since_s: float, until_s: float) -> float:
        """Return the mean over time of the sum of the values.

        >>> ValuedSpans(np.array([0.0, 2.0]), np.array([4.0, 4.0]), np.array([0.5, 0.25])).mean(0.0, 4.0)
        0.625
        """
        lasts_s = np.clip(self.end_s, since_s, until_s) - np.clip(self.begin_s, since_s, until_s)
        return float(np.sum(np.maximum(lasts_s, 0.0) * self.value) / (until_s - since_s))

    def at(self, moments: Floats) -> Floats:
        """Return the sum of the values at each of the given times.

        >>> ValuedSpans(np.array([0.0, 2.0]), np.array([4.0, 3.0]), np.array([0.5, 0.25])).at(np.array([0.0, 2.0, 3.0, 4.0])).tolist()
        [0.5, 0.75, 0.5, 0.0]
        """
        begun, ended = _running(self.begin_s, self.value, moments), _running(self.end_s, self.value, moments)
        return np.maximum(begun - ended, 0.0)


def _running(at_s: Floats, value: Floats, moments: Floats) -> Floats:
    order = np.argsort(at_s, kind="stable")
    sums = np.concatenate(([0.0], np.cumsum(value[order])))
    return sums[np.searchsorted(at_s[order], moments, side="right")]


class Course(NamedTuple):
    """One measure over time."""

    average: float
    end: float  # the average of the last tenth of the time
    curve: Floats


@dataclass(frozen=True, slots=True)
class ChangingMeasures:
    """Shares of the whole web, at the times `time_s` and on average."""

    time_s: Floats
    fresh: Course  # Q(t): share of the quality of which there is a fresh copy
    quality: Course  # share of the quality of which there is a copy, fresh or not
    coverage: Course  # share of the pages of which there is a copy
    fresh_pages: Course  # share of the pages of which there is a fresh copy


def measured(log: FetchLog, changes: Trace, quality: Floats, until_s: float, points: int = 300) -> ChangingMeasures:
    """Compute the measures. `quality`: the value of each page, in any unit."""
    here, fresh = copies(log, until_s), fresh_copies(log, changes, until_s)
    moments, share = np.linspace(0.0, until_s, points), quality / quality.sum()
    equal = np.full(len(quality), 1.0 / len(quality))

    def course(page: NDArray[np.int32], begin_s: Floats, end_s: Floats, value: Floats) -> Course:
        spans = ValuedSpans(begin_s, end_s, value[page])
        return Course(spans.mean(0.0, until_s), spans.mean((1.0 - LAST) * until_s, until_s), spans.at(moments))

    return ChangingMeasures(
        time_s=moments,
        fresh=course(*fresh, share),
        quality=course(*here, share),
        coverage=course(*here, equal),
        fresh_pages=course(*fresh, equal),
    )


Lives = tuple[NDArray[np.int32], Floats, Floats]
"""Pages, and begin and end of an interval for each."""


def copies(log: FetchLog, until_s: float) -> Lives:
    """Return since when the crawl has a copy of each page. The intervals end just after the end of the crawl."""
    came = fetched(log)
    page, first = np.unique(came.page, return_index=True)
    return page, came.end[first], np.full(len(page), np.nextafter(until_s, np.inf))


def fresh_copies(log: FetchLog, changes: Trace, until_s: float) -> Lives:
    """Return the interval in which each copy was fresh: until the page changed, or a new copy replaced it."""
    came = fetched(log)
    order = np.lexsort((np.arange(len(came.page)), came.page))
    page, begin_s = came.page[order], came.end[order]
    end_s = _next_update(changes, page, came.first_byte[order], np.nextafter(until_s, np.inf))
    same = page[1:] == page[:-1]
    end_s[:-1][same] = np.minimum(end_s[:-1][same], begin_s[1:][same])
    lasts = end_s > begin_s
    return page[lasts], begin_s[lasts], end_s[lasts]


def _next_update(changes: Trace, page: NDArray[np.int32], answered: Floats, never: float) -> Floats:
    """Return the first update of each page after the time `answered`, or `never`. `page` must be ascending."""
    found = np.full(len(page), never)
    owners, begins = np.unique(page, return_index=True)
    ends = np.searchsorted(page, owners, side="right")
    for owner, begin, end in zip(owners.tolist(), begins.tolist(), ends.tolist(), strict=True):
        own = changes.at_s[changes.offsets[owner] : changes.offsets[owner + 1]]
        at = np.searchsorted(own, answered[begin:end], side="right")
        found[begin:end] = np.append(own, never)[at]
    return found
