"""The supervisor of the partitions: whatever happens to them, the crawl ends as it should and gives the reason."""

import json
import os
import signal
import time
from asyncio import CancelledError, Event, open_connection, sleep
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.effort import slow
from tests.parallel.processes_world import meanwhile, wait_for
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.records import CrawlProgress
from trapline.crawler.engine.status import CrawlStatus
from trapline.crawler.files.event_log import LOG
from trapline.errors import ConfigError, InvariantError
from trapline.parallel.folder.manifest import Manifest, create, read
from trapline.parallel.live import coordinator, supervisor
from trapline.parallel.live.control import WHERE
from trapline.parallel.live.coordinator import RESIZED
from trapline.parallel.live.page_budget import Holding
from trapline.parallel.live.partition_report import NOTHING, PartitionReport
from trapline.parallel.live.supervisor import crawl_with, launched
from trapline.parallel.live.termination import PartitionCount
from trapline.parallel.live.worker import WorkerTask
from trapline.parallel.partition import Partitioning
from trapline.parallel.transport.wire import FrameKind, Pass, SecureStream, greet


def manifest(folder: Path, partitions: int = 2) -> Manifest:
    options = CrawlOptions(seeds=("http://127.0.0.1:9/",), allow_private=True)
    return create(folder, options, Partitioning("address", partitions)).begun(options)


def no_display(status: CrawlStatus) -> None:
    """Show nothing."""


@slow
def test_a_worker_with_another_token_is_refused_with_an_error(tmp_path: Path) -> None:
    """The error comes at once, and not after the time that a missing partition is waited for."""

    async def launch(task: WorkerTask) -> tuple[int, str]:
        return await launched(replace(task, token="00" * 16))

    with pytest.raises(ConfigError, match="tokens of the two partitions differ"):
        crawl_with(manifest(tmp_path / "c", 1), no_display, launch)
    assert not (tmp_path / "c" / WHERE).exists()


@pytest.mark.parametrize(
    ("code", "error"), [(1, InvariantError), (2, ConfigError), (-signal.SIGKILL, None), (os.EX_TEMPFAIL, None)]
)
def test_after_two_interrupts_an_error_is_still_reported(
    tmp_path: Path, code: int, error: type[Exception] | None
) -> None:
    """A partition that only died reports nothing: its unwritten results are dropped."""
    starts: list[float] = []

    async def fails_in_the_end(task: WorkerTask) -> tuple[int, str]:
        starts.append(time.monotonic())
        try:
            await Event().wait()
        except CancelledError:
            return code, "the disk is full"
        return 0, ""

    def interrupt() -> None:
        wait_for(lambda: len(starts) == 1)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.55)  # two within half a second count as one
        os.kill(os.getpid(), signal.SIGINT)

    expected: AbstractContextManager[object]
    expected = pytest.raises(error, match="the disk is full") if error else nullcontext()
    with meanwhile(interrupt), expected:
        crawl_with(manifest(tmp_path / "c", 1), no_display, fails_in_the_end)
    assert len(starts) == 1


def test_after_two_interrupts_a_partition_that_is_still_opening_is_not_waited_for(tmp_path: Path) -> None:
    ended: list[int] = []
    started: list[int] = []

    async def never_there(task: WorkerTask) -> tuple[int, str]:
        started.append(task.partition)
        try:
            await Event().wait()
        finally:
            ended.append(task.partition)
        return 0, ""

    def interrupt() -> None:
        wait_for(lambda: len(started) == 2)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.7)  # two within half a second count as one
        assert not ended
        os.kill(os.getpid(), signal.SIGINT)

    with meanwhile(interrupt):
        done = crawl_with(manifest(tmp_path / "c"), no_display, never_there)
    assert done.stopped_by == "terminated" == read(tmp_path / "c").stopped_by
    assert sorted(ended) == [0, 1]


@pytest.mark.parametrize("view_fails", [False, True])
def test_after_two_interrupts_a_hanging_partition_is_ended_and_an_answering_one_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view_fails: bool
) -> None:
    monkeypatch.setattr(supervisor, "_CUT_S", 0.4)
    monkeypatch.setattr(coordinator, "_LATE_S", 1.0)
    here: list[int] = []
    ended: dict[int, bool] = {}  # True: it ended by itself

    async def member(task: WorkerTask) -> tuple[int, str]:
        own = Pass(task.crawl, task.token.encode(), task.partition)
        line = await greet(*await open_connection(*task.coordinator), own, called=True)
        line.send(FrameKind.STATUS, json.dumps({"address": ["127.0.0.1", 9]}).encode())
        here.append(task.partition)
        try:
            ended[task.partition] = await (hangs() if task.partition else closes_for(2.5, line))
        except CancelledError:
            ended[task.partition] = False
            raise
        return 0, ""

    def interrupt() -> None:
        wait_for(lambda: len(here) == 2)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.7)  # two within half a second count as one
        os.kill(os.getpid(), signal.SIGINT)

    def show(status: CrawlStatus) -> None:
        if view_fails and len(here) == 2:
            raise ConfigError("nobody can see it")

    expected: AbstractContextManager[object]
    expected = pytest.raises(ConfigError, match="nobody can see it") if view_fails else nullcontext()
    with meanwhile(interrupt), expected:
        crawl_with(manifest(tmp_path / "c"), show, member)
    assert read(tmp_path / "c").stopped_by == ("" if view_fails else "interrupted")
    assert ended == {0: True, 1: False}


