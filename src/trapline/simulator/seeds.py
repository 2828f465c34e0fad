"""The seeds of a simulated crawl: page numbers and URLs, from a user's file or from a program. URLs are only text here."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph import Graph
from trapline.graph.formats.textfile import named_rows
from trapline.graph.strings import decoded


def seed_pages(seeds: Path | Sequence[int | str], graph: Graph) -> NDArray[np.int32]:
    """Return the pages that the file or the sequence names, in its order and without repetition."""
    if isinstance(seeds, Path):
        named = [(name, f"{seeds}, row {row}: ") for row, name in named_rows(seeds)]
        if not named:
            raise ConfigError(f"{seeds}: contains no seeds; write one URL or page number per row")
    else:
        named = [(str(name), "seeds: ") for name in seeds]
        if not named:
            raise ConfigError("seeds: there are none; give at least one URL or page number")
    page_of = _pages_of({name for name, _ in named if not name.isdecimal()}, graph)
    pages = dict.fromkeys(_page(name, where, page_of, graph) for name, where in named)
    return np.fromiter(pages, np.int32, len(pages))


def _pages_of(urls: set[str], graph: Graph) -> dict[str, int]:
    """Return the pages of these URLs, in one pass over the graph: a table of all URLs would take more memory than the graph."""
    if not urls or graph.urls is None:
        return {}
    return {url: page for page, url in enumerate(decoded(graph.urls)) if url in urls}


def _page(name: str, where: str, page_of: dict[str, int], graph: Graph) -> int:
    if name in page_of:
        return page_of[name]
    if not name.isdecimal():
        why = (
            "not a page of the graph; write one of its URLs or page numbers"
            if graph.urls is not None
            else "the graph has no URLs; give page numbers"
        )
        raise ConfigError(f"{where}{name[:80]!r}: {why}")
    if len(name) > 18 or int(name) >= graph.pages:
        raise ConfigError(f"{where}page {name[:40]} is not between 0 and {graph.pages - 1}; give a page of the graph")
    return int(name)
