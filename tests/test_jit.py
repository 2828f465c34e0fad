"""The promises of compiled/jit.py: kernels that count no references, one signature each, and a cache that is never stale.

The compiled core is inspected from new processes with their own caches. It is compiled once for this file.

"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numba
import pytest

import trapline
from tests.effort import slow
from trapline.compiled import jit
from trapline.compiled.file_lock import alone
from trapline.compiled.sources import compiled_sources

PACKAGE = Path(trapline.__file__).parent
SOURCES = list(compiled_sources(PACKAGE))
compiled_only = pytest.mark.skipif(jit.DISABLED, reason="NUMBA_DISABLE_JIT=1: nothing is compiled")

# What a process reports about the core after it was loaded or compiled.
PROBE = """
import json, re, time
import trapline.crawler.engine.run, trapline.frontier.replay, trapline.simulator.driver
from trapline.compiled import jit
from trapline.strategies import page_ranks, site_ranks

started = time.perf_counter()
jit.ready()
ranks = [rank.function for rank in (*page_ranks().values(), *site_ranks().values())]
assert all(rank.address for rank in ranks)
seconds = time.perf_counter() - started

def code(dispatcher):
    (compiled,) = dispatcher.overloads.values()
    try:
        return compiled.library.get_llvm_str()
    except RuntimeError:  # from the cache: machine code alone
        return ""

def seen(dispatcher):
    text = code(dispatcher)
    return {
        "hits": sum(dispatcher.stats.cache_hits.values()),
        "misses": sum(dispatcher.stats.cache_misses.values()),
        "counting": sorted(set(re.findall(r"NRT_\\w+", text))),
        "shared": text.count("linkonce_odr"),
        "private": len(re.findall(r"^define internal ", text, re.M)),
    }

def counts_references():
    from numba import njit
    control = njit("f8[::1](f8[::1])", **{**jit._FLAGS, "_nrt": True})(lambda a: a[1:])
    return "NRT_incref" in code(control)

print(json.dumps({
    "seconds": seconds,
    "specialisations": jit.specialisations(),
    "functions": len(jit._helpers) + len(jit._kernels),
    "kernels": {d.py_func.__name__: seen(d) for d, _ in jit._kernels},
    "ranks": {r.function.__name__: seen(r._dispatcher) for r in ranks},
    "control": counts_references(),
    "files": sorted({f.__code__.co_filename for f in [d.py_func for d, _ in jit._helpers + jit._kernels] + [r.function for r in ranks]}),
}))
"""


def python(source: str, cache: Path, root: Path = PACKAGE.parent) -> str:
    """The output of a new process. It writes no bytecode, which would hide an edit made within the same second."""
    environment = {**os.environ, "TRAPLINE_CACHE": str(cache), "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", source], env=environment, cwd=cache.parent, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jit") / "cache"


@pytest.fixture(scope="module")
def cold(cache: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(python(PROBE, cache))
    return answer


@pytest.fixture(scope="module")
def warm(cold: dict[str, Any], cache: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(python(PROBE, cache))
    return answer


# One signature.


WARMUP = """
import pkgutil, sys
from importlib import import_module
import trapline
from trapline.cli import warmup
from trapline.compiled import jit

jit.ready = lambda *given: seen.append(len(jit._kernels))  # what the warm-up would compile, without compiling it
seen = []
try:
    warmup.compile_all()
except Exception:
    pass  # ranks cannot be compiled without their kernels
for module in pkgutil.walk_packages(trapline.__path__, "trapline."):
    if ".ray" not in module.name and not module.name.endswith("__main__"):
        import_module(module.name)
