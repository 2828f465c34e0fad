"""`trapline simulate`: one crawl of a graph in simulated time."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.scheduling import STRATEGY, check_history_used
from trapline.cli.options.sections import Section, SectionedCommand, bundled
from trapline.cli.options.simulated import SECTIONS, condition_options, heading, other_options
from trapline.cli.options.values import GRAPH_PATH
from trapline.cli.simulate.arena import opened_arena
from trapline.cli.simulate.changing import CHANGES, REFRESH, ChangeOptions
from trapline.cli.terminal.progress import compile_crawl, compile_ranks
from trapline.cli.terminal.scoreboard import say_if_few, web_name
from trapline.errors import ConfigError
from trapline.output import check_writable, write_bytes
from trapline.terminal import say, say_json, say_text
from trapline.units import bytes_shown, duration

if TYPE_CHECKING:
    from trapline.report import CrawlRecord
    from trapline.simulator.conditions import CrawlConditions

_FILE = click.Path(path_type=Path)
_SECTIONS = tuple(
    section.with_texts(
        robots="Fetch robots.txt in the first visit to a site. [yes; with --changes: no]",
        max_seconds="Stop after this simulated time. [unlimited; with --changes: 1d]",
    )
    for section in SECTIONS
)
_OUTPUT = Section(
    "Output",
    (
        ("--json", "as_json", None, False, "Print the result as JSON instead of a table."),
        ("--plot", "plot_file", (_FILE, "FILE.png"), None, "Write a plot of quality against pages fetched."),
        ("--log", "log_file", (_FILE, "FILE.parquet"), None, "Write one row per fetch, as Parquet."),
    ),
)


@click.command(cls=SectionedCommand)
@click.argument("graph", type=GRAPH_PATH)
@STRATEGY
@condition_options(*_SECTIONS)
@bundled("changing", ChangeOptions, CHANGES, REFRESH)
@_OUTPUT
def simulate(
    graph: Path,
    strategy: str,
    page_rank: str | None,
    site_rank: str | None,
    conditions: "CrawlConditions",
    changing: ChangeOptions,
    as_json: bool,
    plot_file: Path | None,
    log_file: Path | None,
) -> None:
    """Crawl GRAPH in simulated time and measure how early its important pages are fetched.

    A TIME is in seconds or has a unit: 250ms, 2min, 1h. A SHARE is 0.05 or 5%. In a change history, GAP is the mean time between two
    updates of a page, and LENGTH is the time until the history repeats. A site has a level: a normal site announces nothing, a smart
    site announces its updates, and a super site also announces its future updates. The policies for --refresh-policy
    are azar, cgm, lambda-crawl, ncis, nutch, proportional, residual-life, uniform and xu. Defaults are in brackets.
    """
    from trapline.api.simulation import simulate_in
    from trapline.strategies.base.chosen import chosen_by, ready

    _check_outputs(plot_file, log_file)
    chosen = ready(chosen_by(strategy, page_rank, site_rank), conditions.quality, conditions.history is not None)
    check_history_used([chosen.strategy])
    if changing.changes is not None:
        from trapline.cli.simulate.changing import simulate_changes

        simulate_changes(graph, chosen, conditions, changing, as_json, plot_file, log_file)
        return
    compile_ranks([chosen])
    compile_crawl()
    arena = opened_arena(graph, conditions)
    found = simulate_in(arena, chosen)
    record = found.record
    if log_file:
        found.save_log(log_file)
        _say_written(log_file)
    if plot_file:
        _write_plot(plot_file, graph, record, conditions)
    # Files come first: the reader of stdout may be gone.
    if as_json:
        say_json(_for_machines(graph, record, found.parameters))
    else:
        say_text(_table(record, conditions))
    say_if_few([record])


def _check_outputs(plot_file: Path | None, log_file: Path | None) -> None:
    """Check the output files before the crawl, so that no crawl is lost."""
    if plot_file and plot_file.suffix.lower() != ".png":
        raise ConfigError(f"--plot {plot_file}: the plot is a PNG file; give a name that ends in .png")
    if log_file and log_file.suffix.lower() != ".parquet":
        raise ConfigError(f"--log {log_file}: the log is a Parquet file; give a name that ends in .parquet")
    for file in (plot_file, log_file):
        if file:
            check_writable(file)


def _for_machines(graph: Path, record: "CrawlRecord", parameters: dict[str, Any]) -> dict[str, Any]:
    from trapline import __version__

    return {
        "trapline": __version__,
        "graph": os.fsencode(graph).decode(errors="replace"),
        **asdict(record),
        "parameters": parameters,
    }


def _write_plot(file: Path, graph: Path, record: "CrawlRecord", conditions: "CrawlConditions") -> None:
    from trapline.report import orders_png

    title = f"How early {record.strategy} collects PageRank"
    write_bytes(file, orders_png([record], title, f"{web_name(graph)}: {record.web_size}\n{heading(conditions)}"))
    _say_written(file)


def _say_written(file: Path) -> None:
    say(f"wrote {file}", err=True)  # stdout is for the result, which may be piped


def _table(record: "CrawlRecord", conditions: "CrawlConditions") -> str:
    reached = "nothing left to fetch" if record.drained else "stopped before the end"
    rows = {
        "strategy": record.strategy,
        "page rank x site rank": f"{record.page_rank} x {record.site_rank}",
        "web": record.web_size,
        "connections": conditions.connections_and_rules(),
        "network": conditions.world.summary(),
        **_others(conditions),
        "pages fetched": f"{record.pages_fetched:,} ({reached})",
        **_failures(record),
        "average cumulative PageRank": f"{record.average_cumulative_pagerank:.4f}"
        f" (random order 0.5, optimum {record.optimal_average_cumulative_pagerank:.4f})",
        **_quality(record),
        "Kendall's tau": f"{record.kendall_tau:.4f}",
        f"{_quality_name(record)} fetched": f"{record.quality_fetched:.2%} of the {_quality_name(record)} of the whole web",
        **{
            f"{share} of the fetched {_quality_name(record)}": f"after {_time(s)}"
            for share, s in record.seconds_until.items()
        },
        "simulated time": _time(record.simulated_seconds),
        **_link(record),
        **_speed_up(record),
        "active connections": f"{record.active_connections:.1f} of {record.connections:,} on average",
        "pages per site": f"{record.pages_per_site.average:,.1f} on average, {record.pages_per_site.largest:,} at most",
        **_locality(record),
        "run time of the loop": f"{record.wall_seconds:.3f} s ({record.pages_per_second:,.0f} pages/s)",
        "politeness violations": f"{record.politeness_violations} ({_unseen(conditions)})",
    }
    return "\n".join(f"{name:33}{value}" for name, value in rows.items())


def _others(conditions: "CrawlConditions") -> dict[str, str]:
    others = other_options(conditions)
    return {"other options": others} if others else {}


def _quality_name(record: "CrawlRecord") -> str:
    return "PageRank" if record.quality == "PageRank" else "quality"  # without its name, which may be a long path


def _failures(record: "CrawlRecord") -> dict[str, str]:
    failed = {"fetches failed": record.failed, "fetches refused": record.refused}
    return {name: f"{number:,}" for name, number in failed.items() if number}


def _quality(record: "CrawlRecord") -> dict[str, str]:
    if record.quality == "PageRank":
        return {}
    average, optimum = record.average_cumulative_quality, record.optimal_average_cumulative_quality
    return {"average cumulative quality": f"{average:.4f} (by {record.quality}; optimum {optimum:.4f})"}


def _link(record: "CrawlRecord") -> dict[str, str]:
    received = {"bytes received": bytes_shown(record.bytes)}
    if record.optimal_seconds is None or record.closeness is None:
        return received
    return received | {"optimal time T*": f"{_time(record.optimal_seconds)}: {record.closeness:.1%} of the time taken"}


def _speed_up(record: "CrawlRecord") -> dict[str, str]:
    if record.speed_up is None:
        return {}
    return {"speed-up": f"{record.speed_up:,.1f} times one connection with unlimited bandwidth"}


def _locality(record: "CrawlRecord") -> dict[str, str]:
    found = record.server_locality  # shares of the fetches that stay with a server
    if found.visit is None:
        return {}
    return {
        "fetches that continue a visit": f"{found.visit:.1%}",
        "same as in the fetch before": f"site {found.site:.1%}, address {found.address:.1%}",
    }


def _unseen(conditions: "CrawlConditions") -> str:
    """Return the limits of the audit, which sees only the log."""
    smaller = "all sites checked against the smaller delay, " if conditions.rules.small_site_pages else ""
    return f"{smaller}waits after failed visits are not checked"


def _time(seconds: float) -> str:
    short = duration(seconds)
    return short if short.endswith(" s") else f"{seconds:,.0f} s ({short})"
