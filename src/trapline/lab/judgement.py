"""Judgement of claims: whether an expected ordering holds, by the numbers alone. It knows no paper.

Two settings are compared seed by seed, in the same worlds as far as their options allow. The 95 % interval of the mean
difference decides. If the interval is on the expected side, the ordering holds; on the other side, it does not hold; if the
interval includes both sides, it is undecided.
"""

from collections.abc import Sequence
from typing import NamedTuple

from trapline.refresh import Estimate, estimate

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
_WORST_FIRST = (FAILS, UNDECIDED, HOLDS)
Values = Sequence[float]  # one value per seed or draw
_ROUNDING = 1e-12


class JudgedClaim(NamedTuple):
    """A verdict and its reason."""

    verdict: str
    why: str
    """the difference that decided, with its interval"""


def above(high: Values, low: Values) -> JudgedClaim:
    """Judge whether the first values are larger, and show the relative difference.

    >>> above([0.9, 0.8, 0.7], [0.8, 0.7, 0.6]).verdict, above([0.5, 0.5], [0.5, 0.5]).verdict, above([0.9], [0.1]).verdict
    ('holds', 'does not hold', 'undecided')
    """
    verdict, why = larger(high, low)
    relative = sum(high) / sum(low) - 1.0 if sum(low) > 0.0 else 0.0
    return JudgedClaim(verdict, f"{why}, {relative:+.1%}")


def larger(one: Values, other: Values) -> JudgedClaim:
    """Judge whether the first values are larger, without a relative difference, which says nothing about gains and leads."""
    found = _difference(one, other)
    if found.ci is None:
        return JudgedClaim(UNDECIDED, _signed(found))
    if found.mean - found.ci > _ROUNDING:
        return JudgedClaim(HOLDS, _signed(found))
    return JudgedClaim(FAILS if found.mean + found.ci <= _ROUNDING else UNDECIDED, _signed(found))


def near(one: Values, other: Values, margin: float) -> JudgedClaim:
    """Judge whether the values differ by at most the margin.

    >>> near([0.9, 0.8], [0.9, 0.8], 0.02).verdict, near([0.9, 0.8], [0.7, 0.6], 0.02).verdict
    ('holds', 'does not hold')
    """
    found = _difference(one, other)
    why = f"{_signed(found)}, margin {margin:g}"
    if found.ci is None:
        return JudgedClaim(UNDECIDED, why)
    if abs(found.mean) + found.ci <= margin:
        return JudgedClaim(HOLDS, why)
    return JudgedClaim(FAILS if abs(found.mean) - found.ci > margin else UNDECIDED, why)


def not_below(one: Values, other: Values, slack: float) -> JudgedClaim:
    """Judge whether the first values are not smaller than the others by more than the slack.

    >>> not_below([0.9, 0.8], [0.902, 0.802], 0.005).verdict, not_below([0.7, 0.6], [0.9, 0.8], 0.005).verdict
    ('holds', 'does not hold')
    """
    found = _difference(one, other)
    if found.ci is None:
        return JudgedClaim(UNDECIDED, _signed(found))
    if found.mean - found.ci >= -slack:
        return JudgedClaim(HOLDS, _signed(found))
    return JudgedClaim(FAILS if found.mean + found.ci < 0.0 else UNDECIDED, _signed(found))


def rising(steps: Sequence[tuple[str, Values]]) -> JudgedClaim:
    """Judge whether the values of each step are above those of the step before."""
    pairs = zip(steps[1:], steps, strict=False)
    return all_hold([(f"{before} to {name}", above(values, earlier)) for (name, values), (before, earlier) in pairs])


def all_hold(parts: Sequence[tuple[str, JudgedClaim]]) -> JudgedClaim:
    """Return the worst verdict of the parts, with the name of its part."""
    name, (verdict, why) = min(parts, key=lambda part: _WORST_FIRST.index(part[1].verdict))
    return JudgedClaim(verdict, f"{name}: {why}")


def _difference(one: Values, other: Values) -> Estimate:
    return estimate([a - b for a, b in zip(one, other, strict=True)])


def _signed(found: Estimate) -> str:
    return f"{found.mean:+.3f}" if found.ci is None else f"{found.mean:+.3f} ± {found.ci:.3f}"
