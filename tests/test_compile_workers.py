"""Compilation in several processes: nothing is missing afterwards, whatever happens to the workers, and they end with their parent."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.effort import slow
from trapline.compiled import cache_folder, compile_workers, jit, kernel_files
from trapline.errors import ConfigError

compiled_only = pytest.mark.skipif(jit.DISABLED, reason="NUMBA_DISABLE_JIT=1: nothing is compiled")

# A process that compiles with one worker, but takes no function itself.
TOGETHER = """
import json
from trapline.compiled import compile_workers, jit
from trapline.graph import graph
from trapline.strategies import opic

jit.process_count = lambda functions: 2
compile_workers.claimed = lambda *of_this_process: iter(())
{change}
reported = []
rank = opic.PAGE.function
jit.ready(within=["trapline.graph.graph"], ranks=[rank], progress=lambda *step: reported.append(step))
made = [kernel for kernel in jit._kernels if kernel.py_func.__module__ == "trapline.graph.graph"] + [rank.stored]
print(json.dumps({{
    "hits": [int(each.was_loaded) for each in made],
    "misses": [int(each.compiled is not None) for each in made],
    "reported": reported,
}}))
"""


def compiled(cache: Path, change: str = "") -> dict[str, Any]:
    environment = {**os.environ, "TRAPLINE_CACHE": str(cache), "TRAPLINE_PREBUILT": "0"}
    script = TOGETHER.format(change=change)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@compiled_only
def test_this_process_loads_what_a_worker_compiled(tmp_path: Path) -> None:
    found = compiled(tmp_path)
    count = len(found["hits"])
    assert count > 3
    assert (found["hits"], found["misses"]) == ([1] * count, [0] * count)
    assert [step[:2] for step in found["reported"]] == [[number, count] for number in range(count)]
    assert len(list(tmp_path.rglob("*.kernel"))) == count


@slow
@compiled_only
@pytest.mark.parametrize(
    "change",
    [
        "compile_workers._WORKER = ('-c', 'raise SystemExit(1)')",
        "compile_workers._WORKER = ('-c', 'import os; os.kill(os.getpid(), 9)')",
        "jit.IDENTITY = 'of other sources'",
        "import sys; sys.executable = '/does/not/exist'",
        "import tempfile; tempfile.tempdir = '/does/not/exist'",
    ],
)
def test_this_process_compiles_what_no_worker_did(tmp_path: Path, change: str) -> None:
    found = compiled(tmp_path, change)
    assert set(found["misses"]) == {1}
    assert [step[0] for step in found["reported"]] == list(range(len(found["misses"])))


@slow
@compiled_only
def test_on_a_full_disk_this_process_compiles_everything(tmp_path: Path) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"  # room for the task and small kernels
    found = compiled(tmp_path, limited)
    assert set(found["misses"]) == {1}
    whole = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert all(file.stat().st_size < 4096 for file in whole)  # a file that was cut off would have all 4096 bytes
    compiled(tmp_path)  # there is room again
    assert len(list(tmp_path.rglob("*.kernel"))) == len(found["misses"])


@slow
@compiled_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them(tmp_path: Path, number: signal.Signals) -> None:
    environment = {**os.environ, "TRAPLINE_CACHE": str(tmp_path), "TRAPLINE_PREBUILT": "0"}
    command = [sys.executable, "-c", "from trapline.cli import main; main()", "warmup"]
    with subprocess.Popen(
        command, env=environment | {compile_workers.VARIABLE: "3"}, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("compiling: ")
        workers = children(process.pid)
        process.send_signal(number)
        process.wait(60)
    assert len(workers) == 2
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def children(process: int) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


# What can happen to workers and to their pipe.


def reports_of(worker: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what a worker with this source reports, when nothing is left to claim."""
    monkeypatch.setattr(compile_workers, "_WORKER", ("-c", worker))
    return reports(Path("/cache"))


def reports(cache: Path) -> list[str]:
    reported: list[str] = []
    with compile_workers.compile_workers([], 2, "", cache, reported.append) as own:
        assert list(own) == []
    return reported


