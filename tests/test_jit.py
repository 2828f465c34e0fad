"""The promises of compiled/jit.py: kernels that count no references, one signature each, and a cache that is never stale.

The compiled core is inspected from new processes with their own caches. It is compiled once for this file.

"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import pytest
from llvmlite import binding as llvm

import trapline
from tests.effort import sample, slow
from trapline.cli.terminal.progress import ARCHIVED_PAGES, LIVE_CRAWL, REPORT, SIMULATED_CRAWL
from trapline.compiled import cache_folder, jit, kernel_files, numba_settings
from trapline.compiled.file_lock import alone
from trapline.compiled.kernel_files import identity
from trapline.compiled.sources import compiled_sources

PACKAGE = Path(trapline.__file__).parent
SOURCES = list(compiled_sources(PACKAGE))
compiled_only = pytest.mark.skipif(jit.DISABLED, reason="NUMBA_DISABLE_JIT=1: nothing is compiled")

# What a process reports about the core after it was loaded or compiled.
PROBE = """
import json, re, sys, time
import trapline.crawler.engine.run, trapline.frontier.replay, trapline.simulator.driver
from trapline.compiled import jit
from trapline.strategies import page_ranks, site_ranks

started = time.perf_counter()
jit.ready()
ranks = [rank.function for rank in (*page_ranks().values(), *site_ranks().values())]
assert all(rank.address for rank in ranks)
seconds = time.perf_counter() - started

def seen(stored):
    text = stored.compiled.result.library.get_llvm_str() if stored.compiled else ""  # from the cache: machine code alone
    return {
        "hits": int(stored.was_loaded),
        "misses": int(stored.compiled is not None),
        "counting": sorted(set(re.findall(r"NRT_\\w+", text))),
        "shared": text.count("linkonce_odr"),
        "private": len(re.findall(r"^define internal ", text, re.M)),
    }

def counts_references():
    from numba import njit
    from trapline.compiled.compiler import FLAGS
    control = njit("f8[::1](f8[::1])", **{**FLAGS, "_nrt": True})(lambda a: a[1:])
    (compiled,) = control.overloads.values()
    return "NRT_incref" in compiled.library.get_llvm_str()

print(json.dumps({
    "seconds": seconds,
    "specialisations": jit.specialisations(),
    "functions": len(jit._helpers) + len(jit._kernels),
    "kernels": {each.py_func.__name__: seen(each) for each in jit._kernels},
    "ranks": {r.function.__name__: seen(r.stored) for r in ranks},
    "imports_numba": "numba" in sys.modules,
    "control": counts_references(),
    "files": sorted({f.__code__.co_filename for f in [d.py_func for d in jit._helpers + jit._kernels] + [r.function for r in ranks]}),
}))
"""


def python(source: str, cache: Path, root: Path = PACKAGE.parent, **variables: str) -> str:
    """The output of a new process. It writes no bytecode, which would hide an edit made within the same second."""
    own = {"TRAPLINE_CACHE": str(cache), "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {**os.environ, **own, **variables}
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
    # In one process, which then has all that was compiled.
    answer: dict[str, Any] = json.loads(python(PROBE, cache, TRAPLINE_COMPILE_PROCESSES="1"))
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

class Seen(Exception): pass

def stop(**given):  # what the warm-up would compile, without compiling it
    raise Seen(len(jit._kernels))

jit.ready = stop
try:
    warmup.compile_all()
except Seen as found:
    (seen,) = found.args
for module in pkgutil.walk_packages(trapline.__path__, "trapline."):
    if ".ray" not in module.name and not module.name.endswith("__main__"):
        import_module(module.name)
print([kernel.py_func.__name__ for kernel in jit._kernels[seen:]])
"""


