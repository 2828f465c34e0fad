"""The measures of a graph, by hand on a small one and against plain loops on generated ones."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.graph import Graph, depths, generate, measure


def slow_depths(graph: Graph) -> list[int]:
    depth = {int(page): 0 for page in graph.home}
    queue = deque(depth)
    while queue:
        page = queue.popleft()
        for target in graph.targets_of(page).tolist():
            if target not in depth:
                depth[target] = depth[page] + 1
                queue.append(target)
    return [depth.get(page, -1) for page in range(graph.pages)]


@given(st.integers(1, 200), st.integers(0, 99))
def test_depth_is_the_fewest_clicks_from_a_home_page(pages: int, seed: int) -> None:
    web = generate(pages, max(1, pages // 10), seed)
    assert depths(web).tolist() == slow_depths(web)


@given(st.integers(1, 200), st.integers(0, 99))
def test_shares_are_counts_over_counts(pages: int, seed: int) -> None:
    web = generate(pages, max(1, pages // 10), seed)
    found = measure(web)
    links = [(page, int(target)) for page in range(pages) for target in web.targets_of(page)]
    inside = [(s, t) for s, t in links if web.site[s] == web.site[t]]
    linking = {s for s, _ in links}
    assert found.self_links == sum(s == t for s, t in links)
    assert found.intra_site_share == (len(inside) / len(links) if links else 0)
    assert found.dangling_share == pytest.approx(1 - len(linking) / pages)
    assert found.home_link_share == (
        len({s for s, t in inside if t == web.home[web.site[s]]}) / len(linking) if linking else 0
    )
    assert found.reachable_share == 1


def test_a_page_out_of_reach_is_counted_as_such() -> None:
    ids = np.zeros(2, dtype=np.int32)
    graph = Graph(np.array([0, 1, 2]), np.array([0, 0], np.int32), ids, ids[:1], np.array([0, 1], np.uint8), ids[:1])
    found = measure(graph)
    assert depths(graph).tolist() == [0, -1]
    assert (found.reachable_share, found.self_links, found.dynamic_share, found.in_degree.max) == (0.5, 1, 0.5, 2)
    assert found.size_exponent is None