@pytest.fixture
def ten_seconds() -> Iterator[None]:
    """Fail, instead of waiting forever."""

    def fail(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_all_reports_of_a_worker_arrive(monkeypatch: pytest.MonkeyPatch, ten_seconds: None) -> None:
    worker = "import time; print('first', flush=True); time.sleep(0.1); print('last')"
    assert reports_of(worker, monkeypatch) == ["first", "last"]


def test_a_stopped_worker_does_not_hold_the_command(monkeypatch: pytest.MonkeyPatch, ten_seconds: None) -> None:
    worker = "import os, signal; print('begun', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    assert reports_of(worker, monkeypatch) == ["begun"]


def test_another_process_with_the_pipe_does_not_hold_the_command(
    monkeypatch: pytest.MonkeyPatch, ten_seconds: None
) -> None:
    """As a thread of the host makes one, by a fork while workers are started."""
    start, others = compile_workers._start, []

    def start_both(*arguments: Any) -> Any:
        others.append(subprocess.Popen(["sleep", "60"], pass_fds=arguments[3:4]))
        return start(*arguments)

    monkeypatch.setattr(compile_workers, "_start", start_both)
    try:
        assert reports_of("print('done')", monkeypatch) == ["done"]
        assert others[0].poll() is None
    finally:
        for other in others:
            other.kill()
            other.wait()


# Where workers find the package and the cache.


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with another `trapline`, whose worker reports its cache. Only the path of this process finds it."""
    folder = tmp_path / "trapline" / "compiled"
    folder.mkdir(parents=True)
    (folder / "worker.py").write_text("import os\n\ndef main():\n    print(os.environ['TRAPLINE_CACHE'])\n")
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def test_a_worker_imports_the_package_by_the_path_of_its_host(other_package: Path) -> None:
    assert reports(Path("/cache")) == ["/cache"]


def test_an_entry_of_the_path_that_is_no_text_does_no_harm(
    other_package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: list[Any] = [other_package / "notebook", None, *sys.path]
    monkeypatch.setattr(sys, "path", entries)
    assert reports(Path("/cache")) == ["/cache"]


@compiled_only
def test_workers_fill_the_cache_that_this_process_found_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative TRAPLINE_CACHE means another folder after a change of the working directory."""
    given: list[Any] = []

    @contextmanager
    def seen(*arguments: Any) -> Iterator[Iterator[int]]:
        given.extend(arguments)
        yield iter(())

    monkeypatch.setattr(jit, "compile_workers", seen)
    monkeypatch.setenv("TRAPLINE_CACHE", "relative")
    jit._compile_with_workers([], 2, print)
    assert given[3] == kernel_files.CACHE.parent and given[3].is_absolute()


# What each process takes.


@pytest.mark.parametrize("processes", [1, 2, 3, 5, 8])
def test_every_process_tries_every_function_once(processes: int) -> None:
    orders = [compile_workers._order(100, process, processes) for process in range(processes)]
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert len({order[0] for order in orders}) == processes


def test_two_processes_meet_in_the_middle() -> None:
    one, other = (compile_workers._order(10, process, 2) for process in (0, 1))
    assert one == other[::-1] == list(range(10))


def test_a_function_is_claimed_by_one_process_at_a_time(tmp_path: Path) -> None:
    claim = "import sys; from trapline.compiled.compile_workers import claimed; print(*claimed(sys.stdin.fileno(), 4, 1, 2))"
    with (tmp_path / "task").open("w+b") as task:
        own = compile_workers.claimed(task.fileno(), 4, 0, 2)
        assert [next(own), next(own)] == [0, 1]
        others = subprocess.run([sys.executable, "-c", claim], stdin=task, capture_output=True, text=True, check=True)
        assert others.stdout == "3 2\n"
        assert list(own) == [2, 3]  # the other process has ended


def test_functions_with_common_code_are_neighbours() -> None:
    assert compile_workers.neighbours([small, other_user, large_user, unrelated, user]) == [2, 1, 4, 0, 3]


def helper(number: int) -> int:
    return number * 3 + 1


def large_helper(number: int) -> int:
    return helper(number) * helper(number + 1) * helper(number + 2)


def large_user(number: int) -> int:
    return large_helper(number) + large_helper(number + 1) + large_helper(number + 2)


def user(number: int) -> int:
    return large_helper(number) + 5


def other_user(number: int) -> int:
    return large_helper(number) - 5


def small(number: int) -> int:
    return helper(number)


def unrelated(number: int) -> int:
    return number


# How many processes.


def test_there_is_one_process_per_core_but_none_for_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(compile_workers.VARIABLE, raising=False)
    monkeypatch.setattr(compile_workers, "_MEMORY_FILES", ())
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 5, 7})
    assert [compile_workers.process_count(functions) for functions in (0, 1, 90, 91, 500)] == [1, 1, 1, 2, 4]
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3})
    assert compile_workers.process_count(500) == 1


