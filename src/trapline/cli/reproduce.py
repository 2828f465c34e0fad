"""`trapline reproduce`: the experiments of a paper. One file a paper, `reproduce_xu.py` and so on; a new one is a line here."""

import click

from trapline.cli.lazy import Lazy, LazyGroup
from trapline.terminal import say_text

PAPERS = {
    "cho": Lazy("trapline.cli.reproduce_cho:cho", "Cho, Garcia-Molina: Parallel Crawlers."),
    "xu": Lazy(
        "trapline.cli.reproduce_xu:xu", "Xu, Li, Qu, Labrinidis: Towards a Content-Provider-Friendly Web Page Crawler."
    ),
}


@click.group(cls=LazyGroup, lazy=PAPERS, invoke_without_command=True)
@click.pass_context
def reproduce(ctx: click.Context) -> None:
    """Run a paper's experiments again, and say which of its orderings hold. Without a paper: list those that can be done."""
    if ctx.invoked_subcommand is None:
        say_text(ctx.get_help())
