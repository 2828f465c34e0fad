"""`trapline crawl --processes N`: a crawl of several processes, here or on Ray (`--ray`), begun or resumed, that looks like one."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.cli.crawl_end import has_ended, say
from trapline.cli.crawl_options import Requested
from trapline.cli.crawl_ready import announce, compile_for, note, prepared_new
from trapline.cli.crawl_resume import raised_goals, refresh_changes, refuse_reached
from trapline.cli.progress import said_if_long
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.crawl.opening import Prepared
    from trapline.crawl.options import CrawlOptions
    from trapline.parallel.crew import Show
    from trapline.parallel.manifest import Manifest

    Crawl = Callable[[Manifest, Show], Manifest]


def is_in_parts(given: dict[str, Any]) -> bool:
    """Whether the crawl is one of several processes: by its folder, if it is there."""
    resume, processes = given["resume"], given["processes"]
    if resume is None:
        if given["ray"] is not None and processes is None:
            raise ConfigError("--ray needs to know how many partitions there are to be: --processes N")
        return given["ray"] is not None or (processes is not None and processes > 1)
    from trapline.parallel.manifest import is_parallel

    _refuse_part(resume)
    if processes is not None and processes > 1 and not is_parallel(resume):
        raise ConfigError(f"{resume}: is no crawl of several processes; go on without --processes")
    if given["ray"] is not None and not is_parallel(resume):
        raise ConfigError(f"{resume}: is no crawl of several processes; go on without --ray")
    return is_parallel(resume)


def _refuse_part(folder: Path) -> None:
    """Alone it would take the whole web for its own, wherever it lies."""
    from trapline.crawl.folder import meta, opened
    from trapline.parallel.manifest import is_parallel

    if is_parallel(folder):
        return
    with closing(opened(folder)) as database:
        if "partition" not in meta(database):
            return
    whole = folder.absolute().parent
    if is_parallel(whole):
        raise ConfigError(f"{folder}: is a part of the crawl in {whole}; go on with --resume {whole}")
    raise ConfigError(
        f"{folder}: is a part of a crawl of several processes; put it back there, and go on with the whole"
    )


def crawl_in_parts(urls: tuple[str, ...], requested: Requested) -> None:
    given = requested.given
    with _crawling(given["ray"], given["quiet"]) as crawl:
        manifest = _resumed(given) if given["resume"] else _new(requested.options(urls), given)
        if manifest is None:
            return
        announce(manifest.options, manifest.folder, given["quiet"])
        summary = _crawled(manifest, given, crawl)
    say(summary, manifest.folder, given)


@contextmanager
def _crawling(address: str | None, quiet: bool) -> Iterator["Crawl"]:
    """How partitions are run: by Ray, if it has an address. Before anything is made: it may not be there."""
    if address is None:
        from trapline.parallel.processes import crawl_in_processes

        yield crawl_in_processes
        return
    try:
        with said_if_long("loading Ray", quiet):
            from trapline.parallel.on_ray import connected
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ConfigError(
            '--ray needs Ray: pip install "trapline[ray]", or in a clone pip install -e ".[ray]"'
        ) from None
    with connected(address, partial(said_if_long, quiet=quiet)) as cluster:
        yield cluster.crawl


def _new(options: "CrawlOptions", given: dict[str, Any]) -> "Manifest":
    from trapline.parallel.manifest import create, is_parallel
    from trapline.parallel.places import partitioning_for

    folder: Path = given["output"]
    if is_parallel(folder):
        raise ConfigError(f"{folder}: exists and holds a crawl; go on with --resume {folder}, or name another folder")
    prepared = prepared_new(options, folder)
    _check(prepared)
    note(prepared.notes, given["quiet"])
    compile_for(replace(prepared, new=False), given["quiet"])  # a partition that dies is made again from its log
    partitioning = partitioning_for(prepared.options.rules, given["processes"])
    return create(folder, prepared.options, partitioning).begun(prepared.options)


def _check(prepared: "Prepared") -> None:
    if prepared.strategy.page.scores:
        raise ConfigError(
            f"strategy {prepared.strategy.name!r} needs the links of all processes at one place; crawl without --processes"
        )


def _resumed(given: dict[str, Any]) -> "Manifest | None":
    """The crawl to go on with; None: it has come to its end, and that was said."""
    from trapline.crawl.opening import Prepared, changed
    from trapline.crawl.resume import strategy_of
    from trapline.parallel.manifest import read
    from trapline.parallel.merged import brought_up, parts_of
    from trapline.parallel.placement import refuse_elsewhere

    folder: Path = given["resume"]
    if given["ray"] is None:
        refuse_elsewhere(folder)
    manifest, goals = read(folder), raised_goals(given)
    if given["processes"] is not None:
        manifest = manifest.grown(given["processes"])
    options = changed(manifest.options, refresh_changes(given), **goals)
    if manifest.stopped_by and has_ended(brought_up(folder), given, goals):
        return None
    if goals and parts_of(folder):
        refuse_reached(brought_up(folder), goals)
    compile_for(Prepared(folder, options, strategy_of(options), new=False), given["quiet"])
    return manifest.begun(options)


def _crawled(manifest: "Manifest", given: dict[str, Any], crawl: "Crawl") -> dict[str, Any]:
    from trapline.cli.compiling import step
    from trapline.cli.crawl_view import view
    from trapline.crawl.summary import write_summary
    from trapline.parallel.merged import merge

    with view(given["plain"], given["quiet"]) as show:
        ended = crawl(manifest, show)
    with step("merging", ended.partitioning.partitions, "partitions"):
        merge(ended)
        return write_summary(manifest.folder)
