"""Machines of a cluster that do not share the crawl's folder, join later, leave, or are unreachable. The tests play Ray."""

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
from trapline.crawler.engine.options import CrawlOptions
from trapline.errors import ConfigError
from trapline.parallel.folder.manifest import Manifest, create
from trapline.parallel.live.worker import WorkerTask
from trapline.parallel.partition import Partitioning
from trapline.parallel.ray import machines as placement
from trapline.parallel.ray import machines as supervisors
from trapline.parallel.ray.head import Head, listens
from trapline.parallel.ray.machines import Placement

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
TASK = WorkerTask("f", "m", "c", "t", 1, {}, [2], "{}", ("a", 1), False)


class RemoteFunction:
    """A function or method as Ray offers it. It is called remotely, and the caller waits for its result."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.remote = function


class Machines:
    """Machines by name. The command runs on `a`. Each machine has its own disk, on which the crawl's folder has the same path."""

    def __init__(self, disks: Path, folder: Path) -> None:
        self._disks, self._folder = disks, folder
        self.there = ["a", "b"]
        self.made_ready: list[str] = []

    def hosts(self) -> dict[str, str]:
        return {host: f"node {host}" for host in self.there}

    def disk(self, host: str) -> Path:
        return self._folder if host == "a" else self._disks / host

    def on(self, node: str, function: Callable[..., Any]) -> RemoteFunction:
        host = node.removeprefix("node ")

        def call(path: str, *arguments: Any) -> Any:
            if function.__name__ == "made_ready":
                self.made_ready.append(host)
                arguments = arguments[0], True  # nothing is compiled
            return function(path.replace(str(self._folder), str(self.disk(host))), *arguments)

        return RemoteFunction(call)


@pytest.fixture
def on_ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Use the token of the other tests, because Ray keeps the first token that it sees."""
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
    """Return a cluster whose head is present and not watched."""
    return on_ray.Cluster("a:6379", Head(("a", 6379), listens), lambda what: nullcontext())


def crawled(on_ray: Any, manifest: Manifest, launches: Callable[[Any], Awaitable[Any]]) -> Any:
    """Run a cluster's crawl that makes only these launches, and return their results."""
    answers = []

    def crawl_with(manifest: Manifest, show: object, launch: Any, *arguments: object) -> Manifest:
        answers.append(asyncio.run(launches(launch)))  # type: ignore[arg-type]
        return manifest

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(on_ray, "crawl_with", crawl_with)
        cluster_of(on_ray).crawl(manifest, lambda _: None)
    return answers[0]


def leave_database_of_killed_worker(folder: Path) -> None:
    """Make a database half of whose rows are in the write-ahead log."""
    made = folder.with_name("made")
    made.mkdir(parents=True)
    with closing(sqlite3.connect(made / "crawl.db", isolation_level=None)) as database:
        database.execute("pragma journal_mode=wal")
        database.execute("create table fetch (id)")
        database.execute("insert into fetch values (1)")
        database.execute("pragma wal_checkpoint(truncate)")
        database.execute("insert into fetch values (2)")
        shutil.copytree(made, folder)  # copied before it is closed
    assert (folder / "crawl.db-wal").stat().st_size > 0


def supervised_by(monkeypatch: pytest.MonkeyPatch, on_ray: Any, runs: Callable[[str], Any]) -> None:
    async def supervisor(task: WorkerTask, node: str) -> Any:
        return type("Handle", (), {"run": RemoteFunction(lambda line: runs(node))})

    monkeypatch.setattr(on_ray.Cluster, "_supervisor", staticmethod(supervisor))


async def ends(node: str) -> tuple[int, str]:
    return 0, node


def test_a_partition_on_another_machine_is_copied_completely(
    on_ray: Any, manifest: Manifest, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement.write(manifest.folder, Placement("a", False, {0: "a", 1: "b"}))
    leave_database_of_killed_worker(machines.disk("b") / "partition-1")
    supervised_by(monkeypatch, on_ray, ends)
    assert crawled(on_ray, manifest, lambda launch: launch(TASK)) == (0, "node b")
    with closing(sqlite3.connect(manifest.parts[1] / "crawl.db")) as database:
        assert database.execute("select id from fetch").fetchall() == [(1,), (2,)]
    assert not manifest.parts[0].exists()


def test_a_partition_that_never_started_on_another_machine_is_left_out(
    on_ray: Any, manifest: Manifest, machines: Machines
) -> None:
    placement.write(manifest.folder, Placement("a", False, {1: "b"}))
    crawled(on_ray, manifest, lambda launch: asyncio.sleep(0))
    assert not (manifest.parts[1] / "crawl.db").exists()


def test_a_machine_that_left_is_reported_in_one_line(
    on_ray: Any, manifest: Manifest, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is noticed when its partition is to be started, and when its database is to be copied."""
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


def test_a_machine_that_joins_later_is_prepared_when_it_is_chosen(
    on_ray: Any, manifest: Manifest, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From then on it is known that the machine does not see the folder."""
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


def test_no_partition_is_placed_on_a_machine_of_another_version(
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


def test_another_machine_is_chosen_if_one_leaves_before_the_start(
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


def test_an_unreachable_supervisor_is_called_again_and_not_replaced(on_ray: Any, machines: Machines) -> None:
    calls = 0

    async def answers_the_third_time(line: bytes) -> tuple[int, str]:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise on_ray.ActorUnavailableError("no way there", None)
        return 0, "done"

    supervisor = type("Handle", (), {"run": RemoteFunction(answers_the_third_time)})
    assert asyncio.run(cluster_of(on_ray)._ended(supervisor, b"")) == (0, "done")
    assert calls == 3


def test_a_worker_that_dies_before_it_reads_counts_as_dead_and_is_started_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    code = f"import sys; open({str(said)!r}, 'a').write('started '); sys.exit('it hurts')"
    monkeypatch.setattr(supervisors, "COMMAND", ("-c", code))
    supervisor = supervisors.Supervisor()
    for _ in range(2):
        assert supervisor.run(b"x" * (1 << 20)) == (1, "it hurts")
    assert said.read_text() == "started "


def test_the_reason_why_kernels_cannot_be_compiled_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisors, "_WARMUP", ("-c", "import sys; sys.exit('the disk is full')"))
    with pytest.raises(RuntimeError, match="the disk is full"):
        supervisors.made_ready(str(tmp_path / "c"), "", warm=False)


@pytest.mark.parametrize(
    ("cause", "install"),
    [
        (RuntimeError("failed to import:\n\nModuleNotFoundError: No module named 'trapline'"), True),  # Ray's words
        (AttributeError("no attribute 'made_ready'"), True),
        (OSError(28, "No space left on device"), False),
    ],
)
def test_the_hint_to_install_appears_only_if_something_is_not_installed(
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
