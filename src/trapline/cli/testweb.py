"""`trapline testweb`: serve a graph as real web sites on loopback."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.compiling import compile_kernels
from trapline.cli.numbers import Number, count, rate, real, seconds, share
from trapline.cli.progress import Progress
from trapline.cli.sections import Section, SectionedCommand, bundled
from trapline.errors import ConfigError
from trapline.output import check_writable, write_text
from trapline.units import bytes_shown, counted, duration, number

if TYPE_CHECKING:
    from trapline.testweb import Server, Web

MEASURED = -1
_FILE = (click.Path(path_type=Path), "FILE")
_REDRAW_S = 0.5


class Shares(click.ParamType[Any]):
    """Names with a share each: `reset=1%,silent=0.5%`; a name alone has all."""

    name = "shares"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        pairs = (one.partition("=") for one in value.split(",") if one)
        return tuple((name, share().convert(text if equals else "100%", param, ctx)) for name, equals, text in pairs)


_SHARES = (Shares(), "NAME=SHARE,...")
_REQUESTS = (
    Number(int, 0, 1_000_000, "n", what="a whole number or measured", words={"measured": MEASURED}),
    "N|measured",
)

GRAPH = Section(
    "Graph",
    (
        ("--dangling", "dangling", None, False, "Also the pages that a crawl saw links to and did not fetch."),
        ("--ids-per-site", "ids_per_site", count(1), None, "If pages have no URLs: so many in a row are a site."),
    ),
)
SITES = Section(
    "Sites",
    (
        ("--port", "port", count(0, 65_535), 0, "Of all sites; 0: any that is free."),
        (
            "--names",
            "names",
            (click.Choice(("host", "address")), "host|address"),
            "host",
            "By the URLs' hosts, else site-N.test; or by address: nothing to resolve. [host]",
        ),
        ("--sites-per-address", "sites_per_address", count(1), None, "[as the graph says, else one]"),
        ("--tls", "certificate", _FILE, None, "HTTPS, with this certificate (PEM)."),
        ("--tls-key", "key", _FILE, None, "Its key, if it is not in the same file."),
        ("--seed", "seed", count(0), 0, "Which sites and pages behave how."),
    ),
)
SERVERS = Section(
    "Servers",
    (
        ("--latency", "latency_s", seconds(), 0.0, "From a request to its answer; the median of all sites."),
        ("--latency-spread", "latency_spread", real(10), 0.0, "Standard deviation of its logarithm between sites."),
        ("--connection-latency", "connection_s", seconds(), 0.0, "Added to the first answer of a connection."),
        ("--bandwidth", "bandwidth", rate(), None, "Of a connection; the median of all sites. [unlimited]"),
        ("--bandwidth-spread", "bandwidth_spread", real(10), 0.0, "As that of latency."),
        ("--requests", "requests", _REQUESTS, 0, "Per connection; 0: no limit; measured: as cao fig. 3. [0]"),
        ("--unannounced", "unannounced", None, False, "Such a limit is not announced."),
        ("--http10", "http10", share(), 0.0, "Share of sites that speak HTTP/1.0."),
        ("--keep-alive", "keep_alive_s", seconds(), 15.0, "Idle time after which servers close."),
    ),
)
CONDUCT = Section(
    "Robots, redirects, faults (names: docs/testweb.md)",
    (
        ("--robots", "robots", _SHARES, (), "Sites with robots.txt: rules, error, ... [none; rules, if given]"),
        ("--disallow", "disallowed", share(), 0.0, "Share of paths that rules forbid."),
        ("--crawl-delay", "crawl_delay_s", seconds(), 0.0, "In robots.txt with rules."),
        ("--redirects", "redirects", _SHARES, (), "Pages linked so: plain, chain, away, loop. [none]"),
        ("--faults", "faults", _SHARES, (), "Pages answered so: error, reset, silent, ... [none]"),
        ("--faulty-sites", "faulty", share(), 1.0, "Share of sites that have these faults."),
    ),
)
OUTPUT = Section(
    "Output",
    (
        ("--hosts-file", "hosts_file", _FILE, None, "Names and addresses, as in /etc/hosts. [a temporary file]"),
        ("--urls-file", "urls_file", _FILE, None, "The home page of each site. [a temporary file]"),
        ("--log", "log_file", _FILE, None, "Every request, at the end: .csv or .parquet."),
        ("--json", "as_json", None, False, "For machines: a line at the start, a line at the end."),
    ),
)


@dataclass(frozen=True, slots=True)
class Serving:
    """What the options say of the web."""

    dangling: bool
    ids_per_site: int | None
    port: int
    names: str
    sites_per_address: int | None
    certificate: Path | None
    key: Path | None
    seed: int
    latency_s: float
    latency_spread: float
    connection_s: float
    bandwidth: float | None
    bandwidth_spread: float
    requests: int
    unannounced: bool
    http10: float
    keep_alive_s: float
    robots: tuple[tuple[str, float], ...]
    disallowed: float
    crawl_delay_s: float
    redirects: tuple[tuple[str, float], ...]
    faults: tuple[tuple[str, float], ...]
    faulty: float

    def mix(self) -> Any:
        from trapline.testweb import Behaviour, Mix

        base = Behaviour(
            latency_s=self.latency_s,
            connection_s=self.connection_s,
            bandwidth=self.bandwidth or float("inf"),
            requests_per_connection=max(self.requests, 0),
            announced=not self.unannounced,
            keep_alive_s=self.keep_alive_s,
            disallowed=self.disallowed,
            crawl_delay_s=self.crawl_delay_s,
            redirects=self.redirects,
            faults=self.faults,
        )
        return Mix(
            base,
            latency_spread=self.latency_spread,
            bandwidth_spread=self.bandwidth_spread,
            measured_requests=self.requests == MEASURED,
            http10=self.http10,
            robots=self.robots or ((("rules", 1.0),) if self.disallowed or self.crawl_delay_s else ()),
            faulty=self.faulty,
        )


@click.command(cls=SectionedCommand)
@click.argument("graph", type=click.Path(path_type=Path, exists=True))
@bundled("serving", Serving, GRAPH, SITES, SERVERS, CONDUCT)
@OUTPUT
def testweb(
    graph: Path,
    serving: Serving,
    hosts_file: Path | None,
    urls_file: Path | None,
    log_file: Path | None,
    as_json: bool,
) -> None:
    """Serve GRAPH as real web sites over HTTP, on addresses of this machine (127.0.0.0/8) only; Ctrl-C ends it.

    A TIME is in seconds, or with a unit: 250ms, 2min. A SHARE is 0.05 or 5%. Brackets hold the default.
    """
    _check_files(hosts_file, urls_file, log_file)
    server = _server(graph, serving)
    with _files(server.web, hosts_file, urls_file) as (hosts, urls):
        seconds_served = _served(server, lambda: _say_where(server.web, hosts, urls, as_json), quiet=as_json)
    _say_what(server, seconds_served, as_json)
    if log_file:
        from trapline.testweb.log_files import write_log

        write_log(server.log(), log_file)
        click.echo(f"wrote {log_file}", err=True)


def _check_files(hosts_file: Path | None, urls_file: Path | None, log_file: Path | None) -> None:
    if log_file and log_file.suffix.lower() not in (".csv", ".parquet"):
        raise ConfigError(f"--log {log_file}: the log is CSV or Parquet, so its name must end in .csv or .parquet")
    files = [file for file in (hosts_file, urls_file, log_file) if file]
    for file in files:
        if files.count(file) > 1:
            raise ConfigError(f"{file}: two results cannot go into one file")
        check_writable(file)


def _server(graph: Path, serving: Serving) -> "Server":
    from trapline.graph import LoadOptions, load_graph
    from trapline.testweb import Server, build_web

    if serving.key and not serving.certificate:
        raise ConfigError("--tls-key is the key of a certificate; give --tls too")
    mix = serving.mix()
    compile_kernels()
    with Progress("loading", plain_every_s=2.0) as progress:
        pages = load_graph(graph, LoadOptions(serving.dangling, serving.ids_per_site, progress.update))
        progress.update(0, pages.pages, "pages")
        web = build_web(
            pages,
            mix,
            names=serving.names,
            sites_per_address=serving.sites_per_address,
            seed=serving.seed,
        )
    tls = (serving.certificate, serving.key) if serving.certificate else None
    return Server(web, serving.port, tls)


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


def _say_where(web: "Web", hosts: Path, urls: Path, as_json: bool) -> None:
    if as_json:
        about = {"port": web.port, "sites": web.sites, "pages": web.pages, "addresses": len(web.addresses)}
        click.echo(json.dumps({**about, "hosts_file": str(hosts), "urls_file": str(urls)}))
        return
    resolve = "" if web.names[0] in web.addresses else f" --hosts {hosts}"
    click.echo(
        f"serving {counted(web.sites, 'site')}, {counted(web.pages, 'page')} on port {web.port} of "
        f"{_range(web.addresses)}, such as {web.seed_urls[0]}\n"
        f"names and addresses: {hosts}; home pages: {urls}\n"
        f"crawl it:  trapline crawl --seeds {urls}{resolve} --allow-private -o DIR\n"
        "Ctrl-C ends it"
    )


def _range(addresses: list[str]) -> str:
    return addresses[0] if len(addresses) == 1 else f"{addresses[0]} to {addresses[-1]}"


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
            click.echo(f"\r{_progress(server, time.monotonic() - started)}\x1b[K", nl=False, err=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _REDRAW_S)
    await server.stop()
    if shown:
        click.echo("\r\x1b[K", nl=False, err=True)


def _progress(server: "Server", seconds_served: float) -> str:
    sent = f"{bytes_shown(server.bytes)} on {counted(server.connections, 'connection')}"
    return f"{counted(server.requests, 'request')}, {sent}, {duration(seconds_served)}"


def _say_what(server: "Server", seconds_served: float, as_json: bool) -> None:
    statuses = Counter(server.log().status.tolist())
    if as_json:
        about = {"requests": server.requests, "connections": server.connections, "bytes": server.bytes}
        by_status = {str(status): times for status, times in sorted(statuses.items())}
        click.echo(json.dumps({**about, "seconds": round(seconds_served, 3), "statuses": by_status}))
        return
    answers = ", ".join(f"{status or 'none'}: {number(times)}" for status, times in sorted(statuses.items()))
    click.echo(f"served {_progress(server, seconds_served)}" + (f"; answers {answers}" if answers else ""))
