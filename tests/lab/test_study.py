"""A study repeats no run that is done, whatever happened in between."""

import json
import math
import os
import signal
import time
from pathlib import Path

import pytest

from trapline.errors import ConfigError, InvariantError
from trapline.lab.study import FILE, Jobs, Study, StudyRun


def runs(done: list[str], *keys: str, interrupted_at: str = "") -> list[StudyRun]:
    def run(key: str) -> StudyRun:
        def compute() -> dict[str, int]:
            if key == interrupted_at:
                raise KeyboardInterrupt
            done.append(key)
            return {"length": len(key)}

        return StudyRun(key, 1, compute)

    return [run(key) for key in keys]


def nothing(done: int, total: int, what: str) -> None:
    pass


def test_an_interrupted_study_continues_where_it_stopped(tmp_path: Path) -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        Study(tmp_path, "1").results(runs(done, "a", "bb", "ccc", interrupted_at="ccc"), nothing)
    again = Study(tmp_path, "1")
    assert again.results(runs(done, "a", "bb", "ccc"), nothing) == {
        "a": {"length": 1},
        "bb": {"length": 2},
        "ccc": {"length": 3},
    }
    assert done == ["a", "bb", "ccc"] and again.repeated == 2


def test_runs_of_another_version_are_repeated(tmp_path: Path) -> None:
    done: list[str] = []
    Study(tmp_path, "1").results(runs(done, "a"), nothing)
    Study(tmp_path, "2").results(runs(done, "a"), nothing)
    assert done == ["a", "a"]


def test_a_line_that_a_crash_cut_off_is_repeated_and_loses_nothing(tmp_path: Path) -> None:
    done: list[str] = []
    Study(tmp_path, "1").results(runs(done, "a", "bb"), nothing)
    file = tmp_path / FILE
    file.write_bytes(file.read_bytes()[:-5])
    Study(tmp_path, "1").results(runs(done, "a", "bb", "ccc"), nothing)
    assert done == ["a", "bb", "bb", "ccc"]
    Study(tmp_path, "1").results(runs(done, "a", "bb", "ccc"), nothing)
    assert done == ["a", "bb", "bb", "ccc"]


def test_a_result_that_is_no_number_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    done: list[str] = []
    first, last = runs(done, "a", "ccc")
    wrong = StudyRun("bb", 1, lambda: {"rates": [1.0, math.nan]})
    for folder in (None, tmp_path):
        with pytest.raises(InvariantError, match="1 run returned NaN or infinity: bb"):
            Study(folder, "1").results([first, wrong, last], nothing)
    again = Study(tmp_path, "1")
    repaired = again.results(runs(done, "a", "bb", "ccc"), nothing)
    assert again.repeated == 2 and repaired["bb"] == {"length": 2}
    assert done == ["a", "ccc", "a", "ccc", "bb"]


def test_a_foreign_file_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("mine\n")
    with pytest.raises(ConfigError, match="choose another folder"):
        Study(tmp_path, "1")
    assert (tmp_path / FILE).read_text() == "mine\n"


def test_equal_runs_are_made_once_and_progress_reaches_its_total(tmp_path: Path) -> None:
    done: list[str] = []
    told: list[tuple[int, int]] = []
    Study(None, "1").results(runs(done, "a", "a", "b"), lambda at, total, what: told.append((at, total)))
    assert done == ["a", "b"] and told == [(0, 2), (1, 2), (2, 2)]
    Study(tmp_path, "1").results(runs(done, "a"), nothing)
    assert json.loads((tmp_path / FILE).read_text())["key"] == "a"


# ---- several processes


def processes() -> list[StudyRun]:
    """Runs whose result is the process that computes them. Those of the pool wait until both processes work."""

    def slow() -> dict[str, int]:
        time.sleep(0.3)
        return {"process": os.getpid()}

    timed = StudyRun("timed", 1, lambda: {"process": os.getpid()}, is_timed=True)
    return [timed, *(StudyRun(f"run {number}", 1, slow) for number in range(4))]


def one_dies() -> list[StudyRun]:
    def die() -> dict[str, int]:
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    return [StudyRun("lives", 1, lambda: {"process": os.getpid()}), StudyRun("dies", 1, die)]


def test_with_jobs_other_processes_compute_and_runs_that_measure_time_come_last_and_here(tmp_path: Path) -> None:
    shown: list[tuple[int, int]] = []
    study = Study(tmp_path, "1")
    found = study.results(processes(), lambda done, total, _: shown.append((done, total)), Jobs(2, processes))
    by = {key: result["process"] for key, result in found.items()}
    assert by.pop("timed") == os.getpid() and os.getpid() not in by.values() and len(set(by.values())) == 2
    assert shown == [(done, 5) for done in range(6)]
    keys = [json.loads(line)["key"] for line in (tmp_path / FILE).read_text().splitlines()]
    assert sorted(keys) == sorted(found) and keys[-1] == "timed"


def test_a_process_that_is_killed_loses_no_finished_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fewer --jobs"):
        Study(tmp_path, "1").results(one_dies(), nothing, Jobs(2, one_dies))
    assert [json.loads(line)["key"] for line in (tmp_path / FILE).read_text().splitlines()] == ["lives"]
