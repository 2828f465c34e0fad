"""What the providers of a changing web tell of its pages, and how far it is true: drawn once, as data. It sends and serves nothing.

    normal   nothing
    polled   publishes a sitemap and a feed
    smart    pings when a page changes
    super    all of these, and publishes when its pages will change
    liar     does all that super does, and nothing of it has to do with how its pages change

A level is a site's. Moments are seconds since the web began, in one round of its history, and come again with it.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError, nearest
from trapline.testweb.changes import Changes
from trapline.testweb.draws import Shares

if TYPE_CHECKING:
    from trapline.graph import Graph

LEVELS = ("normal", "polled", "smart", "super", "liar")
PINGING = ("smart", "super", "liar")
PUBLISHING = ("polled", "super", "liar")
SCHEDULING = ("super", "liar")
_HONEST = ("smart", "super")  # in their pings

_LEVELS, _PINGS, _LIES, _POINTS = range(14, 18)  # streams of chance: what one draws leaves the others as they were


@dataclass(frozen=True, slots=True)
class Telling:
    """How much providers tell, and how much of it is true. Shares are fractions of 1."""

    levels: Shares | Sequence[str] = (("normal", 1.0),)
    """names of LEVELS and the share of sites; or a name for each site"""
    recall: float = 1.0
    """share of updates that are pinged"""
    precision: float = 1.0
    """share of pings behind which there is an update; the others are at random moments"""
    schedule_precision: float = 1.0
    """share of published moments that are updates; the others are at random"""
    ahead_s: float = 600.0
    """so far ahead do schedules look"""
    lie_every_s: float = 1.0
    """between two pings of a liar, on average"""

    def __post_init__(self) -> None:
        for name in ("recall", "schedule_precision"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"providers: {name} is {getattr(self, name):g}, must lie in 0..1")
        if not 0.0 < self.precision <= 1.0:
            raise ConfigError(f"providers: a precision of {self.precision:g}: it must be above 0 and at most 1")
        if not (self.ahead_s > 0 and self.lie_every_s > 0):
            raise ConfigError("providers: how far schedules look ahead, and how often liars ping, must be above 0")


@dataclass(frozen=True, eq=False)
class Providers:
    level: tuple[str, ...]
    """[sites]"""
    ping_at_s: "array[float]"
    """ascending"""
    ping_page: "array[int]"
    schedule: Changes
    """what is published to come, as if it were a history"""
    ahead_s: float

    def pings(self) -> Iterator[tuple[float, int]]:
        """Moments and pages, without end if there are any; not those of a page that is not born yet."""
        born_s = self.schedule.born_s
        for number in count() if self.ping_at_s else ():
            for at_s, page in zip(self.ping_at_s, self.ping_page, strict=True):
                moment_s = number * self.schedule.round_s + at_s
                if born_s[page] <= moment_s:
                    yield moment_s, page


def providers_of(graph: "Graph", changes: Changes, telling: Telling, seed: int = 0) -> Providers:
    level = _levels(telling.levels, graph.sites, seed)
    of_page = np.array(level)[graph.site]
    offsets, at_s = np.array(changes.offsets), np.array(changes.at_s)
    page = np.repeat(np.arange(graph.pages), np.diff(offsets))
    told = _pings(np.random.default_rng((seed, _PINGS)), at_s, page, np.isin(of_page, _HONEST), changes, telling)
    lies = _lies(np.random.default_rng((seed, _LIES)), graph, level, changes, telling)
    ping_s, ping_page = (np.concatenate(both) for both in zip(told, lies, strict=True))
    order = np.argsort(ping_s, kind="stable")
    return Providers(
        level=level,
        ping_at_s=array("d", ping_s[order].tobytes()),
        ping_page=array("i", ping_page[order].astype(np.int32).tobytes()),
        schedule=_schedule(np.random.default_rng((seed, _POINTS)), at_s, page, of_page, changes, telling),
        ahead_s=telling.ahead_s,
    )


def _levels(asked: Shares | Sequence[str], sites: int, seed: int) -> tuple[str, ...]:
    """By shares: exactly these, as far as sites can be divided; the rest is normal."""
    if not all(isinstance(one, tuple) for one in asked):
        named = tuple(map(str, asked))
        if len(named) != sites:
            raise ConfigError(f"providers: {len(named)} levels for {sites} sites")
    else:
        names, shares = zip(*asked, ("normal", 1.0), strict=True)
        if sum(shares[:-1]) > 1 + 1e-9:
            raise ConfigError("providers: the shares of levels add up to more than 1")
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
    tells: NDArray[np.bool_],
    changes: Changes,
    telling: Telling,
) -> Pings:
    told = (rng.random(len(page)) < telling.recall) & tells[page]
    false_per_update = telling.recall * (1.0 - telling.precision) / telling.precision
    false = rng.poisson(false_per_update * np.bincount(page, minlength=changes.pages) * tells)
    false_page = np.repeat(np.arange(changes.pages), false)
    false_s = rng.random(len(false_page)) * changes.round_s
    return np.concatenate([at_s[told], false_s]), np.concatenate([page[told], false_page])


def _lies(rng: np.random.Generator, graph: "Graph", level: Sequence[str], changes: Changes, telling: Telling) -> Pings:
    moments, pages = [np.zeros(0)], [np.zeros(0, np.int64)]
    for site in (site for site, name in enumerate(level) if name == "liar"):
        own = np.flatnonzero(graph.site == site)
        number = rng.poisson(changes.round_s / telling.lie_every_s)
        moments.append(rng.random(number) * changes.round_s)
        pages.append(rng.choice(own, number))
    return np.concatenate(moments), np.concatenate(pages)


def _schedule(
    rng: np.random.Generator,
    at_s: NDArray[np.float64],
    page: NDArray[np.int64],
    of_page: NDArray[np.str_],
    changes: Changes,
    telling: Telling,
) -> Changes:
    """The updates, some of them moved to random moments: of liars all."""
    wrong = (rng.random(len(page)) >= telling.schedule_precision) | (of_page[page] == "liar")
    said_s = np.where(wrong, rng.random(len(page)) * changes.round_s, at_s)
    published = np.isin(of_page[page], SCHEDULING)
    said_s, page = said_s[published], page[published]
    said_s = said_s[np.lexsort((said_s, page))]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(page, minlength=changes.pages))]).astype(np.int64)
    return Changes(array("q", offsets.tobytes()), array("d", said_s.tobytes()), changes.round_s, changes.born_s)
