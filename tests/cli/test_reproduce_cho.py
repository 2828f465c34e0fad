"""`trapline reproduce cho` on a small generated web."""

import json
import re
from pathlib import Path

import pytest

from tests.effort import slow
from trapline.cli import run
from trapline.lab.cho import measures
from trapline.lab.cho.measures import QUICK, WHOLE

SMALL = ("--pages", "1000", "--draws", "2", "--quick")


@slow
def test_tables_verdicts_numbers_and_plots_also_after_an_interrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["reproduce", "cho", *SMALL, "--experiment", "1,6", "--output", str(tmp_path)]
    with monkeypatch.context() as changes:
        changes.setattr(measures, "numbers_of", lambda _: raise_interrupt())
        assert run(arguments) == 130
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert "experiment 1." in shown and "experiment 6." in shown and "experiment 2." not in shown
    assert sorted(picture.name for picture in tmp_path.glob("*.png")) == ["cho-1a.png"]
    found = json.loads((tmp_path / "cho.json").read_text())
    assert run([*arguments, "--json"]) == 0
    assert found == json.loads(capsys.readouterr().out)
    assert found["webs"] == ["generated 1,000 pages, 25 sites, seed 1"] and found["options"]["draws"] == 2
    claims = [claim for item in found["items"] for claim in item["claims"]]
    assert {one["verdict"] for one in claims} <= {"holds", "does not hold", "holds in part", "undecided"}
    assert (tmp_path / "cho.html").read_text().count("<tr><td class=") == len(claims)


@pytest.mark.slow
def test_several_processes_find_the_same_numbers(tmp_path: Path) -> None:
    found = []
    for jobs in ("1", "2"):
        folder = tmp_path / jobs
        options = ["--experiment", "1,4", "--pages", "1000", "--draws", "2", "--quick", "--jobs", jobs]
        assert run(["reproduce", "cho", *options, "-o", str(folder)]) == 0
        found.append(json.loads((folder / "cho.json").read_text())["items"])
    assert found[0] == found[1]


def raise_interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--experiment", "7"], "no experiment '7'; give numbers from 1 to 6"),
        (["--graph", "nowhere"], "nowhere"),
        (["--ids-per-site", "5"], "--ids-per-site has no effect without a graph"),
        (["--graph", "nowhere", "--pages", "2000"], "--pages sets the size of a generated web"),
    ],
)
def test_invalid_input_is_reported_in_one_line_with_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", "cho", *arguments, "-o", str(tmp_path)]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said


def test_a_graph_of_one_site_is_refused_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = tmp_path / "web.txt"
    edges.write_text("".join(f"{page}\t{page + 1}\n" for page in range(1200)))
    assert run(["reproduce", "cho", "--graph", str(edges), "-o", str(tmp_path)]) == 2
    assert "give --ids-per-site" in capsys.readouterr().err


def test_the_documentation_says_what_quick_leaves_out() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproduce-cho.md").read_text()
    (said,) = re.findall(r"`--quick` leaves out some numbers of partitions \((.*?)\)", page)
    left = [n for n in WHOLE.partitions if n not in QUICK.partitions]
    assert (
        said == f"{left[0]} and {left[1]} in 1a and 3a, all but {QUICK.crossing[0]} and {QUICK.crossing[1]} in 2 and 4f"
    )
    assert len(left) == len(QUICK.crossing) == 2
