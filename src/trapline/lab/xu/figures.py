"""The five figures of Xu, Li, Qu, Labrinidis, as settings and claims.

The claims are from the paper's text, 5.2 to 5.4; its pictures are missing in our copy. The percentages in the text are relative
(otherwise super would be above 100 %). A claim is judged by the values of one curve: one policy, trace, cycle length and measure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from trapline.lab.paper import PaperClaim, at_least, every, within
from trapline.refresh import ReplayConditions

LEVELS = ("normal", "smart", "super")
FLAT, SLACK = 0.02, 0.005  # margins of "almost unchanged" and "not below"; ours
SIZES = {"20,000 accesses": 20_000, "50,000 accesses": 50_000}
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SKEWS, TIMES, PRECISIONS = (0.85, 0.6, 0.4), (1.0, 2.0, 4.0), (1.0, 0.75, 0.5, 0.25)
MIX, SCHEDULE, SIGNALS = "mix", "super", "smart"
WITHOUT_C, OURS = "xu, c = 0", "residual-life"  # curves of some figures only

Values = Sequence[float]  # one value per seed
Numbers = Callable[[str, float], Values]  # the values of one curve, by group and x
Differences = Mapping[str, Values]  # by comparison


@dataclass(frozen=True, slots=True)
class XuCell:
    """One setting: its place in the figure (group and x), the conditions of the replay, and its capacity in multiples of the
    calibrated one."""

    group: str
    x: float
    conditions: ReplayConditions
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class XuClaim:
    """A claim about differences between settings: each is above `least`, or with a margin, within it.

    `reason`: why it may not hold. `ours`: the claim is about our policy, not about the paper's.
    """

    text: str
    published: str
    differences: Callable[[Numbers], Differences]
    reason: str = ""
    least: float = 0.0
    margin: float | None = None
    unit: str = ""
    ours: bool = False

    def judged(self, numbers: Numbers) -> PaperClaim:
        parts = {name: self._part(values) for name, values in self.differences(numbers).items()}
        return every(self.text, self.published, parts, self.reason)

    def worst(self, numbers: Numbers) -> float:
        """Return the mean difference that is the farthest from what is claimed."""
        means = [sum(values) / len(values) for values in self.differences(numbers).values()]
        return min(means) if self.margin is None else max(means, key=abs)

    def _part(self, values: Values) -> PaperClaim:
        if self.margin is not None:
            return within("", "", values, self.margin, unit=self.unit)
        return at_least("", "", values, self.least, unit=self.unit)


@dataclass(frozen=True, slots=True)
class XuFigure:
    """`more`: curves besides those of the paper's policy. `names`: labels of values of x that are not numbers."""

    name: str
    title: str
    x_label: str
    cells: Sequence[XuCell]
    claims: Sequence[XuClaim]
    more: Sequence[str] = ()
    names: Sequence[str] = ()

    def x_name(self, x: float) -> str:
        return self.names[int(x)] if self.names else f"{x:g}"


def figures(base: ReplayConditions) -> dict[str, XuFigure]:
    """Return the figures by name. `base`: the conditions that a figure does not set itself."""
    found = (_figure_2(base), _figure_3(base), _figure_4a(base), _figure_4b(base), _figure_5(base))
    return {figure.name: figure for figure in found}


def _all(base: ReplayConditions, level: str) -> ReplayConditions:
    return replace(base, levels={level: 1.0})


# ---- Comparisons of two settings, seed by seed.


def _minus(one: Values, other: Values) -> list[float]:
    return [a - b for a, b in zip(one, other, strict=True)]


def _percent_more(one: Values, other: Values) -> list[float]:
    return [100.0 * (a / b - 1.0) for a, b in zip(one, other, strict=True)]


def _rising(steps: Sequence[tuple[str, Values]]) -> Differences:
    return {f"{before} to {name}": _minus(high, low) for (before, low), (name, high) in pairwise(steps)}


# ---- figure 2: all providers of one level


def _figure_2(base: ReplayConditions) -> XuFigure:
    cells = [
        XuCell(size, float(x), replace(_all(base, level), accesses=accesses))
        for size, accesses in SIZES.items()
        for x, level in enumerate(LEVELS)
    ]
    return XuFigure(
        name="2",
        title="All providers of one level",
        x_label="level of all providers",
        cells=cells,
        claims=[
            XuClaim(
                "pages of smart providers are fresher than those of normal ones", "around +10 %", _lead(1), unit=" %",
                reason="The longer the cycle, the longer a signal waits for the next one, and the smaller the lead.",
            ),
            XuClaim(
                "pages of super providers are fresher than those of smart ones", "another +15 %", _lead(2), unit=" %",
                reason="A published point need not wait for the next cycle. So the lead grows with the length of a cycle.",
            ),
            XuClaim(
                f"with 50,000 accesses freshness is close to that with 20,000 (within {FLAT:g})", "always close",
                _both_sizes, margin=FLAT,
            ),
        ],
        names=LEVELS,
    )  # fmt: skip


def _lead(x: int) -> Callable[[Numbers], Differences]:
    small = next(iter(SIZES))
    return lambda numbers: {"": _percent_more(numbers(small, float(x)), numbers(small, x - 1.0))}


def _both_sizes(numbers: Numbers) -> Differences:
    small, large = SIZES
    return {level: _minus(numbers(large, float(x)), numbers(small, float(x))) for x, level in enumerate(LEVELS)}


# ---- figure 3: mixed


