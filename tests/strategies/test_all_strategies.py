"""Laws that hold for every strategy. Strategies are found by folder, so a new file is checked without being named here."""

import heapq
import importlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trapline.strategies
from tests.effort import examples, sample, slow
from tests.frontier.worlds import HOSTILE_WORLDS, World, drive
from tests.strategies.webs import GRAPHS, crawl, graph_of, inputs_of, known_pagerank, random_graph
from trapline.errors import ConfigError
from trapline.frontier import Frontier, Rules
from trapline.frontier.layout import FIFO, HEAP, NEXT_VISIT, RANK_LIMIT
from trapline.graph import Graph
from trapline.strategies import (
    Strategy,
    load_strategy,
    page_rank_named,
    page_ranks,
    pair,
    site_rank_named,
    site_ranks,
    strategies,
)

UNCOMPILED = bool(numba.config.DISABLE_JIT)
WEBS = 4 if UNCOMPILED else examples(60)
FOLDER = Path(trapline.strategies.__file__).parent
MODULES = [path.stem for path in FOLDER.glob("*.py") if re.search("^(PAGE|SITE|STRATEGY) = ", path.read_text(), re.M)]
KINDS = {"PAGE": page_ranks, "SITE": site_ranks, "STRATEGY": strategies}
PAIRS = [pair(page, site) for page in page_ranks() for site in site_ranks()]
# Every rank at least twice, with the partner it is made for and with the costliest one.
EVERY = [
    *strategies().values(),
    *(pair(page, "crawl-ability") for page in page_ranks()),
    *(pair("opic", site) for site in site_ranks()),
]


def name_of(strategy: Strategy) -> str:
    return strategy.name


def order(graph: Graph, strategy: Strategy, seed: int = 0, **rules: Any) -> list[int]:
    return crawl(graph, strategy, Rules(**rules), seed)


# Found by folder.


@pytest.mark.parametrize("module", MODULES)
def test_every_strategy_that_a_file_declares_is_found(module: str) -> None:
    declared = importlib.import_module(f"trapline.strategies.{module}")
    found = {kind: getattr(declared, kind) for kind in KINDS if hasattr(declared, kind)}
    assert found
    for kind, record in found.items():
        assert KINDS[kind]()[record.name] is record


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_files_declare_the_same_name(kind: str) -> None:
    texts = [(FOLDER / f"{module}.py").read_text() for module in MODULES]
    assert len(KINDS[kind]()) == sum(bool(re.search(f"^{kind} = ", text, re.M)) for text in texts)


@pytest.mark.parametrize("module", MODULES)
def test_the_docstring_of_a_strategy_has_formula_cost_source_and_example(module: str) -> None:
    declared = importlib.import_module(f"trapline.strategies.{module}")
    text = declared.__doc__ or ""
    for kind, formula in (("PAGE", "Page rank:"), ("SITE", "Site rank:")):
        assert not hasattr(declared, kind) or formula in text
    assert "Cost:" in text and "Source:" in text and ">>> " in text


# The table of the specification, section 3: name, page rank, site rank.
TABLE = [
    ("breadth-first", "fifo", "fifo"),
    ("depth", "depth", "top-page"),
    ("performance", "fifo", "performance"),
    ("quality", "quality", "top-page"),
    ("crawl-ability", "quality", "crawl-ability"),
    ("larger-sites-first", "fifo", "larger-sites-first"),
    *((name, name, "top-page") for name in ("backlink-count", "batch-pagerank", "partial-pagerank", "opic")),
    *((f"historical-pagerank-{kind}",) * 2 + ("top-page",) for kind in ("omniscient", "random", "zero", "parent")),
    ("omniscient", "omniscient", "top-page"),
    ("random", "random", "top-page"),
]


@pytest.mark.parametrize(("name", "page", "site"), TABLE)
def test_every_row_of_the_table_is_a_strategy(name: str, page: str, site: str) -> None:
    strategy = load_strategy(name)
    assert (strategy.page.name, strategy.site.name) == (page, site)


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


