"""Serves a web in its own process, for tests, demos and benchmarks: `with serve(web) as server: ...`.

The process receives the web through its standard input, and then requests for the log. When the input ends, for whatever
reason, the process ends too. It is a subprocess and never a fork, because event loops and threads do not survive a fork.
"""

import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from trapline.errors import ConfigError
from trapline.testweb.server.connection import CACHE_BYTES
from trapline.testweb.server.log import RequestLog
from trapline.testweb.server.server import Certificate
from trapline.testweb.web.served_web import ServedWeb

STOP_S = 10.0  # time for the process to end before it is killed


class Served:
    """A web that is being served."""

    def __init__(self, process: "subprocess.Popen[bytes]", web: ServedWeb) -> None:
        self._process = process
        self.web = web
        """the web, with the port on which it is served and the time at which it was started"""

    @property
    def port(self) -> int:
        return self.web.port

    @property
    def hosts(self) -> dict[str, str]:
        """The address of each host name."""
        return self.web.hosts

    @property
    def seed_urls(self) -> list[str]:
        """The home page of each site."""
        return self.web.seed_urls

    def log(self) -> RequestLog:
        """Return the log up to now."""
        assert self._process.stdin and self._process.stdout
        send(self._process.stdin, "log")
        return RequestLog(self.web, receive(self._process.stdout))


@contextmanager
def serve(
    web: ServedWeb,
    port: int = 0,
    tls: Certificate | None = None,
    cache_bytes: int = CACHE_BYTES,
    ping: str | None = None,
) -> Iterator[Served]:
    """Serve the web until the block ends.

    Port 0 means any free port. `ping` is the URL of the endpoint that providers ping; None: they do not ping.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "trapline.testweb.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout
    try:
        send(process.stdin, (web, port, tls, cache_bytes, ping))
        started = receive(process.stdout)
        if isinstance(started, str):
            raise ConfigError(started)
        port, began = started
        yield Served(process, web.at(port, tls is not None, began))
    finally:
        process.stdin.close()
        _end(process)
        process.stdout.close()


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def send(pipe: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    pipe.write(struct.pack("<q", len(data)))
    pipe.write(data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Return the next value that the other process sent. Raise `EOFError` if it has ended."""
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError("the process that serves the web has ended")
    return pickle.loads(pipe.read(struct.unpack("<q", head)[0]))
