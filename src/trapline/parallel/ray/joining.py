"""Joining and leaving a Ray cluster: its address, its token, and a one-line error if it does not admit us.

This module imports ray; cluster.py has set the environment variables that Ray reads at import. It does not know what is
done on the cluster.
"""

import logging
import os
import platform
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, redirect_stderr
from tempfile import TemporaryFile
from typing import BinaryIO, TextIO

import ray
from ray._private import ray_constants
from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available
from ray._private.services import canonicalize_bootstrap_address
from ray.exceptions import AuthenticationError, RayError

from trapline.errors import ConfigError
from trapline.parallel.ray.head import Address, Head, listens, speaks_http2, watched

# This part uses internals of Ray; the version of Ray is pinned.


Step = Callable[[str], AbstractContextManager[None]]  # shows what the command waits for, as long as the block runs

LOCAL = "local"  # instead of an address: a cluster on this machine alone, as long as the crawl runs
_ONE_MACHINE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # "0": tells Ray that there are no other machines
_REFUSED = b"InvalidAuthToken"  # Ray's compiled part writes this if the token is wrong or missing
_LONGEST = 200  # characters of Ray's message that one of our messages quotes


@contextmanager
def joined(address: str, step: Step) -> Iterator[Head]:
    """Join a Ray cluster for the time of the block. Raises `ConfigError` if there is no such cluster, or it does not
    admit us."""
    if address != LOCAL:
        _probe(address)
    with _on_loopback() if address == LOCAL else nullcontext():
        _join(address, step)
        try:
            with watched(_host_and_port(ray.get_runtime_context().gcs_address), _answering()) as head:
                yield head
        finally:
            ray.shutdown()


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Let a Ray that is started here listen on loopback only. Our partitions use its address, and do the same. By
    default Ray would listen on all addresses of the machine. Ray has this setting for desktops, whose firewalls ask the
    user; the processes that Ray starts read the environment variable."""
    before, environment = ray_constants.ENABLE_RAY_CLUSTER, os.environ.get(_ONE_MACHINE)
    ray_constants.ENABLE_RAY_CLUSTER, os.environ[_ONE_MACHINE] = False, "0"
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
        if environment is None:
            del os.environ[_ONE_MACHINE]
        else:
            os.environ[_ONE_MACHINE] = environment


def _probe(address: str) -> None:
    """Check that a cluster listens there, before Ray would try for minutes. Raises `ConfigError` if not."""
    try:
        if address.startswith(":"):
            raise ValueError("no host")  # Ray's own message is long
        is_cluster = _answering()(_host_and_port(canonicalize_bootstrap_address(address) or ""))
    except ConnectionError as error:  # Ray raises it too if it finds no cluster
        start = "start one (ray start --head), or give the HOST:PORT of its head"
        raise ConfigError(f"--ray {address}: no cluster answers there ({_first_line(error)}); {start}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--ray {address}: cannot be reached ({_first_line(error)}); give HOST:PORT, auto or local"
        ) from None
    if not is_cluster:
        raise ConfigError(f"--ray {address}: the server there is not a Ray cluster; give the HOST:PORT of its head")


def _answering() -> Callable[[Address], bool]:
    """Return the function that tells a head from other servers. Behind TLS the HTTP/2 greeting cannot be seen."""
    return speaks_http2 if os.environ.get("RAY_USE_TLS", "0") in ("", "0") else listens


def _host_and_port(address: str) -> Address:
    """Split an address into host and port.

    >>> _host_and_port("10.0.0.1:6379"), _host_and_port("[::1]:6379")
    (('10.0.0.1', 6379), ('::1', 6379))
    """
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)


def _join(address: str, step: Step) -> None:
    doing = "starting Ray on this machine" if address == LOCAL else "joining the Ray cluster"
    options = {"include_dashboard": False} if address == LOCAL else {}
    with TemporaryFile() as written, _stderr_into(written) as stderr:
        try:
            with ExitStack() as steps:
                with redirect_stderr(stderr):
                    steps.enter_context(step(doing))
                _have_token(address)
                ray.init(address, namespace="trapline", log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, RuntimeError, ValueError, RayError) as error:
            written.seek(0)
            raise ConfigError(f"--ray {address}: {_why(error, written.read())}") from None


def _have_token(address: str) -> None:
    """Set up the authentication token. An existing token is presented to any address; Ray by itself presents it to
    `auto` only. For a cluster that we start, a new token is made, which is written to no file."""
    if address == LOCAL:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
    else:
        maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def _why(error: Exception, stderr: bytes) -> str:
    """Return why the cluster did not admit us, and what to do. `stderr`: what Ray wrote there."""
    if isinstance(error, AuthenticationError) or _REFUSED in stderr:
        reason = getattr(error, "message", "its token is not ours, or we have none")
        copy = "copy its ~/.ray/auth_token to this machine, or set RAY_AUTH_TOKEN"
        return f"the cluster does not admit us ({reason}); {copy}; RAY_AUTH_MODE must be token, or not set"
    words = " ".join(str(error).split())
    same = f"it must run our Ray {ray.__version__} and our Python {platform.python_version()}"
    return f"the cluster does not admit us ({words[:_LONGEST]}); {same}"


@contextmanager
def _stderr_into(file: BinaryIO) -> Iterator[TextIO]:
    """Redirect the standard error of the process into a file. Ray's compiled part writes there directly, again and
    again while it cannot connect. Yields the original standard error, for our own messages."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        with open(kept, "w", closefd=False) as stderr:
            yield stderr
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _first_line(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip().splitlines()[0]
