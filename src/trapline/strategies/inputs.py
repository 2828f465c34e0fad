"""Where the numbers come from that a page rank wants to know beforehand: --quality and --history. Not a strategy.

It reads files, graphs and a user's function, before a crawl begins, and gives one number for each page of a graph. It does not
know what ranks make of them, nor how PageRank is computed: it is told.

A FILE of values is text, plain or gzipped: a URL, a tab or blank, a number on each row. Rows that are empty or begin with # are
skipped; of two rows with the same URL the later counts. URLs are compared letter by letter.
"""

import importlib
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from itertools import compress, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trapline.errors import ConfigError, nearest
from trapline.frontier import Rules
from trapline.frontier.layout import RANK_LIMIT
from trapline.graph import Graph, LoadOptions, load_graph
from trapline.graph.exact import drawn
from trapline.graph.format_database import ACCEPTS as CRAWL
from trapline.graph.strings import Strings, decoded, encoded
from trapline.graph.textfile import at_row, rows, shown
from trapline.strategies import opic
from trapline.strategies import quality as known_quality
from trapline.strategies.strategy import Strategy

Floats = NDArray[np.float64]

INPUTS = ("history", "history_random", "pagerank", "quality")
QUALITIES = ("opic", "pagerank", "zipf")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
NOT_OLD = -1.0
_RUNS, _FEWEST_PAGES_A_RUN = 35, 50  # castillo-thesis 4.3.1: 30 to 40 runs a crawl; the least: spec, section 3


class History(NamedTuple):
    """An old crawl, as the pages of a graph see it."""

    page: Floats
    """[pages] PageRank in the old crawl; -1 for a page that was not in it"""
    old: Floats
    """The PageRank of all its pages, sorted; some of them may be gone"""


# ---- quality


def quality_values(source: str, graph: Graph, pagerank: Floats, seed: int) -> Floats | None:
    """What each page is worth, by `--quality source`. None: opic, whose cash is known during the crawl only."""
    check_quality(source)
    if source == "opic":
        return None
    if source == "pagerank":
        return pagerank
    if source == "zipf":
        return _zipf(graph.pages, seed)
    if Path(source).is_file():
        return _worth(source, graph, _matched(file_values(Path(source)), graph, 0.0, source))
    return _worth(source, graph, _answered(source, graph))


def _worth(source: str, graph: Graph, values: Floats) -> Floats:
    """The values, if shares of them make sense."""
    wrong = np.flatnonzero(values < 0.0)
    if len(wrong):
        raise worthless(source, float(values[wrong[0]]), str(_urls(graph, source)[int(wrong[0])]))
    return values


def worthless(source: str, value: float, url: str) -> ConfigError:
    return ConfigError(f"--quality {source}: {value:g} for {url}; a page cannot be worth less than 0")


def check_quality(source: str) -> None:
    """Whether it can be a source of quality; what a file or function of the user's says is seen when it is asked."""
    if source not in QUALITIES and not Path(source).is_file() and not _FUNCTION.fullmatch(source):
        raise ConfigError(f"--quality {source}: no such file, nor MODULE:FUNCTION; {nearest(source, QUALITIES)}")


def _zipf(pages: int, seed: int) -> Floats:
    """1/i for the i-th page of an order drawn by the seed, the same on every machine."""
    values = np.empty(pages)
    values[np.argsort(drawn(seed, "zipf", pages), kind="stable")] = 1.0 / np.arange(1, pages + 1)
    return values


def with_quality(strategy: Strategy, source: str) -> Strategy:
    """The strategy with its quality by this source: with opic, pages that go by quality go by their cash."""
    if source == "opic" and strategy.page is known_quality.PAGE:
        return replace(strategy, page=opic.PAGE)
    return strategy


def _answered(source: str, graph: Graph) -> Floats:
    """What the user's module:function answers for the list of all URLs."""
    return asked(source, list(decoded(_urls(graph, f"--quality {source}"))))


def asked(source: str, urls: list[str], folder: str = "") -> Floats:
    """What the user's module:function answers for these URLs. `folder`: where the module is, if not here or installed."""
    try:
        answer = _imported(source, folder or os.getcwd())(urls)
        values = np.asarray(answer, np.float64)
    except (Exception, SystemExit) as error:  # whatever the user's code raises is the user's to mend
        raise ConfigError(f"--quality {source}: {type(error).__name__}: {_one_line(error)}") from error
    if values.shape != (len(urls),):
        raise ConfigError(f"--quality {source}: it must answer {len(urls)} numbers, not {_shape(values)}")
    wrong = np.flatnonzero(~(np.abs(values) < RANK_LIMIT))
    if len(wrong):
        raise ConfigError(
            f"--quality {source}: {values[wrong[0]]} for {urls[int(wrong[0])]} is not a number under 2^42"
        )
    return values


def _imported(source: str, folder: str) -> Callable[[list[str]], Any]:
    module, _, function = source.partition(":")
    with _on_path(folder):
        found = getattr(importlib.import_module(module), function)
    if not callable(found):
        raise TypeError(f"{function} is not a function")
    return found


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    # An installed command does not search the folder that it is called in, which is where users keep such a file.
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _shape(values: Floats) -> str:
    return f"{len(values)}" if values.ndim == 1 else f"an array of shape {values.shape}"


# ---- history


def history_values(path: Path | str, graph: Graph, pagerank_of: Callable[[Graph], Floats]) -> History:
    """The PageRank that pages had in an old crawl: `--history` GRAPH or crawl's folder (it is computed), or FILE (of values)."""
    values = old_values(Path(path), pagerank_of)
    return History(_matched(values, graph, NOT_OLD, str(path)), np.sort(np.fromiter(values.values(), np.float64)))


