"""Edge lists as SNAP publishes them: one file, `FromNodeId ToNodeId` in each row, rows that begin with # are comments.

A list with commas may begin with a heading, such as `id1,id2`: two names that begin with a letter.

There are no URLs, and page numbers may have gaps. If a comment says `Nodes: N` and all numbers are below N, the pages are
0 to N - 1. Otherwise the pages are the numbers that occur, in ascending order, so that neighbours stay neighbours.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.formats.integers import ANY, Numbering, pairs, tokens_of
from trapline.graph.formats.textfile import LoadOptions, head
from trapline.graph.graph import MOST_PAGES, Graph, csr_from_edges
from trapline.graph.sites import numbered_graph

NAME = "SNAP edge list"
ACCEPTS = "two page numbers"
OPTIONS = frozenset({"ids_per_site"})

PAGES_PER_EDGE = 100
_NAMES = re.compile(rb"""\s*["']?[A-Za-z_][^,]*,\s*["']?[A-Za-z_][^,]*""")
_NODES = re.compile(rb"#.*\bNodes:\s*([0-9]{1,18})\b")


def fits(rows: Sequence[bytes]) -> bool:
    first = tokens_of(next((row for row in rows[_heading(rows) :] if not row.startswith(b"#")), b""))
    return len(first) == 2 and all(token.lstrip(b"-").isdigit() for token in first)


def _heading(rows: Sequence[bytes]) -> int:
    """Return the row of the heading; 0 if there is none. A row that could be meant as numbers is not a heading."""
    row, first = next(((row, line) for row, line in enumerate(rows, 1) if not line.startswith(b"#")), (0, b""))
    return row if _NAMES.fullmatch(first) else 0


def graph_of(file: Path, named: bool) -> Path | None:
    return file if fits(head(file)) else None


def load(file: Path, options: LoadOptions) -> Graph:
    sources, targets = pairs(file, Numbering(ANY), options.progress, skip_rows=_heading(head(file)))
    if not len(sources):
        raise ConfigError(f"{file}: has no edges; each row must have a source and a target")
    promised = _promised(file)
    largest = max(int(sources.max()), int(targets.max()))
    # Every promised page takes memory, so an absurdly large promise is ignored.
    if largest < promised <= min(MOST_PAGES, PAGES_PER_EDGE * len(sources) + 2**20):
        ends, pages = (sources.astype(np.int32, copy=False), targets.astype(np.int32, copy=False)), promised
    else:
        ends, pages = _renumbered(file, sources, targets, largest)
    return numbered_graph(*csr_from_edges(*ends, pages), format_name=NAME, options=options)


def _promised(file: Path) -> int:
    """Return the number of pages that the comments of the file promise; 0 if they do not."""
    found = next((match for row in head(file)[:100] if (match := _NODES.match(row))), None)
    return int(found[1]) if found else 0


def _renumbered(
    file: Path, sources: NDArray[Any], targets: NDArray[Any], largest: int
) -> tuple[tuple[NDArray[np.int32], NDArray[np.int32]], int]:
    if largest < 4 * len(sources) + 2**20:
        # A table of all numbers takes one pass. Sorting would take longer than the rest of the loading.
        occurs = np.zeros(largest + 1, np.bool_)
        occurs[sources] = occurs[targets] = True
        number = np.cumsum(occurs, dtype=np.int64) - 1
        return (number[sources].astype(np.int32), number[targets].astype(np.int32)), int(number[-1]) + 1
    known = np.unique(np.concatenate([np.unique(sources), np.unique(targets)]))
    if len(known) > MOST_PAGES:
        raise ConfigError(f"{file}: {len(known)} pages; a graph has at most {MOST_PAGES}")
    ends = np.searchsorted(known, sources).astype(np.int32), np.searchsorted(known, targets).astype(np.int32)
    return ends, len(known)
