"""`trapline crawl`: the live crawl. It shows how the crawl goes, and says what came of it."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.compiling import compile_kernels, compile_policies, compile_ranks, compile_replay
from trapline.cli.crawl_options import SECTIONS, Requested, as_typed
from trapline.cli.crawl_resume import prepared_old, raised_goals, refuse_others
from trapline.cli.progress import Progress, said_if_long
from trapline.cli.sections import SectionedCommand, bundled
from trapline.cli.strategy import Chosen, files_of
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.crawl.opening import Prepared
    from trapline.crawl.options import CrawlOptions


@click.command(cls=SectionedCommand)
@click.argument("urls", nargs=-1, metavar="URL...")
@bundled("requested", as_typed, *SECTIONS)
def crawl(urls: tuple[str, ...], requested: Requested) -> int:
    """Crawl the web from these URLs into a folder: WARC files, an index, a database, a summary.

    Ctrl-C ends the visits under way and leaves a whole folder; --resume DIR goes on, also after a crash. A TIME is in
    seconds, or with a unit: 250ms, 2min, 1h. Brackets hold the default.
    """
    given = requested.given
    output, resume = given["output"], given["resume"]
    if resume is not None:
        refuse_others(urls)
    elif output is None:
        raise ConfigError("give the crawl a folder: -o DIR")
    if resume is not None and _has_ended(resume, given):
        return 0
    prepared = prepared_old(resume, given) if resume else _prepared_new(requested.options(urls), output)
    if not given["quiet"]:
        for note in prepared.notes:
            click.echo(f"trapline: note: {note}", err=True)
    _compile(prepared, given["quiet"])
    summary = _crawled(prepared, given["plain"], given["quiet"])
    _say(summary, prepared.folder, given["as_json"], given["quiet"])
    return 0


def _has_ended(folder: Path, given: dict[str, Any]) -> bool:
    """Whether there is nothing to go on with; then that is said."""
    from trapline.crawl.ended import ended

    over = ended(folder, given["continuous"], **raised_goals(given))
    if over is not None:
        _print(over.line, over.summary, given["as_json"], given["quiet"])
    return over is not None


def _prepared_new(options: "CrawlOptions", folder: Path) -> "Prepared":
    from trapline.crawl.opening import prepare_new

    with Progress("looking up the seeds", plain_every_s=math.inf) as progress:  # some seconds at most
        progress.update(0, len(options.seeds))
        return prepare_new(options, folder)


def _compile(prepared: "Prepared", quiet: bool) -> None:
    import trapline.crawl.run  # noqa: F401  its kernels, all imported before they are counted
    from trapline.refresh import policy_named

    options = prepared.options
    if prepared.new:
        compile_kernels(quiet)
    else:
        compile_replay(quiet)
    compile_ranks([Chosen(prepared.strategy, files_of(options.strategy, options.page_rank, options.site_rank))], quiet)
    if options.refresh is not None:
        compile_policies([policy_named(options.refresh.policy)], quiet)


def _crawled(prepared: "Prepared", plain: bool, quiet: bool) -> dict[str, Any]:
    from trapline.cli.crawl_view import view
    from trapline.crawl.opening import opened
    from trapline.crawl.run import run_crawl

    reading = Progress("reading the crawl", plain_every_s=2.0, quiet=quiet)
    with said_if_long(f"opening {prepared.folder}", quiet), reading as progress:
        crawl = opened(prepared, progress.update)
    return run_crawl(crawl, view(plain, quiet))


def _say(summary: dict[str, Any], folder: Path, as_json: bool, quiet: bool) -> None:
    from trapline.cli.crawl_end import closing_lines

    _print(closing_lines(summary, folder), summary, as_json, quiet)


def _print(lines: str, summary: dict[str, Any], as_json: bool, quiet: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary, indent=1))
    elif not quiet:
        click.echo(lines)
