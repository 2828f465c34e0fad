"""Page ranks see features of URLs, and keep states of sites and directories, simulated and live alike."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.crawler.small_server import page, small_server
from trapline.errors import ConfigError
from trapline.fetch.urls import canonical
from trapline.frontier import FETCHED, Frontier, Outcome, Result, Rules, Visit
from trapline.graph import Graph, graph_from_edges, pagerank
from trapline.graph.strings import decoded
from trapline.parallel import EXCHANGE
from trapline.simulator import simulate
from trapline.strategies import Strategy, load_strategy
from trapline.strategies.base.inputs import inputs_for
from trapline.strategies.base.live_inputs import live_inputs
from trapline.strategies.base.url_inputs import (
    FEATURES,
    STATE_PAGES,
    StatePages,
    directory,
    extension,
    extension_number,
    parameters,
    segments,
    site,
)

PATHS = ("", "a/", "a/x.pdf", "a/y", "a/b/z.html?q=1&r", "c/d/e", "?q")


def web_of(urls: list[str]) -> Graph:
    return graph_from_edges((urls[0], url) for url in urls)


@pytest.fixture(scope="module")
def web() -> Graph:
    return web_of([f"http://{host}.org/{path}" for host in "ab" for path in PATHS])


def strategy_of(folder: Path, function: str, inputs: tuple[str, ...], own: tuple[str, ...] = ()) -> Strategy:
    (folder / "mine.py").write_text(
        "from trapline.frontier.ranking import page_rank\n"
        "from trapline.strategies import PageRank, Strategy, extension_number, site_rank_named\n"
        "PDF = extension_number('pdf')\n"
        f"@page_rank\ndef rank(s, page, source, links, is_new):\n{function}\n"
        f"PAGE = PageRank('mine', rank, columns={(*inputs, *own)!r}, inputs={inputs!r}, constant=True)\n"
        "STRATEGY = Strategy('mine', PAGE, site_rank_named('fifo'))\n"
    )
    return load_strategy(str(folder / "mine.py"))


def urls_in_order(web: Graph, strategy: Strategy) -> list[str]:
    assert web.urls is not None
    inputs = inputs_for(strategy, web, np.zeros(web.pages), None, None, 0)
    log = simulate(web, strategy, Rules(delay_s=0.0), inputs=inputs).log
    return [web.urls[page] for page in log.page.tolist()]


@given(st.from_regex(r"https?://[a-z]{1,3}(:\d)?(/[a-z.]{0,3}){0,4}(\?[a-z=&/]{0,4})?(#[/?a]{0,2})?", fullmatch=True))
def test_features_are_those_of_the_standard_library(url: str) -> None:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    assert segments(url) == len([part for part in parts.path.split("/") if part])
    assert parameters(url) == len([part for part in parts.query.split("&") if part])
    assert site(url) == f"{parts.scheme}://{parts.netloc}"
    assert directory(url) == f"{site(url)}{parts.path.rpartition('/')[0]}/"
    _, _, end = parts.path.rpartition("/")[2].rpartition(".")
    assert extension(url) == (extension_number(end) if "." in parts.path.rpartition("/")[2] else 0)


@given(st.text("abcxyz019", min_size=1, max_size=6), st.text("abcxyz019", min_size=1, max_size=6))
def test_extensions_have_different_numbers_that_a_column_holds_exactly(one: str, other: str) -> None:
    assert (extension_number(one) == extension_number(other)) == (one == other)
    assert int(float(extension_number(one))) == extension_number(one) > 0


@given(
    st.lists(st.sampled_from([f"http://{h}.org/{p}" for h in "ab" for p in PATHS]), min_size=1, unique=True), st.data()
)
def test_a_live_crawl_gives_the_inputs_of_a_simulated_one(urls: list[str], data: st.DataObject) -> None:
    graph = web_of(urls)
    assert graph.urls is not None
    known = list(decoded(graph.urls))
    strategy = Strategy("all", _all_inputs(), load_strategy("opic").site)
    theirs = inputs_for(strategy, graph, np.zeros(graph.pages), None, None, 0)
    ours = live_inputs(strategy, None, None, 0, canonical, pagerank)
    assert set(ours) == set(FEATURES)
    for name, values in ours.items():
        assert list(values(known)) == theirs[name].tolist()
    at = data.draw(st.integers(0, len(known)))
    for name in STATE_PAGES:
        pages = StatePages(name)
        assert [*pages.of(known[:at], 0), *pages.of(known[at:], at)] == theirs[name].tolist()


def _all_inputs():  # type: ignore[no-untyped-def]
    from trapline.strategies import PageRank, page_rank_named

    names = (*FEATURES, *STATE_PAGES)
    return PageRank("all", page_rank_named("fifo").function, columns=names, inputs=names)


def test_a_rank_orders_by_features(web: Graph, tmp_path: Path) -> None:
    body = "    return s.columns[page, 0] * (100.0 if s.columns[page, 1] == PDF else 1.0)"
    mine = strategy_of(tmp_path, body, ("url_length", "url_extension"))
    order = [url for url in urls_in_order(web, mine) if url.startswith("http://a")]
    assert order[:3] == ["http://a.org/", "http://a.org/a/x.pdf", "http://a.org/a/b/z.html?q=1&r"]


def test_the_example_of_the_how_to_spreads_over_directories(web: Graph, tmp_path: Path) -> None:
    how_to = (Path(__file__).parents[2] / "docs" / "how-to" / "add-a-strategy.md").read_text()
    (tmp_path / "shallow.py").write_text(how_to.split("```python\n", 2)[2].split("```", 1)[0])
    order = urls_in_order(web, load_strategy(str(tmp_path / "shallow.py")))
    paths = [url.partition("a.org/")[2] for url in order if url.startswith("http://a.org/")]
    # a/y has two segments, and is the third known page of its directory: -4. Pages that tie are taken by age.
    assert paths == ["", "a/", "?q", "a/b/z.html?q=1&r", "c/d/e", "a/y", "a/x.pdf"]


def test_states_belong_to_sites_and_directories(web: Graph, tmp_path: Path) -> None:
    body = (
        "    if is_new:\n        keeper = int(s.columns[page, 0])\n"
        "        s.columns[page, 1] = s.columns[keeper, 2]\n        s.columns[keeper, 2] += 1.0\n"
        "    return -s.columns[page, 1]"
    )
    for name, common in STATE_PAGES.items():
        mine = strategy_of(tmp_path, body, (name,), ("before", "known"))
        inputs = inputs_for(mine, web, np.zeros(web.pages), None, None, 0)
        crawl = simulate(web, mine, Rules(delay_s=0.0), inputs=inputs)
        assert web.urls is not None
        known: dict[str, list[float]] = {}
        for number, url in enumerate(decoded(web.urls)):
            known.setdefault(common(url), []).append(float(crawl.frontier.column(1)[number]))
        assert all(sorted(before) == list(range(len(before))) for before in known.values())
        assert len(known) == (2 if name == "site_page" else 8)


def test_a_graph_without_urls_has_no_features(tmp_path: Path) -> None:
    mine = strategy_of(tmp_path, "    return s.columns[page, 0]", ("url_length",))
    with pytest.raises(ConfigError, match="the graph has no URLs"):
        inputs_for(mine, graph_from_edges([(0, 1)]), np.zeros(2), None, None, 0)
    by_site = strategy_of(tmp_path, "    return s.columns[page, 0]", ("site_page",))
    graph = graph_from_edges([(0, 1), (1, 2), (2, 3)], ids_per_site=2)
    assert inputs_for(by_site, graph, np.zeros(4), None, None, 0)["site_page"].tolist() == [0, 0, 2, 2]


def test_a_site_that_moves_gets_pages_of_its_new_frontier(tmp_path: Path) -> None:
    mine = strategy_of(tmp_path, "    return s.columns[page, 1]", ("site_page",), ("own",))
    old, new = (Frontier(mine, Rules(delay_s=0.0)) for _ in range(2))
    for frontier, sites, pages in ((old, 2, [0, 0, 1, 1]), (new, 1, [0, 0])):
        frontier.add_sites(sites, 0.0, range(sites))
        frontier.add_pages(pages)
        frontier.set_column("site_page", [0, 0, 2, 2][: len(pages)])
    old.discover([2, 3], 0.0)
    export = old.export_site(1, 0.0)
    new.import_site(export, 0, [0, 1], 0.0)
    assert new.column(0).tolist() == [0.0, 0.0]
    visit = new.next(0.0)
    assert isinstance(visit, Visit) and new.finish(visit, Outcome([Result(visit.pages[0], FETCHED)]), 1.0)


def test_partitions_keep_states_of_their_own_pages(web: Graph, tmp_path: Path) -> None:
    from trapline.parallel.partition import Partitioning
    from trapline.parallel.simulated.crawl import ParallelPlan, simulate_parallel
    from trapline.servers.sampled import constant_servers

    body = "    keeper = int(s.columns[page, 0])\n    return -s.columns[keeper, 1]"
    mine = strategy_of(tmp_path, body, ("directory_page",), ("own",))
    inputs = inputs_for(mine, web, np.zeros(web.pages), None, None, 0)
    plan = ParallelPlan(EXCHANGE, Partitioning("site-hash", 2))
    crawl = simulate_parallel(
        web, mine, Rules(delay_s=0.0), plan, seeds=web.home, servers=constant_servers(1.0), inputs=inputs
    )
    assert sum(len(log.page) for log in crawl.logs) == web.pages


def test_a_resumed_crawl_knows_the_pages_that_keep_states(tmp_path: Path) -> None:
    from trapline import crawl
    from trapline.crawler.files.reading import Reading
    from trapline.crawler.files.resume import rebuilt

    tree = {"/": ("/a/1", "/b/1"), "/a/1": ("/a/2", "/b/2", "/c/1"), "/b/1": ("/c/2",), "/a/2": ("/b/3", "/c/3")}
    names = tuple(STATE_PAGES)
    strategy_of(tmp_path, "    return -float(s.page[page].serial)", names)
    with small_server(lambda host, target: page(*tree.get(target, ())), ("127.0.0.1",)) as server:
        settings = {"allow_private": True, "delay": 0, "sitemaps": False, "connections": 1}
        seed, folder = f"http://127.0.0.1:{server.port}/", tmp_path / "out"
        for _ in crawl(seed, output=folder, strategy=str(tmp_path / "mine.py"), max_pages=2, **settings):
            pass
        list(crawl(resume=folder, max_pages=100))
    reading = Reading(folder)
    frontier, _ = rebuilt(reading)
    urls = dict(reading.connection.execute("select id, url from page order by id"))
    reading.close()
    assert list(urls) == list(range(9))
    for at, name in enumerate(names):
        assert frontier.column(at).tolist() == StatePages(name).of(list(urls.values()), 0)
