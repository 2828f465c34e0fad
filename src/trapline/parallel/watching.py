"""A running crawl of several partitions, asked or told something from a second terminal. What it answers is the coordinator's business.

DIR/coordinator.json     where the coordinator is and what proves that one may speak to it, for as long as it runs. Readable by its
                         owner alone: whoever has the token is obeyed.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trapline.errors import ConfigError
from trapline.parallel.manifest import is_parallel
from trapline.parallel.wire import Address, Kind, Pass, SilentError, greet

WHERE = "coordinator.json"
WATCHER = -2  # among partitions
_ANSWER_S = 15.0


class NotRunningError(ConfigError):
    """Nobody is there to be asked."""


@contextmanager
def announced(folder: Path, crawl: str, token: str, address: Address) -> Iterator[None]:
    """For whoever comes by while the block runs."""
    file, partial = folder / WHERE, folder / f".{WHERE}.partial"
    partial.unlink(missing_ok=True)
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as writing:
        json.dump({"address": address, "crawl": crawl, "token": token}, writing)
    os.replace(partial, file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def ask(folder: Path, **said: Any) -> dict[str, Any]:
    """What the coordinator answers. `ConfigError`: nobody answers, or it will not do that."""
    own, address = _where(folder)
    try:
        answer = asyncio.run(asyncio.wait_for(_asked(own, address, said), _ANSWER_S))
    except (OSError, ValueError):  # also if it takes too long, or that is no name of a machine
        raise _is_not_running(folder) from None
    except SilentError:
        raise ConfigError(
            f"{folder}: the command that leads its crawl does not answer; if Ctrl-Z stopped it, let it go on: fg"
        ) from None
    if "refused" in answer:
        raise ConfigError(answer["refused"])
    return answer


def _where(folder: Path) -> tuple[Pass, Address]:
    if not is_parallel(folder):
        raise ConfigError(
            f"{folder}: {'holds no crawl of several processes' if folder.exists() else 'there is no such folder'}"
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
        raise ConfigError(f"{folder}: only who started its crawl may ask it") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ConfigError(f"{folder / WHERE}: cannot be read; delete it, if no crawl runs there") from None


def _is_not_running(folder: Path) -> NotRunningError:
    return NotRunningError(f"{folder}: its crawl does not run now; how it stood at last: trapline status {folder}")


async def _asked(own: Pass, address: Address, said: dict[str, Any]) -> dict[str, Any]:
    reader, writer = await asyncio.open_connection(*address)
    line = await greet(reader, writer, own, called=True)
    line.send(Kind.STATUS, json.dumps(said).encode())
    frame = await line.receive()
    line.close()
    if frame is None:
        raise ConnectionResetError  # it ended in this moment
    found: dict[str, Any] = json.loads(frame[1])
    return found
