"""`trapline reproduce` without a paper, and `trapline reproduce xu` on a small sampled trace."""

import json
from pathlib import Path

import pytest

from tests.effort import slow
from trapline.cli import run

QUICK = ("--trace", "bursty:20:300:3", "--seeds", "2", "--accesses", "300")


def test_without_a_paper_the_papers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce"]) == 0
    assert "xu" in capsys.readouterr().out


def test_it_writes_a_page_plots_and_json_and_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "xu", *QUICK, "--figure", "2,5", "--cycles", "2,1", "--output", str(tmp_path)]
    assert run(command) == 0
    first = capsys.readouterr()
    assert "fig. 2." in first.out and "fig. 5." in first.out and "fig. 3." not in first.out
    assert "xu: 7 claims: " in first.out and "not repeated" not in first.err
    found = json.loads((tmp_path / "xu.json").read_text())
    assert found["paper"] == "xu" and found["options"]["seeds"] == 2
    assert [item["name"] for item in found["items"]] == ["fig. 2", "fig. 5", "boundary"]
    assert found["items"][0]["tables"][0]["head"] == ["claim", "1", "2"]
    page = (tmp_path / "xu.html").read_text()
    assert page.count("<tr><td class=") == 7
    names = {f"xu-{chart['name']}.png" for item in found["items"] for chart in item["charts"]}
    assert {path.name for path in tmp_path.glob("*.png")} == names == {"xu-2-bursty-20.png", "xu-5-bursty-20.png"}
    assert run(command) == 0
    again = capsys.readouterr()
    assert again.out == first.out and "were done before and not repeated" in again.err


def test_several_traces_and_json_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--trace", "poisson:10:100:2", "--figure", "5", "--schedule-errors", "added", "--calibrated", "--quick")
    assert run(["reproduce", "xu", *QUICK, *more, "--json", "-o", str(tmp_path)]) == 0
    webs = json.loads(capsys.readouterr().out)["webs"]
    assert [web.split(",")[0] for web in webs] == ["bursty-20: 20 pages", "poisson-10: 10 pages"]


@slow
def test_without_options_it_needs_no_file_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "xu", "--quick"]) == 0
    assert json.loads((tmp_path / "trapline-xu" / "xu.json").read_text())["webs"][1].startswith("peps: 742 pages")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["xu", "--trace", "nowhere"], "nowhere: no such file or folder"),
        (["xu", "--figure", "2,6"], "no figure '6'"),
        (["xu", "--figure", "3", "--calibrated"], "--calibrated has an effect only in figure 5"),
        (["xu", "--figure", "2", "--accesses", "9"], "--accesses has no effect in figure 2"),
        (["xu", "--cycles", "1,0"], "--cycles 1,0: give whole numbers of polls above 0"),
        (["xu", *QUICK, *QUICK], "two traces are called 'bursty-20'; give each trace once"),
        (["xy"], "unknown command 'xy'; valid: all, cao, castillo, cho, thesis, xu"),
    ],
)
def test_invalid_input_is_reported_in_one_line_with_exit_code_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said
