"""Steps before a crawl runs: prepare it, announce it, check the options of --resume, and compile what it needs."""

import math
import shlex
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trapline.cli.crawl.options import GOALS, SETTINGS
from trapline.cli.options.config_file import site_tables
from trapline.cli.options.scheduling import check_history_used
from trapline.cli.options.sections import is_given
from trapline.cli.terminal.errors import INTERRUPTED, TERMINATED
from trapline.cli.terminal.progress import (
    LIVE_CRAWL,
    Progress,
    compile_kernels,
    compile_policies,
    compile_ranks,
    compile_replay,
    said_if_long,
)
from trapline.errors import ConfigError
from trapline.terminal import say
from trapline.units import bytes_shown, counted, duration

if TYPE_CHECKING:
    from trapline.crawler.engine.options import CrawlOptions
    from trapline.crawler.files.opening import Opened, Prepared

_FEW = 3  # at most this many names are listed


def prepared_new(options: "CrawlOptions", folder: Path) -> "Prepared":
    from trapline.crawler.files.opening import prepare_new

    with Progress("looking up the seeds", plain_every_s=math.inf) as progress:  # takes a few seconds at most
        progress.update(0, len(options.seeds))
        prepared = prepare_new(options, folder)
    check_history_used([prepared.strategy])
    return prepared


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which acts like Ctrl-C."""


@contextmanager
def until_begun() -> Iterator[None]:
    """At Ctrl-C or SIGTERM, say that no request was sent, and exit. The folder of the crawl, if it has one, is as it was."""

    def terminate(*_: object) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt as error:
        say("trapline: stopped before the first request; nothing was written; run the command again", err=True)
        raise click.exceptions.Exit(TERMINATED if isinstance(error, _Terminated) else INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def note(notes: Iterable[str], quiet: bool) -> None:
    for text in () if quiet else notes:
        say(f"trapline: note: {text}", err=True)


def announce(options: "CrawlOptions", folder: Path, quiet: bool, is_new: bool = True) -> None:
    """Print what the crawl is about to do, how long a site takes, and how to stop. `is_new`: False for a resumed crawl in one
    process, whose time follows from its waiting pages (`announce_waiting`)."""
    pace = [_pace(options)] if is_new else []
    for line in () if quiet else (_scope(options), *pace, _stop(folder)):
        say(line, err=True)


def announce_waiting(crawl: "Opened", quiet: bool) -> None:
    """Print how long the waiting pages of a resumed crawl take."""
    from trapline.crawler.speed.pace import pace_of_waiting

    state, tally = crawl.state, crawl.state.tally
    pace = pace_of_waiting(state.frontier, state.sites, crawl.options, time.time(), tally.fetched, tally.body_bytes)
    if pace is not None and not quiet:
        say(f"waiting pages: {pace.text}", err=True)


def _scope(options: "CrawlOptions") -> str:
    from trapline.crawler.discovery.scope import ANY, HOST, registrable

    hosts = _hosts(options)
    if options.scope == ANY:
        where = f"from {counted(len(options.seeds), 'seed')} to any site that links lead to (--scope any)"
    else:
        names = sorted(hosts if options.scope == HOST else {registrable(host) for host in hosts})
        few = ", ".join(names) if len(names) <= _FEW else counted(len(names), options.scope)
        where = f"{few} and each {options.scope} that a seed redirects to (--scope {options.scope})"
    return f"crawling {where}; {_end(options)}"


def _end(options: "CrawlOptions") -> str:
    goals = [
        shown(goal)
        for goal, shown in (
            (options.max_pages, lambda pages: counted(int(pages), "page")),
            (options.max_seconds, duration),
            (options.max_bytes, bytes_shown),
        )
        if goal < math.inf
    ]
    is_endless = options.refresh is not None and options.refresh.continuous
    last = "at Ctrl-C" if is_endless else "when nothing is left"
    return f"stops after {' or '.join(goals)}, or {last}" if goals else f"stops {last}"


def _pace(options: "CrawlOptions") -> str:
    from trapline.crawler.discovery.scope import HOST
    from trapline.crawler.speed.pace import expected_pace

    return expected_pace(options, len(_hosts(options)) if options.scope == HOST else None)


def _hosts(options: "CrawlOptions") -> set[str]:
    from trapline.fetch.urls import host_port, origin

    return {host_port(origin(seed))[1] for seed in options.seeds}


def _stop(folder: Path) -> str:
    return f"Ctrl-C stops cleanly; continue with: trapline crawl --resume {shlex.quote(str(folder))}"


def compile_for(prepared: "Prepared", quiet: bool) -> None:
    import trapline.crawler.engine.run
    from trapline.refresh import policy_named
    from trapline.strategies.base.chosen import Chosen, files_of

    options = prepared.options
    if options.requisites:
        import trapline.fetch.html.requisite_tags  # noqa: F401  its kernel is compiled with the others
    needed = LIVE_CRAWL if options.refresh is None else (*LIVE_CRAWL, "trapline.refresh.core")
    if prepared.new:
        compile_kernels(quiet, needed)
    else:
        compile_replay(quiet, needed)
    compile_ranks([Chosen(prepared.strategy, files_of(options.strategy, options.page_rank, options.site_rank))], quiet)
    if options.refresh is not None:
        compile_policies([policy_named(options.refresh.policy)], quiet)


# ---- `trapline crawl --resume`: the options that may change, and the preparation of the crawl.


class GoalProgress(NamedTuple):
    """The progress that a goal is compared with."""

    option: str
    field: str  # field of Progress
    shown: Callable[[float], str]


# Refresh options that may change, with the names of their fields in RefreshOptions.
_REFRESH_GOALS = {
    "continuous": "continuous",
    "refresh_share": "share",
    "refresh_price": "price",
    "refresh_rate": "rate",
}
_MEASURED = {
    "max_pages": GoalProgress("--max-pages", "pages", lambda pages: counted(int(pages), "page")),
    "max_seconds": GoalProgress("--max-time", "seconds", duration),
    "max_bytes": GoalProgress("--max-bytes", "bytes", bytes_shown),
}
_SECRETS = ("credentials", "cookies")  # files that a resumed crawl reads again, and that may have moved
_OF_A_RUN = {
    *("resume", "processes", "ray", "config", "handler", "plain", "quiet", "as_json", "dashboard", "metrics"),
    *_SECRETS,
    *_REFRESH_GOALS,
}
"""Options of one run, which --resume accepts besides the settings that may change."""
_SETTING_OF = {field: setting for setting, field in SETTINGS.items()}


def refuse_others(urls: tuple[str, ...]) -> None:
    """Refuse URLs and options that a resumed crawl cannot change, and say why."""
    from trapline.crawler.files.changed_options import refuse_unchangeable

    if urls:
        raise ConfigError(f"{urls[0]}: --resume continues the crawl with its own seed URLs; omit the URL")
    for param in click.get_current_context().command.params:
        name = param.name or ""
        if name in _OF_A_RUN or not is_given(name):
            continue
        option = param.opts[-1]
        if name in ("output", "seeds"):
            raise ConfigError(
                f"{option} cannot change with --resume: the crawl keeps its folder and seeds; omit {option}"
            )
        setting = _SETTING_OF.get(name, option.removeprefix("--").replace("-", "_"))
        refuse_unchangeable([setting])


def moved_files(given: dict[str, Any]) -> dict[str, str]:
    """Return the files with secrets that were given for a resumed crawl."""
    return {name: str(given[name].absolute()) for name in _SECRETS if given[name] is not None}


def raised_goals(given: dict[str, Any]) -> dict[str, float]:
    """Return the goals that were given for a resumed crawl."""
    return {goal: given[goal] for goal in GOALS if given[goal] is not None}


def changed_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that were given for a resumed crawl, besides its goals."""
    from trapline.crawler.files.changed_options import CHANGEABLE

    changed = {
        setting: given[field]
        for setting, field in SETTINGS.items()
        if setting in CHANGEABLE and field not in (*GOALS, *_SECRETS) and is_given(field)
    }
    return {**changed, "site": tables} if (tables := site_tables()) else changed