def test_the_warm_up_compiles_every_kernel() -> None:
    """Otherwise the first command that needs a missing kernel would wait for it."""
    done = subprocess.run(
        [sys.executable, "-c", WARMUP], capture_output=True, text=True, env=os.environ | {"NUMBA_DISABLE_JIT": "0"}
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


CALLED = """
from trapline.cli import warmup
from trapline.compiled import jit
from trapline.compiled.sources import callees

class Imported(Exception): pass

def stop(**given):
    raise Imported

jit.ready = stop
try:
    warmup.compile_all()
except Imported:
    pass
kernels = [kernel.py_func for kernel in jit._kernels]
named = {callee for function in [*kernels, *(helper.py_func for helper in jit._helpers)] for callee in callees(function)}
print(len(kernels) > 50, [kernel.__name__ for kernel in kernels if kernel in named])
"""


def test_no_kernel_is_called_by_compiled_code() -> None:
    """Files of kernels contain nothing that could be linked into other functions."""
    done = subprocess.run(
        [sys.executable, "-c", CALLED], capture_output=True, text=True, env=os.environ | {"NUMBA_DISABLE_JIT": "0"}
    )
    assert (done.stdout, done.stderr) == ("True []\n", "")


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
    assert cold["imports_numba"] and not warm["imports_numba"]
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


@pytest.mark.parametrize("source", sample(SOURCES, 12))
def test_an_edit_of_any_source_gives_another_cache(source: str, copied: Path) -> None:
    before, text = identity(copied), (copied / source).read_bytes()
    assert identity(copied) == before
    (copied / source).write_bytes(text + b"\n")
    edited = identity(copied)
    (copied / source).unlink()
    removed = identity(copied)
    (copied / source).write_bytes(text)
    assert len({before, edited, removed}) == 3
    assert identity(copied) == before


def test_copies_of_one_package_have_one_cache(copied: Path) -> None:
    assert identity(copied) == identity(PACKAGE) == kernel_files.IDENTITY


@pytest.mark.parametrize("name", ["BOUNDSCHECK", "OPT", "SLP_VECTORIZE"])
def test_a_setting_of_numba_that_changes_code_gives_another_cache(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, name, 7)
    assert identity(PACKAGE) != kernel_files.IDENTITY


@pytest.mark.parametrize("module", ["numba", "llvmlite", "numpy"])
def test_another_version_of_a_library_gives_another_cache(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if module == "numba":
        monkeypatch.setattr(numba_settings, "numba_version", lambda: b"99.9.9")
    else:
        monkeypatch.setattr(f"{module}.__version__", "99.9.9")
    assert identity(PACKAGE) != kernel_files.IDENTITY


@pytest.mark.parametrize("folder", ["frontier", "strategies", "graph", "simulate", "", "new/folder"])
def test_a_new_kernel_file_gives_another_cache(folder: str, copied: Path) -> None:
    before = identity(copied)
    new = copied / folder / "brand_new.py"
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_text("from trapline.compiled.jit import kernel\n\n@kernel('void()')\ndef nothing():\n    pass\n")
    after = identity(copied)
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
(hits,) = [int(kernel.was_loaded) for kernel in jit._kernels]
print(json.dumps({"out": out.tolist(), "hits": hits, "most": max(jit.specialisations().values())}))
"""


@pytest.fixture(scope="module")
def chained(copied: Path) -> Path:
    for file, text in CHAIN.items():
        (copied / file).parent.mkdir(exist_ok=True)
        (copied / file).write_text(text)
    return copied


def drawn(package: Path, cache: Path, **variables: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(python(DRAW, cache, package.parent, **variables))
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
    (file,) = cache.rglob("trapline.second_chain.of_own_helpers-*.kernel")
    file.unlink()
    second = python(load.format("trapline.chain, trapline.second_chain"), cache, chained.parent)
    assert json.loads(second) == json.loads(first) | {"drawn": 0}


FIRST_CALL = """
import json
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from trapline.compiled import jit
from trapline.chain import draws
from trapline.second_chain import of_a_module, of_own_helpers

out = np.zeros(4)
with ThreadPoolExecutor(4) as threads:
    for done in [threads.submit(draws, 7, out) for _ in range(4)]:
        done.result()
first = jit.specialisations()
try:
    draws(7, "text")
except TypeError as error:
    refused = "argument 2 is not an array of float64" in str(error)
reported = []
jit.ready(within=["trapline.second_chain", "trapline.chai"], progress=lambda *step: reported.append(step))
print(json.dumps({"out": out.tolist(), "first": first, "refused": refused, "reported": reported, "last": jit.specialisations()}))
"""


@compiled_only
def test_a_kernel_becomes_ready_when_it_is_first_called(chained: Path, cache: Path, tmp_path: Path) -> None:
    """For its own signature, whatever it is called with, and no other kernel with it."""
    found = json.loads(python(FIRST_CALL, tmp_path / "cache", chained.parent))
    assert {name for name, count in found["first"].items() if count} == {"draws", "drawn"}
    assert set(found["last"].values()) == {1}
    assert found["refused"] and found["out"] == drawn(chained, cache)["out"]
    names = ["halved", "quartered", "of_own_helpers", "of_a_module"]
    assert found["reported"] == [[number, 4, name] for number, name in enumerate(names)]


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
def test_the_same_sources_in_another_folder_share_the_cache(chained: Path, cache: Path, tmp_path: Path) -> None:
    """Another clone or another environment compiles nothing."""
    whole = drawn(chained, cache)
    shutil.copytree(chained, tmp_path / "trapline", ignore=shutil.ignore_patterns("__pycache__"))
    assert drawn(tmp_path / "trapline", cache) == whole | {"hits": 1}
    assert not [file for file in cache.rglob("*.kernel") if str(chained).encode() in file.read_bytes()]


def kernels_in(cache: Path) -> list[Path]:
    files = list(cache.rglob("*.kernel"))
    assert files
    return files


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def overwritten(file: Path) -> None:
    file.write_bytes(b"nonsense" * 100)


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def one_bit_flipped(file: Path) -> None:
    """In the machine code, which would run."""
    whole = bytearray(file.read_bytes())
    whole[whole.index(b".text")] ^= 1
    file.write_bytes(whole)


def unreadable(file: Path) -> None:
    file.unlink()
    file.mkdir()  # a file without permissions could be read by root


@slow
@compiled_only
@pytest.mark.parametrize(
    "damage",
    [pytest.param(d, marks=slow) for d in (emptied, overwritten, truncated, unreadable)] + [one_bit_flipped],
)
def test_a_damaged_cache_is_compiled_again(chained: Path, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    cache = tmp_path / "cache"
    whole = drawn(chained, cache)
    for file in kernels_in(cache):
        damage(file)
    assert drawn(chained, cache) == whole  # compiled: no hits, and each helper for one signature
    assert drawn(chained, cache)["hits"] == (damage is not unreadable)


@compiled_only
@slow
def test_the_kernel_of_other_sources_does_not_run_under_the_name_of_these(chained: Path, tmp_path: Path) -> None:
    """Each file says which identity it has, so that a renamed folder or a copied file is not used."""
    cache, file = tmp_path / "cache", chained / "chained" / "constant.py"
    whole = drawn(chained, cache)
    (own,) = cache.iterdir()
    text = file.read_text()
    try:
        file.write_text("RANGE = 10.0")
        cache_of_edited = cache / identity(chained)
        own.rename(cache_of_edited)
        assert cache_of_edited != own
        (old,) = kernels_in(cache)
        edited = drawn(chained, cache)
        (new,) = set(kernels_in(cache)) - {old}
        assert edited["out"] != whole["out"] and not edited["hits"]
        new.write_bytes(old.read_bytes())
        assert drawn(chained, cache) == edited
    finally:
        file.write_text(text)


# A process imports a constant, and its file is edited before the process reads the sources.
IMPORTED_BEFORE = """
import sys
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location("trapline.chained.constant", {file!r})
sys.modules[spec.name] = module = module_from_spec(spec)
spec.loader.exec_module(module)
open({file!r}, "w").write("RANGE = 10.0")
"""
EDITED_LATER = DRAW.replace("jit.ready()", "open({file!r}, 'w').write('RANGE = 10.0')\njit.ready()")


@slow
@compiled_only
@pytest.mark.parametrize(
    ("source", "files"),
    [pytest.param(IMPORTED_BEFORE, 1, id="before"), pytest.param(EDITED_LATER, 0, id="after", marks=slow)],
)
def test_code_that_was_loaded_before_an_edit_is_not_used_as_that_of_the_edited_file(
    chained: Path, tmp_path: Path, source: str, files: int
) -> None:
    cache, file = tmp_path / "cache", chained / "chained" / "constant.py"
    text = file.read_text()
    source = source.replace("{file!r}", repr(str(file)))
    try:
        old = json.loads(python(source if source.count("jit.ready") else source + DRAW, cache, chained.parent))
        assert len(list(cache.rglob("*.kernel"))) == files  # named by the code that was loaded; not kept at all
        new = drawn(chained, cache)
    finally:
        file.write_text(text)
    assert not new["hits"] and new["out"] == [pytest.approx(number / 10) for number in old["out"]]


@compiled_only
@slow
def test_a_process_killed_while_it_writes_leaves_nothing_wrong(chained: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    killed = "import os\nreplace = os.replace\nos.replace = lambda *names: os.kill(os.getpid(), 9)\n" + DRAW
    environment = {**os.environ, "TRAPLINE_CACHE": str(cache), "PYTHONPATH": str(chained.parent)}
    done = subprocess.run([sys.executable, "-B", "-c", killed], env=environment, cwd=tmp_path, timeout=300)
    assert done.returncode == -9
    assert list(cache.rglob("*.tmp")) and not list(cache.rglob("*.kernel"))
    first, second = drawn(chained, cache), drawn(chained, cache)
    assert (first["hits"], second["hits"]) == (0, 1) and first["out"] == second["out"]


# A user's rank, in a file that imports another one.
RANK_FILE = """
import sys
sys.path.insert(0, {folder!r})
from constant import RANGE
from trapline.frontier.ranking import page_rank
from trapline.strategies import PageRank

@page_rank
def constant(s, page, link, site, is_first):
    return RANGE

PAGE = PageRank("constant", constant)
"""
# The compiled function writes its result to the first argument, and does not read the others.
CALL_BY_ADDRESS = """
import ctypes
from trapline.strategies.base.registry import page_rank_named

address = page_rank_named({file!r}).function.address
value = ctypes.c_double()
status = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)(ctypes.addressof(value), None)
print(status, value.value)
"""


@compiled_only
@slow
def test_an_edit_of_a_file_that_a_strategy_file_imports_changes_the_compiled_rank(tmp_path: Path, cache: Path) -> None:
    file, imported = tmp_path / "strategy.py", tmp_path / "constant.py"
    file.write_text(RANK_FILE.format(folder=str(tmp_path)))
    for number in (3.5, 4.5):
        imported.write_text(f"RANGE = {number}\n")
        assert python(CALL_BY_ADDRESS.format(file=str(file)), cache) == f"0 {number}\n"


# Kernels that came with the package.


@pytest.fixture(scope="module")
def prebuilt(chained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with compiled kernels for the plainest processor of the platform, as packaging/wheel.py makes it."""
    work = tmp_path_factory.mktemp("prebuilt")
    package = work / "trapline"
    shutil.copytree(chained, package, ignore=shutil.ignore_patterns("__pycache__"))
    drawn(package, work / "cache", NUMBA_CPU_NAME="generic")
    folder = kernel_files.prebuilt_folder(package, identity(package))
    shutil.copytree(work / "cache" / identity(package), folder)
    write_processor(folder, [])
    return package


def write_processor(folder: Path, needs: list[str], triple: str = "") -> None:
    processor = {"triple": triple or llvm.get_process_triple(), "name": "generic", "features": "", "needs": needs}
    (folder / kernel_files.PROCESSOR_FILE).write_text(json.dumps(processor))


@compiled_only
def test_a_prebuilt_kernel_is_loaded_and_nothing_is_written(prebuilt: Path, chained: Path, tmp_path: Path) -> None:
    found = drawn(prebuilt, tmp_path / "cache")
    assert found["hits"] == 1 and not (tmp_path / "cache").exists()
    assert found["out"] == drawn(chained, tmp_path / "cache")["out"]


@slow
@compiled_only
def test_a_kernel_for_this_very_processor_is_preferred_to_a_prebuilt_one(prebuilt: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert drawn(prebuilt, cache, TRAPLINE_PREBUILT="0")["hits"] == 0
    (kernel,) = kernels_in(cache)
    truncated(kernel)
    assert drawn(prebuilt, cache)["hits"] == 1  # the prebuilt one, because that in the cache is damaged
    assert drawn(prebuilt, cache, TRAPLINE_PREBUILT="0")["hits"] == 0
    assert drawn(prebuilt, cache, TRAPLINE_PREBUILT="0")["hits"] == 1


@compiled_only
@pytest.mark.parametrize(
    ("needs", "triple"), [(["sse99"], ""), pytest.param([], "other-unknown-linux-gnu", marks=slow)]
)
def test_a_prebuilt_kernel_that_this_processor_cannot_run_is_not_loaded(
    prebuilt: Path, tmp_path: Path, needs: list[str], triple: str
) -> None:
    folder = kernel_files.prebuilt_folder(prebuilt, identity(prebuilt))
    write_processor(folder, needs, triple)
    try:
        assert drawn(prebuilt, tmp_path / "cache")["hits"] == 0
    finally:
        write_processor(folder, [])


@compiled_only
@pytest.mark.parametrize("damage", [truncated, pytest.param(one_bit_flipped, marks=slow)])
def test_a_damaged_prebuilt_kernel_is_compiled(prebuilt: Path, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    (kernel,) = kernels_in(prebuilt)
    whole = kernel.read_bytes()
    damage(kernel)
    try:
        assert drawn(prebuilt, tmp_path / "cache")["hits"] == 0
    finally:
        kernel.write_bytes(whole)


@slow
@compiled_only
def test_prebuilt_kernels_of_edited_sources_are_not_loaded(prebuilt: Path, tmp_path: Path) -> None:
    """Also if the folder is renamed to the identity of the edited sources."""
    file, before = prebuilt / "chained" / "constant.py", kernel_files.prebuilt_folder(prebuilt, identity(prebuilt))
    text, whole = file.read_text(), drawn(prebuilt, tmp_path / "cache")
    try:
        file.write_text("RANGE = 10.0")
        after = kernel_files.prebuilt_folder(prebuilt, identity(prebuilt))
        before.rename(after)
        edited = drawn(prebuilt, tmp_path / "cache")
        after.rename(before)
    finally:
        file.write_text(text)
    assert not edited["hits"]
    assert edited["out"] == [pytest.approx(number / 10) for number in whole["out"]]


# Several processes at once.

# As a command would: with the output that the user reads.
COMMAND = DRAW.replace("jit.ready()", "from trapline.cli.terminal.progress import compile_kernels; compile_kernels()")


@pytest.fixture
def empty(chained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder into which processes of the copied package compile."""
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(chained.parent))
    folder = cache_folder.cache_folder(identity(chained))
    assert cache_folder.make(folder)
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

jit.ready(progress=compile_another)
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
assert not jit._unready
"""
    for expected in (0, 1):
        answer = json.loads(python(DRAW.replace("jit.ready()", together), tmp_path / "cache", chained.parent))
        assert (answer["hits"], answer["most"]) == (expected, 1)


# The place of the cache.


def test_a_cache_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are executed."""
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path / "cache"))
    chosen = cache_folder.cache_folder("0" * 20)
    assert not cache_folder.is_ours(chosen)
    assert cache_folder.make(chosen) and cache_folder.make(chosen) and cache_folder.is_ours(chosen)
    uid = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: uid + 1)
    assert not cache_folder.is_ours(chosen) and not cache_folder.make(chosen)


def test_a_link_or_a_file_in_the_place_of_the_cache_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "file").touch()
    for taken in (tmp_path / "link", tmp_path / "file", tmp_path / "file" / "cache"):
        assert not cache_folder.make(taken)


@slow
@compiled_only
def test_a_cache_is_private_whatever_the_umask(chained: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    before = os.umask(0)
    try:
        drawn(chained, cache)
        (made,) = cache.iterdir()
        assert made.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in made.glob("*.kernel")} == {0o600}
        made.chmod(0o777)
        drawn(chained, cache)
        assert made.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


@compiled_only
def test_a_process_whose_cache_cannot_be_written_works(chained: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    first = drawn(chained, tmp_path / "file")
    assert len(set(first["out"])) == 4
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


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
    gone = {int(folder.name, 16) for folder in cache_folder._superfluous(tmp_path, now)}
    assert gone == {10, 11, 12}  # 33 and 34 hours, 31 days


def test_what_a_command_compiles_at_its_start_exists() -> None:
    """A name without a module would leave its kernels to their first calls, without a progress line."""
    for name in (*LIVE_CRAWL, *SIMULATED_CRAWL, *ARCHIVED_PAGES, *REPORT):
        module, _, last = name.rpartition(".")
        found = import_module(module)
        assert hasattr(found, last) or import_module(name), name


@compiled_only
def test_no_kernel_contains_the_path_of_its_source() -> None:
    """Such a kernel is missing in a wheel (packaging/wheel.py): numba writes the path where a function can raise an error."""
    kernels = list(kernel_files.CACHE.glob("trapline.*.kernel"))
    assert kernels and [file.name for file in kernels if str(PACKAGE).encode() in file.read_bytes()] == []
