"""`trapline refresh serve`: the endpoint to which providers send pings, and hubs their deliveries, for the crawl in a folder."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from trapline.cli.numbers import seconds
from trapline.cli.refresh_rates import RATES, Rated
from trapline.cli.sections import Many, Section, SectionedCommand, bundled
from trapline.errors import ConfigError
from trapline.terminal import rewrite_line, say
from trapline.units import counted, duration, number

if TYPE_CHECKING:
    from trapline.signals.serving import Service, Settings

_FILE = (click.Path(path_type=Path, exists=True, dir_okay=False), "FILE")
_REDRAW_S = 1.0
_FOR_EVER = float("inf")
_BEHIND_THE_CRAWL = 5  # in the order in which processes get the processor: a flood is not to slow the crawl down

WHERE = Section(
    "Where, and for how long",
    (
        ("--listen", "listen", (str, "HOST:PORT"), "127.0.0.1:8642", "Port 0: any that is free."),
        ("--public-url", "public_url", (str, "URL"), "", "By which others reach it; needed for WebSub."),
        ("--proxy", "proxy", (str, "ADDRESS"), "", "A proxy before it, whose X-Forwarded-For is believed."),
        ("--keep", "keep_s", seconds(60.0, {"always": _FOR_EVER}), 30 * 86_400.0, "Signals older are forgotten. [30d]"),
    ),
)
WHO = Section(
    "Who, and to whom",
    (
        (
            "--token",
            "token_file",
            _FILE,
            None,
            "File with the token that clients must send to post accesses or read /status. [none]",
        ),
        ("--allow-private", "allow_private", None, False, "Key files and hubs on loopback and private addresses too."),
        ("--insecure", "insecure", None, False, "Take any TLS certificate."),
        ("--hosts", "hosts_file", _FILE, None, "Addresses of names, as in /etc/hosts."),
        ("--nameserver", "nameservers", Many("ADDRESS"), (), "Ask this DNS server; may be given again."),
    ),
)
OUTPUT = Section(
    "Output", (("--json", "as_json", None, False, "For machines: a line at the start, a line at the end."),)
)


@dataclass(frozen=True, slots=True)
class Asked:
    listen: str
    public_url: str
    proxy: str
    token_file: Path | None
    allow_private: bool
    insecure: bool
    hosts_file: Path | None
    nameservers: Sequence[str]
    keep_s: float

    def settings(self, folder: Path, rated: Rated) -> "Settings":
        from trapline.fetch.hosts import read_hosts
        from trapline.signals.serving import Settings

        host, port = _host_port(self.listen)
        return Settings(
            folder,
            host,
            port,
            _public(self.public_url, self.allow_private),
            self.allow_private,
            self.insecure,
            _token(self.token_file),
            self.proxy,
            rates=rated.rates(),
            keep_s=self.keep_s,
            hosts=read_hosts(self.hosts_file) if self.hosts_file else {},
            nameservers=tuple(self.nameservers),
        )


@click.command(cls=SectionedCommand)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@bundled("asked", Asked, WHERE, WHO)
@bundled("rated", Rated, RATES)
@OUTPUT
def serve(folder: Path, asked: Asked, rated: Rated, as_json: bool) -> None:
    """Take what providers tell about the pages of the crawl in DIR, whether it runs or not; Ctrl-C ends it.

    IndexNow pings at /indexnow, WebSub deliveries at /websub/..., accesses at /accesses, counters at /status: docs/signals.md.
    The crawl reads them from DIR/signals.db. A TIME is in seconds, or with a unit: 2min, 1d. Brackets hold the default.
    """
    import uvloop

    settings = asked.settings(folder, rated)
    sites_after = sites_of(folder)
    uvloop.run(_until_signal(settings, sites_after, as_json))


def sites_of(folder: Path) -> Callable[[int], Sequence[tuple[int, str]]]:
    """The sites that the crawl in a folder knows, behind one of them. The crawl may be running."""
    from trapline.crawl.store.folder import connect
    from trapline.parallel.manifest import is_parallel
    from trapline.parallel.merged import NewSites

    if is_parallel(folder):
        return NewSites(folder)
    database = connect(folder)
    query = "select id, origin from site where id > ? order by id"
    return lambda last: database.execute(query, (last,)).fetchall()


async def _until_signal(
    settings: "Settings", sites_after: Callable[[int], Sequence[tuple[int, str]]], as_json: bool
) -> None:
    import asyncio
    import signal

    from trapline.signals.feed import read_feed
    from trapline.signals.serving import Service

    stop = asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, stop.set)
    began = time.monotonic()
    service = Service(settings, sites_after, read_feed)
    shown = asyncio.create_task(_show(service, began, shown=not as_json and sys.stderr.isatty()))
    try:
        await service.run(stop, lambda port: _started(settings, service, port, as_json))
    finally:
        shown.cancel()
        with suppress(asyncio.CancelledError):
            await shown
    _say_what(service, time.monotonic() - began, as_json)


async def _show(service: "Service", began: float, shown: bool) -> None:
    """A line on the terminal, once a second."""
    import asyncio

    try:
        while shown:
            rewrite_line(sys.stderr, _line(service, time.monotonic() - began), get_terminal_size().columns - 1)
            await asyncio.sleep(_REDRAW_S)
    finally:
        if shown:
            rewrite_line(sys.stderr)


def _line(service: "Service", seconds_served: float) -> str:
    from trapline.signals.tally import ACCEPTED, LIMITED, REFUTED, REPEATED, UNSIGNED, UNVERIFIED

    count = service.tally.total
    keys = service.pings.ownership
    parts = [
        f"{counted(len(service.known), 'site')} known",
        counted(service.tally.requests, "request"),
        counted(count(ACCEPTED), "signal"),
        f"{number(count(REPEATED))} repeated",
        f"{number(count(UNVERIFIED))} unverified",
        f"{number(count(REFUTED, UNSIGNED))} refuted",
        f"{number(count(LIMITED))} too many",
        f"{counted(keys.pending, 'key')} pending",
        duration(seconds_served),
    ]
    trouble = service.status()["trouble"]
    return ", ".join(parts) + (f"; {trouble}" if trouble else "")


def _started(settings: "Settings", service: "Service", port: int, as_json: bool) -> None:
    os.nice(_BEHIND_THE_CRAWL)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if as_json:
        say(json.dumps({"host": settings.host, "port": port, "sites_known": len(service.known)}))
        sys.stdout.flush()
        return
    websub = f"WebSub: {settings.public_url}/websub/..." if settings.public_url else "no WebSub without --public-url"
    say(
        f"serving http://{host}:{port}/indexnow for the crawl in {settings.folder}, {counted(len(service.known), 'site')} so far; "
        f"others are learned as the crawl finds them; {websub}",
        "Ctrl-C ends it",
    )


def _say_what(service: "Service", seconds_served: float, as_json: bool) -> None:
    if as_json:
        about = {"requests": service.tally.requests, "signals": service.tally.by_channel()}
        say(json.dumps({**about, "seconds": round(seconds_served, 3)}))
        return
    say(f"served: {_line(service, seconds_served)}")


def _host_port(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise ConfigError(f"--listen {listen}: not HOST:PORT, such as 127.0.0.1:8642")
    return host.strip("[]"), int(port)


def _public(url: str, allow_private: bool) -> str:
    """`ConfigError` unless hubs could use it."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        is_url = False
    if not is_url:
        raise ConfigError(f"--public-url {url}: not a URL, such as https://pings.example.org")
    if parts.scheme != "https" and not allow_private:
        raise ConfigError(f"--public-url {url}: must be https, or anybody could read what hubs deliver")
    return url.rstrip("/")


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not plain ASCII text"
        raise ConfigError(f"--token {file}: cannot be read: {why}") from None
    if len(token) < 16 or not token.isprintable() or " " in token:
        raise ConfigError(f"--token {file}: must hold 16 or more printable characters without spaces")
    return token
