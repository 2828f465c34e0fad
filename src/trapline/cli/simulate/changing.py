"""`trapline simulate --changes`: options for a web that changes and for refetching, and the crawls that they describe.

The options have the names of those of `trapline crawl` and `trapline testweb`. Shares, prices and policies may be lists: then there is
one crawl for each, of the same web.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trapline.cli.options.scheduling import settings_of
from trapline.cli.options.sections import Many, Section, refuse
from trapline.cli.options.simulated import heading
from trapline.cli.options.values import SHARES, check_history, real, share, trace_of
from trapline.cli.simulate.arena import opened_arena
from trapline.cli.terminal.progress import Progress, compile_kernels, compile_ranks
from trapline.cli.terminal.scoreboard import web_name
from trapline.errors import ConfigError
from trapline.output import write_bytes
from trapline.terminal import say, say_json, say_text
from trapline.units import counted, duration, time_unit

if TYPE_CHECKING:
    from trapline.refresh import Policy, ReplayConditions
    from trapline.simulator.arena import Arena
    from trapline.simulator.changing import ChangingCrawl, Refresh
    from trapline.simulator.changing_measures import ChangingMeasures, Course
    from trapline.simulator.changing_web import ChangingWeb
    from trapline.simulator.conditions import CrawlConditions
    from trapline.strategies.base.chosen import Chosen

OFF = "off"
_NO_LEVELS = (("normal", 1.0),)
_DAY_S = 86_400.0

CHANGES = Section(
    "Changing web (see docs/simulator.md)",
    (
        (
            "--changes",
            "changes",
            (str, "HISTORY"),
            None,
            "Change history: poisson:GAP[:LENGTH], bursty:GAP[:LENGTH] or a trace file.",
        ),
        ("--changes-speed", "speed", real(), 1.0, "Seconds of the history per simulated second."),
        (
            "--level",
            "level",
            SHARES,
            _NO_LEVELS,
            "Level of all sites (see above), or shares: smart=.4,super=.6. [normal]",
        ),
        ("--precision", "precision", share(), 1.0, "Share of signals that announce a real update."),
        ("--recall", "recall", share(), 1.0, "Share of updates that are signalled."),
        ("--schedule-precision", "schedule_precision", share(), 1.0, "Share of published update times that are true."),
    ),
)
REFRESH = Section(
    "Refresh of a changing web (if you give lists, each combination is one crawl)",
    (
        (
            "--refresh-policy",
            "policies",
            (str, "NAME,..."),
            "residual-life",
            "Refresh policy (see above), or off: fetch each page once. [residual-life]",
        ),
        (
            "--refresh-option",
            "settings",
            Many("NAME=X"),
            (),
            "Option of the refresh policy (see docs/refresh.md). Repeatable.",
        ),
        (
            "--refresh-share",
            "shares",
            (str, "SHARE,..."),
            None,
            "Share of fetches spent on refreshing while new pages are waiting. [50%]",
        ),
        (
            "--refresh-price",
            "prices",
            (str, "X,..."),
            None,
            "Before new pages, refetch those that the policy values at this or more. [off]",
        ),
        ("--refresh-rate", "rate", real(1e6), None, "Maximum number of refetches per second, on average. [unlimited]"),
    ),
)


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """Values of the options on changes and refreshing."""

    changes: str | None
    speed: float
    level: tuple[tuple[str, float], ...]
    precision: float
    recall: float
    schedule_precision: float
    policies: str
    settings: tuple[str, ...]
    shares: str | None
    prices: str | None
    rate: float | None

    def __post_init__(self) -> None:
        if self.shares is not None and self.prices is not None:
            raise ConfigError("--refresh-share and --refresh-price exclude each other; give only one of them")
        if self.changes is None and (unused := self._unused()):
            raise ConfigError(f"--{unused} has no effect on a web that does not change; also give --changes")
        if self.changes is None:
            return
        check_history(self.changes)
        levels = {name for name, _ in self.level}
        if not levels & {"smart", "super"}:
            refuse(("precision", "recall"), "has no effect if no site sends signals; also give --level, such as smart")
        if "super" not in levels:
            refuse(("schedule_precision",), "has no effect if no site has a schedule; also give --level super")
        if self.policies == OFF:
            refuse(("settings", "shares", "prices", "rate"), "has no effect with --refresh-policy off; omit it")

    def _unused(self) -> str | None:
        rows = (row for section in (CHANGES, REFRESH) for row in section.rows)
        return next((row[0].removeprefix("--") for row in rows if getattr(self, row[1]) != row[3]), None)

    def signal_conditions(self) -> "ReplayConditions":
        from trapline.refresh import ReplayConditions

        names = ("precision", "recall", "schedule_precision")
        return ReplayConditions(levels=dict(self.level), **{name: getattr(self, name) for name in names})

    def refreshes(self) -> "dict[str, Refresh | None]":
        """Return the refresh settings to compare, by the name that the results show."""
        from trapline.simulator.changing import Refresh

        rate = math.inf if self.rate is None else self.rate
        every: dict[str, Refresh | None] = {}
        for name in self.policies.split(","):
            if name == OFF:
                every[OFF] = None
                continue
            policy = self._policy(name)
            for text, limits in self._limits():
                every[f"{name}, {text}"] = Refresh(policy, rate=rate, **limits)
        return every

    def _limits(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if self.prices is not None:
            for price in _numbers(self.prices, real(), "--refresh-price"):
                yield f"price {price:g}", {"price": price}
            return
        for part in _numbers(self.shares or "50%", share(), "--refresh-share"):
            yield f"share {part:.4g}", {"share": part}

    def _policy(self, name: str) -> "Policy":
        from trapline.refresh import policy_named

        return policy_named(name).with_options(**settings_of(name, self.settings, of_others=True))


def _numbers(text: str, kind: Any, flag: str) -> list[float]:
    try:
        return [float(kind.convert(part, None, None)) for part in text.split(",")]
    except click.BadParameter as error:
        raise ConfigError(f"{flag} {text}: {error.message}") from None


def web_of(options: ChangeOptions, arena: "Arena") -> "ChangingWeb":
    from trapline.simulator.changing_web import changing_web

    seed, given_s = arena.conditions.seed, arena.conditions.max_seconds
    trace = trace_of(str(options.changes), arena.web.pages, seed)
    time_s = _DAY_S if given_s is None else given_s
    web = changing_web(arena.web, trace, time_s, options.signal_conditions(), speed=options.speed, seed=seed)
    return replace(web, servers=arena.servers, network=arena.network)


def crawled(
    arena: "Arena", web: "ChangingWeb", chosen: "Chosen", every: "dict[str, Refresh | None]"
) -> "Iterator[tuple[str, ChangingCrawl]]":
    for name, refresh in every.items():
        with Progress(name, unit="s") as progress, chosen.blamed():
            yield name, _crawl(arena, web, chosen, refresh, progress)


def _crawl(
    arena: "Arena", web: "ChangingWeb", chosen: "Chosen", refresh: "Refresh | None", progress: Progress
) -> "ChangingCrawl":
    from trapline.simulator.changing import simulate_changing
    from trapline.strategies.base.inputs import default_rules, inputs_for

    given, strategy = arena.conditions, chosen.strategy
    return simulate_changing(
        web,
        strategy,
        default_rules(strategy, given.rules, arena.web.pages),
        refresh and replace(refresh, quality=page_values(arena)),
        connections=min(given.connections, arena.web.sites),
        seeds=arena.seeds,
        inputs=inputs_for(strategy, arena.web, arena.pagerank, arena.quality, arena.history, given.seed),
        seed=given.seed,
        progress=progress.update,
    )


def page_values(arena: "Arena") -> Any:
    """Return the values of pages: the chosen quality, or PageRank if the quality is not known beforehand."""
    quality = arena.measure[0]
    return arena.pagerank if quality is None else quality


def check_fits(options: ChangeOptions, conditions: "CrawlConditions", log_file: Path | None) -> None:
    """Refuse options that a crawl of a changing web does not have, before anything that takes long."""
    for flag, given in (("--max-pages", conditions.max_pages), ("--speed-up", conditions.speed_up)):
        if given:
            raise ConfigError(f"{flag} has no effect with --changes, where --max-time ends the crawl; omit {flag}")
    if conditions.world.robots:  # the default too
        refuse(("robots",), "is not supported with --changes; omit it")
    if log_file is not None and len(options.refreshes()) > 1:
        raise ConfigError(
            f"--log {log_file}: one file cannot hold the logs of several crawls; give one policy and one share"
        )
    options.signal_conditions()


# ---- `trapline simulate GRAPH --changes ...`: runs the crawls and shows the results as a table, JSON and a plot.

_COURSES = ("fresh", "quality", "coverage", "fresh_pages")


@dataclass(frozen=True, slots=True)
class ChangingRow:
    """One crawl and its results."""

    name: str
    crawl: "ChangingCrawl"
    measured: "ChangingMeasures"
    violations: int

    @property
    def fetches(self) -> int:
        return len(self.crawl.log.page)

    @property
    def refetches(self) -> int:
        return int(self.crawl.is_refetch.sum())

    @property
    def useful(self) -> float:
        """Share of refetches that found the page changed."""
        return float(self.crawl.changed.sum()) / self.refetches if self.refetches else 0.0


def simulate_changes(
    graph: Path,
    chosen: "Chosen",
    conditions: "CrawlConditions",
    options: ChangeOptions,
    as_json: bool,
    plot_file: Path | None,
    log_file: Path | None,
) -> None:
    check_fits(options, conditions, log_file)
    conditions = replace(conditions, world=replace(conditions.world, robots=False))
    _compile(options, chosen)
    arena = opened_arena(graph, conditions)
    web = web_of(options, arena)
    rows = [_judged(name, crawl, arena) for name, crawl in crawled(arena, web, chosen, options.refreshes())]
    if log_file is not None:
        _write_log(log_file, rows[0].crawl, arena)
    if plot_file is not None:
        write_bytes(plot_file, _picture(rows, graph, chosen, conditions, options))
    if log_file or plot_file:
        say(f"wrote {', '.join(str(file) for file in (log_file, plot_file) if file)}", err=True)
    if as_json:
        say_json(_for_machines(graph, rows, chosen, conditions, options))
    else:
        say_text(_table(rows, web, chosen, conditions))


def _compile(options: ChangeOptions, chosen: "Chosen") -> None:
    import trapline.simulator.changing
    import trapline.simulator.driver  # noqa: F401  imports all kernels before they are counted

    compile_ranks([chosen])
    compile_kernels()
    for refresh in options.refreshes().values():
        if refresh is not None:
            refresh.policy.compile()


def _judged(name: str, crawl: "ChangingCrawl", arena: "Arena") -> ChangingRow:
    from trapline.simulator import politeness_violations
    from trapline.simulator.changing_measures import measured

    found = measured(crawl.log, crawl.web.changes, page_values(arena), crawl.web.until_s)
    return ChangingRow(name, crawl, found, politeness_violations(crawl.log, arena.web.site, arena.web.ips, crawl.rules))


def _write_log(file: Path, crawl: "ChangingCrawl", arena: "Arena") -> None:
    from trapline.simulator.log import write_parquet

    made_by = {"strategy": crawl.strategy.name, "parameters": arena.conditions.parameters(crawl.rules)}
    write_parquet(crawl.log, arena.web, arena.servers.size, file, made_by)


# ---- Table and plot.


def _table(rows: list[ChangingRow], web: "ChangingWeb", chosen: "Chosen", conditions: "CrawlConditions") -> str:
    graph, changes = web.graph, web.changes
    size = f"{counted(graph.pages, 'page')}, {counted(graph.sites, 'site')}"
    changing = f"{counted(changes.updates, 'update')} in {duration(web.until_s)}"
    width = max(len("refresh"), *(len(row.name) for row in rows)) + 2
    heads = ("fresh", "at the end", "quality", "coverage", "fetches", "refetches", "changed", "pages/s")
    lines = [
        f"{chosen.name}: {size}, {changing}; {conditions.summary()}",
        "Averages over time, as shares of the whole web; at the end: over the last tenth of the time. Fresh: by quality, Q(t).",
        "",
        f"{'refresh':{width}}" + "".join(f"{head:>11}" for head in heads),
        *(f"{row.name:{width}}" + "".join(f"{cell:>11}" for cell in _cells(row)) for row in rows),
        "",
        f"politeness violations: {sum(row.violations for row in rows)}",
    ]
    return "\n".join(lines)


def _cells(row: ChangingRow) -> list[str]:
    found = row.measured
    shares = (found.fresh.average, found.fresh.end, found.quality.average, found.coverage.average)
    speed = row.fetches / max(row.crawl.wall_seconds, 1e-9)
    return [
        *(f"{part:.4f}" for part in shares),
        f"{row.fetches:,}",
        f"{row.refetches:,}",
        f"{row.useful:.1%}",
        f"{speed:,.0f}",
    ]


def _picture(
    rows: list[ChangingRow], graph: Path, chosen: "Chosen", conditions: "CrawlConditions", options: ChangeOptions
) -> bytes:
    from trapline.report.chart import Chart, ChartLine, axis
    from trapline.report.plot import chart_png

    until_s = rows[0].crawl.web.until_s
    unit = time_unit(until_s)
    lines = []
    for index, row in enumerate(rows):
        fresh = row.measured.fresh
        time = row.measured.time_s / unit.seconds
        lines.append(ChartLine(index, row.name, time, 100.0 * fresh.curve, f"{100.0 * fresh.average:.1f} %"))
    x = axis(f"simulated time ({unit.name})", until_s / unit.seconds, tight=True)
    y = axis("quality of the pages with a fresh copy", 100.0, "%", tight=True)
    chart = Chart("fresh-quality", "Fresh quality", "average", x, y, lines)
    about = f"{web_name(graph)}, {options.changes}, {chosen.name}\n{heading(conditions)}"
    return chart_png(chart, "Freshness-weighted quality over time", about)


# ---- JSON.


def _for_machines(
    graph: Path, rows: list[ChangingRow], chosen: "Chosen", conditions: "CrawlConditions", options: ChangeOptions
) -> dict[str, Any]:
    from trapline import __version__

    web = rows[0].crawl.web
    return {
        "trapline": __version__,
        "graph": str(graph),
        "strategy": chosen.name,
        "pages": web.graph.pages,
        "sites": web.graph.sites,
        "updates": web.changes.updates,
        "simulated_seconds": web.until_s,
        "time_s": rows[0].measured.time_s.tolist(),
        "results": [_result(row) for row in rows],
        "changing": asdict(options),
        "parameters": conditions.parameters(rows[0].crawl.rules),
    }


def _result(row: ChangingRow) -> dict[str, Any]:
    return {
        "refresh": row.name,
        **{name: _course(getattr(row.measured, name)) for name in _COURSES},
        "fetches": row.fetches,
        "refetches": row.refetches,
        "changed": int(row.crawl.changed.sum()),
        "wall_seconds": row.crawl.wall_seconds,
        "politeness_violations": row.violations,
    }


def _course(course: "Course") -> dict[str, Any]:
    return {"average": course.average, "end": course.end, "curve": course.curve.tolist()}
