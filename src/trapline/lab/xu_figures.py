"""The five figures of Xu, Li, Qu, Labrinidis, as settings and claims.

The claims are from the paper's text, 5.2 to 5.4. Its pictures are missing in our copy, so the heights of an expected shape are
ours, except "around 86 %", "+10 %" and "+15 %". These percentages are relative (otherwise super would be above 100 %).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from trapline.lab.judgement import (
    Cell,
    Figure,
    FigureClaim,
    JudgedClaim,
    Numbers,
    Values,
    above,
    all_hold,
    larger,
    near,
    not_below,
    rising,
)
from trapline.refresh import Policy, ReplayConditions, ReplayWorld, Trace, draw_world, replay_world, stretches

# ---- Freshness of a policy in many worlds of one trace. The same setting is replayed once, however many figures show it.
#
# This part knows no paper and does not know what is expected.

MEASURES = ("eq3", "binary")
Samples = dict[str, list[float]]  # by measure, one value per seed
_LEAST, _MOST = 1.0 / 256.0, 64.0  # bounds of the search for a capacity, in crawls per update
_CLOSE = 0.0005  # precision of the search, in freshness; a tenth of the precision that is shown


@dataclass
class TraceStudy:
    """The freshness of policies on one trace. `stretch_s`: length of the piece of the trace that each seed uses; 0: the whole trace."""

    trace: Trace
    seeds: int
    stretch_s: float = 0.0
    _traces: Sequence[Trace] = field(init=False)
    _found: dict[tuple[str, str, float], Samples] = field(init=False, default_factory=dict)
    _worlds: tuple[str, list[ReplayWorld]] = field(init=False, default=("", []))

    def __post_init__(self) -> None:
        cut = 0.0 < self.stretch_s < self.trace.horizon_s
        self._traces = stretches(self.trace, self.stretch_s) if cut else [self.trace]

    def samples(self, conditions: ReplayConditions, policy: Policy, capacity: float) -> Samples:
        """Return the freshness of a policy for all seeds, replaying the worlds if necessary."""
        key = (repr(conditions), f"{policy.name} {policy.options}", capacity)
        if key not in self._found:
            runs = [replay_world(world, policy, capacity) for world in self._drawn(conditions)]
            self._found[key] = {name: [getattr(run, name) for run in runs] for name in MEASURES}
        return self._found[key]

    def _drawn(self, conditions: ReplayConditions) -> list[ReplayWorld]:
        """Return the worlds of these conditions. The last ones are kept, because several policies in a row replay the same setting."""
        if self._worlds[0] != repr(conditions):
            traces = [self._traces[seed % len(self._traces)] for seed in range(self.seeds)]
            worlds = [draw_world(trace, conditions, seed) for seed, trace in enumerate(traces)]
            self._worlds = (repr(conditions), worlds)
        return self._worlds[1]


def capacity_for(
    freshness: float, study: TraceStudy, conditions: ReplayConditions, policy: Policy, progress: Callable[[float], None]
) -> float:
    """Return the crawls per update with which the policy has this freshness by Eq. 3: the nearest one in a bisection of the logarithm.

    `progress` is called with each capacity before it is tried.
    """
    tried: dict[float, float] = {}
    low, high = _LEAST, _MOST
    for _ in range(24):
        capacity = (low * high) ** 0.5
        progress(capacity)
        values = study.samples(conditions, policy, capacity)["eq3"]
        tried[capacity] = sum(values) / len(values) - freshness
        if abs(tried[capacity]) < _CLOSE:
            break
        low, high = (low, capacity) if tried[capacity] > 0.0 else (capacity, high)
    return min(tried, key=lambda capacity: abs(tried[capacity]))


# ---- xu figures

LEVELS = ("normal", "smart", "super")
SMART = 0.86
EXPECTED = {"normal": SMART / 1.10, "smart": SMART, "super": SMART * 1.15}
FLAT, SLACK = 0.02, 0.005  # margins of "almost unchanged" and "not below"; ours
SIZES = {"20,000 accesses": 20_000, "50,000 accesses": 50_000}
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SKEWS, TIMES, PRECISIONS = (0.85, 0.6, 0.4), (1.0, 2.0, 4.0), (1.0, 0.75, 0.5, 0.25)
MIX, SCHEDULE, SIGNALS = "mix", "super", "smart"
# Curves of some figures only.
WITHOUT_C, OURS = "xu, c = 0", "residual-life"


def figures(base: ReplayConditions) -> dict[str, Figure]:
    """Return the figures by name. `base`: the conditions that a figure does not set itself."""
    found = (_figure_2(base), _figure_3(base), _figure_4a(base), _figure_4b(base), _figure_5(base))
    return {figure.name: figure for figure in found}


def _all(base: ReplayConditions, level: str) -> ReplayConditions:
    return replace(base, levels={level: 1.0})


# ---- figure 2: all providers of one level


def _figure_2(base: ReplayConditions) -> Figure:
    cells = [
        Cell(size, float(x), replace(_all(base, level), accesses=accesses))
        for size, accesses in SIZES.items()
        for x, level in enumerate(LEVELS)
    ]
    claims = [_leads(size, x) for x in (1, 2) for size in SIZES]
    claims.append(FigureClaim(f"50,000 accesses about as 20,000 (within {FLAT:g})", _same_for_both_sizes))
    shape = [(float(x), EXPECTED[level]) for x, level in enumerate(LEVELS)]
    return Figure(
        name="2",
        title="Everybody of one level",
        x_label="level of all providers",
        cells=cells,
        claims=claims,
        expected=dict.fromkeys(SIZES, shape),
        names={float(x): level for x, level in enumerate(LEVELS)},
    )


def _leads(size: str, x: int) -> FigureClaim:
    gain = {1: "+10 %", 2: "+15 %"}[x]
    text = f"{LEVELS[x]} above {LEVELS[x - 1]}, {size} (the paper: {gain})"
    return FigureClaim(text, lambda numbers: above(numbers(size, float(x)), numbers(size, x - 1.0)))


def _same_for_both_sizes(numbers: Numbers) -> JudgedClaim:
    small, large = SIZES
    return all_hold(
        [(level, near(numbers(large, float(x)), numbers(small, float(x)), FLAT)) for x, level in enumerate(LEVELS)]
    )


# ---- figure 3: mixed


def _figure_3(base: ReplayConditions) -> Figure:
    def mixed(share: float) -> ReplayConditions:
        other = (1.0 - share) / 2.0
        levels = {"normal": other, "smart": other, "super": share}
        return replace(base, levels=levels) if share < 1.0 else _all(base, "super")

    return Figure(
        name="3",
        title="Mixed providers",
        x_label="share of super; the others half normal, half smart",
        cells=[Cell(MIX, share, mixed(share)) for share in SHARES],
        claims=[
            FigureClaim("rises from a share of .1 to .3", lambda numbers: above(numbers(MIX, 0.3), numbers(MIX, 0.1))),
            FigureClaim(
                f"flat from .3 to .6 (within {FLAT:g})",
                lambda numbers: near(numbers(MIX, 0.6), numbers(MIX, 0.3), FLAT),
            ),
            FigureClaim("falls from .6 to .9", lambda numbers: above(numbers(MIX, 0.6), numbers(MIX, 0.9))),
            FigureClaim(f"1 about as .3 to .6 (within {FLAT:g})", _back_on_the_plateau),
            FigureClaim("ours rises with every tenth", _rises_with_every_tenth, ours=True),
        ],
        expected={MIX: [(0.1, 0.88), (0.3, 0.96), (0.6, 0.96), (0.9, 0.89), (1.0, 0.955)]},
        more=(WITHOUT_C, OURS),
    )


def _back_on_the_plateau(numbers: Numbers) -> JudgedClaim:
    plateau = [numbers(MIX, share) for share in (0.3, 0.4, 0.5, 0.6)]
    return near(numbers(MIX, 1.0), [sum(values) / len(values) for values in zip(*plateau, strict=True)], FLAT)


def _rises_with_every_tenth(numbers: Numbers) -> JudgedClaim:
    return rising([(f"{share:g}", numbers(MIX, share)) for share in SHARES])


# ---- figure 4: workloads


def _figure_4a(base: ReplayConditions) -> Figure:
    return Figure(
        name="4a",
        title="Accesses more or less skewed over time",
        x_label="Zipf's theta of accesses over cycles",
        cells=[Cell(level, skew, replace(_all(base, level), zipf_time=skew)) for level in LEVELS for skew in SKEWS],
        claims=[FigureClaim(f"{level} flat (within {FLAT:g})", _flat(level)) for level in LEVELS],
        expected={level: [(skew, EXPECTED[level]) for skew in SKEWS] for level in LEVELS},
        falling=True,
    )


def _flat(level: str) -> Callable[[Numbers], JudgedClaim]:
    pairs = ((0.85, 0.6), (0.6, 0.4), (0.85, 0.4))
    return lambda numbers: all_hold(
        [(f"{a:g} and {b:g}", near(numbers(level, a), numbers(level, b), FLAT)) for a, b in pairs]
    )


def _figure_4b(base: ReplayConditions) -> Figure:
    shape = {"normal": (0.78, 0.84, 0.88), "smart": (0.86, 0.91, 0.94), "super": (0.9, 0.97, 0.995)}
    return Figure(
        name="4b",
        title="More crawls",
        x_label="times the calibrated capacity",
        cells=[Cell(level, times, _all(base, level), times) for level in LEVELS for times in TIMES],
        claims=[
            *(FigureClaim(f"{level} rises with capacity", _rises(level)) for level in LEVELS),
            *(FigureClaim(f"{level} gains less by each further crawl", _levels_off(level)) for level in LEVELS),
            FigureClaim("super's lead over smart grows from x1 to x4", _lead_grows),
        ],
        expected={level: list(zip(TIMES, heights, strict=True)) for level, heights in shape.items()},
    )


def _rises(level: str) -> Callable[[Numbers], JudgedClaim]:
    return lambda numbers: rising([(f"x{times:g}", numbers(level, times)) for times in TIMES])


def _levels_off(level: str) -> Callable[[Numbers], JudgedClaim]:
    """Return the judge of whether further crawls gain less. From x1 to x2 one capacity is added, from x2 to x4 two."""

    def judge(numbers: Numbers) -> JudgedClaim:
        one, two, four = (numbers(level, times) for times in TIMES)
        return larger(_minus(two, one), [gain / 2.0 for gain in _minus(four, two)])

    return judge


def _lead_grows(numbers: Numbers) -> JudgedClaim:
    leads = [_minus(numbers("super", times), numbers("smart", times)) for times in (4.0, 1.0)]
    return larger(*leads)


def _minus(one: Values, other: Values) -> list[float]:
    return [a - b for a, b in zip(one, other, strict=True)]


# ---- figure 5: wrong schedules


def _figure_5(base: ReplayConditions) -> Figure:
    published = [Cell(SCHEDULE, q, replace(_all(base, "super"), schedule_precision=q)) for q in PRECISIONS]
    # The same at any precision
    alone = [Cell(SIGNALS, q, _all(base, "smart")) for q in (PRECISIONS[0], PRECISIONS[-1])]
    return Figure(
        name="5",
        title="Schedules more or less right",
        x_label="precision of published points",
        cells=published + alone,
        claims=[
            FigureClaim("falls with precision", _falls_with_precision),
            FigureClaim("the first step, 1 to .75, is the largest", _first_drop_is_largest),
            FigureClaim("ours falls with precision", _falls_with_precision, ours=True),
            FigureClaim(
                f"ours with a precision of .25 not below signals alone (by {SLACK:g})", _not_below_signals, ours=True
            ),
        ],
        expected={SCHEDULE: [(1.0, 0.98), (0.75, 0.91), (0.5, 0.885), (0.25, 0.87)]},
        more=(OURS,),
        falling=True,
    )


def _falls_with_precision(numbers: Numbers) -> JudgedClaim:
    return rising([(f"{q:g}", numbers(SCHEDULE, q)) for q in reversed(PRECISIONS)])


def _first_drop_is_largest(numbers: Numbers) -> JudgedClaim:
    steps = list(pairwise(PRECISIONS))
    drops = [_minus(numbers(SCHEDULE, a), numbers(SCHEDULE, b)) for a, b in steps]
    parts = [
        (f"than {a:g} to {b:g}", larger(drops[0], drop)) for (a, b), drop in zip(steps[1:], drops[1:], strict=True)
    ]
    return all_hold(parts)


def _not_below_signals(numbers: Numbers) -> JudgedClaim:
    return not_below(numbers(SCHEDULE, 0.25), numbers(SIGNALS, 0.25), SLACK)