print([kernel.py_func.__name__ for kernel, _ in jit._kernels[seen[0]:]])
"""


def test_the_warm_up_compiles_every_kernel() -> None:
    """Otherwise the first command that needs a missing kernel would wait for it."""
    done = subprocess.run(
        [sys.executable, "-c", WARMUP], capture_output=True, text=True, env=os.environ | {"NUMBA_DISABLE_JIT": "0"}
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@slow
@compiled_only
def test_every_helper_and_kernel_is_compiled_for_one_signature(cold: dict[str, Any]) -> None:
    assert {name: n for name, n in cold["specialisations"].items() if n != 1} == {}


@slow
@compiled_only
def test_no_two_functions_share_a_name(cold: dict[str, Any]) -> None:
    """`specialisations` uses names: of two functions with one name, one would be hidden."""
    assert len(cold["specialisations"]) == cold["functions"]


# No reference counting, private helpers.


@slow
@compiled_only
def test_the_check_for_reference_counting_finds_it(cold: dict[str, Any]) -> None:
    assert cold["control"]


@slow
@compiled_only
def test_kernels_and_ranks_count_no_references(cold: dict[str, Any]) -> None:
    assert {name: k["counting"] for name, k in (cold["kernels"] | cold["ranks"]).items() if k["counting"]} == {}


@slow
@compiled_only
def test_helpers_are_private_to_their_kernel(cold: dict[str, Any]) -> None:
    assert {name: k["shared"] for name, k in cold["kernels"].items() if k["shared"]} == {}
    assert cold["kernels"]["next_visit"]["private"] > 5  # not all are inlined, so some are private


# The cache.


@slow
@compiled_only
def test_a_first_process_compiles_every_kernel(cold: dict[str, Any]) -> None:
    assert all(k["misses"] == 1 and k["hits"] == 0 for k in (cold["kernels"] | cold["ranks"]).values())


@slow
@compiled_only
def test_a_second_process_compiles_nothing(cold: dict[str, Any], warm: dict[str, Any]) -> None:
    assert all(k["hits"] == 1 and k["misses"] == 0 for k in (warm["kernels"] | warm["ranks"]).values())
    helpers = set(warm["specialisations"]) - set(warm["kernels"])
    assert helpers and not any(warm["specialisations"][name] for name in helpers)
    assert warm["seconds"] < cold["seconds"] / 4


@slow
@compiled_only
def test_every_compiled_function_is_in_a_listed_source(cold: dict[str, Any]) -> None:
    files = {Path(file).relative_to(PACKAGE).as_posix() for file in cold["files"]}
    assert len(files) > 40
    assert files - set(SOURCES) == set()


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy") / "trapline"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize("source", SOURCES)
def test_an_edit_of_any_source_gives_another_cache(source: str, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_PACKAGE", copied)
    before, text = jit.cache_folder(), (copied / source).read_bytes()
    assert jit.cache_folder() == before
    (copied / source).write_bytes(text + b"\n")
    edited = jit.cache_folder()
    (copied / source).unlink()
    removed = jit.cache_folder()
    (copied / source).write_bytes(text)
    assert len({before, edited, removed}) == 3
    assert jit.cache_folder() == before


@pytest.mark.parametrize("folder", ["frontier", "strategies", "graph", "simulate", "", "new/folder"])
def test_a_new_kernel_file_gives_another_cache(folder: str, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_PACKAGE", copied)
    before = jit.cache_folder()
    new = copied / folder / "brand_new.py"
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_text("from trapline.compiled.jit import kernel\n\n@kernel('void()')\ndef nothing():\n    pass\n")
    after = jit.cache_folder()
    new.unlink()
    assert after != before


# A kernel of its own, because the kernels that the others import would be compiled with them. It calls a helper of another file,
# which has a function of a third and a constant of a fourth file, through a package.
CHAIN = {
    "chain.py": """
from trapline.chained import drawn
from trapline.compiled.jit import kernel

@kernel("void(int64, float64[::1])")
def draws(seed, out):
    for i in range(out.size):
        out[i] = drawn(seed, i)
""",
    "chained/__init__.py": """
from trapline.chained.constant import RANGE
from trapline.chained.helper import drawn
""",
    "chained/constant.py": "RANGE = 100.0",
    "chained/other.py": "RANGE = 1.0",
    "chained/helper.py": """
from trapline.chained import RANGE
from trapline.chained.other import RANGE as OTHER
from trapline.compiled.jit import helper
from trapline.rng import uniform

