"""`trapline control`: actions on a running crawl, from a second terminal. Each command sends one action and prints the answer.

The crawl's own process decides and answers (crawler/control/crawl_control.py, and the coordinator of a crawl of several processes).
"""

import getpass
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from trapline.cli.lazy import HintGroup
from trapline.cli.options.values import seconds, seed_urls
from trapline.crawler.files.control_mailbox import (
    ADD_SEEDS,
    BLOCK,
    CONTINUE,
    DELAY,
    MOST_BYTES,
    PAUSE,
    STOP,
    UNBLOCK,
    Action,
    send,
)
from trapline.terminal import say

_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
_SITES = click.argument("sites", metavar="SITE...", nargs=-1, required=True)


@click.group(cls=HintGroup)
def control() -> None:
    """Pause, continue or stop the crawl that runs in DIR, or change its sites and seeds.

    Each command waits for the answer of the crawl and prints it. A crawl of several processes accepts the same actions. The crawl records
    each action in crawl.log. For a crawl that does not run, give options to `trapline crawl --resume DIR` instead.
    """


@control.command(PAUSE)
@_FOLDER
def pause(folder: Path) -> None:
    """Pause the crawl. Pages that it has already requested still arrive.

    The pause counts towards --max-time. If you stop a paused crawl, `trapline crawl --resume DIR` continues it without the pause.
    """
    _action(folder, PAUSE)


@control.command(CONTINUE)
@_FOLDER
def continue_(folder: Path) -> None:
    """Continue a paused crawl. All delays hold as before."""
    _action(folder, CONTINUE)


@control.command(STOP)
@_FOLDER
def stop(folder: Path) -> None:
    """Stop the crawl cleanly, as SIGTERM does. `trapline crawl --resume DIR` continues it later."""
    _action(folder, STOP)


@control.command(BLOCK)
@_FOLDER
@_SITES
def block(folder: Path, sites: Sequence[str]) -> None:
    """Send no more requests to these sites. Their pages wait until you unblock the sites, even if the crawl is resumed in between.

    SITE is a host such as example.org, or *.example.org for all hosts below it.
    """
    _action(folder, BLOCK, sites=list(sites))


@control.command(UNBLOCK)
@_FOLDER
@_SITES
def unblock(folder: Path, sites: Sequence[str]) -> None:
    """Resume visits to blocked or abandoned sites.

    The crawl abandons a site after repeated failed visits (--max-failed-visits). SITE is a host such as example.org, or *.example.org for
    all hosts below it.
    """
    _action(folder, UNBLOCK, sites=list(sites))


@control.command(DELAY)
@_FOLDER
@click.argument("site", metavar="SITE")
@click.argument("delay_s", metavar="TIME", type=seconds())
def delay(folder: Path, site: str, delay_s: float) -> None:
    """Set the delay between two visits to a site. A longer Crawl-delay in the site's robots.txt still holds.

    SITE is a host such as example.org, or *.example.org for all hosts below it. TIME is in seconds or has a unit: 250ms, 2min, 1h.
    """
    _action(folder, DELAY, site=site, delay_s=delay_s)


@control.command("add-seeds")
@_FOLDER
@click.argument("urls", metavar="[URL]...", nargs=-1)
@click.option("--seeds", "file", type=click.Path(path_type=Path), metavar="FILE", help="File with URLs, one per line.")
def add_seeds(folder: Path, urls: Sequence[str], file: Path | None) -> None:
    """Add seeds. The scope of the crawl then also includes their hosts or, with --scope domain, their domains."""
    for part in _parts(seed_urls(urls, file)):
        _action(folder, ADD_SEEDS, urls=part)


def _parts(urls: Sequence[str]) -> Iterator[list[str]]:
    """Divide URLs into parts, each of which one action can hold."""
    part: list[str] = []
    room = MOST_BYTES // 2
    for url in urls:
        room -= len(url) + len('"", ')
        if room < 0 and part:
            yield part
            part, room = [], MOST_BYTES // 2
        part.append(url)
    yield part


def _action(folder: Path, name: str, **values: Any) -> None:
    by = f"{getpass.getuser()}@{socket.gethostname()}, command"
    say(f"{folder}: {send(folder, Action(name, by, values))}")