@pytest.mark.parametrize("strategy", strategies().values(), ids=name_of)
@settings(max_examples=WEBS)
@given(graph=GRAPHS, k=st.sampled_from([1, 3]), batch=st.sampled_from([0, 4]), rescore=st.sampled_from([0, 5]))
def test_every_reachable_page_is_fetched_once(
    strategy: Strategy, graph: Graph, k: int, batch: int, rescore: int
) -> None:
    fetched = order(graph, strategy, delay_s=1.0, per_connection=k, batch=batch, rescore=rescore)
    assert sorted(fetched) == sorted(reachable(graph))


@pytest.mark.parametrize("strategy", sample(PAIRS, 3), ids=name_of)
def test_any_page_rank_works_with_any_site_rank(strategy: Strategy) -> None:
    for number, rules in enumerate(({"batch": 0}, {"batch": 4}, {"rescore": 5})):
        graph = random_graph(number)
        fetched = order(graph, strategy, delay_s=1.0, per_connection=2, **rules)
        assert sorted(fetched) == sorted(reachable(graph))


@pytest.mark.parametrize("strategy", EVERY, ids=name_of)
@settings(max_examples=WEBS // 4)
@given(graph=GRAPHS)
def test_the_same_web_is_crawled_in_the_same_order(strategy: Strategy, graph: Graph) -> None:
    orders = [order(graph, strategy, per_connection=2, rescore=5) for _ in range(2)]
    assert orders[0] == orders[1]


# One queue (top_page.py).


class Serials:
    """The page records that a rank sees, as far as they exist without a frontier."""

    def __init__(self) -> None:
        self.depth: dict[int, int] = {}
        self.serial: dict[int, int] = {}

    def __getitem__(self, page: int) -> SimpleNamespace:
        return SimpleNamespace(depth=self.depth[page], serial=self.serial[page])


def view_of(strategy: Strategy, pages: int, seed: int = 0) -> SimpleNamespace:
    columns = np.zeros((pages, max(1, len(strategy.page.columns))))
    for name, values in inputs_of(strategy, pages).items():
        columns[:, strategy.page.columns.index(name)] = values
    return SimpleNamespace(columns=columns, page=Serials(), run=[SimpleNamespace(seed=seed, rescored=0, pages=pages)])


class OneQueue:
    """One priority queue of all pages: the largest rank first, then the page discovered first. Entries never move: a
    page whose rank changes gets a second entry, and the old entry is skipped."""

    def __init__(self, graph: Graph, strategy: Strategy, rescore: int = 0) -> None:
        self.graph, self.page_rank, self.rescore = graph, strategy.page, rescore
        self.view = view_of(strategy, graph.pages)
        self.ranks: dict[int, float] = {}
        self.heap: list[tuple[float, int, int]] = []
        self.fetched: list[int] = []

    def order(self) -> list[int]:
        for page in self.graph.home.tolist():
            self.process_links(page, -1, 0)
        while self.heap:
            key, _, page = heapq.heappop(self.heap)
            if page not in self.fetched and -key == self.ranks[page]:
                self.fetch(self.checked(page) if self.page_rank.learns else page)
        return self.fetched

    def process_links(self, page: int, source: int, links: int) -> None:
        if page in self.fetched or (page in self.ranks and self.page_rank.constant):
            if self.page_rank.learns:
                self.page_rank.function(self.view, page, source, links, False)
            return
        is_new = page not in self.ranks
        if is_new:
            self.view.page.serial[page] = len(self.ranks)
            self.view.page.depth[page] = self.view.page.depth[source] + 1 if source >= 0 else 0
        self.push(page, self.page_rank.function(self.view, page, source, links, is_new))

    def push(self, page: int, rank: float) -> None:
        self.ranks[page] = rank
        heapq.heappush(self.heap, (-rank, self.view.page.serial[page], page))

    def checked(self, page: int) -> int:
        """The best page after up to 8 pages, each the best, were ranked again (docs/frontier.md, Y3)."""
        for _ in range(8):
            rank = self.page_rank.function(self.view, page, -1, 0, False)
            if rank >= self.ranks[page]:
                break
            self.push(page, rank)
            _key, _, page = min(
                entry for entry in self.heap if entry[2] not in self.fetched and -entry[0] == self.ranks[entry[2]]
            )
        return page

    def fetch(self, page: int) -> None:
        self.fetched.append(page)
        if self.page_rank.learns:
            self.page_rank.function(self.view, page, page, 0, False)
        links = self.graph.targets_of(page).tolist()
        for link in links:
            self.process_links(link, page, len(links))
        if self.page_rank.scores and self.rescore and len(self.fetched) % self.rescore == 0:
            self.take_scores(known_pagerank(self.graph, set(self.ranks), set(self.fetched)))

    def take_scores(self, scores: Any) -> None:
        self.view.columns[:, self.page_rank.columns.index(self.page_rank.scores)] = scores
        self.view.run[0].rescored += 1
        for page in self.ranks.keys() - set(self.fetched):
            self.push(page, self.page_rank.function(self.view, page, -1, 0, False))


@pytest.mark.parametrize("page", page_ranks())
@settings(max_examples=WEBS)
@given(graph=GRAPHS, rescore=st.sampled_from([0, 1, 4]))
def test_without_politeness_top_page_acts_as_one_queue_of_all_pages(page: str, graph: Graph, rescore: int) -> None:
    strategy = pair(page, "top-page")
    assert order(graph, strategy, delay_s=0.0, rescore=rescore) == OneQueue(graph, strategy, rescore).order()


@settings(max_examples=WEBS)
@given(graph=GRAPHS)
def test_without_politeness_fifo_is_the_order_of_discovery(graph: Graph) -> None:
    discovered = list(dict.fromkeys(graph.home.tolist()))
    for page in discovered:  # the queue grows during the crawl
        discovered += [link for link in graph.targets_of(page).tolist() if link not in discovered]
    assert order(graph, pair("fifo", "fifo"), delay_s=0.0) == discovered
    assert order(graph, pair("depth", "top-page"), delay_s=0.0) == discovered


# Without a link, a page rank returns its present rank and counts nothing.


LINKS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30)


