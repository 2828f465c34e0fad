"""Qualities and old crawls become one number per page. An error is one line that names the place."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.crawler.crawl_folder import simulated, write_crawl
from tests.strategies.webs import graph_of
from trapline.defaults import QUALITY
from trapline.errors import ConfigError
from trapline.frontier import Rules
from trapline.frontier.layout import RANK_LIMIT
from trapline.graph import Graph, LoadOptions, generate, load_graph, pagerank, save
from trapline.graph.strings import StoredStrings
from trapline.strategies import Strategy, load_strategy, page_ranks, pair, strategies
from trapline.strategies.base.inputs import (
    FROM_LINKS,
    INPUTS,
    CrawlHistory,
    check_inputs,
    default_rules,
    history_values,
    inputs_for,
    quality_values,
    with_quality,
)

URLS = ["http://a/", "http://a/x y", "http://a/é", "http://b/"]
WEB = graph_of([[1], [2], [0], [0]], [0, 0, 0, 1], urls=StoredStrings.of(URLS))
NAMELESS = graph_of([[1], [0]], [0, 0])
RANK = np.array([0.4, 0.3, 0.2, 0.1])


def written(folder: Path, text: str, name: str = "values.txt") -> str:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


def quality(source: str, graph: Graph = WEB, seed: int = 0) -> list[float]:
    values = quality_values(source, graph, RANK, seed)
    assert values is not None
    return values.tolist()


# Quality.


def test_pagerank_is_that_of_the_graph_and_what_links_say_has_no_values_beforehand() -> None:
    assert quality("pagerank") == RANK.tolist()
    assert [quality_values(source, WEB, RANK, 0) for source in FROM_LINKS] == [None] * len(FROM_LINKS)


def test_zipf_gives_each_value_1_over_i_once_in_an_order_by_seed() -> None:
    web = generate(200, 5, seed=1)
    orders = [quality("zipf", web, seed) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0], reverse=True) == [1 / i for i in range(1, web.pages + 1)]


@pytest.mark.parametrize("name", ["values.txt", "values.txt.gz"])
def test_a_file_gives_values_by_url_where_the_last_row_counts_and_other_pages_have_0(tmp_path: Path, name: str) -> None:
    text = "# views\n\nhttp://a/\t3\nhttp://a/x y 1e-3 \nhttp://a/é\t2\r\nhttp://elsewhere/ 7\nhttp://a/ 4.5\n"
    assert quality(written(tmp_path, text, name)) == [4.5, 0.001, 2.0, 0.0]


def test_a_file_works_with_the_urls_of_a_generated_web(tmp_path: Path) -> None:
    web = generate(50, 5, seed=1)
    assert web.urls is not None
    rows = "".join(f"{web.urls[page]}\t{page}\n" for page in range(50))
    assert quality(written(tmp_path, rows), web) == list(range(50))


@pytest.mark.parametrize(
    "row", ["http://b/", "http://b/\tmany", "http://b/\tnan", "http://b/ inf", f"http://b/ {RANK_LIMIT}"]
)
def test_a_row_without_a_number_is_named(tmp_path: Path, row: str) -> None:
    with pytest.raises(ConfigError, match=r"^\S+values\.txt, row 2: .*'http://b/.*number below 2\^42$"):
        quality(written(tmp_path, f"http://a/ 1\n{row}\n"))


def test_a_negative_quality_is_refused(tmp_path: Path) -> None:
    """Otherwise the share of the fetched quality would rise and fall, and all measures derived from it would be meaningless."""
    with pytest.raises(ConfigError, match="-2 for http://a/; a quality must be at least 0"):
        quality(written(tmp_path, "http://a/ -2\n"))


def test_a_file_of_another_web_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"values\.txt: none of its 1 URLs, such as 'https://a/', .*'http://a/'"):
        quality(written(tmp_path, "https://a/ 1\n"))
    with pytest.raises(ConfigError, match=r"values\.txt: none of its 0 URLs is in the graph"):
        quality(written(tmp_path, ""))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "values.gz"
    path.write_bytes(b"http://a/ 1\n")
    with pytest.raises(ConfigError, match=r"values\.gz, row 1: not a gzip file"):
        quality(str(path))


def test_the_error_for_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"--quality pagerang: not a file.*did you mean 'pagerank'"):
        quality("pagerang")


def test_values_by_url_need_urls(tmp_path: Path) -> None:
    for source in (written(tmp_path, "http://a/ 1\n"), "json:dumps"):
        with pytest.raises(ConfigError, match="needs the URLs of pages, and the graph has no URLs"):
            quality(source, NAMELESS)


FUNCTIONS = """
def length(urls): return [len(url) for url in urls]
def too_few(urls): return [1.0]
def table(urls): return [[1.0, 2.0]] * len(urls)
def words(urls): return urls
def no_number(urls): return [float("nan")] * len(urls)
def fails(urls): raise KeyError("one\\ntwo")
def leaves(urls): raise SystemExit(3)
none = None
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_quality.py").write_text(FUNCTIONS)
    (tmp_path / "broken.py").write_text("def rank(:")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("functions")
