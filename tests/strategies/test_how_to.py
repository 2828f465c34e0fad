"""The worked example of docs/how-to/add-a-strategy.md: its file is loaded as written, and its table is true."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.strategies.webs import crawl, graph_of
from trapline.errors import RankError
from trapline.frontier import Frontier, Rules
from trapline.graph import generate
from trapline.strategies import Strategy, load_strategy, pair

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-strategy.md").read_text()
WEB = graph_of([[1, 2], [], [], [2, 4, 5], [], []], [0, 0, 0, 1, 1, 1])


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "voted_first.py"
    path.write_text(PAGE.split("```python\n", 1)[1].split("```", 1)[0])
    return str(path)


def starts(strategy: Strategy) -> list[tuple[int, int]]:
    """The start of each page. A visit has one page here and takes a second."""
    free_at = {0: 0, 1: 0}
    now, rows = 0, []
    for page in crawl(WEB, strategy, Rules(delay_s=15.0)):
        site = int(WEB.site[page])
        now = max(now, free_at[site])
        rows.append((now, page))
        now += 1
        free_at[site] = now + 15
    return rows


def test_the_table_of_the_page_is_true(file: str) -> None:
    table = [(int(start), int(page)) for start, page in re.findall(r"^\| (\d+) \| (\d+) \|", PAGE, re.M)]
    assert len(table) == WEB.pages
    assert starts(load_strategy(file)) == table


def test_votes_order_the_pages_of_a_site_and_the_failures_of_a_site_count(file: str) -> None:
    strategy = load_strategy(file)
    assert strategy.site.function(None, SimpleNamespace(failures=2), SimpleNamespace(waiting=8)) == 2.0
    without_votes = crawl(WEB, pair("fifo", file), Rules(delay_s=15.0))
    assert without_votes == [0, 3, 1, 4, 2, 5]


def test_the_example_crawls_a_whole_generated_web_alone_and_in_a_pair(file: str) -> None:
    web = generate(300, 6, seed=1)
    orders = [crawl(web, one, Rules(delay_s=1.0)) for one in (load_strategy(file), pair(file, "crawl-ability"))]
    assert sorted(orders[0]) == sorted(orders[1]) and len(set(orders[0])) == len(orders[0]) > 250
    assert orders[0] != orders[1]


def test_an_uncompiled_rank_that_raises_is_named_with_its_row_and_page(file: str) -> None:
    path = Path(file)
    path.write_text(path.read_text().replace("if is_new:", "if page // source:", 1))
    strategy = load_strategy(file)
    row = path.read_text().split("if page // source:")[0].count("\n") + 1
    with pytest.raises(
        RankError, match=rf"rank 'votes' raised ZeroDivisionError: .* in row {row}, for page 3"
    ) as raised:
        Frontier(strategy).run_kernel(lambda _: int(strategy.page.function(None, 3, 0, 1, True)))
    assert raised.value.page == 3
