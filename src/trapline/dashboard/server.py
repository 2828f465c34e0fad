"""The server of the dashboard: its addresses, its token, and its end. One event loop serves the pages, the metrics, or both."""

import asyncio
import math
import secrets
import socket
from ipaddress import ip_address

import uvicorn
from starlette.types import ASGIApp

from trapline.dashboard.access import Access, is_loopback
from trapline.dashboard.app import make_app, make_metrics_app
from trapline.dashboard.job_runner import JobRunner
from trapline.dashboard.settings import DashboardSettings
from trapline.dashboard.watched_crawl import WatchedCrawl, named_folders
from trapline.signals.endpoint.connections import Bounds, QuietServer, listening, quiet_config, sweep

_BACKLOG = 128
_MOST_OF_ONE_CLIENT = 128  # connections; all browsers of this machine, and all behind a proxy, are one client
_SWEEP_S = 1.0  # between two looks for requests that are too slow


class DashboardServer:
    def __init__(self, settings: DashboardSettings) -> None:
        """Begin to listen. Raise `ConfigError` if that is not possible."""
        self._settings = settings
        self._crawls = [WatchedCrawl(folder, name) for folder, name in named_folders(settings.folders).items()]
        self._sockets = {
            name: listening(*address, _BACKLOG, option)
            for name, address, option in (
                ("pages", settings.listen, settings.option),
                ("metrics", settings.metrics, "--metrics"),
            )
            if address is not None
        }
        self._jobs = JobRunner()
        self._tokens = {name: self._token_for(found) for name, found in self._sockets.items()}

    @property
    def page_url(self) -> str:
        """The URL of the pages, with the token in its fragment, which browsers do not send; "": there are none."""
        url = self._url("pages")
        token = self._tokens.get("pages")
        return f"{url}#token={token}" if url and token else url

    @property
    def metrics_url(self) -> str:
        """The URL of the metrics; "": they have no address of their own."""
        url = self._url("metrics")
        return f"{url}metrics" if url else ""

    @property
    def metrics_token(self) -> str:
        return self._tokens.get("metrics", "")

    def _url(self, name: str) -> str:
        if name not in self._sockets:
            return ""
        host, port = self._sockets[name].getsockname()[:2]
        host = socket.gethostname() if _is_wildcard(host) else f"[{host}]" if ":" in host else host
        return f"http://{host}:{port}/"

    def _token_for(self, listener: socket.socket) -> str:
        if self._settings.token:
            return self._settings.token
        return "" if is_loopback(listener.getsockname()[0]) else secrets.token_urlsafe(24)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set."""
        servers = [(QuietServer(_config(self._app(name, stop))), found) for name, found in self._sockets.items()]
        serving = [asyncio.create_task(server.serve([found])) for server, found in servers]
        stopping, sweeping = asyncio.create_task(stop.wait()), asyncio.create_task(_sweep([one for one, _ in servers]))
        try:
            await asyncio.wait([stopping, *serving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            stopping.cancel()
            sweeping.cancel()
            for server, _ in servers:
                server.should_exit = True
            await asyncio.gather(*serving)
            await self._jobs.close()

    def _app(self, name: str, closing: asyncio.Event) -> ASGIApp:
        settings, listener = self._settings, self._sockets[name]
        app = make_metrics_app(self._crawls)
        if name == "pages":
            app = make_app(self._crawls, self._jobs, not settings.read_only, closing)
        host, port = listener.getsockname()[:2]
        named = settings.listen if name == "pages" else settings.metrics
        own = socket.gethostname() if _is_wildcard(host) else named[0] if named else ""
        names = frozenset({*settings.allow_hosts, *([] if _is_address(own) else [own])})
        return Access(app, names, port, self._tokens[name], settings.read_only)


def _is_wildcard(host: str) -> bool:
    return ip_address(host.partition("%")[0]).is_unspecified


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


async def _sweep(servers: list[QuietServer]) -> None:
    """Close connections whose request does not arrive in time."""
    while True:
        await asyncio.sleep(_SWEEP_S)
        for server in servers:
            sweep(server.server_state)


def _config(app: ASGIApp) -> uvicorn.Config:
    # Streams of events have no end. `Access` limits the time of a body.
    bounds = Bounds(most_of_one_sender=_MOST_OF_ONE_CLIENT)
    bounds.whole_s = math.inf
    return quiet_config(app, bounds, proxy_headers=False, backlog=_BACKLOG, timeout_graceful_shutdown=2)
