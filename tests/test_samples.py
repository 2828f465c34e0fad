"""The samples load by name, say where they come from, and yield to a user's own files. No default lies outside the repository."""

import json
import re
from pathlib import Path

import pytest

from trapline import samples
from trapline.cli import run
from trapline.graph import load_graph
from trapline.refresh import load_trace

ROOT = Path(__file__).parent.parent
FOLDER = Path(samples.__file__).parent
PLACES = ("src", "bench", "docs", "examples", "tests", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")
TEXTS = {".py", ".md", ".toml", ".yaml", ".yml", ".html", ".js", ".css", ".txt", ""}


def test_the_trace_has_the_published_counts() -> None:
    trace = load_trace("peps", whole=True)
    assert (trace.name, trace.pages, trace.updates, trace.sites) == ("peps", 742, 16_878, 1)


def test_the_graph_has_the_counts_of_its_crawl() -> None:
    graph = load_graph("python-docs")
    assert (graph.pages, graph.links, graph.sites) == (527, 16_041, 1)
    assert graph.sizes is not None and int(graph.sizes.sum()) == 50_659_063


def test_every_folder_is_a_named_sample_and_states_origin_and_licence() -> None:
    folders = {folder.name for folder in FOLDER.iterdir() if folder.is_dir() and folder.name != "__pycache__"}
    assert folders == {*samples.TRACES, *samples.GRAPHS}
    for name in folders:
        origin = (FOLDER / name / "ORIGIN.txt").read_text(encoding="utf-8")
        assert all(re.search(rf"^{word}:\s+\S", origin, re.M) for word in ("Source", "Recorded", "Licence")), name
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) < 150_000


def test_a_file_of_the_user_comes_before_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peps").write_text("unix_ts\tpage\n0\ta\n9\ta\n")
    monkeypatch.chdir(tmp_path)
    assert load_trace("peps").pages == 1


def test_commands_accept_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "python-docs", "--strategy", "opic", "--max-pages", "100"]) == 0
    assert run(["graph", "info", "python-docs", "--json"]) == 0
    capsys.readouterr()
    assert run(["refresh", "replay", "peps", "--policy", "uniform", "--seeds", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trace"]["pages"] == 742
    assert run(["graph", "info", "peps"]) == 2
    assert run(["refresh", "replay", "absent"]) == 2
    assert "or the sample peps" in capsys.readouterr().err


def test_nothing_names_a_folder_beside_the_repository() -> None:
    outside = re.compile(r"\.\./" + "shared" + r"|--" + r"shared\b|[\"']" + r"shared[\"'] */")
    named = [
        f"{file.relative_to(ROOT)}:{number}"
        for place in PLACES
        for file in ([ROOT / place] if (ROOT / place).is_file() else sorted((ROOT / place).rglob("*")))
        if file.is_file() and file.suffix in TEXTS and "__pycache__" not in file.parts
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if outside.search(line)
    ]
    assert named == []
