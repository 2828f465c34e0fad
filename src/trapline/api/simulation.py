"""Simulated crawls for Python programs, and for the commands `simulate` and `compare`: one crawl of a graph, or a comparison of several.

The commands add options as users type them, progress lines and files. See docs/how-to/simulate-from-python.md.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from trapline.api.simulation_result import Comparison, SimulationResult
from trapline.defaults import STRATEGY
from trapline.errors import ConfigError
from trapline.graph import Graph, graph_from_edges, load_graph
from trapline.progress import CalledSteps, ProgressCallback, no_progress
from trapline.report import record_of
from trapline.simulator.arena import Arena, arena_of
from trapline.simulator.breakdown import site_totals
from trapline.simulator.conditions import CrawlConditions, Variant
from trapline.simulator.driver import SimulatedCrawl
from trapline.simulator.settings import SWEPT, SimulationSettings, variants
from trapline.strategies import Strategy
from trapline.strategies.base.chosen import Chosen, chosen_by, named, named_strategies, ready, uses_history

GraphSource = str | PathLike[str] | Graph | Iterable[Any]
StrategySource = str | Path | Strategy


def simulate(
    graph: GraphSource,
    strategy: StrategySource = STRATEGY,
    *,
    page_rank: str | None = None,
    site_rank: str | None = None,
    progress: ProgressCallback = no_progress,
    settings: SimulationSettings | None = None,
    **options: Any,
) -> SimulationResult:
    """Crawl a graph in simulated time, and measure how early its important pages are fetched.

    Args:
        graph: the path of a graph, the name of a sample such as python-docs, a `Graph`, or links: pairs (source, target) of page
            numbers or of URLs, or an array of shape (links, 2).
        strategy: a name, a Python file (.py), a pair of ranks PAGE+SITE, or a `Strategy`.
        page_rank: page rank to use instead of the strategy's own.
        site_rank: site rank to use instead of the strategy's own.
        progress: called as `progress(done, total, what)` from time to time.
        settings: all settings of the crawl.
        options: single settings by name, such as `connections=64`; the names are those of the options of `trapline simulate`.

    Raises:
        ConfigError: a setting, the strategy or the graph is invalid.
    """
    for name in SWEPT:
        if isinstance(options.get(name), list | tuple):
            raise ConfigError(
                f"{name}: a list is for trapline.compare, which crawls once for each value; give one value"
            )
    base = (settings or SimulationSettings()).changed(options)
    conditions = base.conditions()
    chosen = _ready(chosen_by(strategy, page_rank, site_rank), conditions)
    _check_history([chosen], conditions)
    web, web_name = _opened(graph)
    return simulate_in(arena_of(web, conditions, CalledSteps(progress)), chosen, web_name, _shown(base, options))


def compare(
    graph: GraphSource,
    strategies: Iterable[StrategySource] | StrategySource | None = None,
    *,
    progress: ProgressCallback = no_progress,
    settings: SimulationSettings | None = None,
    **options: Any,
) -> Comparison:
    """Crawl a graph with several strategies under the same conditions, and compare how early each one fetches good pages.

    Args:
        graph: as for `simulate`.
        strategies: names, Python files, pairs of ranks or `Strategy` objects. None: all strategies of Trapline; those that need an old
            crawl take part only if `history` is given.
        progress: called as `progress(done, total, what)` from time to time.
        settings: all settings of the crawls.
        options: single settings by name, as for `simulate`. `connections`, `delay`, `per_connection`, `bandwidth` and `protocol` may
            be lists; each strategy then crawls once with every combination.

    A strategy that fails is in `failures` of the result, and the others go on. If all of them fail, the first error is raised.

    Raises:
        ConfigError: a setting, the name of a strategy, or the graph is invalid.
    """
    base = settings or SimulationSettings()
    swept = variants(options, base)
    first = swept[0].conditions
    given = [strategies] if isinstance(strategies, StrategySource) else strategies
    every = chosen_strategies(given, first)
    _check_history(every, first)
    web, name = _opened(graph)
    arena = arena_of(web, first, CalledSteps(progress))
    found = compare_in(arena, every, swept, name, settings=_shown(base, options), keeps_sites=True)
    if found.interrupted:
        raise KeyboardInterrupt
    if not found.crawls:
        raise next(iter(found.failures.values()))
    return found


def _opened(graph: GraphSource) -> tuple[Graph, str]:
    """Return the graph and its name."""
    if isinstance(graph, Graph):
        return graph, "a graph in memory"
    if isinstance(graph, str | PathLike):
        path = Path(graph)
        return load_graph(path), path.resolve().name
    return graph_from_edges(graph), "a graph in memory"


def _shown(base: SimulationSettings, options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that are not None, as the page of a result shows them."""
    values = {one.name: getattr(base, one.name) for one in fields(base)} | options
    return {name: value for name, value in values.items() if value is not None}


