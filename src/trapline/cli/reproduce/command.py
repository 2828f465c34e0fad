"""`trapline reproduce`: the group of commands, and the output that they share: tables or JSON, and plots in a folder."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trapline.cli.lazy import Lazy, LazyGroup
from trapline.cli.options.sections import Section
from trapline.cli.options.values import count
from trapline.cli.terminal.progress import Progress, compile_kernels
from trapline.errors import ConfigError
from trapline.output import check_writable, write_json
from trapline.terminal import say, say_text

if TYPE_CHECKING:
    from trapline.lab.paper import Paper, PaperPlan
    from trapline.lab.study import StudyRun

STDOUT = Path("-")
_PATH = click.Path(path_type=Path)
Found = TypeVar("Found")


def check_outputs(folder: Path | None, picture: str, json_file: Path | None) -> None:
    """Check the outputs before anything that takes long. `picture`: one file that will be in it."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"--output {folder}: cannot create the folder: {error.strerror}; choose another folder"
            ) from error
        check_writable(folder / picture)
    if json_file is not None and json_file != STDOUT:
        check_writable(json_file)


def put_out(
    found: Sequence[Found], show: Callable[[Found], None], json_file: Path | None, for_machines: Callable[[], Any]
) -> None:
    """Print tables and write JSON to a file if one is given; if the file is stdout, print only JSON."""
    if json_file == STDOUT:
        say_text(json.dumps(for_machines(), indent=1))
        return
    for reproduction in found:
        show(reproduction)
    if json_file is not None:
        write_json(json_file, for_machines())


def refuse_same_names(option: str, what: str, names: Iterable[str]) -> None:
    """Raise `ConfigError` if two inputs have the same name: finished runs are found by it."""
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{option}: two {what}s are called {name}; give each {what} once, or rename a file")


def output_section(paper: str) -> Section:
    """Return the options of the output, the same for every paper."""
    folder = "Folder for the page, plots and JSON, and for finished runs, which are not repeated."
    numbers = "Write numbers and verdicts as JSON to this file too; -: to stdout, instead of tables."
    return Section(
        "Output",
        (
            ("-o --output", "folder", (_PATH, "DIR"), Path(f"trapline-{paper}"), folder),
            ("--json", "json_file", (_PATH, "FILE"), None, numbers),
        ),
    )


_MANY = "Number of processes that simulate. Each loads its own copy of the web. Live crawls run one at a time."
JOBS = Section("Processes", (("--jobs", "jobs", count(1, 1000), 1, _MANY),))


# ---- one paper


def reproduce_plan(
    make: "Callable[[], PaperPlan]",
    name: str,
    options: Mapping[str, Any],
    jobs: int,
    folder: Path,
    json_file: Path | None,
) -> None:
    """Check the outputs, make the plan, run it, judge its claims, and write and show the results. `make` must be picklable."""
    from trapline.cli.reproduce.paper_results import put_out_paper

    check_outputs(folder, f"{name}.html", json_file)
    put_out_paper(run_plan(make, jobs, folder), folder, json_file, options)


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
