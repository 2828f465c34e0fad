"""The gRPC server: it listens, limits what a client may send, and turns what goes wrong into statuses. One thread, one event loop."""

import asyncio
import resource
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError
from grpc import aio

from trapline.errors import ConfigError, RankError
from trapline.frontier import Rules
from trapline.strategies import Strategy
from trapline.terminal import say
from trapline.urlfrontier.crawls import Crawls
from trapline.urlfrontier.messages import CALLS, CallType
from trapline.urlfrontier.service import FrontierService

MOST_MESSAGE = 4 << 20  # bytes
_MOST_STREAMS = 1_000  # calls at once of one client
_OPTIONS = (
    ("grpc.max_receive_message_length", MOST_MESSAGE),
    ("grpc.max_concurrent_streams", _MOST_STREAMS),
    ("grpc.so_reuseport", 0),  # a second server on the same port is an error
)
_GRACE_S = 2.0  # for calls under way, at the end
_RAW = ("GetURLs", "ListURLs")  # these write messages in the wire format


class ServerSettings(NamedTuple):
    folder: Path
    strategy: Strategy
    rules: Rules
    host: str = "127.0.0.1"
    port: int = 7071
    quality_key: str = ""
    most_reserved: int = 0  # URLs of a queue; 0: any number
    clock: Callable[[], float] = time.time


async def serve(settings: ServerSettings, stop: asyncio.Event, started: Callable[[int, Crawls], None]) -> None:
    """Serve until `stop` is set. `started`: is called with the port when clients may come."""
    _allow_files()
    crawls = Crawls(settings.folder, settings.strategy, settings.rules, settings.most_reserved, settings.clock)
    try:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        server = aio.server(options=_OPTIONS)
        service = FrontierService(crawls, f"{host}:{settings.port}", settings.quality_key)
        failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def fail(error: RankError) -> None:
            crawls.discard()
            if not failure.done():
                failure.set_exception(error)

        server.add_generic_rpc_handlers((_handlers(service, fail),))
        try:
            port = server.add_insecure_port(f"{host}:{settings.port}")
        except RuntimeError:
            port = 0
        if not port:
            raise ConfigError(
                f"--listen {host}:{settings.port}: cannot listen there; if another server uses this port, stop it,"
                " or give another address or port"
            )
        service.address = f"{host}:{port}"
        await server.start()
        intake = asyncio.create_task(service.intake.run())
        started(port, crawls)
        try:
            await _first(stop, intake, failure)
        finally:
            await server.stop(_GRACE_S)
            intake.cancel()
    finally:
        crawls.close()


def _allow_files() -> None:
    """Let this process open as many files as the system allows: each crawl has four."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _first(stop: asyncio.Event, *failures: asyncio.Future[None]) -> None:
    """Wait for the end of the service. It is also the end if the strategy fails, or storing does for a reason that nobody foresaw."""
    stopped = asyncio.create_task(stop.wait())
    ends: list[asyncio.Future[Any]] = [stopped, *failures]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    for failure in failures:
        if failure.done():
            failure.result()


def _handlers(service: FrontierService, fail: Callable[[RankError], None]) -> Any:
    handlers = {}
    for name, call in CALLS.items():
        make = getattr(grpc, f"{call.kind}_rpc_method_handler")
        method = _guarded(getattr(service, name), name, call, fail)
        to_bytes = _unchanged if name in _RAW else call.response.SerializeToString
        handlers[name] = make(method, None, to_bytes)
    path = next(iter(CALLS.values())).path
    return grpc.method_handlers_generic_handler(path.split("/")[1], handlers)


def _unchanged(message: bytes) -> bytes:
    return message


def _guarded(
    method: Callable[..., Any], name: str, call: CallType, fail: Callable[[RankError], None]
) -> Callable[..., Any]:
    """Return the method of a call, which takes bytes, with a status for each error that the client or the system is to blame for. `fail`:
    ends the service, because the strategy raised this error."""

    async def messages(stream: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for data in stream:
            yield call.request.FromString(data)

    async def guarded(request: Any, context: Any) -> Any:
        try:
            is_stream = call.kind.startswith("stream")
            return await method(messages(request) if is_stream else call.request.FromString(request), context)
        except RankError as error:
            fail(error)
            await context.abort(grpc.StatusCode.INTERNAL, f"{name}: {error}")
        except (ConfigError, DecodeError) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{name}: {error}")
        except (sqlite3.Error, OSError) as error:
            say(f"trapline: {name}: {error}", err=True)
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"{name}: the disk cannot be written or read: {error}")

    return guarded
