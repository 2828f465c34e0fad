"""Partitions on a real Ray cluster of one machine fetch the same pages as one process, each once and politely, even if processes are
killed."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.effort import slow
from tests.parallel.processes_world import (
    PAGES,
    PROMISE,
    crawl,
    fetched,
    has,
    meanwhile,
    requests_of_pages,
    rows,
    served,
    wait_for,
)
from tests.parallel.ray_world import TOKEN, cluster
from tests.proof.surfaces import is_loopback, listening_on_ray
from trapline.cli import run
from trapline.crawler.files.lock import holder
from trapline.parallel.folder.manifest import read
from trapline.parallel.live.worker import WorkerTask
from trapline.parallel.ray.head import Head, listens
from trapline.testweb import Served, check

Captured = pytest.CaptureFixture[str]
PARTS = 4
# Ray is not imported to find out whether it is installed, because it reads its settings from the environment at
# import, once.
pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patched, cluster() as found:
        for name, value in TOKEN.items():
            patched.setenv(name, value)
        yield found


def check_whole(folder: Path, server: Served) -> None:
    """Check that every page was fetched once, and that no rule was broken by the web's own log."""
    findings = check(server.log(), PROMISE)
    assert (findings.overlaps, findings.early, findings.disallowed) == ([], [], [])
    assert fetched(folder) == Counter(server.web.url(page) for page in range(PAGES))


@slow
def test_the_partitions_fetch_what_one_process_fetches_each_page_once(tmp_path: Path, address: str) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    with served(tmp_path) as (server, arguments):
        assert crawl(*arguments, "-o", alone) == 0
        assert crawl(*arguments, "-o", together, "--processes", PARTS, "--ray", address) == 0
        assert requests_of_pages(server) == Counter(dict.fromkeys(range(PAGES), 2))
        check_whole(together, server)
    assert fetched(together) == fetched(alone)
    summary = json.loads((together / "summary.json").read_text())
    assert (summary["stopped_by"], summary["politeness_violations"]) == ("drained", 0)
    assert all(sum(fetched(part).values()) > 0 for part in read(together).parts)


@slow
def test_a_killed_worker_and_a_killed_supervisor_lose_nothing(tmp_path: Path, address: str) -> None:
    folder = tmp_path / "c"
    first, second = folder / "partition-1", folder / "partition-3"

    def kill() -> None:
        wait_for(lambda: has(first, 8) and has(second, 8))
        worker, orphan = holder(first), holder(second)
        assert worker is not None and orphan is not None
        os.kill(worker, signal.SIGKILL)
        os.kill(_parent(orphan), signal.SIGKILL)

    with served(tmp_path, latency_s=0.02) as (server, arguments), meanwhile(kill):
        assert crawl(*arguments, "-o", folder, "--processes", PARTS, "--ray", address) == 0
        check_whole(folder, server)
    for part in (first, second):
        assert rows(part, "select value from meta where key = 'runs'") == [("2",)]


@slow
def test_four_partitions_become_six_during_the_crawl(tmp_path: Path, address: str) -> None:
    folder = tmp_path / "c"

    def resize() -> None:
        wait_for(lambda: sum(has(folder / f"partition-{number}", 6) for number in range(PARTS)) >= 2)
        assert run(["parallel", "resize", str(folder), "6"]) == 0

    with served(tmp_path, latency_s=0.02) as (server, arguments), meanwhile(resize):
        assert crawl(*arguments, "-o", folder, "--processes", PARTS, "--ray", address) == 0
        check_whole(folder, server)
    assert read(folder).sizes == (PARTS, 6)


