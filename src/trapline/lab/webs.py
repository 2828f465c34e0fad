"""The webs of a study: generated, evolved, or read from the user's graphs. A web is loaded when a run needs it, and one is kept."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trapline.graph import EvolutionRates, Graph, WebModel, build, evolve, pagerank
from trapline.graph.strings import decoded
from trapline.strategies.base.inputs import CrawlHistory

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class KnownWeb:
    graph: Graph
    pagerank: Floats
    history: CrawlHistory | None = None


@dataclass(frozen=True, slots=True)
class WebSource:
    """A web that can be loaded at any time. `name` says everything that decides its pages and links."""

    name: str
    load: Callable[[], KnownWeb]
    pages: int


def generated(pages: int, sites: int, seed: int) -> WebSource:
    def load() -> KnownWeb:
        graph = build(WebModel(pages, sites, seed))
        return KnownWeb(graph, pagerank(graph))

    return WebSource(f"generated {pages:,} pages, {sites:,} sites, seed {seed}", load, pages)


def recorded(name: str, graph: Graph) -> WebSource:
    """Return the user's web. The checksum tells two files of the same name apart."""
    about = f"{name}, {graph.pages:,} pages, {graph.links:,} links, checksum {checksum(graph):08x}"
    return WebSource(about, lambda: KnownWeb(graph, pagerank(graph)), graph.pages)


def checksum(graph: Graph) -> int:
    """Return the CRC-32 of everything in the graph that a crawl reads."""
    found = 0
    for values in (graph.offsets, graph.targets, graph.site, graph.home, graph.dynamic, graph.ips, graph.sizes):
        found = zlib.crc32(b"" if values is None else np.ascontiguousarray(values).data, found)
    for strings in (graph.urls, graph.site_names):
        found = zlib.crc32(b"" if strings is None else "\n".join(decoded(strings)).encode(), found)
    return found


def evolved(pages: int, sites: int, seed: int, days: float) -> WebSource:
    """A generated web after some days, with its PageRank of day 0 as history."""

    def load() -> KnownWeb:
        old, new = evolve(WebModel(pages, sites, seed), [0.0, days], EvolutionRates())
        old_rank = pagerank(old.graph)
        rank_of = dict(zip(old.name.tolist(), old_rank.tolist(), strict=True))
        of_pages = np.array([rank_of.get(name, -1.0) for name in new.name.tolist()])
        return KnownWeb(new.graph, pagerank(new.graph), CrawlHistory(of_pages, np.sort(old_rank)))

    return WebSource(f"evolved {pages:,} pages, {sites:,} sites, seed {seed}, {days:g} days", load, pages)


def equal_sites(sites: int, pages: int) -> WebSource:
    """A web of equal sites: each home page links to all other pages of its site."""

    def load() -> KnownWeb:
        home = np.arange(sites, dtype=np.int32) * pages
        degree = np.zeros(sites * pages, np.int64)
        degree[home] = pages - 1
        graph = Graph(
            offsets=np.concatenate(([0], np.cumsum(degree))),
            targets=np.delete(np.arange(sites * pages, dtype=np.int32), home),
            site=np.repeat(np.arange(sites, dtype=np.int32), pages),
            home=home,
            dynamic=np.zeros(sites * pages, np.bool_),
            ips=np.arange(sites, dtype=np.int32),
        )
        return KnownWeb(graph, pagerank(graph))

    return WebSource(f"{sites} sites of {pages} pages", load, sites * pages)


class WebCache:
    """Keeps the web that was loaded last."""

    def __init__(self) -> None:
        self._name = ""
        self._web: KnownWeb | None = None

    def load(self, source: WebSource) -> KnownWeb:
        if self._web is not None and self._name == source.name:
            return self._web
        self._web = None  # frees the memory before the next web is loaded
        self._name, self._web = source.name, source.load()
        return self._web
