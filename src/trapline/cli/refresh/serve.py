"""`trapline refresh serve`: the endpoint that receives pings from providers and deliveries from WebSub hubs, for the crawl in a folder."""

import math
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

from trapline.cli.options.sections import Many, Section, SectionedCommand, bundled
from trapline.cli.options.values import listen_address, seconds
from trapline.errors import ConfigError
from trapline.terminal import rewrite_line, say, say_json
from trapline.units import counted, duration, number

if TYPE_CHECKING:
    from trapline.signals.endpoint.intake import SenderRates
    from trapline.signals.endpoint.rate_limits import RequestRate
    from trapline.signals.endpoint.server import Service, Settings

# ---- Options that limit how much the endpoint accepts: per sender, per site, and in total. This part only parses them.
#
# Defaults are repeated here because importing `SenderRates` takes longer than --help may take. A test compares the two.

_RATE = (str, "N:BURST")

RATES = Section(
    "Rate limits (N per second, BURST at once; senders above a limit are told to wait)",
    (
        ("--sender-rate", "sender_rate", _RATE, "50:1000", "Limit of requests from one IP address."),
        ("--site-rate", "site_rate", _RATE, "50:20000", "Limit of URLs of one site, sent by its owner."),
        (
            "--total-rate",
            "total_rate",
            _RATE,
            "20000:200000",
            "Limit of URLs of all sites together, sent by their owners.",
        ),
        ("--unverified-rate", "unverified_rate", _RATE, "1:10000", "Limit of URLs of one site, sent by others."),
        (
            "--unverified-total",
            "unverified_total",
            _RATE,
            "2000:50000",
            "Limit of URLs of all sites together, sent by others.",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Rated:
    """The rate limits as typed, by field."""

    sender_rate: str
    site_rate: str
    total_rate: str
    unverified_rate: str
    unverified_total: str

    def rates(self) -> "SenderRates":
        from trapline.signals.endpoint.intake import SenderRates

        texts = (getattr(self, field) for field in RATES.fields)
        sender, site, total, site_unvouched, total_unvouched = map(_rate, RATES.flags, texts)
        return SenderRates(sender, site, site_unvouched, total, total_unvouched)


def _rate(flag: str, text: str) -> "RequestRate":
    """Return the rate that the text means. A rate without a burst gets the burst of twenty seconds."""
    from trapline.signals.endpoint.rate_limits import RequestRate

    first, colon, second = text.partition(":")
    try:
        per_second = float(first)
        burst = float(second) if colon else max(1.0, 20.0 * per_second)
    except ValueError:
        per_second = burst = math.nan
    if not (0.0 < per_second < math.inf and 1.0 <= burst < math.inf):
        raise ConfigError(f"{flag} {text}: not N or N:BURST; give N above 0 and BURST of at least 1, such as 50:1000")
    return RequestRate(per_second, burst)


# ---- The command.

_FILE = (click.Path(path_type=Path, exists=True, dir_okay=False), "FILE")
_REDRAW_S = 1.0
_FOR_EVER = float("inf")
_BEHIND_THE_CRAWL = 5  # added to the niceness of this process, so that a flood of requests does not slow down the crawl

WHERE = Section(
    "Endpoint",
    (
        (
            "--listen",
            "listen",
            (str, "HOST:PORT"),
            "127.0.0.1:8642",
            "Address and port to listen on; port 0: any free port.",
        ),
        ("--public-url", "public_url", (str, "URL"), "", "Public URL of this endpoint; needed for WebSub."),
        (
            "--proxy",
            "proxy",
            (str, "ADDRESS"),
            "",
            "IP address of a reverse proxy whose X-Forwarded-For is trusted. [none]",
        ),
        (
            "--keep",
            "keep_s",
            seconds(60.0, {"always": _FOR_EVER}),
            30 * 86_400.0,
            "Keep signals for this time; always: never delete them. [30d]",
        ),
    ),
)
WHO = Section(
    "Access and network",
    (
        (
            "--token",
            "token_file",
            _FILE,
            None,
            "File with the token that clients must send to post accesses or read /status. [none]",
        ),
        (
            "--allow-private",
            "allow_private",
            None,
            False,
            "Also fetch key files and hubs on loopback and private addresses.",
        ),
        ("--insecure", "insecure", None, False, "Accept any TLS certificate."),
        ("--hosts", "hosts_file", _FILE, None, "File of addresses and host names, in the format of /etc/hosts."),
        (
            "--nameserver",
            "nameservers",
            Many("ADDRESS"),
            (),
            "IP address of a DNS server, such as 9.9.9.9. Repeatable. [those of the system]",
        ),
    ),
)
OUTPUT = Section("Output", (("--json", "as_json", None, False, "Print JSON: one line at the start, one at the end."),))


@dataclass(frozen=True, slots=True)
class ServeOptions:
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
        from trapline.fetch.dns import read_hosts
        from trapline.signals.endpoint.server import Settings

        host, port = listen_address(self.listen, "--listen", "127.0.0.1:8642")
        return Settings(
            folder,
            host,
            port,
            _public(self.public_url, self.allow_private),
            self.allow_private,
            self.insecure,
            _token(self.token_file),
            _proxy(self.proxy),
            rates=rated.rates(),
            keep_s=self.keep_s,
            hosts=read_hosts(self.hosts_file) if self.hosts_file else {},
            nameservers=tuple(self.nameservers),
        )


@click.command(cls=SectionedCommand)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@bundled("options", ServeOptions, WHERE, WHO)
@bundled("rated", Rated, RATES)
@OUTPUT
def serve(folder: Path, options: ServeOptions, rated: Rated, as_json: bool) -> None:
    """Receive signals about the pages of the crawl in DIR, whether the crawl is running or not. Ctrl-C stops the server.

    Accepts IndexNow pings at /indexnow, WebSub deliveries at /websub/... and accesses at /accesses. Shows counters at /status. See
    docs/signals.md. The crawl reads the signals from DIR/signals.db. A TIME is in seconds or has a unit: 2min, 1d. Defaults are in
    brackets.
    """
    import uvloop

    settings = options.settings(folder, rated)
    sites_after = sites_of(folder)
    uvloop.run(_until_signal(settings, sites_after, as_json))


def sites_of(folder: Path) -> Callable[[int], Sequence[tuple[int, str]]]:
    """Return a function that lists the sites of the crawl in a folder, after a given site. The crawl may be running."""
    from trapline.crawler.files.layout import connect
    from trapline.parallel.folder.manifest import is_parallel
    from trapline.parallel.folder.merged import NewSites

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

    from trapline.signals.endpoint.server import Service
    from trapline.signals.published.feed import read_feed

    stop = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
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
    """Rewrite a line on the terminal once a second."""
    import asyncio

    try:
        while shown:
            rewrite_line(sys.stderr, _line(service, time.monotonic() - began), get_terminal_size().columns - 1)
            await asyncio.sleep(_REDRAW_S)
    finally:
        if shown:
            rewrite_line(sys.stderr)


def _line(service: "Service", seconds_served: float) -> str:
    from trapline.signals.endpoint.intake import ACCEPTED, LIMITED, REFUTED, REPEATED, UNSIGNED, UNVERIFIED

    count = service.tally.total
    keys = service.pings.ownership
    parts = [
        f"{counted(len(service.known), 'site')} known",
        counted(service.tally.requests, "request"),
        counted(count(ACCEPTED), "signal"),
        f"{number(count(REPEATED))} repeated",
        f"{number(count(UNVERIFIED))} unverified",
        f"{number(count(REFUTED, UNSIGNED))} refuted",
        f"{number(count(LIMITED))} over a limit",
        f"{counted(keys.pending, 'key')} pending",
        duration(seconds_served),
    ]
    trouble = service.status()["trouble"]
    return ", ".join(parts) + (f"; {trouble}" if trouble else "")


def _started(settings: "Settings", service: "Service", port: int, as_json: bool) -> None:
    os.nice(_BEHIND_THE_CRAWL)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    if as_json:
        say_json({"host": settings.host, "port": port, "sites_known": len(service.known)}, one_line=True)
        sys.stdout.flush()
        return
    websub = f"WebSub: {settings.public_url}/websub/..." if settings.public_url else "no WebSub without --public-url"
    say(
        f"serving http://{host}:{port}/indexnow for the crawl in {settings.folder}, {counted(len(service.known), 'site')} so far; "
        f"new sites are added as the crawl finds them; {websub}",
        "Ctrl-C stops the server",
    )


def _say_what(service: "Service", seconds_served: float, as_json: bool) -> None:
    if as_json:
        about = {"requests": service.tally.requests, "signals": service.tally.by_channel()}
        say_json({**about, "seconds": round(seconds_served, 3)}, one_line=True)
        return
    say(f"served: {_line(service, seconds_served)}")


def _proxy(address: str) -> str:
    """Return the address of the proxy; raise `ConfigError` if no request could come from it."""
    from ipaddress import ip_address

    if address:
        try:
            ip_address(address)
        except ValueError:
            raise ConfigError(
                f"--proxy {address}: not an IP address; give one such as 127.0.0.1, not a name or URL"
            ) from None
    return address


def _public(url: str, allow_private: bool) -> str:
    """Return the public URL; raise `ConfigError` if hubs could not use it."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        is_url = False
    if not is_url:
        raise ConfigError(
            f"--public-url {url}: not an http or https URL, or has a query or fragment; give a URL such as https://pings.example.org"
        )
    if parts.scheme != "https" and not allow_private:
        raise ConfigError(f"--public-url {url}: not https, so others could read what hubs deliver; give an https URL")
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
        raise ConfigError(f"--token {file}: not a valid token; write 16 or more printable characters without spaces")
    return token
