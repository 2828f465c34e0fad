"""Graphs as adjacency lines: `urlmap.txt` (row i = URL of page i) and `webgraph.txt` (row i = its targets).

Targets are 1-based and separated by commas or blanks; "-" means no targets. Either file may be gzipped.
"""

from pathlib import Path

import numpy as np

from trapline.graph.formats.integers import Numbering, number_rows
from trapline.graph.formats.textfile import LoadOptions, at_row, companion, plain_name
from trapline.graph.formats.urls import urls_in
from trapline.graph.graph import Graph, without_parallel
from trapline.graph.sites import recorded_graph

NAME = "adjacency lines"
ACCEPTS = "urlmap.txt + webgraph.txt"
OPTIONS: frozenset[str] = frozenset()


def graph_of(file: Path, named: bool) -> Path | None:
    return file.parent / "webgraph.txt" if plain_name(file) in ("urlmap.txt", "webgraph.txt") else None


def load(file: Path, options: LoadOptions) -> Graph:
    urls_file = companion(file.parent, "urlmap.txt", "webgraph.txt")
    links_file = companion(file.parent, "webgraph.txt", "urlmap.txt")
    urls = urls_in(urls_file, options.progress)
    ends, targets, rows = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], 0
    for _, row_ends, values in number_rows(links_file, Numbering(len(urls), base=1), options.progress, dashes=True):
        ends.append(row_ends + ends[-1][-1])
        targets.append(values.astype(np.int32))
        rows += len(row_ends)
    if rows > len(urls):
        raise at_row(links_file, len(urls) + 1, f"one row too many: {urls_file.name} has {len(urls)} pages")
    if rows < len(urls):
        raise at_row(links_file, rows + 1, f"missing: {urls_file.name} has {len(urls)} pages")
    links = without_parallel(np.concatenate(ends), np.concatenate(targets))
    return recorded_graph(urls, urls_file, *links, format_name=NAME)
