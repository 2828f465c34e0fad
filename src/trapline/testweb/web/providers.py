"""Providers of a changing web: the signals that sites send about changes of their pages, and how reliable they are.

    normal   sends no signals
    polled   publishes a sitemap and a feed
    smart    pings when a page changes
    super    does all of these, and publishes when its pages will change
    liar     does the same as super, but none of it is related to the real changes

Each site has one level. Times are seconds since the web was started, in one round of its history, and repeat with it. The
signals are drawn once, as data; this module sends and serves nothing.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError, nearest
from trapline.testweb.web.behaviour import Shares
from trapline.testweb.web.changes import PageChanges

if TYPE_CHECKING:
    from trapline.graph import Graph

LEVELS = ("normal", "polled", "smart", "super", "liar")
PINGING = ("smart", "super", "liar")
PUBLISHING = ("polled", "super", "liar")
SCHEDULING = ("super", "liar")
_HONEST = ("smart", "super")  # levels whose pings are based on real updates

_LEVELS, _PINGS, _LIES, _POINTS = range(14, 18)  # separate random streams, so that one does not influence the others


@dataclass(frozen=True, slots=True)
class SignalSettings:
    """How many signals providers send, and how many of them are true. Shares are fractions of 1."""

    levels: Shares | Sequence[str] = (("normal", 1.0),)
    """names of LEVELS, each with its share of sites; or one name for each site"""
    recall: float = 1.0
    """share of updates that are pinged"""
    precision: float = 1.0
    """share of pings that announce an update; the others are sent at random times"""
    schedule_precision: float = 1.0
    """share of published times that are updates; the others are random"""
    ahead_s: float = 600.0
    """how far ahead schedules look"""
    lie_every_s: float = 1.0
    """mean time between two pings of a liar"""

    def __post_init__(self) -> None:
        for name in ("recall", "schedule_precision"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"providers: {name} is {getattr(self, name):g}; it must be in 0..1")
        if not 0.0 < self.precision <= 1.0:
            raise ConfigError(f"providers: precision is {self.precision:g}; it must be above 0 and at most 1")
        if not (self.ahead_s > 0 and self.lie_every_s > 0):
            raise ConfigError(
                f"providers: ahead_s is {self.ahead_s:g} and lie_every_s is {self.lie_every_s:g}; both must be above 0"
            )


@dataclass(frozen=True, eq=False)
class Providers:
    """The signals of all sites, drawn in advance."""

    level: tuple[str, ...]
    """[sites]"""
    ping_at_s: "array[float]"
    """times of pings in one round, ascending"""
    ping_page: "array[int]"
    """page of each ping"""
    schedule: PageChanges
    """the published future updates, in the form of a history"""
    ahead_s: float

    def pings(self) -> Iterator[tuple[float, int]]:
        """Yield time and page of each ping, round after round without end. Pages that are not born yet are skipped."""
        born_s = self.schedule.born_s
        for number in count() if self.ping_at_s else ():
            for at_s, page in zip(self.ping_at_s, self.ping_page, strict=True):
                moment_s = number * self.schedule.round_s + at_s
                if born_s[page] <= moment_s:
                    yield moment_s, page


def providers_of(graph: "Graph", changes: PageChanges, signal_settings: SignalSettings, seed: int = 0) -> Providers:
    level = _levels(signal_settings.levels, graph.sites, seed)
    of_page = np.array(level)[graph.site]
    offsets, at_s = np.array(changes.offsets), np.array(changes.at_s)
    page = np.repeat(np.arange(graph.pages), np.diff(offsets))
    honest = _pings(
        np.random.default_rng((seed, _PINGS)), at_s, page, np.isin(of_page, _HONEST), changes, signal_settings
    )
    lies = _lies(np.random.default_rng((seed, _LIES)), graph, level, changes, signal_settings)
    ping_s, ping_page = (np.concatenate(both) for both in zip(honest, lies, strict=True))
    order = np.argsort(ping_s, kind="stable")
    return Providers(
        level=level,
        ping_at_s=array("d", ping_s[order].tobytes()),
        ping_page=array("i", ping_page[order].astype(np.int32).tobytes()),
        schedule=_schedule(np.random.default_rng((seed, _POINTS)), at_s, page, of_page, changes, signal_settings),
        ahead_s=signal_settings.ahead_s,
    )


def _levels(levels: Shares | Sequence[str], sites: int, seed: int) -> tuple[str, ...]:
    """Return the level of each site. Shares are met exactly, up to rounding to whole sites; the other sites are normal."""
    if not all(isinstance(entry, tuple) for entry in levels):
        named = tuple(map(str, levels))
        if len(named) != sites:
            raise ConfigError(f"providers: {len(named)} levels for {sites} sites; give one for each")
    else:
        names, shares = zip(*levels, ("normal", 1.0), strict=True)
        if sum(shares[:-1]) > 1 + 1e-9:
            raise ConfigError(
                f"providers: the shares of levels add up to {sum(shares[:-1]):g}; give shares with a sum of at most 1"
            )
        ends = np.minimum(np.round(np.cumsum(shares) * sites), sites)
        drawn = np.random.default_rng((seed, _LEVELS)).permutation(sites)
        named = tuple(str(names[at]) for at in np.searchsorted(ends, drawn, side="right"))
    for name in named:
        if name not in LEVELS:
            raise ConfigError(f"no level {name!r}; {nearest(name, LEVELS)}")
    return named


Pings = tuple[NDArray[np.float64], NDArray[np.int64]]


def _pings(
    rng: np.random.Generator,
    at_s: NDArray[np.float64],
    page: NDArray[np.int64],
    is_honest: NDArray[np.bool_],
    changes: PageChanges,
    signal_settings: SignalSettings,
) -> Pings:
    pinged = (rng.random(len(page)) < signal_settings.recall) & is_honest[page]
    false_per_update = signal_settings.recall * (1.0 - signal_settings.precision) / signal_settings.precision
    false = rng.poisson(false_per_update * np.bincount(page, minlength=changes.pages) * is_honest)
    false_page = np.repeat(np.arange(changes.pages), false)
    false_s = rng.random(len(false_page)) * changes.round_s
    return np.concatenate([at_s[pinged], false_s]), np.concatenate([page[pinged], false_page])


def _lies(
    rng: np.random.Generator,
    graph: "Graph",
    level: Sequence[str],
    changes: PageChanges,
    signal_settings: SignalSettings,
) -> Pings:
    moments, pages = [np.zeros(0)], [np.zeros(0, np.int64)]
    for site in (site for site, name in enumerate(level) if name == "liar"):
        own = np.flatnonzero(graph.site == site)
        number = rng.poisson(changes.round_s / signal_settings.lie_every_s)
        moments.append(rng.random(number) * changes.round_s)
        pages.append(rng.choice(own, number))
    return np.concatenate(moments), np.concatenate(pages)


def _schedule(
    rng: np.random.Generator,
    at_s: NDArray[np.float64],
    page: NDArray[np.int64],
    of_page: NDArray[np.str_],
    changes: PageChanges,
    signal_settings: SignalSettings,
) -> PageChanges:
    """Return the updates as published: some are moved to random times, those of liars all."""
    wrong = (rng.random(len(page)) >= signal_settings.schedule_precision) | (of_page[page] == "liar")
    claimed_s = np.where(wrong, rng.random(len(page)) * changes.round_s, at_s)
    published = np.isin(of_page[page], SCHEDULING)
    claimed_s, page = claimed_s[published], page[published]
    claimed_s = claimed_s[np.lexsort((claimed_s, page))]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page, minlength=changes.pages))]).astype(np.int64)
    return PageChanges(array("q", offsets.tobytes()), array("d", claimed_s.tobytes()), changes.round_s, changes.born_s)
