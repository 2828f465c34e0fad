"""What holds for every strategy. They are found by folder: a new file is checked without being named here."""

import heapq
import importlib
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trapline.strategies
from tests.frontier.worlds import World, drive, hostile_worlds
from tests.simulate.test_driver import GRAPHS, graph_of, inputs_of
from trapline.errors import ConfigError
from trapline.frontier import Frontier, Rules
from trapline.frontier.layout import FIFO, HEAP, NEXT_VISIT, RANK_LIMIT
from trapline.graph import Graph
from trapline.simulate import simulate
from trapline.strategies import (
    PageRank,
    SiteRank,
    Strategy,
    load_strategy,
    page_ranks,
    pair,
    site_ranks,
    strategies,
)

UNCOMPILED = bool(numba.config.DISABLE_JIT)
WEBS = 8 if UNCOMPILED else 60
FOLDER = Path(trapline.strategies.__file__).parent
MODULES = [path.stem for path in FOLDER.glob("*.py") if re.search("^(PAGE|SITE|STRATEGY) = ", path.read_text(), re.M)]
KINDS = {"PAGE": page_ranks, "SITE": site_ranks, "STRATEGY": strategies}
EVERY = [*strategies().values(), *(pair(page, site) for page in page_ranks() for site in site_ranks())]


def name_of(strategy: Strategy) -> str:
    return strategy.name


def order(graph: Graph, strategy: Strategy, **rules: Any) -> list[int]:
    """The pages in the order in which one robot fetches them."""
    found = simulate(graph, strategy, Rules(**rules), inputs=inputs_of(strategy, graph.pages))
    assert found.drained
    return [int(page) for page in found.log.page]


# Found by folder.


@pytest.mark.parametrize("module", MODULES)
def test_whatever_a_file_declares_is_found(module: str) -> None:
    declared = importlib.import_module(f"trapline.strategies.{module}")
    found = {kind: getattr(declared, kind) for kind in KINDS if hasattr(declared, kind)}
    assert found
    for kind, record in found.items():
        assert KINDS[kind]()[record.name] is record


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_files_declare_one_name(kind: str) -> None:
    texts = [(FOLDER / f"{module}.py").read_text() for module in MODULES]
    assert len(KINDS[kind]()) == sum(bool(re.search(f"^{kind} = ", text, re.M)) for text in texts)


@pytest.mark.parametrize("module", MODULES)
def test_a_strategy_says_its_formula_its_cost_and_its_source(module: str) -> None:
    declared = importlib.import_module(f"trapline.strategies.{module}")
    text = declared.__doc__ or ""
    for kind, formula in (("PAGE", "Page rank:"), ("SITE", "Site rank:")):
        assert not hasattr(declared, kind) or formula in text
    assert "Cost:" in text and "Source:" in text


# Every strategy is a crawl.


def reachable(graph: Graph) -> set[int]:
    found: set[int] = set()
    more = graph.home.tolist()
    while more:
        page = more.pop()
        if page not in found:
            found.add(page)
            more += graph.targets_of(page).tolist()
    return found


@pytest.mark.parametrize("strategy", EVERY, ids=name_of)
@settings(max_examples=WEBS)
@given(graph=GRAPHS, k=st.sampled_from([1, 3]), batch=st.sampled_from([0, 4]))
def test_every_page_that_can_be_reached_is_fetched_once(strategy: Strategy, graph: Graph, k: int, batch: int) -> None:
    fetched = order(graph, strategy, delay_s=1.0, per_connection=k, batch=batch)
    assert sorted(fetched) == sorted(reachable(graph))


