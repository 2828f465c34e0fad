"""How fresh a crawler's copies of a changing web were: from the web's own log and its history, never from the crawler.

A copy is had when the last bytes of an answer of 200 or 304 go out, and is as the page was when the request arrived. It is fresh until
the page's next update. Freshness is the share of time in a window that a page's copy is fresh, each page weighted by how often it is
accessed: what a reader finds whose accesses are a Poisson process. Pages that were never fetched are not fresh. A page that is born
later counts from then on. Moments are seconds since the web began.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.testweb.log import Log
from trapline.testweb.web import Web

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ZIPF = 0.85  # of accesses over pages: xu, table 2
_POPULARITY = 13  # stream of chance
_COUNTED = (200, 304)


class History(NamedTuple):
    """Of all pages, up to the end of the window at least."""

    offsets: Ints
    """[pages + 1] where the updates of each page begin in `at_s`"""
    at_s: Floats
    born_s: Floats
    """[pages]"""
    level: NDArray[np.str_]
    """[pages] of the page's provider"""


class Fetches(NamedTuple):
    """What was sent whole or confirmed, in any order."""

    page: Ints
    asked_s: Floats
    had_s: Floats
    status: Ints
    version: Ints

    def rows(self, chosen: Ints) -> "Fetches":
        page, asked_s, had_s, status, version = self
        return Fetches(page[chosen], asked_s[chosen], had_s[chosen], status[chosen], version[chosen])


class Accesses(NamedTuple):
    page: Ints
    at_s: Floats


@dataclass(frozen=True, slots=True)
class Freshness:
    """Of the pages of one level, or of all. Shares of nothing are 0."""

    pages: int
    fetched: int
    """pages of which there is a copy at the end"""
    updates: int
    """in the window, as are the next three"""
    fetches: int
    confirmed: int
    """fetches that were answered by 304"""
    useful: int
    """fetches that brought a version other than the one before"""
    binary: float
    """over time"""
    binary_of_copies: float
    """over the time in which there is a copy"""
    binary_at_accesses: float | None = None
    """where the given accesses fall"""


def history_of(web: Web, end_s: float) -> History:
    born_s = np.array(web.changes.born_s) if web.changes else np.zeros(web.pages)
    updates = web.changes.until(end_s) if web.changes else (np.zeros(web.pages + 1, np.int64), np.zeros(0))
    return History(*updates, born_s, np.array([web.level(site) for site in web.site]))


def fetches_of(log: Log) -> Fetches:
    counted = (log.version >= 0) & np.isin(log.status, _COUNTED)
    since_s = log.wall - log.web.began
    columns = log.page[counted], log.status[counted], log.version[counted]
    page, status, version = (column.astype(np.int64) for column in columns)
    return Fetches(page, log.arrival_s[counted] + since_s, log.end_s[counted] + since_s, status, version)


def popularity(pages: int, zipf: float = ZIPF, seed: int = 0) -> Floats:
    """[pages] the share of each in all accesses; who has which rank is drawn."""
    weight = np.arange(1, pages + 1, dtype=np.float64) ** -zipf
    return np.random.default_rng((seed, _POPULARITY)).permutation(weight / weight.sum())


def freshness(
    history: History,
    fetches: Fetches,
    weights: Floats,
    begin_s: float,
    end_s: float,
    accesses: Accesses | None = None,
) -> dict[str, Freshness]:
    """By level of provider, and of all pages by the name "all"."""
    if not begin_s < end_s:
        raise ConfigError(f"freshness: nothing lies between {begin_s:g} s and {end_s:g} s")
    measured = _Measured(history, fetches, weights, begin_s, end_s, accesses)
    every = np.ones(len(weights), bool)
    levels = {level: history.level == level for level in sorted(set(history.level.tolist()))}
    return {name: measured.of(chosen) for name, chosen in {"all": every, **levels}.items()}