@pytest.mark.parametrize("page", page_ranks())
@settings(max_examples=WEBS)
@given(links=LINKS, scores=st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=8, max_size=8))
def test_ranking_without_a_link_changes_nothing(page: str, links: list[tuple[int, int]], scores: list[float]) -> None:
    rank, view = page_rank_named(page), view_of(pair(page, "top-page"), 8)
    standing: dict[int, float] = {}
    for source, target in [(-1, 0), *links]:
        is_new = target not in standing
        if source >= 0 and source not in standing:
            continue
        view.page.serial.setdefault(target, len(standing))
        view.page.depth.setdefault(target, 0 if source < 0 else 1)
        if is_new or not rank.constant:
            standing[target] = rank.function(view, target, source, 3 if source >= 0 else 0, is_new)
        if rank.learns:  # a page may change the ranks of others
            standing = {known: rank.function(view, known, -1, 0, False) for known in standing}
        before = view.columns.copy()
        answers = {known: rank.function(view, known, -1, 0, False) for known in standing}
        assert answers == standing and (view.columns == before).all()
    if rank.scores:
        view.columns[:, rank.columns.index(rank.scores)] = scores
        before = view.columns.copy()
        answers = [[rank.function(view, known, -1, 0, False) for known in standing] for _ in range(2)]
        assert answers[0] == answers[1] and (view.columns == before).all()


@pytest.mark.parametrize("page", [name for name, rank in page_ranks().items() if rank.constant])
def test_further_links_do_not_change_a_constant_rank(page: str) -> None:
    rank, view = page_rank_named(page), view_of(pair(page, "top-page"), 8)
    for known in range(8):
        view.page.serial[known], view.page.depth[known] = known, 0
    first = [rank.function(view, known, known - 1, 2 if known else 0, True) for known in range(8)]
    assert [rank.function(view, known, 7, 5, False) for known in range(8)] == first


# A site rank depends only on the values that it declares.

FIELDS = {
    "waiting": ("waiting",),
    "best": ("best_key", "best_serial"),
    "oldest": ("oldest_serial",),
    "planned": ("planned",),
    "quality_sum": ("quality_sum",),
}


