"""`trapline parallel plan`: how many processes a crawl needs, in which mode, and with which coverage and exchange."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.sections import REQUIRED, Section, SectionedCommand, bundled
from trapline.cli.options.values import amount, count, rate, seconds
from trapline.cli.terminal.progress import Progress, compile_kernels
from trapline.errors import ConfigError
from trapline.parallel import MOST_PARTITIONS, MOST_PROCESSES
from trapline.terminal import say_json, say_text
from trapline.units import byte_rate, bytes_shown, duration

if TYPE_CHECKING:
    from trapline.parallel.simulated.planning import CrawlPlan, CrawlTask, Expected

_SEEDS = 5  # random seed pages per process, as in the paper
_PATH = click.Path(path_type=Path)
_MOST_WAITING = 1_000_000  # URLs that wait in a process for the next exchange, at 300 bytes each
_TOO_MANY = (
    f"a crawl has at most {MOST_PROCESSES} processes; --processes-most {MOST_PROCESSES} shows how long these take"
)
_LEAST_SHOWN = 1e-4  # the smallest share that shows as more than 0 in percent with two decimals

_CRAWL = Section(
    "The crawl",
    (
        ("--pages", "pages", count(1, 10**12), REQUIRED, "Number of pages to fetch."),
        ("--every", "every_s", seconds(1.0), REQUIRED, "Time in which to fetch all these pages: 30d."),
        ("--page-bytes", "page_bytes", amount(), REQUIRED, "Mean size of a page: 10kB."),
        (
            "--web-pages",
            "web_pages",
            count(1, 10**13),
            None,
            "Number of pages of the whole web. The crawl fetches the best --pages of them. [same as --pages]",
        ),
    ),
)
_MACHINES = Section(
    "Machines",
    (
        ("--link", "link", rate(), REQUIRED, "Bandwidth of each process: 10Mbit, 20MB."),
        (
            "--processes-most",
            "processes_most",
            count(1, MOST_PARTITIONS),
            None,
            "Maximum number of processes. [unlimited]",
        ),
    ),
)
_GRAPH = Section(
    "Graph",
    (
        (
            "--graph",
            "graph",
            (_PATH, "PATH"),
            None,
            "Find coverage and URL exchange by simulation on this graph. [values of generated webs]",
        ),
        (
            "--ids-per-site",
            "ids_per_site",
            count(1),
            None,
            "Treat every N consecutive pages of a graph without URLs as one site. [all pages are one site]",
        ),
    ),
)
_OUTPUT = Section("Output", (("--json", "as_json", None, False, "Print JSON."),))


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Values of the options of the command, by field."""

    pages: int
    every_s: float
    page_bytes: float
    web_pages: int | None
    link: float
    processes_most: int | None
    graph: Path | None
    ids_per_site: int | None

    def __post_init__(self) -> None:
        if self.ids_per_site is not None and self.graph is None:
            raise ConfigError("--ids-per-site has no effect without a graph; omit it, or also give --graph")

    def task(self) -> "CrawlTask":
        from trapline.parallel.simulated.planning import CrawlTask

        return CrawlTask(self.pages, self.every_s, self.link, self.page_bytes, self.web_pages or 0)


@click.command(cls=SectionedCommand)
@bundled("options", PlanOptions, _CRAWL, _MACHINES, _GRAPH)
@_OUTPUT
def plan(options: PlanOptions, as_json: bool) -> None:
    """Plan a crawl: the number and mode of its processes, its coverage, and how often the processes exchange URLs.

    The plan follows Cho and Garcia-Molina (2002), with costs measured on Trapline; see docs/parallel-plan.md. It ignores politeness
    delays. Because of these delays, a large site takes a long time even with many processes. The last row of the table is the
    command to run, or says why there is none.
    """
    from trapline.parallel.simulated import planning

    task = options.task()
    processes = planning.affordable(task, options.processes_most)
    expected = (
        _simulated(options.graph, options.ids_per_site, processes) if options.graph else planning.assumed(processes)
    )
    found = planning.plan(task, processes, expected)
    if as_json:
        say_json(_for_machines(found))
    else:
        say_text(_shown(found, options.graph))


