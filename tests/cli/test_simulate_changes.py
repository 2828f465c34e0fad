"""`trapline simulate --changes`: its report, and one line with exit code 2 for invalid input."""

import json
from pathlib import Path

import pytest

from trapline.cli import run
from trapline.graph import generate, save

Captured = pytest.CaptureFixture[str]
HOW = ("--strategy", "breadth-first", "--page-seconds", "1", "--connections", "4", "--delay", "2")
CHANGES = ("--changes", "poisson:2min", "--max-time", "3min")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("graph") / "web"
    save(generate(120, 6, seed=5), folder)
    return str(folder)


def test_crawls_of_one_web_are_compared(web: str, tmp_path: Path, capsys: Captured) -> None:
    picture, log = tmp_path / "fresh.png", tmp_path / "log.parquet"
    lists = ("--refresh-policy", "off,cgm", "--refresh-share", "0,50%", "--level", "normal=50%,smart=50%")
    assert run(["simulate", web, *HOW, *CHANGES, *lists, "--json", "--plot", str(picture)]) == 0
    found = json.loads(capsys.readouterr().out)
    names = [one["refresh"] for one in found["results"]]
    assert names == ["off", "cgm, share 0", "cgm, share 0.5"]
    for one in found["results"]:
        assert one["politeness_violations"] == 0
        assert 0.0 < one["fresh"]["average"] <= one["quality"]["average"] <= 1.0
        assert len(one["fresh"]["curve"]) == len(found["time_s"])
        assert (one["refetches"] > 0) == (one["refresh"] != "off")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run(["simulate", web, *HOW, *CHANGES, "--log", str(log)]) == 0
    assert "residual-life, share 0.5" in capsys.readouterr().out and log.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--refresh-share", "10%"), "also give --changes"),
        (("--precision", "50%"), "also give --changes"),
        ((*CHANGES, "--refresh-share", "1", "--refresh-price", "2"), "exclude each other"),
        ((*CHANGES, "--refresh-share", "a lot"), "--refresh-share a lot"),
        ((*CHANGES, "--refresh-policy", "cgmm"), "no refresh policy 'cgmm'"),
        ((*CHANGES, "--level", "loud"), "no level 'loud'"),
        ((*CHANGES, "--max-pages", "9"), "--max-pages"),
        ((*CHANGES, "--bandwidth", "20kB"), "that connections share"),
        ((*CHANGES, "--robots"), "--robots is not supported with --changes"),
        (("--changes", "weekly"), "weekly: no such file"),
    ],
)
def test_invalid_input_is_reported_in_one_line(web: str, options: tuple[str, ...], said: str, capsys: Captured) -> None:
    assert run(["simulate", web, *HOW, *options]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("trapline: error: ") and said in error
