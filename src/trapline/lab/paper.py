"""The parts of a reproduced paper: its tables and figures, each with our numbers, the published ones, and verdicts.

A claim is judged by one value per web or seed, such as the difference between two strategies. The 95 % interval of the mean
decides: it *holds* if the whole interval is on the claimed side, it *does not hold* if the whole interval is on the other
side, and it is *undecided* if the interval includes both. A single value has no interval and decides nothing. A claim of
several parts *holds in part* if only some of them hold.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from trapline.confidence import estimate
from trapline.lab.study import Result, StudyRun

HOLDS, IN_PART, FAILS, UNDECIDED = "holds", "holds in part", "does not hold", "undecided"
Values = Sequence[float]  # one value per web or seed
_ROUNDING = 1e-12  # differences up to this are none


@dataclass(frozen=True, slots=True)
class PaperClaim:
    text: str
    published: str
    ours: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PaperTable:
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PaperChart:
    """A chart: for each curve its values of x and y, means over webs or seeds."""

    name: str  # for file names
    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    x_unit: str = ""
    y_unit: str = ""
    reference: str = ""  # the curve that no crawl can beat, if there is one
    x_names: Sequence[str] = ()  # if given, the values of x are places in this list; "": a tick without a label
    y_names: Sequence[str] = ()
    spreads: Mapping[str, Sequence[float]] = field(default_factory=dict)  # half of the 95 % interval of each point


@dataclass(frozen=True, slots=True)
class PaperItem:
    """One table or figure of a paper."""

    name: str
    title: str
    setting: str
    claims: Sequence[PaperClaim] = ()
    tables: Sequence[PaperTable] = ()
    charts: Sequence[PaperChart] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Paper:
    name: str
    title: str
    items: Sequence[PaperItem]
    webs: Sequence[str] = ()

    @property
    def claims(self) -> list[tuple[PaperItem, PaperClaim]]:
        return [(item, claim) for item in self.items for claim in item.claims]


# ---- how a paper is made: the runs of all its parts first, then the items from their results

Results = Mapping[str, Result]  # by the key of the run


class PaperPart(NamedTuple):
    """Some items of a paper: the runs that they need, and the function that makes them from the results."""

    runs: Sequence[StudyRun]
    items: Callable[[Results], list[PaperItem]]


@dataclass(frozen=True, slots=True)
class PaperPlan:
    name: str
    title: str
    parts: Sequence[PaperPart]
    webs: Sequence[str] = ()

    def runs(self) -> list[StudyRun]:
        return [run for part in self.parts for run in part.runs]

    def paper(self, results: Results) -> Paper:
        items = [item for part in self.parts for item in part.items(results)]
        return Paper(self.name, self.title, items, list(dict.fromkeys(self.webs)))


# ---- verdicts


def at_least(
    text: str, published: str, values: Values, least: float = 0.0, reason: str = "", unit: str = ""
) -> PaperClaim:
    """Judge whether a value is above `least`.

    >>> at_least("", "", [0.2, 0.2, 0.3]).verdict, at_least("", "", [-0.1, 0.2, 0.3]).verdict
    ('holds', 'undecided')
    """
    mean, ci = estimate(values).mean, estimate(values).ci
    least += _ROUNDING
    ci = math.inf if ci is None else ci
    verdict = HOLDS if mean - ci > least else FAILS if mean + ci <= least else UNDECIDED
    above = sum(value > least for value in values)
    return PaperClaim(text, published, f"{_shown(values, unit)}; {above} of {len(values)}", verdict, reason)


def at_most(text: str, published: str, values: Values, most: float) -> PaperClaim:
    """Judge whether a value is not above `most`. A value far below it counts for the claim, other than with `within`.

    >>> at_most("no gain", "", [-0.5, -0.4, -0.6], 0.05).verdict, at_most("no gain", "", [0.5, 0.4, 0.6], 0.05).verdict
    ('holds', 'does not hold')
    """
    mean, ci = estimate(values).mean, estimate(values).ci
    most += _ROUNDING
    ci = math.inf if ci is None else ci
    verdict = HOLDS if mean + ci <= most else FAILS if mean - ci > most else UNDECIDED
    below = sum(value <= most for value in values)
    return PaperClaim(text, published, f"{_shown(values, '')}; {below} of {len(values)}", verdict)


def within(text: str, published: str, values: Values, margin: float, reason: str = "", unit: str = "") -> PaperClaim:
    """Judge whether a value differs from 0 by at most the margin.

    >>> within("equal", "equal", [0.01, -0.01, 0.0], 0.05).verdict
    'holds'
    """
    mean, ci = abs(estimate(values).mean), estimate(values).ci
    ci = math.inf if ci is None else ci
    verdict = HOLDS if mean + ci <= margin else FAILS if mean - ci > margin else UNDECIDED
    inside = sum(abs(value) <= margin for value in values)
    return PaperClaim(text, published, f"{_shown(values, unit)}; {inside} of {len(values)}", verdict, reason)


def every(text: str, published: str, parts: Mapping[str, PaperClaim], reason: str = "") -> PaperClaim:
    """Judge a claim of several parts: it holds if all of them hold, in part if some do, and not if one fails and none holds."""
    verdicts = {part.verdict for part in parts.values()}
    some = IN_PART if verdicts & {HOLDS, IN_PART} else FAILS
    verdict = verdicts.pop() if len(verdicts) == 1 else some
    ours = "; ".join(
        f"{name}: {part.ours}" + ("" if part.verdict == HOLDS else f" ({part.verdict})") for name, part in parts.items()
    )
    return PaperClaim(text, published, ours, verdict, reason)


def more(one: Values, other: Values) -> PaperClaim:
    """Judge a part of a claim: whether the first values are larger."""
    return at_least("", "", differences(one, other))


def not_worse(one: Values, other: Values, margin: float) -> PaperClaim:
    """Judge a part of a claim: whether the first values are at most the margin below the others."""
    return at_most("", "", differences(other, one), margin)


def close(one: Values, other: Values, margin: float) -> PaperClaim:
    """Judge a part of a claim: whether the values differ by at most the margin."""
    return within("", "", differences(one, other), margin)


def because(claim: PaperClaim, reason: str) -> PaperClaim:
    """Add the reason why a claim does not hold, holds only in part, or is undecided."""
    return claim if claim.verdict == HOLDS else replace(claim, reason=reason)


def differences(one: Values, other: Values) -> list[float]:
    return [a - b for a, b in zip(one, other, strict=True)]


def _shown(values: Values, unit: str) -> str:
    found = estimate(values)
    spread = "" if found.ci is None else f" ± {found.ci:.3f}"
    return f"{found.mean:+.3f}{spread}{unit}"
