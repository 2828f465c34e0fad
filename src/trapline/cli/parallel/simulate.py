"""`trapline parallel simulate`: n partitions crawl a graph in simulated time."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.partitions import DYNAMIC, INDEPENDENT, PartitionOptions
from trapline.cli.options.partitions import SECTIONS as PARTITIONING
from trapline.cli.options.scheduling import STRATEGY, check_history_used
from trapline.cli.options.sections import Section, SectionedCommand, bundled
from trapline.cli.options.simulated import SECTIONS, SETTINGS, condition_options
from trapline.cli.options.values import GRAPH_PATH
from trapline.cli.simulate.arena import opened_arena
from trapline.cli.terminal.progress import Progress, compile_kernels, compile_ranks
from trapline.defaults import OF_PAPERS
from trapline.errors import ConfigError
from trapline.parallel import FIREWALL
from trapline.terminal import say_json, say_text
from trapline.units import duration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trapline.parallel.simulated.measures import ParallelRecord
    from trapline.simulator.arena import Arena
    from trapline.simulator.conditions import CrawlConditions
    from trapline.strategies.base.chosen import Chosen

_DEFAULT = "backlink-count"  # the order of the paper
_OF_PAPERS = {field: OF_PAPERS[setting] for field, setting in SETTINGS.items() if setting in OF_PAPERS}
# Without --speed-up and --rescore: these exist only in a crawl of one process.
_CONDITIONS = tuple(
    section.without("speed_up", "rescore")
    .with_defaults(**_OF_PAPERS)
    .with_texts(
        pages_per_site="Maximum number of pages per site. [0: unlimited]",
        robots="Fetch robots.txt in the first visit to a site, as a live crawl does. [no]",
        pause="Pause between two pages of a visit; w: same as --delay. [0 s]",
        quality="Quality for strategies that use it: pagerank, zipf, opic, opic-by-directory, FILE or MODULE:FUNCTION. [pagerank]",
    )
    for section in SECTIONS
)
_OUTPUT = Section("Output", (("--json", "as_json", None, False, "Print the result as JSON instead of a table."),))


@click.command(cls=SectionedCommand)
@click.argument("graph", type=GRAPH_PATH)
@bundled("options", PartitionOptions, *PARTITIONING)
@STRATEGY.with_defaults(strategy=_DEFAULT)
@condition_options(*_CONDITIONS)
@_OUTPUT
def simulate(
    graph: Path,
    options: PartitionOptions,
    strategy: str,
    page_rank: str | None,
    site_rank: str | None,
    conditions: "CrawlConditions",
    as_json: bool,
) -> None:
    """Crawl GRAPH with several partitions in simulated time, and measure coverage, overlap, quality and communication.

    Each partition is a crawler with --connections connections and the whole --bandwidth. --top sets which pages count as the best in
    the result; --quality sets the quality that the strategy uses. A TIME is in seconds or has a unit: 250ms, 2min, 1h. Defaults are in
    brackets.
    """
    from trapline.strategies.base.chosen import chosen_by, ready

    options.plan()  # reports errors in the options before anything that takes long
    named = chosen_by(strategy, page_rank, site_rank)
    _check_conditions(conditions, named)
    chosen = ready(named, conditions.quality, conditions.history is not None)
    compile_ranks([chosen])
    import trapline.parallel.simulated.measures  # noqa: F401  imports its kernels, and those of all modules that it needs

    compile_kernels()
    record, parameters = _crawled(opened_arena(graph, conditions), chosen, options)
    if as_json:
        say_json(_for_machines(graph, chosen, options, record, parameters))
    else:
        say_text(_shown(options, record))


def _check_conditions(given: "CrawlConditions", chosen: "Chosen") -> None:
    """Refuse inputs that the strategy does not use: they would have no effect."""
    inputs = chosen.strategy.page.inputs
    if given.quality != "pagerank" and "quality" not in inputs:
        raise ConfigError(
            f"--quality {given.quality}: {chosen.name} does not use quality; omit it (--top sets the quality of the result)"
        )
    check_history_used([chosen.strategy])


def _crawled(arena: "Arena", chosen: "Chosen", options: PartitionOptions) -> "tuple[ParallelRecord, dict[str, Any]]":
    import numpy as np

    from trapline.parallel.partition import most_linked
    from trapline.parallel.simulated.crawl import simulate_parallel
    from trapline.parallel.simulated.measures import judge
    from trapline.strategies.base.inputs import default_rules, inputs_for

    web, given, strategy = arena.web, arena.conditions, chosen.strategy
    rules = default_rules(strategy, given.rules, web.pages)
    backlinks = np.bincount(web.targets, minlength=web.pages).astype(np.float64)
    quality = backlinks if options.top == "backlinks" else arena.pagerank
    plan = options.plan(most_linked(web, options.replicate) if options.replicate else None)
    unit = "downloads" if plan.fetches_again and given.max_pages is None else "pages"
    with Progress("crawling", unit=unit) as progress, chosen.blamed():
        crawl = simulate_parallel(
            web,
            strategy,
            rules,
            plan,
            seeds=_seeds(arena, options),
            servers=arena.servers,
            network=arena.network,
            connections=min(given.connections, web.sites),
            most=given.max_pages,
            inputs=inputs_for(strategy, web, arena.pagerank, arena.quality, arena.history, given.seed),
            seed=given.seed,
            progress=progress.update,
        )
    return judge(crawl, web, rules, arena.servers, quality, given.max_pages), given.parameters(rules)


def _seeds(arena: "Arena", options: PartitionOptions) -> "NDArray[np.int32]":
    """Return the seeds: from the user's file; or random ones, the same number for each partition; or all home pages."""
    from trapline.parallel.simulated.measures import random_seeds

    if arena.seeds is not None:
        if options.random_seeds is not None:
            raise ConfigError("--random-seeds and --seeds exclude each other; give only one of them")
        return arena.seeds
    if options.random_seeds is None:
        return arena.web.home
    owner = options.plan().partitioning.owners(arena.web)
    return random_seeds(owner, options.processes, options.random_seeds, arena.conditions.seed)


