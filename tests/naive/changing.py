"""Freshness over time, computed slowly: every page is looked at, at every moment at which something happens."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple


class Fetch(NamedTuple):
    page: int
    first_byte: float
    end: float


def is_fresh(page: int, now: float, fetches: Sequence[Fetch], updates: Sequence[Sequence[float]]) -> bool:
    """Whether our copy of the page misses no update."""
    page_fetches = [fetch for fetch in fetches if fetch.page == page and fetch.end <= now]
    return bool(page_fetches) and not any(page_fetches[-1].first_byte < at <= now for at in updates[page])


def fresh_quality(
    now: float, fetches: Sequence[Fetch], updates: Sequence[Sequence[float]], quality: Sequence[float]
) -> float:
    fresh = (value for page, value in enumerate(quality) if is_fresh(page, now, fetches, updates))
    return sum(fresh) / sum(quality)


def mean_fresh_quality(
    since: float, until: float, fetches: Sequence[Fetch], updates: Sequence[Sequence[float]], quality: Sequence[float]
) -> float:
    """Nothing changes between two events, so the value at the first one holds until the second."""
    happens = {since, until, *(fetch.end for fetch in fetches), *(at for own in updates for at in own)}
    moments = sorted(at for at in happens if since <= at <= until)
    spans = itertools.pairwise(moments)
    total = sum((b - a) * fresh_quality(a, fetches, updates, quality) for a, b in spans)
    return total / (until - since)
