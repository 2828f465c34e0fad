"""Graphs from disk, and from the memory of a program: finds the format of a folder or file and calls the module that reads it.

This module knows no format itself. To add one, write a module with NAME, ACCEPTS, OPTIONS, `graph_of(file, named)` and
`load(file, options)`, and add it to BY_NAME or BY_CONTENT.
"""

import os
from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.formats import (
    adjacency,
    bvgraph,
    crawl_database,
    dat,
    edges,
    graph_txt,
    node_rows,
    recorded_crawl,
    snap,
    url_pairs,
)
from trapline.graph.formats import saved as format_saved
from trapline.graph.formats.textfile import LoadOptions, blocks
from trapline.graph.graph import MOST_PAGES, Graph, csr_from_edges
from trapline.graph.sites import numbered_graph, recorded_graph
from trapline.graph.strings import StoredStrings
from trapline.samples import GRAPHS, located


class Format(Protocol):
    """A module that reads one format."""

    NAME: str
    ACCEPTS: str
    """the files of a graph; for a format of BY_CONTENT, what a row holds"""
    OPTIONS: frozenset[str]
    """the fields of `LoadOptions` that the format supports"""

    def graph_of(self, file: Path, named: bool) -> Path | None:
        """Return the file that identifies the graph which `file` is a part of; None if it is of another format.

        `named` says that the user named the file; otherwise it was found in a folder.
        """

    def load(self, file: Path, options: LoadOptions) -> Graph:
        """Load the graph that this file identifies."""


BY_NAME: tuple[Format, ...] = (
    format_saved,
    adjacency,
    edges,
    recorded_crawl,
    crawl_database,
    dat,
    bvgraph,
    graph_txt,
)
BY_CONTENT: tuple[Format, ...] = (url_pairs, snap, node_rows)
"""Tried only if BY_NAME recognises no file by its name."""

_REFUSALS = {
    "dangling": "--dangling: {} does not list pages that were not fetched; omit the option",
    "ids_per_site": "--ids-per-site: {} already says which site a page is on; omit the option",
}


def load_graph(path: Path | str, options: LoadOptions | None = None) -> Graph:
    """Load the graph in a folder or file, or a sample by name. Raise `ConfigError`, which names file and row, if it cannot be read."""
    options, source = options or LoadOptions(), located(path)
    if options.ids_per_site is not None and options.ids_per_site < 1:
        raise ConfigError(f"ids_per_site is {options.ids_per_site}; it must be at least 1")
    form, file = _found(source)
    for name, refusal in _REFUSALS.items():
        if getattr(options, name) and name not in form.OPTIONS:
            raise ConfigError(f"{source}: {refusal.format(f'this format ({form.NAME})')}")
    return form.load(file, options)


def _found(source: Path) -> tuple[Format, Path]:
    files = _files(source)
    named = not source.is_dir()
    graphs = _graphs(BY_NAME, files, named) or _graphs(BY_CONTENT, files, named)
    if len(graphs) > 1:
        names = sorted(f"{file.name} ({form.NAME})" for file, form in graphs.items())
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise ConfigError(f"{source}: holds more than one graph: {', '.join(names[:5])}{more}; name the file of one")
    if not graphs:
        raise _nothing(source)
    file, form = graphs.popitem()
    return form, file


def _files(source: Path) -> list[Path]:
    try:
        if source.is_dir():
            return sorted(file for file in source.iterdir() if file.is_file())
        if source.is_file():
            return [source]
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror or error}") from None
    reason = "is not a folder or file" if source.exists() else "does not exist"
    raise ConfigError(
        f"{source}: {reason}; give a folder or file with a graph, give the name of a sample ({GRAPHS[0]}),"
        " or make a graph: trapline graph generate"
    )


def _graphs(formats: Iterable[Format], files: list[Path], named: bool) -> dict[Path, Format]:
    """Return each graph found among the files, with its format."""
    return {graph: form for form in formats for file in files if (graph := form.graph_of(file, named))}


def _nothing(source: Path) -> ConfigError:
    if source.is_file():
        for _ in blocks(source):  # raises its own error for a file that cannot be read
            break
    elif inside := _saved_inside(source):
        several = ", ".join(inside[:5]) + (", ..." if len(inside) > 5 else "")
        return ConfigError(
            f"{source}: holds folders with a graph each ({several}); name one, such as {source / inside[0]}"
        )
    return ConfigError(f"{source}: no graph found; {_accepted()}")


def _saved_inside(source: Path) -> list[str]:
    """Return the subfolders that hold a saved graph, as the snapshots of an evolving web do; ordered so that 2 precedes 10."""
    inside = [name for name in os.listdir(source) if os.path.isfile(source / name / "graph.json")]
    return sorted(inside, key=lambda name: (len(name), name))


def _accepted() -> str:
    files = "; ".join(form.ACCEPTS for form in BY_NAME)
    rows = "; ".join(f"a text file with {form.ACCEPTS} in each row" for form in BY_CONTENT)
    return f"give a folder or file in one of these formats (see docs/graphs.md): {files}; {rows}"


# ---- A graph from links that a Python program has in memory: pairs of page numbers, or pairs of URLs

_IN_MEMORY = "edges in memory"
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
    return numbered_graph(*csr, format_name=_IN_MEMORY, options=LoadOptions(ids_per_site=ids_per_site))


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
    return recorded_graph(urls, Path("edges"), *csr_from_edges(sources, targets, len(urls)), format_name=_IN_MEMORY)
