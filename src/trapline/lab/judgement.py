"""Verdicts on claims of ours, for the tables of docs/refresh.md (bench/refresh_table.py). Claims of papers are judged in paper.py.

Two settings are compared seed by seed, in the same worlds as far as their options allow. The 95 % interval of the mean
difference decides. If the interval is on the expected side, the ordering holds; on the other side, it does not hold; if the
interval includes both sides, it is undecided.
"""

from collections.abc import Sequence
from typing import NamedTuple

from trapline.lab.paper import FAILS, HOLDS, UNDECIDED, Values, differences
from trapline.refresh import Estimate, estimate

_WORST_FIRST = (FAILS, UNDECIDED, HOLDS)
_ROUNDING = 1e-12  # of sums: equal values differ by less


class JudgedClaim(NamedTuple):
    """A verdict and its reason."""

    verdict: str
    why: str
    """the difference that decided, with its interval"""


def larger(one: Values, other: Values) -> JudgedClaim:
    """Judge whether the first values are larger.

    >>> larger([0.9, 0.8, 0.7], [0.8, 0.7, 0.6]).verdict, larger([0.5, 0.5], [0.5, 0.5]).verdict, larger([0.9], [0.1]).verdict
    ('holds', 'does not hold', 'undecided')
    """
    found = estimate(differences(one, other))
    if found.ci is None:
        return JudgedClaim(UNDECIDED, _signed(found))
    if found.mean - found.ci > _ROUNDING:
        return JudgedClaim(HOLDS, _signed(found))
    return JudgedClaim(FAILS if found.mean + found.ci <= _ROUNDING else UNDECIDED, _signed(found))


def not_below(one: Values, other: Values, slack: float) -> JudgedClaim:
    """Judge whether the first values are not smaller than the others by more than the slack.

    >>> not_below([0.9, 0.8], [0.902, 0.802], 0.005).verdict, not_below([0.7, 0.6], [0.9, 0.8], 0.005).verdict
    ('holds', 'does not hold')
    """
    found = estimate(differences(one, other))
    if found.ci is None:
        return JudgedClaim(UNDECIDED, _signed(found))
    if found.mean - found.ci >= -slack:
        return JudgedClaim(HOLDS, _signed(found))
    return JudgedClaim(FAILS if found.mean + found.ci < 0.0 else UNDECIDED, _signed(found))


def all_hold(parts: Sequence[tuple[str, JudgedClaim]]) -> JudgedClaim:
    """Return the worst verdict of the parts, with the name of its part."""
    name, (verdict, why) = min(parts, key=lambda part: _WORST_FIRST.index(part[1].verdict))
    return JudgedClaim(verdict, f"{name}: {why}")


def _signed(found: Estimate) -> str:
    return f"{found.mean:+.3f}" if found.ci is None else f"{found.mean:+.3f} ± {found.ci:.3f}"
