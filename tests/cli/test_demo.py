"""`trapline demo`: three orders of one web, a table and a picture."""

from pathlib import Path

import pytest

from trapline.cli import run
from trapline.cli.demo import STRATEGIES

Captured = pytest.CaptureFixture[str]


def test_the_demo_shows_three_orders_and_says_where_the_picture_is(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new" / "demo"
    assert run(["demo", "--pages", "500", "--sites", "10", "-o", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "500 pages" in said
    for order in (*STRATEGIES, "random", "optimum"):
        assert f"\n{order} " in said
    picture = folder / "crawl-orders.png"
    assert said.endswith(f"{picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(folder.iterdir()) == [picture]


def test_the_same_seed_gives_the_same_numbers(tmp_path: Path, capsys: Captured) -> None:
    def numbers(seed: str) -> list[str]:
        assert run(["demo", "--pages", "500", "--sites", "10", "--seed", seed, "-o", str(tmp_path)]) == 0
        rows = capsys.readouterr().out.splitlines()
        return [" ".join(row.split()[:4]) for row in rows if row.startswith(STRATEGIES)]

    assert numbers("1") == numbers("1") != numbers("2")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--pages", "10", "--sites", "11"], "sites is 11"),
        (["--pages", "0"], "'--pages': 0"),
        (["--pages", "many"], "'many' is not a whole number"),
    ],
)
def test_an_impossible_web_is_one_line(tmp_path: Path, capsys: Captured, options: list[str], named: str) -> None:
    assert run(["demo", *options, "-o", str(tmp_path / "demo")]) == 2
    said = capsys.readouterr().err
    assert named in said and said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("x")
    assert run(["demo", "-o", str(tmp_path / "file")]) == 2
    said = capsys.readouterr().err
    assert f"cannot write {tmp_path / 'file'}" in said and said.count("\n") == 1