@pytest.mark.parametrize("site", site_ranks())
def test_a_site_rank_reads_exactly_what_it_declares(site: str) -> None:
    rank = site_rank_named(site)
    run = SimpleNamespace(seed=1, pipeline_gain=1.0, small_site_pages=0, small_site_delay_s=15.0, delay_s=5.0)
    record = SimpleNamespace(connection_s=0.5, response_s=0.25, delay_s=float("nan"), known=9, taken=3, turn=2)
    queue = {"waiting": 7, "best_key": 0.5, "best_serial": 4, "oldest_serial": 2, "planned": 3, "quality_sum": 1.25}

    def answer(**changed: float) -> float:
        return rank.function(SimpleNamespace(run=[run]), record, SimpleNamespace(**{**queue, **changed}))

    for name, fields in FIELDS.items():
        changes = [answer(**{field: queue[field] + 1}) != answer() for field in fields]
        assert any(changes) == (name in rank.reads)


# Random numbers.

CHANCE = [("random", "top-page"), ("random", "random"), ("fifo", "random")]


@pytest.mark.parametrize(("page", "site"), CHANCE)
def test_random_ranks_depend_on_the_seed_only(page: str, site: str) -> None:
    graph = graph_of([list(range(30)), *([] for _ in range(29))], [number % 6 for number in range(30)])
    orders = [tuple(order(graph, pair(page, site), seed, delay_s=0.0)) for seed in (0, 0, 1, 2)]
    assert orders[0] == orders[1]
    assert len(set(orders)) == 3


def test_a_site_uses_other_random_numbers_than_its_pages() -> None:
    """Otherwise a random order of sites would be that of their best pages."""
    graph = graph_of([list(range(30)), *([] for _ in range(29))], [number % 6 for number in range(30)])
    assert order(graph, pair("random", "random"), delay_s=0.0) != order(graph, pair("random", "top-page"), delay_s=0.0)


# Scores, by hand.


def test_partial_pagerank_adds_up_the_shares_of_parents() -> None:
    """Without a run: the seed has 1, and pages 1 and 2 have half of it. Page 1 gives 1/8 each to 3, 4, 5 and 6; page 2
    gives 1/4 to 6 and 7. So 6 (3/8) comes before 7 (1/4), and the others follow."""
    graph = graph_of([[1, 2], [3, 4, 5, 6], [6, 7], [], [], [], [], []], [0] * 8)
    assert order(graph, load_strategy("partial-pagerank"), delay_s=0.0) == [0, 1, 2, 6, 7, 3, 4, 5]


def test_partial_pagerank_gives_a_seed_1_before_the_first_run_and_0_after_it() -> None:
    frontier = Frontier(load_strategy("partial-pagerank"), Rules(rescore=1))
    frontier.add_sites(1, 0.0, groups=[0])
    frontier.add_pages([0, 0, 0])
    frontier.discover([0, 1], 0.0)
    assert frontier.waiting_pages(0)[1].tolist() == [1.0, 1.0]
    frontier.rescore([0.75, 0.25, 0.0], 0.0)
    frontier.discover([2], 0.0)
    assert frontier.waiting_pages(0)[1].tolist() == [0.75, 0.25, 0.0]


def test_batch_pagerank_fetches_a_batch_before_it_ranks_again() -> None:
    """Batches of 2: the two seeds come first, as equals. Both link to page 4, so it is the best of the known graph and
    leads the second batch with the older of the others, 2. Page 5, to which 4 links, waits for the third batch, and so
    does 3. In batches of 1 the links of page 0 have a score before seed 1 is considered."""
    graph = graph_of([[2, 4], [3, 4], [], [], [5], []], [0, 1, 0, 1, 0, 1])
    strategy = load_strategy("batch-pagerank")
    assert order(graph, strategy, delay_s=0.0, batch=2) == [0, 1, 4, 2, 5, 3]
    assert order(graph, strategy, delay_s=0.0, batch=1) == [0, 2, 4, 5, 1, 3]


# Compiled or not, the order is the same.

