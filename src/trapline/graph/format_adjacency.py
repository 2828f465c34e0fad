"""Graphs as adjacency lines: `urlmap.txt` (row i = URL of page i) and `webgraph.txt` (row i = its targets).

Targets are 1-based, separated by commas or blanks; "-" stands for none. Either file may be gzipped.
"""

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from trapline.errors import ConfigError
from trapline.graph.csr import without_parallel
from trapline.graph.graph import Graph
from trapline.graph.sites import recorded_graph
from trapline.graph.textfile import at_row, companion, find, integer, rows, text

NAME = "adjacency lines"
ACCEPTS = "urlmap.txt + webgraph.txt"


def detect(path: Path) -> bool:
    return any(find(path, name) for name in ("urlmap.txt", "webgraph.txt"))


def load(path: Path) -> Graph:
    urls_file = companion(path, "urlmap.txt", "webgraph.txt")
    links_file = companion(path, "webgraph.txt", "urlmap.txt")
    urls = urls_in(urls_file)
    ends, targets = array("q", [0]), array("i")
    for row, line in rows(links_file):
        if row > len(urls):
            raise at_row(links_file, row, f"one row too many: {urls_file.name} has {len(urls)} pages")
        targets.extend(_targets(links_file, row, line, len(urls)))
        ends.append(len(targets))
    if len(ends) <= len(urls):
        raise at_row(links_file, len(ends), f"missing: {urls_file.name} has {len(urls)} pages")
    offsets, links = np.array(ends, dtype=np.int64), np.array(targets, dtype=np.int32)
    return recorded_graph(urls, urls_file, *without_parallel(offsets, links), format_name=NAME)


def urls_in(file: Path) -> list[str]:
    """One URL a row, at least one."""
    urls = [text(file, row, line) for row, line in rows(file)]
    if not urls:
        raise ConfigError(f"{file}, row 1: empty, there must be a URL in each row")
    return urls


def _targets(file: Path, row: int, line: bytes, pages: int) -> Iterator[int]:
    tokens = line.replace(b",", b" ").split()
    if not tokens:
        raise at_row(file, row, 'empty; a page without links has "-"')
    if tokens == [b"-"]:
        return
    for token in tokens:
        page = integer(file, row, token)
        if not 1 <= page <= pages:
            raise at_row(file, row, f"page {page} is not in 1..{pages}")
        yield page - 1
