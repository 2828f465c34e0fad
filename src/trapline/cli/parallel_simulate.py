"""`trapline parallel simulate`: n partitions crawl a graph in simulated time."""

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.arena import Arena, opened
from trapline.cli.compiling import compile_kernels, compile_ranks
from trapline.cli.conditions import Conditions, condition_options
from trapline.cli.numbers import count, seconds
from trapline.cli.progress import Progress
from trapline.cli.sections import Section, SectionedCommand, bundled
from trapline.cli.strategy import STRATEGY, Chosen, chosen_by, ready
from trapline.errors import ConfigError
from trapline.output import check_writable, write_json
from trapline.units import duration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trapline.parallel.in_process import Plan
    from trapline.parallel.measures import ParallelRecord

_FILE = click.Path(path_type=Path)
_STDOUT = Path("-")
_MOST_PROCESSES = 64
_DEFAULT = "backlink-count"  # the order of the paper
_FIREWALL, _DYNAMIC, _INDEPENDENT = "firewall", "dynamic", "independent"
_SENDING = ("exchange", _DYNAMIC)
# Options that do something in these modes alone. That modes exist at all is for `Plan` to say, which takes time to import.
_ONLY_IN = {
    "grain": (_DYNAMIC,),
    "partition": ("exchange", _FIREWALL, "cross-over", _INDEPENDENT),
    "batch_pages": _SENDING,
    "filter_size": _SENDING,
}
_PARALLEL = Section(
    "Partitions",
    (
        ("--processes", "processes", count(1, _MOST_PROCESSES), 4, "n: partitions, each with --connections robots."),
        (
            "--mode",
            "mode",
            (str, "NAME"),
            "exchange",
            "firewall, cross-over, exchange, independent or dynamic. [exchange]",
        ),
        (
            "--partition",
            "partition",
            (str, "NAME"),
            "site-hash",
            "site-hash, url-hash, rendezvous, address or suffix. [site-hash]",
        ),
        ("--suffixes", "suffixes", (str, "END=P,..."), "", "For suffix: edu=0,org=1; hosts that end so go there."),
        ("--random-seeds", "random_seeds", count(1), None, "So many random pages a partition. [all home pages]"),
        ("--grain", "grain", (str, "site|page"), "site", "What a coordinator gives out, in mode dynamic."),
        ("--step", "step_s", seconds(1e-6), 1.0, "URLs arrive at the end of such a step of time."),
    ),
)
_EXCHANGE = Section(
    "Exchange",
    (
        ("--batch-pages", "batch_pages", count(1), 1, "A partition sends after so many pages of its own."),
        ("--filter", "filter_size", count(0), 0, "URLs sent that it remembers, and does not send again."),
        ("--filter-policy", "filter_policy", (str, "lru|popular"), "lru", "Which of them it forgets."),
        ("--replicated", "replicated", count(0), 0, "The m most linked URLs are known everywhere."),
    ),
)
_MEASURE = Section(
    "Measure",
    (
        (
            "--top",
            "top",
            (str, "backlinks|pagerank"),
            "backlinks",
            "The quality of the result: share of the best by this.",
        ),
    ),
)
_OUTPUT = Section("Output", (("--json", "json_file", (_FILE, "FILE"), None, "The result for machines; -: to stdout."),))

# Of the options of one crawl, what the help says of those that are otherwise here; nothing: they are refused.
_OTHERWISE = {
    "quality": "For strategies by quality: zipf, opic, FILE or MODULE:FUNCTION. [pagerank]",
    "speed_up": "",
    "rescore": "",
}


