"""`trapline refresh replay`: its table, its JSON, its pictures and its errors."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from trapline.cli import run
from trapline.cli.refresh.results import picture
from trapline.confidence import Estimate
from trapline.report.svg import COLOURS

TRACE = "bursty:30:400:3"
QUICK = ("--seeds", "2", "--accesses", "200")


def test_all_policies_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["refresh", "replay", TRACE, "--policy", "all", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "30 pages, 400 updates in 3 days; n = 2 seeds, too few for an interval" in shown and "±" not in shown
    for name in ["uniform", "proportional", "nutch", "cgm", "azar", "lambda-crawl", "ncis", "xu", "residual-life"]:
        assert f"  {name}" in shown


def test_one_result_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--policy", "cgm", "--level", "smart", "--capacity", "10%", "--json"]
    assert run(["refresh", "replay", TRACE, *options, *QUICK]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["freshness_binary"]) == set(found["freshness_eq3"]) == {"mean", "ci"}
    assert 0.0 < found["freshness_binary"]["mean"] <= found["freshness_eq3"]["mean"] <= 1.0
    assert found["results"][0]["capacity"] == 0.1 and found["trace"]["pages"] == 30
    assert (found["options"]["policy"], found["options"]["capacity"]) == (["cgm"], [0.1])


@pytest.mark.parametrize(("seeds", "has_interval"), [(1, False), (2, False), (3, True)])
def test_json_has_an_interval_where_the_table_has_one(
    seeds: int, has_interval: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--policy", "uniform", "--seeds", str(seeds), "--accesses", "200", "--json"]
    assert run(["refresh", "replay", TRACE, *options]) == 0
    said = capsys.readouterr()
    assert (json.loads(said.out)["freshness_binary"]["ci"] is not None) == has_interval and "wrote" not in said.err


def test_levels_capacities_options_and_a_picture_are_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = ["--level", "normal=.5,super=.5", "--level", "super", "--capacity", ".2,.4"]
    picture = tmp_path / "p.png"
    more = ["--policy", "xu,residual-life", "--option", "xu.past=1", "--plot", str(picture), "--json"]
    assert run(["refresh", "replay", TRACE, *levels, *more, *QUICK]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["results"]) == 8 and found["options"]["policy"] == ["xu", "residual-life"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_columns_align_with_their_headings_for_any_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["refresh", "replay", TRACE, "--policy", "xu", "--seeds", "3", "--accesses", "200"]) == 0
    head, row = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("  policy", "  xu"))]
    assert len(head) == len(row) and row.count("±") == 2
    assert head.index("Eq. 3") + len("Eq. 3") == row.rindex("±") + len("± 0.000")


def test_ctrl_c_keeps_finished_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from trapline import refresh

    done, whole = [], refresh.replay_world

    def replay(*given: Any) -> Any:
        done.append(given)
        if len(done) == 4:
            raise KeyboardInterrupt
        return whole(*given)

    monkeypatch.setattr(refresh, "replay_world", replay)
    file = tmp_path / "out.png"
    assert run(["refresh", "replay", TRACE, "--policy", "uniform,xu", "--plot", str(file), *QUICK]) == 130
    said = capsys.readouterr()
    assert "  uniform" in said.out and "  xu" not in said.out and not file.exists()
    assert "interrupted after 1 of 2 rows" in said.err


@pytest.mark.parametrize("capacities", [[0.1], [0.1, 0.2]])
def test_the_picture_has_intervals(capacities: list[float]) -> None:
    def drawn(ci: float | None) -> bytes:
        curves = {"cgm": [(capacity, Estimate(0.2, ci)) for capacity in capacities]}
        return picture({"fresh": curves, "Eq. 3": curves}, "title", "conditions")

    assert drawn(0.1) != drawn(None) == drawn(None)


def test_at_one_capacity_the_picture_has_a_point_for_each_policy() -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.image import imread

    def ink(policies: int) -> int:
        found = {f"policy {number}": [(0.1, Estimate(0.3, None))] for number in range(policies)}
        pixels = imread(BytesIO(picture({"fresh": found, "Eq. 3": found}, "title", "conditions")))
        return int((abs(pixels - to_rgba(COLOURS[0])).max(axis=2) < 0.02).sum())

    assert ink(1) > 50 and ink(3) == pytest.approx(3 * ink(1), rel=0.1)


def test_the_measure_and_the_schedule_have_variants(capsys: pytest.CaptureFixture[str]) -> None:
    def eq3(*options: str) -> float:
        world = ["--policy", "uniform", "--level", "super", "--schedule-precision", ".5", "--json"]
        assert run(["refresh", "replay", TRACE, *world, *QUICK, *options]) == 0
        return json.loads(capsys.readouterr().out)["freshness_eq3"]["mean"]

    repaired = eq3()
    assert eq3("--eq3", "literal") > repaired > eq3("--eq3-weight", "count")
    assert eq3("--t0", "1d") > repaired == eq3("--t0", "30min")
    assert eq3("--schedule-errors", "added", "--calibrated") == repaired  # uniform ignores signals


def test_an_estimator_is_chosen_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    def binary(*options: str) -> float:
        world = ["--policy", "cgm", "--level", "normal", "--capacity", ".5", "--json"]
        assert run(["refresh", "replay", TRACE, *world, *QUICK, *options]) == 0
        return json.loads(capsys.readouterr().out)["freshness_binary"]["mean"]

    by_age = ("--option", "cgm.estimator=last-modified")
    assert binary() == binary("--option", "cgm.estimator=closed") == binary("--last-modified")
    assert binary(*by_age) != binary() and binary(*by_age, "--last-modified") != binary(*by_age)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (["poisson:10"], "not of the form poisson:PAGES:UPDATES"),
        (["poisson:0:5"], "whole numbers above 0"),
        ([TRACE, "--policy", "cmg"], "no refresh policy 'cmg'; did you mean 'cgm'?"),
        ([TRACE, "--level", "smrt"], "no level 'smrt'; did you mean 'smart'?"),
        ([TRACE, "--level", "smart=.5"], "add up to 0.5; give shares that add up to 1"),
        ([TRACE, "--level", "smart=x"], "'x' is not a number"),
        ([TRACE, "--capacity", "0"], "must be above 0"),
        ([TRACE, "--capacity", "a,b"], "'a' is not a number"),
        ([TRACE, "--capacity", "nan"], "nan is not between"),
        ([TRACE, "--precision", "0"], "must be above 0 and at most 1"),
        ([TRACE, "--schedule-errors", "none"], "'none' is not one of"),
        ([TRACE, "--level", "super", "--schedule-errors", "added", "--schedule-precision", "0"], "infinitely many"),
        ([TRACE, "--level", "normal", "--recall", ".5"], "--recall has no effect if no provider sends signals"),
        ([TRACE, "--schedule-precision", ".5"], "--schedule-precision has no effect if no provider has a schedule"),
        ([TRACE, "--level", "super", "--calibrated"], "--calibrated has no effect on a schedule without errors"),
        ([TRACE, "--recall", "1.5"], "1.5 is not between 0 and 1"),
        (
            [TRACE, "--option", "xu.past=1"],
            "--policy does not name xu; add xu to --policy, or give an option of: residual-life",
        ),
        ([TRACE, "--option", "residual-life.kapa=1"], "did you mean 'kappa'"),
        ([TRACE, "--policy", "cgm", "--option", "cgm.estimator=mlee"], "did you mean 'mle'"),
        ([TRACE, "--policy", "cgm", "--option", "cgm.estimator=9"], "no estimator '9'"),
        ([TRACE, "--option", "residual-life.kappa=x"], "'x' is not a number"),
        ([TRACE, "--plot", "x.jpg"], "a name that ends in .png"),
        ([TRACE, "--plot", "/nowhere/x.png"], "there is no folder"),
        ([TRACE, "--seeds", "0"], "0 is not between 1 and"),
    ],
)
def test_invalid_input_is_reported_in_one_line_with_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["refresh", "replay", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said
