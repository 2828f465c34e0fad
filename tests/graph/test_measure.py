"""The measures of a graph, worked out by hand for a small graph and compared with plain loops on generated ones."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.graph import Graph, depths, generate, locality, measure, measure_ranks


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
def test_shares_are_ratios_of_counts(pages: int, seed: int) -> None:
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
    assert found.links_to_home_share == (
        sum(t in set(web.home.tolist()) for _, t in links) / len(links) if links else 0
    )
    assert found.reachable_share == 1
    linked = [int(target) for _, target in links]
    assert found.linked_once_share == pytest.approx(sum(linked.count(page) == 1 for page in range(pages)) / pages)
    known = {t for s, t in links if web.site[s] != web.site[t]}
    assert found.outside_linked_share == pytest.approx(len(known) / pages)
    top = sorted((linked.count(page) for page in range(pages)), reverse=True)[: max(pages // 100, 1)]
    assert found.top_links_share == (pytest.approx(sum(top) / len(links)) if links else 0)


def test_an_unreachable_page_is_counted() -> None:
    ids = np.zeros(2, dtype=np.int32)
    graph = Graph(np.array([0, 1, 2]), np.array([0, 0], np.int32), ids, ids[:1], np.array([0, 1], np.uint8), ids[:1])
    found = measure(graph)
    assert depths(graph).tolist() == [0, -1]
    assert (found.reachable_share, found.self_links, found.dynamic_share, found.in_degree.max) == (0.5, 1, 0.5, 2)
    assert found.size_exponent is None


def test_locality_by_hand() -> None:
    site = np.array([0, 0, 1, 1], dtype=np.int32)
    # Places 0, 1, 2, 3: between sites 4/1, within 1/2, so (4 - .5)/(4 + .5).
    assert locality(site, np.array([0.1, 0.2, 0.5, 9.0])) == pytest.approx(3.5 / 4.5)
    assert locality(site, np.array([1.0, 1.0, 2.0, 2.0])) == 1
    assert locality(site, np.ones(4)) is None
    assert locality(np.zeros(4, np.int32), np.arange(4.0)) is None
    assert locality(np.arange(4, dtype=np.int32), np.arange(4.0)) is None


@given(st.integers(0, 99))
def test_locality_depends_only_on_the_order_of_values_and_is_near_0_for_random_ones(seed: int) -> None:
    random = np.random.default_rng(seed)
    site, values = random.integers(0, 20, 2_000).astype(np.int32), random.random(2_000)
    found = locality(site, values)
    assert found == pytest.approx(locality(site, np.exp(7 * values)))
    assert found is not None and abs(found) < 0.03


def test_shares_of_a_value_by_hand() -> None:
    web = generate(10, 2, seed=1)
    values = np.ones(10)
    values[web.home[0]] = 11.0
    found = measure_ranks(web, values)
    assert (found.home_share, found.top_tenth_share) == (12 / 20, 11 / 20)
