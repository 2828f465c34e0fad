"""The recorded graphs beside the repository, where they are present: their published counts."""

from pathlib import Path

import pytest

from trapline.compiled import jit
from trapline.graph import LoadOptions, load_graph, measure, pagerank


@pytest.mark.parametrize(
    ("name", "pages", "sites", "links", "self_links"),
    [
        ("ku-crawl-2021b", 8_337, 479, 124_261, 1_453),
        ("cs-stanford", 9_914, 21, 36_854, 1_299),
        ("hollins", 6_012, 4, 23_875, 0),
        # 5,848 hosts by its readers' count. Five of these are other hosts with :80 appended.
        ("gr0.California", 9_664, 5_843, 16_150, 0),
    ],
)
def test_published_counts(recorded_data: Path, name: str, pages: int, sites: int, links: int, self_links: int) -> None:
    found = measure(load_graph(recorded_data / name))
    # Neither file has parallel links, and the published counts include links of pages to themselves.
    assert (found.pages, found.sites, found.links, found.self_links) == (pages, sites, links, self_links)


@pytest.mark.parametrize(
    ("name", "pages", "rows"),
    [("chameleon", 2_277, 36_101), ("squirrel", 5_201, 217_073), ("crocodile", 11_631, 180_020)],
)
def test_comma_lists_with_a_heading(recorded_data: Path, name: str, pages: int, rows: int) -> None:
    """The number of pages is as published, and the file has one row per link below its heading."""
    graph = load_graph(recorded_data / "musae-wikipedia" / f"{name}_edges.csv.gz")
    assert (graph.pages, graph.links, graph.urls) == (pages, rows, None)


@pytest.mark.skipif(jit.DISABLED, reason="1.1 million links take minutes uncompiled")
@pytest.mark.parametrize(
    ("name", "pages", "sites", "all_pages"),
    [("uci-ics-crawl", 53_779, 92, 53_779 + 149_072), ("ku-crawl-2016", 9_998, 273, 9_998 + 52_234)],
)
def test_crawls_with_and_without_their_dangling_pages(
    recorded_data: Path, name: str, pages: int, sites: int, all_pages: int
) -> None:
    crawled = load_graph(recorded_data / name)
    assert (crawled.pages, crawled.sites) == (pages, sites)
    assert crawled.sizes is not None and crawled.sizes.max() > 0
    whole = load_graph(recorded_data / name, LoadOptions(dangling=True))
    assert whole.pages == all_pages and whole.links > crawled.links
    # The crawled pages come first in both files, so the smaller graph is the beginning of the larger one.
    assert whole.offsets[pages] == whole.links


@pytest.mark.skipif(jit.DISABLED, reason="3.2 million links take minutes uncompiled")
def test_the_first_page_of_each_block_reaches_every_page(recorded_data: Path) -> None:
    for ids_per_site in (None, 1_000):
        graph = load_graph(recorded_data / "cnr-2000", LoadOptions(ids_per_site=ids_per_site))
        assert measure(graph).reachable_share == 1


def test_home_pages_reach_all_but_one_page(recorded_data: Path) -> None:
    graph = load_graph(recorded_data / "ku-crawl-2021b")
    assert round(measure(graph).reachable_share * graph.pages) == graph.pages - 1


def test_pagerank_converges_and_sums_to_one(recorded_data: Path) -> None:
    ranks = pagerank(load_graph(recorded_data / "cs-stanford"))
    assert ranks.sum() == pytest.approx(1)
    assert ranks.min() > 0
