"""Graphs as an edge list: `urls.txt` (row i = URL of page i - 1) and `edges.tsv` (source, tab or blank, target).

Pages are 0-based. Either file may be gzipped. An empty edge list is a graph without links.
"""

from array import array
from pathlib import Path

import numpy as np

from trapline.graph.csr import csr_from_edges
from trapline.graph.format_adjacency import urls_in
from trapline.graph.graph import Graph
from trapline.graph.sites import recorded_graph
from trapline.graph.textfile import at_row, companion, find, integer, rows

NAME = "edge list"
ACCEPTS = "urls.txt + edges.tsv"


def detect(path: Path) -> bool:
    # urls.txt alone is too common a name to go by.
    return find(path, "edges.tsv") is not None


def load(path: Path) -> Graph:
    urls_file = companion(path, "urls.txt", "edges.tsv")
    edges_file = companion(path, "edges.tsv", "urls.txt")
    urls = urls_in(urls_file)
    sources, targets = array("i"), array("i")
    for row, line in rows(edges_file):
        source, target = _edge(edges_file, row, line, len(urls))
        sources.append(source)
        targets.append(target)
    edges = np.array(sources, dtype=np.int32), np.array(targets, dtype=np.int32)
    return recorded_graph(urls, urls_file, *csr_from_edges(*edges, len(urls)), format_name=NAME)


def _edge(file: Path, row: int, line: bytes, pages: int) -> list[int]:
    tokens = line.split()
    if len(tokens) != 2:
        raise at_row(file, row, f"{len(tokens)} values, there must be a source and a target")
    edge = [integer(file, row, token) for token in tokens]
    for page in edge:
        if page >= pages:
            raise at_row(file, row, f"page {page} is not in 0..{pages - 1}")
    return edge
