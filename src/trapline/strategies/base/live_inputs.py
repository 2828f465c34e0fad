"""Inputs of page ranks in a live crawl, from --quality and --history: the value of a page is looked up when it is discovered.

inputs.py does the same for a simulated crawl, where the whole graph is known beforehand.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from trapline.errors import ConfigError
from trapline.frontier.layout import QUALITY_UNKNOWN
from trapline.graph import Graph
from trapline.rng import uniform
from trapline.strategies.base.inputs import (
    CONTENT,
    FROM_LINKS,
    NOT_OLD,
    PROGRAM,
    QUALITIES,
    Floats,
    check_quality,
    drawn_from,
    file_values,
    mean_of,
    negative_quality,
    old_values,
    relative_history,
    values_from_function,
)
from trapline.strategies.base.strategy import Strategy
from trapline.strategies.base.url_inputs import FEATURES, STATE_PAGES, feature_values

Values = Callable[[Sequence[str]], Sequence[float] | Floats]
_ZIPF_PAGES = 1_000_000  # assumed number of pages of the web: its real size is unknown


def live_inputs(
    strategy: Strategy,
    quality: Values | None,
    history: Path | None,
    seed: int,
    canonical: Callable[[str], str | None],
    pagerank_of: Callable[[Graph], Floats],
) -> dict[str, Values]:
    """Return for each input of the page rank a function from URLs to values, without those that are page numbers (STATE_PAGES).
    `canonical`: makes the URLs in files canonical, as those of the crawl are."""
    names = [name for name in strategy.page.inputs if name not in STATE_PAGES]
    given: dict[str, Values] = {name: partial(feature_values, name) for name in names if name in FEATURES}
    if "fetched_quality" in names:
        given["fetched_quality"] = quality or unknown_quality
    if "quality" in names or "pagerank" in names:
        if quality is None:
            raise ConfigError(
                f"strategy {strategy.name!r} needs the quality of pages before they are fetched:"
                " give --quality FILE or MODULE:FUNCTION"
            )
        given |= dict.fromkeys(("quality", "pagerank"), quality)
    if any(name.startswith("history") for name in names):
        if history is None:
            raise ConfigError(f"page rank {strategy.page.name!r} needs the PageRank of an old crawl: give --history")
        old = _by_url(old_values(history, pagerank_of), canonical)
        if not old:
            raise ConfigError(f"--history {history}: it has no page; give the graph, folder or file of an old crawl")
        given |= _old(old, seed)
    return {name: given[name] for name in names}


def unknown_quality(urls: Sequence[str]) -> list[float]:
    """Return the input `fetched_quality` of new pages whose quality is known only after they are fetched."""
    return [QUALITY_UNKNOWN] * len(urls)


def _old(old: dict[str, float], seed: int) -> dict[str, Values]:
    """Return the functions for the inputs from an old crawl. A new page gets NOT_OLD, or, as `history_random`, the value of an old page
    that is sampled by its URL."""
    old_ranks = np.sort(np.fromiter(old.values(), np.float64))
    mean = mean_of(old_ranks)

    def sampled(urls: Sequence[str]) -> list[float]:
        samples = drawn_from(old_ranks, [url.encode() for url in urls], seed).tolist()
        return [old.get(url, value) for url, value in zip(urls, samples, strict=True)]

    def values(urls: Sequence[str]) -> list[float]:
        return [old.get(url, NOT_OLD) for url in urls]

    def relative(urls: Sequence[str]) -> Floats:
        return relative_history(np.array(values(urls)), mean)

    return {"history": values, "history_random": sampled, "history_relative": relative}


def quality_of(source: str, seed: int, canonical: Callable[[str], str | None], modules: str = "") -> Values | None:
    """Return a function from URLs to the quality of the pages. None: the source does not know the quality before pages are fetched.

    `modules`: the folder of a user's MODULE; "": the current folder.
    """
    if source.startswith(CONTENT):
        return None
    check_quality(source)
    if source in (*FROM_LINKS, "pagerank"):
        return None
    if source == PROGRAM:
        raise ConfigError("the quality of this crawl is a function of a Python program; give the program's `quality`")
    if source == "zipf":
        return lambda urls: [1.0 / (1 + int(uniform(seed, hash_of(url)) * _ZIPF_PAGES)) for url in urls]
    if Path(source).is_file():
        values = _by_url(file_values(Path(source)), canonical)
        _check_quality(source, values)
        return lambda urls: [values.get(url, 0.0) for url in urls]

    def answered(urls: Sequence[str]) -> list[float]:
        values: list[float] = values_from_function(source, list(urls), modules).tolist()
        _check_quality(source, dict(zip(urls, values, strict=True)))
        return values

    return answered


def _check_quality(source: str, values: dict[str, float]) -> None:
    worst = min(values, key=values.__getitem__, default="")
    if values and values[worst] < 0.0:
        raise negative_quality(source, values[worst], worst)


def try_function(source: str, urls: Sequence[str], modules: str = "") -> None:
    """Raise ConfigError if the source is a user's function that fails for these URLs. A file is not read."""
    if source not in (*QUALITIES, PROGRAM) and not source.startswith(CONTENT) and not Path(source).is_file():
        values_from_function(source, list(urls), modules)


def hash_of(url: str) -> int:
    """Return a number for a URL that is the same on every machine and in every run."""
    from hashlib import blake2b

    return int.from_bytes(blake2b(url.encode(), digest_size=6).digest(), "little")


def _by_url(values: dict[bytes, float], canonical: Callable[[str], str | None]) -> dict[str, float]:
    """Return the values by canonical URL. A text that is not a URL stays as it is, and matches no page."""
    texts = ((url.decode("utf-8", "replace"), value) for url, value in values.items())
    return {canonical(text) or text: value for text, value in texts}