class _Measured:
    """What each page, fetch and access is worth, before they are added up by level."""

    def __init__(
        self,
        history: History,
        fetches: Fetches,
        weights: Floats,
        begin_s: float,
        end_s: float,
        accesses: Accesses | None,
    ) -> None:
        order = np.lexsort((fetches.had_s, fetches.page))
        fetches = fetches.rows(order)
        until_s = _next_updates(history, fetches.page, fetches.asked_s)
        self._weights, self._accesses = weights, accesses
        self._updates = _in_window(history, begin_s, end_s)
        self._there_s = np.clip(end_s - np.maximum(history.born_s, begin_s), 0.0, None)
        self._fresh_s, self._copied_s = np.zeros(len(weights)), np.zeros(len(weights))
        for page, had_s, fresh_until_s in _by_page(fetches, until_s):
            self._fresh_s[page] = _covered(had_s, fresh_until_s, begin_s, end_s)
            self._copied_s[page] = max(0.0, end_s - max(had_s[0], begin_s))
        self._found = _found_fresh(fetches, until_s, accesses) if accesses else None
        now = (begin_s <= fetches.had_s) & (fetches.had_s < end_s)
        self._page, self._new, self._status = fetches.page[now], _news(fetches)[now], fetches.status[now]

    def of(self, chosen: NDArray[np.bool_]) -> Freshness:
        weights, rows = self._weights * chosen, chosen[self._page]
        fresh = float(weights @ self._fresh_s)
        return Freshness(
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


def _in_window(history: History, begin_s: float, end_s: float) -> Ints:
    """[pages] how many updates."""
    page = np.repeat(np.arange(len(history.born_s)), np.diff(history.offsets))
    now = (begin_s <= history.at_s) & (history.at_s < end_s)
    return np.bincount(page[now], minlength=len(history.born_s))


def _next_updates(history: History, pages: Ints, after_s: Floats) -> Floats:
    """Of each page, after its moment; infinity: none is known."""
    found = np.full(len(pages), np.inf)
    for row, (page, moment) in enumerate(zip(pages.tolist(), after_s.tolist(), strict=True)):
        own = history.at_s[history.offsets[page] : history.offsets[page + 1]]
        at = int(np.searchsorted(own, moment, "right"))
        if at < len(own):
            found[row] = own[at]
    return found


def _by_page(fetches: Fetches, until_s: Floats) -> Iterator[tuple[int, Sequence[float], Sequence[float]]]:
    """Page; when its copies were had, in order; until when each is fresh."""
    cuts = np.flatnonzero(np.diff(fetches.page, prepend=-1)).tolist()
    for begin, end in pairwise([*cuts, len(fetches.page)]):
        yield int(fetches.page[begin]), fetches.had_s[begin:end].tolist(), until_s[begin:end].tolist()


def _covered(had_s: Sequence[float], until_s: Sequence[float], begin_s: float, end_s: float) -> float:
    """Seconds of the window in which some copy is fresh."""
    covered, reached_s = 0.0, begin_s
    for had, until in zip(had_s, until_s, strict=True):
        fresh_from, fresh_to = max(had, reached_s), min(until, end_s)
        if fresh_to > fresh_from:
            covered += fresh_to - fresh_from
            reached_s = fresh_to
    return covered


def _news(fetches: Fetches) -> NDArray[np.bool_]:
    """Whether each fetch brought a version other than the page's fetch before; the first did."""
    same = (np.diff(fetches.page, prepend=-1) == 0) & (np.diff(fetches.version, prepend=-1) == 0)
    return ~same


def _found_fresh(fetches: Fetches, until_s: Floats, accesses: Accesses) -> NDArray[np.bool_]:
    """Whether each access finds a fresh copy: one had by then, of which no update is known by then."""
    copies = {page: (had, until) for page, had, until in _by_page(fetches, until_s)}
    found = np.zeros(len(accesses.page), bool)
    for row, (page, at_s) in enumerate(zip(accesses.page.tolist(), accesses.at_s.tolist(), strict=True)):
        had, until = copies.get(page, ((), ()))
        found[row] = any(one <= at_s < end for one, end in zip(had, until, strict=True))
    return found
