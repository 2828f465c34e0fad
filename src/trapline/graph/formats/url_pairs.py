"""Graphs as one file of edges between URLs: source URL, blanks or a tab, target URL. Rows that begin with # are comments.

Pages are numbered in the order in which the file first mentions them.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import kernel
from trapline.errors import ConfigError
from trapline.graph.formats.textfile import LoadOptions, at_row, blocks, bytes_of, head, line_at, row_at
from trapline.graph.formats.urls import check_utf8
from trapline.graph.graph import Graph, csr_from_edges
from trapline.graph.sites import recorded_graph
from trapline.graph.strings import StoredStrings
from trapline.progress import ProgressCallback

NAME = "edges between URLs"
ACCEPTS = "two URLs"
OPTIONS: frozenset[str] = frozenset()

_LINE_FEED, _COMMENT = 10, 35


@kernel("int64(uint8[::1])")
def _first_odd_row(text: Any) -> int:
    """Return where the first row begins that is neither a comment nor two words; the text's length if there is none."""
    start, words, inside = 0, 0, False
    for at in range(len(text)):
        char = text[at]
        if char == _LINE_FEED:
            if words != 2 and text[start] != _COMMENT:
                return start
            start, words, inside = at + 1, 0, False
        elif char == 32 or 9 <= char <= 13:
            inside = False
        elif not inside:
            words, inside = words + 1, True
    return len(text)


def fits(rows: Sequence[bytes]) -> bool:
    first = next((row for row in rows if not row.startswith(b"#")), b"").split()
    return len(first) == 2 and all(b"://" in url for url in first)


def graph_of(file: Path, named: bool) -> Path | None:
    return file if fits(head(file)) else None


def load(file: Path, options: LoadOptions) -> Graph:
    # The default factory is C code, so numbering a new URL takes no Python bytecode.
    ids: defaultdict[bytes, int] = defaultdict(count().__next__)
    ends = _ends(file, ids, options.progress)
    if not ids:
        raise ConfigError(f"{file}: has no edges; each row must have a source URL and a target URL")
    edges = np.ascontiguousarray(ends[0::2]), np.ascontiguousarray(ends[1::2])
    urls = StoredStrings.of(url.decode() for url in ids)
    return recorded_graph(urls, file, *csr_from_edges(*edges, len(urls)), format_name=NAME)


def _ends(file: Path, ids: defaultdict[bytes, int], progress: ProgressCallback) -> NDArray[np.int32]:
    """Return the page numbers of all edges: source, target, source, target, ..."""
    found = [np.zeros(0, np.int32)]
    for row, block in blocks(file, progress):
        odd = _first_odd_row(bytes_of(block))
        if odd < len(block):
            words = len(line_at(block, odd).split())
            raise at_row(file, row_at(row, block, odd), f"{words} values; give a source URL and a target URL")
        check_utf8(file, row, block)
        found.append(np.fromiter(map(ids.__getitem__, _without_comments(block).split()), np.int32))
    return np.concatenate(found)


def _without_comments(block: bytes) -> bytes:
    if not block.startswith(b"#") and b"\n#" not in block:
        return block
    return b"\n".join(row for row in block.split(b"\n") if not row.startswith(b"#"))
