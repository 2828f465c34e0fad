"""`trapline warmup`: compile the core into its cache, so that no later command has to wait for it."""

import time
from collections.abc import Callable

import click

from trapline.cli.terminal.progress import Progress, waiting_by
from trapline.progress import ProgressCallback
from trapline.terminal import say


def compile_all(progress: ProgressCallback | None = None, waiting: Callable[[], None] = lambda: None) -> float:
    """Load or compile every kernel, rank and policy of Trapline, and return the seconds that it took."""
    import trapline.crawler.engine.run
    import trapline.fetch.html.requisite_tags
    import trapline.frontier.replay
    import trapline.graph.formats.text_output
    import trapline.graph.load
    import trapline.parallel.simulated.crawl
    import trapline.refresh.replay.replayer
    import trapline.simulator.changing
    import trapline.simulator.driver
    import trapline.simulator.metrics  # noqa: F401  registers their kernels, and those of all modules below them
    from trapline.compiled.jit import ready
    from trapline.refresh import all_policies
    from trapline.strategies import page_ranks, site_ranks

    started = time.perf_counter()
    ranks = [rank.function for rank in page_ranks().values()] + [rank.function for rank in site_ranks().values()]
    ranks += [function for policy in all_policies().values() for function in policy.functions]
    ready(ranks=ranks, progress=progress, waiting=waiting)
    for rank in ranks:
        _ = rank.address
    return time.perf_counter() - started


@click.command()
def warmup() -> None:
    """Compile Trapline's core now, instead of when it is first used.

    Compiles in one process per core. TRAPLINE_COMPILE_PROCESSES=1 forces one process.
    """
    with Progress("compiling", plain_every_s=2.0) as progress:
        seconds = compile_all(progress.update, waiting_by(progress))
    say(f"compiled the core in {seconds:.1f} s")
