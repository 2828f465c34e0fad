"""Partitions on the machines of a Ray cluster. Only this module and joining.py import ray. parallel/live/supervisor.py
decides when and how often a partition is started.

A partition is the same process as without Ray (parallel/live/worker.py), and has its own connections to the other
partitions and to its coordinator. Ray runs one supervisor actor per partition: it starts the worker on its machine,
waits for the worker's end and reports how the worker ended. When a supervisor is killed, its worker dies with it at
once; parallel/live/supervisor.py then starts another one, and no site is ever visited by two processes. The actor's
name contains the crawl and the partition, and is taken as long as the actor lives: no second command can start the same
partition.

Without the head of the cluster no actor can be started, and no end of an actor is reported. If the head is lost
(joining.py), the crawl ends in order.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

# Ray reads this when it is imported. Without it Ray takes 20 s to report that a cluster has another token.
os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "4")

import ray
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
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.files.layout import DATABASE
from trapline.errors import ConfigError
from trapline.output import atomic
from trapline.parallel.folder.manifest import MANIFEST, Manifest
from trapline.parallel.live.supervisor import Show, crawl_with
from trapline.parallel.live.worker import WorkerTask
from trapline.parallel.ray import machines as placement
from trapline.parallel.ray.head import Head, HeadLost
from trapline.parallel.ray.joining import Step, joined
from trapline.parallel.ray.machines import Placement, Supervisor, host_for, in_one_file, made_ready, piece

PATIENCE_S = 300.0  # how long to wait for a coordinator or a machine that is out of reach
_NAME_IS_FREE_WITHIN_S = 15.0
_ASK_AGAIN_S = 1.0
# The last line of Ray's error begins with one of these if Trapline, or the same version of it, is not installed on a
# machine.
_NOT_INSTALLED = ("ModuleNotFoundError", "ImportError", "AttributeError")
_ENDS_WITHIN_S = 25.0  # for an orderly end without a head: Ray allows a minute in all


@contextmanager
def connected(address: str, step: Step) -> Iterator["Cluster"]:
    """Connect to a Ray cluster. Raises `ConfigError` if there is no such cluster, or it does not admit us."""
    with joined(address, step) as head:
        yield Cluster(address, head, step)


class Cluster:
    """A Ray cluster to which this process, on one of the cluster's machines, is connected."""

    def __init__(self, address: str, head: Head, step: Step) -> None:
        self._address, self._head, self._step = address, head, step
        self._here: str = ray.util.get_node_ip_address()
        self._folder = Path()  # the crawl's folder; `crawl` sets it, and the placement of the partitions
        self._placed = Placement(self._here, shared=False)
        self._ready: set[str] = set()  # node ids of machines that are ready; a machine that was restarted has a new id
        self._choosing = asyncio.Lock()

    def crawl(self, manifest: Manifest, show: Show) -> Manifest:
        """Run the crawl as parallel/live/supervisor.py does. At the end the databases of all partitions are on this machine."""
        self._folder = manifest.folder
        before = placement.read(manifest.folder)
        try:
            self._placed = Placement(self._here, self._all_made_ready(), before.hosts_at(self._here) if before else {})
            ended = crawl_with(manifest, self._shown_by(show), self._launch, self._here, PATIENCE_S)
            self._head.ask(self._fetch, ended)
        except HeadLost:
            raise self._is_gone() from None
        return ended

    def _shown_by(self, show: Show) -> Show:
        """Return a `show` that also shows the state of the cluster's head. It raises an error when the head is lost:
        the supervisor then ends all partitions in order."""

        def shown(status: CrawlStatus) -> None:
            if self._head.is_lost:
                raise self._is_gone()
            if self._head.is_silent:
                doing = ("the head of the Ray cluster does not answer", status.doing)
                status = status._replace(doing="; ".join(filter(None, doing)))
            show(status)

        return shown

    def _is_gone(self) -> ConfigError:
        host, port = self._head.address
        resume = f"resume with: trapline crawl --resume {self._folder} --ray {self._address}"
        return ConfigError(f"the Ray cluster is gone: its head at {host}:{port} does not answer; {resume}")

    # ---- machines

    def _all_made_ready(self) -> bool:
        """Prepare all machines. Return whether they all see the same folder."""
        hosts = self._head.ask(self._hosts)
        others = len(hosts.keys() - {self._here})
        compiling = f" (compiling on {others} of them takes a minute, the first time)" if others else ""
        with self._step(f"preparing the machines of the cluster{compiling}"):
            return self._head.ask(self._make_ready, hosts)

    @staticmethod
    def _hosts() -> dict[str, str]:
        """Return the machines that accept work: address -> node id."""
        alive = [node for node in ray.nodes() if node["Alive"]]
        working = [node for node in alive if node["Resources"].get("CPU", 0) > 0] or alive
        return {node["NodeManagerAddress"]: node["NodeID"] for node in working}

    def _make_ready(self, hosts: Mapping[str, str]) -> bool:
        """Prepare these machines, and check their version. Return whether they all see the same folder."""
        arguments = str(self._folder), (self._folder / MANIFEST).read_text()
        refs = {host: _on(node, made_ready).remote(*arguments, host == self._here) for host, node in hosts.items()}
        answers = {host: _answer(host, ref) for host, ref in refs.items()}
        for host, (version, _) in answers.items():
            if version != trapline.__version__:
                raise ConfigError(
                    f"{host} has Trapline {version}, and this machine {trapline.__version__}: install the same version on all machines"
                )
        self._ready.update(hosts.values())
        return all(sees for _, sees in answers.values())

    async def _host_of(self, partition: int) -> tuple[str, str] | None:
        """Return the machine for a partition, and its node id; None: the machine that has the partition's folder left,
        and did not come back in time."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            async with self._choosing:
                found = await self._chosen(partition)
            if found is not None:
                return found
            await asyncio.sleep(_ASK_AGAIN_S)
        return None

    async def _chosen(self, partition: int) -> tuple[str, str] | None:
        """Choose a machine for a partition, and return it with its node id; None: there is none at the moment."""
        nodes = await self._head.call(self._hosts)
        host = host_for(partition, self._placed, list(nodes))
        if host is None or not await self._is_ready(host, nodes[host]):
            return None
        self._place(partition, host)
        return host, nodes[host]

    async def _is_ready(self, host: str, node: str) -> bool:
        """Return whether a machine is ready; prepare it if it joined after the start. False: the machine has left, or
        does not see the shared folder; a machine must be chosen anew."""
        if node in self._ready:
            return True
        try:
            sees = await self._head.call(self._make_ready, {host: node})
        except ConfigError:
            if (await self._head.call(self._hosts)).get(host) == node:
                raise
            return False
        was_shared = self._placed.shared
        self._placed = replace(self._placed, shared=was_shared and sees)
        return sees or not was_shared

    def _place(self, partition: int, host: str | None) -> None:
        self._placed = self._placed.having(partition, host)
        placement.write(self._folder, self._placed)

    # ---- partitions

    async def _launch(self, task: WorkerTask) -> tuple[int, str]:
        """Run a worker to its end. If the head is lost, wait a while for the worker: it may still be reachable, and was
        told to end."""
        running, losing = asyncio.ensure_future(self._run(task)), asyncio.ensure_future(self._head.loss())
        try:
            await asyncio.wait((running, losing), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((running,), timeout=_ENDS_WITHIN_S)
            return running.result() if running.done() else (2, str(self._is_gone()))
        except HeadLost:
            return 2, str(self._is_gone())
        finally:
            for future in (running, losing):
                future.cancel()
            await asyncio.gather(running, losing, return_exceptions=True)

    async def _run(self, task: WorkerTask) -> tuple[int, str]:
        while True:
            before = self._placed.hosts.get(task.partition)
            found = await self._host_of(task.partition)
            if found is None:
                return 2, str(_has_left(task.partition, before or "a machine", self._folder))
            try:
                return await self._supervised(task, *found)
            except ActorUnschedulableError:  # the machine left after it was chosen: nothing was started there
                self._place(task.partition, before)

    async def _supervised(self, task: WorkerTask, host: str, node: str) -> tuple[int, str]:
        supervisor = await self._supervisor(task, node)
        if supervisor is None:
            return (
                2,
                f"partition {task.partition}: another command already runs it on the cluster; end that command first",
            )
        try:
            return await self._ended(supervisor, replace(task, listen=host, host=host).to_line())
        except RayActorError:
            return -signal.SIGKILL, f"its supervisor on {host} ended"
        except asyncio.CancelledError:
            ray.kill(supervisor)
            raise

    async def _supervisor(self, task: WorkerTask, node: str) -> Any:
        """Start the supervisor actor of a partition on a node; None: its name is taken."""
        named = {"name": f"trapline-{task.crawl}-{task.partition}", "num_cpus": 0, **_at(node)}
        end = time.monotonic() + _NAME_IS_FREE_WITHIN_S
        while time.monotonic() < end:
            try:
                return await self._head.call(ray.remote(Supervisor).options(**named).remote)
            except ActorAlreadyExistsError:  # an actor that was killed keeps its name for a moment
                await asyncio.sleep(_ASK_AGAIN_S)
        return None

    async def _ended(self, supervisor: Any, task: bytes) -> tuple[int, str]:
        """Run the supervisor's worker to its end. While the supervisor is out of reach but not dead, its worker crawls:
        no other may be started."""
        while True:
            try:
                code, complaint = await supervisor.run.remote(task)
                return code, complaint
            except ActorUnavailableError:
                await asyncio.sleep(_ASK_AGAIN_S)
                await self._head.there()

    # ---- the end

    def _fetch(self, manifest: Manifest) -> None:
        """Copy the databases of partitions on other machines to this one, for the merged database. Archives stay where
        they are."""
        nodes = self._hosts()
        for number, host in sorted(self._placed.elsewhere.items()):
            if host not in nodes:
                raise _has_left(number, host, self._folder)
            try:
                _fetch(manifest.parts[number], nodes[host])
            except RayTaskError as error:
                raise ConfigError(
                    f"partition {number} on {host}: its database cannot be read ({_last_line(error)})"
                ) from None
            except RayError:
                raise _has_left(number, host, self._folder) from None


def _has_left(partition: int, host: str, folder: Path) -> ConfigError:
    resume = f"bring it back, and resume with --resume {folder}"
    return ConfigError(f"partition {partition} is on {host}, which has left the cluster; {resume}")


def _fetch(part: Path, node: str) -> None:
    part.mkdir(parents=True, exist_ok=True)
    file, at = part / DATABASE, 0
    if not ray.get(_on(node, in_one_file).remote(str(file))):
        return  # the partition never began
    with atomic(file) as writing:
        while data := ray.get(_on(node, piece).remote(str(file), at)):
            writing.write(data)
            at += len(data)


def _answer(host: str, ref: Any) -> tuple[str, bool]:
    try:
        version, sees = ray.get(ref)
    except RayError as error:
        why = _last_line(error)
        if why.startswith(_NOT_INSTALLED):
            raise ConfigError(f"{host} cannot run Trapline ({why}); install the same version on all machines") from None
        raise ConfigError(f"{host} cannot be prepared ({why})") from None
    return version, sees


def _last_line(error: RayError) -> str:
    return str(error).strip().splitlines()[-1]


def _on(node: str, function: Any) -> Any:
    return ray.remote(function).options(num_cpus=0, **_at(node))


def _at(node: str) -> dict[str, Any]:
    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}
