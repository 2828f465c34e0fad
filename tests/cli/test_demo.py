"""`trapline demo` crawls one web live with a few strategies, and writes a table and a page."""

import json
from pathlib import Path

import pytest

from trapline.cli import run
from trapline.cli.demo import HURRY, PAGE, PAGE_RANKS, VALUES, servers_of
from trapline.graph import generate
from trapline.servers.sampled import modelled_servers
from trapline.testweb import build_web

Captured = pytest.CaptureFixture[str]
SMALL = ["--pages", "300", "--sites", "12", "--max-time", "0.5"]


def test_the_demo_crawls_with_a_few_strategies_and_names_its_page(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new" / "demo"
    assert run(["demo", *SMALL, "-o", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "300 pages" in said
    for name in PAGE_RANKS:
        assert f"\n{name} " in said
        summary = json.loads((folder / name / "summary.json").read_text())
        assert summary["politeness_violations"] == 0
        # Measured by the true values of the web, whatever the page rank uses. A crawl of a part of the web has a part of 1.
        assert 0.0 < summary["quality"] <= 1.0 + 1e-9
    page = folder / "report.html"
    assert said.endswith(f"Open {page} in a browser.\n")
    assert 'data-name="quality-time"' in page.read_text()


def test_servers_are_those_of_the_simulator_sped_up() -> None:
    graph = generate(200, 10, seed=1)
    servers = modelled_servers(graph, seed=3)
    web = build_web(graph, servers=servers_of(graph, seed=3))
    assert [one.connection_s * HURRY for one in web.behaviours] == pytest.approx(servers.connection_s.tolist())
    assert [one.bandwidth / HURRY for one in web.behaviours] == pytest.approx(servers.speed.tolist())
    assert all(one.http10 == (one.requests_per_connection == 1) for one in web.behaviours)
    latency_s = [web.latency(int(graph.site[page]), page) * HURRY for page in range(graph.pages)]
    assert latency_s == pytest.approx(servers.latency_s.tolist())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--pages", "10", "--sites", "11"], "--sites 11 is out of range; give a number from 1 to 10"),
        (["--seed", "-1"], "'--seed': -1"),
        (["--pages", "0"], "'--pages': 0"),
        (["--pages", "many"], "'many' is not a whole number"),
    ],
)
def test_invalid_options_are_reported_in_one_line(
    tmp_path: Path, capsys: Captured, options: list[str], named: str
) -> None:
    assert run(["demo", *options, "-o", str(tmp_path / "demo")]) == 2
    said = capsys.readouterr().err
    assert named in said and said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_created_is_reported_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("x")
    assert run(["demo", "-o", str(tmp_path / "file")]) == 2
    said = capsys.readouterr().err
    assert f"cannot write {tmp_path / 'file'}" in said and said.count("\n") == 1


@pytest.mark.parametrize("values", [None, "http://a.org/ 1.0\n"])
def test_only_the_output_of_a_demo_is_replaced(tmp_path: Path, capsys: Captured, values: str | None) -> None:
    (tmp_path / "crawl-ability").mkdir()
    if values:
        (tmp_path / VALUES).write_text(values)
    assert run(["demo", *SMALL, "-o", str(tmp_path)]) == 2
    assert "not from a demo" in capsys.readouterr().err
    assert (tmp_path / "crawl-ability").is_dir()


@pytest.mark.parametrize("name", [PAGE, VALUES])
def test_a_file_that_no_demo_wrote_is_kept(tmp_path: Path, capsys: Captured, name: str) -> None:
    (tmp_path / name).write_text("mine")
    assert run(["demo", *SMALL, "-o", str(tmp_path)]) == 2
    assert f"{name} exists and is not from a demo; choose another folder" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "mine"
