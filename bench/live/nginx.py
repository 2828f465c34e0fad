"""Runs Debian's nginx in a `with` block, serving folders on loopback addresses.

nginx has one worker, so that it takes one core at most. This module knows nothing about the content of the folders.
"""

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

_FIRST_ANSWER_S = 10.0


class Listener(NamedTuple):
    """A server of nginx: its addresses, port and names. `folder` may use nginx's variables."""

    addresses: Sequence[str]
    port: int
    folder: str
    names: Sequence[str] = ("_",)  # in nginx: any name
    extra: str = ""  # further directives


@contextmanager
def serving(listeners: list[Listener], scratch: Path, *, log: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """Start nginx with its files in `scratch` and wait until it answers.

    With `log` it writes status, URL, end and duration of every request to scratch/access.log.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    configuration = scratch / "nginx.conf"
    configuration.write_text(_configuration(listeners, scratch, log))
    command = [_program(), "-p", str(scratch), "-e", str(scratch / "error.log"), "-c", str(configuration)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for listener in listeners:
            _wait_for(server, listener.addresses[-1], listener.port, scratch)
        yield server
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def free_ports(addresses: Sequence[str], number: int) -> list[int]:
    """Return ports that are free on all addresses."""
    found: list[int] = []
    with ExitStack() as probes:
        while len(found) < number:
            port = probes.enter_context(socket.create_server((addresses[0], 0))).getsockname()[1]
            found += [port] if all(_is_free(address, port) for address in addresses[1:]) else []
    return found


def _is_free(address: str, port: int) -> bool:
    try:
        socket.create_server((address, port)).close()
    except OSError:
        return False
    return True


def _program() -> str:
    found = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if found is None:
        sys.exit("nginx is not installed; install it with: sudo apt-get install nginx-light")
    return found


def _wait_for(server: subprocess.Popen[bytes], address: str, port: int, scratch: Path) -> None:
    last = time.monotonic() + _FIRST_ANSWER_S
    while time.monotonic() < last and server.poll() is None:
        try:
            return socket.create_connection((address, port)).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nginx does not answer on {address}:{port}; its first error is: {_first_error(scratch)}")


def _first_error(scratch: Path) -> str:
    return next(iter((scratch / "error.log").read_text().splitlines()), "nothing")


def _configuration(listeners: list[Listener], scratch: Path, log: bool) -> str:
    # If nginx is started as root, its worker runs as another user by default, who may not read a temporary folder.
    user = "user root;" if os.geteuid() == 0 else ""
    temporary = "\n".join(f"  {kind}_temp_path {scratch}/{kind};" for kind in _TEMPORARY)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    access = f"{scratch}/access.log urls" if log else "off"
    servers = "\n".join(map(_server, listeners))
    values = {"user": user, "scratch": scratch, "temporary": temporary, "access": access, "servers": servers}
    return _filled(_CONFIGURATION, values | {"files": files, "connections": files // 2})


def _server(listener: Listener) -> str:
    listens = "\n".join(f"    listen {address}:{listener.port};" for address in listener.addresses)
    values = {"listens": listens, "names": " ".join(listener.names), "folder": listener.folder, "extra": listener.extra}
    return _filled(_SERVER, values)


def _filled(text: str, values: Mapping[str, object]) -> str:
    for name, value in values.items():
        text = text.replace(f"<{name}>", str(value))
    return text


_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

_CONFIGURATION = """
<user>
daemon off;
worker_processes 1;
worker_rlimit_nofile <files>;
pid <scratch>/nginx.pid;
error_log <scratch>/error.log warn;
events { worker_connections <connections>; }
http {
<temporary>
  log_format urls '$status $scheme://$http_host$request_uri $msec $request_time';
  access_log <access>;
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  charset utf-8;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  keepalive_timeout 75s;
  server_names_hash_bucket_size 128;
<servers>
}
"""

_SERVER = """
  server {
<listens>
    server_name <names>;
    root <folder>;
    index index.html;
    <extra>
  }
"""
