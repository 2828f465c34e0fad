"""packaging/wheel.py: the archive of a wheel with compiled kernels is one that pip accepts."""

import base64
import csv
import hashlib
import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

SCRIPT = Path(__file__).parent.parent / "packaging" / "wheel.py"
INFO = "trapline-0.1.0.dist-info"
FILES = {
    "trapline/__init__.py": b"",
    "trapline/compiled/prebuilt/0/a, b.kernel": b"\0\1\2",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nGenerator: uv\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/RECORD": b"of the wheel without kernels",
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheel_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = script.write_wheel(FILES, tmp_path_factory.mktemp("wheel"))
    return made


def test_the_name_says_that_the_wheel_is_for_this_python_and_platform_only(wheel: Path) -> None:
    name, version, _, tags = parse_wheel_filename(wheel.name)
    assert (name, str(version)) == ("trapline", "0.1.0")
    assert tags & set(sys_tags())
    assert not any(tag.platform == "any" or tag.interpreter.startswith("py") for tag in tags)


def test_the_metadata_has_the_tags_of_the_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        lines = archive.read(f"{INFO}/WHEEL").decode().splitlines()
    tags = {line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")}
    assert tags == {str(tag) for tag in parse_wheel_filename(wheel.name)[3]}
    assert [line for line in lines if line.startswith("Root")] == ["Root-Is-Purelib: false"]
    assert lines[0] == "Wheel-Version: 1.0"


def test_the_record_has_every_file_with_its_hash(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    rows = {row[0]: row[1:] for row in csv.reader(content[f"{INFO}/RECORD"].decode().splitlines())}
    assert rows.keys() == content.keys() == FILES.keys()
    assert rows.pop(f"{INFO}/RECORD") == ["", ""]
    for name, (digest, size) in rows.items():
        expected = base64.urlsafe_b64encode(hashlib.sha256(content[name]).digest()).rstrip(b"=").decode()
        assert (digest, int(size)) == (f"sha256={expected}", len(content[name]))


def test_equal_files_make_equal_wheels(script: ModuleType, wheel: Path, tmp_path: Path) -> None:
    assert script.write_wheel(FILES, tmp_path).read_bytes() == wheel.read_bytes()


def test_a_function_that_contains_the_path_of_the_clone_is_left_out(
    script: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    telling = {"b.kernel": b"x" + str(script.ROOT).encode() + b"/src"}
    assert script.without_paths({"a.kernel": b"/elsewhere", **telling}) == {"a.kernel": b"/elsewhere"}
    assert "b.kernel" in capsys.readouterr().err
