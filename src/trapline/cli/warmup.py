"""`trapline warmup`: compile the core into its cache, so that no later command waits for it."""

import click

from trapline.cli.progress import Progress


@click.command()
def warmup() -> None:
    """Compile the core now instead of at the first run."""
    from trapline.jit import compile_all

    with Progress("compiling", plain_every_s=0.0) as progress:
        seconds = compile_all(progress.update)
    click.echo(f"the core is compiled ({seconds:.1f} s)")
