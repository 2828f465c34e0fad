"""`trapline serve`: the group of services."""

import click

from trapline.cli.lazy import Lazy, LazyGroup

_COMMANDS = {
    "urlfrontier": Lazy(
        "trapline.cli.serve.urlfrontier:urlfrontier", "Serve a frontier to StormCrawler and others, by gRPC."
    ),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def serve() -> None:
    """Serve Trapline's frontier to other crawlers."""
