"""A graph from links that a Python program has in memory: pairs of page numbers, or pairs of URLs."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.formats.textfile import LoadOptions
from trapline.graph.graph import MOST_PAGES, Graph, csr_from_edges
from trapline.graph.sites import numbered_graph, recorded_graph
from trapline.graph.strings import StoredStrings

NAME = "edges in memory"
_SHAPE = "give pairs (source, target) of page numbers or of URLs, or an array of shape (links, 2)"


def graph_from_edges(edges: Iterable[Any] | NDArray[Any], ids_per_site: int | None = None) -> Graph:
    """Return the graph of these links: pairs (source, target), in the order in which pages have them.

    With URLs, a site is scheme, host and port, and pages are numbered as they first occur. With page numbers, the pages are 0 to the
    largest number. `ids_per_site`: how many consecutive page numbers are a site; None: all pages are one site. The first page of a
    site is its home page.

    Raises:
        ConfigError: the edges are not pairs of URLs or of page numbers.
    """
    pairs = edges if isinstance(edges, np.ndarray) else _listed(edges)
    if isinstance(pairs, list):
        return _of_urls(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
        raise ConfigError(f"edges: an array of {pairs.dtype} of shape {pairs.shape}; {_SHAPE}")
    if pairs.min() < 0 or pairs.max() >= MOST_PAGES:
        raise ConfigError(f"edges: a page number is not in 0..{MOST_PAGES - 1}; give numbers from 0 on")
    sources, targets = (np.ascontiguousarray(pairs[:, end], np.int32) for end in (0, 1))
    csr = csr_from_edges(sources, targets, int(pairs.max()) + 1)
    return numbered_graph(*csr, format_name=NAME, options=LoadOptions(ids_per_site=ids_per_site))


def _listed(edges: Iterable[Any]) -> list[tuple[str, str]] | NDArray[Any]:
    """Return pairs of URLs as a list, and pairs of numbers as an array."""
    pairs = [tuple(pair) for pair in edges]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ConfigError(f"edges: {'no edges' if not pairs else 'not pairs'}; {_SHAPE}")
    kinds = {type(end) for pair in pairs for end in pair}
    if kinds == {str}:
        return pairs
    if str in kinds:
        raise ConfigError(f"edges: URLs and other values are mixed; {_SHAPE}")
    return np.array(pairs)


def _of_urls(pairs: list[tuple[str, str]]) -> Graph:
    ids: defaultdict[str, int] = defaultdict(count().__next__)
    ends = np.array([(ids[source], ids[target]) for source, target in pairs], np.int32)
    urls = StoredStrings.of(ids)
    sources, targets = (np.ascontiguousarray(ends[:, end]) for end in (0, 1))
    return recorded_graph(urls, Path("edges"), *csr_from_edges(sources, targets, len(urls)), format_name=NAME)
