"""The quality of pages as far as it is given before they are fetched: for the page rank, and for the total quality of a crawl.

The files are read before the crawl's folder is created, so that a wrong file leaves nothing behind. This module neither
ranks nor fetches.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trapline.crawler.engine.options import CrawlOptions
from trapline.crawler.engine.page_stream import StreamedFetch
from trapline.crawler.visits.fetch_record import PageRequest
from trapline.fetch.urls import canonical
from trapline.frontier import Frontier
from trapline.frontier.layout import FETCHED, REVISITED, UNKNOWN, Array
from trapline.graph import Graph
from trapline.graph.pagerank import DAMPING, Runs, pagerank
from trapline.strategies import Strategy
from trapline.strategies.base.inputs import CONTENT
from trapline.strategies.base.live_inputs import Values, live_inputs, quality_of, unknown_quality


class ProgramQuality:
    """The quality of fetched pages, by a function of a Python program. A page that is not fetched yet is expected to have the
    quality of the first page that links to it; a page that nothing links to, such as a seed, is expected to have 1.

    The crawler calls `judge` or `inherit` for each page, and resolves its links before it calls either for the next one.
    """

    def __init__(self, function: Callable[[StreamedFetch], float]) -> None:
        self._function = function
        self.expected_of: Callable[[int], float] = lambda page: 1.0  # by page
        self.quality = 0.0  # of the last page
        self._expected = 1.0  # of the pages that it links to

    def judge(self, fetch: StreamedFetch) -> None:
        self.quality = self._expected = self._function(fetch)

    def inherit(self, page: int) -> None:
        """A redirect, or a page without contents, has no quality, and hands on what was expected of it."""
        self.quality, self._expected = 0.0, self.expected_of(page)

    def forget(self) -> None:
        """Pages that are found now are not found on a page."""
        self._expected = 1.0

    def values(self, urls: Sequence[str]) -> list[float]:
        """Return the expected quality of new pages."""
        return [self._expected] * len(urls)


class Given(NamedTuple):
    inputs: dict[str, Values]
    """inputs of the page rank for new pages, by column"""
    quality: Values | None
    """quality of pages by --quality; None: the source does not know it before they are fetched"""
    program: ProgramQuality | None = None
    """quality of pages by a function of the program"""
    is_scored: bool = False
    """whether the content of fetched pages is scored, so that their quality is known later"""


class PageScoring(NamedTuple):
    """What a crawler computes for each new page."""

    quality: Callable[[PageRequest], float]
    """what the page adds to the crawl's quality"""
    keep_links: Callable[[int, Array], None] | None = None
    """keeps the links of a page for scores; None: the page rank uses none"""
    program: ProgramQuality | None = None
    """is told of each page before `quality` is asked for; None: the program does not compute qualities"""


def given_by(options: CrawlOptions, strategy: Strategy, program: ProgramQuality | None = None) -> Given:
    """Read the given qualities. Raise `ConfigError` if a file cannot be read, or if the page rank needs an input that is missing."""
    quality = program.values if program else quality_of(options.quality, options.seed, canonical, options.modules)
    history = Path(options.history) if options.history else None
    inputs = live_inputs(strategy, quality, history, options.seed, canonical, pagerank)
    if program is not None and "fetched_quality" in inputs:
        inputs["fetched_quality"] = unknown_quality  # the values of the program are those that it expects
    return Given(inputs, quality, program, options.quality.startswith(CONTENT))


def page_quality(given: Given, frontier: Frontier) -> Callable[[PageRequest], float]:
    """Return a function that computes what a fetched page adds to the crawl's quality. This is the value by --quality,
    whether or not the page rank uses it; without such a value, it is what the page rank itself knows of the page."""
    columns = frontier.strategy.page.columns
    if (program := given.program) is not None:
        if "quality" in columns:
            column = columns.index("quality")
            program.expected_of = lambda page: frontier.page_value(page, column)
        return lambda request: program.quality
    if given.is_scored:
        return lambda request: 0.0  # the score is added when it comes (content_quality.py)
    known = ("quality", "pagerank") if given.quality else ("cash", "history")
    for name in known:
        if name in columns:
            column = columns.index(name)
            return lambda request: frontier.page_value(request.page, column)
    if given.quality is None:
        return lambda request: 0.0
    quality = given.quality
    return lambda request: float(quality([request.url])[0])


# ---- Scores of a live crawl: PageRank of the known graph. Its nodes are the known pages, its links are those of the fetched pages.
#
# Links are kept only for page ranks that use scores. They are the links that were reported to the frontier, page by page.

TOLERANCE = 1e-4  # as in the simulator


class Scores:
    def __init__(self) -> None:
        self._links: dict[int, Array] = {}  # by fetched page

    def keep(self, page: int, links: Array) -> None:
        self._links[page] = links

    def restore(self, fetched: Iterable[tuple[int, bytes]]) -> None:
        """Restore the pages of an earlier run and their links, as stored in the database."""
        for page, links in fetched:
            self.keep(page, np.frombuffer(links, "<i4"))

    def scores(self, life: Array) -> Array:
        """Return the PageRank of every known page. `life[page]`: the state of the page (frontier/layout.py)."""
        pages = len(life)
        counts = np.zeros(pages + 1, np.int64)
        counts[np.fromiter(self._links, np.int64, len(self._links)) + 1] = [*map(len, self._links.values())]
        offsets = np.cumsum(counts)
        targets = np.empty(int(offsets[-1]), np.int32)
        for page, links in self._links.items():
            targets[offsets[page] : offsets[page + 1]] = links
        graph = Graph(
            offsets=offsets,
            targets=targets,
            site=np.zeros(pages, np.int32),
            home=np.zeros(1, np.int32),
            dynamic=np.zeros(pages, np.uint8),
            ips=np.zeros(1, np.int32),
        )
        known = (life != UNKNOWN).view(np.uint8)
        return Runs(graph, DAMPING).run(known, ((life == FETCHED) | (life == REVISITED)).view(np.uint8), TOLERANCE)
