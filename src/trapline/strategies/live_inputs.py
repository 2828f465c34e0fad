"""What a page rank wants to know beforehand, for pages that turn up one by one: --quality and --history of a live crawl.

As inputs.py, which has the whole graph; here a URL is asked for when it is discovered. Not a strategy.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from trapline.errors import ConfigError
from trapline.graph import Graph
from trapline.rng import uniform
from trapline.strategies.inputs import (
    NOT_OLD,
    Floats,
    asked,
    check_quality,
    drawn_from,
    file_values,
    old_values,
    worthless,
)
from trapline.strategies.strategy import Strategy

Values = Callable[[Sequence[str]], Sequence[float]]
_ZIPF_PAGES = 1_000_000  # of a web whose size nobody knows


def live_inputs(
    strategy: Strategy,
    quality: Values | None,
    history: Path | None,
    seed: int,
    canonical: Callable[[str], str | None],
    pagerank_of: Callable[[Graph], Floats],
) -> dict[str, Values]:
    """For each input of the page rank: URLs in, values out. `canonical`: URLs in files are compared as the crawl writes them."""
    names = strategy.page.inputs
    given: dict[str, Values] = {}
    if "quality" in names or "pagerank" in names:
        assert quality is not None  # choice.py refuses a strategy that would lack it
        given |= dict.fromkeys(("quality", "pagerank"), quality)
    if "history" in names or "history_random" in names:
        if history is None:
            raise ConfigError(f"page rank {strategy.page.name!r} needs the PageRank of an old crawl: give --history")
        old = _by_url(old_values(history, pagerank_of), canonical)
        if not old:
            raise ConfigError(f"--history {history}: there is no page in it")
        given |= _old(old, seed)
    return {name: given[name] for name in names}


def _old(old: dict[str, float], seed: int) -> dict[str, Values]:
    """What pages were worth in an old crawl; one that was not there: NOT_OLD, or what a page drawn by its URL was."""
    every = np.sort(np.fromiter(old.values(), np.float64))

    def drawn(urls: Sequence[str]) -> list[float]:
        instead = drawn_from(every, [url.encode() for url in urls], seed).tolist()
        return [old.get(url, value) for url, value in zip(urls, instead, strict=True)]

    return {"history": lambda urls: [old.get(url, NOT_OLD) for url in urls], "history_random": drawn}


def quality_of(source: str, seed: int, canonical: Callable[[str], str | None], modules: str = "") -> Values | None:
    """What pages are worth, by their URLs. None: by a source that does not know it before they are fetched. `modules`: the folder
    of a user's MODULE; "": this one."""
    check_quality(source)
    if source in ("opic", "pagerank"):
        return None
    if source == "zipf":
        return lambda urls: [1.0 / (1 + int(uniform(seed, hash_of(url)) * _ZIPF_PAGES)) for url in urls]
    if Path(source).is_file():
        values = _by_url(file_values(Path(source)), canonical)
        _check_worth(source, values)
        return lambda urls: [values.get(url, 0.0) for url in urls]

    def answered(urls: Sequence[str]) -> list[float]:
        values: list[float] = asked(source, list(urls), modules).tolist()
        _check_worth(source, dict(zip(urls, values, strict=True)))
        return values

    return answered


def _check_worth(source: str, values: dict[str, float]) -> None:
    worst = min(values, key=values.__getitem__, default="")
    if values and values[worst] < 0.0:
        raise worthless(source, values[worst], worst)


def hash_of(url: str) -> int:
    """A number for a URL, the same on every machine and in every run."""
    from hashlib import blake2b

    return int.from_bytes(blake2b(url.encode(), digest_size=6).digest(), "little")


def _by_url(values: dict[bytes, float], canonical: Callable[[str], str | None]) -> dict[str, float]:
    """The values by canonical URL; what is no URL stays as it is, and matches nothing."""
    texts = ((url.decode("utf-8", "replace"), value) for url, value in values.items())
    return {canonical(text) or text: value for text, value in texts}
