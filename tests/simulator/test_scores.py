"""Scores are PageRank of the known graph, compared with a dense solution of the surfer's Markov chain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.simulator.test_driver import GRAPHS, graph_of
from trapline.frontier.layout import FETCHED, GONE, LEASED, UNKNOWN, WAITING
from trapline.graph import Graph
from trapline.graph.pagerank import DAMPING
from trapline.simulator.scores import KnownGraph


def surfer(graph: Graph, life: np.ndarray) -> np.ndarray:
    """The stationary distribution over known pages. From a fetched page the surfer follows a link. From any other page,
    from a page without links, and along a link to an unknown page (too deep), he jumps anywhere."""
    known = np.flatnonzero(life != UNKNOWN)
    place = {page: i for i, page in enumerate(known.tolist())}
    n = len(known)
    moves = np.zeros((n, n))  # from, to
    for page, i in place.items():
        links = graph.targets_of(page).tolist() if life[page] == FETCHED else []
        for target in links:
            if target in place:
                moves[i, place[target]] += 1 / len(links)
        moves[i] += (1 - moves[i].sum()) / n
    chain = DAMPING * moves + (1 - DAMPING) / n
    stationary = np.linalg.lstsq(np.vstack((chain.T - np.eye(n), np.ones(n))), np.append(np.zeros(n), 1.0), rcond=None)[
        0
    ]
    result = np.zeros(graph.pages)
    result[known] = stationary
    return result


def lives(graph: Graph, order: list[int]) -> list[np.ndarray]:
    """What is known after each step of a crawl in this order. Every third page is gone or leased when its turn comes."""
    life = np.full(graph.pages, UNKNOWN, np.uint8)
    life[graph.home] = WAITING
    seen = []
    for step, page in enumerate(order):
        if life[page] != WAITING:
            continue
        life[page] = (FETCHED, FETCHED, GONE, FETCHED, LEASED)[step % 5]
        if life[page] == FETCHED:
            targets = graph.targets_of(page)
            life[targets[life[targets] == UNKNOWN]] = WAITING
        seen.append(life.copy())
    return seen


@settings(max_examples=examples(60))
@given(graph=GRAPHS, order=st.permutations(range(40)), every=st.integers(1, 5))
def test_scores_are_the_stationary_distribution_run_after_run(graph: Graph, order: list[int], every: int) -> None:
    known = KnownGraph(graph, tolerance=1e-13)
    for life in lives(graph, [page for page in order if page < graph.pages])[::every]:
        scores = known.scores(life)
        np.testing.assert_allclose(scores, surfer(graph, life), atol=1e-10)
        assert scores.sum() == pytest.approx(1.0, abs=1e-12)
        assert (scores[life == UNKNOWN] == 0.0).all()


def test_the_tolerance_bounds_the_error() -> None:
    """In the sum over all pages: the changes still to come shrink by the damping factor in each pass."""
    random = np.random.default_rng(3)
    graph = graph_of([random.permutation(300)[:6].tolist() for _ in range(300)], [0] * 300, [0])
    life = np.full(300, FETCHED, np.uint8)
    for tolerance in (1e-3, 1e-6, 1e-9):
        error = np.abs(KnownGraph(graph, tolerance).scores(life) - surfer(graph, life)).sum()
        assert error <= tolerance * DAMPING / (1 - DAMPING) * 2


def test_a_link_to_an_unknown_page_is_a_jump_to_any_page() -> None:
    """Page 0 links to 1 and to 2, which is too deep to be known: x0 = .075 + .85 (x0/4 + x1/2), and x0 + x1 = 1."""
    graph = graph_of([[1, 2], [], []], [0, 0, 0], [0])
    scores = KnownGraph(graph, 1e-13).scores(np.array([FETCHED, WAITING, UNKNOWN], np.uint8))
    x0 = (0.075 + 0.425) / (1 + 0.2125)
    np.testing.assert_allclose(scores, [x0, 1 - x0, 0.0], atol=1e-12)


def test_a_run_starts_where_the_last_one_ended() -> None:
    random = np.random.default_rng(4)
    graph = graph_of([random.permutation(300)[:6].tolist() for _ in range(300)], [0] * 300, [0])
    known, life = KnownGraph(graph), np.full(300, FETCHED, np.uint8)
    life[299] = WAITING
    known.scores(life)
    first = known.passes
    life[299] = FETCHED
    known.scores(life)
    assert known.passes - first < first
