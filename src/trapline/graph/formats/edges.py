"""Graphs as an edge list: `urls.txt` (row i = URL of page i - 1) and `edges.tsv` (source, tab or blank, target).

Pages are 0-based. Either file may be gzipped. An empty edge list is a graph without links.
"""

from pathlib import Path

from trapline.graph.formats import url_pairs
from trapline.graph.formats.integers import Numbering, pairs
from trapline.graph.formats.textfile import LoadOptions, companion, find, head, plain_name
from trapline.graph.formats.urls import urls_in
from trapline.graph.graph import Graph, csr_from_edges
from trapline.graph.sites import recorded_graph

NAME = "edge list"
ACCEPTS = "urls.txt + edges.tsv"
OPTIONS: frozenset[str] = frozenset()


def graph_of(file: Path, named: bool) -> Path | None:
    # The name urls.txt alone is too common to identify the format, and a file of edges between URLs needs no urls.txt.
    edges = find(file.parent, "edges.tsv") if plain_name(file) in ("edges.tsv", "urls.txt") else None
    return edges if edges and not url_pairs.fits(head(edges)) else None


def load(file: Path, options: LoadOptions) -> Graph:
    urls_file = companion(file.parent, "urls.txt", "edges.tsv (an edge list without URLs must have another name)")
    urls = urls_in(urls_file, options.progress)
    sources, targets = pairs(companion(file.parent, "edges.tsv", "urls.txt"), Numbering(len(urls)), options.progress)
    return recorded_graph(urls, urls_file, *csr_from_edges(sources, targets, len(urls)), format_name=NAME)
