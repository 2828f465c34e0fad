"""Graphs as text for other programs: `urls.txt` + `edges.tsv`, or page numbers alone as SNAP publishes them.

What these forms cannot say is not written: sizes, shared addresses, and in the second one URLs and sites. Pages, links
and their order come back as they were.
"""

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.folder import check_folder, write_folder
from trapline.graph.graph import Graph
from trapline.graph.options import Tell, silent
from trapline.jit import helper, kernel, ready

Longs = NDArray[np.int64]
Ids = NDArray[np.int32]
Text = Any  # single bytes, whose numpy types would only get in the way of reading them as numbers

_LINKS_A_CALL = 1 << 18
_WIDEST = 22  # bytes of two numbers below 2^31, a tab and a line feed
_URL_BLOCK = 1 << 16
_FILES = {"edges": ("urls.txt", "edges.tsv"), "snap": ("edges.txt",)}


@helper("int64(int64, uint8[::1], int64)")
def _write_number(value: int, out: Text, at: int) -> int:
    """Returns where the number ends."""
    width, rest = 1, value // 10
    while rest:
        width, rest = width + 1, rest // 10
    for place in range(at + width - 1, at - 1, -1):
        out[place] = 48 + value % 10
        value //= 10
    return at + width


@kernel("int64(int64[::1], int32[::1], int64, int64, int64, uint8[::1])")
def _write_edges(offsets: Longs, targets: Ids, page: int, first: int, last: int, out: Text) -> int:
    """Writes links first..last-1; `page` is where the first one stands. Returns the bytes written."""
    at = 0
    for link in range(first, last):
        while offsets[page + 1] <= link:
            page += 1
        at = _write_number(page, out, at)
        out[at] = 9
        at = _write_number(targets[link], out, at + 1)
        out[at] = 10
        at += 1
    return at


def save_edges(graph: Graph, folder: Path, replace: bool = False, tell: Tell = silent) -> None:
    """`urls.txt` and `edges.tsv`; all or nothing."""

    def write(fresh: Path) -> None:
        with (fresh / "urls.txt").open("wb") as file:
            _write_urls(graph, file)
        with (fresh / "edges.tsv").open("wb") as file:
            _write_links(graph, file, tell)

    if graph.urls is None:
        raise ConfigError("the graph has no URLs, so urls.txt cannot be written; --to snap writes page numbers alone")
    write_folder(folder, write, _strangers("edges"), replace)


def save_snap(graph: Graph, folder: Path, replace: bool = False, tell: Tell = silent) -> None:
    """`edges.txt`; all or nothing."""

    def write(fresh: Path) -> None:
        with (fresh / "edges.txt").open("wb") as file:
            file.write(f"# Nodes: {graph.pages} Edges: {graph.links}\n# FromNodeId\tToNodeId\n".encode())
            _write_links(graph, file, tell)

    if not graph.links:
        raise ConfigError("the graph has no links, so there is nothing to write in a list of edges")
    write_folder(folder, write, _strangers("snap"), replace)


def check_text_output(form: str, folder: Path, replace: bool = False) -> None:
    """Refuses at once what writing would refuse after a long computation. `form`: edges or snap."""
    check_folder(folder, _strangers(form), replace)


def _strangers(form: str) -> Callable[[Path], list[str]]:
    own = set(_FILES[form])

    def strangers(folder: Path) -> list[str]:
        names = {file.name for file in folder.iterdir()}
        return sorted(names - own or (names if names != own else ()))  # a urls.txt alone is somebody's list

    return strangers


def _write_urls(graph: Graph, file: IO[bytes]) -> None:
    assert graph.urls is not None  # who calls has looked
    for first in range(0, graph.pages, _URL_BLOCK):
        urls = [graph.urls[page] for page in range(first, min(first + _URL_BLOCK, graph.pages))]
        rows = "\n".join(urls)
        if rows.count("\n") != len(urls) - 1 or "\r" in rows or not all(urls):
            raise ConfigError("a URL is empty or has a line end in it, so urls.txt cannot be written")
        file.write(rows.encode() + b"\n")


def _write_links(graph: Graph, file: IO[bytes], tell: Tell) -> None:
    ready()
    out = np.empty(_LINKS_A_CALL * _WIDEST, np.uint8)
    for first in range(0, graph.links, _LINKS_A_CALL):
        last = min(first + _LINKS_A_CALL, graph.links)
        page = int(np.searchsorted(graph.offsets, first, side="right")) - 1
        count = _write_edges(graph.offsets, graph.targets, page, first, last, out)
        file.write(out[:count].data)
        tell(last, graph.links, "links")