@dataclass(frozen=True, slots=True)
class Asked:
    processes: int
    mode: str
    partition: str
    suffixes: str
    random_seeds: int | None
    grain: str
    step_s: float
    batch_pages: int
    filter_size: int
    filter_policy: str
    replicated: int
    top: str

    def __post_init__(self) -> None:
        if self.top not in ("backlinks", "pagerank"):
            raise ConfigError(f"--top {self.top}: it is backlinks or pagerank")
        if self.partition == "suffix" and not self.suffixes:
            raise ConfigError("--partition suffix needs a table, as in --suffixes edu=0,org=1")
        if self.suffixes and self.partition != "suffix":
            raise ConfigError("--suffixes is for --partition suffix; give that too, or leave it away")
        if self.filter_policy == "popular" and not self.filter_size:
            raise ConfigError("--filter-policy popular is of a filter; give --filter too, or leave it away")
        self._check_mode()

    def _check_mode(self) -> None:
        """What does nothing in the mode is refused: whoever gave it expects something."""
        every = {mode for modes in _ONLY_IN.values() for mode in modes}
        for flag, field, _, default, _ in (*_PARALLEL.rows, *_EXCHANGE.rows):
            modes, value = _ONLY_IN.get(field, every), getattr(self, field)
            if value != default and self.mode in every and self.mode not in modes:
                raise ConfigError(f"{flag} {value} does nothing in mode {self.mode}; it is for {', '.join(modes)}")

    def plan(self, replicated: "NDArray[np.int32] | None" = None) -> "Plan":
        from trapline.parallel.in_process import Exchange, Plan
        from trapline.parallel.partition import Partitioning

        exchange = Exchange(self.batch_pages, self.filter_size, self.filter_policy, replicated)
        partitioning = Partitioning(self.partition, self.processes, _table(self.suffixes))
        return Plan(self.mode, partitioning, exchange, self.grain, self.step_s)


@click.command(cls=SectionedCommand)
@click.argument("graph", type=click.Path(path_type=Path, exists=True))
@bundled("asked", Asked, _PARALLEL, _EXCHANGE, _MEASURE)
@STRATEGY
@condition_options
@_OUTPUT
def simulate(
    graph: Path,
    asked: Asked,
    strategy: str | None,
    page_rank: str | None,
    site_rank: str | None,
    conditions: Conditions,
    json_file: Path | None,
) -> None:
    """Crawl GRAPH with n partitions in simulated time: what they cover, fetch twice, and tell each other.

    Each partition is a crawler of its own, with --connections robots and the whole --bandwidth. A TIME is in seconds, or with a
    unit: 250ms, 2min, 1h. Brackets hold the default; without --strategy it is backlink-count. The quality of the result goes by --top,
    not by --quality, which is for strategies.
    """
    if json_file and json_file != _STDOUT:
        check_writable(json_file)
    asked.plan()  # what can be wrong with it, before anything long begins
    unsaid = strategy is None and not (page_rank and site_rank)
    named = chosen_by(_DEFAULT if unsaid else strategy, page_rank, site_rank)
    _check_conditions(conditions, named)
    chosen = ready(named, conditions.quality, conditions.history is not None)
    compile_ranks([chosen])
    import trapline.parallel.measures  # noqa: F401  its kernels, and those of all that it needs

    compile_kernels()
    record, parameters = _crawled(opened(graph, conditions), chosen, asked)
    if json_file:
        _write(json_file, graph, chosen, asked, record, parameters)
    if json_file != _STDOUT:
        click.echo(_shown(asked, record))


for _option in simulate.params:
    if isinstance(_option, click.Option) and _option.name in _OTHERWISE:
        _option.help, _option.hidden = _OTHERWISE[_option.name], not _OTHERWISE[_option.name]


def _check_conditions(given: Conditions, chosen: Chosen) -> None:
    """Options of a crawl by one process that would do nothing here."""
    inputs = chosen.strategy.page.inputs
    if given.speed_up:
        raise ConfigError("--speed-up is of a crawl by one process: trapline simulate")
    if given.rules.rescore:
        raise ConfigError("--rescore is for ranks by PageRank of what is known, which parallel crawls do not have")
    if given.quality != "pagerank" and "quality" not in inputs:
        raise ConfigError(f"--quality {given.quality}: {chosen.name} does not go by it; the result's quality is --top")
    if given.history is not None and not any(name.startswith("history") for name in inputs):
        raise ConfigError(f"--history {given.history}: {chosen.name} does not go by it")


def _crawled(arena: Arena, chosen: Chosen, asked: Asked) -> "tuple[ParallelRecord, dict[str, Any]]":
    import numpy as np

    from trapline.parallel.in_process import simulate_parallel
    from trapline.parallel.measures import judge, links_dropped
    from trapline.strategies.inputs import default_rules, inputs_for

    web, given, strategy = arena.web, arena.conditions, chosen.strategy
    rules = default_rules(strategy, given.rules, web.pages)
    backlinks = np.bincount(web.targets, minlength=web.pages).astype(np.float64)
    worth = backlinks if asked.top == "backlinks" else arena.pagerank
    popular = np.argsort(-backlinks, kind="stable")[: asked.replicated].astype(np.int32) if asked.replicated else None
    with Progress("crawling", unit="pages") as progress, chosen.blamed():
        crawl = simulate_parallel(
            web,
            strategy,
            rules,
            asked.plan(popular),
            seeds=_seeds(arena, asked),
            servers=arena.servers,
            network=arena.network,
            robots=min(given.connections, web.sites),
            most=given.max_pages,
            inputs=inputs_for(strategy, web, arena.pagerank, arena.quality, arena.history, given.seed),
            seed=given.seed,
            progress=progress.update,
        )
    record = judge(crawl, web, rules, arena.servers, worth, given.max_pages)
    if asked.mode == _FIREWALL:
        record = replace(record, links_between_partitions=links_dropped(crawl, web))
    return record, given.parameters(rules)


