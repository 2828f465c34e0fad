"""Graphs as two tables: `links.dat` (heading `link url`, then number and URL) and `NAME.dat` (heading `start end`, then
source and target).

Pages are numbered 1, 2, 3, ... in the order of their rows. The crawl of hollins.edu is distributed in this form.
"""

from pathlib import Path

from trapline.errors import ConfigError
from trapline.graph.formats.integers import Numbering, pairs
from trapline.graph.formats.textfile import (
    LoadOptions,
    at_row,
    companion,
    head,
    integer,
    plain_name,
    rows,
    text,
)
from trapline.graph.graph import Graph, csr_from_edges
from trapline.graph.sites import recorded_graph
from trapline.graph.strings import StoredStrings
from trapline.progress import ProgressCallback

NAME = "numbered tables"
ACCEPTS = "links.dat + NAME.dat"
OPTIONS: frozenset[str] = frozenset()


def graph_of(file: Path, named: bool) -> Path | None:
    if _is_table(file):
        return file
    if plain_name(file) == "links.dat" and _has_heading(file, "link url"):
        return next(filter(_is_table, sorted(file.parent.iterdir())), file)
    return None


def load(file: Path, options: LoadOptions) -> Graph:
    urls_file = companion(file.parent, "links.dat", file.name)
    if file == urls_file:
        raise ConfigError(f"{file}: the .dat file of links (heading `start end`) is missing in its folder")
    urls = _urls(urls_file, options.progress)
    sources, targets = pairs(file, Numbering(len(urls), base=1), options.progress, skip_rows=1)
    return recorded_graph(urls, urls_file, *csr_from_edges(sources, targets, len(urls)), format_name=NAME)


def _is_table(file: Path) -> bool:
    return plain_name(file).endswith(".dat") and _has_heading(file, "start end")


def _has_heading(file: Path, heading: str) -> bool:
    return b" ".join(b"".join(head(file)[:1]).split()) == heading.encode()


def _urls(file: Path, progress: ProgressCallback) -> StoredStrings:
    if not _has_heading(file, "link url"):
        next(rows(file), None)  # raises its own error for a file that cannot be read
        raise at_row(file, 1, "not the heading `link url`; begin the file with it")
    urls = [_url(file, row, line) for row, line in rows(file, progress) if row > 1]
    if not urls:
        raise at_row(file, 2, "missing; each row must have a number and a URL")
    return StoredStrings.of(urls)


def _url(file: Path, row: int, line: bytes) -> str:
    number, _, url = line.strip().partition(b" ")
    if integer(file, row, number) != row - 1:
        raise at_row(
            file, row, f"page {number.decode()} in place of page {row - 1}; number the pages in ascending order"
        )
    if not url.strip():
        raise at_row(file, row, "the URL is missing")
    return text(file, row, url.strip())