@pytest.mark.parametrize("strategy", EVERY, ids=name_of)
@settings(max_examples=WEBS // 4)
@given(graph=GRAPHS)
def test_the_same_web_is_crawled_in_the_same_order(strategy: Strategy, graph: Graph) -> None:
    assert order(graph, strategy, per_connection=2) == order(graph, strategy, per_connection=2)


# One queue (top_page.py).


def one_queue(graph: Graph, strategy: Strategy) -> list[int]:
    """One priority queue of all pages: the largest rank first, then the page discovered first. Entries are never moved:
    a page whose rank changes gets a second one, and the old one is passed over.
    """
    columns = np.zeros((graph.pages, max(1, len(strategy.page.columns))))
    for name, values in inputs_of(strategy, graph.pages).items():
        columns[:, strategy.page.columns.index(name)] = values
    ranks: dict[int, float] = {}
    serials: dict[int, int] = {}
    heap: list[tuple[float, int, int]] = []
    fetched: list[int] = []

    def meet(page: int, source: int, links: int) -> None:
        if page in fetched or (page in ranks and strategy.page.constant):
            return
        is_new = page not in ranks
        serials.setdefault(page, len(serials))
        ranks[page] = strategy.page.function(SimpleNamespace(columns=columns), page, source, links, is_new)
        heapq.heappush(heap, (-ranks[page], serials[page], page))

    for page in graph.home.tolist():
        meet(page, -1, 0)
    while heap:
        key, _, page = heapq.heappop(heap)
        if page in fetched or -key != ranks[page]:
            continue
        fetched.append(page)
        links = graph.targets_of(page).tolist()
        for link in links:
            meet(link, page, len(links))
    return fetched


@pytest.mark.parametrize("page", page_ranks())
@settings(max_examples=WEBS)
@given(graph=GRAPHS)
def test_without_politeness_top_page_makes_one_queue_of_all_pages(page: str, graph: Graph) -> None:
    strategy = pair(page, "top-page")
    assert order(graph, strategy, delay_s=0.0) == one_queue(graph, strategy)


@settings(max_examples=WEBS)
@given(graph=GRAPHS)
def test_without_politeness_fifo_is_the_order_of_discovery(graph: Graph) -> None:
    discovered = list(dict.fromkeys(graph.home.tolist()))
    for page in discovered:  # it grows on the way
        discovered += [link for link in graph.targets_of(page).tolist() if link not in discovered]
    assert order(graph, pair("fifo", "fifo"), delay_s=0.0) == discovered


# The kind of queue changes the cost, never the order (queue.py).


def in_a_heap(strategy: Strategy) -> Strategy:
    page = strategy.page
    plain = PageRank(page.name, page.function, page.columns, page.inputs, constant=page.constant or page.fifo)
    return Strategy(strategy.name, plain, strategy.site)


def in_next_visit_queues(strategy: Strategy) -> Strategy:
    site = strategy.site
    return Strategy(
        strategy.name, strategy.page, SiteRank(site.name, site.function, tuple({*site.reads, "quality_sum"}))
    )


OTHER_KINDS = [
    *((strategy, in_a_heap(strategy), HEAP) for strategy in EVERY if strategy.queue == FIFO),
    *((strategy, in_next_visit_queues(strategy), NEXT_VISIT) for strategy in EVERY if strategy.queue != NEXT_VISIT),
]


@pytest.mark.parametrize(
    ("strategy", "other", "kind"), OTHER_KINDS, ids=[f"{one.name} in {kind}" for one, _, kind in OTHER_KINDS]
)
@settings(max_examples=max(3, WEBS // 4))
@given(world=hostile_worlds())
def test_the_kind_of_queue_changes_the_cost_never_the_order(
    strategy: Strategy, other: Strategy, kind: int, world: World
) -> None:
    assert other.queue == kind != strategy.queue
    rules = Rules(**{**world.rules, "batch": 0})  # a batch takes whole next visits from next-visit queues, by law
    assert drive(Frontier(other, rules), world) == drive(Frontier(strategy, rules), world)


# A user's own strategy, from one file.

MOST_LINKED = """
from trapline.frontier.ranking import page_rank, site_rank
from trapline.strategies import PageRank, SiteRank, Strategy


@page_rank
def links_so_far(s, page, source, links, is_new):
    if is_new:
        s.columns[page, 0] = 0.0
    s.columns[page, 0] += 1.0
    return s.columns[page, 0]


@site_rank
def best(s, site, queue):
    return queue.best_key


STRATEGY = Strategy(
    "most-linked", PageRank("links", links_so_far, columns=("links",)), SiteRank("best", best, reads=("best",))
)
"""


def written(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def test_a_users_file_runs_in_the_same_kernels(tmp_path: Path) -> None:
    strategy = load_strategy(written(tmp_path, MOST_LINKED))
    assert strategy.name == "most-linked"

    @settings(max_examples=WEBS)
    @given(graph=GRAPHS)
    def is_that_of_the_twin(graph: Graph) -> None:
        assert order(graph, strategy, delay_s=0.0) == one_queue(graph, strategy)

    is_that_of_the_twin()


def test_an_edited_users_file_is_never_answered_from_a_cache(tmp_path: Path) -> None:
    graph = graph_of([[1, 2, 3], [3], [], []], [0, 0, 0, 0], [0])
    most = order(graph, load_strategy(written(tmp_path, MOST_LINKED)))
    least = order(graph, load_strategy(written(tmp_path, MOST_LINKED.replace("+= 1.0", "-= 1.0"))))
    assert (most, least) == ([0, 1, 3, 2], [0, 1, 2, 3])


def crawl_of_two(strategy: Strategy) -> None:
    frontier = Frontier(strategy)
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0, 0])
    frontier.discover([0], 0.0)
    frontier.discover([1], 0.0)
    frontier.next(0.0)


@pytest.mark.parametrize("value", ["float('nan')", "float('inf')", "-float('inf')", repr(RANK_LIMIT)])
def test_a_page_rank_that_is_no_number_names_strategy_and_page(tmp_path: Path, value: str) -> None:
    text = "NO_NUMBER = " + value + MOST_LINKED.replace("s.columns[page, 0]\n\n", "NO_NUMBER if page else 0.0\n\n", 1)
    with pytest.raises(ConfigError, match=r"'most-linked'.* page 1 "):
        crawl_of_two(load_strategy(written(tmp_path, text)))


@pytest.mark.parametrize("value", ["float('nan')", "float('inf')"])
def test_a_site_rank_that_is_no_number_names_strategy_and_site(tmp_path: Path, value: str) -> None:
    text = "NO_NUMBER = " + value + MOST_LINKED.replace("return queue.best_key", "return queue.best_key + NO_NUMBER")
    with pytest.raises(ConfigError, match=r"'most-linked'.* site 0 "):
        crawl_of_two(load_strategy(written(tmp_path, text)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "STRATEGY"),
        ("STRATEGY = 'opic'", "STRATEGY"),
        ("def rank(:\n", "line 1"),
        ("1 / 0", "ZeroDivisionError"),
        (MOST_LINKED.replace('reads=("best",)', 'reads=("bset",)'), "bset"),
        (MOST_LINKED.replace("@page_rank", ""), "page_rank"),
        (MOST_LINKED.replace("@page_rank", "@site_rank"), "page_rank"),
    ],
    ids=["empty", "not a strategy", "syntax", "raises", "reads", "not decorated", "wrongly decorated"],
)
def test_a_file_that_is_no_strategy_is_refused_in_one_line_that_names_it(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_strategy(written(tmp_path, text))
    line = str(caught.value)
    assert "mine.py" in line and says in line and "\n" not in line


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.py: no such strategy file"):
        load_strategy(str(tmp_path / "nothing.py"))


@pytest.mark.skipif(UNCOMPILED, reason="NUMBA_DISABLE_JIT=1: plain Python finds out when it runs")
def test_a_rank_that_cannot_be_compiled_is_refused_in_one_line(tmp_path: Path) -> None:
    text = MOST_LINKED.replace("return queue.best_key", "return queue.best_kye")
    with pytest.raises(ConfigError) as caught:
        crawl_of_two(load_strategy(written(tmp_path, text)))
    line = str(caught.value)
    assert "best_kye" in line and "\n" not in line


# Names.


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'larger-sites-first'"):
        load_strategy("larger-site-first")
    with pytest.raises(ConfigError, match="no page rank 'opik'; did you mean 'opic'"):
        pair("opik", "fifo")
    with pytest.raises(ConfigError, match="no site rank 'toppage'; did you mean 'top-page'"):
        pair("opic", "toppage")


def test_a_pair_has_the_name_that_it_is_given_or_that_of_its_parts() -> None:
    assert pair("opic", "fifo").name == "opic x fifo"
    assert pair("opic", "fifo", "mine").name == "mine"
