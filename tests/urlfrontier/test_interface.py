"""The interface: the compiled messages are those of the .proto file, the guide describes each call, its example runs, and no other command
imports grpcio."""

import re
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
from grpc_tools import protoc

from tests.urlfrontier.service_world import running
from trapline.urlfrontier.messages import CALLS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "trapline" / "urlfrontier"
GUIDE = (ROOT / "docs" / "how-to" / "urlfrontier.md").read_text()


def test_the_compiled_messages_are_those_of_the_proto_file(tmp_path: Path) -> None:
    """`make protocol` compiles them again."""
    out = tmp_path / "compiled"
    assert protoc.main(["protoc", f"-I{PACKAGE}", f"--descriptor_set_out={out}", "urlfrontier.proto"]) == 0
    assert out.read_bytes() == (PACKAGE / "urlfrontier.binpb").read_bytes()


def test_the_guide_describes_each_call() -> None:
    table = GUIDE[GUIDE.index("## The calls") : GUIDE.index("## Limits")]
    named = {
        name for row in table.splitlines() if row.startswith("|") for name in re.findall(r"\w+", row.split("|")[1])
    }
    assert named - {"call"} == set(CALLS)


def test_the_example_runs_and_is_in_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = ROOT / "examples" / "urlfrontier_client.py"
    assert f"```python\n{example.read_text()}```" in GUIDE
    with running(tmp_path / "f") as client:
        (node,) = client.stub.ListNodes(CALLS["ListNodes"].request()).values
        monkeypatch.setattr(sys, "argv", [str(example), node, "http://a.example/", "http://b.example/"])
        runpy.run_path(str(example))
        dates = [client.status(url).known.refetchable_from_date for url in sys.argv[2:]]
    assert all(time.time() + 80_000 < date < time.time() + 90_000 for date in dates)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "{'http://a.example/': 0, 'http://b.example/': 0}"
    assert sorted(lines[1:]) == ["a.example http://a.example/", "b.example http://b.example/"]


def test_only_this_service_imports_grpc() -> None:
    """Not the other commands, and not its help."""
    imports = re.compile(r"^\s*(import|from) (grpc|google)\b", re.M)
    users = {file.parent for file in (ROOT / "src").rglob("*.py") if imports.search(file.read_text())}
    assert users == {PACKAGE, ROOT / "src" / "trapline" / "cli" / "serve"}
    script = (
        "import sys; from trapline.cli import run\n"
        "assert run(['serve', 'urlfrontier', '--help']) == 0\n"
        "assert not {'grpc', 'google.protobuf'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL).returncode == 0


def test_without_grpcio_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from trapline.cli import run

    monkeypatch.setitem(sys.modules, "grpc", None)
    assert run(["serve", "urlfrontier", str(tmp_path / "f")]) == 2
    assert "pip install 'trapline[urlfrontier]'" in capsys.readouterr().err and not (tmp_path / "f").exists()
