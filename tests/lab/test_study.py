"""A study repeats no run that is done, whatever happened in between."""

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
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


@pytest.mark.parametrize("text", ["mine", "mine\n", "{}\n", '{"version": "1"}\n{"version": "1"}\n'])
def test_a_foreign_file_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ConfigError, match="choose another folder"):
        Study(tmp_path, "1")
    assert (tmp_path / FILE).read_text() == text


@pytest.mark.parametrize("length", [1, 8, 20, 45])
def test_a_first_line_that_a_crash_cut_off_is_repeated(tmp_path: Path, length: int) -> None:
    done: list[str] = []
    Study(tmp_path, "1").results(runs(done, "a"), nothing)
    file = tmp_path / FILE
    file.write_bytes(file.read_bytes()[:length])
    Study(tmp_path, "1")  # a second crash before the first new line
    Study(tmp_path, "1").results(runs(done, "a"), nothing)
    assert done == ["a", "a"] and Study(tmp_path, "1").results(runs(done, "a"), nothing) and done == ["a", "a"]


@pytest.mark.parametrize(
    "row", ['"key": ["a"], "result": {}', '"key": "a", "result": 7', '"key": "a", "result": {"x": NaN}']
)
def test_a_damaged_row_is_repeated(tmp_path: Path, row: str) -> None:
    done: list[str] = []
    Study(tmp_path, "1").results(runs(done, "b"), nothing)
    with (tmp_path / FILE).open("a") as file:
        file.write(f'{{"version": "1", {row}}}\n')
    Study(tmp_path, "1").results(runs(done, "a", "b"), nothing)
    assert done == ["b", "a"]


def test_equal_runs_are_made_once_and_progress_reaches_its_total(tmp_path: Path) -> None:
    done: list[str] = []
    told: list[tuple[int, int]] = []
    Study(None, "1").results(runs(done, "a", "a", "b"), lambda at, total, what: told.append((at, total)))
    assert done == ["a", "b"] and told == [(0, 2), (1, 2), (2, 2)]
    Study(tmp_path, "1").results(runs(done, "a"), nothing)
    assert json.loads((tmp_path / FILE).read_text())["key"] == "a"


# ---- several processes


def process() -> dict[str, int]:
    return {"process": os.getpid()}


def met(place: Path) -> dict[str, int]:
    """Wait until two processes have come here, so that neither can compute all runs."""
    (place / str(os.getpid())).touch()
    end = time.monotonic() + 60.0
    while len(list(place.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    return process()


def meeting(place: Path) -> list[StudyRun]:
    timed = StudyRun("timed", 1, process, is_timed=True)
    return [timed, *(StudyRun(f"run {number}", 1, partial(met, place)) for number in range(4))]


def dying(place: Path) -> list[StudyRun]:
    """Two runs: one ends at once; the other is killed, but not before the result of the first is on disk."""

    def die() -> dict[str, int]:
        while not (place / FILE).exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    return [StudyRun("lives", 1, process), StudyRun("dies", 1, die)]


def endless(place: Path) -> list[StudyRun]:
    def wait() -> dict[str, int]:
        (place / str(os.getpid())).touch()
        time.sleep(600.0)
        return {}

    return [StudyRun("one", 1, wait), StudyRun("two", 1, wait)]


def failing() -> list[StudyRun]:
    raise ConfigError("the graph is gone")


def test_with_jobs_other_processes_compute_and_runs_that_measure_time_come_last_and_here(tmp_path: Path) -> None:
    shown: list[tuple[int, int]] = []
    study, place = Study(tmp_path, "1"), tmp_path / "met"
    place.mkdir()
    jobs = Jobs(2, partial(meeting, place))
    found = study.results(meeting(place), lambda done, total, _: shown.append((done, total)), jobs)
    by = {key: result["process"] for key, result in found.items()}
    assert by.pop("timed") == os.getpid() and os.getpid() not in by.values() and len(set(by.values())) == 2
    assert shown == [(done, 5) for done in range(6)]
    keys = [json.loads(line)["key"] for line in (tmp_path / FILE).read_text().splitlines()]
    assert sorted(keys) == sorted(found) and keys[-1] == "timed"


def test_a_process_that_is_killed_loses_no_finished_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fewer --jobs"):
        Study(tmp_path, "1").results(dying(tmp_path), nothing, Jobs(2, partial(dying, tmp_path)))
    assert [json.loads(line)["key"] for line in (tmp_path / FILE).read_text().splitlines()] == ["lives"]


def test_an_error_while_a_process_prepares_its_runs_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the graph is gone"):
        Study(tmp_path, "1").results(endless(tmp_path), nothing, Jobs(2, failing))


def wait_for_two(place: Path) -> list[int]:
    end = time.monotonic() + 60.0
    while len(found := [int(path.name) for path in place.iterdir() if path.name.isdigit()]) < 2:
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_sigterm_ends_all_processes(tmp_path: Path) -> None:
    killer = threading.Thread(target=lambda: wait_for_two(tmp_path) and os.kill(os.getpid(), signal.SIGTERM))
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        Study(tmp_path, "1").results(endless(tmp_path), nothing, Jobs(2, partial(endless, tmp_path)))
    killer.join()
    assert not any(map(is_running, wait_for_two(tmp_path)))
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_processes_end_if_the_command_is_killed(tmp_path: Path) -> None:
    code = f"""
from functools import partial
from pathlib import Path
from tests.lab.test_study import endless, nothing
from trapline.lab.study import Jobs, Study
if __name__ == "__main__":
    place = Path({str(tmp_path)!r})
    Study(place, "1").results(endless(place), nothing, Jobs(2, partial(endless, place)))
"""
    (tmp_path / "main.py").write_text(code)
    root = Path(__file__).parents[2]
    command = subprocess.Popen([sys.executable, str(tmp_path / "main.py")], env=os.environ | {"PYTHONPATH": str(root)})
    processes = wait_for_two(tmp_path)
    command.kill()
    command.wait()
    end = time.monotonic() + 30.0
    while any(map(is_running, processes)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(map(is_running, processes))
