"""The recorded graphs beside the repository, where present: their published counts."""

from pathlib import Path

import pytest

from trapline.graph import load_graph, measure, pagerank


@pytest.mark.parametrize(
    ("name", "pages", "sites", "links", "self_links"),
    [("ku-crawl-2021b", 8_337, 479, 124_261, 1_453), ("cs-stanford", 9_914, 21, 36_854, 1_299)],
)
def test_counts(shared_data: Path, name: str, pages: int, sites: int, links: int, self_links: int) -> None:
    found = measure(load_graph(shared_data / name))
    # Neither file has parallel links, and the published counts include links of pages to themselves.
    assert (found.pages, found.sites, found.links, found.self_links) == (pages, sites, links, self_links)


def test_home_pages_reach_all_but_one_page(shared_data: Path) -> None:
    graph = load_graph(shared_data / "ku-crawl-2021b")
    assert round(measure(graph).reachable_share * graph.pages) == graph.pages - 1


def test_pagerank_converges_and_sums_to_one(shared_data: Path) -> None:
    ranks = pagerank(load_graph(shared_data / "cs-stanford"))
    assert ranks.sum() == pytest.approx(1)
    assert ranks.min() > 0
