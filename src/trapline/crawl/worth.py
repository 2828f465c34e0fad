"""What pages are worth, as far as somebody says so beforehand: for the page rank, and for the sum that a crawl calls its quality.

Read before a folder is made, so that a wrong file costs nothing. It neither ranks nor fetches.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from trapline.crawl.asked import Asked
from trapline.crawl.options import CrawlOptions
from trapline.fetch.urls import canonical
from trapline.frontier import Frontier
from trapline.graph.pagerank import pagerank
from trapline.strategies import Strategy
from trapline.strategies.live_inputs import Values, live_inputs, quality_of


class Given(NamedTuple):
    inputs: dict[str, Values]
    """what the page rank wants to know of new pages"""
    quality: Values | None
    """what pages are worth by --quality; None: the source does not know it before they are fetched"""


def given_by(options: CrawlOptions, strategy: Strategy) -> Given:
    """`ConfigError` if a file cannot be read, or the page rank needs what is not given."""
    quality = quality_of(options.quality, options.seed, canonical, options.modules)
    history = Path(options.history) if options.history else None
    return Given(live_inputs(strategy, quality, history, options.seed, canonical, pagerank), quality)


def worth(given: Given, frontier: Frontier) -> Callable[[Asked], float]:
    """What a fetched page adds to the crawl's quality: what --quality says, whether or not the page rank reads it; else what the page
    rank knows of it."""
    columns = frontier.strategy.page.columns
    known = ("quality", "pagerank") if given.quality else ("cash", "history")
    for name in known:
        if name in columns:
            column = columns.index(name)
            return lambda asked: float(frontier.state.columns[asked.page, column])
    if given.quality is None:
        return lambda asked: 0.0
    quality = given.quality
    return lambda asked: float(quality([asked.url])[0])
