"""Graphs in WebGraph's text format: `NAME.graph-txt`, the number of pages in the first row, then a row of targets per page.

Pages are 0-based, a page without links has an empty row, and there are no URLs. The file may be gzipped.
"""

from pathlib import Path

import numpy as np

from trapline.errors import ConfigError
from trapline.graph.formats.integers import Numbering, number_rows
from trapline.graph.formats.textfile import LoadOptions, at_row, integer, plain_name, rows
from trapline.graph.graph import MOST_PAGES, Graph, without_parallel
from trapline.graph.sites import numbered_graph

NAME = "WebGraph text"
ACCEPTS = "NAME.graph-txt"
OPTIONS = frozenset({"ids_per_site"})

_SUFFIX = ".graph-txt"


def graph_of(file: Path, named: bool) -> Path | None:
    stem = plain_name(file).removesuffix(_SUFFIX)
    # If NAME.graph is in the same folder, it is the same graph in compressed form, which is read unless the user named
    # this file.
    twin = not named and (file.parent / f"{stem}.graph").is_file()
    return file if stem != plain_name(file) and not twin else None


def load(file: Path, options: LoadOptions) -> Graph:
    pages = _pages(file)
    ends, targets, found = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], 0
    for _, row_ends, values in number_rows(file, Numbering(pages), options.progress, skip_rows=1):
        ends.append(row_ends + ends[-1][-1])
        targets.append(values.astype(np.int32))
        found += len(row_ends)
    if found < pages:
        raise at_row(file, found + 2, f"missing: row 1 announces {pages} pages")
    if found > pages:
        raise at_row(file, pages + 2, f"one row too many: row 1 announces {pages} pages")
    links = without_parallel(np.concatenate(ends), np.concatenate(targets))
    return numbered_graph(*links, format_name=NAME, options=options)


def _pages(file: Path) -> int:
    row, line = next(rows(file), (1, b""))
    pages = integer(file, row, line.strip())
    if not 1 <= pages <= MOST_PAGES:
        raise ConfigError(f"{file}, row 1: {pages} pages; give a number in 1..{MOST_PAGES}")
    return pages
