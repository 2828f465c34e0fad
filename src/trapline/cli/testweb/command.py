"""`trapline testweb`: serve a graph as real web sites on loopback."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from trapline.cli.options.sections import Section, SectionedCommand, bundled
from trapline.cli.options.values import GRAPH_PATH
from trapline.cli.terminal.progress import Progress, compile_kernels
from trapline.cli.testweb.freshness import freshness
from trapline.cli.testweb.options import CHANGES, CONDUCT, GRAPH, PROVIDERS, SERVERS, SITES, Changing, SiteOptions
from trapline.errors import ConfigError
from trapline.output import check_writable, write_text
from trapline.terminal import rewrite_line, say, say_json, say_text
from trapline.units import bytes_shown, counted, duration, number

if TYPE_CHECKING:
    from trapline.testweb import ServedWeb, Server

# ---- The text that `trapline testweb` prints when it starts: addresses, sites by level, and the commands to type next.

_ENDPOINT = "http://127.0.0.1:8642/indexnow"  # default of `trapline refresh serve`


def say_where(web: "ServedWeb", hosts: Path, urls: Path, endpoint: str | None, as_json: bool) -> None:
    """Print where the web is served. `endpoint`: URL that sites ping; None: they do not ping."""
    if as_json:
        about = {"port": web.port, "sites": web.sites, "pages": web.pages, "addresses": len(web.addresses)}
        levels = {"levels": _levels(web)} if web.providers else {}
        say_json({**about, **levels, "hosts_file": str(hosts), "urls_file": str(urls)}, one_line=True)
        return
    resolve = "" if web.names[0] in web.addresses else f" --hosts {hosts}"
    continuous = " --continuous" if web.changes else ""
    largest = max(range(web.sites), key=lambda site: len(web.pages_of(site)))
    say_text(
        f"serving {counted(web.sites, 'site')} with {counted(web.pages, 'page')} on port {web.port} of "
        f"{_range(web.addresses)}, such as {web.seed_urls[largest]}\n"
        f"{_providers(web, endpoint)}hosts file: {hosts}; home page URLs: {urls}\n"
        f"crawl it:  trapline crawl --seeds {urls}{resolve} --allow-private{continuous} -o DIR\n"
        "Ctrl-C stops the server"
    )


def _levels(web: "ServedWeb") -> dict[str, int]:
    """Return the number of sites per provider level, in the order of the levels."""
    from trapline.testweb import LEVELS

    numbers = Counter(web.providers.level if web.providers else ())
    return {name: numbers[name] for name in LEVELS if numbers[name]}


def _providers(web: "ServedWeb", endpoint: str | None) -> str:
    """Return the number of sites per level, and a ping to try by hand, which counts like one of the site itself."""
    from trapline.testweb.answers.published import key
    from trapline.testweb.web.providers import PINGING

    levels = ", ".join(f"{sites:,} {name}" for name, sites in _levels(web).items())
    if not levels:
        return ""
    site = next((site for site in range(web.sites) if web.level(site) in PINGING), None)
    where = endpoint or _ENDPOINT
    ping = (
        ""
        if site is None
        else f"ping it:   curl '{where}?url={quote(web.seed_urls[site], safe='')}&key={key(web, site)}'\n"
    )
    return f"sites by provider level: {levels}\n{ping}"


def _range(addresses: list[str]) -> str:
    return addresses[0] if len(addresses) == 1 else f"{addresses[0]} to {addresses[-1]}"


# ---- The command.

_FILE = (click.Path(path_type=Path), "FILE")
_REDRAW_S = 0.5

OUTPUT = Section(
    "Output",
    (
        (
            "--hosts-file",
            "hosts_file",
            _FILE,
            None,
            "File for names and addresses, in the format of /etc/hosts. [a temporary file]",
        ),
        ("--urls-file", "urls_file", _FILE, None, "File for the URLs of the home pages. [a temporary file]"),
        ("--log", "log_file", _FILE, None, "File for a log of all requests, written at the end: .csv or .parquet."),
        (
            "--history",
            "history_file",
            _FILE,
            None,
            "File for the change times of all pages, written at the end: .csv or .parquet.",
        ),
        ("--json", "as_json", None, False, "Print JSON: one line at the start, one at the end."),
    ),
)


class _Testweb(SectionedCommand):
    """A command that hands `trapline testweb freshness ...` to another command. (A graph of that name is given as ./freshness.)"""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == ["freshness"]:
            return freshness.make_context(f"{info_name} freshness", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_Testweb)
@click.argument("graph", type=GRAPH_PATH)
@bundled("serving", SiteOptions, GRAPH, SITES, SERVERS, CONDUCT)
@bundled("changing", Changing, CHANGES, PROVIDERS)
@OUTPUT
def testweb(
    graph: Path,
    serving: SiteOptions,
    changing: Changing,
    hosts_file: Path | None,
    urls_file: Path | None,
    log_file: Path | None,
    history_file: Path | None,
    as_json: bool,
) -> None:
    """Serve GRAPH as real web sites over HTTP, only on loopback addresses (127.0.0.0/8). Ctrl-C stops the server.

    A TIME is in seconds or has a unit: 250ms, 2min. A SHARE is 0.05 or 5%. Defaults are in brackets.
    `trapline testweb freshness` measures how fresh a crawler kept its copies.
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
    from trapline.testweb.checks.freshness import write_history
    from trapline.testweb.server.log import write_log

    if log_file:
        write_log(server.log(), log_file)
        say(f"wrote {log_file}", err=True)
    if history_file:
        write_history(server.web, time.time(), history_file)
        say(f"wrote {history_file}", err=True)