@slow
def test_another_machine_is_chosen_if_one_leaves_before_its_partition_starts(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray does not know such a machine, and says so when the supervisor is to be started there."""
    from trapline.parallel.ray.cluster import Cluster

    folder, hosts, left = tmp_path / "c", Cluster._hosts, "ab" * 28
    calls: list[int] = []

    def once_with_another() -> dict[str, str]:
        calls.append(len(calls))
        return hosts() if len(calls) != 2 else dict.fromkeys(hosts(), left)  # the first call is for preparing

    async def is_ready(cluster: Cluster, host: str, node: str) -> bool:
        return True

    monkeypatch.setattr(Cluster, "_hosts", staticmethod(once_with_another))
    monkeypatch.setattr(Cluster, "_is_ready", is_ready)
    with served(tmp_path) as (server, arguments):
        assert crawl(*arguments, "-o", folder, "--processes", 2, "--ray", address) == 0
        check_whole(folder, server)
    assert len(calls) > 4  # once at first, once for each of the two, again for one of them, and once at the end


def _parent(process: int) -> int:
    """
    >>> _parent(os.getpid()) == os.getppid()
    True
    """
    return int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(process)]))


@slow
def test_a_lost_head_ends_the_crawl_in_order(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """A server that we can close plays the head, because other tests need the real one."""
    from trapline.parallel.ray import head, joining

    # It accepts nothing: with a short queue it would seem to be gone after some seconds.
    folder, stand_in = tmp_path / "c", socket.create_server(("127.0.0.1", 0), backlog=4096)
    part = folder / "partition-0"
    monkeypatch.setattr(head, "_ASK_EVERY_S", 0.1)
    monkeypatch.setattr(head, "_SILENCE_S", 0.5)
    monkeypatch.setattr(joining, "watched", lambda *_: watched(stand_in.getsockname(), head.listens))
    watched, port = head.watched, stand_in.getsockname()[1]

    def lose() -> None:
        wait_for(lambda: has(part, 1))
        stand_in.close()

    with served(tmp_path) as (_, arguments), meanwhile(lose):  # slow enough that the crawl cannot be complete
        assert crawl(*arguments, "--delay", 3, "-o", folder, "--processes", 1, "--ray", address) == 2
    gone = f"the Ray cluster is gone: its head at 127.0.0.1:{port} does not answer"
    way_on = f"resume with: trapline crawl --resume {folder} --ray {address}"
    assert capsys.readouterr().err.endswith(f"trapline: error: {gone}; {way_on}\n")
    assert holder(part) is None
    assert 1 <= sum(fetched(part).values()) < PAGES
    assert rows(part, "select value from meta where key = 'stopped_by'") == [("interrupted",)]


def test_a_partition_that_does_not_end_without_a_head_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from trapline.parallel.ray import cluster as on_ray

    head = Head(("127.0.0.1", 9), listens)
    cluster = on_ray.Cluster("auto", head, nullcontext)
    cluster._folder = Path("c")
    cancelled: list[WorkerTask] = []

    async def never(task: WorkerTask) -> tuple[int, str]:
        head.is_silent = head.is_lost = True
        try:
            return await asyncio.Future()
        finally:
            cancelled.append(task)

    monkeypatch.setattr(cluster, "_run", never)
    monkeypatch.setattr(on_ray, "_ENDS_WITHIN_S", 0.1)
    task = WorkerTask("c/partition-0", "", "", "", 0, {}, [1], "", ("127.0.0.1", 9), False)
    code, complaint = asyncio.run(asyncio.wait_for(cluster._launch(task), 10.0))
    assert code == 2 and complaint.endswith("resume with: trapline crawl --resume c --ray auto")
    assert cancelled == [task]


def in_a_process(home: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run in a new process, because Ray keeps the first token that it sees."""
    without = {name: value for name, value in os.environ.items() if name not in TOKEN}
    arguments = {**without, "HOME": str(home), **environment}
    return subprocess.run([sys.executable, "-c", code], env=arguments, capture_output=True, text=True)


@slow
def test_a_wrong_token_is_reported_in_one_line(tmp_path: Path, address: str) -> None:
    arguments = ["crawl", "http://a.test/", "-o", str(tmp_path / "c"), "--processes", "2", "--ray", address, "--quiet"]
    command = f"import sys; from trapline.cli import run; sys.exit(run({arguments}))"
    ended = in_a_process(
        Path.home(), command, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="f" * 32, RAY_NUM_REDIS_GET_RETRIES="1"
    )
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1 and len(ended.stderr) < 300
    assert "its token is not ours" in ended.stderr and "RAY_AUTH_TOKEN" in ended.stderr
    assert not (tmp_path / "c").exists()


@slow
def test_an_existing_token_is_sent_to_any_address(tmp_path: Path, address: str) -> None:
    """The command also says what it waits for, where Ray itself does not."""
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text(TOKEN["RAY_AUTH_TOKEN"])
    code = f"""
import contextlib, os, sys
from trapline.parallel.ray.cluster import connected
@contextlib.contextmanager
def step(what):
    stream = sys.stderr
    yield
    print(what, file=stream)
with connected({address!r}, step):
    print("in")
"""
    ended = in_a_process(tmp_path, code)
    assert (ended.stdout, ended.stderr) == ("in\n", "joining the Ray cluster\n")


def test_a_cluster_of_our_own_gets_a_new_random_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would write a token into a file if it found none. No cluster is started here, because that takes many seconds."""
    from trapline.parallel.ray.joining import LOCAL, _have_token

    ours: list[str] = []
    for _ in range(2):
        monkeypatch.setattr(os, "environ", {})
        _have_token(LOCAL)
        ours.append(os.environ["RAY_AUTH_TOKEN"])
    assert len(ours[0]) == 32 and ours[0] != ours[1]


def test_messages_of_ray_are_shortened() -> None:
    from ray.exceptions import AuthenticationError

    from trapline.parallel.ray.joining import _why

    no_token = _why(AuthenticationError("no authentication token was found"), b"")
    assert "(no authentication token was found); copy its ~/.ray/auth_token" in no_token and len(no_token) < 300
    other_version = _why(RuntimeError("Version mismatch:\n    Ray: 1.0\n" + "x" * 1000), b"")
    assert (
        "(Version mismatch: Ray: 1.0 x" in other_version and len(other_version) < 350 and "our Ray 2." in other_version
    )


@pytest.mark.parametrize(
    ("ray", "complaint"),
    [
        ("127.0.0.1:9", "no cluster answers there"),
        (":9", "give HOST:PORT, auto or local"),
        ("nonsense", "give HOST:PORT, auto or local"),
        ("no-such-host.invalid:6379", "cannot be reached"),
    ],
)
def test_an_unreachable_address_is_reported_in_one_line(
    tmp_path: Path, ray: str, complaint: str, capsys: Captured
) -> None:
    assert run(["crawl", "http://a.test/", "-o", str(tmp_path / "c"), "--processes", "2", "--ray", ray]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.endswith(" ...")]  # the slow part
    assert len(lines) == 1 and f"--ray {ray}: " in lines[0] and complaint in lines[0]
    assert not (tmp_path / "c").exists()


def test_without_ray_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "trapline.parallel.ray.cluster")
    assert run(["crawl", "http://a.test/", "-o", str(tmp_path / "c"), "--processes", "2", "--ray", "auto"]) == 2
    assert (
        capsys.readouterr().err
        == 'trapline: error: --ray needs Ray: pip install "trapline[ray]", or in a clone pip install -e ".[ray]"\n'
    )


def test_the_number_of_processes_is_required(tmp_path: Path, capsys: Captured) -> None:
    assert run(["crawl", "http://a.test/", "-o", str(tmp_path / "c"), "--ray", "auto"]) == 2
    assert "--processes N" in capsys.readouterr().err


@slow
def test_a_cluster_that_is_started_for_a_crawl_listens_only_on_loopback(tmp_path: Path) -> None:
    """This holds for the sockets of Ray, and for those of the coordinator and the partitions, which use its address."""
    (found,) = listening_on_ray(tmp_path)
    assert len(found) >= 3 and all(is_loopback(where.rpartition(":")[0]) for where in found), found