# ---- Strategies, as the user named them.


def _ready(chosen: Chosen, conditions: CrawlConditions) -> Chosen:
    return ready(chosen, conditions.quality, conditions.history is not None)


def chosen_strategies(names: Iterable[StrategySource] | None, conditions: CrawlConditions) -> list[Chosen]:
    """Return the strategies, or all that are possible under these conditions if none is named. Names must differ."""
    given = list(names or ()) or named_strategies(conditions.quality, conditions.history is not None)
    every = [_ready(named(name), conditions) for name in dict.fromkeys(given)]
    times = Counter(log_name(chosen.name) for chosen in every)
    for chosen in every:
        if times[log_name(chosen.name)] > 1:
            raise ConfigError(f"two strategies have the name {chosen.name!r}; give each one only once, or rename one")
    return every


def _check_history(every: Sequence[Chosen], conditions: CrawlConditions) -> None:
    if conditions.history is not None and not uses_history(chosen.strategy for chosen in every):
        names = ", ".join(chosen.name for chosen in every)
        raise ConfigError(f"history has no effect with {names}; omit it, or choose a historical-* strategy")


# ---- The crawls.


def simulate_in(
    arena: Arena, chosen: Chosen, web: str = "", settings: dict[str, Any] | None = None
) -> SimulationResult:
    """Run one crawl and judge it."""
    crawl = arena.crawl(chosen)
    return _judged(arena, crawl, arena.reference_rate(chosen), web, settings or {}, keeps_sites=True, keeps_log=True)


def compare_in(
    arena: Arena,
    every: Sequence[Chosen],
    swept: Sequence[Variant],
    web: str,
    logs: Path | None = None,
    settings: dict[str, Any] | None = None,
    keeps_sites: bool = False,
) -> Comparison:
    """Crawl with each strategy under all conditions in turn. `logs`: folder for the logs of the crawls.

    Finished crawls are kept in any case: a strategy that fails is reported along with the results of the others, and Ctrl-C ends the
    comparison but keeps its results so far.
    """
    crawls = [(chosen, variant) for chosen in every for variant in swept]
    found, started = Comparison(web, swept, len(crawls)), time.perf_counter()
    references: dict[tuple[str, CrawlConditions], float | None] = {}
    for number, (chosen, variant) in enumerate(crawls, 1):
        name = crawl_label(chosen, variant)
        try:
            title, own = f"{name} ({number} of {len(crawls)})", arena.under(variant.conditions)
            crawl = own.crawl(chosen, title)
            key = (chosen.name, variant.conditions.for_reference())
            if key not in references:
                references[key] = own.reference_rate(chosen, title)
            judged = _judged(own, crawl, references[key], web, settings or {}, keeps_sites, keeps_log=False)
            shown = (variant.label if len(every) == 1 else name) if variant.label else ""
            record = replace(judged.record, variant=variant.values, label=shown)
            found.crawls.append(replace(judged, record=record))
            if logs:
                own.write_log(crawl, logs / log_name(name))
        except KeyboardInterrupt:
            found.interrupted = True
            break
        except Exception as error:  # any error of one strategy; the others go on
            found.failures[name] = error
    found.seconds = time.perf_counter() - started
    return found


def _judged(
    arena: Arena,
    crawl: SimulatedCrawl,
    reference_rate: float | None,
    web: str,
    settings: dict[str, Any],
    keeps_sites: bool,
    keeps_log: bool,
) -> SimulationResult:
    (quality, name), least = arena.measure, arena.conditions.harvest_quality
    with arena.steps.single("judging", len(crawl.log.page), "pages"):
        record = record_of(crawl, arena.web, arena.pagerank, quality, name, least, reference_rate, arena.depth)
        sites = site_totals(crawl.log, arena.web, arena.servers.size, arena.pagerank) if keeps_sites else None
    return SimulationResult(record, web, arena.conditions, settings, arena, sites, crawl if keeps_log else None)


def crawl_label(chosen: Chosen, variant: Variant) -> str:
    return f"{chosen.name}, {variant.label}" if variant.label else chosen.name


def log_name(strategy: str) -> str:
    """
    >>> log_name("opic x crawl-ability")
    'log-opic-x-crawl-ability.parquet'
    """
    plain = re.sub(r"[^\w.-]+", "-", strategy)
    return f"log-{plain}.parquet"
