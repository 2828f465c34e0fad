"""`trapline crawl`: a live crawl in one process or in several. Shows the progress of the crawl and prints its summary at the end."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from trapline.cli.crawl.end import ended_before, say
from trapline.cli.crawl.options import SECTIONS, Requested, as_typed
from trapline.cli.crawl.processes import crawl_in_parts, is_in_parts
from trapline.cli.crawl.ready import (
    announce,
    announce_waiting,
    changed_settings,
    compile_for,
    note,
    prepared_new,
    prepared_old,
    raised_goals,
    refuse_others,
    until_begun,
)
from trapline.cli.crawl.watching import Dashboard, watched
from trapline.cli.options.config_file import with_config
from trapline.cli.options.partitions import LIVE
from trapline.cli.options.sections import SectionedCommand, bundled, refuse
from trapline.cli.terminal.progress import Progress, said_if_long
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.crawler.files.opening import Opened, Prepared


@click.command(cls=SectionedCommand)
@click.argument("urls", nargs=-1, metavar="[URL]...")
@with_config("Crawl")
@bundled("requested", as_typed, *SECTIONS)
def crawl(urls: tuple[str, ...], requested: Requested) -> int:
    """Crawl the web from these URLs, and write a folder with WARC files, an index, a database and a summary.

    Ctrl-C stops cleanly. --resume DIR continues the crawl, even after a crash. A TIME is in seconds or has a unit: 250ms, 2min, 1h. A
    SHARE is 0.05 or 5%. Defaults are in brackets.
    """
    given = requested.given
    if given["resume"] is not None:
        refuse_others(urls)
    elif given["output"] is None:
        raise ConfigError("no folder for the crawl; give one: trapline crawl URL -o DIR")
    with watched(given) as dashboard:
        if is_in_parts(given):
            return crawl_in_parts(urls, requested, dashboard)
        if not given["no_robots"]:
            refuse(["own_hosts"], "has no effect without --processes N or --no-robots; add one of these, or omit it")
        refuse(
            [name for name in LIVE.fields if name != "own_hosts"],
            "has no effect in a crawl of one process; omit it, or also give --processes N",
        )
        return _crawl_alone(urls, requested, dashboard)


def _crawl_alone(urls: tuple[str, ...], requested: Requested, dashboard: Dashboard) -> int:
    given = requested.given
    resume, plain, quiet = given["resume"], given["plain"], given["quiet"]
    with ExitStack() as begun:
        with until_begun():
            from trapline.cli.crawl.view import view
            from trapline.crawler.engine.run import run_crawl
            from trapline.crawler.engine.stop_reasons import signals_held

            if resume is not None:
                code = ended_before(resume, given, raised_goals(given), changed_settings(given))
                if code is not None:
                    return code
            prepared = prepared_old(resume, given) if resume else prepared_new(requested.options(urls), given["output"])
            note(prepared.notes, quiet)
            compile_for(prepared, quiet)
            folder = resume or given["output"]
            announce(prepared.options, folder, quiet, prepared.new)
            dashboard.announce()
            old = None if prepared.new else _opened(prepared, quiet)  # reading a long crawl takes time
            begun.enter_context(signals_held())  # a new folder is left complete
        return say(run_crawl(old or _opened(prepared, quiet), view(plain, quiet)), folder, given)


def _opened(prepared: "Prepared", quiet: bool) -> "Opened":
    from trapline.crawler.files.opening import opened

    reading = Progress("reading the crawl", plain_every_s=2.0, quiet=quiet)
    with said_if_long(f"opening {prepared.folder}", quiet), reading as progress:
        crawl = opened(prepared, progress.update)
    note(crawl.state.notes, quiet)
    if not prepared.new:
        announce_waiting(crawl, quiet)
    return crawl
