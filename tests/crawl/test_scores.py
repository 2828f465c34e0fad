"""Scores of a live crawl are PageRank of what it knows, by whichever order its pages came in."""

import numpy as np
import pytest

from trapline.crawl.engine.quality import TOLERANCE, Scores
from trapline.frontier.layout import FETCHED, UNKNOWN, WAITING, Array
from trapline.graph import Graph, generate
from trapline.graph.pagerank import DAMPING, Runs, pagerank


@pytest.fixture(scope="module")
def web() -> Graph:
    return generate(300, 10, seed=6)


def kept(web: Graph, pages: list[int]) -> Scores:
    scores = Scores()
    for page in pages:
        scores.keep(page, web.targets_of(page))
    return scores


def life_of(web: Graph, fetched: list[int]) -> Array:
    life = np.full(web.pages, UNKNOWN, np.uint8)
    for page in fetched:
        life[web.targets_of(page)] = WAITING
    life[fetched] = FETCHED
    return life


def test_of_a_whole_web_they_are_its_pagerank(web: Graph) -> None:
    pages = np.random.default_rng(1).permutation(web.pages).tolist()
    found = kept(web, pages).scores(np.full(web.pages, FETCHED, np.uint8))
    assert found == pytest.approx(pagerank(web), abs=10 * TOLERANCE / web.pages)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.6])
def test_of_a_part_they_are_those_of_the_graph_with_only_the_links_of_pages_fetched(web: Graph, share: float) -> None:
    fetched = np.random.default_rng(2).permutation(web.pages)[: int(share * web.pages)].tolist()
    life = life_of(web, fetched)
    whole = Runs(web, DAMPING).run((life != UNKNOWN).view(np.uint8), (life == FETCHED).view(np.uint8), TOLERANCE)
    assert np.array_equal(kept(web, fetched).scores(life), whole)


def test_they_come_back_from_the_links_that_the_database_has(web: Graph) -> None:
    fetched = list(range(0, web.pages, 3))
    restored = Scores()
    restored.restore((page, web.targets_of(page).astype("<i4").tobytes()) for page in fetched)
    life = life_of(web, fetched)
    assert np.array_equal(restored.scores(life), kept(web, fetched).scores(life))


def test_a_page_that_is_kept_twice_counts_as_it_was_last(web: Graph) -> None:
    """After its lease had expired, it was fetched again."""
    fetched = list(range(50))
    twice = kept(web, fetched)
    twice.keep(7, np.arange(200, dtype=np.int32))
    twice.keep(7, web.targets_of(7))
    life = life_of(web, fetched)
    assert np.array_equal(twice.scores(life), kept(web, fetched).scores(life))
