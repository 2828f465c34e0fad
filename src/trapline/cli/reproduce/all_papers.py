"""`trapline reproduce all`: every paper, one after the other, into one folder with an index page."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.sections import Section, SectionedCommand
from trapline.cli.reproduce.cho import ChoOptions, cho_plan
from trapline.cli.reproduce.command import JOBS_WITH_LIVE, check_output, output_section, run_plan
from trapline.cli.reproduce.paper_page import index_page, summary, verdicts
from trapline.cli.reproduce.paper_results import for_machines, write
from trapline.cli.reproduce.scheduling import PaperOptions, cao_plan, castillo_plan, thesis_plan
from trapline.cli.reproduce.xu import XuOptions, xu_plan
from trapline.output import write_json, write_text
from trapline.terminal import say, say_json

if TYPE_CHECKING:
    from trapline.lab.paper import Paper, PaperPlan

INDEX, NUMBERS = "index.html", "all.json"
# In this order: castillo and thesis share most of their runs.
PLANS: "Mapping[str, Callable[[bool], Callable[[], PaperPlan]]]" = {
    "cao": lambda quick: partial(cao_plan, PaperOptions(quick=quick)),
    "castillo": lambda quick: partial(castillo_plan, PaperOptions(quick=quick)),
    "thesis": lambda quick: partial(thesis_plan, PaperOptions(quick=quick)),
    "cho": lambda quick: partial(cho_plan, ChoOptions(quick=quick)),
    "xu": lambda quick: partial(xu_plan, XuOptions(quick=quick)),
}
_WHAT = Section("What to run", (("--quick", "quick", None, False, "Run the short forms: smaller webs and crawls."),))


@click.command("all", cls=SectionedCommand)
@_WHAT
@JOBS_WITH_LIVE
@output_section("papers")
def all_papers(quick: bool, jobs: int, folder: Path, as_json: bool) -> None:
    """Reproduce all papers, and write an index page of all claims.

    Runs cao, castillo, thesis, cho and xu, one after the other, into one folder. If you interrupt the command, repeat it: it continues
    where it stopped. See docs/reproduce.md.
    """
    check_output(folder, INDEX)
    options = {"quick": quick}
    papers = [_reproduced(name, quick, jobs, folder) for name in PLANS]
    write_index(papers, folder, options)
    if as_json:
        say_json(_for_machines(papers, options))
    else:
        for paper in papers:
            say(summary(paper))
    say(f"all: {verdicts(papers)} See {folder / INDEX}", err=True)


def _reproduced(name: str, quick: bool, jobs: int, folder: Path) -> "Paper":
    """Reproduce one paper and write its files, so that they are there if a later paper fails."""
    paper = run_plan(PLANS[name](quick), jobs, folder)
    write(paper, folder, {"quick": quick})
    return paper


def write_index(papers: "list[Paper]", folder: Path, options: Mapping[str, Any]) -> None:
    write_text(folder / INDEX, index_page(papers, options))
    write_json(folder / NUMBERS, _for_machines(papers, options))


def _for_machines(papers: "list[Paper]", options: Mapping[str, Any]) -> dict[str, Any]:
    from trapline import __version__

    return {
        "trapline": __version__,
        "options": dict(options),
        "papers": {paper.name: for_machines(paper, options) for paper in papers},
    }
