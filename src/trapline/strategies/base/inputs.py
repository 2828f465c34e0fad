"""Inputs of page ranks: the numbers that a page rank needs beforehand, from --quality and --history.

The module reads files, graphs and a user's function before a crawl begins, and gives one number for each page of a graph. It
does not know how ranks use the numbers, nor how PageRank is computed: the caller passes that function.

A FILE of values is text, plain or gzipped. Each row has a URL, a tab or blank, and a number. Rows that are empty or begin
with # are skipped. If two rows have the same URL, the later one counts. URLs are compared character by character.
"""

import importlib
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
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
from trapline.graph import Graph
from trapline.graph.exact import drawn
from trapline.graph.formats.crawl_database import ACCEPTS as CRAWL
from trapline.graph.formats.textfile import at_row, rows, shown
from trapline.graph.strings import Strings, decoded, encoded
from trapline.strategies.base.registry import page_rank_named
from trapline.strategies.base.strategy import Strategy
from trapline.strategies.base.url_inputs import FEATURES, STATE_PAGES, StatePages, feature_values, first_pages

Floats = NDArray[np.float64]

INPUTS = (
    "fetched_quality",
    "history",
    "history_random",
    "history_relative",
    "pagerank",
    "quality",
    *FEATURES,
    *STATE_PAGES,
)
# Sources that are computed from links during the crawl: no page has a value before. Each is the page rank of that name.
FROM_LINKS = ("opic", "opic-by-directory")
QUALITIES = ("content", *FROM_LINKS, "pagerank", "zipf")
PROGRAM = "program"  # the source of quality of a live crawl whose program computes it: a function of fetched pages
CONTENT = "content:"  # begins a source of quality of a live crawl that scores the content of fetched pages
CONTENT_FORMS = "give content:text, content:fasttext=FILE or content:MODULE:FUNCTION"
_OTHER_QUALITY = "give --quality pagerank, zipf, FILE or MODULE:FUNCTION, or content if the graph has scores"
STORED_CONTENT = "content"  # the same scores in a simulated crawl: those that the graph has kept
MODULE_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
NOT_OLD = -1.0  # the history of a page that was not in the old crawl
# castillo-thesis 4.3.1: 30 to 40 runs per crawl; the minimum of 50: spec, section 3
_RUNS, _FEWEST_PAGES_A_RUN = 35, 50


class CrawlHistory(NamedTuple):
    """The PageRank values of an old crawl, for the pages of a graph."""

    page: Floats
    """[pages] PageRank in the old crawl; -1 for a page that was not in it"""
    old: Floats
    """PageRank of all pages of the old crawl, sorted; some of these pages may not exist any more"""


# ---- quality


def quality_values(source: str, graph: Graph, pagerank: Floats, seed: int) -> Floats | None:
    """Return the quality of each page, by `--quality source`; -1 for a page whose content has no score. None: the source computes
    it from links, during the crawl."""
    check_quality(source)
    if source in FROM_LINKS:
        return None
    if source == STORED_CONTENT:
        return _scores_of(graph)
    if source == "pagerank":
        return pagerank
    if source == "zipf":
        return _zipf(graph.pages, seed)
    if Path(source).is_file():
        return _checked_quality(source, graph, _matched(file_values(Path(source)), graph, 0.0, source))
    return _checked_quality(source, graph, _answered(source, graph))


def _scores_of(graph: Graph) -> Floats:
    """Return the scores that the graph has kept; -1 for a page without one."""
    if graph.quality is None:
        raise ConfigError(
            "--quality content: this graph has no scores of pages; crawl with --quality content:text, then run trapline graph convert"
        )
    return graph.quality


def _checked_quality(source: str, graph: Graph, values: Floats) -> Floats:
    """Return the values, or raise ConfigError if one is negative: the pages' shares of their sum would make no sense."""
    wrong = np.flatnonzero(values < 0.0)
    if len(wrong):
        raise negative_quality(source, float(values[wrong[0]]), str(_urls(graph, source)[int(wrong[0])]))
    return values