def refresh_changes(given: dict[str, Any]) -> dict[str, Any]:
    """Return the typed changes to refreshing, by the names of their fields in RefreshOptions."""
    typed = [name for name in _REFRESH_GOALS if is_given(name)]
    changes = {_REFRESH_GOALS[name]: given[name] for name in typed}
    if "share" in changes and "price" in changes:
        raise ConfigError("--refresh-share and --refresh-price exclude each other; give only one of them")
    if changes.get("rate") == 0.0:
        raise ConfigError("--refresh-rate 0 would refetch no page; give a rate above 0")
    return {**changes, "price": None} if "share" in changes and "price" not in changes else changes


def prepared_old(folder: Path, given: dict[str, Any]) -> "Prepared":
    from trapline.crawler.files.opening import prepare_old
    from trapline.crawler.handler.user_handler import check_handler, handler_changes

    changes, handler = refresh_changes(given), handler_changes(given["handler"])
    with said_if_long(f"opening {folder}: checking its database", given["quiet"]):
        settings, changed = changed_settings(given), {**raised_goals(given), **moved_files(given), **handler}
        prepared = prepare_old(folder, changes, settings, **changed)
    check_handler(prepared.options)
    refuse_reached(folder, raised_goals(given))
    return prepared


def refuse_reached(folder: Path, goals: dict[str, float]) -> None:
    """Refuse goals that were reached before. Goals count all runs together, so such a goal would end this run at once."""
    from trapline.crawler.files.reading import Reading

    reading = Reading(folder)
    progress = reading.progress()
    reading.close()
    for name, goal in goals.items():
        reached = getattr(progress, _MEASURED[name].field, 0)
        if goal <= reached:
            option, shown = _MEASURED[name].option, _MEASURED[name].shown(reached)
            raise ConfigError(
                f"{folder}: the crawl has already reached {shown}; give a {option} above that to continue"
            )
