"""The link arrays of a graph, against dictionaries and lists."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trapline.graph.graph import csr_from_edges

PAGES = 7
edge_lists = st.lists(st.tuples(st.integers(0, PAGES - 1), st.integers(0, PAGES - 1)), max_size=60)


def arrays(edges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(edges, dtype=np.int32).reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def rows(offsets: np.ndarray, targets: np.ndarray) -> list[list[int]]:
    return [targets[a:b].tolist() for a, b in pairwise(offsets)]


@given(edge_lists)
def test_a_row_has_each_target_once_in_order_of_first_mention(edges: list[tuple[int, int]]) -> None:
    slow = [list(dict.fromkeys(t for s, t in edges if s == page)) for page in range(PAGES)]
    assert rows(*csr_from_edges(*arrays(edges), PAGES)) == slow


@given(edge_lists)
def test_links_of_a_page_to_itself_are_kept(edges: list[tuple[int, int]]) -> None:
    found = rows(*csr_from_edges(*arrays(edges), PAGES))
    assert {page for page in range(PAGES) if page in found[page]} == {s for s, t in edges if s == t}
