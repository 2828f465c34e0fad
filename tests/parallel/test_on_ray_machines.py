"""Machines of a cluster that do not share the crawl's folder, that join later, leave, or are out of reach. Ray's part is played here."""

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.parallel.ray_world import TOKEN
from trapline.crawl.engine.options import CrawlOptions
from trapline.errors import ConfigError
from trapline.parallel.live.manifest import Manifest, create
from trapline.parallel.live.worker import WorkerTask
from trapline.parallel.partition import Partitioning
from trapline.parallel.ray import machines as placement
from trapline.parallel.ray import machines as supervisors
from trapline.parallel.ray.head import Head, listens
from trapline.parallel.ray.machines import Placement

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
TASK = WorkerTask("f", "m", "c", "t", 1, {}, [2], "{}", ("a", 1), False)


class Called:
    """What Ray makes of a function or a method: it is called there, and its answer waited for here."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.remote = function


class Machines:
    """By name; the command is on `a`. Each has a disk of its own, on which the crawl's folder has the same path."""

    def __init__(self, disks: Path, folder: Path) -> None:
        self._disks, self._folder = disks, folder
        self.there = ["a", "b"]
        self.made_ready: list[str] = []

    def hosts(self) -> dict[str, str]:
        return {host: f"node {host}" for host in self.there}

    def disk(self, host: str) -> Path:
        return self._folder if host == "a" else self._disks / host

    def on(self, node: str, function: Callable[..., Any]) -> Called:
        host = node.removeprefix("node ")

        def call(path: str, *told: Any) -> Any:
            if function.__name__ == "made_ready":
                self.made_ready.append(host)
                told = told[0], True  # nothing is compiled
            return function(path.replace(str(self._folder), str(self.disk(host))), *told)

        return Called(call)


@pytest.fixture
def on_ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """With the token of the other tests: Ray keeps the first that it sees."""
    for name, value in TOKEN.items():
        monkeypatch.setenv(name, value)
    return import_module("trapline.parallel.ray.cluster")


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    options = CrawlOptions(seeds=("http://127.0.0.1:9/",))
    made = create(tmp_path / "c", options, Partitioning("address", 2)).begun(options)
    made.write()
    return made


@pytest.fixture
def machines(tmp_path: Path, manifest: Manifest, on_ray: Any, monkeypatch: pytest.MonkeyPatch) -> Machines:
    made = Machines(tmp_path, manifest.folder)
    monkeypatch.setattr(on_ray, "_on", made.on)
    monkeypatch.setattr(on_ray.Cluster, "_hosts", staticmethod(made.hosts))
    monkeypatch.setattr(on_ray.ray, "get", lambda answer: answer)
    monkeypatch.setattr(on_ray.ray.util, "get_node_ip_address", lambda: "a")
    monkeypatch.setattr(on_ray, "_ASK_AGAIN_S", 0.001)
    return made


def cluster_of(on_ray: Any) -> Any:
    """Its head is there, and nobody watches whether it stays."""
    return on_ray.Cluster("a:6379", Head(("a", 6379), listens), lambda what: nullcontext())


def crawled(on_ray: Any, manifest: Manifest, launches: Callable[[Any], Awaitable[Any]]) -> Any:
    """A cluster's crawl in which these are all its launches, and what they answered."""
    answers = []

    def crawl_with(manifest: Manifest, show: object, launch: Any, *told: object) -> Manifest:
        answers.append(asyncio.run(launches(launch)))  # type: ignore[arg-type]
        return manifest

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(on_ray, "crawl_with", crawl_with)
        cluster_of(on_ray).crawl(manifest, lambda _: None)
    return answers[0]


def leave_a_killed_workers(folder: Path) -> None:
    """A database, half of whose rows are in the file beside it."""
    made = folder.with_name("made")
    made.mkdir(parents=True)
    with closing(sqlite3.connect(made / "crawl.db", isolation_level=None)) as database:
        database.execute("pragma journal_mode=wal")
        database.execute("create table fetch (id)")
        database.execute("insert into fetch values (1)")
        database.execute("pragma wal_checkpoint(truncate)")
        database.execute("insert into fetch values (2)")
        shutil.copytree(made, folder)  # as it is before it is closed
    assert (folder / "crawl.db-wal").stat().st_size > 0


def supervised_by(monkeypatch: pytest.MonkeyPatch, on_ray: Any, runs: Callable[[str], Any]) -> None:
    async def supervisor(task: WorkerTask, node: str) -> Any:
        return type("Handle", (), {"run": Called(lambda line: runs(node))})

    monkeypatch.setattr(on_ray.Cluster, "_supervisor", staticmethod(supervisor))


async def ends(node: str) -> tuple[int, str]:
    return 0, node


