"""Trapline: a web crawler whose product is its scheduling.

This module is the public interface: it defines the names that users import, and no code of its own. A name is loaded at
its first use: every command runs `import trapline`, and the modules behind these names import most of the package.
"""

from typing import TYPE_CHECKING, Any

from trapline.lazy_names import lazy_names

if TYPE_CHECKING:
    from trapline.api.crawl import Crawl, crawl
    from trapline.api.simulation import compare, simulate
    from trapline.api.simulation_result import Comparison, SimulationResult
    from trapline.api.stored_crawl import StoredCrawl, open_crawl
    from trapline.crawler.engine.settings import CrawlSettings
    from trapline.crawler.handler.page import FailedFetch, Page
    from trapline.durable import DurableFrontier, KnownPage, NewPage, QueuedPage, UrlVisit
    from trapline.errors import ConfigError, FetchError, InvariantError
    from trapline.frontier import (
        FAILED,
        FETCHED,
        REFUSED,
        Drained,
        Frontier,
        Outcome,
        Rescore,
        Result,
        Rules,
        Visit,
        WaitUntil,
    )
    from trapline.graph import Graph
    from trapline.simulator.settings import SimulationSettings
    from trapline.strategies import PageRank, SiteRank, Strategy, load_strategy

    __version__: str

__all__ = [
    "FAILED",
    "FETCHED",
    "REFUSED",
    "Comparison",
    "ConfigError",
    "Crawl",
    "CrawlSettings",
    "Drained",
    "DurableFrontier",
    "FailedFetch",
    "FetchError",
    "Frontier",
    "Graph",
    "InvariantError",
    "KnownPage",
    "NewPage",
    "Outcome",
    "Page",
    "PageRank",
    "QueuedPage",
    "Rescore",
    "Result",
    "Rules",
    "SimulationResult",
    "SimulationSettings",
    "SiteRank",
    "StoredCrawl",
    "Strategy",
    "UrlVisit",
    "Visit",
    "WaitUntil",
    "compare",
    "crawl",
    "load_strategy",
    "open_crawl",
    "simulate",
]

_HOMES = {
    "trapline.api.crawl": ("Crawl", "crawl"),
    "trapline.crawler.handler.page": ("FailedFetch", "Page"),
    "trapline.api.simulation_result": ("Comparison", "SimulationResult"),
    "trapline.api.simulation": ("compare", "simulate"),
    "trapline.api.stored_crawl": ("StoredCrawl", "open_crawl"),
    "trapline.crawler.engine.settings": ("CrawlSettings",),
    "trapline.durable": ("DurableFrontier", "KnownPage", "NewPage", "QueuedPage", "UrlVisit"),
    "trapline.errors": ("ConfigError", "FetchError", "InvariantError"),
    "trapline.frontier": (
        *("FAILED", "FETCHED", "REFUSED", "Drained", "Frontier"),
        *("Outcome", "Rescore", "Result", "Rules", "Visit", "WaitUntil"),
    ),
    "trapline.graph": ("Graph",),
    "trapline.simulator.settings": ("SimulationSettings",),
    "trapline.strategies": ("PageRank", "SiteRank", "Strategy", "load_strategy"),
}
_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("trapline")
    return _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