async def hangs() -> bool:
    await sleep(20.0)
    return True


async def closes_for(seconds: float, line: SecureStream) -> bool:
    """Play a member that needs `seconds` to write after the order `cut`, and answers meanwhile."""
    end = inf
    while time.monotonic() < end:
        frame = await line.receive()
        assert frame is not None
        order = json.loads(frame[1])
        if "count" in order:
            report = PartitionReport(PartitionCount(False, 0, 0), Holding(0, 0, True, False), NOTHING)
            line.send(FrameKind.STATUS, json.dumps({"round": order["count"], "answer": report._asdict()}).encode())
        if "cut" in order:
            end = time.monotonic() + seconds
    return True


@slow
def test_a_worker_that_cannot_reach_its_coordinator_reports_it_and_is_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = (
        "import sys; from trapline.parallel.live import member, worker; member._FIRST_S = 0.1; sys.exit(worker.main())"
    )
    monkeypatch.setattr(supervisor, "COMMAND", ("-c", hasty))
    ends: list[tuple[int, str]] = []

    async def lost_at_first(task: WorkerTask) -> tuple[int, str]:
        nowhere = replace(task, coordinator=("127.0.0.1", 9), patience_s=300.0)
        ends.append((0, "") if ends else await launched(nowhere))
        return ends[-1]

    crawl_with(manifest(tmp_path / "c", 1), no_display, lost_at_first)
    assert ends == [(os.EX_TEMPFAIL, "partition 0 cannot reach its coordinator at 127.0.0.1, port 9"), (0, "")]


@pytest.mark.parametrize(("code", "error"), [(-9, ConfigError), (1, InvariantError)])
def test_a_worker_that_dies_again_and_again_ends_the_crawl(tmp_path: Path, code: int, error: type[Exception]) -> None:
    starts = 0

    async def dies(task: WorkerTask) -> tuple[int, str]:
        nonlocal starts
        starts += 1
        return code, "it hurts"

    with pytest.raises(error, match=r"died 5 times in a row .*: it hurts"):
        crawl_with(manifest(tmp_path / "c", 1), no_display, dies)
    assert starts == 5


def test_the_log_tells_the_starts_restarts_and_the_failure_of_a_partition(tmp_path: Path) -> None:
    async def launch(task: WorkerTask) -> tuple[int, str]:
        return -signal.SIGKILL, ""

    with pytest.raises(ConfigError):
        crawl_with(manifest(tmp_path / "c", 1), no_display, launch)
    events = [json.loads(line) for line in (tmp_path / "c" / LOG).read_text().splitlines()]
    again = ["partition_restarted", "partition_started"]
    kinds = [event["event"] for event in events]
    assert kinds == ["crawl_began", "partition_started", *again * 4, "partition_failed"]
    assert "died 5 times in a row (signal 9)" in events[-1]["text"]


@pytest.mark.parametrize("code", [2, os.EX_TEMPFAIL])
def test_the_hint_to_resume_names_the_folder_of_the_whole_crawl(tmp_path: Path, code: int) -> None:
    folder = tmp_path / "c"

    async def full(task: WorkerTask) -> tuple[int, str]:
        return code, f"the disk is full; continue with --resume {task.folder}"

    with pytest.raises(ConfigError, match=f"--resume {folder}$"):
        crawl_with(manifest(folder, 1), no_display, full)


def test_two_commands_do_not_crawl_into_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "c"

    async def second(task: WorkerTask) -> tuple[int, str]:
        with pytest.raises(ConfigError, match=f"is being crawled by process {os.getpid()}"):
            crawl_with(read(folder), no_display, second)
        return 0, ""

    assert crawl_with(manifest(folder, 1), no_display, second).stopped_by == "terminated"


def test_progress_is_kept_if_no_partition_is_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This also holds if this machine has only an old state of one partition."""
    befores: list[tuple[float, dict[int, CrawlProgress]]] = []
    old, new = NOTHING._replace(pages=5), {0: NOTHING._replace(pages=90, active=3), 1: NOTHING._replace(pages=80)}

    class FakeSupervisor:
        def __init__(
            self, manifest: Manifest, launch: object, before: dict[int, CrawlProgress], seconds: float, paused: bool
        ) -> None:
            befores.append((seconds, before))
            assert paused == (len(befores) > 1)  # a crawl that is resized while it is paused stays paused
            stopped_by = RESIZED if len(befores) == 1 else "drained"
            numbers = {"size": 4, "seconds": seconds + 7.0, "progress": new, "is_paused": True}
            self.manifest, self.coordinator = manifest, SimpleNamespace(stopped_by=stopped_by, **numbers)

        async def crawl(self, *given: object) -> None:
            """End at once."""

    monkeypatch.setattr(supervisor, "_Supervisor", FakeSupervisor)
    monkeypatch.setattr(supervisor, "_before", lambda manifest: {1: old})
    assert crawl_with(manifest(tmp_path / "c"), no_display, launched).sizes == (2, 4)
    assert befores == [(0.0, {1: old}), (7.0, {0: NOTHING._replace(pages=90), 1: NOTHING._replace(pages=80)})]
