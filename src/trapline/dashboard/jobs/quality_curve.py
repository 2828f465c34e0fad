"""A job: how early the crawl fetched important pages, beside what the simulator predicts for breadth-first on the same graph.

The graph consists of the pages fetched so far and the links between them, and a page counts by its PageRank there. The prediction
begins at the same seeds, with the connections, delay, pages per visit and pause of the crawl. It knows neither the servers' times nor
their failures.
"""

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trapline.api.simulation import simulate
from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.files.layout import DATABASE
from trapline.crawler.files.reading import HAS_LINKS
from trapline.crawler.inspect.database_reader import open_database, options
from trapline.dashboard.jobs import answer_with
from trapline.errors import ConfigError
from trapline.graph import Graph, load_graph, pagerank
from trapline.graph.strings import decoded
from trapline.parallel.folder.merged import brought_up

MOST_PAGES = 2_000_000
_MOST_POINTS = 300
_BY_PAGES, _BY_SECONDS = "pages", "seconds"

Floats = NDArray[np.float64]


def quality(folder: str) -> dict[str, Any]:
    path = brought_up(Path(folder))
    with closing(open_database(path)) as database:
        settings, fetched = options(database), _fetched(database)
        seconds = _seconds(database, fetched["started"])
    graph = load_graph(path / DATABASE)
    rank = pagerank(graph)
    # Node n of the graph is the n-th fetched page in the order of discovery. Pages of a later commit are left out.
    node = np.searchsorted(np.unique(fetched["page"]), fetched["page"])
    inside = node < graph.pages
    share = np.cumsum(rank[node[inside]]) / rank.sum()
    curves = _curves("this crawl", np.arange(1.0, len(share) + 1.0), seconds[inside], share)
    return {
        "curves": [*curves, *_predicted(graph, settings)],
        "pages": int(graph.pages),
        "at": time.time(),
        "note": f"The quality of a page is its PageRank in the graph of the {graph.pages:,} pages fetched so far.",
    }


def _fetched(database: sqlite3.Connection) -> NDArray[np.void]:
    """Return the fetched pages in the order of their first fetch, and when that began."""
    (rows,) = database.execute("select max(id) + 1 from page").fetchone()
    if (rows or 0) > MOST_PAGES:
        raise ConfigError(f"the crawl knows more than {MOST_PAGES:,} pages; this view would take too long")
    sql = f"select page, min(started) from fetch where {HAS_LINKS} group by page order by min(seq)"
    found = np.fromiter(database.execute(sql), np.dtype([("page", "i8"), ("started", "f8")]))
    if not len(found):
        raise ConfigError("no page is fetched yet")
    return found


def _seconds(database: sqlite3.Connection, at: Floats) -> Floats:
    """Return moments as seconds of crawling: without the time between two runs."""
    clock = np.array(database.execute("select at, seconds from progress order by rowid").fetchall()).reshape(-1, 2)
    if not len(clock):
        return at - at.min()
    first = clock[0, 0] - clock[0, 1]
    return np.interp(at, np.insert(clock[:, 0], 0, first), np.insert(clock[:, 1], 0, 0.0))


def _predicted(graph: Graph, settings: CrawlOptions) -> list[dict[str, Any]]:
    rules = settings.rules
    crawl = simulate(
        graph,
        "breadth-first",
        seeds=_seeds(graph, settings),
        quality="pagerank",
        connections=settings.connections,
        delay=rules.delay_s,
        per_connection=rules.per_connection,
        pause=settings.pause_s,
        max_pages_per_site=0,
    )
    course = crawl.record.progress
    values = (np.array(column, np.float64) for column in (course.pages, course.time_s, course.quality))
    return _curves("breadth-first, simulated", *values)


def _seeds(graph: Graph, settings: CrawlOptions) -> list[int]:
    """Return the pages of the graph that are seeds. A seed that redirects is not there: then the first page counts."""
    assert graph.urls is not None
    wanted = frozenset(settings.seeds)
    return [page for page, url in enumerate(decoded(graph.urls)) if url in wanted] or [0]


def _curves(name: str, pages: Floats, seconds: Floats, share: Floats) -> list[dict[str, Any]]:
    chosen = np.unique(np.linspace(0, len(pages) - 1, min(_MOST_POINTS, len(pages))).astype(np.int64))
    y = share[chosen].tolist()
    return [
        {"name": name, "x_unit": _BY_PAGES, "x": pages[chosen].tolist(), "y": y},
        {"name": name, "x_unit": _BY_SECONDS, "x": seconds[chosen].tolist(), "y": y},
    ]


if __name__ == "__main__":
    sys.exit(answer_with(quality))
