"""`trapline parallel plan`: how many processes a crawl needs, in which mode, and what comes of it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.compiling import compile_kernels
from trapline.cli.numbers import amount, count, rate, seconds
from trapline.cli.progress import Progress
from trapline.cli.sections import SectionedCommand
from trapline.errors import ConfigError
from trapline.units import byte_rate, bytes_shown, duration

if TYPE_CHECKING:
    from trapline.parallel.planning import CrawlPlan, Expected

_MOST_SIMULATED = 64
_SEEDS = 5  # random pages a process, as in the paper
_PATH = click.Path(path_type=Path)


@click.command(cls=SectionedCommand)
@click.option("--pages", type=count(1, 10**12), required=True, help="Pages to be fetched.")
@click.option(
    "--every", "every_s", type=seconds(1.0), required=True, help="In this time, and again in the next: 30d, 7d."
)
@click.option("--link", type=rate(), required=True, help="Bandwidth of each process's machine: 10Mbit, 100Mbit, 20MB.")
@click.option("--page-bytes", type=amount(), required=True, help="Mean size of a page: 10kB.")
@click.option(
    "--web-pages", type=count(1, 10**13), help="Of so many that there are: the best are wanted. [all are fetched]"
)
@click.option("--processes-most", type=count(1, 4096), help="There are no more machines than this.")
@click.option(
    "--graph", "path", type=_PATH, help="Simulate coverage and exchange on this graph instead of assuming them."
)
@click.option(
    "--ids-per-site", type=count(1), help="If pages of the graph have no URLs: so many numbers in a row are a site."
)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def plan(
    pages: int, every_s: float, link: float, page_bytes: float, web_pages: int | None, processes_most: int | None, path: Path | None,
    ids_per_site: int | None, as_json: bool,
) -> None:  # fmt: skip
    """How many processes a crawl needs, in which mode, how much of the web it covers and how often it exchanges URLs.

    By the arithmetic of Cho and Garcia-Molina 2002 and costs measured with Trapline; docs/parallel-plan.md has both, and their three
    examples. Politeness is not in it: few large sites take their time, however many processes there are.
    """
    from trapline.parallel import planning

    task = planning.Task(pages, every_s, link, page_bytes, web_pages or 0)
    processes = planning.affordable(task, processes_most)
    expected = planning.assumed(processes) if path is None else _simulated(path, ids_per_site, processes)
    found = planning.plan(task, processes, expected)
    click.echo(json.dumps(_for_machines(found), indent=1) if as_json else _shown(found, path))


def _simulated(path: Path, ids_per_site: int | None, processes: int) -> "Expected":
    from trapline.graph import LoadOptions, load_graph
    from trapline.parallel.rehearsal import rehearse

    if processes > _MOST_SIMULATED:
        raise ConfigError(
            f"{processes} processes are more than can be simulated ({_MOST_SIMULATED}); leave --graph away"
        )
    compile_kernels()
    with Progress("loading", plain_every_s=2.0) as progress:
        graph = load_graph(path, LoadOptions(False, ids_per_site, progress.update))
    if graph.sites < processes:
        hint = "; give --ids-per-site" if graph.urls is None else ""
        raise ConfigError(f"{path}: {graph.sites} sites cannot be divided among {processes} processes{hint}")
    with Progress("simulating", unit="pages", plain_every_s=2.0) as progress:
        return rehearse(graph, processes, _SEEDS, progress.update)


def _shown(found: "CrawlPlan", path: Path | None) -> str:
    task, expected = found.task, found.expected
    source = f"simulated on {path}" if path else "as measured on a generated web"
    rows = [
        ("download", f"{byte_rate(task.bytes_per_s)}: {task.pages:,} pages of {bytes_shown(task.page_bytes)} in {duration(task.every_s)}"),
        ("processes", f"{found.processes}, each with a link of {byte_rate(task.link_bytes_per_s)}"),
        ("mode", found.mode),
        ("coverage", f"{found.coverage:.1%} ({source})"),
        ("in other modes", f"firewall {expected.firewall_coverage:.1%}, exchange {expected.exchange_coverage:.1%}"),
        ("exchanges", _exchanges(found)),
    ]  # fmt: skip
    if found.processes < found.needed:
        rows.append(
            ("too few", f"{found.needed} processes are needed; {found.processes} take {duration(found.round_s)}")
        )
    return "\n".join(f"{name:16}{text}" for name, text in rows)


def _exchanges(found: "CrawlPlan") -> str:
    if not found.exchanges:
        return "none"
    every = duration(found.exchange_every_s)
    sent = f"{found.expected.urls_per_page:.2f} URLs a page, {found.exchange_share:.2%} of the page bytes"
    return f"{found.exchanges} of each process, one every {every}: {sent}"


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
    }
