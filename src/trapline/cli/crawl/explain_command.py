"""`trapline explain`: why a page was fetched at its time, or why it has not been fetched yet; the same for a site."""

from contextlib import AbstractContextManager
from pathlib import Path

import click

from trapline.terminal import say


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("what", metavar="URL|SITE")
def explain(folder: Path, what: str) -> None:
    """Explain when and why the crawl in DIR fetched a page, or why the page is still waiting. For a SITE, show its state.

    A SITE is written without a path: example.org, or https://example.org.
    """
    from trapline.report.explanation import explanation

    say(*explanation(folder, what, _TerminalProgress()))


class _TerminalProgress:
    """Shows the long parts of an explanation as progress lines."""

    def compile_kernels(self) -> None:
        from trapline.cli.terminal.progress import compile_kernels

        compile_kernels()

    def compile_replay(self) -> None:
        """A new crawl never needs these kernels, so after a first crawl this command is the first to compile them."""
        import trapline.frontier.replay  # noqa: F401  imports its kernels before they are counted
        from trapline.cli.terminal.progress import Progress, waiting_by
        from trapline.compiled.jit import ready

        with Progress("compiling the replay of a crawl's log, once", plain_every_s=2.0) as progress:
            ready(progress=progress.update, waiting=waiting_by(progress))

    def replaying(self) -> AbstractContextManager[None]:
        from trapline.cli.terminal.progress import step

        return step("replaying", 1, "crawl")
