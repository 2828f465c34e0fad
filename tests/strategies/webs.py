"""Small random webs, and a crawl of one by one connection through the frontier's interface. A page takes a second, and
scores take no time.

This is what the laws of strategies need. tests/frontier/worlds.py has failures and several connections.

"""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from trapline.frontier import FETCHED, Drained, Frontier, Outcome, Rescore, Rules, WaitUntil
from trapline.frontier.layout import UNKNOWN
from trapline.graph import Graph
from trapline.strategies import Strategy
from trapline.strategies.base.url_inputs import STATE_PAGES


def graph_of(links: list[list[int]], site: list[int], ips: list[int] | None = None, **more: Any) -> Graph:
    sites = max(site) + 1
    return Graph(
        offsets=np.cumsum([0, *map(len, links)]).astype(np.int64),
        targets=np.array([target for page in links for target in page], np.int32),
        site=np.array(site, np.int32),
        home=np.array([site.index(one) for one in range(sites)], np.int32),
        dynamic=np.zeros(len(site), np.uint8),
        ips=np.array(range(sites) if ips is None else ips, np.int32),
        **more,
    )


def random_graph(number: int) -> Graph:
    """Up to 7 sites on up to 3 addresses, up to 40 pages. Every site has a home page."""
    random = np.random.default_rng(number)
    sites = int(random.integers(1, 8))
    pages = sites + int(random.integers(0, 34))
    site = [*range(sites), *random.integers(0, sites, pages - sites).tolist()]
    links = [random.permutation(pages)[: random.integers(0, 7)].tolist() for _ in range(pages)]
    return graph_of(links, site, random.integers(0, min(3, sites), sites).tolist())


# A web is one number, and nothing is shrunk: uncompiled that would take minutes, and a web of 40 pages is readable.
GRAPHS = st.integers(0, 2**32 - 1).map(random_graph)


def inputs_of(strategy: Strategy, pages: int) -> dict[str, Any]:
    """Numbers with ties, some of them negative, for every column that the page rank wants. Three pages in a row have a directory, whose
    state the first of them keeps."""
    given = {name: (np.arange(pages) * 7 + at) % 5 / 4 - 0.5 for at, name in enumerate(strategy.page.inputs)}
    return given | {name: np.arange(pages) // 3 * 3.0 for name in STATE_PAGES if name in given}


def known_pagerank(graph: Graph, known: set[int], fetched: set[int]) -> Any:
    """PageRank of the known graph, and 0 for all other pages. Its nodes are the discovered pages, its links those of
    fetched pages."""
    nodes = sorted(known)
    rank = dict.fromkeys(nodes, 1.0 / len(nodes))
    for _ in range(40):
        new = dict.fromkeys(nodes, 0.15 / len(nodes))
        for page in nodes:
            targets = graph.targets_of(page).tolist() if page in fetched else []
            for target in targets or nodes:
                new[target] += 0.85 * rank[page] / len(targets or nodes)
        rank = new
    scores = np.zeros(graph.pages)
    scores[nodes] = [rank[page] for page in nodes]
    return scores


def crawl(graph: Graph, strategy: Strategy, rules: Rules, seed: int = 0) -> list[int]:
    """The pages in the order in which one connection fetches them."""
    frontier = Frontier(strategy, rules, seed)
    frontier.add_sites(graph.sites, 0.0, graph.ips)
    frontier.add_pages(graph.site, graph.dynamic)
    for name, values in inputs_of(strategy, graph.pages).items():
        frontier.set_column(name, values)
    frontier.discover(graph.home, 0.0)
    fetched: list[int] = []
    now = 0.0
    while not isinstance(answer := frontier.next(now), Drained):
        if isinstance(answer, WaitUntil):
            assert answer.time > now
            now = answer.time
        elif isinstance(answer, Rescore):
            assert answer.fetched == len(fetched)
            known = {page for page in range(graph.pages) if frontier.page_state(page) != UNKNOWN}
            frontier.rescore(known_pagerank(graph, known, set(fetched)), now)
        else:
            for page in answer.pages:
                now += 1.0
                assert frontier.report(answer, page, FETCHED, now, graph.targets_of(page), 1.0)
                fetched.append(page)
            assert frontier.finish(answer, Outcome(connection_s=0.5), now)
    return fetched