def old_values(path: Path, pagerank_of: Callable[[Graph], Floats]) -> dict[bytes, float]:
    """What pages were worth, by URL."""
    values = _old_values(path, pagerank_of)
    worst = min(values, key=values.__getitem__, default=b"")
    if values and values[worst] < 0.0:
        raise ConfigError(f"{path}: the PageRank of {shown(worst)} is {values[worst]:g}; it must be at least 0")
    return values


def _old_values(path: Path, pagerank_of: Callable[[Graph], Floats]) -> dict[bytes, float]:
    if path.is_file() and path.name != CRAWL and _has_values(path):
        return file_values(path)
    is_crawl = path.name == CRAWL or (path / CRAWL).is_file()
    old = load_graph(path, LoadOptions(dangling=is_crawl))  # of a crawl also what it knew and had not fetched
    urls = _urls(old, f"--history {path}")
    return dict(zip(encoded(urls), pagerank_of(old).tolist(), strict=True))


def _has_values(path: Path) -> bool:
    """Whether its first row is a URL and a value; an edge list has two integers there."""
    for _, line in rows(path):
        words = line.split()
        if words and not line.startswith(b"#"):
            return len(words) == 2 and not words[0].isdigit() and _is_number(words[1])
    return False


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _drawn(history: History, graph: Graph, seed: int) -> Floats:
    """`history.page`, with that of an old page for each new one: drawn by (seed, URL), so that a live crawl draws the same.
    Pages without URLs are drawn for by their number."""
    new = history.page < 0.0
    names = map(b"%d".__mod__, range(graph.pages)) if graph.urls is None else encoded(graph.urls)
    values = history.page.copy()
    values[new] = drawn_from(history.old, list(compress(names, new.tolist())), seed)
    return values


def drawn_from(old: Floats, names: list[bytes], seed: int) -> Floats:
    """One of the old values for each name."""
    key = seed.to_bytes(8, "little", signed=True)
    hashes = b"".join(blake2b(name, digest_size=4, key=key).digest() for name in names)
    places = np.frombuffer(hashes, "<u4").astype(np.uint64) * np.uint64(len(old)) >> np.uint64(32)
    return old[places.astype(np.int64)]


# ---- what a strategy needs


def check_inputs(strategy: Strategy, has_quality: bool, has_history: bool) -> None:
    """Whether the page rank can have its inputs, in time: before any graph is read."""
    page = strategy.page
    for name in page.inputs:
        if name not in INPUTS:
            raise ConfigError(f"page rank {page.name!r} needs the input {name!r}; it can have: {', '.join(INPUTS)}")
        if name.startswith("history") and not has_history:
            raise ConfigError(f"page rank {page.name!r} needs the PageRank of an old crawl: give --history")
        if name == "quality" and not has_quality:
            raise ConfigError(f"page rank {page.name!r} needs a quality known beforehand: give another --quality")


def inputs_for(
    strategy: Strategy, graph: Graph, pagerank: Floats, quality: Floats | None, history: History | None, seed: int
) -> dict[str, Floats]:
    """The inputs that the page rank declares, no others. `quality`: None with --quality opic."""
    check_inputs(strategy, quality is not None, history is not None)
    given: dict[str, Callable[[], Any]] = {
        "quality": lambda: quality,
        "pagerank": lambda: pagerank,
        "history": lambda: history and history.page,
        "history_random": lambda: history and _drawn(history, graph, seed),
    }
    return {name: given[name]() for name in strategy.page.inputs}


def default_rules(strategy: Strategy, rules: Rules, pages: int) -> Rules:
    """The rules, with the K of a page rank that needs scores and was given none: some 35 runs of PageRank a crawl."""
    if not strategy.page.scores:
        return rules
    if strategy.page.batched:
        return rules if rules.batch else replace(rules, batch=pages_a_run(pages))
    return rules if rules.rescore else replace(rules, rescore=pages_a_run(pages))


def pages_a_run(pages: int) -> int:
    """K, if nobody says it: some 35 runs, or batches, a crawl.

    >>> pages_a_run(3_500), pages_a_run(100)
    (100, 50)
    """
    return max(_FEWEST_PAGES_A_RUN, pages // _RUNS)


# ---- values by URL


def file_values(file: Path) -> dict[bytes, float]:
    """The FILE of values, by URL."""
    values: dict[bytes, float] = {}
    for row, line in rows(file):  # written for speed: 3.5 M rows in seconds
        if line[:1] == b"#":
            continue
        try:
            url, word = line.rsplit(None, 1)
            number = float(word)
        except ValueError:
            if not line.strip():
                continue
            number = math.nan
        if not -RANK_LIMIT < number < RANK_LIMIT:
            raise at_row(file, row, f"{shown(line)} is not a URL, a tab or blank, and a number under 2^42")
        values[url] = number
    return values


def _matched(values: dict[bytes, float], graph: Graph, missing: float, file: str) -> Floats:
    """The value of each page of the graph."""
    urls = _urls(graph, file)
    found = np.fromiter(map(values.get, encoded(urls), repeat(math.nan)), np.float64, graph.pages)
    unknown = np.isnan(found)
    if unknown.all():
        its = f", such as {shown(next(iter(values)))}," if values else ""
        raise ConfigError(f"{file}: none of its {len(values)} URLs{its} is in the graph, which has {urls[0]!r}")
    found[unknown] = missing
    return found


def _urls(graph: Graph, wanted_by: str) -> Strings:
    # Ids will not do instead: two crawls of one web number its pages each in its own way.
    if graph.urls is None:
        raise ConfigError(f"{wanted_by}: values go by URL, and the graph has none")
    return graph.urls
