"""`trapline reproduce`: the group of commands, the options that they share, and the run of one paper."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.lazy import Lazy, LazyGroup
from trapline.cli.options.sections import Section
from trapline.cli.options.values import count
from trapline.cli.terminal.progress import Progress, compile_kernels
from trapline.errors import ConfigError
from trapline.output import check_writable
from trapline.terminal import say, say_text

if TYPE_CHECKING:
    from trapline.lab.paper import Paper, PaperPlan
    from trapline.lab.study import StudyRun

_PATH = click.Path(path_type=Path)


def check_output(folder: Path, picture: str) -> None:
    """Check the folder before anything that takes long. `picture`: one file that will be in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"--output {folder}: cannot create the folder: {error.strerror}; choose another folder"
        ) from error
    check_writable(folder / picture)


def refuse_same_names(option: str, what: str, names: Iterable[str]) -> None:
    """Raise `ConfigError` if two inputs have the same name: finished runs are found by it."""
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{option}: two {what}s are called {name!r}; give each {what} once, or rename a file")


def output_section(paper: str) -> Section:
    """Return the options of the output, the same for every paper."""
    folder = "Folder for the HTML page, plots, JSON and finished runs. A later command does not repeat finished runs."
    return Section(
        "Output",
        (
            ("-o --output", "folder", (_PATH, "DIR"), Path(f"trapline-{paper}"), folder),
            ("--json", "as_json", None, False, "Print the numbers and verdicts as JSON instead of tables."),
        ),
    )


_MANY = "Number of processes that simulate. Each loads its own copy of the web or trace."
JOBS = Section("Processes", (("--jobs", "jobs", count(1, 1000), 1, _MANY),))
JOBS_WITH_LIVE = JOBS.with_texts(jobs=f"{_MANY} Live crawls run one at a time.")


# ---- one paper


def reproduce_plan(
    make: "Callable[[], PaperPlan]",
    name: str,
    options: Mapping[str, Any],
    jobs: int,
    folder: Path,
    as_json: bool,
) -> None:
    """Check the outputs, make the plan, run it, judge its claims, and write and show the results. `make` must be picklable."""
    from trapline.cli.reproduce.paper_results import put_out_paper

    check_output(folder, f"{name}.html")
    put_out_paper(run_plan(make, jobs, folder), folder, as_json, options)


def run_plan(make: "Callable[[], PaperPlan]", jobs: int, folder: Path) -> "Paper":
    """Run what is not in the folder yet, with a progress line, and judge the claims."""
    from trapline import __version__
    from trapline.lab.study import Jobs, Study

    plan = make()
    study = Study(folder, __version__)
    compile_kernels()
    processes = Jobs(jobs, partial(_runs_of, make)) if jobs > 1 else None
    try:
        with Progress(f"reproducing {plan.name}", unit="steps", plain_every_s=5.0) as progress:
            results = study.results(plan.runs(), progress.update, processes)
    except KeyboardInterrupt:
        say(f"interrupted; repeat the command to continue: finished runs are in {folder}", err=True)
        raise
    if study.repeated:
        say(f"{study.repeated} runs were done before and not repeated; delete {folder} to repeat them", err=True)
    return plan.paper(results)


def _runs_of(make: "Callable[[], PaperPlan]") -> "list[StudyRun]":
    return make().runs()


# ---- `trapline reproduce`: one module per paper, such as `xu.py`. A new paper is a new line in this table, and one in `all_papers.py`.

PAPERS = {
    "all": Lazy("trapline.cli.reproduce.all_papers:all_papers", "All papers, with an index page of their claims."),
    "cao": Lazy(
        "trapline.cli.reproduce.scheduling:cao", "Cao, Jiang and Singh: crawl scheduling by performance and quality."
    ),
    "castillo": Lazy(
        "trapline.cli.reproduce.scheduling:castillo",
        "Castillo, Marin, Rodriguez and Baeza-Yates: Scheduling Algorithms for Web Crawling.",
    ),
    "cho": Lazy("trapline.cli.reproduce.cho:cho", "Cho and Garcia-Molina: Parallel Crawlers."),
    "thesis": Lazy("trapline.cli.reproduce.scheduling:thesis", "Castillo: Effective Web Crawling, chapter 4."),
    "xu": Lazy(
        "trapline.cli.reproduce.xu:xu",
        "Xu, Li, Qu and Labrinidis: Towards a Content-Provider-Friendly Web Page Crawler.",
    ),
}


@click.group(cls=LazyGroup, lazy=PAPERS, invoke_without_command=True)
@click.pass_context
def reproduce(ctx: click.Context) -> None:
    """Reproduce a paper's experiments and check its claims. Without a paper, list the papers."""
    if ctx.invoked_subcommand is None:
        say_text(ctx.get_help())