def negative_quality(source: str, value: float, url: str) -> ConfigError:
    """Return the error for a page of negative quality."""
    return ConfigError(f"--quality {source}: {value:g} for {url}; a quality must be at least 0")


def check_quality(source: str, names: Sequence[str] = QUALITIES) -> None:
    """Raise ConfigError if the text cannot be a source of quality. A user's file or function is not read or called here."""
    if source.startswith(CONTENT):
        raise ConfigError(
            f"--quality {source}: a simulated crawl has no text; crawl with it, and give --quality content for the graph of that crawl"
        )
    if source not in (*QUALITIES, PROGRAM) and not Path(source).is_file() and not MODULE_FUNCTION.fullmatch(source):
        raise ConfigError(f"--quality {source}: not a file, and not MODULE:FUNCTION; {nearest(source, names)}")


def _zipf(pages: int, seed: int) -> Floats:
    """Return 1/i for the i-th page of a random order, which depends on the seed alone and is the same on every machine."""
    values = np.empty(pages)
    values[np.argsort(drawn(seed, "zipf", pages), kind="stable")] = 1.0 / np.arange(1, pages + 1)
    return values


def with_quality(strategy: Strategy, source: str) -> Strategy:
    """Return the strategy with its quality from this source. The page rank `quality` is replaced by that of the source's name
    if the source computes it from links, and by `mean-parent-quality` with content:NAME, which knows the quality of fetched pages only."""
    if strategy.page is page_rank_named("quality") and (source in FROM_LINKS or source.startswith(CONTENT)):
        return replace(strategy, page=page_rank_named(source if source in FROM_LINKS else "mean-parent-quality"))
    return strategy


def _answered(source: str, graph: Graph) -> Floats:
    """Return the answer of the user's module:function for the URLs of all pages."""
    return values_from_function(source, list(decoded(_urls(graph, f"--quality {source}"))))


def values_from_function(source: str, urls: list[str], folder: str = "") -> Floats:
    """Return the answer of the user's module:function for these URLs. `folder`: where the module is; "": the current folder."""
    try:
        answer = _imported(source, folder or os.getcwd())(urls)
        values = np.asarray(answer, np.float64)
    except (Exception, SystemExit) as error:  # any error of the user's code is shown to the user, who must correct it
        raise ConfigError(
            f"--quality {source}: raises {type(error).__name__}: {_one_line(error)}; {_correction(source, error)}"
        ) from error
    if values.shape != (len(urls),):
        raise ConfigError(f"--quality {source}: it must return {len(urls)} numbers, not {_shape(values)}")
    wrong = np.flatnonzero(~(np.abs(values) < RANK_LIMIT))
    if len(wrong):
        raise ConfigError(
            f"--quality {source}: {values[wrong[0]]} for {urls[int(wrong[0])]} is not a number under 2^42"
        )
    return values


def _correction(source: str, error: BaseException) -> str:
    """Return what to do about an error of the user's module:function for URLs."""
    if isinstance(error, AttributeError) and isinstance(error.obj, str):
        return f"the function gets URLs, which are str; if it scores pages, give --quality {CONTENT}{source}"
    return module_correction(source, error)


def module_correction(source: str, error: BaseException) -> str:
    """Return what to do about an error on importing the user's MODULE:FUNCTION.

    >>> module_correction("content:scorers.py:educational", ModuleNotFoundError())
    'write the module without .py: content:scorers:educational'
    """
    module, _, function = source.rpartition(":")
    if isinstance(error, ModuleNotFoundError) and module.endswith(".py"):
        return f"write the module without .py: {module.removesuffix('.py')}:{function}"
    return "correct its name or code, or install what it imports"


def _imported(source: str, folder: str) -> Callable[[list[str]], Any]:
    module, _, function = source.partition(":")
    with _on_path(folder):
        found = getattr(importlib.import_module(module), function)
    if not callable(found):
        raise TypeError(f"{function} is not a function")
    return found


