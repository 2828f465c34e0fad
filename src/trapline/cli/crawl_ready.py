"""A crawl before it runs, as the command line has it: what may be said of it, and all that must be compiled first."""

import math
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from trapline.cli.compiling import compile_kernels, compile_policies, compile_ranks, compile_replay
from trapline.cli.progress import Progress
from trapline.cli.strategy import Chosen, files_of
from trapline.terminal import say
from trapline.units import bytes_shown, counted, duration

if TYPE_CHECKING:
    from trapline.crawl.opening import Prepared
    from trapline.crawl.options import CrawlOptions


_FEW = 3  # names that are listed
_MANY_PAGES = 1_000


def prepared_new(options: "CrawlOptions", folder: Path) -> "Prepared":
    from trapline.crawl.opening import prepare_new

    with Progress("looking up the seeds", plain_every_s=math.inf) as progress:  # some seconds at most
        progress.update(0, len(options.seeds))
        return prepare_new(options, folder)


def note(notes: Iterable[str], quiet: bool) -> None:
    for one in () if quiet else notes:
        say(f"trapline: note: {one}", err=True)


def announce(options: "CrawlOptions", folder: Path, quiet: bool) -> None:
    """Say what the crawl is about to do, how long a site takes, and how to stop."""
    for line in () if quiet else (_territory(options), _pace(options), _way_out(folder)):
        say(line, err=True)


def _territory(options: "CrawlOptions") -> str:
    from trapline.crawl.scope import ANY, HOST, registrable
    from trapline.fetch.urls import host_port, origin

    hosts = {host_port(origin(seed))[1] for seed in options.seeds}
    if options.scope == ANY:
        where = f"from {counted(len(options.seeds), 'seed')} to any site that links lead to (--scope any)"
    else:
        names = sorted(hosts if options.scope == HOST else {registrable(host) for host in hosts})
        few = ", ".join(names) if len(names) <= _FEW else counted(len(names), options.scope)
        where = f"{few} and no other {options.scope} but those that seeds redirect to (--scope {options.scope})"
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
    """By the delays alone: what the server takes comes on top."""
    rules = options.rules
    k = max(1, rules.per_connection)
    visit_s = rules.delay_s + (k - 1) * options.pause_s
    if visit_s <= 0.0:
        return "no delay (--delay 0): each site is asked as fast as it answers; do that to your own sites only"
    if rules.per_connection == 0:
        return (
            f"each site gives as many pages per visit as the server allows, one every {duration(options.pause_s)}, "
            f"and {duration(rules.delay_s)} pass between visits (--per-connection, --pause, --delay)"
        )
    whole_s = math.ceil(_MANY_PAGES / k) * visit_s - rules.delay_s
    return (
        f"each site gives at most {counted(k, 'page')} every {duration(visit_s)} (--per-connection, --pause, --delay): "
        f"{_MANY_PAGES:,} pages of one site take {duration(whole_s)} or more"
    )


def _way_out(folder: Path) -> str:
    return f"Ctrl-C stops cleanly; continue with: trapline crawl --resume {shlex.quote(str(folder))}"


def compile_for(prepared: "Prepared", quiet: bool) -> None:
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
