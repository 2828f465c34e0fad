"""The source files of the compiled code: every file that can change it, and no others."""

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

import trapline
from trapline.compiled.jit import Rank
from trapline.compiled.sources import compiled_sources
from trapline.refresh import all_policies
from trapline.strategies import page_ranks, site_ranks

PACKAGE = Path(trapline.__file__).parent
COMPILING = {"kernel", "helper", "shared", "page_rank", "site_rank", "rule"}
KERNEL = "from trapline.compiled.jit import kernel\n{}\n@kernel('void()')\ndef one():\n    pass\n"


@pytest.fixture(scope="module")
def found() -> set[str]:
    return set(compiled_sources(PACKAGE))


def parsed(file: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse((PACKAGE / file).read_text())))


def imports(file: str) -> Iterator[tuple[str, str]]:
    """Each import of the package as module and name, read by Python's own grammar."""
    for node in parsed(file):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "trapline")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module
            yield from ((node.module, alias.name) for alias in node.names if node.module.split(".")[0] == "trapline")


def homes(module: str, name: str) -> Iterator[str]:
    """The file in which a name is defined, and the package that re-exports it."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    for file in (place / f"{name}.py", place / name / "__init__.py", place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            yield file.relative_to(PACKAGE).as_posix()
    if place.is_dir():
        package = (place / "__init__.py").relative_to(PACKAGE).as_posix()
        yield from (file for origin, same in imports(package) if same == name for file in homes(origin, same))


def imported(file: str) -> set[str]:
    return {found for module, name in imports(file) for found in homes(module, name)}


def compiles(file: str) -> bool:
    from_jit = {
        name for module, name in imports(file) if module in ("trapline.compiled.jit", "trapline.frontier.ranking")
    }
    attributes = [node for node in parsed(file) if isinstance(node, ast.Attribute)]
    through_jit = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "jit"}
    return bool(COMPILING & (from_jit | through_jit))


def test_every_file_that_can_compile_is_a_source(found: set[str]) -> None:
    compiling = {file for path in PACKAGE.rglob("*.py") if compiles(file := path.relative_to(PACKAGE).as_posix())}
    assert len(compiling) > 50
    assert compiling - found == set()


def test_every_import_of_a_source_is_a_source(found: set[str]) -> None:
    """A kernel contains the constants that its file imports, so those files are sources too."""
    followed = {file for file in found if not file.endswith("__init__.py")}
    wanted = {other for file in followed for other in imported(file)}
    assert len(wanted) > 20
    assert wanted - found == set()


@pytest.mark.parametrize(
    "file",
    [
        "strategies/base/inputs.py",
        "graph/load.py",
        "graph/generate.py",
        "crawler/visits/visit.py",
        "simulator/timing.py",
    ],
)
def test_a_file_that_only_calls_compiled_code_is_not_a_source(found: set[str], file: str) -> None:
    assert (PACKAGE / file).is_file() and file not in found


# ---- the ways to import


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Constants in plain.py, re-exported by a package. Nothing imports others.py."""
    for file, text in {
        "__init__.py": "",
        "compiled/jit.py": "def kernel(signature): ...\n",
        "plain.py": "from trapline.below import EIGHT\nSEVEN = 7\n",
        "below.py": "EIGHT = 8\n",
        "others.py": "",
        "inner/__init__.py": "from trapline.inner.twice import NINE as NEUN\nfrom trapline.plain import SEVEN\nOWN = 1\n",
        "inner/twice.py": "NINE = 9\n",
        "inner/others.py": "",
    }.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("", []),
        ("from trapline.plain import SEVEN", ["below.py", "plain.py"]),
        ("from trapline import plain", ["__init__.py", "below.py", "plain.py"]),
        ("from trapline import plain as renamed, below", ["__init__.py", "below.py", "plain.py"]),
        ("from trapline.plain import (\n    EIGHT,  # and no more\n    SEVEN as SIEBEN,\n)", ["below.py", "plain.py"]),
        ("from trapline.below import *", ["below.py"]),
        ("def late():\n    from trapline.below import EIGHT", ["below.py"]),
        ("if 1: from trapline.below import EIGHT", ["below.py"]),
        ("from trapline.inner import SEVEN", ["below.py", "inner/__init__.py", "plain.py"]),
        ("from trapline.inner import NEUN", ["inner/__init__.py", "inner/twice.py"]),
        ("from trapline.inner import OWN", ["below.py", "inner/__init__.py", "inner/twice.py", "plain.py"]),
        ("from trapline.inner import *", ["below.py", "inner/__init__.py", "inner/twice.py", "plain.py"]),
        ("from trapline.inner import twice", ["inner/__init__.py", "inner/twice.py"]),
        ("from trapline.inner.twice import NINE", ["inner/twice.py"]),
        ("import trapline.inner.twice", ["inner/twice.py"]),
        ("import trapline.inner", ["below.py", "inner/__init__.py", "inner/twice.py", "plain.py"]),
        ("import trapline.plain as renamed", ["below.py", "plain.py"]),
        ("from trapline.missing import NOTHING", []),
    ],
)
def test_a_constant_is_followed_to_its_definition(package: Path, line: str, files: list[str]) -> None:
    (package / "kernels.py").write_text(KERNEL.format(line))
    assert list(compiled_sources(package)) == sorted([*files, "compiled/jit.py", "kernels.py"])


@pytest.mark.parametrize(
    "line", ["@helper(i8(i8))", "@jit.kernel('void()')", "    @shared", "@page_rank", "@site_rank"]
)
def test_a_decorated_function_makes_its_file_a_source(package: Path, line: str) -> None:
    (package / "inner" / "others.py").write_text(f"import numpy\n\n{line}\ndef one():\n    pass\n")
    assert list(compiled_sources(package)) == ["inner/others.py"]


def test_every_function_called_by_address_is_in_a_source(found: set[str]) -> None:
    """Whatever its decorator: ranks of strategies, rules of refresh policies, and later kinds."""
    assert page_ranks() and site_ranks() and all_policies()
    made = {one.function.__code__.co_filename for one in gc.get_objects() if type(one) is Rank}
    ours = {Path(file).relative_to(PACKAGE).as_posix() for file in made if Path(file).is_relative_to(PACKAGE)}
    assert {"strategies/opic.py", "refresh/policies/cgm.py"} <= ours
    assert ours - found == set()