@contextmanager
def _on_path(folder: str) -> Iterator[None]:
    # An installed command does not search the current folder for modules, and users keep such a file there.
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


def history_values(path: Path | str, graph: Graph, pagerank_of: Callable[[Graph], Floats]) -> CrawlHistory:
    """Return the PageRank of pages in an old crawl. `path` (`--history`): a graph or a crawl's folder, whose PageRank is computed, or a
    FILE of values."""
    values = old_values(Path(path), pagerank_of)
    return CrawlHistory(_matched(values, graph, NOT_OLD, str(path)), np.sort(np.fromiter(values.values(), np.float64)))


def old_values(path: Path, pagerank_of: Callable[[Graph], Floats]) -> dict[bytes, float]:
    """Return the PageRank in the old crawl by URL, or raise ConfigError if one is negative."""
    values = _old_values(path, pagerank_of)
    worst = min(values, key=values.__getitem__, default=b"")
    if values and values[worst] < 0.0:
        raise ConfigError(f"{path}: the PageRank of {shown(worst)} is {values[worst]:g}; it must be at least 0")
    return values


def _old_values(path: Path, pagerank_of: Callable[[Graph], Floats]) -> dict[bytes, float]:
    if path.is_file() and path.name != CRAWL and _has_values(path):
        return file_values(path)
    is_crawl = path.name == CRAWL or (path / CRAWL).is_file()
    # Of a crawl, the pages too that were discovered and not fetched
    from trapline.graph import LoadOptions, load_graph

    old = load_graph(path, LoadOptions(dangling=is_crawl))
    urls = _urls(old, f"--history {path}")
    return dict(zip(encoded(urls), pagerank_of(old).tolist(), strict=True))


def _has_values(path: Path) -> bool:
    """Return whether the first row of the file is a URL and a value. In an edge list it is two integers."""
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


def _drawn(history: CrawlHistory, graph: Graph, seed: int) -> Floats:
    """Return `history.page` in which each new page has the value of a sampled old page.

    The sample depends on the seed and the URL, so that a live crawl samples the same page. Pages of a graph without URLs
    are sampled by their number.
    """
    new = history.page < 0.0
    names = map(b"%d".__mod__, range(graph.pages)) if graph.urls is None else encoded(graph.urls)
    values = history.page.copy()
    values[new] = drawn_from(history.old, list(compress(names, new.tolist())), seed)
    return values


def drawn_from(old: Floats, names: list[bytes], seed: int) -> Floats:
    """Return one of the old values for each name, sampled by a hash of the seed and the name."""
    key = seed.to_bytes(8, "little", signed=True)
    hashes = b"".join(blake2b(name, digest_size=4, key=key).digest() for name in names)
    places = np.frombuffer(hashes, "<u4").astype(np.uint64) * np.uint64(len(old)) >> np.uint64(32)
    return old[places.astype(np.int64)]


def mean_of(old: Floats) -> float:
    """Return the mean of the values of an old crawl, above 0."""
    return math.fsum(old) / max(len(old), 1) or 1.0


def relative_history(values: Floats, mean: float) -> Floats:
    """Return values of an old crawl as multiples of their mean there; NOT_OLD stays as it is."""
    return np.where(values < 0.0, NOT_OLD, values / mean)


# ---- the inputs that a strategy needs


def check_inputs(strategy: Strategy, has_quality: bool, has_history: bool) -> None:
    """Raise ConfigError if an input of the page rank is missing. Call it early, before a graph is read."""
    page = strategy.page
    for name in page.columns:
        if name in (*FEATURES, *STATE_PAGES) and name not in page.inputs:
            raise ConfigError(
                f"page rank {page.name!r}: `inputs` does not list its column {name!r}; add {name!r} to `inputs`, or rename the column"
            )
    for name in page.inputs:
        if name not in INPUTS:
            raise ConfigError(f"page rank {page.name!r} needs the input {name!r}; the inputs are: {', '.join(INPUTS)}")
        if name.startswith("history") and not has_history:
            raise ConfigError(f"page rank {page.name!r} needs the PageRank of an old crawl: give --history")
        if name == "quality" and not has_quality:
            raise ConfigError(f"page rank {page.name!r} needs a quality known before the crawl: {_OTHER_QUALITY}")
        if name == "fetched_quality" and not has_quality:
            raise ConfigError(f"page rank {page.name!r} needs the quality of fetched pages: {_OTHER_QUALITY}")


