"""`trapline graph`: its output, and one line with exit code 2 for invalid input."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.graph import examples
from trapline.cli import run
from trapline.cli.graph import RATES, SHAPE
from trapline.graph import EvolutionRates, WebModel, load_graph, measure_ranks, pagerank

Captured = pytest.CaptureFixture[str]


def test_generate_writes_a_graph_and_names_it(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "web"
    assert run(["graph", "generate", "--pages", "1000", "--sites", "20", "--seed", "3", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"wrote {out}: 1,000 pages" in said and "20 sites" in said and "100% reachable" in said
    assert load_graph(out).pages == 1000


def test_the_help_shows_the_defaults_of_the_model() -> None:
    model = asdict(WebModel(pages=1, sites=1))
    assert {name: default for name, (default, _) in SHAPE.items()} == {
        name: value for name, value in model.items() if name not in ("pages", "sites", "seed", "max_site_pages")
    }


def test_the_help_shows_the_defaults_of_the_rates() -> None:
    assert {name: default for name, (default, _) in RATES.items()} == asdict(EvolutionRates())


def test_parameters_reach_the_model(tmp_path: Path) -> None:
    out = tmp_path / "web"
    options = ["--links-per-page", "3", "--sites-per-ip", "4", "--dynamic", "0", "--max-site-pages", "90"]
    assert run(["graph", "generate", "--pages", "1000", "--sites", "20", *options, "-o", str(out)]) == 0
    model = load_graph(out).origin["model"]
    assert isinstance(model, dict)
    assert (model["links_per_page"], model["sites_per_ip"], model["dynamic"], model["seed"]) == (3, 4, 0, 1)
    assert model["max_site_pages"] == 90


def test_info_gives_the_same_as_text_and_as_json(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "web"
    assert run(["graph", "generate", "--pages", "1234", "--sites", "20", "-o", str(out)]) == 0
    capsys.readouterr()
    assert run(["graph", "info", str(out)]) == 0
    said = capsys.readouterr().out
    assert "1,234" in said and "e+0" not in said
    assert run(["graph", "info", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["pages"], found["sites"], found["reachable_share"]) == (1234, 20, 1)
    assert found["in_degree"]["max"] > 10 and "pagerank" not in found
    assert run(["graph", "info", str(out), "--pagerank", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["pagerank"]
    web = load_graph(out)
    assert found == asdict(measure_ranks(web, pagerank(web)))


def test_an_existing_graph_needs_replace(tmp_path: Path, capsys: Captured) -> None:
    command = ["graph", "generate", "--pages", "100", "--sites", "2", "-o", str(tmp_path / "web")]
    assert run(command) == 0
    assert run(command) == 2
    assert "--replace" in capsys.readouterr().err
    assert run([*command, "--replace"]) == 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--pages", "0", "--sites", "1"], "--pages"),
        (["--pages", "ten", "--sites", "1"], "--pages"),
        (["--pages", "10", "--sites", "11"], "--sites 11 is out of range; give a number from 1 to 10"),
        (["--pages", "10", "--sites", "2", "--inside", "2"], "--inside 2 is out of range; give a number from 0 to 1"),
        (["--pages", "10", "--sites", "2", "--inside", "nan"], "'--inside': nan is not between"),
        (["--pages", "10", "--sites", "2", "--days", "nan"], "'--days': nan is not between"),
        (["--pages", "10", "--sites", "2", "--seed", "-1"], "'--seed': -1 is not between"),
        (["--pages", "10"], "--sites"),
        (
            ["--pages", "10", "--sites", "2", "--days", "60"],
            "--days is only for an evolving web; also give --snapshots",
        ),
        (["--pages", "10", "--sites", "2", "--births-per-day", "0"], "--births-per-day is only for an evolving web"),
    ],
)
def test_invalid_values_are_reported_in_one_line(
    tmp_path: Path, capsys: Captured, options: list[str], named: str
) -> None:
    assert run(["graph", "generate", *options, "-o", str(tmp_path / "web")]) == 2
    said = capsys.readouterr().err
    assert named in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_output_below_a_file_is_reported_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("x")
    out = tmp_path / "file" / "web"
    assert run(["graph", "generate", "--pages", "10", "--sites", "2", "-o", str(out)]) == 2
    assert str(out) in capsys.readouterr().err


def test_a_malformed_graph_is_reported_in_one_line_with_its_row(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "urlmap.txt").write_text("http://a/\nhttp://b/\n")
    (tmp_path / "webgraph.txt").write_text("2\n3\n")
    assert run(["graph", "info", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "webgraph.txt, row 2: page 3, but pages are numbered 1..2" in said
    assert "Traceback" not in said and said.count("\n") == 1


def test_the_error_for_a_folder_of_snapshots_asks_for_one_of_them(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "evo"
    assert run(["graph", "generate", "--pages", "100", "--sites", "2", "--snapshots", "3", "-o", str(out)]) == 0
    assert run(["graph", "info", str(out)]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(f"holds folders with a graph each (0, 1, 2); name one, such as {out / '0'}")


# ---- convert


@pytest.mark.parametrize("form", ["saved", "edges"])
def test_convert_writes_the_same_graph_in_another_format(tmp_path: Path, capsys: Captured, form: str) -> None:
    source, out = examples.crawl(tmp_path), tmp_path / "out"
    assert run(["graph", "convert", str(source), "-o", str(out), "--to", form]) == 0
    assert capsys.readouterr().out == f"wrote {out}: 4 pages, 6 links, 2 sites\n"
    one, other = load_graph(source), load_graph(out)
    assert one.targets.tolist() == other.targets.tolist() and one.home.tolist() == other.home.tolist()


def test_convert_passes_its_options_on(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    out = tmp_path / "out"
    source = examples.crawl(tmp_path / "a")
    assert run(["graph", "convert", str(source), "-o", str(out), "--dangling"]) == 0
    assert load_graph(out).pages == 6
    snap = examples.snap(tmp_path)
    assert run(["graph", "convert", str(snap), "-o", str(out), "--ids-per-site", "2", "--replace"]) == 0
    assert load_graph(out).home.tolist() == [0, 2]
    assert run(["graph", "convert", str(out), "-o", str(tmp_path / "snap"), "--to", "snap"]) == 0
    assert load_graph(tmp_path / "snap" / "edges.txt").links == 6


@pytest.mark.parametrize("form", ["saved", "edges", "snap"])
def test_convert_replaces_only_a_graph_of_its_format_and_only_on_request(
    tmp_path: Path, capsys: Captured, form: str
) -> None:
    source, out = examples.url_pairs(tmp_path), tmp_path / "out"
    command = ["graph", "convert", str(source), "-o", str(out), "--to", form]
    assert run(command) == 0
    assert run(command) == 2
    assert "--replace" in capsys.readouterr().err
    assert run([*command, "--replace"]) == 0
    other = "edges" if form == "saved" else "saved"
    assert run(["graph", "convert", str(source), "-o", str(out), "--to", other, "--replace"]) == 2
    assert "other files" in capsys.readouterr().err
    assert load_graph(out).links == 6


def test_info_on_a_file_shows_its_format_and_how_long_it_took(tmp_path: Path, capsys: Captured) -> None:
    assert run(["graph", "info", str(examples.snap(tmp_path)), "--ids-per-site", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["pages"], found["sites"]) == ("SNAP edge list", 4, 2)
    assert found["load_seconds"] >= 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--to", "excel"], "--to"),
        (["--ids-per-site", "0"], "--ids-per-site"),
        (["--ids-per-site", "5"], "--ids-per-site: this format (edges between URLs)"),
        (["--dangling"], "--dangling: this format"),
    ],
)
def test_invalid_options_of_convert_are_reported_in_one_line(
    tmp_path: Path, capsys: Captured, options: list[str], named: str
) -> None:
    source = examples.url_pairs(tmp_path)
    assert run(["graph", "convert", str(source), "-o", str(tmp_path / "out"), *options]) == 2
    said = capsys.readouterr().err
    assert named in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()
