"""The how-to pages that show Python run as they stand."""

import doctest
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parent.parent / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_is_what_happens(page: Path) -> None:
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_the_example_of_a_strategy_crawls(tmp_path: Path) -> None:
    from trapline.graph import generate
    from trapline.simulate import simulate
    from trapline.strategies import load_strategy

    text = next(page for page in PAGES if page.stem == "add-a-strategy").read_text()
    file = tmp_path / "fewest_failures.py"
    file.write_text(text.split("```python\n", 1)[1].split("```", 1)[0])
    strategy = load_strategy(str(file))
    from trapline.frontier import Rules

    assert simulate(generate(200, 5, seed=1), strategy, Rules()).drained