@helper("float64(int64, int64)")
def drawn(seed, number):
    return uniform(seed, number) * RANGE
""",
    "second_chain.py": """
from trapline import chained
from trapline.compiled.jit import helper, kernel

@helper("float64(int64)")
def halved(seed):
    return 0.5 * seed

@helper("float64(int64)")
def quartered(seed):
    return 0.5 * halved(seed)

@kernel("float64(int64)")
def of_own_helpers(seed):
    return quartered(seed)

@kernel("float64(int64)")
def of_a_module(seed):
    return chained.drawn(seed, 0)
""",
}
DRAW = """
import json
import numpy as np
from trapline.compiled import jit
from trapline.chain import draws

jit.ready()
out = np.zeros(4)
draws(7, out)
(hits,) = [sum(d.stats.cache_hits.values()) for d, _ in jit._kernels]
print(json.dumps({"out": out.tolist(), "hits": hits, "most": max(jit.specialisations().values())}))
"""


@pytest.fixture(scope="module")
def chained(copied: Path) -> Path:
    for file, text in CHAIN.items():
        (copied / file).parent.mkdir(exist_ok=True)
        (copied / file).write_text(text)
    return copied


def drawn(package: Path, cache: Path) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(python(DRAW, cache, package.parent))
    return answer


@compiled_only
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("chain.py", "drawn(seed, i)", "drawn(seed, i + 9)"),
        pytest.param("chained/helper.py", "* RANGE", "+ RANGE", marks=slow),
        pytest.param("chained/constant.py", "100.0", "10.0", marks=slow),
        pytest.param("chained/__init__.py", "chained.constant", "chained.other", marks=slow),
        # a multiplier of `mixed`, which `uniform` calls
        pytest.param("rng.py", "0x2C1B3C6D", "0x85EBCA6B", marks=slow),
    ],
)
def test_an_edited_source_never_uses_a_stale_cache(chained: Path, cache: Path, file: str, old: str, new: str) -> None:
    text = (chained / file).read_text()
    assert text.count(old) == 1
    first, second = drawn(chained, cache), drawn(chained, cache)
    (chained / file).write_text(text.replace(old, new))
    edited = drawn(chained, cache)
    (chained / file).write_text(text)
    undone = drawn(chained, cache)
    assert first["out"] == second["out"] == undone["out"] != edited["out"]
    assert second["hits"] and not edited["hits"]


@slow
@compiled_only
def test_only_helpers_of_the_missing_kernel_are_compiled(chained: Path, tmp_path: Path) -> None:
    """A command whose other kernels are in the cache does not wait for their helpers."""
    load = "import json\nfrom trapline.compiled import jit\nimport {}\njit.ready()\nprint(json.dumps(jit.specialisations()))"
    cache = tmp_path / "cache"
    python(load.format("trapline.chain"), cache, chained.parent)
    first = python(load.format("trapline.chain, trapline.second_chain"), cache, chained.parent)
    assert json.loads(first) == {
        "drawn": 1,
        "halved": 1,
        "quartered": 1,
        "draws": 1,
        "of_own_helpers": 1,
        "of_a_module": 1,
    }
    (marker,) = cache.rglob("trapline.second_chain.of_own_helpers.compiled")
    marker.unlink()
    for file in cache.rglob("second_chain.of_own_helpers*.nb?"):
        file.unlink()
    second = python(load.format("trapline.chain, trapline.second_chain"), cache, chained.parent)
    assert json.loads(second) == json.loads(first) | {"drawn": 0}


@slow
@compiled_only
def test_an_edit_of_a_caller_of_compiled_code_needs_no_compilation(chained: Path, cache: Path) -> None:
    drawn(chained, cache)
    for file in ("strategies/base/inputs.py", "graph/load.py", "crawler/engine/run.py"):
        with (chained / file).open("a") as text:
            text.write("\nADDED = 1\n")
    assert drawn(chained, cache)["hits"]


@slow
@compiled_only
def test_the_same_sources_in_another_folder_are_compiled_again(chained: Path, cache: Path, tmp_path: Path) -> None:
    """numba's own cache uses the path of a file, so two installations of one version share only the folder."""
    drawn(chained, cache)
    shutil.copytree(chained, tmp_path / "trapline")
    assert drawn(tmp_path / "trapline", cache)["most"] == 1


