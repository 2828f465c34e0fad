"""Graphs from disk: finds the format of a folder or file and hands it to the module that reads it.

It knows no format. A new one is a module with NAME, ACCEPTS, OPTIONS, `graph_of(file, named)` and `load(file, options)`,
and a line below.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from trapline.errors import ConfigError
from trapline.graph import (
    format_adjacency,
    format_bvgraph,
    format_crawl,
    format_dat,
    format_database,
    format_edges,
    format_graph_txt,
    format_node_rows,
    format_saved,
    format_snap,
    format_url_pairs,
)
from trapline.graph.graph import Graph
from trapline.graph.options import LoadOptions
from trapline.graph.textfile import blocks


class Format(Protocol):
    """A module that reads one format."""

    NAME: str
    ACCEPTS: str
    OPTIONS: frozenset[str]
    """the fields of `LoadOptions` that it can fulfil"""

    def graph_of(self, file: Path, named: bool) -> Path | None:
        """The file by which the graph goes that this file is a part of; None if the file is of another format.
        `named`: by the user; else it was found in a folder."""

    def load(self, file: Path, options: LoadOptions) -> Graph:
        """The graph that goes by this file."""


BY_NAME: tuple[Format, ...] = (
    format_saved,
    format_adjacency,
    format_edges,
    format_crawl,
    format_database,
    format_dat,
    format_bvgraph,
    format_graph_txt,
)
BY_CONTENT: tuple[Format, ...] = (format_url_pairs, format_snap, format_node_rows)
"""Asked only if no file has a name that the others know."""

_REFUSALS = {
    "dangling": "--dangling: {} does not list pages that were linked and not fetched",
    "pages_per_site": "--ids-per-site: {} says itself which site a page is on",
}


def load_graph(path: Path | str, options: LoadOptions | None = None) -> Graph:
    """The graph in a folder or file; `ConfigError` names the file and row of what is wrong with it."""
    options, source = options or LoadOptions(), Path(path)
    if options.pages_per_site is not None and options.pages_per_site < 1:
        raise ConfigError(f"pages_per_site is {options.pages_per_site}, must be at least 1")
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
    what = "is not a folder or file" if source.exists() else "does not exist"
    raise ConfigError(f"{source}: {what}; {_accepted()}")


def _graphs(formats: Iterable[Format], files: list[Path], named: bool) -> dict[Path, Format]:
    """Each graph that the files make up, with its format."""
    return {graph: form for form in formats for file in files if (graph := form.graph_of(file, named))}


def _nothing(source: Path) -> ConfigError:
    if source.is_file():
        for _ in blocks(source):  # a file that cannot be read says so here
            break
    elif inside := _saved_inside(source):
        several = ", ".join(inside[:5]) + (", ..." if len(inside) > 5 else "")
        return ConfigError(
            f"{source}: holds folders with a graph each ({several}); name one, such as {source / inside[0]}"
        )
    return ConfigError(f"{source}: no graph found; {_accepted()}")


def _saved_inside(source: Path) -> list[str]:
    """The folders in this one that hold a saved graph, as the snapshots of an evolving web do; 2 before 10."""
    inside = [name for name in os.listdir(source) if os.path.isfile(source / name / "graph.json")]
    return sorted(inside, key=lambda name: (len(name), name))


def _accepted() -> str:
    accepted = " or ".join(form.ACCEPTS for form in (*BY_NAME, *BY_CONTENT))
    return f"a graph is {accepted}; text may be gzipped"
