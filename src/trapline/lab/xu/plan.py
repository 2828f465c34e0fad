"""`xu`: the figures of Towards a Content-Provider-Friendly Web Page Crawler, for several readings of its policy and lengths of a cycle.

    xu, frozen    the repaired scores as of the beginning of each cycle, when the paper fills its slots; the verdicts are about it
    xu            the same scores, always as of now
    xu, literal   the equations as printed, as of the beginning of each cycle
    xu, c = 0     as xu, without the constant in Eq. 5, which decides between normal pages and others; in figure 3
    residual-life ours, in the figures that are about what it should do better

The paper gives neither the capacity nor the length of a cycle. The capacity is chosen so that, if all providers are smart, `xu` with
the shortest cycle is as fresh as the paper says, by the repaired form of the paper's measure. It is the same for all lengths of a
cycle, and so is T0 of that measure: an interval of polls.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from trapline.confidence import estimate
from trapline.lab.paper import HOLDS, IN_PART, PaperChart, PaperClaim, PaperItem, PaperTable, every
from trapline.lab.study import Result, StudyRun
from trapline.lab.trace_study import MEASURES, TraceStudy, capacity_for
from trapline.lab.xu.figures import LEVELS, OURS, WITHOUT_C, Numbers, Values, XuCell, XuClaim, XuFigure, figures
from trapline.refresh import Measure, Policy, ReplayConditions, Trace, policy_named
from trapline.refresh.policies.xu import LITERAL_OPTIONS
from trapline.units import counted, duration

POLLS = 61 * 48  # of the paper's trace: every half hour for 61 days
MEASURE_NAMES = {"eq3": "Eq. 3", "binary": "binary"}
FROZEN = "xu, frozen"
READINGS = (FROZEN, "xu", "xu, literal")
_SMART = 0.86  # freshness with smart providers, in the paper
_EARLY_S = 1.0
Line = tuple[list[float], list[float]]  # values of x and y


def policies() -> dict[str, Policy]:
    """Return the policies of the curves by name."""
    xu = policy_named("xu")
    readings = (xu.with_options(frozen=1.0), xu, xu.with_options(**LITERAL_OPTIONS))
    by_name = dict(zip(READINGS, readings, strict=True))
    return {**by_name, WITHOUT_C: xu.with_options(c=0.0), OURS: policy_named(OURS)}


class XuTrace:
    """A trace with the conditions that do not depend on a figure. Updates happen at polls."""

    def __init__(self, trace: Trace, poll_s: float, stretch_s: float, seeds: int, base: ReplayConditions) -> None:
        self.label, self._poll_s, self._base = trace.name, poll_s, base
        self._study = TraceStudy(trace, seeds, stretch_s)
        self._early = TraceStudy(_earlier(trace), seeds, stretch_s)
        size = f"{counted(trace.pages, 'page')}, {counted(trace.updates, 'update')} in {duration(trace.horizon_s)}"
        cut = f", in stretches of {duration(stretch_s)}" if stretch_s else ""
        self.name = f"{trace.name}: {size}{cut}, polled every {duration(poll_s)}, {counted(seeds, 'seed')}"

    def conditions(self, polls: int) -> ReplayConditions:
        """Return the conditions with cycles of this length."""
        return replace(self._base, cycle_s=polls * self._poll_s, measure=Measure(t0_s=self._poll_s))

    @property
    def accesses(self) -> int:
        """Accesses with which the capacity is calibrated; a figure may have others."""
        return self._base.accesses

    def cycle(self, polls: int) -> str:
        return duration(polls * self._poll_s)

    @cached_property
    def capacity(self) -> float:
        """The calibrated crawls per update."""
        return capacity_for(_SMART, self._study, self._smart, policies()["xu"])

    @property
    def _smart(self) -> ReplayConditions:
        return replace(self.conditions(1), levels={"smart": 1.0})

    def calibration(self) -> Result:
        reached = self._study.samples(self._smart, policies()["xu"], self.capacity)["eq3"]
        return {"capacity": self.capacity, "smart": estimate(reached).mean}

    def freshness(self, cell: XuCell, curve: str, early: bool) -> Result:
        study = self._early if early else self._study
        return study.samples(cell.conditions, policies()[curve], cell.times * self.capacity)


def _earlier(trace: Trace) -> Trace:
    """Return the trace with all updates a second earlier: before a cycle begins instead of after it."""
    return replace(trace, at_s=(trace.at_s - _EARLY_S).clip(min=0.0))


@dataclass(frozen=True, slots=True)
class _Curve:
    """The values of a policy on one trace, with cycles of one length. `early`: updates are a second before the polls."""

    trace: XuTrace
    policy: str
    polls: int
    early: bool = False

    def key(self, cell: XuCell) -> str:
        given = cell.conditions
        workload = (
            f"{given.accesses} accesses, theta over time {given.zipf_time:g}, schedules {given.schedule_precision:g}"
        )
        errors = f"{given.schedule_errors}{', calibrated' if given.calibrated else ''}"
        place = "a second before polls" if self.early else "at polls"
        capacity = f"x{cell.times:g} of the capacity with {self.trace.accesses} accesses"
        levels = ", ".join(f"{share:g} {level}" for level, share in given.levels.items())
        return f"{self.trace.name}; {self.policy}; cycle {self.polls}; {levels}; {workload} {errors}; {capacity}; updates {place}"


class Xu:
    """All runs that the figures need, and the figures made from their results."""

    def __init__(self, traces: Sequence[XuTrace], cycles: Sequence[int], names: Sequence[str]) -> None:
        self._traces, self._cycles, self._names = traces, cycles, names
        self._results: Mapping[str, Result] = {}

    # ---- runs

    def runs(self) -> list[StudyRun]:
        calibrations = [StudyRun(_calibration(trace), 10, trace.calibration) for trace in self._traces]
        return calibrations + [
            StudyRun(curve.key(cell), 1, self._freshness(curve, cell)) for curve, cell in self._settings()
        ]

    def _settings(self) -> Iterator[tuple[_Curve, XuCell]]:
        """Yield every curve and setting. All curves of a setting come together, because they share its worlds."""
        for trace in self._traces:
            for name in self._names:
                for polls in self._cycles:
                    figure = self._figure(name, trace, polls)
                    for cell in figure.cells:
                        yield from ((curve, cell) for curve in self._curves(figure, trace, polls))

    def _curves(self, figure: XuFigure, trace: XuTrace, polls: int) -> list[_Curve]:
        more = figure.more if polls == self._cycles[0] else ()
        found = [_Curve(trace, policy, polls) for policy in (*READINGS, *more)]
        return [*found, _Curve(trace, FROZEN, polls, early=True)] if figure.name == "2" else found

    def _figure(self, name: str, trace: XuTrace, polls: int) -> XuFigure:
        return figures(trace.conditions(polls))[name]

    @staticmethod
    def _freshness(curve: _Curve, cell: XuCell) -> Callable[[], Result]:
        return lambda: curve.trace.freshness(cell, curve.policy, curve.early)

    # ---- results

    def judged(self, results: Mapping[str, Result]) -> list[PaperItem]:
        self._results = results
        items = [self._item(name) for name in self._names]
        return [*items, self._boundary()] if "2" in self._names else items

    def _numbers(self, curve: _Curve, figure: XuFigure, measure: str) -> Numbers:
        cells = {(cell.group, cell.x): cell for cell in figure.cells}

        def numbers(group: str, x: float) -> Values:
            return self._results[curve.key(cells[group, x])][measure]

        return numbers

    def _item(self, name: str) -> PaperItem:
        figure = self._figure(name, self._traces[0], self._cycles[0])
        setting = f"Verdicts are about {FROZEN}. Capacity: {'; '.join(map(self._calibrated, self._traces))}"
        return PaperItem(
            f"fig. {name}",
            figure.title,
            setting,
            [self._claim(name, claim) for claim in figure.claims],
            [self._verdicts(name), *(self._values(name, trace, measure) for trace in self._traces for measure in MEASURES)],
            [self._chart(name, trace) for trace in self._traces if name != "4a"],
        )  # fmt: skip

    def _calibrated(self, trace: XuTrace) -> str:
        found = self._results[_calibration(trace)]
        return f"{trace.label} {found['capacity']:.3f} crawls per update, with which smart has {found['smart']:.3f} by Eq. 3"

    # ---- claims

    def _claim(self, name: str, claim: XuClaim) -> PaperClaim:
        """Judge a claim in all settings. The verdict is about the frozen reading, or about our policy if the claim is."""
        readings = [OURS] if claim.ours else list(READINGS)
        found = {reading: list(self._settings_of(name, claim, reading)) for reading in readings}
        verdict = every("", "", {str(number): one for number, (one, _) in enumerate(found[readings[0]])}).verdict
        ours = "; ".join(f"{reading}: {_counted(settings, claim)}" for reading, settings in found.items())
        return PaperClaim(claim.text, claim.published, ours, verdict, "" if verdict == HOLDS else claim.reason)

    def _settings_of(self, name: str, claim: XuClaim, reading: str) -> Iterator[tuple[PaperClaim, float]]:
        """Yield the verdict and the worst difference for each trace, measure and length of a cycle."""
        for trace in self._traces:
            for measure in MEASURES:
                for polls in self._cycles[:1] if claim.ours else self._cycles:
                    yield self._judged_at(name, claim, _Curve(trace, reading, polls), measure)

    def _judged_at(self, name: str, claim: XuClaim, curve: _Curve, measure: str) -> tuple[PaperClaim, float]:
        numbers = self._numbers(curve, self._figure(name, curve.trace, curve.polls), measure)
        return claim.judged(numbers), claim.worst(numbers)

    # ---- tables and charts

    def _verdicts(self, name: str) -> PaperTable:
        """Return the verdicts on the paper's claims by length of a cycle, each with its worst difference."""
        claims = [claim for claim in self._figure(name, self._traces[0], 1).claims if not claim.ours]
        rows = [
            [f"{claim.text}; {trace.label}, {shown}", *self._verdict_cells(name, claim, trace, measure)]
            for claim in claims
            for trace in self._traces
            for measure, shown in MEASURE_NAMES.items()
        ]
        return PaperTable(f"Verdicts by length of a cycle in polls, {FROZEN}", ["claim", *map(str, self._cycles)], rows)

    def _verdict_cells(self, name: str, claim: XuClaim, trace: XuTrace, measure: str) -> Iterator[str]:
        for polls in self._cycles:
            judged, worst = self._judged_at(name, claim, _Curve(trace, FROZEN, polls), measure)
            yield f"{_signed(worst, claim)} {judged.verdict}"

    def _values(self, name: str, trace: XuTrace, measure: str) -> PaperTable:
        """Return the freshness in every setting: a row for each cell, a column for each curve."""
        by_length = [(self._figure(name, trace, polls), polls) for polls in self._cycles]
        curves = [
            (curve, self._numbers(curve, figure, measure))
            for figure, polls in by_length
            for curve in self._curves(figure, trace, polls)
            if not curve.early
        ]
        curves.sort(key=lambda pair: list(policies()).index(pair[0].policy))
        figure = by_length[0][0]
        rows = [
            [f"{cell.group}, {figure.x_name(cell.x)}", *(str(estimate(of(cell.group, cell.x))) for _, of in curves)]
            for cell in figure.cells
        ]
        head = [f"{curve.policy}, {trace.cycle(curve.polls)}" for curve, _ in curves]
        return PaperTable(f"Freshness, {trace.label}, {MEASURE_NAMES[measure]}", ["setting", *head], rows)

    def _chart(self, name: str, trace: XuTrace) -> PaperChart:
        """Return binary freshness with frozen scores: in figure 2 by length of a cycle, else by x."""
        figure = self._figure(name, trace, self._cycles[0])
        by_cycle = name == "2"
        curves = self._levels_by_cycle(figure, trace) if by_cycle else self._by_x(figure, trace)
        x_label = "length of a cycle (polls)" if by_cycle else figure.x_label
        title = f"{figure.title}, {trace.label}"
        return PaperChart(
            f"{name}-{trace.label}", title, x_label, "accesses that find a fresh copy", curves, y_unit="%"
        )

    def _levels_by_cycle(self, figure: XuFigure, trace: XuTrace) -> dict[str, Line]:
        polls = list(map(float, self._cycles))
        return {
            level: (polls, [self._mean(_Curve(trace, FROZEN, one), figure.cells[x]) for one in self._cycles])
            for x, level in enumerate(LEVELS)
        }

    def _by_x(self, figure: XuFigure, trace: XuTrace) -> dict[str, Line]:
        """Return a line per group for the shortest and the longest cycle, and one for each further policy."""
        shown = [_Curve(trace, FROZEN, polls) for polls in sorted({self._cycles[0], self._cycles[-1]})]
        shown += [_Curve(trace, policy, self._cycles[0]) for policy in figure.more]
        lines = {}
        for group in dict.fromkeys(cell.group for cell in figure.cells):
            cells = sorted((cell for cell in figure.cells if cell.group == group), key=lambda cell: cell.x)
            for curve in shown if len(cells) > 1 else []:
                means = [self._mean(curve, cell) for cell in cells]
                lines[f"{group}: {curve.policy}, {trace.cycle(curve.polls)}"] = ([cell.x for cell in cells], means)
        return lines

    def _mean(self, curve: _Curve, cell: XuCell) -> float:
        """Return the binary freshness of a curve in percent."""
        return 100.0 * estimate(self._results[curve.key(cell)]["binary"]).mean

    # ---- the boundary effect

    def _boundary(self) -> PaperItem:
        """Return what it costs that updates lie on the boundaries of cycles."""
        smart, lead = (self._figure("2", self._traces[0], 1).claims[number] for number in (0, 1))
        rows = []
        for trace in self._traces:
            for early, place in ((False, "at polls"), (True, "a second before polls")):
                curves = [_Curve(trace, FROZEN, polls, early) for polls in self._cycles]
                leads = [
                    " / ".join(_signed(self._judged_at("2", claim, curve, "binary")[1], claim) for claim in (smart, lead))
                    for curve in curves
                ]  # fmt: skip
                rows.append([f"{trace.label}, updates {place}", *leads])
        return PaperItem(
            "boundary",
            "Updates on the boundary between two cycles",
            "Lead of smart over normal / of super over smart in binary freshness, frozen scores, 20,000 accesses",
            tables=[PaperTable("Leads by length of a cycle, in polls", ["updates", *map(str, self._cycles)], rows)],
            notes=[
                "Updates happen at polls, and a cycle begins at a poll. At the same time, the cycle begins first. So an update at the "
                "beginning of a cycle is not in the frozen scores of this cycle, and a signal waits for a whole cycle. If a cycle is "
                "one poll long, this concerns all updates. A second earlier, the same updates are in the scores at once, and a published "
                "point is a forecast for one second only."
            ],
        )


def _calibration(trace: XuTrace) -> str:
    return f"{trace.name}; capacity, {trace.accesses} accesses"


def _signed(value: float, claim: XuClaim) -> str:
    return f"{value:+.1f}{claim.unit}" if claim.unit else f"{value:+.3f}"


def _counted(settings: Sequence[tuple[PaperClaim, float]], claim: XuClaim) -> str:
    held, partly = (sum(one.verdict == verdict for one, _ in settings) for verdict in (HOLDS, IN_PART))
    low, high = (pick(worst for _, worst in settings) for pick in (min, max))
    in_part = f" (in part in {partly} more)" if partly else ""
    return f"holds in {held} of {len(settings)} settings{in_part}, {_signed(low, claim)} to {_signed(high, claim)}"