def _for_machines(
    graph: Path,
    chosen: "Chosen",
    options: PartitionOptions,
    record: "ParallelRecord",
    parameters: dict[str, Any],
) -> dict[str, Any]:
    from trapline import __version__

    return {
        "trapline": __version__,
        "graph": os.fsencode(graph).decode(errors="replace"),
        "strategy": chosen.name,
        **asdict(record),
        "parallel": asdict(options),
        "parameters": parameters,
    }


def _shown(options: PartitionOptions, r: "ParallelRecord") -> str:
    reached = "nothing left to fetch" if r.drained else "stopped before the end"
    rows = {
        "partitions": _partitions(options),
        "pages downloaded": f"{r.pages_downloaded:,}, {r.pages_distinct:,} of them distinct ({reached})",
        "coverage": f"{r.coverage:.2%} of the {r.pages_reachable:,} pages that can be reached from the seeds",
        "overlap": f"{r.overlap:.4f}",
        "quality": f"{r.quality:.2%} of the same number of best pages by {options.top}",
        **_links(options, r),
        "URLs exchanged": f"{r.urls_exchanged:,}: {r.urls_exchanged_per_page:.3f} per page, in {r.messages:,} messages",
        **({"coordinator": f"{r.coordinator_messages:,} messages"} if options.mode == DYNAMIC else {}),
        "largest / mean partition": f"{r.imbalance_pages:.2f} by pages, {r.imbalance_bytes:.2f} by bytes",
        "active connections": f"{r.connections_at_work:.1f} on average",
        "simulated time": duration(r.simulated_seconds),
        "run time of the loop": f"{r.wall_seconds:.3f} s",
        "politeness violations": f"{r.politeness_violations:,}",
    }
    return "\n".join(f"{name:26}{value}" for name, value in rows.items())


def _partitions(options: PartitionOptions) -> str:
    if options.mode == DYNAMIC:
        return f"{options.processes}, mode dynamic: a coordinator assigns {options.grain}s"
    if options.mode == INDEPENDENT:
        return f"{options.processes}, mode independent: seeds by {options.partition}, all other pages by any partition"
    return f"{options.processes} by {options.partition}, mode {options.mode}"


def _links(options: PartitionOptions, r: "ParallelRecord") -> dict[str, str]:
    """Return the row on links between partitions. In mode independent pages have no owner, so there is no such link."""
    if options.mode == INDEPENDENT:
        return {}
    not_sent = f"{r.links_replicated:,} replicated, {r.links_filtered:,} filtered"
    outcome = "not followed" if options.mode == FIREWALL else not_sent
    return {"links between partitions": f"{r.links_between_partitions:,} ({outcome})"}
