"""`trapline parallel resize`: a running crawl goes on with more partitions. The crawl's own command does it; this one tells it to."""

from pathlib import Path

import click

from trapline.cli.numbers import count
from trapline.errors import ConfigError
from trapline.parallel import MOST_PROCESSES
from trapline.terminal import say


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("processes", metavar="N", type=count(1, MOST_PROCESSES))
def resize(folder: Path, processes: int) -> None:
    """Let the crawl that runs in DIR go on with N partitions, more than it has.

    They stop in order, sites that get another owner are handed over, and all N start.
    """
    from trapline.parallel.watching import NotRunningError, ask

    try:
        ask(folder, resize=processes)
    except NotRunningError:
        raise ConfigError(
            f"{folder}: its crawl does not run now; let it go on with {processes}:"
            f" trapline crawl --resume {folder} --processes {processes}"
        ) from None
    say(f"{folder}: stops its partitions and goes on with {processes}; see: trapline parallel status {folder}")
