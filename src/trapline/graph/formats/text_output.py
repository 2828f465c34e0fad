"""Writer of graphs as text for other programs: `urls.txt` + `edges.tsv`, or page numbers alone in SNAP's format.

These formats cannot express everything: sizes and shared addresses are lost, in SNAP's format URLs and sites too. Pages,
links and their order are the same when the files are loaded again.
"""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from trapline.compiled.jit import kernel
from trapline.errors import ConfigError
from trapline.graph.formats.saved import check_folder, write_folder
from trapline.graph.graph import Graph
from trapline.graph.strings import decoded, write_number
from trapline.progress import ProgressCallback, no_progress

Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Text = Any  # an array of bytes; as Any its elements pass for plain numbers

_LINKS_A_CALL = 1 << 18
_WIDEST = 22  # bytes of two numbers below 2^31, a tab and a line feed
_URL_BLOCK = 1 << 16
_FILES = {"edges": ("urls.txt", "edges.tsv"), "snap": ("edges.txt",)}


@kernel("int64(int64[::1], int32[::1], int64, int64, int64, uint8[::1])")
def _write_edges(offsets: Longs, targets: Ids, page: int, first: int, last: int, out: Text) -> int:
    """Write links first..last-1, where `page` is the page of the first one; return the number of bytes written."""
    at = 0
    for link in range(first, last):
        while offsets[page + 1] <= link:
            page += 1
        at = write_number(page, 1, out, at)
        out[at] = 9
        at = write_number(targets[link], 1, out, at + 1)
        out[at] = 10
        at += 1
    return at


def save_edges(graph: Graph, folder: Path, replace: bool = False, progress: ProgressCallback = no_progress) -> None:
    """Write `urls.txt` and `edges.tsv` to a folder, completely or not at all."""

    def write(fresh: Path) -> None:
        with (fresh / "urls.txt").open("wb") as file:
            _write_urls(graph, file)
        with (fresh / "edges.tsv").open("wb") as file:
            _write_links(graph, file, progress)

    if graph.urls is None:
        raise ConfigError("the graph has no URLs, so urls.txt cannot be written; use --to snap for page numbers alone")
    write_folder(folder, write, _strangers("edges"), replace)


def save_snap(graph: Graph, folder: Path, replace: bool = False, progress: ProgressCallback = no_progress) -> None:
    """Write `edges.txt` to a folder, completely or not at all."""

    def write(fresh: Path) -> None:
        with (fresh / "edges.txt").open("wb") as file:
            file.write(f"# Nodes: {graph.pages} Edges: {graph.links}\n# FromNodeId\tToNodeId\n".encode())
            _write_links(graph, file, progress)

    if not graph.links:
        raise ConfigError("the graph has no links, so there is nothing to write in a list of edges")
    write_folder(folder, write, _strangers("snap"), replace)


def check_text_output(form: str, folder: Path, replace: bool = False) -> None:
    """Raise the errors of writing early, before a long computation. `form` is "edges" or "snap"."""
    check_folder(folder, _strangers(form), replace)


def _strangers(form: str) -> Callable[[Path], list[str]]:
    own = set(_FILES[form])

    def strangers(folder: Path) -> list[str]:
        names = {file.name for file in folder.iterdir()}
        return sorted(names - own or (names if names != own else ()))  # a urls.txt alone may be a user's own list

    return strangers


def _write_urls(graph: Graph, file: IO[bytes]) -> None:
    assert graph.urls is not None  # checked by the caller
    left = decoded(graph.urls)
    while urls := list(islice(left, _URL_BLOCK)):
        rows = "\n".join(urls)
        if rows.count("\n") != len(urls) - 1 or "\r" in rows or not all(urls):
            raise ConfigError("a URL of the graph is empty or has a line break, so urls.txt cannot be written")
        file.write(rows.encode() + b"\n")


def _write_links(graph: Graph, file: IO[bytes], progress: ProgressCallback) -> None:
    out = np.empty(_LINKS_A_CALL * _WIDEST, np.uint8)
    for first in range(0, graph.links, _LINKS_A_CALL):
        last = min(first + _LINKS_A_CALL, graph.links)
        page = int(np.searchsorted(graph.offsets, first, side="right")) - 1
        count = _write_edges(graph.offsets, graph.targets, page, first, last, out)
        file.write(out[:count].data)
        progress(last, graph.links, "links")
