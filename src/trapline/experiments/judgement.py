"""Whether an expected ordering holds, by the numbers alone. Knows no paper.

Two settings are compared seed by seed, in the same worlds as far as their options leave them the same: what counts is the 95 % interval
of the mean difference. It lies on the expected side: the ordering holds. On the other: it does not hold. It reaches over: undecided.
"""

from collections.abc import Sequence
from typing import NamedTuple

from trapline.refresh import Estimate, estimate

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
_WORST_FIRST = (FAILS, UNDECIDED, HOLDS)
Values = Sequence[float]  # one a seed
_ROUNDING = 1e-12


class Judged(NamedTuple):
    verdict: str
    why: str
    """the difference that decided, with its interval"""


def above(high: Values, low: Values) -> Judged:
    """Whether the first freshness is larger.

    >>> above([0.9, 0.8, 0.7], [0.8, 0.7, 0.6]).verdict, above([0.5, 0.5], [0.5, 0.5]).verdict, above([0.9], [0.1]).verdict
    ('holds', 'does not hold', 'undecided')
    """
    verdict, why = larger(high, low)
    relative = sum(high) / sum(low) - 1.0 if sum(low) > 0.0 else 0.0
    return Judged(verdict, f"{why}, {relative:+.1%}")


def larger(one: Values, other: Values) -> Judged:
    """The same of gains and leads, of which a relative difference says nothing."""
    found = _difference(one, other)
    if found.ci is None:
        return Judged(UNDECIDED, _signed(found))
    if found.mean - found.ci > _ROUNDING:
        return Judged(HOLDS, _signed(found))
    return Judged(FAILS if found.mean + found.ci <= _ROUNDING else UNDECIDED, _signed(found))


def near(one: Values, other: Values, margin: float) -> Judged:
    """Whether they differ by at most the margin.

    >>> near([0.9, 0.8], [0.9, 0.8], 0.02).verdict, near([0.9, 0.8], [0.7, 0.6], 0.02).verdict
    ('holds', 'does not hold')
    """
    found = _difference(one, other)
    why = f"{_signed(found)}, margin {margin:g}"
    if found.ci is None:
        return Judged(UNDECIDED, why)
    if abs(found.mean) + found.ci <= margin:
        return Judged(HOLDS, why)
    return Judged(FAILS if abs(found.mean) - found.ci > margin else UNDECIDED, why)


def not_below(one: Values, other: Values, slack: float) -> Judged:
    """Whether the first is not smaller, by at most the slack.

    >>> not_below([0.9, 0.8], [0.902, 0.802], 0.005).verdict, not_below([0.7, 0.6], [0.9, 0.8], 0.005).verdict
    ('holds', 'does not hold')
    """
    found = _difference(one, other)
    if found.ci is None:
        return Judged(UNDECIDED, _signed(found))
    if found.mean - found.ci >= -slack:
        return Judged(HOLDS, _signed(found))
    return Judged(FAILS if found.mean + found.ci < 0.0 else UNDECIDED, _signed(found))


def rising(steps: Sequence[tuple[str, Values]]) -> Judged:
    """Whether each is above the one before."""
    pairs = zip(steps[1:], steps, strict=False)
    return all_hold([(f"{before} to {name}", above(values, earlier)) for (name, values), (before, earlier) in pairs])


def all_hold(parts: Sequence[tuple[str, Judged]]) -> Judged:
    """The worst of them, with its name."""
    name, (verdict, why) = min(parts, key=lambda part: _WORST_FIRST.index(part[1].verdict))
    return Judged(verdict, f"{name}: {why}")


def _difference(one: Values, other: Values) -> Estimate:
    return estimate([a - b for a, b in zip(one, other, strict=True)])


def _signed(found: Estimate) -> str:
    return f"{found.mean:+.3f}" if found.ci is None else f"{found.mean:+.3f} ± {found.ci:.3f}"
