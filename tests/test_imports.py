"""The core decides and nothing else: it imports no clock, no IO and no chance.

The layers are import-linter's (pyproject.toml). This is here because that tool rejects a package that does not
exist yet, and the law must already hold on the day `refresh` is begun.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import trapline

PACKAGE = Path(trapline.__file__).parent
FORBIDDEN = {"asyncio", "random", "ray", "socket", "time"}
CORE_FILES = sorted(file for part in ("frontier", "strategies", "refresh") for file in (PACKAGE / part).rglob("*.py"))


def imported(source: str) -> Iterator[str]:
    """The top-level names of all modules that a source imports, wherever in the file it does so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("file", CORE_FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_the_core_imports_no_clock_no_io_and_no_chance(file: Path) -> None:
    assert not FORBIDDEN.intersection(imported(file.read_text(encoding="utf-8")))


def test_an_import_is_found_wherever_it_stands() -> None:
    source = "import os.path\ndef f():\n    from time import monotonic\n    import numpy, asyncio.events as e\n"
    assert set(imported(source)) == {"os", "time", "numpy", "asyncio"}
