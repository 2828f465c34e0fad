"""What commands import when everything that they need is compiled: not numba, and not what other commands need."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawler.small_server import NOT_FOUND, SmallServer, page, small_server
from trapline.compiled import jit

compiled_only = pytest.mark.skipif(jit.DISABLED, reason="NUMBA_DISABLE_JIT=1: nothing is compiled")

# Python imports this module at the start of every process.
NOTES_AT_EXIT = """
import atexit, json, os, sys

def note():
    with open(os.path.join(os.environ["NOTES"], str(os.getpid())), "w") as file:
        json.dump([sys.argv[0], sorted(sys.modules)], file)

atexit.register(note)
"""
COMPILER = {"numba", "trapline.compiled.compiler", "trapline.compiled.intrinsics", "trapline.compiled.entry"}
OF_OTHER_COMMANDS = {
    *("matplotlib", "pyarrow", "ray", "scipy"),
    *("trapline.dashboard.server", "trapline.lab", "trapline.export", "trapline.refresh.replay", "trapline.testweb"),
}
OF_SIMULATIONS = {"trapline.simulator", "trapline.report", "trapline.graph.load", "trapline.graph.formats.bvgraph"}
OF_LIVE_CRAWLS = {"asyncio", "ssl", "uvloop", "trapline.crawler.store", "trapline.crawler.visits"}


@pytest.fixture(scope="module")
def server() -> Iterator[SmallServer]:
    with small_server(lambda _, target: page() if target == "/" else NOT_FOUND, ["127.0.0.1"]) as found:
        yield found


def imported(words: list[str], folder: Path) -> dict[str, set[str]]:
    """Run a command a second time. Return the modules that each of its processes imported, by the name of its main file."""
    (folder / "sitecustomize.py").write_text(NOTES_AT_EXIT)
    for attempt in ("first", "second"):  # the first one compiles what is not in the cache
        notes = folder / attempt
        notes.mkdir()
        environment = {**os.environ, "PYTHONPATH": str(folder), "NOTES": str(notes)}
        code = "from trapline.cli import main; main()"
        command = [sys.executable, "-c", code, *(word.replace("OUT", f"crawl-{attempt}") for word in words)]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    found = [json.loads(note.read_text()) for note in (folder / "second").iterdir()]
    return {Path(program).parent.name + "/" + Path(program).name: set(modules) for program, modules in found}


@compiled_only
def test_a_crawl_imports_no_numba_and_its_store_no_numpy(server: SmallServer, tmp_path: Path) -> None:
    words = ["crawl", f"http://127.0.0.1:{server.port}/", "--allow-private", "--max-pages", "1", "-o", "OUT"]
    found = imported(words, tmp_path)
    crawl, store = found.pop("/-c"), found.pop("store/__main__.py")
    assert not found
    assert "trapline.frontier.core.kernels" in crawl  # the process has noted its modules
    assert set() == (COMPILER | OF_OTHER_COMMANDS | OF_SIMULATIONS | {"trapline.fetch.css"}) & crawl
    assert "sqlite3" in store and not {"numpy", "llvmlite", "asyncio", "trapline.frontier"} & store


@compiled_only
def test_processes_of_a_crawl_import_no_numba(server: SmallServer, tmp_path: Path) -> None:
    words = [
        "crawl",
        f"http://127.0.0.1:{server.port}/",
        "--allow-private",
        "--max-pages",
        "1",
        "-o",
        "OUT",
        "--processes",
        "2",
    ]
    found = imported(words, tmp_path)
    assert "trapline.parallel.live.supervisor" in found["/-c"]
    assert "trapline.frontier.core.kernels" in found["live/worker.py"]
    assert not [
        name for name, modules in found.items() if (COMPILER | OF_OTHER_COMMANDS | {"trapline.simulator"}) & modules
    ]
    assert "click" not in found["live/worker.py"]


@compiled_only
def test_a_simulated_crawl_imports_no_numba_and_nothing_of_live_crawls(tmp_path: Path) -> None:
    (modules,) = imported(["simulate", "python-docs", "--strategy", "opic", "--max-pages", "100"], tmp_path).values()
    assert "trapline.simulator.driver" in modules
    assert set() == (COMPILER | OF_OTHER_COMMANDS | OF_LIVE_CRAWLS) & modules
