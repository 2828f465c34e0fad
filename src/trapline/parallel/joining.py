"""How we get into a Ray cluster, and out of it: its address, its token, and one line if it does not let us in. Imports ray, for on_ray.py,
which has made the settings that Ray reads then. What is done there is not known here.
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

# Insides of Ray's: its version is pinned.
from ray._private import ray_constants
from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available
from ray._private.services import canonicalize_bootstrap_address
from ray.exceptions import AuthenticationError, RayError

from trapline.errors import ConfigError
from trapline.parallel.head import Address, Head, listens, speaks_http2, watched

Step = Callable[[str], AbstractContextManager[None]]  # says what is waited for, for as long as it lasts

LOCAL = "local"  # instead of an address: a cluster of this machine, for as long as the crawl runs
_ONE_MACHINE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # "0": Ray knows that it has no other machines
_REFUSED = b"InvalidAuthToken"  # what Ray's compiled half writes if the token is another, or none
_LONGEST = 200  # of Ray's words in a line of ours


@contextmanager
def joined(address: str, step: Step) -> Iterator[Head]:
    """`ConfigError` if there is no such cluster, or it does not let us in."""
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
    """A Ray that is started here listens on loopback alone, and so do our partitions, which go by its address. Else it would listen on
    all addresses of the machine. Ray has this for desktops, whose firewalls ask; the processes that it starts read the environment."""
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
    """Whether a cluster listens there: Ray would try for minutes."""
    try:
        if address.startswith(":"):
            raise ValueError("no host")  # Ray would say so at length
        is_one = _answering()(_host_and_port(canonicalize_bootstrap_address(address) or ""))
    except ConnectionError as error:  # also Ray's own, if it finds no cluster
        start = "start one (ray start --head), or name a machine of it: HOST:PORT"
        raise ConfigError(f"--ray {address}: no cluster answers there ({_first_line(error)}); {start}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--ray {address}: cannot be reached ({_first_line(error)}); give HOST:PORT, auto or local"
        ) from None
    if not is_one:
        raise ConfigError(f"--ray {address}: who listens there is no Ray cluster; give the HOST:PORT of its head")


def _answering() -> Callable[[Address], bool]:
    """How a head is told from others. Behind TLS nobody sees it greet."""
    return speaks_http2 if os.environ.get("RAY_USE_TLS", "0") in ("", "0") else listens


def _host_and_port(address: str) -> Address:
    """
    >>> _host_and_port("10.0.0.1:6379"), _host_and_port("[::1]:6379")
    (('10.0.0.1', 6379), ('::1', 6379))
    """
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)


def _join(address: str, step: Step) -> None:
    what = "starting Ray on this machine" if address == LOCAL else "joining the Ray cluster"
    told = {"include_dashboard": False} if address == LOCAL else {}
    with TemporaryFile() as said, _stderr_into(said) as stderr:
        try:
            with ExitStack() as steps:
                with redirect_stderr(stderr):
                    steps.enter_context(step(what))
                _have_token(address)
                ray.init(address, namespace="trapline", log_to_driver=False, logging_level=logging.ERROR, **told)
        except (ConnectionError, RuntimeError, ValueError, RayError) as error:
            said.seek(0)
            raise ConfigError(f"--ray {address}: {_why(error, said.read())}") from None


def _have_token(address: str) -> None:
    """One that is there is shown, to whatever address; Ray shows it to `auto` only. A cluster of ours has one that is nowhere written."""
    if address == LOCAL:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
    else:
        maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def _why(error: Exception, said: bytes) -> str:
    """`said`: by Ray, on stderr."""
    if isinstance(error, AuthenticationError) or _REFUSED in said:
        what = getattr(error, "message", "it has another token than ours, or we have none")
        copy = "copy its ~/.ray/auth_token to this machine, or set RAY_AUTH_TOKEN"
        return f"the cluster does not let us in ({what}); {copy}; RAY_AUTH_MODE must be token, or not set"
    words = " ".join(str(error).split())
    same = f"it must have our Ray {ray.__version__} and our Python {platform.python_version()}"
    return f"the cluster does not let us in ({words[:_LONGEST]}); {same}"


@contextmanager
def _stderr_into(file: BinaryIO) -> Iterator[TextIO]:
    """What Ray's compiled half writes past Python, again and again while it cannot connect: what this yields is for our one line."""
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
