"""`trapline demo` crawls one web live with a few strategies, and writes a table and a page."""

import json
from pathlib import Path

import pytest

from trapline.cli import run
from trapline.cli.demo.command import PAGE, PAGE_RANKS, VALUES
from trapline.cli.demo.rounds import Collected, collected, findings, median_round, rounds_table
from trapline.cli.demo.web import HURRY, servers_of
from trapline.graph import generate
from trapline.servers.sampled import modelled_servers
from trapline.testweb import build_web

Captured = pytest.CaptureFixture[str]
SMALL = ["--pages", "300", "--sites", "12", "--max-time", "0.5", "--rounds", "1"]


def test_the_demo_crawls_with_a_few_strategies_and_names_its_page(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new" / "demo"
    assert run(["demo", *SMALL, "-o", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "300 pages" in said
    lines = (folder / VALUES).read_text().splitlines()[1:]
    values = {url: float(value) for url, value in (line.split("\t") for line in lines)}
    for name in PAGE_RANKS:
        assert f"\n{name} " in said
        summary = json.loads((folder / name / "1" / "summary.json").read_text())
        assert summary["politeness_violations"] == 0
        # Measured by the true values of the web, whatever the page rank uses. A crawl of a part of the web has a part of 1.
        assert 0.0 < summary["quality"] <= 1.0 + 1e-9
        whole = collected(folder / name / "1", 3600.0, values)
        assert (whole.share, whole.pages) == (pytest.approx(summary["quality"]), summary["pages_fetched"])
        assert collected(folder / name / "1", 0.0, values).pages == 0
    page = folder / "report.html"
    assert said.endswith(f"Open {page} in a browser.\n")
    assert "One round does not show which differences mean something; give --rounds 3 or more." in said
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


# ---- Which differences mean something.


def crawls(*shares: float) -> list[Collected]:
    return [Collected(Path(str(at)), share, 100 + at, at, 0) for at, share in enumerate(shares, 1)]


def test_a_lead_in_every_round_means_something_even_if_rounds_differ_more_than_strategies() -> None:
    said = findings({"slow": crawls(0.10, 0.20, 0.30), "fast": crawls(0.15, 0.26, 0.35)})
    assert said.startswith(
        "fast collected most on average of 3 rounds. It is ahead of slow: the 95 % confidence interval"
    )


def test_a_lead_that_another_run_may_turn_round_is_not_clear() -> None:
    said = findings({"one": crawls(0.20, 0.21, 0.25), "two": crawls(0.21, 0.20, 0.22), "slow": crawls(0.1, 0.1, 0.1)})
    assert "It is ahead of slow:" in said
    assert said.endswith(
        "Its lead over two is not clear: another run may order them differently. More rounds show more."
    )


def test_the_table_has_means_and_intervals() -> None:
    head, row = rounds_table({"one": crawls(0.5, 0.6, 0.7)}).splitlines()
    assert head.split("  ")[0] == "strategy"
    assert row.split() == ["one", "60.0", "±", "24.8", "102", "2", "0"]


def test_the_page_shows_the_median_round() -> None:
    assert median_round(crawls(0.3, 0.1, 0.2)).share == 0.2
    assert median_round(crawls(0.3, 0.1)).share == 0.3
