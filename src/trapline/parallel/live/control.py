"""Requests and orders to a running parallel crawl from a second terminal. This module delivers them; the coordinator
decides the answer.

DIR/coordinator.json     the coordinator's address and the crawl's token, while the crawl runs. Only the owner of the file can read it: the
                         coordinator obeys every process that knows the token.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trapline.errors import ConfigError
from trapline.parallel.folder.manifest import is_parallel
from trapline.parallel.transport.wire import Address, FrameKind, Pass, SilentError, greet

WHERE = "coordinator.json"
WATCHER = -2  # its number in the handshake, where partitions have 0 and up
_ANSWER_S = 15.0


class NotRunningError(ConfigError):
    """The crawl is not running, so there is no coordinator."""


@contextmanager
def announced(folder: Path, crawl: str, token: str, address: Address) -> Iterator[None]:
    """Write the coordinator's address and token into the folder while the block runs."""
    file, partial = folder / WHERE, folder / f".{WHERE}.partial"
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as writing:
        json.dump({"address": address, "crawl": crawl, "token": token}, writing)
    os.replace(partial, file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def ask(folder: Path, **request: Any) -> dict[str, Any]:
    """Send a request to the coordinator and return its answer. Raises `ConfigError` if the coordinator does not answer,
    or refuses."""
    own, address = _where(folder)
    try:
        answer = asyncio.run(asyncio.wait_for(_request(own, address, request), _ANSWER_S))
    except (OSError, ValueError):  # includes a timeout, and an invalid host name
        raise _is_not_running(folder) from None
    except SilentError:
        raise ConfigError(
            f"{folder}: the command that runs its crawl does not answer; if you suspended it with Ctrl-Z, continue it with: fg"
        ) from None
    if "refused" in answer:
        raise ConfigError(answer["refused"])
    return answer


def _where(folder: Path) -> tuple[Pass, Address]:
    if not is_parallel(folder):
        if not folder.exists():
            raise ConfigError(f"{folder}: no such folder; name the folder of a crawl of several processes")
        raise ConfigError(
            f"{folder}: this command needs a crawl that was started with --processes N; `trapline status` shows every crawl"
        )
    try:
        found = json.loads((folder / WHERE).read_text())
        host, port = found["address"]
        if not isinstance(host, str) or type(port) is not int or not 0 < port < 1 << 16:
            raise ValueError
        return Pass(str(found["crawl"]), found["token"].encode(), WATCHER), (host, port)
    except FileNotFoundError:
        raise _is_not_running(folder) from None
    except PermissionError:
        raise ConfigError(f"{folder}: only the user who started its crawl may control it") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{folder / WHERE}: cannot be read; delete it if no crawl runs there") from None


def _is_not_running(folder: Path) -> NotRunningError:
    return NotRunningError(f"{folder}: its crawl is not running; for its last status, run: trapline status {folder}")


async def _request(own: Pass, address: Address, request: dict[str, Any]) -> dict[str, Any]:
    reader, writer = await asyncio.open_connection(*address)
    line = await greet(reader, writer, own, called=True)
    line.send(FrameKind.STATUS, json.dumps(request).encode())
    frame = await line.receive()
    line.close()
    if frame is None:
        raise ConnectionResetError  # the coordinator ended at this moment
    found: dict[str, Any] = json.loads(frame[1])
    return found
