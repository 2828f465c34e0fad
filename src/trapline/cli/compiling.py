"""Compiling, and other work without steps, with a line of progress. Every command that needs the core begins here."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trapline.cli.progress import Progress

if TYPE_CHECKING:
    from trapline.jit import Rank
    from trapline.strategies import Strategy

_MANY_PAGES = 500_000


def compile_kernels() -> None:
    """Have all kernels of the modules imported so far compiled, with a line of progress if they were not."""
    from trapline.jit import ready

    with Progress("compiling", plain_every_s=2.0) as progress:
        ready(progress.update)


def compile_crawl() -> None:
    """Have compiled what a simulated crawl needs, apart from the ranks."""
    import trapline.simulate  # noqa: F401  its kernels, all imported before they are counted

    compile_kernels()


def compile_ranks(strategies: Iterable["Strategy"]) -> None:
    """Compile ranks before what takes long, and apart from the crawl, where a failure would have other causes."""
    ranks: list[Rank] = [function for s in strategies for function in (s.page.function, s.site.function)]
    with Progress("compiling ranks", plain_every_s=2.0) as progress:
        for number, rank in enumerate(ranks):
            progress.update(number, len(ranks))
            _ = rank.address


@contextmanager
def step(what: str, pages: int) -> Iterator[None]:
    """A line of progress for one call that cannot say how far it is. A log hears of it if so many pages take
    seconds."""
    with Progress(what, plain_every_s=0.0 if pages > _MANY_PAGES else math.inf) as progress:
        progress.update(0, pages, "pages")
        yield
