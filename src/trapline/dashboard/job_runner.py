"""Runs the jobs of the dashboard: one at a time, each as a process with low priority, and keeps their answers for a while."""

import asyncio
import contextlib
import json
import math
import os
import sys
import time
from typing import Any

from trapline.errors import ConfigError

_NICENESS = 15
_MOST_WAITING = 8
_MOST_KEPT = 64


class _Kept:
    """An answer that is kept, or is being computed."""

    def __init__(self, task: "asyncio.Task[dict[str, Any]]") -> None:
        self.task, self.ended = task, math.inf
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[dict[str, Any]]") -> None:
        self.ended = time.monotonic()
        if not task.cancelled():
            task.exception()  # it may have no reader

    def is_fresh(self, fresh_s: float) -> bool:
        return time.monotonic() - self.ended < fresh_s


class JobRunner:
    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._kept: dict[tuple[str, ...], _Kept] = {}

    async def run(self, job: str, *words: str, fresh_s: float, timeout_s: float = 120.0) -> dict[str, Any]:
        """Return the answer of a job. `fresh_s`: an answer of this age is not computed again."""
        return await asyncio.shield(self._task(job, words, fresh_s, timeout_s))

    async def soon(self, job: str, *words: str, fresh_s: float, timeout_s: float = 120.0) -> dict[str, Any] | None:
        """Return the answer of a job, or None if it is not there within a second: then ask again later."""
        task = self._task(job, words, fresh_s, timeout_s)
        await asyncio.wait([task], timeout=1.0)
        return task.result() if task.done() else None

    def _task(
        self, job: str, words: tuple[str, ...], fresh_s: float, timeout_s: float
    ) -> "asyncio.Task[dict[str, Any]]":
        kept = self._kept.get((job, *words))
        if kept is not None and kept.is_fresh(fresh_s):
            return kept.task
        if sum(not other.task.done() for other in self._kept.values()) >= _MOST_WAITING:
            raise ConfigError("the dashboard is busy with other questions; try again later")
        task = asyncio.create_task(self._answer(job, words, timeout_s))
        self._kept.pop((job, *words), None)
        self._kept[job, *words] = _Kept(task)
        self._forget()
        return task

    def _forget(self) -> None:
        """Drop the oldest answers."""
        done = [key for key, kept in self._kept.items() if kept.task.done()]
        for key in done[: max(len(self._kept) - _MOST_KEPT, 0)]:
            del self._kept[key]

    async def _answer(self, job: str, words: tuple[str, ...], timeout_s: float) -> dict[str, Any]:
        async with self._one:
            command = (sys.executable, "-P", "-m", f"trapline.dashboard.jobs.{job}", *words)
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
            try:
                out, errors = await asyncio.wait_for(process.communicate(), timeout_s)
            except TimeoutError:
                raise ConfigError(f"the answer takes longer than {timeout_s:.0f} s") from None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        return _parsed(out, errors)

    async def close(self) -> None:
        """End the jobs that run or wait."""
        tasks = [kept.task for kept in self._kept.values() if not kept.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _parsed(out: bytes, errors: bytes) -> dict[str, Any]:
    """Return the answer of a job. Raise `ConfigError` with its error if it has none."""
    try:
        found = json.loads(out)
    except ValueError:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ConfigError(last or "the answer could not be computed") from None
    if "error" in found:
        raise ConfigError(found["error"])
    answer: dict[str, Any] = found
    return answer