def inputs_for(
    strategy: Strategy, graph: Graph, pagerank: Floats, quality: Floats | None, history: CrawlHistory | None, seed: int
) -> dict[str, Floats]:
    """Return the inputs that the page rank declares. `quality`: None if it is computed from links."""
    check_inputs(strategy, quality is not None, history is not None)
    given: dict[str, Callable[[], Any]] = {
        "quality": lambda: quality if quality is None else np.maximum(quality, 0.0),
        "fetched_quality": lambda: quality,  # a page rank reads it of fetched pages only
        "pagerank": lambda: pagerank,
        "history": lambda: history and history.page,
        "history_random": lambda: history and _drawn(history, graph, seed),
        "history_relative": lambda: history and relative_history(history.page, mean_of(history.old)),
        "site_page": lambda: first_pages(graph.site),
    }
    return {name: given[name]() if name in given else _of_urls(name, graph) for name in strategy.page.inputs}


def _of_urls(name: str, graph: Graph) -> Floats:
    """Return an input that the URLs of the graph give."""
    if name == "directory_page" and graph.urls is None:
        return first_pages(graph.site)  # without URLs, nothing is known of a page but its site
    urls = decoded(_urls(graph, f"the input {name!r} of the page rank"))
    if name in FEATURES:
        return feature_values(name, urls)
    return np.array(StatePages(name).of(list(urls), 0))


def default_rules(strategy: Strategy, rules: Rules, pages: int) -> Rules:
    """Return the rules, with a default K if the page rank needs scores and no K was given: about 35 runs of PageRank per crawl."""
    if not strategy.page.scores:
        return rules
    if strategy.page.batched:
        return rules if rules.batch else replace(rules, batch=pages_a_run(pages))
    return rules if rules.rescore else replace(rules, rescore=pages_a_run(pages))


def pages_a_run(pages: int) -> int:
    """Return the default K: about 35 runs, or batches, per crawl, of at least 50 pages each.

    >>> pages_a_run(3_500), pages_a_run(100)
    (100, 50)
    """
    return max(_FEWEST_PAGES_A_RUN, pages // _RUNS)


# ---- values by URL


def file_values(file: Path) -> dict[bytes, float]:
    """Return the numbers of a FILE of values, by URL."""
    values: dict[bytes, float] = {}
    for row, line in rows(file):  # written for speed: reads 3.5 M rows in seconds
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
            raise at_row(
                file,
                row,
                f"{shown(line)} is not URL and NUMBER; write a URL, a tab or a space, and a number below 2^42",
            )
        values[url] = number
    return values


def _matched(values: dict[bytes, float], graph: Graph, missing: float, file: str) -> Floats:
    """Return the value of each page of the graph; `missing` for a page without one. Raise ConfigError if no page has a value."""
    urls = _urls(graph, file)
    found = np.fromiter(map(values.get, encoded(urls), repeat(math.nan)), np.float64, graph.pages)
    unknown = np.isnan(found)
    if unknown.all():
        example = f", such as {shown(next(iter(values)))}," if values else ""
        raise ConfigError(
            f"{file}: none of its {len(values)} URLs{example} is in the graph, which has URLs such as {urls[0]!r}"
        )
    found[unknown] = missing
    return found


def _urls(graph: Graph, wanted_by: str) -> Strings:
    # Page ids cannot replace URLs: two crawls of one web number its pages differently.
    if graph.urls is None:
        raise ConfigError(f"{wanted_by}: needs the URLs of pages, and the graph has no URLs; use a graph with URLs")
    return graph.urls
