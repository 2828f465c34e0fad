"""Graphs of recorded crawls: `pages.tsv` (id, url, and if known bytes and crawled), `links.tsv` (id, tab, target ids)
and optionally `uncrawled.tsv` (id, url: pages that were linked and not fetched). Each may be gzipped.

By default the graph consists of the fetched pages and the links between them, including links of a page to itself. With
the option `dangling`, the other pages are part of the graph too, without links and of 0 bytes. The first row names the
columns, `#id` first. Ids are 0, 1, 2, ...; those of `uncrawled.tsv` continue where `pages.tsv` ends.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.formats.integers import Numbering, number_rows
from trapline.graph.formats.textfile import (
    LoadOptions,
    at_row,
    companion,
    find,
    integer,
    plain_name,
    rows,
    shown,
    text,
)
from trapline.graph.graph import MOST_BYTES, Graph, csr_from_edges
from trapline.graph.sites import recorded_graph
from trapline.graph.strings import StoredStrings
from trapline.progress import ProgressCallback

NAME = "recorded crawl"
ACCEPTS = "pages.tsv + links.tsv (+ uncrawled.tsv)"
_FILES = ("pages.tsv", "links.tsv", "uncrawled.tsv")
OPTIONS = frozenset({"dangling"})


class Pages(NamedTuple):
    """The rows of a table of pages, in columns."""

    urls: list[str]
    crawled: list[bool]
    sizes: list[int]


def graph_of(file: Path, named: bool) -> Path | None:
    return file.parent / "pages.tsv" if plain_name(file) in _FILES else None


def load(file: Path, options: LoadOptions) -> Graph:
    pages_file = companion(file.parent, "pages.tsv", "links.tsv")
    links_file = companion(file.parent, "links.tsv", "pages.tsv")
    pages = Pages([], [], [])
    sized = _read(pages_file, pages, True, options.progress)
    if rest := find(file.parent, "uncrawled.tsv"):
        _read(rest, pages, False, options.progress)
    if not any(pages.crawled):
        raise ConfigError(f"{pages_file}: has no fetched pages")
    sources, targets = _links(links_file, len(pages.urls), options.progress)
    kept = np.full(len(pages.urls), options.dangling) | np.array(pages.crawled)
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    inside = kept[sources] & kept[targets]
    links = csr_from_edges(number[sources[inside]], number[targets[inside]], int(kept.sum()))
    urls = StoredStrings.of(url for url, keep in zip(pages.urls, kept.tolist(), strict=True) if keep)
    sizes = np.array(pages.sizes, dtype=np.int64)[kept] if sized else None
    return recorded_graph(urls, pages_file, *links, format_name=NAME, sizes=sizes)


def _read(file: Path, pages: Pages, crawled: bool, progress: ProgressCallback) -> bool:
    """Add the rows of a table to `pages`; return whether the table has sizes."""
    lines = rows(file, progress)
    columns = _columns(file, next(lines, (1, b""))[1])
    at_id, at_url, at_flag, at_bytes = map(columns.get, (b"id", b"url", b"crawled", b"bytes"))
    if at_id is None or at_url is None:
        raise at_row(
            file, 1, "the first row must name the columns, separated by tabs, and two of them must be id and url"
        )
    for row, line in lines:
        cells = line.split(b"\t")
        if len(cells) != len(columns):
            raise at_row(file, row, f"{len(cells)} values, but row 1 names {len(columns)} columns")
        if integer(file, row, cells[at_id]) != len(pages.urls):
            raise at_row(
                file,
                row,
                f"page {cells[at_id].decode()} in place of page {len(pages.urls)}; number the pages in ascending order",
            )
        if not cells[at_url].strip():
            raise at_row(file, row, "the URL is missing")
        pages.urls.append(text(file, row, cells[at_url]))
        pages.crawled.append(crawled if at_flag is None else _flag(file, row, cells[at_flag]))
        size = integer(file, row, cells[at_bytes]) if at_bytes is not None and cells[at_bytes] else 0
        if size > MOST_BYTES:
            raise at_row(file, row, f"{size} bytes; a page has at most 2^40")
        pages.sizes.append(size)
    return at_bytes is not None


def _columns(file: Path, line: bytes) -> dict[bytes, int]:
    """Return the position of each column by name. A column's name ends at a blank; remarks may follow it."""
    if not line.startswith(b"#"):
        raise at_row(file, 1, f"{shown(line)}: the first row must name the columns, as in `#id`, tab, `url`")
    return {(cell.split() or [b""])[0]: place for place, cell in enumerate(line[1:].split(b"\t"))}


def _flag(file: Path, row: int, cell: bytes) -> bool:
    if cell not in (b"0", b"1"):
        raise at_row(file, row, f"crawled is {shown(cell)}; write 0 or 1")
    return cell == b"1"


def _links(file: Path, pages: int, progress: ProgressCallback) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    sources, targets = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for row, ends, values in number_rows(file, Numbering(pages), progress):
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        blank = np.flatnonzero(starts == ends)
        if len(blank):
            raise at_row(file, row + int(blank[0]), "empty; write a page and its targets")
        is_target = np.ones(len(values), np.bool_)
        is_target[starts] = False
        sources.append(np.repeat(values[starts], ends - starts - 1).astype(np.int32))
        targets.append(values[is_target].astype(np.int32))
    return np.concatenate(sources), np.concatenate(targets)
