"""`trapline reproduce cho` on a small generated web."""

import json
import re
from pathlib import Path

import pytest

from trapline.cli import run
from trapline.lab.cho_web import QUICK, WHOLE

SMALL = ("--pages", "1000", "--draws", "2", "--quick")


def test_tables_verdicts_numbers_and_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, pictures = tmp_path / "cho.json", tmp_path / "pictures"
    assert run(["reproduce", "cho", *SMALL, "--experiment", "1,6", "--output", str(pictures), "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "Experiment 1." in shown and "Experiment 6." in shown and "Experiment 2." not in shown
    assert sorted(picture.name for picture in pictures.iterdir()) == ["cho-1.png", "cho-6.png"]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures.iterdir())
    found = json.loads(file.read_text())["graphs"][0]
    assert (found["pages"], found["draws"]) == (1000, 2)
    points = found["experiments"]["1"]["charts"]["1a"]["points"]
    assert all(0.0 < point["mean"] <= 1.0 and len(point["values"]) == 2 for point in points)
    claims = found["experiments"]["1"]["claims"]
    assert {one["verdict"] for one in claims} <= {"holds", "does not hold", "undecided"}
    assert all(one["claim"] in shown for one in claims)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--experiment", "7"], "no experiment '7'; give numbers from 1 to 6"),
        (["--graph", "nowhere"], "nowhere"),
        (["--ids-per-site", "5"], "--ids-per-site has no effect without a graph"),
        (["--graph", "nowhere", "--pages", "2000"], "--pages sets the size of a generated web"),
        (["--json", "/nowhere/x.json"], "there is no folder"),
    ],
)
def test_invalid_input_is_reported_in_one_line_with_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", "cho", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said


def test_a_graph_of_one_site_is_refused_with_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = tmp_path / "web.txt"
    edges.write_text("".join(f"{page}\t{page + 1}\n" for page in range(1200)))
    assert run(["reproduce", "cho", "--graph", str(edges)]) == 2
    assert "give --ids-per-site" in capsys.readouterr().err


def test_the_documentation_says_what_quick_leaves_out() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproduce-cho.md").read_text()
    (said,) = re.findall(r"`--quick`, which leaves out some numbers of partitions \((.*?)\)", page)
    left = [n for n in WHOLE.partitions if n not in QUICK.partitions]
    assert (
        said == f"{left[0]} and {left[1]} in 1a and 3a, all but {QUICK.crossing[0]} and {QUICK.crossing[1]} in 2 and 4f"
    )
    assert len(left) == len(QUICK.crossing) == 2
