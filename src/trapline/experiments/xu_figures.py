"""The five figures of Xu, Li, Qu, Labrinidis, as settings and as claims.

What is claimed is in the paper's text, 5.2 to 5.4; its pictures are not in the text that we have, so that heights of an expected shape
are ours, but for "around 86 %", "+10 %" and "+15 %", which are meant relatively (else super would be above 100 %).
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from trapline.experiments.figures import Cell, Claim, Figure, Numbers
from trapline.experiments.judgement import Judged, Values, above, all_hold, larger, near, not_below, rising
from trapline.refresh import Conditions

LEVELS = ("normal", "smart", "super")
SMART = 0.86
EXPECTED = {"normal": SMART / 1.10, "smart": SMART, "super": SMART * 1.15}
FLAT, SLACK = 0.02, 0.005  # what "almost unchanged" and "not below" allow; ours
SIZES = {"20,000 accesses": 20_000, "50,000 accesses": 50_000}
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SKEWS, TIMES, PRECISIONS = (0.85, 0.6, 0.4), (1.0, 2.0, 4.0), (1.0, 0.75, 0.5, 0.25)
MIX, SCHEDULE, SIGNALS = "mix", "super", "smart"
# Curves that some figures have.
WITHOUT_C, OURS = "xu, c = 0", "residual-life"


def figures(base: Conditions) -> dict[str, Figure]:
    """By name. `base`: all that a figure does not set itself."""
    found = (_figure_2(base), _figure_3(base), _figure_4a(base), _figure_4b(base), _figure_5(base))
    return {figure.name: figure for figure in found}


def _all(base: Conditions, level: str) -> Conditions:
    return replace(base, levels={level: 1.0})


# ---- figure 2: everybody of one level


def _figure_2(base: Conditions) -> Figure:
    cells = [
        Cell(size, float(x), replace(_all(base, level), accesses=accesses))
        for size, accesses in SIZES.items()
        for x, level in enumerate(LEVELS)
    ]
    claims = [_leads(size, x) for x in (1, 2) for size in SIZES]
    claims.append(Claim(f"50,000 accesses about as 20,000 (within {FLAT:g})", _same_for_both_sizes))
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


def _leads(size: str, x: int) -> Claim:
    gain = {1: "+10 %", 2: "+15 %"}[x]
    text = f"{LEVELS[x]} above {LEVELS[x - 1]}, {size} (the paper: {gain})"
    return Claim(text, lambda of: above(of(size, float(x)), of(size, x - 1.0)))


def _same_for_both_sizes(of: Numbers) -> Judged:
    small, large = SIZES
    return all_hold([(level, near(of(large, float(x)), of(small, float(x)), FLAT)) for x, level in enumerate(LEVELS)])


# ---- figure 3: mixed


def _figure_3(base: Conditions) -> Figure:
    def mixed(share: float) -> Conditions:
        other = (1.0 - share) / 2.0
        levels = {"normal": other, "smart": other, "super": share}
        return replace(base, levels=levels) if share < 1.0 else _all(base, "super")

    return Figure(
        name="3",
        title="Mixed providers",
        x_label="share of super; the others half normal, half smart",
        cells=[Cell(MIX, share, mixed(share)) for share in SHARES],
        claims=[
            Claim("rises from a share of .1 to .3", lambda of: above(of(MIX, 0.3), of(MIX, 0.1))),
            Claim(f"flat from .3 to .6 (within {FLAT:g})", lambda of: near(of(MIX, 0.6), of(MIX, 0.3), FLAT)),
            Claim("falls from .6 to .9", lambda of: above(of(MIX, 0.6), of(MIX, 0.9))),
            Claim(f"1 about as .3 to .6 (within {FLAT:g})", _back_on_the_plateau),
            Claim("ours rises with every tenth", _rises_with_every_tenth, ours=True),
        ],
        expected={MIX: [(0.1, 0.88), (0.3, 0.96), (0.6, 0.96), (0.9, 0.89), (1.0, 0.955)]},
        more=(WITHOUT_C, OURS),
    )


def _back_on_the_plateau(of: Numbers) -> Judged:
    plateau = [of(MIX, share) for share in (0.3, 0.4, 0.5, 0.6)]
    return near(of(MIX, 1.0), [sum(values) / len(values) for values in zip(*plateau, strict=True)], FLAT)


def _rises_with_every_tenth(of: Numbers) -> Judged:
    return rising([(f"{share:g}", of(MIX, share)) for share in SHARES])


# ---- figure 4: workloads


def _figure_4a(base: Conditions) -> Figure:
    return Figure(
        name="4a",
        title="Accesses more or less skewed over time",
        x_label="Zipf's theta of accesses over cycles",
        cells=[Cell(level, skew, replace(_all(base, level), zipf_time=skew)) for level in LEVELS for skew in SKEWS],
        claims=[Claim(f"{level} flat (within {FLAT:g})", _flat(level)) for level in LEVELS],
        expected={level: [(skew, EXPECTED[level]) for skew in SKEWS] for level in LEVELS},
        falling=True,
    )


def _flat(level: str) -> Callable[[Numbers], Judged]:
    pairs = ((0.85, 0.6), (0.6, 0.4), (0.85, 0.4))
    return lambda of: all_hold([(f"{a:g} and {b:g}", near(of(level, a), of(level, b), FLAT)) for a, b in pairs])


def _figure_4b(base: Conditions) -> Figure:
    shape = {"normal": (0.78, 0.84, 0.88), "smart": (0.86, 0.91, 0.94), "super": (0.9, 0.97, 0.995)}
    return Figure(
        name="4b",
        title="More crawls",
        x_label="times the calibrated capacity",
        cells=[Cell(level, times, _all(base, level), times) for level in LEVELS for times in TIMES],
        claims=[
            *(Claim(f"{level} rises with capacity", _rises(level)) for level in LEVELS),
            *(Claim(f"{level} gains less by each further crawl", _levels_off(level)) for level in LEVELS),
            Claim("super's lead over smart grows from x1 to x4", _lead_grows),
        ],
        expected={level: list(zip(TIMES, heights, strict=True)) for level, heights in shape.items()},
    )


def _rises(level: str) -> Callable[[Numbers], Judged]:
    return lambda of: rising([(f"x{times:g}", of(level, times)) for times in TIMES])


def _levels_off(level: str) -> Callable[[Numbers], Judged]:
    """From x1 to x2 one capacity is added, from x2 to x4 two."""

    def judge(of: Numbers) -> Judged:
        one, two, four = (of(level, times) for times in TIMES)
        return larger(_minus(two, one), [gain / 2.0 for gain in _minus(four, two)])

    return judge


def _lead_grows(of: Numbers) -> Judged:
    leads = [_minus(of("super", times), of("smart", times)) for times in (4.0, 1.0)]
    return larger(*leads)


def _minus(one: Values, other: Values) -> list[float]:
    return [a - b for a, b in zip(one, other, strict=True)]


# ---- figure 5: wrong schedules


def _figure_5(base: Conditions) -> Figure:
    published = [Cell(SCHEDULE, q, replace(_all(base, "super"), schedule_precision=q)) for q in PRECISIONS]
    alone = [Cell(SIGNALS, q, _all(base, "smart")) for q in (PRECISIONS[0], PRECISIONS[-1])]  # the same at any
    return Figure(
        name="5",
        title="Schedules more or less right",
        x_label="precision of published points",
        cells=published + alone,
        claims=[
            Claim("falls with precision", _falls_with_precision),
            Claim("the first step, 1 to .75, is the largest", _first_drop_is_largest),
            Claim("ours falls with precision", _falls_with_precision, ours=True),
            Claim(
                f"ours with a precision of .25 not below signals alone (by {SLACK:g})", _not_below_signals, ours=True
            ),
        ],
        expected={SCHEDULE: [(1.0, 0.98), (0.75, 0.91), (0.5, 0.885), (0.25, 0.87)]},
        more=(OURS,),
        falling=True,
    )


def _falls_with_precision(of: Numbers) -> Judged:
    return rising([(f"{q:g}", of(SCHEDULE, q)) for q in reversed(PRECISIONS)])


def _first_drop_is_largest(of: Numbers) -> Judged:
    steps = list(pairwise(PRECISIONS))
    drops = [_minus(of(SCHEDULE, a), of(SCHEDULE, b)) for a, b in steps]
    parts = [
        (f"than {a:g} to {b:g}", larger(drops[0], drop)) for (a, b), drop in zip(steps[1:], drops[1:], strict=True)
    ]
    return all_hold(parts)


def _not_below_signals(of: Numbers) -> Judged:
    return not_below(of(SCHEDULE, 0.25), of(SIGNALS, 0.25), SLACK)
