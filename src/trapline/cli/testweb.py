"""`trapline testweb`: serve a graph as real web sites on loopback."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.compiling import compile_kernels
from trapline.cli.progress import Progress
from trapline.cli.sections import Section, SectionedCommand, bundled
from trapline.cli.testweb_changes import CHANGES, PROVIDERS, Changing
from trapline.cli.testweb_freshness import freshness
from trapline.cli.testweb_sites import CONDUCT, GRAPH, SERVERS, SITES, Serving
from trapline.cli.testweb_where import say_where
from trapline.errors import ConfigError
from trapline.output import check_writable, write_text
from trapline.terminal import rewrite_line, say
from trapline.units import bytes_shown, counted, duration, number

if TYPE_CHECKING:
    from trapline.testweb import Server, Web

_FILE = (click.Path(path_type=Path), "FILE")
_REDRAW_S = 0.5

OUTPUT = Section(
    "Output",
    (
        ("--hosts-file", "hosts_file", _FILE, None, "Names and addresses, as in /etc/hosts. [a temporary file]"),
        ("--urls-file", "urls_file", _FILE, None, "The home page of each site. [a temporary file]"),
        ("--log", "log_file", _FILE, None, "Every request, at the end: .csv or .parquet."),
        ("--history", "history_file", _FILE, None, "When each page changed, at the end: .csv or .parquet."),
        ("--json", "as_json", None, False, "For machines: a line at the start, a line at the end."),
    ),
)


class _Testweb(SectionedCommand):
    """`trapline testweb freshness ...` is a command of its own. (A graph of that name is ./freshness.)"""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == ["freshness"]:
            return freshness.make_context(f"{info_name} freshness", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_Testweb)
@click.argument("graph", type=click.Path(path_type=Path, exists=True))
@bundled("serving", Serving, GRAPH, SITES, SERVERS, CONDUCT)
@bundled("changing", Changing, CHANGES, PROVIDERS)
@OUTPUT
def testweb(
    graph: Path,
    serving: Serving,
    changing: Changing,
    hosts_file: Path | None,
    urls_file: Path | None,
    log_file: Path | None,
    history_file: Path | None,
    as_json: bool,
) -> None:
    """Serve GRAPH as real web sites over HTTP, on addresses of this machine (127.0.0.0/8) only; Ctrl-C ends it.

    A TIME is in seconds, or with a unit: 250ms, 2min. A SHARE is 0.05 or 5%. Brackets hold the default.
    `trapline testweb freshness --help`: how fresh a crawler kept its copies.
    """
    _check_files(log_file, history_file, hosts_file, urls_file)
    server = _server(graph, serving, changing)
    with _files(server.web, hosts_file, urls_file) as (hosts, urls):
        seconds_served = _served(
            server, lambda: say_where(server.web, hosts, urls, changing.ping, as_json), quiet=as_json
        )
    _say_what(server, seconds_served, as_json)
    _write(server, log_file, history_file)


def _write(server: "Server", log_file: Path | None, history_file: Path | None) -> None:
    from trapline.testweb.history_files import write_history
    from trapline.testweb.log_files import write_log

    if log_file:
        write_log(server.log(), log_file)
        say(f"wrote {log_file}", err=True)
    if history_file:
        write_history(server.web, time.time(), history_file)
        say(f"wrote {history_file}", err=True)


def _check_files(log_file: Path | None, history_file: Path | None, *others: Path | None) -> None:
    from trapline.testweb.log_files import check_name

    files = [file for file in (log_file, history_file, *others) if file]
    for file in filter(None, (log_file, history_file)):
        check_name(file)
    for file in files:
        if files.count(file) > 1:
            raise ConfigError(f"{file}: two results cannot go into one file")
        check_writable(file)


def _server(graph: Path, serving: Serving, changing: Changing) -> "Server":
    from trapline.graph import LoadOptions, load_graph
    from trapline.testweb import Server, build_web

    if serving.key and not serving.certificate:
        raise ConfigError("--tls-key is the key of a certificate; give --tls too")
    mix = serving.mix(changing.validator_shares())
    if changing.changes is not None:
        import trapline.refresh  # noqa: F401  its kernels, all imported before they are counted
    compile_kernels()
    changing.telling()  # what is wrong with it is said before anything long begins
    with Progress(f"opening {graph}", plain_every_s=2.0) as progress:
        progress.update(0, 1)  # at once: a large one takes long before it can say how far it is
        pages = load_graph(graph, LoadOptions(serving.dangling, serving.ids_per_site, progress.update))
        progress.update(0, pages.pages, "pages")
        changes, providers = changing.of(pages, serving.seed)
        web = build_web(
            pages,
            mix,
            names=serving.names,
            sites_per_address=serving.sites_per_address,
            seed=serving.seed,
            changes=changes,
            providers=providers,
        )
    tls = (serving.certificate, serving.key) if serving.certificate else None
    return Server(web, serving.port, tls, ping=changing.ping)


@contextmanager
def _files(web: "Web", hosts_file: Path | None, urls_file: Path | None) -> Iterator[tuple[Path, Path]]:
    """Writes both; where the user named none, one that is gone when the web is."""
    import tempfile

    from trapline.fetch.hosts import hosts_text

    with tempfile.TemporaryDirectory(prefix="trapline-testweb-") as folder:
        hosts, urls = hosts_file or Path(folder, "hosts"), urls_file or Path(folder, "urls")
        write_text(hosts, hosts_text({name: (address,) for name, address in web.hosts.items()}))
        write_text(urls, "".join(f"{url}\n" for url in web.seed_urls))
        yield hosts, urls


def _served(server: "Server", say_where: Callable[[], None], quiet: bool) -> float:
    """Serves until a signal; the seconds that it took. Where, is said when it is true."""
    import uvloop

    started = time.monotonic()
    shown = not quiet and sys.stderr.isatty()
    uvloop.run(_until_signal(server, say_where, shown))
    return time.monotonic() - started


async def _until_signal(server: "Server", say_where: Callable[[], None], shown: bool) -> None:
    import asyncio
    import signal

    stop = asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, stop.set)
    await server.start()
    say_where()
    started = time.monotonic()
    while not stop.is_set():
        if shown:
            rewrite_line(sys.stderr, _progress(server, time.monotonic() - started))
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _REDRAW_S)
    await server.stop()
    if shown:
        rewrite_line(sys.stderr)


def _progress(server: "Server", seconds_served: float) -> str:
    sent = f"{bytes_shown(server.bytes)} on {counted(server.connections, 'connection')}"
    return f"{counted(server.requests, 'request')}, {sent}, {duration(seconds_served)}"


def _say_what(server: "Server", seconds_served: float, as_json: bool) -> None:
    log = server.log()
    statuses = Counter(log.status.tolist())
    if as_json:
        about = {"requests": server.requests, "connections": server.connections, "bytes": server.bytes}
        pings = {"sent": log.pings.sent, "dropped": log.pings.dropped, "statuses": _by_status(log.pings.answered)}
        also = {"seconds": round(seconds_served, 3), "statuses": _by_status(statuses), "pings": pings}
        say(json.dumps({**about, **also}))
        return
    answers = ", ".join(f"{status or 'none'}: {number(times)}" for status, times in sorted(statuses.items()))
    say(f"served {_progress(server, seconds_served)}" + (f"; answers {answers}" if answers else ""))
    if log.pings.sent or log.pings.dropped:
        found = ", ".join(f"{status}: {number(times)}" for status, times in sorted(log.pings.answered.items()))
        say(f"pinged {counted(log.pings.sent, 'page')} ({found or 'no answer'}), {log.pings.dropped:,} dropped")


def _by_status(times: Mapping[int, int]) -> dict[str, int]:
    return {str(status): number for status, number in sorted(times.items())}