ORDERS = """
import json
from tests.strategies.webs import crawl, random_graph
from trapline.frontier import Rules
from trapline.strategies import page_ranks, pair, site_ranks

both_rules = Rules(delay_s=1.0, per_connection=2, rescore=5), Rules(delay_s=1.0, batch=4)
pairs = [("opic", site) for site in site_ranks()] + [(page, "top-page") for page in page_ranks()]
webs = [random_graph(number) for number in range(3)]
print(json.dumps([crawl(web, pair(*both), rules, seed=3) for both in pairs for web in webs for rules in both_rules]))
"""


@slow
@pytest.mark.skipif(UNCOMPILED, reason="NUMBA_DISABLE_JIT=1: there is nothing to compare with")
def test_every_rank_gives_the_same_order_without_compilation() -> None:
    def orders(disable_jit: str) -> Any:
        path = os.pathsep.join(entry for entry in (str(FOLDER.parents[1]), *sys.path) if entry)
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disable_jit, "PYTHONPATH": path}
        root = Path(__file__).parents[2]
        done = subprocess.run(
            [sys.executable, "-c", ORDERS], env=environment, cwd=root, capture_output=True, check=True
        )
        return json.loads(done.stdout)

    assert orders("1") == orders("0")


# The kind of queue changes the cost and never the order (queue.py).


def in_a_heap(strategy: Strategy) -> Strategy:
    page = strategy.page
    return replace(strategy, page=replace(page, constant=page.constant or page.fifo, fifo=False))


def in_next_visit_queues(strategy: Strategy) -> Strategy:
    site = strategy.site
    return replace(strategy, site=replace(site, reads=tuple({*site.reads, "quality_sum"})))


QUEUES = [*strategies().values(), pair("fifo", "random"), pair("opic", "fifo"), pair("opic", "larger-sites-first")]
OTHER_KINDS = [
    *((strategy, in_a_heap(strategy), HEAP) for strategy in QUEUES if strategy.queue == FIFO),
    *((strategy, in_next_visit_queues(strategy), NEXT_VISIT) for strategy in QUEUES if strategy.queue != NEXT_VISIT),
]


def without_inputs(strategy: Strategy) -> Strategy:
    """The worlds have quality only, so a rank that wants other inputs reads empty columns."""
    return replace(strategy, page=replace(strategy.page, inputs=tuple(set(strategy.page.inputs) & {"quality"})))


@pytest.mark.parametrize(
    ("strategy", "other", "kind"), OTHER_KINDS, ids=[f"{one.name} in {kind}" for one, _, kind in OTHER_KINDS]
)
@settings(max_examples=max(3, WEBS // 4))
@given(world=HOSTILE_WORLDS)
def test_the_kind_of_queue_does_not_change_the_order(
    strategy: Strategy, other: Strategy, kind: int, world: World
) -> None:
    assert other.queue == kind != strategy.queue
    rules = Rules(**{**world.rules, "batch": 0})  # with next-visit queues a batch takes whole next visits, by law
    traces = [drive(Frontier(without_inputs(one), rules), world) for one in (other, strategy)]
    assert traces[0] == traces[1]


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
        assert order(graph, strategy, delay_s=0.0) == OneQueue(graph, strategy).order()

    is_that_of_the_twin()


def test_an_edited_users_file_never_comes_from_a_cache(tmp_path: Path) -> None:
    graph = graph_of([[1, 2, 3], [3], [], []], [0, 0, 0, 0])
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
def test_the_error_for_a_page_rank_that_is_not_a_number_names_strategy_and_page(tmp_path: Path, value: str) -> None:
    text = "NO_NUMBER = " + value + MOST_LINKED.replace("s.columns[page, 0]\n\n", "NO_NUMBER if page else 0.0\n\n", 1)
    with pytest.raises(ConfigError, match=r"'most-linked'.* page 1 "):
        crawl_of_two(load_strategy(written(tmp_path, text)))


@pytest.mark.parametrize("value", ["float('nan')", "float('inf')"])
def test_the_error_for_a_site_rank_that_is_not_a_number_names_strategy_and_site(tmp_path: Path, value: str) -> None:
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
        (MOST_LINKED.replace("@page_rank", "@site_rank"), "site rank"),
    ],
    ids=["empty", "not a strategy", "syntax", "raises", "reads", "not decorated", "wrongly decorated"],
)
def test_a_file_without_a_strategy_is_refused_in_one_line_that_names_it(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_strategy(written(tmp_path, text))
    line = str(caught.value)
    assert "mine.py" in line and says in line and "\n" not in line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return queue.best_key", "queue.waiting = 10\n    return queue.best_key"),
        ("return queue.best_key", "s.columns[0, 0] = 1.0\n    return queue.best_key"),
        ("if is_new:", "s.page[page].site = 3\n    if is_new:"),
        ("if is_new:", "s.run[0].seed = 3\n    if is_new:"),
    ],
    ids=["its queue", "a column", "a page", "the run"],
)
def test_a_rank_that_writes_outside_its_columns_is_refused(tmp_path: Path, old: str, new: str) -> None:
    """Compiled code would allow the change and crash."""
    with pytest.raises(ConfigError, match=r"mine\.py: rank function .* changes a record"):
        load_strategy(written(tmp_path, MOST_LINKED.replace(old, new)))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.py: no such strategy file"):
        load_strategy(str(tmp_path / "nothing.py"))


