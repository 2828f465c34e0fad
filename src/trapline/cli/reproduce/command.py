"""`trapline reproduce`: the group of commands, and the output that they share: tables or JSON, and plots in a folder."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from trapline.cli.lazy import Lazy, LazyGroup
from trapline.errors import ConfigError
from trapline.output import check_writable, write_json
from trapline.terminal import say_text

STDOUT = Path("-")
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


# ---- `trapline reproduce`: one module per paper, such as `xu.py`. A new paper is a new line in this table.

PAPERS = {
    "cao": Lazy(
        "trapline.cli.reproduce.scheduling:cao", "Cao, Jiang and Singh: crawl scheduling by performance and quality."
    ),
    "castillo": Lazy(
        "trapline.cli.reproduce.scheduling:castillo",
        "Castillo et al.: Scheduling Algorithms for Web Crawling; and Castillo's thesis, chapter 4.",
    ),
    "cho": Lazy("trapline.cli.reproduce.cho:cho", "Cho and Garcia-Molina: Parallel Crawlers."),
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
