"""Every output names the version of Trapline that made it."""

import ast
import json
from importlib.metadata import version
from io import BytesIO
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from trapline.cli import run
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.opening import store_settings
from trapline.export.files import PARQUET, write_rows
from trapline.graph import generate, save
from trapline.report.html import PageFrame, filled
from trapline.report.plot import png_of
from trapline.terminal import say_json

VERSION = version("trapline")
COMMANDS = Path(__file__).parents[1] / "src" / "trapline" / "cli"
Captured = pytest.CaptureFixture[str]


def test_the_command_says_its_version(capsys: Captured) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"trapline, version {VERSION}\n"


def test_json_for_programs_begins_with_the_version(capsys: Captured) -> None:
    say_json({"pages": 1})
    say_json({"pages": 1}, one_line=True)
    long, short = capsys.readouterr().out.split("}\n")[:2]
    assert json.loads(long + "}") == json.loads(short + "}") == {"trapline": VERSION, "pages": 1}
    assert "\n" not in short and short.startswith('{"trapline": ')


def test_commands_print_json_through_say_json_alone() -> None:
    def uses_dumps(file: Path) -> bool:
        calls = (node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
        return any(ast.unparse(call) == "json.dumps" for call in calls)

    assert [file for file in COMMANDS.rglob("*.py") if uses_dumps(file)] == []


def test_pages_pictures_tables_graphs_and_archives_have_the_version(tmp_path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(1, 1))
    FigureCanvasAgg(picture)
    parts = dict.fromkeys(("headlines", "table", "same", "grids", "legend"), "")
    page = filled("page.html", PageFrame("t", "", {}, "", []), [], 1, **parts)
    assert f'<meta name="generator" content="Trapline {VERSION}">' in page and f"Made by Trapline {VERSION}." in page
    assert f"Software\0Trapline {VERSION}".encode() in png_of(picture)
    file = BytesIO()
    write_rows(file, PARQUET, pa.schema([("a", pa.int64())]), [(1,)])
    assert pq.read_schema(BytesIO(file.getvalue())).metadata[b"trapline"] == VERSION.encode()
    save(generate(20, 2, seed=1), tmp_path / "web")
    assert json.loads((tmp_path / "web" / "graph.json").read_text())["trapline"] == VERSION
    assert store_settings(CrawlOptions(("http://a.example/",))).software == f"Trapline {VERSION}"


def test_a_configuration_names_the_version_that_printed_it(capsys: Captured) -> None:
    assert run(["config", "https://example.org/"]) == 0
    assert capsys.readouterr().out.startswith(f"# trapline crawl --config, Trapline {VERSION}\n")
