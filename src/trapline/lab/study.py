"""A study: many runs, each kept on disk when it is done, so that a study that was interrupted continues where it stopped.

A run is a function that takes seconds to minutes and returns numbers. Its key says everything that decides the result; a run
whose key is on disk is not repeated. Several processes can compute runs at the same time. This module knows neither crawls nor
papers.
"""

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from trapline.errors import ConfigError, InvariantError
from trapline.progress import ProgressCallback
from trapline.units import counted

FILE = "runs.jsonl"
Result = dict[str, Any]


class StudyRun(NamedTuple):
    key: str
    cost: int
    """duration relative to other runs, for the progress"""
    compute: Callable[[], Result]
    needs: str = ""
    """what must be loaded for the run; runs with the same needs follow each other"""
    is_timed: bool = False
    """whether the run measures time or processor time, so that no other run may disturb it"""


class Jobs(NamedTuple):
    """Several processes that compute runs."""

    number: int
    runs: Callable[[], Sequence[StudyRun]]
    """makes the runs of the study once more, in each process; must be picklable"""


class Study:
    def __init__(self, folder: Path | None, version: str) -> None:
        """`folder`: where results are kept; None: nowhere. `version`: results of another version are not used."""
        self._file = None if folder is None else folder / FILE
        self._version = version
        self._known = {} if self._file is None else _read(self._file, version)
        self.repeated = 0  # number of results that were found on disk

    def results(
        self, runs: Sequence[StudyRun], progress: ProgressCallback, jobs: Jobs | None = None
    ) -> dict[str, Result]:
        """Return the result of each run, by key. Runs with the same key are computed once.

        A result with NaN or infinity is wrong and is not kept. The other runs are still made and kept; then `InvariantError` names
        the wrong ones.
        """
        wanted = _grouped({run.key: run for run in runs}.values())
        missing = [run for run in wanted if run.key not in self._known]
        self.repeated = len(wanted) - len(missing)
        total = sum(run.cost for run in wanted)
        done = total - sum(run.cost for run in missing)
        wrong: list[str] = []
        progress(done, total, missing[0].key if missing else "")
        for run, result, name in _computed(missing, jobs):
            if not self._keep(run.key, result):
                wrong.append(run.key)
            done += run.cost
            progress(done, total, name)
        if wrong:
            raise InvariantError(
                f"{counted(len(wrong), 'run')} returned NaN or infinity: {'; '.join(wrong)}. The results of the other runs are kept."
            )
        return {run.key: self._known[run.key] for run in wanted}

    def _keep(self, key: str, result: Result) -> bool:
        """Keep a result. Return False, and keep nothing, if one of its numbers is NaN or infinite."""
        try:
            line = json.dumps({"version": self._version, "key": key, "result": result}, allow_nan=False)
        except ValueError:
            return False
        self._known[key] = result
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        return True


# ---- computing runs


def _grouped(runs: Iterable[StudyRun]) -> list[StudyRun]:
    groups: dict[str, list[StudyRun]] = {}
    for run in runs:
        groups.setdefault(run.needs, []).append(run)
    return [run for group in groups.values() for run in group]


def _computed(runs: Sequence[StudyRun], jobs: Jobs | None) -> Iterator[tuple[StudyRun, Result, str]]:
    """Yield each run with its result, and with the key of the next run; "": several are computed at a time, or none is left.

    With `jobs`, runs that measure time come last, and alone.
    """
    together = [run for run in runs if not run.is_timed] if jobs else []
    alone = [run for run in runs if run.is_timed] if jobs else runs
    if jobs and together:
        for run, result in _computed_by(jobs, together):
            yield run, result, ""
    for run, following in zip_longest(alone, alone[1:]):
        yield run, run.compute(), following.key if following else ""


def _computed_by(jobs: Jobs, runs: Sequence[StudyRun]) -> Iterator[tuple[StudyRun, Result]]:
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs.number, len(runs)), spawn, _begin_process, (jobs.runs,))
    with pool, _interrupted_by_sigterm():
        try:
            waiting = {pool.submit(_compute, run.key): run for run in runs}
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool as error:
            raise ConfigError(
                "a process of --jobs was ended from outside, perhaps because memory ran out; "
                "repeat the command with fewer --jobs: it keeps the finished runs"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes = multiprocessing.active_children()
            for process in processes:
                process.terminate()  # otherwise an interrupted command would wait for the runs that have begun
            for process in processes:
                process.join()
            raise


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM has the effect of Ctrl-C, so that it also ends the other processes."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# In a process of `Jobs`: its runs, or the error that prevented them
_runs: dict[str, StudyRun] = {}
_errors: list[Exception] = []


def _begin_process(make: Callable[[], Sequence[StudyRun]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process without a traceback
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # stderr: the command itself shows the progress
    try:
        _runs.update((run.key, run) for run in make())
    except Exception as error:  # an initializer cannot report it
        _errors.append(error)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _compute(key: str) -> Result:
    if _errors:
        raise _errors[0]
    return _runs[key].compute()


# ---- finished runs on disk


_BEGIN = '{"version": '  # of every line


def _read(file: Path, version: str) -> dict[str, Result]:
    """Return the results in the file. A last line that was cut off by a crash is ignored, and ended."""
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8", errors="replace")
    rows = [_row(line) for line in text.splitlines()]
    first = text.rstrip("\n")
    is_cut_off = len(rows) == 1 and first.startswith(_BEGIN[: len(first)])  # a crash cut off the first line
    if rows and not any(rows) and not is_cut_off:
        raise ConfigError(f"{file} is not from a reproduction; choose another folder")
    if text and not text.endswith("\n"):
        with file.open("a", encoding="utf-8") as end:
            end.write("\n")
    return {row["key"]: row["result"] for row in rows if row and row["version"] == version}


def _row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    types = {"version": str, "key": str, "result": dict}
    is_row = isinstance(row, dict) and row.keys() == types.keys()
    return row if is_row and all(isinstance(row[name], kind) for name, kind in types.items()) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