def _figure_3(base: ReplayConditions) -> XuFigure:
    def mixed(share: float) -> ReplayConditions:
        other = (1.0 - share) / 2.0
        levels = {"normal": other, "smart": other, "super": share}
        return replace(base, levels=levels) if share < 1.0 else _all(base, "super")

    def gain(one: float, other: float) -> Callable[[Numbers], Differences]:
        return lambda numbers: {"": _minus(numbers(MIX, one), numbers(MIX, other))}

    why = "Eq. 5 counts every access of a normal page as stale, so normal pages take slots from all others until there are none."
    return XuFigure(
        name="3",
        title="Mixed providers",
        x_label="share of super providers; the others half normal, half smart",
        cells=[XuCell(MIX, share, mixed(share)) for share in SHARES],
        claims=[
            XuClaim("freshness rises from a share of .1 to .3", "increases monotonically", gain(0.3, 0.1)),
            XuClaim(f"freshness is flat from .3 to .6 (within {FLAT:g})", "remains the same", gain(0.6, 0.3), margin=FLAT),
            XuClaim("freshness falls from .6 to .9", "decreases monotonically", gain(0.6, 0.9)),
            XuClaim(
                f"super providers alone are as fresh as shares of .3 to .6 (within {FLAT:g})", "almost the same",
                _plateau, why, margin=FLAT,
            ),
            XuClaim("residual-life rises with every tenth", "a claim of Trapline", _every_tenth, ours=True),
        ],
        more=(WITHOUT_C, OURS),
    )  # fmt: skip


def _plateau(numbers: Numbers) -> Differences:
    plateau = [numbers(MIX, share) for share in (0.3, 0.4, 0.5, 0.6)]
    return {"": _minus(numbers(MIX, 1.0), [sum(values) / len(values) for values in zip(*plateau, strict=True)])}


def _every_tenth(numbers: Numbers) -> Differences:
    return _rising([(f"{share:g}", numbers(MIX, share)) for share in SHARES])


# ---- figure 4: workloads


def _figure_4a(base: ReplayConditions) -> XuFigure:
    return XuFigure(
        name="4a",
        title="Accesses more or less skewed over time",
        x_label="Zipf's theta of accesses over cycles",
        cells=[XuCell(level, skew, replace(_all(base, level), zipf_time=skew)) for level in LEVELS for skew in SKEWS],
        claims=[
            XuClaim(f"the skew of accesses does not matter (within {FLAT:g})", "almost unchanged", _skews, margin=FLAT)
        ],
    )


def _skews(numbers: Numbers) -> Differences:
    pairs = ((0.85, 0.6), (0.6, 0.4), (0.85, 0.4))
    return {
        f"{level}, {a:g} and {b:g}": _minus(numbers(level, a), numbers(level, b)) for level in LEVELS for a, b in pairs
    }


def _figure_4b(base: ReplayConditions) -> XuFigure:
    return XuFigure(
        name="4b",
        title="More crawls",
        x_label="times the calibrated capacity",
        cells=[XuCell(level, times, _all(base, level), times) for level in LEVELS for times in TIMES],
        claims=[
            XuClaim("freshness rises with capacity, for each level", "improves", _rises),
            XuClaim("each further crawl adds less, for each level", "not linear", _slows_down),
            XuClaim(
                "the lead of super over smart grows from x1 to x4", "the bigger improvement", _lead_grows,
                "Where smart is nearly 1 at x4, hardly any lead is left.",
            ),
        ],
    )  # fmt: skip


def _rises(numbers: Numbers) -> Differences:
    return {
        f"{level}, {step}": gain
        for level in LEVELS
        for step, gain in _rising([(f"x{times:g}", numbers(level, times)) for times in TIMES]).items()
    }


def _slows_down(numbers: Numbers) -> Differences:
    """Return how much less a further crawl gains. From x1 to x2 one capacity is added, from x2 to x4 two."""

    def less(level: str) -> list[float]:
        one, two, four = (numbers(level, times) for times in TIMES)
        return _minus(_minus(two, one), [gain / 2.0 for gain in _minus(four, two)])

    return {level: less(level) for level in LEVELS}


def _lead_grows(numbers: Numbers) -> Differences:
    at_four, at_one = (_minus(numbers("super", times), numbers("smart", times)) for times in (4.0, 1.0))
    return {"": _minus(at_four, at_one)}


# ---- figure 5: wrong schedules


def _figure_5(base: ReplayConditions) -> XuFigure:
    published = [XuCell(SCHEDULE, q, replace(_all(base, "super"), schedule_precision=q)) for q in PRECISIONS]
    alone = [XuCell(SIGNALS, PRECISIONS[-1], _all(base, "smart"))]  # the same at any precision
    return XuFigure(
        name="5",
        title="Schedules more or less right",
        x_label="precision of published points",
        cells=published + alone,
        claims=[
            XuClaim("freshness falls with precision", "the more precise, the better", _precisions),
            XuClaim("the first step, 1 to .75, costs the most", "after that, not as much", _first_step),
            XuClaim("residual-life falls with precision", "a claim of Trapline", _precisions, ours=True),
            XuClaim(
                f"residual-life with a precision of .25 is not below signals alone (by {SLACK:g})", "a claim of Trapline",
                lambda numbers: {"": _minus(numbers(SCHEDULE, 0.25), numbers(SIGNALS, 0.25))}, least=-SLACK, ours=True,
            ),
        ],
        more=(OURS,),
    )  # fmt: skip


def _precisions(numbers: Numbers) -> Differences:
    return _rising([(f"{q:g}", numbers(SCHEDULE, q)) for q in reversed(PRECISIONS)])


def _first_step(numbers: Numbers) -> Differences:
    first, *others = [
        (f"than {a:g} to {b:g}", _minus(numbers(SCHEDULE, a), numbers(SCHEDULE, b))) for a, b in pairwise(PRECISIONS)
    ]
    return {name: _minus(first[1], drop) for name, drop in others}
