"""The core only decides: it imports no clock, no IO and no random numbers. No modules import each other, not even for their types.

import-linter checks the layers (pyproject.toml). It rejects a package that does not exist yet, and its layers may hold cycles, so these
laws are tested here.
"""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import trapline

PACKAGE = Path(trapline.__file__).parent
FORBIDDEN = {"asyncio", "random", "ray", "socket", "time"}
CORE_FILES = sorted(file for part in ("frontier", "strategies", "refresh") for file in (PACKAGE / part).rglob("*.py"))


def imported(source: str) -> Iterator[str]:
    """The top-level names of all modules that a source imports, anywhere in the file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("file", CORE_FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_the_core_imports_no_clock_no_io_and_no_random_numbers(file: Path) -> None:
    assert not FORBIDDEN.intersection(imported(file.read_text(encoding="utf-8")))


def test_an_import_is_found_anywhere_in_a_file() -> None:
    source = "import os.path\ndef f():\n    from time import monotonic\n    import numpy, asyncio.events as e\n"
    assert set(imported(source)) == {"os", "time", "numpy", "asyncio"}


def test_no_modules_import_each_other() -> None:
    graph = grimp.build_graph("trapline", cache_dir=None)  # of import-linter
    names = {trapline.__name__}  # imports all public names, for the type checker alone
    imports = {module: graph.find_modules_directly_imported_by(module) - names for module in graph.modules}
    assert len(imports) > 500
    TopologicalSorter(imports).prepare()  # a `CycleError` names the modules
