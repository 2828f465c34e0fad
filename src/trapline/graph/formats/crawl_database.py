"""Graphs from live crawls: reads `crawl.db` in the folder that `trapline crawl` writes. The crawl may still be running.

By default the graph consists of the fetched pages and the links between them. With the option `dangling`, pages that
were linked and not fetched are part of the graph too, without links and of 0 bytes. Pages are in the order in which the
crawl discovered them. Sites that the crawl found on one address share an address in the graph too. If the crawl scored the content
of its pages, the graph has the scores. This module knows the tables `page`, `fetch`, `page_quality`, `published_list` and
`requisite`, and nothing else about a crawl.
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
from trapline.graph.formats.textfile import LoadOptions
from trapline.graph.graph import Graph, csr_from_edges
from trapline.graph.sites import recorded_graph
from trapline.graph.strings import StoredStrings
from trapline.progress import ProgressCallback

NAME = "crawl"
ACCEPTS = "crawl.db"
OPTIONS = frozenset({"dangling"})

# The schema's number of this result. With status 304 the page has not changed, and an earlier row has its links.
_FETCHED = 3
NO_SCORE = -1.0
_ROWS_A_STEP = 100_000  # rows between two reports of progress


class FetchedPages(NamedTuple):
    """The fetched pages, each as of its last fetch."""

    page: NDArray[np.int64]
    size: NDArray[np.int64]
    sources: NDArray[np.int64]
    """the page that each link is on"""
    targets: NDArray[np.int64]


def graph_of(file: Path, named: bool) -> Path | None:
    return file if file.name == "crawl.db" else None


def load(file: Path, options: LoadOptions) -> Graph:
    try:
        with closing(_opened(file)) as database:
            return _graph(database, file, options)
    except sqlite3.Error as error:
        raise ConfigError(
            f"{file}: not the database of a crawl: {error}; restore it from a copy, or name another file"
        ) from None


def _opened(file: Path) -> sqlite3.Connection:
    # In a folder without write permission SQLite cannot create the shared-memory file of its readers. It does not need it
    # there, because no crawl can write to the database either.
    mode = "mode=ro" if os.access(file.parent, os.W_OK) else "mode=ro&immutable=1"
    database = sqlite3.connect(f"{file.resolve().as_uri()}?{mode}", uri=True)
    database.execute("begin")  # one transaction reads one consistent state, although the crawl may go on
    return database


def _graph(database: sqlite3.Connection, file: Path, options: LoadOptions) -> Graph:
    urls = _urls(database, file)
    fetched = _fetched(database, file, len(urls), options.progress)
    crawled = np.zeros(len(urls), np.bool_)
    crawled[fetched.page] = True
    kept = np.full(len(urls), options.dangling)
    kept[_extras(database)] = False
    kept |= crawled
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
    quality = _quality(database, len(urls))
    return replace(
        graph,
        ips=_groups(database, np.flatnonzero(kept)[graph.home]),
        quality=None if quality is None else quality[kept],
    )


def _quality(database: sqlite3.Connection, pages: int) -> NDArray[np.float64] | None:
    """Return the score of each page, -1 for a page without one; None: the crawl scored no page."""
    if not _has_table(database, "page_quality"):
        return None
    rows = database.execute("select page, quality from page_quality").fetchall()
    if not rows:
        return None
    scores = np.full(pages, NO_SCORE)
    scores[[page for page, _ in rows]] = [quality for _, quality in rows]
    return scores


def _has_table(database: sqlite3.Connection, name: str) -> bool:
    """Return whether the database has a table that those of earlier versions do not have."""
    return database.execute("select 1 from sqlite_master where name = ?", (name,)).fetchone() is not None


def _urls(database: sqlite3.Connection, file: Path) -> list[str]:
    urls = [url for (url,) in database.execute("select url from page order by id")]
    (last,) = database.execute("select max(id) from page").fetchone()
    if urls and last != len(urls) - 1:
        raise ConfigError(
            f"{file}: its {len(urls)} pages must be numbered 0 to {len(urls) - 1}, but the last number is {last}"
        )
    return urls


def _extras(database: sqlite3.Connection) -> list[int]:
    """Return the sitemaps, feeds and requisites that are no pages of the crawl."""
    sql = "select page from published_list where not is_page"
    if _has_table(database, "requisite"):
        sql += " union select page from requisite where state <> 'page'"
    return [page for (page,) in database.execute(sql)]


def _fetched(database: sqlite3.Connection, file: Path, pages: int, progress: ProgressCallback) -> FetchedPages:
    (total,) = database.execute("select count(*) from fetch").fetchone()
    last: dict[int, tuple[int, bytes]] = {}
    for row, (page, size, links) in enumerate(
        database.execute(
            f"select page, bytes, links from fetch where result = {_FETCHED} and status != 304 order by seq"
        )
    ):
        last[page] = size, links
        if row % _ROWS_A_STEP == 0:
            progress(row, total, file.name)
    if not last:
        raise ConfigError(f"{file}: has no fetched pages")
    page = np.array(list(last), np.int64)
    targets = np.frombuffer(b"".join(links for _, links in last.values()), "<i4").astype(np.int64)
    _check(file, page, targets, pages)
    counts = np.array([len(links) // 4 for _, links in last.values()])
    return FetchedPages(page, np.array([size for size, _ in last.values()]), np.repeat(page, counts), targets)


def _check(file: Path, fetched: NDArray[np.int64], targets: NDArray[np.int64], pages: int) -> None:
    """Check that all page ids are in range, because compiled code does not check bounds."""
    for ids in (fetched, targets):
        wrong = np.flatnonzero((ids < 0) | (ids >= pages))
        if len(wrong):
            raise ConfigError(f"{file}: page {ids[wrong[0]]} is linked or fetched, but is not in 0..{pages - 1}")


def _groups(database: sqlite3.Connection, homes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the address group of each site, given its home page. A site that was never contacted has its own group."""
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
