"""`trapline demo`: a few strategies on one web, a table, a page and pictures."""

from pathlib import Path

import pytest

from trapline.cli import run
from trapline.cli.demo import STRATEGIES

Captured = pytest.CaptureFixture[str]


def test_the_demo_compares_a_few_strategies_and_says_where_the_page_is(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new" / "demo"
    assert run(["demo", "--pages", "500", "--sites", "10", "-o", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "500 pages" in said and "r = 64 robots" in said
    for name in STRATEGIES:
        assert f"\n{name} " in said
    page = folder / "compare.html"
    assert said.endswith(f"Open {page} in a browser.\n")
    assert page.is_file() and (folder / "quality-time.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_gives_the_same_numbers(tmp_path: Path, capsys: Captured) -> None:
    def numbers(seed: str) -> list[str]:
        assert run(["demo", "--pages", "500", "--sites", "10", "--seed", seed, "-o", str(tmp_path)]) == 0
        rows = capsys.readouterr().out.splitlines()
        return [" ".join(row.split()[:-1]) for row in rows if row.startswith(STRATEGIES)]  # the last is our own time

    assert numbers("1") == numbers("1") != numbers("2")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--pages", "10", "--sites", "11"], "sites is 11"),
        (["--seed", "-1"], "'--seed': -1"),
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
