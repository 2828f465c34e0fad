"""`trapline serve urlfrontier`: the gRPC service of crawler-commons URLFrontier."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trapline.cli.options.scheduling import STRATEGIES
from trapline.cli.options.sections import Section, SectionedCommand
from trapline.cli.options.values import NameOrFile, count, listen_address, seconds
from trapline.cli.terminal.progress import compile_replay
from trapline.errors import ConfigError
from trapline.terminal import say
from trapline.units import counted

if TYPE_CHECKING:
    from trapline.urlfrontier.crawls import Crawls
    from trapline.urlfrontier.server import ServerSettings

_LISTEN = "127.0.0.1:7071"  # the port of the reference service
_OPTIONS = Section(
    "Service",
    (
        ("--listen", "listen", (str, "HOST:PORT"), _LISTEN, "Address and port to listen on; port 0: any free port."),
        (
            "--strategy",
            "strategy",
            (NameOrFile(STRATEGIES), "NAME"),
            "breadth-first-turn",
            "Strategy that orders new URLs and queues.",
        ),
        (
            "--delay",
            "delay_s",
            seconds(),
            1.0,
            "Delay between two retrievals from a queue, unless a client has called SetDelay.",
        ),
        (
            "--per-queue",
            "per_queue",
            count(1, 1_000),
            100,
            "Maximum number of new URLs per queue in the answer to one GetURLs call.",
        ),
        (
            "--max-reserved",
            "most_reserved",
            count(0),
            0,
            "Maximum number of reserved URLs per queue (sent to a client, not yet reported). [0: unlimited]",
        ),
        (
            "--quality",
            "quality_key",
            (str, "KEY"),
            "",
            "Metadata key of a URL's quality, for strategies that use one. [none]",
        ),
    ),
)


@click.command(cls=SectionedCommand)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@_OPTIONS
def urlfrontier(
    folder: Path, listen: str, strategy: str, delay_s: float, per_queue: int, most_reserved: int, quality_key: str
) -> None:
    """Serve the frontier in DIR by gRPC, with the URLFrontier API of crawler-commons. Ctrl-C stops the server; DIR keeps everything.

    StormCrawler and clients in any language put URLs and get them, in the order of a strategy of Trapline. There is no encryption and no
    access control: do not listen on a public address. See docs/how-to/urlfrontier.md.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # otherwise it prints its own errors, such as that of a port in use
    try:
        import grpc  # noqa: F401
    except ImportError:
        raise ConfigError("grpcio is not installed; install it with: pip install 'trapline[urlfrontier]'") from None
    from trapline.frontier import Rules
    from trapline.strategies import load_strategy
    from trapline.urlfrontier.crawls import check_folder
    from trapline.urlfrontier.server import ServerSettings

    check_folder(folder)
    host, port = listen_address(listen, "--listen", _LISTEN)
    rules = Rules(delay_s=delay_s, per_connection=per_queue)
    settings = ServerSettings(folder, load_strategy(strategy), rules, host, port, quality_key, most_reserved)
    compile_replay(within=("trapline.frontier.core", "trapline.crawler.discovery.seen"))
    _serve(settings)


def _serve(settings: "ServerSettings") -> None:
    import asyncio
    import signal

    import uvloop

    from trapline.urlfrontier.server import serve

    def started(port: int, crawls: "Crawls") -> None:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        say(f"serving URLFrontier on {host}:{port}, {counted(len(crawls), 'crawl')} in {settings.folder}")
        say("Ctrl-C stops the server")

    async def until_signal() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(settings, stop, started)

    uvloop.run(until_signal())
