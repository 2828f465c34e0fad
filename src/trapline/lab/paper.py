"""The parts of a reproduced paper: its tables and figures, each with our numbers, the published ones, and verdicts.

A claim is judged by one value per web or seed, such as the difference between two strategies. The 95 % interval of the mean
decides: it *holds* if the whole interval is on the claimed side, it *does not hold* if the whole interval is on the other
side, and it *holds in part* if the interval includes both, or if only some of several parts hold. One web has no interval, so
its claims are *undecided*.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trapline.refresh import estimate

HOLDS, IN_PART, FAILS, UNDECIDED = "holds", "holds in part", "does not hold", "undecided"
Values = Sequence[float]  # one value per web or seed


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


def at_least(
    text: str, published: str, values: Values, least: float = 0.0, reason: str = "", unit: str = ""
) -> PaperClaim:
    """Judge whether a value is above `least`.

    >>> at_least("", "", [0.2, 0.2, 0.3]).verdict, at_least("", "", [-0.1, 0.2, 0.3]).verdict
    ('holds', 'holds in part')
    """
    mean, ci = estimate(values).mean, estimate(values).ci
    verdict = UNDECIDED if ci is None else HOLDS if mean - ci > least else FAILS if mean + ci <= least else IN_PART
    above = sum(value > least for value in values)
    return PaperClaim(text, published, f"{_shown(values, unit)}; {above} of {len(values)}", verdict, reason)


def within(text: str, published: str, values: Values, margin: float, reason: str = "", unit: str = "") -> PaperClaim:
    """Judge whether a value differs from 0 by at most the margin.

    >>> within("equal", "equal", [0.01, -0.01, 0.0], 0.05).verdict
    'holds'
    """
    mean, ci = abs(estimate(values).mean), estimate(values).ci
    verdict = UNDECIDED if ci is None else HOLDS if mean + ci <= margin else FAILS if mean - ci > margin else IN_PART
    inside = sum(abs(value) <= margin for value in values)
    return PaperClaim(text, published, f"{_shown(values, unit)}; {inside} of {len(values)}", verdict, reason)


def every(text: str, published: str, parts: Mapping[str, PaperClaim], reason: str = "") -> PaperClaim:
    """Judge a claim of several parts: it holds if all of them hold, and in part if some do."""
    verdicts = {part.verdict for part in parts.values()}
    verdict = verdicts.pop() if len(verdicts) == 1 else IN_PART
    ours = "; ".join(
        f"{name}: {part.ours}" + ("" if part.verdict == HOLDS else f" ({part.verdict})") for name, part in parts.items()
    )
    return PaperClaim(text, published, ours, verdict, reason)


def _shown(values: Values, unit: str) -> str:
    found = estimate(values)
    spread = "" if found.ci is None else f" ± {found.ci:.3f}"
    return f"{found.mean:+.3f}{spread}{unit}"