def test_a_users_function_in_the_current_folder_is_called_with_all_urls() -> None:
    assert quality("my_quality:length") == [len(url) for url in URLS]


@pytest.mark.usefixtures("functions")
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("my_quality:too_few", "it must return 4 numbers, not 1"),
        ("my_quality:table", "it must return 4 numbers, not an array of shape (4, 2)"),
        ("my_quality:words", "ValueError"),
        ("my_quality:no_number", "nan for http://a/ is not a number"),
        ("my_quality:fails", "KeyError"),
        ("my_quality:leaves", "SystemExit"),
        ("my_quality:lenght", "AttributeError"),
        ("my_quality:none", "none is not a function"),
        (
            "nowhere:length",
            "raises ModuleNotFoundError: No module named 'nowhere'; correct its name or code, or install what it imports",
        ),
        ("broken:rank", "SyntaxError"),
    ],
)
def test_an_error_of_a_users_function_is_reported_in_one_line(source: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        quality(source)
    assert str(caught.value).startswith(f"--quality {source}: ")
    assert says in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("source", FROM_LINKS)
def test_a_quality_from_links_is_the_page_rank_of_that_name(source: str) -> None:
    for strategy in strategies().values():
        from_links = with_quality(strategy, source)
        assert from_links.site is strategy.site and from_links.name == strategy.name
        assert from_links.page.name == (source if strategy.page.name == "quality" else strategy.page.name)
        assert with_quality(strategy, "pagerank") is strategy


def test_the_default_quality_is_computed_from_links() -> None:
    """A live crawl knows no other without a file of the user."""
    assert QUALITY in FROM_LINKS


# History.


def no_pagerank(graph: Graph) -> Any:
    raise AssertionError("a file of values needs no PageRank")


def test_an_old_crawl_as_a_file(tmp_path: Path) -> None:
    text = "http://gone/ 0.7\nhttp://a/é 0.2\nhttp://a/ 0.1\n"
    history = history_values(written(tmp_path, text), WEB, no_pagerank)
    assert history.page.tolist() == [0.1, -1.0, 0.2, -1.0]
    assert history.old.tolist() == [0.1, 0.2, 0.7]


def test_an_old_crawl_as_a_graph_has_its_own_pagerank(tmp_path: Path) -> None:
    old = graph_of([[1], [0], [0]], [0, 0, 1], urls=StoredStrings.of(["http://b/", "http://gone/", "http://a/"]))
    save(old, tmp_path / "old")
    history = history_values(tmp_path / "old", WEB, pagerank)
    ranks = pagerank(old).tolist()
    assert history.page.tolist() == [ranks[2], -1.0, -1.0, ranks[0]]
    assert history.old.tolist() == sorted(ranks)


def test_an_old_crawl_as_its_folder_has_the_pagerank_of_all_that_it_knew(tmp_path: Path) -> None:
    graph, crawl = simulated(200, 8, most=60)
    known = load_graph(write_crawl(tmp_path / "crawl", graph, crawl), LoadOptions(dangling=True))
    for path in (tmp_path / "crawl", tmp_path / "crawl" / "crawl.db"):
        history = history_values(path, graph, pagerank)
        assert history.page.tolist() == pagerank(known).tolist()  # its generator knows all pages, in the graph's order
        assert len(history.old) == graph.pages


def test_a_history_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path) -> None:
    save(NAMELESS, tmp_path / "nameless")
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "crawl.db").touch()
    for path, says in (
        (written(tmp_path, "http://a/ -0.5\n"), r"'http://a/' is -0.5; it must be at least 0"),
        (tmp_path / "nameless", "needs the URLs of pages, and the graph has no URLs"),
        (tmp_path / "crawl", r"crawl\.db: not the database of a crawl: no such table"),
        (tmp_path / "nothing", "nothing: does not exist"),
        (written(tmp_path, "https://other/ 1\n", "other.txt"), "none of its 1 URLs"),
    ):
        with pytest.raises(ConfigError, match=says):
            history_values(path, WEB, pagerank)


