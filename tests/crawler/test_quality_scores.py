"""The scores of a live crawl are the PageRank of its known graph, in whatever order the pages arrived."""

import numpy as np
import pytest

from trapline.crawler.engine.page_quality import TOLERANCE, Scores
from trapline.frontier.layout import FETCHED, UNKNOWN, WAITING, Array
from trapline.graph import Graph, generate
from trapline.graph.pagerank import DAMPING, Runs, pagerank


@pytest.fixture(scope="module")
def web() -> Graph:
    return generate(300, 10, seed=6)


def scores_of(web: Graph, pages: list[int]) -> Scores:
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


def test_the_scores_of_a_whole_web_are_its_pagerank(web: Graph) -> None:
    pages = np.random.default_rng(1).permutation(web.pages).tolist()
    found = scores_of(web, pages).scores(np.full(web.pages, FETCHED, np.uint8))
    # The last pass changed the ranks by less than TOLERANCE in all. Each further pass changes them by at most DAMPING times
    # as much, so that the sum of these changes bounds the distance from the limit.
    assert np.abs(found - pagerank(web)).sum() < TOLERANCE * DAMPING / (1 - DAMPING)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.6])
def test_the_scores_of_a_partial_crawl_use_only_the_links_of_fetched_pages(web: Graph, share: float) -> None:
    fetched = np.random.default_rng(2).permutation(web.pages)[: int(share * web.pages)].tolist()
    life = life_of(web, fetched)
    whole = Runs(web, DAMPING).run((life != UNKNOWN).view(np.uint8), (life == FETCHED).view(np.uint8), TOLERANCE)
    assert np.array_equal(scores_of(web, fetched).scores(life), whole)


def test_scores_are_restored_from_the_links_in_the_database(web: Graph) -> None:
    fetched = list(range(0, web.pages, 3))
    restored = Scores()
    restored.restore((page, web.targets_of(page).astype("<i4").tobytes()) for page in fetched)
    life = life_of(web, fetched)
    assert np.array_equal(restored.scores(life), scores_of(web, fetched).scores(life))


def test_the_last_fetch_of_a_page_counts(web: Graph) -> None:
    """The page was fetched again after its lease had expired."""
    fetched = list(range(50))
    twice = scores_of(web, fetched)
    twice.keep(7, np.arange(200, dtype=np.int32))
    twice.keep(7, web.targets_of(7))
    life = life_of(web, fetched)
    assert np.array_equal(twice.scores(life), scores_of(web, fetched).scores(life))
