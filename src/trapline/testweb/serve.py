"""A web served by a process of its own, for tests, demos and benchmarks: `with serve(web) as server: ...`.

The web goes to the process by its standard input, which then carries questions; when it ends, for whatever reason, so does the
process. A subprocess and never a fork: event loops and threads do not survive one.
"""

import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from trapline.errors import ConfigError
from trapline.testweb.log import Log
from trapline.testweb.server import Certificate
from trapline.testweb.serving import CACHE_BYTES
from trapline.testweb.web import Web

STOP_S = 10.0


class Served:
    """A web that is being served."""

    def __init__(self, process: "subprocess.Popen[bytes]", web: Web) -> None:
        self._process = process
        self.web = web
        """with the port on which it is served, and when it began"""

    @property
    def port(self) -> int:
        return self.web.port

    @property
    def hosts(self) -> dict[str, str]:
        """The address of each name."""
        return self.web.hosts

    @property
    def seed_urls(self) -> list[str]:
        """The home page of each site."""
        return self.web.seed_urls

    @property
    def process_id(self) -> int:
        return self._process.pid

    def log(self) -> Log:
        """Up to now."""
        assert self._process.stdin and self._process.stdout
        send(self._process.stdin, "log")
        return Log(self.web, receive(self._process.stdout))


@contextmanager
def serve(
    web: Web,
    port: int = 0,
    tls: Certificate | None = None,
    cache_bytes: int = CACHE_BYTES,
    ping: str | None = None,
) -> Iterator[Served]:
    """Serves the web until the block ends. port: 0: any that is free. ping: the URL that providers ping, if they do."""
    process = subprocess.Popen(
        [sys.executable, "-m", "trapline.testweb"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
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
    """What the other side sent; `EOFError`: it has gone."""
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError("the process that serves the web has ended")
    return pickle.loads(pipe.read(struct.unpack("<q", head)[0]))