def _seeds(arena: Arena, asked: Asked) -> "NDArray[np.int32]":
    """Of the user's file; or random ones, the same number for each partition; or all home pages."""
    from trapline.parallel.seeds import random_seeds

    if arena.seeds is not None:
        if asked.random_seeds is not None:
            raise ConfigError("--random-seeds and --seeds FILE: give one of them")
        return arena.seeds
    if asked.random_seeds is None:
        return arena.web.home
    owner = asked.plan().partitioning.owners(arena.web)
    return random_seeds(owner, asked.processes, asked.random_seeds, arena.conditions.seed)


def _table(text: str) -> dict[str, int]:
    """
    >>> _table("edu=0,ac.uk=1")
    {'edu': 0, 'ac.uk': 1}
    """
    table = {}
    for part in filter(None, text.split(",")):
        suffix, _, partition = part.partition("=")
        if not suffix or not partition.isdecimal():
            raise ConfigError(f"--suffixes {text}: write END=PARTITION,..., for example edu=0,org=1")
        table[suffix.strip(".").lower()] = int(partition)
    return table


def _write(
    file: Path, graph: Path, chosen: Chosen, asked: Asked, record: "ParallelRecord", parameters: dict[str, Any]
) -> None:
    import json

    from trapline import __version__

    value = {
        "trapline": __version__,
        "graph": os.fsencode(graph).decode(errors="replace"),
        "strategy": chosen.name,
        **asdict(record),
        "parallel": asdict(asked),
        "parameters": parameters,
    }
    if file == _STDOUT:
        click.echo(json.dumps(value, allow_nan=False, indent=1))
    else:
        write_json(file, value)
        click.echo(f"wrote {file}", err=True)


def _shown(asked: Asked, r: "ParallelRecord") -> str:
    reached = "nothing is left to fetch" if r.drained else "stopped before the end"
    rows = {
        "partitions": _partitions(asked),
        "pages downloaded": f"{r.pages_downloaded:,}, {r.pages_distinct:,} of them distinct ({reached})",
        "coverage": f"{r.coverage:.2%} of the {r.pages_reachable:,} pages that can be reached from the seeds",
        "overlap": f"{r.overlap:.4f}",
        "quality": f"{r.quality:.2%} of as many best pages by {asked.top}",
        **_links(asked, r),
        "URLs exchanged": f"{r.urls_exchanged:,}: {r.urls_exchanged_per_page:.3f} a page, in {r.messages:,} messages",
        **({"coordinator": f"{r.coordinator_messages:,} messages"} if asked.mode == _DYNAMIC else {}),
        "largest against mean": f"{r.imbalance_pages:.2f} of pages, {r.imbalance_bytes:.2f} of bytes",
        "robots at work": f"{r.robots_at_work:.1f} on average",
        "simulated time": duration(r.simulated_seconds),
        "time of the loop": f"{r.wall_seconds:.3f} s",
        "politeness violations": f"{r.politeness_violations:,}",
    }
    return "\n".join(f"{name:26}{value}" for name, value in rows.items())


def _partitions(asked: Asked) -> str:
    if asked.mode == _DYNAMIC:
        return f"{asked.processes}, mode dynamic: a coordinator gives out {asked.grain}s"
    if asked.mode == _INDEPENDENT:
        return f"{asked.processes}, mode independent: seeds by {asked.partition}, all else is everybody's"
    return f"{asked.processes} by {asked.partition}, mode {asked.mode}"


def _links(asked: Asked, r: "ParallelRecord") -> dict[str, str]:
    """Where nothing is anybody's, none leads to another's page."""
    if asked.mode == _INDEPENDENT:
        return {}
    gathered = f"{r.links_replicated:,} replicated, {r.links_filtered:,} filtered"
    became = "not followed" if asked.mode == _FIREWALL else gathered
    return {"links between partitions": f"{r.links_between_partitions:,} ({became})"}
