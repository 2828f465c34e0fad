"""Prints the tables of docs/refresh.md and checks the claims about them: python bench/refresh_table.py --study levels [options]

All policies of a seed run in the same world; differences are judged seed by seed (lab/paper.py). The output is Markdown.
"Ours" is the policy residual-life.

levels     every policy at every level and capacity: is ours first, or within its interval of the first? Is it ahead of each
           other one seed by seed? Is it ahead of xu on both measures?
shares     ours by the share of super pages, where half of the others are normal, half smart: does it rise?
precision  ours by the precision of schedules, with wrong points moved or added: is it never below signals alone?
pings      by precision and recall of signals: is ours never below ncis, cgm, and itself without signals?
other      the same as levels, on traces that were not used to choose constants (bench/other_traces.py)
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from other_traces import DAY_S, other_traces

from trapline.cli.refresh.replay_options import read_trace
from trapline.cli.terminal.progress import Progress
from trapline.confidence import estimate
from trapline.lab.paper import FAILS, HOLDS, UNDECIDED, PaperClaim, Values, at_least, differences, more
from trapline.lab.trace_study import MEASURES, Samples, TraceStudy
from trapline.output import write_json
from trapline.refresh import (
    ReplayConditions,
    Trace,
    all_policies,
    policy_named,
)
from trapline.refresh.core.layout import LEVELS

OURS, RIVAL = "residual-life", "xu"
USES_SIGNALS = ("lambda-crawl", "ncis", RIVAL, OURS)  # policies that use signals; the others are shown at normal only
TRACES = ("peps", "bursty:600:12000", "poisson:600:12000")
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
SCHEDULES = (1.0, 0.75, 0.5, 0.25, 0.1, 0.05)
PRECISIONS, RECALLS = (1.0, 0.9, 0.5, 0.2, 0.05), (1.0, 0.7, 0.3)
FEW = 20  # pages: with fewer, chance decides which page is popular, and four times as many seeds are needed
SLACK = 0.005  # "not below" allows this difference: five units of the last digit shown
WORST_FIRST = (FAILS, UNDECIDED, HOLDS)


class Table:
    """Runs replays on request, shows progress, and keeps all results for --json."""

    def __init__(self, args: argparse.Namespace, progress: Progress) -> None:
        self.args, self._progress, self._done = args, progress, 0
        self.found: list[dict[str, Any]] = []
        # Of each cell of `levels`: what it is, and the worst verdict of ours against another policy
        self.against: list[tuple[str, str]] = []

    def studies(self, traces: list[Trace]) -> Iterator[TraceStudy]:
        for trace in traces:
            seeds = self.args.seeds * (4 if trace.pages < FEW else 1)
            yield TraceStudy(trace, seeds, self.args.stretch_days * DAY_S)

    def run(self, study: TraceStudy, policy: str, capacity: float, **conditions: Any) -> Samples:
        self._done += 1
        self._progress.update(self._done, self._done, f"{study.trace.name}, {policy}, {capacity:g}, {conditions}")
        values = study.samples(ReplayConditions(**conditions), policy_named(policy), capacity)
        about = {"trace": study.trace.name, "policy": policy, "capacity": capacity, **conditions}
        self.found.append({**about, **values})
        return values


def mean(values: Samples) -> str:
    return f"{estimate(values['binary']).mean:.3f}"


def heading(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |\n|" + "---|" * len(cells))


def row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def said(what: str, judged: tuple[str, str]) -> None:
    print(f"- {what}: {judged[0]} ({judged[1]})", flush=True)


def not_below(one: Values, other: Values) -> PaperClaim:
    """Judge whether the first values are not smaller than the others by SLACK or more."""
    return at_least("", "", differences(one, other), -SLACK)


def difference(judged: PaperClaim) -> str:
    """Return the mean difference with its interval, without the number of seeds that agree."""
    return judged.ours.partition(";")[0]


def levels(table: Table, traces: list[Trace]) -> None:
    verdicts: list[tuple[str, bool, bool, bool]] = []
    table.against.clear()
    for study in table.studies(traces):
        print(f"\n**{study.trace.name}**\n")
        heading("level", "policy", *(f"{capacity:g}" for capacity in table.args.capacities))
        for level in table.args.levels:
            shown = [name for name in table.args.policies if level == "normal" or name in USES_SIGNALS]
            verdicts += _level(table, study, level, shown)
    within = [name for name, first, near, _ in verdicts if near and not first]
    behind = [name for name, _, near, _ in verdicts if not near]
    lost = [name for name, *_, ahead in verdicts if not ahead]
    print(f"\n- {OURS} first in {sum(first for _, first, *_ in verdicts)} of {len(verdicts)}", end="")
    print(f"; within its interval of the first: {'; '.join(within) or 'none'}; behind: {'; '.join(behind) or 'none'}")
    for verdict, what in ((HOLDS, "ahead of each other policy"), (UNDECIDED, "tied"), (FAILS, "behind")):
        where = [cell for cell, found in table.against if found == verdict]
        shown_cells = "" if verdict == HOLDS else f": {'; '.join(where) or 'none'}"
        print(f"- seed by seed {what} in {len(where)} of {len(table.against)}{shown_cells}")
    if RIVAL not in table.args.policies:
        return
    print(f"- ahead of {RIVAL} on both measures in {len(verdicts) - len(lost)} of {len(verdicts)}", end="")
    print(f"; not: {'; '.join(lost) or 'none'}", flush=True)


def _level(table: Table, study: TraceStudy, level: str, shown: list[str]) -> Iterator[tuple[str, bool, bool, bool]]:
    capacities = table.args.capacities
    cells = {(name, at): table.run(study, name, at, levels={level: 1.0}) for at in capacities for name in shown}
    for name in shown:
        pairs = [(mean(cells[name, at]), f"{estimate(cells[name, at]['eq3']).mean:.3f}") for at in capacities]
        row(level, name, *(f"{binary} / {eq3}" for binary, eq3 in pairs))
    for at in capacities:
        ours = estimate(cells[OURS, at]["binary"])
        if len(shown) > 1:
            table.against.append(_against(f"{study.trace.name} {level} {at:g}", at, cells))
        best = max(shown, key=lambda name: estimate(cells[name, at]["binary"]).mean)
        behind = estimate(cells[best, at]["binary"]).mean - ours.mean
        rival = cells.get((RIVAL, at), cells[OURS, at])
        ahead = all(estimate(cells[OURS, at][m]).mean > estimate(rival[m]).mean for m in MEASURES)
        where = f"{study.trace.name} {level} {at:g} ({best} +{behind:.3f}, interval {ours.ci or 0.0:.3f})"
        yield where, best == OURS, behind <= (ours.ci or 0.0), ahead


def _against(where: str, at: float, cells: dict[tuple[str, float], Samples]) -> tuple[str, str]:
    """Judge whether ours is ahead of each other policy, by the differences of the same seeds; return the worst verdict and where."""
    others = [(name, values["binary"]) for (name, capacity), values in cells.items() if capacity == at and name != OURS]
    judged = [(name, more(cells[OURS, at]["binary"], values)) for name, values in others]
    name, worst = min(judged, key=lambda one: (WORST_FIRST.index(one[1].verdict), one[0] == "ncis"))
    return f"{where} ({name} {difference(worst)})", worst.verdict


def shares(table: Table, traces: list[Trace]) -> None:
    heading("trace", "capacity", *(f"{share:g}" for share in SHARES), "every step up")
    for study in table.studies(traces):
        for at in table.args.capacities:
            mixes = [{"normal": (1 - u) / 2, "smart": (1 - u) / 2, "super": u} for u in SHARES]
            cells = [table.run(study, OURS, at, levels=mix) for mix in mixes]
            steps = zip(SHARES[1:], cells[1:], cells, strict=False)
            parts = [(f"to {u:g}", more(high["binary"], low["binary"])) for u, high, low in steps]
            step, worst = min(parts, key=lambda part: WORST_FIRST.index(part[1].verdict))
            row(study.trace.name, f"{at:g}", *map(mean, cells), f"{worst.verdict}: {step}: {difference(worst)}")


def precision(table: Table, traces: list[Trace]) -> None:
    shown = (f"{q:g}" for q in SCHEDULES)
    heading("trace", "capacity", "wrong points", *shown, "signals alone", f"never below, by {SLACK:g}")
    for study in table.studies(traces):
        for at in table.args.capacities:
            alone = table.run(study, OURS, at, levels={"smart": 1.0})
            for errors in ("moved", "added"):
                conditions = {"levels": {"super": 1.0}, "schedule_errors": errors}
                cells = [table.run(study, OURS, at, schedule_precision=q, **conditions) for q in SCHEDULES]
                lowest = min(range(len(cells)), key=lambda i: sum(cells[i]["binary"]))
                judged = not_below(cells[lowest]["binary"], alone["binary"])
                verdict = f"{judged.verdict}; at {SCHEDULES[lowest]:g}: {difference(judged)}"
                row(study.trace.name, f"{at:g}", errors, *map(mean, cells), mean(alone), verdict)


def pings(table: Table, traces: list[Trace]) -> None:
    rivals = ("cgm", "ncis")
    heading("trace", "capacity", "recall", "policy", *(f"{precision:g}" for precision in PRECISIONS))
    verdicts: dict[str, list[str]] = {}
    for study in table.studies(traces):
        for at in table.args.capacities:
            alone = table.run(study, OURS, at, levels={"normal": 1.0})["binary"]
            for recall in RECALLS:
                noises = [{"levels": {"smart": 1.0}, "precision": q, "recall": recall} for q in PRECISIONS]
                cells = {name: [table.run(study, name, at, **noise) for noise in noises] for name in (*rivals, OURS)}
                for name in cells:
                    row(study.trace.name, f"{at:g}", f"{recall:g}", name, *map(mean, cells[name]))
                for i, q in enumerate(PRECISIONS):
                    others = {name: cells[name][i]["binary"] for name in rivals} | {"itself without signals": alone}
                    for name, values in others.items():
                        judged = not_below(cells[OURS][i]["binary"], values)
                        where = f"{study.trace.name} {at:g}, precision {q:g}, recall {recall:g}: {difference(judged)}"
                        entry = "" if judged.verdict == HOLDS else f"{judged.verdict}, {where}"
                        verdicts.setdefault(name, []).append(entry)
    for name, all_of_it in verdicts.items():
        short = [where for where in all_of_it if where]
        fails = [where for where in short if not where.startswith(UNDECIDED)]
        count = f"of {len(all_of_it)} holds {len(all_of_it) - len(short)}, does not hold {len(fails)}"
        said(f"not below {name}, by {SLACK:g}", (count, "; ".join(fails) or "none fails"))


def main() -> None:
    args = options()
    traces = [read_trace(name, False, args.step) for name in args.traces]
    study = {"levels": levels, "shares": shares, "precision": precision, "pings": pings, "other": levels}[args.study]
    with Progress("replaying", plain_every_s=20.0) as progress:
        table = Table(args, progress)
        study(table, list(other_traces(traces)) if args.study == "other" else traces)
    if args.json is not None:
        write_json(args.json, {"options": " ".join(sys.argv[1:]), "found": table.found})


def options() -> argparse.Namespace:
    def numbers(text: str) -> list[float]:
        return [float(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--study",
        choices=("levels", "shares", "precision", "pings", "other"),
        default="levels",
        help="see above [levels]",
    )
    parser.add_argument(
        "--traces",
        type=lambda text: text.split(","),
        default=list(TRACES),
        help=f"files or folders, separated by commas, samples, or random traces such as poisson:PAGES:UPDATES [{','.join(TRACES)}]",
    )
    parser.add_argument(
        "--levels",
        type=lambda text: text.split(","),
        default=list(LEVELS),
        help="levels of providers, separated by commas [all]",
    )
    parser.add_argument(
        "--capacities", type=numbers, default=[0.05, 0.1, 0.25, 0.5], help="crawls per update, separated by commas"
    )
    parser.add_argument(
        "--policies",
        type=lambda text: text.split(","),
        default=list(all_policies()),
        help="policies, separated by commas [all]",
    )
    parser.add_argument(
        "--seeds", type=int, default=5, help=f"number of seeds; four times as many for traces of fewer than {FEW} pages"
    )
    parser.add_argument(
        "--step",
        type=float,
        default=0.0,
        help="round the times of updates to polls this many seconds apart; 0: exact times",
    )
    parser.add_argument(
        "--stretch-days",
        type=float,
        default=0.0,
        help="use another stretch of the trace, this many days long, for each seed; 0: the whole trace",
    )
    parser.add_argument("--json", type=Path, help="write all results to this file")
    args = parser.parse_args()
    return args


if __name__ == "__main__":
    main()
