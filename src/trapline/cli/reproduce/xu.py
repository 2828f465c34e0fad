"""`trapline reproduce xu`: the five figures of the paper, on update traces, compared with the paper's claims."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.options.sections import Many, Section, SectionedCommand, bundled, refuse
from trapline.cli.options.values import count, seconds
from trapline.cli.refresh.replay_options import read_trace
from trapline.cli.reproduce.command import JOBS, output_section, refuse_same_names, reproduce_plan
from trapline.cli.terminal.progress import Progress, compile_kernels, compile_policies
from trapline.errors import ConfigError, nearest

if TYPE_CHECKING:
    from trapline.lab.paper import PaperPlan
    from trapline.lab.xu.plan import XuTrace
    from trapline.refresh import ReplayConditions, Trace

FIGURES = ("2", "3", "4a", "4b", "5")
TITLE = "Xu, Li, Qu and Labrinidis: Towards a Content-Provider-Friendly Web Page Crawler"
_PATH = click.Path(path_type=Path)
_TRACES = ("bursty:100:13000:61", "peps")  # a random trace as long as the paper's, and a sample
_SEEDS, _ACCESSES = 8, 20_000
_CYCLES, _QUICK_CYCLES = "1,4,24,48", "1,48"

_WHAT = Section(
    "What to run",
    (
        ("--figure", "figure", (str, "F[,F...]"), ",".join(FIGURES), "Numbers of the figures to reproduce."),
        (
            "--trace",
            "trace",
            Many("TRACE"),
            (),
            f"Trace to use, as in `trapline refresh replay`. Repeatable. [{' and '.join(_TRACES)}]",
        ),
        ("--seeds", "seeds", count(1, 10_000), _SEEDS, "Number of random worlds per setting."),
        ("--quick", "quick", None, False, "Run the short form, with two cycle lengths."),
    ),
)
_HOW = Section(
    "How",
    (
        (
            "--poll",
            "poll_s",
            seconds(1.0),
            None,
            "Time between two polls of a page; also the time unit T0 of Eq. 3. [1/2928 of --stretch, or of the trace]",
        ),
        ("--stretch", "stretch_s", seconds(1.0), None, "Length of the part of the trace that each seed uses. [all]"),
        (
            "--cycles",
            "cycles",
            (str, "N[,N...]"),
            None,
            f"Cycle lengths to compare, in polls. [{_CYCLES}; with --quick {_QUICK_CYCLES}]",
        ),
        ("--accesses", "accesses", count(1), _ACCESSES, "Number of accesses; figure 2 sets its own."),
        (
            "--schedule-errors",
            "schedule_errors",
            click.Choice(["moved", "added"]),
            "moved",
            "Figure 5: kind of schedule errors: updates moved in time, or updates added.",
        ),
        (
            "--calibrated",
            "calibrated",
            None,
            False,
            "Figure 5: publish each update time with a probability, the precision of the schedule, instead of as certain.",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class XuOptions:
    """Values of the options of the command, by field."""

    figure: str = ",".join(FIGURES)
    trace: tuple[str, ...] = ()
    seeds: int = _SEEDS
    quick: bool = False
    poll_s: float | None = None
    stretch_s: float | None = None
    cycles: str | None = None
    accesses: int = _ACCESSES
    schedule_errors: str = "moved"
    calibrated: bool = False

    def __post_init__(self) -> None:
        if "5" not in self.figures:
            refuse(("schedule_errors", "calibrated"), "has an effect only in figure 5; omit it, or add 5 to --figure")
        if self.figures == ("2",):
            refuse(("accesses",), "has no effect in figure 2, which sets its own; omit it, or add another --figure")
        _ = self.lengths

    @property
    def figures(self) -> tuple[str, ...]:
        names = tuple(self.figure.split(","))
        for name in names:
            if name not in FIGURES:
                raise ConfigError(f"--figure {self.figure}: no figure {name!r}; {nearest(name, FIGURES)}")
        return names

    @property
    def traces(self) -> tuple[str, ...]:
        return self.trace or _TRACES

    @property
    def lengths(self) -> list[int]:
        """The lengths of a cycle in polls, ascending."""
        texts = (self.cycles or (_QUICK_CYCLES if self.quick else _CYCLES)).split(",")
        if not all(text.isdecimal() and 0 < int(text) < 10**6 for text in texts):
            raise ConfigError(f"--cycles {self.cycles}: give whole numbers of polls above 0, such as {_CYCLES}")
        return sorted(set(map(int, texts)))

    def conditions(self) -> "ReplayConditions":
        from trapline.refresh import ReplayConditions

        return ReplayConditions(
            accesses=self.accesses, schedule_errors=self.schedule_errors, calibrated=self.calibrated
        )


@click.command(cls=SectionedCommand)
@bundled("options", XuOptions, _WHAT, _HOW)
@JOBS
@output_section("xu")
def xu(options: XuOptions, jobs: int, folder: Path, as_json: bool) -> None:
    """Reproduce Xu, Li, Qu and Labrinidis: freshness by the collaboration level of providers.

    Runs three interpretations of the paper's policy, with cycles of several lengths, and judges every claim in all of these settings.
    The number of fetches per update is chosen so that freshness is .86, as in the paper, if all providers announce their updates. If
    you interrupt the command, repeat it: it continues where it stopped. See docs/reproduce-xu.md.
    """
    reproduce_plan(partial(xu_plan, options), "xu", asdict(options), jobs, folder, as_json)


def xu_plan(options: XuOptions) -> "PaperPlan":
    from trapline.lab.paper import PaperPart, PaperPlan
    from trapline.lab.xu.plan import Xu, policies

    traces = _read(options)
    compile_kernels()
    compile_policies(list(policies().values()))
    experiments = Xu(traces, options.lengths, options.figures)
    part = PaperPart(experiments.runs(), lambda results: list(experiments.judged(results)))
    return PaperPlan("xu", TITLE, [part], [trace.name for trace in traces])


def _read(options: XuOptions) -> list["XuTrace"]:
    """Return the traces. All of them are read before any figure is computed."""
    found = []
    with Progress("reading traces", plain_every_s=2.0) as progress:
        for number, name in enumerate(options.traces):
            progress.update(number, len(options.traces), name)
            found.append(_polled(read_trace(name, False, 0.0), options))
    refuse_same_names("--trace", "trace", (trace.label for trace in found))
    return found


def _polled(trace: "Trace", options: XuOptions) -> "XuTrace":
    from trapline.lab.xu.plan import POLLS, XuTrace
    from trapline.refresh import in_steps

    stretch_s = min(options.stretch_s or trace.horizon_s, trace.horizon_s)
    poll_s = options.poll_s or stretch_s / POLLS
    is_cut = stretch_s < trace.horizon_s
    return XuTrace(in_steps(trace, poll_s), poll_s, stretch_s if is_cut else 0.0, options.seeds, options.conditions())
