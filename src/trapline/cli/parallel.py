"""`trapline parallel`: crawls of many partitions. One file a command; a new one is a line here."""

import click

from trapline.cli.lazy import Lazy, LazyGroup

_COMMANDS = {
    "simulate": Lazy("trapline.cli.parallel_simulate:simulate", "Crawl a graph with n partitions in simulated time."),
    "plan": Lazy(
        "trapline.cli.parallel_plan:plan", "How many processes a crawl needs, and how they should work together."
    ),
    "status": Lazy("trapline.cli.parallel_status:status", "How every partition of a running crawl stands."),
    "resize": Lazy("trapline.cli.parallel_resize:resize", "Let a running crawl go on with more partitions."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def parallel() -> None:
    """Crawls of many partitions: simulate and plan them; watch and resize one that runs."""
