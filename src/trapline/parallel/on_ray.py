"""Partitions on the machines of a Ray cluster. The only file that imports ray; when partitions are started, and how often, is crew.py's.

A partition is the same process as without Ray (worker.py), and speaks with the others and its coordinator over lines of its own. What
Ray runs is a supervisor on each machine, an actor that starts a worker, waits for its end and says how it ended. A supervisor
that is killed takes its worker with it, at once: the crew starts another, and no site ever has two visitors. Its name, the
crawl's and the partition's, is taken as long as it lives: no second command can start one.
"""

import asyncio
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

# Read when Ray is imported: else it takes 20 s to say that a cluster has another token.
os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "4")

import ray
from ray._private.services import canonicalize_bootstrap_address  # the version is pinned
from ray.exceptions import (
    ActorAlreadyExistsError,
    ActorUnavailableError,
    ActorUnschedulableError,
    RayActorError,
    RayError,
    RayTaskError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import trapline
from trapline.crawl.store.folder import DATABASE
from trapline.errors import ConfigError
from trapline.output import atomic
from trapline.parallel import placement
from trapline.parallel.crew import Show, crawl_with
from trapline.parallel.manifest import MANIFEST, Manifest
from trapline.parallel.placement import Placement, host_for
from trapline.parallel.processes import last_line
from trapline.parallel.worker import COMMAND, Task

LOCAL = "local"  # instead of an address: a cluster of this machine, for as long as the crawl runs
PATIENCE_S = 300.0  # for a coordinator, or a machine, that is out of reach
_PROBE_S = 5.0
_NAME_IS_FREE_WITHIN_S = 15.0
_ASK_AGAIN_S = 1.0
_READERS_END_S = 60.0
_PIECE = 8 << 20
_WARMUP = ("-P", "-c", "from trapline.cli import main; main()", "warmup")


class Supervisor:
    """Of one worker, from its start to its end."""

    def __init__(self) -> None:
        self._ended: tuple[int, str] | None = None

    def run(self, task: bytes) -> tuple[int, str]:
        """Asked again, by somebody whom the answer has not reached: how it ended, and no second worker."""
        self._ended = self._ended or _run(task)
        return self._ended


def _run(task: bytes) -> tuple[int, str]:
    process = subprocess.Popen(
        [sys.executable, *COMMAND], stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    with process:
        assert process.stdin is not None and process.stderr is not None
        with suppress(OSError):  # it has died already
            process.stdin.write(task)
            process.stdin.flush()  # and it stays open: the worker dies with it
        complaint = process.stderr.read()
        code = process.wait()
        with suppress(OSError):  # what it has not read is still to be written
            process.stdin.close()
    return code, last_line(complaint)


def _made_ready(folder: str, manifest: str, warm: bool) -> tuple[str, bool]:
    """On a machine of the cluster: its version of Trapline, and whether it sees the crawl's folder. `warm`: kernels are compiled there."""
    if not warm:
        subprocess.run([sys.executable, *_WARMUP], check=True, capture_output=True)
    Path(folder).mkdir(parents=True, exist_ok=True)
    file = Path(folder) / MANIFEST
    return trapline.__version__, file.is_file() and file.read_text() == manifest


def _in_one_file(database: str) -> bool:
    """On the machine that has it: what a worker that was killed has committed lies beside it until then. False: there is none."""
    if not Path(database).exists():
        return False
    with closing(sqlite3.connect(database, timeout=_READERS_END_S)) as opened:
        busy, _, _ = opened.execute("pragma wal_checkpoint(truncate)").fetchone()
    if busy:
        raise TimeoutError(f"{database} is being read")
    return True


def _piece(file: str, at: int) -> bytes:
    with open(file, "rb") as reading:
        reading.seek(at)
        return reading.read(_PIECE)


@contextmanager
def connected(address: str) -> Iterator["Cluster"]:
    """`ConfigError` if there is no such cluster, or it does not let us in."""
    _probe(address)
    local = {"include_dashboard": False} if address == LOCAL else {}
    try:
        with _silent():
            ray.init(address, namespace="trapline", log_to_driver=False, logging_level=logging.ERROR, **local)
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        why = "its token (RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH) and its Ray must be ours"
        raise ConfigError(f"--ray {address}: the cluster does not let us in ({_first_line(error)}); {why}") from None
    try:
        yield Cluster()
    finally:
        ray.shutdown()


def _probe(address: str) -> None:
    """Whether anybody listens there: Ray would try for minutes."""
    if address == LOCAL:
        return
    try:
        host, port = (canonicalize_bootstrap_address(address) or "").rsplit(":", 1)
        socket.create_connection((host.strip("[]"), int(port)), _PROBE_S).close()
    except ConnectionError as error:  # also Ray's own, if it finds no cluster
        start = "start one (ray start --head), or name a machine of it: HOST:PORT"
        raise ConfigError(f"--ray {address}: no cluster answers there ({_first_line(error)}); {start}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--ray {address}: cannot be reached ({_first_line(error)}); give HOST:PORT, auto or local"
        ) from None


@contextmanager
def _silent() -> Iterator[None]:
    """What Ray's compiled half writes past Python, again and again while it cannot connect: we say it in one line."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _first_line(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip().splitlines()[0]


class Cluster:
    """A Ray cluster that we are connected to, from one of its machines."""

    def __init__(self) -> None:
        self._here: str = ray.util.get_node_ip_address()
        self._ready: set[str] = set()  # by what Ray knows them: a machine that was started again has another name
        self._choosing = asyncio.Lock()

    def crawl(self, manifest: Manifest, show: Show) -> Manifest:
        """As crew.py does. At its end the databases of all partitions are on this machine."""
        self._folder = manifest.folder
        before = placement.read(manifest.folder)
        self._placed = Placement(self._here, self._make_ready(self._hosts()), before.hosts if before else {})
        ended = crawl_with(manifest, show, self._launch, self._here, PATIENCE_S)
        self._fetch(ended)
        return ended

    # ---- machines

    @staticmethod
    def _hosts() -> dict[str, str]:
        """Machines that take work, and by what Ray knows them."""
        alive = [node for node in ray.nodes() if node["Alive"]]
        working = [node for node in alive if node["Resources"].get("CPU", 0) > 0] or alive
        return {node["NodeManagerAddress"]: node["NodeID"] for node in working}

    def _make_ready(self, hosts: Mapping[str, str]) -> bool:
        """Whether they all see the same folder."""
        told = str(self._folder), (self._folder / MANIFEST).read_text()
        asked = {host: _on(node, _made_ready).remote(*told, host == self._here) for host, node in hosts.items()}
        answers = {host: _answer(host, ref) for host, ref in asked.items()}
        for host, (version, _) in answers.items():
            if version != trapline.__version__:
                raise ConfigError(
                    f"{host} has Trapline {version}, and this machine {trapline.__version__}: install one of them on all"
                )
        self._ready.update(hosts.values())
        return all(sees for _, sees in answers.values())

    async def _host_of(self, partition: int) -> tuple[str, str] | None:
        """With Ray's name of it; None: the one that has its folder is gone, and does not come back."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            async with self._choosing:
                found = await self._chosen(partition)
            if found is not None:
                return found
            await asyncio.sleep(_ASK_AGAIN_S)
        return None

    async def _chosen(self, partition: int) -> tuple[str, str] | None:
        """None: not now."""
        there = self._hosts()
        host = host_for(partition, self._placed, list(there))
        if host is None or not await self._is_ready(host, there[host]):
            return None
        self._place(partition, host)
        return host, there[host]

    async def _is_ready(self, host: str, node: str) -> bool:
        """One that has joined since is made so. False: it has left, or does not see the folder, and so it must be chosen anew."""
        if node in self._ready:
            return True
        try:
            sees = await asyncio.to_thread(self._make_ready, {host: node})
        except ConfigError:
            if self._hosts().get(host) == node:
                raise
            return False
        was_shared = self._placed.shared
        self._placed = replace(self._placed, shared=was_shared and sees)
        return sees or not was_shared

    def _place(self, partition: int, host: str | None) -> None:
        self._placed = self._placed.having(partition, host)
        placement.write(self._folder, self._placed)

    # ---- partitions

    async def _launch(self, task: Task) -> tuple[int, str]:
        while True:
            before = self._placed.hosts.get(task.partition)
            found = await self._host_of(task.partition)
            if found is None:
                return 2, str(_has_left(task.partition, before or "a machine", self._folder))
            try:
                return await self._supervised(task, *found)
            except ActorUnschedulableError:  # the machine has left since: nothing was started there
                self._place(task.partition, before)

    async def _supervised(self, task: Task, host: str, node: str) -> tuple[int, str]:
        supervisor = await self._supervisor(task, node)
        if supervisor is None:
            return 2, f"partition {task.partition} is supervised on the cluster by another command; end that one first"
        try:
            return await _ended(supervisor, replace(task, listen=host, host=host).to_line())
        except RayActorError:
            return -signal.SIGKILL, f"its supervisor on {host} ended"
        except asyncio.CancelledError:
            ray.kill(supervisor)
            raise

    @staticmethod
    async def _supervisor(task: Task, node: str) -> Any:
        """None: its name is taken."""
        named = {"name": f"trapline-{task.crawl}-{task.partition}", "num_cpus": 0, **_at(node)}
        end = time.monotonic() + _NAME_IS_FREE_WITHIN_S
        while time.monotonic() < end:
            try:
                return ray.remote(Supervisor).options(**named).remote()
            except ActorAlreadyExistsError:  # one that was killed has its name for a moment longer
                await asyncio.sleep(_ASK_AGAIN_S)
        return None

    # ---- the end

    def _fetch(self, manifest: Manifest) -> None:
        """The databases of partitions that are elsewhere, for the one of all; archives stay where they are."""
        there = self._hosts()
        for number, host in sorted(self._placed.elsewhere.items()):
            if host not in there:
                raise _has_left(number, host, self._folder)
            try:
                _fetch(manifest.parts[number], there[host])
            except RayTaskError as error:
                raise ConfigError(f"partition {number} on {host}: cannot be read ({_last_line(error)})") from None
            except RayError:
                raise _has_left(number, host, self._folder) from None


def _has_left(partition: int, host: str, folder: Path) -> ConfigError:
    way_on = f"bring it back, and go on with --resume {folder}"
    return ConfigError(f"partition {partition} is on {host}, which has left the cluster; {way_on}")


async def _ended(supervisor: Any, task: bytes) -> tuple[int, str]:
    """As long as it is out of reach but not dead, its worker crawls: no other may be started."""
    while True:
        try:
            code, complaint = await supervisor.run.remote(task)
            return code, complaint
        except ActorUnavailableError:
            await asyncio.sleep(_ASK_AGAIN_S)


def _fetch(part: Path, node: str) -> None:
    part.mkdir(parents=True, exist_ok=True)
    file, at = part / DATABASE, 0
    if not ray.get(_on(node, _in_one_file).remote(str(file))):
        return  # it never began
    with atomic(file) as writing:
        while piece := ray.get(_on(node, _piece).remote(str(file), at)):
            writing.write(piece)
            at += len(piece)


def _answer(host: str, ref: Any) -> tuple[str, bool]:
    try:
        version, sees = ray.get(ref)
    except RayError as error:
        raise ConfigError(
            f"{host} cannot run Trapline ({_last_line(error)}); install the same version on all machines"
        ) from None
    return version, sees


def _last_line(error: RayError) -> str:
    return str(error).strip().splitlines()[-1]


def _on(node: str, function: Any) -> Any:
    return ray.remote(function).options(num_cpus=0, **_at(node))


def _at(node: str) -> dict[str, Any]:
    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}
