"""Graphs as one file of marked rows: `n 17 http://host/path` for a page, `e 17 4` for a link.

Pages are numbered 0, 1, 2, ... in the order of their rows; a link may precede its pages. Kleinberg's gr0.California has
this format. The reader is meant for small graphs, because it handles each row in plain Python.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trapline.errors import ConfigError
from trapline.graph.formats.integers import Numbering, page_number
from trapline.graph.formats.textfile import LoadOptions, at_row, head, integer, rows, shown, text
from trapline.graph.graph import Graph, csr_from_edges
from trapline.graph.sites import recorded_graph
from trapline.graph.strings import StoredStrings

NAME = "page and link rows"
ACCEPTS = "`n NUMBER URL` or `e SOURCE TARGET`"
OPTIONS: frozenset[str] = frozenset()


def fits(start: Sequence[bytes]) -> bool:
    first = (start[0] if start else b"").split()
    return len(first) >= 3 and first[0] == b"n" and first[1].isdigit()


def graph_of(file: Path, named: bool) -> Path | None:
    return file if fits(head(file)) else None


def load(file: Path, options: LoadOptions) -> Graph:
    urls: list[str] = []
    links: list[tuple[int, list[bytes]]] = []
    for row, line in rows(file, options.progress):
        mark, _, rest = line.partition(b" ")
        if mark == b"n":
            urls.append(_url(file, row, rest, len(urls)))
        elif mark == b"e":
            links.append((row, _ends(file, row, rest)))
        else:
            raise at_row(file, row, f'begins with {shown(mark)}; begin the row with "n" (a page) or "e" (a link)')
    if not urls:
        raise ConfigError(f"{file}: has no pages (rows that begin with n)")
    numbering = Numbering(len(urls))
    edges = [[page_number(file, row, token, numbering) for token in tokens] for row, tokens in links]
    table = np.array(edges, dtype=np.int32).reshape(-1, 2)
    ends = np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
    return recorded_graph(StoredStrings.of(urls), file, *csr_from_edges(*ends, len(urls)), format_name=NAME)


def _url(file: Path, row: int, rest: bytes, expected: int) -> str:
    number, _, url = rest.strip().partition(b" ")
    if integer(file, row, number) != expected:
        raise at_row(
            file, row, f"page {number.decode()} in place of page {expected}; number the pages in ascending order"
        )
    if not url.strip():
        raise at_row(file, row, "the URL is missing")
    return text(file, row, url.strip())


def _ends(file: Path, row: int, rest: bytes) -> list[bytes]:
    tokens = rest.split()
    if len(tokens) != 2:
        raise at_row(file, row, f"{len(tokens)} values; give a source and a target")
    return tokens
