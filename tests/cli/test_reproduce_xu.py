"""`trapline reproduce` without a paper, and `trapline reproduce xu` on a small sampled trace."""

import json
from pathlib import Path

import pytest

from trapline.cli import run

QUICK = ("--trace", "bursty:20:300:3", "--seeds", "2", "--accesses", "300")


def test_without_a_paper_the_papers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce"]) == 0
    assert "xu" in capsys.readouterr().out


def test_tables_verdicts_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "xu.json"
    output = ["--output", str(tmp_path / "pictures"), "--json", str(file)]
    assert run(["reproduce", "xu", *QUICK, "--figure", "4b,5", *output]) == 0
    shown = capsys.readouterr().out
    assert "crawls per update: freshness of xu with smart providers is 0.8" in shown
    assert "Figure 4b." in shown and "Figure 5." in shown and "Figure 2." not in shown
    assert sorted(picture.name for picture in (tmp_path / "pictures").iterdir()) == ["xu-4b.png", "xu-5.png"]
    for picture in (tmp_path / "pictures").iterdir():
        assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(file.read_text())["traces"][0]
    assert found["smart_freshness_eq3"] == pytest.approx(0.86, abs=0.02) and found["seeds"] == 2
    cells = found["figures"]["5"]["cells"]
    assert {cell["policy"] for cell in cells} == {"xu", "xu, frozen", "xu, literal", "residual-life"}
    assert all(0.0 < cell["freshness_binary"]["mean"] <= cell["freshness_eq3"]["mean"] <= 1.0 for cell in cells)
    assert {one["verdict"] for one in found["figures"]["4b"]["orderings"]} <= {"holds", "does not hold", "undecided"}


def test_several_traces_and_json_without_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--trace", "poisson:10:100:2", "--figure", "5", "--schedule-errors", "added", "--calibrated")
    assert run(["reproduce", "xu", *QUICK, *more, "--json", "-"]) == 0
    assert [one["trace"]["pages"] for one in json.loads(capsys.readouterr().out)["traces"]] == [20, 10]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["xu", "--shared", "nowhere"],
            "nowhere/wikipedia-edits: no such trace; give the folder of the traces by --shared DIR",
        ),
        (["xu", "--trace", "nowhere"], "nowhere: no such file or folder"),
        (["xu", "--figure", "2,6"], "no figure '6'"),
        (["xu", "--figure", "3", "--calibrated"], "--calibrated has an effect only in figure 5"),
        (["xu", "--trace", "poisson:10:100:2", "--shared", "."], "--shared has no effect with --trace"),
        (["xu", "--figure", "2", "--accesses", "9"], "--accesses has no effect in figure 2"),
        (["xu", "--json", "/nowhere/x.json", *QUICK], "there is no folder"),
        (["xy"], "unknown command 'xy'; valid: cao, castillo, cho, xu"),
    ],
)
def test_invalid_input_is_reported_in_one_line_with_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said
