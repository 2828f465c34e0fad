"""Partitions on the machines of a Ray cluster. Only this file and joining.py import ray; when partitions are started, and how often, is
crew.py's.

A partition is the same process as without Ray (worker.py), and speaks with the others and its coordinator over lines of its own. What
Ray runs is a supervisor on each machine, an actor that starts a worker, waits for its end and says how it ended. A supervisor
that is killed takes its worker with it, at once: the crew starts another, and no site ever has two visitors. Its name, the
crawl's and the partition's, is taken as long as it lives: no second command can start one.

Without the cluster's head no supervisor is started and no end is heard of. A head that is lost (head.py) ends the crawl in order.
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

# Read when Ray is imported: else it takes 20 s to say that a cluster has another token.
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
from trapline.crawl.standing import Standing
from trapline.crawl.store.folder import DATABASE
from trapline.errors import ConfigError
from trapline.output import atomic
from trapline.parallel import placement
from trapline.parallel.crew import Show, crawl_with
from trapline.parallel.head import Head, HeadLost
from trapline.parallel.joining import Step, joined
from trapline.parallel.manifest import MANIFEST, Manifest
from trapline.parallel.placement import Placement, host_for
from trapline.parallel.supervisor import Supervisor, in_one_file, made_ready, piece
from trapline.parallel.worker import Task

PATIENCE_S = 300.0  # for a coordinator, or a machine, that is out of reach
_NAME_IS_FREE_WITHIN_S = 15.0
_ASK_AGAIN_S = 1.0
# How the last line that Ray quotes begins, if a machine does not have what it is to run.
_NOT_INSTALLED = ("ModuleNotFoundError", "ImportError", "AttributeError")
_ENDS_WITHIN_S = 25.0  # in order, without a head: Ray leaves us a minute for all


@contextmanager
def connected(address: str, step: Step) -> Iterator["Cluster"]:
    """`ConfigError` if there is no such cluster, or it does not let us in."""
    with joined(address, step) as head:
        yield Cluster(address, head, step)


class Cluster:
    """A Ray cluster that we are connected to, from one of its machines."""

    def __init__(self, address: str, head: Head, step: Step) -> None:
        self._address, self._head, self._step = address, head, step
        self._here: str = ray.util.get_node_ip_address()
        self._folder = Path()  # of the crawl, and where its partitions are: `crawl` knows both
        self._placed = Placement(self._here, shared=False)
        self._ready: set[str] = set()  # by what Ray knows them: a machine that was started again has another name
        self._choosing = asyncio.Lock()

    def crawl(self, manifest: Manifest, show: Show) -> Manifest:
        """As crew.py does. At its end the databases of all partitions are on this machine."""
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
        """If it fails, the crew has all partitions end in order."""

        def shown(standing: Standing) -> None:
            if self._head.is_lost:
                raise self._is_gone()
            if self._head.is_silent:
                said = ("the head of the Ray cluster does not answer", standing.doing)
                standing = standing._replace(doing="; ".join(filter(None, said)))
            show(standing)

        return shown

    def _is_gone(self) -> ConfigError:
        host, port = self._head.address
        way_on = f"go on with: trapline crawl --resume {self._folder} --ray {self._address}"
        return ConfigError(f"the Ray cluster is gone, its head at {host}:{port} does not answer; {way_on}")

    # ---- machines

    def _all_made_ready(self) -> bool:
        """Whether they all see the same folder."""
        hosts = self._head.ask(self._hosts)
        others = len(hosts.keys() - {self._here})
        compiling = f" (compiling on {others} of them takes a minute, once)" if others else ""
        with self._step(f"making the machines of the cluster ready{compiling}"):
            return self._head.ask(self._make_ready, hosts)

    @staticmethod
    def _hosts() -> dict[str, str]:
        """Machines that take work, and by what Ray knows them."""
        alive = [node for node in ray.nodes() if node["Alive"]]
        working = [node for node in alive if node["Resources"].get("CPU", 0) > 0] or alive
        return {node["NodeManagerAddress"]: node["NodeID"] for node in working}

    def _make_ready(self, hosts: Mapping[str, str]) -> bool:
        """Whether they all see the same folder."""
        told = str(self._folder), (self._folder / MANIFEST).read_text()
        asked = {host: _on(node, made_ready).remote(*told, host == self._here) for host, node in hosts.items()}
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
        there = await self._head.asked(self._hosts)
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
            sees = await self._head.asked(self._make_ready, {host: node})
        except ConfigError:
            if (await self._head.asked(self._hosts)).get(host) == node:
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
        """Without a head, whoever can still be reached is waited for: it has been told to end."""
        running, losing = asyncio.ensure_future(self._run(task)), asyncio.ensure_future(self._head.loss())
        try:
            await asyncio.wait((running, losing), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((running,), timeout=_ENDS_WITHIN_S)
            return running.result() if running.done() else (2, str(self._is_gone()))
        except HeadLost:
            return 2, str(self._is_gone())
        finally:
            for one in (running, losing):
                one.cancel()
            await asyncio.gather(running, losing, return_exceptions=True)

    async def _run(self, task: Task) -> tuple[int, str]:
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
            return await self._ended(supervisor, replace(task, listen=host, host=host).to_line())
        except RayActorError:
            return -signal.SIGKILL, f"its supervisor on {host} ended"
        except asyncio.CancelledError:
            ray.kill(supervisor)
            raise

    async def _supervisor(self, task: Task, node: str) -> Any:
        """None: its name is taken."""
        named = {"name": f"trapline-{task.crawl}-{task.partition}", "num_cpus": 0, **_at(node)}
        end = time.monotonic() + _NAME_IS_FREE_WITHIN_S
        while time.monotonic() < end:
            try:
                return await self._head.asked(ray.remote(Supervisor).options(**named).remote)
            except ActorAlreadyExistsError:  # one that was killed has its name for a moment longer
                await asyncio.sleep(_ASK_AGAIN_S)
        return None

    async def _ended(self, supervisor: Any, task: bytes) -> tuple[int, str]:
        """As long as it is out of reach but not dead, its worker crawls: no other may be started."""
        while True:
            try:
                code, complaint = await supervisor.run.remote(task)
                return code, complaint
            except ActorUnavailableError:
                await asyncio.sleep(_ASK_AGAIN_S)
                await self._head.there()

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


def _fetch(part: Path, node: str) -> None:
    part.mkdir(parents=True, exist_ok=True)
    file, at = part / DATABASE, 0
    if not ray.get(_on(node, in_one_file).remote(str(file))):
        return  # it never began
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
        raise ConfigError(f"{host} cannot be made ready ({why})") from None
    return version, sees


def _last_line(error: RayError) -> str:
    return str(error).strip().splitlines()[-1]


def _on(node: str, function: Any) -> Any:
    return ray.remote(function).options(num_cpus=0, **_at(node))


def _at(node: str) -> dict[str, Any]:
    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}