def _check_files(log_file: Path | None, history_file: Path | None, *others: Path | None) -> None:
    from trapline.testweb.server.log import check_name

    files = [file for file in (log_file, history_file, *others) if file]
    for file in filter(None, (log_file, history_file)):
        check_name(file)
    for file in files:
        if files.count(file) > 1:
            raise ConfigError(f"{file}: given for two outputs; give each output its own file")
        check_writable(file)


def _server(graph: Path, serving: SiteOptions, changing: Changing) -> "Server":
    from trapline.graph import LoadOptions, load_graph
    from trapline.testweb import Server, build_web

    if serving.key and not serving.certificate:
        raise ConfigError("--tls-key has no effect without a certificate; also give --tls")
    mix = serving.mix(changing.validator_shares())
    if changing.changes is not None:
        import trapline.refresh  # noqa: F401  imports all its kernels before they are counted
    compile_kernels()
    changing.signal_settings()  # reports errors in the options before anything that takes long
    with Progress(f"opening {graph}", plain_every_s=2.0) as progress:
        progress.update(0, 1)  # shown at once: a large graph takes long before it can report progress
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
            servers=serving.sampled(pages),
        )
    tls = (serving.certificate, serving.key) if serving.certificate else None
    return Server(web, serving.port, tls, ping=changing.ping)


@contextmanager
def _files(web: "ServedWeb", hosts_file: Path | None, urls_file: Path | None) -> Iterator[tuple[Path, Path]]:
    """Write both files. A file that the user did not name is temporary and is deleted when the server stops."""
    import tempfile

    from trapline.fetch.dns import hosts_text

    with tempfile.TemporaryDirectory(prefix="trapline-testweb-") as folder:
        hosts, urls = hosts_file or Path(folder, "hosts"), urls_file or Path(folder, "urls")
        write_text(hosts, hosts_text({name: (address,) for name, address in web.hosts.items()}))
        write_text(urls, "".join(f"{url}\n" for url in web.seed_urls))
        yield hosts, urls


def _served(server: "Server", say_where: Callable[[], None], quiet: bool) -> float:
    """Serve until a signal arrives, and return the seconds served. `say_where` is called once the server accepts connections."""
    import uvloop

    started = time.monotonic()
    shown = not quiet and sys.stderr.isatty()
    uvloop.run(_until_signal(server, say_where, shown))
    return time.monotonic() - started


async def _until_signal(server: "Server", say_where: Callable[[], None], shown: bool) -> None:
    import asyncio
    import signal

    stop = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
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
        say_json({**about, **also}, one_line=True)
        return
    answers = ", ".join(f"{status or 'none'}: {number(times)}" for status, times in sorted(statuses.items()))
    say(f"served {_progress(server, seconds_served)}" + (f"; answers by status: {answers}" if answers else ""))
    if log.pings.sent or log.pings.dropped:
        found = ", ".join(f"{status}: {number(times)}" for status, times in sorted(log.pings.answered.items()))
        say(
            f"pinged {counted(log.pings.sent, 'page')} (answers by status: {found or 'none'}); {log.pings.dropped:,} dropped"
        )


def _by_status(times: Mapping[int, int]) -> dict[str, int]:
    return {str(status): number for status, number in sorted(times.items())}
