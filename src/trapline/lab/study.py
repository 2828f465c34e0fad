"""A study: many runs, each kept on disk when it is done, so that a study that was interrupted continues where it stopped.

A run is a function that takes seconds to minutes and returns numbers. Its key says everything that decides the result; a run
whose key is on disk is not repeated. This module knows neither crawls nor papers.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trapline.errors import ConfigError
from trapline.progress import ProgressCallback

FILE = "runs.jsonl"
Result = dict[str, Any]


class StudyRun(NamedTuple):
    key: str
    cost: int
    """duration relative to other runs, for the progress"""
    compute: Callable[[], Result]
    needs: str = ""
    """what must be loaded for the run; runs with the same needs follow each other"""


class Study:
    def __init__(self, folder: Path | None, version: str) -> None:
        """`folder`: where results are kept; None: nowhere. `version`: results of another version are not used."""
        self._file = None if folder is None else folder / FILE
        self._version = version
        self._known = {} if self._file is None else _read(self._file, version)
        self.repeated = 0  # number of results that were found on disk

    def results(self, runs: Sequence[StudyRun], progress: ProgressCallback) -> dict[str, Result]:
        """Return the result of each run, by key. Runs with the same key are computed once."""
        wanted = _grouped({run.key: run for run in runs}.values())
        total, done = sum(run.cost for run in wanted), 0
        found: dict[str, Result] = {}
        for run in wanted:
            progress(done, total, run.key)
            if run.key in self._known:
                self.repeated += 1
            else:
                self._keep(run.key, run.compute())
            found[run.key] = self._known[run.key]
            done += run.cost
        progress(total, total, "")
        return found

    def _keep(self, key: str, result: Result) -> None:
        self._known[key] = result
        if self._file is not None:
            line = json.dumps({"version": self._version, "key": key, "result": result}, allow_nan=False)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def _grouped(runs: Iterable[StudyRun]) -> list[StudyRun]:
    groups: dict[str, list[StudyRun]] = {}
    for run in runs:
        groups.setdefault(run.needs, []).append(run)
    return [run for group in groups.values() for run in group]


def _read(file: Path, version: str) -> dict[str, Result]:
    """Return the results in the file. A last line that was cut off by a crash is ignored, and ended."""
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8", errors="replace")
    if text and not text.endswith("\n"):
        with file.open("a", encoding="utf-8") as end:
            end.write("\n")
    rows = [_row(line) for line in text.splitlines()]
    if rows and not any(rows):
        raise ConfigError(f"{file} is not from a reproduction; choose another folder")
    return {row["key"]: row["result"] for row in rows if row and row["version"] == version}


def _row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and row.keys() == {"version", "key", "result"} else None