@slow
@compiled_only
@pytest.mark.parametrize(
    "damage", [pytest.param(b"", id="emptied", marks=slow), pytest.param(b"nonsense", id="overwritten")]
)
def test_a_damaged_cache_is_compiled_again(chained: Path, tmp_path: Path, damage: bytes) -> None:
    cache = tmp_path / "cache"
    whole = drawn(chained, cache)
    damaged = [*cache.rglob("*.nbi"), *cache.rglob("*.nbc")]
    assert damaged
    for path in damaged:
        path.write_bytes(damage)
    (bystander,) = [file.parent / "of-another-kernel.nbi" for file in cache.rglob("*.nbi")]
    bystander.write_bytes(b"another process writes it")
    assert drawn(chained, cache)["out"] == whole["out"]
    assert bystander.read_bytes() == b"another process writes it"
    assert drawn(chained, cache)["hits"]


# Several processes at once.

# As a command would: with the output that the user reads.
COMMAND = DRAW.replace("jit.ready()", "from trapline.cli.terminal.progress import compile_kernels; compile_kernels()")


@pytest.fixture
def empty(chained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder into which processes of the copied package compile."""
    monkeypatch.setattr(jit, "_PACKAGE", chained)
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(chained.parent))
    folder = jit.cache_folder()
    folder.mkdir()
    return folder


def begun() -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", COMMAND], stdout=pipe, stderr=pipe, text=True)


@slow
@compiled_only
def test_of_two_simultaneous_processes_one_compiles_and_the_other_waits_and_loads(empty: Path) -> None:
    with ExitStack() as ends:
        with alone(empty / "compiling.lock", lambda: None):
            both = [begun(), begun()]
            for one in both:
                ends.callback(one.kill)
            said = [one.stderr.readline() for one in both if one.stderr]
        answers = [json.loads(one.communicate(timeout=300)[0]) for one in both]
    assert said == ["waiting for another trapline process to finish compiling\n"] * 2
    assert sorted(answer["hits"] for answer in answers) == [0, 1]
    assert answers[0]["out"] == answers[1]["out"]


@slow
@compiled_only
def test_a_process_with_a_complete_cache_does_not_wait(chained: Path, empty: Path) -> None:
    drawn(chained, empty.parent)
    with alone(empty / "compiling.lock", lambda: None):
        assert drawn(chained, empty.parent)["hits"] == 1


# Other users of numba in the same process.

# A host application compiles its own function in its own thread each time Trapline announces what it compiles next.
HOST = DRAW.replace(
    "jit.ready()",
    """
import threading
from numba import njit

answers = []

def compile_another(done, total, name):
    foreign = njit(lambda number: number * 3)
    thread = threading.Thread(target=lambda: answers.append(foreign(14)))
    thread.start()
    thread.join()

jit.ready(compile_another)
""",
).replace('"hits": hits', '"hits": hits, "answers": answers')


@slow
@compiled_only
def test_functions_that_another_thread_compiles_meanwhile_get_machine_code(chained: Path, tmp_path: Path) -> None:
    answers = json.loads(python(HOST, tmp_path / "cache", chained.parent))["answers"]
    assert answers == [42, 42]  # beside a helper, and beside a kernel
    assert drawn(chained, tmp_path / "cache")["hits"] == 1


@slow
@compiled_only
def test_simultaneous_threads_all_find_the_core_ready(chained: Path, tmp_path: Path) -> None:
    together = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as threads:
    for ready in [threads.submit(jit.ready) for _ in range(8)]:
        ready.result()
assert jit._ready_kernels == len(jit._kernels)
"""
    for expected in (0, 1):
        answer = json.loads(python(DRAW.replace("jit.ready()", together), tmp_path / "cache", chained.parent))
        assert (answer["hits"], answer["most"]) == (expected, 1)


@compiled_only
def test_functions_that_another_thread_declares_meanwhile_keep_their_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trapline chooses numba's folder for its own functions only."""
    foreign: list[Any] = []

    def declare_another_first(*arguments: Any, **options: Any) -> Any:
        other = threading.Thread(target=lambda: foreign.append(numba.njit(cache=True)(time_of_others)))
        other.start()
        other.join()
        return numba.njit(*arguments, **options)

    monkeypatch.setattr(jit, "njit", declare_another_first)
    monkeypatch.setattr(jit, "_kernels", [])
    own: Any = jit.kernel("float64(float64)")(time_of_others)
    assert own._cache.cache_path.startswith(str(jit._CACHE))
    assert not foreign[0]._cache.cache_path.startswith(str(jit._CACHE))


def time_of_others(seconds: float) -> float:
    return seconds / 60.0


# The place of the cache.


def test_an_unwritable_cache_is_replaced_by_a_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = jit.cache_folder()
    assert tmp_path in folder.parents and tmp_path / "file" not in folder.parents


def test_a_cache_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numba executes what it finds there."""
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chosen = jit.cache_folder()
    chosen.mkdir()
    uid = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: uid + 1)
    assert jit.cache_folder() != chosen and jit.cache_folder().parent.parent == tmp_path


def test_a_cache_that_another_user_creates_first_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After it was found missing, and before it is created."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chosen = tmp_path / "cache"
    assert jit._made(chosen) == chosen == jit._made(chosen)
    (tmp_path / "link").symlink_to(chosen)
    (tmp_path / "file").touch()
    for taken in (tmp_path / "link", tmp_path / "file", tmp_path / "file" / "cache"):
        made = jit._made(taken)
        assert made.is_dir() and made.parent.parent == tmp_path
    uid = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: uid + 1)
    made = jit._made(chosen)
    assert made != chosen and made.is_dir() and made.parent.parent == tmp_path


@compiled_only
def test_a_cache_is_private_whatever_the_umask(chained: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    before = os.umask(0)
    try:
        drawn(chained, cache)
        (made,) = cache.iterdir()
        assert made.stat().st_mode & 0o777 == 0o700
        made.chmod(0o777)
        drawn(chained, cache)
        assert made.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


@compiled_only
def test_a_process_whose_cache_cannot_be_written_works(
    chained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    first = drawn(chained, tmp_path / "file")
    assert len(set(first["out"])) == 4
    assert list(tmp_path.glob("trapline-*"))


@slow
@compiled_only
def test_a_new_cache_replaces_those_unused_for_thirty_days(chained: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    days = {"a" * 20: 31, "b" * 20: 29, "not-ours": 31}
    for name, old in days.items():
        (cache / name).mkdir(parents=True)
        os.utime(cache / name, (time.time() - old * 86_400.0,) * 2)
    drawn(chained, cache)
    left = {folder.name for folder in cache.iterdir()}
    assert "a" * 20 not in left and {"b" * 20, "not-ours"} < left
    (own,) = left - days.keys()
    os.utime(cache / own, (0.0, 0.0))
    os.utime(cache / ("b" * 20), (0.0, 0.0))
    drawn(chained, cache)  # from the existing cache
    assert {folder.name for folder in cache.iterdir()} == left and (cache / own).stat().st_mtime > 0.0


def test_the_newest_eight_folders_unused_for_a_day_stay(tmp_path: Path) -> None:
    now, hours = time.time(), [1, 23, *range(25, 35), 31 * 24]
    for place, old in enumerate(hours):
        folder = tmp_path / f"{place:020x}"
        folder.mkdir()
        os.utime(folder, (now - old * 3600.0,) * 2)
    (tmp_path / "not-ours").mkdir()
    os.utime(tmp_path / "not-ours", (0.0, 0.0))
    gone = {int(folder.name, 16) for folder in jit._superfluous(tmp_path, now)}
    assert gone == {10, 11, 12}  # 33 and 34 hours, 31 days