def _simulated(path: Path, ids_per_site: int | None, processes: int) -> "Expected":
    from trapline.graph import LoadOptions, load_graph
    from trapline.parallel.simulated.planning import rehearse

    if processes > MOST_PROCESSES:
        raise ConfigError(
            f"{processes} processes are needed, but at most {MOST_PROCESSES} can be simulated; omit --graph"
        )
    compile_kernels()
    with Progress("loading", plain_every_s=2.0) as progress:
        graph = load_graph(path, LoadOptions(False, ids_per_site, progress.update))
    if graph.sites < processes:
        hint = "; give --ids-per-site" if graph.urls is None else ""
        raise ConfigError(f"{path}: {graph.sites} sites are too few for {processes} processes{hint}")
    with Progress("simulating", unit="pages", plain_every_s=2.0) as progress:
        return rehearse(graph, processes, _SEEDS, progress.update)


def _shown(found: "CrawlPlan", path: Path | None) -> str:
    task = found.task
    source = (
        f"simulated on {path}, with {_SEEDS} random seeds per process" if path else "as measured on a generated web"
    )
    rows = [
        ("download", f"{byte_rate(task.bytes_per_s)}: {task.pages:,} pages of {bytes_shown(task.page_bytes)} in {duration(task.every_s)}"),
        ("processes", f"{found.processes:,}, each with {_link(task.link_bytes_per_s)}"),
        ("mode", found.mode),
        ("coverage", f"{found.coverage:.1%} ({source})"),
        *(("other mode", f"{mode}: coverage {coverage:.1%}") for mode, coverage in found.other_modes.items()),
        ("exchanges", _exchanges(found)),
    ]  # fmt: skip
    if found.processes < found.needed:
        rows.append(
            (
                "too few",
                f"{found.needed:,} processes are needed; with {found.processes:,} the crawl takes {duration(found.round_s)}",
            )
        )
    rows.append(("command", _command(found) or _TOO_MANY))
    return "\n".join(f"{name:16}{text}" for name, text in rows)


def _link(bytes_per_s: float) -> str:
    """
    >>> _link(2e6), _link(math.inf)
    ('a link of 2 MB/s', 'an unlimited link')
    """
    return "an unlimited link" if math.isinf(bytes_per_s) else f"a link of {byte_rate(bytes_per_s)}"


def _exchanges(found: "CrawlPlan") -> str:
    if not found.exchanges:
        return "none"
    every, share = duration(found.exchange_every_s), found.exchange_share
    share_of_bytes = f"{share:.2%}" if share >= _LEAST_SHOWN else f"under {_LEAST_SHOWN:.2%}"
    sent = f"{found.expected.urls_per_page:.2f} URLs per page, {share_of_bytes} of the page bytes"
    return f"{found.exchanges} per process are enough (one every {every}); they send {sent}"


def _command(found: "CrawlPlan") -> str | None:
    """Return the command that crawls by this plan, without its seeds; None if it needs more processes than one crawl can have."""
    from trapline.parallel.simulated.planning import PLANNED_FIREWALL

    if found.processes > MOST_PROCESSES:
        return None
    command = f"trapline crawl --processes {found.processes}"
    if found.mode == PLANNED_FIREWALL:
        return f"{command} --mode firewall --ip-delay 0"
    every = found.task.pages // (found.processes * found.exchanges) if found.exchanges else 0
    every = min(every, int(_MOST_WAITING / max(found.expected.urls_per_page, 1e-9)))
    return f"{command} --exchange-every {every}" if every else command


def _for_machines(found: "CrawlPlan") -> dict[str, Any]:
    expected = found.expected
    return {
        "bytes_per_s": found.task.bytes_per_s,
        "processes": found.processes,
        "processes_needed": found.needed,
        "mode": found.mode,
        "coverage": found.coverage,
        "coverage_firewall": expected.firewall_coverage,
        "coverage_exchange": expected.exchange_coverage,
        "simulated": expected.simulated,
        "exchanges": found.exchanges,
        "exchange_every_s": found.exchange_every_s if found.exchanges else None,
        "urls_per_page": expected.urls_per_page,
        "exchange_share_of_bytes": found.exchange_share,
        "round_s": found.round_s,
        "command": _command(found),
    }
