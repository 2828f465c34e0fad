"""The views of all partitions together are the graph: no page and no link is lost or added."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.parallel.webs import webs
from trapline.frontier.layout import ELSEWHERE
from trapline.graph import Graph
from trapline.parallel.partition import Partitioning
from trapline.parallel.simulated.partition_view import PartitionView, own_numbers, own_views


def views_of(web: Graph, kind: str, partitions: int) -> list[PartitionView]:
    owner = Partitioning(kind, partitions).owners(web)
    return own_views(web, owner, own_numbers(owner, partitions), partitions)


KINDS = st.sampled_from(["site-hash", "url-hash"])


@given(webs(), KINDS, st.integers(1, 9))
def test_own_views_together_are_the_graph(web: Graph, kind: str, partitions: int) -> None:
    owner = Partitioning(kind, partitions).owners(web)
    views = views_of(web, kind, partitions)
    seen = [(p, int(page)) for p, view in enumerate(views) for page in view.whole_numbers(np.arange(view.graph.pages))]
    assert sorted(seen) == sorted((int(owner[page]), page) for page in range(web.pages))
    for partition, view in enumerate(views):
        for page in range(view.graph.pages):
            whole = int(view.whole_numbers(np.array([page]))[0])
            expected = [int(t) if owner[t] == partition else ELSEWHERE for t in web.targets_of(whole)]
            found = view.graph.targets_of(page)
            assert [
                ELSEWHERE if t == ELSEWHERE else int(view.whole_numbers(np.array([t]))[0]) for t in found
            ] == expected


@given(webs(), KINDS, st.integers(1, 9))
def test_sites_and_addresses_stay_separate(web: Graph, kind: str, partitions: int) -> None:
    for view in views_of(web, kind, partitions):
        if view.graph.pages:
            sound = view.graph.targets[view.graph.targets != ELSEWHERE]
            assert sound.max(initial=0) < view.graph.pages
            pages = view.whole_numbers(np.arange(view.graph.pages))
            assert _same_parts(view.graph.site, web.site[pages])
            assert _same_parts(view.graph.ips[view.graph.site], web.ips[web.site[pages]])


def _same_parts(one: np.ndarray, other: np.ndarray) -> bool:  # type: ignore[type-arg]
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


@given(webs(), st.integers(1, 9))
def test_page_numbers_are_mapped_both_ways(web: Graph, partitions: int) -> None:
    for view in views_of(web, "site-hash", partitions):
        own = np.arange(view.graph.pages, dtype=np.int32)
        np.testing.assert_array_equal(view.numbers_here(view.whole_numbers(own)), own)