HISTORY = CrawlHistory(np.array([0.1, -1.0, 0.2, -1.0]), np.array([0.1, 0.2, 0.7]))


def inputs(
    strategy: Strategy, graph: Graph = WEB, history: CrawlHistory | None = HISTORY, seed: int = 0
) -> dict[str, Any]:
    return inputs_for(strategy, graph, RANK, np.array([4.0, 3.0, 2.0, 1.0]), history, seed)


def test_a_new_page_samples_an_old_one_by_seed_and_url_only() -> None:
    strategy = load_strategy("historical-pagerank-random")
    drawn = [tuple(inputs(strategy, seed=seed)["history_random"].tolist()) for seed in range(30)]
    assert all(values[0] == 0.1 and values[2] == 0.2 for values in drawn)
    assert {values[1] for values in drawn} == {values[3] for values in drawn} == {0.1, 0.2, 0.7}
    turned = graph_of([[], [], [], []], [0, 0, 0, 0], urls=StoredStrings.of(URLS[::-1]))
    backwards = inputs(strategy, turned, CrawlHistory(HISTORY.page[::-1], HISTORY.old))["history_random"]
    assert tuple(backwards.tolist()[::-1]) == drawn[0]


def test_old_pages_are_sampled_equally_often() -> None:
    web = generate(6000, 20, seed=1)
    history = CrawlHistory(np.full(web.pages, -1.0), np.array([0.0, 1.0, 2.0]))
    drawn = inputs(load_strategy("historical-pagerank-random"), web, history)["history_random"]
    # 6,000 draws with probability 1/3: five standard deviations are 183.
    assert np.abs(np.bincount(drawn.astype(int)) - web.pages / 3).max() < 183


# The inputs of a strategy.


@pytest.mark.parametrize("page", page_ranks())
def test_a_page_rank_gets_exactly_the_inputs_that_it_declares(page: str) -> None:
    strategy = pair(page, "top-page")
    given = inputs(strategy)
    assert tuple(given) == strategy.page.inputs
    assert all(values.shape == (WEB.pages,) and np.isfinite(values).all() for values in given.values())
    assert set(given) <= set(INPUTS)


def test_omniscient_uses_pagerank_whatever_the_quality() -> None:
    assert inputs(load_strategy("omniscient"))["pagerank"].tolist() == RANK.tolist()


def test_a_missing_option_is_named() -> None:
    for name in (name for name in strategies() if name.startswith("historical")):
        with pytest.raises(ConfigError, match=f"'{name}' needs the PageRank of an old crawl: give --history"):
            inputs(load_strategy(name), history=None)
    with pytest.raises(ConfigError, match="needs a quality known before the crawl"):
        check_inputs(load_strategy("quality"), has_quality=False, has_history=True)


def test_an_unknown_input_is_refused() -> None:
    from dataclasses import replace

    page = replace(page_ranks()["quality"], columns=("views",), inputs=("views",))
    with pytest.raises(
        ConfigError,
        match="needs the input 'views'; the inputs are: fetched_quality, history, history_random, history_relative, pagerank",
    ):
        check_inputs(replace(load_strategy("quality"), page=page), True, True)


@pytest.mark.parametrize(("pages", "k"), [(10, 50), (1750, 50), (3500, 100), (3_500_000, 100_000)])
def test_scores_come_35_times_per_crawl_by_default(pages: int, k: int) -> None:
    batch, partial = load_strategy("batch-pagerank"), load_strategy("partial-pagerank")
    assert default_rules(batch, Rules(), pages) == Rules(batch=k)
    assert default_rules(partial, Rules(), pages) == Rules(rescore=k)
    for strategy, rules in ((batch, Rules(batch=7)), (partial, Rules(rescore=7)), (load_strategy("opic"), Rules())):
        assert default_rules(strategy, rules, pages) is rules
