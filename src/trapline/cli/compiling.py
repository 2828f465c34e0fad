"""Compiling, and other work without steps, with a line of progress. Every command that needs the core begins here."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trapline.cli.progress import Progress
from trapline.cli.strategy import Chosen

if TYPE_CHECKING:
    from trapline.refresh import Policy

_MANY_PAGES = 500_000


def compile_kernels(quiet: bool = False) -> None:
    """Have all kernels of the modules imported so far compiled, with a line of progress if they were not."""
    from trapline.jit import ready

    with Progress("compiling", plain_every_s=2.0, quiet=quiet) as progress:
        ready(progress.update, waiting_by(progress))


def waiting_by(progress: Progress) -> Callable[[], None]:
    """What says that somebody else compiles already."""
    return lambda: progress.say("another trapline is compiling; waiting")


def compile_crawl() -> None:
    """Have compiled what a simulated crawl needs, apart from the ranks."""
    import trapline.simulate.driver  # noqa: F401  its kernels, all imported before they are counted

    compile_kernels()


def compile_replay(quiet: bool = False) -> None:
    """Have compiled what was imported so far, and what makes a crawl again from its log."""
    import trapline.frontier.replay  # noqa: F401

    compile_kernels(quiet)


def compile_ranks(every: Sequence[Chosen], quiet: bool = False) -> None:
    """Compile ranks before what takes long, and apart from the crawl, where a failure would have other causes."""
    with Progress("compiling ranks", plain_every_s=2.0, quiet=quiet) as progress:
        for number, chosen in enumerate(every):
            progress.update(number, len(every), chosen.name)
            with chosen.blamed():
                for rank in (chosen.strategy.page, chosen.strategy.site):
                    _ = rank.function.address


def compile_policies(every: Sequence["Policy"], quiet: bool = False) -> None:
    """Compile what says which page is worth fetching again."""
    with Progress("compiling policies", plain_every_s=2.0, quiet=quiet) as progress:
        for number, policy in enumerate(every):
            progress.update(number, len(every), policy.name)
            policy.compile()


@contextmanager
def step(what: str, number: int, unit: str = "pages") -> Iterator[None]:
    """A line of progress for one call that cannot say how far it is. A log hears of it if so many pages take
    seconds."""
    with Progress(what, plain_every_s=0.0 if number > _MANY_PAGES else math.inf) as progress:
        progress.update(0, number, unit)
        yield
