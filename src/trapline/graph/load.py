"""Graphs from disk: finds the format of a folder and hands it to the module that reads it.

It knows no format. A new one is a module with NAME, ACCEPTS, `detect(folder)` and `load(folder)`, and a line below.
"""

from pathlib import Path
from typing import Protocol

from trapline.errors import ConfigError
from trapline.graph import format_adjacency, format_edges, format_saved
from trapline.graph.graph import Graph


class Format(Protocol):
    """A module that reads one format."""

    NAME: str
    ACCEPTS: str

    def detect(self, path: Path) -> bool: ...

    def load(self, path: Path) -> Graph: ...


FORMATS: tuple[Format, ...] = (format_saved, format_adjacency, format_edges)
"""The first that detects a folder loads it."""


def load_graph(path: Path | str) -> Graph:
    """The graph in a folder; `ConfigError` names the file and row of what is wrong with it."""
    folder = Path(path)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise ConfigError(f"{folder}: {what}; a graph is a folder with {_accepted()}")
    for form in FORMATS:
        if form.detect(folder):
            return form.load(folder)
    raise ConfigError(f"{folder}: no graph found; a graph is a folder with {_accepted()}")


def _accepted() -> str:
    return " or ".join(f"{form.ACCEPTS} ({form.NAME})" for form in FORMATS)
