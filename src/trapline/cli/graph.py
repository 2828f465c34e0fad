"""`trapline graph`: make and inspect web graphs."""

import json
from pathlib import Path
from typing import Any

import click

from trapline.cli.generate import generate
from trapline.cli.progress import Progress

_FOLDER = click.Path(path_type=Path)


@click.group()
def graph() -> None:
    """Make and inspect web graphs."""


graph.add_command(generate)


@graph.command()
@click.argument("path", type=_FOLDER)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def info(path: Path, as_json: bool) -> None:
    """Count and measure the graph in PATH."""
    from dataclasses import asdict

    from trapline.graph import load_graph, measure
    from trapline.jit import ready

    with Progress("compiling", plain_every_s=2.0) as progress:
        ready(progress.update)
    with Progress("measuring", plain_every_s=2.0) as progress:
        progress.update(0, 2, "loading")
        web = load_graph(path)
        progress.update(1, 2)
        measures = asdict(measure(web))
    measures = {"format": web.origin.get("format"), **measures}
    click.echo(json.dumps(measures, indent=1) if as_json else _table(measures))


def _table(measures: dict[str, Any]) -> str:
    width = max(map(len, measures)) + 2
    return "\n".join(f"{name.replace('_', ' '):{width}}{_shown(value)}" for name, value in measures.items())


def _shown(value: object) -> str:
    match value:
        case dict():
            return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
        case float():
            return f"{value:.4g}"
        case int():
            return f"{value:,}"
        case None:
            return "-"
        case _:
            return str(value)
