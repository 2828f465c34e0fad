"""The web that a live crawl found: `crawl.db` in the folder that `trapline crawl` writes, finished or still running.

By default the graph is the pages that were fetched and the links between them. On request the pages that were linked and not
fetched are pages too, without links and of 0 bytes. Pages are in the order in which the crawl discovered them; sites that it found on
one address share it here too. It knows the tables `page` and `fetch`, and nothing else of a crawl.
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError
from trapline.graph.csr import csr_from_edges
from trapline.graph.graph import Graph
from trapline.graph.options import LoadOptions, Tell
from trapline.graph.sites import recorded_graph
from trapline.graph.strings import StoredStrings

NAME = "crawl"
ACCEPTS = "crawl.db"
OPTIONS = frozenset({"dangling"})

_FETCHED = 3  # the schema's number. With status 304 it is a page that has not changed, and the row before has its links
_ROWS_A_STEP = 100_000  # between two looks at the progress


class Fetched(NamedTuple):
    """The pages that were had, each as it was the last time."""

    page: NDArray[np.int64]
    size: NDArray[np.int64]
    sources: NDArray[np.int64]
    """page of each link"""
    targets: NDArray[np.int64]


def graph_of(file: Path, named: bool) -> Path | None:
    return file if file.name == "crawl.db" else None


def load(file: Path, options: LoadOptions) -> Graph:
    try:
        with closing(_opened(file)) as database:
            return _graph(database, file, options)
    except sqlite3.Error as error:
        raise ConfigError(f"{file}: not the database of a crawl: {error}") from None


def _opened(file: Path) -> sqlite3.Connection:
    # Where nothing can be written, SQLite cannot make the file that readers share; but nobody writes there either.
    mode = "mode=ro" if os.access(file.parent, os.W_OK) else "mode=ro&immutable=1"
    database = sqlite3.connect(f"{file.resolve().as_uri()}?{mode}", uri=True)
    database.execute("begin")  # all that is read is of one moment: the crawl may go on
    return database


def _graph(database: sqlite3.Connection, file: Path, options: LoadOptions) -> Graph:
    urls = _urls(database, file)
    fetched = _fetched(database, file, len(urls), options.tell)
    crawled = np.zeros(len(urls), np.bool_)
    crawled[fetched.page] = True
    kept = np.full(len(urls), options.dangling) | crawled
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    inside = kept[fetched.targets]
    sources, targets = (number[ends[inside]] for ends in (fetched.sources, fetched.targets))
    sizes = np.zeros(len(urls), np.int64)
    sizes[fetched.page] = fetched.size
    graph = recorded_graph(
        StoredStrings.of(url for url, keep in zip(urls, kept.tolist(), strict=True) if keep),
        file,
        *csr_from_edges(sources, targets, int(kept.sum())),
        format_name=NAME,
        sizes=sizes[kept],
    )
    return replace(graph, ips=_groups(database, np.flatnonzero(kept)[graph.home]))


def _urls(database: sqlite3.Connection, file: Path) -> list[str]:
    urls = [url for (url,) in database.execute("select url from page order by id")]
    (last,) = database.execute("select max(id) from page").fetchone()
    if urls and last != len(urls) - 1:
        raise ConfigError(f"{file}: it has {len(urls)} pages, and they must be numbered 0, 1, 2, ..., not to {last}")
    return urls


def _fetched(database: sqlite3.Connection, file: Path, pages: int, tell: Tell) -> Fetched:
    (total,) = database.execute("select count(*) from fetch").fetchone()
    last: dict[int, tuple[int, bytes]] = {}
    for row, (page, size, links) in enumerate(
        database.execute(
            f"select page, bytes, links from fetch where result = {_FETCHED} and status != 304 order by seq"
        )
    ):
        last[page] = size, links
        if row % _ROWS_A_STEP == 0:
            tell(row, total, file.name)
    if not last:
        raise ConfigError(f"{file}: has no crawled pages")
    page = np.array(list(last), np.int64)
    targets = np.frombuffer(b"".join(links for _, links in last.values()), "<i4").astype(np.int64)
    _check(file, page, targets, pages)
    counts = np.array([len(links) // 4 for _, links in last.values()])
    return Fetched(page, np.array([size for size, _ in last.values()]), np.repeat(page, counts), targets)


def _check(file: Path, fetched: NDArray[np.int64], targets: NDArray[np.int64], pages: int) -> None:
    """Compiled code does not check bounds."""
    for ids in (fetched, targets):
        wrong = np.flatnonzero((ids < 0) | (ids >= pages))
        if len(wrong):
            raise ConfigError(f"{file}: page {ids[wrong[0]]} is linked or fetched, and its pages are 0..{pages - 1}")


def _groups(database: sqlite3.Connection, homes: NDArray[np.int64]) -> NDArray[np.int32]:
    """For each site, by its home page: the group of those on its address. Sites that were never asked are alone."""
    found = dict(
        database.execute(
            "select page.site, max(fetch.address) from fetch join page on page.id = fetch.page"
            " where fetch.address != '' group by page.site"
        )
    )
    site = dict(database.execute("select id, site from page"))
    keys = [found.get(site[page], page) for page in homes.tolist()]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], np.int32)
