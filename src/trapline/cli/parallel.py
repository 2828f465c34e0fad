"""`trapline parallel`: crawls of many partitions. One file a command; a new one is a line here."""

import click

from trapline.cli.lazy import Lazy, LazyGroup

_COMMANDS = {
    "simulate": Lazy("trapline.cli.parallel_simulate:simulate", "Crawl a graph with n partitions in simulated time."),
    "plan": Lazy(
        "trapline.cli.parallel_plan:plan", "How many partitions a crawl needs, and how they should work together."
    ),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def parallel() -> None:
    """Crawls of many partitions: what they cover, fetch twice, and tell each other."""