@pytest.mark.skipif(UNCOMPILED, reason="NUMBA_DISABLE_JIT=1: plain Python finds out when it runs")
def test_a_rank_that_cannot_be_compiled_is_refused_in_one_line(tmp_path: Path) -> None:
    text = MOST_LINKED.replace("return queue.best_key", "return queue.best_kye")
    with pytest.raises(ConfigError) as caught:
        crawl_of_two(load_strategy(written(tmp_path, text)))
    line = str(caught.value)
    assert "best_kye" in line and "\n" not in line


# A page rank or site rank from one file.

PAGE_ALONE = (
    MOST_LINKED.replace("STRATEGY = Strategy(", "_ = (").replace("\n    PageRank", "PageRank")
    + """
PAGE = PageRank("links", links_so_far, columns=("links",))
"""
)


def test_a_file_gives_the_requested_page_rank_or_site_rank(tmp_path: Path) -> None:
    whole = written(tmp_path, MOST_LINKED)
    assert (page_rank_named(whole).name, site_rank_named(whole).name) == ("links", "best")
    assert pair(whole, "fifo").name == "links x fifo"
    graph = graph_of([[1, 2, 3], [3], [], []], [0, 0, 0, 0])
    assert order(graph, pair(whole, "top-page")) == [0, 1, 3, 2]
    alone = written(tmp_path, PAGE_ALONE)
    assert page_rank_named(alone).name == "links"
    with pytest.raises(ConfigError, match=r"mine\.py: declares no site rank; add SITE = SiteRank"):
        site_rank_named(alone)
    with pytest.raises(ConfigError, match=r"mine\.py: declares no strategy; add STRATEGY"):
        load_strategy(alone)


def test_the_row_of_an_error_is_named_also_with_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "\n1 / 0")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^mine\.py, row 2: cannot be loaded: ZeroDivisionError"):
        load_strategy("mine.py")


@pytest.mark.parametrize("named", [page_rank_named, site_rank_named])
def test_a_missing_page_rank_or_site_rank_is_refused_in_one_line_that_names_the_file(
    tmp_path: Path, named: Any
) -> None:
    for text in ("PAGE = SITE = 'opic'", "STRATEGY = 'opic'", "", "1 / 0"):
        with pytest.raises(ConfigError, match=r"mine\.py(, row 1)?: [^\n]+$"):
            named(written(tmp_path, text))
    with pytest.raises(ConfigError, match=r"nothing\.py: no such strategy file"):
        named(str(tmp_path / "nothing.py"))


# Names.


def test_the_error_for_a_wrong_name_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'larger-sites-first'"):
        load_strategy("larger-site-first")
    with pytest.raises(ConfigError, match="no page rank 'opik'; did you mean 'opic'"):
        pair("opik", "fifo")
    with pytest.raises(ConfigError, match="no site rank 'toppage'; did you mean 'top-page'"):
        pair("opic", "toppage")


def test_a_pair_has_its_given_name_or_that_of_its_parts() -> None:
    assert pair("opic", "fifo").name == "opic x fifo"
    assert pair("opic", "fifo", "mine").name == "mine"
