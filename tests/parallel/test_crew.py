"""Who keeps the partitions: whatever becomes of them, the crawl ends as it should, and says why."""

import os
import signal
import time
from asyncio import Event
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.parallel.processes_world import meanwhile, wait_for
from trapline.crawl.options import CrawlOptions
from trapline.crawl.standing import Standing
from trapline.errors import ConfigError, InvariantError
from trapline.parallel import crew
from trapline.parallel.coordinator import RESIZED
from trapline.parallel.crew import crawl_with
from trapline.parallel.manifest import Manifest, create, read
from trapline.parallel.partition import Partitioning
from trapline.parallel.processes import launched
from trapline.parallel.watching import WHERE
from trapline.parallel.worker import Task


def manifest(folder: Path, partitions: int = 2) -> Manifest:
    options = CrawlOptions(seeds=("http://127.0.0.1:9/",), allow_private=True)
    return create(folder, options, Partitioning("address", partitions)).begun(options)


def ignore(standing: Standing) -> None:
    """Nobody watches."""


def test_who_has_another_token_is_refused_and_says_so(tmp_path: Path) -> None:
    """At once, not after the time that one takes who is not there yet."""

    async def launch(task: Task) -> tuple[int, str]:
        return await launched(replace(task, token="00" * 16))

    with pytest.raises(ConfigError, match="tokens of the two partitions differ"):
        crawl_with(manifest(tmp_path / "c", 1), ignore, launch)
    assert not (tmp_path / "c" / WHERE).exists()


def test_asked_twice_it_does_not_wait_for_who_is_still_opening(tmp_path: Path) -> None:
    ended: list[int] = []
    started: list[int] = []

    async def never_there(task: Task) -> tuple[int, str]:
        started.append(task.partition)
        try:
            await Event().wait()
        finally:
            ended.append(task.partition)
        return 0, ""

    def interrupt() -> None:
        wait_for(lambda: len(started) == 2)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.7)  # two within half a second are one
        assert not ended
        os.kill(os.getpid(), signal.SIGINT)

    with meanwhile(interrupt):
        done = crawl_with(manifest(tmp_path / "c"), ignore, never_there)
    assert done.stopped_by == "interrupted" == read(tmp_path / "c").stopped_by
    assert sorted(ended) == [0, 1]


@pytest.mark.parametrize(("code", "error"), [(-9, ConfigError), (1, InvariantError)])
def test_who_dies_again_and_again_ends_the_crawl(tmp_path: Path, code: int, error: type[Exception]) -> None:
    starts = 0

    async def dies(task: Task) -> tuple[int, str]:
        nonlocal starts
        starts += 1
        return code, "it hurts"

    with pytest.raises(error, match=r"died 5 times in a row .*: it hurts"):
        crawl_with(manifest(tmp_path / "c", 1), ignore, dies)
    assert starts == 5


def test_what_the_user_must_mend_names_the_whole_crawl(tmp_path: Path) -> None:
    folder = tmp_path / "c"

    async def full(task: Task) -> tuple[int, str]:
        return 2, f"the disk is full; go on with --resume {task.folder}"

    with pytest.raises(ConfigError, match=f"--resume {folder}$"):
        crawl_with(manifest(folder, 1), ignore, full)


def test_two_commands_do_not_crawl_into_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "c"

    async def second(task: Task) -> tuple[int, str]:
        with pytest.raises(ConfigError, match=f"is being crawled by process {os.getpid()}"):
            crawl_with(read(folder), ignore, second)
        return 0, ""

    assert crawl_with(manifest(folder, 1), ignore, second).stopped_by == "interrupted"


def test_the_time_so_far_is_kept_where_no_partition_is_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    befores: list[float] = []

    class Crew:
        def __init__(self, manifest: Manifest, launch: object, seconds_before: float) -> None:
            befores.append(seconds_before)
            stopped_by = RESIZED if len(befores) == 1 else "drained"
            self.coordinator = SimpleNamespace(stopped_by=stopped_by, size=4, seconds=seconds_before + 7.0)

        async def crawl(self, *told: object) -> None:
            """At once."""

    monkeypatch.setattr(crew, "_Crew", Crew)
    assert crawl_with(manifest(tmp_path / "c"), ignore, launched).sizes == (2, 4)
    assert befores == [0.0, 7.0]
