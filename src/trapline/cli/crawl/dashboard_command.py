"""`trapline dashboard`: shows crawls in the browser, while they run or afterwards. Only reads their folders, except for actions."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.crawl.options import DASHBOARD as LISTEN
from trapline.cli.options.values import listen_address
from trapline.terminal import say, say_text

if TYPE_CHECKING:
    from trapline.dashboard.server import DashboardServer

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


def _print_grafana(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        say_text((files("trapline") / "dashboard" / "grafana.json").read_text(encoding="utf-8").rstrip())
        context.exit()


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--listen", metavar="HOST:PORT", default=LISTEN, help=f"Address and port of the dashboard. [{LISTEN}]")
@click.option("--token-file", type=_FILE, metavar="FILE", help="File with the token that browsers must send.")
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="Also accept requests whose Host header has this name. Repeatable.",
)
@click.option("--read-only", is_flag=True, help="Show everything, but accept no actions such as pause or block.")
@click.option(
    "--print-grafana",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_grafana,
    help="Print a dashboard for Grafana as JSON, and exit.",
)
def dashboard(
    folders: tuple[Path, ...], listen: str, token_file: Path | None, allow_hosts: tuple[str, ...], read_only: bool
) -> None:
    """Show the crawls in these folders in the browser, while they run or afterwards. Ctrl-C ends the dashboard.

    On an address other than loopback, browsers need a token. It comes from --token-file or from the environment variable TRAPLINE_TOKEN.
    If neither is given, the dashboard makes a token and prints it as part of its URL. Metrics for Prometheus are at /metrics. See
    docs/how-to/dashboard.md.
    """
    from trapline.crawler.files.layout import check_crawl
    from trapline.dashboard.folder_reader import parts_of, read_folder
    from trapline.dashboard.server import DashboardServer
    from trapline.dashboard.settings import DashboardSettings, read_token

    for folder in folders:
        parts = parts_of(folder)
        if parts == [folder]:
            check_crawl(folder)
        for part in parts:
            read_folder(part)
    settings = DashboardSettings(
        tuple(map(str, folders)),
        listen_address(listen, "--listen", LISTEN),
        token=read_token(token_file),
        allow_hosts=allow_hosts,
        read_only=read_only,
    )
    _serve(DashboardServer(settings))


def _serve(server: "DashboardServer") -> None:
    import asyncio
    import signal

    import uvloop

    async def until_signal() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        say(f"dashboard: {server.page_url}", "Ctrl-C ends it; the crawls go on")
        await server.run(stop)

    uvloop.run(until_signal())