@pytest.mark.parametrize(
    ("available_kb", "limits", "expected"),
    [
        ("2000000", ["max\n", ""], 5),
        ("9000000", ["max\n", "9223372036854771712\n"], 6),
        ("9000000", ["1000000000\n", ""], 2),
        ("9000000", ["", "800000000\n"], 2),
        ("9000000", ["100000000\n", ""], 1),
    ],
)
def test_there_are_only_as_many_processes_as_have_memory(
    available_kb: str, limits: list[str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`limits`: of a container, as cgroups of version 2 and 1 write them."""
    monkeypatch.delenv(compile_workers.VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))
    texts = [f"MemTotal:  64000000 kB\nMemFree: 10 kB\nMemAvailable:   {available_kb} kB\n", *limits]
    files = []
    for (_, *how), text in zip(compile_workers._MEMORY_FILES, texts, strict=True):
        files.append((str(tmp_path / str(len(files))), *how))
        if text:  # otherwise there is no such file
            Path(files[-1][0]).write_text(text)
    monkeypatch.setattr(compile_workers, "_MEMORY_FILES", files)
    assert compile_workers.process_count(500) == expected


@pytest.mark.parametrize(("name", "value"), [("executable", None), ("executable", ""), ("frozen", True)])
def test_an_application_that_is_not_python_compiles_in_one_process(
    name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(compile_workers.VARIABLE, "3")
    assert compile_workers.process_count(500) == 3
    monkeypatch.setattr(sys, name, value, raising=False)
    assert compile_workers.process_count(500) == 1


@pytest.mark.parametrize("is_writable", [True, False])
def test_there_are_workers_only_if_the_cache_can_be_written(
    is_writable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []
    monkeypatch.setattr(jit, "CACHE", (tmp_path if is_writable else Path("/proc/nope")) / "cache")
    monkeypatch.setattr(jit, "process_count", lambda functions: 2)
    monkeypatch.setattr(jit, "_are_cached", lambda functions: False)
    monkeypatch.setattr(jit, "_load_or_compile", lambda *function: None)
    monkeypatch.setattr(jit, "_compile_with_workers", lambda *given: begun.append(given))
    monkeypatch.setattr(jit, "_Report", lambda *given: SimpleNamespace(total=500))
    function: Any = SimpleNamespace(address=0)
    jit._load_or_compile_all([function, function], None)
    assert len(begun) == is_writable


def test_a_folder_for_reading_only_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder.can_be_written(tmp_path / "cache")
    monkeypatch.setattr(os, "access", lambda folder, mode: False)  # as on a file system that is mounted for reading
    assert not cache_folder.can_be_written(tmp_path / "cache")


def test_a_user_can_choose_the_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen, expected in (("1", 1), ("3", 3), ("999", 6)):
        monkeypatch.setenv(compile_workers.VARIABLE, chosen)
        assert compile_workers.process_count(500) == expected


@pytest.mark.parametrize("chosen", ["0", "-1", "two", "1.5"])
def test_a_number_of_processes_that_is_none_is_refused(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compile_workers.VARIABLE, chosen)
    with pytest.raises(ConfigError, match=f"TRAPLINE_COMPILE_PROCESSES={chosen}: .*give 1 or more"):
        compile_workers.process_count(500)