def test_what_is_elsewhere_is_fetched_whole(
    on_ray: Any, manifest: Manifest, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement.write(manifest.folder, Placement("a", False, {0: "a", 1: "b"}))
    leave_a_killed_workers(machines.disk("b") / "partition-1")
    supervised_by(monkeypatch, on_ray, ends)
    assert crawled(on_ray, manifest, lambda launch: launch(TASK)) == (0, "node b")
    with closing(sqlite3.connect(manifest.parts[1] / "crawl.db")) as database:
        assert database.execute("select id from fetch").fetchall() == [(1,), (2,)]
    assert not manifest.parts[0].exists()


def test_one_that_never_began_elsewhere_is_left_out(on_ray: Any, manifest: Manifest, machines: Machines) -> None:
    placement.write(manifest.folder, Placement("a", False, {1: "b"}))
    crawled(on_ray, manifest, lambda launch: asyncio.sleep(0))
    assert not (manifest.parts[1] / "crawl.db").exists()


def test_a_machine_that_left_is_one_line(
    on_ray: Any, manifest: Manifest, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When its partition is to be started, and when its database is to be fetched."""
    monkeypatch.setattr(on_ray, "PATIENCE_S", 0.01)
    placement.write(manifest.folder, Placement("a", False, {1: "b"}))
    answers: list[tuple[int, str]] = []

    async def launches(launch: Any) -> None:
        machines.there = ["a"]
        answers.append(await launch(TASK))

    with pytest.raises(ConfigError) as raised:
        crawled(on_ray, manifest, launches)
    assert answers == [(2, str(raised.value))]
    assert str(raised.value).startswith("partition 1 is on b, which has left the cluster; ")
    assert str(raised.value).endswith(f"--resume {manifest.folder}")


def test_a_machine_that_joins_later_is_made_ready_when_it_is_chosen(
    on_ray: Any, manifest: Manifest, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that it does not see the folder is known from then on."""
    machines.there = ["a"]
    supervised_by(monkeypatch, on_ray, ends)

    async def launches(launch: Any) -> list[tuple[int, str]]:
        first = await launch(replace(TASK, partition=0))
        machines.there = ["a", "b"]
        assert machines.made_ready == ["a"]
        return [first, await launch(TASK), await launch(TASK)]

    assert crawled(on_ray, manifest, launches) == [(0, "node a"), (0, "node b"), (0, "node b")]
    assert machines.made_ready == ["a", "b"] and machines.disk("b").is_dir()
    assert placement.read(manifest.folder) == Placement("a", False, {0: "a", 1: "b"})


def test_none_is_placed_on_a_machine_of_another_version(
    on_ray: Any, manifest: Manifest, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.there = ["a"]
    supervised_by(monkeypatch, on_ray, ends)

    async def launches(launch: Any) -> None:
        await launch(replace(TASK, partition=0))
        machines.there = ["a", "b"]
        monkeypatch.setattr(on_ray, "_answer", lambda host, answer: ("0.0.1", True))
        await launch(TASK)

    with pytest.raises(ConfigError, match=r"^b has Trapline 0\.0\.1, "):
        crawled(on_ray, manifest, launches)
    assert placement.read(manifest.folder) == Placement("a", True, {0: "a"})


def test_a_machine_that_leaves_before_the_start_is_chosen_anew(
    on_ray: Any, manifest: Manifest, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement.write(manifest.folder, Placement("a", False, {0: "a"}))

    async def leaves(node: str) -> tuple[int, str]:
        if node == "node b":
            machines.there = ["a"]
            raise on_ray.ActorUnschedulableError("the node is dead")
        return 0, node

    supervised_by(monkeypatch, on_ray, leaves)
    assert crawled(on_ray, manifest, lambda launch: launch(TASK)) == (0, "node a")


def test_a_supervisor_out_of_reach_is_asked_again_and_not_replaced(on_ray: Any, machines: Machines) -> None:
    asked = 0

    async def answers_the_third_time(line: bytes) -> tuple[int, str]:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise on_ray.ActorUnavailableError("no way there", None)
        return 0, "done"

    supervisor = type("Handle", (), {"run": Called(answers_the_third_time)})
    assert asyncio.run(cluster_of(on_ray)._ended(supervisor, b"")) == (0, "done")
    assert asked == 3


def test_a_worker_that_dies_before_it_reads_is_a_death_and_started_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    code = f"import sys; open({str(said)!r}, 'a').write('started '); sys.exit('it hurts')"
    monkeypatch.setattr(supervisors, "COMMAND", ("-c", code))
    supervisor = supervisors.Supervisor()
    for _ in range(2):
        assert supervisor.run(b"x" * (1 << 20)) == (1, "it hurts")
    assert said.read_text() == "started "


def test_why_kernels_could_not_be_compiled_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisors, "_WARMUP", ("-c", "import sys; sys.exit('the disk is full')"))
    with pytest.raises(RuntimeError, match="the disk is full"):
        supervisors.made_ready(str(tmp_path / "c"), "", warm=False)


@pytest.mark.parametrize(
    ("cause", "install"),
    [
        (RuntimeError("failed to import:\n\nModuleNotFoundError: No module named 'trapline'"), True),  # Ray's own words
        (AttributeError("no attribute 'made_ready'"), True),
        (OSError(28, "No space left on device"), False),
    ],
)
def test_to_install_helps_only_where_something_is_not_installed(
    on_ray: Any, monkeypatch: pytest.MonkeyPatch, cause: Exception, install: bool
) -> None:
    error = on_ray.RayTaskError("made_ready", f"Traceback\n{type(cause).__name__}: {cause}", cause)

    def get(answer: object) -> None:
        raise error.as_instanceof_cause()

    monkeypatch.setattr(on_ray.ray, "get", get)
    with pytest.raises(ConfigError) as raised:
        on_ray._answer("b", None)
    assert str(cause).splitlines()[-1] in str(raised.value)
    assert ("install the same version" in str(raised.value)) == install
