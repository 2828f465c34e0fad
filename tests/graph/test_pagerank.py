"""PageRank, against the eigenvector of the dense matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trapline.errors import ConfigError
from trapline.graph import Graph, generate, pagerank
from trapline.graph.graph import csr_from_edges

PAGES = 6
edge_lists = st.lists(st.tuples(st.integers(0, PAGES - 1), st.integers(0, PAGES - 1)), max_size=30)


def graph_of(edges: list[tuple[int, int]], pages: int = PAGES) -> Graph:
    pairs = np.array(edges, dtype=np.int32).reshape(-1, 2)
    offsets, targets = csr_from_edges(np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]), pages)
    zeros = np.zeros(pages, dtype=np.int32)
    return Graph(offsets, targets, zeros, zeros[:1], zeros.astype(np.uint8), zeros[:1])


def dense_pagerank(graph: Graph, damping: float) -> np.ndarray:
    n = graph.pages
    moves = np.zeros((n, n))
    for page in range(n):
        targets = graph.targets_of(page)
        moves[:, page] = 1 / n if not len(targets) else 0
        for target in targets:
            moves[target, page] = 1 / len(targets)
    # The stationary vector of the random walk with jumps, as the solution of a linear system.
    return np.linalg.solve(np.eye(n) - damping * moves, np.full(n, (1 - damping) / n))


@given(edge_lists, st.sampled_from([0.0, 0.5, 0.85, 0.95]))
def test_pagerank_is_the_stationary_vector_of_the_random_walk_with_jumps(
    edges: list[tuple[int, int]], damping: float
) -> None:
    graph = graph_of(edges)
    ranks = pagerank(graph, damping, tolerance=1e-13)
    assert ranks == pytest.approx(dense_pagerank(graph, damping), abs=1e-10)
    assert ranks.sum() == pytest.approx(1, abs=1e-12)


@given(edge_lists, st.lists(st.floats(0.01, 1), min_size=PAGES, max_size=PAGES))
def test_the_start_vector_does_not_matter(edges: list[tuple[int, int]], start: list[float]) -> None:
    graph = graph_of(edges)
    warm = pagerank(graph, tolerance=1e-12, start=np.array(start))
    assert warm == pytest.approx(pagerank(graph, tolerance=1e-12), abs=1e-10)


def test_a_start_from_the_solution_ends_after_one_iteration() -> None:
    graph = generate(300, 10, seed=3)
    solution = pagerank(graph, tolerance=1e-12)
    assert pagerank(graph, start=solution, max_iterations=1) == pytest.approx(solution, abs=1e-9)


def test_the_order_of_links_on_a_page_does_not_change_a_bit() -> None:
    edges = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2), (4, 2)]
    assert np.array_equal(pagerank(graph_of(edges)), pagerank(graph_of(edges[::-1])))


def test_pages_without_any_link_have_equal_pagerank() -> None:
    assert pagerank(graph_of([])).tolist() == pytest.approx([1 / PAGES] * PAGES)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"damping": 1.0}, "damping"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": 1e-9, "max_iterations": 1}, "1 iterations"),
        ({"start": np.ones(3)}, f"{PAGES} numbers"),
        ({"start": np.full(PAGES, np.nan)}, "numbers"),
        ({"start": np.zeros(PAGES)}, "not only zeros"),
    ],
)
def test_invalid_values_are_named(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        pagerank(graph_of([(0, 1), (1, 0), (2, 3)]), **options)  # type: ignore[arg-type]
