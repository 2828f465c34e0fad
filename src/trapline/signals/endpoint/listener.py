"""The socket of an HTTP server of ours, and the server that listens on it: for the endpoint of providers and for the dashboard."""

import contextlib
import errno
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from trapline.errors import ConfigError
from trapline.signals.endpoint.connections import Bounds


class QuietServer(uvicorn.Server):
    """A server that leaves process signals (SIGINT, SIGTERM) to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def quiet_config(app: Any, bounds: Bounds, **more: Any) -> uvicorn.Config:
    """Return the configuration of a server that prints nothing: a flood of bad requests would be a flood of lines."""
    return uvicorn.Config(
        app,
        http=bounds.protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        **more,
    )


def listening(host: str, port: int, backlog: int, option: str = "--listen") -> socket.socket:
    """Return a socket that listens on this address. Early connections wait until the server has started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(backlog)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(f"{option} {host}:{port}: {_why_not(error)}") from None
    return listener


def _why_not(error: Exception) -> str:
    """Return what is wrong with the address, and what to do about it where we know."""
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return "address already in use; give another port, or 0 for any free port"
    if number in (errno.EADDRNOTAVAIL, socket.EAI_NONAME):
        return "not an address of this machine; give one of its addresses, such as 127.0.0.1"
    if number == errno.EACCES:
        return "not permitted for this user; use a port from 1024 on"
    return f"cannot listen on this address: {getattr(error, 'strerror', None) or error}"
