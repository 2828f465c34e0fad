"""`trapline crawl --processes N`: a crawl of several processes, on this machine or on Ray (`--ray`), new or resumed.

To the user it looks like a crawl of one process.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trapline.cli.crawl.end import ended_before, say
from trapline.cli.crawl.options import Requested, partition_options
from trapline.cli.crawl.ready import (
    announce,
    changed_settings,
    compile_for,
    moved_files,
    note,
    prepared_new,
    raised_goals,
    refresh_changes,
    refuse_reached,
    until_begun,
)
from trapline.cli.crawl.watching import Dashboard
from trapline.cli.terminal.progress import said_if_long
from trapline.errors import ConfigError

if TYPE_CHECKING:
    from trapline.crawler.engine.options import CrawlOptions
    from trapline.crawler.files.opening import Prepared
    from trapline.parallel.folder.manifest import Manifest
    from trapline.parallel.live.supervisor import Show

    RunPartitions = Callable[[Manifest, Show], Manifest]


def is_in_parts(given: dict[str, Any]) -> bool:
    """Return whether this is a crawl of several processes: by its folder with --resume, otherwise by the options."""
    resume, processes = given["resume"], given["processes"]
    if resume is None:
        if given["ray"] is not None and processes is None:
            raise ConfigError("--ray needs a number of processes; also give --processes N")
        return given["ray"] is not None or (processes is not None and processes > 1)
    from trapline.parallel.folder.manifest import is_parallel, refuse_partition

    refuse_partition(resume)
    if processes is not None and processes > 1 and not is_parallel(resume):
        raise ConfigError(f"{resume}: not a crawl of several processes; resume it without --processes")
    if given["ray"] is not None and not is_parallel(resume):
        raise ConfigError(f"{resume}: not a crawl of several processes; resume it without --ray")
    return is_parallel(resume)


def crawl_in_parts(urls: tuple[str, ...], requested: Requested, dashboard: Dashboard) -> int:
    """Run the crawl. Return the exit code."""
    given = requested.given
    with _crawling(given["ray"], given["quiet"]) as crawl, ExitStack() as begun:
        with until_begun():
            from trapline.crawler.engine.stop_reasons import signals_held

            manifest = _resumed(given) if given["resume"] else _new(requested.options(urls), given)
            if isinstance(manifest, int):
                return manifest
            announce(manifest.options, manifest.folder, given["quiet"])
            dashboard.announce()
            if given["ray"] is None:  # making machines ready may take minutes, which Ctrl-C ends at once
                begun.enter_context(signals_held())
        summary = _crawled(manifest, given, crawl)
    return say(summary, manifest.folder, given)


@contextmanager
def _crawling(address: str | None, quiet: bool) -> Iterator["RunPartitions"]:
    """Provide the function that runs the partitions: on Ray if an address is given, otherwise in processes of this machine.

    Connects to Ray before any file is created, because Ray may be missing.
    """
    if address is None:
        from trapline.parallel.live.supervisor import crawl_in_processes

        yield crawl_in_processes
        return
    try:
        with said_if_long("loading Ray", quiet):
            from trapline.parallel.ray.cluster import connected
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ConfigError(
            '--ray needs Ray: pip install "trapline[ray]", or in a clone pip install -e ".[ray]"'
        ) from None
    with connected(address, partial(said_if_long, quiet=quiet)) as cluster:
        yield cluster.crawl


def _new(options: "CrawlOptions", given: dict[str, Any]) -> "Manifest":
    from trapline.parallel.folder.manifest import create, is_parallel

    folder: Path = given["output"]
    if is_parallel(folder):
        raise ConfigError(
            f"{folder}: exists and holds a crawl; continue it with --resume {folder}, or choose another folder"
        )
    live = partition_options(given)
    partitioning = live.partitioning(options, given["processes"])
    policy = live.policy(options, partitioning)
    prepared = prepared_new(options, folder)
    _check(prepared)
    note(prepared.notes, given["quiet"])
    # Replay is compiled too, because a partition that dies is rebuilt from its log.
    compile_for(replace(prepared, new=False), given["quiet"])
    return create(folder, prepared.options, partitioning, policy).begun(prepared.options)


def _check(prepared: "Prepared") -> None:
    if prepared.strategy.page.scores:
        raise ConfigError(
            f"strategy {prepared.strategy.name!r} needs the links of all processes in one process; crawl without --processes"
        )


def _resumed(given: dict[str, Any]) -> "Manifest | int":
    """Return the crawl to continue; or the exit code if it has ended: the reason is printed then."""
    from trapline.crawler.files.opening import Prepared, changed, notes_on_requests
    from trapline.crawler.handler.user_handler import check_handler, handler_changes
    from trapline.parallel.folder.link_policy import check
    from trapline.parallel.folder.manifest import read
    from trapline.parallel.folder.merged import brought_up, parts_of
    from trapline.parallel.ray.machines import refuse_elsewhere

    folder: Path = given["resume"]
    if given["ray"] is None:
        refuse_elsewhere(folder)
    manifest, goals = read(folder), raised_goals(given)
    if given["processes"] is not None:
        manifest = manifest.grown(given["processes"])
    settings, changes = changed_settings(given), {**goals, **moved_files(given), **handler_changes(given["handler"])}
    options, strategy = changed(manifest.options, refresh_changes(given), settings, **changes)
    check(manifest.policy, manifest.partitioning, options)
    check_handler(options)
    code = ended_before(brought_up(folder), given, goals, settings) if manifest.stopped_by else None
    if code is not None:
        return code
    if goals and parts_of(folder):
        refuse_reached(brought_up(folder), goals)
    note(notes_on_requests(options), given["quiet"])
    prepared = Prepared(folder, options, strategy, new=False)
    _check(prepared)
    compile_for(prepared, given["quiet"])
    return manifest.begun(options)


def _crawled(manifest: "Manifest", given: dict[str, Any], crawl: "RunPartitions") -> dict[str, Any]:
    from trapline.cli.crawl.view import view
    from trapline.cli.terminal.progress import step
    from trapline.crawler.inspect.summary import write_summary
    from trapline.parallel.folder.merged import merge

    with view(given["plain"], given["quiet"]) as show:
        ended = crawl(manifest, show)
    with step("merging", ended.partitioning.partitions, "partitions"):
        merge(ended)
        return write_summary(manifest.folder)
